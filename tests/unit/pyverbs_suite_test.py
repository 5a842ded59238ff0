#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What run-pyverbs.py makes of what a suite of rdma-core's tests has said: skipped is not passed,
a failure that is known is named, one that is not met any more is told, and nothing that ran is
no success.

Argument: the source tree.
"""

import contextlib
import importlib.util
import io
import pathlib
import sys
import types
import unittest

JUDGES = pathlib.Path(sys.argv.pop(1)) / "tests/model/judges"


def _load():
    sys.modules["lab"] = types.SimpleNamespace(Lab=None)    # no guest is started here
    spec = importlib.util.spec_from_file_location("run_pyverbs", JUDGES / "run-pyverbs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = _load()
KNOWN_SUITE, _, KNOWN_TEST = next(iter(run.KNOWN)).partition(".")


def _suite(name, code, *verdicts, behind=""):
    """A suite that has said so of each of its tests, (class.test, verdict)."""
    lines = []
    for test, verdict in verdicts:
        cls, _, method = test.partition(".")
        lines.append(f"{method} (tests.{name}.{cls}.{method})\nWhat it is for ... {verdict}")
    lines += [behind, f"Ran {len(verdicts)} tests in 0.1s"]
    return run.Suite(name, types.SimpleNamespace(out="\n".join(lines), code=code))


class Verdicts(unittest.TestCase):
    """One suite each."""

    def test_passed(self):
        suite = _suite("test_qp", 0, ("QPTest.test_create", "ok"),
                       ("QPTest.test_odp", "skipped 'no ODP'"))
        self.assertTrue(suite.ok() and suite.tested())
        self.assertEqual((suite.passed, sum(suite.skipped.values())), (1, 1))

    def test_all_skipped_is_no_pass(self):
        suite = _suite("test_efa", 0, ("EfaTest.test_a", "skipped 'no EFA'"),
                       ("EfaTest.test_b", "skipped 'no EFA'"))
        self.assertTrue(suite.ok())
        self.assertFalse(suite.tested())
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            run.show_tap(3, suite)
        self.assertRegex(shown.getvalue(), r"^ok 3 - test_efa .*# SKIP")

    def test_failed(self):
        said = ("=" * 70 + "\nFAIL: test_create (tests.test_qp.QPTest.test_create)\n"
                "AssertionError: it is not so\n")
        suite = _suite("test_qp", 1, ("QPTest.test_create", "FAIL"), behind=said)
        self.assertFalse(suite.ok())
        self.assertEqual(suite.bad, {"QPTest.test_create": "AssertionError: it is not so"})

    def test_one_that_does_not_end(self):
        suite = run.Suite("test_qp", types.SimpleNamespace(
            out="test_create (tests.test_qp.QPTest.test_create)\n", code=0))
        self.assertEqual(suite.got["QPTest.test_create"][0], "HANG")
        self.assertFalse(suite.ok())

    def test_nothing_ran(self):
        self.assertFalse(_suite("test_qp", 0).ok())

    def test_its_status_fits_what_it_said(self):
        self.assertFalse(_suite("test_qp", 1, ("QPTest.test_create", "ok")).ok())

    def test_a_known_failure(self):
        suite = _suite(KNOWN_SUITE, 1, (KNOWN_TEST, "ERROR"))
        self.assertTrue(suite.ok())
        self.assertEqual(suite.known, [KNOWN_TEST])
        met = _suite(KNOWN_SUITE, 0, (KNOWN_TEST, "ok"))
        self.assertFalse(met.ok(), "what is known to fail does not, and nobody is told")
        self.assertIn(KNOWN_TEST, met.bad)


if __name__ == "__main__":
    unittest.main(verbosity=2)
