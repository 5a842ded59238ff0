# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Manual pages against the program, and the unit against its promise."""

import os
import re
import shutil
import subprocess
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


if __name__ == "__main__":
    unittest.main()
