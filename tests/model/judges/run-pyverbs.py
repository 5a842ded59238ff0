#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Run rdma-core's own tests (pyverbs) against the ConnectX model.

usage: run-pyverbs.py --model connectx-model.so --rdma-core FOLDER [options]

FOLDER holds the unpacked source of the installed rdma-core version; pyverbs
comes from the package python3-pyverbs, installed or unpacked (--packages).
Every suite (tests/test_*.py) runs by itself in one light guest.  Prints a table
of suites: run, passed, skipped, failed, and the reasons of what did not pass.
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


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", required=True)
    p.add_argument("--rdma-core", required=True, help="unpacked source, not below /tmp")
    p.add_argument("--packages", default="/", help="where python3-pyverbs is unpacked")
    p.add_argument("--kernel", default="6.1")
    p.add_argument("--link", default="eth")
    p.add_argument("--seconds", type=int, default=150, help="limit of one suite")
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


def main():
    opt = options()
    tests = os.path.join(os.path.realpath(opt.rdma_core), "tests")
    suites = opt.suite or sorted(n[:-3] for n in os.listdir(tests)
                                 if n.startswith("test_") and n.endswith(".py"))
    path = os.path.join(os.path.realpath(opt.packages), "usr/lib/python3/dist-packages")
    total, notes = collections.Counter(), []
    print("| suite | run | passed | skipped | failed |\n|---|---|---|---|---|")
    with Lab(opt.model, nodes=1, kernel=opt.kernel, link=opt.link, limit=1700, keep=opt.keep,
             memory=1536) as lab:
        gid = "--gid 3" if opt.link == "eth" else ""
        for suite in suites:
            cmd = (f"cd {tests} && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={os.path.dirname(tests)}:"
                   f"{path} /usr/bin/python3 run_tests.py -v --dev mlx5_0 {gid} {suite}")
            out = lab.guests[0].run(cmd, opt.seconds, check=False).out
            got, said = parse(out), reasons(out)
            count = collections.Counter(v for v, _ in got.values())
            bad = {n: said.get(n, r) for n, (v, r) in got.items() if v not in ("ok", "skipped")}
            print(f"| {suite} | {len(got)} | {count['ok']} | {count['skipped']} | {len(bad)} |",
                  flush=True)
            total.update(run=len(got), ok=count["ok"], skipped=count["skipped"], bad=len(bad))
            skipped = collections.Counter(r for v, r in got.values() if v == "skipped")
            notes += [f"{suite}: {nr} skipped: {r}" for r, nr in skipped.items()]
            notes += [f"{suite}: {n} failed: {r}" for n, r in bad.items()]
            if not got:
                notes.append(f"{suite}: nothing ran: {out.strip().splitlines()[-1:]}")
        for g in lab.guests:
            notes += [f"sanitizer: {p}" for p in g.sanitizer_reports()]
    print(f"| all | {total['run']} | {total['ok']} | {total['skipped']} | {total['bad']} |\n")
    for note in notes:
        print(f"- {note}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
