# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The MetaServer client of the kernel module by itself, in a guest: the module of
tests/kernel/meta_probe is built for the guest's kernel and driven by files."""

import pathlib
import re
import shutil
import tempfile

from . import debugfs, host, kbuild, kernel as kernels

FOLDER = f"{debugfs.FOLDER}/krc_meta_probe"
LEASE_MS = 10000
_modules = {}
_scratch = tempfile.TemporaryDirectory(prefix="krcore-meta-probe-")


def sources(tree=host.CHECKOUT):
    """What the module is made of in a tree, for kbuild.copy()."""
    found = {path.name: path for path in tree.joinpath("tests/kernel/meta_probe").iterdir()}
    for part in ("kmod", "proto"):
        for pattern in ("*.c", "*.h", "*.mk"):
            found |= {str(path.relative_to(tree)): path
                      for path in tree.joinpath(part).rglob(pattern)
                      if not path.name.endswith(".mod.c")}
    return found


def place(release, build_tree):
    """Where it is made for a kernel, by the gate that judges it and for guests: once for both."""
    return kbuild.place(f"{release}-meta-probe", build_tree)


def make(folder, build_tree, jobs=1):
    """The command that makes it in `folder`."""
    return ["make", "-s", "-C", build_tree, f"M={folder}", f"-j{jobs}",
            "CONFIG_DEBUG_INFO_BTF_MODULES=", f"KCFLAGS=-Werror {kbuild.NO_DEBUG_INFO}", "modules"]


def _build(kernel):
    target = pathlib.Path(_scratch.name, f"{kernel.name}.ko")
    build_tree = kernels.build_tree(kernel)
    with host.step(f"building the probe of the MetaServer client for {kernel.release}", "20 s"), \
            place(kernel.release, build_tree) as folder:
        kbuild.copy(sources(), folder)
        host.run(make(folder, build_tree), timeout=900)
        shutil.copy(folder / "krc_meta_probe.ko", target)
    return target


def _built(machine):
    """The module for the kernel of this guest."""
    kernel = machine.kernel()
    if kernel.release not in _modules:
        _modules[kernel.release] = _build(kernel)
    return _modules[kernel.release]


class Probe:
    """The module in one guest; leaves it at the end of a `with` block."""

    def __init__(self, machine):
        self.machine = machine

    def __enter__(self):
        self.machine.push(_built(self.machine), "/tmp/krc_meta_probe.ko")
        self.machine.run("modprobe rdma_cm; rmmod krc_meta_probe 2>/dev/null; "
                         "insmod /tmp/krc_meta_probe.ko")
        return self

    def __exit__(self, *_):
        if self.machine.alive():
            self.machine.run("rmmod krc_meta_probe", timeout=60)

    def device(self):
        """The RDMA device of the guest."""
        return self.machine.run("ls /sys/class/infiniband").out.split()[0]

    def load(self):
        """Load it (again)."""
        self.machine.run("insmod /tmp/krc_meta_probe.ko")

    def do(self, *commands, timeout=60):
        """Commands one after the other, each of which must succeed."""
        self.machine.run("\n".join(f"echo '{line}' > {FOLDER}/ctl || exit 1"
                                   for line in commands), timeout=timeout)

    def outcome(self, command, timeout=60):
        """What one command came to: '' or the text of its error."""
        done = self.machine.run(f"LC_ALL=C /bin/echo '{command}' > {FOLDER}/ctl",
                                timeout=timeout, check=False)
        return "" if not done.status else done.err.strip().rpartition(": ")[2]

    def up(self, *servers, key=None, lease_ms=LEASE_MS, owner="42" * 16, first=()):
        """Start the client of the card; servers are (machine or address, priority)."""
        lines = ["reset", f"lease {lease_ms}", f"owner {owner}", *first]
        if key:
            lines.append(f"key {key}")
        lines += [self.server_line(server, priority) for server, priority in servers]
        self.do(*lines, f"up {self.device()} 1 {self.gid_index()}")

    @staticmethod
    def server_line(server, priority, port=18600):
        """The command that adds a server."""
        address = server if isinstance(server, str) else server.spec.address
        return f"server {address} {port} {priority}"

    def gid_index(self):
        """Index of the GID of RoCE v2 that stands for the guest's own address."""
        gid = "".join(f"{int(n):02x}" for n in self.machine.spec.address.split("."))
        port = f"/sys/class/infiniband/{self.device()}/ports/1"
        for index in range(8):
            shown = self.machine.run(f"cat {port}/gids/{index} {port}/gid_attrs/types/{index}",
                                     check=False).out
            if re.fullmatch(rf"\S*ffff{gid}RoCE v2", re.sub(r"[:\n]", "", shown)):
                return index
        raise host.ClusterError(f"{self.machine.name}: {self.device()} has no GID of RoCE v2 "
                                "for its address")

    def result(self):
        """Fields of the last look-up or storm."""
        return _fields(self.machine.run(f"cat {FOLDER}/result").out)

    def info(self):
        """(sessions, cache): fields of each."""
        lines = self.machine.run(f"cat {FOLDER}/info").out.splitlines()
        return ([_fields(line) for line in lines if line.startswith("server=")],
                _fields(lines[-1]))

    def states(self):
        """States of the sessions, in order."""
        return [session["state"] for session in self.info()[0]]

    def lookup(self, machine, service, cached=False):
        """The text of a record, or None."""
        word = "cached" if cached else "lookup"
        trouble = self.outcome(f"{word} ::ffff:{machine.spec.address} {service}")
        return None if trouble else self.result()["text"]


def _fields(line):
    return {name: value.strip('"') for name, value in re.findall(r'(\w+)=("[^"]*"|\S*)', line)}
