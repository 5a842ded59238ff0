# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run test with parts of its own: which of them run, beside each other and in the time there
is, what is printed of them, and what is said of the others.

Usage: run_parts_test.py RUN
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

RUN = sys.argv[1]
sys.path.append(str(pathlib.Path(RUN).parent / "tests"))

from runner import choice, parts, priority, rotation  # noqa: E402

PART = """\
#!/bin/sh
# about: nothing
# usually: {minutes} min
# packages:
# load: {load}
# priority: {priority}
# shares: {shares}
# prepare: {prepare}
{script}
words=${{KRCORE_PATTERN:+ with $KRCORE_PATTERN}}${{KRCORE_SHARE:+ as $KRCORE_SHARE}}
echo "ran $KRCORE_PART$words"
echo "1 passed, 0 failed"
"""
DEFAULT = """\
[[run]]
part = "quick"
minutes = 1
why = "quick"

[[run]]
part = "a"
minutes = 2
why = "some of a"
tests = ['one$', 'two$']
environment = { WORD = "word" }
"""


class Folder(unittest.TestCase):
    """Parts in a folder of their own."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def part(self, number, name, minutes=1, *, load="processor", shares=1, script=":",
             prepare="", priority="usual"):
        """Write a part."""
        path = self.folder / f"{number}-{name}"
        path.write_text(PART.format(minutes=minutes, load=load, shares=shares, script=script,
                                    prepare=prepare, priority=priority))
        path.chmod(0o755)

    def environment(self, **more):
        """What ./run is told."""
        return {**os.environ, "KRCORE_PARTS": str(self.folder), "KRCORE_CLOCK_START": "",
                "KRCORE_BUILD": str(self.folder / "build"), "KRCORE_LANES": "1",
                "KRCORE_TEST_SECONDS": "", "KRCORE_TURN": "7", "KRCORE_SHARE": "", **more}

    def run_test(self, *words, **environment):
        """./run test: the result of subprocess.run()."""
        return subprocess.run([RUN, "test", *words], capture_output=True, text=True, timeout=100,
                              check=False, env=self.environment(**environment))

    @staticmethod
    def ran(result):
        """What the parts said that ran, in their order."""
        return re.findall(r"^ran ([^,:\n]+)$", result.stdout, re.M)

    @staticmethod
    def last(result):
        """The total."""
        return result.stdout.splitlines()[-1]


class Parts(Folder):
    """Parts of 1, 10, 10, 40 and 10 minutes, as they say, and no table: all are the default."""

    def setUp(self):
        super().setUp()
        for number, name, minutes in (("10", "quick", 1), ("50", "a", 10), ("60", "b", 10),
                                      ("70", "c", 40), ("80", "d", 10)):
            self.part(number, name, minutes)

    def test_all_run_in_order_without_a_limit(self):
        result = self.run_test()
        self.assertEqual((result.returncode, self.ran(result), self.last(result)),
                         (0, ["quick", "a", "b", "c", "d"], "5 passed, 0 failed"))
        self.assertNotIn("not run", result.stdout)

    def test_only_what_is_asked_for(self):
        result = self.run_test("b", "quick/some.*test")
        self.assertEqual((result.returncode, self.ran(result), self.last(result)),
                         (0, ["b", "quick with some.*test"], "2 passed, 0 failed"))

    def test_the_plan_says_how_long_only_where_that_is_known(self):
        lines = self.run_test("--plan", "a", "b/some", "quick").stdout.splitlines()
        self.assertEqual([line.split() for line in lines],
                         [["a", "10:00"], ["b", "-", "some"], ["quick", "1:00"]])

    def test_what_does_not_fit_is_named_and_skipped(self):
        result = self.run_test("a", "c", "b", KRCORE_TEST_SECONDS="1500")
        self.assertEqual((result.returncode, self.ran(result), self.last(result)),
                         (0, ["a", "b"], "2 passed, 0 failed, 1 skipped"))
        self.assertIn("not run: c: no time is left for it (usually 40 min)", result.stdout)

    def test_an_unknown_part_is_named(self):
        result = self.run_test("quick", "nothing")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("no part is named nothing; there are: quick a b c d", result.stderr)

    def test_what_takes_long_is_prepared_beside_the_others(self):
        self.part("50", "a", prepare=f"sleep 1; touch {self.folder}/prepared",
                  script=f"test -e {self.folder}/prepared || exit 1")
        result = self.run_test("a", "quick", "b")
        self.assertEqual((result.returncode, self.ran(result)), (0, ["quick", "b", "a"]))

    def test_what_is_prepared_for_long_takes_what_others_leave(self):
        shutil.copy("/bin/sleep", self.folder / "krc_sleeps")
        # each sleep is longer than a look at all processes takes
        self.part("50", "a", prepare=f"for i in $(seq 40); do [ ! -e {self.folder}/seen ] "
                                     f"&& {self.folder}/krc_sleeps 2 || break; done")
        # 5 is SCHED_IDLE, of a sleep that began after the change as well
        self.part("10", "quick", script=f"""
for _ in $(seq 200); do
	idle=$(cat /proc/[0-9]*/stat 2>/dev/null | awk '$2 == "(krc_sleeps)" && $41 == 5')
	[ -z "$idle" ] || {{ touch {self.folder}/seen; break; }}
	sleep 0.2
done
test -e {self.folder}/seen || exit 1""")
        result = self.run_test("quick", "a")
        self.assertEqual((result.returncode, self.ran(result)), (0, ["quick", "a"]))

    def test_a_part_that_runs_alone_prepares_for_itself(self):
        self.part("50", "a", prepare=f"touch {self.folder}/prepared")
        self.assertEqual(self.ran(self.run_test("a")), ["a"])
        self.assertFalse((self.folder / "prepared").exists())

    def test_what_could_not_be_prepared_has_failed(self):
        self.part("60", "b", prepare="echo no compiler; exit 1")
        result = self.run_test("quick", "b")
        self.assertEqual((result.returncode, self.ran(result), self.last(result)),
                         (1, ["quick"], "1 passed, 1 failed"))
        self.assertIn("no compiler", result.stdout)
        self.assertIn("FAIL b: what it needs could not be made", result.stdout)

    def test_the_time_of_each_part_is_shown(self):
        self.part("10", "quick", script="sleep 1.2")
        lines = self.run_test("a", "quick").stdout.splitlines()
        table = [line.split() for line in lines[lines.index(next(
            line for line in lines if line.startswith("part "))):]]
        self.assertEqual(table[0], ["part", "seconds", "planned", "passed", "failed", "skipped"])
        self.assertEqual({row[0]: row[2:] for row in table[1:3]},
                         {"quick": ["60", "1", "0", "0"], "a": ["600", "1", "0", "0"]})
        seconds = [int(row[1]) for row in table[1:3]]
        self.assertTrue(1 <= seconds[0] < 60 and seconds[1] <= seconds[0], seconds)
        self.assertEqual(table[3][0], "together")


class Verdicts(Folder):
    """What is made of the end of a part."""

    def verdict(self, script):
        """(exit status, last line) of a run of one part with this script."""
        self.part("10", "x", script=script)
        result = self.run_test("x")
        return result.returncode, self.last(result), result.stdout

    def test_failures_and_skips_are_added(self):
        self.part("20", "y", script='echo "2 passed, 0 failed, 3 skipped"; exit 0')
        self.part("10", "x", script='echo "4 passed, 1 failed"; exit 1')
        result = self.run_test("x", "y")
        self.assertEqual((result.returncode, self.last(result)),
                         (1, "6 passed, 1 failed, 3 skipped"))

    def test_what_did_not_pass_is_named_in_the_last_lines(self):
        self.part("10", "x", script='echo "FAIL   38.8 s  messages.large"; echo "    ok  FAIL no"; '
                                    'echo "skip  eth: passed  before"; echo "SKIP  abi32  0.1 s"; '
                                    'echo "partly: tidy 3 of 9 files"; '
                                    'echo "1 passed, 1 failed, 2 skipped"; exit 1')
        self.part("20", "y", script='echo "4 passed, 2 failed"; exit 1')
        lines = self.run_test("x", "y").stdout.splitlines()
        self.assertEqual(lines[-6:], ["skip x: eth: passed before", "skip x: abi32 0.1 s",
                                      "partly x: tidy 3 of 9 files", "FAIL x: messages.large",
                                      "FAIL y: 2 that no line names",
                                      "5 passed, 3 failed, 2 skipped"])

    def test_no_total_is_a_failure(self):
        status, last, out = self.verdict("exit 0")
        self.assertEqual((status, last), (1, "0 passed, 1 failed"))
        self.assertIn("FAIL x: ended with status 0 without a total", out)

    def test_a_status_against_the_total_is_a_failure(self):
        status, last, out = self.verdict('echo "3 passed, 0 failed"; exit 3')
        self.assertEqual((status, last), (1, "3 passed, 1 failed"))
        self.assertIn("FAIL x: ended with status 3", out)

    def test_a_part_without_a_test_is_a_failure(self):
        self.part("10", "x", script="echo '0 passed, 0 failed'; exit 0")
        result = self.run_test("x/nothing")
        self.assertEqual((result.returncode, self.last(result)), (1, "0 passed, 1 failed"))
        self.assertIn("FAIL x: no test was run", result.stdout)

    def test_more_than_can_be_named_are_counted(self):
        self.part("10", "x", script="for i in $(seq 53); do echo skip test$i; done")
        self.assertIn("\nskip x: 3 more, in its log\n", self.run_test("x").stdout)

    def test_what_a_part_says_on_the_other_stream_is_no_total(self):
        status, last, _ = self.verdict('echo "3 passed, 0 failed"; echo "bye" >&2; exit 0')
        self.assertEqual((status, last), (0, "3 passed, 0 failed"))

    def test_a_part_that_does_not_end_is_ended_with_its_children(self):
        self.part("10", "x", script=f"sleep 77 & echo $! >{self.folder}/child; wait")
        path = self.folder / "10-x"
        path.write_text(path.read_text().replace("# load", "# limit: 1\n# load"))
        result = self.run_test("x")
        self.assertEqual(self.last(result), "0 passed, 1 failed")
        self.assertIn("FAIL x: did not end within 1 s", result.stdout)
        child = int((self.folder / "child").read_text())
        self.assertFalse(pathlib.Path(f"/proc/{child}/cmdline").exists()
                         and b"sleep" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes())

    def test_a_signal_ends_all_and_is_a_failure(self):
        self.part("10", "x", script=f"echo begun; touch {self.folder}/up; sleep 77")
        self.part("20", "y", script="sleep 77")
        self.part("30", "z")
        with subprocess.Popen([RUN, "test", "x", "y", "z"], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL,
                              env=self.environment(KRCORE_LANES="2")) as process:
            while not (self.folder / "up").exists():
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)
        self.assertIn("begun", out)
        self.assertIn("FAIL ended by a signal before all parts were run", out)
        self.assertIn("not run: z: the run was ended", out)
        self.assertRegex(out.splitlines()[-1], "^0 passed, [1-9] failed, 1 skipped$")

    def test_who_kills_the_runner_ends_its_parts(self):
        self.part("10", "x", script=f"echo $$ >{self.folder}/up\nwhile :; do sleep 0.1; done")
        with subprocess.Popen([RUN, "test", "x"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=self.environment()) as process:
            while not (self.folder / "up").exists() or not (self.folder / "up").read_text():
                time.sleep(0.05)
            process.kill()
        part = pathlib.Path("/proc", (self.folder / "up").read_text().strip())
        for _ in range(100):
            if not part.exists():
                return
            time.sleep(0.1)
        self.fail("the part goes on")


class Lanes(Folder):
    """Parts beside each other."""

    def test_two_run_at_once_and_are_printed_apart(self):
        # each ends only when it has seen the other one
        for number, name, other in (("10", "x", "y"), ("20", "y", "x")):
            self.part(number, name, script=f"touch {self.folder}/{name}.up; echo {name} one\n"
                      f"for i in $(seq 999); do [ -e {self.folder}/{other}.up ] && break; "
                      "sleep 0.05; done\n"
                      f"echo {name} two >&2; echo {name} three")
        result = self.run_test("x", "y", KRCORE_LANES="2")
        self.assertEqual((result.returncode, self.last(result)), (0, "2 passed, 0 failed"))
        blocks = re.split(r"^== ", result.stdout, flags=re.M)[1:]
        self.assertEqual({block[0] for block in blocks}, {"x", "y"})
        for block in blocks:
            name = block[0]
            self.assertEqual(set(re.findall(r"^[xy] (?:one|two|three)$", block, re.M)),
                             {f"{name} one", f"{name} two", f"{name} three"})

    def test_one_lane_runs_one_at_a_time(self):
        script = f"mkdir {self.folder}/alone || exit 1; sleep 0.3; rmdir {self.folder}/alone"
        self.part("10", "x", script=script)
        self.part("20", "y", script=script)
        self.assertEqual(self.last(self.run_test("x", "y")), "2 passed, 0 failed")

    def test_a_lane_takes_first_what_is_of_another_kind(self):
        for number, name, load in (("10", "p1", "processor"), ("20", "p2", "processor"),
                                   ("30", "g1", "guests"), ("40", "g2", "guests")):
            self.part(number, name, load=load, script="sleep 0.5")
        said = self.run_test("p1", "p2", "g1", "g2", KRCORE_LANES="2").stderr
        self.assertEqual(re.findall(r"begins: (\w+)", said)[:2], ["p1", "g1"])

    def program(self):
        """A sleep(1) of a name that no other process has."""
        name = f"krc{os.getpid()}"
        shutil.copy("/bin/sleep", self.folder / name)
        return name

    @staticmethod
    def sees(policy, name):
        """A script that ends well as soon as a process of this name has this policy."""
        return f"""
for _ in $(seq 200); do
	cat /proc/[0-9]*/stat 2>/dev/null | awk '$2 == "({name})" && $41 == {policy}' | grep -q . \\
		&& seen=1 && break
	sleep 0.2
done
[ "$seen" = 1 ] || exit 1
"""

    def until(self, name, program="sleep"):
        """A script that ends when there is this file."""
        return f"for i in $(seq 60); do [ -e {self.folder}/{name} ] && break; {program} 1; done\n"

    def test_one_that_can_wait_has_what_two_others_leave(self):
        name = self.program()
        self.part("10", "waits", priority="idle", script=self.until("p3", self.folder / name))
        self.part("20", "p2", script=f"touch {self.folder}/p2\n" + self.until("p3")
                  + f"[ -e {self.folder}/p3 ] || exit 1")
        self.part("30", "p3", script=self.until("p2") + self.sees(os.SCHED_IDLE, name)
                  + f"[ -e {self.folder}/p2 ] && touch {self.folder}/p3")
        result = self.run_test("waits", "p2", "p3", KRCORE_LANES="2")
        self.assertEqual((result.returncode, sorted(self.ran(result))), (0, ["p2", "p3", "waits"]))

    @unittest.skipUnless(priority.can_return(), "who is idle may not have its turn again here")
    def test_with_a_limit_it_has_a_lane_that_nobody_waits_for(self):
        name = self.program()
        # a pool of threads, as that of the gates: what one starts has the policy of that thread,
        # and is in a group of its own, as what ninja starts
        threads = ("from concurrent.futures import ThreadPoolExecutor as P; import os; "
                   "import subprocess; list(P(2).map(lambda _: ["
                   f"subprocess.run(['{self.folder / name}', '1'], preexec_fn=os.setpgrp) "
                   "for _ in range(60) "
                   f"if not os.path.exists('{self.folder}/usual')], range(2)))")
        self.part("10", "waits", priority="idle", script=f'{sys.executable} -c "{threads}"')
        self.part("20", "p2", script=self.until("idle"))
        self.part("30", "p3", script=self.sees(os.SCHED_IDLE, name)
                  + f"touch {self.folder}/idle; " + self.until("usual"))
        self.part("40", "p4", script="sleep 1\n" + self.sees(os.SCHED_IDLE, name)
                  + f"touch {self.folder}/p4")
        self.part("50", "p5", script=self.until("p4") + self.sees(os.SCHED_OTHER, name)
                  + f"touch {self.folder}/usual")
        result = self.run_test("waits", "p2", "p3", "p4", "p5", KRCORE_LANES="3",
                               KRCORE_TEST_SECONDS="2000")
        self.assertEqual((result.returncode, sorted(self.ran(result))),
                         (0, ["p2", "p3", "p4", "p5", "waits"]))

    def test_alone_it_is_one_like_others(self):
        self.part("10", "waits", priority="idle",
                  script=f"[ $(awk '{{print $41}}' /proc/self/stat) != {os.SCHED_IDLE} ] || exit 1")
        self.assertEqual(self.run_test("waits", KRCORE_LANES="2").returncode, 0)

    def test_two_of_one_part_share_no_build_folder_at_once(self):
        script = f"mkdir {self.folder}/alone || exit 1; sleep 0.3; rmdir {self.folder}/alone"
        self.part("10", "x", script=script)
        result = self.run_test("x/one", "x/two", KRCORE_LANES="2")
        self.assertEqual(self.last(result), "2 passed, 0 failed")
        logs = self.folder / "build/logs"
        self.assertIn("with one", (logs / "x.log").read_text())
        self.assertIn("with two", (logs / "x-2.log").read_text())


class Default(Folder):
    """A table of the default set, and parts beside it that have shares."""

    def setUp(self):
        super().setUp()
        self.part("10", "quick")
        self.part("20", "a", 10, shares=4, script='echo "word is $WORD"')
        self.part("30", "b", 10)
        self.part("40", "c", 30, shares=3)
        (self.folder / "default.toml").write_text(DEFAULT)

    def test_it_runs_what_the_table_says(self):
        result = self.run_test()
        self.assertEqual((result.returncode, self.ran(result), self.last(result)),
                         (0, ["quick", "a with one$|two$"], "2 passed, 0 failed"))
        self.assertIn("word is word", result.stdout)
        self.assertIn("not asked for: the rest of a, b, c: ./run test full", result.stdout)

    def test_full_runs_every_part_whole(self):
        result = self.run_test("full")
        self.assertEqual((self.ran(result), self.last(result)),
                         (["quick", "a", "b", "c"], "4 passed, 0 failed"))

    def test_a_share_can_be_asked_for(self):
        self.assertEqual(self.ran(self.run_test("a@2of4")), ["a@2of4 as 2/4"])
        result = self.run_test("b@1of2")
        self.assertEqual(result.returncode, 2)
        self.assertIn("b@1of2: no share of b", result.stderr)

    def test_what_fits_of_the_rest_follows_and_what_is_owed_is_named(self):
        result = self.run_test(KRCORE_TEST_SECONDS="1000")
        ran, owed = self.ran(result), re.findall(r"^not run: ([^:]+): (.*)$", result.stdout, re.M)
        self.assertEqual(ran[:2], ["quick", "a with one$|two$"])
        self.assertEqual({name.split()[0] for name in ran[2:]} | {name for name, _ in owed},
                         {f"a@{n}of4" for n in range(1, 5)} | {"b"}
                         | {f"c@{n}of3" for n in range(1, 4)})
        self.assertTrue(owed)
        for name, reason in owed:
            self.assertRegex(reason, r"^no time is planned for it \(usually \d+ min\); its turn "
                                     r"comes at commit \d+, this is 7$", name)
        self.assertEqual(self.last(result),
                         f"{len(ran)} passed, 0 failed, {len(owed)} skipped")

    def test_what_no_commit_has_time_for_is_said(self):
        out = self.run_test(KRCORE_TEST_SECONDS="500").stdout
        self.assertIn("\nnot run: b: no time is planned for it (usually 10 min); none of the next "
                      "200 would have time for it, with as little as was left\n", out)

    def test_a_part_of_the_default_set_that_had_no_time_is_owed_at_once(self):
        out = self.run_test(KRCORE_TEST_SECONDS="100").stdout
        self.assertIn("\nnot run: a: no time is left for it (usually 10 min); its turn comes at "
                      "commit 8, this is 7\n", out)

    def test_each_comes_at_the_commit_that_is_named(self):
        out = self.run_test(KRCORE_TEST_SECONDS="1000").stdout
        for name, commit in re.findall(r"^not run: ([^:]+): .* comes at commit (\d+),", out, re.M):
            said = self.run_test(KRCORE_TEST_SECONDS="1000", KRCORE_TURN=commit)
            self.assertIn(name, [word.split()[0] for word in self.ran(said)], commit)

    def test_every_share_has_its_turn(self):
        every = choice.rest(parts.load(self.folder), [])
        self.assertEqual(len(every), 9)
        for step in (1, 2, 3, 7, 10, 13):     # also where not every commit is run
            ran = {job.name for turn in range(100, 100 + 30 * step, step)
                   for job in rotation.fitting(every, turn, 900, 1)}
            self.assertEqual(ran, {job.name for job in every}, f"every {step} commits")

    def test_shares_are_filled_into_all_lanes(self):
        every = choice.rest(parts.load(self.folder), [])
        one, two = (rotation.fitting(every, 0, 700, lanes) for lanes in (1, 2))
        seconds = [sum(job.seconds for job in jobs) for jobs in (one, two)]
        self.assertTrue(500 < seconds[0] <= 700 and 1000 < seconds[1] <= 1400, seconds)

    def test_the_logs_of_some_tests_and_of_their_whole_part_are_kept(self):
        self.part("20", "a", 1)
        self.part("30", "b", 1, shares=2)
        self.assertEqual(self.run_test(KRCORE_TEST_SECONDS="2000").returncode, 0)
        logs = self.folder / "build/logs"
        self.assertIn("with one$|two$", (logs / "a.log").read_text())
        self.assertNotIn("with", (logs / "a-2.log").read_text())
        self.assertTrue((logs / "b@1of2.log").exists())

    def test_a_slow_machine_begins_less(self):
        # a job of 3 seconds that takes 8: what was planned to fit does not any more
        (self.folder / "default.toml").write_text(
            '[[run]]\npart = "quick"\nminutes = 0.05\nwhy = "planned to take 3 seconds"\n')
        usual = self.run_test(KRCORE_TEST_SECONDS="760", KRCORE_TURN="0").stdout
        self.part("10", "quick", script="sleep 8")
        slow = self.run_test(KRCORE_TEST_SECONDS="768", KRCORE_TURN="0").stdout
        self.assertIn("\nran a@2of4", usual)
        self.assertNotIn("\nran a@2of4", slow)
        self.assertIn("\nnot run: a@2of4: ", slow)

    def test_what_runs_over_the_time_is_ended_and_all_is_said(self):
        self.part("30", "b", script="echo begun; sleep 77")
        result = self.run_test("b", "quick", KRCORE_TEST_SECONDS="700", KRCORE_OVERTIME="-699")
        self.assertEqual((result.returncode, self.last(result)),
                         (1, "0 passed, 1 failed, 1 skipped"))
        self.assertIn("FAIL b: ended: the time is over", result.stdout)
        self.assertIn("not run: quick: the time is over", result.stdout)

    def test_a_change_names_what_nothing_of_it_asks_for(self):
        (self.folder / "changed.toml").write_text(
            '[[rule]]\npaths = ["**"]\ntests = ["quick"]\nwhy = "all"\n')
        if not (pathlib.Path(RUN).parent / ".git").exists():
            self.skipTest("not a checkout")
        result = self.run_test("--plan", "changed", "--since", "HEAD")
        # `quick` as well, where nothing is changed
        self.assertRegex(result.stdout, r"not asked for by what has changed: [\w, ]*\ba, b, c: ")

    def test_the_plan_can_be_seen(self):
        result = self.run_test("--plan")
        self.assertEqual(result.returncode, 0)
        self.assertIn("a: some of a", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^a +2:00  one\$\|two\$$")
        self.assertFalse((self.folder / "build").exists())


class Help(Folder):
    """What a command is for is said by itself: nothing is installed or compiled for that."""

    def test_of_each_command(self):
        tried = self.folder / "tried"
        for program in ("dpkg-query", "apt-get", "cmake", "sudo"):
            (self.folder / program).write_text(f"#!/bin/sh\necho {program} >>{tried}\nexit 1\n")
            (self.folder / program).chmod(0o755)
        path = f"{self.folder}:{os.environ['PATH']}"
        for words in ("test", "lint", "build", "build module", "packages", "demo", "bench",
                      "bench lookup --json", "hw-report a b", "up", "push", "loop", "shell",
                      "down", "status"):
            command = words.split()[0]
            with self.subTest(words):
                result = subprocess.run([RUN, *words.split(), "--help"], capture_output=True,
                                        text=True, timeout=100, check=False,
                                        env=self.environment(PATH=path))
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stdout, rf"(?m)^ *usage: \./run ({command}|COMMAND)\b")
                self.assertFalse(tried.exists(), f"{words}: it tried something")
                self.assertFalse((self.folder / "build").exists())


unittest.main(argv=sys.argv[:1])
