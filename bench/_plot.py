# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Draws the rows of a benchmark as SVG, with nothing but Python.

    python3 bench/_plot.py lookup <rows.jsonl >lookup.svg
"""

import html
import json
import math
import sys

COLOURS = {"krcore": "#1b6ca8", "raw_read": "#7fb2d6", "ib_read_lat": "#b9d4e8",
           "ud_rpc": "#e08e45", "redis": "#b5443c", "etcd": "#6a8d3f"}
LEFT, TOP, HEIGHT, BAR, GAP = 70, 70, 300, 22, 28


def _text(x, y, text, size=12, anchor="middle", extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" {extra}>'
            f"{html.escape(str(text))}</text>")


def _groups(rows):
    """Hits by table size and load; each system once."""
    groups = {}
    for row in rows:
        if row["case"] != "hit" or "records" not in row:
            continue
        group = groups.setdefault((row["records"], row["load"]), {})
        group.setdefault(row["system"], row)
    return groups


class _Scale:
    """Logarithmic height of a value."""

    def __init__(self, values):
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)

    def y(self, value):
        """Place on the paper."""
        share = (math.log10(max(value, 10 ** self.low)) - self.low) / (self.high - self.low)
        return TOP + HEIGHT * (1 - share)

    def lines(self, width):
        """A line for each power of ten."""
        out = []
        for power in range(self.low, self.high + 1):
            y = self.y(10 ** power)
            out.append(f'<line x1="{LEFT}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" '
                       'stroke="#ddd"/>')
            out.append(_text(LEFT - 8, y + 4, f"{10 ** power:,} us", anchor="end"))
        return out


def _bars(groups, scale):
    """Bars of medians with a whisker to the 99th percentile; returns (drawing, width)."""
    out, x = [], LEFT + GAP
    for (records, load), systems in groups.items():
        begin = x
        for system, row in systems.items():
            top, bottom, tail = scale.y(row["p50"]), TOP + HEIGHT, scale.y(row["p99"])
            out.append(f'<rect x="{x}" y="{top:.1f}" width="{BAR}" height="{bottom - top:.1f}" '
                       f'fill="{COLOURS.get(system, "#888")}"/>')
            out.append(f'<line x1="{x + BAR / 2}" x2="{x + BAR / 2}" y1="{top:.1f}" '
                       f'y2="{tail:.1f}" stroke="#333"/>')
            x += BAR + 4
        middle = (begin + x) / 2
        out.append(_text(middle, TOP + HEIGHT + 18, f"{records:,} records"))
        out.append(_text(middle, TOP + HEIGHT + 34, f"server {load}"))
        x += GAP
    return out, x


def lookups(rows, how):
    """The look-ups that hit: every system, table size and load."""
    groups = _groups(rows)
    if not groups:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>\n'
    values = [row[key] for systems in groups.values() for row in systems.values()
              for key in ("p50", "p99")]
    scale = _Scale(values)
    bars, width = _bars(groups, scale)
    legend, x = [], LEFT
    for system in dict.fromkeys(s for systems in groups.values() for s in systems):
        legend.append(f'<rect x="{x}" y="44" width="12" height="12" '
                      f'fill="{COLOURS.get(system, "#888")}"/>')
        legend.append(_text(x + 17, 55, system, anchor="start"))
        x += 90
    width = max(width, x, 620)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{TOP + HEIGHT + 75}" font-family="sans-serif">',
           '<rect width="100%" height="100%" fill="white"/>',
           _text(LEFT, 24, "Looking a record up: median, line to the 99th percentile", 16, "start"),
           *legend, *scale.lines(width), *bars,
           _text(LEFT, TOP + HEIGHT + 62, f"Measured on {how}: emulation. Only ratios within "
                 "this picture mean anything, none of it is the speed of real hardware.",
                 11, "start", 'fill="#a00"'), "</svg>"]
    return "\n".join(out) + "\n"


def growth(rows, how):
    """Publishing as the table grows: rate of publications and memory of a record."""
    points = [row for row in rows if row["case"] == "publish_pipelined"]
    if not points:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>\n'
    scale = _Scale([row["per_second"] for row in points])
    width, out, x = 620, [], LEFT + GAP
    for row in points:
        top = scale.y(row["per_second"])
        out.append(f'<rect x="{x}" y="{top:.1f}" width="60" height="{TOP + HEIGHT - top:.1f}" '
                   f'fill="{COLOURS["krcore"]}"/>')
        out.append(_text(x + 30, top - 6, f"{row['per_second']:.0f}/s"))
        out.append(_text(x + 30, TOP + HEIGHT + 18, f"{row['records']:,} records"))
        out.append(_text(x + 30, TOP + HEIGHT + 34, f"{row['bytes_per_record']:.0f} B/record"))
        x += 60 + 3 * GAP
    lines = [line.replace(" us<", "/s<") for line in scale.lines(width)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 75}" '
        'font-family="sans-serif">', '<rect width="100%" height="100%" fill="white"/>',
        _text(LEFT, 24, "Publications a second, and memory a record, as the table grows", 16,
              "start"), *lines, *out,
        _text(LEFT, TOP + HEIGHT + 62, f"Measured on {how}: emulation, not the speed of real "
              "hardware.", 11, "start", 'fill="#a00"'), "</svg>"]) + "\n"


if __name__ == "__main__":
    found = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    where = found[0].get("measured_on", "unknown") if found else "unknown"
    draw = {"lookup": lookups, "publish": growth}[sys.argv[1]]
    sys.stdout.write(draw(found, where))
