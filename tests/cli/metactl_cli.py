# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore-metactl as a user meets it: exit codes, messages, text beside JSON.

Usage: metactl_cli.py KRCORE-METACTL SOURCE-TREE
What needs an RDMA device is in tests/cluster. Here the tool runs without one, and beside a
scripted daemon (peer.py).
"""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from peer import Peer

TOOL, TREE = sys.argv[1], sys.argv[2]

RECORDS = [
    {"gid": "192.168.77.1", "service": 0, "kind": "dct", "generation": 1700000000000000000,
     "dctn": 4660, "dc_key": "(hidden)", "owner": "00" * 15 + "01", "lease_left_ms": 29000},
    {"gid": "fe80::1", "service": 300, "kind": "raw", "generation": 5, "raw": "6869",
     "owner": "00" * 15 + "02", "lease_left_ms": 500},
]


def run(*args, env=None, conf=None):
    """(exit code, stdout, stderr) of a run; without a configuration unless one is given."""
    words = [TOOL, "-t", "2"]
    if conf is not None:
        words += ["-c", conf]
    full = dict(os.environ, LC_ALL="C", **(env or {}))
    done = subprocess.run(words + list(args), capture_output=True, text=True, timeout=60,
                          env=full, check=False)
    return done.returncode, done.stdout, done.stderr


class Words(unittest.TestCase):
    """What the command line takes and refuses."""

    def refused(self, *args):
        code, out, err = run(*args)
        self.assertEqual((code, out), (2, ""), err)
        self.assertTrue(err.startswith("krcore-metactl: "), err)
        return err

    def test_unknown_words_are_code_2(self):
        self.assertIn("unknown object 'frob'", self.refused("frob"))
        self.assertIn("krcore-metactl: record: unknown command 'frob'",
                      self.refused("record", "frob"))
        self.assertIn("unknown word 'frob'", self.refused("table", "check", "frob"))
        self.assertIn("ambiguous object 'st'", self.refused("st"))
        self.refused("--frob")
        self.refused("-t", "x", "doctor")
        self.refused("-t", "0", "doctor")

    def test_values_that_are_refused(self):
        gid = "10.0.0.1"
        self.assertIn("gid is missing", self.refused("resolve"))
        self.assertIn("service '65536'", self.refused("resolve", gid, "service", "65536"))
        self.assertIn("count '0'", self.refused("resolve", gid, "count", "0"))
        self.assertIn("one of raw", self.refused("record", "publish", gid))
        self.assertIn("one of raw", self.refused("record", "publish", gid, "raw", "x", "hex", "00"))
        self.assertIn("needs dc_key", self.refused("record", "publish", gid, "dctn", "1"))
        self.assertIn("give dctn", self.refused("record", "publish", gid, "ud_qpn", "1", "dc_key",
                                                "1"))
        self.assertIn("give one of", self.refused("record", "publish", gid, "ud_qpn", "1", "raw",
                                                  "x"))
        self.assertIn("mtu 1500", self.refused("record", "publish", gid, "dctn", "1", "dc_key",
                                               "1", "mtu", "1500"))
        self.assertIn("47 bytes", self.refused("record", "publish", gid, "raw", "x" * 47))
        self.assertIn("hex '", self.refused("record", "publish", gid, "hex", "00" * 47))
        self.assertIn("owner '00'", self.refused("record", "publish", gid, "raw", "x", "owner",
                                                 "00"))
        self.assertIn("--keep", self.refused("--keep", "status"))
        self.assertIn("--raw", self.refused("--raw", "file", "table", "check"))

    def test_what_only_the_local_daemon_has(self):
        for words in (["session"], ["session", "kill", "id", "1"], ["server"],
                      ["server", "drain"], ["server", "undrain"], ["server", "reload"],
                      ["stats", "prometheus"],
                      ["config", "show", "running"],
                      ["record", "withdraw", "10.0.0.1", "operator"]):
            self.assertIn("-S does not go", self.refused("-S", "127.0.0.1", *words))
        self.assertIn("sessions", self.refused("-S", "127.0.0.1", "monitor", "sessions"))

    def test_help_is_everywhere(self):
        code, out, _ = run("help")
        self.assertEqual(code, 0)
        objects = re.findall(r"^  (\w+) +\S", out.split("Options:")[0], re.M)
        self.assertIn("record", objects)
        self.assertEqual(run("-h")[:2], (0, out))
        for name in objects:
            code, text, _ = run(name, "help")
            self.assertEqual(code, 0)
            self.assertTrue(text.startswith(name + ": "), text)
            self.assertEqual(run("--help", name)[1], text)

    def test_version(self):
        code, out, _ = run("-V")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^krcore-metactl \d+\.\d+\.\d+ \(libkrcore \d+\.\d+\.\d+\)\n$")

    def test_colour_mode(self):
        env = {"KRCORE_COLOR_MODE": "always"}
        self.assertIn("\033[31mFAIL", run("doctor", env=env)[1])
        env = {"KRCORE_COLOR_MODE": "sometimes"}
        code, _, err = run("doctor", env=env)
        self.assertEqual(code, 2)
        self.assertIn("sometimes", err)
        self.assertNotIn("\033", run("doctor")[1])
        self.assertNotIn("\033", run("-j", "doctor", env={"KRCORE_COLOR_MODE": "always"})[1])

    def test_colour_on_a_terminal(self):
        for mode, coloured in (("auto", True), ("never", False)):
            main, side = pty.openpty()
            subprocess.run([TOOL, "-c", "/nonexistent", "doctor"], stdout=side, timeout=60,
                           stderr=subprocess.DEVNULL, check=False,
                           env=dict(os.environ, KRCORE_COLOR_MODE=mode))
            os.close(side)
            text = b""
            try:
                while True:
                    text += os.read(main, 65536)
            except OSError:
                pass
            os.close(main)
            self.assertEqual(b"\033[" in text, coloured, mode)

    def test_full_disk_is_code_1(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            good = os.path.join(TREE, "tests/cli/good.conf")
            done = subprocess.run([TOOL, "config", "show", good], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)


class Config(unittest.TestCase):
    """config works without a daemon."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def conf(self, text):
        path = os.path.join(self.folder.name, "krcore.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def test_good_file(self):
        self.assertEqual(run("config", "check", os.path.join(TREE, "tests/cli/good.conf")),
                         (0, "", ""))

    def test_all_errors_at_once(self):
        path = self.conf("[metaserver]\nport = 0\nprot = 1\n[node]\ntimeout_ms = soon\n")
        code, out, err = run("-j", "config", "check", path)
        self.assertEqual(code, 1)
        rows = json.loads(out)
        self.assertEqual([r["line"] for r in rows], [2, 3, 5])
        self.assertEqual({r["file"] for r in rows}, {path})
        self.assertIn("3 errors", err)
        self.assertEqual(run("config", "check", conf=path)[0], 1)

    def test_missing_file(self):
        code, _, err = run("config", "check", "/nonexistent/x.conf")
        self.assertEqual(code, 1)
        self.assertIn("/nonexistent/x.conf", err)

    def test_show_says_where_from(self):
        path = self.conf("[metaserver]\nport = 20000\n")
        code, out, _ = run("-j", "config", "show", path)
        self.assertEqual(code, 0)
        rows = {r["key"]: r for r in json.loads(out)}
        self.assertEqual(rows["metaserver.port"]["value"], "20000")
        self.assertEqual(rows["metaserver.port"]["origin"], "file")
        self.assertEqual(rows["metaserver.port"]["default"], "18600")
        self.assertEqual(rows["metaserver.tick_ms"]["origin"], "default")


class Module(unittest.TestCase):
    """The kernel module, where there is none; what it does is in tests/cluster."""

    def setUp(self):
        if os.path.exists("/sys/module/krcore"):
            self.skipTest("this machine has the module")

    def test_said_what_to_do(self):
        for words in (("node", "up"), ("node", "refresh"), ("node", "down"),
                      ("queue", "list"), ("peer", "list"), ("stats", "node")):
            code, out, err = run(*words, conf="/nonexistent")
            self.assertEqual((code, out), (1, ""), err)
            self.assertEqual(err, f"krcore-metactl: {words[0]}: module krcore is not loaded: "
                                  "modprobe krcore\n")

    def test_show_goes_on(self):
        _, out, _ = run("-j", "node", "show", conf="/nonexistent")
        row = json.loads(out)[0]
        self.assertEqual((row["type"], row["up"]), ("node", False))
        self.assertIn("modprobe krcore", row["reason"])

    def test_words(self):
        for words, said in ((("queue", "list", "pid", "0"), "pid '0'"),
                            (("queue", "list", "pid", "1", "uid", "1"), "do not go together"),
                            (("peer", "list", "cached", "connected"), "do not go together"),
                            (("node", "up", "now"), "unknown word 'now'")):
            code, _, err = run(*words)
            self.assertEqual(code, 2, err)
            self.assertIn(said, err)


class Doctor(unittest.TestCase):
    """doctor on a machine that has next to nothing."""

    def test_text_and_json_say_the_same(self):
        code, out, _ = run("-j", "doctor", conf="/nonexistent")
        self.assertEqual(code, 1)
        rows = json.loads(out)
        text = run("doctor", conf="/nonexistent")[1]
        for row in rows:
            self.assertIn(row["verdict"], ("OK", "WARN", "FAIL"))
            self.assertIn(row["cause"], text)
            self.assertEqual(row["remedy"] is None, row["verdict"] == "OK")
        self.assertTrue(any(r["check"] == "config" and r["verdict"] == "FAIL" for r in rows))

    def test_problems_come_first(self):
        rows = json.loads(run("-j", "doctor", conf="/nonexistent")[1])
        order = [("FAIL", "WARN", "OK").index(r["verdict"]) for r in rows]
        self.assertEqual(order, sorted(order))
        self.assertEqual({0, 2}, {0, 2} & set(order), rows)
        for name in ("driver", "signature", "fabric", "record"):
            self.assertIn(name, {r["check"] for r in rows})

    def test_problems_only(self):
        rows = json.loads(run("-j", "doctor", "problems", conf="/nonexistent")[1])
        self.assertTrue(rows)
        self.assertNotIn("OK", {r["verdict"] for r in rows})

    def test_servers_of_the_command_line(self):
        rows = json.loads(run("-j", "-S", "127.0.0.1:1,", "doctor", conf="/nonexistent")[1])
        route = [r for r in rows if r["check"] == "route"]
        self.assertTrue(route and all(r["verdict"] == "FAIL" for r in route), rows)

    def test_bad_key_file(self):
        with tempfile.TemporaryDirectory() as folder:
            key = os.path.join(folder, "cluster.key")
            with open(key, "w", encoding="ascii") as f:
                f.write("0" * 64 + "\n")
            os.chmod(key, 0o644)
            conf = os.path.join(folder, "krcore.conf")
            with open(conf, "w", encoding="ascii") as f:
                f.write(f"[node]\nmetaservers = 127.0.0.1\nkey_file = {key}\n")
            rows = json.loads(run("-j", "doctor", conf=conf)[1])
            found = [r for r in rows if r["check"] == "key"]
            self.assertEqual(found[0]["verdict"], "FAIL")
            self.assertIn("0644", found[0]["remedy"])
            self.assertIn(key, found[0]["subject"])


class Installation(unittest.TestCase):
    """What the MetaServer's package does about a key, by its own script."""

    def configure(self, folder, *version_before):
        """Run the script with its folder of keys moved to FOLDER; the key's bytes, or None."""
        with open(os.path.join(TREE, "debian/krcore-metaserver.postinst"), encoding="utf-8") as f:
            script = f.read()
        self.assertIn("/etc/krcore/", script)
        path = os.path.dirname(os.path.abspath(TOOL)) + ":" + os.environ["PATH"]
        subprocess.run(["sh", "-c", script.replace("/etc/krcore/", folder + "/"), "postinst",
                        "configure", *version_before], env=dict(os.environ, PATH=path),
                       check=True, timeout=60)
        key = os.path.join(folder, "cluster.key")
        if not os.path.exists(key):
            return None
        self.assertEqual(os.stat(key).st_mode & 0o137, 0, oct(os.stat(key).st_mode))
        with open(key, "rb") as f:
            return f.read()

    def test_first_installation_makes_a_key(self):
        with tempfile.TemporaryDirectory() as folder:
            key = self.configure(folder, "")
            self.assertRegex(key, rb"(?m)^[0-9a-f]{64}$")
            self.assertEqual(self.configure(folder, ""), key)       # is left where there is one
            self.assertEqual(self.configure(folder, "1.0"), key)
        with tempfile.TemporaryDirectory() as folder:
            self.assertNotEqual(self.configure(folder), key)

    def test_upgrade_makes_none(self):
        # an administrator that took it away runs without one, or with a credential
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(self.configure(folder, "1.0"))


class Remote(unittest.TestCase):
    """Without an RDMA device everything over RDMA fails with a cause, as code 1."""

    def test_no_device(self):
        if os.path.exists("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
            self.skipTest("this machine has an RDMA device")
        gid = "10.0.0.1"
        for words in (["status"], ["node", "show"], ["record", "list"], ["record", "get", gid],
                      ["table", "check"], ["table", "dump"], ["resolve", gid], ["stats"],
                      ["monitor"], ["record", "publish", gid, "raw", "x"],
                      ["record", "withdraw", gid]):
            code, out, err = run("-j", "-S", "127.0.0.1", *words)
            self.assertEqual(code, 1, words)
            json.loads(out)
            self.assertIn(f"krcore-metactl: {words[0]}: ", err)


class Local(unittest.TestCase):
    """Beside a daemon's control socket."""

    def test_no_daemon(self):
        code, _, err = run("-s", "/nonexistent/sock", "status")
        self.assertEqual(code, 1)
        self.assertIn("/nonexistent/sock", err)
        self.assertIn("does krcore-metaserver run here", err)

    def test_socket_from_the_configuration(self):
        with Peer({"status": lambda a: {"ok": True, "result": [{"state": "serving"}]}}) as peer:
            conf = os.path.join(peer.folder.name, "krcore.conf")
            with open(conf, "w", encoding="ascii") as f:
                f.write(f"[metaserver]\ncontrol_socket = {peer.path}\n")
            self.assertEqual(run("-o", conf=conf)[:2], (0, "state serving\n"))

    def test_records_as_text_and_json(self):
        with Peer({"records": lambda a: {"ok": True, "result": RECORDS}}) as peer:
            code, out, _ = run("-s", peer.path, "-j", "record", "list")
            rows = json.loads(out)
            self.assertEqual(code, 0)
            self.assertEqual(rows[0]["lease_left_ms"], 29000)
            self.assertEqual(rows[1]["dctn"], None)
            text = run("-s", peer.path, "-o", "record", "list")[1].splitlines()
            self.assertTrue(text[0].startswith("gid 192.168.77.1 service 0 kind dct "))
            table = run("-s", peer.path, "record", "list")[1].splitlines()
            self.assertEqual(table[0].split(), ["gid", "service", "kind", "generation", "dctn",
                                                "dc_key", "raw", "owner", "lease_left"])
            self.assertIn("(hidden)", table[1])
            self.assertIn("29.00s", table[1])

    def test_arguments_reach_the_daemon(self):
        with Peer({"records": lambda a: {"ok": True, "result": RECORDS},
                   "record_get": lambda a: {"ok": True, "result": RECORDS[:1]}}) as peer:
            run("-s", peer.path, "--show-keys", "record", "list", "service", "0")
            run("-s", peer.path, "record", "get", "192.168.77.1", "service", "7")
            self.assertEqual(peer.asked[0]["args"]["service"], 0)
            self.assertIs(peer.asked[0]["args"]["keys"], True)
            self.assertEqual(peer.asked[1]["args"], {"gid": "192.168.77.1", "service": 7})

    def test_pages_and_count(self):
        def records(args):
            first = args.get("from", 0)
            rows = [dict(RECORDS[1], service=first + i) for i in range(100)]
            reply = {"ok": True, "result": rows}
            if first < 400:
                reply["next"] = first + 100
            return reply
        with Peer({"records": records}) as peer:
            rows = json.loads(run("-s", peer.path, "-j", "record", "list")[1])
            self.assertEqual([r["service"] for r in rows], list(range(500)))
            rows = json.loads(run("-s", peer.path, "-j", "record", "list", "count", "150")[1])
            self.assertEqual(len(rows), 150)

    def test_refusal_is_shown(self):
        with Peer({"reload": lambda a: {"ok": False, "code": -22,
                                        "error": "/etc/krcore.conf:3: unknown key"}}) as peer:
            code, out, err = run("-s", peer.path, "-j", "server", "reload")
            self.assertEqual((code, json.loads(out)), (1, []))
            self.assertIn("krcore-metactl: server: /etc/krcore.conf:3: unknown key", err)

    def test_drain_waits_until_the_clients_have_gone(self):
        left = [3, 1, 0]
        row = {"state": "drained", "serving": False, "records": 5}
        with Peer({"drain": lambda a: {"ok": True, "result": [dict(row, sessions=3)]},
                   "undrain": lambda a: {"ok": True, "result": [dict(row, state="waiting")]},
                   "status": lambda a: {"ok": True,
                                        "result": [dict(row, sessions=left.pop(0))]}}) as peer:
            code, out, err = run("-s", peer.path, "-j", "server", "drain")
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(json.loads(out), [{"state": "drained", "serving": False,
                                                "sessions": 0, "records": 5}])
            self.assertEqual([a["command"] for a in peer.asked], ["drain"] + 3 * ["status"])
            code, out, _ = run("-s", peer.path, "-j", "server", "undrain")
            self.assertEqual((code, json.loads(out)[0]["state"]), (0, "waiting"))

    def test_drain_tells_of_clients_that_stay(self):
        row = {"state": "drained", "serving": False, "records": 5, "sessions": 2}
        with Peer({"drain": lambda a: {"ok": True, "result": [row]},
                   "status": lambda a: {"ok": True, "result": [row]}}) as peer:
            code, out, err = run("-s", peer.path, "-j", "server", "drain", "seconds", "1")
            self.assertEqual((code, json.loads(out)[0]["sessions"]), (1, 2))
            self.assertIn("2 clients are still there", err)
            self.assertEqual(run("-s", peer.path, "server", "drain", "seconds", "0")[0], 2)

    def test_drain_that_is_refused(self):
        with Peer({"drain": lambda a: {"ok": False, "code": -108,
                                       "error": "the daemon is letting its clients go"}}) as peer:
            code, out, err = run("-s", peer.path, "-j", "server", "drain")
            self.assertEqual((code, json.loads(out)), (1, []))
            self.assertIn("letting its clients go", err)

    def test_daemon_that_talks_rubbish_or_hangs_up(self):
        for rubbish in (b"what?\n", b"[1]\n", b"\xff\xfe\n", b"{\"ok\":", b""):
            with Peer({"stats": lambda a, r=rubbish: [r, b""]}) as peer:
                code, _, err = run("-s", peer.path, "stats")
                self.assertEqual(code, 1, rubbish)
                self.assertIn("krcore-metactl: stats: ", err)

    def test_nobody_else_s_text_reaches_the_terminal(self):
        row = {"id": 1, "name": "a\u001b[2Jb", "address": "10.0.0.1", "state": "ready"}
        with Peer({"sessions": lambda a: {"ok": True, "result": [row]}}) as peer:
            out = run("-s", peer.path, "session", "list")[1]
            self.assertNotIn("\033", out)
            self.assertIn("a\\x1b[2Jb", out)

    def test_prometheus_is_written_as_it_is(self):
        text = "# HELP x y\n# TYPE x counter\nx_total 5\n"
        with Peer({"metrics": lambda a: {"ok": True, "result": [{"text": text}]}}) as peer:
            self.assertEqual(run("-s", peer.path, "stats", "prometheus"), (0, text, ""))

    def test_operator_withdraws(self):
        with Peer({"record_withdraw": lambda a: {"ok": True, "result": []}}) as peer:
            code, out, _ = run("-s", peer.path, "-j", "record", "withdraw", "fe80::1", "operator",
                               "service", "3")
            self.assertEqual(code, 0)
            self.assertEqual(peer.asked[0]["args"], {"gid": "fe80::1", "service": 3})
            self.assertEqual(json.loads(out)[0]["event"], "withdrawn")

    def test_monitor_streams(self):
        events = [{"event": "changed", "gid": "10.0.0.1", "service": i, "generation": 7}
                  for i in range(5)]
        with Peer({"monitor": lambda a: [{"ok": True, "result": [{}]}] + events}) as peer:
            code, out, _ = run("-s", peer.path, "-j", "monitor", "records", "count", "3")
            self.assertEqual(code, 0)
            self.assertEqual([r["service"] for r in json.loads(out)], [0, 1, 2])
            self.assertEqual(peer.asked[0]["args"], {"events": ["records"]})

    def test_monitor_ends_well_on_a_signal(self):
        with Peer({"monitor": lambda a: [{"ok": True, "result": [{}]},
                                         {"event": "gone", "service": 9}]}) as peer:
            child = subprocess.Popen([TOOL, "-s", peer.path, "-j", "monitor"],
                                     stdout=subprocess.PIPE, text=True)
            first = child.stdout.readline() + child.stdout.readline()
            child.send_signal(signal.SIGTERM)
            rest = child.communicate(timeout=20)[0]
            self.assertEqual(child.returncode, 0)
            self.assertEqual(json.loads(first + rest)[0]["service"], 9)

    def test_monitor_ends_in_time(self):
        with Peer({"monitor": lambda a: {"ok": True, "result": [{}]}}) as peer:
            start = time.monotonic()
            code, out, _ = run("-s", peer.path, "-j", "monitor", "seconds", "1")
            self.assertEqual((code, json.loads(out)), (0, []))
            self.assertLess(time.monotonic() - start, 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
