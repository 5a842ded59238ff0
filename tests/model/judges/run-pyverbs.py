#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Run rdma-core's own tests (pyverbs) against the ConnectX model.

usage: run-pyverbs.py --model connectx-model.so --packages FOLDER [options] [SUITE...]

FOLDER is what ../dev/get-tools.sh prints: Debian's python3-pyverbs, with the
tests of rdma-core that it carries.  --rdma-core names another tree that has a
folder tests.  Every suite (tests/test_*.py) runs by itself in one light guest.
Prints a table of suites: run, passed, skipped, failed, and the reasons of what
did not pass; or, with --tap, one TAP line a suite, which is a skip if all of its
tests were skipped.
"""
import argparse
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "dev"))
from lab import Lab  # noqa: E402

LINE = re.compile(r"^(test_\w+) \((?:tests\.)?(test_\w+)\.([\w.]+)\)")
VERDICT = re.compile(r"\.\.\. (ok|FAIL|ERROR|skipped)(.*)$")

# What fails on any adapter of these capabilities, and why.
KNOWN = {
    "test_mlx5_dc.DCTest.test_odp_dc_traffic":
        "registers on-demand memory before it asks whether there is any; the kernel answers "
        "EINVAL, the test skips itself on EOPNOTSUPP only",
}
# Lines of the kernel log that tests ask for.
PROVOKED = {
    "status bad size too many outstanding CQEs(0x40)":
        "test_cq shrinks a queue below what is in it, and wants that refused",
}


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", required=True)
    p.add_argument("--packages", required=True, help="what get-tools.sh prints, not below /tmp")
    p.add_argument("--rdma-core", help="folder that holds tests/; PACKAGES/rdma-core if not given")
    p.add_argument("--kernel", default="6.1")
    p.add_argument("--link", default="eth")
    p.add_argument("--seconds", type=int, default=150, help="limit of one suite")
    p.add_argument("--tap", action="store_true", help="one line a suite, as a test harness reads")
    p.add_argument("--sanitize", action="store_true", help="the model has ASan and UBSan")
    p.add_argument("--keep", action="store_true")
    p.add_argument("suite", nargs="*")
    return p.parse_args()


def parse(out):
    """Verdicts of one suite: name -> (verdict, reason)."""
    got, name = collections.OrderedDict(), None
    for line in out.splitlines():
        head = LINE.match(line)
        if head:
            name = f"{head[3].split('.')[0]}.{head[1]}"
        verdict = VERDICT.search(line)
        if name and verdict:
            got[name] = (verdict[1], verdict[2].strip())
            name = None
    if name:
        got[name] = ("HANG", "did not end")
    return got


def reasons(out):
    """What each failed test said last."""
    said = {}
    for part in re.split(r"^={60,}$", out, flags=re.M)[1:]:
        head = re.search(r"^(?:ERROR|FAIL): (test_\w+) "
                         r"\((?:tests\.)?test_\w+\.([\w.]+)\)", part, re.M)
        lines = [x for x in part.splitlines()
                 if re.match(r"^\w[\w.]*(Error|Exception|Failure)?\b.*:", x)]
        if head and lines:
            said[f"{head[2].split('.')[0]}.{head[1]}"] = lines[-1][:150]
    return said


class Suite:
    """One suite and what came out of it."""

    def __init__(self, name, result):
        self.name, self.out = name, result.out
        self.got = parse(self.out)
        said = reasons(self.out)
        self.known = [n for n, (v, _) in self.got.items()
                      if v not in ("ok", "skipped") and f"{name}.{n}" in KNOWN]
        self.skipped = collections.Counter(r for v, r in self.got.values() if v == "skipped")
        self.bad = {n: said.get(n, r) for n, (v, r) in self.got.items()
                    if v not in ("ok", "skipped") and n not in self.known}
        self.passed = sum(v == "ok" for v, _ in self.got.values())
        # unittest says how many it ran, and ends with 1 where one of them failed
        if not re.search(r"^Ran \d+ tests?", self.out, re.M) or \
                bool(result.code) != bool(self.known or self.bad):
            self.bad["the suite"] = f"ended with {result.code}"
        for suite, _, test in (known.partition(".") for known in KNOWN):
            if suite == name and test not in self.known:
                self.bad[test] = "it did not fail, though it is listed as one that does"

    def ok(self):
        """Something ran or was skipped by itself, and nothing failed."""
        return bool(self.got) and not self.bad

    def tested(self):
        """Something of it was tested: not all of its tests were skipped."""
        return sum(self.skipped.values()) < len(self.got)

    def row(self):
        """A row of the table."""
        return (f"| {self.name} | {len(self.got)} | {self.passed} | "
                f"{sum(self.skipped.values())} | {len(self.bad) + len(self.known)} |")

    def notes(self):
        """Lines that say why tests did not pass."""
        if not self.got:
            yield f"{self.name}: nothing ran: {self.out.strip().splitlines()[-1:]}"
        for reason, count in self.skipped.items():
            yield f"{self.name}: {count} skipped: {reason}"
        for test in self.known:
            yield f"{self.name}: {test} failed as expected: {KNOWN[f'{self.name}.{test}']}"
        for test, reason in self.bad.items():
            yield f"{self.name}: {test} failed: {reason}"


def show_tap(number, suite):
    """One line a suite, and why it failed."""
    if suite.ok() and not suite.tested():
        print(f"ok {number} - {suite.name} # SKIP all {len(suite.got)}: "
              + "; ".join(suite.skipped), flush=True)
        return
    print(f"{'ok' if suite.ok() else 'not ok'} {number} - {suite.name} {suite.passed} passed, "
          f"{sum(suite.skipped.values())} skipped"
          + (f", {len(suite.known)} failed as expected" if suite.known else ""), flush=True)
    if not suite.ok():
        for note in suite.notes():
            print(f"# {note}")


def show_table(suites, complaints):
    """All suites, then the reasons."""
    count = [len(s.got) for s in suites], [s.passed for s in suites], \
        [sum(s.skipped.values()) for s in suites], [len(s.bad) + len(s.known) for s in suites]
    print("| all | " + " | ".join(str(sum(column)) for column in count) + " |\n")
    for note in [note for s in suites for note in s.notes()] + complaints:
        print(f"- {note}")


def main():
    opt = options()
    packages = os.path.realpath(opt.packages)
    tree = os.path.realpath(opt.rdma_core or os.path.join(packages, "rdma-core"))
    tests = os.path.join(tree, "tests")
    names = opt.suite or sorted(n[:-3] for n in os.listdir(tests)
                                if n.startswith("test_") and n.endswith(".py"))
    path = os.path.join(packages, "usr/lib/python3/dist-packages")
    gid = "--gid 3" if opt.link == "eth" else ""
    suites = []
    print(f"1..{len(names) + 1}" if opt.tap else
          "| suite | run | passed | skipped | failed |\n|---|---|---|---|---|")
    with Lab(opt.model, nodes=1, kernel=opt.kernel, link=opt.link, limit=1700, keep=opt.keep,
             memory=1536, sanitize=opt.sanitize) as lab:
        guest = lab.guests[0]
        for name in names:
            result = guest.run(f"cd {tests} && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={tree}:{path} "
                               f"/usr/bin/python3 run_tests.py -v --dev mlx5_0 {gid} {name}",
                               opt.seconds, check=False)
            suites.append(Suite(name, result))
            if opt.tap:
                show_tap(len(suites), suites[-1])
            else:
                print(suites[-1].row(), flush=True)
        complaints = [line for line in lab.complaints()
                      if not any(text in line for text in PROVOKED)]
    if opt.tap:
        for line in complaints:
            print(f"# {line}")
        print(f"{'not ok' if complaints else 'ok'} {len(names) + 1} - kernel-log")
    else:
        show_table(suites, complaints)
    return 0 if all(s.ok() for s in suites) and not complaints else 1


if __name__ == "__main__":
    sys.exit(main())
