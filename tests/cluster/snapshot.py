# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A booted cluster, frozen to files and thawed in seconds.

A snapshot is one folder a guest: the machine's state (QEMU's migration stream) and
the disks at that moment. Nothing in it is changed afterwards: a start puts new disk
overlays on top. Its name is a digest of all it was made from.
"""

import json
import os
import pathlib
import platform
import shutil
import time

from . import debugfs, host
from .agent import AgentError

STATE = "state"
NOTES = "notes.json"
KEPT = 12               # snapshots; each is some hundred megabytes


def _processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line
    return platform.processor()


def identity(path):
    """A disk made anew from the same recipe is another one to what was frozen over it."""
    status = path.stat()
    return str(path), status.st_size, status.st_mtime_ns


def _key(cluster):
    parts = cluster.parts
    version = host.run(["qemu-system-x86_64", "--version"])
    return host.digest(identity(parts.image), identity(parts.kernel.modules),
                       parts.kernel.key, parts.nic.key(), version, _processor(),
                       [machine.recipe() for machine in cluster.nodes()])


def _freeze(machine, folder):
    """Write one stopped guest into `folder`, and end it."""
    folder.mkdir()
    machine.qmp.call("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
    machine.qmp.call("migrate", uri=f"exec:cat >{folder / STATE}")
    deadline = time.monotonic() + 900
    while True:
        status = machine.qmp.call("query-migrate").get("status")
        if status == "completed":
            break
        if status in ("failed", "cancelled") or time.monotonic() > deadline:
            raise host.ClusterError(f"{machine.name}: freezing it: {status}")
        time.sleep(0.05)
    machine.qmp.call("quit")
    if not machine.process.wait(120):
        raise host.ClusterError(f"{machine.name}: its QEMU did not end when told to")
    for name in ("root.qcow2", "modules.qcow2", "console.log"):
        shutil.move(machine.folder / name, folder / name)


def _settle(machine):
    """The guest, at rest: what was read stays in memory, nothing is half written."""
    machine.run("sync; sleep 1")


def _store(cluster, folder, notes):
    """Freeze a running cluster into `folder`; it does not run afterwards."""
    problems = [f"{machine.name}: {line}" for machine in cluster.nodes()
                for line in machine.kernel_problems()]
    if problems:
        raise host.ClusterError("kernel log of a fresh boot:\n" + "\n".join(problems))
    cluster.each(_settle)
    with host.step("freezing the guests to files", "10 s"), host.made_whole(folder) as whole:
        cluster.each(lambda machine: machine.pause())
        cluster.each(lambda machine: _freeze(machine, whole / machine.name))
        cluster.fabric.stop()
        (whole / NOTES).write_text(json.dumps(notes))
    host.keep_newest(folder.parent, KEPT)


def _making(folder):
    """Snapshots of different names may be made at once: a first boot takes minutes."""
    return host.locked(host.CACHE / "locks" / f"snapshot-{folder.name}")


def get(cluster):
    """The folder of this cluster's snapshot; the cluster is booted when there is none."""
    folder = host.CACHE / "snapshots" / f"{cluster.kernel.name}-{cluster.nic.name}-{_key(cluster)}"
    with _making(folder):
        if not folder.exists():
            with host.step(f"booting {len(cluster.nodes())} guests for the first time, kernel "
                           f"{cluster.kernel.release}, {cluster.how()}", cluster.usual_boot()):
                cluster.boot(freezing=True)
            _store(cluster, folder, {})
            # what was frozen on top of an older one of this name does not fit
            for dependent in folder.parent.glob(f"{folder.name}-*"):
                shutil.rmtree(dependent)
    os.utime(folder)
    return folder


def get_installed(cluster, packages):
    """The same with krcore installed: its folder, and the digests of the installed files."""
    base = get(cluster)
    folder = base.parent / f"{base.name}-{packages.shape}"
    with _making(folder):
        if not folder.exists():
            restore(cluster, base)
            packages.install(cluster)
            _store(cluster, folder, packages.files)
    os.utime(folder)
    return folder, json.loads((folder / NOTES).read_text())


def _thaw(machine, timeout):
    """Wait until the state is read in, then let the guest run and tell it the time."""
    deadline = time.monotonic() + timeout
    while True:
        machine.require_alive()
        try:
            status = machine.qmp.call("query-status")["status"]
        except AgentError:
            status = "unreachable"
        if status == "paused":
            return
        if time.monotonic() > deadline:
            raise host.ClusterError(f"{machine.name}: not thawed within {timeout} s: {status}")
        time.sleep(0.02)


def restore(cluster, folder, stay=False):
    """Start the cluster from a snapshot."""
    cluster.fabric.start(stay)
    for machine in cluster.nodes():
        frozen = folder / machine.name
        machine.make_disks(frozen)
        shutil.copy(frozen / "console.log", machine.folder / "console.log")
        machine.log.skip()
        machine.start(stay, incoming=frozen / STATE)
    cluster.each(lambda machine: _thaw(machine, 600))
    cluster.each(lambda machine: machine.resume())
    cluster.each(lambda machine: machine.agent.set_clock())
    cluster.each(debugfs.prepare)     # an older snapshot may lack it
