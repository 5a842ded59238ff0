# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The tables of ./run test, and the parts as they are: nothing that they name is missing, and
no test of the cluster is in no part.

Usage: run_tables_test.py CHECKOUT
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

CHECKOUT = pathlib.Path(sys.argv[1])
sys.path.append(str(CHECKOUT / "tests"))

from cluster import suite  # noqa: E402
from runner import choice, parts as parts_module  # noqa: E402

PARTS = CHECKOUT / "tests/parts"
# kinds of tests that the default set has something of: a part, or a test of one
KINDS = ("lint", "unit", "kunit", "fuzz", "stress", "cluster/recovery", "cluster-cx/module",
         "model/selftest")
# and what CI has of each commit beside them
KINDS_OF_CI = ("cluster-debug/module", "cluster-debug/debug.checks", "cost", "cluster-cx/handoff",
               "cluster-cx/race", "cluster-cx/kernel_api")
# tests that no file of the product breaks: they are about the debug kernel
OF_TESTS_ALONE = {"debug"}
# what files are part of, though the rule that decides is about more: path, part, a test of it
PARTS_OF = (
    ("kmod/message/stream.c", "cluster-cx", "messages.echo"),
    ("kmod/user/mailbox.c", "cluster-cx", "messages.echo"),
    ("kmod/user/talk.c", "cluster-cx", "messages.echo"),
    ("kmod/user/send.c", "cluster-cx", "messages.a_message_comes_after_the_writes"),
    ("kmod/pool/packets.c", "cluster-cx", "messages.echo"),
    ("kmod/hw/mlx5/receive.c", "cluster-cx", "messages.echo"),
    ("kmod/message/message.c", "cluster-cx",
     "kernel_api.messages_of_a_program_come_back_from_a_module"),
    ("proto/krp_stream_in.h", "cluster-cx", "messages.echo"),
    ("proto/krp_message.h", "cluster-cx", "messages.echo"),
    ("proto/krp_ioctl_message.h", "cluster-cx", "messages.echo"),
    ("client/lib/message.c", "cluster-cx", "messages.echo"),
    ("client/examples/chat.c", "cluster-cx", "messages.two_people_talk"),
    ("tests/module/message_kill.c", "cluster-cx", "messages.killed_at_every_point"),
    ("tests/cluster/test_hw_report.py", "unit", "hw_report"),
    ("kmod/user/post.c", "cost", "read_sync.krcore"),
    ("kmod/pool/send.c", "machines", "arm64/module"),
    ("kmod/hw/mlx5/wqe.c", "machines", "arm64/module"),
    ("kmod/meta/table.c", "cluster", "kernel_meta.publishes_looks_up_and_forgets"),
    ("tests/cluster/bin/stranger.c", "cluster-stranger", "stranger.clients"),
    ("tests/cluster/probe.py", "cluster", "kernel_meta.publishes_looks_up_and_forgets"),
    ("kmod/pool/send.c", "cost", "read_batch.krcore"),
    ("kmod/hw/mlx5/wqe.c", "cost", "read_sync.krcore"),
    ("client/lib/queue.c", "cost", "read_sync.krcore"),
    ("proto/krp_stream_out.h", "cost", "message_send.krcore"),
    ("proto/krp_endian.h", "machines", "s390x/proto"),
    ("proto/krp_ioctl.h", "machines", "arm64/module"),
    ("proto/krp_stream.h", "machines", "s390x/stream"),
    ("proto/krp_lane.h", "machines", "s390x/lane"),
)


@functools.cache
def listed(name, **environment):
    """Names of the tests that a part of the cluster would run, as it says itself."""
    part = parts_module.load(PARTS)[name]
    out = subprocess.run([part.path], check=True, capture_output=True, text=True, cwd=CHECKOUT,
                         env={**os.environ, "KRCORE_LIST": "1", "KRCORE_PART": name,
                              "KRCORE_PATTERN": "", "KRCORE_SHARE": "", **environment}).stdout
    return out.split()


def picked(name, pattern):
    """The tests that a part of the cluster would run with this pattern."""
    return [test for test in listed(name, KRCORE_PATTERN=".") if re.search(pattern, test)]


def tracked():
    """Paths of all files, as git has them; none where this is no checkout."""
    return subprocess.run(["git", "-C", CHECKOUT, "-c", f"safe.directory={CHECKOUT}", "ls-files"],
                          check=False, capture_output=True, text=True).stdout.split()


def is_cluster(part):
    """Whether it runs tests of the cluster."""
    return "-m cluster test" in part.path.read_text()


def named(glob):
    """The paths that a glob of changed.toml names in full."""
    start, _, rest = glob.partition("{")
    names, _, end = rest.partition("}") if rest else ("", "", "")
    paths = [start + name + end for name in names.split(",")]
    return [] if "*" in glob or names == "test" else paths


class Tables(unittest.TestCase):
    """default.toml, changed.toml, and what they are about."""

    @classmethod
    def setUpClass(cls):
        cls.parts = parts_module.load(PARTS)

    def test_every_test_of_the_cluster_is_in_a_part(self):
        every = {name for name, _, _ in suite.select("")}
        self.assertEqual(every - self.anywhere(), set())

    def test_parts_that_say_so_run_a_share(self):
        for part in self.parts.values():
            count = int(part.shares)
            self.assertIn(part.priority, ("usual", "idle"), part.name)
            if count > 1:       # and the others as the unit test of suite.share() has them
                self.assertEqual(listed(part.name, KRCORE_SHARE=f"2/{count}"),
                                 listed(part.name)[1::count], part.name)

    def test_the_default_set_names_tests_that_are_there(self):
        for row in tomllib.loads((PARTS / "default.toml").read_text())["run"]:
            part = self.parts[row["part"]]
            if not is_cluster(part):
                continue
            runs = picked(part.name, choice.joined(row["tests"]))
            for pattern in row["tests"]:
                self.assertTrue([name for name in runs if re.search(pattern, name)],
                                f"{part.name}: {pattern}")
            # what is in no whole part would be left to this set alone
            self.assertLessEqual(set(runs) - self.anywhere(), set(), part.name)

    def anywhere(self):
        """Tests of all whole parts of the cluster."""
        return {name for part in self.parts.values() if is_cluster(part)
                for name in listed(part.name)}

    def test_the_default_set_has_something_of_every_kind(self):
        self.has_kinds(KINDS, limited=False)

    def test_ci_has_something_of_every_kind(self):
        self.has_kinds(KINDS + KINDS_OF_CI, limited=True)

    def has_kinds(self, kinds, limited):
        """Each of these is in the default set."""
        patterns = {}
        for job in choice.default(self.parts, PARTS, limited):
            patterns[job.part.name] = patterns.get(job.part.name, "") + job.pattern
        for kind in kinds:
            name, _, test = kind.partition("/")
            self.assertIn(name, patterns)
            self.assertIn(test, patterns[name].replace("\\", ""), kind)

    def test_the_default_set_is_planned_for_half_an_hour_in_two_lanes(self):
        # as planned: it takes longer beside others, and where nothing is compiled yet
        self.assertLessEqual(sum(job.seconds for job in choice.default(self.parts, PARTS)),
                             2 * 20 * 60)

    def test_rules_of_changes_name_parts_and_tests_that_are_there(self):
        every = [name for name, _, _ in suite.select("")]
        for rule in choice.rules(PARTS):
            for test in rule.tests:
                name, _, pattern = test.partition("/")
                self.assertIn(name, self.parts)
                if pattern and is_cluster(self.parts[name]) and "{test}" not in pattern:
                    for word in pattern.split("|"):
                        self.assertTrue([test for test in every if re.search(word, test)],
                                        f"{rule.paths}: {test}: {word}")

    def test_every_rule_of_changes_decides_for_a_file(self):
        files = tracked()
        if not files:
            self.skipTest("not a checkout")
        table = choice.rules(PARTS)
        found = [choice.decides(path, table) for path in files]
        decided = {(rule, glob) for rule, glob, _ in filter(None, found)}
        for rule in table:
            for glob in rule.paths:
                self.assertTrue((rule, glob) in decided, f"{glob}: rules before it decide")

    def test_each_name_in_a_rule_of_changes_is_decided_by_it(self):
        """A path that a rule names in full is not taken away by one before it."""
        table = choice.rules(PARTS)
        for rule in table:
            for glob in rule.paths:
                for path in named(glob):
                    self.assertEqual(choice.decides(path, table)[:2], (rule, glob), path)

    def test_a_test_of_the_cluster_that_changed_is_run(self):
        table = choice.rules(PARTS)
        for path in sorted((CHECKOUT / "tests/cluster").glob("test_*.py")):
            tests, _ = choice.tests_for(f"tests/cluster/{path.name}", table)
            name = re.sub(r"^test_(\d+_)?", "", path.stem)
            self.assertTrue([1 for test in tests if is_cluster(self.parts[test.split("/")[0]])],
                            path.name)
            for test in tests:
                part, _, pattern = test.partition("/")
                if is_cluster(self.parts[part]):
                    self.assertTrue([found for found in picked(part, pattern)
                                     if f"{name}." in found], f"{path.name}: {test}")

    def test_files_are_tried_by_what_they_are_part_of(self):
        table = choice.rules(PARTS)
        for path, part, name in PARTS_OF:
            self.assertTrue((CHECKOUT / path).exists(), path)
            tests, _ = choice.tests_for(path, table)
            patterns = [test.partition("/")[2] for test in tests if test.split("/")[0] == part]
            self.assertTrue([1 for pattern in patterns if re.search(pattern, name)],
                            f"{path}: {part}/{name}")

    def test_every_file_of_tests_of_the_cluster_is_run_for_a_file_of_the_product(self):
        files = tracked()
        if not files:
            self.skipTest("not a checkout")
        table, ran = choice.rules(PARTS), set()
        for test in {test for path in files if not path.startswith("tests/")
                     for test in choice.tests_for(path, table)[0] or []}:
            part, _, pattern = test.partition("/")
            if is_cluster(self.parts[part]):
                ran |= {name.split(".")[0]
                        for name in (picked(part, pattern) if pattern else listed(part))}
        every = {name.split(".")[0] for name, _, _ in suite.select("")}
        self.assertEqual(every - ran, OF_TESTS_ALONE)


class Changed(unittest.TestCase):
    """From paths to jobs."""

    @classmethod
    def setUpClass(cls):
        cls.parts = parts_module.load(PARTS)

    def jobs(self, *paths):
        """part -> pattern, and the reasons."""
        jobs, reasons = choice.changed(self.parts, PARTS, paths)
        return {job.part.name: job.pattern for job in jobs}, reasons

    def test_a_document_asks_for_the_gates_alone(self):
        jobs, reasons = self.jobs("docs/model.md", "NEWS.md")
        self.assertEqual(jobs, {"lint": ""})
        self.assertEqual(reasons,
                         ["docs/model.md, NEWS.md -> lint: text: only the gates read it"])

    def test_a_document_that_is_typed_asks_for_its_test(self):
        jobs, _ = self.jobs("docs/operation.md")
        self.assertEqual(jobs, {"lint": "", "cluster": r"metactl\.a_rolling_restart"})
        jobs, _ = self.jobs("tests/cluster/document.py")
        self.assertEqual(jobs["cluster"], r"metactl\.a_rolling_restart|readme\.")

    def test_the_first_rule_decides_and_rules_add_up(self):
        jobs, _ = self.jobs("kmod/tests/x.c", "tests/cluster/test_queues.py")
        self.assertEqual(jobs, {"lint": "", "kunit": "", "cluster-cx": r"queues\.",
                                "cluster-debug": r"kunit\."})

    def test_a_whole_part_holds_some_of_it(self):
        jobs, _ = self.jobs("tests/kernel/debug.config", "kmod/tests/x.c")
        self.assertEqual(jobs, {"lint": "", "kunit": "", "cluster-debug": ""})

    def test_a_file_without_a_rule_asks_for_the_default_set(self):
        jobs, reasons = self.jobs("something/new.c")
        self.assertEqual(set(jobs), {job.part.name for job in choice.default(self.parts, PARTS)})
        self.assertIn("no rule is about it", reasons[0])

    def test_globs(self):
        def fits(glob, path):
            return bool(choice.glob_regex(glob).fullmatch(path))
        self.assertTrue(fits("a/**", "a/b/c.d") and fits("a/*.c", "a/b.c")
                        and fits("t_{x,y}.py", "t_y.py") and fits("t_{test}.py", "t_any.py"))
        self.assertFalse(fits("a/*.c", "a/b/c.c") or fits("a/**", "ab") or fits("a.c", "axc")
                         or fits("t_{x,y}.py", "t_z.py"))


unittest.main(argv=sys.argv[:1])
