# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The bash completion, by driving its function as bash does.

Usage: metactl_completion.py KRCORE-METACTL COMPLETION
"""
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

import bash
from peer import Peer

TOOL, COMPLETION = os.path.abspath(sys.argv[1]), sys.argv[2]


def complete(line, tool="krcore-metactl", cwd=None):
    """What is offered after this line."""
    return bash.complete(COMPLETION, "_krcore_metactl", f"{tool} {line}", cwd=cwd)


class Completion(unittest.TestCase):
    """One case a place where a word can be completed."""

    def test_objects(self):
        self.assertEqual(complete("re"), ["record", "resolve"])
        self.assertIn("doctor", complete(""))
        self.assertIn("help", complete(""))
        self.assertEqual(complete("frob"), [])

    def test_commands(self):
        self.assertEqual(complete("record "), ["list", "get", "publish", "withdraw", "help"])
        self.assertEqual(complete("rec p"), ["publish"])
        self.assertEqual(complete("table d"), ["dump", "diff"])
        self.assertEqual(complete("frob x"), [])
        self.assertEqual(complete("r x"), [])

    def test_parameters(self):
        self.assertEqual(complete("table dump "), ["server", "raw"])
        self.assertEqual(complete("table dump server "), [])
        self.assertEqual(complete("table dump server 1 "), ["raw"])
        self.assertEqual(complete("resolve 10.0.0.1 "), ["service", "verify", "count"])
        self.assertEqual(complete("resolve 10.0.0.1 verify "), ["service", "count"])
        self.assertEqual(complete("resolve fe80::1 service 3 v"), ["verify"])
        self.assertEqual(complete("record publish 10.0.0.1 ud_q"), ["ud_qpn", "ud_qkey"])
        self.assertEqual(complete("record publish 10.0.0.1 raw "), [])
        self.assertEqual(complete("resolve 10.0.0.1 frob "), [])

    def test_options(self):
        self.assertIn("--json", complete("--"))
        self.assertEqual(complete("--sh"), ["--show-keys"])
        self.assertIn("-j", complete("record list -"))
        self.assertEqual(complete("-j -p rec"), ["record"])
        self.assertEqual(complete("-t 5 -S a,b rec"), ["record"])
        self.assertEqual(complete("-S "), [])
        self.assertEqual(complete("-t "), [])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one.conf", "two.conf"):
                with open(os.path.join(folder, name), "w", encoding="ascii"):
                    pass
            self.assertEqual(complete("-c o", cwd=folder), ["one.conf"])
            self.assertEqual(complete("--config tw", cwd=folder), ["two.conf"])
            self.assertEqual(complete("config check o", cwd=folder), ["one.conf"])

    def test_live_gids(self):
        rows = [{"gid": g, "service": 0, "kind": "raw"}
                for g in ("fe80::1", "fe80::2", "10.0.0.7", "fe80::1")]
        with Peer({"records": lambda a: {"ok": True, "result": rows}}) as peer:
            tool = f"{shlex.quote(TOOL)} -s {peer.path}"
            self.assertEqual(sorted(complete("resolve ", tool)),
                             ["10.0.0.7", "fe80::1", "fe80::2"])
            self.assertEqual(complete("record get 10", tool), ["10.0.0.7"])
            self.assertEqual(complete("record get fe80:", tool), [":1", ":2"])
            self.assertEqual(complete("record get fe80::2", tool), ["2"])

    def test_no_daemon_is_silent(self):
        self.assertEqual(complete("resolve ", f"{TOOL} -s /nonexistent"), [])

    def test_every_command_of_the_help_is_offered(self):
        objects = [o for o in complete("") if o != "help"]
        for name in objects:
            text = subprocess.run([TOOL, name, "help"], capture_output=True, text=True,
                                  check=True).stdout
            offered = complete(name + " ")
            for line in text.splitlines():
                words = line.split()
                if words[:2] == ["krcore-metactl", name] and len(words) > 2 and \
                        words[2].isalpha() and offered and offered[-1] == "help":
                    self.assertTrue(words[2] in offered or name == "resolve", line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
