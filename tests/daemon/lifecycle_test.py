# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Start, reload, stop; what the service manager is told; the control socket's file."""

import os
import signal
import socket
import stat
import unittest
import urllib.request

from daemon import HAVE_RDMA, LIMIT_S, DaemonTest, until


class Lifecycle(DaemonTest):
    """One daemon from start to end."""

    @unittest.skipIf(HAVE_RDMA, "has an RDMA device")
    def test_says_that_it_waits_for_a_device(self):
        daemon = self.start()
        daemon.wait_log("waiting for an RDMA device")
        self.assertRegex(daemon.wait_told("STATUS=starting: "), "rdma|RDMA|device")
        self.assertNotIn("READY=1", daemon.told)
        state = self.connect(daemon).call("status")["result"][0]
        self.assertEqual((state["state"], state["serving"]), ("starting", False))

    @unittest.skipIf(HAVE_RDMA, "has an RDMA device")
    def test_waiting_for_a_port_is_no_slow_start(self):
        daemon = self.start()
        daemon.wait_log("started, but not serving yet")
        daemon.wait_told("READY=1")
        state = self.connect(daemon).call("status")["result"][0]
        self.assertEqual((state["state"], state["serving"]), ("waiting", False))

    def test_term_stops_and_takes_the_socket_away(self):
        for signum in (signal.SIGTERM, signal.SIGINT):
            daemon = self.start(sub=signum.name)
            self.connect(daemon)
            daemon.process.send_signal(signum)
            daemon.wait_told("STOPPING=1")
            self.assertEqual(daemon.wait_exit(), 0, daemon.log())
            self.assertFalse(daemon.socket.exists())
            self.assertIn("letting clients go", daemon.log())

    def test_a_second_term_exits_at_once(self):
        daemon = self.start()
        self.connect(daemon)
        # stopped, it finds both when it goes on: the second before it has let anybody go
        daemon.process.send_signal(signal.SIGSTOP)
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.send_signal(signal.SIGINT)
        daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(daemon.wait_exit(), 0, daemon.log())
        self.assertIn("exiting at once", daemon.log())
        self.assertNotIn("all clients have gone", daemon.log())
        self.assertFalse(daemon.socket.exists())

    def test_watchdog_is_fed_from_the_loop(self):
        daemon = self.start(env={"WATCHDOG_USEC": "200000"})
        for _ in range(5):
            daemon.forget_told()
            daemon.wait_told("WATCHDOG=1")

    @unittest.skipIf(HAVE_RDMA, "has an RDMA device")
    def test_asks_for_time_while_it_copies(self):
        daemon = self.start("-o", "metaserver.copy_from=192.0.2.1")
        self.assertRegex(daemon.wait_told("EXTEND_TIMEOUT_USEC="), r"=\d+$")

    @unittest.skipIf(HAVE_RDMA, "has an RDMA device")
    def test_a_copy_that_fails_says_so_at_once_and_from_then_on(self):
        for turn in range(5):       # the end of a thread that hardly began is not missed
            daemon = self.start("-o", "metaserver.copy_from=192.0.2.1", "-o",
                                "metaserver.copy_timeout_ms=60000", sub=str(turn))
            daemon.wait_log("; serving without a copy")
            self.assertNotIn("nothing came", daemon.log())
            stats = self.connect(daemon).call("stats")["result"][0]
            self.assertEqual(stats["copy_failed"], 1)
            daemon.close() if turn else self.assertRegex(
                daemon.wait_told("STATUS=starting: waiting"), "; copy_from failed: .*RDMA")
        daemon = self.start(sub="none")
        self.assertEqual(self.connect(daemon).call("stats")["result"][0]["copy_failed"], 0)

    def test_reload(self):
        daemon = self.start(config="[metaserver]\nlease_ms = 5s\n")
        control = self.connect(daemon)
        values = self.values(control)
        self.assertEqual(values["metaserver.lease_ms"], ("5000", "file"))

        daemon.config.write_text("[metaserver]\nlease_ms = 6s\nport = 7\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_log("configuration reloaded")
        self.assertIn("metaserver.lease_ms = 6000 (was 5000)", daemon.log())
        self.assertIn("metaserver.port = 7 needs a restart", daemon.log())
        values = self.values(control)
        self.assertEqual(values["metaserver.lease_ms"], ("6000", "file"))
        self.assertEqual(values["metaserver.port"], ("18600", "default"))

    def test_refused_reload_keeps_all(self):
        daemon = self.start(config="[metaserver]\nlease_ms = 5s\n")
        control = self.connect(daemon)
        before = control.call("config")
        daemon.config.write_text("[metaserver]\nlease_ms = 6s\nzork = 1\nport = x\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_log("reload refused, the old configuration stays")
        self.assertIn(f"{daemon.config}:3: unknown key 'zork'", daemon.log())
        self.assertIn(f"{daemon.config}:4: metaserver.port: 'x' is not a number", daemon.log())
        self.assertEqual(control.call("config"), before)
        daemon.config.unlink()
        reply = control.call("reload")
        self.assertEqual(reply["ok"], False)
        self.assertEqual(control.call("config"), before)
        stats = control.call("stats")["result"][0]
        self.assertEqual((stats["reload_total_ok"], stats["reload_total_refused"]), (0, 2))

    def test_reload_with_a_bad_key_keeps_all(self):
        daemon = self.start(config="[metaserver]\nlease_ms = 5s\n")
        control = self.connect(daemon)
        before = control.call("config")
        (self.folder / "cluster.key").write_text("no key\n")
        daemon.config.write_text("[metaserver]\nlease_ms = 6s\n")
        reply = control.call("reload")
        self.assertEqual((reply["ok"], "cluster.key" in reply["error"]), (False, True))
        self.assertEqual(control.call("config"), before)
        (self.folder / "cluster.key").write_text("00112233445566778899aabbccddeeff\n")
        (self.folder / "cluster.key").chmod(0o600)
        reply = control.call("reload")
        self.assertEqual(reply["result"], [{"key": "metaserver.lease_ms", "value": "6000",
                                            "before": "5000", "applied": True}])

    def test_a_server_that_had_a_key_does_not_go_on_without(self):
        key = self.folder / "cluster.key"
        key.write_text("00112233445566778899aabbccddeeff\n")
        key.chmod(0o600)
        daemon = self.start(config="[metaserver]\nlease_ms = 5s\n")
        control = self.connect(daemon)
        before = control.call("config")
        daemon.config.write_text("[metaserver]\nlease_ms = 6s\n")
        key.unlink()
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_log("reload refused, the old configuration stays")
        self.assertIn("no key any more", daemon.log())
        daemon.config.write_text("[metaserver]\nlease_ms = 6s\nrequire_auth = no\n")
        reply = control.call("reload")
        self.assertEqual((reply["ok"], "cluster.key" in reply["error"]), (False, True))
        self.assertIn("no key any more", reply["error"])
        self.assertEqual(control.call("config"), before)
        self.assertEqual(control.call("stats")["result"][0]["auth_required"], 1)

    def test_a_start_without_a_key_is_told(self):
        daemon = self.start()
        control = self.connect(daemon)
        daemon.wait_log("there is no cluster key: every host of the fabric may read")
        self.assertEqual(control.call("stats")["result"][0]["auth_required"], 0)
        key = self.folder / "cluster.key"
        key.write_text("00112233445566778899aabbccddeeff\n")
        key.chmod(0o600)
        self.assertTrue(control.call("reload")["ok"])
        self.assertEqual(control.call("stats")["result"][0]["auth_required"], 1)

    def test_a_key_that_is_a_credential(self):
        (self.folder / "cluster").write_text("00112233445566778899aabbccddeeff\n")
        (self.folder / "cluster").chmod(0o400)
        option = ("-o", "metaserver.key_file=credential:cluster")
        daemon = self.start(*option, env={"CREDENTIALS_DIRECTORY": str(self.folder)})
        control = self.connect(daemon)
        self.assertEqual(control.call("stats")["result"][0]["auth_required"], 1)
        self.assertTrue(control.call("reload")["ok"])
        (self.folder / "cluster").unlink()
        self.assertIn("no such credential", control.call("reload")["error"])
        self.assertEqual(control.call("stats")["result"][0]["auth_required"], 1)
        without = self.start(*option, sub="without")    # require_auth = auto
        self.assertEqual(without.wait_exit(), 1)
        self.assertIn("no such credential was handed over", without.log())

    def test_hardly_meant_settings_are_logged(self):
        daemon = self.start(config="[metaserver]\nlease_ms = 5s\n")
        control = self.connect(daemon)
        said = f"{daemon.config}:2: metaserver.lease_ms: 5000 is less than reconnect_max_ms 10000"
        self.assertEqual(daemon.log().count(said), 1)
        daemon.config.write_text("[metaserver]\nlease_ms = 20s\n")
        self.assertTrue(control.call("reload")["ok"])
        self.assertEqual(daemon.log().count("is less than reconnect_max_ms"), 1)
        daemon.config.write_text("\n[metaserver]\nlease_ms = 6s\n")
        self.assertTrue(control.call("reload")["ok"])
        self.assertIn(said.replace(":2:", ":3:").replace("5000", "6000"), daemon.log())

    def test_command_line_wins_after_reload(self):
        daemon = self.start("-o", "metaserver.lease_ms=9s")
        control = self.connect(daemon)
        daemon.config.write_text("[metaserver]\nlease_ms = 6s\n")
        self.assertEqual(control.call("reload"), {"ok": True, "result": []})
        self.assertEqual(self.values(control)["metaserver.lease_ms"], ("9000", "command line"))

    def test_log_level(self):
        daemon = self.start("-o", "metaserver.log_level=err")
        self.connect(daemon)
        self.assertEqual(daemon.log(), "")

    def test_prefixes_for_a_manager(self):
        daemon = self.start(env={"INVOCATION_ID": "0" * 32})
        self.connect(daemon)
        self.assertRegex(daemon.log(), r"^<5>version ")

    def test_key_file_demanded_but_missing(self):
        daemon = self.start("-o", "metaserver.require_auth=yes")
        self.assertEqual(daemon.wait_exit(), 1)
        self.assertIn("cluster.key", daemon.log())

    @staticmethod
    def values(control):
        """Value and origin of each key."""
        return {item["key"]: (item["value"], item["origin"])
                for item in control.call("config")["result"]}


class SocketFile(DaemonTest):
    """Where the control socket comes from."""

    def test_mode(self):
        daemon = self.start()
        self.connect(daemon)
        self.assertEqual(stat.S_IMODE(daemon.socket.stat().st_mode), 0o660)

    def test_left_over_socket_is_replaced(self):
        daemon = self.start()
        self.connect(daemon)
        daemon.process.kill()
        daemon.process.wait()
        self.assertTrue(daemon.socket.exists())
        (self.folder / "notify").unlink()
        self.connect(self.start())

    def test_second_daemon_is_refused(self):
        first = self.start(sub="first")
        self.connect(first)
        second = self.start("-o", f"metaserver.control_socket={first.socket}", sub="second")
        self.assertEqual(second.wait_exit(), 1)
        self.assertIn("another daemon listens there", second.log())
        self.connect(first)

    def test_other_file_is_left_alone(self):
        path = self.folder / "precious"
        path.write_text("data")
        daemon = self.start("-o", f"metaserver.control_socket={path}")
        self.assertEqual(daemon.wait_exit(), 1)
        self.assertEqual(path.read_text(), "data")

    def test_missing_folder(self):
        daemon = self.start("-o", f"metaserver.control_socket={self.folder}/none/sock")
        self.assertEqual(daemon.wait_exit(), 1)
        self.assertIn("none/sock: No such file or directory", daemon.log())

    def test_metrics_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            daemon = self.start("-o", f"metaserver.metrics_listen=127.0.0.1:{port}")
            daemon.wait_log(f"metrics at 127.0.0.1:{port}: Address already in use")
            self.assertTrue(self.connect(daemon).call("status")["ok"])
        daemon.wait_log(f"metrics at 127.0.0.1:{port}: listening now")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_S) as answer:
            self.assertIn(b"krcore_meta_", answer.read())
        self.assertEqual(daemon.log().count("Address already in use"), 1)

    def activate(self, names, sockets):
        """Start with sockets handed over as systemd does."""
        # The child's own process id must be in LISTEN_PID, and the descriptors begin at 3.
        script = "import os, sys\n" \
                 "fds = [int(word) for word in sys.argv[1].split(',')]\n" \
                 "spare = [os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]\n" \
                 "for i, fd in enumerate(spare): os.dup2(fd, 3 + i)\n" \
                 "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)))\n" \
                 "os.execv(sys.argv[2], sys.argv[2:])\n"
        fds = [sock.fileno() for sock in sockets]
        return self.start(env={"LISTEN_FDNAMES": ":".join(names)}, pass_fds=fds,
                          wrapper=("/usr/bin/python3", "-c", script,
                                   ",".join(str(fd) for fd in fds)))

    def test_socket_activation_by_name(self):
        path = self.folder / "handed-over"
        with socket.socket(socket.AF_UNIX) as handed, socket.socket(socket.AF_UNIX) as other:
            handed.bind(str(path))
            handed.listen()
            other.bind(str(self.folder / "other"))
            other.listen()
            daemon = self.activate(["other", "control"], [other, handed])
            daemon.wait_log("control socket handed over")
            daemon.wait_log("closing descriptor 'other'")
            daemon.socket = path
            self.assertTrue(self.connect(daemon).call("status")["ok"])
            self.assertFalse((self.folder / "control.sock").exists())
            daemon.process.send_signal(signal.SIGTERM)
            self.assertEqual(daemon.wait_exit(), 0, daemon.log())
            self.assertTrue(path.exists(), "the socket is the manager's")

    def test_wrong_descriptor_is_not_taken(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram:
            datagram.bind(str(self.folder / "datagram"))
            daemon = self.activate(["control"], [datagram])
            daemon.wait_log("closing descriptor 'control'")
            self.assertTrue(self.connect(daemon).call("status")["ok"])

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_strangers_are_refused(self):
        daemon = self.start()
        self.connect(daemon)
        self.folder.chmod(0o755)
        daemon.socket.chmod(0o666)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(str(daemon.socket))
                os.write(writer, sock.recv(4096))
            os._exit(0)
        os.close(writer)
        self.assertIn(b'"code":-13', os.read(reader, 4096))
        os.close(reader)
        os.waitpid(child, 0)
        until(lambda: "refused a connection: only root and group krcore" in daemon.log(), "log")
