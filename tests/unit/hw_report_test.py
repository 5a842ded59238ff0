#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run hw-report without RDMA: programs that only print, on hosts that are this machine, by a
shell and by an ssh that is one. What it measures is right, what it cannot measure has its
reason, and a report that hides something is refused.

Argument: the source tree.
"""

import copy
import functools
import os
import pathlib
import sys
import tempfile
import unittest

CHECKOUT = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(CHECKOUT / "bench"))

# pylint: disable=wrong-import-position
from hw import __main__ as command, facts, hosts, measure, schema  # noqa: E402

LIFE_S = 1000000 + os.getpid()    # tells servers of this test from others
PROGRAMS = {
    "connect_server": r"""
[ "$1" = verbs ] && { echo 'device: No such device' >&2; exit 1; }
[ "$1" = krcore ] && echo ready 4096,$2,77 || echo ready
exec sleep LIFE""",
    "connect": r"""
[ "$1" = spawn ] && [ ! -x "$3" ] && { echo 'the process failed' >&2; exit 1; }
echo '{"system": "x", "case": "x", "n": 7, "p50": 1500, "p99": 2500, "p999": 3500}'""",
    "data": r"""
[ "$1" = verbs_selective ] && { echo warning >&2; echo 'ibv_post_send: Bad' >&2; exit 1; }
n=$(cat turns 2>/dev/null || echo 0); echo $((n + 1)) >turns
echo '{"n": 9, "p50": 1000, "p99": 2000, "p999": 3000}'
echo '{"n": 99, "per_second": '$((100 * (n % 3)))', "mib_per_second": 5.25}'""",
    "fresh": "true",
    "recover": r"""
echo reading; echo gate failed
while [ ! -e "$BN_GATE.failed" ]; do sleep 0.05; done
grep -q '^192.0.2.1,' "$BN_GATE.failed" || { echo 'a bad target' >&2; exit 1; }
echo '{"failed_ns": 2000, "again_ns": 3000}'""",
}

FACTS = """kernel=6.1.0
machine=x86_64
processors=2
processor=A processor
virtual=yes
governor=
ofed=
rdma_core=44.0-2
module=0.1.0
module_srcversion=ABC
mitigation.meltdown=Not affected
parameter.spin_us=100
device.mlx5_0.fw_ver=16.35.1012
device.mlx5_0.board_id=
device.mlx5_0.hca_type=MT4119
device.mlx5_0.pci_vendor=0x15b3
device.mlx5_0.pci_device=0x1017
device.mlx5_0.driver=mlx5_core
device.mlx5_0.numa_node=-1
device.mlx5_0.state=4: ACTIVE
device.mlx5_0.link_layer=Ethernet
device.mlx5_0.rate=100 Gb/sec (4X EDR)
device.mlx5_0.mtu=1500
gid.mlx5_0=fe80:0000:0000:0000:0000:00ff:fe00:0001
gid.mlx5_0=0000:0000:0000:0000:0000:ffff:c000:0201
"""


class Fake(hosts.Local):
    """This machine, but for what it says of itself."""

    def run(self, command, timeout=60):
        if command == facts.SCRIPT:
            return hosts.Result(0, FACTS, "")
        return super().run(command, timeout)


def programs(folder, without=()):
    """The programs of a host."""
    for name, text in PROGRAMS.items():
        if name not in without:
            path = pathlib.Path(folder) / f"bench_{name}"
            path.write_text(f"#!/bin/sh\n{text.replace('LIFE', str(LIFE_S))}\n")
            path.chmod(0o755)
    return pathlib.Path(folder)


def rows(report, **wanted):
    """Rows with these values."""
    return [row for row in report["rows"]
            if all(row.get(key) == value for key, value in wanted.items())]


@functools.cache
def measured():
    """One report of programs that only print."""
    with tempfile.TemporaryDirectory() as folder:
        return command.report(Fake(), Fake(), programs(folder), samples=3)


class Measures(unittest.TestCase):
    """What is in it."""

    def setUp(self):
        self.report = measured()

    def test_valid(self):
        """It is as the schema says, and has a row for all that is planned."""
        self.assertEqual(schema.check(self.report), [])
        self.assertEqual(self.report["address"], "192.0.2.1")

    def test_figures(self):
        """Nanoseconds become microseconds; a rate is the median of its turns."""
        (row,) = rows(self.report, case="connect_lookup")
        self.assertEqual((row["n"], row["p50"], row["p99"], row["p999"]), (7, 1.5, 2.5, 3.5))
        (row,) = rows(self.report, case="sync_write", system="krcore")
        self.assertEqual((row["p50"], row["unit"]), (1.0, "us"))
        for row in rows(self.report, case="batched_read", system="krcore"):
            self.assertEqual((row["p50"], row["n"]), (100, 3))
        for row in rows(self.report, case="large_read", system="verbs"):
            self.assertEqual((row["p50"], row["unit"]), (5.2, "MiB/s"))
        (row,) = rows(self.report, case="failure_seen", system="krcore")
        self.assertEqual((row["p50"], row["n"]), (2.0, measure.ROUNDS))
        (row,) = rows(self.report, case="first_byte_again", system="rdma_cm")
        self.assertEqual(row["p50"], 3.0)

    def test_reasons(self):
        """What failed says why, by its own last line."""
        for row in rows(self.report, group="connect", system="verbs"):
            self.assertEqual(row["reason"], "the server of verbs: device: No such device")
        for row in rows(self.report, system="verbs_selective"):
            self.assertEqual((row["p50"], row["reason"]), (None, "ibv_post_send: Bad"))
        (row,) = rows(self.report, system="krcore_static")
        self.assertEqual(row["reason"], "the process failed")
        for row in rows(self.report, group="recovery", system="verbs"):
            self.assertIn("nobody tells", row["reason"])

    def test_nothing_works(self):
        """Without a program all rows are there, none with a figure."""
        with tempfile.TemporaryDirectory() as folder:
            got = command.report(Fake(), Fake(), pathlib.Path(folder), samples=1)
        self.assertEqual(schema.check(got), [])
        self.assertEqual([row for row in got["rows"] if row["p50"] is not None], [])

    def test_no_port(self):
        """A server without RDMA is refused before anything is put there."""
        bare = Fake()
        bare.run = lambda command, timeout=60: hosts.Result(0, "kernel=6.1.0\n", "")
        with self.assertRaisesRegex(hosts.HostError, "--address"):
            command.report(bare, Fake(), pathlib.Path("/nonexistent"), samples=1)

    def test_nothing_is_left(self):
        """Neither folders nor servers."""
        left = [path for path in pathlib.Path("/tmp").glob("krcore-hw-report.*")
                if path.stat().st_uid == os.getuid() and (path / "bench_fresh").exists()]
        self.assertEqual(left, [])
        running = hosts.Local().run("ps -eo args").out
        self.assertNotIn(f"sleep {LIFE_S}", running)


class Facts(unittest.TestCase):
    """What a host says of itself."""

    def test_parse(self):
        """Numbers are numbers; what is empty is null and named."""
        got, addresses = facts.parse(FACTS)
        self.assertEqual(addresses, ["192.0.2.1"])
        self.assertEqual((got["processors"], got["virtual"], got["governor"]), (2, True, None))
        self.assertEqual(got["missing"]["ofed"], "no ofed_info: the kernel's own drivers")
        (device,) = got["devices"]
        self.assertEqual((device["fw_ver"], device["mtu"]), ("16.35.1012", 1500))
        self.assertIn("devices.mlx5_0.board_id", got["missing"])

    def test_no_device(self):
        """A host without RDMA says so; and nothing can be measured there."""
        got, addresses = facts.parse("kernel=6.1.0\n")
        self.assertEqual((got["devices"], addresses), ([], []))
        self.assertIn("no RDMA device", got["missing"]["devices"])

    def test_script(self):
        """The script runs under a plain shell, and all that it must say is said."""
        got, _ = facts.parse(hosts.Local().run(facts.SCRIPT).out)
        for name in ("kernel", "machine", "processors", "module", "ofed"):
            self.assertIn(name, got)
        self.assertEqual(got["kernel"], os.uname().release)


class Judged(unittest.TestCase):
    """Reports that hide something."""

    def setUp(self):
        self.report = copy.deepcopy(measured())

    def refused(self, text):
        """It is, for this reason."""
        self.assertIn(text, "\n".join(schema.check(self.report)))

    def test_null_without_reason(self):
        """No figure and no reason."""
        rows(self.report, case="connect_cached")[0].update(p50=None, n=0)
        self.refused("neither a figure nor a reason")

    def test_figure_and_reason(self):
        """An invented figure."""
        rows(self.report, system="krcore_static")[0].update(p50=1.0)
        self.refused("neither a figure nor a reason")

    def test_row_left_out(self):
        """A case that went badly is not there."""
        self.report["rows"].pop()
        self.refused("not those of the plan")

    def test_fact_without_reason(self):
        """A firmware version that is null and not named."""
        self.report["hosts"]["client"]["devices"][0]["fw_ver"] = None
        self.refused("client.devices.mlx5_0.fw_ver: null without a reason")

    def test_types(self):
        """A text in place of a figure, a key that nobody knows, one that is not there."""
        self.report["rows"][0]["p50"] = "fast"
        self.refused("'fast' is no number or null")
        self.report["rows"][0].update(p50=1.0, comment="x")
        self.refused("comment is not known")
        del self.report["hosts"]["server"]["kernel"]
        self.refused("no kernel")

    def test_unknown_keyword(self):
        """The schema uses nothing that is not checked."""
        with self.assertRaises(ValueError):
            list(schema.faults(1, {"maximum": 2}))


class BySsh(unittest.TestCase):
    """The way over ssh, with one in PATH that is a shell."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        path = self.folder / "ssh"
        path.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n'
                        '[ "$2" = there ] || { echo "no route to $2" >&2; exit 255; }\n'
                        'exec sh -c "$3"\n')
        path.chmod(0o755)
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{self.folder}:{before}"
        self.addCleanup(os.environ.__setitem__, "PATH", before)

    def test_commands(self):
        """Quotes, status and both outputs come through; a file arrives whole."""
        there = hosts.host("there")
        got = there.run("printf '%s|' 'a b' \"$((1 + 1))\"; echo bad >&2; exit 3")
        self.assertEqual((got.status, got.out, got.err), (3, "a b|2|", "bad\n"))
        (self.folder / "x").write_bytes(bytes(range(256)) * 100)
        there.push(self.folder / "x", str(self.folder / "y z"))
        self.assertEqual((self.folder / "y z").read_bytes(), bytes(range(256)) * 100)

    def test_not_there(self):
        """A host that cannot be reached is an error with ssh's own words."""
        with self.assertRaisesRegex(hosts.HostError, "no route to nowhere"):
            hosts.host("nowhere").run("true")


if __name__ == "__main__":
    unittest.main()
