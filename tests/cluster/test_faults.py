# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Out of memory at every allocation of the module, and nothing leaks: on the debug kernel.

A call whose allocation fails says so and leaves nothing behind; the next one succeeds.
The programs in tests/module let each allocation fail in its turn; what they leave is
looked for by kmemleak.
"""

import contextlib
import re

from . import debugfs, krcore, programs
from .nodes import client, held, ports, program, serve, tap, up
from .suite import Skip, check, limit, wait_until

FAULTS = ("failslab", "fail_page_alloc", "fail_usercopy")


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


def _only_on_debug(cluster):
    if cluster.kernel.name != "debug":
        raise Skip("the kernel has no fault injection")


def _leaks(machine):
    """What kmemleak has found that the module allocated; two scans, as it wants them."""
    machine.run(debugfs.MOUNT)
    for _ in range(2):
        machine.run(f"sleep 6; echo scan >{debugfs.FOLDER}/kmemleak", timeout=300)
    found = machine.run(f"cat {debugfs.FOLDER}/kmemleak", timeout=120).out
    reports = [report for report in re.split(r"(?m)^(?=unreferenced object)", found) if report]
    ours = [report for report in reports if "[krcore]" in report]
    print(f"    {machine.name}: {len(ours)} leaks of the module, {len(reports) - len(ours)} that "
          "kmemleak suspects elsewhere", flush=True)
    return ours


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


@limit(600)
def test_nothing_leaks(cluster):
    if cluster.kernel.name != "debug":
        raise Skip("the kernel has no kmemleak")
    with up(cluster) as (node1, node2), serve(node2) as peer:
        tap(client(node1, f"{peer} traffic", 300), 60)
        krcore.metactl(node1, "node show")
    for machine in (node1, node2):
        found = _leaks(machine)
        check(not found, f"{machine.name}: {len(found)} leaks, the first:\n"
              + "".join(found[:1]))
