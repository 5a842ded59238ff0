# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""How long ./run test takes as it is planned: the real parts and tables and the real lanes, in
a time that jumps from one end of a part to the next.

Usage: run_schedule_test.py CHECKOUT
"""
import asyncio
import pathlib
import re
import selectors
import sys
import tempfile
import unittest
import unittest.mock

CHECKOUT = pathlib.Path(sys.argv[1])
sys.path.append(str(CHECKOUT / "tests"))

from runner import choice, clock, lanes, parts as parts_module, rotation  # noqa: E402

PARTS = CHECKOUT / "tests/parts"
CI = (CHECKOUT / ".ci/run").read_text()
CI_SECONDS = int(re.search(r"KRCORE_TEST_SECONDS=(\d+)", CI)[1])
STEP = 10       # seconds between two looks of what yields
LEFT = 0.25     # of a lane, that two others leave it: measured were 0.4 to 0.8
CI_ENDS = int(re.search(r"timeout -k \d+ (\d+)", CI)[1])


class Jumping(selectors.DefaultSelector):
    """Waits for nothing: the time at which something is to happen is there at once."""

    now = 0.0

    def select(self, timeout=None):
        self.now += timeout or 0
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """An event loop in that time."""

    def __init__(self):
        self.jumping = Jumping()
        super().__init__(self.jumping)

    def time(self):
        return self.jumping.now


class Fake:
    """In place of a running part: takes what is planned, times the slowness of the machine."""

    slowness = 1.0
    spans = []          # (job, when it began, when it ended)
    rest = []           # jobs that follow those that were asked for
    usual = 0           # that run, and do not yield

    def __init__(self, job, _checkout, _logs, _live, yields=False):
        self.job, self.seconds, self.yields = job, 0.0, yields
        Fake.usual += not yields

    async def run(self):
        """As long as it takes."""
        self.seconds = self.job.seconds * self.slowness
        began = asyncio.get_running_loop().time()
        left = self.seconds
        while self.yields and left > 0:
            await asyncio.sleep(STEP)
            left -= STEP * (1 if Fake.usual < 2 else LEFT)
        await asyncio.sleep(max(left, 0))
        Fake.usual -= not self.yields
        self.spans.append((self.job, began, asyncio.get_running_loop().time()))

    async def end(self, *_):
        """It would have to be killed."""
        raise AssertionError(f"{self.job.name} did not end in time")

    def show(self):
        """Says nothing."""

    def hurry(self):
        """It has its turn."""
        self.yields = False
        Fake.usual += 1

    def title(self):
        """Says nothing."""
        return self.job.name

    def now(self):
        """Says nothing."""
        return self.job.name


def simulate(slowness=1.0, prepared=0, limit=None, turn=0, lanes_count=2):
    """A run of the default set: (Lanes, when it ended, when each job ended)."""
    parts = parts_module.load(PARTS)
    jobs = choice.default(parts, PARTS, bool(limit))
    rest = Fake.rest = choice.rest(parts, jobs)
    loop = Loop()
    Fake.slowness, Fake.spans, Fake.usual = slowness, [], 0

    async def made(_self, _part):
        await asyncio.sleep(prepared)
        return 0

    with tempfile.TemporaryDirectory() as build, \
            unittest.mock.patch.object(lanes, "Running", Fake), \
            unittest.mock.patch.object(lanes.Lanes, "_make", made), \
            unittest.mock.patch.object(lanes.Lanes, "_last_line", lambda *_: "building"), \
            unittest.mock.patch.object(lanes, "_memory_gibibytes", lambda: 16), \
            unittest.mock.patch.object(clock, "elapsed", loop.time), \
            unittest.mock.patch.object(clock, "say", lambda *_: None):
        run = lanes.Lanes(CHECKOUT, pathlib.Path(build), lanes_count, limit)
        loop.run_until_complete(run.run(
            jobs, rest if limit else [],
            lambda seconds: rotation.fitting(rest, turn, seconds, lanes.rest_count(lanes_count))))
    loop.close()
    return run, loop.time(), {job.name: ended for job, _, ended in Fake.spans}


class Schedule(unittest.TestCase):
    """Of the default set, and of CI."""

    def test_the_default_set_is_half_an_hour(self):
        run, seconds, _ = simulate()
        self.assertEqual(len(run.ended), len(choice.default(parts_module.load(PARTS), PARTS)))
        self.assertLessEqual(seconds, 30 * 60)

    def test_the_lanes_are_filled(self):
        one, two = simulate(lanes_count=1)[1], simulate()[1]
        self.assertLess(two, one * 0.62)

    def test_ci_ends_in_time_on_every_commit_and_machine(self):
        self.assertLessEqual(CI_ENDS + 60, 88 * 60)
        each = {job.name for job in choice.default(parts_module.load(PARTS), PARTS, True)}
        for slowness in (0.8, 1.0, 1.5, 2.0):
            for turn in range(40):
                run, seconds, _ = simulate(slowness, limit=CI_SECONDS, turn=turn)
                self.assertLessEqual(seconds, CI_SECONDS, (slowness, turn))
                if slowness <= 1.5:
                    names = {job.name for job, _ in run.left_out}
                    self.assertFalse([name for name in names if "@" not in name
                                      and name in {"lint", "unit", "fuzz", "stress"}])
                    # of the rest, a share of a part or a small one, something comes each time
                    self.assertTrue([job for job in run.ended if job.job.name not in each],
                                    (slowness, turn))

    def test_jobs_of_the_rest_have_two_processors_each(self):
        for lanes_count, most in ((1, 1), (2, 1), (4, 2)):
            for turn in range(10):
                simulate(limit=CI_SECONDS, turn=turn, lanes_count=lanes_count)
                began = [begins for job, begins, _ in Fake.spans
                         if any(job is other for other in Fake.rest)]
                self.assertTrue(began or lanes_count == 1, turn)
                for at in began:    # what yields is in nobody's way
                    beside = [job.name for job, begins, ends in Fake.spans
                              if begins <= at < ends and job.part.priority != "idle"]
                    self.assertLessEqual(len(beside), most, (lanes_count, turn, beside))

    def test_ci_has_the_debug_kernel_where_it_has_to_be_built_first(self):
        _, seconds, ended = simulate(1.2, prepared=3300, limit=CI_SECONDS)
        self.assertLessEqual(seconds, CI_SECONDS)
        self.assertIn("cluster-debug", ended)

    def test_a_kernel_that_comes_too_late_keeps_nothing_else(self):
        run, seconds, ended = simulate(1.5, prepared=4700, limit=CI_SECONDS)
        self.assertLessEqual(seconds, CI_SECONDS)
        self.assertEqual([job.name for job, _ in run.left_out if not job.share][:1],
                         ["cluster-debug"])
        self.assertIn("cluster", ended)

    def test_every_share_has_its_turn_in_ci(self):
        every = {job.name for job in choice.rest(parts_module.load(PARTS), [])} \
            - {"lint", "unit", "fuzz", "stress"}
        for slowness, commits in ((1.0, 16), (1.5, 80), (2.0, 200)):
            ran = set()
            for turn in range(700, 700 + commits):
                ran |= set(simulate(slowness, limit=CI_SECONDS, turn=turn)[2])
            # a line of the report says of what is longer that no commit has time for it
            self.assertLessEqual(every - ({"stress-long"} if slowness == 2 else set()), ran,
                                 slowness)


unittest.main(argv=sys.argv[:1])
