# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Time since the command began, lines of progress, and the time there is."""

import os
import resource
import sys
import time

START = float(os.environ.get("KRCORE_CLOCK_START") or time.time())


def elapsed():
    """Seconds since the command began."""
    return time.time() - START


def show(seconds):
    """Seconds as a person reads them: 12:05."""
    return f"{int(seconds) // 60:2d}:{int(seconds) % 60:02d}"


def say(text):
    """One line of progress."""
    print(f"[{show(elapsed())}] {text}", file=sys.stderr, flush=True)


def processor_seconds():
    """What all that was run and has ended took of the processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def limit():
    """Seconds that the whole command may take (KRCORE_TEST_SECONDS), or None."""
    text = os.environ.get("KRCORE_TEST_SECONDS")
    return int(text) if text else None
