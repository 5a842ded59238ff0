# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""One guest: its QEMU, its disks, its kernel log, and commands in it.

What it writes goes to overlays in its own folder; the image and the kernel below
them are shared and never change.
"""

import contextlib
import os
import pathlib
import time

from . import accel, cpio, debugfs, host, nic as nic_module
from .agent import AgentError, GuestAgent, Qmp
from .kernel_log import KernelLog
from .process import Process

DISKS = ("root", "modules")
METER = "meter"         # what a plugin of QEMU writes
NIC_PORT_ADDRESS = 9    # of the slot the card sits in, on the first bus
COMMAND_LINE = ("console=ttyS0 panic=-1 net.ifnames=0 mitigations=off audit=0 "
                "random.trust_cpu=on systemd.show_status=0 "
                "rcupdate.rcu_cpu_stall_timeout=60 watchdog_thresh=30")


class Machine:
    """A guest of the cluster. Attributes: `name`, `spec`, `folder`."""

    def __init__(self, spec, folder, parts):
        """`parts`: the cluster's image, kernel, nic, fabric, all specs."""
        self.spec = spec
        self.name = spec.name
        self.folder = pathlib.Path(folder)
        self._parts = parts
        self.process = None
        self.qmp = Qmp(self.folder / "qmp.sock", self.name)
        self.agent = GuestAgent(self.folder / "agent.sock", self.name)
        self.log = KernelLog(self.folder / "console.log")

    @property
    def nic(self):
        """The network card of the cluster's nodes."""
        return self._parts.nic

    @property
    def fabric(self):
        """The network between the cards of the cluster."""
        return self._parts.fabric

    # -- life ----------------------------------------------------------------

    def make_disks(self, frozen=None):
        """New empty overlays over the shared disks, or over those in `frozen`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        shared = {"root": self._parts.image, "modules": self._parts.kernel.modules}
        for disk in DISKS:
            base, form = (frozen / f"{disk}.qcow2", "qcow2") if frozen else (shared[disk], "raw")
            host.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", form, "-b", base,
                      self.folder / f"{disk}.qcow2"])

    def start(self, stay=False, incoming=None, freezing=False):
        """Start the machine; `incoming`: a file with the frozen state to go on from;
        `freezing`: without what cannot be frozen."""
        card = not (self._parts.nic.late and (incoming or freezing))
        (self.folder / "initrd").write_bytes(
            self._parts.kernel.initrd.read_bytes() + self._seed(card))
        self.qmp.close()
        self.agent.close()
        argv = self._qemu_arguments(card)
        if self._parts.plugin:      # of no state that is frozen
            argv += ["-plugin", f"{self._parts.plugin},out={self.folder / METER}"]
        if incoming:
            argv += ["-incoming", f"exec:cat {incoming}"]
        nic = self._parts.nic
        env = dict(os.environ, **nic.environment(self.spec, self._parts.fabric))
        self.process = Process.start(argv, log=self.folder / "qemu.log", stay=stay, env=env)

    def alive(self):
        """Whether its QEMU runs."""
        return self.process is not None and self.process.alive()

    def require_alive(self):
        """Report a dead guest, with the last lines it said."""
        if not self.alive():
            log = self.folder / "qemu.log"
            said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            raise host.ClusterError(f"{self.name}: the guest died\n{said}{self.log.tail()}")

    def wait_ready(self, timeout):
        """Wait until everything the guest starts at boot is up."""
        deadline = time.monotonic() + timeout
        while True:
            self.require_alive()
            try:
                self.agent.call("guest-ping", timeout=10)
                break
            except AgentError:
                if time.monotonic() >= deadline:
                    raise host.ClusterError(f"{self.name}: did not boot within {timeout} s\n"
                                            f"{self.log.tail()}") from None
        left = max(5, deadline - time.monotonic())
        state = self.run("systemctl is-system-running --wait", timeout=left, check=False)
        if state.out.strip() != "running":
            failed = self.run("systemctl --failed --no-legend --plain; systemctl status --failed "
                              "--no-pager; journalctl -b -p err --no-pager | tail -30",
                              check=False)
            raise host.ClusterError(f"{self.name}: booted, but {state.out.strip()}\n{failed.out}")
        debugfs.prepare(self)

    def power_off(self):
        """End the machine, not the system in it: a power cut."""
        if self.process:
            self.process.kill()
        self.qmp.close()
        self.agent.close()

    kill = power_off

    def restart(self, timeout=None):
        """Power cut, then a cold boot from the guest's own disks."""
        self.power_off()
        self.start()
        self.wait_ready(timeout or 180 * accel.slowdown() * self._parts.kernel.times())

    # -- commands and files --------------------------------------------------

    def run(self, command, timeout=60, check=True, **kwargs):
        """Run a shell command to its end: `.status`, `.out`, `.err`."""
        self.require_alive()
        try:
            return self.agent.run(command, timeout * self._slowness(), check, **kwargs)
        except AgentError:
            self.require_alive()
            raise

    def popen(self, command, limit=0, **kwargs):
        """Start a shell command: `.poll()`, `.wait(timeout)`, `.kill()`."""
        self.require_alive()
        times = self._slowness()
        return self.agent.popen(command, limit=limit * times, slowdown=times, **kwargs)

    def _slowness(self):
        """Time limits are so many times what is said."""
        return accel.slowness(self._parts.kernel)

    @contextlib.contextmanager
    def background(self, command, **kwargs):
        """A shell command that runs as long as the `with` block, and no longer."""
        process = self.popen(command, **kwargs)
        try:
            yield process
        finally:
            if self.alive() and process.poll() is None:
                process.kill()

    def push(self, data, path, mode=None):
        """Write bytes, or a file of this machine, to a path in the guest."""
        self.require_alive()
        self.agent.push(data, path, mode)

    def pull(self, path):
        """The bytes of a file in the guest."""
        self.require_alive()
        return self.agent.pull(path)

    # -- what may happen to a machine ------------------------------------------

    def link_down(self):
        """Unplug the network cable."""
        self._parts.nic.set_link(self, False)

    def link_up(self):
        """Plug the network cable in again."""
        self._parts.nic.set_link(self, True)

    def remove_nic(self, timeout=30):
        """Take the card out of the running machine; wait until the guest let go of it."""
        if not self._parts.kernel.hot_plug():
            # nobody there listens to the slot: the driver is told as if one did
            self.run(f"echo 1 | tee /sys/bus/pci/devices/0000:00:{NIC_PORT_ADDRESS:02x}.0/"
                     "*/remove", timeout=timeout)
            return
        self._parts.nic.remove(self)
        deadline = time.monotonic() + timeout * self._slowness()
        while self._has_nic():
            if time.monotonic() >= deadline:
                raise host.ClusterError(f"{self.name}: did not let go of its card")
            time.sleep(0.1)

    def add_nic(self, **more):
        """Put it in, again or after a thaw, and have the guest bring the fabric up;
        `more`: further properties of the card."""
        if not self._has_nic():     # without hot-plug it never left its slot
            self._parts.nic.insert(self, **more)
        if not self._parts.kernel.hot_plug():
            self.run("sleep 1; echo 1 >/sys/bus/pci/rescan", timeout=90)
        self.push(self._settings(card=True), "/etc/krcore-guest.conf")
        self.run("krcore-fabric up", timeout=90)

    def _has_nic(self):
        try:
            self.qmp.call("qom-list", path=f"/machine/peripheral/{nic_module.NIC_DEVICE}")
        except AgentError:
            return False
        return True

    def pause(self):
        """Stop all its processors."""
        self.qmp.call("stop")

    def resume(self):
        """Let them go on."""
        self.qmp.call("cont")

    def kernel(self):
        """The kernel it runs."""
        return self._parts.kernel

    def kernel_log(self):
        """The whole kernel log, from the console."""
        return self.log.text()

    def kernel_problems(self):
        """New lines of trouble in the kernel log; each is returned once."""
        return self.log.problems()

    # -- how it is made --------------------------------------------------------

    def _settings(self, card):
        """What krcore-fabric reads in the guest."""
        settings = {
            "FABRIC_MODULES": " ".join(self._parts.nic.modules()),
            "FABRIC_ADDRESS": f"{self.spec.address}/{self.spec.prefix}",
            "FABRIC_MTU": str(self.spec.mtu),
            "FABRIC_LINK": self._parts.nic.link_kind() if card else "later",
        }
        return "".join(f"{key}='{value}'\n" for key, value in settings.items()).encode()

    def _seed(self, card):
        """This guest's own files, which its first program copies over the root disk."""
        archive = cpio.Archive()
        hosts = "127.0.0.1 localhost\n" + "".join(
            f"{spec.address} {spec.name}\n" for spec in self._parts.specs)
        archive.add_file("seed/etc/hostname", f"{self.name}\n".encode())
        archive.add_file("seed/etc/hosts", hosts.encode())
        archive.add_file("seed/etc/machine-id", f"{self.spec.index + 1:032x}\n".encode())
        archive.add_file("seed/etc/krcore-guest.conf", self._settings(card))
        return archive.finish()

    def _qemu_arguments(self, card):
        folder = self.folder
        argv = [
            "qemu-system-x86_64", "-name", f"guest={self.name}", "-M", "q35",
            *self._parts.accel, "-smp", str(self.spec.cpus), "-m",
            str(self.spec.memory_mb * self._parts.kernel.memory_times()),
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", self._parts.kernel.vmlinuz, "-initrd", folder / "initrd",
            "-append", " ".join(filter(None, (COMMAND_LINE, self._parts.kernel.command_line(),
                                              accel.kernel_arguments(self._parts.accel)))),
            "-chardev", f"file,id=console,path={folder}/console.log,append=on",
            "-serial", "chardev:console",
            "-qmp", f"unix:{folder}/qmp.sock,server=on,wait=off",
            "-device", "vmgenid,guid=auto",
        ]
        for index, disk in enumerate(DISKS):
            argv += ["-drive", f"if=none,id={disk},file={folder}/{disk}.qcow2,format=qcow2,"
                               "cache=unsafe,discard=unmap",
                     "-device", f"virtio-blk-pci,drive={disk},addr={index + 4}"]
        argv += ["-device", "virtio-serial-pci,addr=8",
                 "-chardev", f"socket,id=agent,path={folder}/agent.sock,server=on,wait=off",
                 "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0,nr=1",
                 "-chardev", f"socket,id=shell,path={folder}/shell.sock,server=on,wait=off",
                 "-device", "virtconsole,chardev=shell,nr=2",
                 "-device", f"pcie-root-port,id={nic_module.NIC_PORT},chassis=1,"
                   f"addr={NIC_PORT_ADDRESS}"
                            f"{self._parts.nic.slot}"]
        if card:
            argv += self._parts.nic.qemu_arguments(self.spec, self._parts.fabric)
        return argv

    def recipe(self):
        """All that makes this guest what it is after a boot; names snapshots."""
        card = not self._parts.nic.late
        argv = [str(arg).replace(str(self.folder.parent), "")
                for arg in self._qemu_arguments(card)]
        return argv, self._seed(card)
