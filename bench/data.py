# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench data: the price of sharing, on the data path.

krcore's queues beside RC queue pairs of a program with the same loop (`verbs`; and
`verbs_selective`, which asks for one completion a batch), and beside perftest over RC and
over DC, on the same card in the same guests in the same run.

Cases: `sync_read`, `sync_write`: 8 bytes, one request at a time, in microseconds;
`batched_read`, `batched_write`: 8 bytes, batches of 12 a queue, requests a second, with
1 and with 24 queues; `large_read`, `large_write`: 4 KiB to 1 MiB, a stream with 4
outstanding, MiB a second. Rates are medians of three turns, perftest's of one. For
rates `ratio` is ours over the peer's: 1 is as fast, ratio_of speedup; for latencies it is
the cost. Takes the ConnectX model; with --nic rxe krcore's queues are on lanes over soft RoCE,
and there is no perftest over DC.
"""

import re
import statistics
import time

import _nodes as nodes_module
from cluster import host

NIC = "cx"
USUALLY = "12 min emulated"
SMALL = 8
OUTSTANDING = 12
QUEUES = (1, 24)
SIZES = (4 << 10, 64 << 10, 1 << 20)
LARGE_OUTSTANDING = 4
SYNC_ROUNDS = 2000
BATCHED_REQUESTS = 120000
LARGE_BYTES = 256 << 20
LARGE_REQUESTS = 8000
TURNS = 3 # of all systems, one after the other
PERFTEST_S = 120
PORT = 18720
OPERATIONS = ("read", "write")


class Data:
    """All cases, over one lab."""

    def __init__(self, lab, report, targets):
        self.lab = lab
        self.report = report
        self.targets = targets
        self.port = PORT
        self.gid_index = {machine: self._gid_index(machine)
                          for machine in (lab.server, lab.client)}

    def row(self, case, system, unit, **values):
        """One line."""
        return self.lab.row(self.report, case, system, unit, **values)

    def program(self, way, operation, size, batch, queues, rounds, stream=""):
        """Latency of a round, and rate, of one of the programs with the same loop."""
        return self.lab.program(f"bench_data {way} {self.targets[way]} {operation} {size} "
                                f"{batch} {queues} {rounds} {stream}")

    # -- perftest -------------------------------------------------------------------

    def _gid_index(self, machine):
        """Where a guest's RoCE v2 GID of its IPv4 address is."""
        device = self.lab.cluster.nic.device()
        out = machine.run(
            f"cd /sys/class/infiniband/{device}/ports/1; for i in $(seq 0 15); do "
            "t=$(cat gid_attrs/types/$i 2>/dev/null) && echo \"$i $(cat gids/$i) $t\"; done; "
            "true").out
        found = re.search(r"^(\d+) 0000:0000:0000:0000:0000:ffff:\S+ RoCE v2$", out, re.M)
        if not found:
            raise host.ClusterError(f"{machine.name}: no RoCE v2 GID of its address:\n{out}")
        return found[1]

    def perftest(self, program, transport, options):
        """Fields of perftest's one line of figures, or None if it cannot do it."""
        self.port += 1

        def command(machine):
            return (f"{program} -d {self.lab.cluster.nic.device()} -x {self.gid_index[machine]} "
                    f"-c {transport} -p {self.port} -F {options}")

        with self.lab.server.background(command(self.lab.server)):
            time.sleep(2)
            got = self.lab.client.run(f"timeout {PERFTEST_S} {command(self.lab.client)} "
                                      f"{self.lab.address}", timeout=PERFTEST_S + 60, check=False)
        lines = re.findall(r"^\s*(\d+\s+\d+(?:\s+[\d.]+)+)\s*$", got.out, re.M)
        if got.status or not lines:
            host.say(f"{program} {options} over {transport}: status {got.status}, no figures: "
                     f"{got.out[-300:]}")
            return None
        return [float(field) for field in lines[-1].split()]

    # -- cases ------------------------------------------------------------------------

    def sync(self, operation):
        """One request at a time."""
        case = f"sync_{operation}"
        peers = {}
        got = self.program("verbs", operation, SMALL, 1, 1, SYNC_ROUNDS)[0]
        peers["verbs"] = self.row(case, "verbs", "us", **self.lab.quantiles(got))["p50"]
        for transport in ("RC", "DC") if self.lab.cluster.nic.dc else ("RC",):
            # bytes, iterations, min, max, typical, average, deviation, 99 %, 99.9 %
            found = self.perftest(f"ib_{operation}_lat", transport,
                                  f"-s {SMALL} -n {SYNC_ROUNDS}")
            if found:
                name = f"perftest_{transport.lower()}"
                peers[name] = found[4]
                self.row(case, name, "us", n=int(found[1]), p50=found[4], p99=found[7],
                         p999=found[8])
        ours = self.lab.quantiles(self.program("krcore", operation, SMALL, 1, 1,
                                               SYNC_ROUNDS)[0])
        for name, p50 in peers.items():
            self.row(case, "krcore", "us", **ours, peer=name, ratio=round(ours["p50"] / p50, 3),
                     ratio_of="cost")

    def _rate(self, system, operation, request, column):
        """One measurement of one system, or None if it cannot do it."""
        size, batch, queues, requests, stream = request
        if system in self.targets:
            rounds = max(requests // (batch * queues), 2)
            got = self.program(system, operation, size, batch, queues, rounds, stream)[-1]
            return got["mib_per_second" if stream else "per_second"]
        found = self.perftest(f"ib_{operation}_bw", system.rpartition("_")[2].upper(),
                              f"-s {size} -n {max(requests // queues, 16)} -t {batch} "
                              f"-q {queues} -Q 1")
        return found and found[column] * (1 if stream else 1e6)

    def _rates(self, case, operation, request, column):
        """Medians of all systems, which take turns; `column` is perftest's.

        perftest has the one in the middle only: it takes longest to begin.
        """
        size, batch, queues, requests, stream = request
        systems = ("verbs", "verbs_selective", "perftest_rc", "perftest_dc", "krcore")
        rates = {system: [] for system in systems}
        if stream: # each request has a completion there
            del rates["verbs_selective"]
        if not self.lab.cluster.nic.dc:
            del rates["perftest_dc"]
        for turn in range(TURNS):
            for system, seen in rates.items():
                if system in self.targets or turn == TURNS // 2:
                    seen.append(self._rate(system, operation, request, column))
        more = {"bytes": size, "outstanding": batch, "queues": queues}
        unit = "MiB/s" if stream else "1/s"
        medians = {system: statistics.median(seen) for system, seen in rates.items()
                   if None not in seen}
        ours = medians.pop("krcore")
        for system, rate in medians.items():
            self.row(case, system, unit, n=requests, p50=round(rate, 1), **more,
                     turns=len(rates[system]))
        for system, rate in medians.items():
            self.row(case, "krcore", unit, n=requests, p50=round(ours, 1), **more, turns=TURNS,
                     peer=system, ratio=round(ours / rate, 3), ratio_of="speedup")

    def batched(self, operation):
        """Many small requests."""
        for queues in QUEUES:
            # perftest: bytes, iterations, peak MiB/s, average MiB/s, million messages/s
            self._rates(f"batched_{operation}", operation,
                        (SMALL, OUTSTANDING, queues, BATCHED_REQUESTS, ""), 4)

    def large(self, operation):
        """Large ones: as many as there may be are outstanding all the time."""
        for size in SIZES:
            requests = min(LARGE_BYTES // size, LARGE_REQUESTS)
            self._rates(f"large_{operation}", operation,
                        (size, LARGE_OUTSTANDING, 1, requests, "stream"), 3)

    def run(self):
        """What --case leaves in."""
        for kind, work in (("sync", self.sync), ("batched", self.batched),
                           ("large", self.large)):
            for operation in OPERATIONS:
                if self.report.wanted(f"{kind}_{operation}"):
                    host.say(f"{kind} {operation}")
                    work(operation)


def bench(cluster, report):
    """All cases."""
    lab = nodes_module.Nodes(cluster, lanes=True)
    with lab.servers("krcore", "rdma_cm") as targets:
        targets["verbs"] = targets["verbs_selective"] = targets["rdma_cm"]
        Data(lab, report, targets).run()
