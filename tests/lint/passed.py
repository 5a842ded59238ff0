# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Slow tools: what they found nothing in is remembered, and not every run has to judge all.

A name in the cache says that a tool of this version, with this configuration and these
arguments, had no word about a source whose text, headers and preprocessed form were these.
So a file is judged again when something that it is made of has changed, and no sooner. What
was complained of is never remembered, but for what a gate lets pass.

With nothing remembered they would take half of the time that a run has. So with a limit of
time (KRCORE_TEST_SECONDS, as CI has) and in the default choice of the tests (KRCORE_LINT_SHARES)
they judge what is not committed, what the newest commits have changed, and one of SHARES shares of
the other sources, another one with each commit; the gate's line says how many those are.
"""
import hashlib
import os
import pathlib
import re
import sys
import time

from lintlib import ROOT, git, tool

sys.path.append(os.path.join(ROOT, "tests"))

from cluster import host  # noqa: E402
from runner import choice, clock, rotation  # noqa: E402

KEPT_DAYS = 30
SHARES = 4
NEWEST = 30         # commits
MARKER = re.compile(r'^# \d+ "([^"<]+)"', re.MULTILINE)


def in_turn(tree, items):
    """Those of (path, ...) that are judged by this run; all that --only names."""
    if tree.only or not (clock.limit() or os.environ.get("KRCORE_LINT_SHARES")):
        return items
    # a clone without history has one commit, which all files are new in
    status, names = git("-c", "log.showRoot=false", "log", f"-{NEWEST}", "--format=",
                        "--name-only")
    if status:
        return items
    turn = rotation.share(choice.turn(ROOT), SHARES)
    changed = {*names.splitlines(), *choice.changed_paths(ROOT, "HEAD")[1]}
    judged = [item for i, item in enumerate(items) if i % SHARES == turn or item[0] in changed]
    if len(judged) < len(items):
        tree.partly.append(f"{len(judged)} of {len(items)} files")
    return judged


class Passed:
    """The memory of one gate. `what` is what the verdict depends on beside the sources: the
    tool's version and the text of its configuration."""

    def __init__(self, name, *what):
        self._folder = host.CACHE / "lint" / name
        self._folder.mkdir(parents=True, exist_ok=True)
        self._what = what
        self._forget()
        self.found = 0

    def _forget(self):
        for path in self._folder.iterdir():
            if time.time() - path.stat().st_mtime > KEPT_DAYS * 24 * 3600:
                path.unlink(missing_ok=True)

    def _entry(self, compiler, name, args):
        """Where this source's verdict is kept; None if it can't be preprocessed."""
        status, text = tool([compiler, "-E", name] + args)
        if status:
            return None
        ours = {os.path.realpath(os.path.join(ROOT, path)) for path in MARKER.findall(text)}
        raw = [pathlib.Path(path).read_text(errors="replace") for path in sorted(ours)
               if path.startswith(ROOT + os.sep) and os.path.isfile(path)]
        return self._place(name, *args, text, *raw)

    def _place(self, *parts):
        state = hashlib.sha256()
        for part in (*self._what, *parts):
            state.update(part.replace(ROOT, ".").encode() + b"\0")
        return self._folder / state.hexdigest()

    def note(self, judged, items):
        """For the line of the gate: how many were judged of all."""
        text = f"{len(items)} files"
        if len(judged) < len(items):
            text = f"{len(judged)} of {text}: the newest, and others with the next commits"
        return text + (f"; {self.found} as they passed before" if self.found else "")

    def judge(self, compiler, name, args, check):
        """What `check()` complains of, a list; nothing, without a call, where it had nothing to
        say of the same before."""
        entry = self._entry(compiler, name, args)
        if entry and entry.exists():
            os.utime(entry)
            self.found += 1
            return []
        lines = check()
        if entry and not lines:
            entry.touch()
        return lines

    def judge_alone(self, name, text, args, check, hard):
        """As judge(), by a tool that reads this one file, whose text is `text`. Lines that are
        not `hard` are let pass, and are said again."""
        entry = self._place(name, *args, text)
        if entry.exists():
            os.utime(entry)
            self.found += 1
            return entry.read_text().splitlines()
        lines = check()
        if not any(map(hard, lines)):
            part = entry.with_suffix(f".{os.getpid()}")
            part.write_text("".join(f"{line}\n" for line in lines))
            part.replace(entry)     # whole, or not at all
        return lines
