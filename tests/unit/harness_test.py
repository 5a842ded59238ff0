# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The cluster's harness, as far as it needs no guest: what of a kernel log is trouble, which
tests a run has, that a test which skips is looked at all the same, what ./run loop writes,
which commands a document has, and how many requests the stress forgives.

Usage: harness_test.py SOURCE-TREE
"""
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import types
import unittest
import unittest.mock

TREE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(TREE / "tests"))

from cluster import document, host, kbuild, kunit, loop, module, packages, suite  # noqa: E402
from cluster import process, test_stress             # noqa: E402
from cluster.kernel_log import OF_FAULTS, KernelLog     # noqa: E402

# Warnings of krcore.ko that a test may well cause: the rest is trouble.
COMMON = ("%s refuses record", "lost %s", "failed: %s", "limits in rdma.max",
          "a lane to %pI6c does not connect", "a peer has undone key",
          "the queue pair of hand-shakes has failed", "no cluster key proves who asks",
          "more than %u initiators do not go with lanes", "the end of messages is held up by %s",
          "%pI6c refuses what it allows")
WARNING = re.compile(r'\b(pr|ibdev|krc_port)_(?:warn|err)\w*\((?:[\w>.-]+,\s*){0,2}"([^"]*)\\n"')

OVERLAP = """\
------------[ cut here ]------------
DMA-API: mlx5_core 0000:00:05.0: cacheline tracking EEXIST, overlapping mappings aren't supported
WARNING: CPU: 1 PID: 77 at kernel/dma/debug.c:571 add_dma_entry+0x1
Call Trace:
 <TASK>
 dma_map_sg_attrs+0x1
"""
OVERLAP_END = "---[ end trace 0000000000000000 ]---\n"
KASAN = "BUG: KASAN: slab-use-after-free in krc_pool_stop+0x1\n"
# What mm/vmalloc.c of 6.1 to 6.12 says when it lacks memory, and its report.
VMALLOC = ("vm_struct allocation failed", "page order 0, failed to allocate pages",
           "failed to allocate pages", "failed to map pages",
           "failed to allocated page array size 16")
VMALLOC_REPORT = """\
krc_genl: vmalloc error: size 8192, {}, mode:0xdc2(GFP_KERNEL|__GFP_HIGHMEM|__GFP_ZERO)
CPU: 1 UID: 0 PID: 77 Comm: krc_genl Not tainted 6.12.1
Call Trace:
 <TASK>
 dump_stack_lvl+0x1
 </TASK>
Mem-Info:
"""


class Console(unittest.TestCase):
    """A file as a guest's serial console writes it."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name, "console.log")
        self.log = KernelLog(self.path)

    def problems(self, text):
        with open(self.path, "a", encoding="ascii") as file:
            file.write(text)
        return self.log.problems()

    def test_a_known_report_is_no_trouble(self):
        self.assertEqual(self.problems(OVERLAP + OVERLAP_END), [])

    def test_another_report_within_a_known_one_is_trouble(self):
        self.assertEqual(self.problems(OVERLAP + KASAN + OVERLAP_END), [KASAN.strip()])
        self.assertEqual(self.problems(OVERLAP + "possible circular locking dependency\n"),
                         ["possible circular locking dependency"])

    def test_another_report_behind_one_without_end_is_trouble(self):
        self.assertEqual(self.problems(OVERLAP), [])
        self.assertEqual(self.problems("quiet\n" * 50 + KASAN), [KASAN.strip()])

    def test_more_than_a_known_report_has_is_trouble(self):
        self.assertEqual(self.problems(OVERLAP + "Call Trace:\n" + OVERLAP_END), ["Call Trace:"])
        other = "WARNING: CPU: 0 PID: 7 at kernel/fork.c:1 f+0x1"
        self.assertEqual(self.problems(OVERLAP + other + "\n" + OVERLAP_END), [other])
        # two at once have each theirs, and the next one nothing of what they left
        self.assertEqual(self.problems(OVERLAP + OVERLAP + OVERLAP_END + "Call Trace:\n"),
                         ["Call Trace:"])

    def test_two_reports_in_one_line_are_trouble(self):
        both = OVERLAP.splitlines()[1] + KASAN
        self.assertEqual(self.problems(both), [both.strip()])
        part = "Call Trace:" + KASAN
        self.assertEqual(self.problems(OVERLAP + part), [part.strip()])

    def test_dma_debugging_may_only_give_up_where_faults_are_asked_for(self):
        gone = "DMA-API: cacheline tracking ENOMEM, dma-debug disabled\n"
        self.assertEqual(self.problems(gone), [gone.strip()])
        self.log.pardon(OF_FAULTS)
        self.assertEqual(self.problems(gone), [])
        self.assertEqual(self.problems(gone), [gone.strip()])

    def test_every_report_of_vmalloc_is_known_where_faults_are_asked_for(self):
        for why in VMALLOC:
            self.log.pardon(OF_FAULTS)
            self.assertEqual(self.problems(VMALLOC_REPORT.format(why)), [], why)
            self.assertEqual(self.problems(VMALLOC_REPORT.format(why)), ["Call Trace:"], why)

    def test_the_alarms_of_the_module_are_trouble(self):
        said = [found for path in sorted((TREE / "kmod").rglob("*.c"))
                if path.parent.name not in ("tests", "samples")
                for found in WARNING.findall(path.read_text())]
        self.assertEqual([text for text in COMMON
                          if not any(line.startswith(text) for _, line in said)], [])
        alarms = [("mlx5_0/1: " if about == "krc_port" else "") + text
                  for about, text in said if not text.startswith(COMMON)]
        self.assertGreaterEqual(len(alarms), 8)
        lines = [f"[ 7.7] krcore: {re.sub(r'%[a-z]+', '7', text)}" for text in alarms]
        self.assertEqual(self.problems("\n".join(lines) + "\n"), lines)


class Processes(unittest.TestCase):
    """Programs of ours on this machine."""
    FIRST_THREAD_ENDS = ("import ctypes, threading, time; "
                         "threading.Thread(target=time.sleep, args=(60,)).start(); "
                         "ctypes.CDLL(None).pthread_exit(None)")

    def test_one_whose_first_thread_has_ended_is_alive(self):
        with tempfile.TemporaryDirectory() as folder:
            started = process.Process.start([sys.executable, "-c", self.FIRST_THREAD_ENDS],
                                            log=pathlib.Path(folder, "log"))
            stat = pathlib.Path(f"/proc/{started.pid}/stat")
            suite.wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", 20,
                             "its first thread has ended")
            self.assertTrue(started.alive())
            started.kill()
            self.assertFalse(started.alive())
            self.assertFalse(stat.exists())


class FakeMachine:
    """What the suite asks of a guest after a test."""
    name = "node1"

    def __init__(self, problems):
        self.kernel_problems = lambda: problems


def cluster_with(problems):
    """A cluster of one guest whose kernel log has these lines; its fabric's `forgot` is a list of
    the times that it was asked to count anew."""
    forgot = []
    return types.SimpleNamespace(nodes=lambda: [FakeMachine(problems)], dead=lambda: [],
                                 kernel=types.SimpleNamespace(times=lambda: 1),
                                 fabric=types.SimpleNamespace(forgot=forgot,
                                                              forget=lambda: forgot.append(1)))


class Run(unittest.TestCase):
    """The suite itself."""

    def run_one(self, function, problems=()):
        """Names of the counters that a test moves."""
        run = suite.Suite(cluster_with(list(problems)), None)
        run.save_logs = run._repair = lambda *_: None
        run._one("some.test", function)
        return [name for name in ("passed", "failed", "skipped") if getattr(run, name)]

    def test_a_test_that_skips_is_looked_at(self):
        def skips(_cluster):
            raise suite.Skip("not here")
        self.assertEqual(self.run_one(skips), ["skipped"])
        self.assertEqual(self.run_one(skips, [KASAN]), ["failed"])
        self.assertEqual(self.run_one(lambda _: None), ["passed"])
        self.assertEqual(self.run_one(lambda _: None, [KASAN]), ["failed"])

    def test_how_long_each_took_is_kept(self):
        def fails(_cluster):
            raise AssertionError("as it should")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        cluster = cluster_with([])
        run = suite.Suite(cluster, pathlib.Path(scratch.name, "logs"))
        run.save_logs = run._repair = lambda *_: None
        self.assertFalse(run.run([("one", lambda _: time.sleep(0.1), True), ("two", fails, True)]))
        times = json.loads(pathlib.Path(scratch.name, "logs/times.json").read_text())
        self.assertEqual(list(times), ["one", "two"])
        self.assertEqual(len(cluster.fabric.forgot), 2, "each counts anew")
        self.assertGreaterEqual(times["one"], 0.1)

    def test_only_what_can_run_here_is_selected(self):
        everything = {name for name, _, _ in suite.select(".")}
        soft = {name for name, _, _ in suite.select(".", [])}
        self.assertIn("dual_port.", " ".join(everything - soft))
        self.assertFalse([name for name in soft if name.startswith(("faults.", "firmware."))])
        self.assertIn("module.traffic_is_right", soft)
        with self.assertRaises(host.ClusterError):
            suite.select(r"^dual_port\.", [])

    def test_what_injects_faults_comes_last(self):
        names = [name for name, _, _ in suite.select(".")]
        first = min(at for at, name in enumerate(names) if name.startswith("faults."))
        self.assertTrue(all(name.startswith("faults.") for name in names[first:]))

    def test_a_share_is_dealt_in_order(self):
        self.assertEqual(suite.share(list("abcdefg"), "2/3"), ["b", "e"])
        self.assertEqual(suite.share(list("abc"), "1/1"), list("abc"))
        with self.assertRaises(host.ClusterError):
            suite.share(list("abc"), "4/3")


class Kunit(unittest.TestCase):
    """A suite's results, as the guest has them, and what is said of them."""

    KTAP = """KTAP version 1
1..1
    # Subtest: krcore_s
    1..3
    ok 1 krc_test_a
    # krc_test_b: EXPECTATION FAILED at x.c:7
    not ok 2 krc_test_b
    ok 3 krc_test_c
not ok 1 krcore_s"""

    def test_what_failed_is_told_and_nothing_else(self):
        said = kunit.judge("krcore_s", ["krc_test_a", "krc_test_b", "krc_test_c"], self.KTAP)
        self.assertIn("krcore_s.krc_test_b: not ok", said)
        self.assertIn("    # krc_test_b: EXPECTATION FAILED at x.c:7", said)
        self.assertNotIn("    ok 1 krc_test_a", said)
        self.assertNotIn("    ok 3 krc_test_c", said)

    def test_nothing_is_said_of_what_passed(self):
        self.assertEqual(kunit.judge("krcore_s", ["krc_test_a"],
                                     "    ok 1 krc_test_a\nok 1 krcore_s"), [])

    def test_a_case_that_stays_away_is_told(self):
        self.assertIn("krcore_s.krc_test_d: did not run",
                      kunit.judge("krcore_s", ["krc_test_d"], self.KTAP))


class Document(unittest.TestCase):
    """Commands that a test types as a reader would."""

    TEXT = """
# Above
    one:  not --this   one
## Here
Words, and then
    one:  first | second -x 'a  b'
    both: third            says up, and more

    two:  fourth <file     paste it
    one:  stay             stays, and says so: go on
### Below it
    two:  fifth
## Next
    one:  not --this   either
"""

    def steps(self, text=TEXT):
        return document.steps(text, "## Here", ("one", "two", "both"))

    def test_commands_of_one_heading_are_taken_as_they_are_written(self):
        found = self.steps()
        self.assertEqual([(step.where, step.command) for step in found],
                         [("one", "first | second -x 'a  b'"), ("both", "third"),
                          ("two", "fourth <file"), ("one", "stay"), ("two", "fifth")])
        self.assertEqual([step.says() for step in found], [None, "up", None, "so", None])
        self.assertEqual(found[2].note, "paste it")

    def test_a_line_that_would_be_passed_over_is_an_error(self):
        for line in ("    three: command", "    command alone", "    one:"):
            with self.assertRaises(ValueError):
                self.steps(self.TEXT.replace("    both: third", f"{line}\n    both: third"))
        for text in (self.TEXT.replace("## Here", "## There"), "## Here\nwords\n"):
            with self.assertRaises(ValueError):
                self.steps(text)


class SideBySide(unittest.TestCase):
    """What runs of one checkout share in its build folder."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        patch = unittest.mock.patch.dict(
            os.environ, KRCORE_BUILD=str(self.folder / "build"), SOURCE_DATE_EPOCH="1000000000")
        patch.start()
        self.addCleanup(patch.stop)

    def archive(self, content):
        """A package with one file."""
        tree = self.folder / "tree"
        (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
        (tree / "DEBIAN/control").write_text("Package: toy\nVersion: 1\nArchitecture: all\n"
                                             "Maintainer: nobody <nobody@localhost>\n"
                                             "Description: a toy\n")
        (tree / "file").write_text(content)
        host.run(["dpkg-deb", "--root-owner-group", "-b", tree, self.folder / "toy.deb"])
        return self.folder / "toy.deb"

    def test_what_a_run_unpacked_stays_while_another_one_comes(self):
        first = packages._unpacked([self.archive("one")])
        (first / "mine").touch()
        self.assertEqual(packages._unpacked([self.archive("one")]), first)
        second = packages._unpacked([self.archive("two")])
        self.assertTrue((first / "mine").exists())
        self.assertEqual([(folder / packages.DATA / "file").read_text()
                          for folder in (first, second)], ["one", "two"])
        self.assertTrue((first / "toy.deb/control").exists())

    def test_one_at_a_time_makes_a_thing(self):
        script = (f"import sys; sys.path.insert(0, {str(TREE / 'tests')!r})\n"
                  "import pathlib, time\nfrom cluster import host\n"
                  f"alone = pathlib.Path({str(self.folder)!r}, 'alone')\n"
                  "with host.making('thing'):\n    alone.mkdir()\n    time.sleep(0.3)\n"
                  "    alone.rmdir()\n")
        runs = [subprocess.Popen([sys.executable, "-B", "-c", script],
                                 stderr=subprocess.DEVNULL) for _ in range(3)]
        self.assertEqual([run.wait(60) for run in runs], [0, 0, 0])


class Guest:
    """What is written to a guest whose cluster stays up."""
    name = "node1"

    def __init__(self):
        self.written = []
        self.ran = []
        self.stamp = ""

    def run(self, command, **_):
        """A command there: of the module's stamp it knows what was echoed to it."""
        self.ran.append(command)
        echoed = re.search(r"echo (\w+ \w+) >/usr/lib/modules", command)
        if echoed:
            self.stamp = echoed.group(1)
        return types.SimpleNamespace(status=0, out=self.stamp)

    def push(self, source, path, mode=None):
        """A file of it; all that counts is which, or what an archive has."""
        del mode
        if path != packages.ARCHIVE:
            self.written.append(path)
            return
        with tarfile.open(fileobj=io.BytesIO(source)) as tar:
            self.written += ["/" + name.removesuffix(".new") for name in tar.getnames()]

    def take(self):
        """What was written since the last call."""
        written, self.written = self.written, []
        return written


class Loop(unittest.TestCase):
    """./run loop: what a call puts into guests that stay."""

    INSTALLED = ("/usr/bin/tool", "/usr/lib/one/lib.so.1.0")

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name, "cluster")
        self.folder.mkdir()
        (self.folder / "pushed-shape").write_text(json.dumps(dict.fromkeys(self.INSTALLED, "")))
        self.staged = pathlib.Path(scratch.name, "staged")
        self.guest = Guest()
        self.cluster = types.SimpleNamespace(
            folder=self.folder, each=lambda action: action(self.guest),
            kernel=types.SimpleNamespace(name="6.1", release="6.1.0-toy"))
        for name in (*self.INSTALLED, "/usr/bin/of-no-package"):
            self.stage(name, "true")
        self.stage("/usr/share/manual", "true").write_text("no program")

    def stage(self, name, program):
        """A program of this machine, as if it had just been compiled."""
        path = self.staged / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shutil.which(program), path)
        return path

    def call(self):
        """One call's user space, with the notes that the last one left; what it wrote."""
        notes = loop.Notes(self.cluster)
        kept = pathlib.Path(tempfile.mkdtemp(dir=self.folder.parent))
        shutil.copytree(self.staged, kept, dirs_exist_ok=True)
        try:
            loop.push_files(self.cluster, notes, kept)
        finally:
            notes.save()
        return self.guest.take()

    def test_only_what_differs_is_written(self):
        self.assertEqual(self.call(), sorted(self.INSTALLED))
        self.assertEqual(self.call(), [])
        self.stage(self.INSTALLED[1], "false")
        self.assertEqual(self.call(), [self.INSTALLED[1]])
        self.assertEqual(self.call(), [])
        self.stage(self.INSTALLED[1], "true")       # the line is changed back
        self.assertEqual(self.call(), [self.INSTALLED[1]])

    def test_a_bare_cluster_is_refused(self):
        (self.folder / "pushed-shape").unlink()
        with self.assertRaisesRegex(host.ClusterError, "push"):
            self.call()
        self.assertEqual(self.guest.take(), [])

    def test_after_a_push_nothing_is_taken_for_granted(self):
        self.call()
        loop.forget(self.cluster)
        self.assertEqual(self.call(), sorted(self.INSTALLED))

    def test_a_guest_that_could_not_be_written_is_written_again(self):
        def torn(*_, **__):
            raise host.ClusterError("the guest died")
        self.call()
        self.stage(self.INSTALLED[0], "false")
        with unittest.mock.patch.object(Guest, "push", torn), self.assertRaises(host.ClusterError):
            self.call()
        self.stage(self.INSTALLED[0], "true")
        self.assertEqual(self.call(), [self.INSTALLED[0]])

    def test_files_come_whole_with_their_modes(self):
        root = self.folder.parent / "guest"
        class Scratch:
            """A guest whose root is a folder of this machine."""
            commands = 0

            def push(self, source, path):
                """A file below it."""
                (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
                (root / path.lstrip("/")).write_bytes(source)

            def run(self, command):
                """A command in it."""
                self.commands += 1
                command = command.replace("cd / ", f"cd {root} ").replace("/run/", f"{root}/run/")
                subprocess.run(["bash", "-ec", command], check=True)

        for name, mode in zip(self.INSTALLED, (0o755, 0o640)):
            (self.staged / name.lstrip("/")).chmod(mode)
        there = root / self.INSTALLED[0].lstrip("/")
        there.parent.mkdir(parents=True)
        there.write_text("old")
        with open(there, encoding="ascii") as old:      # as a program that runs has it
            guest = Scratch()
            packages.write_files(guest, self.staged, self.INSTALLED)
            self.assertEqual(old.read(), "old")
        for name in self.INSTALLED:
            made, wanted = root / name.lstrip("/"), self.staged / name.lstrip("/")
            self.assertEqual(made.read_bytes(), wanted.read_bytes())
            self.assertEqual(made.stat().st_mode, wanted.stat().st_mode)
        self.assertEqual([path.name for path in root.rglob("*") if path.suffix in (".new", ".tar")],
                         [])
        self.assertEqual(guest.commands, 1)

    def module(self, source, depends):
        """A call's module, compiled from this; whether it was written, and whether depmod ran."""
        made = self.folder / "krcore.ko"
        made.write_text(source)
        self.guest.ran.clear()
        with unittest.mock.patch.object(host, "run", lambda argv, **_: depends):
            module.install(self.cluster, lambda _kernel: made)
        return bool(self.guest.take()), any("depmod" in line for line in self.guest.ran)

    def test_depmod_runs_when_it_has_something_new_to_know(self):
        self.assertEqual(self.module("one", "ib_core"), (True, True))
        self.assertEqual(self.module("one", "ib_core"), (False, False))
        self.assertEqual(self.module("two", "ib_core"), (True, False))
        self.assertEqual(self.module("three", "ib_core,mlx5_ib"), (True, True))

    def test_a_module_is_compiled_when_its_sources_have_changed(self):
        built = []
        tree = self.folder.parent / "tree"
        for name in loop.MODULE_SOURCES:
            (tree / name).mkdir(parents=True)
        with unittest.mock.patch.object(host, "CHECKOUT", tree), \
                unittest.mock.patch.object(module, "install", lambda *_: built.append(1)):
            for text in ("one", "one", "two"):
                (tree / "proto/a.h").write_text(text)
                notes = loop.Notes(self.cluster)
                loop.push_module(self.cluster, notes)
                notes.save()
        self.assertEqual(len(built), 2)


class Doubt(unittest.TestCase):
    """How many requests of the stress may be in doubt by what the module counts of its pools."""

    SHARED = 10

    def judge(self, doubted, *pools):
        """Pools are (depth, refused READs, leases that were over)."""
        rows = [{"depth": depth, "refused_reads": refused, "expired": expired}
                for depth, refused, expired in pools]
        test_stress._doubt_has_cause({"doubted": doubted}, rows, self.SHARED)

    def test_each_reset_forgives_so_many_and_no_more(self):
        # both kinds of reset count, of all pools, each with the depth of the deepest
        for most, pools in ((74, [(64, 1, 0)]), (74, [(64, 0, 1)]), (148, [(64, 1, 1)]),
                            (222, [(32, 2, 0), (64, 0, 1)])):
            self.judge(most, *pools)
            with self.assertRaises(AssertionError):
                self.judge(most + 1, *pools)

    def test_without_a_reset_nothing_may_be_in_doubt(self):
        self.judge(0, (64, 0, 0), (32, 0, 0))
        with self.assertRaises(AssertionError):
            self.judge(1, (64, 0, 0), (32, 0, 0))


class Places(unittest.TestCase):
    """Where modules are compiled."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        cache = unittest.mock.patch.object(host, "CACHE", self.folder / "cache")
        cache.start()
        self.addCleanup(cache.stop)

    def made(self, *key):
        """Make an object in a place; whether it was there already."""
        with kbuild.place("kernel", *key) as place:
            there = (place / "a.o").exists()
            (place / "a.o").touch()
        return there

    def test_what_was_made_is_there_the_next_time(self):
        self.assertFalse(self.made("headers"))
        self.assertTrue(self.made("headers"))
        self.assertFalse(self.made("others"))

    def test_it_is_there_after_an_error(self):
        self.made()
        with self.assertRaises(host.ClusterError), kbuild.place("kernel"):
            raise host.ClusterError("make failed")
        self.assertTrue(self.made())

    def test_nothing_is_believed_after_a_kill(self):
        self.made()
        with self.assertRaises(KeyboardInterrupt), kbuild.place("kernel"):
            raise KeyboardInterrupt
        self.assertFalse(self.made())
        self.assertTrue(self.made())

    def test_what_is_equal_keeps_its_time(self):
        sources, place = self.folder / "sources", self.folder / "place"
        sources.mkdir()
        for name in ("a.c", "b.c"):
            (sources / name).write_text(name)
        names = {f"kmod/{name}": sources / name for name in ("a.c", "b.c")}
        kbuild.copy(names, place)
        for name in ("kmod/a.c", "kmod/b.c", "kmod/krcore.mod.c", "kmod/b.o"):
            (place / name).touch()
            os.utime(place / name, (1, 1))
        (sources / "a.c").write_text("another")
        del names["kmod/b.c"]
        kbuild.copy(names, place)
        self.assertEqual((place / "kmod/a.c").read_text(), "another")
        self.assertNotEqual((place / "kmod/a.c").stat().st_mtime, 1)
        self.assertEqual(sorted(path.name for path in (place / "kmod").iterdir()),
                         ["a.c", "krcore.mod.c"])
        (place / "kmod/a.c").touch()
        os.utime(place / "kmod/a.c", (1, 1))
        kbuild.copy(names, place)
        self.assertEqual((place / "kmod/a.c").stat().st_mtime, 1)


unittest.main(argv=sys.argv[:1])
