# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Runs jobs beside each other.

While guests are emulated and tests wait for them, half of two processors is idle: so jobs
run in lanes, and a lane that comes free takes first what is of another kind than what runs
(`load` of a part). What a job prints is shown when it ends; once a minute a line says what
runs. With a limit of time nothing is begun that would not end by then, seen from how fast
this machine has been so far.

Of the rest, shares of long parts, each job has two processors: most have guests, whose tests wait
by the clock for what a card does in microseconds, and with less a guest may stand still for longer
than a test can tell from a fault.

A part whose priority is `idle` has a lane more, one such part at a time, and in it what the
processors of others leave. Where there is a limit of time it has a lane like others, and its
turn, when nothing else that was asked for waits for that lane, a quarter of the time is over,
or no more is left than it takes.
"""

import asyncio
import os
import time

from . import clock, priority
from .running import Running, end_with_parent

BESIDE = 1.3            # by how much longer a job takes in one of several lanes, as planned
MARGIN = 1.1            # of time, for what a job takes more than the ones before it
HEARTBEAT_SECONDS = 60
LOOK_SECONDS = 5        # at the time, while nothing ends
LANES_MAX = 4
PROMPT_SECONDS = 10     # for what is prepared, before it becomes idle


def count():
    """How many lanes there are: one a processor, or KRCORE_LANES."""
    return int(os.environ.get("KRCORE_LANES") or min(len(os.sched_getaffinity(0)), LANES_MAX))


def rest_count(lanes):
    """How many jobs of the rest run beside each other where there are so many lanes."""
    return max(1, lanes // 2)


def _overtime():
    """Seconds after the limit when what still runs is ended, so that all can be said."""
    return int(os.environ.get("KRCORE_OVERTIME") or 100)


def _memory_gibibytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)


class Lanes:
    """One run. Afterwards: `ended`, the jobs that ran; `left_out`, (job, reason) of others;
    `rest_seconds`, the time that was left for the rest, as planned seconds of a lane."""

    def __init__(self, checkout, build, lanes, limit):
        self.ended, self.left_out = [], []
        self.rest_seconds = None
        self._checkout, self._logs = checkout, build / "logs"
        self._lanes, self._limit = lanes, limit
        self._pending, self._rest, self._choose = [], [], None
        self._running = {}          # task -> Running
        self._yielding = set()      # those of them that have what others leave, ...
        self._yielded = set()       # ... or had for some time: they say nothing of the machine
        self._preparing = {}        # name of a part -> task
        self._prepared = set()      # names of parts for which that was begun
        self._processes = []        # of what is being prepared
        self._failed_to_prepare = set()
        self._planned = self._took = 0.0
        self._live = self._alone = False
        self._memory = _memory_gibibytes()

    # -- the run ---------------------------------------------------------------

    async def run(self, jobs, rest=(), choose=None):
        """Run the jobs, and then of the rest what `choose(seconds)` has time for, in its order,
        when no other job waits any more."""
        self._logs.mkdir(parents=True, exist_ok=True)
        self._pending, self._rest, self._choose = list(jobs), list(rest), choose
        self._alone = len(self._pending) + len(self._rest) == 1
        self._live = self._lanes == 1 or self._alone
        said = time.monotonic()
        while True:
            self._prepare()
            self._begin()
            tasks = {*self._running, *self._preparing.values()}
            if not self._running and not self._pending:
                break
            await asyncio.wait(tasks, timeout=LOOK_SECONDS,
                               return_when=asyncio.FIRST_COMPLETED)
            self._collect()
            if self._left() < -_overtime():
                await self.end("the time is over")
            if not self._live and time.monotonic() - said >= HEARTBEAT_SECONDS:
                said = time.monotonic()
                self._heartbeat()

    async def end(self, why=""):
        """End all that runs, and show what it said so far; `why`, for those. Nothing does any
        more where all has been run."""
        running, self._running = list(self._running.items()), {}
        self.left_out += [(job, why or "the run was ended") for job in self._pending + self._rest]
        self._pending, self._rest = [], []
        await asyncio.gather(*(job.end(f"ended: {why}" if why else "") for _, job in running))
        if running:
            await asyncio.wait([task for task, _ in running], timeout=10)
        for _, job in running:
            job.show()
            self.ended.append(job)
        await self.end_preparing()

    def _collect(self):
        for task in [task for task in self._running if task.done()]:
            job = self._running.pop(task)
            task.result()           # an error of ours is raised here
            job.show()
            self.ended.append(job)
            if job not in self._yielded:
                self._planned += job.job.seconds
                self._took += job.seconds
            self._yielding.discard(job)
        for name in [name for name, task in self._preparing.items() if task.done()]:
            if self._preparing.pop(name).result():
                self._failed_to_prepare.add(name)

    def _heartbeat(self):
        words = [job.now() for job in self._running.values()]
        words += [f"for {name}: {self._last_line(name)}" for name in self._preparing]
        if self._pending or self._rest:
            words.append(f"{len(self._pending) + len(self._rest)} to come")
        clock.say("  ... " + "; ".join(words))

    # -- what begins next --------------------------------------------------------

    def _begin(self):
        self._hurry()
        while self._has_lane() and (job := self._next()):
            self._start(job)
        job = self._next_yielding()
        if job:
            running = self._start(job, yields=True)
            self._yielding.add(running)
            self._yielded.add(running)

    def _has_lane(self, lanes=None):
        return len(self._running) - len(self._yielding) < (lanes or self._lanes)

    def _hurry(self):
        """With a limit, let what yields have its turn: in a lane that nobody waits for, in any when
        a quarter of the time is over, for nobody knows how much was left for it, or now."""
        if not self._limit:
            return
        waits = self._left() > self._limit * 3 / 4 \
            and any(job.part.priority != "idle" for job in self._ready())
        for job in list(self._yielding):
            if (self._has_lane() and not waits) \
                    or self._left() < self.expected(job.job) * BESIDE * MARGIN:
                self._yielding.remove(job)
                job.hurry()

    def _start(self, job, *, yields=False):
        self._pending.remove(job)
        running = Running(job, self._checkout, self._logs, self._live, yields)
        if self._live:
            clock.say(running.title())
        else:
            clock.say(f"begins: {job.name}{self._how_long(job)}"
                      + ", with what others leave" * yields)
        self._running[asyncio.ensure_future(running.run())] = running
        return running

    def _next_yielding(self):
        """What is to have what others leave, if others run."""
        if self._lanes == 1 or self._yielding or not self._running:
            return None
        if self._limit and not priority.can_return():
            return None
        self._drop()
        return next((job for job in self._ready() if job.part.priority == "idle"), None)

    def _ready(self):
        return [job for job in self._pending
                if job.part.name not in self._preparing and self._fits_beside(job)]

    def _next(self):
        self._drop()
        if (self.rest_seconds is not None or not self._pending) \
                and not self._has_lane(rest_count(self._lanes)):
            return None         # the rest has fewer lanes
        if not self._pending and self._rest:
            self.rest_seconds = self._left() / (self._slowness() * MARGIN)
            self._pending = self._choose(self.rest_seconds)
            self.left_out += [(job, "no time is planned for it") for job in self._rest
                              if job not in self._pending]
            self._rest = []
            self._drop()
            self._prepare()
        ready = self._ready()
        if self.rest_seconds is not None:
            return ready[0] if ready else None      # in the order of this commit
        loads = [job.job.part.load for job in self._running.values()
                 if job not in self._yielding]
        if self._lanes > 1:
            ready = [job for job in ready if job.part.priority != "idle"] or ready
        hurried = next((job for job in ready if self._must_begin(job)), None)
        return hurried or min(ready, default=None, key=lambda job: loads.count(job.part.load))

    def _must_begin(self, job):
        """Whether there is no time left for it when another one has been run before it."""
        before = min((self.expected(other) for other in self._pending if other is not job),
                     default=0)
        return self._left() < (before + self.expected(job)) * MARGIN

    def _drop(self):
        """Take out what can't be run any more."""
        for job in list(self._pending):
            if job.part.name in self._failed_to_prepare:
                reason = "what it needs could not be made"
            elif self._left() < self.expected(job) * MARGIN:
                reason = "no time is left for it"
            else:
                continue
            self._pending.remove(job)
            self.left_out.append((job, reason))

    def _fits_beside(self, job):
        running = [other.job.part for other in self._running.values()]
        if any(part.name == job.part.name and part.shares == "1" for part in running):
            return False            # they would build in the same folder
        wanted = job.part.gibibytes + sum(part.gibibytes for part in running)
        return not running or wanted <= self._memory

    def expected(self, job):
        """Seconds that a job will take, as fast as this machine has been."""
        return job.seconds * self._slowness()

    def _how_long(self, job):
        if not job.is_planned:
            return ""
        return f" (planned: {clock.show(self.expected(job)).strip()})"

    def _slowness(self):
        """By how much longer things have taken than planned; never less than one."""
        return max(1.0, self._took / self._planned if self._planned else 1.0)

    def _left(self):
        return self._limit - clock.elapsed() if self._limit else float("inf")

    # -- what is made while others run -------------------------------------------

    def _prepare(self):
        """Begin what takes long before some jobs; for the rest when that is made, for they would
        share what the processors leave. A job that runs alone prepares for itself."""
        if self._alone:
            return
        self._prepare_for(self._pending)
        if not self._preparing:
            self._prepare_for(self._rest)

    def _prepare_for(self, jobs):
        for part in (job.part for job in jobs):
            if part.prepare and part.name not in self._prepared:
                self._prepared.add(part.name)
                self._preparing[part.name] = asyncio.ensure_future(self._make(part))

    def _prepare_log(self, name):
        return self._logs / f"{name}.prepare.log"

    def _last_line(self, name):
        lines = self._prepare_log(name).read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line), "begun")

    async def _make(self, part):
        clock.say(f"for {part.name}, while others run: {part.prepare}")
        with open(self._prepare_log(part.name), "w") as log:
            process = await asyncio.create_subprocess_exec(
                "bash", "-c", part.prepare, stdin=asyncio.subprocess.DEVNULL, stdout=log,
                stderr=log, cwd=self._checkout, start_new_session=True,
                preexec_fn=end_with_parent)
            self._processes.append(process)
            try:
                # what is there already is soon found, but never by an idle process
                status = await asyncio.wait_for(process.wait(), PROMPT_SECONDS)
            except asyncio.TimeoutError:
                priority.make_idle(process.pid)
                status = await process.wait()
        if status:
            print(self._prepare_log(part.name).read_text(errors="replace")[-3000:], flush=True)
        return status

    async def end_preparing(self):
        """End what is still being prepared, when nothing needs it any more."""
        for process in self._processes:
            if process.returncode is None:
                os.killpg(process.pid, 15)
                await process.wait()
