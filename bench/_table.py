# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Writes the rows of a benchmark as the Markdown tables of docs/bench.md.

    python3 bench/_table.py lookup|publish|clients|cost <rows.jsonl
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
    write = {"lookup": lookups, "cost": costs}.get(sys.argv[1], plain)
    print("\n".join(write(found)))
