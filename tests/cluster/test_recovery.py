# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What a cluster goes through: a daemon killed under load, a site that names its servers
in the DNS, and look-ups by real READs while the table changes."""

import json
import time

from . import krcore, programs
from .krcore import lookup, publish, setup
from .suite import check, limit, wait_until

SERVICES = range(700, 706)
LATE_SERVICE = 706
RECORDS = 80        # of rdma_reader: the permanent ones, which come first, and more
SHORT = {"lease_ms": 15000, "reconnect_max_ms": 1000}   # a guest may stand still for a while


def _names_found(machine, server, address, services):
    """How many of the services one server's table leads to."""
    return sum(lookup(machine, address, service, f"-S {server.spec.address}") is not None
               for service in services)


def _rows(text):
    """The rows of several JSON answers, one after the other."""
    decoder, rows, at = json.JSONDecoder(), [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        answer, at = decoder.raw_decode(text, at)
        rows += answer
    return rows


@limit(900)
def test_killed_daemon_loses_nothing(cluster):
    setup(cluster, node=SHORT)
    meta1, meta2, node1, node2 = (cluster.node(name)
                                  for name in ("meta1", "meta2", "node1", "node2"))
    for service in SERVICES:
        publish(node1, service, f"record-{service}", at=(meta1, meta2))
    looked_up = (f"krcore-metactl -j -t 60 resolve {node1.spec.address} service {SERVICES[0]} "
                 "count 40000 || echo failed")
    with node2.background(looked_up, limit=600) as process:
        time.sleep(5)
        meta1.run(f"systemctl kill -s KILL {krcore.UNIT}")
        killed = time.monotonic()
        publish(node1, LATE_SERVICE, "published-meanwhile")
        everything = [*SERVICES, LATE_SERVICE]
        wait_until(lambda: _names_found(node2, meta1, node1.spec.address, everything)
                   == len(everything), 90, "the restarted server has every record again")
        print(f"    killed daemon: restarted, attached to and complete after "
              f"{time.monotonic() - killed:.1f} s", flush=True)
        done = process.wait(600)
    check(_names_found(node2, meta2, node1.spec.address, SERVICES) == len(SERVICES),
          "the other server lost records")
    wait_until(lambda: _names_found(node2, meta2, node1.spec.address, [LATE_SERVICE]) == 1, 30,
               "the other server has what was published meanwhile")
    check("failed" not in done.out, repr(done))
    rows = _rows(done.out)
    hits, misses, errors = (sum(row[key] for row in rows) for key in ("hits", "misses", "errors"))
    check(hits and not misses and not errors,
          f"{hits} hits, {misses} misses, {errors} errors while a server was killed")


@limit(300)
def test_no_gap_for_who_attaches_to_a_restarted_server(cluster):
    settle_ms = 1000000
    setup(cluster, node=SHORT, metaserver={"settle_ms": settle_ms})
    meta1, meta2, node1, node2 = (cluster.node(name)
                                  for name in ("meta1", "meta2", "node1", "node2"))
    publish(node1, SERVICES[0], "record", at=(meta1, meta2))
    only_meta1 = f"-S {meta1.spec.address} resolve {node1.spec.address} service {SERVICES[0]}"
    cluster.cut("node1", "meta1")       # its publisher cannot come back to meta1
    try:
        meta1.run(f"systemctl restart {krcore.UNIT}", timeout=60)
        (status,) = krcore.metactl(meta1, "status")
        check(0 < status["settling_ms"] <= settle_ms, f"{status}")
        for _ in range(5):      # each a client that was never attached before
            row = lookup(node2, node1.spec.address, SERVICES[0])
            check(row and meta2.name in row["address"], f"{row}")
        refused = node2.run(f"krcore-metactl -j -t 30 {only_meta1}", check=False)
        (row,) = json.loads(refused.out)
        check(refused.status == 1 and row["settling"] and "was restarted" in refused.err,
              repr(refused))
        # settled, it says of the same miss that there is no such record
        krcore.write_config(meta1, metaserver={"settle_ms": 1000})
        meta1.run(f"systemctl restart {krcore.UNIT}", timeout=60)
        wait_until(lambda: krcore.metactl(meta1, "status")[0]["settling_ms"] == 0, 60,
                   "meta1 is settled")
        refused = node2.run(f"krcore-metactl -j -t 30 {only_meta1}", check=False)
        (row,) = json.loads(refused.out)
        check(refused.status == 1 and not row["settling"]
              and "was restarted" not in refused.err, repr(refused))
    finally:
        cluster.fabric.reset()
    wait_until(lambda: _names_found(node2, meta1, node1.spec.address, SERVICES[:1]) == 1, 60,
               "the publisher is back")


SRV = "_krcore._tcp.site.test"


def _names(machine, priority):
    """What the DNS says for the SRV name to lead to this MetaServer."""
    return (f"--srv-host={SRV},{machine.name}.site.test,18600,{priority}"
            f" --address=/{machine.name}.site.test/{machine.spec.address}")


@limit(300)
def test_servers_named_by_the_dns(cluster):
    setup(cluster, node=SHORT)
    node1, node2 = cluster.node("node1"), cluster.node("node2")
    with krcore.names(node1) as say:
        say(_names(cluster.node("meta1"), 20), _names(cluster.node("meta2"), 10))
        krcore.write_config(node1, node={"metaservers": f"srv:{SRV}", **SHORT})
        publish(node1, SERVICES[0], "by-name", at=cluster.nodes("metaserver"))
        check(_names_found(node2, cluster.node("meta1"), node1.spec.address, SERVICES[:1]) == 1,
              "the record is not at meta1")
        check(_names_found(node2, cluster.node("meta2"), node1.spec.address, SERVICES[:1]) == 1,
              "the record is not at meta2")
        rows = krcore.metactl(node1, "node show")
        order = [row["address"] for row in rows if row.get("priority") == 10]
        check(order and "meta2" in order[0], f"priorities of the DNS are not kept: {rows}")


@limit(300)
def test_a_srv_name_is_asked_again(cluster):
    """The DNS names another MetaServer from now on: a program that has published goes on there
    when the answer has expired, though the former one still serves."""
    setup(cluster, node=SHORT)
    meta1, meta2, node1 = (cluster.node(name) for name in ("meta1", "meta2", "node1"))
    with krcore.names(node1) as say:
        say(_names(meta1, 10))
        krcore.write_config(node1, node={"metaservers": f"srv:{SRV}", **SHORT})
        publish(node1, SERVICES[0], "moves", at=[meta1])
        check(not krcore.has_record(meta2, SERVICES[0]), "meta2 has it without being named")
        say(_names(meta2, 10))
        wait_until(lambda: krcore.has_record(meta2, SERVICES[0]), 90,
                   "the program goes on at the server that is named now")


@limit(300)
def test_a_server_that_moves_is_followed(cluster):
    """The name of a MetaServer leads to another address from now on: a program that has published
    goes on there, without being told."""
    setup(cluster, node=SHORT)
    meta1, meta2, node1, node2 = (cluster.node(name)
                                  for name in ("meta1", "meta2", "node1", "node2"))
    with krcore.names(node1) as say:
        say(f"--address=/ms.site.test/{meta1.spec.address}")
        krcore.write_config(node1, node={"metaservers": "ms.site.test", **SHORT})
        publish(node1, SERVICES[0], "moves", at=[meta1])
        check(not krcore.has_record(meta2, SERVICES[0]), "meta2 has it without being named")
        say(f"--address=/ms.site.test/{meta2.spec.address}")
        meta1.run(f"systemctl stop {krcore.UNIT}", timeout=60)
        wait_until(lambda: krcore.has_record(meta2, SERVICES[0]), 90,
                   "the program goes on at the other address")
        check(_names_found(node2, meta2, node1.spec.address, SERVICES[:1]) == 1,
              "the record is not found there")


@limit(420)
def test_reads_are_right_while_the_table_changes(cluster):
    setup(cluster)
    meta1, node1, node2 = (cluster.node(name) for name in ("meta1", "node1", "node2"))
    krcore.write_config(meta1, metaserver={"records_per_owner_max": 100000, "rate_max": 1000000})
    meta1.run(f"systemctl restart {krcore.UNIT}", timeout=60)
    words = f"--servers {meta1.spec.address} --gid {node1.spec.address} --keys 256"
    program = {machine.name: programs.install(machine, "tests/stress/rdma_reader")
               for machine in (node1, node2)}
    # longer than the reader: what is permanent is there until the writer has ended
    with node1.background(f"{program['node1']} write {words} --seconds 900",
                          limit=900) as writer:
        wait_until(lambda: krcore.metactl(meta1, "status")[0]["records"] >= RECORDS, 60,
                   "the table changes")
        with node2.background(f"{program['node2']} read {words} --seconds 30",
                              limit=150) as reader:
            seen = reader.wait(150)
        check(writer.poll() is None, "the writer has ended before its time")
        node1.run("pkill -TERM -x rdma_reader")
        wrote = writer.wait(150)
    for line in (wrote.out + seen.out).splitlines():
        print(f"    {line}", flush=True)
    check(wrote.status == 0, repr(wrote))
    check(seen.status == 0, repr(seen))
