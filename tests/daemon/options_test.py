# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Command line, --check and --print."""

import os
import subprocess
import unittest

from daemon import LIMIT_S, PROGRAM, TOP, DaemonTest, run

# what the shipped file sets
INSIST = ("-o", "metaserver.require_auth=yes", "-o", "node.require_auth=yes")


class Options(DaemonTest):
    """The program, run to its end."""

    def write(self, name, text, mode=0o600):
        """A file in the scratch folder."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def test_version_and_help(self):
        self.assertRegex(run("--version").stdout, r"^krcore-metaserver \d+\.\d+\.\d+\n$")
        for option in ("--config", "--option", "--check", "--print", "SIGHUP"):
            self.assertIn(option, run("--help").stdout)

    def test_usage_errors(self):
        for args in (["--zork"], ["stray"], ["-o"], ["--config"], ["-o", "a.b=c"] * 65):
            result = run(*args)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn("krcore-metaserver", result.stderr)

    def test_check_shipped_file(self):
        shipped = ("--check", "--config", str(TOP / "conf/krcore.conf"), "-o")
        key = self.write("good.key", "00112233445566778899aabbccddeeff\n")
        result = run(*shipped, f"metaserver.key_file={key}")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("conf/krcore.conf: ok", result.stdout)
        result = run(*shipped, f"metaserver.key_file={self.folder}/none")   # it insists
        self.assertEqual(result.returncode, 1)
        self.assertIn("No such file or directory, and require_auth is yes", result.stderr)

    def test_check_reports_all_errors(self):
        path = self.write("bad.conf", "[metaserver]\nport = 0\nzork = 1\n[foo]\n")
        result = run("--check", "--config", str(path), "-o", "metaserver.credits=0",
                     "-o", "nonsense")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(result.stderr.splitlines(), [
            f"krcore-metaserver: {path}:2: metaserver.port: '0' is out of range, 1 to 65535",
            f"krcore-metaserver: {path}:3: unknown key 'zork' in [metaserver]",
            f"krcore-metaserver: {path}:4: unknown section '[foo]'",
            "krcore-metaserver: command line: metaserver.credits: '0' is out of range, 1 to 256",
            "krcore-metaserver: command line: 'nonsense' is not of the form section.key=value",
        ])

    def test_bad_configuration_does_not_start(self):
        path = self.write("bad.conf", "[metaserver]\nlease_ms = 1h\n")
        result = run("--config", str(path))
        self.assertEqual(result.returncode, 1)
        self.assertIn("lease_ms: 3600000 is not between", result.stderr)

    def test_missing_file(self):
        result = run("--check", "--config", f"{self.folder}/none.conf")
        self.assertEqual(result.returncode, 1)
        self.assertIn("none.conf: No such file or directory", result.stderr)

    def test_key_file(self):
        good = self.write("good.key", "00112233445566778899aabbccddeeff\n")
        short = self.write("short.key", "0011\n")
        wide = self.write("wide.key", "00112233445566778899aabbccddeeff\n", 0o644)
        cases = [(good, "yes", None), (short, "auto", "hexadecimal digits"),
                 (wide, "auto", "others than its owner and group"), (short, "no", None),
                 (self.folder / "none", "no", None),
                 (self.folder / "none", "auto", None),
                 (self.folder / "none", "yes", "No such file"), ("", "yes", "require_auth is yes")]
        for path, auth, error in cases:
            result = run("--check", "--config", "/dev/null", "-o", f"metaserver.key_file={path}",
                         "-o", f"metaserver.require_auth={auth}")
            self.assertEqual(result.returncode, 1 if error else 0, (path, auth, result.stderr))
            self.assertIn(error or "", result.stderr)
            if not error:   # a daemon without a key says so
                self.assertEqual("no cluster key" in result.stderr, path != good)

    def test_check_warns_of_what_is_hardly_meant(self):
        key = self.write("good.key", "00112233445566778899aabbccddeeff\n")
        text = f"[metaserver]\nkey_file = {key}\n{{}}\n"

        def check(line, *more):
            path = self.write("some.conf", text.format(line))
            result = run("--check", "--config", str(path), *more)
            self.assertEqual(result.returncode, 0)
            return result.stderr.replace(str(self.folder), "")
        self.assertEqual(check(""), "")
        self.assertRegex(check("memory_max_mib = 1TiB"), r"(?s)^krcore-metaserver: warning: "
                         r"/some.conf:3: metaserver.clients_max: .* this machine has \d+\n$")
        self.assertRegex(check("", "-o", "metaserver.memory_max_mib=1TiB"),
                         "warning: command line: metaserver.clients_max:")
        self.assertIn("/some.conf:3: metaserver.require_auth: no, although there is a cluster "
                      "key, /good.key", check("require_auth = no"))
        key.unlink()
        self.assertNotIn("although", check("require_auth = no"))

    def test_key_as_a_credential(self):
        self.write("cluster", "00112233445566778899aabbccddeeff\n", 0o400)
        os.environ["CREDENTIALS_DIRECTORY"] = str(self.folder)
        self.addCleanup(os.environ.pop, "CREDENTIALS_DIRECTORY")

        def check(name, *more):
            return run("--check", "--config", "/dev/null", "-o",
                       f"metaserver.key_file=credential:{name}", *more)
        result = check("cluster", "-o", "metaserver.require_auth=yes")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        result = check("none")      # where one is named, it is needed
        self.assertEqual(result.returncode, 1)
        self.assertIn("'credential:none': no such credential was handed over", result.stderr)
        for name in ("", "../etc/passwd", ".", "a/b"):
            result = check(name)
            self.assertEqual(result.returncode, 1, name)
            self.assertIn("neither an absolute path nor credential:NAME", result.stderr)

    def test_print(self):
        path = self.write("some.conf", "[metaserver]\nlease_ms = 5s\n[node]\nlease_ms = 7\n")
        result = run("--print", "--config", str(path), "-o", "metaserver.credits=3")
        self.assertEqual(result.returncode, 0)
        set_lines = [line for line in result.stdout.splitlines() if line[:1].islower()]
        self.assertEqual(set_lines, ["lease_ms = 5000", "credits = 3", "lease_ms = 7"])
        insisting = run("--print", "--config", "/dev/null", *INSIST).stdout
        self.assertEqual(insisting, (TOP / "conf/krcore.conf").read_text())

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([PROGRAM, "--print", "--config", "/dev/null"], stdout=full,
                                    check=False, timeout=LIMIT_S)
        self.assertEqual(result.returncode, 1)
