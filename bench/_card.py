# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the counts of ./run bench cost would be on a card: a prediction, not a measurement.

Each thing that is counted takes a time between two bounds, UNITS, whose sources stand beside
them; what an operation takes is their sum. The published figures were known when the bounds were
chosen, and what KRCORE's own path costs (FIGURES) is an assumption, so that they agree is weak
evidence; a bound that is far off is found. Some sources are from memory or estimates. What is
left out: caches that other programs have emptied, queueing in the NIC, frequency scaling,
congestion. Whether the arithmetic is any good is told by FIGURES: published measurements of
verbs and of the first KRCORE (USENIX ATC '22, artifact of the paper, ConnectX-4), which it must
reproduce within its range; judge() says whether it does.
"""

import dataclasses

PAPER = "KRCORE, artifact of the ATC '22 paper, figure 10 (ConnectX-4, 100 Gbit/s)"


@dataclasses.dataclass(frozen=True)
class Unit:
    """The time that one of something takes, in ns, and where that is from."""
    low: float
    high: float
    source: str


# Instructions are those of straight kernel and library code: 1 to 2.5 a cycle at 2.5 to 3.5 GHz.
UNITS = {
    "instructions": Unit(0.114, 0.4, "1 to 2.5 instructions a cycle at 2.5 to 3.5 GHz"),
    "rep_turns": Unit(0.01, 0.15,
                      "REP MOVSB and STOSB: 8 to 64 bytes a cycle, 1 to 8 bytes a turn"),
    "syscalls": Unit(100, 300, "entry and return on x86-64 with mitigations; Linux, 2018 to 2024"),
    "locked": Unit(4, 10, "18 to 25 cycles, uncontended (Fog, instruction tables)"),
    "doorbells": Unit(60, 120, "a write to uncached memory of the device with its barrier"),
    "dc_connects": Unit(300, 2700, "half a handshake when a DC initiator changes its target "
                        "(DeepEP #461); 2.7 us for a full one (UCX #10415)"),
    "commands": Unit(50e3, 500e3, "a firmware command of ConnectX-4 to 6: 0.05 to 0.5 ms"),
    "trips": Unit(1500, 2700, "an 8-byte READ over one switch, from the doorbell to the "
                  "completion, ConnectX-4 to 7 (perftest ib_read_lat)"),
    "fetched": Unit(200, 500, "requests that the NIC fetches by DMA, where a single one is pushed "
                    "through the doorbell's page (BlueFlame)"),
}


def span(counts):
    """(low, high) in ns of so many of each."""
    return tuple(sum(number * getattr(UNITS[name], bound) for name, number in counts.items())
                 for bound in ("low", "high"))


def counted(row):
    """What a row of the bench has of each unit, for one operation."""
    per = row.get("per", 1)
    ours = row["system"].startswith("krcore")
    trips = 1 if row["packets"] * per >= 0.9 else 0
    if row["case"] in ("connect", "fresh_process", "race_start"):
        trips = max(round(row["packets"] / 1.5), trips)     # requests and answers alternate
    counts = {"instructions": row["p50"] * per, "rep_turns": row["rep_turns"] * per,
              "syscalls": row["syscalls"] * per, "locked": row["locked"] * per,
              "doorbells": row["doorbells"] * per, "commands": row["commands"] * per,
              "dc_connects": row["dc_connects"] * per if ours else 0, "trips": trips}
    counts["fetched"] = trips - row["pushed"] * per
    return {name: max(number, 0) for name, number in counts.items()}


def predict(row):
    """(low, high) in us of one operation of a row: of a batch, where requests come in batches."""
    return tuple(round(ns / 1000, 2) for ns in span(counted(row)))


# Verbs as counted here. KRCORE's path in the kernel was never counted: 300 to 1500 instructions
# for a request are assumed, the range of what such paths take; its system calls are those of
# its client's source, one to push each request and one or more to pop the completions.
VERBS_SYNC = {"instructions": 724, "locked": 3, "doorbells": 1, "trips": 1}
VERBS_BATCH = {"instructions": 12 * 326, "locked": 3, "doorbells": 1, "trips": 1, "fetched": 1}
PATH = (300, 1500)


@dataclasses.dataclass(frozen=True)
class Figure:
    """A published figure and what the arithmetic says of it."""
    what: str
    unit: str
    low: float
    high: float
    published: tuple


def _more(requests, calls):
    """(low, high) in ns that so many requests of KRCORE take more than those of verbs."""
    low, _ = span({"instructions": requests * PATH[0], "syscalls": calls[0]})
    _, high = span({"instructions": requests * PATH[1], "syscalls": calls[1]})
    return low, high


def figures():
    """The published figures, predicted. Of what KRCORE takes more than verbs, the measured time
    of verbs is the base: so the range is that of the difference alone."""
    sync, batch = span(VERBS_SYNC), span(VERBS_BATCH)
    more_sync, more_batch = _more(1, (2, 3)), _more(12, (13, 15))
    return [
        Figure("READ of 8 bytes by verbs", "us", sync[0] / 1e3, sync[1] / 1e3, (2.53,)),
        Figure("12 READs by verbs, one thread", "us", batch[0] / 1e3, batch[1] / 1e3, (4.4,)),
        Figure("READ of 8 bytes by KRCORE, RC and DC", "us", 2.53 + more_sync[0] / 1e3,
               2.53 + more_sync[1] / 1e3, (3.35, 3.41)),
        Figure("KRCORE's rate of verbs', 24 threads of 12 READs", "ratio",
               7600 / (7600 + more_batch[1]), 7600 / (7600 + more_batch[0]), (0.62,)),
        Figure("KRCORE's rate of verbs', one thread", "ratio",
               4400 / (4400 + more_batch[1]), 4400 / (4400 + more_batch[0]), (0.53,)),
    ]


def judge(found):
    """Lines that say which published figures are outside of what was predicted."""
    return [f"{figure.what}: {value} {figure.unit} was published, {figure.low:.2f} to "
            f"{figure.high:.2f} is predicted" for figure in found for value in figure.published
            if not figure.low <= value <= figure.high]


def table(rows):
    """The predictions as text, on stderr."""
    lines = ["On a card, predicted (bench/_card.py has the unit costs and their sources):"]
    seen = set()
    for row in rows:
        if (row["case"], row["system"]) in seen or row["system"].startswith("nothing"):
            continue
        seen.add((row["case"], row["system"]))
        low, high = row["card_us"]
        batch = f" for {row['per']}" if row.get("per", 1) > 1 else ""
        name = f"{row['case']}.{row['system']}"
        lines.append(f"  {name:32} {low:>10,.2f} to {high:>10,.2f} us{batch}")
    lines.append(f"The same arithmetic, of what was published ({PAPER}):")
    for figure in figures():
        said = " and ".join(str(value) for value in figure.published)
        lines.append(f"  {figure.what}: {figure.low:.2f} to {figure.high:.2f} {figure.unit}, "
                     f"published {said}")
    return lines
