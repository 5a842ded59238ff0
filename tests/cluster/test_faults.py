# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Out of memory at every allocation of the module, and nothing leaks: on the debug kernel.

A call whose allocation fails says so and leaves nothing behind; the next one succeeds.
The programs in tests/module let each allocation fail in its turn; what they leave is
looked for by kmemleak.
"""

import contextlib
import re

from . import debugfs, krcore, programs
from .nodes import AS_USER, client, held, ports, program, serve, tap, up
from .probe import Probe
from .suite import Skip, check, limit, wait_until

FAULTS = ("failslab", "fail_page_alloc", "fail_usercopy")
# A report of what a module allocated that is gone: its addresses have no names any more.
OURS = re.compile(r"(?m)\[krc\w*\]$|^ {4}0x[0-9a-f]+$")


def _only_on_debug(cluster):
    if cluster.kernel.name != "debug":
        raise Skip("the kernel has neither fault injection nor kmemleak")


# -- faults ----------------------------------------------------------------------


@contextlib.contextmanager
def _faults(machine):
    """Faults also where one may wait, of any size, and not a word of them in the log."""
    settings = (("verbose", "0"), ("times", "-1"), ("ignore-gfp-wait", "N"),
                ("ignore-gfp-highmem", "N"), ("min-order", "0"))
    machine.run(f"{debugfs.MOUNT}; cd {debugfs.FOLDER}; "
                + "; ".join(f"for f in {' '.join(FAULTS)}; do "
                            f"[ ! -e $f/{name} ] || echo {value} >$f/{name}; done"
                            for name, value in settings))
    try:
        yield
    finally:
        machine.run(f"cd {debugfs.FOLDER}; for f in {' '.join(FAULTS)}; do "
                    "[ ! -e $f/ignore-gfp-wait ] || echo Y >$f/ignore-gfp-wait; done")


# -- leaks -----------------------------------------------------------------------


def _leaks(machine):
    """What kmemleak has found of modules of ours that are gone; two scans, as it wants them."""
    machine.run(debugfs.MOUNT)
    for _ in range(2):
        machine.run(f"sleep 6; echo scan >{debugfs.FOLDER}/kmemleak", timeout=300)
    found = machine.run(f"cat {debugfs.FOLDER}/kmemleak", timeout=120).out
    reports = [report for report in re.split(r"(?m)^(?=unreferenced object)", found) if report]
    ours = [report for report in reports if OURS.search(report)]
    print(f"    {machine.name}: {len(ours)} leaks of ours, {len(reports) - len(ours)} that "
          "kmemleak suspects elsewhere", flush=True)
    return ours


def _killed(machine, peer, seconds):
    """The words that run a program with requests under way, and kill it."""
    return f"timeout -s KILL {seconds} {AS_USER} {program(machine)} {peer} hold 100"


# -- out of memory ---------------------------------------------------------------


@limit(900)
def test_every_allocation_of_a_call_fails_once(cluster):
    _only_on_debug(cluster)
    with up(cluster) as (node1, node2), serve(node2) as peer:
        before = held(node1)
        with _faults(node1):
            result = node1.run(f"{program(node1)} {peer} faults", timeout=600, check=False)
        for line in result.out.splitlines():
            if line.startswith("# "):
                print(f"    {line[2:]}", flush=True)
        tap(result, 11)
        wait_until(lambda: held(node1) == before, 30, f"all is given back: {before}")


@limit(900)
def test_every_allocation_of_node_up_fails_once(cluster):
    _only_on_debug(cluster)
    with up(cluster) as (node1, _):
        krc_genl = programs.install(node1, "tests/module/krc_genl")
        node1.run("krcore-metactl node down", timeout=60)
        with _faults(node1):
            result = node1.run(f"{krc_genl} faults", timeout=600, check=False)
        for line in result.out.splitlines():
            print(f"    {line}", flush=True)
        check(not result.status, repr(result))
        node1.run("krcore-metactl node up", timeout=60)


@limit(600)
def test_port_that_lacked_memory_comes_by_itself(cluster):
    _only_on_debug(cluster)
    with up(cluster) as (node1, _):
        krc_genl = programs.install(node1, "tests/module/krc_genl")
        before = len(node1.kernel_log())
        for nth in range(60, 300, 40):
            node1.run("krcore-metactl node down", timeout=60)
            with _faults(node1):
                done = node1.run(f"{krc_genl} fault {nth}", timeout=60, check=False)
            if not done.status:
                wait_until(lambda: ports(node1), 30,
                           f"the port is there after allocation {nth} had failed")
        failed = node1.kernel_log()[before:].count("cannot make")
        print(f"    {failed} times something could not be made at first", flush=True)


# -- nothing is left ---------------------------------------------------------------


@limit(900)
def test_nothing_leaks(cluster):
    """Also of what the tests before this one did."""
    _only_on_debug(cluster)
    with up(cluster) as (node1, node2), serve(node2) as peer:
        tap(client(node1, f"{peer} traffic", 300), 60)
        tap(client(node1, f"{peer} life", 150), 6)
        node1.run(f"{_killed(node1, peer, 8)}; true", timeout=60)
        krcore.metactl(node1, "node show")
        node1.run("krcore-metactl node down", timeout=60)
    for machine in (node1, node2):
        found = _leaks(machine)
        check(not found, f"{machine.name}: {len(found)} leaks, the first:\n"
              + "".join(found[:2]))


@limit(600)
def test_leaks_would_be_seen(cluster):
    """The control: a module that forgets what it allocated, and is gone."""
    _only_on_debug(cluster)
    count = 16
    machine = cluster.node("node1")
    with Probe(machine) as probe:
        probe.do(f"leak {count}")
    found = [report for report in _leaks(machine) if "(size 1024)" in report]
    machine.run(f"echo clear >{debugfs.FOLDER}/kmemleak")
    check(len(found) > count // 2, f"{len(found)} of {count} leaks were seen")
