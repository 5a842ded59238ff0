# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What tests/parts/ctest-label makes of what ctest says, on a project of four tests.

Usage: ctest_label_test.py PARTS-FOLDER
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PARTS = pathlib.Path(sys.argv[1])
os.environ.pop("KRCORE_PATTERN", None)      # that of the part this runs in is not the toy's

PROJECT = """\
cmake_minimum_required(VERSION 3.18)
project(toy LANGUAGES NONE)
enable_testing()
add_test(NAME passes COMMAND true)
add_test(NAME fails COMMAND false)
add_test(NAME skips COMMAND sh -c "exit 77")
add_test(NAME missing COMMAND ${CMAKE_BINARY_DIR}/is_not_there)
add_test(NAME unlabelled COMMAND true)
set_tests_properties(passes fails skips missing PROPERTIES LABELS toy SKIP_RETURN_CODE 77)
"""


def load(path):
    """A script without .py, as a module."""
    loader = importlib.machinery.SourceFileLoader("ctest_label", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Toy(unittest.TestCase):
    """ctest itself runs the project: its JUnit file is no invention of this test."""

    @classmethod
    def setUpClass(cls):
        cls.script = load(PARTS / "ctest-label")
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        (cls.folder / "CMakeLists.txt").write_text(PROJECT)
        subprocess.run(["cmake", "-G", "Ninja", "-S", cls.folder, "-B", cls.folder],
                       check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_a_missing_program_is_a_failure(self):
        cases, words = self.script.run_tests(self.folder, ["toy"])
        said = {case.get("name"): self.script.verdict(case) for case in cases}
        self.assertEqual(said, {"passes": "ok", "fails": "FAIL", "skips": "skip",
                                "missing": "FAIL"})
        self.assertIn("failed", words)

    def test_a_label_that_no_part_runs_is_a_failure(self):
        tests = self.script.labels_of_tests(self.folder)
        self.assertEqual(self.script.never_run(tests, {"toy"}),
                         ["unlabelled: no part runs its labels (none)"])
        self.assertEqual(len(self.script.never_run(tests, {"unit"})), 5)

    def test_what_the_parts_run_is_read_from_them(self):
        run = self.script.labels_of_parts(PARTS)
        self.assertTrue({"unit", "fuzz", "stress", "symbols"} <= run, run)


unittest.main(argv=sys.argv[:1])
