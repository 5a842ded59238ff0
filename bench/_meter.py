# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The meter of ./run bench cost: made, and read on the host while guests run.

cost/meter.c, a plugin of QEMU, writes counters of a guest and a record of each marked
operation to a file that is mapped here.
"""

import array
import bisect
import collections
import mmap
import os
import pathlib
import struct
import sys

from cluster import host
from cluster.machine import METER

SOURCE = pathlib.Path(__file__).with_name("cost") / "meter.c"
HEADERS = host.TESTS / "model" / "tools" / "prepare-headers.sh"     # of the QEMU installed
HEAD = struct.Struct("<QIIIIQ")
NAMES = 256             # bytes
PLACE = 24
MAGIC = 0x3174656D2E72636B


PROFILE = "KRCORE_BENCH_PROFILE"        # not empty: count by address, too
PROFILED = 60           # functions that a profile names


def plugin():
    """What follows QEMU's -plugin, without its file. Guests are emulated from here on: a
    processor's instructions cannot be counted like that."""
    os.environ.setdefault("KRCORE_ACCEL", "tcg")
    headers = host.run(["sh", HEADERS]).strip().splitlines()[-1]
    library = host.compiled(SOURCE, "-shared", "-fPIC", f"-I{headers}/include/qemu")
    return f"file={library}" + (",profile=on" if os.environ.get(PROFILE) else "")


class Meter:
    """The counters of one guest. `names`: what is counted."""

    def __init__(self, machine):
        path = machine.folder / METER
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), os.path.getsize(path), prot=mmap.PROT_READ)
        magic, counters, self._table, self._max, _, _ = HEAD.unpack_from(self._map)
        if magic != MAGIC:
            raise host.ClusterError(f"{path}: not what cost/meter.c writes")
        self._counters = struct.Struct(f"<{counters}Q")
        at = HEAD.size + self._counters.size
        self.names = self._map[at:self._map.find(b"\0", at)].decode().split()

    def count(self):
        """Records so far."""
        return HEAD.unpack_from(self._map)[5]

    def live(self):
        """All counters of the guest, now."""
        return dict(zip(self.names, self._counters.unpack_from(self._map, HEAD.size)))

    def records(self, since):
        """The records from a number on, a dictionary each."""
        until = self.count()
        if until - since > self._max:
            raise host.ClusterError(f"{until - since} records, of which {self._max} are kept")
        return [self._record(number % self._max) for number in range(since, until)]

    def _record(self, at):
        place = self._table + at * (8 + self._counters.size)
        return {"vain": struct.unpack_from("<Q", self._map, place)[0],
                **dict(zip(self.names, self._counters.unpack_from(self._map, place + 8)))}

    def places(self, quiet):
        """{address: instructions} of the kernel's code, and the number of operations they are
        of: all so far, or those that no interrupt came into."""
        at, count, calm = struct.unpack_from("<IIQ", self._map,
                                             HEAD.size + self._counters.size + NAMES)
        if not at:
            return collections.Counter(), 0
        values = array.array("Q", self._map[at:at + PLACE * count])
        took = collections.Counter(dict(zip(values[::3], values[2::3] if quiet else values[1::3])))
        return took, calm if quiet else self.count()


class Symbols:
    """Functions of a guest's kernel and of its modules, by address."""

    def __init__(self, machine):
        lines = [line.split() for line in machine.run("cat /proc/kallsyms").out.splitlines()]
        found = sorted((int(line[0], 16), line[2]) for line in lines if line[1] in "tTwW")
        self._addresses = [address for address, _ in found]
        self._names = [name for _, name in found]

    def at(self, address):
        """The function that an address is in."""
        index = bisect.bisect_right(self._addresses, address) - 1
        return self._names[index] if index >= 0 else f"{address:x}"

    def functions(self, places):
        """{function: instructions} of {address: instructions}."""
        found = collections.Counter()
        for address, took in places.items():
            found[self.at(address)] += took
        return found

    def say(self, before, after, per=1):
        """The functions in which the instructions of an operation were spent, the dearest first;
        of what Meter.places() gave before and after. `per`: requests of an operation."""
        places, operations = after[0] - before[0], after[1] - before[1]
        for name, took in self.functions(places).most_common(PROFILED):
            print(f"{took / (operations or 1) / per:12.1f} {name}", file=sys.stderr)


def symbols(machine):
    """Symbols, if a profile is wanted, or None."""
    return Symbols(machine) if os.environ.get(PROFILE) else None
