# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What network card the guests have.

A card is a class with hooks; `--nic NAME` picks one from NICS. To add one, write a
class, put it into the table, and nothing else changes.
"""

import json

from . import host
from .fabric import CARD as NIC_DEVICE, CardFabric, Fabric
from .topology import MAX_GUESTS

NIC_PORT = "nicport"    # the slot it sits in, so that it can be taken out
SECOND_PORT = "nic1"    # QEMU's id of a card's second port


class Nic:
    """What a card has to say. The defaults are those of a card with its own RDMA link."""

    name = ""
    dc = False          # True: it has DC; else krcore's module has ports on it if it makes lanes
    provider = "verbs-rc"   # of the module, and what is published of a port
    kind = "lane"
    late = False        # True: it cannot be frozen with its guest, and is put in after a thaw
    slot = ""           # more properties of the slot it sits in
    node = {}           # more of what krcore's module is configured with

    def prepare(self):
        """Build what the card needs on this machine; once, before any guest starts."""

    def fabric(self, run_dir, n_ports):
        """The network between so many of these cards."""
        return Fabric(run_dir, n_ports)

    def qemu_arguments(self, spec, fabric):
        """Arguments for the QEMU of guest `spec`; a card goes on bus NIC_PORT."""
        raise NotImplementedError

    def environment(self, _spec, _fabric):
        """Environment variables for that QEMU, such as LD_PRELOAD."""
        return {}

    def modules(self):
        """Kernel modules to load in the guest before the interface appears."""
        raise NotImplementedError

    def link_kind(self):
        """FABRIC_LINK of krcore-fabric: "rxe" or "none" ("later": no card yet)."""
        return "none"

    def device(self):
        """Name of the RDMA device in the guest."""
        raise NotImplementedError

    def key(self):
        """Something that changes when the card does; names snapshots."""
        return self.name

    def remove(self, machine):
        """Pull the card out; the guest is asked first, as hot-plug does."""
        machine.qmp.call("device_del", id=NIC_DEVICE)

    def insert(self, machine, **more):
        """Put the card back; `more`: further properties of the device."""
        raise NotImplementedError

    def set_link(self, machine, up):
        """Plug or unplug the cable of one guest."""
        machine.qmp.call("set_link", name=NIC_DEVICE, up=up)

    def counters(self, machine, card=NIC_DEVICE):
        """What the card has counted: `ops`, rows of requests with `op`, `bytes`, `side` and
        `count`; `naks_error`, requests of peers that it has refused; `completions_error`, requests
        of its own that failed; and more, as each kind has it."""
        raise NotImplementedError


class Rxe(Nic):
    """Soft RoCE (rdma_rxe) of the stock kernel over a virtio network card."""

    name = "rxe"
    # A guest that stands still for a second, where others have its processor, does not answer, and
    # a lane gives up: here after two. What peers have posted stays for as long.
    node = {"ack_timeout": 16, "margin_ms": 4000}

    def qemu_arguments(self, spec, fabric):
        return [
            "-netdev", "dgram,id=net0,"
            f"local.type=unix,local.path={fabric.guest_socket(spec.index)},"
            f"remote.type=unix,remote.path={fabric.port_socket(spec.index)}",
            "-device", f"virtio-net-pci,id={NIC_DEVICE},bus={NIC_PORT},netdev=net0,"
            f"mac={spec.mac},romfile=",
        ]

    def insert(self, machine, **more):
        machine.qmp.call("device_add", driver="virtio-net-pci", id=NIC_DEVICE, bus=NIC_PORT,
                         netdev="net0", mac=machine.spec.mac, romfile="", **more)

    def modules(self):
        return ("virtio_net", "rdma_rxe", "ib_uverbs", "rdma_ucm")

    def link_kind(self):
        return "rxe"

    def device(self):
        return "rxe0"

    @staticmethod
    def _operations(machine, ops):
        """Rows of requests: an error for a caller that reads them, where some were not counted."""
        if ops is None:
            raise host.ClusterError(f"{machine.name}: requests of more lengths than the switch "
                                    "has places for")
        for (op, size), count in ops.items():
            yield {"op": op, "bytes": size, "side": "requester", "count": count}

    def counters(self, machine, card=NIC_DEVICE):
        """As the switch has seen them, for it counts neither; and those that got no answer."""
        ops, naks = machine.fabric.requests(machine.spec.index)
        unanswered = machine.run(f"cat /sys/class/infiniband/{self.device()}/ports/1/hw_counters/"
                                 "retry_exceeded_err").out
        others = sum(machine.fabric.requests(peer.spec.index)[1]
                     for peer in machine.fabric.machines if peer is not machine)
        return {"ops": self._operations(machine, ops),
                "naks_error": naks, "completions_error": others + int(unanswered)}


class ConnectX(Nic):
    """The ConnectX model of tests/model, preloaded into QEMU; the guests run the stock
    mlx5 drivers. The card has its own fabric: a folder of datagram sockets."""

    name = "cx"
    dc = True
    provider = "mlx5-dc"
    kind = "dct"
    late = True
    slot = ",pref64-reserve=64M"    # for the card's registers, when it is put in later
    _library = None
    _more = {}          # properties of the device

    def prepare(self):
        source = host.TESTS / "model"
        qemu = host.run(["dpkg-query", "-W", "-f", "${Version}", "qemu-system-x86"])
        folder = host.CACHE / "model" / host.digest(source, qemu)
        with host.locked(host.CACHE / "locks" / "model"):
            if not folder.exists():
                with host.step("compiling the ConnectX model", "20 s, 60 s the first time"), \
                     host.made_whole(folder) as whole:
                    build = whole.parent / "build"
                    host.run(["cmake", "-G", "Ninja", "-S", source, "-B", build,
                              "-DKRCORE_MODEL=ON"])
                    host.run(["cmake", "--build", build, "--target", "connectx-model"])
                    (build / "connectx-model.so").rename(whole / "connectx-model.so")
                host.keep_newest(folder.parent, 3)
        self._library = folder / "connectx-model.so"

    def fabric(self, run_dir, n_ports):
        return CardFabric(run_dir, n_ports)

    def qemu_arguments(self, spec, fabric):
        return ["-device", f"connectx-model,id={NIC_DEVICE},bus={NIC_PORT},"
                           + ",".join(f"{key}={value}"
                                      for key, value in self._properties(spec, fabric).items())]

    def _properties(self, spec, fabric):
        # requests can be pushed into the cards of every second guest: meta2, node2
        return {"node": spec.index + 1, "link": "eth", "fabric": str(fabric.card_folder()),
                "mac": spec.mac, "blueflame": "on" if spec.index % 2 else "off", **self._more}

    def environment(self, _spec, _fabric):
        return {"LD_PRELOAD": str(self._library)}

    def modules(self):
        return ("mlx5_core", "mlx5_ib", "ib_uverbs", "rdma_ucm")

    def device(self):
        return "rocep1s0"     # as rdma-core names it by its place on the bus

    def insert(self, machine, ports=1, **more):
        """Put the card back; of two ports, each is a function with a driver of its own. The
        second is a virtual one: the slot has room for the registers of one that is not."""
        properties = {**self._properties(machine.spec, machine.fabric), **more}
        if ports == 2:      # the guest looks when function 0 comes
            number = machine.spec.index + 1
            self._plug(machine, SECOND_PORT, {**properties, "addr": "0.1", "vf": "on",
                                              "node": MAX_GUESTS + number,
                                              "mac": f"52:54:00:77:01:{number:02x}"})
            properties["multifunction"] = True
        self._plug(machine, NIC_DEVICE, properties)

    def _plug(self, machine, name, properties):
        machine.qmp.call("device_add", driver="connectx-model", id=name, bus=NIC_PORT,
                         **properties)

    def counters(self, machine, card=NIC_DEVICE):
        return json.loads(machine.qmp.call("qom-get", path=f"/machine/peripheral/{card}",
                                           property="counters"))

    def set(self, machine, name, value):
        """Set a property of the model of a guest's card, which is in use."""
        machine.qmp.call("qom-set", path=f"/machine/peripheral/{NIC_DEVICE}", property=name,
                         value=value)

    def set_link(self, machine, up):
        self.set(machine, "link_up", up)


class ConnectXVf(ConnectX):
    """A virtual function of it, passed through: all that a virtual machine in a cloud sees."""

    name = "cx-vf"
    _more = {"vf": "on"}


NICS = {card.name: card for card in (Rxe, ConnectX, ConnectXVf)}


def get(name):
    """The card of this name."""
    from . import host
    if name not in NICS:
        raise host.ClusterError(f"nic {name}: not one of {', '.join(NICS)}")
    return NICS[name]()
