# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""usage: test [default | full | changed [--since REV] | PART... ]

  default      something of every kind; what is meant when nothing is said. With a limit of
               time (KRCORE_TEST_SECONDS) what is longer is run as well, traffic under KASAN
               and lockdep and the budgets, and then shares of all parts while there is some,
               other ones with each commit
  full         all parts
  changed      what the difference to the newest tag, or to REV, can have broken; to HEAD~1
               while there is no tag
  PART         a part; PART/PATTERN some of its tests, PART@2of4 a share of them

  --plan       say what would be run and why, and run nothing
  --packages   print the lists of Debian packages that it needs (for ./run)
"""

import asyncio
import os
import pathlib
import signal
import sys

from . import choice, clock, lanes, parts as parts_module, report, rotation
from .parts import UsageError

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


class Plan:
    """What is asked for: `jobs`; `rest`, what follows them in its turn; `reasons`, lines;
    `unasked`, names of parts that nothing that has changed asks for."""

    def __init__(self, words, limited):
        folder = pathlib.Path(os.environ.get("KRCORE_PARTS") or CHECKOUT / "tests/parts")
        self.parts = parts_module.load(folder)
        self.rest, self.reasons, self.unasked = [], [], []
        kind = words[0] if words else "default"
        if kind in ("default", "full") and len(words) > 1:
            raise UsageError(f"{kind}: nothing can follow it")
        if kind == "default":
            jobs = choice.default(self.parts, folder, limited)
            self.rest = choice.rest(self.parts, jobs)
            self.reasons = [f"{job.name}: {job.why}" for job in jobs if job.why]
        elif kind == "full":
            jobs = choice.full(self.parts)
        elif kind == "changed":
            jobs = self._changed(folder, words[1:])
        else:
            jobs = parts_module.named(self.parts, words)
        # what follows may be all of a part that ran in part: both logs are kept
        named = parts_module.with_logs(jobs + self.rest)
        self.jobs, self.rest = named[:len(jobs)], named[len(jobs):]

    def _changed(self, folder, words):
        if words and (len(words) != 2 or words[0] != "--since"):
            raise UsageError("changed: only --since REV can follow it")
        commit, paths = choice.changed_paths(CHECKOUT, words[1] if words else None)
        jobs, self.reasons = choice.changed(self.parts, folder, paths)
        self.reasons.insert(0, f"{len(paths)} files differ from {commit[:12]}")
        asked = {job.part.name for job in jobs}
        self.unasked = [name for name in self.parts if name not in asked]
        return jobs


def _packages(plan, limited):
    jobs = plan.jobs + (plan.rest if limited else [])
    return sorted({word for job in jobs for word in job.part.packages.split()})


def _show_plan(plan, limited, turn):
    for line in plan.reasons:
        print(line)
    for job in plan.jobs:
        seconds = clock.show(job.seconds) if job.is_planned else "    -"
        print(f"{job.name:24} {seconds}  {job.pattern}")
    if limited:
        print(f"then, in this order, what fits (commit {turn}):")
        for job in rotation.in_turn(plan.rest, turn):
            print(f"{job.name:24} {clock.show(job.seconds)}")
    _say_unasked(plan)


def _say_unasked(plan):
    if plan.unasked:
        print(f"not asked for by what has changed: {', '.join(plan.unasked)}: ./run test full")


class Run:
    """One run of a plan, to its last line."""

    def __init__(self, plan, lanes_count, limit):
        build = pathlib.Path(os.environ.get("KRCORE_BUILD") or CHECKOUT / "build")
        self._plan, self._count, self._limit = plan, lanes_count, limit
        self._rest_count = lanes.rest_count(lanes_count)
        self._turn = choice.turn(CHECKOUT)
        self._lanes = lanes.Lanes(CHECKOUT, build, lanes_count, limit)
        self._signal = None

    async def run(self):
        """Returns the exit status."""
        loop = asyncio.get_running_loop()
        work = asyncio.ensure_future(self._lanes.run(
            self._plan.jobs, self._plan.rest if self._limit else [],
            lambda seconds: rotation.fitting(self._plan.rest, self._turn, seconds,
                                             self._rest_count)))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupt, number, work)
        try:
            await work
        except asyncio.CancelledError:
            pass
        finally:
            await self._lanes.end()
        return self._last_lines()

    def _interrupt(self, number, work):
        self._signal = number
        work.cancel()

    def _next_turn(self, job):
        """The next commit that has time for it: any, for what comes before the rotation."""
        if job not in self._plan.rest:
            return self._turn + 1 if self._plan.rest else None
        seconds = self._lanes.rest_seconds or (
            self._limit - sum(job.seconds for job in self._plan.jobs) / self._count)
        return rotation.next_turn(job, self._plan.rest, self._turn, seconds, self._rest_count)

    def _last_lines(self):
        ended, left_out = self._lanes.ended, self._lanes.left_out
        totals = report.Totals(ended)
        totals.skipped += len(left_out)
        if ended:
            print("\n".join(report.table(ended)))
            print(f"ran: {', '.join(job.job.name for job in ended)}")
        if self._plan.rest and not self._limit:
            print("not asked for: the rest of "
                  f"{', '.join(dict.fromkeys(job.part.name for job in self._plan.rest))}: "
                  "./run test full")
        _say_unasked(self._plan)
        unit = "hour" if choice.is_shallow(CHECKOUT) else "commit"
        for line in (*report.owed(left_out, self._next_turn if self._limit else None, self._turn,
                                  unit),
                     *report.told(ended)):
            print(line)
        for job, reason in left_out:
            if reason.endswith("could not be made"):
                print(f"FAIL {job.name}: {reason}")
                totals.failed, totals.skipped = totals.failed + 1, totals.skipped - 1
        if self._signal:
            print("FAIL ended by a signal before all parts were run")
            totals.failed += 1
        print(totals.line(), flush=True)
        if self._signal:
            return 130 if self._signal == signal.SIGINT else 143
        return 1 if totals.failed else 0


def main(words):
    """Returns the exit status."""
    options = {word for word in words if word in ("--plan", "--packages")}
    words = [word for word in words if word not in options]
    limit = clock.limit()
    try:
        plan = Plan(words, bool(limit))
    except UsageError as error:
        print(f"run: {error}", file=sys.stderr)
        return 2
    if "--packages" in options:
        print(" ".join(_packages(plan, limit)))
        return 0
    if "--plan" in options:
        _show_plan(plan, limit, choice.turn(CHECKOUT))
        return 0
    for line in plan.reasons:
        clock.say(line)
    return asyncio.run(Run(plan, lanes.count(), limit).run())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
