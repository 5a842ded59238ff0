# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench cost: what an operation costs, counted and not timed.

Instructions, system calls, locked operations, doorbells, packets and firmware commands are
the same in every run, on any machine and under any load, where times under emulation are
not. What is counted is all that the client's guest executes between two marks, with its
kernel; waiting is left out. cost/meter.c counts, bench/meter.h has the marks, and
docs/bench.md says how waiting is told from work.

Cases: `connect_cached`, `connect_lookup` and rdma_cm's `connect`; `read_sync`, `write_sync`,
`fetch_add_sync`, one request of 8 bytes at a time; `read_batch`, 12 with one call; `read_24x12`,
such batches on 24 queues; `register_4k`, `deregister_2m` and so on; `poll_empty`; `lookup` and
`publish` by way of the module; `fresh_process`, from the start of a process to its first byte,
also of one that is linked the same and does `nothing`; `race_start`, from the fork of a worker of
krcore-race to its first answer (./run bench race); `race_search`, one look-up of its own;
`message_send`, `message_receive` and `message_large`, see message_cases().
With KRCORE_BENCH_PROFILE=1 the functions of the kernel in which an operation's instructions
are spent follow its row. Counts are those of one request in batches, too. With --check each is
compared with cost/budgets.toml. `own`, of batches: the module's own requests meanwhile, whose
doorbells are left out. `card_us` is what _card.py predicts for a real card, of one operation or
batch.
"""

import dataclasses
import pathlib
import re
import statistics
import sys

import _budgets
import _card
import _meter
import _nodes
from cluster import host, module, nodes

NIC = "cx"
USUALLY = "4 min"
BUDGETS = pathlib.Path(__file__).with_name("cost") / "budgets.toml"
TURNS = 2               # each count is taken so often, and what they differ by is said
CARD = {"packets": "rdma_tx_packets", "doorbells": "doorbells", "completions": "completions",
        "interrupts": "interrupts", "commands": "commands", "dc_connects": "dc_connects",
        "pushed": "blueflame"}
# An initiator has 16 READs under way, so 144 take nine times read_24x12's delay_us: 36 ms. From 100
# ms on the hardware would have fewer of them at once (kmod/pool/window.h), which cuts batches, with
# a doorbell for each piece: on a busy machine there were 6 % more when nine times it were 108 ms.
# With the margin that the module has of itself, 300 ms, peers give up after 150 what has not come
# back: on a busy machine that was a reset now and then. Each deregistration of what is open to
# peers waits for it.
NODE = {"margin_ms": 1000}
# A waiter polls as long as it can: that it would sleep now and then is not what is counted.
AWAKE_US = 10000
# The one that is counted may poll for longer: with 10 ms each of 50 fresh processes had one system
# call more on a machine so busy that answers took longer.
CLIENT_AWAKE_US = 200000
# The parent of fresh processes goes on as soon as exec lets it, and waits for their byte. At the
# same priority it did so only behind some that do nothing, which had four system calls fewer.
PARENT_FIRST = "chrt --reset-on-fork --fifo 1"
POOL = {"posted": "posted", "resets": "recoveries"}
OURS = ("krcore", "krcore_static", "krcore_lookup")
RACE = ("rdma_cm", "verbs_rc", "krcore", "krcore_lookup")
RACE_KEYS, RACE_MIB = 1000, 16
MESSAGE, LARGE = 64, 1 << 20
FOLDER = _nodes.lab_module.FOLDER
plugin = _meter.plugin


@dataclasses.dataclass
class Case:     # pylint: disable=too-many-instance-attributes
    """One operation of one system. `command` has {n} for the operations to be done; few and
    many: their numbers, whose difference is free of what is done once. `per`: requests of
    an operation. Answers come after `delay_us`, never at once, and the waiter gives them
    `settle_us`, so that the first poll finds all of them."""
    name: str
    system: str
    command: str
    few: int
    many: int
    per: int = 1
    delay_us: int = 0
    settle_us: int = 0
    short: bool = True          # no timer tick within it: also its instructions repeat


def message_cases(target, cm):
    """Messages; `target`: those of bench_messages, `cm`: that of READs."""
    found = [Case(f"message_{what}", system,
                  f"bench_messages {system} {target[system]} {what} {MESSAGE} {{n}}", 20, 220,
                  short=False)
             for what in ("send", "receive") for system in ("verbs_rc", "krcore")]
    return found + [
        Case("message_large", "verbs_rc", f"bench_data verbs {cm} read {LARGE} 1 1 {{n}}", 5, 25,
             short=False),
        Case("message_large", "krcore",
             f"bench_messages krcore {target['krcore']} fetch {LARGE} {{n}}", 5, 25, short=False)]


def cases(targets, race, own):
    """All of them but message_cases(), the systems to compare with first; `race`: targets of
    bench_race; `own`: the client's address."""
    krcore, cm, verbs = targets["krcore"], targets["rdma_cm"], targets["verbs"]
    wait = {"delay_us": 1000, "settle_us": 3000}
    wait_long = {"delay_us": 4000, "settle_us": 16000}
    found = [
        Case("connect", "rdma_cm", f"bench_connect rdma_cm {cm} connect {{n}}", 10, 60,
             short=False),
        Case("connect_cached", "krcore", f"bench_connect krcore {krcore} connect {{n}}",
             50, 450),
        Case("connect_lookup", "krcore", f"bench_connect krcore {krcore} lookup {{n}}",
             50, 450, delay_us=1000, settle_us=3000),
    ]
    for what in ("read", "write", "fetch_add"):
        found += [Case(f"{what}_sync", system, f"bench_data {system} {target} {what} 8 1 1 {{n}}",
                       50, 450, **wait)
                  for system, target in (("verbs", cm), ("krcore", krcore))]
    found += [Case("read_batch", system, f"bench_data {system} {target} read 8 12 1 {{n}}",
                   50, 450, 12, **wait)
              for system, target in (("verbs", cm), ("verbs_selective", cm),
                                     ("krcore", krcore))]
    found += [Case("read_24x12", system, f"bench_data {system} {target} read 8 12 24 {{n}}",
                   10, 110, 288, short=False, **wait_long)
              for system, target in (("verbs", cm), ("krcore", krcore))]
    found += [Case(f"{what}_{size}", system,
                   f"bench_ops {system} {what} {bytes_} {{n}}", few, many,
                   short=False)
              for what, size, bytes_, few, many in (("register", "4k", 4096, 3, 23),
                                                    ("deregister", "4k", 4096, 10, 60),
                                                    ("register", "2m", 2 << 20, 3, 23),
                                                    ("deregister", "2m", 2 << 20, 10, 60),
                                                    ("register", "1g", 1 << 30, 1, 3),
                                                    ("deregister", "1g", 1 << 30, 1, 4))
              for system in ("verbs", "krcore")]
    found += [Case("poll_empty", system, f"bench_ops {system} poll {{n}}", 50, 450)
              for system in ("verbs", "krcore")]
    found += [Case("lookup", "krcore_module",
                   f"bench_ops krcore_module lookup {krcore.split(',')[0]} {{n}}", 50, 450),
              Case("publish", "krcore_module", f"bench_ops krcore_module publish {own} {{n}}",
                   10, 60, short=False)]
    found += [Case("fresh_process", system,
                   f"{PARENT_FIRST} bench_connect {system} {target} fresh_process {{n}}", 5, 25,
                   short=False)
              for system, target in (("rdma_cm", cm), ("verbs", verbs))]
    found += [Case("fresh_process", system,
                   f"{PARENT_FIRST} bench_connect spawn {{n}} ./{program}", 5, 25, short=False)
              for system, program in (("nothing", "bench_fresh"),
                                      ("nothing_static", "bench_fresh_static"),
                                      ("krcore", f"bench_fresh {krcore}"),
                                      ("krcore_static", f"bench_fresh_static {krcore}"))]
    found += [Case("race_start", system, f"bench_race startup {{n}} {RACE_KEYS} {race[system]}",
                   5, 25, short=False)
              for system in RACE]
    found += [Case("race_search", system, f"bench_race ycsb C {{n}} {RACE_KEYS} {race[system]}",
                   50, 450, **wait)
              for system in ("verbs_rc", "krcore")]
    return found


def summary(records, case):
    """What an operation took, a request. Of a short one, medians over those that no interrupt
    came into that others do without. Within a long one there are always timer ticks, and on a
    busy machine what other programs of the guest do: of each count the least."""
    least = min(record["irets"] for record in records)
    quiet = [record for record in records if record["irets"] == least]

    def took(*counts, less=None):
        values = [sum(record[count] for count in counts) - (record[less] if less else 0)
                  for record in (quiet if case.short else records)]
        return (statistics.median(values) if case.short else min(values)) / case.per

    user, kernel = took("user", less="rep_user"), took("kernel", less="rep_kernel")
    got = {"p50": user + kernel, "user": user, "kernel": kernel,
           "rep_turns": took("rep_user", "rep_kernel"), "syscalls": took("syscalls"),
           "locked": took("lock_user", "lock_kernel"), "fences": took("fences"),
           "vain": took("vain")}
    return {"n": len(records), "quiet": len(quiet),
            **{name: round(value, 3) for name, value in got.items()}}


def of_card(case, few, many, done):
    """What the card counted for each of `done` requests, of counts of a short and a long run.
    `own`: of what the pool `posted` for batches, the module's own requests. Leases are renewed some
    three times a second, with a doorbell each, so there are more of them where batches take
    longer. Elsewhere they are the operation itself, or one of many."""
    card = {name: many[name] - few[name] for name in (*CARD, "posted")}
    own = max(card.pop("posted") - done, 0)
    card["own"] = own if case.per > 1 and case.system in OURS else 0
    card["doorbells"] -= card["own"]
    return {name: round(count / done, 3) for name, count in card.items()}


class Costs:
    """All cases, over one lab."""

    def __init__(self, lab, report):
        self.lab, self.report = lab, report
        self.meter = _meter.Meter(lab.client)
        self.server_meter = _meter.Meter(lab.server)
        self.symbols = _meter.symbols(lab.client)
        self.found = {}         # (case, system) -> row

    def wanted(self, case):
        """Whether --case leaves it in."""
        return not self.report.patterns or any(re.search(pattern, f"{case.name}.{case.system}")
                                               for pattern in self.report.patterns)

    def measure(self, case):
        """Print the row of a case."""
        self._surroundings(case.delay_us, case.settle_us)
        try:
            runs = [self._run(case, operations)
                    for operations in (case.few, *[case.many] * (TURNS - 1))]
            before = self.meter.places(case.short)
            runs.append(self._run(case, case.many))
            after = self.meter.places(case.short)
        finally:
            self._surroundings(0, 0)
        turns = [summary(records, case) for records, _ in runs[1:]]
        best = min(turns, key=lambda turn: turn["p50"])
        differ = max(turn["p50"] for turn in turns) / best["p50"] - 1
        (few, card_few), (many, card_many) = runs[0], runs[1]
        card = of_card(case, card_few, card_many, (len(many) - len(few)) * case.per)
        self._say(case, {**best, "differ_percent": round(100 * differ, 2), **card,
                         "resets": sum(counted["resets"] for _, counted in runs)})
        if self.symbols:
            self.symbols.say(before, after, case.per)

    def _say(self, case, values):
        peer = {"connect_cached": "connect", "connect_lookup": "connect"}.get(case.name, case.name)
        against = [row for (name, system), row in self.found.items()
                   if name == peer and system not in OURS and not system.startswith("nothing")] \
            if case.system in OURS else []
        values |= self._beyond(case, values)
        values["card_us"] = _card.predict({**values, "case": case.name, "system": case.system,
                                           "per": case.per})
        for row in against or [None]:
            more = {} if row is None else {
                "peer": row["system"], "ratio": round(values["p50"] / row["p50"], 4),
                "ratio_of": "cost"}
            said = self.report.row(case.name, case.system, "instructions", **values, **more,
                                   per=case.per, measured_on=self.lab.how)
        self.found[case.name, case.system] = said

    def _beyond(self, case, values):
        """What a fresh process takes more than one that is linked the same and does nothing."""
        nothing = self.found.get((case.name, case.system.replace("krcore", "nothing")))
        if not nothing or case.system not in OURS:
            return {}
        return {"beyond_nothing": round(values["p50"] - nothing["p50"], 3),
                "beyond_nothing_user": round(values["user"] - nothing["user"], 3),
                "beyond_nothing_syscalls": round(values["syscalls"] - nothing["syscalls"], 3)}

    def _run(self, case, operations):
        """Records of so many operations, and what the client's card counted meanwhile, with what
        the module's initiators `posted`, and their `resets`."""
        pool = nodes.pool(self.lab.client)
        since, card = self.meter.count(), nodes.card_counters(self.lab.client)
        self.lab.client.run(f"ulimit -l unlimited; cd {FOLDER}; export PATH=.:$PATH; "
                            f"BN_SETTLE_US={case.settle_us} {case.command.format(n=operations)}",
                            timeout=900)
        after = nodes.card_counters(self.lab.client)
        records = self.meter.records(since)
        if len(records) < operations:
            raise host.ClusterError(f"{case.name} of {case.system}: {len(records)} records of "
                                    f"{operations} operations; are the marks there?")
        pool_after = nodes.pool(self.lab.client)
        return records, {
            **{name: after[key] - card[key] for name, key in CARD.items()},
            **{name: pool_after[key] - pool[key] for name, key in POOL.items()}}

    def _surroundings(self, delay_us, settle_us):
        """What others send takes so long, and a wait in the client's kernel so long more."""
        for machine in self.lab.cluster.nodes():
            if machine is not self.lab.client:
                self.lab.cluster.fabric.delay(machine.spec.index, delay_us)
        self.lab.client.run(f"echo {settle_us} >{_nodes.PARAMETERS}/settle_us")


def bench(cluster, report):
    """Entry point of ./run bench."""
    if cluster.how() == "KVM":
        raise host.ClusterError("bench cost: on KVM nothing is counted; unset KRCORE_ACCEL")
    module.install(cluster, module.build_metered)
    lab = _nodes.Nodes(cluster, node=NODE)
    for name in ("spin_us", "linger_us"):
        cluster.each(lambda machine, name=name: machine.run(
            f"echo {AWAKE_US} >{_nodes.PARAMETERS}/{name}"))
    lab.client.run(f"echo {CLIENT_AWAKE_US} >{_nodes.PARAMETERS}/spin_us")
    with lab.servers("krcore", "rdma_cm", "verbs") as targets, \
            lab.race_table(RACE_KEYS, RACE_MIB) as race, \
            lab.message_servers("verbs_rc", "krcore") as talks:
        costs = Costs(lab, report)
        for case in cases(targets, race, lab.client.spec.address) + \
                message_cases(talks, targets["rdma_cm"]):
            if costs.wanted(case):
                costs.measure(case)
    rows = list(costs.found.values())
    for line in _card.table(rows):
        print(line, file=sys.stderr)
    return rows


def check(rows):
    """--check: what is above its budget. Prints a line for each; returns the exit status."""
    return _budgets.check("cost", rows, BUDGETS)
