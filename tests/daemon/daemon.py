# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The real daemon in a scratch folder, with a service manager and clients that the test plays.

Nothing here needs an RDMA device: without one the daemon waits for it, which is all
that these tests rely on. Every wait has a bound and no test sleeps to let time pass.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["KRCORE_METASERVER"]
TOP = pathlib.Path(__file__).resolve().parents[2]
LIMIT_S = 20
HAVE_RDMA = os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband")


def run(*args):
    """Run the program to its end."""
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)


def free_port():
    """A TCP port of the loopback that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def until(condition, what):
    """Wait for a condition; returns its value."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"in {LIMIT_S} s not: {what}")


class Control:
    """A connection to the control socket."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.rest = b""
        try:
            self.sock.connect(str(path))
        except OSError:
            self.sock.close()
            raise
        self.sock.settimeout(LIMIT_S)

    def send(self, data):
        """Bytes as they are."""
        self.sock.sendall(data)

    def line(self):
        """The next line, or None at the end of the stream."""
        while b"\n" not in self.rest:
            data = self.sock.recv(1 << 16)
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def read(self):
        """The next object."""
        return json.loads(self.line())

    def call(self, command, **args):
        """Ask; returns the reply, good or bad. A trailing _ of an argument is dropped."""
        request = {"command": command}
        if args:
            request["args"] = {name.rstrip("_"): value for name, value in args.items()}
        self.send(json.dumps(request).encode() + b"\n")
        return self.read()

    def close(self):
        """Hang up."""
        self.sock.close()


class Daemon:
    """A running daemon, and the service manager it reports to."""

    def __init__(self, folder, *args, config="", env=None, pass_fds=(), wrapper=()):
        self.folder = folder
        self.config = folder / "krcore.conf"
        self.config.write_text(config)
        self.socket = folder / "control.sock"
        self.port = free_port()
        self.log_path = folder / "log"
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(folder / "notify"))
        self.notify.settimeout(LIMIT_S)
        self.told = []
        options = {"metaserver.control_socket": self.socket,
                   "metaserver.metrics_listen": f"127.0.0.1:{self.port}",
                   "metaserver.key_file": folder / "cluster.key"}
        argv = [*wrapper, PROGRAM, "--config", self.config]
        for key, value in options.items():
            argv += ["-o", f"{key}={value}"]
        clean = {name: value for name, value in os.environ.items()
                 if name not in ("JOURNAL_STREAM", "INVOCATION_ID")}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [str(word) for word in (*argv, *args)], stderr=log, pass_fds=pass_fds,
                env={**clean, "NOTIFY_SOCKET": str(folder / "notify"), **(env or {})})

    def log(self):
        """What it logged so far."""
        return self.log_path.read_text()

    def wait_log(self, text):
        """Wait until it logged a text."""
        until(lambda: text in self.log() or self.process.poll() is not None, f"logged {text!r}")
        assert text in self.log(), self.log()

    def wait_told(self, prefix):
        """Wait until the service manager was told something; returns that line."""
        limit = time.monotonic() + LIMIT_S
        while time.monotonic() < limit:
            for line in self.told:
                if line.startswith(prefix):
                    return line
            self.told += self.notify.recv(4096).decode().splitlines()
        raise AssertionError(f"not told {prefix!r} but {self.told}")

    def forget_told(self):
        """Drop what the manager was told so far."""
        self.notify.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.notify.recv(4096)
        self.notify.settimeout(LIMIT_S)
        self.told = []

    def control(self):
        """Connect, once the daemon listens."""
        def connect():
            try:
                return Control(self.socket)
            except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
                assert self.process.poll() is None, self.log()
                return None
        return until(connect, "control socket")

    def wait_metrics(self):
        """Wait until it listens for readers of its metrics."""
        def listens():
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                return False
            return True
        until(listens, "metrics")

    def wait_exit(self):
        """Wait for its end; returns the exit status."""
        return self.process.wait(LIMIT_S)

    def close(self):
        """End it, if it has not."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LIMIT_S)
        self.notify.close()


class DaemonTest(unittest.TestCase):
    """A test with a scratch folder, whose daemons end with it."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="krcore-daemon-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, *args, **options):
        """Start a daemon in the scratch folder, or in a folder named sub within it."""
        folder = self.folder / options.pop("sub", ".")
        folder.mkdir(exist_ok=True)
        daemon = Daemon(folder, *args, **options)
        self.addCleanup(daemon.close)
        return daemon

    def connect(self, daemon):
        """Connect to its control socket; hung up at the end of the test."""
        control = daemon.control()
        self.addCleanup(control.close)
        return control
