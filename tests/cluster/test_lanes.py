# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore.ko on a network card without DC: requests and messages by lanes (proto/krp_lane.h).

The card is soft RoCE of the stock kernel. Programs are those of the module's other tests; what
they say is checked byte by byte in them (tests/module).
"""

import contextlib

from . import krcore, programs
from .nodes import AS_USER, client, counted, node_up, program, saying, serve, tap, up, working
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
    """Who reads it is told; another program's is read at once, by the same lanes."""
    with up(cluster) as (node1, node2):
        with serve(node2) as peer, _looping(node1, peer) as end:
            node2.run("pkill -KILL -x krc_ioctl")
            end()
        with serve(node2) as peer:
            check(_works(node1, peer), "another program's memory is read")


@limit(600)
def test_node_that_comes_back_in_another_life(cluster):
    """Lanes to the old life end, and nobody gets one with a record of it."""
    with up(cluster) as (node1, node2):
        for _ in range(2):
            with serve(node2) as peer, _looping(node1, peer) as end:
                node2.run("krcore-metactl node down", timeout=60)
                end()
            node2.run("krcore-metactl node up", timeout=60)
            krcore.wait_ready(node2)
            with serve(node2) as peer:
                wait_until(lambda p=peer: _works(node1, p), 60, "the new life is reached")


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
