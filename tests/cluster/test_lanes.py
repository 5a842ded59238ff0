# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore.ko on a network card without DC: requests and messages by lanes (proto/krp_lane.h).

The card is soft RoCE of the stock kernel. Programs are those of the module's other tests; what
they say is checked byte by byte in them (tests/module).
"""

import contextlib
import ipaddress

from . import krcore, programs
from .krcore import metactl
from .nodes import (AS_USER, client, counted, finish, node_up, program, saying, serve, tap, up,
                    working)
from .suite import check, limit, wait_until

NEEDS = "rxe"
MESSAGES = "/usr/local/bin/krc_message"
SERVICE = 600
OUT = "/run/krc-message.out"


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


@limit(400)
def test_programs_of_one_node_reach_each_other(cluster):
    """A port reaches itself by lanes without a hand-shake."""
    with up(cluster) as (node1, _), serve(node1) as peer:
        tap(client(node1, f"{peer} traffic", 300), 60)


@contextlib.contextmanager
def _echoes(machine):
    """A program there that sends back what it is sent; gives a function that ends it and returns
    what it has counted."""
    programs.install_once(machine, "tests/module/krc_message", MESSAGES)
    with saying(machine, f"{AS_USER} {MESSAGES} serve {SERVICE}", "listening", OUT, 400):
        def end():
            machine.run(f"pkill -TERM -f '^{MESSAGES} serve {SERVICE}$'")
            wait_until(lambda: "offers=" in machine.run(f"cat {OUT}").out, 60, "it ends")
            return counted(machine.run(f"cat {OUT}"))
        yield end
        machine.run("pkill -KILL -x krc_message; true")


@limit(400)
def test_messages_come_back(cluster):
    connections, rounds = 8, 32
    with up(cluster) as (node1, node2), _echoes(node1) as end:
        programs.install_once(node2, "tests/module/krc_message", MESSAGES)
        said = node2.run(f"{AS_USER} {MESSAGES} echo {node1.spec.address} {SERVICE} "
                         f"{connections} {rounds}", timeout=200, check=False)
        check(not said.status, repr(said))
        seen, served = counted(said), end()
        check(seen["open"] == connections
              and seen["echoed"] + seen["large"] == connections * rounds, f"{seen}")
        check(served["offers"] == connections and not served["failed"], f"{served}")


# -- trouble ---------------------------------------------------------------------


@contextlib.contextmanager
def _looping(machine, peer, out="/run/lanes-loop.out"):
    """A program there that WRITEs the peer's memory and READs it back, until something fails; gives
    a function that waits for that, and returns what it has counted."""
    words = f"{peer} loop 900"
    with machine.background(f"{AS_USER} {program(machine)} {words} >{out} 2>&1",
                            limit=900) as loop:
        def end():
            loop.wait(120)
            counts = counted(machine.run(f"cat {out}"))
            check(counts["done"] and not counts["wrong"], f"{counts}")
            check(counts["refused"] + counts["failed"], f"it is told: {counts}")
        working(machine, 1, completed=20)
        yield end
        machine.run(f"pkill -KILL -f '{words}$'; true")


def _works(machine, peer):
    """A new program uses the peer's memory, and nothing of what it asks for fails."""
    counts = counted(client(machine, f"{peer} loop 3"))
    return counts["done"] and not counts["refused"] + counts["failed"] + counts["wrong"]


@limit(500)
def test_memory_of_a_program_that_is_killed(cluster):
    """A program that reads it is told; another program's is read at once, by the same lanes."""
    with up(cluster) as (node1, node2):
        with serve(node2) as peer, _looping(node1, peer) as end:
            node2.run("pkill -KILL -x krc_ioctl")
            end()
        with serve(node2) as peer:
            check(_works(node1, peer), "another program's memory is read")


@limit(600)
def test_node_that_comes_back_in_another_generation(cluster):
    """Lanes to the old generation end, and nobody gets one with a record of it."""
    with up(cluster) as (node1, node2):
        for _ in range(2):
            with serve(node2) as peer, _looping(node1, peer) as end:
                node2.run("krcore-metactl node down", timeout=60)
                end()
            node2.run("krcore-metactl node up", timeout=60)
            krcore.wait_ready(node2)
            with serve(node2) as peer:
                wait_until(lambda p=peer: _works(node1, p), 60, "the new generation is reached")


@limit(600)
def test_network_that_is_cut(cluster):
    """Requests end while it is, and the same nodes reach each other when it is whole."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        with _looping(node1, peer) as end:
            cluster.cut("node1", "node2")
            end()
            cluster.fabric.reset()
        wait_until(lambda: _works(node1, peer), 60, "they reach each other again")


@limit(600)
def test_module_goes_under_traffic(cluster):
    """At either end, with programs killed and node down at the same time."""
    with up(cluster) as (node1, node2):
        for goes in (node1, node2):
            with serve(node2) as peer, _looping(node1, peer):
                goes.run("krcore-metactl node down", timeout=60)
                node1.run("pkill -KILL -x krc_ioctl; true")
                node2.run("pkill -KILL -x krc_ioctl; true")
                wait_until(lambda m=goes: not m.run("rmmod krcore", check=False).status, 30,
                           "it can be removed")
            node_up(goes)
            krcore.wait_ready(goes)
        with serve(node2) as peer:
            wait_until(lambda: _works(node1, peer), 60, "it works again")


# -- strangers -------------------------------------------------------------------


STRANGER = "/usr/local/bin/lane_stranger"
RECORDED, STRANGE = "/run/lane-recorded.out", "/run/lane-strange"
REQUEST, CLOSE = 1, 7
TYPE, FLAGS, NUMBER, NONCE, GID, PEER_GID, VALUE, KEY_ID, MAC = 3, 4, 8, 16, 40, 56, 104, 164, 168
BYTES = 200
# where a REQUEST is no packet any more, and by what; see krp_lane_check()
MALFORMED = ((0, "00"), (2, "02"), (TYPE, "00"), (TYPE, "09"), (FLAGS, "00"), (5, "04"), (6, "06"),
             (7, "00"), (NUMBER, 8 * "00"), (NONCE, 8 * "00"), (24, 8 * "00"), (32, 8 * "00"),
             (GID, 16 * "00"), (PEER_GID, 16 * "00"), (72, 4 * "00"), (79, "01"), (80, "01"),
             (88, "01"), (96, "01"), (VALUE, 56 * "00"), (160, "01"), (KEY_ID, 4 * "00"))
SHORT = (1, 8, BYTES - 1, BYTES + 1)    # that a buffer still takes
LONG = 1000                             # that none takes
FLOOD_ROUNDS = 40


def _lanes(machine):
    """Counters of the lanes of a guest's port."""
    (row,) = [row for row in metactl(machine, "stats node") if row["type"] == "lanes"]
    return row


def _with(packet, *changes):
    """A packet with other bytes at some places."""
    packet = bytearray(packet)
    for at, what in changes:
        packet[at:at + len(what)] = what
    return bytes(packet)


@contextlib.contextmanager
def _recording(machine):
    """Somebody there writes down what comes to the queue pairs of hand-shakes, and leaves; gives a
    function that returns it: (where it went, what it said)."""
    programs.install_once(machine, "tests/cluster/bin/lane_stranger", STRANGER)
    with saying(machine, f"{STRANGER} record", "ready", RECORDED, 900):
        def recorded():
            lines = machine.run(f"cat {RECORDED}").out.splitlines()[1:]
            return [(where, bytes.fromhex(said))
                    for where, said in (line.rsplit(" ", 1) for line in lines)]
        yield recorded
        machine.run("pkill -KILL -x lane_stranger; true")


def _say(stranger, packets, rounds=1):
    """A command by which a stranger says this so often."""
    text = "".join(f"{where} {said.hex()}\n" for where, said in packets)
    stranger.push(text.encode(), STRANGE)
    return f"{STRANGER} send {stranger.nic.device()} {rounds} <{STRANGE}"


def _forged(stranger, where, request):
    """What no key proves, made of a REQUEST: for a lane of another number, in the name of its
    sender and in that of others; by a key that nobody has; without one; and that its lane ends."""
    other = ((NUMBER, b"\xff\xff"), (NONCE, b"other"))
    mine = ipaddress.ip_address(f"::ffff:{stranger.spec.address}").packed
    nobody = ipaddress.ip_address("::ffff:10.77.9.9").packed
    named = [_with(request, *other, (GID, gid)) for gid in (request[GID:PEER_GID], mine, nobody)]
    unsigned = bytes(4 + 32)
    end = _with(request[:72] + bytes(KEY_ID - 72) + request[KEY_ID:], (TYPE, bytes([CLOSE])),
                (6, bytes(2)))
    return [(where, said) for said in
            (*named, *(_with(said, (KEY_ID, b"nope")) for said in named),
             *(_with(said, (KEY_ID, unsigned)) for said in named),
             end, _with(end, (KEY_ID, unsigned)))]


def _malformed(where, request):
    changed = [_with(request, (at, bytes.fromhex(what))) for at, what in MALFORMED]
    return [(where, said) for said in
            (*changed, *((request + bytes(BYTES))[:length] for length in SHORT))]


def _check_counts(machine, stranger, packets, **grown):
    """A stranger says this once: these counters of a port grow by so many, and no lane is made."""
    before = _lanes(machine)
    said = stranger.run(_say(stranger, packets), timeout=60)
    check(said.out == f"sent {len(packets)}\n", f"{said!r}")
    for name, count in grown.items():
        wait_until(lambda n=name, c=count: _lanes(machine)[n] >= before[n] + c, 30,
                   f"{name} of {machine.name} grows by {count} from {before}")
    after = _lanes(machine)
    check(all(after[name] == before[name] + grown.get(name, 0)
              for name in ("made", "malformed", "unproved", "mends")), f"{before}: {after}")


@limit(900)
def test_strangers_at_the_hand_shake(cluster):
    """Somebody without the cluster key says to a node whatever there is to say, and what it has
    recorded of two nodes: that is counted, and makes and ends no lane, while lanes of others go on
    and are made."""
    stranger = cluster.node("meta2")
    programs.install_once(stranger, "tests/cluster/bin/lane_stranger", STRANGER)
    with up(cluster, key=krcore.new_key()) as (node1, node2), serve(node2) as peer, \
            _recording(node2) as recorded:
        out = "/run/lanes-loop.out"
        with node1.background(f"{AS_USER} {program(node1)} {peer} loop 900 >{out} 2>&1",
                              limit=900) as loop:
            working(node1, 1, completed=20)
            heard = recorded()
            where, request = next((to, said) for to, said in heard if said[TYPE] == REQUEST
                                  and to.startswith(f"{node2.spec.address} "))
            lanes = [_lanes(node) for node in (node1, node2)]
            forged, malformed = _forged(stranger, where, request), _malformed(where, request)
            _check_counts(node2, stranger, forged, unproved=len(forged))
            _check_counts(node2, stranger, malformed, malformed=len(malformed))
            _check_counts(node2, stranger, heard)
            _check_counts(node2, stranger, [(where, bytes(LONG))], mends=1)
            check("no cluster key proves who asks" in node2.kernel_log(), "it is said")
            check([_lanes(node)["made"] for node in (node1, node2)]
                  == [row["made"] for row in lanes], f"{lanes}")

            flood = _say(stranger, forged + malformed + heard, FLOOD_ROUNDS)
            with stranger.background(f"while {flood}; do :; done", limit=900), \
                    _echoes(node1) as end:
                programs.install_once(node2, "tests/module/krc_message", MESSAGES)
                said = node2.run(f"{AS_USER} {MESSAGES} echo {node1.spec.address} {SERVICE} 4 32",
                                 timeout=200, check=False)
                check(not said.status and counted(said)["open"] == 4, repr(said))
                end()
                stranger.run("pkill -KILL -f '[l]ane_stranger'; true")
            finish(node1, "loop 900")
            loop.wait(120)
        counts = counted(node1.run(f"cat {out}"))
        check(counts["done"] and not counts["refused"] + counts["failed"] + counts["wrong"],
              f"{counts}")
        print(f"    {_lanes(node2)}", flush=True)
