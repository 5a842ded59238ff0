# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The last lines of a run: where the time went, what ran and what did not, the total."""

from . import clock, rotation


class Totals:
    """passed, failed and skipped of all jobs."""

    def __init__(self, ended):
        self.passed = sum(job.passed for job in ended)
        self.failed = sum(job.failed for job in ended)
        self.skipped = sum(job.skipped for job in ended)

    def line(self):
        """The last line of every run."""
        return (f"{self.passed} passed, {self.failed} failed"
                + (f", {self.skipped} skipped" if self.skipped else ""))


def table(ended):
    """Where the time went, a line each."""
    width = max([len(job.job.name) for job in ended] + [len("together")])
    lines = [f"{'part':{width}}  seconds  planned  passed  failed  skipped"]
    for job in sorted(ended, key=lambda job: -job.seconds):
        lines.append(f"{job.job.name:{width}}  {job.seconds:7.0f}  {job.job.seconds:7.0f}  "
                     f"{job.passed:6}  {job.failed:6}  {job.skipped:7}")
    total = sum(job.seconds for job in ended)
    lines.append(f"{'together':{width}}  {total:7.0f}  in {clock.elapsed():.0f} s of the clock, "
                 f"{clock.processor_seconds():.0f} s of processors")
    return lines


def told(ended):
    """A line for each test that was skipped, or failed, and for what was judged in part: who
    sees the end of a long log alone sees them."""
    lines = [f"{word} {job.job.name}: {text}" for word in ("skip", "partly", "FAIL")
             for job in ended for kind, text in job.told if kind == word]
    for job in ended:
        unnamed = job.failed - job.untold["FAIL"] - sum(kind == "FAIL" for kind, _ in job.told)
        if unnamed > 0:
            lines.append(f"FAIL {job.job.name}: {unnamed} that no line names")
        lines += [f"{word} {job.job.name}: {more} more, in its log"
                  for word, more in sorted(job.untold.items())]
    return lines


def owed(left_out, next_turn=None, turn=0, unit="commit"):
    """A line for each job that did not run. `next_turn(job)`: the turn it comes at, which is one of
    these units."""
    lines = []
    for job, reason in left_out:
        when = ""
        later = next_turn(job) if next_turn else None
        if later:
            when = f"; its turn comes at {unit} {later}, this is {turn}"
        elif next_turn:
            when = f"; none of the next {rotation.FURTHEST} would have time for it, with as " \
                   "little as was left"
        lines.append(f"not run: {job.name}: {reason} (usually {job.part.usually}){when}")
    return lines
