# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run hw-report between two guests: the card's model in place of a card, the guest's agent in
place of ssh, all else as an owner of two hosts runs it. Times are of the emulation: not judged."""

import pathlib
import sys
import tempfile

from . import host, nodes, programs
from .suite import check, limit

sys.path.insert(0, str(host.CHECKOUT / "bench"))
# pylint: disable=wrong-import-position
from hw import __main__ as command, hosts, schema  # noqa: E402

NEEDS = "dc"        # what is reported is a card of that kind
HOW = {"samples": 2, "turns": 1, "rounds": 2}
SYSTEMS = ("krcore", "krcore_static", "rdma_cm", "verbs", "verbs_selective")


class Guest:
    """A guest as a host of the report."""

    def __init__(self, machine):
        self.machine, self.name = machine, machine.name

    def run(self, words, timeout=60):
        """A shell command to its end."""
        got = self.machine.run(words, timeout=timeout, check=False)
        return hosts.Result(got.status, got.out, got.err)

    def push(self, path, target):
        """Put a program there, stripped."""
        with tempfile.NamedTemporaryFile(prefix="krcore-stripped-") as stripped:
            host.run(["strip", "-o", stripped.name, path])
            self.machine.push(pathlib.Path(stripped.name), target, mode=0o755)


def _row(report, **wanted):
    (row,) = [row for row in report["rows"]
              if all(row.get(key) == value for key, value in wanted.items())]
    return row


@limit(900)
def test_report_of_two_guests(cluster):
    """Every figure is measured or has its reason, as the schema says; the card and the module are
    named; a peer's process that ends is gone on from; nothing is left behind."""
    built = programs.built("bench/bench_recover").parent
    with nodes.up(cluster) as (server, client):
        got = command.report(Guest(server), Guest(client), built, **HOW)
        left = [machine.run("ls -d /tmp/krcore-hw-report.* 2>/dev/null; pgrep bench_; true").out
                for machine in (server, client)]
    check(schema.check(got) == [], schema.check(got))
    check(left == ["", ""], f"left behind: {left}")
    for role in ("server", "client"):
        told = got["hosts"][role]
        (device,) = told["devices"]
        check(device["fw_ver"] and device["driver"] == "mlx5_core" and told["virtual"]
              and told["module"], f"{told}")
    check(got["address"] == server.spec.address, got["address"])
    reasons = {row["reason"] for row in got["rows"] if row["reason"]}
    print(f"    {len(got['rows'])} figures, not measured: {sorted(reasons)}", flush=True)
    for system in SYSTEMS:
        check(any(row["p50"] for row in got["rows"] if row["system"] == system),
              f"nothing of {system}: {reasons}")
    for system in ("krcore", "rdma_cm"):
        for case in ("failure_seen", "first_byte_again"):
            row = _row(got, system=system, case=case)
            check(row["n"] == HOW["rounds"] and row["p50"] > 0, f"{row}")
    why = _row(got, system="verbs", case="failure_seen")["reason"]
    check(reasons == {why}, f"more than plain verbs' recovery is not measured: {reasons}")
