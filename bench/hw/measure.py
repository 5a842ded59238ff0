# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The benchmarks' programs on two hosts, and a row for each figure that a report has.

PLAN is all of it. A figure that could not be measured has a row all the same, with None and the
reason; a program that fails says why in its last line.
"""

import json
import secrets
import shlex
import statistics
import time

PROGRAMS = ("connect", "connect_server", "data", "fresh", "fresh_static", "recover")
CM_PORT, VERBS_PORT = 18710, 18711
MIB = 4                 # of memory that is lent
READY_S, PROGRAM_S, FAIL_S = 60, 300, 180
LIFE_S = 7200           # after this a server ends by itself
TURNS = 3               # of rates, all systems in each
ROUNDS = 5              # of recovery
SMALL, BATCH = 8, 12
LARGE = (64 << 10, 1 << 20)
LARGE_OUTSTANDING = 4


def _connects():
    for group, case, system, what in (
            ("connect", "connect_cached", "krcore", "connect"),
            ("connect", "connect_lookup", "krcore", "lookup"),
            ("connect", "connect", "rdma_cm", "connect"),
            ("connect", "connect", "verbs", "connect"),
            ("first_byte", "first_byte_cached", "krcore", "first_byte_cached"),
            ("first_byte", "first_byte_lookup", "krcore", "first_byte"),
            ("first_byte", "first_byte", "rdma_cm", "first_byte"),
            ("first_byte", "first_byte", "verbs", "first_byte"),
            ("first_byte", "fresh_process", "rdma_cm", "fresh_process"),
            ("first_byte", "fresh_process", "verbs", "fresh_process")):
        yield {"group": group, "case": case, "system": system, "unit": "us", "what": what}
    for system, program in (("krcore", "fresh"), ("krcore_static", "fresh_static")):
        yield {"group": "first_byte", "case": "fresh_process", "system": system, "unit": "us",
               "program": program}


def _data():
    for operation in ("read", "write"):
        for system in ("krcore", "verbs"):
            yield {"group": "data", "case": f"sync_{operation}", "system": system, "unit": "us",
                   "size": SMALL, "batch": 1, "queues": 1}
        for queues in (1, 24):
            for system in ("krcore", "verbs", "verbs_selective"):
                yield {"group": "data", "case": f"batched_{operation}", "system": system,
                       "unit": "1/s", "size": SMALL, "batch": BATCH, "queues": queues}
        for size in LARGE:
            for system in ("krcore", "verbs"):
                yield {"group": "data", "case": f"large_{operation}", "system": system,
                       "unit": "MiB/s", "size": size, "batch": LARGE_OUTSTANDING, "queues": 1}


def _recovery():
    for system in ("krcore", "rdma_cm", "verbs"):
        for case in ("failure_seen", "first_byte_again"):
            yield {"group": "recovery", "case": case, "system": system, "unit": "us"}


PLAN = [*_connects(), *_data(), *_recovery()]
KEYS = ("group", "case", "system", "unit", "size", "batch", "queues")


class NotMeasured(Exception):
    """Why a figure is not there."""


def _last_line(*texts):
    for text in texts:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            return lines[-1]
    return ""


def _us(ns):
    return round(ns / 1000, 3)


class Program:
    """A program of a host in the background, by its process group; what it says is in a file."""

    def __init__(self, host, folder, name, command):
        self.host, self.log = host, f"{folder}/log-{name}"
        got = host.run(
            f"cd {folder} && rm -f {self.log} && {{ ulimit -l unlimited 2>/dev/null; "
            f"setsid timeout {LIFE_S} {command} >{self.log} 2>&1 </dev/null & echo $!; }}")
        if got.status or not got.out.strip().isdigit():
            raise NotMeasured(_last_line(got.err, got.out) or "it could not be started")
        self.group = got.out.strip()

    def await_line(self, begins, seconds):
        """The first line that begins so; raises if the program ends without it."""
        until = time.monotonic() + seconds
        while True:
            alive = not self.host.run(f"kill -0 {self.group}").status
            said = self.host.run(f"cat {self.log}").out
            for line in said.splitlines():
                if line.startswith(begins):
                    return line
            if not alive:
                raise NotMeasured(_last_line(said) or "it ended without a word")
            if time.monotonic() > until:
                raise NotMeasured(f"it did not say '{begins}' within {seconds} s")
            time.sleep(0.2)

    def kill(self):
        """End it at once, as a crash would."""
        self.host.run(f"kill -KILL -{self.group} {self.group} 2>/dev/null; true")


class Pair:
    """Two hosts with the programs: `server` lends memory at `address`, `client` uses it."""

    def __init__(self, server, client, address, say, samples, turns=TURNS,
                 rounds=ROUNDS):
        self.server, self.client, self.address, self.say = server, client, address, say
        self.samples, self.turns, self.rounds = samples, turns, rounds
        self.folder = f"/tmp/krcore-hw-report.{secrets.token_hex(8)}"
        self.serving, self.broken = {}, {}

    def prepare(self, programs):
        """Put the programs there; those that were not built are left out."""
        for host in (self.server, self.client):
            host.run(f"mkdir -m 700 {self.folder}")
            for name in PROGRAMS:
                path = programs / f"bench_{name}"
                if path.is_file():
                    host.push(path, f"{self.folder}/bench_{name}")

    def clean(self):
        """Nothing is left of it."""
        for program, _ in self.serving.values():
            program.kill()
        for host in (self.server, self.client):
            host.run(f"rm -rf {self.folder}")

    # -- servers --------------------------------------------------------------------

    def start(self, way):
        """Start a server; its target, as bench/way.h has it."""
        port = {"rdma_cm": CM_PORT, "verbs": VERBS_PORT}.get(way)
        where = f"{self.address} {port} " if port else ""
        program = Program(self.server, self.folder, f"serve-{way}",
                          f"./bench_connect_server {way} {where}{MIB}")
        try:
            ready = program.await_line("ready", READY_S)
        except NotMeasured as e:
            program.kill()
            raise NotMeasured(f"the server of {way}: {e}") from e
        rest = str(port) if port else ready.split()[1]
        self.serving[way] = (program, f"{self.address},{rest}")
        return self.serving[way][1]

    def target(self, system):
        """The target of a system's server, which is started if it does not run."""
        way = {"krcore_static": "krcore", "verbs_selective": "verbs"}.get(system, system)
        if way in self.broken:
            raise NotMeasured(self.broken[way])
        if way in self.serving:
            return self.serving[way][1]
        try:
            return self.start(way)
        except NotMeasured as e:
            self.broken[way] = str(e)
            raise

    def data_target(self, system):
        """Of bench_data, whose queue pairs are connected by rdma_cm."""
        return self.target("krcore" if system == "krcore" else "rdma_cm")

    # -- programs of the client -----------------------------------------------------

    def program(self, words):
        """What a program of the client printed, an object a line."""
        got = self.client.run(f"cd {self.folder} && {{ ulimit -l unlimited 2>/dev/null; "
                              f"exec timeout {PROGRAM_S} ./{words}; }}", PROGRAM_S + 30)
        if got.status == 124:
            raise NotMeasured(f"no end within {PROGRAM_S} s")
        if got.status:
            raise NotMeasured(_last_line(got.err, got.out) or f"status {got.status}")
        return [json.loads(line) for line in got.out.splitlines() if line.startswith("{")]

    def _quantiles(self, got):
        return {"n": got["n"], **{q: _us(got[q]) for q in ("p50", "p99", "p999")}}

    def latency(self, row):
        """Connects and first bytes."""
        if "program" in row:
            words = f"bench_connect spawn {self.samples} ./bench_{row['program']}"
        else:
            words = f"bench_connect {row['system']} {{}} {row['what']} {self.samples}"
        target = shlex.quote(self.target(row["system"]))
        words = words.format(target) if "{}" in words else f"{words} {target}"
        return self._quantiles(self.program(words)[0])

    def data(self, row):
        """One turn of READs or WRITEs: quantiles of a round, or a rate."""
        operation = row["case"].split("_")[1]
        stream = " stream" if row["unit"] == "MiB/s" else ""
        rounds = self.samples * (1 if row["queues"] > 1 else 10)
        latency, rate = self.program(
            f"bench_data {row['system']} {shlex.quote(self.data_target(row['system']))} "
            f"{operation} {row['size']} {row['batch']} {row['queues']} {rounds}{stream}")
        if row["unit"] == "us":
            return self._quantiles(latency)
        field = "mib_per_second" if stream else "per_second"
        return {"n": rate["n"], "p50": round(rate[field], 1)}

    def recovery(self, way):
        """One death of the process that lends the memory: two times, in ns."""
        gate = f"{self.folder}/gate"
        target = self.start(way)
        self.client.run(f"rm -f {gate}.*")
        reader = Program(self.client, self.folder, "recover",
                         f"env BN_GATE={gate} ./bench_recover {way} {shlex.quote(target)}")
        try:
            reader.await_line("reading", READY_S)
            self.serving.pop(way)[0].kill()
            reader.await_line("gate failed", FAIL_S)
            again = self.start(way)
            self.client.run(f"echo {shlex.quote(again)} >{gate}.new && "
                            f"mv {gate}.new {gate}.failed")
            got = json.loads(reader.await_line("{", READY_S))
        finally:
            reader.kill()
        return got["failed_ns"], got["again_ns"]

    # -- all of it -------------------------------------------------------------------

    def _one(self, row, measure):
        """A row of the report."""
        line = {key: row[key] for key in KEYS if key in row}
        try:
            return {**line, **measure(row), "reason": None}
        except NotMeasured as e:
            return {**line, "n": 0, "p50": None, "reason": str(e)}

    def _rates(self, rows):
        """Medians of turns, in each of which all systems of a case are measured."""
        turns = {id(row): [self._one(row, self.data)] for row in rows}
        for _ in range(self.turns - 1):
            for row in rows:
                if turns[id(row)][-1]["reason"] is None:
                    turns[id(row)].append(self._one(row, self.data))
        for row in rows:
            got = turns[id(row)]
            if got[-1]["reason"] is None:
                yield {**got[-1], "n": self.turns,
                       "p50": statistics.median(turn["p50"] for turn in got)}
            else:
                yield got[-1]

    def _recoveries(self, rows):
        """The rows of one system."""
        system = rows[0]["system"]
        times, why = [], None
        if system == "verbs":
            why = "by plain verbs nobody tells a program that its peer has ended"
        while why is None and len(times) < self.rounds:
            try:
                if system in self.serving:
                    self.serving.pop(system)[0].kill()
                times.append(self.recovery(system))
            except NotMeasured as e:
                why = str(e)
        for index, row in enumerate(rows):
            line = {key: row[key] for key in KEYS if key in row}
            if why is not None:
                yield {**line, "n": 0, "p50": None, "reason": why}
                continue
            values = sorted(_us(turn[index]) for turn in times)
            yield {**line, "n": len(values), "p50": statistics.median(values),
                   "max": values[-1], "reason": None}

    def rows(self):
        """All rows of PLAN, in its order."""
        for group, case, size, queues in dict.fromkeys(
                (row["group"], row["case"], row.get("size"), row.get("queues"))
                for row in PLAN if row["group"] != "recovery"):
            rows = [row for row in PLAN if (row["group"], row["case"], row.get("size"),
                                            row.get("queues")) == (group, case, size, queues)]
            self.say(f"{case}{f', {size} bytes' if size else ''}"
                     f"{f', {queues} queues' if queues and queues > 1 else ''}")
            if group == "data" and rows[0]["unit"] != "us":
                yield from self._rates(rows)
            else:
                for row in rows:
                    yield self._one(row, self.data if group == "data" else self.latency)
        recovery = [row for row in PLAN if row["group"] == "recovery"]
        for system in dict.fromkeys(row["system"] for row in recovery):
            self.say(f"recovery, {system}")
            yield from self._recoveries([row for row in recovery if row["system"] == system])
