# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Two JSON dialogues with a QEMU: QMP (the machine) and the guest agent (inside).

Every call has a time limit; a machine that does not answer in time is an error that
names it. One thread at a time uses a connection; a lock sees to that.
"""

import base64
import json
import os
import random
import socket
import threading
import time

from . import host

CHUNK_BYTES = 48 * 1024
MAX_REPLY_BYTES = 64 * 1024 * 1024
# An emulated guest of the debug kernel that was thawed beside other guests takes minutes for its
# first answer. One whose QEMU ends is told at once.
ANSWER_SECONDS = 300


class AgentError(host.ClusterError):
    """The other side refused, or did not answer."""


class _Dialogue:
    """Lines of JSON over a UNIX socket."""

    def __init__(self, path, name):
        self._path = str(path)
        self._name = name
        self._socket = None
        self._buffer = b""
        self._lock = threading.RLock()

    def close(self):
        """Drop the connection; the next call makes a new one."""
        with self._lock:
            if self._socket:
                self._socket.close()
            self._socket = None
            self._buffer = b""

    def _connect(self, deadline):
        self.close()
        while True:
            attempt = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            attempt.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                attempt.connect(self._path)
                self._socket = attempt
                return
            except OSError as error:
                attempt.close()
                if time.monotonic() >= deadline:
                    raise AgentError(f"{self._name}: {self._path}: {error}") from None
                time.sleep(0.05)

    def _send(self, message, prefix=b""):
        try:
            self._socket.sendall(prefix + json.dumps(message).encode() + b"\n")
        except OSError as error:
            self.close()
            raise AgentError(f"{self._name}: {error}") from None

    def _receive(self, deadline):
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                self.close()
                raise AgentError(f"{self._name}: no answer in time")
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(1 << 18)
            except TimeoutError:
                continue
            except OSError as error:
                data = b""
                reason = error
            else:
                reason = "connection closed"
            if not data or len(self._buffer) > MAX_REPLY_BYTES:
                self.close()
                raise AgentError(f"{self._name}: {reason}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line.lstrip(b"\xff") or b"{}")


class Qmp(_Dialogue):
    """The machine monitor."""

    def __init__(self, path, name):
        super().__init__(path, f"{name} (monitor)")
        self.events = []

    def call(self, command, timeout=60, **arguments):
        """Execute one command; events that arrive meanwhile are kept."""
        deadline = time.monotonic() + timeout
        with self._lock:
            if not self._socket:
                self._connect(deadline)
                self._receive(deadline)
                self._execute("qmp_capabilities", {}, deadline)
            return self._execute(command, arguments, deadline)

    def _execute(self, command, arguments, deadline):
        self._send({"execute": command, "arguments": arguments})
        while True:
            reply = self._receive(deadline)
            if "event" in reply:
                self.events.append(reply)
            elif "error" in reply:
                raise AgentError(f"{self._name}: {command}: {reply['error'].get('desc')}")
            else:
                return reply.get("return")

    def hmp(self, line, timeout=60):
        """A command of the human monitor, with its text."""
        return self.call("human-monitor-command", timeout, **{"command-line": line})


class Process:
    """A command running in a guest, in a process group of its own."""

    def __init__(self, agent, command, pid, slowdown=1):
        self._agent = agent
        self._slowdown = slowdown
        self.command = command
        self.pid = pid
        self._status = None

    def poll(self):
        """The exit status, or None while it runs; -N when signal N ended it."""
        if self._status is None:
            status = self._agent.call("guest-exec-status", pid=self.pid)
            if status.get("exited"):
                self._status = status
        if self._status is None:
            return None
        return self._status.get("exitcode", -self._status.get("signal", 0))

    def wait(self, timeout=60):
        """Wait for its end; returns a Result."""
        timeout *= self._slowdown
        start = time.monotonic()
        pause = 0.01
        while self.poll() is None:
            waited = time.monotonic() - start
            if waited >= timeout:
                raise AgentError(f"{self._agent.guest}: did not end within {timeout} s: "
                                 f"{self.command}")
            time.sleep(pause)
            # the agent logs each question: a slow guest should not be busy with those
            pause = min(pause * 1.5, max(0.2, waited / 50))
        return Result(self._agent.guest, self.command, self.poll(),
                      self._text("out-data"), self._text("err-data"))

    def _text(self, key):
        return base64.b64decode(self._status.get(key, "")).decode(errors="replace")

    def kill(self, signal="KILL"):
        """Signal the whole group; no error when it is gone already."""
        self._agent.run(f"kill -{signal} -- -{self.pid} 2>/dev/null || true")


class Result:
    """What a command in a guest ended with."""

    def __init__(self, guest, command, status, out, err):
        self.guest = guest
        self.command = command
        self.status = status
        self.out = out
        self.err = err

    def __repr__(self):
        return (f"{self.guest}: status {self.status}: {self.command}\n"
                f"{self.out[-4000:]}{self.err[-4000:]}")


class GuestAgent(_Dialogue):
    """Commands and files inside a guest, through qemu-guest-agent."""

    def __init__(self, path, guest):
        super().__init__(path, f"{guest} (guest agent)")
        self.guest = guest

    def _synchronise(self, deadline):
        """Throw away what an earlier, interrupted dialogue left behind."""
        token = random.randrange(1 << 31)
        self._send({"execute": "guest-sync-delimited", "arguments": {"id": token}}, b"\xff")
        while self._receive(deadline).get("return") != token:
            pass

    def call(self, command, timeout=ANSWER_SECONDS, **arguments):
        """Execute one command of the agent."""
        deadline = time.monotonic() + timeout
        with self._lock:
            if not self._socket:
                self._connect(deadline)
                self._synchronise(deadline)
            self._send({"execute": command, "arguments": arguments})
            reply = self._receive(deadline)
        if "error" in reply:
            raise AgentError(f"{self._name}: {command}: {reply['error'].get('desc')}")
        return reply.get("return")

    def popen(self, command, stdin=None, env=None, limit=0, slowdown=1):
        """Start a shell command; `limit` seconds after which the guest ends it (0: none), and
        by how much longer than it is told one waits for its end."""
        arguments = {"path": "/usr/bin/timeout", "capture-output": True,
                     "arg": ["--kill-after=5", str(limit), "/bin/bash", "-c", command],
                     "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                             "HOME=/root", "LANG=C.UTF-8",
                             *(f"{k}={v}" for k, v in (env or {}).items())]}
        if stdin is not None:
            data = stdin.encode() if isinstance(stdin, str) else stdin
            arguments["input-data"] = base64.b64encode(data).decode()
        return Process(self, command, self.call("guest-exec", **arguments)["pid"], slowdown)

    def run(self, command, timeout=60, check=True, **kwargs):
        """Run a shell command to its end. `check`: a status other than 0 is an error."""
        process = self.popen(command, limit=timeout, **kwargs)
        result = process.wait(timeout + 15)
        if result.status == 124:
            raise AgentError(f"{self.guest}: did not end within {timeout} s: {command}\n"
                             f"{result.out[-2000:]}{result.err[-2000:]}")
        if check and result.status:
            raise AgentError(repr(result))
        return result

    def push(self, data, path, mode=None):
        """Write a file of the guest: `data` is bytes or a path on this machine."""
        if not isinstance(data, bytes):
            data = host.pathlib.Path(data).read_bytes()
        handle = self.call("guest-file-open", path=str(path), mode="wb")
        try:
            for start in range(0, len(data), CHUNK_BYTES):
                chunk = base64.b64encode(data[start:start + CHUNK_BYTES]).decode()
                self.call("guest-file-write", handle=handle, **{"buf-b64": chunk})
        finally:
            self.call("guest-file-close", handle=handle)
        if mode is not None:
            self.run(f"chmod {mode:o} '{path}'")

    def pull(self, path):
        """The content of a file of the guest."""
        handle = self.call("guest-file-open", path=str(path), mode="rb")
        data = bytearray()
        try:
            while True:
                part = self.call("guest-file-read", handle=handle, count=CHUNK_BYTES)
                data += base64.b64decode(part["buf-b64"])
                if part["eof"]:
                    return bytes(data)
        finally:
            self.call("guest-file-close", handle=handle)

    def clock_error(self):
        """By how many seconds the guest's clock is certainly ahead of this machine's."""
        before = time.time()
        there = float(self.run("date +%s.%N").out)
        after = time.time()
        return there - after if there > after else min(0, there - before)

    def set_clock(self):
        """Give the guest this machine's time and fresh randomness, after it was frozen."""
        self.call("guest-ping")
        takes = 0.05    # seconds until a command runs; more on a machine that does much else
        for _ in range(8):
            self.run(f"date -s @{time.time() + takes:.3f}; cat >/dev/urandom",
                     stdin=os.urandom(64))
            error = self.clock_error()
            if abs(error) < 0.5:
                return
            takes = min(max(takes - error, 0), 5)
        raise AgentError(f"{self.guest}: its clock does not keep the time it is given: "
                         f"{error:.1f} s away")
