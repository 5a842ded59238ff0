# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""This machine: folders, programs run on it, progress with a clock.

Everything made once and kept lies in the cache, under a name that contains a
digest of what it was made from; a thing whose making failed is never there.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
TESTS = CHECKOUT / "tests"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                     pathlib.Path.home() / ".cache") / "krcore"

_start = float(os.environ.get("KRCORE_CLOCK_START", 0)) or time.time()


class ClusterError(Exception):
    """Something that a person is told in one sentence, without a traceback."""


def build_dir():
    """Where everything made from this checkout lies."""
    return pathlib.Path(os.environ.get("KRCORE_BUILD") or CHECKOUT / "build")


def clock_start():
    """When the command began, as of time.time()."""
    return _start


def say(text):
    """One line of progress, with the time since the command began."""
    elapsed = int(time.time() - _start)
    print(f"[{elapsed // 60:2d}:{elapsed % 60:02d}] {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text, usually=None):
    """Say that a thing begins, that it still goes on, and how long it took."""
    done = threading.Event()
    began = time.monotonic()

    def remind():
        while not done.wait(30):
            say(f"  ... {text}: {time.monotonic() - began:.0f} s so far")

    say(f"{text}" + (f" (usually {usually})" if usually else ""))
    threading.Thread(target=remind, daemon=True).start()
    try:
        yield
    finally:
        done.set()
    took = time.monotonic() - began
    if took >= 3:
        say(f"  {text}: done in {took:.0f} s")


def die_with_parent():
    """For preexec_fn: a child that must not outlive this process."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def run(argv, *, timeout=600, log=None, **kwargs):
    """Run a program to its end; ClusterError with its last lines when it fails."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    argv = [str(arg) for arg in argv]
    with tempfile.TemporaryFile() as output:
        try:
            result = subprocess.run(argv, stdout=output, stderr=subprocess.STDOUT,
                                    timeout=timeout, check=False, **kwargs)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"{argv[0]} did not end within {timeout} s") from None
        except FileNotFoundError:
            raise ClusterError(f"{argv[0]}: no such program") from None
        output.seek(0)
        text = output.read().decode(errors="replace")
    if log:
        pathlib.Path(log).write_text(text)
    if result.returncode:
        tail = "\n".join(text.splitlines()[-25:])
        raise ClusterError(f"{' '.join(argv)[:300]}: failed with status "
                           f"{result.returncode}\n{tail}")
    return text


def as_root(argv):
    """The same command with the rights of root."""
    if os.geteuid() == 0:
        return list(argv)
    return ["sudo", "--preserve-env=KRCORE_APT_SOURCES,KRCORE_APT_OPTIONS", *argv]


def digest(*parts):
    """A short name for what a thing is made from: paths give their content."""
    state = hashlib.sha256()
    for part in parts:
        if isinstance(part, pathlib.Path):
            files = sorted(p for p in part.rglob("*") if p.is_file()) \
                if part.is_dir() else [part]
            for path in files:
                state.update(f"{path.name} {path.stat().st_mode & 0o111} ".encode())
                state.update(path.read_bytes())
        else:
            state.update(repr(part).encode())
        state.update(b"\0")
    return state.hexdigest()[:16]


@contextlib.contextmanager
def locked(path):
    """Hold a lock file: two commands do not make the same thing at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another command that is making {path.stem}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def making(name):
    """Hold the right to make a thing in the build folder, where runs may go on side by side."""
    return locked(build_dir() / "locks" / name)


@contextlib.contextmanager
def made_whole(target):
    """A folder to fill; takes the name `target` only when that went well."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-",
                                     ignore_cleanup_errors=True) as work:
        whole = pathlib.Path(work) / "whole"
        whole.mkdir()
        yield whole
        os.rename(whole, target)


def keep_newest(folder, count):
    """Remove all but the `count` most recently used entries of a cache folder."""
    for partial in folder.glob(".new-*"):
        if time.time() - partial.stat().st_mtime > 24 * 3600:
            shutil.rmtree(partial, ignore_errors=True)
    entries = sorted((p for p in folder.glob("[!.]*") if p.is_dir()),
                     key=lambda p: p.stat().st_mtime, reverse=True)
    for old in entries[count:]:
        shutil.rmtree(old, ignore_errors=True)


def compiled(source, *flags, includes=()):
    """A small C program of the harness, built once for its content and that of what it includes."""
    program = CACHE / "bin" / f"{source.stem}-{digest(source, flags, *includes)}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        partial = program.with_suffix(f".{os.getpid()}")
        run(["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", *flags,
             "-o", partial, source])
        partial.rename(program)
    return program
