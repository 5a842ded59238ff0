# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Processes that have what the processors of others leave, and such that have their turn again.

All processes of a session are meant, for what they start may be in groups of its own (ninja(1),
timeout(1)). On some machines each session has a share of its own of the processors, whatever the
policy of its processes is (sched(7), autogroup), so both are set. A policy is that of one thread;
what it starts later inherits it.
"""

import contextlib
import functools
import os
import pathlib
import subprocess
import sys
import time

SESSION_LAST = 19       # nice values of a session
SESSION_USUAL = 0
SESSION_SECONDS = 0.15  # the kernel takes one such value in a tenth of a second
ROUNDS_MAX = 10         # a child that is being forked meanwhile has the old policy
USUAL = os.sched_getscheduler(0)
BACK = "import os; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)); " \
       f"os.sched_setscheduler(0, {USUAL}, os.sched_param(0))"


def make_idle(session):
    """Let the processes of a session, and those they start, have what others leave."""
    _set_all(session, os.SCHED_IDLE, SESSION_LAST)


def make_usual(session):
    """Let them have their turn like this process; see can_return()."""
    _set_all(session, USUAL, SESSION_USUAL)


@functools.lru_cache(1)
def can_return():
    """Whether make_usual() is allowed: not everybody may have more again."""
    return USUAL == os.SCHED_OTHER and not subprocess.run(
        [sys.executable, "-c", BACK], stderr=subprocess.DEVNULL, check=False).returncode


def _set_all(session, policy, nice):
    _set_session(session, nice)
    for _ in range(ROUNDS_MAX):
        if not [thread for thread in _threads(session) if _set(thread, policy)]:
            break


def _set_session(session, nice):
    path = pathlib.Path(f"/proc/{session}/autogroup")
    for _ in range(2):
        try:
            path.write_text(str(nice))
            return
        except BlockingIOError:
            time.sleep(SESSION_SECONDS)
        except OSError:         # there are none, or it has ended
            return


def _threads(session):
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):      # it has ended meanwhile
            if int(stat.read_bytes().rpartition(b")")[2].split()[3]) == session:
                yield from (int(name) for name in os.listdir(stat.parent / "task"))


def _set(thread, policy):
    """Return: whether it has changed."""
    with contextlib.suppress(OSError):
        if os.sched_getscheduler(thread) != policy:
            os.sched_setscheduler(thread, policy, os.sched_param(0))
            return True
    return False
