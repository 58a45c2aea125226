#!/usr/bin/env python3
"""Call every native command with hostile input, and see that nothing breaks.

    hostile_native.py --module ff.so                 a sample of the cases, the same one every time
    hostile_native.py --module ff.so --full          every case, however long it takes
    hostile_native.py --module ff.so --only text     calls and cases with this in their name

The seeds are the good calls of native_calls.py, at least one for each command that the server
documents, with every option it documents. Each is made again with words missing, doubled, swapped
and too many; with options repeated, unknown, without their value and in odd places; with each word
in turn replaced by hostile values; with keys missing, garbled and of another type. After every call
the server must be up. An error must begin with an upper-case word, name the argument where it is
the parser's, and leave the keyspace as it was, unless it is documented to have an effect. A replica
without the module must hold the same data."""
import collections
import random
import re
import sys
import time

sys.dont_write_bytecode = True  # the checkout stays as it is
from hostile import MARK_EXPIRED, MEGABYTE, STORED, TYPES, VALUES, key_allowed
from keyspace import Keyspace, pairs
from native_calls import CALLS, CONDITION, FLOW, FLOW_ID, TAG, Refused, Scene
from plumbing import Clock, Server, ServerLost, ending_with_a_count, module_parser, parsed_options
from run import differing_keys, print_of, wait_for_replica

NOT_NATIVE = {"ff.call", "ff.call_ro"}  # hostile.py has these
MAY_WAIT = {"ff.claim", "ff.read", "ff.complete"}  # called in MULTI, where nothing waits
UUID = "f10f0001-0000-4000-8000-000000000404"
DEPTH = 10000
IDS = collections.OrderedDict([
    ("star", "*"), ("a bare id", UUID), ("a partition", TAG), ("a bare flow id", FLOW_ID),
    ("no such", TAG + ":" + UUID), ("of another partition", "{fp:8}:" + UUID),
    ("a padded partition", "{fp:07}:" + UUID), ("a signed partition", "{fp:+7}:" + UUID),
    ("past the last partition", "{fp:256}:" + UUID), ("past every partition", "{fp:65536}:" + UUID),
    ("of another family", "{b:1}:" + UUID), ("of the third family", "{q:1}:" + UUID),
    ("of no family", "{x:1}:" + UUID), ("without an id", TAG + ":"), ("an open tag", "{fp:7"),
    ("an empty tag", "{}:" + UUID), ("a short id", TAG + ":" + UUID[:-1]),
    ("a long id", TAG + ":" + UUID + "0"), ("an upper-case id", TAG + ":" + UUID.upper()),
    ("a simple id", TAG + ":" + UUID.replace("-", "")), ("lines", TAG + ":\r\n+OK\r\n"),
    ("a padded bare partition", "{fp:07}"), ("a partition past the last", "{fp:256}"),
    ("a flow with another tag", "{fp:8}:" + FLOW_ID), ("a flow that is not there", FLOW),
])
LIMITS = collections.OrderedDict([(str(number), str(number)) for number in (
    1, 2, 63, 64, 65, 256, 257, 1000, 1001, 9000, 9001, 10000, 10001, 2**31 - 1, 2**31, 2**32,
    99999999999999, 2**52 - 1, 2**52, 2**53, -2**63)])
SHAPES = collections.OrderedDict([
    ("deep closed", "[" * DEPTH + "]" * DEPTH),
    ("deep objects", '{"a":' * DEPTH + "1" + "}" * DEPTH),
    ("no members", '{"kind":"dag","members":[]}'),
    ("a member that is none", '{"kind":"dag","members":[1]}'),
    ("an unknown member", '{"kind":"dag","members":[{"name":"a","kind":"job","oops":1}]}'),
    ("two of a name", '{"kind":"d","members":[{"name":"a","kind":"j"},{"name":"a","kind":"j"}]}'),
    ("a cycle", '{"kind":"d","members":[{"name":"a","kind":"j","after":["b"]},'
                '{"name":"b","kind":"j","after":["a"]}]}'),
    ("after itself", '{"kind":"d","members":[{"name":"a","kind":"j","after":["a"]}]}'),
    ("after nobody", '{"kind":"d","members":[{"name":"a","kind":"j","after":["x"]}]}'),
    ("a quorum too many", '{"kind":"d","members":[{"name":"a","kind":"j"},'
                          '{"name":"b","kind":"j","after":["a"],"join":{"quorum":2}}]}'),
    ("numbers for text", '{"kind":1,"members":[{"name":2,"kind":3}]}'),
    ("10 000 members", '{"kind":"d","members":[%s]}' % ",".join(
        '{"name":"%d","kind":"j"}' % i for i in range(DEPTH))),
    ("composite", '{"kind":"composite","tree":%s}' % ('{"AllOf":[' * 500 + "]}" * 500)),
    ("257 capabilities", ",".join("c%d" % i for i in range(257))), ("a condition", CONDITION),
])
HOSTILE = collections.OrderedDict(list(VALUES.items()) + [
    (name, value) for table in (IDS, LIMITS, SHAPES) for name, value in table.items()])
CRASHES = 5  # after so many lost servers the rest is not run
COMPARED = 16  # one in so many accepted calls is followed by a look at the replica
BIG = 64 * MEGABYTE
HEAVY = 100000  # a case with a longer word costs more than many others together
HEAVY_SHARE = 10  # one in so many of them is taken
ARITY = "wrong number of arguments"
LONGEST_ERROR = 2000
PLACES = ("tag", "partition")
SYNONYMS = {  # what errors call an argument, besides its own name
    "where": PLACES, "flow": PLACES, "budget": PLACES, "budgets": PLACES, "quota": PLACES,
    "hard": ("dimension",), "soft": ("dimension",), "": ("dimension",), "claim": ("lane", "worker"),
    "name": ("reconciler", "scanner"), "execution-id-or-partition": ("reason",),
    "document": ("member", "kind"),
}

# Errors that keep an effect: (first words, {pattern of keys: fields that may change, or None})
TOKEN_WORDS = ("MISSING_TOKEN", "INVALID_TOKEN", "TOKEN_EXPIRED", "HMAC_SECRET_NOT_INITIALIZED",
               "INVALID_SECRET")
EFFECTS = [
    (("LEASE_EXPIRED",), MARK_EXPIRED),
    (("CAPABILITY_MISMATCH",), {"ff:exec:*:core": {"last_capability_mismatch_at"}}),
    (TOKEN_WORDS, {"ff:exec:*:core": {"last_hmac_validation_failed_at"}}),
]

Case = collections.namedtuple("Case", "name prepare words expects", defaults=((), None))


# What the server documents

def text_of(value):
    return value["status"] if isinstance(value, dict) else value


class Documentation:
    """The arguments of one command, as COMMAND DOCS tells them."""

    def __init__(self, arguments):
        arguments = [pairs(argument) for argument in arguments]
        self.tokens = {}  # keyword -> whether a value follows
        self.positions = []  # names of the arguments before the first keyword or list
        counting = True
        for argument in arguments:
            self.collect(argument)
            flags = [text_of(flag) for flag in argument.get("flags", [])]
            if self.tokens or "optional" in flags or "multiple" in flags:
                counting = False
            elif counting:
                self.positions.append(self.name(argument))

    @staticmethod
    def name(argument):
        return text_of(argument["name"])

    def collect(self, argument):
        token = argument.get("token")
        if token:
            self.tokens[token.upper()] = text_of(argument["type"]) != "pure-token"
        elif text_of(argument["type"]) == "oneof":
            for choice in map(pairs, argument.get("arguments", [])):
                if text_of(choice["type"]) != "pure-token":
                    self.collect(choice)


def documented_commands(client):
    """{name as in CALLS: Documentation} of every native command and subcommand."""
    found = {}

    def add(name, information):
        information = pairs(information)
        subcommands = information.get("subcommands", [])
        for sub, more in pairs(subcommands).items():
            add(sub, more)
        if not subcommands and name not in NOT_NATIVE:
            found[name] = Documentation(information.get("arguments", []))

    docs = pairs(client("COMMAND", "DOCS"))
    for name, information in docs.items():
        if name.startswith("ff."):
            add(name, information)
    return found


# Cases

class Seed:
    """A good call in the state that it needs."""

    def __init__(self, command, name, build, documentation):
        self.command, self.name, self.build = command, name, build
        self.documentation = documentation
        self.head = command.upper().split("|")

    def prepare(self, client):
        self.words = [str(word) for word in self.build(Scene(client))]

    def groups(self):
        """The options of the call: [(position of the keyword, position after its last value)]."""
        starts = []
        tokens, counted = self.documentation.tokens, len(self.documentation.positions)
        for position, word in enumerate(self.words):
            if position >= counted and word.upper() in tokens:
                starts.append(position)
        if "CLAIM" in tokens and "CLAIM" in self.words:  # takes all that follows
            starts = [start for start in starts if start <= self.words.index("CLAIM")]
        return list(zip(starts, starts[1:] + [len(self.words)]))

    def label(self, position):
        """What an error about the word at the position may call it."""
        for start, end in self.groups():
            if start <= position < end:
                return self.words[start]
        names = self.documentation.positions
        return names[position] if position < len(names) else ""

    def cases(self, values):
        yield Case("as it is", (), self.words, "success")
        yield from self.word_cases()
        yield from self.option_cases()
        for position in range(len(self.words)):
            for name, value in HOSTILE.items():
                yield Case("word %d (%s) %s" % (position + 1, self.words[position][:20], name), (),
                           self.words[:position] + [value] + self.words[position + 1:],
                           ("names", self.label(position)))
        for key, entry in values.items():
            yield from self.key_cases(key, entry)

    def word_cases(self):
        words = self.words
        for count in range(len(words)):
            yield Case("%d words" % count, (), words[:count])
            yield Case("without word %d" % (count + 1), (), words[:count] + words[count + 1:])
            yield Case("word %d twice" % (count + 1), (), words[:count + 1] + words[count:])
            for other in range(count + 1, len(words)):
                swapped = list(words)
                swapped[count], swapped[other] = swapped[other], swapped[count]
                yield Case("words %d and %d swapped" % (count + 1, other + 1), (), swapped)
        yield Case("100 more words", (), words + ["x"] * 100)
        yield Case("100 000 more words", (), words + ["x"] * 100000)

    def option_cases(self):
        words, groups = self.words, self.groups()
        tokens, counted = self.documentation.tokens, len(self.documentation.positions)
        takes_rest = any(words[start] == "CLAIM" for start, _ in groups)
        if not takes_rest:
            yield Case("an unknown option", (), words + ["BOGUS"], ("error", "BOGUS"))
            yield Case("an unknown option with a value", (), words + ["BOGUS", "1"],
                       ("error", "BOGUS"))
            yield Case("an empty option", (), words + [""], ("error", ""))
        for token, has_value in tokens.items():
            bare = [words[i] for i in range(len(words))
                    if not any(start <= i < end and words[start].upper() == token
                               for start, end in groups)]
            if has_value and token not in ("REASON", "CONDITION", "TOKEN") and not takes_rest:
                yield Case("%s without its value" % token, (), bare + [token], ("error", token))
                yield Case("%s in lower case without its value" % token, (),
                           bare + [token.lower()], ("error", token))
        for start, end in groups:
            group, rest = words[start:end], words[:start] + words[end:]
            if group[0].upper() != "CLAIM" and not takes_rest:
                yield Case("%s twice" % group[0], (), words + group, ("error", group[0]))
                yield Case("%s last" % group[0], (), rest + group, "success")
                yield Case("%s in lower case" % group[0], (), rest + [group[0].lower()] + group[1:],
                           "success")
            yield Case("%s first" % group[0], (), group + rest)
            yield Case("no %s" % group[0], (), rest)
            for place in range(min(counted, len(rest))):
                yield Case("%s before word %d" % (group[0], place + 1), (),
                           rest[:place] + group + rest[place:])

    def key_cases(self, key, entry):
        for kind, commands in TYPES.items():
            if entry["type"] != kind:
                yield Case("%s a %s" % (key, kind), [("DEL", key)] + commands(key), self.words)
        yield Case("%s missing" % key, [("DEL", key)], self.words)
        if entry["type"] == "hash":
            for field in entry["value"]:
                yield Case("%s without %s" % (key, field), [("HDEL", key, field)], self.words)
                for name, value in STORED.items():
                    yield Case("%s %s %s" % (key, field, name), [("HSET", key, field, value)],
                               self.words)
        elif entry["type"] == "string":
            for name, value in STORED.items():
                yield Case("%s %s" % (key, name), [("SET", key, value)], self.words)
        elif entry["type"] in ("zset", "set"):
            odd = ["", b"\0\xff", "text", TAG + ":" + UUID, "x" * MEGABYTE]
            add = "SADD" if entry["type"] == "set" else "ZADD"
            for score in ("-inf", "0.5", "inf") if add == "ZADD" else ("",):
                members = [part for member in odd for part in ([score, member] if score else
                                                               [member])]
                yield Case("%s with more %s" % (key, score), [(add, key, *members)], self.words)
        elif entry["type"] == "stream":
            last = "18446744073709551615-18446744073709551615"
            yield Case("%s at its last id" % key, [("XADD", key, last, "f", "v")], self.words)
            yield Case("%s emptied" % key, [("XTRIM", key, "MAXLEN", "0")], self.words)


def is_heavy(case):
    return (len(case.words) > 1000 or any(len(word) > HEAVY for word in case.words)
            or any(len(word) > HEAVY for command in case.prepare for word in command))


def urgency(case):
    """Cases that say what must come of them go first."""
    if case.expects == "success":
        return 0
    return 1 if case.expects and case.expects[0] == "error" else 2


# Checking

def is_error(reply):
    return isinstance(reply, dict) and "error" in reply


def shown(value):
    """How an error shows the beginning of a value: control characters are not let through."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    return re.sub(r"[\x00-\x1f\x7f]", "?", value[:12])


def names_argument(error, label, words):
    """Whether a parser's error says what it means, by a name or by quoting a word of the call."""
    lowered = error.lower()
    names = [piece.rstrip("s") for piece in re.split(r"[-_ ]", label.lower()) if len(piece) > 1]
    names += SYNONYMS.get(label.lower(), ())
    quoted = {shown(word).lower() for word in words[:1000]}
    return (any(re.search(r"\b" + re.escape(name), lowered) for name in names)
            or any("'" + word in lowered or "got: " + word in lowered or
                   len(word) > 4 and word in lowered for word in quoted)
            or ARITY in lowered or re.search(r"\d+ \w+ need \d+ values", lowered))


def complaint_about_text(error, case):
    """What is wrong with the text of an error, or None."""
    word = error.split(" ", 1)[0]
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", word) or len(error) < len(word) + 5:
        return "an error begins with an upper-case word and says more: %.200r" % error
    if len(error) > LONGEST_ERROR:
        return "an error of %d bytes" % len(error)
    if word == "ERR" and isinstance(case.expects, tuple):
        label = case.expects[1]
        if not names_argument(error, label, case.words):
            return "the error does not name the argument %r: %.200r" % (label, error)
    return None


def allowed(error, changes):
    word = error.split(" ", 1)[0]
    return any(word in words and all(key_allowed(key, change, patterns)
                                     for key, change in changes.items())
               for words, patterns in EFFECTS)


class Stage:
    """A primary with the module, a replica without, and the state in which a seed is called."""

    def __init__(self, options, clock):
        self.clock = clock
        self.server = Server(clock, options.module, options.set)
        self.replica = Server(clock)
        self.replica.attach_to(self.server)
        self.client = self.server.client
        self.client("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        self.accepted = 0

    def set_up(self, seed):
        self.client("FLUSHALL")
        seed.prepare(self.client)
        keyspace = Keyspace(self.client)
        keyspace.refresh()
        self.values = keyspace.values
        self.restores = [("FLUSHALL",)] + [
            ("RESTORE", key, max(expiry, 0), data, "ABSTTL")
            for key, (data, expiry) in keyspace.seen.items()]
        self.clean = True

    def restore(self, case):
        if not self.clean:
            self.client.pipeline(self.restores)
        if case.prepare:
            self.client.pipeline(case.prepare)
        self.clean = False

    def call(self, seed, case):
        command = seed.head + list(case.words)
        if seed.command not in MAY_WAIT:
            return self.client(*command)
        _, queued, results = self.client.pipeline([("MULTI",), command, ("EXEC",)])
        return queued if is_error(queued) else results[0]

    def run(self, seed, case):
        """The complaints about one case."""
        self.restore(case)
        before = self.client("DEBUG", "DIGEST")
        reply = self.call(seed, case)
        unchanged = self.client("DEBUG", "DIGEST") == before
        self.clean = unchanged and not case.prepare
        if not is_error(reply):
            return self.accepted_complaints(seed, case, reply)
        complaints = []
        if case.expects == "success":
            complaints.append("a good call was refused: %.300r" % reply["error"])
        about = complaint_about_text(reply["error"], case)
        complaints += [about] if about else []
        if not unchanged:
            changes = self.changes(seed, case)
            if not allowed(reply["error"], changes):
                complaints.append("%.200r, and changed %.600r" % (reply["error"], changes))
        return complaints

    def accepted_complaints(self, seed, case, reply):
        if isinstance(case.expects, tuple) and case.expects[0] == "error":
            return ["accepted, with %.300r" % (reply,)]
        self.accepted += 1
        return self.compare_replica() if self.accepted % COMPARED == 0 else []

    def changes(self, seed, case):
        """What the call changes, found by making it again."""
        self.restore(case)
        keyspace = Keyspace(self.client)
        keyspace.refresh()
        self.call(seed, case)
        return keyspace.refresh()

    def compare_replica(self):
        wait_for_replica(self.client, self.replica)
        if self.client("DEBUG", "DIGEST") != self.replica.client("DEBUG", "DIGEST"):
            keys = differing_keys(print_of(self.client), print_of(self.replica.client))
            return ["the replica differs in %.600r" % keys]
        return []

    def close(self):
        self.replica.close()
        self.server.close()


class Campaign:
    """All the cases of all the calls, over as many stages as crashes make necessary."""

    def __init__(self, options):
        self.options, self.clock, self.stage = options, Clock(), None
        self.passed, self.failed, self.left_out, self.crashes = 0, 0, 0, 0

    def fail(self, name, complaints):
        self.failed += 1
        if self.options.verbose or self.failed <= 40:
            print("FAIL " + name)
            print("\n".join("    " + complaint for complaint in complaints))
            sys.stdout.flush()

    def check(self, name, complaints):
        if complaints:
            self.fail(name, complaints)
        else:
            self.passed += 1

    def attempt(self, name, action):
        """Runs an action that returns complaints; a lost server is one."""
        try:
            if not self.stage:
                self.stage = Stage(self.options, self.clock)
            self.check(name, action())
        except Refused as error:
            self.fail(name, ["set-up: %s" % error])
        except ServerLost as error:
            self.crashes += 1
            log = self.stage.server.log_tail() if self.stage else ""
            self.close_stage()
            self.fail(name, ["SERVER LOST: %s" % error] + log.split("\n"))

    def set_up(self, seed):
        self.stage.set_up(seed)
        return []

    def chosen(self, seed):
        cases = [case for case in seed.cases(self.stage.values)
                 if self.options.only in "%s %s" % (seed.name, case.name)]
        if self.options.full:
            return cases
        random.Random(seed.name).shuffle(cases)
        heavy = [case for case in cases if is_heavy(case)]
        cases = [case for case in cases if not is_heavy(case)] + heavy[:len(heavy) // HEAVY_SHARE]
        random.Random(seed.name).shuffle(cases)
        return sorted(cases, key=urgency)

    def run(self, seed, seconds):
        deadline = time.monotonic() + seconds
        before, failed = self.passed, self.failed
        self.attempt(seed.name + ": set-up", lambda: self.set_up(seed))
        if self.failed > failed:
            return
        left_out = 0
        for case in self.chosen(seed):
            late = time.monotonic() > deadline and not self.options.full
            if self.crashes >= CRASHES or late and case.expects != "success":
                left_out += 1
                continue
            if not self.stage:
                self.attempt(seed.name + ": set-up", lambda: self.set_up(seed))
            self.attempt("%s: %s" % (seed.name, case.name), lambda: self.stage.run(seed, case))
        if self.stage:
            self.attempt(seed.name + ": replica", self.stage.compare_replica)
        self.left_out += left_out
        print("  %-36s %6d passed %4d failed %7d left out"
              % (seed.name, self.passed - before, self.failed - failed, left_out))

    def close_stage(self):
        if self.stage:
            self.stage.close()
        self.stage = None

    def close(self):
        self.close_stage()
        self.clock.close()


def big_payloads(stage):
    """Complaints about values of 64 MB: kept where any value may be, refused without a trace in
    documents."""
    client, big = stage.client, b"x" * BIG
    client("FLUSHALL")
    scene, complaints = Scene(client), []
    fence = scene.lease("PAYLOAD", big)
    if client("STRLEN", "ff:exec:%s:%s:payload" % (TAG, fence[0])) != BIG:
        complaints.append("a payload of 64 MB is not kept")
    before = client("DEBUG", "DIGEST")
    document = b'{"kind":"dag","members":[{"name":"' + big + b'","kind":"job","oops":1}]}'
    for words in (("FF.FLOW", "SUBMIT", FLOW, document), ("FF.CREATE", big, "default", "job"),
                  ("FF.CREATE", TAG, big, "job"), ("FF.CREATE", TAG, "l", "k", "POLICY", big),
                  ("FF.FAIL", *fence, "why", "RETRY", big)):
        reply = client(*words)
        if not is_error(reply) or len(reply["error"]) > LONGEST_ERROR:
            complaints.append("%s … with 64 MB: %.200r" % (words[0], reply))
    if client("DEBUG", "DIGEST") != before:
        complaints.append("a refused value of 64 MB left a trace")
    return complaints + stage.compare_replica()


def coverage_complaints(documented):
    """Every documented command has a call, and every documented option is used by one."""
    complaints = ["no call for " + name for name in sorted(documented) if name not in CALLS]
    complaints += ["not documented: " + name for name in sorted(CALLS) if name not in documented]
    return complaints


def uncalled_options(seeds):
    used, known = collections.defaultdict(set), {}
    for seed in seeds:
        known[seed.command] = set(seed.documentation.tokens)
        if hasattr(seed, "words"):
            used[seed.command] |= {word.upper() for word in seed.words}
    return ["no call of %s with %s" % (command, token) for command in sorted(known)
            for token in sorted(known[command] - used[command])]


def read_options():
    parser = module_parser(__doc__)
    parser.add_argument("--full", action="store_true", help="every case of every call")
    parser.add_argument("--seconds", type=float, default=30,
                        help="how long; the cases that do not fit are left out and counted")
    return parsed_options(parser)


def main():
    options = read_options()
    campaign = Campaign(options)
    began = time.monotonic()
    try:
        campaign.stage = Stage(options, campaign.clock)
        documented = documented_commands(campaign.stage.client)
        if not options.only:
            campaign.check("every command has a call", coverage_complaints(documented))
            campaign.attempt("values of 64 MB", lambda: big_payloads(campaign.stage))
        seeds = [Seed(command, name, build, documented[command])
                 for command, calls in CALLS.items() if command in documented
                 for name, build in calls]
        chosen = [seed for seed in seeds if not options.only or
                  options.only.split(":")[0] in seed.name]
        for position, seed in enumerate(chosen):
            left = options.seconds - (time.monotonic() - began)
            campaign.run(seed, left / (len(chosen) - position))
        if not options.only:
            campaign.check("every option is used", uncalled_options(seeds))
    finally:
        campaign.close()
    if campaign.left_out:
        print("  %d further cases did not fit into the time" % campaign.left_out)
    return campaign.passed, campaign.failed


if __name__ == "__main__":
    ending_with_a_count(main)
