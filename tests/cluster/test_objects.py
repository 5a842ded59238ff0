# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What krcore has on the card: all of it is seen there, queues add nothing, and nothing is left.

That nothing is left when the module is gone is checked by nodes.up(), behind every test.
"""

from . import krcore
from .krcore import metactl
from .nodes import AS_USER, client, objects, program, programs_hold, saying, serve, up
from .suite import check, limit, wait_until

QUEUES = 1000
OUT = "/run/krc-crowd.out"
APART = 4 + 2 + 2   # initiators for peers that are unproven, that are isolated, and for messages
SPARE = 4       # queue pairs that wait to become lanes
LANES = 4       # at most, of two ports


@limit(300)
def test_what_it_makes_on_the_card(cluster):
    """All of it is seen on the card, and is gone when the node is down."""
    with up(cluster) as (node1, _):
        krcore.wait_ready(node1)
        (pool,) = [row for row in metactl(node1, "stats node") if row["type"] == "pool"]
        there = objects(node1)
        node1.run("krcore-metactl node down", timeout=60)
        down = objects(node1)
        made = {kind: there[kind] - down[kind] for kind in there}
        print(f"    {made}", flush=True)
        servers = len(cluster.nodes("metaserver"))      # a connection to each
        if cluster.nic.dc:      # a receive queue of each port is empty, one is that of messages
            check(made["QP"] == pool["initiators"] + APART + servers, f"{made}")
            check(made["DCT"] == 1 and made["RMP"] == 2 and made["CQ"] and made["mkey"], f"{made}")
        else:       # that of hand-shakes, that which registers keys, those that wait
            check(made["qp"] == 2 + SPARE + servers, f"{made}")
            check(made["srq"] == 1 and made["cq"] and made["mr"], f"{made}")


def _but_lanes(machine, before):
    """What is on the card, without lanes that have come or gone: those to one peer at most."""
    there = objects(machine)
    if not machine.nic.dc and abs(there["qp"] - before["qp"]) <= LANES:
        there["qp"] = before["qp"]
    return there


@limit(300)
def test_queues_take_nothing_of_it(cluster):
    """A thousand connected queues share what there was before the first."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        krcore.wait_ready(node1)
        worked = client(node1, f"{peer} loop 1")
        check(not worked.status, repr(worked))
        wait_until(lambda: not programs_hold(node1), 30, "programs that have ended hold nothing")
        before = objects(node1)
        with saying(node1, f"{AS_USER} {program(node1)} {peer} crowd {QUEUES}", "done=", OUT,
                    200) as said:
            check(said.startswith(f"done={QUEUES} refused=0 failed=0 "), said)
            ready = [row for row in metactl(node1, "queue list") if row["state"] == "ready"]
            check(len(ready) == QUEUES, f"{len(ready)} queues")
            # the region of the program is a key; a MetaServer may just be attached anew
            key = "mkey" if cluster.nic.dc else "mr"
            wait_until(lambda: _but_lanes(node1, before) == {**before, key: before[key] + 1}, 30,
                       f"one key more than {before}")
            node1.run("pkill -KILL -x krc_ioctl; true")
        wait_until(lambda: _but_lanes(node1, before) == before, 30, f"all is given back: {before}")
