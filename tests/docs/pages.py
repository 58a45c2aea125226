"""The examples of a page: fenced blocks in which a line that starts with the prompt is typed into
`valkey-cli -3`, and the lines below it are what must come back.

Ids, tokens and times differ from run to run. Where the page shows one, the reply must have one of
the same kind, and the same one wherever the page shows the same: what the page calls
{fp:7}:1f0e… is remembered, and stands for the real id in the commands that follow. A line `...`
stands for any number of lines."""
import collections
import re

PROMPT = "127.0.0.1:6379> "
FENCE = "```"
ELISION = "..."

Example = collections.namedtuple("Example", "first last command reply")  # lines of the page, from 0

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
KINDS = [
    ("reference", r"\{(?:fp|b|q):\d+\}:" + UUID),
    ("uuid", UUID),
    ("digest", r"\b[0-9a-f]{40}\b"),
    ("entry", r"\b\d{13}-\d+\b"),
    ("time", r"\b\d{13}\b"),
    ("tag", r"\{(?:fp|b|q):\d+\}"),
    ("name", r"@\w+"),
]
VARYING = re.compile("|".join("(?P<%s>%s)" % kind for kind in KINDS))
REMEMBERED = {"reference", "uuid", "digest", "entry"}


def read(lines):
    """The examples of a page, in order."""
    examples, inside, start = [], False, None

    def finish(end):
        last = end
        while last > start + 1 and not lines[last - 1].strip():
            last -= 1
        command = lines[start][len(PROMPT):]
        examples.append(Example(start, last, command, lines[start + 1:last]))

    for number, line in enumerate(lines):
        fence = line.startswith(FENCE)
        if start is not None and (fence or line.startswith(PROMPT)):
            finish(number)
            start = None
        if fence:
            inside = not inside
        elif inside and line.startswith(PROMPT):
            start = number
    return examples


class Ids:
    """What the ids of a page are in this run."""

    def __init__(self):
        self.real = {}
        self.shown = {}

    def learn(self, shown, real):
        """False when either is known to be something else."""
        pairs = [(shown, real)]
        if shown.startswith("{") and real.startswith("{"):
            pairs.append((shown.split(":", 2)[2], real.split(":", 2)[2]))
        for a, b in pairs:
            if self.real.get(a, b) != b or self.shown.get(b, a) != a:
                return False
        for a, b in pairs:
            self.real[a], self.shown[b] = b, a
        return True

    def translate(self, text, table):
        def one(match):
            found = match.group()
            if match.lastgroup == "reference" and found not in table:
                tag, uuid = found.split("}:")
                return tag + "}:" + table.get(uuid, uuid)
            return table.get(found, found)
        return VARYING.sub(one, text)

    def to_real(self, text):
        return self.translate(text, self.real)

    def to_shown(self, text):
        return self.translate(text, {real: shown for real, shown in self.shown.items()
                                     if not shown.startswith("@")})


def skeleton(line):
    """The line without what varies: lines that agree in it have the same things in their places."""
    return VARYING.sub(lambda match: "<%s>" % match.lastgroup, line.rstrip())


def align(expected, got):
    """Pairs of lines that must agree; None when the replies have different shapes."""
    pairs, at = [], 0
    for number, line in enumerate(expected):
        if line.strip() == ELISION:
            rest = expected[number + 1:]
            if not rest:
                return pairs
            wanted = skeleton(rest[0])
            while at < len(got) and skeleton(got[at]) != wanted:
                at += 1
            continue
        if at == len(got) or skeleton(line) != skeleton(got[at]):
            return None
        pairs.append((line, got[at]))
        at += 1
    return pairs if at == len(got) else None


def agree(expected, got, ids):
    """Whether the reply is the one of the page; its ids are remembered."""
    pairs = align(expected, got)
    if pairs is None:
        return False
    for line, real in pairs:
        for a, b in zip(VARYING.finditer(line), VARYING.finditer(real)):
            if a.lastgroup in REMEMBERED and not ids.learn(a.group(), b.group()):
                return False
    return True


def learn_in_order(expected, got, ids):
    """For a reply that is to be written anew: the ids of the old and of the new one, in the order
    they come. In a new example @name stands for an id that later commands will use."""
    def found(lines):
        seen = []
        for line in lines:
            for match in VARYING.finditer(line):
                if match.lastgroup in REMEMBERED | {"name"} and match.group() not in seen:
                    seen.append(match.group())
        return seen
    shown = [one for one in found(expected) if one not in ids.real]
    real = [one for one in found(got) if one not in ids.shown]
    for a, b in zip(shown, real):
        ids.learn(a, b)
