#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""beside_test.py CHECKOUT: what ./run bench NAME --beside REV makes of the rows of two trees, and
where it has the earlier one from."""

import argparse
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKOUT = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(CHECKOUT / "tests"))
from cluster import beside, host    # noqa: E402 pylint: disable=wrong-import-position,import-error

HIT = {"case": "hit", "system": "krcore", "peer": "raw_read", "ratio_of": "cost"}
NAME = "hit krcore beside raw_read"


def run(*rows):
    """ratios() of these rows, with other words between."""
    return beside.ratios("\n".join(["a word"] + [json.dumps({**HIT, **row}) for row in rows]))


def runs(*values):
    """A run of one row for each ratio."""
    return [run({"ratio": value}) for value in values]


class Ratios(unittest.TestCase):
    """What is compared of a run."""

    def test_less_is_better(self):
        """Of costs and of speedups."""
        self.assertEqual(run({"ratio": 1.25, "load": "idle", "n": 3}),
                         ({f"{NAME} load=idle": 1.25}, set()))
        self.assertEqual(run({"ratio": 4.0, "ratio_of": "speedup"}), ({NAME: 0.25}, set()))

    def test_without_a_peer(self):
        """Says nothing of the tree."""
        self.assertEqual(run({"peer": None, "p50": 7.5}, {"ratio": None}), ({}, set()))

    def test_of_one_name(self):
        """Nobody knows which of them is which."""
        self.assertEqual(run({"ratio": 1.0}, {"ratio": 2.0}), ({}, {NAME}))


class Compare(unittest.TestCase):
    """Two trees."""

    def test_slower(self):
        """All runs of this tree are above those of the other."""
        ((row,), others) = beside.compare(runs(1.0, 1.1, 1.05), runs(1.3, 1.35, 1.4))
        self.assertAlmostEqual(row.factor, 1.35 / 1.05)
        self.assertTrue(row.apart)
        self.assertEqual(others, 0)

    def test_quicker(self):
        """Or below."""
        ((row,), _) = beside.compare(runs(2.0, 2.1, 2.2), runs(1.0, 1.9, 1.1))
        self.assertTrue(row.apart)

    def test_noise(self):
        """One of them is among the other's."""
        ((row,), _) = beside.compare(runs(1.0, 1.1, 1.2), runs(1.15, 1.3, 1.4))
        self.assertFalse(row.apart)

    def test_of_some_runs(self):
        """What is not in all runs, or has the name of another, is counted and not compared."""
        rows, others = beside.compare([run({"ratio": 1.0}), run({"ratio": 1.0})],
                                      [run({"ratio": 1.0}, {"ratio": 2.0, "load": "idle"}),
                                       run({"ratio": 1.0})])
        self.assertEqual(([row.name for row in rows], others), ([NAME], 1))
        rows, others = beside.compare([run({"ratio": 1.0})],
                                      [run({"ratio": 1.0}, {"ratio": 2.0})])
        self.assertEqual((rows, others), ([], 1))

    def test_shown(self):
        """The table marks what is apart, and says how many would be by chance."""
        rows, others = beside.compare(runs(1.0, 1.1, 1.05), runs(1.3, 1.35, 1.4))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            beside.show("v1.0", rows, others)
        self.assertIn("1.05      1.35    1.286  *", out.getvalue())
        self.assertIn("1 of 1 rows, by chance 0.1.", out.getvalue())


class Tree(unittest.TestCase):
    """The earlier tree."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.checkout = self.folder / "checkout"
        self.checkout.mkdir()
        self.git("init", "--quiet")
        for word in ("one", "two"):
            (self.checkout / "word").write_text(word)
            self.git("add", "word")
            self.git("-c", "user.name=n", "-c", "user.email=e@localhost", "commit", "--quiet",
                     "-m", word)

    def git(self, *words):
        """In the checkout."""
        subprocess.run(["git", "-C", self.checkout, *words], check=True, timeout=60)

    def tree(self, revision):
        """The tree of a revision."""
        return beside.clone(beside.commit_of(revision, self.checkout), self.checkout,
                            self.folder / "clones")

    def test_of_a_revision(self):
        """Made once, whole each time, and not in the way of what is built in it."""
        folder = self.tree("HEAD~1")
        self.assertEqual((folder / "word").read_text(), "one")
        (folder / "word").unlink()
        (folder / "build").mkdir()
        self.assertEqual(self.tree("HEAD~1"), folder)
        self.assertEqual((folder / "word").read_text(), "one")
        self.assertTrue((folder / "build").is_dir())
        self.assertEqual((self.tree("HEAD") / "word").read_text(), "two")

    def test_that_was_not_finished(self):
        """It is made again."""
        folder = self.tree("HEAD")
        subprocess.run(["rm", "-rf", folder / ".git"], check=True, timeout=60)
        self.assertEqual((self.tree("HEAD") / "word").read_text(), "two")

    def test_of_no_revision(self):
        """What git does not know, or takes for something else, is named."""
        for revision in ("nothing", "^HEAD", "--all", "", "HEAD:word"):
            with self.assertRaisesRegex(host.ClusterError, "there is no such revision"):
                beside.commit_of(revision, self.checkout)


    def test_of_a_folder_that_git_does_not_read(self):
        """Its own words are said, and nothing is made."""
        with self.assertRaisesRegex(host.ClusterError, "no such revision here fatal: .*nowhere"):
            beside.commit_of("HEAD", self.folder / "nowhere")
        self.assertFalse((self.folder / "clones").exists())


class Options(unittest.TestCase):
    """What is for one tree is refused before anything is made."""

    def test_refused(self):
        """Both of them."""
        for option in ("check", "json"):
            with self.assertRaisesRegex(host.ClusterError, "are for one tree"):
                beside.main(argparse.Namespace(**{"check": False, "json": False, option: True}))


if __name__ == "__main__":
    unittest.main()
