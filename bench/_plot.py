# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Draws the rows of a benchmark as SVG, with nothing but Python.

    python3 bench/_plot.py NAME <rows.jsonl >NAME.svg

where NAME is lookup, publish, race-spike, handoff, handoff-parts or handoff-together.
"""

import html
import json
import math
import sys

COLOURS = {"krcore": "#1b6ca8", "raw_read": "#5b97c4", "ib_read_lat": "#b9d4e8",
           "ud_rpc": "#e08e45", "redis": "#b5443c", "etcd": "#6a8d3f", "verbs_rc": "#e08e45",
           "rdma_cm": "#8a6fb0", "verbs": "#e08e45", "tcp": "#6a8d3f"}
LEFT, TOP, HEIGHT, BAR, GAP, RIGHT = 96, 80, 300, 26, 32, 24
SANS = 'font-family="sans-serif"'
NOTHING = '<svg xmlns="http://www.w3.org/2000/svg"/>\n'


def _text(x, y, text, size=12, anchor="middle", extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" {extra}>'
            f"{html.escape(str(text))}</text>")


def _line(x1, y1, x2, y2, colour):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}"/>')


def _rect(x, y, width, height, colour):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width}" height="{height:.1f}" '
            f'fill="{colour}"/>')


def _short(value):
    """A figure with two or three digits that count."""
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 100000 else f"{value / 1000:.0f}k"


def _paper(title, below, width, scale, how, drawing):
    """The whole picture: title, scale, drawing, and what its figures are worth."""
    width = max(width + RIGHT, 640)
    height = TOP + HEIGHT + below
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 50}" {SANS}>',
        '<rect width="100%" height="100%" fill="white"/>',
        _text(LEFT, 26, title, 16, "start"), *scale.lines(width - RIGHT), *drawing,
        _text(LEFT, height + 18, f"Measured in emulation: {how}.", 11, "start", 'fill="#a00"'),
        _text(LEFT, height + 34, "Only ratios within this picture mean anything; none of it is "
              "the speed of real hardware.", 11, "start", 'fill="#a00"'), "</svg>"]) + "\n"


def _groups(rows):
    """Hits by table size and load; each system once."""
    groups = {}
    for row in rows:
        if row["case"] != "hit" or "records" not in row:
            continue
        group = groups.setdefault((row["records"], row["load"]), {})
        group.setdefault(row["system"], row)
    return groups


class _Linear:
    """Height of a value, from zero."""

    def __init__(self, values, unit):
        self.unit = unit
        most = max(1, *values)
        self.step = 10 ** math.floor(math.log10(most))
        self.high = math.ceil(most / self.step) * self.step

    def y(self, value):
        """Place on the paper."""
        return TOP + HEIGHT * (1 - value / self.high)

    def lines(self, right):
        """A line for each step."""
        out = []
        for value in range(0, self.high + 1, self.step):
            out.append(_line(LEFT, self.y(value), right, self.y(value), "#ddd"))
            out.append(_text(LEFT - 8, self.y(value) + 4, f"{value:,}{self.unit}", anchor="end"))
        return out


class _Scale:
    """Logarithmic height of a value."""

    def __init__(self, values, unit):
        self.unit = unit
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)

    def y(self, value):
        """Place on the paper."""
        share = (math.log10(max(value, 10 ** self.low)) - self.low) / (self.high - self.low)
        return TOP + HEIGHT * (1 - share)

    def lines(self, right):
        """A line for each power of ten."""
        out = []
        for power in range(self.low, self.high + 1):
            y = self.y(10 ** power)
            out.append(_line(LEFT, y, right, y, "#ddd"))
            out.append(_text(LEFT - 8, y + 4, f"{10 ** power:,}{self.unit}", anchor="end"))
        return out


def _bar(scale, x, row, colour):
    """A bar of the median, its figure, and a whisker to the 99th percentile."""
    top, tail, middle = scale.y(row["p50"]), scale.y(row["p99"]), x + BAR / 2
    return [_rect(x, top, BAR, TOP + HEIGHT - top, colour),
            _line(middle, top, middle, tail, "#555"),
            _line(middle - 4, tail, middle + 4, tail, "#555"),
            _text(middle, TOP + HEIGHT - 5, _short(row["p50"]), 9, extra='fill="white"')]


def _below(what, systems):
    """What stands below a group of look-ups, line by line."""
    records, load = what
    out = [(f"{records:,} records", ""), (f"server {load}", "")]
    if {"krcore", "raw_read"} <= systems.keys():
        ratio = systems["krcore"]["p50"] / systems["raw_read"]["p50"]
        out.append((f"{ratio:.2f} of a raw READ", f'fill="{COLOURS["krcore"]}"'))
    return out


def _bars(groups, title, height, how, below):
    """Groups of bars, one for each system, on a logarithmic scale; below() names a group."""
    if not groups:
        return NOTHING
    scale = _Scale([row[key] for systems in groups.values() for row in systems.values()
                    for key in ("p50", "p99")], " us")
    drawing, x = [], LEFT + GAP / 2
    for what, systems in groups.items():
        begin = x
        for system, row in systems.items():
            drawing += _bar(scale, x, row, COLOURS.get(system, "#888"))
            x += BAR + 3
        for nr, (text, extra) in enumerate(below(what, systems)):
            drawing.append(_text((begin + x) / 2, TOP + HEIGHT + 18 + 16 * nr, text,
                                 extra=extra))
        x += GAP
    systems = dict.fromkeys(s for systems in groups.values() for s in systems)
    width = max(x - GAP / 2, LEFT + 100 * len(systems))
    return _paper(title, height, width, scale, how, drawing + _legend(systems))


def lookups(rows, how):
    """The look-ups that hit: every system, table size and load."""
    return _bars(_groups(rows), "Looking a record up: median, whisker to the 99th percentile", 62,
                 how, _below)


def growth(rows, how):
    """Publishing as the table grows: rate of publications and memory of a record."""
    points = [row for row in rows if row["case"] == "publish_pipelined"]
    if not points:
        return NOTHING
    scale = _Linear([row["per_second"] for row in points], "/s")
    drawing, x, below = [], LEFT + GAP, TOP + HEIGHT
    for row in points:
        top = scale.y(row["per_second"])
        drawing += [_rect(x, top, 60, below - top, COLOURS["krcore"]),
                    _text(x + 30, top - 6, f"{row['per_second']:,.0f}/s"),
                    _text(x + 30, below + 18, f"{row['records']:,} records"),
                    _text(x + 30, below + 34, f"{row['bytes_per_record']:,.0f} B/record")]
        x += 60 + 3 * GAP
    return _paper("Publications a second, and memory a record, as the table grows", 46, x,
                  scale, how, drawing)


def _legend(systems):
    """Names of the systems in their colours, above the scale."""
    out = []
    for nr, system in enumerate(systems):
        out += [_rect(LEFT + 100 * nr, 46, 12, 12, COLOURS.get(system, "#888")),
                _text(LEFT + 100 * nr + 17, 57, system, anchor="start")]
    return out


def _path(points, colour):
    """A line through points, with gaps where there is None."""
    out, pen = [], "M"
    for x, y in points:
        if y is None:
            pen = "M"
            continue
        out.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    return (f'<path d="{" ".join(out)}" fill="none" stroke="{colour}" '
            f'stroke-width="1.6"/>')


def spike(rows, how):
    """Latency while more workers start: a line for each system, of the rows of `spike_p99`."""
    rows = [row for row in rows if row["case"] == "spike_p99"]
    if not rows:
        return NOTHING
    workers, stages = rows[0]["workers"], rows[0]["stages"]
    width, begins = 640 - LEFT, [sum(stages[:i]) for i in range(len(stages) + 1)]
    scale = _Scale([ms for row in rows for ms in row["p99_ms"] if ms], " ms")

    def x(at):
        return LEFT + at * width / begins[-1]

    drawing = []
    for stage, count in enumerate(workers):
        if stage:
            drawing.append(_line(x(begins[stage]), TOP, x(begins[stage]), TOP + HEIGHT, "#999"))
        drawing.append(_text(x((begins[stage] + begins[stage + 1]) / 2), TOP + HEIGHT + 34,
                             f"{count} workers"))
    for at in range(0, begins[-1] + 1, 4):
        drawing.append(_text(x(at), TOP + HEIGHT + 18, f"{at} s"))
    for row in rows:
        drawing.append(_path([(x(at), None if ms is None else scale.y(ms))
                              for at, ms in zip(row["seconds"], row["p99_ms"])],
                             COLOURS.get(row["system"], "#888")))
    drawing += _legend([row["system"] for row in rows])
    return _paper("99th percentile of operations while more workers start", 46, LEFT + width,
                  scale, how, drawing)


def _size(value):
    """Bytes as people say them."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value} B"


def handoffs(rows, how):
    """Data from one function to another: time over size, a line for each system."""
    lines = {}
    for row in rows:
        if row["case"] == "transfer" and row["unit"] == "us":
            lines.setdefault(row["system"], {})[row["bytes"]] = row["p50"]
    if not lines:
        return NOTHING
    sizes = sorted({size for points in lines.values() for size in points})
    scale = _Scale([value for points in lines.values() for value in points.values()], " us")
    place = {size: LEFT + GAP + 90 * index for index, size in enumerate(sizes)}
    drawing = [_text(x, TOP + HEIGHT + 18, _size(size)) for size, x in place.items()]
    for system, points in lines.items():
        colour = COLOURS.get(system, "#888")
        at = [(place[size], scale.y(value)) for size, value in sorted(points.items())]
        drawing += [_line(*first, *second, colour) for first, second in zip(at, at[1:])]
        drawing += [_rect(left - 3, y - 3, 6, 6, colour) for left, y in at]
    drawing += _legend(lines)
    return _paper("From wanting the data of another function to their last byte: median", 30,
                  max(place.values()) + GAP, scale, how, drawing)


SEVERAL = {"chain": lambda row: f"chain of {row['functions']}",
           "fan_out": lambda row: f"one to {row['functions'] - 1}",
           "at_once": lambda row: f"{row['parallel']} at once"}


def _handoff_groups(rows):
    """{what happened: {system: row}} of the handoff's cases with several fresh functions."""
    groups = {}
    for row in rows:
        if row["case"] in SEVERAL and row["unit"] == "us" and row["cold"]:
            groups.setdefault(SEVERAL[row["case"]](row), {}).setdefault(row["system"], row)
    return groups


def together(rows, how):
    """Several fresh functions: how long each took for its data, a bar for each system."""
    return _bars(_handoff_groups(rows), "From wanting the data to their last byte, several fresh "
                 "functions: median, whisker to the 99th percentile", 30, how,
                 lambda what, systems: [(what, "")])


PARTS_BYTES = 64 << 10      # of more only the last part is seen
PARTS = (("start", "#c9c9c9"), ("connect", "#8a6fb0"), ("read", "#1b6ca8"))


def parts(rows, how):
    """A fresh function from exec to the last byte, in three parts, a bar for each system."""
    sizes = {}
    for row in rows:
        if row["case"] == "transfer" and row["unit"] == "us" and row["bytes"] <= PARTS_BYTES:
            sizes.setdefault(row["bytes"], {}).setdefault(row["system"], row)
    if not sizes:
        return NOTHING
    scale = _Linear([sum(row[name] for name, _ in PARTS) / 1000 for systems in sizes.values()
                     for row in systems.values()], " ms")
    drawing, x, below = [], LEFT + GAP / 2, TOP + HEIGHT
    for size, systems in sorted(sizes.items()):
        begin = x
        for system, row in systems.items():
            low = 0
            for name, colour in PARTS:
                high = low + row[name] / 1000
                drawing.append(_rect(x, scale.y(high), BAR, scale.y(low) - scale.y(high), colour))
                low = high
            drawing.append(_text(x + BAR / 2, below + 14, system, 9))
            x += BAR + 10
        drawing.append(_text((begin + x) / 2, below + 32, _size(size)))
        x += GAP
    for nr, (name, colour) in enumerate(PARTS):
        drawing += [_rect(LEFT + 100 * nr, 46, 12, 12, colour),
                    _text(LEFT + 100 * nr + 17, 57, name, anchor="start")]
    return _paper("From exec of a fresh function to the last byte of its data: medians of the "
                  "parts", 46, x - GAP / 2, scale, how, drawing)


if __name__ == "__main__":
    found = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    where = found[0].get("measured_on", "unknown") if found else "unknown"
    draw = {"lookup": lookups, "publish": growth, "race-spike": spike, "handoff": handoffs,
            "handoff-together": together, "handoff-parts": parts}[sys.argv[1]]
    sys.stdout.write(draw(found, where))
