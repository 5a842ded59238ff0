# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The KUnit suites of kmod/tests: what is to run, by the sources, and what did, by KTAP.

A suite or a case that silently stays away is a failure.
"""

import re

from . import host

SOURCES = host.CHECKOUT / "kmod/tests"

# what the suites have the module say: their device refuses and is silent when it is told to
PROVOKED = re.compile(r"krcore: .*initiator \d+ (can't be reset: -5|completes nothing, reset)")
FAILED = re.compile(r"# \w+: (?:EXPECTATION|ASSERTION) FAILED.*|\bnot ok \d+ krc\w*")


def expected():
    """suite -> names of its cases, from the sources."""
    suites = {}
    for path in sorted(SOURCES.glob("*_test.c")):
        text = path.read_text()
        names = re.findall(r"struct kunit_suite \w+ = \{\s*\.name = \"(\w+)\"", text)
        cases = re.findall(r"\bKUNIT_CASE(?:_PARAM|_SLOW)?\(\s*(\w+)", text)
        if len(names) != 1 or not cases:
            raise host.ClusterError(f"{path.name}: suites {names}, {len(cases)} cases")
        if "kunit_test_suite" not in text:
            raise host.ClusterError(f"{path.name}: its suite is not registered")
        suites[names[0]] = cases
    if not suites:
        raise host.ClusterError(f"no suite in {SOURCES}")
    return suites


def verdicts(cases, text):
    """case -> "ok", "not ok", "skip" or "did not run", by a suite's KTAP from debugfs."""
    said = {name: "skip" if "SKIP" in directive else verdict for verdict, name, directive in
            re.findall(r"^ {4}(ok|not ok) \d+ (\w+)(.*)$", text, re.M)}
    return {name: said.get(name, "did not run") for name in cases}


def words_of(text, bad):
    """What a suite's KTAP says before the verdict of each case that is bad: its expectations."""
    words, said = [], []
    for line in text.splitlines():
        verdict = re.match(r" {4}(?:ok|not ok) \d+ (\w+)", line)
        words.append(line)
        if verdict:
            said += words if verdict[1] in bad else []
            words = []
    return said


def judge(suite, cases, text):
    """Lines of complaint about the results of a suite; reports are cut: no line of what passed."""
    wrong = {name: verdict for name, verdict in verdicts(cases, text).items() if verdict != "ok"}
    bad = [f"{suite}.{name}: {verdict}" for name, verdict in wrong.items()]
    if not re.search(rf"^ok \d+ {suite}$", text, re.M):
        bad.append(f"{suite}: the suite as a whole did not pass")
    return bad + (words_of(text, wrong) or text.splitlines()) if bad else []
