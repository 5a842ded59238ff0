# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run loop PATTERN: from a changed line to the first result of its test, in the cluster that
`./run up` has left running.

What has changed is compiled where the last call has left its objects, and only what comes out
different goes into the guests: krcore.ko straight from the checkout, programs and libraries of
the packages without packages being made. Then the tests are run there, each of which loads the
module and restarts the daemons that it needs. What a call took is said at its end.

New files, units, manuals and configuration are the business of `./run push`.
"""

import json
import os
import pathlib
import time

from . import host, module, packages
from .suite import Suite, can, select

NOTES = "loop.json"                         # in the cluster's folder: what its guests have
MODULE_SOURCES = ("kmod", "proto")


class Notes:
    """What the guests of a cluster have, as the calls of before have left it."""

    def __init__(self, cluster):
        self._path = cluster.folder / NOTES
        self.installed = set()              # the files of the packages
        for path in cluster.folder.glob("pushed-*"):
            self.installed |= set(json.loads(path.read_text()))
        if not self.installed:              # ./run up --bare
            raise host.ClusterError("krcore is not installed in the cluster that is up: ./run push")
        known = json.loads(self._path.read_text()) if self._path.exists() else {}
        self.files = known.get("files", {})     # digests of those that were written
        self.module = known.get("module")       # digest of the module's sources

    def save(self):
        """For the next call."""
        self._path.write_text(json.dumps({"files": self.files, "module": self.module}))


def forget(cluster):
    """The guests have got something else: the next call compares nothing."""
    (cluster.folder / NOTES).unlink(missing_ok=True)


def push_module(cluster, notes):
    """Compile krcore.ko if its sources have changed, and put it into the guests."""
    sources = host.digest(*(host.CHECKOUT / name for name in MODULE_SOURCES))
    if notes.module == sources:
        return
    notes.module = None
    module.install(cluster, module.build_from_checkout)
    notes.module = sources


def push_files(cluster, notes, staged):
    """Write programs and libraries that differ from those in the guests; returns their names."""
    changed = {}
    for path in sorted(staged.rglob("*")):
        name = "/" + str(path.relative_to(staged))
        if path.is_symlink() or not path.is_file() or name not in notes.installed \
                or path.read_bytes()[:4] != b"\x7fELF":
            continue
        made = host.digest(path)
        if notes.files.get(name) != made:
            changed[name] = made
    for name in changed:
        notes.files.pop(name, None)
        host.run(["strip", "--strip-unneeded", staged / name.lstrip("/")])
    if changed:
        cluster.each(lambda machine: packages.write_files(machine, staged, list(changed)))
    notes.files.update(changed)
    return list(changed)


class _Timed(Suite):
    """Knows when the first test had its result."""

    first = None

    def _one(self, name, function):
        super()._one(name, function)
        self.first = self.first or time.time()


class _Spans:
    """What a call took, part by part."""

    def __init__(self):
        self._last = host.clock_start()
        self._said = []

    def end(self, what):
        """A part of that name has ended."""
        now = time.time()
        self._said.append(f"{what} {now - self._last:.1f} s")
        self._last = now

    def text(self):
        """All parts."""
        return ", ".join(self._said)


def run(cluster, pattern):
    """One call; returns its exit status."""
    tests = select(pattern, can(cluster.nic, cluster.kernel.name))
    for machine in cluster.nodes():
        machine.require_alive()
        machine.kernel_problems()           # of before
    spans = _Spans()
    notes = Notes(cluster)
    spans.end("begin")
    try:
        push_module(cluster, notes)
        spans.end("module")
        with packages.staged() as staged:
            spans.end("user space")
            changed = push_files(cluster, notes, pathlib.Path(staged))
        spans.end("written")
    finally:
        notes.save()
    if changed:
        host.say("new in the guests: " + ", ".join(map(os.path.basename, changed)))
    suite = _Timed(cluster, host.build_dir() / "logs" / "loop")
    good = suite.run(tests)
    spans.end("tests")
    host.say(f"{spans.text()}; first result after {suite.first - host.clock_start():.0f} s")
    if not good:
        host.say(f"logs of the guests: {suite.log_dir}")
    print(suite.summary())
    return 0 if good else 1
