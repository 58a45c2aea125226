"""Calls of wire functions, with the keys that a client of the reference would pass."""


def tag_of(eid):
    return eid[:eid.index("}") + 1]


def execution(eid, suffix):
    return "ff:exec:%s:%s:%s" % (tag_of(eid), eid, suffix)


def index(eid, suffix):
    return "ff:idx:%s:%s" % (tag_of(eid), suffix)


def lane_index(eid, lane, suffix):
    return index(eid, "lane:%s:%s" % (lane, suffix))


def send(client, function, keys, arguments):
    """By FF.CALL, unless the client has another way."""
    way = getattr(client, "way", "FF.CALL")
    return client(way, function, len(keys), *keys, *arguments)


def call(client, function, keys, arguments):
    """True when the function did not refuse."""
    reply = send(client, function, keys, arguments)
    return isinstance(reply, list) and reply[0] == 1


def create(client, eid, lane, priority):
    keys = [execution(eid, suffix) for suffix in ("core", "payload", "policy", "tags")]
    keys += [lane_index(eid, lane, "eligible"), "ff:noop:" + tag_of(eid),
             index(eid, "execution_deadline"), index(eid, "all_executions")]
    return call(client, "ff_create_execution", keys,
                [eid, "default", lane, "wire", priority, "soak", "", "payload", "", "", "{}", "",
                 eid[4:eid.index("}")]])


def renew(client, held, lease_ms):
    eid = held["execution_id"]
    keys = [execution(eid, suffix) for suffix in ("core", "lease:current", "lease:history")]
    return call(client, "ff_renew_lease", keys + [index(eid, "lease_expiry")],
                [eid, held["attempt_index"], held["attempt_id"], held["lease_id"],
                 held["lease_epoch"], lease_ms, 5000])


def complete(client, held, lane, instance):
    eid, attempt = held["execution_id"], held["attempt_index"]
    tag = tag_of(eid)
    keys = [execution(eid, "core"), "ff:attempt:%s:%s:%s" % (tag, eid, attempt),
            index(eid, "lease_expiry"), index(eid, "worker:%s:leases" % instance),
            lane_index(eid, lane, "terminal"), execution(eid, "lease:current"),
            execution(eid, "lease:history"), lane_index(eid, lane, "active"),
            "ff:stream:%s:%s:%s:meta" % (tag, eid, attempt), execution(eid, "result"),
            index(eid, "attempt_timeout"), index(eid, "execution_deadline")]
    return call(client, "ff_complete_execution", keys,
                [eid, held["lease_id"], held["lease_epoch"], held["attempt_id"], "done"])


def grant_and_claim(client, eid, lane, worker, instance, lease_id, attempt_id, lease_ms):
    """What the reference's scheduler and worker do once they have picked an execution."""
    granted = call(client, "ff_issue_claim_grant",
                   [execution(eid, "core"), execution(eid, "claim_grant"),
                    lane_index(eid, lane, "eligible")],
                   [eid, worker, instance, lane, "", 1000, "", "", ""])
    if not granted:
        return None
    attempt = "ff:attempt:%s:%s:0" % (tag_of(eid), eid)
    keys = [execution(eid, "core"), execution(eid, "claim_grant"),
            lane_index(eid, lane, "eligible"), index(eid, "lease_expiry"),
            index(eid, "worker:%s:leases" % instance), attempt, attempt + ":usage",
            attempt + ":policy", execution(eid, "attempts"), execution(eid, "lease:current"),
            execution(eid, "lease:history"), lane_index(eid, lane, "active"),
            index(eid, "attempt_timeout"), index(eid, "execution_deadline")]
    reply = send(client, "ff_claim_execution", keys,
                 [eid, worker, instance, lane, "", lease_id, lease_ms, lease_ms // 3, attempt_id,
                  "{}", "", ""])
    return reply if isinstance(reply, list) and reply[0] == 1 else None
