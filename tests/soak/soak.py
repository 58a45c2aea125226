#!/usr/bin/env python3
"""Random lives against a server with all scanners on, and whether the data is sound at the end.

    soak.py --module ff.so --seconds 60 [--seed 7]

Creators, workers and an operator act at random, with native commands and wire functions mixed:
delays, deadlines, priorities, capabilities, budgets, quotas, flows with joins, retries,
suspensions, signals, cancellations, revocations, and workers who fall silent so that their leases
run out. Then nobody creates any more, and what is left is worked off. At the end everything must
have ended, every index agree with every core, no concurrency slot be held, every amount be
accounted for, and a replica hold the same data.

The last quarter of the time is for a mixed fleet, on a server of its own: wire functions also come
by FCALL through the library, and somebody changes the same data with plain commands, leaving
behind what scanners have to mend."""
import argparse
import collections
import itertools
import os
import random
import re
import sys
import threading
import time
import uuid

sys.dont_write_bytecode = True  # the checkout stays as it is
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
import wire
from keyspace import pairs
from plumbing import Client, Server, ServerLost, ending_with_a_count

LANES = ("alpha", "beta", "gamma")
SLOW_LANE = "delta"  # seldom served by FF.CLAIM, so that wire functions find something there
PARTITIONS = 256
LEASE_MS = 400
DEADLINE_MS = 3000
DRAIN_SECONDS = 90
RECENT = 30  # executions that are interfered with are among the last so many
STALL_US = 1000000  # a tick of so long was too much, however loaded the machine
RETRY = '{"max_retries":2,"backoff":{"type":"fixed","delay_ms":50}}'
POLICY = '{"max_reclaim_count":3,"retry_policy":%s}' % RETRY
CONDITION = '{"required_signal_names":["go"]}'
INTERVALS = {"index_reconciler": 500, "quota_reconciler": 0, "retention_trimmer": 0}
LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lua-compat",
                       "flowfabric.lua")
MIXED_SHARE = 0.25  # of the time, for the mixed fleet
USUAL_INTERVAL = 300
SCANNERS = ("lease_expiry delayed_promoter index_reconciler attempt_timeout suspension_timeout "
            "pending_wp_expiry retention_trimmer budget_reset budget_reconciler unblock "
            "dependency_reconciler quota_reconciler flow_projector cancel_reconciler "
            "edge_cancel_dispatcher edge_cancel_reconciler execution_deadline").split()
ENDS = ("completed", "failed", "cancelled", "expired", "skipped")
# What a command may be told when others are quicker, or the state is another by now.
RACES = {"STALE_LEASE", "LEASE_EXPIRED", "LEASE_REVOKED", "EXECUTION_NOT_ACTIVE", "NO_ACTIVE_LEASE",
         "EXECUTION_NOT_ELIGIBLE", "TERMINAL", "EXECUTION_NOT_SUSPENDED", "WAITPOINT_CLOSED",
         "TARGET_NOT_SIGNALABLE", "WAITPOINT_NOT_OPEN", "INVALID_WAITPOINT_FOR_EXECUTION",
         "FLOW_ALREADY_TERMINAL", "STREAM_CLOSED", "STALE_OWNER_CANNOT_APPEND", "NOT_RUNNABLE",
         "EXECUTION_NOT_IN_ELIGIBLE_SET", "EXECUTION_NOT_TERMINAL", "LEASE_CONFLICT",
         "NOT_FOUND"}  # an id is known to all before its creation has answered


def settings(intervals):
    lines = [("ff.scanners", "yes"), ("ff.cascade-limit", "3")]
    return lines + [("ff.%s-interval-ms" % name.replace("_", "-"),
                     str(intervals.get(name, USUAL_INTERVAL))) for name in SCANNERS]


class World:
    """What all threads share: the server, what they made, and what they saw."""

    def __init__(self, server, seed, mixed):
        self.server, self.seed, self.mixed = server, seed, mixed
        self.lock = threading.Lock()
        self.creating = self.running = True
        self.created, self.flows, self.leases = {}, [], set()  # created: eid -> None, in order
        self.doors, self.wired, self.held_back = [], [], set()
        self.counts, self.problems = collections.Counter(), []
        self.spent, self.slowest_ms = 0, 0

    def problem(self, text):
        with self.lock:
            self.problems.append(text)

    def claimed(self, eid, epoch):
        """Notes a lease; the same epoch twice is somebody else's."""
        with self.lock:
            self.counts["claimed"] += 1
            if (eid, epoch) in self.leases:
                self.problems.append("%s was handed out twice in epoch %s" % (eid, epoch))
            self.leases.add((eid, epoch))

    def add(self, *eids):
        with self.lock:
            self.created.update(dict.fromkeys(eids))

    def some_execution(self, chance):
        """One that is not old."""
        with self.lock:
            recent = list(itertools.islice(reversed(self.created), RECENT))
        return chance.choice(recent) if recent else None


class Actor(threading.Thread):
    """One client that acts until it is told to stop."""

    def __init__(self, world, name):
        super().__init__(name=name, daemon=True)
        self.world = world
        self.client = Client(world.server.port)
        self.chance = random.Random("%s %s" % (world.seed, name))
        self.client.way = "FCALL" if world.mixed and self.chance.random() < 0.5 else "FF.CALL"

    def run(self):
        try:
            while self.goes_on():
                self.act()
        except ServerLost as error:
            self.world.problem("%s: %s" % (self.name, error))
        except Exception as error:  # a thread that dies unseen would be a test that asserts nothing
            self.world.problem("%s: %s: %s" % (self.name, type(error).__name__, error))
        finally:
            self.client.close()

    def do(self, *words):
        """The reply, or None after a refusal that a race explains. Others are problems."""
        reply = self.client(*words)
        self.world.counts[str(words[0]).upper()] += 1
        if not isinstance(reply, dict) or "error" not in reply:
            return reply
        word = reply["error"].split(" ", 1)[0]
        self.world.counts["refused " + word] += 1
        if word not in RACES:
            self.world.problem("%s: %s" % (" ".join(map(str, words))[:300], reply["error"]))
        return None

    def maybe(self, share, *words):
        return [str(word) for word in words] if self.chance.random() < share else []


class Creator(Actor):
    def goes_on(self):
        return self.world.creating

    def act(self):
        self.chance.choice((self.create, self.create, self.create_by_wire, self.submit))()
        time.sleep(self.chance.uniform(0.001, 0.02))

    def create(self):
        c, now = self.chance, int(time.time() * 1000)
        words = self.maybe(0.3, "PRIORITY", c.randrange(9001))
        words += self.maybe(0.3, "DELAY", c.randrange(300)) or \
            self.maybe(0.1, "AT", now + c.randrange(-100, 300))
        words += self.maybe(0.2, "DEADLINE", now + c.randrange(200, DEADLINE_MS))
        words += self.maybe(0.2, "CAPS", c.choice(("gpu", "gpu,fast", "fast")))
        words += self.maybe(0.5, "POLICY", POLICY) if "CAPS" not in words else []
        words += self.maybe(0.2, "TAGS", 1, "soak.tag", "x")
        words += self.maybe(0.15, "IDEMPOTENT", "key%d" % c.randrange(200), 300)
        words += self.maybe(0.3, "BUDGETS", 2, *self.world.budgets)
        words += self.maybe(0.4, "QUOTA", c.choice(self.world.quotas))
        kind = "native" if "QUOTA" in words else "any"
        reply = self.do("FF.CREATE", "*", c.choice(LANES), kind, *words)
        if reply:
            self.world.add(pairs(reply)["execution_id"])

    def create_by_wire(self):
        eid = "{fp:%d}:%s" % (self.chance.randrange(PARTITIONS), uuid.uuid4())
        self.world.add(eid)
        lane = self.chance.choice((SLOW_LANE, *LANES))
        if not wire.create(self.client, eid, lane, 0):
            self.world.problem("ff_create_execution refused " + eid)
        elif lane == SLOW_LANE:
            with self.world.lock:
                self.world.wired.append(eid)

    def submit(self):
        c, members = self.chance, []
        for number in range(c.randrange(2, 9)):
            after = sorted(c.sample(range(number), min(number, c.randrange(4))))
            member = ['"name":"m%d","kind":"any","lane":"%s"' % (number, c.choice(LANES))]
            if after:
                member.append('"after":[%s]' % ",".join('"m%d"' % i for i in after))
                join = c.choice(('"all_of"', '"any_of"',
                                 '{"quorum":%d}' % c.randrange(1, len(after) + 1)))
                member.append('"join":' + join)
                if join != '"all_of"':
                    member.append('"on_satisfied":"%s"' % c.choice(("cancel_remaining", "let_run")))
            if c.random() < 0.2:
                member.append('"delay_ms":%d' % c.randrange(100))
            members.append("{%s}" % ",".join(member))
        reply = self.do("FF.FLOW", "SUBMIT", "*", '{"kind":"dag","members":[%s]}' %
                        ",".join(members))
        if reply:
            reply = pairs(reply)
            self.world.add(*pairs(reply["members"]).values())
            with self.world.lock:
                self.world.flows.append(reply["flow"])


class Worker(Actor):
    def __init__(self, world, name, capabilities):
        super().__init__(world, name)
        self.capabilities = capabilities

    def goes_on(self):
        return self.world.running

    def claim_words(self):
        lanes = list(LANES)
        self.chance.shuffle(lanes)
        lanes += [SLOW_LANE] if not self.world.creating or self.chance.random() < 0.1 else []
        words = [lanes[0], "w", self.name, "LANES", len(lanes) - 1, *lanes[1:], "LEASE", LEASE_MS]
        words += ["CAPS", self.capabilities] if self.capabilities else []
        words += self.maybe(0.2, "TIMEOUT", 200) if self.world.creating else []
        return words + self.maybe(0.2, "COUNT", 3)

    def act(self):
        if self.chance.random() < 0.3 and self.claim_by_wire():
            return
        for held in map(pairs, self.do("FF.CLAIM", *self.claim_words(), "BLOCK", 100) or []):
            self.take(held)

    def take(self, held):
        self.world.claimed(held["execution_id"], held["lease_epoch"])
        self.work_on(held)

    def claim_by_wire(self):
        with self.world.lock:
            eid = self.world.wired.pop() if self.world.wired else None
        if not eid:
            return False
        lease, attempt = str(uuid.uuid4()), str(uuid.uuid4())
        reply = wire.grant_and_claim(self.client, eid, SLOW_LANE, "w", self.name, lease, attempt,
                                     LEASE_MS)
        if reply is None:
            return False
        self.world.counts["claimed by wire"] += 1
        core = dict(zip(("lease_epoch", "lease_id", "attempt_id", "attempt_index"),
                        self.client("HMGET", wire.execution(eid, "core"), "current_lease_epoch",
                                    "current_lease_id", "current_attempt_id",
                                    "current_attempt_index")))
        if core["lease_id"] == lease:
            self.take(dict(core, execution_id=eid, kind="wire"))
        return True

    def work_on(self, held):
        fence = [held["execution_id"], held["lease_id"], held["lease_epoch"], held["attempt_id"]]
        if not self.world.creating:
            self.do("FF.COMPLETE", *fence)
            return
        ways = ((40, self.complete), (10, self.complete_and_claim), (12, self.report),
                (12, self.fail), (6, self.delay), (10, self.suspend), (8, self.be_silent),
                (8, self.spend))
        way = self.chance.choices([way for _, way in ways], [weight for weight, _ in ways])[0]
        way(held, fence)

    def complete(self, held, fence):
        if held["kind"] != "native" and self.chance.random() < 0.4:
            lane = self.client("HGET", wire.execution(fence[0], "core"), "lane_id")
            wire.complete(self.client, held, lane, self.name)
            self.world.counts["completed by wire"] += 1
        else:
            self.do("FF.COMPLETE", *fence, "RESULT", "r")

    def complete_and_claim(self, held, fence):
        reply = self.do("FF.COMPLETE", *fence, "CLAIM", *self.claim_words())
        for more in map(pairs, pairs(reply)["claimed"] if reply else []):
            self.take(more)

    def report(self, held, fence):
        self.do("FF.PROGRESS", *fence[:3], "PCT", self.chance.randrange(101), "MESSAGE", "m")
        self.do("FF.APPEND", fence[0], held["attempt_index"], *fence[1:3], "log", "line")
        if held["kind"] == "native" or self.chance.random() < 0.5:
            self.do("FF.RENEW", *fence, "LEASE", LEASE_MS)
        else:
            wire.renew(self.client, held, LEASE_MS)
        self.complete(held, fence)

    def fail(self, held, fence):
        self.do("FF.FAIL", *fence, "why", *self.maybe(0.6, "RETRY", RETRY))

    def delay(self, held, fence):
        self.do("FF.DELAY", *fence, "FOR", self.chance.randrange(100))

    def suspend(self, held, fence):
        behaviour = self.chance.choice(("fail", "cancel", "expire", "auto_resume"))
        reply = self.do("FF.SUSPEND", *fence, "REASON", "waiting_for_signal", "CONDITION",
                        CONDITION, "TIMEOUT", self.chance.randrange(50, 1000), behaviour)
        if reply:
            door = pairs(pairs(reply)["waitpoints"][0])
            with self.world.lock:
                self.world.doors.append((fence[0], door["waitpoint_id"], door["token"]))

    def spend(self, held, fence):
        amount = self.chance.randrange(1, 5)
        for budget in self.world.budgets:
            reply = self.do("FF.BUDGET", "SPEND", budget, fence[0], 1, "tokens", amount)
            if budget == self.world.budgets[0] and pairs(reply)["status"] == "OK":
                with self.world.lock:
                    self.world.spent += amount
        self.complete(held, fence)

    def be_silent(self, held, fence):
        self.world.counts["fell silent"] += 1


class Operator(Actor):
    """Signals, and interferes."""

    def goes_on(self):
        return self.world.running

    def act(self):
        self.signal()
        if self.world.creating:
            eid = self.world.some_execution(self.chance)
            if eid:
                self.chance.choice((self.cancel, self.revoke, self.block, self.change_priority,
                                    self.cancel_flow, self.replay))(eid)
        else:
            self.release_all()
        time.sleep(self.chance.uniform(0.005, 0.03))

    def signal(self):
        with self.world.lock:
            door = self.world.doors.pop(self.chance.randrange(len(self.world.doors))) \
                if self.world.doors else None
        if door and self.chance.random() < 0.7:
            self.do("FF.SIGNAL", *door[:2], "go", "TOKEN", door[2], *self.maybe(0.2, "DELAY", 50))

    def cancel(self, eid):
        self.do("FF.CANCEL", eid, "why", "OPERATOR")

    def revoke(self, eid):
        self.do("FF.REVOKE", eid, "why")

    def block(self, eid):
        with self.world.lock:
            self.world.held_back.add(eid)
        self.do("FF.BLOCK", eid, "operator", "why")

    def change_priority(self, eid):
        self.do("FF.PRIORITY", eid, self.chance.randrange(9001))

    def cancel_flow(self, eid):
        with self.world.lock:
            flow = self.chance.choice(self.world.flows) if self.world.flows else None
        if flow and self.chance.random() < 0.2:
            self.do("FF.FLOW", "CANCEL", flow, "why")

    def replay(self, eid):
        self.do("FF.REPLAY", eid)

    def release_all(self):
        with self.world.lock:
            held, self.world.held_back = self.world.held_back, set()
        for eid in held:
            self.do("FF.UNBLOCK", eid, "REASON", "operator")


class Meddler(Actor):
    """Changes data with plain commands, as somebody with a shell does."""

    LANE_INDEXES = ("eligible", "delayed", "active", "suspended", "terminal", "blocked:budget",
                    "blocked:quota", "blocked:route", "blocked:operator", "blocked:dependencies")
    DUE_INDEXES = ("lease_expiry", "attempt_timeout", "execution_deadline", "suspension_timeout",
                   "pending_waitpoint_expiry")

    def goes_on(self):
        return self.world.creating

    def act(self):
        eid = self.world.some_execution(self.chance)
        if eid:
            self.chance.choice((self.lose_entry, self.leave_stale_entry, self.leave_stale_delay,
                                self.end, self.lose_lease_record, self.leave_junk,
                                self.miscount))(eid)
        time.sleep(self.chance.uniform(0.005, 0.03))

    def lose_entry(self, eid):
        """The reconciler puts it back."""
        lane = self.do("HGET", wire.execution(eid, "core"), "lane_id")
        for kind in self.LANE_INDEXES if lane else ():
            if self.do("ZREM", wire.lane_index(eid, lane, kind), eid):
                self.world.counts["lost entries"] += 1

    def leave_stale_entry(self, eid):
        """Of an execution that never was."""
        stale = "%s:%s" % (wire.tag_of(eid), uuid.uuid4())
        due = int(time.time() * 1000) + self.chance.randrange(-1000, 500)
        self.do("ZADD", wire.index(eid, self.chance.choice(self.DUE_INDEXES)), due, stale)

    def leave_stale_delay(self, eid):
        """Of one that is not delayed, or by another time."""
        lane = self.do("HGET", wire.execution(eid, "core"), "lane_id")
        due = int(time.time() * 1000) + self.chance.randrange(-1000, 500)
        if lane:
            self.do("ZADD", wire.lane_index(eid, lane, "delayed"), due, eid)

    def end(self, eid):
        index = self.chance.choice(("attempt_timeout", "execution_deadline"))
        self.do("ZADD", wire.index(eid, index), int(time.time() * 1000), eid)

    def lose_lease_record(self, eid):
        self.do("DEL", wire.execution(eid, "lease:current"))

    def leave_junk(self, eid):
        self.do("SADD", wire.index(eid, "pending_cancel_groups"), "junk", "a|b")

    def miscount(self, eid):
        policy = self.chance.choice(self.world.quotas)
        for name in self.do("KEYS", "ff:quota:*:%s:concurrency" % policy):
            self.do("SET", name, self.chance.randrange(9))


class Pulse(Actor):
    """Measures how long the server lets an ordinary command wait."""

    def goes_on(self):
        return self.world.running

    def act(self):
        began = time.monotonic()
        self.client("PING")
        self.world.slowest_ms = max(self.world.slowest_ms, (time.monotonic() - began) * 1000)
        time.sleep(0.005)


# What must hold at the end

class Inspection:
    """Looks at the whole keyspace of a server where everything has ended."""

    def __init__(self, world):
        self.world, self.client, self.complaints = world, world.server.client, []
        names = self.client("KEYS", "*")
        self.types = dict(zip(names, self.client.pipeline([("TYPE", name) for name in names])))
        eids = sorted(world.created)
        fields = ("lifecycle_phase", "lane_id", "terminal_outcome", "public_state",
                  "ownership_state", "eligibility_state")
        cores = self.client.pipeline([("HMGET", wire.execution(eid, "core")) + fields
                                      for eid in eids])
        self.cores = {eid: dict(zip(fields, core)) for eid, core in zip(eids, cores)}

    def complain(self, text, *more):
        self.complaints.append(text % more)

    def names(self, pattern):
        """(key, what the groups of the pattern matched) of all keys that match it."""
        found = ((name, re.fullmatch(pattern, name)) for name in self.types)
        return [(name, match.groups()) for name, match in found if match]

    def everything_ended(self):
        for eid, core in self.cores.items():
            if core["lifecycle_phase"] != "terminal":
                self.complain("%s is %s %s, %s", eid, core["public_state"],
                              core["eligibility_state"], core["ownership_state"])
            elif core["terminal_outcome"] in (None, "", "none"):
                self.complain("%s ended without an outcome", eid)

    def indexes_agree(self):
        """In exactly the index that the state calls for, and nowhere else."""
        found = collections.defaultdict(list)
        for name, (tag, lane, kind) in self.names(r"ff:idx:(\{fp:\d+\}):lane:([^:]+):(.+)"):
            for member in self.client("ZRANGE", name, 0, -1):
                found[member].append((tag, lane, kind))
        for eid, core in self.cores.items():
            wanted = [(wire.tag_of(eid), core["lane_id"], "terminal")]
            places = found.pop(eid, [])
            if places != wanted and core["lifecycle_phase"] == "terminal":
                self.complain("%s (%s) is not in the terminal index alone, but in %s", eid, core,
                              places)
        for member, places in found.items():
            self.complain("nobody made %s, which is in %s", member, places)

    def members_known(self):
        members = []
        for name, _ in self.names(r"ff:idx:\{fp:\d+\}:all_executions"):
            members += self.client("SMEMBERS", name)
        if sorted(members) != sorted(self.cores):
            self.complain("%d executions were made, %d are known, %d of these unheard of",
                          len(self.cores), len(members), len(set(members) - set(self.cores)))

    def nothing_due(self):
        for suffix in ("lease_expiry", "attempt_timeout", "execution_deadline", "cancel_backlog",
                       "suspension_timeout", "pending_waitpoint_expiry"):
            for name, _ in self.names(r"ff:idx:\{fp:\d+\}:" + suffix):
                left = self.client("ZRANGE", name, 0, 5, "WITHSCORES")
                self.complain("%s still has %s at %d: %s", name, left, time.time() * 1000,
                              self.story(left[0]) if left[0] in self.cores else "nobody")
        for suffix in (r"pending_cancel_groups", r"worker:.*:leases"):
            for name, _ in self.names(r"ff:idx:\{fp:\d+\}:" + suffix):
                self.complain("%s still has %s", name, self.client("SMEMBERS", name)[:5])
        for name, _ in self.names(r"ff:(exec:.*:claim_grant|exec:.*:lease:current|"
                                  r"flow:.*:pending_cancels)"):
            self.complain("%s is still there", name)

    def slots_free(self):
        for name, _ in self.names(r"ff:quota:.*:concurrency"):
            if int(self.client("GET", name)) != 0:
                self.complain("%s is %s", name, self.client("GET", name))
        for name, _ in self.names(r"ff:quota:.*:admitted_set"):
            policy = name[:-len(":admitted_set")]
            if int(self.client("HGET", policy, "active_concurrency_cap") or 0) > 0:
                for eid in self.client("SMEMBERS", name):
                    self.complain("%s still has %s, which %s", name, eid, self.story(eid))

    def story(self, eid):
        """What happened to an execution, for those who look for the fault."""
        core = self.client("HMGET", wire.execution(eid, "core"), "terminal_outcome",
                           "failure_reason", "cancellation_reason", "lease_reclaim_count",
                           "retry_count", "current_lease_epoch")
        history = self.client("XRANGE", wire.execution(eid, "lease:history"), "-", "+")
        return "%s %s" % (core, [pairs(entry[1]).get("event") for entry in history])

    def amounts_agree(self):
        usage = pairs(self.world.server.client("FF.BUDGET", "GET", self.world.budgets[0]))
        counted = pairs(pairs(usage["dimensions"])["tokens"])["usage"]
        if counted != self.world.spent:
            self.complain("%d tokens were spent, %d are counted", self.world.spent, counted)

    def no_drift_met(self):
        """The reconciler ran all the time. Where nobody but us writes it has nothing to do."""
        facts = information(self.client)
        for field in ("ff_dispatch_errors", "ff_dispatch_misplaced", "ff_wire_errors"):
            if facts[field] != "0":
                self.complain("%s is %s", field, facts[field])
        if self.world.mixed != (facts["ff_index_inconsistent"] != "0"):
            self.complain("ff_index_inconsistent is %s", facts["ff_index_inconsistent"])
        if facts["ff_index_inconsistent"] != facts["ff_index_repaired"]:
            self.complain("%s were inconsistent, %s repaired", facts["ff_index_inconsistent"],
                          facts["ff_index_repaired"])

    def no_stall(self):
        longest = int(information(self.client)["ff_tick_us_longest"])
        if longest > STALL_US:
            self.complain("a tick took %d us", longest)

    def flows_ended(self):
        self.client("FF.RECONCILE", "*", "flow_summary")
        for flow in self.world.flows:
            summary = pairs(pairs(self.client("FF.FLOW", "GET", flow))["summary"])
            ended = sum(int(summary.get("members_" + state) or 0) for state in ENDS)
            if ended != int(summary["total_members"]) or \
                    summary["public_flow_state"] not in ("completed", "failed"):
                self.complain("%s has %s", flow, summary)

    CHECKS = (everything_ended, indexes_agree, members_known, nothing_due, flows_ended, slots_free,
              amounts_agree, no_drift_met, no_stall)


def information(client):
    return dict(line.split(":", 1) for line in client("INFO", "ff").split("\r\n") if ":" in line)


def wait_until_ended(world):
    """True when all have ended, in time."""
    deadline = time.monotonic() + DRAIN_SECONDS
    left = sorted(world.created)
    while left and time.monotonic() < deadline and world.server.alive():
        phases = world.server.client.pipeline(
            [("HGET", wire.execution(eid, "core"), "lifecycle_phase") for eid in left])
        left = [eid for eid, phase in zip(left, phases) if phase != "terminal"]
        time.sleep(0.1)
    return not left


def make_limits(world):
    client = world.server.client
    generous = pairs(client("FF.BUDGET", "CREATE", "*", "HARD", 1, "tokens", 10**9))["budget"]
    tight = pairs(client("FF.BUDGET", "CREATE", "*", "HARD", 1, "tokens", 8, "RESET", 400))
    world.budgets = (generous, tight["budget"])
    world.quotas = [pairs(client("FF.QUOTA", "CREATE", "*", *words))["quota"]
                    for words in (("CONCURRENCY", 1), ("RATE", 15, 1),
                                  ("RATE", 50, 1, "CONCURRENCY", 2))]
    client("FF.SECRET", "ROTATE", "k1", "ab" * 32)


def live(world, seconds):
    actors = [Creator(world, "creator-%d" % i) for i in range(2)]
    actors += [Worker(world, "worker-%d" % i, capabilities)
               for i, capabilities in enumerate(("", "", "gpu", "fast,gpu"))]
    actors += [Operator(world, "operator"), Pulse(world, "pulse")]
    actors += [Meddler(world, "meddler")] if world.mixed else []
    for actor in actors:
        actor.start()
    stop = time.monotonic() + seconds
    while time.monotonic() < stop and world.server.alive() and not world.problems:
        time.sleep(0.1)
    world.creating = False
    last_deadline = time.monotonic() + DEADLINE_MS / 1000
    ended = wait_until_ended(world)
    # What follows an end from the queue, and one more round of every scanner; also for deadlines of
    # those that ended by the timeout of a suspension, which does not take them back.
    time.sleep(1.5 + max(0, last_deadline - time.monotonic()))
    world.running = False
    for actor in actors:
        actor.join(10)
    return ended


def copies_agree(server, replica):
    server.client("CONFIG", "SET", "ff.scanners", "no")
    for _ in range(10):
        server.client("WAIT", 1, 2000)
        if server.client("DEBUG", "DIGEST") == replica.client("DEBUG", "DIGEST"):
            return True
        time.sleep(0.2)  # a key that expired between the two
    return False


def report(world):
    counts = world.counts
    print("  %d executions, %d flows, %d claims; slowest PING %.1f ms" %
          (len(world.created), len(world.flows), counts["claimed"], world.slowest_ms))
    print("  " + ", ".join("%s %d" % item for item in sorted(counts.items())))
    facts = information(world.server.client)
    for name in sorted(facts):
        if re.match("ff_(tick_us_longest|blocked_|stepped|left_|ended_by|sibling.*cancelled|"
                    "dispatch_resolved|.*_(processed|longest_us)$)", name) and facts[name] != "0":
            print("  %s %s" % (name, facts[name]))


def check(passed, failed, name, complaints):
    if complaints:
        print("FAIL " + name)
        print("\n".join("    %.600s" % complaint for complaint in complaints[:8]))
        if len(complaints) > 8:
            print("    and %d more" % (len(complaints) - 8))
        failed.append(name)
    else:
        passed.append(name)


def parsed_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--module", default=os.environ.get("FF_MODULE"))
    parser.add_argument("--seconds", type=float, default=60, help="how long new work is made")
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    if not options.module:
        parser.error("--module, or FF_MODULE in the environment, says which module to test")
    return options


def check_world(world, replica, ended, passed, failed):
    server = world.server
    check(passed, failed, "no command met a surprise", world.problems)
    check(passed, failed, "the server stays up", [] if server.alive() else
          server.log_tail().split("\n"))
    if not server.alive():
        return
    check(passed, failed, "everything ends in time", [] if ended else ["it does not"])
    inspection = Inspection(world)
    for rule in Inspection.CHECKS:
        inspection.complaints = []
        rule(inspection)
        check(passed, failed, rule.__name__.replace("_", " "), inspection.complaints)
    check(passed, failed, "the replica holds the same data",
          [] if copies_agree(server, replica) else ["it does not"])
    report(world)


def soak(options, mixed, seconds, passed, failed):
    print("%s, %.0f s of new work" % ("a mixed fleet" if mixed else "our own commands", seconds))
    intervals = dict(INTERVALS, quota_reconciler=USUAL_INTERVAL) if mixed else INTERVALS
    server = Server(None, options.module, settings(intervals))
    try:
        replica = Server(None)
        try:
            replica.attach_to(server)
            world = World(server, options.seed, mixed)
            make_limits(world)
            if mixed:
                with open(LIBRARY) as library:
                    server.client("FUNCTION", "LOAD", library.read())
            check_world(world, replica, live(world, seconds), passed, failed)
        finally:
            replica.close()
    finally:
        server.close()


def main():
    options = parsed_options()
    passed, failed = [], []
    soak(options, False, options.seconds * (1 - MIXED_SHARE), passed, failed)
    soak(options, True, options.seconds * MIXED_SHARE, passed, failed)
    print("%d passed, %d failed" % (len(passed), len(failed)))
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    ending_with_a_count(main)
