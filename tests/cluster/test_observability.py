# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What can be seen of queues while programs use them: rows of krcore-metactl, who sees
them, and the tracepoints of the module."""

import contextlib
import ipaddress
import re

from . import krcore, trace
from .nodes import (AS_USER, as_user, card_counters, client, counted, finish, pool, program,
                    publish_silent, saying, serve, up, working)
from .suite import check, limit, needs, wait_until

DEAD_SERVICE = 4711
USERS = {"nobody": 65534, "daemon": 1}      # two without rights, of Debian's base system


def _rows(machine, words, user="root"):
    """Rows of krcore-metactl as a user sees them."""
    return krcore.metactl(machine, words, as_user=user)


@contextlib.contextmanager
def _holding(machine, peer):
    """A program of each user has requests under way to a peer."""
    with contextlib.ExitStack() as stack:
        for user in USERS:
            command = f"{as_user(16 << 20, user)} {program(machine)} {peer} hold 250"
            stack.enter_context(saying(machine, command, "holding", f"/run/hold.{user}", 270))
        yield
    machine.run("pkill -KILL -x krc_ioctl; true")


def _posting(machine):
    """Rows of all queues, once each has posted."""
    rows = _rows(machine, "queue list")
    return all(row["posted"] and row["completed"] for row in rows) and rows


@limit(400)
def test_queues_peers_and_users(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        check(_rows(node1, "queue list") == [], "there are queues before any is opened")
        with _holding(node1, peer):
            rows = wait_until(lambda: _posting(node1), 60, "both post")
            check(sorted(row["uid"] for row in rows) == sorted(USERS.values()), f"{rows}")
            pids = {int(pid) for pid in node1.run("pgrep -x krc_ioctl").out.split()}
            check({row["pid"] for row in rows} == pids, f"{rows}, but {pids}")
            slow = pool(node1)["isolated"]
            for row in rows:
                _check_queue(row, node2.spec.address, slow)
            for user, uid in USERS.items():
                own, = (row for row in rows if row["uid"] == uid)
                _check_own(node1, user, own)
            _check_peers(node1, node2.spec.address)
        wait_until(lambda: not _rows(node1, "queue list") and
                   not _rows(node1, "peer list connected"), 30, "nothing is left to be seen")


def _check_queue(row, address, slow):
    """`slow`: what the module has counted of what holds others up, as answers do that a slow
    machine gives late."""
    check(row["gid"] == address and row["service"] == 0 and row["comm"] == "krc_ioctl" and
          row["state"] == "ready" and row["depth"] == 32, f"{row}")
    check(0 < row["completed"] <= row["posted"] and row["transferred_bytes"] > 0 and
          row["outstanding"] <= 32 and row["failed"] == 0 and not row["errno"], f"{row}")
    check(row["initiator"] >= 0 and (row["isolated"] is False or slow),
          f"it holds nobody up: {row}")
    if row["isolated"]:
        print(f"    isolated, for {slow} times something was late", flush=True)


def _check_own(machine, user, own):
    """A user sees its own queue and what it holds, and nothing of another."""
    seen = _rows(machine, "queue list", user)
    key = ("context", "queue", "pid", "uid")
    check([[row[k] for k in key] for row in seen] == [[own[k] for k in key]],
          f"{user} sees {seen}, its own is {own}")
    others = [uid for uid in USERS.values() if uid != own["uid"]]
    check(_rows(machine, f"queue list uid {others[0]}", user) == [], f"{user} sees {others[0]}")
    held = [row for row in _rows(machine, "stats node", user) if row["type"] == "user"]
    check(len(held) == 1, f"{user} sees {held}")
    check(all(held[0][k] == v for k, v in
              {"uid": own["uid"], "contexts": 1, "queues": 1, "regions": 1, "refused": 0}.items())
          and 0 <= held[0]["requests"] <= 64, f"{held[0]}")
    check({row["uid"] for row in _rows(machine, "stats node") if row["type"] == "user"} >=
          set(USERS.values()), "root does not see all users")


def _check_peers(machine, address):
    """One peer that both queues share, and its record in the cache. A user sees which
    peers its own queues have, not that others have them, nor what they asked for."""
    connected = _rows(machine, "peer list connected")
    check([(row["gid"], row["service"], row["queues"]) for row in connected] ==
          [(address, 0, 2)], f"{connected}")
    check(connected[0]["generation"] and connected[0]["regions"] >= 1, f"{connected}")
    cached = _rows(machine, "peer list cached")
    check([(row["gid"], row["service"], row["kind"]) for row in cached] ==
          [(address, 0, machine.nic.kind)], f"{cached}")
    check(cached[0]["generation"] == connected[0]["generation"], f"{cached}")
    for user, queues in (("nobody", 1), ("daemon", 1), ("bin", 0)):
        own = _rows(machine, "peer list connected", user)
        check([(row["gid"], row["service"], row["queues"], row["generation"]) for row in own] ==
              [(address, 0, queues, connected[0]["generation"])] * queues, f"{user}: {own}")
        check(_rows(machine, "peer list cached", user) == [], f"{user} sees the cache")


def _of_a_port(events):
    """The events without their port, which the words of each begin with, as lines of the log."""
    said = [(name, words.partition(" ")) for name, words in events]
    check(all(re.fullmatch(r"[\w-]+/1", words[0]) for _, words in said), f"{events}")
    return [(name, words[2]) for name, words in said]


def _words(events, name):
    """The words of each event of this name."""
    return [words for found, words in _of_a_port(events) if found == name]


@limit(300)
def test_tracepoints_of_a_queue(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        with trace.recording(node1) as recorded:
            done = client(node1, f"{peer} loop 2").out
            # a program's queue is closed by a work item, behind its end
            events = wait_until(lambda: [seen for seen in [recorded()] if any(
                "-> closing" in words for words in _words(seen, "krc_queue_state"))], 30,
                                "the queue is closed")[0]
        counts = dict(pair.split("=") for pair in done.split())
        check(int(counts["done"]) > 2 and counts["failed"] == "0", done)

        connects = _words(events, "krc_connect")
        check(len(connects) == 1, f"{connects}")
        said = dict(pair.split("=") for pair in connects[0].split())
        check(ipaddress.ip_address(said["gid"]).ipv4_mapped ==
              ipaddress.ip_address(node2.spec.address) and said["service"] == "0" and
              said["err"] == "0", f"{connects}")
        queue = f"context={said['context']} queue={said['queue']} "
        states = _words(events, "krc_queue_state")
        check(all(words.startswith(queue) for words in states), f"not all of {queue}: {states}")
        check([words.removeprefix(queue) for words in states] ==
              ["idle -> connecting err=0", "connecting -> ready err=0",
               "ready -> closing err=0"], f"{states}")
        _check_requests(events, int(counts["done"]))
        check(not _words(events, "krc_fault"), "a request failed")
        with trace.recording(node1, "krc_connect") as recorded:
            check(recorded() == [], "it records although nothing happens")


def _check_requests(events, done):
    """Each request was posted and completed well, READs and WRITEs in turn."""
    for name in ("krc_post", "krc_complete"):
        lines = _words(events, name)
        kinds = {kind: sum(f" {kind} length=" in words for words in lines)
                 for kind in ("read", "write")}
        # READs of the peer's memory directory come on top
        check(kinds["read"] >= done // 2 and kinds["write"] == (done + 1) // 2 and
              sum(kinds.values()) == len(lines), f"{name}: {kinds} for {done} requests")
    bad = [words for words in _words(events, "krc_complete") if not words.endswith(" status=0")]
    check(not bad, f"{bad}")
    odd = [words for words in _words(events, "krc_post")
           if not re.fullmatch(r"initiator=\d+ cookie=\d+ (read|write) length=\d+", words)]
    check(not odd, f"{odd}")


def _all_ended(events):
    """The events, if an initiator failed, and as many recoveries ended as began."""
    failed = [words for words in _words(events, "krc_initiator_state")
              if words.endswith("ready -> failed")]
    return failed and len(failed) == len(_words(events, "krc_recovery_end")) and events


@limit(300)
def test_tracepoints_of_a_recovery(cluster):
    """A peer that is published and does not answer: an initiator fails and is reset."""
    names = ("krc_fault", "krc_initiator_state", "krc_recovery_begin", "krc_recovery_end")
    with up(cluster) as (node1, node2), serve(node2) as peer:
        publish_silent(node2, DEAD_SERVICE)
        silent = f"{node2.spec.address} {DEAD_SERVICE} {' '.join(peer.split()[2:])} silent 20"
        with trace.recording(node1, *names) as recorded:
            said = client(node1, silent).out
            events = _of_a_port(wait_until(lambda: _all_ended(recorded()), 30, "each reset ends"))
        check(" done=0 " in f" {said}" and "wrong=0 " in said, said)
        for initiator in {words.split()[0] for _, words in events}:
            _check_resets([(name, words.removeprefix(f"{initiator} ")) for name, words in events
                           if words.startswith(f"{initiator} ")])


def _check_resets(events):
    """An initiator failed because there was no answer, was reset, and was ready, each time."""
    faults = [words for name, words in events if name == "krc_fault"]
    check(any(re.fullmatch(r"cookie=\d+ timeout syndrome=0x\w\w vendor=0x\w\w", words)
              for words in faults), f"{faults}")
    steps = [event for event in events if event[0] != "krc_fault"]
    one = [("krc_initiator_state", "ready -> failed"),
           ("krc_initiator_state", "failed -> resetting"),
           ("krc_recovery_begin", "after timeout"),
           ("krc_initiator_state", "resetting -> ready"),
           ("krc_recovery_end", "err=0")]
    check(steps and steps == one * (len(steps) // len(one)), f"{steps}")


def _changes(machine):
    """Changes of target of all initiators: as the module has counted them, and as the card."""
    return pool(machine)["target_changes"], card_counters(machine)["dc_target_changes"]


def _talk(machine, peer, seconds):
    """A program has requests to a peer, one after the other, and all of them are done well."""
    seen = counted(client(machine, f"{peer} loop {seconds}"))
    check(seen["done"] and not seen["refused"] + seen["failed"] + seen["wrong"], f"{seen}")


def _changed(machine, before):
    """What both have counted since, once all programs have ended."""
    wait_until(lambda: not _rows(machine, "queue list"), 30, "all programs have ended")
    return [now - was for now, was in zip(_changes(machine), before)]


@needs("dc")
@limit(400)
def test_changes_of_target_are_those_of_the_card(cluster):
    """One initiator, and programs that talk to two peers by it: the module has counted what the
    card has disconnected and connected for. With one peer there is nothing to be counted."""
    names = ("node1", "node2", "meta1")
    with up(cluster, names=names, pool_initiators=1) as (node1, node2, meta1), \
            serve(node2) as one, serve(meta1) as other:
        _talk(node1, one, 1)
        before = _changes(node1)
        _talk(node1, one, 2)
        alone = _changed(node1, before)
        check(alone == [0, 0], f"changes with one peer, module and card: {alone}")
        resets, before = pool(node1)["recoveries"], _changes(node1)
        with node1.background(f"{AS_USER} {program(node1)} {other} loop 200 >/dev/null",
                              limit=250):
            working(node1, 1)
            _talk(node1, one, 4)
            finish(node1, "loop 200")
        module, card = _changed(node1, before)
        print(f"    changes of target: {module} by the module, {card} by the card", flush=True)
        check(module > 10, "two peers, and next to no change")
        # a reset takes requests back that the card has not begun
        check(module == card or (pool(node1)["recoveries"] > resets and module > card),
              f"{module} changes by the module, {card} by the card")
