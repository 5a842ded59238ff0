# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Commands of the control socket, peers that misbehave, and the metrics."""

import errno
import http.client
import json
import re
import socket
import time
import unittest
import urllib.error
import urllib.request

from daemon import HAVE_RDMA, LIMIT_S, TOP, Control, DaemonTest, until

NOBODY = {"gid": "192.0.2.1", "service": 7}


class Commands(DaemonTest):
    """Requests and replies."""

    def setUp(self):
        super().setUp()
        self.daemon = self.start()
        self.control = self.connect(self.daemon)

    def refused(self, reply, code, part):
        """A reply that refuses, for this reason."""
        self.assertEqual(reply["ok"], False)
        self.assertEqual(reply["code"], -code, reply)
        self.assertIn(part, reply["error"])
        self.assertNotIn("result", reply)

    def test_every_command_answers(self):
        for item in self.control.call("help")["result"]:
            self.assertEqual(set(item), {"command", "args", "text"})
            if item["command"] == "monitor":
                continue
            if item["command"] == "session_kill":
                self.assertEqual(self.control.call("session_kill", id=1)["result"],
                                 [{"killed": 0}])
                continue
            args = NOBODY if item["command"].startswith("record_") else {}
            reply = self.control.call(item["command"], **args)
            if args:
                self.refused(reply, errno.ENOENT, "no such record")
            else:
                self.assertTrue(reply["ok"], reply)

    def test_objects_are_flat(self):
        for command in ("status", "stats", "config"):
            for item in self.control.call(command)["result"]:
                for value in item.values():
                    self.assertIsInstance(value, (str, int, float, bool))

    def test_status(self):
        status = self.control.call("status")["result"][0]
        self.assertEqual(status["pid"], self.daemon.process.pid)
        self.assertRegex(status["incarnation"], r"^[0-9a-f]{16}$")
        self.assertLess(abs(status["started_unix_ms"] / 1000 - time.time()), 60)

    def test_bad_requests(self):
        for request, part in (
                (b"", "not JSON"), (b"{", "not JSON"), (b"\xff", "not JSON"), (b"nul", "not JSON"),
                (b"[1]", "is a JSON object"), (b"{}", "a request is"),
                (b'{"command": 1}', "a request is"),
                (b'{"command": "status", "args": []}', "a request is"),
                (b'{"command": "status", "command": "status"}', "duplicate"),
                (b'{"command": "status", "x": 1}', "unknown member 'x'"),
                (b'{"command": "status"} x', "not JSON"),
                (b'{"command": "sta\\u0000tus"}', "not JSON"),
                (b"[" * 60000, "not JSON")):
            self.control.send(request + b"\n")
            self.refused(self.control.read(), errno.EINVAL, part)
        self.refused(self.control.call("zork"), errno.EOPNOTSUPP, "unknown command 'zork'")
        # What is quoted is cut after 40 bytes, here in the middle of a character.
        half, long = "'" + "x" * 39 + "\\xc3'", "x" * 39 + "\u00fc" * 9
        self.refused(self.control.call(long), errno.EOPNOTSUPP, "unknown command " + half)
        self.refused(self.control.call("status", **{long: 1}), errno.EINVAL, "no argument " + half)
        self.refused(self.control.call("monitor", events=[long]), errno.EINVAL, "event " + half)
        self.assertTrue(self.control.call("status")["ok"])

    def test_bad_arguments(self):
        call = self.control.call
        self.refused(call("records", zork=1), errno.EINVAL, "no argument 'zork'")
        self.refused(call("status", count=1), errno.EINVAL, "no argument 'count'")
        for count in (0, 1001, -1, "1", 1.5, None, True):
            self.refused(call("records", count=count), errno.EINVAL, "'count'")
        self.refused(call("records", from_=-1), errno.EINVAL, "'from'")
        self.refused(call("records", keys=1), errno.EINVAL, "'keys'")
        for args in ({}, {"id": 1, "key": "01234567"}):
            self.refused(call("session_kill", **args), errno.EINVAL, "one of 'id'")
        for key in ("0123456", "012345678", "0123456G", "00000000", 5):
            self.refused(call("session_kill", key=key), errno.EINVAL, "'key'")
        self.refused(call("session_kill", id=-1), errno.EINVAL, "'id'")
        self.refused(call("records", gid="300.1.1.1"), errno.EINVAL, "'gid'")
        self.refused(call("records", gid=1), errno.EINVAL, "'gid'")
        self.refused(call("records", service=65536), errno.EINVAL, "'service'")
        for owner in ("00", "0" * 31 + "G", 5):
            self.refused(call("records", owner=owner), errno.EINVAL, "'owner'")
        self.refused(call("record_get", gid="::1"), errno.EINVAL, "are needed")
        self.refused(call("record_withdraw", service=1), errno.EINVAL, "are needed")
        self.refused(call("monitor", events=[]), errno.EINVAL, "'events'")
        self.refused(call("monitor", events=["records", "zork"]), errno.EINVAL, "'zork'")
        self.refused(call("monitor", events=[1]), errno.EINVAL, "event")

    def test_empty_lists(self):
        for command in ("records", "sessions"):
            self.assertEqual(self.control.call(command), {"ok": True, "result": []})

    def test_pipelined_requests_are_answered_in_order(self):
        requests = [{"command": "status"}, {"command": "zork"}] * 500
        self.control.send(b"".join(json.dumps(r).encode() + b"\n" for r in requests))
        for request in requests:
            self.assertEqual(self.control.read()["ok"], request["command"] == "status")

    def test_half_closed_connection_gets_its_answers(self):
        self.control.send(b'{"command":"status"}\n{"command":"status"}\n{"comm')
        self.control.sock.shutdown(socket.SHUT_WR)
        self.assertTrue(self.control.read()["ok"])
        self.assertTrue(self.control.read()["ok"])
        self.assertIsNone(self.control.line())

    def test_too_long_request(self):
        try:
            self.control.send(b"x" * (1 << 20))
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.refused(self.control.read(), errno.EMSGSIZE, "too long")

    def test_monitor(self):
        reply = self.control.call("monitor", events=["records"])
        self.assertEqual(reply["result"][0]["records"], 0)
        # It is not listened to any more, and its end is noticed.
        self.control.send(b'{"command":"status"}\n' * 100)
        self.assertTrue(self.connect(self.daemon).call("status")["ok"])
        self.control.close()
        self.assertTrue(self.connect(self.daemon).call("status")["ok"])


class Peers(DaemonTest):
    """Peers that take the daemon's time or memory."""

    def test_number_of_connections_is_bounded(self):
        daemon = self.start()
        peers = [self.connect(daemon) for _ in range(64)]
        for peer in peers:
            self.assertTrue(peer.call("status")["ok"])
        extra = self.connect(daemon)
        self.assertIn("too many connections", extra.read()["error"])
        self.assertIsNone(extra.line())
        self.assertTrue(peers[0].call("status")["ok"])
        peers[1].close()

        def again():
            try:
                return self.connect(daemon).call("status")["ok"]
            except (BrokenPipeError, ConnectionResetError):
                return False
        until(again, "a connection after one has gone")

    def test_a_peer_that_does_not_read_holds_nobody_up(self):
        daemon = self.start()
        slow = self.connect(daemon)
        slow.sock.setblocking(False)
        request = b'{"command":"config"}\n'
        try:
            while True:
                slow.sock.send(request * 100)
        except BlockingIOError:
            pass
        control = self.connect(daemon)
        worst = 0
        for _ in range(200):
            begin = time.monotonic()
            self.assertTrue(control.call("status")["ok"])
            worst = max(worst, time.monotonic() - begin)
        self.assertLess(worst, 5)
        # After ten seconds without taking a byte it is gone.
        def gone():
            try:
                slow.sock.send(request)
            except BlockingIOError:
                return False
            except (BrokenPipeError, ConnectionResetError):
                return True
            return False
        until(gone, "the peer that takes nothing is disconnected")

    def test_greedy_peers_share(self):
        daemon = self.start()
        greedy = [self.connect(daemon) for _ in range(4)]
        for peer in greedy:
            peer.send(b'{"command":"metrics"}\n' * 100)
        control = self.connect(daemon)
        self.assertTrue(control.call("status")["ok"])
        for peer in greedy:
            for _ in range(100):
                self.assertTrue(peer.read()["ok"])

    def test_rubbish(self):
        daemon = self.start()
        control = self.connect(daemon)
        for seed in range(200):
            peer = Control(daemon.socket)
            data = bytes((seed * 31 + i * i * 7) % 256 for i in range(seed * 5))
            peer.send(data)
            peer.close()
        self.assertTrue(control.call("status")["ok"])


class Metrics(DaemonTest):
    """Numbers, over HTTP and the control socket."""

    def setUp(self):
        super().setUp()
        self.daemon = self.start()
        self.control = self.connect(self.daemon)
        # the address may be another's for a moment, then it is asked for again
        self.daemon.wait_metrics()

    def get(self, path, **options):
        """A request to the HTTP server."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.daemon.port}{path}", **options)
        return urllib.request.urlopen(request, timeout=LIMIT_S)

    def test_text_format(self):
        with self.get("/metrics") as answer:
            self.assertEqual(answer.headers["Content-Type"],
                             "text/plain; version=0.0.4; charset=utf-8")
            text = answer.read().decode()
        family, kind, seen = None, None, set()
        for line in text.splitlines():
            if line.startswith("# HELP "):
                family = line.split()[2]
                self.assertNotIn(family, seen, "a family is in one piece")
                seen.add(family)
            elif line.startswith("# TYPE "):
                self.assertEqual(line.split()[2], family)
                kind = line.split()[3]
                self.assertEqual(kind == "counter", family.endswith("_total"), family)
            else:
                match = re.fullmatch(r'([a-z_]+)(\{[a-z]+="[^"\\]*"\})? (-?[0-9.e+-]+|\+Inf)', line)
                self.assertTrue(match, line)
                name = match[1]
                if kind == "histogram":
                    name = re.sub(r"_(bucket|sum|count)$", "", name)
                self.assertEqual(name, family)
        self.assertTrue(all(name.startswith("krcore_meta_") for name in seen))
        documented = set(re.findall(r"^\| `(krcore_meta_\w+)` \|",
                                    (TOP / "docs/metrics.md").read_text(), re.MULTILINE))
        self.assertEqual(seen, documented)

    def test_alerts_and_the_board_go_by_what_is_there(self):
        with self.get("/metrics") as answer:
            text = answer.read().decode()
        samples = set(re.findall(r"^(krcore_meta_\w+)", text, re.MULTILINE))
        for name in ("krcore-alerts.yml", "krcore-grafana.json"):
            asked = (TOP / "docs/monitoring" / name).read_text()
            used = set(re.findall(r"krcore_meta_\w+", asked))
            self.assertGreater(len(used), 5, name)
            self.assertEqual(used - samples, set(), name)
            for label, values in re.findall(r'\b(\w+)=~?\\?"([a-z_|]+)\\?"', asked):
                if label == "job":
                    continue
                for value in values.split("|"):
                    self.assertIn(f'{label}="{value}"', text, name)

    @unittest.skipIf(HAVE_RDMA, "has an RDMA device")
    def test_probes(self):
        with self.get("/healthz") as answer:
            self.assertEqual((answer.status, answer.read()[:9]), (200, b"starting,"))
        for path in ("/readyz", "/settled"):
            with self.assertRaises(urllib.error.HTTPError) as caught:
                self.get(path)
            self.assertEqual(caught.exception.code, 503)
            self.assertIn(b"settling for", caught.exception.read())
            caught.exception.close()

    def test_drain_is_seen_everywhere_and_can_be_taken_back(self):
        for _ in range(2):  # what is so already is no error
            reply = self.control.call("drain")
            self.assertTrue(reply["ok"], reply)
            state = reply["result"][0]
            self.assertEqual((state["state"], state["serving"]), ("drained", False))
            self.assertIn("drained by the operator, 0 connections left", state["status"])
        self.assertEqual(self.control.call("stats")["result"][0]["drained"], 1)
        self.daemon.wait_told("STATUS=drained: drained by the operator")
        self.assertIn("READY=1", self.daemon.told)
        for path, well in (("/healthz", True), ("/readyz", False), ("/settled", False)):
            if well:
                with self.get(path) as answer:
                    self.assertTrue(answer.read().startswith(b"drained,"))
                continue
            with self.assertRaises(urllib.error.HTTPError) as caught:
                self.get(path)
            self.assertEqual(caught.exception.code, 503)
            self.assertTrue(caught.exception.read().startswith(b"drained,"))
            caught.exception.close()
        self.assertTrue(self.control.call("reload")["ok"])
        self.assertEqual(self.control.call("status")["result"][0]["state"], "drained")

        state = self.control.call("undrain")["result"][0]
        self.assertIn(state["state"], ("waiting", "serving"))
        self.assertEqual(self.control.call("stats")["result"][0]["drained"], 0)
        self.assertIn("no argument 'now'", self.control.call("drain", now=True)["error"])
        self.assertEqual(self.daemon.log().count("drained by the operator: clients"), 1)

    def test_same_numbers_everywhere(self):
        stats = self.control.call("stats")["result"][0]
        text = self.control.call("metrics")["result"][0]["text"]
        samples = {}
        for line in text.splitlines():
            match = re.fullmatch(r'krcore_meta_(\w+)(?:\{\w+="(.*)"\})? (.*)', line)
            if match:
                name = match[1] + (f"_{match[2]}" if match[2] is not None else "")
                samples[name] = float(match[3])
        self.assertEqual(set(samples), set(stats))
        moving = {"control_requests_total_metrics", "sweeps_total", "sweep_last_seconds",
                  "sweep_max_seconds"}
        for name, value in stats.items():
            if name not in moving:
                self.assertEqual(samples[name], float(value), name)

    def test_other_requests(self):
        for path, options, status in (("/", {}, 404), ("/metrics/x", {}, 404),
                                      ("/metrics", {"data": b"x" * 100000}, 405),
                                      ("/metrics", {"method": "DELETE"}, 405)):
            with self.assertRaises(urllib.error.HTTPError) as caught:
                self.get(path, **options)
            self.assertEqual(caught.exception.code, status)
            caught.exception.close()
        with self.get("/metrics", method="HEAD") as answer:
            self.assertEqual((answer.status, answer.read()), (200, b""))

    def test_keep_alive(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=LIMIT_S)
        for _ in range(3):
            connection.request("GET", "/metrics")
            self.assertIn(b"krcore_meta_records 0\n", connection.getresponse().read())
        connection.close()

    def test_rubbish_and_too_many(self):
        address = ("127.0.0.1", self.daemon.port)
        idle = [socket.create_connection(address) for _ in range(40)]
        for sock in idle:
            sock.close()
        with socket.create_connection(address, timeout=LIMIT_S) as sock:
            sock.sendall(b"\x00\xffnonsense\r\n\r\n")
            sock.recv(4096)
        with socket.create_connection(address, timeout=LIMIT_S) as sock:
            sock.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 100000)
            try:
                while sock.recv(4096):
                    pass
            except ConnectionResetError:
                pass
        with self.get("/metrics") as answer:
            self.assertEqual(answer.status, 200)

    def test_off(self):
        daemon = self.start("-o", "metaserver.metrics_listen=", sub="off")
        self.assertTrue(self.connect(daemon).call("metrics")["ok"])
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", daemon.port))
