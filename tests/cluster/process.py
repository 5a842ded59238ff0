# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Processes of the cluster on this machine: started, watched and ended by their id.

A process is known by its id and its start time, so that a cluster left running by
one command can be ended by a later one without ever hitting a stranger.
"""

import concurrent.futures
import os
import pathlib
import signal
import subprocess
import time

from . import host


# A child made to die with its parent dies with the thread that made it: one thread,
# which lives as long as this program, makes them all.
_maker = concurrent.futures.ThreadPoolExecutor(1, "process-maker")


def _start_time(pid):
    """None: it is gone. One that is killed is not while a thread of it is left, which keeps its
    files open, though its first thread has ended already."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    state, threads = fields[0], int(fields[17])
    return None if state in "ZX" and threads < 2 else fields[19]


class Process:
    """One process of ours."""

    def __init__(self, pid, start_time, child=None):
        self.pid = pid
        self._start_time = start_time
        self._child = child

    @classmethod
    def start(cls, argv, *, log, stay=False, env=None):
        """Start a program. `stay`: it outlives this command."""
        with open(log, "ab") as output:
            child = _maker.submit(
                subprocess.Popen, [str(arg) for arg in argv], stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True, env=env,
                preexec_fn=None if stay else host.die_with_parent).result()
        return cls(child.pid, _start_time(child.pid), child)

    @classmethod
    def this(cls):
        """This very process, for its `state`."""
        return cls(os.getpid(), _start_time(os.getpid()))

    @classmethod
    def attach(cls, state):
        """The process another command started; see `state`."""
        return cls(state["pid"], state["start_time"])

    def state(self):
        """What `attach` needs."""
        return {"pid": self.pid, "start_time": self._start_time}

    def alive(self):
        """Whether it still runs."""
        if self._child:
            self._child.poll()
        return self._start_time is not None and _start_time(self.pid) == self._start_time

    def wait(self, timeout):
        """Wait for its end; False when it did not come in time."""
        deadline = time.monotonic() + timeout
        while self.alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        return True

    def end(self, grace=3):
        """SIGTERM, and SIGKILL when that is not enough."""
        for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 10)):
            if not self.alive():
                return
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return
            if self.wait(seconds):
                return

    def kill(self):
        """SIGKILL, as a power cut would be."""
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
            self.wait(10)
