# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The daemon against the world: hostile clients, dead ones, its own network card
taken away, its processor taken away, a peer to copy from."""

import time

from . import krcore, programs
from .krcore import journal, lookup, metactl, publish, setup, write_config
from .suite import check, limit, needs, wait_until

SERVICE = 500
LEASE_MS = 10000    # a live client keeps it, also in a guest that stands still for a while
SHORT = {"lease_ms": LEASE_MS, "reconnect_max_ms": 1000}
START_SECONDS = 90  # TimeoutStartSec of the unit


def _stats(machine):
    (row,) = metactl(machine, "stats")
    return row


def _seen_at(machine, server, address, service=SERVICE):
    """Whether a READ of that very server's table finds the record."""
    return lookup(machine, address, service, f"-S {server.spec.address}") is not None


@limit(900)
def test_hostile_clients_get_nothing(cluster):
    setup(cluster, key=krcore.new_key())
    server, node1, node2 = (cluster.node(name) for name in ("meta1", "node1", "node2"))
    before = krcore.pid(server)
    publish(node2, SERVICE, "honest", at=[server])
    hostile = programs.install(node1, "tests/cluster/bin/hostile")
    with node1.background(f"{hostile} {server.spec.address} {krcore.KEY_FILE}",
                          limit=600) as attack:
        while attack.poll() is None:
            check(_seen_at(node2, server, node2.spec.address), "the honest client is not served")
            time.sleep(0.5)
        done = attack.wait(10)
    check(done.status == 0 and "not ok" not in done.out, repr(done))
    check(krcore.pid(server) == before, journal(server))


@limit(300)
def test_records_of_a_dead_publisher_expire(cluster):
    setup(cluster, node=SHORT)
    server, node1, node2 = (cluster.node(name) for name in ("meta1", "node1", "node2"))
    unit = publish(node1, SERVICE, "mortal", at=[server])
    time.sleep(2 * LEASE_MS / 1000)
    check(_seen_at(node2, server, node1.spec.address), "a living publisher's record is gone")
    with node2.background(f"krcore-metactl -j -t 60 -S {server.spec.address} "
                          "monitor seconds 600 count 2", limit=600) as monitor:
        wait_until(lambda: any(row["subscribed"] for row in metactl(server, "session list")), 30,
                   "node2 has subscribed")
        killed = time.monotonic()       # or later: it takes a while until that is known here
        node1.run(f"systemctl kill -s KILL {unit}")
        wait_until(lambda: not metactl(server, "record list"), 60, "the record expires")
        took = time.monotonic() - killed
        check(took > LEASE_MS / 1000 / 2, f"it went after {took:.1f} s already")
        done = monitor.wait(60)
    check('"gone"' in done.out, repr(done))
    check(_stats(server)["expired_records_total"] == 1, f"{_stats(server)}")


@limit(300)
def test_a_stopped_daemon_forgets_nobody(cluster):
    lease_ms = 2 * LEASE_MS     # so much is left that a client can attach in time
    setup(cluster, node={**SHORT, "lease_ms": lease_ms})
    server, node1, node2 = (cluster.node(name) for name in ("meta1", "node1", "node2"))
    publish(node1, SERVICE, "patient", at=[server])
    server.run(f"systemctl kill -s STOP {krcore.UNIT}")
    time.sleep(2 * lease_ms / 1000)
    server.run(f"systemctl kill -s CONT {krcore.UNIT}")
    wait_until(lambda: _seen_at(node2, server, node1.spec.address), 30, "the record is served")
    check(_stats(server)["expired_records_total"] == 0, f"{_stats(server)}")


@limit(400)
def test_network_card_removed_and_back(cluster):
    setup(cluster, node=SHORT)
    server, node1, node2 = (cluster.node(name) for name in ("meta1", "node1", "node2"))
    publish(node1, SERVICE, "card", at=cluster.nodes("metaserver"))
    check(_seen_at(node2, server, node1.spec.address), "the record is not there")
    before = krcore.pid(server)
    server.remove_nic()
    wait_until(lambda: "no longer serving" in journal(server), 30, "the daemon notices")
    check(lookup(node2, node1.spec.address, SERVICE) is not None, "the other server answers")
    server.add_nic()
    wait_until(lambda: _seen_at(node2, server, node1.spec.address), 60, "the record is back")
    check(krcore.pid(server) == before, "the daemon was restarted")
    check(_stats(server)["devices"] == 1, f"{_stats(server)}")


@limit(300)
def test_cable_unplugged_for_a_while(cluster):
    setup(cluster, node=SHORT)
    server, node1, node2 = (cluster.node(name) for name in ("meta1", "node1", "node2"))
    publish(node1, SERVICE, "cable", at=[server])
    before = krcore.pid(server)
    server.link_down()
    time.sleep(2 * LEASE_MS / 1000)
    server.link_up()
    wait_until(lambda: _seen_at(node2, server, node1.spec.address), 60, "the record is back")
    check(krcore.pid(server) == before, "the daemon was restarted")


@limit(300)
def test_copy_from_a_peer_at_start(cluster):
    setup(cluster)
    peer, server = cluster.node("meta1"), cluster.node("meta2")
    node1, node2 = cluster.node("node1"), cluster.node("node2")
    server.run(f"systemctl stop {krcore.UNIT}")
    publish(node1, SERVICE, "copied", f"-S {peer.spec.address}", at=[peer])
    wait_until(lambda: metactl(peer, "status")[0]["settling_ms"] == 0, 30, "the peer is settled")
    write_config(server, {"copy_from": peer.spec.address, "copy_timeout_ms": 60000,
                          "settle_ms": 900000},
                 {"reconnect_max_ms": 100000})
    krcore.start(server)
    (status,) = metactl(server, "status")
    # it misses no more than what was published at the peer since: two attempts of its publisher
    check(0 < status["settling_ms"] <= 200000, f"{status}")
    (row,) = metactl(server, "record list")
    check(row["imported"] and row["service"] == SERVICE, f"{row}")
    check(_seen_at(node2, server, node1.spec.address), "the copy cannot be READ")

    # its owner comes and takes it over
    publish(node1, SERVICE + 1, "other", f"-S {server.spec.address}")
    node1.run(f"krcore-metactl -t 30 -S {server.spec.address} record publish "
              f"{node1.spec.address} service {SERVICE} raw own")
    rows = {row["service"]: row for row in metactl(server, "record list")}
    check(not rows[SERVICE]["imported"], f"{rows}")


@limit(400)
def test_a_copy_that_takes_long(cluster):
    """Its peer is away for longer than systemd waits for a start: the daemon asks for more time
    as long as it copies, is not killed, and comes with the peer's records."""
    setup(cluster)
    peer, server, node1 = (cluster.node(name) for name in ("meta1", "meta2", "node1"))
    server.run(f"systemctl stop {krcore.UNIT}")
    publish(node1, SERVICE, "copied", f"-S {peer.spec.address}")
    write_config(server, {"copy_from": peer.spec.address, "copy_timeout_ms": 600000})
    cluster.cut("meta1", "meta2")
    try:
        server.run(f"systemctl start --no-block {krcore.UNIT}")
        wait_until(lambda: krcore.pid(server) != "0", 30, "the daemon starts")
        process = krcore.pid(server)
        check(krcore.unit(server, "TimeoutStartUSec") == {"TimeoutStartUSec": "1min 30s"},
              "another limit")
        time.sleep(START_SECONDS + 10)
        now = krcore.unit(server, "ActiveState", "MainPID", "NRestarts")
        check(now == {"ActiveState": "activating", "MainPID": process, "NRestarts": "0"},
              f"{process}, then {now}: {krcore.journal(server)}")
    finally:
        cluster.fabric.reset()
    wait_until(lambda: krcore.unit(server, "ActiveState")["ActiveState"] == "active", 90,
               "the copy has come")
    check(krcore.pid(server) == process, "it is another process")
    (row,) = metactl(server, "record list")
    check(row["imported"] and row["service"] == SERVICE, f"{row}")


@limit(240)
def test_one_client_too_many(cluster):
    setup(cluster, metaserver={"clients_max": 1})
    server, node1, node2 = (cluster.node(name) for name in ("meta1", "node1", "node2"))
    publish(node1, SERVICE, "first", "-t 60", at=[server])     # it keeps its place
    refused = node2.run(f"krcore-metactl -t 30 -S {server.spec.address} "
                        f"resolve {node1.spec.address} service {SERVICE}", check=False)
    check(refused.status == 1 and "too many clients" in refused.err, repr(refused))


@limit(300)
def test_only_where_it_is_told_to_listen(cluster):
    """Two addresses and two ports: it is reached at those it was told, and at no other."""
    setup(cluster)
    server, node2 = cluster.node("meta1"), cluster.node("node2")
    device = metactl(server, "server devices")[0]["device"]
    first, port = server.spec.address, 18611
    second = first.rpartition(".")[0] + ".111"

    def reached(address, number=18600, there=()):
        # it is asked to the end; a datagram of rdma_cm that is lost is sent again after 4.3 s
        patience = 30 if (address, number) in there else 4
        return node2.run(f"krcore-metactl -t {patience} -S {address}:{number} table check",
                         check=False).status == 0

    server.run(f"ip address add {second}/24 dev {krcore.netdev(server)}")
    try:
        for listen, number, there in (
                ("*", 18600, {(first, 18600), (second, 18600)}),
                (f"dev:{device}", 18600, {(first, 18600), (second, 18600)}),
                (first, 18600, {(first, 18600)}), (second, 18600, {(second, 18600)}),
                (second, port, {(second, port)})):
            write_config(server, {"listen": listen, "port": number})
            server.run(f"systemctl restart {krcore.UNIT}", timeout=60)
            seen = {(address, at) for address in (first, second) for at in (18600, port)
                    if reached(address, at, there)}
            check(seen == there, f"listen = {listen}, port = {number}: reached at {seen}")
            check(_stats(server)["devices"] == 1, f"two addresses, one device: {_stats(server)}")
    finally:
        server.run(f"ip address del {second}/24 dev {krcore.netdev(server)}")

    # no such device: it waits, is not ready, and says so
    write_config(server, {"listen": "dev:nosuch0"})
    server.run(f"systemctl stop {krcore.UNIT}; systemctl start --no-block {krcore.UNIT}")
    wait_until(lambda: "waiting" in krcore.unit(server, "StatusText")["StatusText"],
               20, "it says that it waits")
    state = krcore.unit(server, "ActiveState")["ActiveState"]
    check(state == "activating", state)
    check(not reached(first), "it serves on a device it may not use")


# -- two devices -------------------------------------------------------------------

TWO = "krc-two"                 # the second network device, and the RDMA device on it
TWO_RDMA = "krcrxe2"
TWO_ADDRESS = "10.78.1.9"       # reached from the server's own guest only


def _in_use(server):
    """What is registered with each RDMA device that the daemon has opened."""
    return {row["device"]: row["registered_bytes"] for row in metactl(server, "server devices")
            if row["in_use"]}


@limit(400)
@needs("rxe")       # of which a second one is made
def test_two_devices(cluster):
    """`listen = *` is also for a device that comes later. Table and buffers are registered
    once with each device, however many come by it; both show the same records; and when one
    goes, the other serves on."""
    setup(cluster)
    server, node2 = cluster.node("meta1"), cluster.node("node2")
    first = cluster.nic.device()
    before = krcore.pid(server)
    publish(node2, SERVICE, "one", f"-S {server.spec.address}")
    check(list(_in_use(server)) == [first], f"{_in_use(server)}")
    server.run(f"ip link add {TWO} type dummy && ip address add {TWO_ADDRESS}/24 dev {TWO} && "
               f"ip link set {TWO} up && rdma link add {TWO_RDMA} type rxe netdev {TWO}")
    try:
        def seen(service):
            """By which of the two a record is found."""
            by_first = _seen_at(node2, server, node2.spec.address, service)
            by_second = lookup(server, node2.spec.address, service, f"-S {TWO_ADDRESS}")
            return by_first, by_second is not None

        wait_until(lambda: seen(SERVICE) == (True, True), 60, "both devices serve")
        registered, stats = _in_use(server), _stats(server)
        check(set(registered) == {first, TWO_RDMA} and all(registered.values()), f"{registered}")
        check(stats["devices"] == 2 and stats["registered_bytes"] == sum(registered.values()),
              f"{stats} {registered}")
        each = stats["receives_posted"] // 2
        for _ in range(3):
            check(seen(SERVICE) == (True, True), "a device does not serve any more")
        publish(node2, SERVICE + 1, "two", f"-S {server.spec.address}")
        check(seen(SERVICE + 1) == (True, True), "what came by one is not seen by the other")
        check(_in_use(server) == registered, f"registered again: {registered} {_in_use(server)}")

        server.run(f"rdma link delete {TWO_RDMA}", timeout=60)
        wait_until(lambda: list(_in_use(server)) == [first], 30, "it knows that the device went")
        stats = _stats(server)
        check(stats["devices"] == 1 and stats["device_removals_total"] == 1
              and stats["receives_posted"] == each, f"{stats}")
        check(_seen_at(node2, server, node2.spec.address), "the other device does not serve")
        check(krcore.pid(server) == before, "the daemon was restarted")
    finally:
        server.run(f"rdma link delete {TWO_RDMA} 2>/dev/null; ip link delete {TWO}", check=False)
