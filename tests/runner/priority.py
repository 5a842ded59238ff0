# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Processes that have what the processors of others leave, and such that have their turn again.

A group of processes is a session, too. On some machines each session has a share of its own of
the processors, whatever the policy of its processes is (sched(7), autogroup), so both are set.
"""

import contextlib
import os
import pathlib

SESSION_LAST = 19       # nice values of a session
SESSION_USUAL = 0
ROUNDS_MAX = 10         # who is being forked meanwhile has the old policy


def make_idle(group):
    """Let the processes of a group, and those they start, have what others leave."""
    _set_all(group, os.SCHED_IDLE, SESSION_LAST)


def make_usual(group):
    """Let them have their turn like others; where that is not allowed they stay as they are."""
    _set_all(group, os.SCHED_OTHER, SESSION_USUAL)


def _set_all(group, policy, session):
    with contextlib.suppress(OSError):
        pathlib.Path(f"/proc/{group}/autogroup").write_text(str(session))
    for _ in range(ROUNDS_MAX):
        if not [process for process in _members(group) if _set(process, policy)]:
            break


def _members(group):
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):      # it has ended meanwhile
            if int(stat.read_text().rpartition(")")[2].split()[2]) == group:
                yield int(stat.parent.name)


def _set(process, policy):
    """Return: whether it has changed."""
    with contextlib.suppress(OSError):
        if os.sched_getscheduler(process) != policy:
            os.sched_setscheduler(process, policy, os.sched_param(0))
            return True
    return False
