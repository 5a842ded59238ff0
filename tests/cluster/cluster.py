# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The cluster as a whole: made, started, found again, ended.

    with Cluster.start(kernel="6.1", nic="rxe") as cluster:
        cluster.node("node1").run("ibv_devices")

Booted once, it is frozen to files (snapshot.py), and every start goes on from there.
`with` ends every process on the way out, whatever the reason. Cluster.attach finds
the one that `./run up` left running.
"""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import tempfile

from . import (accel, host, image, kernel as kernels, module, nic as nics, packages, snapshot,
               topology)
from .fabric import Fabric
from .machine import Machine
from .process import Process

RUN_PREFIX = f"krcore-{os.getuid()}-run-"
BOOT_SECONDS = 240      # for all guests, on KVM; times accel.slowdown()


@dataclasses.dataclass
class Parts:
    """What all guests of a cluster have in common."""
    specs: list
    image: pathlib.Path
    kernel: kernels.Kernel
    nic: nics.Nic
    accel: list
    fabric: Fabric
    plugin: str = ""    # -plugin of each guest's QEMU, which writes to the guest's METER


def _run_folder():
    """A new folder for one run; those of runs that were killed are removed."""
    for old in pathlib.Path("/tmp").glob(f"{RUN_PREFIX}*"):
        try:
            owner = Process.attach(json.loads((old / "owner").read_text()))
        except (OSError, ValueError):
            continue
        if old.stat().st_uid == os.getuid() and not owner.alive():
            shutil.rmtree(old, ignore_errors=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=RUN_PREFIX, dir="/tmp"))
    (folder / "owner").write_text(json.dumps(Process.this().state()))
    return folder


def each(machines, action):
    """Do a thing to several guests at once; the first error is raised when all ended."""
    machines = list(machines)
    with concurrent.futures.ThreadPoolExecutor(max(1, len(machines))) as pool:
        return list(pool.map(action, machines))


class Cluster:
    """Guests and their fabric. Attributes: `kernel`, `nic`, `fabric`, `folder`."""

    def __init__(self, parts, folder):
        self.parts = parts
        self.folder = pathlib.Path(folder)
        self.fabric = parts.fabric
        self.kernel = parts.kernel
        self.nic = parts.nic
        self.packages = None        # those installed, if any
        self._machines = {spec.name: Machine(spec, self.folder / spec.name, parts)
                          for spec in parts.specs}
        self.fabric.machines = list(self._machines.values())

    # -- making and ending -----------------------------------------------------

    @classmethod
    def prepare(cls, kernel="6.1", nic="rxe", topology_path=topology.DEFAULT, cpus=None,
                folder=None, plugin=""):
        """All that is needed, made or taken from the cache; nothing runs yet."""
        specs = topology.load(topology_path, cpus)
        card = nics.get(nic)
        card.prepare()
        chosen = kernels.get(kernel)
        disk = image.get()
        how = accel.arguments(chosen)
        folder = folder or _run_folder()
        fabric = card.fabric(folder, len(specs))
        return cls(Parts(specs, disk, chosen, card, how, fabric, plugin), folder)

    @classmethod
    def start(cls, stay=False, fresh=False, krcore=True, **options):
        """A running cluster.

        `stay`: it outlives this command. `fresh`: really boot, no snapshot. `krcore`:
        build packages and kernel module, and have them installed.
        """
        built = packages.Packages() if krcore else None
        cluster = cls.prepare(**options)
        cluster.packages = built
        try:
            if fresh:
                cluster._boot_and_install(stay, built)
            else:
                cluster._thaw(stay, built)
            if built:
                module.install(cluster)
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def _starting(self, usually):
        return host.step(f"starting {len(self.nodes())} guests, kernel {self.kernel.release}, "
                         f"{self.nic.name}, {self.how()}", usually)

    def _thaw(self, stay, built):
        """Start from a snapshot, which is made when there is none yet."""
        installed = {}
        if built:
            frozen, installed = snapshot.get_installed(self, built)
        else:
            frozen = snapshot.get(self)
        with self._starting("15 s" if self.nic.late else "5 s"):
            snapshot.restore(self, frozen, stay)
            if self.nic.late:
                self.each(lambda machine: machine.add_nic())
        if built:
            built.update(self, installed)

    def _boot_and_install(self, stay, built):
        """Start from nothing but the shared disks."""
        with self._starting(self.usual_boot()):
            self.boot(stay)
        if built:
            built.install(self)

    def boot(self, stay=False, freezing=False):
        """Cold start of all guests; `freezing`: to make a snapshot of them."""
        self.fabric.start(stay)
        for machine in self.nodes():
            machine.make_disks()
            machine.start(stay, freezing=freezing)
        each(self.nodes(), lambda machine: machine.wait_ready(self.boot_timeout()))

    def stop(self):
        """End every process and remove what the run left behind."""
        for machine in self.nodes():
            machine.power_off()
        self.fabric.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def how(self):
        """In words: on KVM or emulated."""
        return "KVM" if self.parts.accel == accel.HARDWARE else "emulated"

    def usual_boot(self):
        """In words: how long a boot takes."""
        if self.kernel.name == "debug":
            return "40 s" if self.parts.accel == accel.HARDWARE else "6-10 min"
        return "10 s" if self.parts.accel == accel.HARDWARE else "30-90 s"

    def boot_timeout(self):
        """Seconds after which a guest that has not booted never will."""
        return BOOT_SECONDS * self.kernel.times() * (1 if self.parts.accel == accel.HARDWARE else 4)

    # -- found again -----------------------------------------------------------

    def save_state(self):
        """Write down what `attach` needs."""
        parts = self.parts
        state = {
            "specs": [dataclasses.asdict(spec) for spec in parts.specs],
            "image": str(parts.image), "nic": self.nic.name, "accel": parts.accel,
            "kernel": {key: str(value) for key, value in dataclasses.asdict(parts.kernel).items()},
            "fabric": self.fabric.process.state(),
            "guests": {m.name: m.process.state() for m in self.nodes()},
        }
        (self.folder / "state.json").write_text(json.dumps(state))

    @classmethod
    def attach(cls, folder):
        """The cluster another command left running in `folder`, or None."""
        folder = pathlib.Path(folder)
        try:
            state = json.loads((folder / "state.json").read_text())
        except FileNotFoundError:
            return None
        specs = [topology.GuestSpec(**{**spec, "roles": tuple(spec["roles"])})
                 for spec in state["specs"]]
        paths = ("vmlinuz", "initrd", "modules")
        chosen = kernels.Kernel(**{key: pathlib.Path(value) if key in paths else value
                                   for key, value in state["kernel"].items()})
        card = nics.get(state["nic"])
        card.prepare()
        fabric = card.fabric(folder, len(specs))
        fabric.process = Process.attach(state["fabric"])
        cluster = cls(Parts(specs, pathlib.Path(state["image"]), chosen, card, state["accel"],
                            fabric), folder)
        for machine in cluster.nodes():
            machine.process = Process.attach(state["guests"][machine.name])
        return cluster

    # -- what is in it ---------------------------------------------------------

    def node(self, name):
        """One guest by its name."""
        if name not in self._machines:
            raise host.ClusterError(f"{name}: no such guest; there are "
                                    f"{', '.join(self._machines)}")
        return self._machines[name]

    def nodes(self, role=None):
        """All guests, or those of one role."""
        return [m for m in self._machines.values() if role is None or role in m.spec.roles]

    def each(self, action, role=None):
        """Do a thing to all guests at once."""
        return each(self.nodes(role), action)

    def dead(self):
        """Guests that no longer run."""
        return [machine for machine in self.nodes() if not machine.alive()]

    def cut(self, first, second):
        """No frames between two guests, by name."""
        self.fabric.cut(self.node(first).spec.index, self.node(second).spec.index)
