#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Let the judges judge the ConnectX model.

usage: run-judges.py --model connectx-model.so --tools FOLDER [options] [JUDGE...]

Boots two light guests (../dev/lab.py), runs the judges one after the other and
prints TAP.  After them the kernel logs must hold no warning and the model no
sanitizer report.  --json adds the results to a file from which --table prints
the table of docs/model.md.
"""
import argparse
import json
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "dev"))
import judges  # noqa: E402
import lifecycle  # noqa: E402,F401  registers its judges
import provider  # noqa: E402,F401  as well
import golden  # noqa: E402,F401  as well
from lab import Lab  # noqa: E402

def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", help="connectx-model.so")
    p.add_argument("--tools", help="folder with the compiled judges")
    p.add_argument("--kmod", help="cx_dcprobe.ko for this kernel; without it dc-kernel is left out")
    p.add_argument("--provider", help="krc_provider_probe.ko for this kernel; without it the "
                   "provider judges are left out")
    p.add_argument("--kernel", default="6.1", choices=["6.1", "6.12"])
    p.add_argument("--link", default="eth", choices=["eth", "ib"])
    p.add_argument("--packages", help="folder of ../dev/get-tools.sh; without it its judges are "
                   "left out")
    p.add_argument("--nodes", type=int, default=2, help="guests; three-nodes wants three")
    p.add_argument("--cpus", type=int, default=1)
    p.add_argument("--props", default="", help="more properties of the device, k=v,k=v")
    p.add_argument("--pkey", help="P_Key, as one of property pkeys, for the provider judges; "
                   "without it the one of two partitions is left out")
    p.add_argument("--trace", default="cmd+refuse+event")
    p.add_argument("--sanitize", action="store_true", help="the model has ASan and UBSan")
    p.add_argument("--limit", type=int, default=900, help="seconds a guest may live")
    p.add_argument("--keep", action="store_true", help="keep logs and traces")
    p.add_argument("--json", help="file to add results to")
    p.add_argument("--table", metavar="JSON", help="print results as a table and end")
    p.add_argument("judge", nargs="*")
    return p.parse_args()


def table(path):
    with open(path, encoding="utf-8") as f:
        rows = json.load(f)
    runs = sorted({r["run"] for r in rows})
    names = list(dict.fromkeys(r["judge"] for r in rows))
    print("| judge | " + " | ".join(runs) + " |")
    print("|---" * (len(runs) + 1) + "|")
    for name in names:
        cell = {r["run"]: "pass" if r["ok"] else "FAIL" for r in rows if r["judge"] == name}
        what = next(r["what"] for r in rows if r["judge"] == name)
        print(f"| {name}: {what} | " + " | ".join(cell.get(r, "-") for r in runs) + " |")


def add_results(path, rows):
    old = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            old = json.load(f)
    new = {(r["run"], r["judge"]) for r in rows}
    with open(path, "w", encoding="utf-8") as f:
        json.dump([r for r in old if (r["run"], r["judge"]) not in new] + rows, f, indent=1)


def choose(opt):
    """The judges of this run. One that was named must be among them."""
    here = {"kmod": opt.kmod, "provider": opt.provider, "packages": opt.packages,
            "wqe": "wqe" in opt.trace or opt.trace == "all", "three": opt.nodes > 2,
            "control": True, "partition": opt.pkey, "vf": "vf=on" in opt.props.split(","),
            "blueflame": "blueflame=on" in opt.props.split(",")}
    todo = [j for j in judges.JUDGES if opt.link in j.links
            and (not opt.judge or j.name in opt.judge) and all(here[need] for need in j.needs)]
    missing = set(opt.judge) - {j.name for j in todo}
    if missing or not todo:
        sys.exit("run-judges.py: not there, or not with these options: "
                 + (" ".join(sorted(missing)) or "any judge"))
    return todo


def main():
    opt = options()
    if opt.table:
        table(opt.table)
        return 0
    todo = choose(opt)
    run = f"{opt.kernel} {opt.link}" + (" " + opt.props if opt.props else "") \
        + (" sanitized" if opt.sanitize else "")
    rows, failed = [], 0
    props = dict(p.split("=", 1) for p in opt.props.split(",") if p)
    ctx = judges.Context(opt.link, os.path.realpath(opt.tools) if opt.tools else "")
    ctx.packages = os.path.realpath(opt.packages) if opt.packages else ""
    ctx.pkey = opt.pkey or ctx.pkey
    print(f"1..{len(todo) + 1}")
    with Lab(opt.model, nodes=opt.nodes, kernel=opt.kernel, link=opt.link, cpus=opt.cpus,
             limit=opt.limit, trace=opt.trace, sanitize=opt.sanitize, keep=opt.keep, props=props,
             extra=[k for k in (opt.kmod, opt.provider) if k]) as lab:
        if opt.keep:
            print(f"# logs in {lab.dir}", flush=True)
        for n, j in enumerate(todo, 1):
            start, ok, note = time.time(), True, ""
            try:
                ctx.guests = lab.guests
                note = j.func(ctx, *lab.guests[:2])
            except Exception:   # a judge may fail in any way
                ok, note = False, ""
                print("# " + traceback.format_exc().replace("\n", "\n# "))
            failed += not ok
            rows.append({"run": run, "judge": j.name, "what": j.what, "ok": ok})
            print(f"{'ok' if ok else 'not ok'} {n} - {j.name} {note} "
                  f"({time.time() - start:.1f} s)", flush=True)
        bad = lab.complaints()
        for line in bad:
            print(f"# {line}")
        failed += bool(bad)
        rows.append({"run": run, "judge": "kernel-log", "what": "no warning in the kernel logs",
                     "ok": not bad})
        print(f"{'not ok' if bad else 'ok'} {len(todo) + 1} - kernel-log")
    if opt.json:
        add_results(opt.json, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
