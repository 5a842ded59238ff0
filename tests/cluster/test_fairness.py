# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What a bad program of a node is to a good one beside it: bad references, floods, deaths, silent
peers; and the turns that large and small requests take.

Times of emulated guests say nothing, so turns are counted. A good program has no error and no
wrong byte; that it gets on is judged by what may stand before each of its requests, and by how
fast that was done meanwhile.
"""

import contextlib
import re

from . import trace
from .krcore import metactl
from .nodes import (AS_USER, card_counters, client, counted, finish, given_back, held, pool,
                    program, publish_silent, serve, tap, up, working)
from .suite import check, limit, wait_until


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
BAD_SECONDS = 900   # it is told when it is over
GOOD_SECONDS = 8
ATTEMPTS = 3        # of an emulated machine, which is not equally fast all the time
# For so long who has just woken up may wait for a processor that others have: what Linux lets
# them have it for (24 ms, with any number of processors).
SLICE_SECONDS = 0.024


def _floor(alone, ahead_seconds):
    """Requests a second of a good tenant that does one after the other, if so much stands
    before each of them that was not there when it was alone; half of that, since the machine
    has other things to do, and not always the same."""
    return 0.5 / (1 / alone + ahead_seconds)


def _good(machine, peer):
    """A good tenant: requests a second of its own, and of all others meanwhile."""
    before = pool(machine)["completed"]
    seen = counted(client(machine, f"{peer} loop {GOOD_SECONDS}"))
    others = pool(machine)["completed"] - before - seen["done"]
    check(seen["done"] and not seen["refused"] + seen["failed"] + seen["wrong"], f"{seen}")
    return seen["done"] / GOOD_SECONDS, max(others, 0) / GOOD_SECONDS


def _killed(machine):
    """How many of the bad ones have died."""
    found = re.match(r"killed=(\d+) ", machine.run(f"cat {BAD_OUT}").out)
    return int(found[1]) if found else 0


class _Bad:
    """A bad tenant in the background, and what a good one has to have beside it."""

    def __init__(self, machine, peer, what):
        program_words = f"{AS_USER} {program(machine)} {peer}"
        self._machine, self._peer, self._dies = machine, peer, what == "death"
        self._words = f"{what} {BAD_SECONDS}"
        self._command = (DEATH % f"{program_words} hold {BAD_SECONDS}" if self._dies
                         else f"{program_words} {self._words} >{BAD_OUT}")
        self._floods = what != "hostile"    # of bad references nothing comes to the hardware

    def beside(self):
        """Two good tenants, one after the other: (requests a second, seconds before each)."""
        machine = self._machine
        machine.run(f"rm -f {BAD_END} {BAD_OUT}; touch {BAD_OUT}")
        with machine.background(self._command, limit=BAD_SECONDS) as bad:
            if self._dies:
                wait_until(lambda: _killed(machine), 60, "it dies")
            elif self._floods:
                working(machine, 1)
            else:
                wait_until(lambda: machine.run("pgrep -x krc_ioctl", check=False).out, 20,
                           "it has begun")
            seen = [_good(machine, self._peer) for _ in range(2)]
            if self._dies:
                wait_until(lambda: _killed(machine) > 1, 60, "it has died more than once")
                machine.run(f"touch {BAD_END}")
            else:
                finish(machine, self._words)
            bad.wait(100)
        return [(rate, SLICE_SECONDS + (FLOOD / others if self._floods and others else 0))
                for rate, others in seen]

    def said(self):
        """What it said of itself last."""
        return self._machine.run(f"cat {BAD_OUT}")


@contextlib.contextmanager
def _cards_refuse_nothing(here, there):
    refused, failed = card_counters(there)["naks_error"], card_counters(here)["completions_error"]
    yield
    check(card_counters(there)["naks_error"] == refused, "the peer's card refused something")
    check(card_counters(here)["completions_error"] == failed, "a request failed on the card")


def _gets_on(machine, peer, bad, alone):
    """Whether a good tenant gets on beside a bad one as it may, judged by what it does alone right
    before and behind; a machine that became slower meanwhile is asked again. Returns what is to
    be said of it, whether it does, and what it does alone now."""
    said = []
    for _ in range(ATTEMPTS):
        seen = bad.beside()
        before, alone = alone, _good(machine, peer)[0]
        floors = [_floor(min(before, alone), ahead) for _, ahead in seen]
        said.append(" and ".join(f"{rate:.0f} (at least {floor:.0f})"
                                 for (rate, _), floor in zip(seen, floors)))
        if all(rate >= floor for (rate, _), floor in zip(seen, floors)):
            return said, True, alone
    return said, False, alone


@limit(900)
def test_bad_tenant_beside_good_ones(cluster):
    """Bad references, a flood of large requests, and death again and again. Of a bad reference
    nothing comes to the hardware, so it can cost no more than a processor; of the others all
    requests may stand before each of the good one's, and not twice."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        before = held(node1)
        hostile, flood, death = (_Bad(node1, peer, what) for what in ("hostile", "hold", "death"))
        slow = []
        with _cards_refuse_nothing(node1, node2):
            alone, _ = _good(node1, peer)
            print(f"    good tenant: {alone:.0f} requests/s alone (emulated)", flush=True)
            for kind, bad in (("bad references", hostile), ("a flood", flood),
                              ("deaths", death)):
                said, well, alone = _gets_on(node1, peer, bad, alone)
                print(f"    beside {kind}: {'; '.join(said)}, alone then {alone:.0f}", flush=True)
                slow += [] if well else [f"{kind}: {'; '.join(said)}"]
                if bad is hostile:
                    did = counted(bad.said())
                    check(did["refused"] and not did["done"] + did["failed"] + did["wrong"],
                          f"{did}")
                elif bad is flood:
                    did = counted(bad.said())
                    check(did["done"] and not did["failed"], f"{did}")
        said = death.said().out
        check("killed=" in said and "status=137 holding" in said and "killed=1 " not in said, said)
        given_back(node1, before, 30)
        check(not slow, f"it does not get on beside {slow}")


DEAD_SERVICE = 4711
RESETS = 4      # that are waited for: one of a peer that was new, and then of quarantine
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
        asks = f"{node2.spec.address} {DEAD_SERVICE} {' '.join(peer.split()[2:])} silent 900"
        with (trace.recording(node1, "krc_recovery_begin", "krc_connect") as recorded,
              node1.background(f"{AS_USER} {program(node1)} {asks} >/run/silent.out 2>&1",
                               limit=900) as bad):
            good = [counted(client(node1, f"{peer} loop 8")) for _ in range(3)]
            wait_until(lambda: [name for name, _ in recorded()].count("krc_recovery_begin")
                       >= RESETS, 120, "initiators are reset for it")
            finish(node1, "silent 900")
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
