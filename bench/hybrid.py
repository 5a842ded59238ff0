# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench hybrid: what a change of target costs DC initiators, in counts.

A DC initiator is connected to one target at a time: for another it waits, disconnects and
connects. READs of 8 bytes by one program with queues to several peers, one call a queue, in three
orders: `sorted`, all queues of a peer before those of the next one (AAABBB); `alternating`, a queue
of each peer after the other (ABABAB); and `in_turn`, the same but each call is waited for before
the next. `one_peer` has as many queues, all to one peer. Peers: as many as the cluster has other
nodes, from 2.

Systems: `krcore_sticky` chooses initiators and turns by target, too; `krcore` does not, as it is by
default (module parameter sticky_targets). Each with the initiators that a port has by itself, and
with one.

`p50` is changes of target of one request, as the card counts them. Other counts of a request:
`module_changes`, the same as the module counts them; `connects`, `doorbells`, `packets`,
`completions`. All are those of a long run less those of a short one, so without set-up. What is
outstanding together depends on when answers come, so `alternating` and `sorted` differ from run to
run; `in_turn` and `one_peer` do not. Takes the ConnectX model.
"""

import contextlib

import _nodes
from cluster import host, krcore, nodes

NIC = "cx"
USUALLY = "4 min emulated"
QUEUES = 24             # of the program, to all peers together
BATCH = 4               # requests of a call
FEW, MANY = 10, 60      # rounds: what is counted is the difference
ORDERS = ("sorted", "alternating", "in_turn")
SYSTEMS = {"krcore": "N", "krcore_sticky": "Y"}
INITIATORS = (0, 1)     # of the client's port; 0: as many as it has by itself
CARD = {"p50": "dc_target_changes", "connects": "dc_connects", "doorbells": "doorbells",
        "packets": "rdma_tx_packets", "completions": "completions"}


def cases(peers):
    """(name, peers, order) of all cases, if there are so many peers."""
    return [("one_peer", 1, "alternating"), ("one_peer_in_turn", 1, "in_turn")] + \
        [(order, nr, order) for nr in range(2, peers + 1) for order in ORDERS]


def per_request(few, many, requests):
    """Counts of one request, from those of a short and of a long run."""
    return {name: round((many[name] - few[name]) / requests, 4) for name in many}


class Hybrid:
    """All cases, over one lab."""

    def __init__(self, lab, report, targets):
        self.lab, self.report, self.targets = lab, report, targets

    def _counts(self, order, peers, rounds):
        """What card and module have counted for so many rounds, and the requests of a round."""
        queues = QUEUES // peers
        before = self._now()
        self.lab.program(f"bench_hybrid {order} {queues} {BATCH} {rounds} "
                         f"{' '.join(self.targets[:peers])}")
        after = self._now()
        return {name: after[name] - was for name, was in before.items()}, queues * peers * BATCH

    def _now(self):
        card = nodes.card_counters(self.lab.client)
        return {**{name: card[key] for name, key in CARD.items()},
                "module_changes": nodes.pool(self.lab.client)["target_changes"]}

    def measure(self, name, peers, order):
        """The rows of a case, of both systems."""
        pool = nodes.pool(self.lab.client)["initiators"]
        for system, value in SYSTEMS.items():
            self.lab.client.run(f"echo {value} >{_nodes.PARAMETERS}/sticky_targets")
            few, _ = self._counts(order, peers, FEW)
            many, requests = self._counts(order, peers, MANY)
            requests *= MANY - FEW
            self.lab.row(self.report, name, system, "changes/req", n=requests,
                         **per_request(few, many, requests), peers=peers, initiators=pool,
                         queues=QUEUES // peers * peers, batch=BATCH)

    def run(self):
        """What --case leaves in."""
        for name, peers, order in cases(len(self.targets)):
            if self.report.wanted(name):
                self.measure(name, peers, order)


def configure(lab, initiators):
    """The client's port has so many shared initiators from now on."""
    known = ", ".join(machine.name for machine in lab.cluster.nodes("metaserver"))
    krcore.node_gone(lab.client)
    krcore.write_config(lab.client, node={"metaservers": known, "pool_initiators": initiators})
    lab.node_up(lab.client)


def bench(cluster, report):
    """Entry point of ./run bench."""
    lab = _nodes.Nodes(cluster)
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(lab.serving_memory(machine))
                   for machine in cluster.nodes() if machine is not lab.client]
        if len(targets) < 2:
            raise host.ClusterError("bench hybrid: the cluster has no two peers of a node")
        for initiators in INITIATORS:
            configure(lab, initiators)
            Hybrid(lab, report, targets).run()
