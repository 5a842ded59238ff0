#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What benches print and draw, of rows that are given: which cases --case leaves in, pictures that
are well-formed and have a mark for each figure, at the right height, and the tables of docs/.

usage: bench_pictures_test.py CHECKOUT
"""

import contextlib
import io
import os
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock
from xml.etree import ElementTree

CHECKOUT = pathlib.Path(sys.argv.pop(1))
sys.path[:0] = [str(CHECKOUT / "bench"), str(CHECKOUT / "tests")]
import _plot    # noqa: E402
import _table   # noqa: E402
from cluster.bench import Report    # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
SYSTEMS = {"verbs": 70000.0, "redis": 8000.0, "tcp": 9000.0, "krcore": 2000.0}
HOW = "TCG guests, cx"


def handoff(case, **more):
    """Rows of a case as bench/handoff.py makes them: ours once for each peer."""
    rows = []
    for system, took in SYSTEMS.items():
        row = {"bench": "handoff", "case": case, "system": system, "unit": "us", "n": 3,
               "p50": took, "p99": 2 * took, "start": 30000.0, "connect": took / 2,
               "read": took / 2, "exec_to_last_us": 30000.0 + took, **more}
        peers = [peer for peer in SYSTEMS if peer != "krcore"] if system == "krcore" else [None]
        for peer in peers:
            rows.append(row if peer is None else {
                **row, "peer": peer, "ratio": SYSTEMS[peer] / took, "ratio_of": "speedup",
                "shorter_percent": 100 - 100 * took / SYSTEMS[peer]})
    return rows


def marks(svg, tag, colour, attribute="fill"):
    """Elements of a colour, but for the one that stands for it above the scale."""
    found = [e for e in ElementTree.fromstring(svg).iter(SVG + tag)
             if e.get(attribute) == colour]
    return [e for e in found if tag != "rect" or float(e.get("y")) >= _plot.TOP]


def texts(svg):
    """All words of a picture."""
    return [e.text for e in ElementTree.fromstring(svg).iter(SVG + "text")]


class Pictures(unittest.TestCase):
    """All of them, by what is in them."""

    def test_handoff(self):
        """A mark for each size and system; what took longer stands higher."""
        rows = handoff("transfer", bytes=1024) + handoff("transfer", bytes=9216)
        svg = _plot.handoffs(rows, HOW)
        high = {system: [float(e.get("y")) for e in marks(svg, "rect", _plot.COLOURS[system])]
                for system in SYSTEMS}
        self.assertEqual({system: len(at) for system, at in high.items()},
                         {system: 2 for system in SYSTEMS})
        self.assertLess(max(high["verbs"]), min(high["tcp"]))
        self.assertLess(max(high["tcp"]), min(high["krcore"]))
        self.assertIn("9 KiB", texts(svg))
        self.assertTrue(any(HOW in text for text in texts(svg)), "it says that it is emulation")

    def test_parts(self):
        """Three parts of each bar, as high as they are long; none of large data."""
        rows = handoff("transfer", bytes=9216) + handoff("transfer", bytes=16 << 20)
        svg = _plot.parts(rows, HOW)
        for name, colour in _plot.PARTS:
            heights = [float(e.get("height")) for e in marks(svg, "rect", colour)]
            self.assertEqual(len(heights), len(SYSTEMS), name)
            if name != "start":
                self.assertAlmostEqual(heights[0] / heights[-1],
                                       SYSTEMS["verbs"] / SYSTEMS["krcore"], 0)
        start, connect = (marks(svg, "rect", colour)[0] for _, colour in _plot.PARTS[:2])
        self.assertAlmostEqual(float(connect.get("y")) + float(connect.get("height")),
                               float(start.get("y")), 0, "one stands on the other")
        self.assertNotIn("16 MiB", texts(svg))

    def test_together(self):
        """A group for each number of functions, of fresh ones only."""
        rows = []
        for cold in (False, True):
            rows += handoff("chain", functions=5, cold=cold)
            rows += handoff("fan_out", functions=17, cold=cold)
            rows += handoff("at_once", parallel=64, cold=cold)
        for row in rows:
            row["p50"] *= 1 if row["cold"] else 100
        svg = _plot.together(rows, HOW)
        self.assertEqual(svg, _plot.together([row for row in rows if row["cold"]], HOW))
        self.assertEqual(len(marks(svg, "rect", _plot.COLOURS["krcore"])), 3)
        for text in ("chain of 5", "one to 16", "64 at once"):
            self.assertIn(text, texts(svg))

    def test_spike(self):
        """A line for each system, broken where nothing was measured."""
        rows = [{"bench": "race", "case": "spike_p99", "system": system, "unit": "ms",
                 "workers": [2, 24, 180], "stages": [1, 1, 2], "seconds": [0, 1, 2, 3],
                 "p99_ms": [1.0, None, 30.0, 2.0]} for system in ("krcore", "redis")]
        svg = _plot.spike(rows, HOW)
        for system in ("krcore", "redis"):
            (path,) = marks(svg, "path", _plot.COLOURS[system], "stroke")
            points = [float(y) for y in re.findall(r" ([\d.]+)", path.get("d").replace("L", " L"))]
            self.assertEqual(path.get("d").count("M"), 2)
            self.assertEqual(len(points), 3)
            self.assertEqual(min(points), points[1], "the slowest stands highest")
        self.assertIn("180 workers", texts(svg))

    def test_nothing(self):
        """Without rows there is no picture, and the benches write none."""
        for draw in (_plot.lookups, _plot.growth, _plot.spike, _plot.handoffs, _plot.parts,
                     _plot.together):
            self.assertEqual(draw([], HOW), _plot.NOTHING)

    def test_tables(self):
        """A line for each size, and ours beside the peers."""
        rows = handoff("transfer", bytes=9216) + [
            {"bench": "handoff", "case": "counts", "system": "krcore", "unit": "instructions",
             "p50": 99000.0, "user": 1.0, "kernel": 2.0, "syscalls": 8.0, "packets": 2.0,
             "doorbells": 6.0, "commands": 2.0}]
        lines = _table.handoffs(rows)
        (line,) = [line for line in lines if line.startswith("| 9,216 ")]
        self.assertIn("| 70 | 8 | 9 | 2 | 97.1 % | 75.0 % |", line)
        self.assertTrue(any("| 99,000 |" in line for line in lines))


class Reports(unittest.TestCase):
    """What --case leaves in, and where pictures go."""

    def test_wanted(self):
        """All without --case; with it those that are named, whole."""
        self.assertTrue(Report("x", False).wanted("startup"))
        some = Report("x", False, ["startup", "spike"])
        self.assertTrue(some.wanted("spike"))
        self.assertTrue(some.wanted("ycsb_a", "startup"))
        self.assertFalse(some.wanted("start"))
        self.assertFalse(some.wanted("ycsb_a", "packets"))

    def test_rows(self):
        """Rows are counted, so that a name of no case is noticed."""
        report = Report("x", True)
        self.assertEqual(report.rows, 0)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            report.row("a", "b", "us", samples=[3, 1, 2])
        self.assertEqual(report.rows, 1)
        self.assertIn('"p50": 2', out.getvalue())

    def test_picture(self):
        """Into the folder that the environment names, which is made."""
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.dict(os.environ, {"KRCORE_BENCH_PICTURES": f"{folder}/new"}), \
                contextlib.redirect_stderr(io.StringIO()):
            Report("x", False).picture("name", "<svg/>")
            self.assertEqual(pathlib.Path(folder, "new", "name.svg").read_text("utf-8"), "<svg/>")


if __name__ == "__main__":
    unittest.main()
