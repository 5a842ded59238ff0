# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The kernel log of a guest, from its serial console, and what must not be in it.

The console is a file on this machine: it is there even when the guest is not.
"""

import re

PROBLEMS = re.compile("|".join((
    r"\bWARNING:", r"\bBUG:", r"\bOops\b", r"Kernel panic", r"general protection fault",
    r"unable to handle", r"Call Trace:", r"\bKASAN\b", r"\bUBSAN\b", r"\bKCSAN\b",
    r"kmemleak: \d+ new", r"ODEBUG:", r"DMA-API:", r"refcount_t:",
    r"list_(add|del) corruption",
    r"possible (circular|recursive) locking", r"inconsistent lock state",
    r"suspicious RCU usage", r"DEBUG_LOCKS_WARN_ON", r"bad unlock balance",
    r"sleeping function called", r"scheduling while atomic", r"held lock freed",
    r"blocked for more than \d+ seconds", r"hung_task", r"\brcu\w*: .*(stall|starved)",
    r"self-detected stall",
    r"soft lockup", r"hard LOCKUP", r"segfault at", r"Out of memory: Killed",
    r"krcore-init:",
    # krcore.ko's own alarms: something of the hardware or of the module is not as it must be
    r"was not destroyed", r"did not drain", r"still in use \d+ s after its end",
    r"completes nothing, reset", r"can't be reset",
    r"krcore: [\w-]+/\d+: (DCI|CQ|RMP) 0x[0-9a-f]+: (event|completion of (block|entry))",
    r"no queue pair for a lane", r"a lane to itself does not connect",
    r"(completion queue|receives) of lanes: event",
    r"a lane is not in RESET after",
)))

# Lines that look like a problem, and come without krcore too; each with its reason.
ALLOWED = tuple(re.compile(pattern) for pattern in (
    r"DMA-API: (preallocated \d+ debug entries|debugging enabled)",     # a debug kernel's boot
    # task_structs and the like, of any program; faults.nothing_leaks looks at the reports
    r"kmemleak: \d+ new suspected memory leaks",
    r"DMA-API: Mapped at:",     # goes with a report that is told apart by its first line
))

# Reports that come without krcore too: their first line, and what looks like a problem in the
# lines behind it. Whatever else comes before their end is of another report, and is a problem.
KNOWN = tuple(re.compile(pattern) for pattern in (
    # rping, perftest and everybody who registers two buffers of one page
    r"DMA-API: .* cacheline tracking EEXIST, overlapping mappings aren't supported",
))
# The same of a test that asks for faults; see KernelLog.pardon(). DMA debugging gets them, too,
# and is gone for good then: so such tests come last in a run.
OF_FAULTS = re.compile(r"vmalloc error: size \d+, (.* )?failed\b"
                       r"|DMA-API: cacheline tracking ENOMEM, dma-debug disabled")
# The report of a cgroup that is out of memory, for tests in which one is.
OOM = re.compile(r"invoked oom-killer: gfp_mask=")
# Each of these stands once in such a report.
REPORT_PARTS = tuple(re.compile(pattern) for pattern in (
    r"WARNING: CPU: \d+ PID: \d+ at kernel/dma/debug\.c", r"Call Trace:",
    r"DMA-API: Mapped at:",
))
REPORT_END = re.compile(r"---\[ end trace|</TASK>")
REPORT_LINES = 100


class KernelLog:
    """Reads a console file as it grows."""

    def __init__(self, path):
        self._path = path
        self._offset = 0
        self._partial = ""
        self._known = 0         # lines that a report of KNOWN may still have
        self._parts = []        # of REPORT_PARTS, those that it may still have
        self._pardoned = ()     # further ones, until the log is looked at

    def text(self):
        """All of it."""
        try:
            return self._path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def skip(self):
        """Regard everything up to now as seen."""
        self.problems()

    def pardon(self, pattern):
        """Reports that begin with this are no trouble when the log is looked at next."""
        self._pardoned += (pattern,)

    def problems(self):
        """Lines of trouble since the last call; each is reported once."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        self._offset += len(data)
        *lines, self._partial = (self._partial + data.decode(errors="replace")).split("\n")
        found = [line.rstrip("\r") for line in lines if self._is_problem(line)]
        self._pardoned = ()
        return found

    def _is_problem(self, line):
        return bool(PROBLEMS.search(self._unknown(line))) and not any(
            allowed.search(line) for allowed in ALLOWED)

    def _unknown(self, line):
        """What of a line is of no report that is known."""
        for known in KNOWN + self._pardoned:
            found = known.search(line)
            if found:
                self._known, self._parts = REPORT_LINES, self._parts + list(REPORT_PARTS)
                return line[:found.start()] + line[found.end():]
        if self._known:
            self._known = 0 if REPORT_END.search(line) else self._known - 1
        for part in self._parts:
            found = part.search(line)
            if found:
                self._parts.remove(part)
                line = line[:found.start()] + line[found.end():]
                break
        if not self._known:
            self._parts = []
        return line

    def tail(self, count=15):
        """The last lines, for a person."""
        return "\n".join(line.rstrip() for line in self.text().splitlines()[-count:])
