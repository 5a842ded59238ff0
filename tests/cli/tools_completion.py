# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The bash completions of krcore-race and krcore-handoff, by driving their functions as bash does.

Usage: tools_completion.py KRCORE-RACE COMPLETION KRCORE-HANDOFF COMPLETION
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import bash

RACE, RACE_FILE, HANDOFF, HANDOFF_FILE = (os.path.abspath(word) for word in sys.argv[1:5])


class Tool(unittest.TestCase):
    """What both have in common."""

    tool = file = function = None

    def setUp(self):
        with tempfile.NamedTemporaryFile("w", suffix=".hosts", delete=False) as hosts:
            hosts.write("127.0.0.1 node1 node2\n")
        self.addCleanup(os.unlink, hosts.name)
        self.hosts = hosts.name

    def offered(self, line, cwd=None):
        """What is offered after this line of the tool."""
        return bash.complete(self.file, self.function, f"{os.path.basename(self.tool)} {line}", cwd,
                             True, {"HOSTFILE": self.hosts})

    def options(self):
        """{long option: its letter}, and the set of those that take an argument."""
        said = subprocess.run([self.tool, "--help"], capture_output=True, text=True,
                              check=True).stdout
        found = re.findall(r"(?:^  |, )-(\w), (--[\w-]+)( [A-Z]+)?", said, re.M)
        self.assertGreater(len(found), 5, said)
        return {name: letter for letter, name, _ in found}, \
            {name for _, name, argument in found if argument}

    def check_options(self):
        """All that --help says is offered, and nothing else; arguments are not taken for a
        command."""
        named, argued = self.options()
        self.assertEqual(sorted(self.offered("-")), sorted(named))
        self.assertLessEqual({"--version", "--help"}, set(named))
        commands = self.offered("")
        for name, letter in named.items():
            for option in (name, f"-{letter}"):
                after = self.offered(f"{option} 7 " if name in argued else f"{option} ")
                self.assertEqual(after, commands, option)


class Race(Tool):
    """krcore-race."""

    tool, file, function = RACE, RACE_FILE, "_krcore_race"

    def test_options(self):
        self.check_options()
        self.assertEqual(self.offered("--me"), ["--memory"])
        self.assertEqual(self.offered("-m "), [])

    def test_commands(self):
        said = subprocess.run([self.tool, "--help"], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual(sorted(self.offered("")),
                         sorted(re.findall(r"\[OPTION\]\.\.\. (\w+)", said)))
        self.assertEqual(self.offered("s"), ["serve", "scan"])
        self.assertEqual(self.offered("frob"), [])

    def test_arguments(self):
        self.assertEqual(sorted(self.offered("get ")), ["node1", "node2"])
        self.assertEqual(self.offered("--reclaim check node1"), ["node1"])
        self.assertEqual(self.offered("get node1 "), [])
        self.assertEqual(self.offered("serve "), [])
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "saved.tsv"), "w", encoding="ascii"):
                pass
            self.assertEqual(self.offered("load node1 sa", folder), ["saved.tsv"])
            self.assertEqual(self.offered("scan node1 sa", folder), [])


class Handoff(Tool):
    """krcore-handoff."""

    tool, file, function = HANDOFF, HANDOFF_FILE, "_krcore_handoff"

    def test_options(self):
        self.check_options()
        self.assertEqual(self.offered("--memory"), ["--memory", "--memory-max"])
        self.assertEqual(self.offered("-n "), [])
        self.assertEqual(self.offered("-u roo"), ["root"])
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "functions"))
            self.assertEqual(self.offered("-d fun", folder), ["functions"])

    def test_commands(self):
        said = subprocess.run([self.tool, "--help"], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual(sorted(self.offered("")),
                         sorted(re.findall(r"\[OPTION\]\.\.\. (\w+)", said)))
        self.assertEqual(self.offered("c"), ["chain"])

    def test_arguments(self):
        self.assertEqual(self.offered("chain "), [])
        self.assertEqual(sorted(self.offered("--warm chain 9216 ")), ["node1", "node2"])
        self.assertEqual(self.offered("spread 9216 node1 node2"), ["node2"])
        self.assertEqual(self.offered("serve "), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
