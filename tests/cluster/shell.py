# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A person's terminal, joined to a login shell in a guest by its virtual console."""

import os
import select
import shutil
import socket
import sys
import termios
import tty

from . import host

END_MARK = b"\x1bkrcore-shell-end\x07"      # said by krcore-shell.service at its end
LEAVE = b"\x1d"                             # Ctrl-]


def _copy(terminal, output, guest):
    """Bytes to and fro until the shell ends or the person leaves."""
    seen = b""
    while True:
        ready, _, _ = select.select([terminal, guest], [], [])
        if terminal in ready:
            typed = os.read(terminal, 1024)
            if not typed or LEAVE in typed:
                return
            guest.sendall(typed)
        if guest in ready:
            data = guest.recv(65536)
            if not data:
                return
            seen = (seen + data)[-256:]
            os.write(output, data.replace(END_MARK, b""))
            if END_MARK in seen:
                return


def interactive(machine):
    """Run a shell until it ends, or until Ctrl-]."""
    if not sys.stdin.isatty():
        raise host.ClusterError("no terminal: give a command, as in ./run shell NODE COMMAND")
    columns, rows = shutil.get_terminal_size()
    host.say(f"shell in {machine.name}; Ctrl-] leaves it")
    machine.run("systemctl stop krcore-shell.service; "
                f"stty -F /dev/hvc0 rows {rows} cols {columns}; "
                "systemctl start krcore-shell.service")
    terminal, output = sys.stdin.fileno(), sys.stdout.fileno()
    before = termios.tcgetattr(terminal)
    with socket.socket(socket.AF_UNIX) as guest:
        guest.connect(str(machine.folder / "shell.sock"))
        guest.sendall(b"\n")
        try:
            tty.setraw(terminal)
            _copy(terminal, output, guest)
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
    print()
    return 0
