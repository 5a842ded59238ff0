# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Many processes with queues to three peers, on a network that loses, cuts and reorders, with
cables that are pulled, some of them killed, some with bad references, and peers that die and
come back (tests/module/krc_stress.c). Meanwhile programs of two nodes
take a lock in the memory of a third, and give it back; and send it numbered messages, which come
once and in order (tests/module/message_stress.c).

KRCORE_STRESS_SECONDS: how long, 120 when not said; longer where a slow machine has not met each
kind of trouble by then. KRCORE_STRESS_SEED: a run to repeat, or `random`; 1 when not said.
"""

import contextlib
import os
import random
import time

from . import krcore, nodes, programs
from .nodes import given_back, held
from .suite import check, limit, wait_until

PROGRAM = "tests/module/krc_stress"
AS_USER = nodes.as_user(512 << 20)
SECONDS = int(os.environ.get("KRCORE_STRESS_SECONDS", "120"))
ACTIVE, PASSIVE, SECOND = "node1", "node2", "meta1"
PROCESSES, QUEUES, QUEUE_DEPTH = 8, 3, 32   # ST_QUEUES, ST_DEPTH
END_SECONDS = 240       # for the last requests, and to read all that is left
RETRIES_SECONDS = 6     # a cut of this length makes requests fail
MORTAL_SERVICE = 4300   # of the peer that is killed and comes back
ROUND_SECONDS = 120     # from which on each kind of trouble comes at least once, ...
MORE_SECONDS = 300      # ... if that takes so much longer
QUIET = {"noise", "short_cut", "short_flap"}    # which nobody may notice
KINDS = QUIET | {"long_cut", "long_flap_there", "long_flap_here", "death", "restart"}
LEAST_KINDS = KINDS if SECONDS >= ROUND_SECONDS else QUIET
RUN_OUT, RUN_IN = "/run/krc-stress-run.out", "/run/krc-stress-run.in"
CLIENTS = 2             # of the lock, on each of two nodes
LOCK_OUT = "/run/krc-stress-lock.out"
CARELESS_SECONDS = 120  # in which they are seen, sooner where guests are fast
MESSAGE_PROGRAM = "tests/module/krc_message"
MESSAGE_OUT = "/run/krc-stress-message.out"
MESSAGE_SERVICE = 4400
MESSAGE_CONNECTIONS = 4     # RE_CONNECTIONS
MESSAGES_LEAST = 100        # that come from each node, however slow all is
LOCK_LEAST = 10         # times that each node has it at least, however slow all is


def _seed():
    """The seed of this run, told to whoever wants to repeat it."""
    said = os.environ.get("KRCORE_STRESS_SEED", "1")
    seed = random.randrange(1 << 31) if said == "random" else int(said)
    print(f"    KRCORE_STRESS_SEED={seed} KRCORE_STRESS_SECONDS={SECONDS}", flush=True)
    return seed


@contextlib.contextmanager
def _up(cluster):
    """Module and program are in three guests; afterwards nothing of it is."""
    # a cut that nobody may notice ends before half the margin is over, and before a lane, which
    # tries again seven times where a card does so longer, gives up; a cable that is out for long
    # costs records, too
    with nodes.up(cluster, (ACTIVE, PASSIVE, SECOND), margin_ms=6000, lease_ms=5000,
                  timeout_ms=5000) as machines:
        for machine in machines:
            programs.install(machine, PROGRAM)
            krcore.wait_ready(machine)
        krcore.wait_published(machines[0], machines)
        try:
            yield machines
        finally:
            cluster.fabric.reset()


class Lender:
    """One `krc_stress serve` in a guest: it may be killed, and started again."""

    def __init__(self, machine, seed, service=0, words=""):
        self.machine = machine
        self.region = ""
        self._out, self._pid = (f"/run/krc-stress-{service}.{end}" for end in ("out", "pid"))
        self._command = (f"echo $$ >{self._pid}; exec {AS_USER} krc_stress serve --seed {seed} "
                         f"--seconds {SECONDS + MORE_SECONDS + 600} {words} "
                         + (f"--service {service} " if service else "") + f">{self._out} 2>&1")
        self._address = machine.spec.address + (f"/{service}" if service else "")

    @property
    def peer(self):
        """The PEER words of krc_stress."""
        return f"{self._address} {self.region}"

    def start(self):
        """Lend memory; returns when it is there."""
        self.machine.run(f"rm -f {self._out}")
        self.machine.popen(self._command, limit=SECONDS + MORE_SECONDS + 700)
        said = wait_until(lambda: self.machine.run(f"cat {self._out}", check=False).out, 60,
                          f"{self.machine.name} lends memory")
        check(said.startswith("region "), said)
        self.region = said.split(" ", 1)[1].strip()

    def kill(self):
        """Kill it; when this returns, it is gone. Returns what it said."""
        return self.machine.run(f"p=$(cat {self._pid}); kill -KILL $p; "
                                "while kill -0 $p; do sleep 0.05; done 2>/dev/null; "
                                f"cat {self._out}").out


@contextlib.contextmanager
def _lent(lenders):
    """Memory of other guests: the PEER words of krc_stress."""
    for lender in lenders:
        lender.start()
    yield " ".join(lender.peer for lender in lenders)
    for lender in lenders:
        said = lender.kill()
        check("ended" not in said, f"{lender.machine.name}: {said}")


class Contenders:
    """Clients of one lock in the memory that a lender has, on several nodes. The lender must
    not die; whatever else may happen to the nodes and to what is between them."""

    def __init__(self, machines, lender, seconds, words=""):
        self.machines = machines
        self._words = f"--seconds {seconds} --processes {CLIENTS} {words} {lender.peer}"
        self._limit = seconds + END_SECONDS
        self.counts = []
        self.said = ""

    @contextlib.contextmanager
    def at_it(self):
        """They begin; behind the block they have ended, and what they counted is here."""
        with contextlib.ExitStack() as stack:
            running = [stack.enter_context(machine.background(
                f"{AS_USER} krc_stress lock --first {1 + i * CLIENTS} --seed {i} {self._words} "
                f">{LOCK_OUT} 2>&1", limit=self._limit + 60))
                for i, machine in enumerate(self.machines)]
            yield
            for machine in self.machines:
                _end(machine, "lock")
            for process in running:
                process.wait(END_SECONDS)
        for machine in self.machines:
            said = machine.run(f"cat {LOCK_OUT}").out
            self.said += f"{machine.name}:\n{said}"
            check("violations=" in said, self.said[-4000:])
            self.counts.append(_counts(said))

    def check_never_two_owners(self):
        """Whatever was in doubt: the owner of the lock was alone, and it was counted each time."""
        for machine, counts in zip(self.machines, self.counts):
            print(f"    lock, {machine.name}: {counts}", flush=True)
        check(not any(counts["violations"] for counts in self.counts), self.said[-4000:])
        check(all(counts["taken"] > LOCK_LEAST for counts in self.counts),
              f"one did not get on: {self.counts}")
        taken, last = sum(c["taken"] for c in self.counts), max(c["last"] for c in self.counts)
        check(taken == last, f"owned {taken} times, and {last} of them are counted")


class Messengers:
    """Programs that send numbered messages to one on a node that nothing is done to but for short
    cuts, and connect anew whenever a connection dies, or their own node."""

    def __init__(self, machines, judge, words=""):
        self.machines = machines
        self._judge = judge
        self._words = words
        self._turns = {}  # by name of one: what it sent, what was completed, what came
        self._last = []

    @contextlib.contextmanager
    def at_it(self):
        """They begin; behind the block all have ended, and what they counted is here."""
        with self.begun():
            yield
            for machine in (*self.machines, self._judge):
                machine.run("pkill -TERM -x krc_message")
                wait_until(lambda m=machine: not m.run("pgrep -x krc_message", check=False).out,
                           120, f"{machine.name}: it ends")
        for machine in self.machines:
            for turn, row in self._said(machine):
                self._turns[turn] = row
        for turn, row in self._said(self._judge):
            check(turn in self._turns, f"{turn} is nobody's")
            self._turns[turn].update(row)

    @contextlib.contextmanager
    def begun(self):
        """They run for a block."""
        with contextlib.ExitStack() as stack:
            self._begin(stack, self._judge, f"judge {MESSAGE_SERVICE}")
            for i, machine in enumerate(self.machines):
                self._begin(stack, machine, f"restless {self._judge.spec.address} "
                            f"{MESSAGE_SERVICE} {i + 1} {self._words}")
            yield

    def _begin(self, stack, machine, words):
        programs.install_once(machine, MESSAGE_PROGRAM, "/usr/local/bin/krc_message")
        begins = "listening" if words.startswith("judge") else "restless"
        stack.enter_context(nodes.saying(machine, f"{nodes.AS_USER} krc_message {words}", begins,
                                         MESSAGE_OUT, SECONDS + MORE_SECONDS + 600))

    def _said(self, machine):
        """Each turn that it tells of; and its last line is kept."""
        said = machine.run(f"cat {MESSAGE_OUT}").out
        lines = said.strip().splitlines()
        check(lines and lines[-1].startswith("turns="), f"{machine.name}: {said[-2000:]}")
        print(f"    messages, {machine.name}: {lines[-1]}", flush=True)
        self._last.append(_counts(said))
        for line in lines:
            if line.startswith("connection "):
                row = nodes.pairs(line.removeprefix("connection "))
                yield (row.pop("id"), row.pop("turn")), row

    def check_once_and_in_order(self, deaths):
        """What was completed has come, and nothing came that was not sent; order, number and bytes
        the judge has looked at itself. @deaths: connections must have died."""
        for turn, row in self._turns.items():
            came = row.get("count", 0)
            check(row["completed"] <= came <= row["sent"], f"turn {turn}: {row}")
        count = sum(row.get("count", 0) for row in self._turns.values())
        print(f"    {count} messages came once, in {len(self._turns)} turns",
              flush=True)
        check(not any(counts.get("undone") for counts in self._last), f"{self._last}")
        for i, machine in enumerate(self.machines, 1):      # RE_CONNECTIONS each
            from_it = sum(row.get("count", 0) for turn, row in self._turns.items()
                          if turn[0] // MESSAGE_CONNECTIONS == i)
            check(from_it > MESSAGES_LEAST, f"{machine.name}: {from_it} messages have come")
        if deaths:
            check(len(self._turns) > MESSAGE_CONNECTIONS * len(self.machines) and
                  self._last[1]["opens"] > 1, f"none has died: {self._last}")


class Trouble:
    """What happens while the stress runs, drawn from a seed: to the network, to cables, and
    to the peers, which are numbered as their lenders are."""

    def __init__(self, cluster, seed, lenders):
        self._cluster = cluster
        self._fabric = cluster.fabric
        self._random = random.Random(seed)
        self._guests = [cluster.node(name) for name in (ACTIVE, PASSIVE, SECOND)]
        self._lenders = lenders
        self._told = 0
        self.seen = []
        self.kinds = set()

    def _tell(self, words):
        """Tell the stress of peers; returns when all its processes know."""
        self._told += 1
        self._guests[0].run(f"echo '{words}' >{RUN_IN}; until [ $(grep -c '^told ' {RUN_OUT}) -ge "
                            f"{self._told} ]; do sleep 0.02; done", timeout=60)

    def _lossy(self):
        """From now on some frames are lost, come twice, or come late."""
        guest = self._random.choice(self._guests)
        lost = self._random.randint(5, 20)
        self.seen.append(f"loss {guest.name} {lost}/1000")
        self._fabric.loss(guest.spec.index, lost)
        self._fabric.disorder(guest.spec.index, self._random.randint(0, 20),
                              self._random.randint(0, 20))

    def _noise(self):
        """A time of such frames."""
        self._lossy()
        time.sleep(self._random.uniform(2, 6))

    def _short_cut(self):
        """Nobody may notice but by the time it takes."""
        other = self._random.choice((PASSIVE, SECOND))
        length = self._random.uniform(0.2, 1.2)
        self.seen.append(f"cut {other} {length:.1f} s")
        begun = time.monotonic()
        self._cluster.cut(ACTIVE, other)
        time.sleep(length)
        self._fabric.reset()
        self.seen[-1] += f", measured {time.monotonic() - begun:.1f}"

    def _long_cut(self):
        """Requests to one peer fail, those to the others do not."""
        length = RETRIES_SECONDS + self._random.uniform(0, 4)
        self.seen.append(f"cut {PASSIVE} {length:.1f} s, which is noticed")
        self._tell("cut 0")
        self._cluster.cut(ACTIVE, PASSIVE)
        time.sleep(length)
        self._fabric.reset()
        self._tell("join 0")

    def _flap(self, guest, length):
        guest.link_down()
        try:
            time.sleep(length)
        finally:
            guest.link_up()

    def _short_flap(self):
        """A cable is out for so short a time that nobody may notice."""
        guest = self._random.choice(self._guests)
        length = self._random.uniform(0.2, 1.2)
        self.seen.append(f"link {guest.name} down {length:.1f} s")
        self._flap(guest, length)

    def _long_flap(self, guest, lost, back):
        """A cable is out for longer than the retries; the stress is told before and after."""
        length = RETRIES_SECONDS + self._random.uniform(0, 4)
        self.seen.append(f"link {guest.name} down {length:.1f} s, which is noticed")
        self._tell(lost)
        self._flap(guest, length)
        self._tell(back)

    def _long_flap_there(self):
        """The cable of one peer: its requests fail, those to others do not."""
        self._long_flap(self._guests[1], "away 0", "join 0")

    def _long_flap_here(self):
        """One's own cable: requests to all peers may fail."""
        self._long_flap(self._guests[0], "cut 0 1 2", "join 0 1 2")

    def _death(self):
        """What lends memory is killed and comes back with other memory, beside one that lends
        on the same node, to which no request may fail. On a lossy network requests are sent
        again, and may come when the memory has gone."""
        if self._random.randrange(2):
            self._lossy()
        for _ in range(self._random.randint(1, 2)):
            pause = self._random.uniform(0, 3)
            self.seen.append(f"killed {SECOND}/{MORTAL_SERVICE}, back after {pause:.1f} s")
            self._tell("dead 2")
            self._lenders[2].kill()
            time.sleep(pause)
            self._lenders[2].start()
            self._tell(f"back 2 {self._lenders[2].region}")
            time.sleep(self._random.uniform(1, 4))

    def _restart(self):
        """A node goes down under those who lend there and use it, and is back with a newer
        boot generation."""
        guest, lender = self._guests[1], self._lenders[0]
        pause = self._random.uniform(0, 3)
        self.seen.append(f"node {PASSIVE} down, up after {pause:.1f} s")
        (before,) = krcore.node_rows(guest, "node")
        self._tell("away 0")
        self._tell("dead 0")
        guest.run("krcore-metactl node down", timeout=60)
        lender.kill()
        time.sleep(pause)
        krcore.node_up(guest)
        (after,) = krcore.node_rows(guest, "node")
        check(after["generation"] > before["generation"], f"{before}, {after}")
        lender.start()
        self._tell(f"back 0 {lender.region}")
        self._tell("join 0")

    def go_on(self, until):
        """Until then, and until each kind has come, one thing after the other: all kinds, in an
        order that is drawn, and all of them again in another. Those that nobody may notice come
        first, when no request to any peer may fail yet."""
        quiet = [self._noise, self._noise, self._short_cut, self._short_flap, self._short_flap]
        loud = [self._long_cut, self._long_flap_there, self._long_flap_here, self._death,
                self._restart]
        todo = self._random.sample(loud, len(loud)) + self._random.sample(quiet, len(quiet))
        while time.monotonic() < until + (0 if self.kinds >= LEAST_KINDS else MORE_SECONDS):
            todo = todo or self._random.sample(quiet + loud, len(quiet + loud))
            kind = todo.pop()
            kind()
            self.kinds.add(kind.__name__.strip("_"))
            self._fabric.reset()
            time.sleep(self._random.uniform(0.5, 3))
        _end(self._guests[0], "run")


def _end(machine, word):
    """Tell `krc_stress WORD` on a machine to end now; `serve` beside it goes on."""
    machine.run("for p in $(pgrep -x krc_stress); do "
                f"grep -qzx {word} /proc/$p/cmdline && kill -TERM $p; done; true")


def _counts(said):
    """The last line that a program said."""
    return nodes.pairs(said.strip().splitlines()[-1])


def _stress(machine, words, trouble=None):
    """One run: with trouble, if there is any. Returns status, counts, and all it said."""
    machine.run(f"rm -f {RUN_OUT} {RUN_IN}; mkfifo {RUN_IN}")
    with machine.background(f"exec 3<>{RUN_IN}; {AS_USER} krc_stress run {words} <&3 3<&- "
                            f">{RUN_OUT} 2>&1", limit=SECONDS + MORE_SECONDS + 600) as process:
        if trouble:
            time.sleep(2)
            trouble.go_on(time.monotonic() + SECONDS - 5)
            print(f"    {', '.join(trouble.seen)}", flush=True)
        status = process.wait(SECONDS + END_SECONDS).status
    said = machine.run(f"cat {RUN_OUT}").out
    check(said.strip(), "it said nothing")
    check("violations=" in said.strip().splitlines()[-1], said[-4000:])
    return status, _counts(said), said


def _first_wrong(said, lines=60):
    """What was wrong first, with what had happened until then, and the end."""
    wrong = [line for line in said.splitlines() if not line.startswith("told ")]
    first = said.find("VIOLATION")
    told = [line for line in said[:first].splitlines() if line.startswith("told ")]
    return "\n".join([*told[-4:], *wrong[:lines], *wrong[-3:]])


def _doubt_has_cause(counts, pools, shared):
    """A WRITE or an atomic is in doubt, where its own peer was there, only if an initiator was
    reset since some READ was refused or a lease was over, as the module's counters have it; and
    then only what was posted to that initiator, and what stood behind it in @shared requests of
    all queues."""
    resets = sum(row["refused_reads"] + row["expired"] for row in pools)
    most = resets * (max(row["depth"] for row in pools) + shared)
    check(counts["doubted"] <= most,
          f"{counts['doubted']} requests in doubt, {most} at most by {resets} resets: {pools}")


def _settled(machine):
    """Whether the module's own counters say that all requests are done and all is free."""
    (row,) = [row for row in krcore.metactl(machine, "stats node") if "completions" in row]
    return row["requests"] == row["completions"] and not nodes.programs_hold(machine)


def _given_back(machines, before):
    for machine, at_first in zip(machines, before):
        wait_until(lambda m=machine: not krcore.metactl(m, "queue list"), 60,
                   f"{machine.name}: no queue is left")
        given_back(machine, at_first, 60)
        wait_until(lambda m=machine: _settled(m), 60,
                   f"{machine.name}: each request is completed once, and nothing is in use")


@limit(SECONDS + MORE_SECONDS + END_SECONDS + 300)
def test_stress(cluster):
    """Content is right, each request completes once, and errors are those of the trouble."""
    seed = _seed()
    with _up(cluster) as machines:
        time.sleep(2)
        before = [held(machine) for machine in machines]
        lenders = [Lender(machines[1], seed), Lender(machines[2], seed),
                   Lender(machines[2], seed, MORTAL_SERVICE)]
        trouble = Trouble(cluster, seed, lenders)
        with _lent(lenders) as peers:
            most = SECONDS + MORE_SECONDS + 120     # they are told when it is over
            words = f"--seed {seed} --seconds {most} --processes {PROCESSES} {peers}"
            # at the lender that nothing happens to, from the nodes that things happen to
            contenders = Contenders(machines[:2], lenders[1], most)
            messengers = Messengers(machines[:2], machines[2])
            with contenders.at_it(), messengers.at_it():
                status, counts, said = _stress(machines[0], words, trouble)
            pools = [row for row in krcore.metactl(machines[0], "stats node")
                     if "replayed" in row]
        print(f"    {said.strip().splitlines()[-1]}\n    {pools}", flush=True)
        check(not status and not counts["violations"], _first_wrong(said))
        contenders.check_never_two_owners()
        messengers.check_once_and_in_order(SECONDS >= ROUND_SECONDS)
        _doubt_has_cause(counts, pools, PROCESSES * QUEUES * QUEUE_DEPTH)
        happens = ["done", "bytes", "atomics", "words", "closes", "regions", "refused", "passed",
                   "kills"]
        if SECONDS >= ROUND_SECONDS:
            happens += ["cancelled", "orphaned", "excused"]
        for name in happens:
            check(counts[name], f"{name}: nothing of it happened: {counts}")
        check(trouble.kinds >= LEAST_KINDS,
              f"no trouble of these kinds: {LEAST_KINDS - trouble.kinds}")
        if SECONDS >= ROUND_SECONDS:
            for name in ("recoveries", "replayed"):
                check(sum(row[name] for row in pools), f"{name}: none: {pools}")
            # cables were pulled for longer than the retries, and one node was taken down
            check(any(counts["doubted"] for counts in contenders.counts) and
                  all(counts["connects"] > CLIENTS for counts in contenders.counts) and
                  contenders.counts[1]["opens"] > CLIENTS,
                  f"they met no trouble: {contenders.counts}")
        _given_back(machines, before)


@limit(300 + END_SECONDS)
def test_stress_would_see_it(cluster):
    """The control: memory that changes by itself is found."""
    with _up(cluster) as machines, _lent([Lender(machines[1], 1, words="--spoil")]) as peers:
        status, counts, said = _stress(machines[0], "--seed 1 --seconds 10 --processes 2 "
                                       f"--no-kills {peers}")
        check(status == 1 and counts["violations"], said[-2000:])


@limit(300 + END_SECONDS)
def test_stress_would_see_two_owners(cluster):
    """The control: a lock that is taken by a READ and a WRITE has two owners one day."""
    with _up(cluster) as machines:
        lender = Lender(machines[2], 1)
        with _lent([lender]):
            contenders = Contenders(machines[:2], lender, 2 * CARELESS_SECONDS, "--careless")
            with contenders.at_it():
                wait_until(lambda: any(machine.run(f"grep -c VIOLATION {LOCK_OUT}",
                                                   check=False).out.strip() not in ("", "0")
                                       for machine in machines[:2]), CARELESS_SECONDS,
                           "two owners are seen")
        check(any(counts["violations"] for counts in contenders.counts), contenders.said[-2000:])


@limit(300)
def test_stress_would_see_a_message_twice(cluster):
    """The control: a message that comes once more is found."""
    with _up(cluster) as machines:
        judge = machines[2]
        with Messengers(machines[:1], judge, "twice").begun():
            wait_until(lambda: not judge.run("pgrep -x krc_message", check=False).out, 120,
                       "the judge has seen it")
            said = judge.run(f"cat {MESSAGE_OUT}").out
            check("instead of number" in said, said)


class SilentDeath:
    """A peer dies, and the stress is not told."""

    def __init__(self, lender):
        self._lender = lender
        self.seen = ["killed without a word"]

    def go_on(self, _until):
        """Kill it, once."""
        self._lender.kill()


@limit(300 + END_SECONDS)
def test_stress_would_see_a_death(cluster):
    """The control: requests that fail for no reason that is known are found."""
    with _up(cluster) as machines:
        lender = Lender(machines[1], 1, MORTAL_SERVICE)
        with _lent([lender]) as peers:
            status, counts, said = _stress(machines[0], "--seed 1 --seconds 10 --processes 2 "
                                           f"--no-kills {peers}", SilentDeath(lender))
        check(status == 1 and counts["violations"] and not counts["orphaned"], said[-2000:])


@limit(500)
def test_thousand_killed(cluster):
    """A thousand programs killed with requests under way leave nothing."""
    count = 1000
    with _up(cluster) as machines, _lent([Lender(machine, 1) for machine in machines[1:]]) as peers:
        active = machines[0]
        words = f"--seed 1 --processes 20 {peers}"
        active.run(f"{AS_USER} krc_stress kill --count 1 {words}", timeout=60)
        # what a program had is given back in the background
        wait_until(lambda: _settled(active) and "pinned 0" in held(active), 60,
                   "the first one has left nothing")
        before = held(active)
        result = active.run(f"{AS_USER} krc_stress kill --count {count} {words}", timeout=400,
                            check=False)
        print(f"    {result.out.strip().splitlines()[-1]}", flush=True)
        check(not result.status and f"killed={count} failed=0" in result.out, repr(result))
        _given_back([active], [before])
