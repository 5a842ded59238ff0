# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A node whose address changes while it is up: what is published of it changes too, at
each MetaServer, and peers reach it by that."""

import contextlib

from . import krcore
from .nodes import client, serve, up
from .suite import check, limit, wait_until

NEW_ADDRESS = "10.77.0.122"
BETWEEN = "2001:db8::22"
NEW_MAC = "02:c9:03:98:00:22"


def _published(cluster, node, address, **values):
    """Each MetaServer has the record of a node's target at this address, with these values,
    and none at another."""
    owner = krcore.node_rows(node, "node")[0]["owner"]

    def right(server):
        rows = [row for row in krcore.metactl(server, "record list")
                if row["kind"] == server.nic.kind and row["owner"] == owner]
        return (len(rows) == 1 and rows[0]["gid"] == address and
                all(rows[0][key] == value for key, value in values.items()))

    for server in cluster.nodes("metaserver"):
        wait_until(lambda s=server: right(s), 90,
                   f"{server.name} has {address} of {node.name}, and {values}")


def _reached(client_node, node, address, within=0):
    """A program on one node looks a program on the other up anew, and uses its memory; the first
    one that tries, if it may not take so many seconds until that works."""
    with serve(node) as peer:
        peer = " ".join([address, *peer.split()[1:]])
        wait_until(lambda: not client(client_node, f"{peer} fresh").status, 60,
                   f"a fresh connection to {address}")
        said = []

        def used():
            done = client(client_node, f"{peer} loop 2")
            said.append(repr(done))
            return not done.status and "done=0 " not in done.out

        wait_until(used, within, lambda: f"its memory is used: {said[-1]}")


@contextlib.contextmanager
def _changed(node, there, back):
    """Something of the node's interface is different in a block."""
    node.run(there)
    try:
        yield
    finally:
        node.run(back)


@limit(500)
def test_a_new_address_is_published(cluster):
    with up(cluster) as (node1, node2):
        old, prefix, dev = node2.spec.address, node2.spec.prefix, krcore.netdev(node2)
        swap = "ip address del {}/{} dev {} && ip address add {}/{} dev {}"
        _published(cluster, node2, old)
        with _changed(node2, swap.format(old, prefix, dev, NEW_ADDRESS, prefix, dev),
                      swap.format(NEW_ADDRESS, prefix, dev, old, prefix, dev)):
            _published(cluster, node2, NEW_ADDRESS)
            _reached(node1, node2, NEW_ADDRESS)
        _published(cluster, node2, old)
        _reached(node1, node2, old)


@limit(500)
def test_an_address_in_between_loses_nothing(cluster):
    """Until the new address is there the port has another, from which it reaches no server.
    What it was to withdraw for the first is not forgotten with it."""
    with up(cluster) as (node1, node2):
        old, prefix, dev = node2.spec.address, node2.spec.prefix, krcore.netdev(node2)
        address = "ip address {} {}/{} dev {}"
        with _changed(node2, address.format("add", BETWEEN, "64", dev) + " nodad",
                      address.format("del", BETWEEN, "64", dev)), \
                _changed(node2, address.format("del", old, prefix, dev),
                         address.format("add", old, prefix, dev)):
            wait_until(lambda: krcore.node_rows(node2, "node_port")[0].get("gid") == BETWEEN, 60,
                       f"the port has {BETWEEN}")
            with _changed(node2, address.format("add", NEW_ADDRESS, prefix, dev),
                          address.format("del", NEW_ADDRESS, prefix, dev)):
                _published(cluster, node2, NEW_ADDRESS)
                _reached(node1, node2, NEW_ADDRESS)
        _published(cluster, node2, old)


def _announced(node):
    """In a block: the node says to all when an interface has another MAC."""
    notify = f"sysctl -qw net.ipv4.conf.{krcore.netdev(node)}.arp_notify={{}}"
    return _changed(node, notify.format(1), notify.format(0))


@limit(500)
def test_a_new_mac_is_published(cluster):
    with up(cluster) as (node1, node2):
        address, old = node2.spec.address, node2.spec.mac
        _published(cluster, node2, address, mac=old)
        set_mac = f"ip link set dev {krcore.netdev(node2)} address {{}}"
        # lanes have it from the kernel, which has the old one until the new one is announced; what
        # had a lane to it may be refused until that has given up
        patience = 0 if cluster.nic.dc else 60
        with contextlib.nullcontext() if cluster.nic.dc else _announced(node2):
            with _changed(node2, set_mac.format(NEW_MAC), set_mac.format(old)):
                _published(cluster, node2, address, mac=NEW_MAC)
                _reached(node1, node2, address, patience)
            _published(cluster, node2, address, mac=old)
            _reached(node1, node2, address, patience)


@limit(400)
def test_a_smaller_mtu_is_published(cluster):
    """The card takes larger packets no more: a peer that sends such, as initiators of DC do, must
    not connect to it. When it takes them again, what is published works still, and queues are not
    ended for it."""
    with up(cluster) as (node1, node2):
        address, mtu = node2.spec.address, node2.spec.mtu
        _published(cluster, node2, address, mtu_bytes=1024)
        set_mtu = f"ip link set dev {krcore.netdev(node2)} mtu {{}}"
        with _changed(node2, set_mtu.format(700), set_mtu.format(mtu)):
            _published(cluster, node2, address, mtu_bytes=512)
            krcore.wait_ready(node1)
            if cluster.nic.dc:
                refused = client(node1, f"{address} 0 0 0 0 0 0 fresh")
                check(refused.status and "Network is unreachable" in refused.out, f"{refused!r}")
            else:       # the ends of a lane agree on what both take
                _reached(node1, node2, address)
            _reached(node2, node1, node1.spec.address)
        _published(cluster, node2, address, mtu_bytes=512)
        _reached(node2, node1, node1.spec.address)
