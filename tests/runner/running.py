# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""One job while it runs: its process, what it prints, and what came of it."""

import asyncio
import collections
import ctypes
import os
import re
import signal
import subprocess
import sys
import time

from . import clock, priority

TOTAL = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?")
# of a line of a test that failed or was skipped, and of one about what was judged in part
TOLD = re.compile(r"(FAIL|skip|SKIP|partly:)\s+(?:[\d.]+ s\s+)?(\S.*)")
TOLD_MAX = 50           # of a kind, of a job
PR_SET_PDEATHSIG = 1
LINE_BYTES_MAX = 1 << 24
KILL_SECONDS = 60       # after SIGTERM
DRAIN_SECONDS = 2       # for what a process has printed before it ended


def end_with_parent():
    """In a child: killing the runner ends what it runs as well."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Running:
    """A job that runs. After `ended()`: `passed`, `failed`, `skipped`, `seconds`; `told`, what its
    lines have said of tests that did not pass: (FAIL, skip or partly, words); `untold`, how many
    more there were of each."""

    def __init__(self, job, checkout, logs, live, yields=False):
        """`live`: print each line at once; else all of them at the end. `yields`: it has what the
        processors of others leave, until hurry()."""
        self.job = job
        self.passed = self.failed = self.skipped = 0
        self.last = ""              # line on standard output
        self.told = []
        self.untold = collections.Counter()
        self._why = ""              # it was ended
        self._checkout, self._live, self._yields = checkout, live, yields
        self._log = open(logs / f"{job.log}.log", "w", errors="replace")
        self._process = None
        self._lines = []
        self._began, self._ended = time.monotonic(), None

    @property
    def seconds(self):
        """From its beginning to its end, or to now."""
        return (self._ended or time.monotonic()) - self._began

    def _environment(self):
        share = "/".join(str(number) for number in self.job.share)
        return {**os.environ, **dict(self.job.environment), "KRCORE_PART": self.job.log,
                "KRCORE_PATTERN": self.job.pattern, "KRCORE_SHARE": share,
                "PYTHONDONTWRITEBYTECODE": "1"}

    async def run(self):
        """Run it to its end, or to its limit."""
        self._process = await asyncio.create_subprocess_exec(
            str(self.job.part.path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=self._environment(), cwd=self._checkout,
            start_new_session=True, limit=LINE_BYTES_MAX, preexec_fn=end_with_parent)
        if self._yields:
            priority.make_idle(self._process.pid)
        readers = [asyncio.ensure_future(self._read(self._process.stdout, sys.stdout)),
                   asyncio.ensure_future(self._read(self._process.stderr, sys.stderr))]
        try:
            await asyncio.wait_for(self._process.wait(), float(self.job.part.limit))
        except asyncio.TimeoutError:
            await self.end(f"did not end within {self.job.part.limit} s")
        self._ended = time.monotonic()
        # a process that was left behind and keeps the pipes open is not waited for
        await asyncio.wait(readers, timeout=DRAIN_SECONDS)
        for reader in readers:
            reader.cancel()
        self._count(self._why)
        self._log.close()

    def hurry(self):
        """Have its turn like others from now on."""
        self._yields = False
        if self._process and self._process.returncode is None:
            priority.make_usual(self._process.pid)

    async def end(self, why=""):
        """End it with all it started in its session; `why`, if it is a failure of its own."""
        self._why = why
        if not self._process:
            return
        for number, seconds in ((signal.SIGTERM, KILL_SECONDS), (signal.SIGKILL, 10)):
            if self._process.returncode is not None:
                return
            os.killpg(self._process.pid, number)
            try:
                await asyncio.wait_for(self._process.wait(), seconds)
            except asyncio.TimeoutError:
                pass

    async def _read(self, pipe, stream):
        while True:
            line = (await pipe.readline()).decode(errors="replace")
            if not line:
                return
            line = line.rstrip("\n")
            self._log.write(line + "\n")
            self._log.flush()
            if stream is sys.stdout:
                self.last = line
                self._note(line)
            if self._live:
                print(line, file=stream, flush=True)
            else:
                self._lines.append(line)

    def _note(self, line):
        match = TOLD.match(line)
        if not match:
            return
        word = "FAIL" if match[1] == "FAIL" else match[1].lower().rstrip(":")
        if sum(kind == word for kind, _ in self.told) < TOLD_MAX:
            self.told.append((word, re.sub(r"\s+", " ", match[2])))
        else:
            self.untold[word] += 1

    def _count(self, trouble):
        status = self._process.returncode
        match = TOTAL.fullmatch(self.last)
        if match:
            self.passed, self.failed, self.skipped = (int(number or 0)
                                                      for number in match.groups())
        if not trouble and not match:
            trouble = f"ended with status {status} without a total"
        elif not trouble and status and not self.failed:
            trouble = f"ended with status {status}"
        elif not (trouble or self.job.share or self.passed + self.failed + self.skipped):
            trouble = "no test was run"
        if trouble:
            self.failed += 1
            self._say_trouble(trouble)

    def _say_trouble(self, text):
        line = f"FAIL {self.job.name}: {text}"
        self.told.append(("FAIL", text))
        self._log.write(line + "\n")
        self._lines.append(line)
        if self._live:
            print(line, flush=True)

    def title(self):
        """The line above its output."""
        part = self.job.part
        some = self.job.pattern or self.job.share
        return (f"== {self.job.name}: {part.about} "
                + ("(some of its tests)" if some else f"(usually {part.usually})"))

    def show(self):
        """Print what it said, if that was not done line by line."""
        if self._live:
            return
        print("\n".join([self.title(), *self._lines]), flush=True)
        clock.say(f"== {self.job.name}: {self.passed} passed, {self.failed} failed, "
                  f"in {clock.show(self.seconds).strip()}")

    def now(self):
        """In a few words: how far it is."""
        said = re.sub(r"\s+", " ", self._lines[-1] if self._lines else self.last)[:60]
        return f"{self.job.name} {clock.show(self.seconds).strip()} ({said or 'no word yet'})"
