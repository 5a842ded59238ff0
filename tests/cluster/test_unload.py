# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The module is removed at any moment: while its node comes up, behind programs that were
killed, with a MetaServer that is stopped or out of reach, among those who ask it for all it
knows, and with an initiator under recovery. Each time nothing of it is left: no record, no
object on the card, no word in the kernel log.
"""

import contextlib
import random
import time

from . import krcore, nodes
from .krcore import metactl, node_gone
from .nodes import AS_USER, objects, program, saying, serve, up
from .suite import check, limit, wait_until

SEED = 1
TIMES = 2               # each of MOMENTS; once on the debug kernel
LEASE_MS = 20000        # of records that nobody withdraws
OUT = "/run/krc-unload.out"
ASK_ALL = ("while :; do for what in 'node show' 'queue list' 'peer list' 'stats node'; do "
           "krcore-metactl -j $what; done; done >/dev/null 2>&1")
# a program that was killed may have the file open for a moment
REMOVE = ("pkill -KILL -x krc_ioctl; for i in $(seq 600); do "
          f"rmmod krcore 2>{OUT} && exit 0; grep -q 'in use' {OUT} || break; sleep 0.1; done; "
          f"cat {OUT}; exit 1")


# -- moments: what goes on when the block begins, and is over when it has ended ---


@contextlib.contextmanager
def _coming_up(cluster, _peer):
    node1 = cluster.node("node1")
    with node1.background("krcore-metactl node up", limit=60) as coming:
        yield
        coming.wait(60)


@contextlib.contextmanager
def _program_killed(cluster, peer):
    node1 = cluster.node("node1")
    with saying(node1, f"{AS_USER} {program(node1)} {peer} hold 100", "holding", OUT, 120):
        node1.run("pkill -KILL -x krc_ioctl")
        yield


@contextlib.contextmanager
def _server_stopped(cluster, _peer):
    meta1 = cluster.node("meta1")
    meta1.run(f"systemctl stop {krcore.UNIT}", timeout=60)
    try:
        yield
    finally:
        krcore.start(meta1)


@contextlib.contextmanager
def _server_cut_off(cluster, _peer):
    cluster.cut("node1", "meta1")
    try:
        yield
    finally:
        cluster.fabric.reset()


@contextlib.contextmanager
def _asked_for_all(cluster, _peer):
    with cluster.node("node1").background(ASK_ALL, limit=120):
        yield


def _recoveries(machine):
    (pool,) = [row for row in metactl(machine, "stats node") if row["type"] == "pool"]
    return pool["recoveries"]


@contextlib.contextmanager
def _recovery(cluster, peer):
    """A program asks a peer that has gone silent, again and again."""
    node1 = cluster.node("node1")
    cluster.cut("node1", "node2")
    try:
        with node1.background(f"{AS_USER} {program(node1)} {peer} silent 100", limit=120):
            wait_until(lambda: _recoveries(node1), 60, "an initiator is reset")
            yield
    finally:
        cluster.fabric.reset()


MOMENTS = (_coming_up, _program_killed, _server_stopped, _server_cut_off, _asked_for_all,
           _recovery)


# -- the test --------------------------------------------------------------------


def _has_record(server, machine):
    return any(row["gid"] == machine.spec.address for row in metactl(server, "record list"))


def _expired(server):
    """Records that ran out at a server: those that nobody withdrew."""
    (stats,) = metactl(server, "stats")
    return stats["expired_records_total"]


def _prepare(cluster, moment):
    """The module is there, and the node is published unless it is to come up in this moment."""
    node1 = cluster.node("node1")
    if moment is _coming_up:
        node1.run("modprobe krcore")
        return
    nodes.node_up(node1)
    for server in cluster.nodes("metaserver"):
        wait_until(lambda s=server: _has_record(s, node1), 60, f"{server.name} has the record")


def _one(cluster, peer, moment, pause):
    """Remove the module so long after a moment has begun."""
    node1 = cluster.node("node1")
    _prepare(cluster, moment)
    before = {server.name: _expired(server) for server in cluster.nodes("metaserver")}
    with moment(cluster, peer):
        time.sleep(pause)
        removed = node1.run(REMOVE, timeout=60, check=False)
        check(not removed.status, f"it can't be removed: {removed!r}")
    for server in cluster.nodes("metaserver"):
        wait_until(lambda s=server: not _has_record(s, node1), 2 * LEASE_MS // 1000,
                   f"{server.name} has no record any more")
        # one that is cut off can't be told it, and one that was stopped has begun to count anew
        if server.name != "meta1" or moment not in (_server_cut_off, _server_stopped):
            check(_expired(server) == before[server.name],
                  f"{server.name} was not told, but saw the lease run out")


@limit(900)
def test_module_is_removed_at_any_moment(cluster):
    drawn = random.Random(SEED)
    moments = list(MOMENTS) * (1 if cluster.kernel.name == "debug" else TIMES)
    drawn.shuffle(moments)
    with up(cluster, lease_ms=LEASE_MS) as (node1, node2), serve(node2) as peer:
        node1.run("krcore-metactl -j node show", check=False)  # see nodes.up()
        node_gone(node1)
        clean = objects(node1)
        for moment in moments:
            pause = drawn.uniform(0, 2)
            what = f"{moment.__name__.strip('_')}, removed after {pause:.1f} s"
            print(f"    {what}", flush=True)
            _one(cluster, peer, moment, pause)
            wait_until(lambda: objects(node1) == clean, 20,
                       f"{what}: the card has what it had without the module: {clean}")
            problems = node1.kernel_problems()
            check(not problems, f"{what}: kernel: {problems}")
