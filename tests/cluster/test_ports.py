# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Ports of a node: how they end, by what address and what GID they are known, to which network
namespaces they belong, and what of the network's is the node's to set."""

import contextlib
import ipaddress
import time

from . import krcore, nodes
from .nodes import AS_USER, client, counted, ports, program, serve, up
from .suite import check, limit, wait_until


# -- an end that was planned -------------------------------------------------------

NO_SUCH_REGION = 53     # EBADR
IN_DOUBT = 78           # EREMCHG
LOOPS = 4
LOOP_OUT = "/run/krc-loop.out"


@contextlib.contextmanager
def _traffic(machine, peer, fits=True):
    """Programs that WRITE and READ as fast as they can, until they are refused; afterwards
    each was refused by its own module, and none has failed on the wire. `fits`: what is under way
    gets through; if not, what may not be done twice may end in doubt."""
    begins = (f"for i in $(seq {LOOPS}); do {AS_USER} {program(machine)} {peer} loop 900 "
              f">{LOOP_OUT}.$i 2>&1 & done; wait")
    with machine.background(begins, limit=900) as loops:
        # each is at it, and all of them hold leases
        nodes.working(machine, LOOPS, completed=50)
        before = nodes.pool(machine)    # until here a guest that stands still may have cost one
        yield
        loops.wait(60)
    after = nodes.pool(machine)
    for i in range(1, LOOPS + 1):
        seen = counted(machine.run(f"cat {LOOP_OUT}.{i}"))
        check(seen["done"] > 10 and not seen["wrong"]
              and seen["refused"] + seen["failed"] == 1, f"a program: {seen}")
        check(-seen["last_error"] in (NO_SUCH_REGION, NO_SUCH_REGION if fits else IN_DOUBT),
              f"it is told that there is no such region: {seen}")
    for count in ("faults", "recoveries") if fits else ("faults",):
        check(after[count] == before[count],
              f"{machine.name} has {count}: {before[count]} became {after[count]}")


def _down(machine):
    started = time.monotonic()
    machine.run("krcore-metactl node down", timeout=60)
    print(f"    node down: {time.monotonic() - started:.1f} s", flush=True)


def _smaller_packets(machine):
    """Its MTU becomes smaller: the port is made anew."""
    set_mtu = f"ip link set dev {krcore.netdev(machine)} mtu {{}}"
    before = nodes.ports(machine)
    said = machine.kernel_log().count("its MTU is smaller")
    machine.run(set_mtu.format(700))
    try:
        wait_until(lambda: machine.kernel_log().count("its MTU is smaller") > said, 30,
                   "the port ends")
        wait_until(lambda: nodes.ports(machine) == before, 30, "it is up again")
    finally:
        machine.run(set_mtu.format(machine.spec.mtu))


def _removed(machine):
    """Its programs are killed and the module removed."""
    machine.run("pkill -KILL -x krc_ioctl; for i in $(seq 600); do rmmod krcore && exit; "
                "sleep 0.1; done; exit 1", timeout=60)


@limit(600)
def test_a_planned_end_is_graceful(cluster):
    """A node is taken down, has its port made anew, loses its module, with programs of a peer
    at its memory: they are told by their own module that it is gone, and nothing fails on the
    wire: no shared initiator of the peer is reset. But soft RoCE's packets are too long for a
    smaller MTU before anybody hears of it."""
    with up(cluster) as (node1, node2):
        krcore.wait_ready(node1)
        for end in (_down, _smaller_packets, _removed):
            krcore.wait_ready(node2)
            with serve(node2) as peer:
                krcore.wait_published(node1, [node2])
                with _traffic(node1, peer, cluster.nic.dc or end is not _smaller_packets):
                    end(node2)
            print(f"    {end.__name__.strip('_')}: no fault at the peer", flush=True)
            krcore.node_gone(node2)
            nodes.node_up(node2)


# -- an address that is used -------------------------------------------------------


def _gids(machine, device):
    """GIDs of RoCE v2 that port 1 has, by index."""
    found = machine.run(f"cd /sys/class/infiniband/{device}/ports/1 && "
                        "grep -s . gids/* gid_attrs/types/*", check=False).out
    shown = dict(line.split(":", 1) for line in found.splitlines())
    return {int(i): str(ipaddress.ip_address(gid).ipv4_mapped or gid)
            for i, gid in ((name.removeprefix("gids/"), gid) for name, gid in shown.items())
            if shown.get(f"gid_attrs/types/{i}") == "RoCE v2"}


def _gid_index(machine, device, address):
    """Where in the card's table a RoCE v2 address is, or None."""
    return next((i for i, gid in _gids(machine, device).items() if gid == address), None)


@limit(300)
def test_an_address_in_use_is_nobody_elses(cluster):
    """A node's address is taken away while its port uses it: the one that is added right then
    does not get its place in the card's table, by whose number requests are still sent."""
    with up(cluster) as (node1, _):
        krcore.wait_ready(node1)
        mine = node1.spec.address
        other = str(ipaddress.IPv4Address(mine) + 100)
        device, rdma = krcore.netdev(node1), cluster.nic.device()
        prefix = node1.run(f"ip -o address show dev {device} to {mine}").out.split()[3]
        length = prefix.split("/")[1]
        # a session to a MetaServer would hold the entry, too
        for server in cluster.nodes("metaserver"):
            server.run(f"systemctl stop {krcore.UNIT}", timeout=60)
        wait_until(lambda: not any(row["state"] == "ready"
                                   for row in krcore.node_rows(node1, "node_server")), 60,
                   "there is no session")
        index = _gid_index(node1, rdma, mine)
        check(index is not None, f"{mine} is in the table")
        swap = (f"ip address del {prefix} dev {device}; ip address add {other}/{length} dev "
                f"{device}")
        try:
            with serve(node1):     # something that peers may know for a while
                node1.run(swap)
                taken = wait_until(lambda: _gid_index(node1, rdma, other), 30,
                                   "the other is there")
            check(taken != index, f"{other} got place {index} of {mine}")
            wait_until(lambda: other in nodes.ports(node1), 60, "the port is up by the other")
        finally:
            node1.run(f"ip address del {other}/{length} dev {device}; "
                      f"ip address add {prefix} dev {device}", check=False)
            for server in cluster.nodes("metaserver"):
                krcore.start(server)
        wait_until(lambda: mine in nodes.ports(node1), 60, "the port is up by its own again")


@limit(300)
def test_a_port_is_named_by_its_gid(cluster):
    """A program gets the port whose GID it names, or none; never another one."""
    with up(cluster, names=("node1",)) as (node1,):
        gid = node1.spec.address
        said = node1.run(f"KRC_GID={gid} {program(node1)} ring 64 0", check=False)
        check(not said.status and said.out.startswith("bytes="), repr(said))
        said = node1.run(f"KRC_GID={gid}9 {program(node1)} ring 64 0", check=False)
        check(said.status and "No such device" in said.out, repr(said))


# -- namespaces and addresses ------------------------------------------------------

TOP, TOP_ADDRESS = "krc-top", "10.78.0.9"       # something on top of the port, as a container's
AWAY = "krc-away"                               # a network namespace


@contextlib.contextmanager
def _on_top(machine, dev, device):
    """An address on top of the port, at a lower index than the port's own."""
    own = f"{machine.spec.address}/{machine.spec.prefix} dev {dev}"
    machine.run(f"ip address del {own}; ip link add {TOP} type bridge && ip link set {TOP} up && "
                f"ip link set {dev} master {TOP} && ip address add {TOP_ADDRESS}/24 dev {TOP}")
    try:
        wait_until(lambda: TOP_ADDRESS in _gids(machine, device).values(), 30,
                   "it has a GID of its own")
        machine.run(f"ip address add {own}")
        wait_until(lambda: machine.spec.address in _gids(machine, device).values(), 30,
                   "the port has its GID again")
        index = {gid: i for i, gid in _gids(machine, device).items()}
        check(index[TOP_ADDRESS] < index[machine.spec.address], f"{index}")
        yield
    finally:
        machine.run(f"ip link del {TOP}; ip address replace {own}")


def _port(machine):
    return krcore.node_rows(machine, "node_port")[0]


def _set_netns(machine, mode):
    """Whose devices are. It can't be changed while there are other namespaces, and those that
    nobody is in any more go in their own time."""
    wait_until(lambda: not machine.run(f"rdma system set netns {mode}", check=False).status, 60,
               f"devices are {mode}")


def _check_given_away(machine, device):
    """A device of another network namespace is nobody's here, nor others' there. Soft RoCE stays
    where it is."""
    machine.run(f"ip netns add {AWAY}")
    given = machine.run(f"rdma dev set {device} netns {AWAY}", check=False)
    if not machine.nic.dc and "not supported" in given.err:
        machine.run(f"ip netns del {AWAY}")
        return
    try:
        check(not given.status, f"{given!r}")
        wait_until(lambda: not ports(machine), 60, "no program has it")
        check(not krcore.node_rows(machine, "node_server"), "there are sessions over it")
        inside = machine.run(f"ip netns exec {AWAY} {program(machine)} ports").out
        check(not inside, f"the node serves it there: {inside}")
        said = machine.run("dmesg").out
        check(f"{device}/1: down:" in said and "it belongs to another network namespace" in said,
              said)
    finally:
        machine.run(f"ip netns del {AWAY}")
    wait_until(lambda: ports(machine), 60, "it has come back")


@limit(900)
def test_namespaces_and_gids(cluster):
    """The address of a port is that of its own network device, not one that a container has on
    top of it. Where devices belong to network namespaces, only the programs of its own have a
    port. That a user sees its own peers only, test_observability shows."""
    with up(cluster) as (node1, _):
        device, dev = cluster.nic.device(), krcore.netdev(node1)
        address = ports(node1)
        with _on_top(node1, dev, device):
            node1.run("krcore-metactl node down; krcore-metactl node up", timeout=60)
            wait_until(lambda: _port(node1)["state"] == "up", 60, "the port comes up")
            check(ports(node1) == address, f"{ports(node1)} in place of {address}")
        wait_until(lambda: _port(node1)["state"] == "up", 60, "the port is up")

        check(node1.run(f"unshare --net {program(node1)} ports").out.strip() == address,
              "devices are shared, but a namespace does not have it")
        _set_netns(node1, "exclusive")
        try:
            theirs = node1.run(f"unshare --net {program(node1)} ports").out
            check(not theirs, f"another namespace has it: {theirs}")
            check(ports(node1) == address, "its own has it not")
            _check_given_away(node1, device)
        finally:
            _set_netns(node1, "shared")


# -- what the network wants --------------------------------------------------------

IB_MTU_512 = 2


@limit(600)
def test_as_a_real_fabric_wants_it(cluster):
    """Traffic class, service level and packet size are the node's settings: the record says
    the size and the level, and peers reach it with them. That they are in the requests and in
    the target, the golden comparison of the model shows."""
    with up(cluster, traffic_class=106, service_level=3, mtu=512) as (node1, node2):
        for node in (node1, node2):
            check(_port(node)["mtu"] == IB_MTU_512, f"{_port(node)}")
        found = krcore.lookup(node1, node2.spec.address, 0)
        check(found["sl"] == 3 and found["mtu_bytes"] == 512, f"{found}")
        with serve(node2) as peer:
            done = counted(client(node1, f"{peer} loop 3"))
            check(done["done"] and not done["failed"] and not done["wrong"], f"{done}")
        before = ports(node1)
        level = "sed -i 's/^service_level = .*/service_level = {}/' " + krcore.CONFIG
        node1.run(f"{level.format(12)}; krcore-metactl node up", timeout=60)
        check(not ports(node1) and _port(node1)["reason"] == "it has no service level 12",
              f"{_port(node1)}")
        node1.run(f"{level.format(3)}; krcore-metactl node up", timeout=60)
        wait_until(lambda: ports(node1) == before, 60, "it comes up")
