# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench race: workers of a key-value store, and a spike of load that more of them meet.

krcore-race's client over krcore's queues, over an RC queue pair by plain verbs (verbs_rc) and
by rdma_cm: the same code above one transport table, on the same table in the same memory of
node1. Beside them Redis over TCP on the same guest, with the same records.

Cases: `startup`, a worker from fork to its first answer, all systems in turns; `ycsb_a`, `ycsb_b`,
`ycsb_c`, `ycsb_f`, one worker, one operation at a time, in turns; `packets`, what the client's card
sends for a search and for an update; `spike`, 2 workers, then 24, then 180, spread over three
guests.
KRCORE_BENCH_KEYS (100000) says how many records, KRCORE_BENCH_WORKERS ("2 24 180") how many
workers.

Takes the ConnectX model. Draws race-spike.svg, from rows of case `spike_p99`.
"""

import contextlib
import os

import _nodes as nodes_module
import _plot as plot
from cluster import bench as bench_module
from cluster import host, nodes

NIC = "cx"
USUALLY = "6 min emulated"
KEYS = int(os.environ.get("KRCORE_BENCH_KEYS", "100000"))
WORKERS = tuple(int(n) for n in os.environ.get("KRCORE_BENCH_WORKERS", "2 24 180").split())
STARTUP_SAMPLES = 60
YCSB_OPERATIONS = 1000
PACKET_OPERATIONS = (100, 600)
STAGES = (6, 8, 44)         # seconds with so many workers; the last worker has 22 to begin
INTERVAL_MS = 400           # between what a worker wants
STEP_MS, BIN_MS = 100, 500
STEADY = 0.9
REDIS_PORT = 6390
BYTES_A_KEY = 320           # of the table, with room for workers that write
WORKER_MIB = 1
RC = ("verbs_rc", "rdma_cm")
SYSTEMS = ("krcore", *RC, "redis")
REDIS_FILL = ("for i = 0, ARGV[1] - 1 do redis.call('SET', string.format('r%017d', i), "
              "string.format('r%017d', i) .. string.rep('v', 38)) end")
FOLDER = nodes_module.lab_module.FOLDER
us = nodes_module.us


class Spike:
    """What the workers of all guests have told, times in us from the beginning."""

    def __init__(self, workers, counts):
        self.workers = workers
        self.counts = [sum(counts[:i + 1]) for i in range(len(counts))]

    @staticmethod
    def begin(stage):
        """When a stage begins; that behind the last is the end."""
        return sum(STAGES[:stage]) * 1000000

    def new(self, stage):
        """How long the workers of a stage took from fork to the first answer."""
        return [w["ready"] - w["forked"] for w in self.workers if w["stage"] == stage]

    def old(self, stage, begin, end):
        """What operations took that workers of earlier stages wanted in a time."""
        return [took for w in self.workers if w["stage"] < stage
                for wanted, took in zip(w["wanted"], w["took"]) if begin <= wanted < end]

    def ready(self, stage):
        """us from its begin until the last worker of a stage had its first answer."""
        return max(w["ready"] for w in self.workers if w["stage"] == stage) - self.begin(stage)

    def rate(self, begin, end):
        """Operations a second that ended in a time."""
        ended = sum(1 for w in self.workers for wanted, took in zip(w["wanted"], w["took"])
                    if begin <= wanted + took < end)
        return ended * 1e6 / (end - begin)

    def steady(self, stage):
        """Operations a second in the second half of a stage."""
        begin, end = self.begin(stage), self.begin(stage + 1)
        return self.rate((begin + end) // 2, end)

    def until_steady(self, stage):
        """us from a stage's begin until the second begins whose rate is at STEADY of the steady
        one; None if there is none."""
        begin, end, steady = self.begin(stage), self.begin(stage + 1), self.steady(stage)
        for at in range(begin, end, STEP_MS * 1000):
            if self.rate(at, at + 1000000) >= STEADY * steady > 0:
                return at - begin
        return None

    def bins(self):
        """(seconds, p99 in ms of all operations wanted in half a second, or None)."""
        out = []
        for at in range(0, self.begin(len(STAGES)), BIN_MS * 1000):
            took = self.old(len(STAGES), at, at + BIN_MS * 1000)
            out.append((at / 1e6, bench_module.quantile(took, 0.99) / 1000 if took else None))
        return out


class Races:
    """All cases, over one lab."""

    def __init__(self, lab, report):
        self.lab, self.report = lab, report

    def row(self, case, system, unit, **values):
        """One line."""
        return self.lab.row(self.report, case, system, unit, keys=KEYS, **values)

    @contextlib.contextmanager
    def serving(self):
        """Both stores on node1; gives SYSTEM=TARGET of each."""
        server, address = self.lab.server, self.lab.address
        workers = 2 * max(WORKERS) if self.report.wanted("spike") else 1
        mib = KEYS * BYTES_A_KEY // 2 ** 20 + workers * WORKER_MIB + 16
        server.run(f"systemd-run --quiet --unit=bench-redis redis-server --port {REDIS_PORT} "
                   "--bind 0.0.0.0 --protected-mode no --save '' --appendonly no "
                   "--busy-reply-threshold 600000")
        try:
            with self.lab.race_table(KEYS, mib) as targets:
                server.run(f"until redis-cli -p {REDIS_PORT} ping >/dev/null 2>&1; do sleep 0.2; "
                           f"done; redis-cli -p {REDIS_PORT} eval \"{REDIS_FILL}\" 0 {KEYS}",
                           timeout=900)
                yield {**targets, "redis": f"redis={address},{REDIS_PORT}"}
        finally:
            if server.alive():
                server.run("systemctl stop bench-redis", timeout=120, check=False)

    def _against(self, case, ours, peers, **values):
        """Our row of a case, once for each peer; `peers`: their median in the same unit."""
        for name, peer in peers.items():
            self.row(case, "krcore", "us", **values, peer=name,
                     ratio=round(peer / ours, 3), ratio_of="speedup")

    # -- startup ------------------------------------------------------------------

    def startup(self, targets):
        """From fork to the first answer."""
        lines = self.lab.program(f"bench_race startup {STARTUP_SAMPLES} {KEYS} "
                                 + " ".join(targets.values()))
        found = {}
        for line in lines:
            found.setdefault(line["system"], {})[line["case"]] = line
        values = {system: {**self.lab.quantiles(got["startup"]),
                           "fork_us": us(got["fork"]["p50"]),
                           "attached_us": us(got["connect"]["p50"]),
                           "first_us": us(got["first"]["ns"])}
                  for system, got in found.items()}
        for system in (*RC, "redis"):
            self.row("startup", system, "us", **values[system])
        for system in ("krcore", "krcore_lookup"):
            ours = values[system]
            for name in (*RC, "redis"):
                peer = values[name]["p50"]
                self.row("startup", system, "us", **ours, peer=name,
                         ratio=round(peer / ours["p50"], 3), ratio_of="speedup",
                         shorter_percent=round(100 * (1 - ours["p50"] / peer), 1))

    # -- one worker ---------------------------------------------------------------

    def ycsb(self, targets, workload):
        """One workload, in turns."""
        case = f"ycsb_{workload.lower()}"
        lines = self.lab.program(f"bench_race ycsb {workload} {YCSB_OPERATIONS} {KEYS} "
                                 + " ".join(targets[name] for name in
                                            ("krcore", "verbs_rc", "redis")), timeout=1800)
        counts = {line["system"]: line for line in lines if line["case"] == "counts"}
        took = {line["system"]: line for line in lines if line["case"] == workload}
        values = {}
        for system, line in took.items():
            values[system] = {**self.lab.quantiles(line),
                              "per_second": round(1e9 / line["mean"], 1)}
            if system in counts:
                got = counts[system]
                values[system] |= {
                    "reads_per_search": round(got["search_reads"] / got["searches"], 4),
                    "retries": got["retries"]}
        for system in ("verbs_rc", "redis"):
            self.row(case, system, "us", **values[system])
        self._against(case, values["krcore"]["p50"],
                      {name: values[name]["p50"] for name in ("verbs_rc", "redis")},
                      **values["krcore"])

    def packets(self, targets):
        """What the card sends for an operation: a long run less a short one."""
        for case, workload in (("search", "C"), ("update", "U")):
            if not self.report.wanted(f"packets_{case}"):
                continue
            for system in ("verbs_rc", "krcore"):
                sent = []
                for operations in PACKET_OPERATIONS:
                    before = nodes.card_counters(self.lab.client)["rdma_tx_packets"]
                    self.lab.program(f"bench_race ycsb {workload} {operations} {KEYS} "
                                     f"{targets[system]}")
                    sent.append(nodes.card_counters(self.lab.client)["rdma_tx_packets"] - before)
                few, many = PACKET_OPERATIONS
                self.row(f"packets_{case}", system, "packets", n=many - few,
                         p50=round((sent[1] - sent[0]) / (many - few), 3))

    # -- the spike ----------------------------------------------------------------

    def _guests(self):
        return [m for m in self.lab.cluster.nodes() if m is not self.lab.server]

    def _shares(self):
        """How many workers each guest forks at each stage."""
        guests = len(self._guests())
        more = [WORKERS[0], WORKERS[1] - WORKERS[0], WORKERS[2] - WORKERS[1]]
        # what does not divide goes to the last in the first stage and to the first later
        return [[n // guests + (1 if (i if stage else guests - 1 - i) < n % guests else 0)
                 for stage, n in enumerate(more)] for i in range(guests)], more

    def spike(self, target):
        """One system; returns the Spike."""
        log, gate = f"{FOLDER}/spike.log", f"{FOLDER}/spike-gate"
        shares, more = self._shares()
        started = []
        try:
            for machine, counts in zip(self._guests(), shares):
                machine.run(f"rm -f {log} {gate}.*")
                started.append((machine, machine.popen(
                    f"ulimit -l unlimited; ulimit -n 65536; cd {FOLDER}; exec ./bench_race spike "
                    f"{target} {KEYS} {INTERVAL_MS} "
                    f"{' '.join(str(n) for n in (*counts, *STAGES))} >{log} 2>&1",
                    env={"BN_GATE": gate}, limit=900)))
            for machine, process in started:
                self.lab.await_line(machine, process, log, "gate begin", 300)
            self.lab.cluster.each(lambda machine: machine.run(f": >{gate}.begin"))
            workers = []
            for machine, process in started:
                status = process.wait(600).status
                out = machine.run(f"cat {log}").out
                if status:
                    raise host.ClusterError(f"{machine.name}: status {status}\n{out[-2000:]}")
                workers += nodes_module.objects(out)
        finally:
            for machine, process in started:
                if machine.alive() and process.poll() is None:
                    process.kill()
        return Spike(workers, more)

    def spikes(self, targets):
        """All systems, then the picture."""
        with self.lab.as_shipped():
            found = {name: self.spike(targets[name]) for name in SYSTEMS}
        for stage in (1, 2):
            starts = {name: bench_module.quantile(s.new(stage), 0.5)
                      for name, s in found.items()}
            for name in (*RC, "redis", "krcore"):
                self._spike_row(found[name], name, stage, starts)
        for name, spike in found.items():
            seconds, tail = zip(*spike.bins())
            self.row("spike_p99", name, "ms", n=len(spike.workers), workers=WORKERS,
                     stages=STAGES, seconds=seconds, p99_ms=tail)
        self.report.picture("race-spike", plot.spike(self.lab.rows, self.lab.how))

    def _spike_row(self, spike, name, stage, starts):
        begin, end = spike.begin(stage), spike.begin(stage + 1)
        busy = spike.old(stage, begin, end)
        values = {"samples": spike.new(stage), "workers": spike.counts[stage],
                  "all_answered_us": spike.ready(stage), "steady_us": spike.until_steady(stage),
                  "steady_per_second": round(spike.steady(stage), 1), "old_n": len(busy),
                  "old_p99_us": bench_module.quantile(busy, 0.99), "old_max_us": max(busy)}
        for peer in [p for p in starts if p != "krcore"] if name == "krcore" else [None]:
            more = {} if peer is None else {
                "peer": peer, "ratio": round(starts[peer] / starts[name], 3),
                "ratio_of": "speedup"}
            self.row("spike", name, "us", **values, **more)

    def run(self):
        """What --case leaves in."""
        with self.serving() as targets:
            if self.report.wanted("startup"):
                host.say("workers that start")
                self.startup(targets)
            for workload in "ABCF":
                if self.report.wanted(f"ycsb_{workload.lower()}"):
                    host.say(f"YCSB {workload}")
                    self.ycsb(targets, workload)
            if self.report.wanted("packets_search") or self.report.wanted("packets_update"):
                host.say("packets")
                self.packets(targets)
            if self.report.wanted("spike"):
                host.say(f"the spike: {' to '.join(str(n) for n in WORKERS)} workers")
                self.spikes(targets)


def bench(cluster, report):
    """All cases."""
    if len(WORKERS) != 3 or sorted(WORKERS) != list(WORKERS) or WORKERS[0] < 1:
        raise host.ClusterError("KRCORE_BENCH_WORKERS: not three numbers that rise")
    Races(nodes_module.Nodes(cluster), report).run()
