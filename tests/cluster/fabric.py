# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The guests' network: one switch process, and what a test may do to it.

Cards that reach each other without the switch have a fabric of their own, which
has the cards do the same.
"""

import os
import pathlib
import socket
import time

from . import host
from .process import Process

CARD = "nic0"           # QEMU's id of a guest's card, for link changes and removal


class Fabric:
    """The switch of one cluster. Ports are numbered as the guests of the topology."""

    def __init__(self, run_dir, n_ports):
        self._base = pathlib.Path(run_dir) / "sw"
        self._n_ports = n_ports
        self.process = None
        self.machines = []      # by number of the port; the cluster says

    def guest_socket(self, index):
        """The datagram socket a guest's QEMU binds."""
        return f"{self._base}.g{index}"

    def port_socket(self, index):
        """The datagram socket of the switch that a guest's QEMU sends to."""
        return f"{self._base}.p{index}"

    def card_folder(self):
        """A folder for cards that talk to each other without the switch."""
        folder = pathlib.Path(f"{self._base}.cards")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def start(self, stay=False):
        """Start the switch and wait until it answers."""
        folder = host.TESTS / "cluster"
        program = host.compiled(folder / "switch.c", includes=[folder / "switch_rdma.h"])
        control = pathlib.Path(f"{self._base}.ctl")
        control.unlink(missing_ok=True)
        self.process = Process.start([program, self._base, self._n_ports], stay=stay,
                                     log=f"{self._base}.log")
        deadline = time.monotonic() + 60
        while not control.exists():
            if not self.process.alive() or time.monotonic() > deadline:
                log = pathlib.Path(f"{self._base}.log").read_text()
                raise host.ClusterError(f"the switch does not run: {log}")
            time.sleep(0.01)
        self.command("stats")

    def stop(self):
        """End the switch."""
        if self.process:
            self.process.end()

    def command(self, text):
        """One command of the switch (see switch.c); returns its answer."""
        own = f"{self._base}.c{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control:
            control.settimeout(60)
            control.bind(own)
            try:
                control.sendto(text.encode(), f"{self._base}.ctl")
                answer = control.recv(8192).decode()
            except OSError as error:
                raise host.ClusterError(f"switch: {text}: {error}") from None
            finally:
                os.unlink(own)
        if answer.startswith("error"):
            raise host.ClusterError(f"switch: {answer.strip()}")
        return answer

    def loss(self, index, permille, seed=1):
        """Lose this many of a thousand frames on their way to a guest."""
        self.command(f"seed {seed}")
        self.command(f"loss {index} {permille}")

    def delay(self, index, microseconds):
        """Hold every frame to a guest back this long."""
        self.command(f"delay {index} {microseconds}")

    def disorder(self, index, twice_permille, late_permille):
        """So many of a thousand frames from a guest come twice, or behind the next one."""
        self.command(f"disorder {index} {twice_permille} {late_permille}")

    def cut(self, first, second):
        """No frames between two guests, in either direction."""
        self.command(f"cut {first} {second}")

    def reset(self):
        """Undo loss, disorder, delay and cuts."""
        self.command("reset")

    def requests(self, index):
        """What a guest has sent of RDMA by reliable connections: ({(operation, bytes): requests},
        NAKs for another reason than a number), since the switch began or forget(). None in place
        of the first, where there were more lengths than the switch has places for."""
        first, *rows = self.command(f"rdma {index}").splitlines()
        _, naks, _, uncounted = first.split()
        ops = {(op, int(size)): int(count) for op, size, count in map(str.split, rows)}
        return None if int(uncounted) else ops, int(naks)

    def forget(self):
        """Count what guests send of RDMA anew: the switch has a place for each length, and what
        all tests of a run send are more of them than it has."""
        self.command("forget")


class CardFabric(Fabric):
    """The network of ConnectX models: sockets in a folder, disturbed by the cards."""

    def forget(self):
        """The cards count, and have places enough."""

    def _set(self, index, **properties):
        for name, value in properties.items():
            self.machines[index].qmp.call("qom-set", path=f"/machine/peripheral/{CARD}",
                                          property=name, value=value)

    def loss(self, index, permille, seed=1):
        """Lose this many of a thousand frames on their way to a guest. Which ones, a card
        draws from its property `seed`; the one given here is not used."""
        self._set(index, rx_loss_ppm=permille * 1000)

    def delay(self, index, microseconds):
        """Hold every frame from a guest back this long; a round trip takes as much longer
        as with a switch."""
        self._set(index, delay_us=microseconds)

    def disorder(self, index, twice_permille, late_permille):
        """So many of a thousand frames from a guest come twice, or behind the next one."""
        self._set(index, dup_ppm=twice_permille * 1000, reorder_ppm=late_permille * 1000)

    def cut(self, first, second):
        """No frames between two guests, in either direction."""
        for near, far in ((first, second), (second, first)):
            path = f"/machine/peripheral/{CARD}"
            already = self.machines[near].qmp.call("qom-get", path=path, property="partition")
            nodes = {*already.split(","), str(far + 1)} - {""}
            self._set(near, partition=",".join(sorted(nodes, key=int)))

    def reset(self):
        """Undo loss, disorder, delay and cuts. Cuts first: how long one lasts may matter."""
        there = [index for index, machine in enumerate(self.machines) if machine.alive()]
        for index in there:
            self._set(index, partition="")
        for index in there:
            self._set(index, rx_loss_ppm=0, dup_ppm=0, reorder_ppm=0, delay_us=0)
