# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the benchmarks of queues share: nodes with the kernel module, servers to reach.

node1 is what is connected to, node2 connects; meta1 and meta2 are MetaServers. All on
the same emulated link, and the peers of a comparison on the same card in the same guests.
"""

import contextlib
import json
import re

import _lab as lab_module
from cluster import host, krcore, programs
from cluster.suite import wait_until

us = lab_module.us

SERVER, CLIENT = "node1", "node2"
PROGRAMS = ("connect", "connect_server", "data", "hybrid", "mesh", "hold", "ops", "fresh",
            "fresh_static", "ud_rpc_server", "ud_rpc_client", "race", "race_server", "messages",
            "messages_server")
METASERVER = {"publish_any_gid": "yes", "records_per_owner_max": 4000000,
              "rate_max": 10000000, "lease_ms": 3600000, "lease_max_ms": 86400000}
CM_PORT, VERBS_PORT, UD_PORT = 18710, 18711, 18712
RACE_CM_PORT, RACE_VERBS_PORT = 18713, 18714
MESSAGE_PORTS = {"verbs_rc": 18721, "verbs_ud": 18722, "tcp": 18723}
MESSAGE_SERVICE = 4300
# For how long a waiter polls before it sleeps, and for how long it may be about to come back,
# in emulation. The defaults are 100 and 25 us, fifty and twelve READs of a real NIC; an emulated
# one takes that long for one, and peers that poll here never sleep.
EMULATED = {"spin_us": 5000, "linger_us": 1250}
# As the module has them. What is above is fair to one that waits and has its processor for itself,
# and to nobody where many share one.
SHIPPED = {"spin_us": 100, "linger_us": 25}
PARAMETERS = "/sys/module/krcore/parameters"
OPTIONS = "/etc/modprobe.d/krcore-bench.conf"


def _build():
    return programs.compiled(*(f"bench_{program}" for program in PROGRAMS)) / "bench"


class Nodes(lab_module.Lab):
    """A cluster whose guests all run krcore.ko, with the programs in them. `lanes`: a card without
    DC will do, where the module makes lanes. `node`: more of the nodes' configuration."""

    def __init__(self, cluster, lanes=False, node=None):    # pylint: disable=super-init-not-called
        if not cluster.nic.dc and not lanes:
            raise host.ClusterError("this benchmark needs DC: --nic cx")
        self.cluster = cluster
        self.server, self.client = cluster.node(SERVER), cluster.node(CLIENT)
        self.address = self.server.spec.address
        self.how = f"{'KVM' if cluster.how() == 'KVM' else 'TCG'} guests, {cluster.nic.name}" \
            + ("" if cluster.nic.dc else ", lanes")
        self.rows = []
        folder = _build()
        with host.step("copying the programs into the guests", "20 s"):
            cluster.each(lambda machine: self._push(machine, folder))
        with host.step("starting MetaServers and nodes", "20 s"):
            krcore.setup(cluster, metaserver=METASERVER, node=node)
            cluster.each(self.node_up)
            wait_until(self._published, 60, f"{SERVER} is published")

    @staticmethod
    def _push(machine, folder):
        machine.run(f"mkdir -p {lab_module.FOLDER}")
        for name in PROGRAMS:
            stripped = folder / f".bench_{name}.{machine.name}"
            host.run(["strip", "-o", stripped, folder / f"bench_{name}"])
            machine.push(stripped, f"{lab_module.FOLDER}/bench_{name}", 0o755)
            stripped.unlink()

    def node_up(self, machine):
        """Load the module and configure it, with waits as emulation wants them."""
        machine.run(f"echo options krcore lanes={int(not self.cluster.nic.dc)} >{OPTIONS}")
        krcore.node_up(machine)
        if self.cluster.how() != "KVM":
            for name, value in EMULATED.items():
                machine.run(f"echo {value} >{PARAMETERS}/{name}")

    @staticmethod
    def forget(machine):
        """Take a node down and up again: it knows no peer then, and has a lane to none."""
        machine.run("krcore-metactl node down && krcore-metactl node up", timeout=60)
        krcore.wait_ready(machine)

    def _waiters(self, values):
        for name, value in values.items():
            self.cluster.each(lambda machine, name=name, value=value: machine.run(
                f"echo {value} >{PARAMETERS}/{name}"))

    @contextlib.contextmanager
    def as_shipped(self):
        """Those that wait poll as long as the module has it, on all nodes, in this block."""
        before = {name: self.client.run(f"cat {PARAMETERS}/{name}").out.strip()
                  for name in SHIPPED}
        self._waiters(SHIPPED)
        try:
            yield
        finally:
            self._waiters(before)

    def _published(self):
        return all(krcore.lookup(self.client, machine.spec.address, 0)
                   for machine in self.cluster.nodes())

    @contextlib.contextmanager
    def servers(self, *names, mib=4):
        """Servers of bench_connect by way; gives the target of each."""
        with contextlib.ExitStack() as stack:
            targets = {}
            for name in names:
                port = {"rdma_cm": CM_PORT, "verbs": VERBS_PORT}.get(name)
                where = f"{self.address} {port} " if port else ""
                stack.enter_context(self.serving(name, f"{where}{mib}"))
                targets[name] = f"{self.address},{port}" if port else self._region(self.server)
            yield targets

    @contextlib.contextmanager
    def serving(self, name, words, program="connect_server", machine=None):
        """One of them, or another program like it; its log is ready-PROGRAM-NAME. On the server,
        or another machine."""
        machine = machine or self.server
        log = f"{lab_module.FOLDER}/ready-{program}-{name}"
        machine.run(f"rm -f {log}")
        process = machine.popen(
            f"ulimit -l unlimited; cd {lab_module.FOLDER}; "
            f"exec ./bench_{program} {name} {words} >{log} 2>&1", limit=3600)
        try:
            self.await_line(machine, process, log, "ready", 60)
            yield
        finally:
            if machine.alive() and process.poll() is None:
                process.kill()

    @contextlib.contextmanager
    def serving_memory(self, machine, mib=1):
        """Memory of a machine that krcore's queues reach; gives the target."""
        with self.serving("krcore", str(mib), machine=machine):
            yield self._region(machine)

    @contextlib.contextmanager
    def reached(self, way, machine, mib=1):
        """Memory of a machine that one of the ways of bench_connect reaches; gives the target."""
        if way == "krcore":
            with self.serving_memory(machine, mib) as target:
                yield target
            return
        port = {"rdma_cm": CM_PORT, "verbs": VERBS_PORT}[way]
        with self.serving(way, f"{machine.spec.address} {port} {mib}", machine=machine):
            yield f"{machine.spec.address},{port}"

    @contextlib.contextmanager
    def message_servers(self, *systems):
        """Servers of bench_messages, which sleep while nobody talks to them; gives targets."""
        with contextlib.ExitStack() as stack:
            targets = {}
            for system in systems:
                port = MESSAGE_PORTS.get(system)
                words = f"{self.address} {port}" if port else f"{MESSAGE_SERVICE}"
                stack.enter_context(self.serving(system, words, "messages_server"))
                targets[system] = f"{self.address},{port or MESSAGE_SERVICE}"
            yield targets

    @contextlib.contextmanager
    def race_table(self, keys, mib):
        """A table of krcore-race with so many records; gives SYSTEM=TARGET for bench_race."""
        log, address = f"{lab_module.FOLDER}/race-server.log", self.address
        self.server.run(f"rm -f {log}")
        process = self.server.popen(
            f"ulimit -l unlimited; cd {lab_module.FOLDER}; exec ./bench_race_server {address} "
            f"{RACE_VERBS_PORT} {RACE_CM_PORT} {mib} {keys} >{log} 2>&1", limit=7200)
        try:
            self.await_line(self.server, process, log, "serving", 900)
            wait_until(lambda: self.server.run(f"cat {log}").out.count("ready") == 2, 60,
                       "it serves by verbs and rdma_cm")
            yield {"krcore": f"krcore={address}", "krcore_lookup": f"krcore_lookup={address}",
                   "verbs_rc": f"verbs_rc={address},{RACE_VERBS_PORT}",
                   "rdma_cm": f"rdma_cm={address},{RACE_CM_PORT}"}
        finally:
            if self.server.alive() and process.poll() is None:
                process.kill()

    @staticmethod
    def _region(machine):
        log = f"{lab_module.FOLDER}/ready-connect_server-krcore"
        line = machine.run(f"cat {log}").out.split()[1]
        return f"{machine.spec.address},{line}"

    def at_once(self, commands):
        """Run a program in each machine, which all begin when the last one is at its gate, and
        end together; `commands`: (machine, command). Gives the objects that each has printed."""
        log, gate = f"{lab_module.FOLDER}/at-once.log", f"{lab_module.FOLDER}/at-once"
        started = []
        try:
            for machine, command in commands:
                machine.run(f"rm -f {log} {gate}.*")
                started.append((machine, machine.popen(
                    f"ulimit -l unlimited; ulimit -n 65536; cd {lab_module.FOLDER}; "
                    f"exec ./{command} >{log} 2>&1", env={"BN_GATE": gate}, limit=900)))
            for machine, process in started:
                self.await_line(machine, process, log, "gate begin", 300)
            self.cluster.each(lambda machine: machine.run(f": >{gate}.begin"))
            for machine, process in started:
                self.await_line(machine, process, log, "gate end", 600)
            return [objects(machine.run(f"cat {log}").out) for machine, _ in started]
        finally:
            for machine, process in started:
                if machine.alive():
                    machine.run(f": >{gate}.end")
                    if process.poll() is None:
                        process.wait(120)

    @staticmethod
    def used(machine):
        """KiB in use in a guest, without pages of files and those with nothing but free objects:
        with these, what one case has left is taken by the next one for nothing."""
        out = machine.run("sync; sleep 0.5; echo 3 >/proc/sys/vm/drop_caches; "
                          "for cache in /sys/kernel/slab/*/shrink; do echo 1 >$cache; done; "
                          "sleep 0.5; cat /proc/meminfo",
                          timeout=60).out
        total, free = (int(re.search(rf"^{name}:\s+(\d+) kB", out, re.M)[1])
                       for name in ("MemTotal", "MemAvailable"))
        return total - free

    def quantiles(self, got):
        """Fields of a row from what a program printed."""
        return {"n": got["n"], "p50": us(got["p50"]), "p99": us(got["p99"]),
                "p999": us(got["p999"])}


def objects(text):
    """Lines of a program's output that are JSON."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
