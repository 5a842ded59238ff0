# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A host to measure on: run a command there, put a file there. All else is built on these two."""

import shlex
import subprocess
from dataclasses import dataclass

SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")


class HostError(Exception):
    """A host cannot be reached; the text says why."""


@dataclass
class Result:
    """What a command gave."""
    status: int
    out: str
    err: str


def _run(words, timeout, **kwargs):
    try:
        done = subprocess.run(words, timeout=timeout, capture_output=True, check=False, **kwargs)
    except subprocess.TimeoutExpired as e:
        raise HostError(f"{' '.join(words)}: no end within {timeout} s") from e
    except OSError as e:
        raise HostError(f"{words[0]}: {e.strerror}") from e
    return Result(done.returncode, done.stdout.decode(errors="replace"),
                  done.stderr.decode(errors="replace"))


class Local:
    """This machine."""
    name = "local"

    def run(self, command, timeout=60):
        """A shell command to its end."""
        return _run(["/bin/sh", "-c", command], timeout, stdin=subprocess.DEVNULL)

    def push(self, path, target):
        """Put a program there."""
        got = _run(["install", "-m", "755", str(path), target], 60)
        if got.status:
            raise HostError(got.err.strip())


class Ssh:
    """A host by ssh, without a password."""

    def __init__(self, name):
        self.name = name

    def _words(self, command):
        return [*SSH, "--", self.name, f"exec /bin/sh -c {shlex.quote(command)}"]

    def run(self, command, timeout=60):
        """A shell command to its end."""
        got = _run(self._words(command), timeout + 15, stdin=subprocess.DEVNULL)
        if got.status == 255:
            raise HostError(f"{self.name}: {got.err.strip() or 'ssh failed'}")
        return got

    def push(self, path, target):
        """Put a program there."""
        with open(path, "rb") as program:
            got = _run(self._words(f"cat >{shlex.quote(target)} && chmod 755 "
                                   f"{shlex.quote(target)}"), 300, stdin=program)
        if got.status:
            raise HostError(f"{self.name}: {got.err.strip()}")


def host(name):
    """The host of a name: `local` is this one."""
    return Local() if name == "local" else Ssh(name)
