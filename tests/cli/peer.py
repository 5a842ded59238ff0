# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The daemon's end of the control socket, scripted, for what a real daemon will not do on demand.

Speaks the framing of common/ctl.h: one JSON object a line. A script is a dict from command to a
function that takes the arguments and returns a reply, or a list of them for a stream; bytes are
sent as they are. Every request is kept in `asked`.
"""
import json
import os
import socket
import tempfile
import threading


class Peer:
    """A scripted daemon on a socket of its own; use as a context."""

    def __init__(self, script):
        self.script = script
        self.asked = []
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "metaserver.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(4)
        self.thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)
        self.folder.cleanup()

    def _accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            with conn:
                try:
                    self._serve(conn)
                except OSError:
                    pass  # the tool has gone, as it may

    def _serve(self, conn):
        for line in conn.makefile("rb"):
            request = json.loads(line)
            self.asked.append(request)
            replies = self.script[request["command"]](request.get("args", {}))
            for reply in replies if isinstance(replies, list) else [replies]:
                if isinstance(reply, bytes):
                    conn.sendall(reply)
                else:
                    conn.sendall(json.dumps(reply).encode() + b"\n")
