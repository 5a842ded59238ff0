# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Runs the tests of the cluster: functions test_*(cluster) in tests/cluster/test_*.py.

One cluster serves all tests of a run. A test passes when it returns; it fails when it
raises, overruns its time limit, leaves a guest dead, or when any guest's kernel log
has new trouble. After a failure the guests are made whole again, or the rest of the
run is failed without being run: nothing waits for a broken cluster.
"""

import importlib
import inspect
import json
import re
import shutil
import signal
import time
import traceback

from . import accel, host

DEFAULT_LIMIT_SECONDS = 180


class Skip(Exception):
    """Raised by a test that does not apply here; the reason is its text."""


class Overrun(Exception):
    """A test ran for longer than it may."""


def limit(seconds):
    """Decorator: how long a test may take, when that is not the usual three minutes."""
    def mark(function):
        function.limit_seconds = seconds
        return function
    return mark


def needs(what):
    """Decorator: what a test is for, as NEEDS says it of a whole file; see select()."""
    def mark(function):
        function.needs = what
        return function
    return mark


def check(condition, text):
    """An assertion that says what it saw."""
    if not condition:
        raise AssertionError(text)


class _Slowdown:
    times = 1       # by how much longer than it is written one waits; a Suite knows


def wait_until(condition, timeout, what, pause=0.2):
    """Wait until `condition()` is true and return it; an error that names `what` if not: a text, or
    a function that makes it then.

    `timeout` says when to give up, and nothing of what is tested: it is longer where guests are
    slow. What happens too late is seen by a count of what caused it.
    """
    timeout *= _Slowdown.times
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {timeout} s: {what() if callable(what) else what}")
        time.sleep(pause)


def select(pattern, can=("dc", "rxe", "debug")):
    """(name, function, needs_krcore) of all tests whose name matches.

    They are in the order of their files; a file that says LAST comes after all others, for
    what it does to a guest makes later checks weaker. A file says in NEEDS what its tests
    are for, and a test under @needs: "dc", a card that has it; "rxe", soft RoCE; "debug", the
    debug kernel. Where that is not in `can` they are left out, so that a skip is one of a test
    that might have run.
    """
    found, last, without = [], [], {}
    for path in sorted((host.TESTS / "cluster").glob("test_*.py")):
        module = importlib.import_module(f"cluster.{path.stem}")
        functions = [(name, function) for name, function in vars(module).items()
                     if name.startswith("test_") and inspect.isfunction(function)
                     and function.__module__ == module.__name__]
        functions.sort(key=lambda item: item[1].__code__.co_firstlineno)
        for name, function in functions:
            full = f"{path.stem.removeprefix('test_')}.{name.removeprefix('test_')}"
            if not re.search(pattern, full):
                continue
            need = getattr(function, "needs", getattr(module, "NEEDS", None))
            if need and need not in can:
                without[need] = without.get(need, 0) + 1
                continue
            order = last if getattr(module, "LAST", False) else found
            order.append((full, function, getattr(module, "NEEDS_KRCORE", True)))
    for need, count in sorted(without.items()):
        host.say(f"without {count} tests that are for {need}")
    if not found + last:
        raise host.ClusterError(f"no cluster test matches {pattern}"
                                + (f" that is not for {', '.join(without)}" if without else ""))
    return found + last


def can(nic, kernel):
    """What tests may need of a card and a kernel (its name), for select()."""
    return [what for what, there in (("dc", nic.dc), ("rxe", nic.name == "rxe"),
                                     ("debug", kernel == "debug")) if there]


def share(tests, which):
    """One of several equal shares of the tests; `which` is "2/4" for the second of four.

    They are dealt like cards, for tests that take long stand beside each other. All shares
    together are all tests, each once, and each share has the order of the whole.
    """
    number, count = (int(word) for word in which.split("/"))
    if not 1 <= number <= count:
        raise host.ClusterError(f"share {which}: there is no such share")
    return tests[number - 1::count]


def _alarm(_signal, _frame):
    raise Overrun()


class Suite:
    """One run over one cluster."""

    def __init__(self, cluster, log_dir):
        self.cluster = cluster
        self.log_dir = log_dir
        self.passed = self.failed = self.skipped = 0
        self._took = {}     # name of a test: seconds
        self._times = _Slowdown.times = accel.slowness(cluster.kernel)
        self._broken = None

    def run(self, tests):
        """Run these tests; prints a line for each. Returns whether all passed."""
        shutil.rmtree(self.log_dir, ignore_errors=True)
        self.log_dir.mkdir(parents=True)
        signal.signal(signal.SIGALRM, _alarm)
        try:
            for name, function, _ in tests:
                self._one(name, function)
        finally:
            (self.log_dir / "times.json").write_text(json.dumps(self._took, indent=1) + "\n")
            self.save_logs("end")
        return self.failed == 0

    def _one(self, name, function):
        seconds = getattr(function, "limit_seconds", DEFAULT_LIMIT_SECONDS)
        seconds *= self._times
        began = time.monotonic()
        trouble = self._broken or self._attempt(function, seconds)
        took = self._took[name] = time.monotonic() - began
        skip = trouble if isinstance(trouble, Skip) else None
        if not self._broken:
            trouble = self._aftermath(None if skip else trouble)
        if skip and not trouble:
            self.skipped += 1
            print(f"skip {took:6.1f} s  {name}: {skip}", flush=True)
            return
        if not trouble:
            self.passed += 1
            print(f"ok   {took:6.1f} s  {name}", flush=True)
            return
        self.failed += 1
        print(f"FAIL {took:6.1f} s  {name}", flush=True)
        for line in trouble.splitlines():
            print(f"                {line}", flush=True)
        if not self._broken:
            self.save_logs(name)
            self._repair()

    def _attempt(self, function, seconds):
        """Run one test; returns None, the trouble as text, or a Skip."""
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                self.cluster.fabric.forget()
                function(self.cluster)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Skip as skip:
            return skip
        except Overrun:
            return f"did not end within {seconds} s"
        except AssertionError as error:
            return f"{error}\n{_where(error)}"
        except host.ClusterError as error:
            return f"{error}\n{_where(error)}"
        except Exception:
            return traceback.format_exc()
        return None

    def _aftermath(self, trouble):
        """What a test left behind, whatever it said itself."""
        lines = [trouble] if trouble else []
        for machine in self.cluster.nodes():
            lines += [f"{machine.name}: kernel: {line}" for line in machine.kernel_problems()]
        for machine in self.cluster.dead():
            lines.append(f"{machine.name}: the guest died\n{machine.log.tail()}")
        return "\n".join(lines)

    def _repair(self):
        """After a failure: links up, nothing cut, every guest there and answering."""
        try:
            self.cluster.fabric.reset()
            for machine in self.cluster.dead():
                machine.start()
                machine.wait_ready(self.cluster.boot_timeout())
            for machine in self.cluster.nodes():
                machine.resume()
                machine.link_up()
                machine.agent.close()
                machine.run("true", timeout=30)
                machine.kernel_problems()
        except host.ClusterError as error:
            self._broken = f"not run: the cluster is broken: {error}"

    def summary(self):
        """The last line of a run."""
        return f"{self.passed} passed, {self.failed} failed" \
            + (f", {self.skipped} skipped" if self.skipped else "")

    def save_logs(self, name):
        """Keep what the guests and their machines said, for a person."""
        folder = self.log_dir / name
        folder.mkdir(parents=True, exist_ok=True)
        for machine in self.cluster.nodes():
            (folder / f"{machine.name}.kernel.log").write_text(machine.kernel_log())
            if not machine.alive():
                continue
            try:
                journal = machine.run("journalctl -b --no-pager -o short-monotonic | tail -3000",
                                      timeout=30, check=False)
                (folder / f"{machine.name}.journal.log").write_text(journal.out)
            except host.ClusterError as error:
                (folder / f"{machine.name}.journal.log").write_text(f"{error}\n")


def _where(error):
    """The place in the test that an error came from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if "/test_" in frame.filename]
    if not frames:
        return ""
    return f"at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}: {frames[-1].line}"
