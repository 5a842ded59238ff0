# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Tracepoints of the module in a guest: switched on for a block, and read.

Owns: nothing in a guest for longer than the block; once mounted, tracefs stays. Each block has an
instance of its own, so that one may stand inside of another.
"""

import contextlib
import itertools
import os
import re

from .suite import check

FOLDER = "/sys/kernel/tracing"
BUFFER_KB = 16384       # of each processor: some 100,000 events
LINE = re.compile(r"^.*\]\s.*\s\d+\.\d+: (krc_\w+): (.*)$", re.M)


_numbers = itertools.count()


def _switch(machine, folder, names, value):
    for path in [f"events/krcore/{name}/enable" for name in names] or ["events/krcore/enable"]:
        machine.run(f"echo {value} >{folder}/{path}")


def _recorded(machine, folder):
    said = machine.run(f"cat {folder}/trace {folder}/per_cpu/cpu*/stats").out
    lost = [line for line in re.findall(r"^(?:commit )?overrun: .*$", said, re.M)
            if not line.endswith(": 0")]
    check(not lost, f"the first events are lost, the buffer is too small: {lost}")
    return LINE.findall(said)


@contextlib.contextmanager
def recording(machine, *names):
    """Record these tracepoints of krcore in a block, all of them if none is named.

    Gives a function that returns what was recorded so far: (name, words) of each event. It fails
    if the first ones have been overwritten.
    """
    folder = f"{FOLDER}/instances/krc{os.getpid()}-{next(_numbers)}"
    machine.run(f"mountpoint -q {FOLDER} || mount -t tracefs none {FOLDER}; mkdir {folder}")
    try:
        machine.run(f"echo {BUFFER_KB} >{folder}/buffer_size_kb")
        _switch(machine, folder, names, 1)
        yield lambda: _recorded(machine, folder)
    finally:
        _switch(machine, folder, names, 0)
        machine.run(f"rmdir {folder}")
