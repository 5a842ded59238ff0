#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench hybrid without guests: its cases, how it asks its program, and that what is done once
is in no count of a request.

usage: bench_hybrid_test.py CHECKOUT
"""

import pathlib
import re
import sys
import types
import unittest
from unittest import mock

CHECKOUT = pathlib.Path(sys.argv.pop(1))
sys.path[:0] = [str(CHECKOUT / "bench"), str(CHECKOUT / "tests")]
import hybrid       # noqa: E402
from cluster.bench import Report    # noqa: E402

ONCE = 1000     # of each count, by the set-up of a program
TARGETS = [f"10.77.0.{n},1,2,3" for n in (11, 12, 21)]


class Lab:
    """A client whose card and module count what a program is told to do; `asked`: its words."""

    def __init__(self):
        self.rows, self.asked, self.sticky = [], [], []
        self.done, self.programs = 0, 0
        self.client = types.SimpleNamespace(run=self._run)

    def _run(self, command):
        self.sticky.append(re.fullmatch(r"echo ([YN]) >\S+/sticky_targets", command)[1])

    def program(self, command):
        """Each request is a change of target, where they are not saved, and two packets."""
        self.asked.append(command)
        words = command.split()
        queues, batch, rounds = (int(word) for word in words[2:5])
        self.done += queues * batch * rounds * len(words[5:])
        self.programs += 1

    def count(self, per):
        """A counter that has so much for each request."""
        return per * self.done + ONCE * self.programs

    def card(self, _machine):
        """The card's counters."""
        changes = 0 if self.sticky[-1] == "Y" else 1
        return {"dc_target_changes": self.count(changes), "dc_connects": self.count(changes),
                "doorbells": self.count(0.25), "rdma_tx_packets": self.count(2),
                "completions": self.count(1)}

    def pool(self, _machine):
        """The module's counters."""
        changes = 0 if self.sticky and self.sticky[-1] == "Y" else 1
        return {"initiators": 4, "target_changes": self.count(changes)}

    def row(self, _report, case, system, unit, **values):
        """Keep it."""
        self.rows.append({"case": case, "system": system, "unit": unit, **values})


def run(*cases):
    """A lab in which these cases were run."""
    lab = Lab()
    with mock.patch.object(hybrid.nodes, "card_counters", lab.card), \
            mock.patch.object(hybrid.nodes, "pool", lab.pool):
        hybrid.Hybrid(lab, Report("hybrid", True, cases), TARGETS).run()
    return lab


class Rows(unittest.TestCase):
    """What is measured and printed."""

    def test_cases(self):
        """All orders with each number of peers that there can be; one peer is one case."""
        names = [(name, peers) for name, peers, _ in hybrid.cases(3)]
        self.assertEqual(names, [("one_peer", 1), ("one_peer_in_turn", 1)] +
                         [(order, peers) for peers in (2, 3) for order in hybrid.ORDERS])
        self.assertEqual(len({(row["case"], row["peers"], row["system"]) for row in run().rows}),
                         2 * len(names))

    def test_counts_are_of_a_request(self):
        """What is done once for a program, such as look-ups, is not among them."""
        plain, sticky = [row for row in run("in_turn").rows if row["peers"] == 3]
        self.assertEqual((plain["system"], sticky["system"]), ("krcore", "krcore_sticky"))
        for row, changes in ((plain, 1), (sticky, 0)):
            self.assertEqual([row[name] for name in ("p50", "module_changes", "connects")],
                             [changes] * 3)
            self.assertEqual((row["doorbells"], row["packets"], row["completions"]), (0.25, 2, 1))
            self.assertEqual(row["n"], (hybrid.MANY - hybrid.FEW) * hybrid.QUEUES * hybrid.BATCH)
            self.assertEqual(row["initiators"], 4)

    def test_words(self):
        """Both systems are asked the same: so many queues together, and as many peers."""
        lab = run("sorted")
        self.assertEqual(lab.sticky, ["N", "Y"] * 2)
        for peers in (2, 3):
            for rounds in (hybrid.FEW, hybrid.MANY):
                words = (f"bench_hybrid sorted {hybrid.QUEUES // peers} {hybrid.BATCH} {rounds} "
                         f"{' '.join(TARGETS[:peers])}")
                self.assertEqual(lab.asked.count(words), 2, words)


if __name__ == "__main__":
    unittest.main()
