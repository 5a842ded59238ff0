# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Bad programs beside a good one on a node: what strangers share is partitioned, so what one
of them does, or what becomes of its peers, is not the other's trouble.

The good program is judged against itself on the same node when it is alone. Times of emulated
guests say nothing but that.
"""

import contextlib
import re
import statistics
import time

from . import krcore, nodes, programs, trace
from .nodes import AS_USER, as_user, client, counted, program, saying, serve, up
from .probe import FOLDER as PROBE_FOLDER, Probe
from .suite import check, limit, wait_until


# -- faults of others --------------------------------------------------------------

UNHEARD_SECONDS = 7     # longer than all retries, and shorter than those of two requests
UNHEARD_TIMES = 5       # at least, and until requests have failed by that
UNHEARD_MOST = 20
UNDER_WAY_US = 40_000   # shorter than a lease
PRODUCE_SECONDS = CONSUME_SECONDS = 900     # they are told when it is over
PRODUCE_QUEUES = 16
SEEN_SECONDS = 40       # in which the consumer has looked at all that there is


@limit(900)
def test_a_write_is_done_once_or_reported(cluster):
    """Buffers are handed over by WRITEs, data and then a flag, to a peer that can be reached
    but not heard for a while: its answers are lost, so the request that waits longest fails,
    and what other programs had behind it to the same peer has been done, though nobody said
    so. Of no hand-over does a second one come, when the buffer is the consumer's own; and
    what is reported is never done later, so that it can be asked for again."""
    with up(cluster) as (node1, node2):
        consume = f"{AS_USER} {program(node2)} consume {CONSUME_SECONDS}"
        out = "/run/krc-consume.out"
        with saying(node2, consume, "memory ", out, CONSUME_SECONDS + 60) as said:
            peer = f"{node2.spec.address} 0 {said.splitlines()[0].removeprefix('memory ')}"
            with node1.background(f"{AS_USER} {program(node1)} {peer} produce {PRODUCE_SECONDS}",
                                  limit=PRODUCE_SECONDS + 60) as process:
                nodes.working(node1, PRODUCE_QUEUES, completed=4)
                for turn in range(UNHEARD_MOST):
                    if turn >= UNHEARD_TIMES and nodes.pool(node1)["unknown"] > 3:
                        break
                    time.sleep(5)
                    # on a slow way some are always under way: their answers will be lost
                    cluster.fabric.delay(node1.spec.index, UNDER_WAY_US)
                    time.sleep(1)
                    cluster.fabric.loss(node1.spec.index, 1000)
                    time.sleep(UNHEARD_SECONDS)
                    cluster.fabric.reset()
                nodes.finish(node1, f"produce {PRODUCE_SECONDS}")
                made = counted(process.wait(60))
            time.sleep(SEEN_SECONDS)
            node2.run("pkill -TERM -x krc_ioctl; "
                      "while pgrep -x krc_ioctl >/dev/null; do sleep 0.2; done", timeout=60)
            said = node2.run(f"cat {out}").out
        print(f"    {made}\n    {said.strip().splitlines()[-1]}\n    {nodes.pool(node1)}",
              flush=True)
        check(" wrong=0\n" in said, said[-2000:])
        check(made["done"] > 100 and made["doubted"] + made["silent"] > 3,
              f"it was never in doubt: {made}")
        check(not made["other"], f"an error that has no cause here: {made}")


# -- memory that never comes -------------------------------------------------------

UNSERVED = "/usr/local/bin/krc_unserved"
UNSERVED_OUT = "/run/krc-unserved.out"
TIMEOUT_S = 90      # seconds in which a call of others ends that waits for nobody: what waits for
                    # memory that never comes does so for ever


@contextlib.contextmanager
def _registering(machine, how):
    """A program of a user without rights that registers memory which never comes."""
    out = f"{UNSERVED_OUT}.{how}"
    with machine.background(f"{as_user(16 << 20)} {UNSERVED} {how} >{out} 2>&1", limit=600):
        said = wait_until(lambda: machine.run(f"cat {out}", check=False).out, 60,
                          f"krc_unserved {how} says something")
        check(said == "registering\n", said)
        wait_until(lambda: re.search("get_user_pages|fixup_user_fault", _stack(machine, how)), 60,
                   f"{how}: waits for its pages")
        yield
    said = machine.run(f"cat {out}", check=False).out
    check(said == "registering\n", said)


def _stack(machine, how):
    """Where in the kernel the threads of such a program are."""
    return machine.run(f"for pid in $(pgrep -f '^{UNSERVED} {how}'); do "
                       "cat /proc/$pid/task/*/stack; done", check=False).out


def _there(machine, how):
    return not machine.run(f"pgrep -f '^{UNSERVED} {how}'", check=False).status


def _others_work(machine, peer, when):
    """Others open the device, ask what there is, register and transfer."""
    said = machine.run(f"timeout {TIMEOUT_S} {program(machine)} ports", check=False)
    check(said.status == 0 and said.out.strip(), f"{when}: {said!r}")
    worked = client(machine, f"{peer} loop 1", timeout=2 * TIMEOUT_S)
    check(not worked.status, f"{when}: {worked!r}")


def _let_go(machine):
    """What root can do of a file system that is not served."""
    machine.run("mountpoint -q /sys/fs/fuse/connections || "
                "mount -t fusectl none /sys/fs/fuse/connections; "
                "for abort in /sys/fs/fuse/connections/*/abort; do "
                "[ ! -e $abort ] || echo 1 >$abort; done")
    wait_until(lambda: not _there(machine, "stuck"), 60, "the program ends")


@limit(600)
def test_registration_never_holds_the_node(cluster):
    """Memory that a program serves itself, and that never comes: meanwhile others work, the
    card can be taken out, the node taken down and configured anew; the same when the program
    has been killed and hangs in its file system."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        krcore.wait_ready(node1)
        # udev would give everybody the device, if it were there
        node1.run("modprobe fuse && chmod 0666 /dev/fuse")
        programs.install(node1, "tests/module/krc_unserved", UNSERVED)
        try:
            with _registering(node1, "killable"), _registering(node1, "stuck"):
                _others_work(node1, peer, "beside them")
                node1.run("krcore-metactl node down", timeout=TIMEOUT_S)
                said = node1.run(f"timeout {TIMEOUT_S} {program(node1)} ports")
                check(not said.out.strip(), f"the node is down: {said!r}")
                nodes.node_up(node1)
                _others_work(node1, peer, "after node down and up")
                node1.remove_nic(timeout=TIMEOUT_S)
                node1.add_nic()
                wait_until(lambda: nodes.ports(node1), 60, "a port is up again")
                krcore.wait_ready(node1)
                _others_work(node1, peer, "with the card put in again")
                node1.run(f"pkill -KILL -f '^{UNSERVED}'")
                wait_until(lambda: not _there(node1, "killable"), 20,
                           "who can be killed is gone")
                check(_there(node1, "stuck"), "the other one waits for its pages")
                _others_work(node1, peer, "beside a program that was killed and hangs")
                node1.run("krcore-metactl node down", timeout=TIMEOUT_S)
                # its code is still in use: that is said, and not waited for
                kept = node1.run(f"timeout {TIMEOUT_S} rmmod krcore", check=False)
                check(kept.status == 1 and "in use" in kept.err, repr(kept))
                _let_go(node1)
        finally:
            node1.run(f"pkill -KILL -f '^{UNSERVED}'", check=False)
            _let_go(node1)
        node1.run("for i in $(seq 600); do rmmod krcore && exit; sleep 0.1; done; exit 1",
                  timeout=TIMEOUT_S)


# -- silent peers ------------------------------------------------------------------

SILENT_SERVICE = 4800       # the first of eight
SIEGES = {
    "64 threads": "siege-plain",
    "64 threads, each with peers of its own": "siege-fresh",
    "peers that crowd others out": "siege-services",
    "eight peers, 64 threads": "siege-rack",
}
ROUNDS, SECONDS = 3, 5
SIEGE_OUT = "/run/siege.out"
ATTEMPTS = 6            # of a machine that is not equally fast all the time


def _round(machine, peer):
    """The good program runs once, and may have no error."""
    seen = counted(client(machine, f"{peer} tenant {SECONDS}", timeout=200))
    check(seen["done"] and not seen["errors"], f"the good program: {seen}")
    return seen


def _tenant(machine, peer):
    """Medians of some rounds of the good program."""
    rounds = [_round(machine, peer) for _ in range(ROUNDS)]
    return {key: statistics.median(seen[key] for seen in rounds)
            for key in ("p50_us", "p99_us", "max_us")}


def _said(seen):
    return ", ".join(f"{key.removesuffix('_us')} {value / 1000:.1f} ms"
                     for key, value in seen.items())


def _idle(machine):
    """Whether each request of this node has been completed."""
    (row,) = [row for row in krcore.metactl(machine, "stats node") if "completions" in row]
    return row["requests"] == row["completions"]


def _besieged(machine, peer, target, word):
    """The good program beside a siege that goes on, by another user at the lowest priority: who
    has a processor is not asked here."""
    bad = (f"nice -n 19 {AS_USER.replace('nobody', 'games')} {program(machine)} {target} "
           f"{word} 900 >{SIEGE_OUT} 2>&1")
    begun = "bound=256\n" if word == "siege-services" else "rounds="
    machine.run(f"rm -f {SIEGE_OUT}")
    with machine.background(bad, limit=900):
        wait_until(lambda: begun in machine.run(f"cat {SIEGE_OUT}", check=False).out, 120,
                   "the siege has begun")
        seen = _tenant(machine, peer)
        wait_until(lambda: re.search(r"^rounds=[1-9]", machine.run(f"cat {SIEGE_OUT}").out, re.M),
                   60, "silent peers were asked")
        machine.run("pkill -KILL -x krc_ioctl -u games; true")
    wait_until(lambda: _idle(machine), 120, "nothing of the siege is under way any more")
    said = machine.run(f"cat {SIEGE_OUT}").out
    check(re.search(r"^rounds=[1-9]\d* answered=0$", said.splitlines()[-1]), said)
    return seen


def _initiator(words):
    """Of which initiator an event of the trace is."""
    return int(re.match(r"\S+ initiator=(\d+) ", words)[1])


def _of_others(machine, events):
    """Which initiators that all programs share the trace says were reset, and how many in all."""
    shared = nodes.pool(machine)["initiators"]
    reset = [_initiator(words) for _, words in events]
    return [number for number in reset if number < shared], len(reset)


@limit(1500)
def test_silence_is_contained(cluster):
    """One user does all to have peers that do not answer stop a node, and a good
    program of another user, which asks a healthy peer, is not slowed by it: it has no error, no
    initiator that others share is reset, and its READs take at most twice as long as on a node
    without that, right before and behind, in the median."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        for i in range(8):
            nodes.publish_silent(node2, SILENT_SERVICE + i)
        target = f"{node2.spec.address} {SILENT_SERVICE} {' '.join(peer.split()[2:])}"
        _tenant(node1, peer)        # warm
        alone, slow = _tenant(node1, peer), []
        print(f"    alone: {_said(alone)} (emulated)", flush=True)
        with trace.recording(node1, "krc_recovery_begin") as recorded:
            for what, word in SIEGES.items():
                for _ in range(ATTEMPTS):
                    beside = _besieged(node1, peer, target, word)
                    before, alone = alone, _tenant(node1, peer)
                    print(f"    beside {what}: {_said(beside)}; alone: {_said(alone)}", flush=True)
                    if beside["p50_us"] <= 2 * max(before["p50_us"], alone["p50_us"]):
                        break
                else:
                    slow.append(what)
            shared, resets = _of_others(node1, recorded())
        print(f"    {resets} resets", flush=True)
        check(resets, "no silent peer was noticed")
        check(not shared, f"initiators that all programs share were reset: {shared}")
        check(not slow, f"slowed to more than a half: beside {slow}")


# -- peers that lie ----------------------------------------------------------------

LIAR_SERVICE, LIAR_GENERATION = 4810, 77
LIES_SECONDS = 20
# 4 are free; then it is barred 1, 2, 4 and 8 s, and each time all 16 threads may have asked before
# they are told. Without that it is some thousand.
RESETS_MOST = 4 + 5 * 16


LIES = f"{0x10000:#x} {0x1000:#x}"
TRUTH = 0x10000 + 63 * 0x10001      # LIAR_TOKEN, LIAR_NEXT of tests/cluster/bin/liar.c


@contextlib.contextmanager
def _liar(machine):
    """A peer whose directory allows what its NIC refuses, but for one entry: what it said, and the
    PEER words of krc_ioctl."""
    binary = programs.install(machine, "tests/cluster/bin/liar")
    command = f"{binary} {machine.spec.address} {LIAR_GENERATION}"
    mac = machine.run("cat /sys/class/infiniband/*/device/net/*/address").out.split()[0]
    with saying(machine, command, "dctn ", "/run/liar.out", 1000) as said:
        machine.run(f"krcore-metactl -t 30 record publish {machine.spec.address} "
                    f"service {LIAR_SERVICE} {said.splitlines()[0]} mtu 1024 "
                    f"mac {mac.replace(':', '')} "
                    f"max_rd_atomic 16 generation {LIAR_GENERATION} lease_ms 300000")
        words = dict(zip(*[iter(said.splitlines()[0].split())] * 2))
        yield words, f"{machine.spec.address} {LIAR_SERVICE} {{}} 0 0 4096"
        machine.run("pkill -KILL -x liar; true")


@limit(600)
def test_refusals_are_contained(cluster):
    """One user READs, as fast as that fails, what a lying peer allows and refuses, which resets
    what all share: but a few times only. The good program has no error beside it."""
    with up(cluster) as (node1, node2), serve(node2) as peer, _liar(node2) as (_, liar):
        target = liar.format(LIES)
        _tenant(node1, peer)        # warm
        with trace.recording(node1, "krc_recovery_begin") as recorded:
            bad = (f"nice -n 19 {AS_USER.replace('nobody', 'games')} {program(node1)} {target} "
                   f"lies {LIES_SECONDS} >/run/lies.out")
            with node1.background(bad, limit=200):
                seen = _tenant(node1, peer)
                wait_until(lambda: node1.run("cat /run/lies.out").out, 4 * LIES_SECONDS,
                           "the siege is over")
            shared, _ = _of_others(node1, recorded())
        lies = nodes.pairs(node1.run("cat /run/lies.out").out)
        print(f"    {lies}, {len(shared)} resets of what all share; beside it {_said(seen)} "
              "(emulated)", flush=True)
        check(lies["refused"] and lies["silent"] and not lies["other"], f"{lies}")
        check(0 < len(shared) <= RESETS_MOST, f"{len(shared)} resets")


MUTE_SECONDS = 40
# Resets of what all share, by initiator: a second of stalls is free, each of which takes a second
# or more, and then a twentieth of the time. Without that it was 25 in all (emulated guests).
STALLS_MOST = 2


def _mute(machine, mute):
    """Whether the card drops what a key does not allow, in place of refusing it."""
    machine.nic.set(machine, "access_silent", mute)


@limit(900)
def test_selective_silence_is_contained(cluster):
    """A peer answers whatever asks it whether it is there, and lets all else run out of time, while
    a user READs from it without end. That stalls what all share for a second or so; then both have
    initiators of their own, where they go on, and the good program has no error beside it."""
    with up(cluster) as (node1, node2), serve(node2) as peer, _liar(node2) as (_, liar):
        target = liar.format(LIES)
        _tenant(node1, peer)        # warm
        alone = _tenant(node1, peer)
        check(not nodes.pool(node1)["isolated"], "nobody stalls anything yet")
        _mute(node2, True)
        with trace.recording(node1, "krc_recovery_begin") as recorded:
            bad = (f"nice -n 19 {AS_USER.replace('nobody', 'games')} {program(node1)} {target} "
                   f"lies {MUTE_SECONDS} >/run/lies.out")
            with node1.background(bad, limit=300):
                wait_until(lambda: nodes.pool(node1)["isolated"], MUTE_SECONDS, "it is noticed")
                seen = _tenant(node1, peer)
                wait_until(lambda: node1.run("cat /run/lies.out").out, 4 * MUTE_SECONDS,
                           "the siege is over")
            shared, resets = _of_others(node1, recorded())
            most = STALLS_MOST * nodes.pool(node1)["initiators"]
        _mute(node2, False)
        lies = nodes.pairs(node1.run("cat /run/lies.out").out)
        print(f"    {lies}, {len(shared)} resets of what all share, {resets - len(shared)} of "
              f"others; beside it {_said(seen)}, alone {_said(alone)} (emulated)", flush=True)
        check(lies["silent"] and not lies["refused"] + lies["other"], f"{lies}")
        check(len(shared) <= most, f"{len(shared)} resets")
        check(resets > len(shared), "it is not asked apart")


FLOOD_SECONDS = 900     # it is told when it is over
FLOOD_US = 20_000
TRICKLE_US = 60_000
KNOWN_SECONDS = 60      # until a peer is known to be slow: a second of that is free
# Of what all share, by initiator: one when the siege begins, for what was in the hardware before it
# was known how slow that is, and one for which a look came late.
FLOOD_MOST = 2
TRICKLE_MOST = 4        # until it is known whose fault they are
LIMIT_MOST = 8      # what completes in 100 ms is 5


@contextlib.contextmanager
def _slow(machine, dctn, slow_us):
    """Answers of a target of this machine's card come one by one, so long after each other."""
    machine.nic.set(machine, "slow_us", slow_us)
    machine.nic.set(machine, "slow_dct", dctn)
    try:
        yield
    finally:
        machine.nic.set(machine, "slow_dct", 0)


TENANT_BYTES, FLOOD_BYTES = 32, 96     # of each READ: tests/module/neighbour.c


def _apart(machine, peer):
    """The good program runs once more, beside the bad one: none of its READs goes through an
    initiator that the other one's are posted to."""
    with trace.recording(machine, "krc_post") as recorded:
        _round(machine, peer)
        events = recorded()
    through = {size: {_initiator(words) for _, words in events
                      if words.endswith(f" read length={size}")}
               for size in (TENANT_BYTES, FLOOD_BYTES)}
    print(f"    initiators by the length of READs: {through}", flush=True)
    check(all(through.values()), "both of them READ")
    check(not through[TENANT_BYTES] & through[FLOOD_BYTES], f"they share an initiator: {through}")
    shared = nodes.pool(machine)["initiators"]
    check(max(through[TENANT_BYTES]) < shared, "the good program is where all are")
    there = [row for row in krcore.metactl(machine, "queue list")
             if row["type"] == "queue" and row["isolated"]]
    check(there and all(row["initiator"] >= shared for row in there),
          f"the bad one is shown: {there}")


def _limits(events):
    """What queues were limited to, by the trace."""
    return [int(words.rpartition("=")[2]) for name, words in events if name == "krc_window"]


def _beside_a_slow_peer(cluster, word, slow_us, most, **settings):
    """A user READs all the time from a peer that answers slowly, beside a good program, which has
    no error, and whose READs take at most twice as long as without it, in the median, once the
    peer is known to be slow. Returns the trace."""
    with up(cluster, **settings) as (node1, node2), serve(node2) as peer, \
            _liar(node2) as (words, liar):
        target = liar.format(f"{TRUTH:#x} {words['mrdir_addr']}")
        out = f"/run/{word}.out"
        _tenant(node1, peer)        # warm
        alone = _tenant(node1, peer)
        before = nodes.pool(node1)["isolated"]
        with _slow(node2, int(words["dctn"]), slow_us), \
                trace.recording(node1, "krc_recovery_begin", "krc_window") as recorded:
            bad = (f"nice -n 19 {AS_USER.replace('nobody', 'games')} {program(node1)} {target} "
                   f"{word} {FLOOD_SECONDS} >{out}")
            with node1.background(bad, limit=FLOOD_SECONDS):
                first = _tenant(node1, peer)
                wait_until(lambda: nodes.pool(node1)["isolated"] > before, KNOWN_SECONDS,
                           "it is known whose fault that is")
                seen = _tenant(node1, peer)
                _apart(node1, peer)
                check(not node1.run(f"cat {out}").out, "the siege goes on")
                nodes.finish(node1, f"{word} {FLOOD_SECONDS}")
                wait_until(lambda: node1.run(f"cat {out}").out, 60, "the siege is over")
            events = recorded()
        after = _tenant(node1, peer)
        shared, _ = _of_others(node1, [event for event in events
                                       if event[0] == "krc_recovery_begin"])
        most *= nodes.pool(node1)["initiators"]
        did = nodes.pairs(node1.run(f"cat {out}").out)
        print(f"    {did}, {len(shared)} resets of what all share, limits down to "
              f"{min(_limits(events), default=None)}; beside it first {_said(first)}, then "
              f"{_said(seen)}; alone {_said(alone)} and {_said(after)} (emulated)", flush=True)
        check(did["done"] and not did["failed"], f"{did}")
        check(len(shared) <= most, f"{len(shared)} resets")
        check(seen["p50_us"] <= 2 * max(alone["p50_us"], after["p50_us"]), "it is slowed")
        return events


@limit(600)
def test_a_slow_peer_fills_no_queue(cluster):
    """A user always has as many READs under way as the node takes, from a peer that answers each
    slowly, but in time. What is in the hardware before a good program's READ is bounded by time, so
    that its lease does not end there, again and again. Soon the peer has initiators of its own,
    though nothing is reset for that and the user never rests."""
    limits = _limits(_beside_a_slow_peer(cluster, "flood", FLOOD_US, FLOOD_MOST))
    check(limits and min(limits) <= LIMIT_MOST, f"limits: {limits}")


@limit(600)
def test_a_slow_peer_needs_no_queue(cluster):
    """Nor does it help that user to have but a few READs under way, which fill no queue: the peer
    is found to be slow all the same. The two share the one initiator that there is."""
    _beside_a_slow_peer(cluster, "trickle", TRICKLE_US, TRICKLE_MOST, pool_initiators=1)


# -- MetaServers -------------------------------------------------------------------

ABSENT_SERVICE = 4899


@limit(300)
def test_haste_is_no_failure_of_a_server(cluster):
    """A program that gives MetaServers less time than they need does not make the node
    think worse of them, and so go to others."""
    with up(cluster) as (node1, node2):
        krcore.wait_ready(node1)

        def failures():
            return {row["address"]: row["failures"]
                    for row in krcore.node_rows(node1, "node_server")}

        before = failures()
        seen = counted(client(node1, f"{node2.spec.address} {ABSENT_SERVICE} 0 0 0 0 4096 "
                              "hasty 1000"))
        after = failures()
        check(seen["late"] and not seen["other"], f"{seen}")
        check(before and after == before, f"{seen}: failures were {before}, are {after}")


# -- requests that come too late -----------------------------------------------------

LATE_ROUNDS = 21
LATE_UNDER_WAY = 512    # WRITEs of the reader at any time, so many times 21 are late
LATE_SECONDS = 900      # at most: it is told when it is over
STALL_MS = 4000


def _reuse_keys(machine, reuse):
    """Whether the card gives the place of a key that was destroyed to the next one."""
    machine.nic.set(machine, "reuse_mkeys", reuse)


@contextlib.contextmanager
def _frozen(_cluster, reader):
    """All of the reader stands still."""
    reader.pause()
    try:
        yield
    finally:
        reader.resume()


@contextlib.contextmanager
def _delayed(cluster, reader):
    """Its frames take as long as it would stand still."""
    cluster.fabric.delay(reader.spec.index, 2_500_000)
    try:
        yield
    finally:
        time.sleep(2.5)
        cluster.fabric.reset()


@contextlib.contextmanager
def _stalled(_cluster, reader):
    """One of its processors stands still when the leases have been looked at and the requests are
    written, before the doorbell."""
    with reader.background(f"echo 'stall krcore:krc_mlx5_ring_doorbell {STALL_MS}' "
                           f">{PROBE_FOLDER}/ctl", limit=60) as told:
        time.sleep(0.5)
        yield
        told.wait(60)


LATE_WAYS = (_frozen, _delayed, _stalled)


def _turn(cluster, reader, way, turn):
    """The reader's requests are late meanwhile."""
    with way(cluster, reader):
        turn()
    time.sleep(2.5)


@limit(900)
def test_the_lease_bounds_the_stay_in_the_hardware(cluster):
    """A reader is frozen for seconds, or its frames are, or the processor that is to ring the
    doorbell, with WRITEs under way, and more of them follow by its clock, which says that nothing
    has ended; meanwhile the owner of the memory dies, and a stranger has memory at the same
    addresses, with keys in the places of those that were there before. The card gives the places
    out again at once. Not a byte of the stranger changes, the reader is told of each WRITE that
    was refused, and gets on."""
    pipe, out = "/run/krc-lend.in", "/run/krc-lend.out"
    with up(cluster, margin_ms=300) as (node1, node2), Probe(node1):
        before = len(node1.kernel_log())
        _reuse_keys(node2, True)
        node2.run(f"rm -f {pipe}; mkfifo -m 666 {pipe}")

        def order(word, answer, times):
            node2.run(f"echo {word} >{pipe}", timeout=20)
            wait_until(lambda: node2.run(f"grep -c '^{answer}' {out} || true").out.strip()
                       == str(times), 60, f"the lender has {answer}")

        try:
            with saying(node2, f"{AS_USER} {program(node2)} lend {pipe}", "memory ", out,
                        LATE_SECONDS + 60) as said:
                peer = f"{node2.spec.address} 0 {said.splitlines()[0].removeprefix('memory ')}"
                with node1.background(f"{AS_USER} {program(node1)} {peer} late {LATE_SECONDS}",
                                      limit=LATE_SECONDS + 60) as process:
                    for i in range(1, LATE_ROUNDS + 1):
                        time.sleep(2)
                        _turn(cluster, node1, LATE_WAYS[i % len(LATE_WAYS)],
                              lambda n=i: order("turn", "turned", n))
                        order("look", "looked", i)
                    node1.run("pkill -TERM -x krc_ioctl")
                    made = counted(process.wait(60))
                changed = node2.run(f"grep '^looked' {out} | tail -n 1").out.strip()
        finally:
            _reuse_keys(node2, False)
        print(f"    {LATE_ROUNDS} x {LATE_UNDER_WAY} WRITEs late: {made}, {changed}", flush=True)
        stalls = node1.kernel_log()[before:].count("a processor stood still")
        check(stalls == LATE_ROUNDS // len(LATE_WAYS), f"{stalls} times a processor stood still")
        check(changed == "looked changed=0", f"bytes of a stranger: {changed}")
        check(made["done"] > 1000 and made["refused"], f"nothing came late: {made}")
        check(not made["other"], f"an error that has no cause here: {made}")


# -- limits ------------------------------------------------------------------------

EDQUOT = -122
ENOSPC = -28
EACH = 1024             # mrs_per_user as it is by default
GREEDY = (2001, 2002, 2003, 2004)
OWNER = 2009            # a user that has a range of ids
SUBIDS = 300000


@contextlib.contextmanager
def _taking(machine, words, name, what="open 100000 1000"):
    """A program in the background that takes all it can, regions if nothing else is said; gives
    how many it has."""
    out = f"/run/krc-open.{name}"
    machine.run(f"rm -f {out}")
    with machine.background(f"{words} {program(machine)} {what} >{out} 2>&1", limit=1000):
        yield lambda: wait_until(lambda: machine.run(f"cat {out}", check=False).out, 300,
                                 f"{name} has what it can have")


@contextlib.contextmanager
def _namespace(machine, owner):
    """A user namespace of this user with a range of ids; gives the words that enter it as one
    of them. What newuidmap(1) does by subuid(5), root does here."""
    with machine.background(f"exec {as_user(1 << 20, owner)} unshare --user sleep 1000",
                            limit=1000):
        pid = wait_until(lambda: machine.run(f"pgrep -u {owner} -x sleep", check=False).out.strip(),
                         30, "the namespace is there")
        for kind in ("uid", "gid"):
            machine.run(f"echo '0 {SUBIDS} 65536' >/proc/{pid}/{kind}_map")
        yield lambda uid: (f"prlimit --memlock={16 << 20} nsenter --user -t {pid} "
                           f"setpriv --reuid={uid} --regid={uid} --clear-groups")
        machine.run(f"kill {pid}")


@limit(900)
def test_limits_that_bound_users(cluster):
    """Four users take all regions they may have: there are more than 4096 then, and a fifth
    finds room. Ids of a user namespace are no further users: what one of them has taken, its
    owner and all others have less."""
    with up(cluster) as (node1, _):
        with contextlib.ExitStack() as stack:
            took = [stack.enter_context(_taking(node1, as_user(16 << 20, uid), uid))
                    for uid in GREEDY]
            want = f"regions={EACH} region_error={EDQUOT}\n"
            check(all(said() == want for said in took), f"{[said() for said in took]}")
            fifth = counted(node1.run(f"{as_user(16 << 20)} {program(node1)} open 100 0",
                                      timeout=300))
            check(fifth == {"regions": 100, "region_error": 0}, f"a fifth user: {fifth}")
            node1.run("pkill -KILL -x krc_ioctl; true")
        with _namespace(node1, OWNER) as words, _taking(node1, words(0), "subuid") as said:
            check(said() == want, said())
            for who in (words(7), words(1000), as_user(16 << 20, OWNER)):
                more = counted(node1.run(f"{who} {program(node1)} open 100 0", timeout=300))
                check(more == {"regions": 0, "region_error": EDQUOT}, f"{who}: {more}")
            others = counted(node1.run(f"{as_user(16 << 20)} {program(node1)} open 100 0",
                                       timeout=300))
            check(others == {"regions": 100, "region_error": 0}, f"another user: {others}")
            node1.run("pkill -KILL -x krc_ioctl; true")


@limit(900)
def test_services_that_are_left(cluster):
    """A node has 1024 services: no user has more than a quarter, the last eighth is for users who
    have at most four, the last sixty-fourth for administrators."""
    with up(cluster) as (node1, _), contextlib.ExitStack() as stack:
        said = []
        for number, uid in enumerate(GREEDY):
            said.append(stack.enter_context(_taking(
                node1, as_user(16 << 20, uid), uid, f"bind {1000 + 300 * number} 300 1000"))())
        check(said == [f"bound=256 error={EDQUOT}\n"] * 3 + [f"bound=128 error={ENOSPC}\n"],
              f"{said}")
        fifth = stack.enter_context(_taking(node1, as_user(16 << 20), "fifth", "bind 2500 9 1000"))
        check(fifth() == f"bound=4 error={ENOSPC}\n", fifth())
        admin = stack.enter_context(_taking(node1, "", "admin", "bind 2600 300 1000"))
        check(admin() == f"bound=124 error={ENOSPC}\n", admin())
        none = counted(node1.run(f"{as_user(16 << 20, 2005)} {program(node1)} bind 3000 1"))
        check(none == {"bound": 0, "error": ENOSPC}, f"all are taken: {none}")
        node1.run("pkill -KILL -x krc_ioctl; true")
