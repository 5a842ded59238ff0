# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench handoff: data from one function to another on another node.

krcore-handoff starts each function as a fresh process in a cgroup and namespaces of its own;
a function on node1 makes bytes, one on node2 is told where they are and fetches them. Systems:
`krcore`, queues of the module; `verbs`, plain verbs from scratch (device, memory, queue pair,
numbers over TCP); `tcp`, a connection to the maker; `redis`, a server on the maker's node.
They take turns in the same guests in the same run.

Cases: `transfer`, from the moment in which a fresh function wants the data to the last byte,
1 KiB to 16 MiB; `transfer_warm`, the same between functions that stay. Counts of node2's guest,
between the moments that `transfer` says, stand beside the times where guests are emulated.

KRCORE_BENCH_HANDOFFS says how many in a turn. Takes the ConnectX model.
"""

import json
import os
import pathlib

import _meter
import _nodes
import _plot
import cost
from cluster import host, module, nodes

NIC = "cx"
USUALLY = "10 min emulated"
SYSTEMS = ("verbs", "redis", "tcp", "krcore")
SIZES = (1 << 10, 4 << 10, 9 << 10, 64 << 10, 1 << 20, 16 << 20)
WARM_SIZES = (1 << 10, 9 << 10, 1 << 20)
SIZE = 9 << 10          # of what is counted: the largest of the paper
TURNS = 3               # of all systems, one after the other
TIMES = int(os.environ.get("KRCORE_BENCH_HANDOFFS", "6"))       # in a turn
TIMES_LARGE = max(1, TIMES // 3)
REDIS_PORT = 6390
SHARED = "--share-net"  # all but krcore need the network
FUNCTIONS = "/run/bench/functions"
TOOL = "/usr/local/bin/krcore-handoff"
UNIT = "bench-handoff"
CARD = {"packets": "rdma_tx_packets", "doorbells": "doorbells", "commands": "commands"}
COUNTED = cost.Case("transfer", "", "", 0, 0, short=False)
plugin = _meter.plugin


def _programs():
    folder = host.build_dir() / "release"
    host.run(["cmake", "-G", "Ninja", "-S", host.CHECKOUT, "-B", folder], timeout=120)
    host.run(["cmake", "--build", folder, "--target", "krcore-handoff",
              *(f"bench_handoff_{system}" for system in SYSTEMS)], timeout=900)
    return folder


class Handoffs:
    """All cases, over one lab."""

    def __init__(self, lab, report):
        self.lab, self.report = lab, report
        self.cluster = lab.cluster
        self.caller = lab.cluster.node("meta1")
        self.maker, self.taker = lab.server, lab.client
        self.counting = self.cluster.how() != "KVM"
        self.meter = _meter.Meter(self.taker) if self.counting else None
        programs = _programs()
        with host.step("copying the functions into the guests", "20 s"):
            self.cluster.each(lambda machine: self._install(machine, programs))
        self.maker.run(f"systemd-run --quiet --unit=bench-redis redis-server --port {REDIS_PORT} "
                       f"--save '' --appendonly no --protected-mode no --bind "
                       f"{self.maker.spec.address}")
        self.runners(SHARED)

    @staticmethod
    def _install(machine, programs):
        machine.run(f"mkdir -p {FUNCTIONS}")
        for source, target in (("handoff/krcore-handoff", TOOL),
                               *((f"bench/bench_handoff_{system}", f"{FUNCTIONS}/{system}")
                                 for system in SYSTEMS)):
            stripped = programs / f".handoff.{machine.name}"
            host.run(["strip", "-o", stripped, programs / source])
            machine.push(stripped, target, 0o755)
            stripped.unlink()

    def runners(self, options):
        """Runners on all guests, with these options."""
        self.cluster.each(lambda machine: machine.run(
            f"systemctl stop {UNIT} 2>/dev/null; systemctl reset-failed {UNIT} 2>/dev/null; "
            f"systemd-run --quiet --unit={UNIT} -p Delegate=yes {TOOL} {options} --most 256 "
            f"--lease 600 -d {FUNCTIONS} serve {machine.spec.address}; "
            f"for i in $(seq 100); do (: </dev/tcp/{machine.spec.address}/7234) 2>/dev/null && "
            "exit 0; sleep 0.1; done; exit 1", timeout=60))

    def close(self):
        """Nothing of it runs any more."""
        self.cluster.each(lambda machine: machine.run(f"systemctl stop {UNIT}", check=False))
        self.maker.run("systemctl stop bench-redis", check=False)

    def wanted(self, case):
        """Whether --case leaves it in."""
        return not self.report.patterns or case in self.report.patterns

    def call(self, system, words, *machines, timeout=900):
        """One call: what each function that fetched data says of it."""
        where = " ".join(machine.spec.address for machine in machines)
        out = self.caller.run(f"{TOOL} --json --timeout 300 --function {system} {words} {where}",
                              timeout=timeout).out
        rows = [json.loads(line) for line in out.splitlines()]
        return [row for row in rows if row["type"] == "hop"]

    def rows(self, case, samples, size):
        """Rows of a case: each system's, and ours once for each peer. `samples`: hops by system."""
        def values(system):
            return [hop["transfer_us"] for hop in samples[system]]

        def parts(system):
            return {name: self.median(hop[f"{name}_us"] for hop in samples[system])
                    for name in ("start", "connect", "read")}

        ours = self.median(values("krcore"))
        for peer in SYSTEMS:
            if peer == "krcore":
                continue
            theirs = self.median(values(peer))
            self.lab.row(self.report, case, peer, "us", samples=values(peer), **parts(peer),
                         bytes=size)
            self.lab.row(self.report, case, "krcore", "us", samples=values("krcore"),
                         **parts("krcore"), peer=peer, ratio=round(theirs / ours, 3),
                         ratio_of="speedup", shorter_percent=round(100 - 100 * ours / theirs, 2),
                         bytes=size)

    @staticmethod
    def median(values):
        """The one in the middle."""
        ordered = sorted(values)
        return round(ordered[len(ordered) // 2], 3)

    # -- cases ------------------------------------------------------------------------

    def transfer(self):
        """Fresh functions, all sizes."""
        for size in SIZES:
            times = TIMES if size < 1 << 20 else TIMES_LARGE
            samples = {system: [] for system in SYSTEMS}
            for _ in range(TURNS):
                for system, seen in samples.items():
                    seen += self.call(system, f"--times {times} chain {size}", self.maker,
                                      self.taker)
            self.rows("transfer", samples, size)
        path = pathlib.Path(host.build_dir()) / "bench" / "handoff.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_plot.handoffs(self.lab.rows, self.lab.how), encoding="utf-8")
        host.say(f"plot: {path}")

    def counts(self):
        """What the taker's guest does between wanting data and having them."""
        for system in SYSTEMS:
            runs = []
            for times in (2, 2 + 2 * TIMES):
                since, card = self.meter.count(), nodes.card_counters(self.taker)
                self.call(system, f"--times {times} chain {SIZE}", self.maker, self.taker)
                after = nodes.card_counters(self.taker)
                runs.append((self.meter.records(since),
                             {name: after[key] - card[key] for name, key in CARD.items()}))
            (few, before), (many, after) = runs
            if len(many) != 2 + 2 * TIMES:
                raise host.ClusterError(f"{system}: {len(many)} records; are the marks there?")
            card = {name: round((after[name] - before[name]) / (len(many) - len(few)), 3)
                    for name in CARD}
            self.lab.row(self.report, "transfer", system, "instructions",
                         **cost.summary(many, COUNTED), **card, bytes=SIZE)

    def warm(self):
        """Functions that stay."""
        for size in WARM_SIZES:
            samples = {system: [] for system in SYSTEMS}
            for _ in range(TURNS):
                for system, seen in samples.items():
                    hops = self.call(system, f"--warm --times {4 * TIMES} chain {size}",
                                     self.maker, self.taker)
                    seen += [hop for hop in hops if not hop["cold"]]
            self.rows("transfer_warm", samples, size)

    def run(self):
        """What --case leaves in."""
        if self.wanted("transfer"):
            host.say("transfers")
            self.transfer()
            if self.counting:
                host.say("counts")
                self.counts()
        if self.wanted("transfer_warm"):
            host.say("transfers between functions that stay")
            self.warm()


def bench(cluster, report):
    """All cases; the picture of `transfer` goes to build/bench/handoff.svg."""
    if cluster.how() != "KVM":
        module.install(cluster, module.build_metered)
    lab = _nodes.Nodes(cluster)
    handoffs = Handoffs(lab, report)
    try:
        handoffs.run()
    finally:
        handoffs.close()
    return lab.rows
