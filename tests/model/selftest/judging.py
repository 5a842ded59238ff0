# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The judges' own reckoning, on words made up for it.

Owns: the tests that the golden comparison says what of its table is not met, and that
a suite of rdma-core whose tests are all skipped does not count as passed.
"""
import contextlib
import importlib.util
import io
import os
import sys
import types
import unittest

JUDGES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "judges")
for folder in (JUDGES, os.path.join(JUDGES, "..", "dev")):
    sys.path.append(folder)
import golden  # noqa: E402

spec = importlib.util.spec_from_file_location("pyverbs_runner",
                                              os.path.join(JUDGES, "run-pyverbs.py"))
pyverbs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pyverbs)

KEY = {"start_addr": "0000000000001800", "len": "0000000000003000", "log_page_size": "0xc",
       "translations_octword_size": "0x2", "translations_octword_actual_size": "0x2"}


class Golden(unittest.TestCase):
    """The comparison of two sets of commands and requests."""

    def setUp(self):
        """All entries that must be met are met, on Ethernet, and no other one."""
        names = (*golden.COMMANDS, *golden.REQUESTS)
        self.ours, self.theirs = ({name: {} for name in names} for _ in range(2))
        for key, rule in golden.DIFFERENCES.items():
            if golden.here(rule, "eth") and not golden.may_be_unmet(rule):
                self.differ(key, rule)
        for side in (self.ours, self.theirs):
            side["CREATE_MKEY"].update(KEY)

    def differ(self, key, rule):
        """Meet an entry; requests share theirs, so one of them is enough."""
        what = "READ" if key[0] == "request" else key[0]
        for side, value, other in ((self.ours, rule[0], "0x1"), (self.theirs, rule[1], "0x2")):
            if value != golden.ABSENT:
                side[what][key[1]] = other if value == golden.ANY else value

    def compare(self):
        return golden.compare(self.ours, self.theirs, "eth")

    def test_what_may_be_alike_is_told(self):
        bad, used, unmet, _ = self.compare()
        self.assertEqual(bad, [])
        self.assertEqual({key for key, rule in golden.DIFFERENCES.items()
                          if golden.here(rule, "eth") and golden.may_be_unmet(rule)}, set(unmet))
        self.assertIn(("CREATE_CQ", "log_cq_size"), unmet)
        self.assertFalse(set(unmet) & used)
        self.differ(("CREATE_CQ", "log_cq_size"), (golden.ANY, golden.ANY))
        self.assertNotIn(("CREATE_CQ", "log_cq_size"), self.compare()[2])

    def test_what_must_differ(self):
        self.theirs["RTR2RTS_QP"]["rnr_retry"] = self.ours["RTR2RTS_QP"]["rnr_retry"]
        self.assertEqual(self.compare()[0], ["RTR2RTS_QP.rnr_retry: in the table of differences, "
                                             "but there is none"])

    def test_what_must_not_differ(self):
        """A field that is in no entry, one with another value, and one of other requests only."""
        self.ours["CREATE_CQ"]["oi"] = "0x1"
        self.ours["CREATE_CQ"]["log_page_size"] = "0x2"
        self.ours["FETCH_ADD"]["byte_count"] = "00000010"
        self.theirs["FETCH_ADD"]["byte_count"] = "00000008"
        self.assertEqual(self.compare()[0], [
            "CREATE_CQ.log_page_size: ours 0x2, theirs -", "CREATE_CQ.oi: ours 0x1, theirs -",
            "FETCH_ADD.byte_count: ours 00000010, theirs 00000008"])

    def test_sizes_of_a_key(self):
        """They may differ from the other's, but must be those of its memory."""
        mine = self.ours["CREATE_MKEY"]
        mine.update({"log_page_size": "0xd", "translations_octword_size": "0x3",
                     "translations_octword_actual_size": "0x3"})
        self.assertEqual(len(self.compare()[0]), 1)
        mine.update({"start_addr": "0000000000003000", "translations_octword_size": "0x1",
                     "translations_octword_actual_size": "0x1"})
        self.assertEqual(self.compare()[0], [])
        mine["translations_octword_actual_size"] = "0x2"
        self.assertEqual(len(self.compare()[0]), 1)
        mine.update({"translations_octword_actual_size": "0x1", "log_page_size": "0xb"})
        self.assertEqual(len(self.compare()[0]), 1)


class Pyverbs(unittest.TestCase):
    """A suite's line."""

    def line(self, *verdicts, code=0):
        out = "".join(f"test_{i} (tests.test_x.XTest)\nWhat it does. ... {verdict}\n"
                      for i, verdict in enumerate(verdicts))
        out += f"Ran {len(verdicts)} tests in 1s\n"
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            suite = pyverbs.Suite("test_x", types.SimpleNamespace(out=out, code=code))
            pyverbs.show_tap(4, suite)
        return said.getvalue().splitlines()[0]

    def test_lines(self):
        skipped = "skipped 'no such thing'"
        self.assertEqual(self.line("ok", skipped), "ok 4 - test_x 1 passed, 1 skipped")
        self.assertEqual(self.line(skipped, skipped),
                         "ok 4 - test_x # SKIP all 2: 'no such thing'")
        self.assertEqual(self.line("FAIL", skipped, code=1),
                         "not ok 4 - test_x 0 passed, 1 skipped")
        self.assertEqual(self.line(skipped, code=1), "not ok 4 - test_x 0 passed, 1 skipped")
        self.assertEqual(self.line(), "not ok 4 - test_x 0 passed, 0 skipped")
