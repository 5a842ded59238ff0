#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""budgets_test.py CHECKOUT: the judge of ./run bench cost --check, with planted excesses, what it
takes for an operation's, and the budgets of the tree."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

CHECKOUT = pathlib.Path(sys.argv.pop(1))
sys.path[:0] = [str(CHECKOUT / "bench"), str(CHECKOUT / "tests")]
import _budgets     # noqa: E402 pylint: disable=wrong-import-position,import-error
import cost         # noqa: E402 pylint: disable=wrong-import-position,import-error

ROW = {"case": "read_sync", "system": "krcore", "p50": 2000.0, "user": 300.0, "syscalls": 1.0,
       "locked": 20.0, "fences": 3.0, "reads": 1.0, "doorbells": 1.0, "packets": 1.0,
       "commands": 0.0, "per": 1}
BUDGET = {"read_sync.krcore": {"instructions": 2000, "syscalls": 1, "locked": 20, "reads": 1,
                               "packets": 1, "commands": 0}}


def judged(budgets=None, **changes):
    """(complaints, hints) of one changed row."""
    ((_, complaints, hints),) = _budgets.judge([{**ROW, **changes}], budgets or BUDGET)
    return complaints, hints


class Judge(unittest.TestCase):
    """What is above its budget is told, and by how much."""

    def test_within(self):
        """At the budget, and as far above as layouts move it."""
        self.assertEqual(judged(), ([], []))
        self.assertEqual(judged(p50=2039.0), ([], []))

    def test_planted_excess(self):
        """Every count: one more is said with its share."""
        for count, value, told in (("p50", 2100.0, "instructions, the budget is 2000, 5.0 % more"),
                                   ("syscalls", 2.0, "2 syscalls, the budget is 1, 100.0 % more"),
                                   ("locked", 21.0, "21 locked, the budget is 20, 5.0 % more"),
                                   ("reads", 2.0, "2 reads, the budget is 1, 100.0 % more"),
                                   ("packets", 1.5, "1.5 packets, the budget is 1, 50.0 % more"),
                                   ("commands", 1.0, "1 commands, the budget is 0")):
            complaints, _ = judged(**{count: value})
            self.assertEqual(len(complaints), 1, count)
            self.assertIn("read_sync.krcore", complaints[0])
            self.assertIn(told, complaints[0])

    def test_the_card_counts_more(self):
        """What comes by itself is no excess; one more for each batch is."""
        self.assertEqual(judged(packets=1.25), ([], []))
        self.assertEqual(judged(reads=1.25), ([], []))
        complaints, _ = judged({"read_sync.krcore": {"doorbells": 0.083}}, doorbells=0.167, per=12)
        self.assertIn("0.167 doorbells", complaints[0])

    def test_resets_are_told(self):
        """What a reset costs is above the budget, and the reason is said."""
        complaints, hints = judged(resets=3)
        self.assertEqual(complaints, [])
        self.assertIn("initiators were reset 3 times", hints[0])
        complaints, _ = judged(commands=1.0, resets=3)
        self.assertIn("the budget is 0; initiators were reset 3 times", complaints[0])

    def test_several_at_once(self):
        """All of them are told."""
        self.assertEqual(len(judged(p50=9999.0, locked=99.0)[0]), 2)

    def test_saved(self):
        """What costs less is no failure, but a hint to lower the budget."""
        complaints, hints = judged(p50=1500.0)
        self.assertEqual(complaints, [])
        self.assertEqual(len(hints), 1)
        self.assertIn("1500 instructions of 2000: lower", hints[0])

    def test_without_budget(self):
        """An operation of krcore that nobody gave a budget is a failure; a peer's is not."""
        self.assertIn("has no budget", judged({"other.krcore": {}})[0][0])
        self.assertEqual(_budgets.judge([{**ROW, "system": "verbs"}], BUDGET), [])


class File(unittest.TestCase):
    """The file of budgets."""

    def refused(self, text, told):
        """A file with this text is refused with these words, and its name."""
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            with self.assertRaises(_budgets.BudgetError) as caught:
                _budgets.load(file.name)
            self.assertIn(file.name, str(caught.exception))
            self.assertIn(told, str(caught.exception))

    def test_refused(self):
        """What is not a budget."""
        self.refused("[read_sync.krcore]\nmicroseconds = 3\n", "microseconds = 3: not a count")
        self.refused("[read_sync.krcore]\nsyscalls = -1\n", "from 0")
        self.refused("[read_sync.krcore]\nsyscalls = true\n", "from 0")
        self.refused("[read_sync.krcore]\nsyscalls = '1'\n", "from 0")
        self.refused("[read_sync\n", "line 1")

    def test_of_the_tree(self):
        """There are budgets for the data path and for connects, peers among them."""
        names = set(_budgets.load(CHECKOUT / "bench" / "cost" / "budgets.toml"))
        self.assertLessEqual({"connect_cached.krcore", "connect_lookup.krcore",
                              "read_sync.krcore", "write_sync.krcore", "read_batch.krcore",
                              "read_24x12.krcore", "fresh_process.krcore",
                              "fresh_process.krcore_static", "read_sync.verbs"},
                             names)
        counts = _budgets.load(CHECKOUT / "bench" / "cost" / "handoff.toml")["counts.krcore"]
        self.assertEqual(counts["reads"], 2)    # the directory's entry, and the data
        self.assertLessEqual({"instructions", "syscalls", "packets"}, set(counts))

    def test_exit_status(self):
        """What is above fails, and so does a run in which nothing was measured."""
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("[counts.krcore]\ninstructions = 1000\n")
            file.flush()
            for rows, status, said in (
                    ([{**ROW, "case": "counts", "p50": 1000}], 0, "ok   some.counts.krcore"),
                    ([{**ROW, "case": "counts", "p50": 1100}], 1, "10.0 % more"),
                    ([], 1, "0 passed, 0 failed")):
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    self.assertEqual(_budgets.check("some", rows, file.name), status)
                self.assertIn(said, out.getvalue())


class Card(unittest.TestCase):
    """What of the card's counts is the operation's."""

    def counted(self, case, few, many, done):
        """of_card(), of (doorbells, posted) of both runs."""
        runs = [{**dict.fromkeys(cost.CARD, 0), "doorbells": doorbells, "posted": posted}
                for doorbells, posted in (few, many)]
        return cost.of_card(case, *runs, done)

    def test_renewals_are_not_of_a_batch(self):
        """They are told apart, however long it took; a batch that is cut is not."""
        case = cost.Case("read_24x12", "krcore", "", 10, 110, 288)
        for renewals in (0, 28, 500):
            card = self.counted(case, (268, 3172), (2668 + renewals, 31972 + renewals), 28800)
            self.assertEqual((card["doorbells"], card["own"]),
                             (0.083, round(renewals / 28800, 3)))
        card = self.counted(case, (268, 3172), (2668 + 28 + 130, 31972 + 28), 28800)
        self.assertEqual(card["doorbells"], 0.088)

    def test_elsewhere_they_are_the_operation(self):
        """A look-up is one, and a process that uses verbs posts nothing to the pool."""
        case = cost.Case("connect_lookup", "krcore", "", 50, 450)
        self.assertEqual(self.counted(case, (50, 50), (850, 850), 400)["doorbells"], 2)
        case = cost.Case("read_batch", "verbs", "", 50, 450, 12)
        self.assertEqual(self.counted(case, (50, 0), (450, 9000), 4800)["doorbells"], 0.083)


if __name__ == "__main__":
    unittest.main()
