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
import unittest.mock

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


PROGRAMS = """\
cmake_minimum_required(VERSION 3.18)
project(toy LANGUAGES NONE)
enable_testing()
foreach(name IN ITEMS one two three)
	add_custom_command(OUTPUT ${name} DEPENDS ${name}.in
		COMMAND cp ${CMAKE_SOURCE_DIR}/${name}.in ${name})
	add_custom_target(make_${name} ALL DEPENDS ${name})
	add_test(NAME ${name} COMMAND ${CMAKE_BINARY_DIR}/${name})
endforeach()
add_test(NAME one_with_words COMMAND ${CMAKE_BINARY_DIR}/one word)
set_tests_properties(one two three one_with_words PROPERTIES LABELS toy)
set_tests_properties(three PROPERTIES ENVIRONMENT "A=b")
add_custom_target(tests_toy DEPENDS one three)
"""


class Pattern(unittest.TestCase):
    """What is built for tests that a pattern picks."""

    def setUp(self):
        self.script = load(PARTS / "ctest-label")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.source = pathlib.Path(scratch.name, "source")
        self.folder = pathlib.Path(scratch.name, "build")
        self.source.mkdir()
        (self.source / "CMakeLists.txt").write_text(PROGRAMS)
        for name in ("one", "two", "three"):
            self.write(name, "exit 0")
        self.script.CHECKOUT = self.source

    def write(self, name, line):
        """What a program is made from, newer than it."""
        path = self.source / f"{name}.in"
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def build(self, pattern):
        """As for a part with a pattern; the tests' verdicts."""
        with unittest.mock.patch.dict(os.environ, {"KRCORE_PATTERN": pattern}):
            self.assertTrue(self.script.configure_and_build(self.folder, [], ["toy"]))
            cases, _ = self.script.run_tests(self.folder, ["toy"])
        return {case.get("name"): self.script.verdict(case) for case in cases}

    def built(self, name):
        """Whether a program is of its present source."""
        return (self.folder / name).read_text() == (self.source / f"{name}.in").read_text()

    def test_the_first_build_is_whole(self):
        self.assertEqual(self.build("^one$"), {"one": "ok"})
        self.assertTrue(self.built("two"))

    def test_only_what_is_picked_is_brought_up_to_date(self):
        self.build("^one$")
        self.write("one", "exit 1")
        self.write("two", "exit 1")
        self.assertEqual(self.build("^one$"), {"one": "FAIL"})
        self.assertFalse(self.built("two"))
        self.assertEqual(self.build("."), {"one": "FAIL", "two": "FAIL", "three": "ok",
                                           "one_with_words": "FAIL"})

    def test_a_test_with_words_or_surroundings_has_everything_built(self):
        for pattern in ("^one_with_words$", "^three$"):
            self.build(pattern)
            self.write("two", f"exit 1 # {pattern}")
            self.build(pattern)
            self.assertTrue(self.built("two"), pattern)

    def test_a_label_alone_has_its_own_programs_built(self):
        self.script.ALONE = {"toy"}
        self.assertEqual(self.build("^(one|three)$"), {"one": "ok", "three": "ok"})
        self.assertFalse((self.folder / "two").exists())
        (complaint,) = self.script.not_alone(self.folder, ["toy"])  # it has an environment
        self.assertIn("three: needs more than its own program", complaint)
        self.assertEqual(self.script.not_alone(self.folder, ["other"]), [])


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
