# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Many processes with queues to two peers, on a network that loses, cuts and reorders, some
of them killed, some with bad references (tests/module/krc_stress.c): needs a card with DC.

KRCORE_STRESS_SECONDS: how long, 60 when not said. KRCORE_STRESS_SEED: a run to repeat, or
`random`; 1 when not said.
"""

import contextlib
import os
import random
import time

from . import krcore, programs
from .suite import Skip, check, limit, wait_until
from .test_module import _held

PROGRAM = "tests/module/krc_stress"
AS_USER = "prlimit --memlock=536870912 setpriv --reuid=nobody --regid=nogroup --clear-groups"
SECONDS = int(os.environ.get("KRCORE_STRESS_SECONDS", "60"))
ACTIVE, PASSIVE, SECOND = "node1", "node2", "meta1"
NODE = {"lease_ms": 5000, "reconnect_max_ms": 1000}
END_SECONDS = 240       # for the last requests, and to read all that is left
RETRIES_SECONDS = 6     # a cut of this length makes requests fail


def _seed():
    """The seed of this run, told to whoever wants to repeat it."""
    said = os.environ.get("KRCORE_STRESS_SEED", "1")
    seed = random.randrange(1 << 31) if said == "random" else int(said)
    print(f"    KRCORE_STRESS_SEED={seed} KRCORE_STRESS_SECONDS={SECONDS}", flush=True)
    return seed


@contextlib.contextmanager
def _up(cluster):
    """Module and program are in three guests; afterwards nothing of it is."""
    if cluster.nic.name != "cx":
        raise Skip("needs a card with DC")
    machines = [cluster.node(name) for name in (ACTIVE, PASSIVE, SECOND)]
    for machine in machines:
        krcore.node_gone(machine)
    krcore.setup(cluster, node=NODE)
    for machine in machines:
        programs.install(machine, PROGRAM)
        krcore.node_up(machine)
    for machine in machines:
        wait_until(lambda m=machine: krcore.lookup(machines[0], m.spec.address, 0), 60,
                   f"{machine.name} is published")
    try:
        yield machines
    finally:
        cluster.fabric.reset()
        for machine in machines:
            if machine.alive():
                machine.run("pkill -KILL -x krc_stress; sleep 1; true")
                krcore.node_gone(machine)
                check(machine.run("test ! -d /sys/module/krcore", check=False).status == 0,
                      f"{machine.name}: the module could not be removed")


@contextlib.contextmanager
def _lent(machines, seed, words=""):
    """Memory of other guests: the PEER words of krc_stress."""
    with contextlib.ExitStack() as stack:
        peers = []
        for machine in machines:
            out = "/run/krc-stress.out"
            machine.run(f"rm -f {out}")
            stack.enter_context(machine.background(
                f"{AS_USER} krc_stress serve --seed {seed} --seconds {SECONDS + 600} {words} "
                f">{out} 2>&1", limit=SECONDS + 700))
            said = wait_until(lambda m=machine: m.run(f"cat {out}", check=False).out, 60,
                              f"{machine.name} lends memory")
            check(said.startswith("region "), said)
            peers.append(f"{machine.spec.address} {said.split(' ', 1)[1].strip()}")
        yield " ".join(peers)
        for machine in machines:
            said = machine.run("pkill -KILL -x krc_stress; cat /run/krc-stress.out").out
            check("ended" not in said, f"{machine.name}: {said}")


class Trouble:
    """What happens to the network while the stress runs, drawn from a seed."""

    def __init__(self, cluster, seed):
        self._cluster = cluster
        self._fabric = cluster.fabric
        self._random = random.Random(seed)
        self._guests = [cluster.node(name) for name in (ACTIVE, PASSIVE, SECOND)]
        self.seen = []

    def _noise(self):
        """Some frames are lost, come twice, or come late."""
        guest = self._random.choice(self._guests)
        lost = self._random.randint(5, 20)
        self.seen.append(f"loss {guest.name} {lost}/1000")
        self._fabric.loss(guest.spec.index, lost)
        self._fabric.disorder(guest.spec.index, self._random.randint(0, 20),
                              self._random.randint(0, 20))
        time.sleep(self._random.uniform(2, 6))

    def _short_cut(self):
        """Nobody may notice but by the time it takes."""
        other = self._random.choice((PASSIVE, SECOND))
        length = self._random.uniform(0.2, 1.2)
        self.seen.append(f"cut {other} {length:.1f} s")
        self._cluster.cut(ACTIVE, other)
        time.sleep(length)

    def _long_cut(self):
        """Requests to one peer fail, those to the other do not."""
        active = self._guests[0]
        length = RETRIES_SECONDS + self._random.uniform(0, 4)
        self.seen.append(f"cut {PASSIVE} {length:.1f} s, which is noticed")
        active.run("pkill -USR1 -o -x krc_stress")
        time.sleep(0.2)
        self._cluster.cut(ACTIVE, PASSIVE)
        time.sleep(length)
        self._fabric.reset()
        active.run("pkill -USR2 -o -x krc_stress")

    def go_on(self, until):
        """Until then, one thing after the other."""
        while time.monotonic() < until:
            self._random.choice((self._noise, self._noise, self._short_cut,
                                 self._long_cut))()
            self._fabric.reset()
            time.sleep(self._random.uniform(0.5, 3))


def _stress(cluster, machine, words, seed=None):
    """One run: with trouble on the network if there is a seed for it."""
    out = "/run/krc-stress-run.out"
    machine.run(f"rm -f {out}")
    with machine.background(f"{AS_USER} krc_stress run {words} >{out} 2>&1",
                            limit=SECONDS + 600) as process:
        if seed is not None:
            trouble = Trouble(cluster, seed)
            time.sleep(2)
            trouble.go_on(time.monotonic() + SECONDS - 5)
            print(f"    {', '.join(trouble.seen)}", flush=True)
        status = process.wait(SECONDS + END_SECONDS).status
    said = machine.run(f"cat {out}").out
    check(said.strip(), "it said nothing")
    line = said.strip().splitlines()[-1]
    check("violations=" in line, said[-4000:])
    return status, {key: int(value) for key, value in
                    (pair.split("=") for pair in line.split())}, said


def _given_back(machines, before):
    for machine, held in zip(machines, before):
        wait_until(lambda m=machine: not krcore.metactl(m, "queue list"), 60,
                   f"{machine.name}: no queue is left")
        wait_until(lambda m=machine, h=held: _held(m) == h, 60,
                   f"{machine.name}: all is given back: {held}")


@limit(SECONDS + END_SECONDS + 300)
def test_stress(cluster):
    """Content is right, each request completes once, and errors are those of the cuts."""
    seed = _seed()
    with _up(cluster) as machines:
        time.sleep(2)
        before = [_held(machine) for machine in machines]
        with _lent(machines[1:], seed) as peers:
            status, counts, said = _stress(
                cluster, machines[0],
                f"--seed {seed} --seconds {SECONDS} --processes 8 {peers}", seed)
            pools = [row for row in krcore.metactl(machines[0], "stats node") if "replayed" in row]
        print(f"    {said.strip().splitlines()[-1]}\n    {pools}", flush=True)
        check(not status and not counts["violations"], said[-6000:])
        for name in ("done", "bytes", "atomics", "words", "closes", "cancelled", "regions",
                     "refused", "passed", "kills"):
            check(counts[name], f"{name}: nothing of it happened: {counts}")
        _given_back(machines, before)


@limit(300 + END_SECONDS)
def test_stress_would_see_it(cluster):
    """The control: memory that changes by itself is found."""
    with _up(cluster) as machines, _lent(machines[1:2], 1, "--spoil") as peers:
        status, counts, said = _stress(cluster, machines[0], "--seed 1 --seconds 10 "
                                       f"--processes 2 --no-kills {peers}")
        check(status == 1 and counts["violations"], said[-2000:])


@limit(500)
def test_thousand_killed(cluster):
    """A thousand programs killed with requests under way leave nothing."""
    count = 1000
    with _up(cluster) as machines, _lent(machines[1:], 1) as peers:
        active = machines[0]
        words = f"--seed 1 --processes 20 {peers}"
        active.run(f"{AS_USER} krc_stress kill --count 1 {words}", timeout=60)
        time.sleep(2)       # what a program had is given back in the background
        before = _held(active)
        check("pinned 0" in before, before)
        result = active.run(f"{AS_USER} krc_stress kill --count {count} {words}", timeout=400,
                            check=False)
        print(f"    {result.out.strip().splitlines()[-1]}", flush=True)
        check(not result.status and f"killed={count} failed=0" in result.out, repr(result))
        _given_back([active], [before])
