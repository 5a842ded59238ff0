#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore-race and krcore-handoff: what they take, what --help says and what the manual page says
are the same options and commands. That completion offers what --help says is tested with the
programs, tests/cli/tools_completion.py.

usage: tool_words_test.py CHECKOUT
"""

import pathlib
import re
import sys
import unittest

CHECKOUT = pathlib.Path(sys.argv.pop(1))
TOOLS = {"krcore-race": "race/tool/main.c", "krcore-handoff": "handoff/runner/main.c"}


class Tool:
    """What a tool's files say."""

    def __init__(self, name):
        self.name = name
        self.source = (CHECKOUT / TOOLS[name]).read_text(encoding="utf-8")
        self.help = self.source.partition("usage: ")[2].partition("};")[0]
        self.man = (CHECKOUT / f"docs/man/{name}.1").read_text(encoding="utf-8")
        self.table = dict(re.findall(r'\{ "([\w-]+)", \w+_argument, NULL, \'(\w)\' \}',
                                     self.source))
        self.commands = set(re.findall(r'\{ \{ "(\w+)", \w+', self.source))


class Words(unittest.TestCase):
    """The same for each tool."""

    def each(self, check):
        """Check all tools."""
        for name in TOOLS:
            with self.subTest(name):
                tool = Tool(name)
                self.assertGreater(len(tool.table), 5)
                self.assertGreater(len(tool.commands), 2)
                check(tool)

    def test_options(self):
        """Long ones."""
        self.each(self._options)

    def _options(self, tool):
        options = set(tool.table)
        self.assertEqual(set(re.findall(r"--([\w-]+)", tool.help)), options, "--help")
        self.assertEqual(set(re.findall(r"\.It Fl \w , Fl Fl ([\w-]+)", tool.man)), options,
                         "manual page")

    def test_letters(self):
        """Short ones, and which of them take an argument."""
        self.each(self._letters)

    def _letters(self, tool):
        taken = re.search(r'getopt_long\(argc, argv, "\+([\w:]+)"', tool.source)[1]
        self.assertEqual(set(re.findall(r"\w", taken)), set(tool.table.values()), "getopt_long()")
        self.assertEqual(dict(re.findall(r"\.It Fl (\w) , Fl Fl ([\w-]+)", tool.man)),
                         {letter: name for name, letter in tool.table.items()}, "manual page")
        said = re.findall(r"-(\w), --([\w-]+)( [A-Z]+)?", tool.help)
        self.assertEqual({name: letter for letter, name, _ in said}, tool.table, "--help")
        for letter, name, argument in said:
            self.assertEqual(bool(argument), f'"{name}", required_argument' in tool.source, name)
            self.assertEqual(bool(argument), f"{letter}:" in taken, name)

    def test_commands(self):
        """Commands, by all three."""
        self.each(self._commands)

    def _commands(self, tool):
        self.assertEqual(set(re.findall(r"\[OPTION\]\.\.\. (\w+)", tool.help)), tool.commands)
        found = set(re.findall(r"^\.It Cm (\w+)", tool.man, re.M))
        self.assertEqual(found & tool.commands, tool.commands, "manual page")


if __name__ == "__main__":
    unittest.main()
