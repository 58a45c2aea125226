#!/usr/bin/env python3
"""Replay the recordings against the module and compare everything.

    run.py --module ff.so                    FCALL f … is sent as FF.CALL f …
    run.py --module ff.so --ways             in the three ways of calling, one after the other
    run.py --module ff.so --digest           a replica and an AOF must agree with the primary
    run.py … --only lease/renew -v           a part of it, with every difference

After each step three things must match the recording: the reply, the messages published, and the
effect on the whole keyspace (every key, field, score and expiry). Text that holds a JSON object or
array is compared as JSON, since the member order of the reference is not defined. In a scenario
whose name ends in __lua_crash the reference died: there the server must refuse and change nothing.

A scenario whose own function the module does not have yet is listed, and counts neither as passed
nor as failed. Where such a function only prepares the scene of another scenario, its recorded
effect is written with plain commands instead."""
import argparse
import collections
import contextlib
import json
import multiprocessing
import os
import sys
import time

sys.dont_write_bytecode = True  # the checkout stays as it is
import recordings
from keyspace import Keyspace, commands_of
from plumbing import (HERE, T0_MS, Clock, Server, ServerLost, die_with_parent, ending_with_a_count,
                      module_parser, parsed_options)

LIBRARY = os.path.join(HERE, "..", "..", "lua-compat", "flowfabric.lua")
SHOWN = 10  # failing scenarios whose differences are printed without -v

Outcome = collections.namedtuple("Outcome", "name verdict seeded differences")


# Comparing

def canonical(value):
    if isinstance(value, str) and value[:1] in "{[" and value[-1:] in "}]":
        try:
            return ("json", json.dumps(json.loads(value), sort_keys=True))
        except ValueError:
            return value
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if isinstance(value, dict):
        return {name: canonical(item) for name, item in value.items()}
    return value


def same(a, b):
    return a == b or canonical(a) == canonical(b)


def shown(label, want, got):
    want, got = json.dumps(want)[:600], json.dumps(got)[:600]
    return "    %s\n      want %s\n      got  %s" % (label, want, got)


def compare_changes(want, got):
    lines = []
    for key in sorted(set(want) | set(got)):
        a, b = want.get(key, "(untouched)"), got.get(key, "(untouched)")
        if same(a, b):
            continue
        if isinstance(a, dict) and isinstance(b, dict) and a.get("type") == b.get("type"):
            lines += compare_key(key, a, b)
        else:
            lines.append(shown(key, a, b))
    return lines


def compare_key(key, want, got):
    lines = []
    for part in sorted(set(want) | set(got)):
        a, b = want.get(part), got.get(part)
        if same(a, b):
            continue
        if part == "set" and isinstance(a, dict) and isinstance(b, dict):
            for name in sorted(set(a) | set(b)):
                old, new = a.get(name, "(unchanged)"), b.get(name, "(unchanged)")
                lines += [] if same(old, new) else [shown("%s [%s]" % (key, name), old, new)]
        else:
            lines.append(shown("%s %s" % (key, part), a, b))
    return lines


# Replaying

class Replayer:
    """Runs scenarios on one server, each on an empty database 0."""

    def __init__(self, server, clock, known, via):
        self.server, self.clock, self.known, self.via = server, clock, known, via
        self.keyspace = Keyspace(server.client)

    def reset(self):
        self.clock.set(T0_MS)
        self.server.client("FLUSHDB")
        self.keyspace.forget()

    def run(self, scenario):
        self.reset()
        executed = seeded = 0
        for position, step in enumerate(scenario["steps"]):
            name = recordings.function(step)
            if name and name not in self.known:
                if recordings.crash_recorded(scenario, step):
                    break
                lines = self.seed(step)
                seeded += 1
            else:
                lines = self.step(scenario, step)
                executed += bool(name)
            if lines:
                lines.insert(0, heading(position, step))
                return Outcome(scenario["name"], "failed", seeded, lines)
            if "cmd" in step and recordings.crash_recorded(scenario, step):
                break  # the reference half-wrote here: nothing after it compares
        return Outcome(scenario["name"], "passed" if executed else "missing", seeded, [])

    def seed(self, step):
        """Write the recorded effect of a function that does not exist yet."""
        self.server.client.pipeline(commands_of(step.get("changes", {})))
        return compare_changes(step.get("changes", {}), self.keyspace.refresh())

    def step(self, scenario, step):
        if "advance_ms" in step:
            self.clock.advance(step["advance_ms"])
            return compare_changes(step.get("changes", {}), self.keyspace.refresh())
        reply, changes, messages = self.call(step["cmd"])
        if recordings.crash_recorded(scenario, step):
            lines = [] if recordings.refused(reply) else [shown("reply", "a refusal", reply)]
            lines += [shown("published", [], messages)] if messages else []
            return lines + compare_changes({}, changes)
        lines = [] if same(step["reply"], reply) else [shown("reply", step["reply"], reply)]
        lines += compare_changes(step.get("changes", {}), changes)
        if not same(step.get("published", []), messages):
            lines.append(shown("published", step.get("published", []), messages))
        return lines

    def call(self, command):
        """One round trip for the call, its messages and a look at every known key."""
        command = list(command)
        if command[0] == "FCALL" and self.via == "call":
            command[0] = "FF.CALL"
        client = self.server.client
        client.queue(*command)
        self.server.queue_mark()
        self.keyspace.queue_look()
        client.flush()
        reply = client.read()
        client.read()
        prints = self.keyspace.look()
        return reply, self.keyspace.refresh(prints), self.server.published()


def heading(position, step):
    advance = "advance_ms" in step
    what = "advance %d ms" % step["advance_ms"] if advance else " ".join(step["cmd"][:2])
    return "  step %d: %s" % (position + 1, what)


@contextlib.contextmanager
def started(options, settings=()):
    """A clock and a server with the module, the library of the options loaded."""
    clock, server = Clock(), None
    try:
        server = Server(clock, options.module, list(options.set) + list(settings))
        server.listen()
        if options.library:
            with open(options.library) as file:
                reply = server.client("FUNCTION", "LOAD", "REPLACE", file.read())
            if isinstance(reply, dict):
                raise ServerLost("the library does not load: %s" % reply["error"])
        yield server, clock
    finally:
        if server:
            server.close()
        clock.close()


def subjects_known(scenario, known):
    return bool(scenario["subjects"] & known) or not recordings.functions(scenario)


def replay(options, scenarios, results):
    """A worker: replays its share, puts an Outcome for each, None at the end."""
    die_with_parent()
    try:
        with started(options) as (server, clock):
            replayer = Replayer(server, clock, options.known, options.via)
            for scenario in scenarios:
                try:
                    results.put(replayer.run(scenario))
                except ServerLost as error:
                    text = "SERVER LOST: %s\n%s" % (error, server.log_tail())
                    results.put(Outcome(scenario["name"], "failed", 0, [text]))
                    break
    except Exception as error:  # whatever it is, the parent must not wait for ever
        results.put(Outcome("(server)", "failed", 0, ["%s: %s" % (type(error).__name__, error)]))
    results.put(None)


def shares(scenarios, count):
    """Split evenly by the number of steps."""
    parts = [[] for _ in range(count)]
    weights = [0] * count
    for scenario in scenarios:
        lightest = weights.index(min(weights))
        parts[lightest].append(scenario)
        weights[lightest] += len(scenario["steps"])
    return [part for part in parts if part]


def replay_all(options, scenarios):
    """The outcomes of all scenarios, from as many servers as there are jobs."""
    results = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=replay, args=(options, part, results), daemon=True)
               for part in shares(scenarios, options.jobs)]
    for worker in workers:
        worker.start()
    outcomes, running = [], len(workers)
    while running:
        outcome = results.get()
        if outcome is None:
            running -= 1
        else:
            outcomes.append(outcome)
    for worker in workers:
        worker.join()
    order = {scenario["name"]: position for position, scenario in enumerate(scenarios)}
    return sorted(outcomes, key=lambda outcome: order.get(outcome.name, -1))


# Replica and AOF

def print_of(client):
    """What must be equal on every copy of the data: DEBUG DIGEST leaves the expiry times out."""
    keys = sorted(client("KEYS", "*"))
    digests = client.pipeline([("DEBUG", "DIGEST-VALUE", key) for key in keys])
    expiries = client.pipeline([("PEXPIRETIME", key) for key in keys])
    return dict(zip(keys, zip(digests, expiries)))


def differing_keys(a, b):
    return [key for key in sorted(set(a) | set(b)) if a.get(key) != b.get(key)]


def differing_database(primary, copy, names):
    """Names the scenarios whose databases differ."""
    lines = []
    for database, name in enumerate(names, 1):
        primary("SELECT", database), copy("SELECT", database)
        keys = differing_keys(print_of(primary), print_of(copy))
        lines += ["    %s: %s" % (name, key) for key in keys]
    primary("SELECT", 0), copy("SELECT", 0)
    return lines


def wait_for_replica(primary, replica):
    """Returns once the replica has applied all that the primary has sent."""
    deadline = time.monotonic() + 30
    while primary("WAIT", 1, 1000) != 1:
        if time.monotonic() > deadline or not replica.alive():
            raise ServerLost("the replica does not follow:\n" + replica.log_tail())


def agree(what, primary, copy, names):
    """The differences between the primary and a copy, over the databases of all scenarios."""
    lines = differing_database(primary, copy, names)
    if not lines and primary("DEBUG", "DIGEST") != copy("DEBUG", "DIGEST"):
        lines = ["    DEBUG DIGEST, though no key of a scenario"]
    return ["  the primary and %s differ" % what] + lines[:40] if lines else []


def digest_family(options, scenarios):
    """One family with a replica and an AOF. Replica and the server that loads the AOF run without
    the module, for all they may receive is plain commands. When a scenario is over its data is
    swapped into a database of its own, so that all of it is still there for the comparison."""
    settings = [("databases", str(len(scenarios) + 2)),
                ("appendonly", "yes"), ("appendfsync", "no")]
    names, outcomes = [], []
    with started(options, settings) as (server, clock):
        server.client("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        replica = Server(clock, settings=settings[:1])
        try:
            replica.attach_to(server)
            replayer = Replayer(server, clock, options.known, options.via)
            for scenario in scenarios:
                outcomes.append(replayer.run(scenario))
                names.append(scenario["name"])
                server.client("SWAPDB", 0, len(names))
            clock.set(T0_MS)
            wait_for_replica(server.client, replica)
            lines = agree("its replica", server.client, replica.client, names)
            lines += digest_after_restart(server, clock, settings, names)
        finally:
            replica.close()
    return outcomes, lines


def digest_after_restart(server, clock, settings, names):
    folder = os.path.join(server.folder, "appendonlydir")
    restarted = Server(clock, settings=settings, folder=folder)
    try:
        return agree("a server restarted from its AOF", server.client, restarted.client, names)
    finally:
        restarted.close()


def run_digest(options, families):
    outcomes = []
    for family, scenarios in families.items():
        chosen = [scenario for scenario in scenarios if subjects_known(scenario, options.known)]
        if not chosen:
            continue
        try:
            replayed, lines = digest_family(options, chosen)
        except ServerLost as error:
            replayed, lines = [], ["  SERVER LOST: %s" % error]
        outcomes += [outcome for outcome in replayed if outcome.verdict == "failed"]
        verdict = "failed" if lines else "passed"
        outcomes.append(Outcome(family + "/(primary, replica and AOF agree)", verdict, 0, lines))
        result = "differ" if lines else "agree"
        print("  %-12s %4d scenarios, copies %s" % (family, len(chosen), result))
    return outcomes


# Reporting

def report(options, outcomes):
    failures = [outcome for outcome in outcomes if outcome.verdict == "failed"]
    for position, failure in enumerate(failures):
        print("FAIL " + failure.name)
        if options.verbose or position < SHOWN:
            print("\n".join(failure.differences))
    seeded = sum(1 for outcome in outcomes if outcome.seeded)
    if seeded:
        print("  NOTE: %d scenarios had steps of functions that do not exist yet; "
              "their recorded effects were written instead" % seeded)
    sys.stdout.flush()


def report_families(families, outcomes):
    verdicts = {outcome.name: outcome.verdict for outcome in outcomes}
    for family, scenarios in families.items():
        counts = collections.Counter(verdicts.get(scenario["name"], "missing")
                                     for scenario in scenarios)
        line = "  %-12s %4d passed %4d failed" % (family, counts["passed"], counts["failed"])
        missing = missing_functions(scenarios, verdicts)
        if missing:
            line += "   NOT YET IMPLEMENTED: %d (%s)" % (counts["missing"], ", ".join(
                "%s %d" % item for item in sorted(missing.items())))
        print(line)


def missing_functions(scenarios, verdicts):
    counts = collections.Counter()
    for scenario in scenarios:
        if verdicts.get(scenario["name"], "missing") == "missing":
            counts[recordings.last_function(scenario)] += 1
    return counts


def run_once(options, families, title):
    print("conformance: " + title + (", with a replica and an AOF" if options.digest else ""))
    began = time.monotonic()
    if options.digest:
        outcomes = run_digest(options, families)
    else:
        chosen = [scenario for scenarios in families.values() for scenario in scenarios
                  if subjects_known(scenario, options.known)]
        outcomes = replay_all(options, chosen)
        report_families(families, outcomes)
    report(options, outcomes)
    print("  %.1f s" % (time.monotonic() - began))
    return outcomes


def ways(options, has_interception):
    """(title, options or None when that way of calling does not exist yet)."""
    def variant(**changes):
        return argparse.Namespace(**dict(vars(options), **changes))
    library = options.library or LIBRARY
    forwarded = variant(via="fcall", library=library) if os.path.exists(library) else None
    intercepted = variant(via="fcall", library=None,
                          set=options.set + [["ff.intercept-fcall", "yes"]])
    return [("FF.CALL", variant(via="call", library=None)),
            ("FCALL, forwarded by the library", forwarded),
            ("FCALL, intercepted", intercepted if has_interception else None)]


def read_options():
    parser = module_parser(__doc__)
    parser.add_argument("--library", help="a FUNCTION library to load first")
    parser.add_argument("--via", choices=("call", "fcall"), default="call")
    parser.add_argument("--ways", action="store_true", help="all three ways of calling")
    parser.add_argument("--digest", action="store_true",
                        help="compare a replica and a server restarted from the AOF, per family")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("files", nargs="*")
    return parsed_options(parser)


def chosen_families(options):
    families = {}
    for family, scenarios in recordings.load(options.files).items():
        chosen = [scenario for scenario in scenarios if options.only in scenario["name"]]
        if chosen:
            families[family] = chosen
    return families


def main():
    options = read_options()
    families = chosen_families(options)
    names = {name for scenarios in families.values() for scenario in scenarios
             for name in recordings.functions(scenario)}
    probe = argparse.Namespace(**dict(vars(options), library=None, set=[]))
    with started(probe) as (server, _):
        options.known = recordings.implemented(server.client, names)
        has_interception = bool(server.client("CONFIG", "GET", "ff.intercept-fcall"))
    title = "FF.CALL" if options.via == "call" else "FCALL"
    runs = ways(options, has_interception) if options.ways else [(title, options)]
    outcomes, absent = [], []
    for title, way in runs:
        if way:
            outcomes += run_once(way, families, title)
        else:
            absent.append(title)
    for title in absent:
        print("conformance: %s: NOT YET IMPLEMENTED, not run" % title)
    missing = len(names - options.known)
    if missing:
        print("conformance: %d of %d functions NOT YET IMPLEMENTED" % (missing, len(names)))
    counts = collections.Counter(outcome.verdict for outcome in outcomes)
    return counts["passed"], counts["failed"]


if __name__ == "__main__":
    ending_with_a_count(main)
