#!/usr/bin/env python3
"""Call every function with hostile input, and see that nothing breaks.

    hostile.py --module ff.so               a sample of the cases, the same one every time
    hostile.py --module ff.so --full        every case
    hostile.py --module ff.so --only text   functions, recordings or cases with this in their name

The recordings are the seeds: calls that succeed, in the state in which they were made. Each is made
again with arguments and keys missing or too many; with each argument in turn replaced by hostile
values; with each field of each hash, and each key, in turn missing or garbled; with each key in
turn of another type. After every call the server must be up, and if the call was refused, by a
reply [0, …] or an error, the keyspace and the channels must be as if it had never been made,
unless the refusal is documented to have an effect (EFFECTS below). After every call that succeeded
a replica without the module must hold the same data."""
import collections
import fnmatch
import random
import sys
import time

sys.dont_write_bytecode = True  # the checkout stays as it is
import recordings
from plumbing import Clock, Server, ServerLost, ending_with_a_count, module_parser, parsed_options
from run import Replayer, differing_keys, print_of, wait_for_replica

MEGABYTE = 1 << 20
VALUES = collections.OrderedDict([
    ("empty", ""), ("text", "text"), ("zero", "0"), ("negative", "-1"), ("fraction", "0.5"),
    ("huge", "9" * 30), ("int64", "9223372036854775807"), ("past int64", "9223372036854775808"),
    ("past 2^53", "9007199254740993"), ("1e15", "1e15"), ("1e308", "1e308"), ("-1e308", "-1e308"),
    ("nan", "nan"), ("-nan", "-nan"), ("inf", "inf"), ("-inf", "-inf"), ("hex", "0x10"),
    ("number and text", "5x"), ("blanks", " \t\n"), ("number in blanks", " 7 "),
    ("NUL first", b"\0"),
    ("NUL inside", b"5\0x"), ("binary", bytes(range(256))), ("broken UTF-8", b"\xff\xfe\xc3("),
    ("open object", "{"), ("open array", "["), ("object", '{"a":1}'), ("array", "[1]"),
    ("null", "null"), ("json string", '"a"'), ("json infinity", '{"a":[Infinity]}'),
    ("lone surrogate", '{"a":"\\ud800"}'),
    ("deep array", "[" * 2000 + "]" * 2000), ("deep open array", "[" * 100000),
    ("commas", ",,,"), ("bars", "a|b||c"), ("braces", "{}{}"), ("format", "%s%n%*d"),
    ("1 MB text", "x" * MEGABYTE), ("1 MB digits", "1" * MEGABYTE), ("1 MB commas", "," * MEGABYTE),
])
STORED = collections.OrderedDict([(name, VALUES[name]) for name in (
    "empty", "text", "negative", "fraction", "huge", "past int64", "1e308", "nan", "inf",
    "number and text", "NUL inside", "binary", "open object", "1 MB digits")])
TYPES = {
    "string": lambda key: [("SET", key, "x")],
    "hash": lambda key: [("HSET", key, "f", "v")],
    "list": lambda key: [("RPUSH", key, "x")],
    "set": lambda key: [("SADD", key, "x")],
    "zset": lambda key: [("ZADD", key, "1", "x")],
    "stream": lambda key: [("XADD", key, "1-1", "f", "v")],
}
CRASHES = 10  # after so many lost servers the rest is not run
LEAST_CASES = 5  # of each seed, however little time there is
EXTRA_KEYS = ("ff:extra:{fp:7}:1", "ff:extra:{fp:7}:2")


# Refusals that keep an effect

MARK_EXPIRED = {
    "ff:exec:*:core": {"lifecycle_phase", "ownership_state", "eligibility_state", "blocking_reason",
                       "blocking_detail", "terminal_outcome", "attempt_state", "public_state",
                       "lease_expired_at", "last_mutation_at"},
    "ff:exec:*:lease:history": None,
    "ff:stream:*:meta": {"closed_at", "closed_reason"},
}
TOKEN_CODES = ("missing_token", "invalid_token", "token_expired", "hmac_secret_not_initialized",
               "invalid_secret", "invalid_keys_missing_hmac")
TOKEN_STAMP = {"ff:exec:*:core": {"last_hmac_validation_failed_at"}}
CAPABILITY_STAMP = {"ff:exec:*:core": {"last_capability_mismatch_at"}}
ARCHIVED = {"ff:exec:*:suspension:current": None, "ff:exec:*:waitpoints": None}

# (functions, patterns of the refusal's texts joined by blanks,
#  {pattern of keys: the fields that may change, or None for anything})
EFFECTS = [
    (("ff_renew_lease", "ff_complete_execution", "ff_fail_execution", "ff_delay_execution",
      "ff_move_to_waiting_children", "ff_suspend_execution"), ("lease_expired",), MARK_EXPIRED),
    (("ff_issue_claim_grant", "ff_issue_reclaim_grant"), ("capability_mismatch *",),
     CAPABILITY_STAMP),
    (("ff_deliver_signal", "ff_buffer_signal_for_pending_waitpoint"), TOKEN_CODES, TOKEN_STAMP),
    (("ff_claim_resumed_execution",), ("claim_grant_expired",), {"ff:exec:*:claim_grant": None}),
    (("ff_reclaim_execution",), ("max_retries_exhausted *",), {"ff:*": None}),
    (("ff_create_budget",), ("invalid_input dim_count must be a number*",),
     {"ff:idx:*:budget_policies": None}),
    (("ff_add_execution_to_flow",), ("already_member_of_different_flow:*",),
     {"ff:idx:*:flow_index": None}),
    (("ff_suspend_execution",),
     ("waitpoint_not_found", "waitpoint_not_pending", "invalid_waitpoint_for_execution",
      "pending_waitpoint_expired", "waitpoint_not_token_bound", "hmac_secret_not_initialized",
      "invalid_secret", "invalid_keys_missing_hmac"), ARCHIVED),
    (("ff_suspend_execution",), ("use_pending_with_extras_unsupported",),
     dict(ARCHIVED, **{"ff:wp:*": None, "ff:idx:*:pending_waitpoint_expiry": None})),
    (("ff_append_frame",), ("invalid_input *summary key", "invalid_input *patch*", "corruption *"),
     {"ff:stream:*:meta": None}),
    (("ff_resolve_dependency",), ("invariant_violation *",),
     {"ff:exec:*:dep:*": {"state", "last_resolved_at"}, "ff:exec:*:deps:unresolved": None,
      "ff:flow:*:edgegroup:*": {"succeeded", "failed", "skipped"}}),
]


def documented(function, refusal, changes, stands_for):
    """True when such a refusal of the function may have changed exactly that. `stands_for` tells
    which recorded key another one was passed for."""
    text = " ".join(map(str, refusal[1:]))
    for functions, texts, patterns in EFFECTS:
        if function in functions and any(fnmatch.fnmatchcase(text, pattern) for pattern in texts):
            if all(key_allowed(key, change, patterns) or
                   key_allowed(stands_for.get(key, ""), change, patterns)
                   for key, change in changes.items()):
                return True
    return False


def key_allowed(key, change, patterns):
    for pattern, fields in patterns.items():
        if not fnmatch.fnmatchcase(key, pattern):
            continue
        if fields is None:
            return True
        if change and not change.get("del") and set(change.get("set", {})) <= fields:
            return True
    return False


# Cases

Case = collections.namedtuple("Case", "name prepare command stands_for", defaults=({},))


class Seed:
    """A recorded call that succeeded: the scenario and the position of the call in it."""

    def __init__(self, scenario, position):
        self.scenario, self.position = scenario, position
        command = scenario["steps"][position]["cmd"]
        count = int(command[2])
        self.function = command[1]
        self.keys, self.args = command[3:3 + count], command[3 + count:]
        self.name = "%s#%d" % (scenario["name"], position + 1)

    def shape(self):
        """Calls of the same shape take the same way through the function, more or less."""
        step = self.scenario["steps"][self.position]
        status = str(step["reply"][:2]) if isinstance(step["reply"], list) else ""
        changes = tuple(sorted((key.rsplit(":", 1)[-1] if change else "gone")
                               for key, change in step.get("changes", {}).items()))
        return (len(self.keys), len(self.args), status, changes)

    def effect_size(self):
        return len(self.scenario["steps"][self.position].get("changes", {}))

    def command(self, keys=None, args=None, count=None):
        keys = self.keys if keys is None else keys
        args = self.args if args is None else args
        count = len(keys) if count is None else count
        return ["FF.CALL", self.function, str(count)] + list(keys) + list(args)

    def cases(self, values):
        """Every case of this seed; `values` is the keyspace at the moment of the call."""
        yield Case("as recorded", [], self.command())
        yield from self.arity_cases()
        yield from self.argument_cases()
        yield from self.key_cases(values)
        for key, entry in values.items():
            if entry["type"] == "hash":
                yield from self.field_cases(key, entry["value"])
            else:
                yield from self.garbled_cases(key, entry)

    def arity_cases(self):
        for count in range(len(self.args)):
            yield Case("%d arguments" % count, [], self.command(args=self.args[:count]))
        for count in range(len(self.keys)):
            yield Case("%d keys" % count, [], self.command(keys=self.keys[:count]))
            yield Case("%d keys, no argument" % count, [],
                       self.command(keys=self.keys[:count], args=[]))
        yield Case("an extra argument", [], self.command(args=list(self.args) + ["extra"]))
        yield Case("100 extra arguments", [], self.command(args=list(self.args) + ["extra"] * 100))
        yield Case("extra keys", [], self.command(keys=list(self.keys) + list(EXTRA_KEYS)))
        for count in (-1, len(self.keys) + len(self.args) + 1, 2**31, 2**63, "", "x", "1.5"):
            yield Case("numkeys %s" % count, [], self.command(count=count))

    def argument_cases(self):
        for position in range(len(self.args)):
            for name, value in VALUES.items():
                args = list(self.args)
                args[position] = value
                yield Case("argument %d %s" % (position + 1, name), [], self.command(args=args))
            for other in range(position + 1, len(self.args)):
                args = list(self.args)
                args[position], args[other] = args[other], args[position]
                yield Case("arguments %d and %d swapped" % (position + 1, other + 1), [],
                           self.command(args=args))

    def key_cases(self, values):
        for key in list(dict.fromkeys(list(self.keys) + list(values))):
            for kind, commands in TYPES.items():
                if values.get(key, {}).get("type") != kind:
                    yield Case("%s a %s" % (key, kind), [("DEL", key)] + commands(key),
                               self.command())
            yield Case("%s missing" % key, [("DEL", key)], self.command())
        for position in range(len(self.keys)):
            for name, value in (("empty", ""), ("binary", "\0\udcff{"), ("long", "k" * MEGABYTE),
                                ("no tag", "plain"), ("the first key", self.keys[0]),
                                ("the last key", self.keys[-1])):
                keys = list(self.keys)
                keys[position] = value
                yield Case("key %d %s" % (position + 1, name), [], self.command(keys=keys),
                           {value: self.keys[position]})

    def field_cases(self, key, fields):
        for field in fields:
            yield Case("%s without %s" % (key, field), [("HDEL", key, field)], self.command())
            for name, value in STORED.items():
                yield Case("%s %s %s" % (key, field, name), [("HSET", key, field, value)],
                           self.command())

    def garbled_cases(self, key, entry):
        if entry["type"] == "string":
            for name, value in STORED.items():
                yield Case("%s %s" % (key, name), [("SET", key, value)], self.command())
        elif entry["type"] == "zset":
            for member in list(entry["value"])[:3]:
                yield Case("%s without %s" % (key, member), [("ZREM", key, member)], self.command())
                for score in ("inf", "-inf", "0.5", "-1"):
                    yield Case("%s %s at %s" % (key, member, score),
                               [("ZADD", key, score, member)], self.command())
        elif entry["type"] == "set":
            for member in entry["value"][:3]:
                yield Case("%s without %s" % (key, member), [("SREM", key, member)], self.command())
            yield Case("%s with more" % key,
                       [("SADD", key, "", b"\0\xff", "text", "x" * MEGABYTE)], self.command())
        elif entry["type"] == "stream":
            yield Case("%s with an odd entry" % key, [("XADD", key, "*", "", b"\0\xff")],
                       self.command())
            last = "18446744073709551615-18446744073709551615"
            yield Case("%s at its last id" % key, [("XADD", key, last, "f", "v")], self.command())
            yield Case("%s emptied" % key, [("XTRIM", key, "MAXLEN", 0)], self.command())


def seeds_of(scenarios, known, per_function):
    """{function: [seed]}: calls that succeeded, of as many different shapes as asked for."""
    found = collections.defaultdict(dict)
    for scenario in scenarios:
        for position, step in enumerate(scenario["steps"]):
            name = recordings.function(step)
            succeeded = name in known and not recordings.refused(step["reply"])
            if succeeded:
                seed = Seed(scenario, position)
                found[name].setdefault(seed.shape(), seed)
    chosen = {}
    for name in sorted(found):
        shapes = sorted(found[name].values(), key=lambda seed: -seed.effect_size())
        chosen[name] = shapes[:per_function] if per_function else shapes
    return chosen


# Running

class Stage:
    """A primary with the module, a replica without, and the state in which a seed was called."""

    def __init__(self, options, clock):
        self.clock, self.options = clock, options
        self.server = Server(clock, options.module, options.set)
        self.server.listen()
        self.replica = Server(clock)
        self.replica.attach_to(self.server)
        self.server.client("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        self.replayer = Replayer(self.server, clock, options.known, "call")

    def set_up(self, seed):
        """Replays what came before the call, and keeps the state it led to."""
        self.replayer.reset()
        for step in seed.scenario["steps"][:seed.position]:
            name = recordings.function(step)
            if name and name not in self.options.known:
                lines = self.replayer.seed(step)
            else:
                lines = self.replayer.step(seed.scenario, step)
            if lines:
                return lines
        keyspace = self.replayer.keyspace
        self.values = dict(keyspace.values)
        self.restores = [("RESTORE", key, expiry, data, "ABSTTL") if expiry >= 0 else
                         ("RESTORE", key, 0, data)
                         for key, (data, expiry) in keyspace.seen.items()]
        return []

    def run(self, seed, case):
        """The complaints about one case."""
        client = self.server.client
        client.pipeline([("FLUSHALL",)] + self.restores + case.prepare)
        keyspace = self.replayer.keyspace
        keyspace.forget()
        keyspace.refresh()
        reply, changes, messages = self.replayer.call(case.command)
        if not recordings.refused(reply):
            return self.compare_replica()
        complaints = []
        refusal = reply if isinstance(reply, list) else [0, reply["error"]]
        if changes and not documented(seed.function, refusal, changes, case.stands_for):
            complaints.append("refused with %.200r, and changed %.600r" % (reply, changes))
        if messages:
            complaints.append("refused with %.200r, and published %.200r" % (reply, messages))
        return complaints

    def compare_replica(self):
        wait_for_replica(self.server.client, self.replica)
        keys = differing_keys(print_of(self.server.client), print_of(self.replica.client))
        return ["the replica differs in %.600r" % keys] if keys else []

    def close(self):
        self.replica.close()
        self.server.close()


def end_of_share(deadline, parts):
    """When the first of so many parts must be over, for all to get the same; None: whenever."""
    now = time.monotonic()
    return now + max(0, deadline - now) / parts if deadline else None


class Campaign:
    """All the cases of all the functions, over as many stages as crashes make necessary."""

    def __init__(self, options):
        self.options, self.clock, self.stage = options, Clock(), None
        self.passed, self.failures, self.left_out, self.crashes = 0, [], 0, 0
        self.deadline = time.monotonic() + options.seconds if options.seconds else None

    def fail(self, seed, case, complaints):
        self.failures.append("%s %s: %s" % (seed.function, seed.name, case))
        if self.options.verbose or len(self.failures) <= 40:
            print("FAIL " + self.failures[-1])
            print("\n".join("    " + complaint for complaint in complaints))
            sys.stdout.flush()

    def chosen_cases(self, seed, share):
        cases = [case for case in seed.cases(self.stage.values)
                 if self.options.only in "%s %s %s" % (seed.function, seed.name, case.name)]
        if self.options.full:
            return cases
        return random.Random(seed.name).sample(cases, min(share, len(cases)))

    def run_function(self, seeds, until):
        share = max(1, self.options.sample // len(seeds))
        for position, seed in enumerate(seeds):
            end = end_of_share(until, len(seeds) - position)
            if self.prepared(seed):
                self.run_seed(seed, self.chosen_cases(seed, share), end)

    def run_seed(self, seed, cases, until):
        for position, case in enumerate(cases):
            late = until and position >= LEAST_CASES and time.monotonic() > until
            if late or self.crashes >= CRASHES:
                self.left_out += 1
            elif self.stage or self.prepared(seed):
                self.run_case(seed, case)

    def prepared(self, seed):
        """True when there is a stage in the state of the seed."""
        try:
            if not self.stage:
                self.stage = Stage(self.options, self.clock)
            lines = self.stage.set_up(seed)
        except ServerLost as error:
            lines = self.lost(error)
        if lines:
            self.fail(seed, "set-up", lines)
        return not lines

    def run_case(self, seed, case):
        try:
            complaints = self.stage.run(seed, case)
        except ServerLost as error:
            complaints = self.lost(error)
        if complaints:
            self.fail(seed, case.name, complaints)
        else:
            self.passed += 1

    def lost(self, error):
        """A lost server is a failure of the case at hand; the next case gets a new one."""
        self.crashes += 1
        log = self.stage.server.log_tail() if self.stage else ""
        self.close_stage()
        return ["SERVER LOST: %s" % error] + log.split("\n")

    def close_stage(self):
        if self.stage:
            self.stage.close()
        self.stage = None

    def close(self):
        self.close_stage()
        self.clock.close()


def known_functions(options, names):
    clock = Clock()
    try:
        server = Server(clock, options.module, options.set)
        try:
            return recordings.implemented(server.client, names)
        finally:
            server.close()
    finally:
        clock.close()


def read_options():
    parser = module_parser(__doc__)
    parser.add_argument("--full", action="store_true", help="every case of every seed")
    parser.add_argument("--seeds", type=int, default=4,
                        help="recorded calls per function, 0 for all shapes")
    parser.add_argument("--sample", type=int, default=300, help="cases per function")
    parser.add_argument("--seconds", type=float, default=0,
                        help="stop after so long, and say how much was left out")
    return parsed_options(parser)


def main():
    options = read_options()
    scenarios = [scenario for family in recordings.load().values() for scenario in family]
    names = {name for scenario in scenarios for name in recordings.functions(scenario)}
    options.known = known_functions(options, names)
    missing = len(names - options.known)
    if missing:
        print("hostile input: %d of %d functions NOT YET IMPLEMENTED" % (missing, len(names)))
    campaign = Campaign(options)
    try:
        chosen = seeds_of(scenarios, options.known, options.seeds)
        for position, (function, seeds) in enumerate(chosen.items()):
            before, failed = campaign.passed, len(campaign.failures)
            campaign.run_function(seeds, end_of_share(campaign.deadline, len(chosen) - position))
            cases, failed = campaign.passed - before, len(campaign.failures) - failed
            if cases or failed:
                print("  %-42s %2d seeds %6d passed %4d failed"
                      % (function, len(seeds), cases, failed))
    finally:
        campaign.close()
    if campaign.left_out:
        print("hostile input: STOPPED EARLY, %d chosen cases were not run" % campaign.left_out)
    return campaign.passed, len(campaign.failures)


if __name__ == "__main__":
    ending_with_a_count(main)
