# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What goes wrong, and checks of arguments: each complaint names the argument."""

import errno
import math
import operator
import os
import time


SLICE_MS = 50


class Error(OSError):
    """A call of krcore has failed: `errno`, and what the library says of it in `strerror`.

    It is an instance of the built-in exception of its errno, too, where there is one: a peer that
    does not answer in time can be caught as TimeoutError, a missing /dev/krcore as
    FileNotFoundError.
    """

    def __reduce__(self):
        return failure, (self.errno, self.strerror)


class Closed(ValueError):
    """What a call is for was closed."""


_kinds = {OSError: Error}


def failure(number, text):
    """An Error of this errno, which is a negative one of the library or a positive one."""
    number = abs(number)
    builtin = type(OSError(number, ""))
    kind = _kinds.get(builtin)
    if kind is None:
        kind = type("Error", (Error, builtin), {"__module__": "krcore", "__doc__": Error.__doc__})
        _kinds[builtin] = kind
    return kind(number, text or os.strerror(number))


# what krcore_wc.status means, as queue.h and message.h have it
STATUS = {
    "EREMOTEIO": "the peer refused the access",
    "ETIMEDOUT": "the peer does not answer; it may or may not have been done",
    "ECANCELED": "not done: one before it failed, or this end was closed",
    "EREMCHG": "it may or may not have been done",
    "EIO": "local fault",
    "ENODEV": "the device is gone",
    "ENOMSG": "the peer did not want it",
    "ECONNREFUSED": "nobody listens there, or the program refused",
    "EBUSY": "as many wait to be accepted there as may",
    "ESTALE": "the peer's node was started anew: connect with fresh=True",
    "ECONNRESET": "the peer's program or node has ended",
}


def status_failure(status, what, why=""):
    """The Error of a completion, or of a letter, with this status."""
    why = why or STATUS.get(errno.errorcode.get(-status, "")) or os.strerror(-status)
    return failure(status, f"{what}: {why}")


def number_of(name, value, least, most):
    """An integer argument in its range."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: an integer is needed, not {type(value).__name__}") from None
    if not least <= value <= most:
        raise ValueError(f"{name}: {least} to {most}, not {value}")
    return value


def bytes_of(name, value, most):
    """The bytes of an object that has a buffer."""
    try:
        with memoryview(value) as view:
            nr = view.nbytes
            if nr <= most:
                return bytes(view)
    except TypeError:
        raise TypeError(f"{name}: an object with bytes is needed, not "
                        f"{type(value).__name__}") from None
    raise ValueError(f"{name}: at most {most} bytes, not {nr}")


def seconds_of(value, least=0.0, most=math.inf, name="timeout"):
    """A time limit, None for none where the most is infinite."""
    if value is None and most == math.inf:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}: seconds are needed, not {type(value).__name__}")
    if not least <= value <= most:     # nor is NaN
        raise ValueError(f"{name}: {least:g} to {most:g} seconds, not {value}")
    return float(value)


class Deadline:
    """The end of a time limit in seconds; None: there is none."""

    def __init__(self, seconds):
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self):
        """Seconds that are left, at least 0; infinity without a limit."""
        return math.inf if self._end is None else max(self._end - time.monotonic(), 0.0)

    def slice(self):
        """Milliseconds to wait at once: a thread looks now and then whether all is closed."""
        return int(min(self.left() * 1000, SLICE_MS))

    def milliseconds(self, most):
        """What is left, at least 1, for a call that takes 0 for its default."""
        return max(1, math.ceil(min(self.left() * 1000, most)))
