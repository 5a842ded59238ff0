# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What krcore has on the card: all of it is seen there, queues add nothing, and nothing is left.

That nothing is left when the module is gone is checked by nodes.up(), behind every test.
"""

from . import krcore
from .krcore import metactl
from .nodes import AS_USER, client, objects, program, saying, serve, up
from .suite import check, limit, wait_until

QUEUES = 1000
OUT = "/run/krc-crowd.out"
APART = 4       # initiators that are not shared


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
        # initiators, shared and apart for peers unproven; a connection to each MetaServer
        servers = len(cluster.nodes("metaserver"))
        check(made["QP"] == pool["initiators"] + APART + servers, f"{made}")
        check(made["DCT"] == 1 and made["RMP"] == 1 and made["CQ"] and made["mkey"], f"{made}")


@limit(300)
def test_queues_take_nothing_of_it(cluster):
    """A thousand connected queues share what there was before the first."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        krcore.wait_ready(node1)
        worked = client(node1, f"{peer} loop 1")
        check(not worked.status, repr(worked))
        before = objects(node1)
        with saying(node1, f"{AS_USER} {program(node1)} {peer} crowd {QUEUES}", "done=", OUT,
                    200) as said:
            check(said.startswith(f"done={QUEUES} refused=0 failed=0 "), said)
            ready = [row for row in metactl(node1, "queue list") if row["state"] == "ready"]
            check(len(ready) == QUEUES, f"{len(ready)} queues")
            # the region of the program is a key; a MetaServer may just be attached anew
            wait_until(lambda: objects(node1) == {**before, "mkey": before["mkey"] + 1}, 30,
                       f"one key more than {before}")
            node1.run("pkill -KILL -x krc_ioctl; true")
        wait_until(lambda: objects(node1) == before, 30, f"all is given back: {before}")
