# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench handoff: data from one function to another on another node.

krcore-handoff starts each function as a fresh process in a cgroup and namespaces of its own;
a function on node1 makes bytes, one on node2 is told where they are and fetches them. Systems:
`krcore`, queues of the module; `verbs`, plain verbs from scratch (device, memory, queue pair,
numbers over TCP); `tcp`, a connection to the maker; `redis`, a server on the maker's node.
They take turns in the same guests in the same run.

Cases: `transfer`, from the moment in which a fresh function wants the data to the last byte,
1 KiB to 16 MiB; `transfer_warm`, the same between functions that stay; `chain`, five functions
in four guests, each takes what the one before has; `fan_out`, one to 4 and to 16; `at_once`, 1
to 64 pairs of functions at once; the last three of 9 KiB, fresh and warm. `counts`: what
node2's guest executes between the moments that `transfer` says, where guests are emulated; with
KRCORE_BENCH_PROFILE=1 the kernel's functions in which that is follow each row; with --check
they are compared with cost/handoff.toml.

KRCORE_BENCH_HANDOFFS says how many in a turn. Takes the ConnectX model.
"""

import json
import os
import pathlib

import _budgets
import _meter
import _nodes
import _plot
import cost
from cluster import bench as bench_module
from cluster import host, module, nodes, programs

NIC = "cx"
USUALLY = "15 min emulated"
SYSTEMS = ("verbs", "redis", "tcp", "krcore")
SIZES = (1 << 10, 4 << 10, 9 << 10, 64 << 10, 1 << 20, 16 << 20)
SIZE = 9 << 10          # of what is counted: the largest of the paper
FAN_OUT = (4, 16)
AT_ONCE = (1, 4, 16, 64)
TURNS = 3               # of all systems, one after the other
TIMES = int(os.environ.get("KRCORE_BENCH_HANDOFFS", "6"))       # in a turn
TIMES_LARGE = max(1, TIMES // 3)
FEW, MORE = 2, 2 * TIMES                # transfers of which is counted
REDIS_PORT = 6390
REDIS_MEMORY = "192mb"
SHARED = "--share-net"  # all but krcore need the network
BUDGETS = pathlib.Path(__file__).with_name("cost") / "handoff.toml"
FUNCTIONS = "/run/bench/functions"
TOOL = "/usr/local/bin/krcore-handoff"
UNIT = "bench-handoff"
CARD = {"packets": "rdma_tx_packets", "doorbells": "doorbells", "commands": "commands"}
COUNTED = cost.Case("transfer", "", "", 0, 0, short=False)
PARTS = ("start", "connect", "read")
PICTURES = {"handoff": _plot.handoffs, "handoff-parts": _plot.parts,
            "handoff-together": _plot.together}
plugin = _meter.plugin


def _programs():
    return programs.compiled("krcore-handoff", *(f"bench_handoff_{system}" for system in SYSTEMS))


def _hops(rows, cold):
    """What functions that fetched data said, of fresh ones or of those that were there."""
    return [row for row in rows if row["type"] == "hop" and row["cold"] == cold]


def _wholes(rows, warm):
    """How long a chain or a fan-out took as a whole; warm: behind the first, which is not."""
    found = [row["us"] for row in rows if row["type"] in ("chain", "spread")]
    return found[1:] if warm else found


def median(values):
    """The one in the middle, as the report has it."""
    return round(bench_module.quantile(list(values), 0.5), 3)


class Handoffs:
    """All cases, over one lab."""

    def __init__(self, lab, report):
        self.lab, self.report = lab, report
        self.cluster = lab.cluster
        self.caller = lab.cluster.node("meta1")
        self.maker, self.taker = lab.server, lab.client
        self.counting = self.cluster.how() != "KVM"
        folder = _programs()
        with host.step("copying the functions into the guests", "20 s"):
            self.cluster.each(lambda machine: self._install(machine, folder))
        # in a chain all guests have makers
        self.cluster.each(lambda machine: machine.run(
            f"systemd-run --quiet --unit=bench-redis redis-server --port {REDIS_PORT} --save '' "
            f"--appendonly no --protected-mode no --bind {machine.spec.address} "
            # nobody deletes what was handed over
            f"--maxmemory {REDIS_MEMORY} --maxmemory-policy allkeys-lru"))
        self.cluster.each(self._runner)

    @staticmethod
    def _install(machine, folder):
        machine.run(f"mkdir -p {FUNCTIONS}")
        for source, target in (("handoff/krcore-handoff", TOOL),
                               *((f"bench/bench_handoff_{system}", f"{FUNCTIONS}/{system}")
                                 for system in SYSTEMS)):
            stripped = folder / f".handoff.{machine.name}"
            host.run(["strip", "-o", stripped, folder / source])
            machine.push(stripped, target, 0o755)
            stripped.unlink()

    @staticmethod
    def _runner(machine):
        machine.run(
            f"systemctl stop {UNIT} 2>/dev/null; systemctl reset-failed {UNIT} 2>/dev/null; "
            f"systemd-run --quiet --unit={UNIT} -p Delegate=yes {TOOL} {SHARED} --most 256 "
            f"--share 256 --lease 600 -d {FUNCTIONS} serve {machine.spec.address}; "
            f"for i in $(seq 100); do (: </dev/tcp/{machine.spec.address}/7234) 2>/dev/null && "
            "exit 0; sleep 0.1; done; exit 1", timeout=60)

    def close(self):
        """Nothing of it runs any more."""
        self.cluster.each(lambda machine: machine.run(f"systemctl stop {UNIT} bench-redis",
                                                      check=False))

    def call(self, system, words, *machines, timeout=900):
        """One call of krcore-handoff; its rows."""
        where = " ".join(machine.spec.address for machine in machines)
        out = self.caller.run(f"{TOOL} --json --timeout 300 --function {system} {words} {where}",
                              timeout=timeout).out
        return [json.loads(line) for line in out.splitlines()]

    def turns(self, words, *machines):
        """All systems in turns; a list of the rows of each call, by system."""
        found = {system: [] for system in SYSTEMS}
        for _ in range(TURNS):
            for system, seen in found.items():
                seen.append(self.call(system, words, *machines))
        return found

    def rows(self, case, found, warm=False, **more):
        """Rows of a case: each system's, and ours once for each peer. `found`: see turns()."""
        hops = {system: [hop for rows in calls for hop in _hops(rows, not warm)]
                for system, calls in found.items()}
        took = {system: [hop["transfer_us"] for hop in seen] for system, seen in hops.items()}
        middle = {system: median(values) for system, values in took.items()}

        def values(system):
            got = {name: median(hop[f"{name}_us"] for hop in hops[system]) for name in PARTS}
            # from exec, or from the command to a function that is there, to the last byte
            got["exec_to_last_us"] = median(sum(hop[f"{name}_us"] for name in PARTS)
                                            for hop in hops[system])
            if "parallel" not in more:
                got["whole_us"] = median(whole for rows in found[system]
                                         for whole in _wholes(rows, warm))
            return got | more

        for peer in SYSTEMS:
            if peer == "krcore":
                continue
            self.lab.row(self.report, case, peer, "us", samples=took[peer], **values(peer))
            self.lab.row(self.report, case, "krcore", "us", samples=took["krcore"],
                         **values("krcore"), peer=peer,
                         ratio=round(middle[peer] / middle["krcore"], 3), ratio_of="speedup",
                         shorter_percent=round(100 - 100 * middle["krcore"] / middle[peer], 2))

    # -- cases ------------------------------------------------------------------------

    def transfer(self):
        """Fresh functions, all sizes."""
        for size in SIZES:
            times = TIMES if size < 1 << 20 else TIMES_LARGE
            self.rows("transfer", self.turns(f"--times {times} chain {size}", self.maker,
                                             self.taker), bytes=size)

    def transfer_warm(self):
        """Functions that stay."""
        for size in SIZES:
            self.rows("transfer_warm", self.turns(f"--warm --times {4 * TIMES} chain {size}",
                                                  self.maker, self.taker), True, bytes=size)

    def chain(self):
        """Five functions in four guests, one after the other."""
        machines = self.cluster.nodes()
        five = [*machines, machines[0]]
        for warm in (False, True):
            self._both("chain", f"chain {SIZE}", five, warm, functions=len(five))

    def fan_out(self):
        """One to many, spread over all guests but the maker's."""
        others = [machine for machine in self.cluster.nodes() if machine is not self.maker]
        for many in FAN_OUT:
            machines = [self.maker, *(others[i % len(others)] for i in range(many))]
            for warm in (False, True):
                self._both("fan_out", f"spread {SIZE}", machines, warm, functions=len(machines))

    def at_once(self):
        """So many makers on node1 and takers on node2 at once."""
        for parallel in AT_ONCE:
            for warm in (False, True):
                self._both("at_once", f"--parallel {parallel} chain {SIZE}",
                           (self.maker, self.taker), warm, parallel=parallel)

    def _both(self, case, words, machines, warm, **more):
        times = f"--warm --times {1 + TIMES_LARGE}" if warm else f"--times {TIMES_LARGE}"
        with self.lab.as_shipped():
            found = self.turns(f"{times} {words}", *machines)
        self.rows(case, found, warm, bytes=SIZE, cold=not warm, **more)

    def _card(self):
        """Counters of the taker's card, READs of whatever length among them."""
        counters = nodes.card_counters(self.taker)
        return {"reads": sum(nodes.reads_by_bytes(self.taker).values()),
                **{name: counters[key] for name, key in CARD.items()}}

    def _run_counted(self, meter, system, times):
        """So many transfers: what was counted of each, and what the card did meanwhile."""
        since, before = meter.count(), self._card()
        self.call(system, f"--times {times} chain {SIZE}", self.maker, self.taker)
        after, records = self._card(), meter.records(since)
        if len(records) != times:
            raise host.ClusterError(f"{system}: {len(records)} records; are the marks there?")
        return records, {name: after[name] - before[name] for name in after}

    def counts(self):
        """What the taker's guest does between wanting data and having them. The card also does
        what other programs of the node want: a long run less a short one, the least of several."""
        if not self.counting:
            return
        meter, symbols = _meter.Meter(self.taker), _meter.symbols(self.taker)
        for system in SYSTEMS:
            places, cards, records = meter.places(False), [], []
            for _turn in range(TURNS):
                _few, before = self._run_counted(meter, system, FEW)
                many, after = self._run_counted(meter, system, FEW + MORE)
                records += many
                cards.append({name: round((after[name] - before[name]) / MORE, 3)
                              for name in after})
            self.lab.row(self.report, "counts", system, "instructions",
                         **cost.summary(records, COUNTED), bytes=SIZE,
                         **{name: min(card[name] for card in cards) for name in cards[0]})
            if symbols:
                symbols.say(places, meter.places(False))

    def run(self):
        """What --case leaves in, and a picture of each that there are rows of."""
        for case in (self.transfer, self.counts, self.transfer_warm, self.chain, self.fan_out,
                     self.at_once):
            if self.report.wanted(case.__name__):
                host.say(case.__name__)
                case()
        for name, draw in PICTURES.items():
            svg = draw(self.lab.rows, self.lab.how)
            if svg != _plot.NOTHING:
                self.report.picture(name, svg)


def bench(cluster, report):
    """All cases."""
    if cluster.how() != "KVM":
        module.install(cluster, module.build_metered)
    lab = _nodes.Nodes(cluster)
    handoffs = Handoffs(lab, report)
    try:
        handoffs.run()
    finally:
        handoffs.close()
    return lab.rows


def check(rows):
    """--check: whether what is counted is within its budget."""
    return _budgets.check("handoff", [row for row in rows if row["case"] == "counts"], BUDGETS)
