# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Writes the rows of a benchmark as the Markdown tables of docs/bench.md and its siblings.

    python3 bench/_table.py lookup|publish|clients|cost|handoff|race <rows.jsonl
"""

import json
import sys


def _figure(value):
    """A figure with the digits that count."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(titles, lines):
    """Columns of figures stand to the right, empty ones are left out."""
    used = [i for i, column in enumerate(zip(*lines)) if any(column)]
    titles, lines = [titles[i] for i in used], [[line[i] for i in used] for line in lines]
    right = [all(cell[:1].isdigit() for cell in column if cell) for column in zip(*lines)]
    out = ["| " + " | ".join(titles) + " |",
           "|" + "|".join("---:" if figures else "---" for figures in right) + "|"]
    return out + ["| " + " | ".join(line) + " |" for line in lines]


def lookups(rows):
    """One line a table size, load, case and system; comparisons as a column."""
    compared = {(row["records"], row["load"], row["case"], row["peer"]): row["ratio"]
                for row in rows if row.get("peer")}
    lines = []
    for row in rows:
        if "records" not in row or (row["system"] == "krcore" and row.get("peer") != "raw_read"
                                    and row["case"] != "attach"):
            continue
        place = (row["records"], row["load"], row["case"])
        ratio = "" if row["system"] == "krcore" else compared.get((*place, row["system"]))
        lines.append([f"{row['records']:,}", row["load"], row["case"], row["system"],
                      *(_figure(row.get(key)) for key in
                        ("p50", "p99", "p999", "reads_per_lookup")),
                      _figure(ratio) if ratio else "",
                      *(_figure(row.get(key)) for key in
                        ("server_cpu_s_per_million", "server_cpu_gross_s_per_million",
                         "server_cpu_silent_s_per_million", "server_wakes_per_lookup",
                         "guest_cpu_s_per_million"))])
    return _table(("records", "server", "case", "system", "p50 us", "p99 us", "p99.9 us", "READs",
                   "ratio", "server CPU", "gross", "silent", "wakes", "guest CPU"), lines)


def costs(rows):
    """One line an operation and system; comparisons as a column."""
    counts = ("p50", "user", "kernel", "syscalls", "locked", "doorbells", "packets", "commands")
    first = {}
    for row in rows:
        name = (row["case"], row["system"])
        ratio = f"{row['ratio']:.3g} of {row['peer']}" if row.get("peer") else ""
        if name in first:
            first[name][-1] += f", {ratio}"
        else:
            first[name] = [*name, *(_figure(max(row[key], 0)) for key in counts), ratio]
    return _table(("case", "system", "instructions", "user", "kernel", "system calls", "locked",
                   "doorbells", "packets", "firmware commands", "ours is"), list(first.values()))


def _ms(value):
    """Milliseconds of microseconds."""
    return "" if value is None else _figure(value / 1000)


def _percent(value):
    return f"{value:.1f} %"


def _one(rows, *names):
    """{values of these fields: {system: row}}, ours with `shorter` by peer."""
    found = {}
    for row in rows:
        systems = found.setdefault(tuple(row.get(name) for name in names), {})
        seen = systems.setdefault(row["system"], {**row, "shorter": {}})
        if "shorter_percent" in row:
            seen["shorter"][row["peer"]] = row["shorter_percent"]
    return found


HANDOFFS = ("verbs", "redis", "tcp", "krcore")


def _transfers(rows, case):
    lines = []
    for (size,), got in _one([r for r in rows if r["case"] == case], "bytes").items():
        ours = got["krcore"]
        lines.append([f"{size:,}", *(_ms(got[system]["p50"]) for system in HANDOFFS),
                      _percent(ours["shorter"]["verbs"]), _percent(ours["shorter"]["redis"]),
                      _ms(ours["connect"]), _ms(ours["read"]),
                      *(_ms(got[system]["exec_to_last_us"]) for system in HANDOFFS)])
    return _table(("bytes", *HANDOFFS, "shorter than verbs", "than redis", "krcore: connect",
                   "read", *(f"{system}, from exec" for system in HANDOFFS)), lines)


def _several(rows):
    lines = []
    for place, got in _one([r for r in rows if r["case"] in ("chain", "fan_out", "at_once")],
                           "case", "functions", "parallel", "cold").items():
        case, functions, parallel, cold = place
        what = {"chain": f"chain of {functions}", "fan_out": f"one to {(functions or 1) - 1}",
                "at_once": f"{parallel} at once"}[case]
        ours = got["krcore"]
        lines.append([what, "fresh" if cold else "warm",
                      *(_ms(got[system]["p50"]) for system in HANDOFFS), _ms(ours["p99"]),
                      _percent(ours["shorter"]["verbs"]), _percent(ours["shorter"]["redis"]),
                      *(_ms(got[system]["exec_to_last_us"]) for system in HANDOFFS)])
    return _table(("functions", "they are", *HANDOFFS, "krcore p99", "shorter than verbs",
                   "than redis", *(f"{system}, from exec" for system in HANDOFFS)), lines)


def handoffs(rows):
    """Medians in milliseconds: transfers by size, fresh and warm; several functions; counts."""
    rows = [row for row in rows if row["bench"] == "handoff"]
    counts = [[row["system"], *(_figure(max(row[key], 0)) for key in
                                ("p50", "user", "kernel", "syscalls", "reads", "packets",
                                 "doorbells", "commands"))]
              for row in rows if row["unit"] == "instructions"]
    timed = [row for row in rows if row["unit"] == "us"]
    out = []
    for case in ("transfer", "transfer_warm"):
        if any(row["case"] == case for row in timed):
            out += [f"{case}, ms:", "", *_transfers(timed, case), ""]
    if any(row["case"] == "chain" for row in timed):
        out += ["Several functions, ms:", "", *_several(timed), ""]
    if counts:
        out += ["Counts:", "", *_table(("system", "instructions", "user", "kernel",
                                        "system calls", "READs", "packets sent", "doorbells",
                                        "firmware commands"), counts)]
    return out


def _workers(rows):
    """One worker, one operation at a time: a line a workload and system."""
    lines = []
    for (case,), got in _one(rows, "case").items():
        ours = got["krcore"]["p50"]
        for system, row in got.items():
            faster = ", ".join(f"{got[peer]['p50'] / ours:.2f} of {peer}'s" for peer in got
                               if peer != "krcore") if system == "krcore" else ""
            lines.append([case, system, *(_figure(row.get(key)) for key in
                                          ("p50", "p99", "per_second", "reads_per_search")),
                          faster])
    return _table(("case", "system", "p50 us", "p99 us", "operations a second", "READs a search",
                   "as fast as (medians)"), lines)


def _startups(rows):
    return _table(("system", "p50 ms", "p99 ms", "fork", "attached", "shorter than verbs_rc",
                   "than rdma_cm", "than redis"),
                  [[system, _ms(row["p50"]), _ms(row["p99"]), _ms(row["fork_us"]),
                    _ms(row["attached_us"]),
                    *(_percent(row["shorter"][peer]) if peer in row["shorter"] else ""
                      for peer in ("verbs_rc", "rdma_cm", "redis"))]
                   for got in _one(rows).values() for system, row in got.items()])


def _spikes(rows):
    lines = []
    for (workers,), got in _one(rows, "workers").items():
        for system, row in got.items():
            shorter = _percent(100 - 100 * row["p50"] / got["verbs_rc"]["p50"]) \
                if system == "krcore" else ""
            lines.append([_figure(workers), system, _ms(row["p50"]), _ms(row["p99"]), shorter,
                          _ms(row["all_answered_us"]), _ms(row["steady_us"]),
                          _figure(row["steady_per_second"]), _ms(row["old_p99_us"])])
    return _table(("workers in all", "system", "from fork to the first answer: p50 ms", "p99 ms",
                   "shorter than verbs_rc", "all have answered, ms", "steady after, ms",
                   "steady rate", "old workers' p99, ms"), lines)


def races(rows):
    """One worker, start of workers, and the spike."""
    out = []
    for write, chosen in (
            (_workers, [row for row in rows if row["case"].startswith("ycsb_")]),
            (_startups, [row for row in rows if row["case"] == "startup"]),
            (_spikes, [row for row in rows if row["case"] == "spike"])):
        if chosen:
            out += [*write(chosen), ""]
    return out[:-1]


def plain(rows):
    """All that a row has, whatever it is."""
    known = ("bench", "case", "system", "unit", "n", "p50", "p99", "p999", "measured_on", "note")
    return _table(("case", "system", "unit", "n", "p50", "p99", "p99.9", "more"),
                  [[row["case"], row["system"], row["unit"],
                    *(_figure(row.get(key)) for key in ("n", "p50", "p99", "p999")),
                    ", ".join(f"{key} {_figure(value)}" for key, value in row.items()
                              if key not in known)] for row in rows])


if __name__ == "__main__":
    found = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    write = {"lookup": lookups, "cost": costs, "handoff": handoffs,
             "race": races}.get(sys.argv[1], plain)
    print("\n".join(write(found)))
