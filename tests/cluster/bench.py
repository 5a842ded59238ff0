# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Runs a benchmark: bench/NAME.py with a function bench(cluster, report).

Every figure is given to `report`, which prints a table row, or with --json one object
a line. What comes out of emulated guests is good for ratios within one run and says
nothing of the speed of real hardware; the output says so itself.
"""

import importlib.util
import json
import math
import os
import pathlib
import sys

from . import beside, host
from .cluster import Cluster

PICTURES = "KRCORE_BENCH_PICTURES"     # folder, relative to where ./run was called
BENCHES = host.CHECKOUT / "bench"
_COLUMNS = (("case", 24), ("system", 18), ("unit", 12), ("n", 9), ("p50", 11), ("p99", 11),
            ("p999", 11), ("peer", 14), ("ratio", 8))


def quantile(samples, share):
    """The value below which this share of the samples lies (nearest rank)."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Report:
    """Where a benchmark's figures go."""

    def __init__(self, name, as_json, patterns=()):
        self.name = name
        self.patterns = patterns
        self._json = as_json
        self.rows = 0           # printed so far

    def wanted(self, *cases):
        """Whether --case leaves one of these in."""
        return not self.patterns or any(case in self.patterns for case in cases)

    def picture(self, name, svg):
        """Keep a picture: in build/bench, or in the folder that KRCORE_BENCH_PICTURES names."""
        folder = pathlib.Path(os.environ.get(PICTURES) or host.build_dir() / "bench")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        host.say(f"the picture is {folder / name}.svg")

    def row(self, case, system, unit, *, samples=None, n=None, p50=None, p99=None, p999=None,
            peer=None, ratio=None, ratio_of=None, **more):
        """One line of figures. Quantiles are taken from `samples` when these are given.

        `peer` is the system compared with, `ratio` how many times better than it, or
        for costs ours over the peer's; `ratio_of` says which ("speedup" or "cost").
        """
        if samples:
            n, p50, p99, p999 = (len(samples), quantile(samples, 0.5), quantile(samples, 0.99),
                                 quantile(samples, 0.999))
        values = {"bench": self.name, "case": case, "system": system, "unit": unit, "n": n,
                  "p50": p50, "p99": p99, "p999": p999}
        if peer is not None:
            values.update(peer=peer, ratio=ratio, ratio_of=ratio_of)
        values.update(more)
        self._print(values)
        return values

    def _print(self, values):
        self.rows += 1
        if self._json:
            print(json.dumps(values), flush=True)
            return
        if self.rows == 1:
            print("".join(f"{name:<{width}}" for name, width in _COLUMNS))
        cells = []
        for name, width in _COLUMNS:
            value = values.get(name)
            text = "" if value is None else f"{value:.4g}" if isinstance(value, float) \
                else str(value)
            cells.append(f"{text:<{width}}")
        known = {name for name, _ in _COLUMNS} | {"bench", "ratio_of"}
        extra = " ".join(f"{key}={value}" for key, value in values.items() if key not in known)
        print(("".join(cells) + extra).rstrip(), flush=True)


def names():
    """The benchmarks there are."""
    return sorted(path.stem for path in BENCHES.glob("*.py") if not path.stem.startswith("_"))


def _load(name):
    path = BENCHES / f"{name}.py"
    if name not in names():
        raise host.ClusterError(f"bench {name}: not one of {', '.join(names()) or '(none yet)'}")
    if str(BENCHES) not in sys.path:
        sys.path.insert(0, str(BENCHES))    # they share modules: import _lab
    spec = importlib.util.spec_from_file_location(f"bench_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def add_arguments(parser):
    """Options of the command; the card, if not said, is the benchmark's own choice."""
    parser.set_defaults(nic=os.environ.get("KRCORE_NIC"))
    parser.add_argument("name", help=f"one of: {', '.join(names()) or '(none yet)'}")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--check", action="store_true",
                        help="compare with the budgets; only of a benchmark that has some")
    parser.add_argument("--case", action="append", default=[],
                        help="only cases of this name; can be given several times")
    parser.add_argument("--beside", metavar="REV",
                        help="run it in this tree and in that of an earlier revision, in turns, "
                             "and compare them")


def main(options):
    """./run bench NAME"""
    module = _load(options.name)
    if options.beside:
        return beside.main(options)
    if options.check and not hasattr(module, "check"):
        raise host.ClusterError(f"bench {options.name}: it has no budgets to --check")
    report = Report(options.name, options.json, options.case)
    nic = options.nic or getattr(module, "NIC", "rxe")
    with Cluster.start(kernel=options.kernel, nic=nic, cpus=options.cpus, fresh=options.fresh,
                       topology_path=getattr(module, "TOPOLOGY", BENCHES / "topology.toml"),
                       plugin=module.plugin() if hasattr(module, "plugin") else "") as cluster:
        host.say(f"bench {options.name} (usually {getattr(module, 'USUALLY', 'some minutes')})")
        if cluster.how() != "KVM":
            print("The guests are emulated: compare figures within this run only; they say "
                  "nothing of real hardware.", file=sys.stderr)
        rows = module.bench(cluster, report)
    if options.case and not report.rows:
        raise host.ClusterError(f"bench {options.name}: no case is called "
                                f"{' or '.join(options.case)}")
    return module.check(rows) if options.check else 0
