# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A node with two ports, which are the two functions of its card: both are published and
serve, and one comes and goes without the other.

A program that names no port gets the first one whose link is up, in the order in which the
devices came. Memory and services belong to the port that the program has.
"""

import contextlib
import ipaddress
import time

from . import krcore, programs
from .krcore import metactl, node_rows
from .machine import NIC_PORT_ADDRESS
from .nic import NIC_DEVICE, SECOND_PORT
from .nodes import (AS_USER, GONE, NODE, card_counters, counted, finish, objects, ports, program,
                    saying, serve, up, working)
from .suite import Skip, check, limit, wait_until

NEEDS = "dc"
ADDRESS = "10.77.0.121"     # of the second port; the first has that of the guest
SERVICE = 4243
LEASE_MS = 300000           # no record runs out while a test looks
CARDS = (NIC_DEVICE, SECOND_PORT)
SLOT = f"/sys/bus/pci/devices/0000:00:{NIC_PORT_ADDRESS:02x}.0"
# each port answers for its own address only, as on every host with two of them in a network;
# a route over a port without a link is none
SETTINGS = (("arp_ignore", 1), ("arp_announce", 2), ("ignore_routes_with_linkdown", 1))
ANY = 0                     # port for a program that does not care


# -- the card --------------------------------------------------------------------


def _name(node, number, kind):
    """What the guest calls a port: its "net" or "infiniband" device; "" if it has none."""
    return node.run(f"ls {SLOT}/0000:*.{number}/{kind}", check=False).out.strip()


def _bring_up(node, number, address):
    """Give a port an address when its interface is there, and its device has its name."""
    netdev = wait_until(lambda: _name(node, number, "net"), 60, f"port {number} is there")
    node.run(f"udevadm settle && ip link set {netdev} mtu {node.spec.mtu} up && "
             f"ip address replace {address}/{node.spec.prefix} dev {netdev}", timeout=150)


def _take_out(node, number):
    """Take one port from its driver, as if it were pulled: a slot gives up both or none."""
    node.run(f"echo 1 | tee {SLOT}/0000:*.{number}/remove", timeout=60)


def _put_back(node, number, address):
    node.run(f"echo 1 >{SLOT}/rescan", timeout=90)
    _bring_up(node, number, address)


def _settings(node, on):
    node.run("cd /proc/sys/net/ipv4/conf/all && " + " && ".join(
        f"echo {value if on else 0} >{name}" for name, value in SETTINGS))


@contextlib.contextmanager
def _two_ports(cluster):
    """node1 has a card of two ports for a block, each with an address of the one network.
    Then it has its own card again, and the second port had left on it what was there before."""
    node = cluster.node("node1")
    if not node.kernel().hot_plug():
        raise Skip("a card that never leaves its slot has one port")
    krcore.node_gone(node)
    node.remove_nic()
    try:
        _settings(node, True)
        node.add_nic(ports=2)
        check(krcore.netdev(node) == _name(node, 0, "net"), "not the first has the address")
        _bring_up(node, 1, ADDRESS)
        before = objects(node, SECOND_PORT)
        yield
        if cluster.kernel.name == "6.1":    # see nodes.up()
            wait_until(lambda: objects(node, SECOND_PORT) == before, 20,
                       f"the second port has what it had without the module: {before}")
    finally:
        node.remove_nic()
        _settings(node, False)
        node.add_nic()


# -- what is there of it -----------------------------------------------------------


def _ports_up(node, *addresses):
    """Wait until the ports with these addresses are up, and no others; their rows by address,
    with the MAC, by which targets are known: numbers may be the same on both ports."""
    def up_now():
        rows = [row for row in node_rows(node, "node_port") if row["state"] == "up"]
        return sorted(row["gid"] for row in rows) == sorted(addresses) and (rows,)

    (rows,) = wait_until(up_now, 90, f"{node.name}: up are {addresses}")
    for row in rows:
        path = f"/sys/class/infiniband/{row['device']}/device/net/*/address"
        row["mac"] = node.run(f"cat {path}").out.strip()
    return {row["gid"]: row for row in rows}


def _published(servers, node, rows):
    """Wait until these MetaServers have the targets of these ports of a node, and no others."""
    wanted = {gid: row["mac"] for gid, row in rows.items()}

    def there(server):
        return {row["gid"]: row["mac"] for row in metactl(server, "record list")
                if row["gid"] in (node.spec.address, ADDRESS) and row["service"] == 0}

    for server in servers:
        wait_until(lambda s=server: there(s) == wanted, 60,
                   f"{server.name} has of {node.name}: {wanted}")


def _sessions(node, device):
    """State and number of records of a device's sessions, by MetaServer."""
    return {row["name"]: (row["state"], row["records"]) for row in node_rows(node, "node_server")
            if row["device"] == device}


def _attached(servers, node, device):
    """Wait until a device has published its one record at each of these itself."""
    wait_until(lambda: _sessions(node, device) ==
               {server.name: ("ready", 1) for server in servers}, 60,
               f"{device} is attached to all MetaServers")


def _index(node, address):
    """The number that programs know the port with this address by."""
    return ports(node).split().index(f"::ffff:{address}") + 1


# -- what goes over it -------------------------------------------------------------


def _program(node, port, words):
    return f"KRC_PORT={port} {AS_USER} {program(node)} {words}"


@contextlib.contextmanager
def _serving(node, address):
    """A program binds a service on the port with this address, and opens memory there."""
    port = _index(node, address)
    with saying(node, _program(node, port, f"serve 30{port} {SERVICE}"), "memory ",
                f"/run/krc-serve.{port}", 300) as said:
        yield f"{address} {SERVICE} {said.splitlines()[0].removeprefix('memory ')}"
        node.run(f"pkill -KILL -f 'krc_ioctl serve 30{port} {SERVICE}$'; true")


def _writes(node, side):
    """WRITEs of each port of the card, as it counts them."""
    return [sum(row["count"] for row in card_counters(node, card)["ops"]
                if row["op"] == "WRITE" and row["side"] == side) for card in CARDS]


def _good(result):
    """A loop to the end: all it WROTE it READ again. Gives how many WRITEs there were."""
    check(not result.status, repr(result))
    seen = counted(result)
    check(seen["done"] and not seen["refused"] + seen["failed"] + seen["wrong"], f"{seen}")
    return seen["done"] // 2


@contextlib.contextmanager
def _only_by(node, side, card):
    """WRITEs of a block go over one port of the card, and none over the other."""
    before = _writes(node, side)
    wrote = []
    yield wrote
    more = [now - then for now, then in zip(_writes(node, side), before)]
    check(more[card] >= sum(wrote) > 0 and not more[1 - card],
          f"{sum(wrote)} WRITEs, but of its ports: {more} as {side}")


def _loop(node, port, peer, seconds=2):
    return _good(node.run(_program(node, port, f"{peer} loop {seconds}"), timeout=60,
                          check=False))


@contextlib.contextmanager
def _both_published(cluster):
    """Both ports of node1 are up and published, and no lease runs out in the block: the two
    nodes, and the rows of the ports by address."""
    with _two_ports(cluster), up(cluster, lease_ms=LEASE_MS) as (node1, node2):
        rows = _ports_up(node1, node1.spec.address, ADDRESS)
        _published(cluster.nodes("metaserver"), node1, rows)
        yield node1, node2, rows


# -- tests -------------------------------------------------------------------------


@limit(400)
def test_both_ports_serve_and_reach_others(cluster):
    servers = cluster.nodes("metaserver")
    with _two_ports(cluster), up(cluster) as (node1, node2):
        first, second = node1.spec.address, ADDRESS
        rows = _ports_up(node1, first, second)
        for number, address in enumerate((first, second)):
            device = _name(node1, number, "infiniband")
            check(rows[address]["device"] == device, f"{address}: {device}, {rows[address]}")
            _attached(servers, node1, device)
            found = krcore.lookup(node2, address, 0)
            check(found and found["mac"] == rows[address]["mac"] and
                  found["dctn"] == int(rows[address]["dctn"], 16), f"{found}, {rows[address]}")
        _published(servers, node1, rows)
        check((_index(node1, first), _index(node1, second)) == (1, 2), ports(node1))
        # the same service on both: of two programs, with memory of their own
        with serve(node2) as other, _serving(node1, first) as near, _serving(node1, second) as far:
            for card, peer in enumerate((near, far)):
                with _only_by(node1, "responder", card) as wrote:
                    wrote.append(_loop(node2, ANY, peer))
            for port, card in ((1, 0), (2, 1), (ANY, 0)):
                with _only_by(node1, "requester", card) as wrote:
                    wrote.append(_loop(node1, port, other))
            with _only_by(node1, "requester", 0) as out, _only_by(node1, "responder", 1) as back:
                out.append(_loop(node1, 1, far))
                back += out


@limit(400)
def test_one_port_goes_and_the_other_works_on(cluster):
    servers = cluster.nodes("metaserver")
    with _both_published(cluster) as (node1, node2, rows):
        first, second = node1.spec.address, ADDRESS
        with serve(node2) as other, _serving(node1, second) as far, contextlib.ExitStack() as stack:
            dying, out, back = (
                stack.enter_context(node.background(_program(node, port, f"{peer} loop 900"),
                                                    limit=900))
                for node, port, peer in ((node1, 1, other), (node1, 2, other), (node2, ANY, far)))
            working(node1, 2)
            working(node2, 1)
            _take_out(node1, 0)
            seen = counted(dying.wait(60))
            check(seen["done"] and not seen["wrong"] and seen["refused"] + seen["failed"] == 1 and
                  seen["last_error"] in GONE, f"{seen}")
            _published(servers, node1, {second: rows[second]})
            _ports_up(node1, second)
            check(krcore.lookup(node2, first, 0) is None, f"{first} is found")
            check(krcore.lookup(node2, second, 0), f"{second} is not found")
            with _only_by(node1, "requester", 1) as wrote:
                wrote.append(_loop(node1, ANY, other))
            for node, loop in ((node1, out), (node2, back)):
                check(loop.poll() is None, "it has ended by itself")
                finish(node, "loop 900")
                _good(loop.wait(60))

            _put_back(node1, 0, first)
            again = _ports_up(node1, first, second)
            _published(servers, node1, again)
            check((_index(node1, first), _index(node1, second)) == (2, 1), ports(node1))
            with _serving(node1, first) as near, _only_by(node1, "responder", 0) as wrote:
                wrote.append(_loop(node2, ANY, near))
            with _only_by(node1, "requester", 1) as wrote:
                wrote.append(_loop(node1, ANY, other))


def _hands_over(node, taker, address):
    """A function, and the example for authors of others, name the port that they offer at."""
    prefix = ipaddress.ip_address(address).packed.hex()
    programs.install(node, "handoff/bytes", "/run/bytes")
    for machine in (node, taker):
        programs.install(machine, "handoff/krcore-example-handoff")
    said = node.run("echo make 64 1 | /run/bytes").out
    check(said.startswith(f"offer {prefix}"), f"{said}, not at {address}")
    node.run("rm -f /run/given")
    with node.background("sleep 60 | krcore-example-handoff give 'by the second' >/run/given",
                         limit=120):
        given = wait_until(lambda: node.run("cat /run/given", check=False).out.strip(), 30,
                           "it is given")
        check(given.startswith(prefix), f"{given}, not at {address}")
        got = taker.run(f"krcore-example-handoff fetch {given}")
        check(got.out == "by the second\n", repr(got))


def _cut_second(node, *servers):
    """Nothing goes between the second port and these guests; all of it, if there are none."""
    node.qmp.call("qom-set", path=f"/machine/peripheral/{SECOND_PORT}", property="partition",
                  value=",".join(str(server.spec.index + 1) for server in servers))


@limit(400)
def test_what_a_port_leaves_is_withdrawn_by_the_other(cluster):
    """A port that goes while its cable is out cannot withdraw its record. One MetaServer hears
    of that from the other port only when the record is there again."""
    meta1, meta2 = servers = cluster.nodes("metaserver")
    with _both_published(cluster) as (node1, node2, rows), serve(node2) as other:
        first, second = node1.spec.address, ADDRESS
        device = rows[second]["device"]
        _cut_second(node1, meta2)
        try:
            node1.link_down()
            _ports_up(node1, second)
            with _only_by(node1, "requester", 1) as wrote:      # though the first is there
                wrote.append(_loop(node1, ANY, other))
            _hands_over(node1, node2, second)
            wait_until(lambda: _sessions(node1, device)[meta2.name][0] != "ready", 60,
                       f"{meta2.name} is lost")
            _take_out(node1, 0)
            _published([meta1], node1, {second: rows[second]})
            _published([meta2], node1, rows)
        finally:
            node1.link_up()
        _put_back(node1, 0, first)
        rows = _ports_up(node1, first, second)
        _attached(servers, node1, rows[first]["device"])
        _published(servers, node1, rows)
        _cut_second(node1)
        _attached(servers, node1, device)
        time.sleep(2)       # what was to be withdrawn is told right behind
        _published(servers, node1, rows)


@limit(400)
def test_addresses_change_places(cluster):
    servers = cluster.nodes("metaserver")
    with _both_published(cluster) as (node1, node2, before):
        first, second = node1.spec.address, ADDRESS
        swap = "".join(f"ip address {word} {address}/{node1.spec.prefix} dev "
                       f"{_name(node1, number, 'net')}; " for word, address, number in
                       (("del", first, 0), ("del", second, 1), ("add", second, 0),
                        ("add", first, 1)))
        # a node that is asked from a new place asks for the others anew, and so tells them
        node1.run(f"{swap} ip neigh flush all")

        def swapped():
            rows = _ports_up(node1, first, second)
            return rows[first]["device"] == before[second]["device"] and rows

        rows = wait_until(swapped, 60, "the addresses have changed places")
        check(rows[second]["device"] == before[first]["device"], f"{rows}")
        _published(servers, node1, rows)
        with _serving(node1, first) as peer, _only_by(node1, "responder", 1) as wrote:
            wrote.append(_loop(node2, ANY, peer))


def _only(node, device):
    """Have a node that is up use this device only, or all if there is none."""
    conf = {"metaservers": "meta1, meta2", **NODE, "lease_ms": LEASE_MS}
    krcore.write_config(node, node={**conf, "device": device} if device else conf)
    node.run("krcore-metactl node up", timeout=60)


@limit(400)
def test_one_port_is_chosen_by_its_name(cluster):
    """Also if it comes to have that name later, as with a card that is put in."""
    servers = cluster.nodes("metaserver")
    with _both_published(cluster) as (node1, _, rows):
        first, second = node1.spec.address, ADDRESS
        devices = [rows[address]["device"] for address in (first, second)]
        reason = "the configuration names another device"
        for name in (devices[1], "rail"):
            _only(node1, name)
            if name == "rail":
                _ports_up(node1)
                node1.run(f"rdma dev set {devices[1]} name {name}")
            chosen = _ports_up(node1, second)
            check(chosen[second]["device"] == name, f"{chosen}")
            (other,) = [row for row in node_rows(node1, "node_port") if row["device"] != name]
            check((other["device"], other["state"], other["reason"]) ==
                  (devices[0], "unusable", reason), f"{other}")
            _published(servers, node1, chosen)
        node1.run(f"rdma dev set rail name {devices[1]}")
        _ports_up(node1)
        _only(node1, None)
        _published(servers, node1, _ports_up(node1, first, second))
