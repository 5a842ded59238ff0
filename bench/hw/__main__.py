# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The command line of ./run hw-report."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

from . import facts, hosts, measure, schema

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = 1000


def say(text):
    """Progress."""
    print(f"hw-report: {text}", file=sys.stderr, flush=True)


def checkout():
    """Version and commit of the programs."""
    version = re.search(r"project\(\s*krcore\s+VERSION\s+([\d.]+)",
                        (CHECKOUT / "CMakeLists.txt").read_text())
    found = {"version": version[1] if version else "unknown", "commit": None, "changed": None,
             "reason": None}
    try:
        git = ["git", "-C", str(CHECKOUT)]
        found["commit"] = subprocess.run([*git, "rev-parse", "HEAD"], check=True, text=True,
                                         capture_output=True).stdout.strip()
        found["changed"] = bool(subprocess.run([*git, "status", "--porcelain", "-uno"], check=True,
                                               text=True, capture_output=True).stdout.strip())
    except (OSError, subprocess.CalledProcessError) as e:
        found.update(commit=None, changed=None, reason=f"git: {e}")
    return found


def report(server, client, programs, address=None, **how):
    """Measure, and return the report; `how`: samples, turns and rounds of measure.Pair."""
    found = {}
    addresses = []
    for role, host in (("server", server), ("client", client)):
        found[role], at = facts.parse(host.run(facts.SCRIPT).out)
        addresses = at if role == "server" else addresses
    address = address or (addresses[0] if addresses else None)
    if not address:
        raise hosts.HostError("the server has no RDMA port that is up with an IPv4 address and "
                              "RoCE v2; name one by --address")
    say(f"the server is at {address}")
    pair = measure.Pair(server, client, address, say, **how)
    try:
        pair.prepare(programs)
        rows = list(pair.rows())
    finally:
        pair.clean()
    return {"format": 1, "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "krcore": checkout(), "samples": pair.samples, "address": address, "hosts": found,
            "rows": rows}


def main():
    """Measure between two hosts; the JSON goes to standard output or a file."""
    p = argparse.ArgumentParser(prog="./run hw-report", description=(
        "Measure connect, first byte, data and recovery between two hosts with ConnectX cards, "
        "beside rdma_cm and verbs. On both krcore.ko is up and the server's node is published "
        "(krcore-metactl doctor says so). What cannot be measured is null, with the reason."))
    p.add_argument("server", metavar="SERVER",
                   help="host by ssh whose memory is read, or 'local': this one")
    p.add_argument("client", metavar="CLIENT", help="host by ssh that connects, or 'local'")
    p.add_argument("--address", help="IPv4 address of the server's RDMA port")
    p.add_argument("--samples", type=int, default=SAMPLES, help="connects of a case")
    p.add_argument("--output", metavar="FILE", type=pathlib.Path)
    p.add_argument("--programs", metavar="FOLDER", type=pathlib.Path, required=True,
                   help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.samples < 1:
        p.error("--samples: at least 1")
    try:
        got = report(hosts.host(args.server), hosts.host(args.client), args.programs,
                     args.address, samples=args.samples)
    except hosts.HostError as e:
        say(e)
        return 1
    for fault in schema.check(got):
        say(f"the report is not as it should be: {fault}")
    text = json.dumps(got, indent=2) + "\n"
    if args.output:
        args.output.write_text(text)
    else:
        sys.stdout.write(text)
    measured = sum(row["reason"] is None for row in got["rows"])
    say(f"{measured} figures measured, {len(got['rows']) - measured} not: see reason")
    return 0 if measured else 1


if __name__ == "__main__":
    sys.exit(main())
