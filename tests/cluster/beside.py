# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench NAME --beside REV: a benchmark of this tree and of an earlier one, in turns.

Times under emulation swing from run to run, so what is compared is the ratio of a row to its peer,
who was measured in the same run: ours over the peer's, of which less is better. Rows without a peer
are left out. A row is marked if all runs of one tree are above all of the other; with TURNS runs of
each, CHANCE of the rows are marked where nothing has changed. The earlier tree is a clone below
.work, with a build folder of its own, and runs its own benchmark. What the runs printed stays in
build/bench/beside.
"""

import collections
import dataclasses
import json
import math
import os
import re
import statistics
import subprocess
import sys

from . import host

TURNS = 3
CHANCE = 2 / math.comb(2 * TURNS, TURNS)
RUN_SECONDS_MAX = 3 * 3600
END_SECONDS = 60        # for a run that is told to end
CLONES = host.CHECKOUT / ".work" / "beside"
# What tells rows apart that have the same case, system and peer.
MORE = ("records", "load", "clients", "threads", "peers", "nodes", "processes", "workers",
        "queues", "bytes", "connections", "functions", "parallel", "cold", "outstanding")
# What a person has set for this tree alone.
OF_THIS_TREE = ("KRCORE_BUILD", "KRCORE_CLOCK_START", "KRCORE_PROG", "KRCORE_BENCH_PICTURES")


@dataclasses.dataclass
class Compared:
    """The ratios of one row in the runs of both trees."""
    name: str
    before: list
    now: list

    @property
    def factor(self):
        """How many times as much it is now."""
        return statistics.median(self.now) / statistics.median(self.before)

    @property
    def apart(self):
        """Whether all runs of one tree are above all of the other."""
        return min(self.now) > max(self.before) or max(self.now) < min(self.before)


def _name(row):
    return " ".join([row["case"], row["system"], "beside", row["peer"],
                     *(f"{key}={row[key]}" for key in MORE if key in row)])


def ratios(text):
    """({name: ratio}, names of which there are several rows) of what a benchmark has printed with
    --json."""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    rows = [row for row in rows if row.get("peer") and row.get("ratio")]
    times = collections.Counter(map(_name, rows))
    return {_name(row): row["ratio"] if row.get("ratio_of") == "cost" else 1 / row["ratio"]
            for row in rows if times[_name(row)] == 1}, \
        {name for name, count in times.items() if count > 1}


def compare(before, now):
    """(rows of all runs, how many names only some have or are those of several rows); each: what
    ratios() gave of the runs of a tree."""
    runs = [*before, *now]
    alike = set.union(*(several for _, several in runs))
    found = set.union(*(set(of) for of, _ in runs))
    common = set.intersection(*(set(of) for of, _ in runs)) - alike
    rows = [Compared(name, [of[name] for of, _ in before], [of[name] for of, _ in now])
            for name in sorted(common)]
    return rows, len(found | alike) - len(rows)


def commit_of(revision, checkout=host.CHECKOUT):
    """The commit that a revision names."""
    done = subprocess.run(["git", "-C", checkout, "rev-parse", "--verify", "--quiet",
                           "--end-of-options", f"{revision}^{{commit}}"],
                          capture_output=True, text=True, timeout=60, check=False)
    commit = done.stdout.strip()
    if done.returncode or not re.fullmatch("[0-9a-f]{40}", commit):
        raise host.ClusterError(f"--beside {revision}: there is no such revision here "
                                f"{done.stderr}".strip())
    return commit


def clone(commit, checkout=host.CHECKOUT, clones=CLONES):
    """The tree of a commit; its folder, which is kept."""
    folder = clones / commit[:12]
    with host.locked(clones / "lock"):
        if not (folder / ".git").is_dir():
            host.run(["rm", "-rf", folder])
            with host.made_whole(folder) as new:
                host.run(["git", "clone", "--quiet", "--no-checkout", checkout, new])
        host.run(["git", "-C", folder, "checkout", "--quiet", "--force", "--detach", commit])
    return folder


def _output(folder, arguments, environment):
    """What one run of the benchmark in a tree prints. Ended, it ends what it has started."""
    with subprocess.Popen([folder / "run", "bench", *arguments, "--json"], cwd=folder,
                          env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True) as child:
        try:
            text, _ = child.communicate(timeout=RUN_SECONDS_MAX)
        except BaseException as error:
            child.terminate()
            try:
                child.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                raise host.ClusterError(f"bench {' '.join(arguments)} in {folder} did not end "
                                        f"within {RUN_SECONDS_MAX} s") from None
            raise
    if child.returncode:
        raise host.ClusterError(f"bench {' '.join(arguments)} in {folder}: failed with status "
                                f"{child.returncode}")
    return text


def show(revision, rows, others):
    """Print the comparison."""
    width = max(len(row.name) for row in rows)
    print(f"{'case':<{width}} {revision[:11]:>11} {'here':>9} {'factor':>8}")
    for row in rows:
        print(f"{row.name:<{width}} {statistics.median(row.before):11.4g} "
              f"{statistics.median(row.now):9.4g} {row.factor:8.3f}{'  *' if row.apart else ''}")
    print(f"Ratios to peers, medians of {TURNS} runs; less is better. Median of the factors: "
          f"{statistics.median(row.factor for row in rows):.3f}. *: all runs of one tree are above "
          f"all of the other: {sum(row.apart for row in rows)} of {len(rows)} rows, by chance "
          f"{CHANCE * len(rows):.1f}."
          + (f" {others} more are not in all runs, or have a name in common." if others else ""))


def _arguments(options):
    """Those of each run."""
    words = [options.name, "--kernel", options.kernel]
    for case in options.case:
        words += ["--case", case]
    if options.nic:
        words += ["--nic", options.nic]
    if options.cpus:
        words += ["--cpus", str(options.cpus)]
    return words + ["--fresh"] * bool(options.fresh)


def main(options):
    """Of bench.main(), with --beside."""
    if options.check or options.json:
        raise host.ClusterError("bench --beside: --check and --json are for one tree")
    earlier = clone(commit_of(options.beside))
    environment = {name: value for name, value in os.environ.items() if name not in OF_THIS_TREE}
    kept = host.build_dir() / "bench" / "beside"
    kept.mkdir(parents=True, exist_ok=True)
    found = {"before": [], "now": []}
    for turn in range(1, TURNS + 1):
        for tree, folder, its in (("before", earlier, environment),
                                  ("now", host.CHECKOUT, None)):
            host.say(f"bench {options.name}, turn {turn} of {TURNS}: "
                     + (options.beside if tree == "before" else "here"))
            text = _output(folder, _arguments(options), its)
            (kept / f"{options.name}-{turn}-{tree}.jsonl").write_text(text, encoding="utf-8")
            found[tree].append(ratios(text))
    rows, others = compare(found["before"], found["now"])
    if not rows:
        raise host.ClusterError(f"bench {options.name} --beside {options.beside}: no row with a "
                                "peer is in both trees")
    show(options.beside, rows, others)
    sys.stdout.flush()
    return 0
