# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench connect: how long it takes to be connected to a node.

krcore's queues beside an RC connection by rdma_cm, and beside a plain verbs program that
opens the device and connects, on the same card in the same guests in the same run.

Cases: `cached`, the peer's metadata is in the node's cache; `lookup`, it takes one
look-up at a MetaServer (peers: rdma_cm, verbs, and ud_rpc, which is a cached connect and
discovery by a datagram to a polling server); `first_byte`, look-up, connect and a READ;
`first_contact`, the same by a node that was just brought up, so that it has to read the peer's
directory, too, and on a card without DC to make a lane (peer: connect and a READ by rdma_cm);
`fresh_process`, the same from the start of a process; `rate`, connects a second by 1 to
22 threads; `mesh`, everybody to everybody; `memory`, of a node with so many peers, beside
an RC queue pair a peer; `workers`, memory and queue pairs of a node whose processes have each
READ from three nodes, beside a queue pair a process and node by rdma_cm. Rows of `connect` and
`discovery` are the peers alone.

Takes the ConnectX model, or with --nic rxe soft RoCE and lanes. Draws nothing: the ratios are
the result.
"""

import contextlib
import statistics

import _nodes as nodes_module
from cluster import host, krcore

NIC = "cx"
USUALLY = "3 min emulated"
SAMPLES = {"krcore": 1000, "rdma_cm": 100, "verbs": 40}
FRESH_SAMPLES = 20
CONTACTS = 12               # and so often the node is taken down and up
CONTACTS_CM = 5             # by rdma_cm between two of them
THREADS = (1, 2, 4, 8, 16, 22)
RATE_SECONDS = 3
MESH_WORKERS = 240
MESH_WORKERS_CM = 24        # more take rdma_cm too long here
PEERS = (10, 1000, 10000)
IDLE = 10000                # queues to one peer
WORKERS = (24, 240)         # processes
PEERS_RC_MAX = 1000         # a guest has not the memory for more queue pairs
FOLDER = nodes_module.lab_module.FOLDER


class Connects:
    """All cases, over one lab."""

    def __init__(self, lab, report):
        self.lab = lab
        self.report = report

    def row(self, case, system, unit, **values):
        """One line."""
        return self.lab.row(self.report, case, system, unit, **values)

    def against(self, case, got, peers, unit="us"):
        """Our line of a case, once for each peer."""
        values = self.lab.quantiles(got)
        for name, peer in peers.items():
            self.row(case, "krcore", unit, **values, peer=name,
                     ratio=round(peer / values["p50"], 3), ratio_of="speedup")

    def measure(self, targets, way, case, samples):
        """One case of one way."""
        (got,) = self.lab.program(f"bench_connect {way} {targets[way]} {case} {samples}")
        return got

    # -- latency ------------------------------------------------------------------

    def latencies(self, targets):
        """Connects, with and without a look-up, and first bytes."""
        peers = {}
        for way in ("rdma_cm", "verbs"):
            for case in ("connect", "first_byte"):
                if case == "first_byte" and not self.report.wanted("first_byte"):
                    continue
                got = self.measure(targets, way, case, SAMPLES[way])
                peers.setdefault(case, {})[way] = self.row(
                    case, way, "us", **self.lab.quantiles(got))["p50"]
        cached = self.measure(targets, "krcore", "connect", SAMPLES["krcore"])
        self.against("cached", cached, peers["connect"])
        if self.report.wanted("lookup"):
            got = self.measure(targets, "krcore", "lookup", SAMPLES["krcore"])
            self.against("lookup", got, {**peers["connect"],
                                         "ud_rpc": self.discovery(cached)})
        if self.report.wanted("first_byte"):
            for case in ("first_byte", "first_byte_cached"):
                got = self.measure(targets, "krcore", case, SAMPLES["krcore"])
                self.against(case, got, peers["first_byte"])

    def first_contact(self, targets):
        """First bytes of a node that does not know the peer, and rdma_cm's, in turns."""
        ours, peers = [], []
        for _ in range(CONTACTS):
            self.lab.forget(self.lab.client)
            ours.append(self.measure(targets, "krcore", "first_contact", 1)["p50"])
            peers.append(self.measure(targets, "rdma_cm", "first_byte", CONTACTS_CM)["p50"])
        peer = self.row("first_contact", "rdma_cm", "us",
                        samples=[nodes_module.us(ns) for ns in peers])["p50"]
        samples = [nodes_module.us(ns) for ns in ours]
        self.row("first_contact", "krcore", "us", samples=samples, peer="rdma_cm",
                 ratio=round(peer / statistics.median_low(samples), 3), ratio_of="speedup")

    def discovery(self, cached):
        """A cached connect, and the metadata by a datagram before it."""
        port = nodes_module.UD_PORT
        server = self.lab.cluster.node("meta1")
        address = server.spec.address
        with self.lab.service(server, f"bench_ud_rpc_server {address} {port} 1000"):
            (got,) = self.lab.program(f"bench_ud_rpc_client {address} {port} 1000 500 hit")
        values = self.lab.quantiles(got)
        self.row("discovery", "ud_rpc", "us", **values)
        return values["p50"] + self.lab.quantiles(cached)["p50"]

    def fresh(self, targets):
        """From the start of a process to its first byte."""
        peers = {}
        for way in ("rdma_cm", "verbs"):
            got = self.measure(targets, way, "fresh_process", FRESH_SAMPLES)
            peers[way] = self.row("fresh_process", way, "us", **self.lab.quantiles(got))["p50"]
        self.against("fresh_process",
                     self.measure(targets, "krcore", "fresh_process", FRESH_SAMPLES), peers)

    # -- rate -----------------------------------------------------------------------

    def rates(self, targets):
        """Connects a second by some threads of one process."""
        for threads in THREADS:
            found = {}
            for way in ("rdma_cm", "verbs", "krcore"):
                (got,) = self.lab.program(f"bench_connect {way} {targets[way]} rate {threads} "
                                          f"{RATE_SECONDS}")
                found[way] = got["per_second"]
                peers = [p for p in ("rdma_cm", "verbs") if way == "krcore"] or [None]
                for peer in peers:
                    more = {} if peer is None else {
                        "peer": peer, "ratio": round(got["per_second"] / found[peer], 3),
                        "ratio_of": "speedup"}
                    self.row("rate", way, "1/s", n=got["n"], p50=round(got["per_second"], 1),
                             threads=threads, **more)

    # -- mesh -----------------------------------------------------------------------

    def mesh(self):
        """Everybody to everybody: as many as were asked for, and as rdma_cm can take."""
        small = self._mesh("rdma_cm", MESH_WORKERS_CM)
        self.row("mesh", "rdma_cm", "us", **small)
        ours = self._mesh("krcore", MESH_WORKERS_CM)
        self.row("mesh", "krcore", "us", **ours, peer="rdma_cm",
                 ratio=round(small["p50"] / ours["p50"], 3), ratio_of="speedup")
        self.row("mesh", "krcore", "us", **self._mesh("krcore", MESH_WORKERS))

    def _mesh(self, way, workers):
        machines = self.lab.cluster.nodes()
        addresses = " ".join(machine.spec.address for machine in machines)
        before = self._table_reads(machines)
        got = [lines[0] for lines in self.lab.at_once(
            [(machine, f"bench_mesh {way} {workers} {index} {addresses}")
             for index, machine in enumerate(machines)])]
        longest = max(g["ns"] for g in got)
        connections = sum(g["connections"] for g in got)
        return {"n": connections, "p50": nodes_module.us(longest), "workers": workers,
                "guests": len(machines), "table_reads": self._table_reads(machines) - before,
                "us_per_connection": nodes_module.us(longest * len(machines) / connections)}

    def _table_reads(self, machines):
        """READs of the MetaServers' tables that nodes have made. The least for a mesh is the number
        of workers times that of guests: each node looks each worker's record up."""
        return sum(row["reads"] for machine in machines
                   for row in krcore.node_rows(machine, "node_server"))

    # -- memory -----------------------------------------------------------------------

    def memory(self):
        """What a node with so many peers holds; and so many queues to one of them."""
        held = self._held(f"idle {self.lab.address} {IDLE}")
        self.row("memory", "krcore_idle", "KiB", n=IDLE, p50=held,
                 bytes_per_queue=round(held * 1024 / IDLE, 1))
        source = self.lab.cluster.node("meta2")
        # so that peers which are only records have addresses on its link
        self.lab.client.run("ip address add 10.78.0.1/16 dev $(ip -o -4 address show to "
                            f"{self.lab.client.spec.address} | cut -d' ' -f2)")
        with self.lab.service(source, f"bench_hold publish {self.lab.address} {max(PEERS)}",
                              ready="held", timeout=600):
            for peers in PEERS:
                rc = self._held(f"rc {peers}") if peers <= PEERS_RC_MAX else None
                if rc is not None:
                    self._memory_row("rc_queue_pairs", peers, rc)
                for what, system in (("cache", "krcore"), ("queues", "krcore_queues")):
                    held = self._held(f"{what} {peers}")
                    more = {} if rc is None or rc <= 0 else {
                        "peer": "rc_queue_pairs", "ratio": round(held / rc, 3),
                        "ratio_of": "cost"}
                    self._memory_row(system, peers, held, **more)

    def _memory_row(self, system, peers, held, **more):
        self.row("memory", system, "KiB", n=peers, p50=held, peers=peers,
                 bytes_per_peer=round(held * 1024 / peers, 1), **more)

    def workers(self):
        """Memory and queue pairs of processes that talk to all other nodes."""
        for workers in WORKERS:
            peer = self._workers("rdma_cm", workers)
            self.row("workers", "rdma_cm", "KiB", **peer)
            ours = self._workers("krcore", workers)
            self.row("workers", "krcore", "KiB", **ours, peer="rdma_cm",
                     ratio=round(ours["p50"] / peer["p50"], 3), ratio_of="cost")

    def _workers(self, way, workers):
        peers = [machine for machine in self.lab.cluster.nodes() if machine != self.lab.client]
        with contextlib.ExitStack() as stack:
            targets = [stack.enter_context(self.lab.reached(way, machine)) for machine in peers]
            before = self._pairs()
            held, pairs = self._held(f"workers {way} {workers} {' '.join(targets)}", self._pairs)
        return {"n": workers, "p50": held, "nodes": len(peers), "queue_pairs": pairs - before,
                "kib_per_process": round(held / workers, 1)}

    def _pairs(self):
        """RC queue pairs of the client guest."""
        return int(self.lab.client.run("rdma resource show qp | grep -c 'type RC'; true").out)

    def _held(self, words, also=None):
        """KiB that a program holds; with `also`, a pair with what this returns meanwhile."""
        before = self.lab.used(self.lab.client)
        with self.lab.service(self.lab.client, f"bench_hold {words}", ready="held",
                              timeout=600):
            held = self.lab.used(self.lab.client) - before
            return (held, also()) if also else held

    def run(self):
        """What --case leaves in."""
        with self.lab.servers("krcore", "rdma_cm", "verbs") as targets:
            if self.report.wanted("cached", "lookup", "first_byte"):
                host.say("latencies")
                self.latencies(targets)
            if self.report.wanted("first_contact"):
                host.say("first contacts")
                self.first_contact(targets)
            if self.report.wanted("fresh_process"):
                host.say("fresh processes")
                self.fresh(targets)
            if self.report.wanted("rate"):
                host.say("rates")
                self.rates(targets)
        if self.report.wanted("mesh"):
            host.say("full mesh")
            self.mesh()
        if self.report.wanted("workers"):
            host.say("processes")
            self.workers()
        if self.report.wanted("memory"):
            host.say("memory")
            self.memory()


def bench(cluster, report):
    """All cases."""
    Connects(nodes_module.Nodes(cluster, lanes=True), report).run()
