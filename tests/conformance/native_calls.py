"""One good call, or a few, of every native command, and the state that each needs.

A call is a function of a Scene: it prepares the state with ordinary commands and returns the words
of a call that succeeds in it. Together the calls of a command use every option it documents."""
from keyspace import pairs

TAG = "{fp:7}"
FLOW_ID = "f1000001-0000-4000-8000-000000002039"  # of partition 7, as its bytes say
FLOW = TAG + ":" + FLOW_ID
SECRET_KEY = "ff:sec:%s:waitpoint_hmac" % TAG
CONDITION = '{"required_signal_names":["go"]}'
RETRY = ('{"max_retries":3,"backoff":{"type":"exponential","initial_delay_ms":100,'
         '"multiplier":2,"max_delay_ms":1000}}')
FAR = "1867225600000"  # long after the frozen clock


class Refused(Exception):
    """A command that prepares the state of a call was refused."""


class Scene:
    """Commands that must succeed, and the things they make."""

    def __init__(self, client):
        self.client, self.made = client, 0

    def do(self, *words):
        reply = self.client(*words)
        if isinstance(reply, dict) and "error" in reply:
            raise Refused("%s: %s" % (" ".join(map(str, words))[:200], reply["error"]))
        return reply

    def map(self, *words):
        return pairs(self.do(*words))

    def execution(self, *options):
        self.made += 1
        eid = "%s:f10f0001-0000-4000-8000-%012d" % (TAG, self.made)
        self.do("FF.CREATE", eid, "default", "job", *options)
        return eid

    def lease(self, *options):
        """eid, lease, epoch and attempt of an execution that is running."""
        self.execution(*options)
        return self.claim()

    def claim(self):
        held = pairs(self.do("FF.CLAIM", "default", "w", "wi", "PARTITION", TAG)[0])
        return [held["execution_id"], held["lease_id"], str(held["lease_epoch"]),
                held["attempt_id"]]

    def ended(self):
        fence = self.lease()
        self.do("FF.FAIL", *fence, "why")
        return fence[0]

    def secret(self):
        self.do("HSET", SECRET_KEY, "current_kid", "k1", "secret:k1", "ab" * 32)

    def suspended(self, *options):
        """An execution id, the id of the waitpoint it waits at, and its token."""
        self.secret()
        fence = self.lease()
        reply = self.map("FF.SUSPEND", *fence, "REASON", "r", "CONDITION", CONDITION, *options)
        door = pairs(reply["waitpoints"][0])
        return fence[0], door["waitpoint_id"], door["token"]

    def frames(self):
        fence = self.lease()
        self.do("FF.APPEND", fence[0], 0, *fence[1:3], "log", "one")
        self.do("FF.APPEND", fence[0], 0, *fence[1:3], "log", '{"a":1}', "MODE", "summary")
        return fence

    def flow(self):
        """A flow of two members; the second waits for the first."""
        self.do("FF.FLOW", "CREATE", FLOW, "dag", "TAGS", 1, "a.b", "c")
        first = self.execution("FLOW", FLOW)
        return first, self.execution("FLOW", FLOW, "AFTER", 1, first)

    def budget(self):
        return self.map("FF.BUDGET", "CREATE", "{b:3}", "HARD", 1, "tokens", 100, "SOFT", 1,
                        "tokens", 60, "RESET", 1000)["budget"]

    def quota(self):
        return self.map("FF.QUOTA", "CREATE", "{q:5}", "RATE", 10, 60, "CONCURRENCY", 5)["quota"]

    def spent(self, eid):
        budget = self.budget()
        self.do("FF.BUDGET", "SPEND", budget, eid, 1, "tokens", 10)
        return budget

    def admitted(self, eid):
        quota = self.quota()
        self.do("FF.QUOTA", "ADMIT", quota, eid)
        return quota


CALLS = {}


def call(name, more=""):
    def keep(build):
        CALLS.setdefault(name, []).append((name + (" " + more if more else ""), build))
        return build
    return keep


@call("ff.create")
def _(s):
    return ["{fp:7}:f10f0001-0000-4000-8000-000000000001", "default", "job", "NAMESPACE", "ns",
            "PAYLOAD", "p", "PRIORITY", "5", "CREATOR", "me", "POLICY", '{"max_reclaim_count":2}',
            "CAPS", "gpu,fast", "TAGS", "1", "a.b", "c", "DELAY", "100", "DEADLINE", FAR,
            "IDEMPOTENT", "key", "1000", "BUDGETS", "1", s.budget(), "QUOTA", s.quota()]


@call("ff.create", "in a flow")
def _(s):
    first, _second = s.flow()
    return ["*", "default", "job", "FLOW", FLOW, "AFTER", "1", first]


@call("ff.create", "at a time")
def _(s):
    return [TAG, "default", "job", "AT", FAR]


@call("ff.claim")
def _(s):
    s.execution("PAYLOAD", "p", "CAPS", "gpu", "TAGS", 1, "a.b", "c", "NAMESPACE", "ns",
                "BUDGETS", 1, s.budget(), "QUOTA", s.quota())
    return ["other", "w", "wi", "CAPS", "gpu,fast", "LEASE", "1000", "COUNT", "2", "BLOCK", "10",
            "LANES", "1", "default", "NAMESPACE", "ns", "PARTITION", TAG, "TIMEOUT", "500"]


@call("ff.claim", "grant")
def _(s):
    s.execution()
    return ["default", "w", "wi", "GRANT", "1000"]


@call("ff.claim", "resumed")
def _(s):
    eid, door, token = s.suspended()
    s.do("FF.SIGNAL", eid, door, "go", "TOKEN", token)
    return ["default", "w", "wi"]


@call("ff.renew")
def _(s):
    return s.lease() + ["LEASE", "5000"]


@call("ff.progress")
def _(s):
    return s.lease()[:3] + ["PCT", "50", "MESSAGE", "half"]


@call("ff.complete")
def _(s):
    fence = s.lease("QUOTA", s.quota())
    s.execution()
    return fence + ["RESULT", "r", "CLAIM", "default", "w", "wi", "LEASE", "1000"]


@call("ff.complete", "in a flow")
def _(s):
    s.flow()
    return s.claim()


@call("ff.fail")
def _(s):
    return s.lease() + ["reason", "CATEGORY", "c", "RETRY", RETRY]


@call("ff.fail", "in a flow")
def _(s):
    s.flow()
    return s.claim() + ["reason"]


@call("ff.delay")
def _(s):
    return s.lease() + ["FOR", "100"]


@call("ff.delay", "at a time")
def _(s):
    return s.lease() + ["AT", FAR]


@call("ff.waitchildren")
def _(s):
    return s.lease()


@call("ff.cancel")
def _(s):
    fence = s.lease()
    return [fence[0], "reason", "LEASE", fence[1], fence[2]]


@call("ff.cancel", "suspended")
def _(s):
    return [s.suspended("TIMEOUT", 1000, "fail")[0], "reason", "OPERATOR"]


@call("ff.revoke")
def _(s):
    fence = s.lease()
    return [fence[0], "reason", "LEASE", fence[1]]


@call("ff.expire")
def _(s):
    return [s.lease()[0], "reason"]


@call("ff.suspend")
def _(s):
    s.secret()
    return s.lease() + ["REASON", "r", "CONDITION", CONDITION, "TIMEOUT", "1000", "fail",
                        "REQUESTED_BY", "me", "RESUME_POLICY_JSON", "{}",
                        "CONTINUATION_METADATA_POINTER", "p", "WAITPOINT_KEY", "k",
                        "NUM_EXTRA_WAITPOINTS", "1", "k2", "IDEMPOTENCY_KEY", "i", "DEDUP_TTL_MS",
                        "5000", "LEASE_HISTORY_MAXLEN", "10"]


@call("ff.suspend", "at a pending waitpoint")
def _(s):
    s.secret()
    fence = s.lease()
    door = s.map("FF.WAITPOINT", "CREATE", *fence)["waitpoint_id"]
    return fence + ["REASON", "r", "CONDITION", CONDITION, "USE_PENDING_WAITPOINT", door]


@call("ff.signal")
def _(s):
    eid, door, token = s.suspended()
    return [eid, door, "go", "TOKEN", token, "PAYLOAD", "p", "ENCODING", "json", "SOURCE",
            "webhook", "svc", "IDEMPOTENT", "i", "CATEGORY", "c", "CORRELATION", "x", "DELAY",
            "100"]


@call("ff.resume")
def _(s):
    return [s.suspended()[0], "DELAY", "100"]


@call("ff.waitpoint|create")
def _(s):
    s.secret()
    return s.lease() + ["KEY", "k", "TTL", "1000"]


@call("ff.waitpoint|close")
def _(s):
    return list(s.suspended()[:2]) + ["REASON", "r"]


@call("ff.waitpoint|list")
def _(s):
    return [s.suspended()[0]]


@call("ff.waitpoint|token")
def _(s):
    return list(s.suspended()[:2])


@call("ff.priority")
def _(s):
    return [s.execution(), "9"]


@call("ff.tag")
def _(s):
    return [s.execution(), "2", "a.b", "c", "d.e", "f"]


@call("ff.replay")
def _(s):
    return [s.ended()]


@call("ff.replay", "in a flow")
def _(s):
    s.flow()
    fence = s.claim()
    s.do("FF.FAIL", *fence, "why")
    return [fence[0]]


@call("ff.append")
def _(s):
    fence = s.lease()
    return [fence[0], "0", fence[1], fence[2], "log", "payload", "ENCODING", "utf8",
            "CORRELATION_ID", "c", "SOURCE", "worker", "TS", FAR, "RETENTION_MAXLEN", "10",
            "MAX_PAYLOAD_BYTES", "1000", "ATTEMPT_ID", fence[3]]


@call("ff.append", "summary")
def _(s):
    fence = s.frames()
    return [fence[0], "0", fence[1], fence[2], "log", '{"a":2}', "MODE", "summary", "PATCH_KIND",
            "json-merge-patch"]


@call("ff.append", "best effort")
def _(s):
    fence = s.frames()
    return [fence[0], "0", fence[1], fence[2], "log", "x", "MODE", "best_effort", "TTL_MS", "1000",
            "WINDOW_FLOOR", "1", "WINDOW_CEILING", "100", "ALPHA", "0.5"]


@call("ff.read")
def _(s):
    return [s.frames()[0], "0", "FROM", "0-0", "COUNT", "5", "BLOCK", "10", "VISIBILITY", "ALL"]


@call("ff.summary")
def _(s):
    return [s.frames()[0], "0"]


@call("ff.get")
def _(s):
    return [s.frames()[0], "FIELDS", "2", "state", "priority", "WITH",
            "result,payload,attempts,lease,history"]


@call("ff.list")
def _(s):
    s.execution("NAMESPACE", "ns")
    return ["LANE", "default", "STATE", "waiting", "NAMESPACE", "ns", "PARTITION", TAG, "CURSOR",
            "0", "COUNT", "5"]


@call("ff.block")
def _(s):
    return [s.execution(), "budget", "detail"]


@call("ff.unblock")
def _(s):
    eid = s.execution()
    s.do("FF.BLOCK", eid, "operator", "why")
    return [eid, "REASON", "operator"]


@call("ff.unblock", "a partition")
def _(s):
    s.do("FF.BLOCK", s.execution("BUDGETS", 1, s.budget()), "budget", "why")
    return [TAG, "LANE", "default", "REASON", "budget", "LIMIT", "5"]


@call("ff.reconcile")
def _(s):
    s.flow()
    return [TAG, "index", "LIMIT", "5"]


@call("ff.reconcile", "flow summary")
def _(s):
    s.flow()
    return [TAG, "flow_summary"]


@call("ff.reconcile", "dependency")
def _(s):
    s.flow()
    return [TAG, "dependency"]


@call("ff.reconcile", "budget")
def _(s):
    s.spent(s.execution())
    return ["{b:3}", "budget"]


@call("ff.reconcile", "quota")
def _(s):
    s.admitted(s.execution())
    return ["{q:5}", "quota"]


@call("ff.scanner|list")
def _(s):
    return []


@call("ff.scanner|run")
def _(s):
    s.lease()
    return ["lease_expiry", "PARTITION", TAG, "LIMIT", "5"]


@call("ff.scanner|pause")
def _(s):
    return ["lease_expiry"]


@call("ff.scanner|resume")
def _(s):
    return ["lease_expiry"]


@call("ff.info")
def _(s):
    return []


@call("ff.flow|create")
def _(s):
    return [FLOW, "dag", "NAMESPACE", "ns", "TAGS", "1", "a.b", "c"]


@call("ff.flow|create", "somewhere")
def _(s):
    return ["*", "dag"]


@call("ff.flow|add")
def _(s):
    s.flow()
    return [FLOW, s.execution()]


@call("ff.flow|edge")
def _(s):
    s.flow()
    third = s.execution("FLOW", FLOW)
    return [FLOW, third, s.execution("FLOW", FLOW), "POLICY", "quorum", "1", "ON_SATISFIED",
            "let_run", "KIND", "success_only", "DATA", "ref"]


@call("ff.flow|submit")
def _(s):
    return [FLOW, '{"kind":"dag","namespace":"ns","tags":{"a.b":"c"},"members":['
            '{"name":"a","kind":"job","payload":"p","priority":3,"tags":{"d.e":"f"}},'
            '{"name":"b","kind":"job","lane":"default","after":["a"],"delay_ms":5},'
            '{"name":"c","kind":"job","after":["a","b"],"join":{"quorum":1},'
            '"on_satisfied":"cancel_remaining","caps":"gpu"}]}']


@call("ff.flow|cancel")
def _(s):
    s.flow()
    return [FLOW, "reason"]


@call("ff.flow|get")
def _(s):
    s.flow()
    return [FLOW, "MEMBERS", "EDGES"]


@call("ff.flow|list")
def _(s):
    s.flow()
    return ["PARTITION", TAG, "NAMESPACE", "default", "CURSOR", "0", "COUNT", "5"]


@call("ff.flow|tag")
def _(s):
    s.flow()
    return [FLOW, "1", "a.b", "new"]


@call("ff.budget|create")
def _(s):
    return ["{b:3}", "HARD", "2", "tokens", "100", "calls", "5", "SOFT", "1", "tokens", "60",
            "RESET", "1000", "SCOPE", "team", "blue", "ENFORCEMENT", "strict", "ON_HARD", "fail",
            "ON_SOFT", "warn"]


@call("ff.budget|spend")
def _(s):
    eid = s.execution()
    return [s.spent(eid), eid, "2", "tokens", "5", "calls", "1", "DEDUP", "k"]


@call("ff.budget|report")
def _(s):
    return [s.spent(s.execution()), "1", "tokens", "5", "DEDUP", "k"]


@call("ff.budget|release")
def _(s):
    eid = s.execution()
    return [s.spent(eid), eid]


@call("ff.budget|reset")
def _(s):
    return [s.spent(s.execution())]


@call("ff.budget|get")
def _(s):
    return [s.spent(s.execution())]


@call("ff.quota|create")
def _(s):
    return ["{q:5}", "RATE", "10", "60", "CONCURRENCY", "5"]


@call("ff.quota|admit")
def _(s):
    s.execution()
    return [s.admitted(s.execution()), s.execution()]


@call("ff.quota|release")
def _(s):
    eid = s.execution()
    return [s.admitted(eid), eid]


@call("ff.quota|get")
def _(s):
    return [s.admitted(s.execution())]


@call("ff.worker|register")
def _(s):
    return ["w", "wi", "NAMESPACE", "ns", "LANES", "2", "default", "other", "CAPS", "gpu", "TTL",
            "1000"]


@call("ff.worker|heartbeat")
def _(s):
    s.do("FF.WORKER", "REGISTER", "w", "wi", "NAMESPACE", "ns")
    return ["wi", "NAMESPACE", "ns"]


@call("ff.worker|dead")
def _(s):
    s.do("FF.WORKER", "REGISTER", "w", "wi", "NAMESPACE", "ns")
    return ["wi", "NAMESPACE", "ns"]


@call("ff.worker|list")
def _(s):
    s.do("FF.WORKER", "REGISTER", "w", "wi", "NAMESPACE", "ns")
    return ["NAMESPACE", "ns", "LANE", "default"]


@call("ff.secret|rotate")
def _(s):
    s.secret()
    return ["k2", "cd" * 32, "GRACE", "1000"]


@call("ff.secret|list")
def _(s):
    s.secret()
    return []
