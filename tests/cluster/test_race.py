# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore-race, the key-value store over queues: needs a card with DC (--nic cx)."""

import contextlib
import re

from . import krcore, programs
from .suite import Skip, check, limit, wait_until
from .test_queues import node_up

NEEDS = "dc"
TOOL = "krcore-race"
SERVER = "node1"


def _prepare(cluster):
    if not cluster.nic.dc:
        raise Skip("needs a card with DC")
    node_up(cluster)
    for machine in cluster.nodes("node") + cluster.nodes("metaserver"):
        programs.install(machine, "race/krcore-race")
        programs.install(machine, "race/libkrcore-race.so", "/usr/local/lib/libkrcore-race.so.0")
        machine.run("ldconfig")


@contextlib.contextmanager
def serving(machine, words=""):
    """A table on `machine`, until the end of the block."""
    unit = "test-race"
    machine.run(f"systemctl stop {unit} 2>/dev/null; systemctl reset-failed {unit} 2>/dev/null; "
                f"systemd-run --quiet --unit={unit} -p LimitMEMLOCK=infinity "
                f"/usr/local/bin/{TOOL} {words} serve", check=False)
    said = f"journalctl -u {unit} _SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID " \
           f"{unit}) -o cat --no-pager"
    try:
        wait_until(lambda: "serving" in machine.run(said, check=False).out, 30,
                   f"{machine.name} serves a table")
        yield unit
    finally:
        if machine.alive():
            machine.run(f"systemctl stop {unit}", timeout=60, check=False)


def tool(machine, words, status=0, timeout=60, given=None):
    """One run of the tool; what it printed, after its status was compared."""
    pipe = f"printf '%s' '{given}' | " if given is not None else ""
    result = machine.run(f"{pipe}{TOOL} {words}", timeout=timeout, check=False)
    check(result.status == status, f"{words}: {result!r}")
    return result


def report(machine, words="check " + SERVER, status=0, timeout=120):
    """The numbers that `check` prints."""
    out = tool(machine, words, status, timeout).out
    return {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", out, re.M)}


@limit(400)
def test_put_and_get(cluster):
    """Each command, from two guests; what is asked for wrongly is refused with its name."""
    _prepare(cluster)
    server, first, second = (cluster.node(name) for name in (SERVER, "node2", "meta1"))
    with serving(server):
        tool(first, f"get {SERVER} apple", 3)
        tool(first, f"put {SERVER} apple red")
        check(tool(second, f"get {SERVER} apple").out == "red\n", "another guest sees it")
        tool(second, f"insert {SERVER} apple blue", 3)
        tool(second, f"update {SERVER} apple green")
        result = tool(first, f"--verbose get {SERVER} apple")
        check(result.out == "green\n" and "searches 1 search_reads 3 " in result.err, repr(result))
        tool(first, f"update {SERVER} pear yellow", 3)
        tool(first, f"insert {SERVER} pear yellow")
        check(sorted(tool(second, f"scan {SERVER}").out.splitlines())
              == ["apple\tgreen", "pear\tyellow"], "scan")
        tool(second, f"del {SERVER} apple")
        tool(first, f"del {SERVER} apple", 3)
        check(report(first)["entries"] == 1, "one entry is left")
        # the longest value, and what is too long
        long = "head -c 65536 /dev/zero | tr '\\0' x"
        first.run(f"{long} | {TOOL} put {SERVER} long -", timeout=60)
        check(len(tool(second, f"get {SERVER} long").out) == 65537, "the longest value")
        result = first.run(f"{{ {long}; echo; }} | {TOOL} put {SERVER} long -", check=False)
        check(result.status == 2 and "longer" in result.err, repr(result))
    result = tool(second, f"get {SERVER} pear", 1)
    check("no such key, table or node" in result.err, repr(result))
    for machine in (server, first):
        krcore.node_gone(machine)
    result = tool(first, f"get {SERVER} pear", 1)
    check("/dev/krcore" in result.err, f"without module: {result!r}")
