# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""README.md as written: its commands for two machines with nothing but Ethernet, typed in two
guests whose netdev has no address and no RDMA link. What they cannot do there is said below."""

import contextlib

from . import document, host, krcore, packages
from .cluster import each
from .nodes import writing
from .suite import check, limit, wait_until

NEEDS = "rxe"
HEADING = "## Two machines without an RDMA NIC"
ARCHIVES = "/run/readme"        # where a reader has copied the packages to
NAMES = {"one": ("node1",), "two": ("node2",), "both": ("node1", "node2")}
SAID = "/run/readme.out"
FIRST = "krcore-metaserver"     # its first installation makes a key; the others are there already
FILES = f"{krcore.KEY_FILE} {krcore.CONFIG} /etc/modprobe.d/krcore*.conf"


def _plain(machine):
    """A netdev as a machine has it that never saw RDMA; and nothing of krcore."""
    krcore.node_gone(machine)
    machine.run(f"systemctl stop {krcore.UNIT}.socket {krcore.UNIT} 2>/dev/null; "
                f"dpkg --purge {FIRST}; rm -rf {FILES} {ARCHIVES}; mkdir {ARCHIVES}", timeout=120)
    netdev = krcore.netdev(machine)
    machine.run(f"rdma link delete rxe0; modprobe -r rdma_rxe; ip address flush dev {netdev}; "
                f"ip link set {netdev} down")
    check(not machine.run("ls /sys/class/infiniband").out, "there is an RDMA device left")


def _as_before(machine):
    machine.run(f"pkill -x krcore-race; systemctl stop {krcore.UNIT}.socket {krcore.UNIT}; true")
    krcore.node_gone(machine)
    netdev = machine.run("ls -d /sys/class/net/*/device | cut -d/ -f5").out.strip()
    machine.run("dpkg --purge krcore-race libkrcore-race0 >/dev/null; rdma link delete rxe0; "
                f"ip address flush dev {netdev}; rm -rf {krcore.KEY_FILE} {ARCHIVES} {SAID}; "
                "krcore-fabric up", timeout=120)
    if machine.run(f"dpkg -s {FIRST}", check=False).status:    # it was taken away and not put back
        packages.Packages().install_in(machine)


def _install(machine, built, words):
    """`apt install`: no guest reaches an archive, nor has a compiler. Packages of ours that the
    harness has not installed already are installed as they are, and the one that has krcore.conf;
    but krcore-dkms, of which the harness has built the module (module.py), as dkms does."""
    paths = {path.name: path for path in built}
    named = machine.run(f"cd {ARCHIVES} && touch {' '.join(paths)} && echo {words}").out.split()
    check("linux-headers-amd64" in named, words)
    ours = [name.removeprefix("./") for name in named if name.startswith("./")]
    check(ours and set(ours) <= set(paths), f"packages that we build: {ours}")
    dkms = [name for name in ours if name.startswith("krcore-dkms_")]
    check(len(dkms) == 1, f"the module's package is one of {ours}")
    there = machine.run("dpkg-query -W -f '${db:Status-Status} ${Package}\\n' | "
                        "sed -n 's/^installed //p'").out.split()
    new = [name for name in ours if name not in dkms
           and name.partition("_")[0] not in {*there} - {"krcore-common"}]
    for name in new:
        machine.push(paths[name], f"{ARCHIVES}/{name}")
    machine.run(f"cd {ARCHIVES} && dpkg --force-unsafe-io --force-confmiss -i {' '.join(new)} "
                "&& rm *", timeout=240, env={"DEBIAN_FRONTEND": "noninteractive"})


class Reader:
    """A user that types the commands, and compares what comes out with what the page says."""

    def __init__(self, cluster, stack):
        self.cluster = cluster
        self.stack = stack
        self.last = ""      # what the last command printed
        self.built = packages.build()

    def types(self, step):
        """One command, at each machine that it is for."""
        each([self.cluster.node(name) for name in NAMES[step.where]],
             lambda machine: self._one(machine, step))

    def _one(self, machine, step):
        words = step.command
        if words.startswith("apt install "):
            _install(machine, self.built, words.removeprefix("apt install "))
            return
        if step.note.startswith("stays"):
            self.stack.enter_context(writing(machine, words, SAID, 600))
            wait_until(lambda: step.says() in machine.run(f"cat {SAID}").out, 60,
                       f"'{words}' says {step.says()}")
            return
        given = self.last if step.note.startswith("paste") else None
        if step.says():     # a node is not ready at once: a reader would type it again
            said = wait_until(lambda: self._says(machine, step), 60,
                              f"{machine.name}: '{words}' says {step.says()}", pause=1)
        else:
            said = machine.run(words, stdin=given).out
        self.last = said

    @staticmethod
    def _says(machine, step):
        said = machine.run(step.command, check=False)
        return not said.status and step.says() in said.out.split() and said.out


@limit(400)
def test_two_machines(cluster):
    """From two netdevs to two programs that share a table."""
    text = (host.CHECKOUT / "README.md").read_text(encoding="utf-8")
    todo = document.steps(text, HEADING, NAMES)
    used = [step.command for step in todo]
    for word in ("apt install ", "rdma link add ", "modprobe krcore lanes=1", "krcore-race put"):
        check(any(word in command for command in used), f"'{word}' is in {used}")
    machines = [cluster.node(name) for name in NAMES["both"]]
    try:
        each(machines, _plain)
        with contextlib.ExitStack() as stack:
            reader = Reader(cluster, stack)
            for step in todo:
                reader.types(step)
            rows = krcore.metactl(machines[0], "record list")
            kinds = [row["kind"] for row in rows if row["service"] == 0]
            check(kinds == ["lane", "lane"], f"both nodes are published: {rows}")
    finally:
        each([machine for machine in machines if machine.alive()], _as_before)
