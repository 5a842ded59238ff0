# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What tenants of a node may take, and what a bad one is to a good one beside it: limits of
users, of cgroups, of RLIMIT_MEMLOCK; bad references, floods, deaths, silent peers.

Times of emulated guests say nothing, so turns are counted. A good tenant has no error and no
wrong byte; that it gets on is judged by what may stand before each of its requests, and by how
fast that was done in the same run.
"""

import contextlib
import re

from . import trace
from .krcore import metactl, node_gone
from .nodes import (AS_USER, as_user, card_counters, client, counted, held, node_up, program,
                    publish_silent, saying, serve, tap, up)
from .suite import check, limit, wait_until

NEEDS = "dc"
GROUP = "/sys/fs/cgroup/krcore-test"
EDQUOT = -122


# -- limits ----------------------------------------------------------------------


def _forget_group(machine, group):
    machine.run(f"echo 'krcore hca_handle=max hca_object=max' >{group}/rdma.max; rmdir {group}",
                check=False)


def _used(machine, group):
    """What rdma.current says that a cgroup has of krcore."""
    said = machine.run(f"sed -n 's/^krcore //p' {group}/rdma.current").out.split()
    return {key: int(value) for key, value in (pair.split("=") for pair in said)}


@limit(300)
def test_limits_of_a_user_and_of_a_cgroup(cluster):
    with up(cluster, queues_per_user=9, mrs_per_user=7) as (node1, _):
        before = held(node1)
        for bits in (64, 32):
            took = counted(client(node1, "hoard", bits=bits))
            check(took == {"contexts": 9, "queues": 9, "regions": 7, "context_error": EDQUOT,
                           "queue_error": EDQUOT, "region_error": EDQUOT}, f"{took}")
            wait_until(lambda: held(node1) == before, 20, f"all is given back: {before}")
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
            small_bytes, small = used(16)
            large_bytes, large = used(65536)
            bytes_more, more = large_bytes - small_bytes, large - small
            check(bytes_more >= 1 << 20 and 0.8 * bytes_more < more < 1.5 * bytes_more,
                  f"a ring larger by {bytes_more} bytes was charged with {more}")
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
                tap(client(node1, f"{peer} requests 5", bits=bits), 11)
        wait_until(lambda: held(node1) == before, 30, f"all is given back: {before}")


@limit(300)
def test_pinned_pages_stay_charged(cluster):
    """Whoever registers and ends, again and again, is bounded by his limit all the same."""
    with up(cluster, names=("node1",), mrs_per_user=8) as (node1,):
        tap(client(node1, "charge 8"), least=2)


# -- shares ----------------------------------------------------------------------


@limit(300)
def test_large_and_small_requests_take_turns(cluster):
    """On a shared initiator queues with large requests waiting and one with small ones have
    turns of the same cost: by the order of completions, not by time."""
    with up(cluster, pool_initiators=1) as (node1, node2), serve(node2) as peer:
        result = client(node1, f"{peer} share", timeout=200)
        tap(result, 3)
        print("   ", *(line.removeprefix("# ") for line in result.out.splitlines()
                       if line.startswith("# ")), flush=True)


# -- a bad tenant beside good ones -----------------------------------------------


BAD_OUT, BAD_END = "/run/krc-bad.out", "/run/krc-bad.end"
DEATHS = 100        # more than come to pass while a good tenant is looked at
DEATH = f"""n=0; while [ $n -lt {DEATHS} ] && [ ! -e {BAD_END} ]; do
    : >{BAD_OUT}.one
    %s >{BAD_OUT}.one & p=$!
    t=0; until grep -q holding {BAD_OUT}.one || [ $((t += 1)) -gt 100 ]; do sleep 0.1; done
    sleep 0.4; kill -KILL $p; wait $p; status=$?
    n=$((n + 1)); echo "killed=$n status=$status $(cat {BAD_OUT}.one)" >{BAD_OUT}
done"""


FLOOD = 32          # large requests of the bad one that are under way at any time
BAD_SECONDS = 25
# For so long who has just woken up may wait for a processor that others have: what Linux lets
# them have it for (24 ms, with any number of processors).
SLICE_SECONDS = 0.024


def _floor(alone, ahead_seconds):
    """Requests a second of a good tenant that does one after the other, if so much stands
    before each of them that was not there when it was alone; half of that, since the machine
    has other things to do, and not always the same."""
    return 0.5 / (1 / alone + ahead_seconds)


def _beside(machine, peer, command):
    """A good tenant, twice, while a bad one runs in the background until it is told to end.
    Returns requests a second of each."""
    machine.run(f"rm -f {BAD_END} {BAD_OUT}; touch {BAD_OUT}")
    with machine.background(command, limit=200) as bad:
        wait_until(lambda: machine.run("pgrep -x krc_ioctl", check=False).out, 20, "it has begun")
        good = [counted(client(machine, f"{peer} loop 8")) for _ in range(2)]
        machine.run(f"touch {BAD_END}")
        bad.wait(100)
    for seen in good:
        check(seen["done"] and not seen["refused"] + seen["failed"] + seen["wrong"], f"{seen}")
    return [seen["done"] / 8 for seen in good]


@contextlib.contextmanager
def _cards_refuse_nothing(here, there):
    refused, failed = card_counters(there)["naks_error"], card_counters(here)["completions_error"]
    yield
    check(card_counters(there)["naks_error"] == refused, "the peer's card refused something")
    check(card_counters(here)["completions_error"] == failed, "a request failed on the card")


@limit(500)
def test_bad_tenant_beside_good_ones(cluster):
    """Bad references, a flood of large requests, and death again and again. Of a bad reference
    nothing comes to the hardware, so it can cost no more than a processor; of the others all
    requests may stand before each of the good one's, and not twice."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        before = held(node1)
        alone = counted(client(node1, f"{peer} loop 8"))["done"] / 8
        rates, floors = {}, {}
        with _cards_refuse_nothing(node1, node2):
            rates["bad references"] = _beside(node1, peer, f"{AS_USER} {program(node1)} {peer} "
                                              f"hostile {BAD_SECONDS} >{BAD_OUT}")
            bad = counted(node1.run(f"cat {BAD_OUT}"))
            check(bad["refused"] and not bad["done"] + bad["failed"] + bad["wrong"], f"{bad}")
            rates["a flood"] = _beside(node1, peer, f"{AS_USER} {program(node1)} {peer} "
                                       f"hold {BAD_SECONDS} >{BAD_OUT}")
            flood = counted(node1.run(f"cat {BAD_OUT}"))
            check(flood["done"] and not flood["failed"], f"{flood}")
            rates["deaths"] = _beside(node1, peer,
                                      DEATH % f"{AS_USER} {program(node1)} {peer} hold 100")
        said = node1.run(f"cat {BAD_OUT}").out
        check("killed=" in said and "status=137 holding" in said and "killed=1 " not in said, said)
        wait_until(lambda: held(node1) == before, 30, f"all is given back: {before}")
        floors["bad references"] = _floor(alone, SLICE_SECONDS)
        floors["a flood"] = _floor(alone, SLICE_SECONDS + FLOOD * BAD_SECONDS / flood["done"])
        floors["deaths"] = floors["a flood"]
        slowed = ", ".join(f"{both[0]:.0f} and {both[1]:.0f} beside {kind} (at least "
                           f"{floors[kind]:.0f})" for kind, both in rates.items())
        print(f"    good tenant: {alone:.0f} requests/s alone, {slowed}; {said.split()[0]} "
              "(emulated)", flush=True)
        check(all(min(both) >= floors[kind] for kind, both in rates.items()), slowed)


DEAD_SERVICE = 4711
PROBATION = 3   # initiators for peers that are new; behind them is that of quarantine


@limit(400)
def test_who_asks_a_silent_peer_is_in_quarantine(cluster):
    """One tenant asks a peer that is published and dead, again and again: no initiator that
    others share stands still for it, not even the first time. And what the node knew of the
    peer is not believed any more: each time that it was asked in vain, a MetaServer is asked
    again."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        (shared,) = [row["initiators"] for row in metactl(node1, "stats node")
                     if row["type"] == "pool"]
        publish_silent(node2, DEAD_SERVICE)
        asks = f"{node2.spec.address} {DEAD_SERVICE} {' '.join(peer.split()[2:])} silent 70"
        with (trace.recording(node1, "krc_recovery_begin", "krc_connect") as recorded,
              node1.background(f"{AS_USER} {program(node1)} {asks} >/run/silent.out 2>&1",
                               limit=200) as bad):
            good = [counted(client(node1, f"{peer} loop 8")) for _ in range(3)]
            bad.wait(120)
            events = recorded()
        said = node1.run("cat /run/silent.out; echo").out
        resets = [int(re.match(r"\S+/1 initiator=(\d+) ", words)[1]) - shared
                  for name, words in events if name == "krc_recovery_begin"]
        connects = "\n".join(words for name, words in events if name == "krc_connect")
        reads = re.findall(rf" service={DEAD_SERVICE} reads=(\d+) err=0$", connects, re.M)
        for counts in good:
            check(counts["done"] and
                  not counts["refused"] + counts["failed"] + counts["wrong"], f"{counts}")
        check("done=0 " in said and "wrong=0 " in said, said)
        check(resets.count(PROBATION) >= 2 and len(resets) - resets.count(PROBATION) == 1
              and min(resets) >= 0,
              f"counted from the first that is not shared, reset were {resets}")
        asked = len(reads) - reads.count("0")
        check(asked >= len(resets) and reads[0] != "0",
              f"a MetaServer was asked {asked} times; resets: {len(resets)}")
        print(f"    good tenant: {sum(c['done'] for c in good) / 24:.0f} requests/s beside one "
              f"that asks a silent peer; {len(resets)} resets, all of "
              "them apart (emulated)", flush=True)
