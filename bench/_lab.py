# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the benchmarks share: programs in the guests, tables of a size, processor time.

meta1 is the server of every system, node1 the client, meta2 the source that a
table of any size is copied from. All on the same emulated link.
"""

import contextlib
import dataclasses
import json
import os
import re
import time

from cluster import host, programs

SERVER, CLIENT, SOURCE = "meta1", "node1", "meta2"
FOLDER = "/run/bench"
PROGRAMS = ("lookup", "publish", "read_server", "ud_rpc_server", "ud_rpc_client", "tcp_get",
            "table_source", "clients")
SIZES = tuple(int(n) for n in os.environ.get("KRCORE_BENCH_RECORDS", "10 10000 1000000").split())
SAMPLES = int(os.environ.get("KRCORE_BENCH_SAMPLES", "2000"))
STRESS_PER_CPU = 4
SILENT_SECONDS = 4      # how long a server that nobody asks is watched
CONFIG = """\
[metaserver]
key_file =
require_auth = no
publish_any_gid = yes
records_per_owner_max = 4000000
rate_max = 10000000
credits = 64
lease_ms = 3600000
lease_max_ms = 86400000
memory_max_mib = 768
copy_timeout_ms = 60000
"""
# Where the programs run: the configuration that the packages install asks for a key.
CLIENT_CONFIG = """\
[node]
key_file =
require_auth = no
"""


@dataclasses.dataclass
class Clocks:
    """Seconds since the start: a process's on processors, the guest's, the guest's clock;
    and how often the process has gone to sleep."""
    process: float
    guest: float
    uptime: float
    sleeps: int


@dataclasses.dataclass
class Spent:
    """Processor seconds of the server during a measurement.

    `process`: of its process. `silent`: what that process takes in as much time when its
    clients are connected and ask nothing. `guest`: of its whole guest. `wakes`: how often
    the process was woken beyond what happens in as much time when nobody asks.
    """
    process: float
    silent: float
    guest: float
    wakes: float


def build():
    """Compile the programs; returns the folder they lie in."""
    return programs.compiled(*(f"bench_{program}" for program in PROGRAMS)) / "bench"


class Lab:
    """A cluster with the programs in its guests."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.server = cluster.node(SERVER)
        self.client = cluster.node(CLIENT)
        self.source = cluster.node(SOURCE)
        self.address = self.server.spec.address
        self.how = f"{'KVM' if cluster.how() == 'KVM' else 'TCG'} guests, {cluster.nic.name}"
        self.rows = []
        folder = build()
        with host.step("copying the programs into the guests", "10 s"):
            cluster.each(lambda machine: self._copy(folder, machine))

    @staticmethod
    def _copy(folder, machine):
        machine.run(f"mkdir -p {FOLDER}")
        for name in PROGRAMS:
            machine.push(folder / f"bench_{name}", f"{FOLDER}/bench_{name}", 0o755)
        machine.push(CLIENT_CONFIG.encode(), "/etc/krcore.conf", 0o644)

    @contextlib.contextmanager
    def service(self, machine, command, ready="ready", timeout=900):
        """A program that runs as long as the `with` block; its process number is given."""
        log = f"{FOLDER}/{command.split()[0]}.log"
        machine.run(f": >{log}; rm -f {log}.pid")
        process = machine.popen(f"ulimit -l unlimited; cd {FOLDER}; echo $$ >{log}.pid; "
                                f"exec ./{command} >{log} 2>&1")
        try:
            self.await_line(machine, process, log, ready, timeout)
            yield int(machine.run(f"cat {log}.pid").out)
        finally:
            if machine.alive() and process.poll() is None:
                process.kill()

    @staticmethod
    def await_line(machine, process, log, text, timeout):
        """Wait until a program has said something in its log."""
        deadline = time.monotonic() + timeout
        while not machine.run(f"grep -m1 -F '{text}' {log} || true").out:
            if process.poll() is not None or time.monotonic() > deadline:
                raise host.ClusterError(f"{machine.name}: {process.command}: no '{text}':\n"
                                        + machine.run(f"tail -n 20 {log}").out)
            time.sleep(0.2)

    def program(self, command, timeout=900):
        """Run a program in the client guest; returns the objects it printed."""
        result = self.client.run(f"ulimit -l unlimited; cd {FOLDER}; ./{command}", timeout=timeout)
        return [json.loads(line) for line in result.out.splitlines() if line.startswith("{")]

    def measured(self, pid, command, timeout=900):
        """As program(), and what the server Spent between its gates.

        What connecting costs is before the first gate and not counted. Before that is
        opened, the server is watched while nobody asks it.
        """
        log, gate = f"{FOLDER}/client.log", f"{FOLDER}/gate"
        self.client.run(f": >{log}; rm -f {gate}.*")
        process = self.client.popen(f"ulimit -l unlimited; cd {FOLDER}; exec ./{command} "
                                    f">{log} 2>&1", env={"BN_GATE": gate}, limit=timeout)
        self.await_line(self.client, process, log, "gate begin", timeout)
        silent = self.cpu_seconds(pid)
        time.sleep(SILENT_SECONDS)
        before = self.cpu_seconds(pid)
        self.client.run(f": >{gate}.begin")
        self.await_line(self.client, process, log, "gate end", timeout)
        after = self.cpu_seconds(pid)
        self.client.run(f": >{gate}.end")
        status = process.wait(60).status
        out = self.client.run(f"cat {log}").out
        if status:
            raise host.ClusterError(f"{command}: status {status}\n{out}")
        longer = (after.uptime - before.uptime) / (before.uptime - silent.uptime)
        return ([json.loads(line) for line in out.splitlines() if line.startswith("{")],
                Spent(after.process - before.process,
                      (before.process - silent.process) * longer,
                      after.guest - before.guest,
                      after.sleeps - before.sleeps - (before.sleeps - silent.sleeps) * longer))

    # -- the MetaServer ---------------------------------------------------------

    def stop_daemon(self):
        """No MetaServer at the server guest."""
        self.server.run("systemctl stop krcore-metaserver.service krcore-metaserver.socket",
                        timeout=120)

    def start_daemon(self, records):
        """The packaged daemon, with so many records copied from the source guest."""
        self.stop_daemon()
        with self.service(self.source, f"bench_table_source {self.source.spec.address} 18600 "
                          f"{records}"):
            self.server.push((CONFIG + f"copy_from = {self.source.spec.address}\n").encode(),
                             "/etc/krcore.conf", 0o644)
            began = time.monotonic()
            self.server.run("systemctl reset-failed krcore-metaserver; "
                            "systemctl start --no-block krcore-metaserver.service", timeout=120)
            deadline = began + 900
            while self.metric("imported_records") != records:
                if time.monotonic() > deadline:
                    raise host.ClusterError("the copy of the table does not end\n"
                                            + self.server.run("journalctl -u krcore-metaserver "
                                                              "--no-pager | tail -n 20").out)
                time.sleep(0.5)
            return time.monotonic() - began

    def metric(self, name):
        """One figure of the daemon's metrics, None while it does not answer."""
        out = self.server.run("curl -sf --max-time 20 http://127.0.0.1:9600/metrics || true").out
        found = re.search(rf"^krcore_meta_{re.escape(name)} (\S+)$", out, re.M)
        return float(found.group(1)) if found else None

    def await_metric(self, name, value, timeout):
        """Seconds until a figure of the daemon is this."""
        began = time.monotonic()
        while self.metric(name) != value:
            if time.monotonic() - began > timeout:
                raise host.ClusterError(f"{name} is {self.metric(name)}, not {value}, "
                                        f"after {timeout} s")
            time.sleep(0.5)
        return time.monotonic() - began

    def daemon_pid(self):
        """Process number of the daemon."""
        return int(self.server.run("systemctl show -P MainPID krcore-metaserver").out)

    def resident(self):
        """Resident bytes of the daemon."""
        status = self.server.run(f"cat /proc/{self.daemon_pid()}/status").out
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    # -- processor time ---------------------------------------------------------

    def cpu_seconds(self, pid):
        """A reading of the server guest's clocks."""
        out = self.server.run(f"cat /proc/uptime; getconf CLK_TCK; head -n 1 /proc/stat; "
                              f"cat /proc/{pid}/task/*/schedstat; "
                              f"grep -h ^voluntary_ctxt_switches /proc/{pid}/task/*/status").out
        uptime, tick, whole, *rest = out.splitlines()
        threads = [line for line in rest if line[0].isdigit()]
        sleeps = sum(int(line.split()[1]) for line in rest if not line[0].isdigit())
        # user, nice, system, irq, softirq, steal; not idle and iowait
        fields = [int(n) for n in whole.split()[1:]]
        busy = sum(fields[:3]) + sum(fields[5:8])
        return Clocks(sum(int(t.split()[0]) for t in threads) / 1e9, busy / int(tick),
                      float(uptime.split()[0]), sleeps)

    @contextlib.contextmanager
    def load(self, kind):
        """Nothing, or processes at normal priority that keep every CPU of the server busy."""
        if kind == "idle":
            yield
            return
        count = STRESS_PER_CPU * self.server.spec.cpus
        with self.server.background(f"for i in $(seq {count}); do while :; do :; done & done; "
                                    "wait"):
            time.sleep(1)
            yield

    # -- results ----------------------------------------------------------------

    def row(self, report, case, system, unit, **values):
        """A line of the report that says where it was measured, kept for the plot."""
        self.rows.append(report.row(case, system, unit, **values, measured_on=self.how,
                                    note="emulation: only ratios within this run mean anything"))
        return self.rows[-1]


def us(nanoseconds):
    """Microseconds of nanoseconds, with three digits behind the point."""
    return round(nanoseconds / 1000, 3)
