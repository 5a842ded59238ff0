# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore.ko on a network card without DC: requests and messages by lanes (proto/krp_lane.h).

The card is soft RoCE of the stock kernel. Programs are those of the module's other tests; what
they say is checked byte by byte in them (tests/module).
"""

import contextlib

from . import krcore
from .nodes import ALL_PROGRAMS, NODE, client, node_up, program, serve, tap
from .suite import check, limit, wait_until

NEEDS = "rxe"
OPTIONS = "/etc/modprobe.d/krcore-lanes.conf"


def _held(machine):
    """What the kernel counts of RDMA objects, and the memory that is pinned for them."""
    script = ("rdma resource show | sed 's/^[0-9]*: //'; "
              "awk '/nr_foll_pin_acquired/ {a=$2} /nr_foll_pin_released/ {r=$2} "
              "END {print \"pinned\", a - r}' /proc/vmstat")
    return machine.run(script).out


@contextlib.contextmanager
def up(cluster, names=("node1", "node2"), **node):
    """MetaServers serve, and these guests make lanes and are published; afterwards the module is
    gone, and nothing of it is left on the card."""
    machines = [cluster.node(name) for name in names]
    for machine in machines:
        krcore.node_gone(machine)
        machine.run(f"echo options krcore lanes=1 >{OPTIONS}")
    krcore.setup(cluster, node={**NODE, **node})
    before = [_held(machine) for machine in machines]
    try:
        for machine in machines:
            node_up(machine)
        for machine in machines:
            krcore.wait_ready(machine)
        yield machines
    finally:
        for machine in machines:
            if not machine.alive():
                continue
            machine.run(f"pkill -KILL -x '{ALL_PROGRAMS}'; sleep 1; true")
            krcore.node_gone(machine)
            machine.run(f"rm -f {OPTIONS}")
            check(machine.run("test ! -d /sys/module/krcore", check=False).status == 0,
                  f"{machine.name}: the module could not be removed")
    for machine, had in zip(machines, before):
        wait_until(lambda m=machine, h=had: _held(m) == h, 20,
                   f"{machine.name}: the card has what it had without the module: {had}")


@limit(400)
def test_port_without_dc_is_published(cluster):
    with up(cluster) as (node1, node2):
        rows = krcore.metactl(cluster.node("meta1"), "record list")
        kinds = {row["gid"]: row["kind"] for row in rows if row["service"] == 0}
        check(sorted(kinds.values()) == ["lane", "lane"], f"{rows}")
        check("verbs-rc" in node1.run("krcore-metactl -j node show").out, "its provider is shown")


@limit(400)
def test_traffic_is_right(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        tap(client(node1, f"{peer} traffic", 300), 60)
