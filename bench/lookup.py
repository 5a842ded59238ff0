# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench lookup: what a look-up costs its reader and its server.

One-sided look-ups through libkrcore beside raw READs of the same 256 bytes, which
are taken in turns with them; beside a server that is asked by datagrams, Redis GET
and etcd get over TCP. From the same guest, over the same link, with the server's
processors idle and with them saturated, for tables of several sizes
(KRCORE_BENCH_RECORDS, KRCORE_BENCH_SAMPLES). Draws build/bench/lookup.svg.

Figures of a row: p50, p99, p999 in microseconds; records in the table; load of the
server; reads_per_lookup; server_cpu_s_per_million: processor seconds that a million
requests cost the server's process, which is what it took (server_cpu_gross_s_per_million)
less what it takes in as much time when nobody asks (server_cpu_silent_s_per_million), and
all it took if it polls; server_wakes_per_lookup: how often that process was woken, less
what happens in as much time when nobody asks; guest_cpu_s_per_million: processor seconds
of its whole guest, where the software NIC works too (with an idle server only).
"""

import re

import _lab
import _plot
from _lab import us
from cluster import host

USUALLY = "15 min emulated, 2 min on KVM"
REDIS_FILL = ("for i = 0, ARGV[1] - 1 do redis.call('SET', string.format('r%017d', i), "
              "string.format('r%017d', i) .. string.rep('v', 38)) end")
CASES = ("hit", "miss", "cold")
POLLING = ("ud_rpc",)       # takes a whole processor, asked or not


class Lookups:
    """One table size: all systems, all loads."""

    def __init__(self, lab, report, records):
        self.lab = lab
        self.report = report
        self.records = records
        self.samples = _lab.SAMPLES
        self.ours = {}

    def row(self, case, system, load, got, requests, cpu, **more):
        """One line: quantiles of a program, processor time of its server."""
        values = dict(n=got["n"], p50=us(got["p50"]), p99=us(got["p99"]), p999=us(got["p999"]),
                      records=self.records, load=load, **more)
        if got.get("lost"):
            values["lost"] = got["lost"]
        if cpu:
            per = 1e6 / requests
            caused = cpu.process if system in POLLING else max(0, cpu.process - cpu.silent)
            values["server_cpu_s_per_million"] = round(caused * per, 3)
            values["server_cpu_gross_s_per_million"] = round(cpu.process * per, 3)
            values["server_cpu_silent_s_per_million"] = round(cpu.silent * per, 3)
            values["server_wakes_per_lookup"] = round(max(0, cpu.wakes) / requests, 4)
            if load == "idle":
                values["guest_cpu_s_per_million"] = round(cpu.guest * per, 3)
        return self.lab.row(self.report, case, system, "us", **values)

    # -- krcore and the raw READ --------------------------------------------------

    def krcore(self, load):
        """Look-ups and raw READs in turns."""
        address = self.lab.address
        pid = self.lab.daemon_pid()
        with self.lab.service(self.lab.server, f"bench_read_server {address} 18700 64"), \
                self.lab.load(load):
            for case in filter(self.report.wanted, CASES):
                (ours, raw), cpu = self.lab.measured(
                    pid, f"bench_lookup -s {address} -p {address}:18700 -r {self.records} "
                         f"-n {self.samples} -c {case}")
                self.ours[case, load] = ours
                cpu.guest /= 2      # half of the READs were the peer's
                self.row(case, "krcore", load, ours, ours["n"], cpu, peer="raw_read",
                         ratio=round(ours["p50"] / raw["p50"], 3), ratio_of="cost",
                         reads_per_lookup=round(ours["reads"] / ours["n"], 4))
                self.row(case, "raw_read", load, raw, raw["n"], None, reads_per_lookup=1)
        if load == "idle" and self.report.wanted("attach"):
            (got,) = self.lab.program(f"bench_lookup -s {address} -r {self.records} -n 20 "
                                      "-c attach")
            self.row("attach", "krcore", load, got, got["n"], None,
                     reads_per_lookup=round(got["reads"] / got["n"], 4))

    def perftest(self):
        """The same READ by ib_read_lat, once: a check of the peer above."""
        device = self.lab.cluster.nic.device()
        options = f"-d {device} -s 256 -n {max(self.samples, 1000)} -F"
        with self.lab.server.background(f"ib_read_lat {options}"):
            self.lab.client.run("sleep 2")
            out = self.lab.client.run(f"ib_read_lat {options} {self.lab.address}",
                                      timeout=600).out
        line = re.search(r"^\s*256\s+(\d+)\s+(.*)$", out, re.M)
        if not line:
            raise host.ClusterError(f"ib_read_lat said nothing of 256 bytes:\n{out}")
        # min, max, typical (median), average, deviation, 99 %, 99.9 %
        number = [float(n) for n in line.group(2).split()]
        self.lab.row(self.report, "hit", "ib_read_lat", "us", n=int(line.group(1)),
                     p50=number[2], p99=number[5], p999=number[6], load="idle",
                     reads_per_lookup=1)

    # -- the others -----------------------------------------------------------------

    def compared(self, system, case, load, got, cpu):
        """A row of another system, and one of ours that says how many times better."""
        self.row(case, system, load, got, got["n"], cpu)
        ours = self.ours.get((case, load))
        if ours:
            self.row(case, "krcore", load, ours, ours["n"], None, peer=system,
                     ratio=round(got["p50"] / ours["p50"], 3), ratio_of="speedup")

    def ud_rpc(self):
        """A server that polls for datagrams."""
        address = self.lab.address
        with self.lab.service(self.lab.server, f"bench_ud_rpc_server {address} 18701 "
                              f"{self.records}") as pid:
            for load in ("idle", "saturated"):
                with self.lab.load(load):
                    for case in filter(self.report.wanted, ("hit", "miss")):
                        (got,), cpu = self.lab.measured(
                            pid, f"bench_ud_rpc_client {address} 18701 {self.records} "
                                 f"{self.samples} {case}")
                        self.compared("ud_rpc", case, load, got, cpu)

    def tcp(self, system, port, unit):
        """Redis or etcd, running as a unit of the server guest."""
        pid = int(self.lab.server.run(f"systemctl show -P MainPID {unit}").out)
        for load in ("idle", "saturated"):
            with self.lab.load(load):
                for case in filter(self.report.wanted, ("hit", "miss")):
                    (got,), cpu = self.lab.measured(
                        pid, f"bench_tcp_get {system} {self.lab.address} {port} {self.records} "
                             f"{self.samples} {case}")
                    self.compared(system, case, load, got, cpu)

    def redis(self):
        """Redis without persistence."""
        server = self.lab.server
        server.run("systemd-run --quiet --unit=bench-redis redis-server --port 6390 "
                   "--bind 0.0.0.0 --protected-mode no --save '' --appendonly no "
                   "--busy-reply-threshold 600000")
        try:
            server.run("until redis-cli -p 6390 ping >/dev/null 2>&1; do sleep 0.2; done; "
                       f"redis-cli -p 6390 eval \"{REDIS_FILL}\" 0 {self.records}", timeout=900)
            self.tcp("redis", 6390, "bench-redis")
        finally:
            server.run("systemctl stop bench-redis", timeout=120, check=False)

    def etcd(self):
        """One etcd member whose files lie in memory; linearizable reads, its default."""
        server, address = self.lab.server, self.lab.address
        server.run("rm -rf /dev/shm/etcd; systemd-run --quiet --unit=bench-etcd etcd "
                   "--data-dir /dev/shm/etcd --listen-client-urls http://0.0.0.0:2389 "
                   f"--advertise-client-urls http://{address}:2389 "
                   "--listen-peer-urls http://127.0.0.1:2390 "
                   "--initial-advertise-peer-urls http://127.0.0.1:2390 "
                   "--initial-cluster default=http://127.0.0.1:2390 --logger zap "
                   "--max-wals 1 --max-snapshots 1")
        try:
            server.run("until curl -sf http://127.0.0.1:2389/health >/dev/null; do sleep 0.5; "
                       "done", timeout=300)
            self.lab.program(f"bench_tcp_get etcd {address} 2389 {self.records} 0 fill")
            self.tcp("etcd", 2389, "bench-etcd")
        finally:
            server.run("systemctl stop bench-etcd; rm -rf /dev/shm/etcd", timeout=120,
                       check=False)

    def run(self):
        """Everything for this size."""
        host.say(f"{self.records} records: krcore and raw READs")
        took = self.lab.start_daemon(self.records)
        host.say(f"  the table was copied in {took:.1f} s")
        for load in ("idle", "saturated"):
            self.krcore(load)
        self.lab.stop_daemon()
        host.say(f"{self.records} records: datagrams to a polling server")
        self.ud_rpc()
        host.say(f"{self.records} records: Redis")
        self.redis()
        host.say(f"{self.records} records: etcd")
        self.etcd()


def bench(cluster, report):
    """All sizes; then the plot."""
    lab = _lab.Lab(cluster)
    for records in _lab.SIZES:
        work = Lookups(lab, report, records)
        if records == _lab.SIZES[0]:
            work.perftest()
        work.run()
    report.picture("lookup", _plot.lookups(lab.rows, lab.how))
