# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Manual pages against the program, and the unit against its promise."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import textwrap
import unittest

from daemon import TOP, run

EXPOSURE_MAX = 2.5


def keys():
    """Section, key and default of every key."""
    section = None
    for line in run("--print", "--config", "/dev/null").stdout.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        match = re.fullmatch(r"#([a-z_]+) = ?(.*)", line)
        if match:
            yield section, match[1], match[2]


class Documents(unittest.TestCase):
    """What is written down is true."""

    def test_every_key_is_in_the_manual(self):
        page = (TOP / "docs/man/krcore.conf.5").read_text()
        sections = dict(re.findall(r"\.Ss Keys of section (\w+)\n(.*?)\n(?=\.Ss|\.Sh)", page,
                                   re.DOTALL))
        found = [(section, key, "" if default.startswith("Pq") else default[3:])
                 for section, text in sections.items()
                 for key, default in re.findall(r"\.It Cm (\w+) No = (.*)", text)]
        self.assertEqual(found, list(keys()))
        self.assertGreater(len(found), 25)

    def test_every_option_is_in_the_manual(self):
        page = (TOP / "docs/man/krcore-metaserver.8").read_text()
        for option in re.findall(r"--([a-z]+)", run("--help").stdout):
            if option != "usage":
                self.assertIn(f"-{option}", page)

    def test_unit_exposure(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        result = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", os.environ["KRCORE_UNIT"]],
            capture_output=True, text=True, timeout=60, check=False)
        match = re.search(r"exposure level.*: ([0-9.]+)", result.stdout)
        self.assertTrue(match, result.stderr)
        print(f"systemd-analyze security: exposure {match[1]}")
        self.assertLessEqual(float(match[1]), EXPOSURE_MAX)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_drop_in_of_the_credential(self):
        """The lines of operation.md are ones that systemd knows."""
        text = (TOP / "docs/operation.md").read_text()
        section = text.split("## The cluster key as a credential")[1].split("\n## ")[0]
        lines = re.search(r"\n    \[Service\]\n(    \w+=.*\n)+", section)[0]
        self.assertIn("LoadCredentialEncrypted=cluster:", lines)
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / "krcore-metaserver.service"
            whole = pathlib.Path(os.environ["KRCORE_UNIT"]).read_text()
            # verify looks for the programs; here they are not installed
            unit.write_text(re.sub(r"(?m)^(Exec\w+)=\S+krcore-metaserver", r"\1=/bin/true", whole))
            drop_in = pathlib.Path(f"{unit}.d") / "key.conf"
            drop_in.parent.mkdir()

            def verify(body):
                drop_in.write_text(textwrap.dedent(body))
                return subprocess.run(["systemd-analyze", "verify", "--man=no",
                                       "--recursive-errors=no", str(unit)], text=True,
                                      capture_output=True, timeout=60, check=False).stderr
            self.assertNotIn("key.conf", verify(lines))
            self.assertIn("key.conf", verify(lines.replace("Credential", "Credenzial")))


if __name__ == "__main__":
    unittest.main()
