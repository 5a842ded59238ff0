#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The predictions of ./run bench cost: they reproduce what was published of verbs and of KRCORE,
and would say so if they did not.

usage: card_test.py CHECKOUT
"""

import dataclasses
import pathlib
import sys
import unittest
from unittest import mock

CHECKOUT = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(CHECKOUT / "bench"))
import _card  # noqa: E402  pylint: disable=wrong-import-position,import-error

ROW = {"case": "read_sync", "system": "verbs", "p50": 678, "rep_turns": 0, "syscalls": 0,
       "locked": 3, "doorbells": 1, "packets": 1, "commands": 0, "dc_connects": 0, "pushed": 1,
       "per": 1}


class Card(unittest.TestCase):
    """All of it."""

    def test_published(self):
        """2.53 us of verbs, 3.35 and 3.41 of KRCORE, 0.62 of verbs' rate; others may follow."""
        found = _card.figures()
        self.assertEqual(_card.judge(found), [])
        published = [value for figure in found for value in figure.published]
        for value in (2.53, 3.35, 3.41, 0.62):
            self.assertIn(value, published)

    def test_wrong_unit_costs(self):
        """A unit cost that is far off makes the check fail, whichever way."""
        for name, low, high in (("syscalls", 1000, 2000), ("syscalls", 0, 10),
                                ("trips", 3000, 5000), ("trips", 300, 500),
                                ("instructions", 2, 3)):
            unit = dataclasses.replace(_card.UNITS[name], low=low, high=high)
            with mock.patch.dict(_card.UNITS, {name: unit}):
                self.assertNotEqual(_card.judge(_card.figures()), [], name)

    def test_units(self):
        """Each has a range and says where it is from."""
        for name, unit in _card.UNITS.items():
            self.assertGreater(unit.high, unit.low, name)
            self.assertGreater(len(unit.source), 10, name)

    def test_more_takes_longer(self):
        """More of anything is never predicted to be faster; a batch is predicted whole."""
        low, high = _card.predict(ROW)
        for name in ("p50", "rep_turns", "syscalls", "locked", "doorbells", "commands"):
            more = _card.predict({**ROW, name: ROW[name] + 1000})
            self.assertGreater(more[0], low, name)
            self.assertGreater(more[1], high, name)
        batch = _card.predict({**ROW, "per": 12, "packets": 1, "p50": 325, "doorbells": 1 / 12})
        self.assertGreater(batch[0], low)
        self.assertLess(batch[0], 12 * low)

    def test_fetched(self):
        """What is not pushed is fetched, whoever posts it; a batch once."""
        unit = _card.UNITS["fetched"]
        for system in ("verbs", "krcore"):
            pushed = _card.predict({**ROW, "system": system})
            fetched = _card.predict({**ROW, "system": system, "pushed": 0})
            self.assertAlmostEqual(fetched[0] - pushed[0], unit.low / 1000, places=2)
            self.assertAlmostEqual(fetched[1] - pushed[1], unit.high / 1000, places=2)
        batch = {**ROW, "per": 12, "doorbells": 1 / 12}
        one = _card.predict({**batch, "pushed": 0})[1] - _card.predict({**batch, "pushed": 1})[1]
        self.assertAlmostEqual(one, unit.high / 1000, places=2)

    def test_no_packet(self):
        """What sends nothing waits for no peer."""
        self.assertLess(_card.predict({**ROW, "packets": 0.02, "doorbells": 0})[1], 0.5)


if __name__ == "__main__":
    unittest.main()
