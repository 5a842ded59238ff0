# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The kernel's MetaServer client by itself: publishing, look-ups by READ, fail-over,
notifications, authentication, and its end in any state."""

import time

from . import krcore
from .krcore import lookup, metactl, publish, setup
from .probe import FOLDER, LEASE_MS, Probe
from .suite import check, limit, needs, wait_until

MINE = 700
OTHERS = 701


def _records(server):
    """(address, service) of all records of a server."""
    return [(row["gid"], row["service"]) for row in metactl(server, "record list")]


def _ready(probe, wanted, seconds=30):
    """Wait until the sessions have these states."""
    wait_until(lambda: probe.states() == wanted, seconds,
               f"sessions are {wanted}, not {probe.info()[0]}")


def _names(cluster):
    return (cluster.node(name) for name in ("meta1", "meta2", "node1", "node2"))


def _has(server, service):
    return any(row[1] == service for row in _records(server))


@limit(400)
def test_publishes_looks_up_and_forgets(cluster):
    key = krcore.new_key()
    setup(cluster, key=key)
    meta1, meta2, node1, node2 = _names(cluster)
    with Probe(node1) as probe:
        probe.up((meta1, 1), (meta2, 2), key=key)
        probe.do(f"publish {MINE} from-the-kernel", f"published {MINE}")
        _ready(probe, ["ready", "ready"])
        for server in (meta1, meta2):
            wait_until(lambda s=server: _has(s, MINE), 10, f"{server.name} lists the record")
        row = lookup(node2, node1.spec.address, MINE)
        check(row is not None, "node2 does not find the record")

        unit = publish(node2, OTHERS, "hello", at=(meta1, meta2))
        check(probe.lookup(node2, OTHERS) == "hello", f"{probe.result()}")
        check(probe.result()["reads"] == "1", f"{probe.result()}")
        check(probe.lookup(node2, OTHERS, cached=True) == "hello", "it is not in the cache")
        check(probe.outcome(f"lookup ::ffff:{node2.spec.address} 4242") ==
              "No such file or directory", f"{probe.result()}")
        sessions, _ = probe.info()  # a settling server's miss has the other one asked, too
        check(sessions[0]["lookups"] == "2" and sessions[0]["misses"] == "1" and
              sessions[1]["lookups"] == sessions[1]["misses"] and
              int(sessions[1]["misses"]) <= int(sessions[0]["misses"]), f"{sessions}")

        node2.run(f"systemctl stop {unit}")
        wait_until(lambda: probe.lookup(node2, OTHERS, cached=True) is None, 10,
                   "the cache forgets a record that is gone")
        check(probe.lookup(node2, OTHERS) is None, "a withdrawn record is found")

        probe.do(f"publish {MINE} again", f"published {MINE}")
        wait_until(lambda: probe.lookup(node1, MINE) == "again", 10, "the new value is found")
        probe.do("publish 702 short", "published 702", "withdraw 702")
        wait_until(lambda: not _has(meta1, 702) and not _has(meta2, 702), 10,
                   "the servers drop a withdrawn record")
        time.sleep(1.2 * LEASE_MS / 1000)   # it must have been renewed
        check(_has(meta1, MINE) and _has(meta2, MINE), "a living client's record is gone")
        probe.do("down")
    with Probe(node1) as probe:     # a lease that does not end meanwhile
        probe.up((meta1, 1), (meta2, 2), key=key, lease_ms=200000)
        probe.do(f"publish {MINE} longer", f"published {MINE}")
        _ready(probe, ["ready", "ready"])
        wait_until(lambda: _has(meta1, MINE) and _has(meta2, MINE), 10, "both list the record")
        probe.do("down")
        wait_until(lambda: not _has(meta1, MINE) and not _has(meta2, MINE), 10,
                   "the end has withdrawn it")


@limit(300)
def test_only_with_the_cluster_key(cluster):
    key = krcore.new_key()
    setup(cluster, key=key)
    meta1, _, node1, _ = _names(cluster)
    with Probe(node1) as probe:
        for wrong, reason in ((krcore.new_key(), "server has cluster key"),
                              (None, "demands a cluster key")):
            probe.up((meta1, 1), key=wrong, first=("noservers",))
            wait_until(lambda r=reason: r in probe.info()[0][0]["reason"], 20,
                       f"it says: {reason}, not {probe.info()[0]}")
            probe.do(f"publish {MINE} x")
            check("ready" not in probe.states() and not _has(meta1, MINE), f"{probe.info()}")
            check(probe.outcome(f"lookup ::ffff:{node1.spec.address} 1") ==
                  "Transport endpoint is not connected", f"{probe.result()}")
            probe.do("down")
    setup(cluster, key=None)
    with Probe(node1) as probe:
        probe.up((meta1, 1), key=key)
        wait_until(lambda: "this server has none" in probe.info()[0][0]["reason"], 20,
                   f"it refuses a server without key: {probe.info()[0]}")


@limit(400)
def test_a_server_killed_and_started_has_the_record_again(cluster):
    setup(cluster, key=krcore.new_key())
    meta1, meta2, node1, node2 = _names(cluster)
    key = node1.pull(krcore.KEY_FILE).decode().strip()
    with Probe(node1) as probe:
        probe.up((meta1, 1), (meta2, 2), key=key)
        probe.do(f"publish {MINE} stays", f"published {MINE}")
        publish(node2, OTHERS, "hello", at=(meta1, meta2))
        _ready(probe, ["ready", "ready"])
        before = probe.info()[0][0]["incarnation"]
        meta1.run(f"systemctl kill -s KILL {krcore.UNIT}; systemctl stop {krcore.UNIT}")
        check(probe.lookup(node2, OTHERS) == "hello", f"{probe.result()} {probe.info()}")
        wait_until(lambda: probe.states()[0] != "ready", 20, "the first session is lost")
        krcore.start(meta1)
        _ready(probe, ["ready", "ready"], 60)
        wait_until(lambda: _has(meta1, MINE), 20, "it is published again")
        session = probe.info()[0][0]
        check(session["attaches"] == "2" and session["incarnation"] != before, f"{session}")

        for server in (meta1, meta2):
            server.run(f"systemctl kill -s KILL {krcore.UNIT}; systemctl stop {krcore.UNIT}")
        wait_until(lambda: "ready" not in probe.states(), 20, "both sessions are lost")
        check(probe.outcome(f"lookup ::ffff:{node2.spec.address} {OTHERS}") ==
              "Transport endpoint is not connected", f"{probe.result()}")
        for server in (meta1, meta2):
            krcore.start(server)
        _ready(probe, ["ready", "ready"], 60)
        wait_until(lambda: _has(meta1, MINE) and _has(meta2, MINE), 20, "both have it again")


@limit(400)
def test_a_server_cut_off_is_left_and_found_again(cluster):
    setup(cluster)
    meta1, meta2, node1, node2 = _names(cluster)
    with Probe(node1) as probe:
        probe.up((meta1, 1), (meta2, 2))
        publish(node2, OTHERS, "hello", at=(meta1, meta2))
        _ready(probe, ["ready", "ready"])
        cluster.cut("node1", "meta1")
        # a look-up of the probe has ten seconds, of which one that waits for the dead server
        # to be given up has none left for the other
        check(probe.lookup(node2, OTHERS) == "hello", f"{probe.result()} {probe.info()}")
        wait_until(lambda: probe.states()[0] != "ready", 20, "the first session is lost")
        check(probe.lookup(node2, OTHERS) == "hello", f"{probe.result()}")
        cluster.fabric.reset()
        _ready(probe, ["ready", "ready"], 60)


@limit(400)
def test_many_look_ups_at_once_survive_a_restart(cluster):
    setup(cluster)
    meta1, meta2, node1, node2 = _names(cluster)
    publish(node2, OTHERS, "hello", at=(meta1, meta2))
    with Probe(node1) as probe:
        probe.up((meta1, 1), (meta2, 2), lease_ms=30000)
        _ready(probe, ["ready", "ready"])
        storm = f"storm 48 300 ::ffff:{node2.spec.address} {OTHERS}"
        with node1.background(f"echo '{storm}' > {FOLDER}/ctl", limit=200) as process:
            time.sleep(0.5)
            meta1.run(f"systemctl restart {krcore.UNIT}", timeout=60)
            check(process.wait(150).status == 0, "the storm did not end")
        result = probe.result()
        check(result["found"] == result["of"], f"{result} {probe.info()}")


@limit(300)
def test_a_new_list_of_servers(cluster):
    setup(cluster)
    meta1, meta2, node1, _ = _names(cluster)
    with Probe(node1) as probe:
        probe.up((meta1, 1))
        probe.do(f"publish {MINE} x", f"published {MINE}")
        probe.do(probe.server_line(meta2, 0), "reconfigure")
        _ready(probe, ["ready", "ready"])
        wait_until(lambda: _has(meta2, MINE), 10, "the new server is told")
        check(probe.info()[0][0]["attaches"] == "1", "the old session did not go on")
        probe.do("noservers", probe.server_line(meta2, 3), "reconfigure")
        _ready(probe, ["ready"])
        check(not _has(meta1, MINE) and _has(meta2, MINE), f"{_records(meta1)}")
        probe.do("lease 5000", "reconfigure")
        _ready(probe, ["ready"])
        wait_until(lambda: probe.info()[0][0]["lease_ms"] == "5000" and _has(meta2, MINE), 10,
                   "the new lease is asked for")
        probe.do("stop")
        check(not _has(meta2, MINE), "stop withdrew nothing")
        check(probe.outcome(f"publish {MINE} x") ==
              "Cannot send after transport endpoint shutdown", "publishing after the end")


@limit(900)
def test_its_end_in_any_state(cluster):
    setup(cluster)
    meta1, _, node1, _ = _names(cluster)
    with Probe(node1) as probe:
        count = 100 if node1.kernel().name == "debug" else 1000
        nobody = "10.77.0.99"
        probe.do("reset", probe.server_line(meta1, 1), probe.server_line(nobody, 2),
                 probe.server_line(meta1, 3).replace("18600", "18999"))
        index = probe.gid_index()
        probe.do(f"cycles {count} {probe.device()} 1 {index}", timeout=800)
        check(not _has(meta1, 999), "a client that ended left its record")
        for pause in range(20):
            probe.do(f"up {probe.device()} 1 {index}", f"publish {MINE} x")
            time.sleep(pause / 50)
            node1.run("rmmod krc_meta_probe", timeout=30)
            probe.load()
            probe.do("reset", probe.server_line(meta1, 1), probe.server_line(nobody, 2))
        left = node1.run("for kind in qp cq pd cm_id; do rdma resource show $kind; done | "
                         "grep -e krc_meta -e 'comm .rdma_cm.'; true").out
        check(not left, f"something is left: {left}")


@limit(300)
@needs("rxe")       # cards: module.card_taken_out
def test_the_device_goes_away_under_it(cluster):
    setup(cluster)
    meta1, _, node1, _ = _names(cluster)
    interface = node1.run("rdma link show rxe0/1 | sed 's/.*netdev //'").out.split()[0]
    with Probe(node1) as probe:
        probe.up((meta1, 1))
        probe.do(f"publish {MINE} x", f"published {MINE}")
        with node1.background("rdma link delete rxe0", limit=60) as process:
            wait_until(lambda: "device removed" in probe.info()[0][0]["reason"], 20,
                       f"the session has noticed: {probe.info()[0]}")
            began = time.monotonic()
            probe.do("down")
            check(time.monotonic() - began < 30, "the end waited for what is gone")
            check(process.wait(30).status == 0, "the device did not go")
        node1.run(f"rdma link add rxe0 type rxe netdev {interface}")
        wait_until(lambda: probe.outcome(f"up rxe0 1 {probe.gid_index()}") == "", 20, "it is back")
        _ready(probe, ["ready"])
