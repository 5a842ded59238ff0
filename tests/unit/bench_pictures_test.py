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


def counts(system, **more):
    """A row of what a transfer costs."""
    return {"bench": "handoff", "case": "counts", "system": system, "unit": "instructions",
            "p50": 99000.0, "user": 1.0, "kernel": 2.0, "syscalls": 8.0, "reads": 3.0,
            "packets": 4.0, "doorbells": 6.0, "commands": 5.0, **more}


def against(row, *peers):
    """A row as it is printed: once for each peer, a name and a share in percent."""
    return [{**row, "peer": peer, "ratio": 1.0, "ratio_of": "speedup", "shorter_percent": shorter}
            for peer, shorter in peers]


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

    def test_growth(self):
        """A bar for each size of the table, as high as its rate."""
        rows = [{"case": "publish_pipelined", "records": records, "per_second": rate,
                 "bytes_per_record": 70.0} for records, rate in ((1000, 4000.0), (9000, 2000.0))]
        first, second = (float(e.get("height")) for e in
                         marks(_plot.growth(rows, HOW), "rect", _plot.COLOURS["krcore"]))
        self.assertAlmostEqual(first / second, 2, 1)
        self.assertAlmostEqual(first, _plot.HEIGHT, 1)


class Linear(unittest.TestCase):
    """The scale from zero."""

    def test_below_one(self):
        """A largest value below 1, and nothing at all, have a scale up to 1."""
        for values in ([0.25, 0.4], [0.0]):
            scale = _plot._Linear(values, " ms")    # pylint: disable=protected-access
            svg = f'<svg xmlns="{SVG[1:-1]}">{"".join(scale.lines(500))}</svg>'
            self.assertEqual(texts(svg), ["0 ms", "1 ms"])
            self.assertEqual(scale.y(0), _plot.TOP + _plot.HEIGHT)
            self.assertEqual(scale.y(1), _plot.TOP)
            self.assertAlmostEqual(scale.y(0.25), _plot.TOP + 0.75 * _plot.HEIGHT)

    def test_steps(self):
        """Powers of ten, up to the first that is not below the largest."""
        for values, said in (([1.0], ["0", "1"]), ([1.2, 0.1], ["0", "1", "2"]),
                             ([2500.0], ["0", "1,000", "2,000", "3,000"])):
            scale = _plot._Linear(values, "")   # pylint: disable=protected-access
            svg = f'<svg xmlns="{SVG[1:-1]}">{"".join(scale.lines(500))}</svg>'
            self.assertEqual(texts(svg), said)

    def test_parts_below_one(self):
        """A whole picture of parts that take less than a millisecond."""
        rows = handoff("transfer", bytes=1024)
        for row in rows:
            row.update(start=30.0, connect=row["connect"] / 1000, read=row["read"] / 1000)
        svg = _plot.parts(rows, HOW)
        self.assertEqual(len(marks(svg, "rect", dict(_plot.PARTS)["read"])), len(SYSTEMS))
        self.assertIn("1 ms", texts(svg))


class Tables(unittest.TestCase):
    """Rows as the Markdown tables of docs/."""

    def cells(self, lines, *begin):
        """The cells of the one line that begins with these."""
        (line,) = [line for line in lines if line.startswith(f"| {' | '.join(begin)} |")]
        return line[2:-2].split(" | ")

    def test_handoffs(self):
        """A line for each size, and ours beside the peers."""
        lines = _table.handoffs(handoff("transfer", bytes=9216))
        self.assertEqual(self.cells(lines, "9,216")[1:7],
                         ["70", "8", "9", "2", "97.1 %", "75.0 %"])

    def test_counts(self):
        """A line for each system; what comes out below nothing is nothing, so that all columns
        are of figures."""
        lines = _table.handoffs([counts("verbs", p50=5100000.0, reads=-0.08, packets=-0.333),
                                 counts("krcore")])
        self.assertEqual(self.cells(lines, "system"),
                         ["system", "instructions", "user", "kernel", "system calls", "READs",
                          "packets sent", "doorbells", "firmware commands"])
        self.assertIn("|---|" + "|".join(["---:"] * 8) + "|", lines)
        self.assertEqual(self.cells(lines, "krcore"),
                         ["krcore", "99,000", "1", "2", "8", "3", "4", "6", "5"])
        self.assertEqual(self.cells(lines, "verbs"),
                         ["verbs", "5,100,000", "1", "2", "8", "0", "0", "6", "5"])

    def test_workers(self):
        """Each workload and system once; READs of those that have them; ours as speedups of
        medians."""
        rows = []
        for case, ours in (("ycsb_a", 400.0), ("ycsb_c", 200.0)):
            took = {"verbs_rc": 300.0, "redis": 900.0, "krcore": ours}
            for system, p50 in took.items():
                row = {"bench": "race", "case": case, "system": system, "unit": "us", "p50": p50,
                       "p99": 3 * p50, "per_second": 1e6 / p50}
                if system != "redis":
                    row |= {"reads_per_search": 3.004, "retries": 0}
                rows += against(row, ("verbs_rc", None), ("redis", None)) \
                    if system == "krcore" else [row]
        lines = _table.races(rows)
        self.assertEqual(len(lines), 2 + 6)
        self.assertEqual(self.cells(lines, "ycsb_c", "krcore")[2:],
                         ["200", "600", "5,000", "3", "1.50 of verbs_rc's, 4.50 of redis's"])
        self.assertEqual(self.cells(lines, "ycsb_a", "krcore")[2:],
                         ["400", "1,200", "2,500", "3", "0.75 of verbs_rc's, 2.25 of redis's"])
        self.assertEqual(self.cells(lines, "ycsb_a", "redis")[2:],
                         ["900", "2,700", "1,111", "", ""])

    def test_startups(self):
        """Milliseconds, and by how much ours are shorter than each peer."""
        rows = []
        for system, p50 in (("verbs_rc", 60000.0), ("rdma_cm", 90000.0), ("redis", 7000.0)):
            rows.append({"bench": "race", "case": "startup", "system": system, "unit": "us",
                         "p50": p50, "p99": 2 * p50, "fork_us": 500.0, "attached_us": p50 - 1000})
        ours = {"bench": "race", "case": "startup", "system": "krcore", "unit": "us", "p50": 6000.0,
                "p99": 9000.0, "fork_us": 510.0, "attached_us": 5000.0}
        rows += against(ours, ("verbs_rc", 90.0), ("rdma_cm", 93.3), ("redis", 14.3))
        lines = _table.races(rows)
        self.assertEqual(len(lines), 2 + 4)
        self.assertEqual(self.cells(lines, "krcore"),
                         ["krcore", "6", "9", "0.51", "5", "90.0 %", "93.3 %", "14.3 %"])
        self.assertEqual(self.cells(lines, "rdma_cm"),
                         ["rdma_cm", "90", "180", "0.5", "89", "", "", ""])

    def test_spikes(self):
        """Each number of workers and system; shorter by the medians of the same number."""
        rows = []
        for workers, peer, ours, steady in ((24, 80000.0, 8000.0, 400000),
                                            (180, 800000.0, 200000.0, None)):
            for system, p50 in (("verbs_rc", peer), ("krcore", ours)):
                row = {"bench": "race", "case": "spike", "system": system, "unit": "us",
                       "workers": workers, "p50": p50, "p99": 2 * p50, "all_answered_us": 3 * p50,
                       "steady_us": steady, "steady_per_second": 2.5 * workers, "old_n": 7,
                       "old_p99_us": 2500.0, "old_max_us": 3000.0}
                rows += against(row, ("verbs_rc", None), ("redis", None)) \
                    if system == "krcore" else [row]
        lines = _table.races(rows)
        self.assertEqual(len(lines), 2 + 4)
        self.assertEqual(self.cells(lines, "24", "krcore")[2:],
                         ["8", "16", "90.0 %", "24", "400", "60", "2.5"])
        self.assertEqual(self.cells(lines, "180", "krcore")[2:],
                         ["200", "400", "75.0 %", "600", "", "450", "2.5"])
        self.assertEqual(self.cells(lines, "180", "verbs_rc")[2:],
                         ["800", "1,600", "", "2,400", "", "450", "2.5"])

    def test_three_tables(self):
        """One below the other, with a line between; what has no rows has no table; pictures'
        rows are in none."""
        startup = {"bench": "race", "case": "startup", "system": "redis", "unit": "us", "p50": 1.0,
                   "p99": 2.0, "fork_us": 3.0, "attached_us": 4.0}
        worker = {"bench": "race", "case": "ycsb_a", "system": "krcore", "unit": "us", "p50": 5.0,
                  "p99": 6.0, "per_second": 7.0}
        tail = {"bench": "race", "case": "spike_p99", "system": "redis", "unit": "ms"}
        lines = _table.races([tail, startup, worker])
        self.assertEqual([line == "" for line in lines], [False] * 3 + [True] + [False] * 3)
        self.assertTrue(lines[2].startswith("| ycsb_a |"), lines)
        self.assertTrue(lines[6].startswith("| redis |"), lines)
        self.assertEqual(_table.races([tail]), [])


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
