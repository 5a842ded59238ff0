#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench messages without guests: which rows it makes of what its programs print, in which
direction it compares, that systems take turns, and what is computed of counts.

usage: bench_messages_test.py CHECKOUT
"""

import contextlib
import pathlib
import sys
import types
import unittest
from unittest import mock

CHECKOUT = pathlib.Path(sys.argv.pop(1))
sys.path[:0] = [str(CHECKOUT / "bench"), str(CHECKOUT / "tests")]
import _nodes       # noqa: E402
import messages     # noqa: E402
from cluster.bench import Report    # noqa: E402

ECHO_NS = {"verbs_rc": 100000, "verbs_ud": 80000, "tcp": 400000, "krcore": 130000}


class Lab:
    """Guests whose programs print what they are told to; `asked`: their command lines."""

    quantiles = _nodes.Nodes.quantiles

    def __init__(self):
        self.server, self.client = "node1", "node2"
        self.cluster = types.SimpleNamespace(
            how=lambda: "KVM", nodes=lambda: ["node1", "node2", "meta1", "meta2"])
        self.rows, self.asked = [], []
        self.kib = 0

    def program(self, command):
        """What a program prints: rates go down with the size when nothing is copied least."""
        self.asked.append(command)
        words = command.split()
        if "echo" in words:
            took = ECHO_NS[words[1]]
            return [{"n": int(words[-1]), "p50": took, "p99": 2 * took, "p999": 3 * took}]
        size = int(words[4])
        rate = 100.0 if words[-1] == "copied" else 400.0 if words[0] == "bench_data" \
            else 200.0 * size / (size + 8192)
        return [{"system": "krcore", "mib_per_second": rate}]

    @contextlib.contextmanager
    def service(self, machine, command, ready):
        """A queue pair takes 16 KiB of the server, a connection 4, wherever its peer is."""
        assert ready == "held" and (machine == self.server) == command.startswith("bench_hold rc ")
        self.asked.append(command)
        kib = int(command.split()[-1]) * (16 if command.startswith("bench_hold") else 4)
        self.kib += kib
        yield
        self.kib -= kib

    def used(self, machine):
        """KiB of the server."""
        assert machine == self.server
        return 100000 + self.kib

    def row(self, _report, case, system, unit, **values):
        """Keep it."""
        self.rows.append({"case": case, "system": system, "unit": unit, **values})
        return self.rows[-1]


def run(*cases):
    """A lab in which these cases were run."""
    lab = Lab()
    targets = {name: f"{name},1" for name in (*ECHO_NS, "rdma_cm")}
    messages.Messages(lab, Report("messages", True, cases), targets).run()
    return lab


class Rows(unittest.TestCase):
    """What is printed."""

    def test_echo(self):
        """Ours once for each peer, as a cost; the peers alone; all in turns."""
        lab = run("echo")
        ours = {row["peer"]: row for row in lab.rows if row["system"] == "krcore"}
        self.assertEqual(set(ours), {"verbs_rc", "verbs_ud", "tcp"})
        self.assertEqual(ours["verbs_rc"]["ratio"], 1.3)
        self.assertEqual(ours["verbs_rc"]["ratio_of"], "cost")
        self.assertEqual(ours["tcp"]["ratio"], 0.325)
        self.assertTrue(all(row["bytes"] == 64 and row["unit"] == "us" for row in lab.rows))
        self.assertEqual([row["system"] for row in lab.rows if "peer" not in row],
                         ["verbs_rc", "verbs_ud", "tcp"])
        asked = [command.split()[1] for command in lab.asked]
        self.assertEqual(asked, list(messages.ECHOERS) * messages.TURNS)

    def test_zero_copy(self):
        """1 MiB, to buffers that were posted and fetched, beside READs of as much, as a speedup."""
        lab = run("zero_copy")
        peer, fetched, ours, beside = lab.rows
        self.assertEqual((fetched["system"], beside["peer"]), ("krcore_fetched", "krcore_fetched"))
        self.assertEqual((peer["system"], peer["p50"], peer["bytes"]), ("verbs_rc", 400.0, 1 << 20))
        self.assertEqual((ours["peer"], ours["ratio_of"], ours["bytes"]),
                         ("verbs_rc", "speedup", 1 << 20))
        self.assertEqual(ours["ratio"], round(ours["p50"] / 400.0, 3))
        reads = [command for command in lab.asked if command.startswith("bench_data verbs rdma_cm")]
        self.assertEqual(len(reads), messages.TURNS)
        # as many bytes by both: a round of bench_data has OUTSTANDING requests
        rounds = int(reads[0].split()[-2]) * messages.OUTSTANDING
        pull = f"pull {1 << 20} {messages.OUTSTANDING} {rounds}"
        self.assertTrue(lab.asked[1].endswith(pull), lab.asked[1])
        self.assertTrue(lab.asked[2].endswith(f"{pull} posted"), lab.asked[2])

    def test_cross_over(self):
        """All sizes, and the one from which on it is not worth it to copy."""
        lab = run("cross_over")
        self.assertEqual({row["bytes"] for row in lab.rows if "bytes" in row},
                         set(messages.SIZES))
        last = lab.rows[-1]
        self.assertEqual((last["unit"], last["p50"]), ("bytes", 8192))

    def test_memory(self):
        """Each number of peers, shared by three guests, and beside queue pairs where these fit."""
        with mock.patch.object(messages.krcore, "node_rows", return_value=[{"connections": 0}]), \
             mock.patch.object(messages.time, "sleep") as slept:
            lab = run("memory")
        self.assertTrue(slept.called)
        ours = [row for row in lab.rows if row["system"] == "krcore"]
        self.assertEqual([(row["peers"], row["p50"]) for row in ours],
                         [(peers, 4 * peers) for peers in messages.PEERS])
        self.assertEqual([row.get("ratio") for row in ours], [0.25, None])
        self.assertTrue(all(row["bytes_per_peer"] == 4096 for row in ours))
        self.assertEqual([row["p50"] for row in lab.rows if row["system"] == "verbs_rc"],
                         [16 * peers for peers in messages.PEERS if peers <= messages.PEERS_RC_MAX])
        self.assertEqual([command.split()[-1] for command in lab.asked if "keep" in command][:3],
                         ["334", "333", "333"])

    def test_wanted(self):
        """--case leaves in what it names."""
        self.assertEqual({row["case"] for row in run("echo", "zero_copy").rows},
                         {"echo", "zero_copy"})
        self.assertEqual(run("ech").rows, [])


class Sums(unittest.TestCase):
    """What is computed."""

    def test_cross_over(self):
        """From there on, not once before."""
        find = messages.cross_over
        self.assertEqual(find({1: (2, 1), 2: (1, 2), 4: (2, 2), 8: (3, 1)}), 4)
        self.assertIsNone(find({1: (2, 1), 2: (1, 2)}))
        self.assertEqual(find({1: (2, 1), 2: (2, 1)}), 1)

    def test_jain(self):
        """1 for equal shares, 1/n if one has all."""
        self.assertEqual(messages.jain([5, 5, 5, 5]), 1.0)
        self.assertEqual(messages.jain([8, 0, 0, 0]), 0.25)
        self.assertEqual(messages.jain([0, 0]), 0.0)

    def test_transfers(self):
        """Whole rounds, and more than are outstanding."""
        for size in messages.SIZES:
            self.assertEqual(messages.transfers(size) % messages.OUTSTANDING, 0, size)
            self.assertGreaterEqual(messages.transfers(size), 2 * messages.OUTSTANDING)

    def test_requests(self):
        """Those of the requester, of all lengths together, in between."""
        def counters(*rows):
            return {"ops": [{"op": op, "side": side, "bytes": size, "count": count}
                            for op, side, size, count in rows]}

        before = counters(("SEND", "requester", 88, 3), ("READ", "requester", 256, 5))
        after = counters(("SEND", "requester", 88, 4), ("SEND", "requester", 72, 2),
                         ("READ", "requester", 256, 9), ("READ", "responder", 256, 7))
        self.assertEqual(messages.requests(before, after), {"SEND": 3, "READ": 4})


if __name__ == "__main__":
    unittest.main()
