"""The whole of database 0 as a value, how two of them differ, and how to write a difference back.

A change is what the recordings hold: {key: null | change}, a change being the key's type and
only what is new in it (`set`, `del`, `add`, `rem`, `value`, `created`, `expires_at`)."""

READS = {
    "string": lambda key: ("GET", key),
    "hash": lambda key: ("HGETALL", key),
    "zset": lambda key: ("ZRANGE", key, 0, -1, "WITHSCORES"),
    "set": lambda key: ("SMEMBERS", key),
    "list": lambda key: ("LRANGE", key, 0, -1),
    "stream": lambda key: ("XRANGE", key, "-", "+"),
}


def number(text):
    """Scores travel as text; one spelling for one value."""
    value = float(text)
    return int(value) if abs(value) < 2**63 and value == int(value) else value


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def decoded(kind, reply):
    if kind == "hash":
        return pairs(reply)
    if kind == "zset":
        return {member: number(score) for member, score in pairs(reply).items()}
    if kind == "set":
        return sorted(reply)
    if kind == "stream":
        return [[entry, pairs(fields)] for entry, fields in reply]
    return reply


class Keyspace:
    """What a client sees in database 0, kept up to date cheaply.

    Every refresh() asks for the name, the serialized value and the expiry of every key there
    is, so that no change can hide; only keys for which one of them differs are read again."""

    def __init__(self, client):
        self.client = client
        self.forget()

    def forget(self):
        self.seen = {}    # key -> (serialized value, expiry), both as the server sent them
        self.values = {}  # key -> {"type", "value", "expires_at"?}

    def queue_look(self):
        """Queue the questions; the replies are taken by look()."""
        self.asked = list(self.seen)
        self.client.queue("KEYS", "*")
        self.queue_prints(self.asked)

    def queue_prints(self, keys):
        for key in keys:
            self.client.queue("DUMP", key)
            self.client.queue("PEXPIRETIME", key)

    def read_prints(self, keys):
        read = self.client.read
        return {key: (read(raw=True), read()) for key in keys}

    def look(self):
        """Take the replies to queue_look(): {key: print} of every key there is."""
        names = self.client.read(raw=True)
        prints = self.read_prints(self.asked)
        new = [name for name in names if name not in prints]
        if new:
            self.queue_prints(new)
            self.client.flush()
            prints.update(self.read_prints(new))
        return {key: seen for key, seen in prints.items() if seen[0] is not None}

    def refresh(self, prints=None):
        """Returns the changes since the last refresh."""
        if prints is None:
            self.queue_look()
            self.client.flush()
            prints = self.look()
        if prints == self.seen:
            return {}
        touched = [key for key, seen in prints.items() if self.seen.get(key) != seen]
        gone = [key for key in self.seen if key not in prints]
        old, new = {}, self.read_values(touched, prints)
        for key in touched + gone:
            name = key.decode("utf-8", "surrogateescape")
            if name in self.values:
                old[name] = self.values.pop(name)
        self.values.update(new)
        self.seen = prints
        return difference(old, new)

    def read_values(self, keys, prints):
        kinds = self.client.pipeline([("TYPE", key) for key in keys])
        kinds = [kind["status"] for kind in kinds]
        replies = self.client.pipeline([READS[kind](key) for kind, key in zip(kinds, keys)])
        values = {}
        for key, kind, reply in zip(keys, kinds, replies):
            entry = {"type": kind, "value": decoded(kind, reply)}
            if prints[key][1] >= 0:
                entry["expires_at"] = prints[key][1]
            values[key.decode("utf-8", "surrogateescape")] = entry
        return values


def difference(old, new):
    changes = {}
    for key in sorted(set(old) | set(new)):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        changes[key] = None if after is None else key_difference(before, after)
    return changes


def key_difference(before, after):
    fresh = before is None or before["type"] != after["type"]
    change = {"type": after["type"]}
    value, old = after["value"], None if fresh else before["value"]
    if old != value:
        change.update(value_difference(after["type"], old, value))
    if fresh:
        change["created"] = True
    old_expiry = None if fresh else before.get("expires_at")
    if old_expiry != after.get("expires_at"):
        change["expires_at"] = after.get("expires_at", -1)
    return change


def value_difference(kind, old, new):
    change = {}
    if kind in ("hash", "zset"):
        old = old or {}
        change["set"] = {name: value for name, value in sorted(new.items())
                         if name not in old or old[name] != value}
        gone = sorted(set(old) - set(new))
        if gone:
            change["del"] = gone
    elif kind == "set":
        added, removed = sorted(set(new) - set(old or [])), sorted(set(old or []) - set(new))
        if added:
            change["add"] = added
        if removed:
            change["rem"] = removed
    elif kind == "stream":
        known, left = {entry[0]: entry for entry in old or []}, {entry[0] for entry in new}
        change["add"] = [entry for entry in new if known.get(entry[0]) != entry]
        gone = [entry[0] for entry in old or [] if entry[0] not in left]
        if gone:
            change["del"] = gone
    else:
        change["value"] = new
    return change


def flattened(table):
    return [part for pair in table.items() for part in pair]


def score(value):
    return repr(value) if isinstance(value, float) else str(value)


def commands_of(changes):
    """Plain commands that have the recorded changes as their effect."""
    commands = []
    for key, change in changes.items():
        if change is None or change.get("created"):
            commands.append(("DEL", key))
        if change is None:
            continue
        commands += value_commands(key, change)
        expiry = change.get("expires_at")
        if expiry is not None:
            commands.append(("PERSIST", key) if expiry < 0 else ("PEXPIREAT", key, expiry))
    return commands


def value_commands(key, change):
    kind, commands = change["type"], []
    if kind == "string" and "value" in change:
        commands.append(("SET", key, change["value"], "KEEPTTL"))
    elif kind == "hash":
        fields = flattened(change.get("set", {}))
        commands += [("HSET", key, *fields)] if fields else []
        commands += [("HDEL", key, *change["del"])] if change.get("del") else []
    elif kind == "zset":
        scores = change.get("set", {}).items()
        members = [part for member, value in scores for part in (score(value), member)]
        commands += [("ZADD", key, *members)] if members else []
        commands += [("ZREM", key, *change["del"])] if change.get("del") else []
    elif kind == "set":
        commands += [("SADD", key, *change["add"])] if change.get("add") else []
        commands += [("SREM", key, *change["rem"])] if change.get("rem") else []
    elif kind == "stream":
        if change.get("created") and not change.get("add"):
            commands.append(("XADD", key, "MAXLEN", 0, "*", "gone", "at once"))  # empty, yet there
        for entry, fields in change.get("add", []):
            commands.append(("XADD", key, entry, *flattened(fields)))
        commands += [("XDEL", key, *change["del"])] if change.get("del") else []
    return commands
