# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What ./run demo shows, on whatever card and kernel the cluster has; and, where the card
counts what crosses the network, that a look-up is one READ and nothing else."""

import re

from . import demo, krcore
from .nodes import reads_by_bytes
from .suite import check, limit, needs

SERVICE = 900
BUCKET = 256          # bytes of a READ that looks a record up
ATTACHING = 5         # READs that attach a server: root, directory, heartbeat, and two timed


def _clear(machine):
    machine.run("systemctl stop watch beat text echo handoff krcore-node krcore-metaserver.socket "
                "krcore-metaserver demo 2>/dev/null; systemctl reset-failed; "
                "rm -f /etc/modprobe.d/krcore*.conf", timeout=60)
    krcore.write_key(machine, None)


def _play(cluster, steps):
    cluster.each(_clear)
    try:
        return demo.play(cluster, steps, say=lambda _text: None,
                         node={"timeout_ms": krcore.LONG_TIMEOUT_MS, **cluster.nic.node})
    finally:
        cluster.each(_clear)


@limit(300)
def test_demo_runs_to_its_end(cluster):
    said = _play(cluster, demo.STEPS)
    check(cluster.nic.device() in said[0], said[0])
    check(re.search("event (re)?published", said[3]), said[3])
    check(re.search(r"hits: +100\n", said[4]), said[4])
    check(re.search(r"reads: +100\n", said[4]), said[4])
    check("meta2" in said[7] and b"hello".hex() in said[7], said[7])


def test_a_look_up_is_one_read(cluster):
    krcore.setup(cluster)
    publisher, reader = cluster.node("node1"), cluster.node("node2")
    krcore.publish(publisher, SERVICE, "counted", at=cluster.nodes("metaserver"))
    seen = []
    for count in (100, 300):
        before = reads_by_bytes(reader)
        # the other server is asked as well when a READ takes a quarter of the time-out
        row = krcore.lookup(reader, publisher.spec.address, SERVICE, f"count {count} -t 60")
        check(row and row["hits"] == row["reads"] == count, f"{row}")
        after = reads_by_bytes(reader)
        seen.append({size: after[size] - before.get(size, 0) for size in after
                     if after[size] != before.get(size, 0)})
    # each server is attached while look-ups run already, or after they have ended
    attaching = [sum(sizes.values()) - sizes.get(BUCKET, 0) for sizes in seen]
    check([sizes.get(BUCKET) for sizes in seen] == [100, 300], f"READs of look-ups: {seen}")
    check(max(attaching) <= ATTACHING * len(cluster.nodes("metaserver")),
          f"READs of attaching: {seen}")


def _queues(said):
    for first in (6, 12):
        check("hello from node1" in said[first], said[first])
    check("(0 READs of a MetaServer)" in said[7], f"the second time it is known: {said[7]}")
    check("published" in said[8], said[8])
    check(said[9] == "one\ntwo\nthree", said[9])
    check("node1 is there" in said[10], said[10])
    check("node1 is gone" in said[14], said[14])
    check(said[16].count("node1 is there") == 2 and "hello from node1, again" in said[16],
          said[16])


@limit(600)
@needs("dc")
def test_demo_of_queues_runs_to_its_end(cluster):
    _queues(_play(cluster, demo.QUEUE_STEPS))


@limit(600)
@needs("rxe")
def test_queues_are_shown_on_lanes(cluster):
    """The same story; the nodes have queue pairs for lanes, and say so."""
    said = _play(cluster, demo.LANE_STEPS)
    check("verbs-rc" in said[3], f"the module's provider: {said[3]}")
    check("kind" in said[4] and "lane" in said[4], f"the record of a port with lanes: {said[4]}")
    _queues(said)
    check("never met" in demo.LANE_STEPS[demo.MEETS][1], "LANES_TEXT names this step")


@limit(400)
def test_demo_of_handoff_runs_to_its_end(cluster):
    said = _play(cluster, demo.HANDOFF_STEPS if cluster.nic.dc else demo.LANE_HANDOFF_STEPS)
    check("node2 took 9216 bytes from node1" in said[4], said[4])
    check(said[5].count("node2 took") == 4, said[5])
    check(said[6].count(" took 1048576 bytes ") == 4, said[6])
    check(said[7].count("node2 took 65536 bytes from node1") == 8, said[7])
    check("the function has ended" in said[8] and "starting it again" in said[8]
          and "node2 took 65536 bytes" in said[8], said[8])
    check("/krcore-handoff-" not in said[9].splitlines()[-1]
          and re.search(r"regions: +0\n", said[9] + "\n"), said[9])
