#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench race without guests: the figures of the spike, of what workers tell.

usage: bench_race_test.py CHECKOUT
"""

import pathlib
import sys
import unittest
from unittest import mock

CHECKOUT = pathlib.Path(sys.argv.pop(1))
sys.path[:0] = [str(CHECKOUT / "bench"), str(CHECKOUT / "tests")]
import race     # noqa: E402

S = 1000000     # us
STAGES = (2, 4, 6)
COUNTS = (2, 3, 5)


def worker(stage, forked, ready, *operations):
    """What one tells; operations are (when it was wanted, how long it took)."""
    return {"system": "x", "stage": stage, "forked": forked, "ready": ready,
            "wanted": [wanted for wanted, _ in operations],
            "took": [took for _, took in operations]}


def steadily(begin, end, every, took=0):
    """Operations wanted at an interval."""
    return [(at, took) for at in range(begin, end, every)]


class Figures(unittest.TestCase):
    """Each figure that rows and picture are made of."""

    def setUp(self):
        stages = mock.patch.object(race, "STAGES", STAGES)
        stages.start()
        self.addCleanup(stages.stop)

    def test_stages(self):
        """They begin where the one before ends; workers are counted from the first on."""
        spike = race.Spike([], COUNTS)
        self.assertEqual([spike.begin(stage) for stage in range(4)], [0, 2 * S, 6 * S, 12 * S])
        self.assertEqual(spike.counts, [2, 5, 10])

    def test_new(self):
        """From fork, not from the stage's begin, and of the workers of this stage alone."""
        spike = race.Spike([worker(0, -900000, -800000), worker(1, 2 * S + 5, 2 * S + 70),
                            worker(1, 2 * S + 30, 2 * S + 50), worker(2, 6 * S, 6 * S + 9)], COUNTS)
        self.assertEqual(spike.new(1), [65, 20])
        self.assertEqual(spike.new(2), [9])

    def test_ready(self):
        """From the stage's begin to the last of its workers; later stages do not count."""
        spike = race.Spike([worker(1, 2 * S + 40, 2 * S + 700), worker(1, 2 * S + 50, 2 * S + 300),
                            worker(2, 6 * S + 1, 7 * S), worker(0, -5, 2 * S + 900)], COUNTS)
        self.assertEqual(spike.ready(1), 700)
        self.assertEqual(spike.ready(2), S)

    def test_old(self):
        """Of workers that were there before, what was wanted in the time, whenever it ended."""
        spike = race.Spike([
            worker(0, -9, -5, (2 * S - 1, 11), (2 * S, 12), (6 * S - 1, 5 * S), (6 * S, 14)),
            worker(1, 2 * S, 2 * S + 5, (3 * S, 21)), worker(2, 6 * S, 6 * S + 5, (7 * S, 31))],
            COUNTS)
        self.assertEqual(spike.old(1, 2 * S, 6 * S), [12, 5 * S])
        self.assertEqual(spike.old(2, 2 * S, 6 * S), [12, 5 * S, 21])
        self.assertEqual(spike.old(0, 2 * S, 6 * S), [])

    def test_rate(self):
        """What ended in the time, whenever it was wanted, over its length; all workers together."""
        spike = race.Spike([
            worker(0, -9, -5, (0, S), (0, S - 1), (S, 2 * S - 1), (S, 2 * S), (2 * S, 0)),
            worker(2, 6 * S, 6 * S + 5, (2 * S, 5))], COUNTS)
        self.assertEqual(spike.rate(S, 3 * S), 4 / 2)
        self.assertEqual(spike.rate(S, S + 500000), 1 / 0.5)
        self.assertEqual(spike.rate(4 * S, 5 * S), 0)

    def test_steady(self):
        """The rate of the second half of a stage, in which the first one does not count."""
        spike = race.Spike([worker(0, -9, -5, *steadily(2 * S, 4 * S, 1000),
                                   *steadily(4 * S, 6 * S, 20000))], COUNTS)
        self.assertEqual(spike.steady(1), 50)
        self.assertEqual(spike.rate(2 * S, 4 * S), 1000)

    def test_until_steady(self):
        """Until the first second whose rate is nine tenths of the steady one."""
        stalled = steadily(2 * S, 2700000, 100000) + steadily(2720000, 6 * S, 20000)
        spike = race.Spike([worker(0, -9, -5, *stalled)], COUNTS)
        self.assertEqual(spike.steady(1), 50)
        self.assertEqual(spike.rate(2500000, 3500000), 41)
        self.assertEqual(spike.rate(2600000, 3600000), 45)
        self.assertEqual(spike.until_steady(1), 600000)

    def test_steady_at_once(self):
        """Nothing stalls."""
        self.assertEqual(race.Spike([worker(0, -9, -5, *steadily(0, 12 * S, 50000))], COUNTS)
                         .until_steady(1), 0)

    def test_until_steady_when_late(self):
        """Operations that are done late count when they are done, not when they were wanted."""
        late = [(at, max(0, 3 * S - at)) for at, _ in steadily(2 * S, 6 * S, 20000)]
        spike = race.Spike([worker(0, -9, -5, *late)], COUNTS)
        self.assertEqual(spike.rate(2 * S, 3 * S), 0)
        self.assertEqual(spike.until_steady(1), 100000)     # what was late ends at 3 s

    def test_never_steady(self):
        """Where nothing is done any more in the second half there is no steady rate."""
        spike = race.Spike([worker(0, -9, -5, *steadily(0, 4 * S, 20000))], COUNTS)
        self.assertEqual(spike.steady(1), 0)
        self.assertIsNone(spike.until_steady(1))

    def test_bins(self):
        """The 99th percentile of each half second by when operations were wanted, all workers."""
        spike = race.Spike([
            worker(0, -9, -5, *[(100 + n, 1000 * (n + 1)) for n in range(100)], (1200000, 7000)),
            worker(2, 6 * S, 6 * S + 5, (11 * S, 2500), (12 * S, 9))], COUNTS)
        bins = spike.bins()
        self.assertEqual([at for at, _ in bins], [n / 2 for n in range(24)])
        self.assertEqual({at: p99 for at, p99 in bins if p99 is not None},
                         {0: 99, 1: 7, 11: 2.5})


if __name__ == "__main__":
    unittest.main()
