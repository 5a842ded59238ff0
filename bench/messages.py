# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench messages: messages between programs of two nodes.

krcore's connections beside SEND and RECV of plain verbs over RC (`verbs_rc`) and UD
(`verbs_ud`) and beside TCP, on the same card in the same guests in the same run, in turns.

Cases: `echo`, 64 bytes there and back, one at a time, in microseconds; `zero_copy`, messages
of 1 MiB that are announced, and READ to buffers that were posted (`krcore`) or fetched
(`krcore_fetched`), beside READs of as much over RC by a program that knows already where they
are, 4 outstanding, MiB a second; `cross_over`, the same for 1 KiB to
4 MiB, and beside transfers in messages of at most 4032 bytes that are copied
(`krcore_copied`); `rate`, messages there and back a second by 1 and by 24 connections with 12
under way each; `fairness`, 200 connections from three guests to one program; `memory`, of a node
whose program has a connection with each of so many peers, beside an RC queue pair a peer.

`ratio` is ours over the peer's where ratio_of is cost (latencies), and how many times better
than the peer we are where it is speedup (rates). Where guests are emulated, rows of echo,
zero_copy and cross_over say what one message or transfer takes in counts, on both nodes.
KRCORE_BENCH_SAMPLES says how many messages a turn of echo has; with KRCORE_BENCH_PROFILE=1 the
kernel's functions in which instructions were spent follow. Takes the ConnectX model.
"""

import contextlib
import os
import statistics
import time

import _meter
import _nodes
import cost
from cluster import host, krcore, module, nodes
from cluster.suite import wait_until

NIC = "cx"
USUALLY = "12 min emulated"
ECHOERS = ("verbs_rc", "verbs_ud", "tcp", "krcore")
BYTES = 64
ROUNDS = int(os.environ.get("KRCORE_BENCH_SAMPLES", "400"))     # of echo, in a turn
TURNS = 3               # of all systems, one after the other
LARGE = 1 << 20
SIZES = tuple(1 << shift for shift in range(10, 23))
OUTSTANDING = 4         # transfers at once, as in ./run bench data
TRANSFER_BYTES = 32 << 20       # of all transfers of a turn, and at most
TRANSFERS = 1000
FEW, MANY = 20, 120     # what is counted: the difference
FEW_LARGE, MANY_LARGE = 8, 40
WINDOWS = ((1, 12), (24, 12))   # rate: connections, messages of each under way
CROWD = 200             # connections of fairness
SECONDS = 5
PEERS = (1000, 10000)   # fewer are in the noise of a guest
SETTLED_KIB = 64
PEERS_RC_MAX = 1000     # a guest has not the memory for more queue pairs
CARD = {"packets": "rdma_tx_packets", "doorbells": "doorbells", "completions": "completions",
        "interrupts": "interrupts", "commands": "commands"}
COUNTED = cost.Case("echo", "", "", 0, 0, short=False)
METERED = ("user", "kernel", "rep_user", "rep_kernel", "syscalls")
plugin = _meter.plugin


def transfers(size):
    """How many transfers of a size a turn has."""
    return max(min(TRANSFER_BYTES // size, TRANSFERS), 2 * OUTSTANDING)


def jain(values):
    """Jain's index of fairness: 1 if all are the same, 1/n if one has all."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


def cross_over(rates):
    """The smallest size from which on zero copy is as fast as copying, or None; `rates`:
    {size: (zero copy, copied)}."""
    found = None
    for size in sorted(rates, reverse=True):
        if rates[size][0] < rates[size][1]:
            break
        found = size
    return found


def requests(before, after):
    """{operation: requests} that a card has completed as their requester in between."""
    found = {}
    for counters, sign in ((after, 1), (before, -1)):
        for row in counters["ops"]:
            if row["side"] == "requester":
                found[row["op"]] = found.get(row["op"], 0) + sign * row["count"]
    return found


class Messages:
    """All cases, over one lab."""

    def __init__(self, lab, report, targets):
        self.lab, self.report, self.targets = lab, report, targets
        self.counting = lab.cluster.how() != "KVM"
        self.meter = _meter.Meter(lab.client) if self.counting else None
        self.symbols = _meter.symbols(lab.client) if self.counting else None

    def row(self, case, system, unit, **values):
        """One line."""
        return self.lab.row(self.report, case, system, unit, **values)

    def against(self, case, unit, ours, peers, better, **more):
        """Our row, once for each peer. `ours`: fields with p50; `peers`: {system: p50}."""
        for peer, p50 in peers.items():
            ratio = ours["p50"] / p50
            self.row(case, "krcore", unit, **ours, **more, peer=peer, ratio=round(ratio, 3),
                     ratio_of=better)

    # -- counts -------------------------------------------------------------------

    def _run(self, command, operations):
        """What so many operations took: records of the client, and both cards' counters."""
        machines = {"": self.lab.client, "server_": self.lab.server}
        since = self.meter.count()
        before = {name: nodes.card_counters(machine) for name, machine in machines.items()}
        self.lab.program(command.format(n=operations))
        found = {}
        for name, machine in machines.items():
            after = nodes.card_counters(machine)
            found |= {name + field: after[key] - before[name][key] for field, key in CARD.items()}
            done = requests(before[name], after)
            found |= {f"{name}{operation}s": done.get(operation.upper(), 0)
                      for operation in ("send", "read")}
        return self.meter.records(since), found

    def counts(self, command, few, many):
        """Fields of a row: what one operation takes, of `command` with {n} for how many."""
        if not self.counting:
            return {}
        records_few, cards_few = self._run(command, few)
        places = self.meter.places(False)
        records, cards = self._run(command, many)
        if self.symbols:        # of one record, or of one of all
            self.symbols.say(places, self.meter.places(False), 1 if len(records) >= many else many)
        got = {name: (cards[name] - cards_few[name]) / (many - few) for name in cards}
        if len(records) >= many:        # a record of each
            took = cost.summary(records, COUNTED)
            got |= {"instructions": took["p50"]} | {
                name: took[name] for name in ("user", "kernel", "rep_turns", "syscalls")}
        else:                           # one of all
            took = {name: (records[-1][name] - records_few[-1][name]) / (many - few)
                    for name in METERED}
            turns = took.pop("rep_user"), took.pop("rep_kernel")
            took["user"], took["kernel"] = took["user"] - turns[0], took["kernel"] - turns[1]
            got |= {"instructions": took["user"] + took["kernel"], "rep_turns": sum(turns), **took}
        return {name: round(value, 3) for name, value in got.items()}

    # -- cases ----------------------------------------------------------------------

    def _echo(self, system, rounds):
        return f"bench_messages {system} {self.targets[system]} echo {BYTES} {rounds}"

    def echo(self):
        """One message at a time, there and back."""
        turns = {system: [] for system in ECHOERS}
        for _ in range(TURNS):
            for system, seen in turns.items():
                seen.append(self.lab.quantiles(self.lab.program(self._echo(system, ROUNDS))[0]))
        values = {}
        for system, seen in turns.items():
            values[system] = {
                "n": sum(turn["n"] for turn in seen),
                **{name: statistics.median(turn[name] for turn in seen)
                   for name in ("p50", "p99", "p999")},
                "bytes": BYTES, "turns": TURNS,
                **self.counts(self._echo(system, "{n}"), FEW, MANY)}
        ours = values.pop("krcore")
        for system, got in values.items():
            self.row("echo", system, "us", **got)
        self.against("echo", "us", ours, {name: got["p50"] for name, got in values.items()},
                     "cost")

    def _transfer(self, system, size, rounds):
        if system == "verbs_rc":        # of ./run bench data, where rounds have 4 requests
            return (f"bench_data verbs {self.targets['rdma_cm']} read {size} {OUTSTANDING} 1 "
                    f"{rounds // OUTSTANDING} stream")
        words = {"krcore": " posted", "krcore_copied": " copied"}.get(system, "")
        return (f"bench_messages krcore {self.targets['krcore']} pull {size} {OUTSTANDING} "
                f"{rounds}{words}")

    def _counted_transfer(self, system, size):
        if system == "verbs_rc":
            command = self._transfer(system, size, OUTSTANDING).replace(" 1 1 stream",
                                                                        " 1 {n} stream")
            got = self.counts(command, FEW_LARGE // OUTSTANDING, MANY_LARGE // OUTSTANDING)
            return {name: round(value / OUTSTANDING, 3) for name, value in got.items()}
        return self.counts(self._transfer(system, size, "{n}"), FEW_LARGE, MANY_LARGE)

    def _transfers(self, case, size, systems):
        """Medians of all systems, which take turns; rows of all of them. Gives the medians."""
        rounds, rates = transfers(size), {system: [] for system in systems}
        for _ in range(TURNS):
            for system, seen in rates.items():
                got = self.lab.program(self._transfer(system, size, rounds))[-1]
                seen.append(got["mib_per_second"])
        values = {system: {"n": rounds, "p50": round(statistics.median(seen), 2), "bytes": size,
                           "outstanding": OUTSTANDING, "turns": TURNS,
                           **self._counted_transfer(system, size)}
                  for system, seen in rates.items()}
        medians = {system: got["p50"] for system, got in values.items()}
        ours = values.pop("krcore")
        for system, got in values.items():
            self.row(case, system, "MiB/s", **got)
        self.against(case, "MiB/s", ours, {system: medians[system] for system in values},
                     "speedup")
        return medians

    def zero_copy(self):
        """Large messages: announced, and READ to where they are wanted."""
        self._transfers("zero_copy", LARGE, ("verbs_rc", "krcore_fetched", "krcore"))

    def cross_over(self):
        """All sizes, copied and not; and from which on it is not worth it to copy."""
        rates = {}
        for size in SIZES:
            got = self._transfers("cross_over", size, ("verbs_rc", "krcore_copied", "krcore"))
            rates[size] = got["krcore"], got["krcore_copied"]
        self.row("cross_over", "krcore", "bytes", n=len(SIZES), p50=cross_over(rates),
                 sizes=list(SIZES))

    def rate(self):
        """Many messages at once, by one connection and by many."""
        for connections, under_way in WINDOWS:
            (got,) = self.lab.at_once([(self.lab.client, self._crowd(connections, under_way))])
            self.row("rate", "krcore", "1/s", n=got[0]["n"],
                     p50=round(1e9 * got[0]["n"] / got[0]["ns"], 1), bytes=BYTES,
                     connections=connections, outstanding=under_way)

    def _crowd(self, connections, under_way):
        return (f"bench_messages krcore {self.targets['krcore']} crowd {connections} {under_way} "
                f"{SECONDS}")

    def fairness(self):
        """So many to one program: what each connection gets, and what all get together."""
        others = self._others()
        alone = self.lab.at_once([(machine, self._crowd(1, 1)) for machine in others])
        got = self.lab.at_once(
            [(machine, self._crowd(share, 1)) for machine, share in self._shared(CROWD)])
        counts = [count for lines in got for count in lines[0]["counts"]]
        rates = [sum(1e9 * lines[0]["n"] / lines[0]["ns"] for lines in found)
                 for found in (alone, got)]
        self.row("fairness", "krcore", "messages", n=len(counts), p50=statistics.median(counts),
                 least=min(counts), most=max(counts), jain=round(jain(counts), 4), bytes=BYTES,
                 guests=len(others), seconds=SECONDS, per_second=round(rates[1], 1),
                 of_as_few_as_guests=round(rates[1] / rates[0], 3))

    def _others(self):
        return [machine for machine in self.lab.cluster.nodes() if machine is not self.lab.server]

    def _shared(self, count):
        """(guest, how many of them are its) for all guests but the server's."""
        others = self._others()
        return [(machine, count // len(others) + (i < count % len(others)))
                for i, machine in enumerate(others)]

    def _settled(self):
        """KiB in use by the server's guest, once it has given back what it held for cases before:
        what peers may repeat is awaited for 10 s and more after a connection has ended."""
        time.sleep(15)
        used = [self.lab.used(self.lab.server)]
        while len(used) < 2 or (used[-2] - used[-1] > SETTLED_KIB and len(used) < 10):
            time.sleep(3)
            used.append(self.lab.used(self.lab.server))
        if used[-2] - used[-1] > SETTLED_KIB:
            host.say(f"the server's guest goes on to give memory back: {used[-4:]} KiB")
        return used[-1]

    def _held(self, commands):
        """KiB that the server's guest holds while these run; `commands`: (machine, command)."""
        before = self._settled()
        with contextlib.ExitStack() as stack:
            for machine, command in commands:
                stack.enter_context(self.lab.service(machine, command, ready="held"))
            return self.lab.used(self.lab.server) - before

    def _connected(self, peers):
        """The same with so many peers, from all other guests; when these are gone."""
        held = self._held([(machine, f"bench_messages krcore {self.targets['krcore']} keep {share}")
                           for machine, share in self._shared(peers)])
        wait_until(lambda: not any(row["connections"] for row in
                                   krcore.node_rows(self.lab.server, "node_messages")),
                   120, "the server has no connection any more")
        return held

    def memory(self):
        """What so many peers take of the server's guest. Nothing is said on any connection."""
        for peers in PEERS:
            each = {"n": peers, "peers": peers}
            rc = self._held([(self.lab.server, f"bench_hold rc {peers}")]) \
                if peers <= PEERS_RC_MAX else 0
            if rc > 0:
                self.row("memory", "verbs_rc", "KiB", p50=rc, **each,
                         bytes_per_peer=round(rc * 1024 / peers, 1))
            held = self._connected(peers)
            more = {"peer": "verbs_rc", "ratio": round(held / rc, 3), "ratio_of": "cost"} \
                if rc > 0 else {}
            self.row("memory", "krcore", "KiB", p50=held, **each,
                     bytes_per_peer=round(held * 1024 / peers, 1), **more)

    def run(self):
        """What --case leaves in."""
        for case in (self.echo, self.zero_copy, self.cross_over, self.rate, self.fairness,
                     self.memory):
            if self.report.wanted(case.__name__):
                host.say(case.__name__)
                case()


def bench(cluster, report):
    """All cases."""
    if cluster.how() != "KVM":
        module.install(cluster, module.build_metered)
    lab = _nodes.Nodes(cluster)
    with lab.servers("rdma_cm") as reads, lab.message_servers(*ECHOERS) as targets:
        Messages(lab, report, {**reads, **targets}).run()
