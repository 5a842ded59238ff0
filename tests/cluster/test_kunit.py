# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The KUnit suites of kmod/tests, on the debug kernel: every case of every suite passed.

A stock kernel has no KUnit.
"""

import contextlib

from . import debugfs, kunit, module
from .suite import check, limit

NEEDS_KRCORE = False
NEEDS = "debug"
RESULTS = f"{debugfs.FOLDER}/kunit"
FOLDER = "/tmp/kunit"


@contextlib.contextmanager
def _loaded(machine, paths):
    """The modules in a guest, loaded in this order, with what they need; gone afterwards."""
    names = [path.stem for path in paths]
    machine.run(f"rmmod krcore_test krcore 2>/dev/null; "
                f"mkdir -p {FOLDER} && modprobe kunit", timeout=120)
    try:
        for path in paths:
            target = f"{FOLDER}/{path.name}"
            machine.push(path, target)
            machine.run(f"modprobe -a $(modinfo -F depends {target} | tr , ' ')", timeout=300)
            # the suites run within this
            machine.run(f"insmod {target}", timeout=900)
        yield
    finally:
        if machine.alive():
            machine.run(f"rmmod {' '.join(reversed(names))}; rm -rf {FOLDER}; true", timeout=120,
                        check=False)


@limit(1200)     # 580 s were seen on a slow machine
def test_every_case_passes(cluster):
    machine = cluster.node("node1")
    expected = kunit.expected()
    modules = module.build_with_suites(cluster.kernel)
    before = len(machine.kernel_log())
    with _loaded(machine, modules):
        log = machine.kernel_log()[before:]
        bad = []
        for suite, cases in expected.items():
            result = machine.run(f"cat {RESULTS}/{suite}/results", check=False)
            bad += kunit.judge(suite, cases, result.out)
        there = set(machine.run(f"ls {RESULTS}").out.split())
    check(not bad, "\n".join(bad))
    unknown = {name for name in there if name.startswith("krcore")} - set(expected)
    check(not unknown, f"suites that no source names: {unknown}")
    failed = kunit.FAILED.findall(log)
    check(not failed, "\n".join(failed))
    check(machine.run("grep -c '^krcore' /proc/modules", check=False).out.strip() == "0",
          "the modules could not be removed")
    trouble = [line for line in machine.kernel_problems() if not kunit.PROVOKED.search(line)]
    check(not trouble, "\n".join(trouble))
    print(f"    {sum(len(cases) for cases in expected.values())} cases in {len(expected)} suites",
          flush=True)
