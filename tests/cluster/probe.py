# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The MetaServer client of the kernel module by itself, in a guest: the module of
tests/kernel/meta_probe is built for the guest's kernel and driven by files."""

import re
import shutil

from . import host

FOLDER = "/sys/kernel/debug/krc_meta_probe"
SOURCES = ("kmod/krc_cache*", "kmod/krc_meta*", "proto/*.h", "tests/kernel/meta_probe/*")
_modules = {}


def _debug_headers(release):
    """Build folder of the debug kernel."""
    for found in sorted(host.CACHE.glob("debug-kernel-*/build"), reverse=True):
        name = found / "include/config/kernel.release"
        if name.is_file() and name.read_text().strip() == release:
            return found
    raise host.ClusterError(f"no build folder of kernel {release} below {host.CACHE}")


def _build(name, release):
    folder = host.build_dir() / f"meta_probe-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for pattern in SOURCES:
        for path in host.CHECKOUT.glob(pattern):
            shutil.copy(path, folder)
    module = folder / "krc_meta_probe.ko"
    with host.step(f"compiling the probe of the MetaServer client for kernel {name}", "20 s"):
        if name == "debug":
            host.run(["make", "-s", "-C", _debug_headers(release), f"M={folder}",
                      "modules"], timeout=600)
        else:
            made = host.build_dir() / f"meta_probe-{name}.made"
            host.run([host.TESTS / "model/dev/build-kmod.sh", name, folder, made], timeout=600)
            module = made / "krc_meta_probe.ko"
    stripped = module.with_suffix(".stripped")
    host.run(["strip", "-g", "-o", stripped, module])
    return stripped


def built(machine):
    """The module for the kernel of this guest."""
    name = machine.kernel_name()
    if name not in _modules:
        _modules[name] = _build(name, machine.run("uname -r").out.strip())
    return _modules[name]


class Probe:
    """The module in one guest; leaves it at the end of a `with` block."""

    def __init__(self, machine):
        self.machine = machine

    def __enter__(self):
        self.machine.push(built(self.machine), "/tmp/krc_meta_probe.ko")
        self.machine.run("mountpoint -q /sys/kernel/debug || mount -t debugfs none "
                         "/sys/kernel/debug; modprobe rdma_cm; rmmod krc_meta_probe 2>/dev/null; "
                         "insmod /tmp/krc_meta_probe.ko")
        return self

    def __exit__(self, *_):
        if self.machine.alive():
            self.machine.run("rmmod krc_meta_probe", timeout=60)

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

    def up(self, *servers, key=None, lease_ms=3000, owner="42" * 16, first=()):
        """Start the client of rxe0; servers are (machine or address, priority)."""
        lines = ["reset", f"lease {lease_ms}", f"owner {owner}", *first]
        if key:
            lines.append(f"key {key}")
        lines += [self.server_line(server, priority) for server, priority in servers]
        self.do(*lines, f"up rxe0 1 {self.gid_index()}")

    @staticmethod
    def server_line(server, priority, port=18600):
        """The command that adds a server."""
        address = server if isinstance(server, str) else server.spec.address
        return f"server {address} {port} {priority}"

    def gid_index(self):
        """Index of the GID that stands for the guest's own address."""
        gid = "".join(f"{int(n):02x}" for n in self.machine.spec.address.split("."))
        for index in range(8):
            shown = self.machine.run(f"cat /sys/class/infiniband/rxe0/ports/1/gids/{index}",
                                     check=False).out
            if shown.replace(":", "").strip().endswith("ffff" + gid):
                return index
        raise host.ClusterError(f"{self.machine.name}: rxe0 has no GID for its address")

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
