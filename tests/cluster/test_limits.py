# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What users of a node may take: limits of users, of cgroups, of RLIMIT_MEMLOCK. What is refused
can be had when something was given back."""

import signal

from .kernel_log import OOM
from .krcore import node_gone
from .nodes import (AS_USER, as_user, client, counted, finish, given_back, held, node_up, pairs,
                    program, saying, serve, tap, up, working)
from .suite import check, limit, wait_until

GROUP = "/sys/fs/cgroup/krcore-test"
EDQUOT = -122
ATTEMPTS = 4    # each processor holds up to 256 KiB of a cgroup's memory in advance, or none


def _forget_group(machine, group):
    machine.run(f"echo 'krcore hca_handle=max hca_object=max' >{group}/rdma.max; rmdir {group}",
                check=False)


def _used(machine, group):
    """What rdma.current says that a cgroup has of krcore."""
    return pairs(machine.run(f"sed -n 's/^krcore //p' {group}/rdma.current").out)


@limit(300)
def test_limits_of_a_user_and_of_a_cgroup(cluster):
    with up(cluster, queues_per_user=9, mrs_per_user=7) as (node1, _):
        before = held(node1)
        for bits in (64, 32):
            took = counted(client(node1, "hoard", bits=bits))
            check(took == {"contexts": 9, "queues": 9, "regions": 7, "context_error": EDQUOT,
                           "queue_error": EDQUOT, "region_error": EDQUOT}, f"{took}")
            given_back(node1, before, 20)
        other = node1.run(f"{program(node1)} hoard & {program(node1)} ports; "
                          f"{AS_USER} {program(node1)} hoard; wait").out
        check(other.count("queues=9 ") == 2, f"users are counted apart: {other}")

        node1.run(f"echo +rdma >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p {GROUP}; "
                  f"echo 'krcore hca_handle=2 hca_object=5' >{GROUP}/rdma.max")
        try:
            with saying(node1, f"echo $$ >{GROUP}/cgroup.procs; exec {AS_USER} {program(node1)} "
                        "hoard 100", "contexts=", "/run/krc-hoard.out", 100) as said:
                check(said == "contexts=2 context_error=-122 queues=5 queue_error=-122 regions=0 "
                      "region_error=-122\n", said)
                used = _used(node1, GROUP)
                check(used == {"hca_handle": 2, "hca_object": 5}, f"rdma.current: {used}")
                node1.run("pkill -KILL -x krc_ioctl; true")
            wait_until(lambda: not any(_used(node1, GROUP).values()), 20,
                       "the cgroup has nothing left")
        finally:
            _forget_group(node1, GROUP)


@limit(300)
def test_limits_of_a_cgroup_outlive_the_module(cluster):
    """Loaded again it is the same device in rdma.max, also if a cgroup left a limit there."""
    place = "/sys/devices/platform/krcore_rdmacg"
    with up(cluster) as (node1, _):
        gone = "/sys/fs/cgroup/krcore-gone"
        node1.run("echo +rdma >/sys/fs/cgroup/cgroup.subtree_control; "
                  f"mkdir -p {GROUP} {gone}; for g in {GROUP} {gone}; do "
                  "echo 'krcore hca_handle=3 hca_object=4' >$g/rdma.max || exit; done; "
                  f"rmdir {gone}")
        try:
            for _turn in range(2):
                node_gone(node1)
                node1.run(f"test -d {place}")
                node_up(node1)
                node1.run(f"test ! -e {place}")
                said = node1.run(f"cat {GROUP}/rdma.max").out
                check(said.count("krcore ") == 1 and "krcore hca_handle=3 hca_object=4" in said,
                      said)
                took = counted(node1.run(f"echo $$ >{GROUP}/cgroup.procs; {AS_USER} "
                                         f"{program(node1)} hoard"))
                check(took["contexts"] == 3 and took["queues"] == 4, f"{took}")
        finally:
            _forget_group(node1, GROUP)


@limit(300)
def test_memory_of_a_ring_is_the_cgroups(cluster):
    """What a program has the kernel hold for it is charged to its cgroup."""
    with up(cluster) as (node1, _):
        out = "/run/krc-ring.out"
        node1.run(f"echo +memory >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p {GROUP}")

        def used(entries):
            with saying(node1, f"echo $$ >{GROUP}/cgroup.procs; exec {AS_USER} "
                        f"{program(node1)} ring {entries} 100", "bytes=", out, 100) as said:
                charged = int(node1.run(f"cat {GROUP}/memory.current").out)
                node1.run("pkill -KILL -x krc_ioctl; true")
            return int(said.removeprefix("bytes=")), charged

        try:
            used(16)  # what the program itself brings into memory
            seen = []
            for _ in range(ATTEMPTS):
                small_bytes, small = used(16)
                large_bytes, large = used(65536)
                bytes_more, more = large_bytes - small_bytes, large - small
                seen.append(more)
                if 0.8 * bytes_more < more < 1.5 * bytes_more:
                    break
            else:
                check(False, f"a ring larger by {bytes_more} bytes was charged with {seen}")
            check(bytes_more >= 1 << 20, f"{bytes_more} bytes are too few to be seen")
            wait_until(lambda: int(node1.run(f"cat {GROUP}/memory.current").out)
                       < large - bytes_more // 2, 20, "it is given back")
        finally:
            node1.run(f"rmdir {GROUP}", check=False)


@limit(300)
def test_limits_of_memory_and_of_requests(cluster):
    """What is refused can be had when something was given back."""
    with up(cluster, requests_per_user=5) as (node1, node2):
        before = held(node1)
        for bits in (64, 32):
            tap(node1.run(f"{as_user(64 << 10)} {program(node1, bits)} memlock", check=False), 11)
        with serve(node2) as peer:
            for bits in (64, 32):
                tap(client(node1, f"{peer} requests 5", bits=bits), 17)
        given_back(node1, before, 30)


@limit(300)
def test_pinned_pages_stay_charged(cluster):
    """A user whose programs register and end, again and again, is bounded all the same."""
    with up(cluster, names=("node1",), mrs_per_user=8) as (node1,):
        tap(client(node1, "charge 8"), least=2)


@limit(300)
def test_memory_max_holds_for_regions(cluster):
    """Whose regions are larger than what its cgroup may have ends, alone, and leaves nothing: its
    pages are pinned, but they are its cgroup's as all others are."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        before = held(node1)
        node1.run("echo +memory >/sys/fs/cgroup/cgroup.subtree_control; "
                  f"mkdir -p {GROUP}; echo 24M >{GROUP}/memory.max")
        try:
            with node1.background(f"{AS_USER} {program(node1)} {peer} loop 60 >/run/krc-loop.out",
                                  limit=100):
                working(node1, 1, completed=1)
                node1.log.pardon(OOM)
                greedy = (f"echo $$ >{GROUP}/cgroup.procs; export KRC_SERVE_MIB={{}}; "
                          f"{as_user(1 << 30)} {program(node1)} serve 0")
                check(node1.run(greedy.format(4), check=False).status == 0, "8 MiB fit")
                killed = node1.run(greedy.format(32), check=False)
                check(killed.status == -signal.SIGKILL, f"64 MiB do not: {killed!r}")
                events = node1.run(f"cat {GROUP}/memory.events").out.splitlines()
                check("oom_kill 1" in events, f"{events}")
                finish(node1, "loop 60")
                wait_until(lambda: node1.run("cat /run/krc-loop.out").out, 30, "it ends")
            counts = counted(node1.run("cat /run/krc-loop.out"))
            check(counts["done"] and not counts["failed"] and not counts["wrong"],
                  f"another program: {counts}")
            given_back(node1, before, 30)
        finally:
            node1.run(f"rmdir {GROUP}", check=False)
