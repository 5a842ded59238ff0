# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The KUnit suites of kmod/tests, on the debug kernel: every case of every suite passed.

What is to run is read from the sources, what did run from debugfs, so that a suite or a
case that silently stays away is a failure. A stock kernel has no KUnit.
"""

import contextlib
import re

from . import debugfs, host, module
from .suite import Skip, check, limit

NEEDS_KRCORE = False
SOURCES = host.CHECKOUT / "kmod/tests"
RESULTS = f"{debugfs.FOLDER}/kunit"
FOLDER = "/tmp/kunit"


def _expected():
    """suite -> names of its cases, from the sources."""
    suites = {}
    for path in sorted(SOURCES.glob("*_test.c")):
        text = path.read_text()
        names = re.findall(r"struct kunit_suite \w+ = \{\s*\.name = \"(\w+)\"", text)
        cases = re.findall(r"\bKUNIT_CASE(?:_PARAM|_SLOW)?\(\s*(\w+)", text)
        check(len(names) == 1 and cases, f"{path.name}: suites {names}, {len(cases)} cases")
        check("kunit_test_suite" in text, f"{path.name}: its suite is not registered")
        suites[names[0]] = cases
    check(suites, f"no suite in {SOURCES}")
    return suites


def _judge(suite, cases, text):
    """Lines of complaint about the results of a suite, as KTAP from debugfs."""
    said = dict((name, verdict) for verdict, name, directive in
                re.findall(r"^ {4}(ok|not ok) \d+ (\w+)(.*)$", text, re.M)
                if "SKIP" not in directive)
    bad = [f"{suite}.{name}: {said.get(name, 'did not run')}" for name in cases
           if said.get(name) != "ok"]
    if not re.search(rf"^ok \d+ {suite}$", text, re.M):
        bad.append(f"{suite}: the suite as a whole did not pass")
    return bad + text.splitlines() if bad else []


# what the suites have the module say: their device refuses and is silent when it is told to
PROVOKED = re.compile(r"krcore: initiator \d+ (can't be reset: -5|completes nothing, reset)")


@contextlib.contextmanager
def _loaded(machine, paths):
    """The modules in a guest, loaded in this order, with what they need; gone afterwards."""
    names = [path.stem for path in paths]
    machine.run(f"{debugfs.MOUNT}; rmmod krcore_test krcore 2>/dev/null; "
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


@limit(600)
def test_every_case_passes(cluster):
    if cluster.kernel.name != "debug":
        raise Skip("for the debug kernel: a stock kernel has no KUnit")
    machine = cluster.node("node1")
    expected = _expected()
    modules = module.build_with_suites(cluster.kernel)
    before = len(machine.kernel_log())
    with _loaded(machine, modules):
        log = machine.kernel_log()[before:]
        bad = []
        for suite, cases in expected.items():
            result = machine.run(f"cat {RESULTS}/{suite}/results", check=False)
            bad += _judge(suite, cases, result.out)
        there = set(machine.run(f"ls {RESULTS}").out.split())
    check(not bad, "\n".join(bad))
    unknown = {name for name in there if name.startswith("krcore")} - set(expected)
    check(not unknown, f"suites that no source names: {unknown}")
    failed = re.findall(r"# \w+: (?:EXPECTATION|ASSERTION) FAILED.*|\bnot ok \d+ krc\w*", log)
    check(not failed, "\n".join(failed))
    check(machine.run("grep -c '^krcore' /proc/modules", check=False).out.strip() == "0",
          "the modules could not be removed")
    trouble = [line for line in machine.kernel_problems() if not PROVOKED.search(line)]
    check(not trouble, "\n".join(trouble))
    print(f"    {sum(len(cases) for cases in expected.values())} cases in {len(expected)} suites",
          flush=True)
