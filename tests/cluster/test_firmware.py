# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Firmware that is other than the model usually is: commands that take long, and a target that is
gone and says nothing, where the model refuses at once. Nobody knows which of both a card does.
And cards into which a request can be pushed through the register of its doorbell."""

import contextlib

from . import krcore
from .nodes import (AS_USER, card_counters, client, counted, given_back, held, node_up, program,
                    serve, up, working)
from .suite import Skip, check, limit, wait_until

NEEDS = "dc"
REGIONS = 20
COMMAND_MS = 200


@contextlib.contextmanager
def _slow_commands(machine, delay_ms):
    """Each command of the card takes so long."""
    def delay(value):
        machine.nic.set(machine, "cmd_delay_ms", value)

    delay(delay_ms)
    try:
        yield
    finally:
        delay(0)


@limit(500)
def test_slow_commands(cluster):
    """Registration, and a node that goes and comes, wait for the card; requests of others need no
    command and go on meanwhile."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        before = held(node1)
        with node1.background(f"{AS_USER} {program(node1)} {peer} loop 900 >/run/loop.out",
                              limit=900) as loop:
            working(node1, 1)
            with _slow_commands(node1, COMMAND_MS):
                took = counted(client(node1, f"open {REGIONS} 0"))
                check(took == {"regions": REGIONS, "region_error": 0}, f"{took}")
                check(loop.poll() is None, f"it has ended: {node1.run('cat /run/loop.out')!r}")
                node1.run("pkill -TERM -x krc_ioctl")
                loop.wait(60)
                node1.run("krcore-metactl node down", timeout=120)
                node_up(node1)
                krcore.wait_ready(node1)
                seen = counted(client(node1, f"{peer} loop 1"))
                check(seen["done"] and not seen["failed"] + seen["wrong"], f"{seen}")
        seen = counted(node1.run("cat /run/loop.out"))
        check(seen["done"] > 1 and not seen["refused"] + seen["failed"] + seen["wrong"], f"{seen}")
        given_back(node1, before, 30)


@contextlib.contextmanager
def _card(machine, **properties):
    """A guest has such a card for a block, and then its own again."""
    if not machine.kernel().hot_plug():
        raise Skip("a card that never leaves its slot stays as it is")
    krcore.node_gone(machine)
    machine.remove_nic()
    try:
        machine.add_nic(**properties)
        yield
    finally:
        machine.remove_nic()
        machine.add_nic()


def _reached(machine, peer):
    """What a loop to a peer counted, if it could connect and had no error."""
    result = client(machine, f"{peer} loop 2")
    return not result.status and counted(result)


@limit(500)
def test_a_target_that_is_gone_and_silent(cluster):
    """A node comes back under the same address with a new target. A peer that knows the old
    one hears nothing from it, asks a MetaServer, and reaches the new one."""
    with _card(cluster.node("node2"), dc_refusal="silent"), up(cluster) as (node1, node2):
        with serve(node2) as peer:
            check(_reached(node1, peer), "it works")
        krcore.node_gone(node2)
        node_up(node2)
        krcore.wait_ready(node2)
        old = client(node1, f"{peer} loop 1")
        check(old.status, f"memory of a node that was taken down is there: {old!r}")
        print(f"    {(old.out + old.err).strip().splitlines()[-1]}", flush=True)
        with serve(node2) as peer:
            seen = wait_until(lambda: _reached(node1, peer), 120, "it is reached again", 1)
            check(seen["done"] and not seen["refused"] + seen["wrong"], f"{seen}")


def _pushed(machine, peer):
    """Requests to a peer, one after the other, are all done well. How many, and what the card has
    seen meanwhile: requests that came whole through the register, and in parts."""
    before = card_counters(machine)
    seen = counted(client(machine, f"{peer} loop 3"))
    check(seen["done"] and not seen["refused"] + seen["failed"] + seen["wrong"], f"{seen}")
    after = card_counters(machine)
    for name in ("blueflame_differs", "doorbells_odd", "doorbells_refused"):
        check(after[name] == before[name], f"{machine.name}: {name} {after[name] - before[name]}")
    return seen["done"], *(after[name] - before[name] for name in ("blueflame", "blueflame_parts"))


@limit(300)
def test_a_request_alone_is_pushed(cluster):
    """Where the card takes it and writes are combined it is not fetched from memory; where they
    are not, or the parameter says no, it is, and all goes on. If the guest stands still for 10 ms
    between two writes the model of the card takes them for not combined."""
    with up(cluster) as (node1, node2), serve(node1) as one, serve(node2) as other:
        done, pushed, parts = _pushed(node2, one)
        print(f"    of {done} requests {pushed} were pushed whole, {parts} in parts", flush=True)
        check(pushed > done / 2, "next to none was pushed")
        node2.nic.set(node2, "writes_apart", True)
        try:
            done, pushed, parts = _pushed(node2, one)
            check(not pushed and parts > done / 2, f"{done} requests, {pushed}, {parts} in parts")
        finally:
            node2.nic.set(node2, "writes_apart", False)
        check(_pushed(node1, other)[1:] == (0, 0), "pushed into a card that has no such register")
        node2.run("echo N >/sys/module/krcore/parameters/blueflame")
        node2.run("krcore-metactl node down", timeout=60)
        node_up(node2)
        krcore.wait_ready(node2)
        check(_pushed(node2, one)[1:] == (0, 0), "pushed, though that is turned off")
