# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The kernel module of a node from outside: krcore-metactl node up, show and down, its
netlink family, krcore-node.service, and what doctor says. On soft RoCE, where nothing else is
said, the module may make no lanes, and says why there are no queues."""

import json

from . import krcore, packages, programs
from .krcore import CONFIG, NODE_UNIT, metactl, node_rows, node_up
from .suite import check, limit, needs, wait_until

TOOL = "krcore-metactl"
PACKAGE = "/run/krcore-node.deb"
HIDDEN_KEY = f"{krcore.KEY_FILE}.away"
HIDDEN_KEY_BACK = f"[ ! -e {HIDDEN_KEY} ] || mv {HIDDEN_KEY} {krcore.KEY_FILE}"


def _node(cluster, *, lanes=False):
    """node1 without module, knowing both MetaServers; they serve, with a key. `lanes`: where a
    card has no DC, its port can be up."""
    node = cluster.node("node1")
    krcore.node_gone(node)
    krcore.setup(cluster, key=krcore.new_key(), lanes=lanes)
    return node


def _has_dc(cluster):
    return cluster.nic.dc


def _refused(machine, words, *texts):
    """The command fails with status 1 and says all of this."""
    done = machine.run(f"{TOOL} {words}", check=False, timeout=60)
    check(done.status == 1, f"{words}: {done!r}")
    for text in texts:
        check(text in done.err, f"{words}: no '{text}' in: {done.err}")


def _generation(machine):
    (row,) = node_rows(machine, "node")
    return row["generation"]


def _port(cluster, machine):
    """The row of the card's port."""
    (row,) = [row for row in node_rows(machine, "node_port")
              if row["device"] == cluster.nic.device()]
    return row


def _said(machine, text):
    """How often the module has said this in the kernel log."""
    return machine.run(f"dmesg | grep -cF 'krcore: {text}'", check=False).out.strip()


def _doctor(machine):
    """Findings of doctor about the kernel module."""
    shown = machine.run(f"{TOOL} -j doctor", check=False, timeout=90)
    return [row for row in json.loads(shown.out) if row["check"] == "kernel"]


def test_without_the_module(cluster):
    node = _node(cluster)
    missing = "module krcore is not loaded: modprobe krcore"
    for words in ("node up", "node down", "queue list", "peer list", "stats node"):
        _refused(node, words, missing)
    (row,) = node_rows(node, "node")
    check(not row["up"] and row["reason"] == missing, f"{row}")
    check(missing in node.run(f"{TOOL} node show").out, "text does not say it")
    (finding,) = _doctor(node)
    check(finding["verdict"] == "OK", f"{finding}")
    node.run(f"systemctl enable -q {NODE_UNIT}")
    try:
        (finding,) = _doctor(node)
        check(finding["verdict"] == "FAIL" and "modprobe krcore" in finding["remedy"],
              f"{finding}")
    finally:
        node.run(f"systemctl disable -q {NODE_UNIT}")


@limit(300)
def test_up_show_and_down(cluster):
    node = _node(cluster)
    node.run("dmesg -C")
    node_up(node)
    try:
        (row,) = node_rows(node, "node")
        check(row["up"] and row["name"] == "node1" and row["auth"], f"{row}")
        check(len(row["owner"]) == 32 and "key" not in row, f"{row}")
        if _has_dc(cluster):
            _check_port_up(cluster, node, _port(cluster, node))
        else:
            check(_port(cluster, node)["provider"] is None, f"{_port(cluster, node)}")
            _check_port_unusable(cluster, node, "no DC: krcore has no provider for this kind of "
                                 "NIC")
        generation = _generation(node)
        node.run(f"{TOOL} node up", timeout=60)     # again: nothing changes
        check(_generation(node) == generation, "the boot generation changed")
        for words in ("queue list", "peer list", "stats node"):
            metactl(node, words)
        node.run(f"{TOOL} node down")
        check(node_rows(node, "node")[0]["up"] is False, "it is still up")
        node.run(f"{TOOL} node down")               # down is down
        node.run(f"{TOOL} node up", timeout=60)
        check(_generation(node) > generation, "the boot generation did not rise")
    finally:
        krcore.node_gone(node)
    check(node.run("ls /sys/module/krcore", check=False).status != 0, "the module stays")


def _check_port_unusable(cluster, node, reason):
    """A port without DC: `node show` and the log say why, the latter once for each time that
    the node comes up; the module stays."""
    device, port = cluster.nic.device(), _port(cluster, node)
    check(port["state"] == "unusable" and port["reason"] == reason and port["dctn"] is None,
          f"{port}")
    check(reason in node.run(f"{TOOL} node show").out, "text has no reason")
    check(not node_rows(node, "node_server"), "sessions without a port")
    check(_said(node, f"{device}: not used: {reason}") == "1", node.run("dmesg").out)
    node.run(f"{TOOL} node up", timeout=60)
    check(_said(node, f"{device}: not used: {reason}") == "1", "the log says it again")
    node.run("test -d /sys/module/krcore -a -c /dev/krcore")


def _check_port_up(cluster, node, port):
    """A port that is up: published at each MetaServer, and others find it."""
    check(port["state"] == "up" and port["provider"] and port["reason"] is None, f"{port}")
    check(port["gid"] == node.spec.address and port["generation"] == _generation(node), f"{port}")
    sessions = node_rows(node, "node_server")
    check(sorted(row["name"] for row in sessions) == ["meta1", "meta2"], f"{sessions}")
    for row in sessions:
        check(row["state"] == "ready" and row["records"] == 1 and row["port"] == 1, f"{row}")
    found = krcore.lookup(cluster.node("node2"), node.spec.address, 0)
    check(found is not None and found["dctn"] == int(port["dctn"], 16), f"{found}, {port}")
    for server in cluster.nodes("metaserver"):
        check(any(row["service"] == 0 and row["gid"] == node.spec.address
                  for row in metactl(server, "record list")), f"{server.name} has no record")
    (pool,) = [row for row in metactl(node, "stats node") if row["type"] == "pool"]
    check(pool["initiators"] >= 1 and pool["depth"] == 256, f"{pool}")


@limit(300)
@needs("dc")
def test_a_card_without_dc(cluster):
    node = _node(cluster)
    node.remove_nic()
    try:
        node.add_nic(dct="off")
        node.run("dmesg -C")
        node_up(node)
        check(_port(cluster, node)["provider"] == "mlx5-dc", f"{_port(cluster, node)}")
        _check_port_unusable(cluster, node, "no DC: HCA capability dct is 0")
        found = [row for row in _doctor(node) if row["verdict"] == "FAIL"]
        check([row["subject"] for row in found] == [f"{cluster.nic.device()}/1"], f"{found}")
    finally:
        krcore.node_gone(node)
        node.remove_nic()
        node.add_nic()


@limit(300)
def test_a_port_without_address_or_link_is_told(cluster):
    """Why there is no port is in `node show` and once in the log, and then it comes up."""
    node = _node(cluster, lanes=True)
    device, address = cluster.nic.device(), f"{node.spec.address}/{node.spec.prefix}"
    netdev = krcore.netdev(node)
    try:
        node_up(node)
        wait_until(lambda: _port(cluster, node)["state"] == "up", 30, "the port is up")
        node.run(f"dmesg -C; ip address del {address} dev {netdev}")
        wait_until(lambda: (_port(cluster, node)["reason"] or "").startswith("no address: "), 30,
                   "it says so")
        check(_port(cluster, node)["state"] == "down", f"{_port(cluster, node)}")
        check(_said(node, f"{device}/1: down: no address: ") == "1", node.run("dmesg").out)
        node.link_down()
        node.run(f"ip address add {address} dev {netdev}")
        wait_until(lambda: _port(cluster, node)["reason"] == "the link is down", 30, "it says so")
        check(_said(node, f"{device}/1: not up: the link is down") == "1", node.run("dmesg").out)
        node.link_up()
        wait_until(lambda: _port(cluster, node)["state"] == "up", 30, "the port comes up")
        check(_said(node, f"{device}/1: up: ") == "1", node.run("dmesg").out)
    finally:
        node.link_up()
        krcore.node_gone(node)
        node.run(f"ip address replace {address} dev {netdev}")


@limit(300)
def test_down_withdraws_and_a_dead_server_is_told(cluster):
    node = _node(cluster, lanes=True)
    node_up(node)
    try:
        meta1, meta2 = cluster.nodes("metaserver")
        meta2.run(f"systemctl stop {krcore.UNIT}")
        away = wait_until(lambda: [row for row in node_rows(node, "node_server")
                                   if row["state"] != "ready"], 30, "the loss is seen")
        check(away[0]["name"] == "meta2" and away[0]["reason"], f"{away}")
        verdicts = {row["verdict"] for row in _doctor(node)}
        check(verdicts == {"OK", "WARN"}, f"{_doctor(node)}")
        krcore.start(meta2)
        wait_until(lambda: all(row["state"] == "ready" and row["records"] == 1
                               for row in node_rows(node, "node_server")), 60,
                   "it is back, with the record")
        node.run(f"{TOOL} node down")
        for server in (meta1, meta2):
            check(not metactl(server, "record list"), f"{server.name} keeps the record")
    finally:
        krcore.node_gone(node)


@limit(300)
def test_a_wrong_key_is_told(cluster):
    node = _node(cluster, lanes=True)
    krcore.write_key(node, krcore.new_key())
    node_up(node, ready=False)
    try:
        wait_until(lambda: all(row["reason"] and row["errno"] for row in
                               node_rows(node, "node_server")), 30, "both refuse")
        check(any(row["verdict"] == "FAIL" and "MetaServers is ready" in row["cause"]
                  for row in _doctor(node)), f"{_doctor(node)}")
    finally:
        krcore.node_gone(node)


@limit(300)
def test_bad_configurations_change_nothing(cluster):
    node = _node(cluster)
    node_up(node)
    before = node_rows(node, "node"), node_rows(node, "node_port")
    good = node.pull(CONFIG)
    try:
        for lines, texts in (
                ("[node]\npool_depth = 3\n", (f"{CONFIG}:2: ", "pool_depth")),
                ("[node]\nmetaservers = meta1\npool_dept = 3\n", (f"{CONFIG}:3: ",)),
                ("[node]\nreconnect_min_ms = 20s\nmetaservers = meta1\n", ("reconnect_min_ms",)),
                ("[node]\n", ("no MetaServer is configured",)),
                ("[node]\nmetaservers = no-such-host.invalid\n", ("no address of a Meta",)),
                ("[node]\nmetaservers = " + ",".join(f"192.0.2.{i}" for i in range(1, 18)) + "\n",
                 ("more than 16",))):
            node.push(lines.encode(), CONFIG)
            _refused(node, "node up", *texts)
        node.push(good, CONFIG)
        node.run(f"chmod 644 {krcore.KEY_FILE}")
        _refused(node, "node up", krcore.KEY_FILE, "others")
        node.run(f"chmod 640 {krcore.KEY_FILE}; mv {krcore.KEY_FILE} {HIDDEN_KEY}")
        node.push(b"[node]\nmetaservers = meta1\nrequire_auth = yes\n", CONFIG)
        _refused(node, "node up", krcore.KEY_FILE, "require_auth is yes")
        node.run(HIDDEN_KEY_BACK)
        node.push(good, CONFIG)
        _refused(node, "-S meta1,,/ node up", "metaservers")
        after = node_rows(node, "node"), node_rows(node, "node_port")
        check(after == before, f"{before} became {after}")
        # one name that is not known yet is left out, and said
        done = node.run(f"{TOOL} -S meta1,no-such-host.invalid node up", timeout=60)
        check("no-such-host.invalid" in done.err, f"{done!r}")
    finally:
        node.run(HIDDEN_KEY_BACK)
        node.push(good, CONFIG)
        krcore.node_gone(node)


@limit(300)
def test_bad_requests_are_refused_by_name(cluster):
    node = _node(cluster)
    program = programs.install(node, "tests/module/krc_genl")
    node_up(node, ready=False)
    try:
        before = node_rows(node, "node")
        done = node.run(f"{program} bad", check=False)
        check(done.status == 0, done.out)
        check(node_rows(node, "node") == before, "a request that was refused changed something")
        done = node.run(f"runuser -u nobody -- {program} denied", check=False)
        check(done.status == 0, done.out)
        node.run(f"{program} random {cluster.nic.dc:d} 3000", timeout=120)
        node.run("test -d /sys/module/krcore")
    finally:
        krcore.node_gone(node)


@limit(300)
def test_the_service_and_the_device(cluster):
    node = _node(cluster)
    try:
        node.run(f"systemctl start {NODE_UNIT}", timeout=90)
        check(node_rows(node, "node")[0]["up"], "the service did not bring it up")
        wait_until(lambda: node.run("stat -c %a /dev/krcore", check=False).out.strip() == "666",
                   10, "udev gives /dev/krcore to all")
        node.run("runuser -u nobody -- sh -c 'exec 3<>/dev/krcore'")
        node.run(f"runuser -u nobody -- {TOOL} -j queue list")
        denied = node.run(f"runuser -u nobody -- {TOOL} node down", check=False)
        check(denied.status == 1 and "not permitted" in denied.err, f"{denied!r}")

        node.run(f"systemctl reload {NODE_UNIT}", timeout=60)
        generation = _generation(node)
        good = node.pull(CONFIG)
        node.push(b"[node]\npool_depth = none\n", CONFIG)
        check(node.run(f"systemctl reload {NODE_UNIT}", check=False, timeout=60).status != 0,
              "reloads a file with errors")
        check(_generation(node) == generation, "a bad file changed the node")
        node.push(good, CONFIG)
        node.run(f"systemctl restart {NODE_UNIT}", timeout=90)
        check(_generation(node) > generation, "a restart is a new boot generation")
        node.run(f"systemctl stop {NODE_UNIT}", timeout=60)
        check(node.run("test -e /sys/module/krcore -o -e /dev/krcore", check=False).status == 1,
              "the module stays after stop")
        check(node.run(f"systemctl is-failed {NODE_UNIT}", check=False).out.strip() == "inactive",
              "the unit failed")
    finally:
        krcore.node_gone(node)


@limit(300)
def test_a_removed_package_takes_the_node_down(cluster):
    """An upgrade leaves the node as it is; the package taken off, its service is stopped, and
    the module gone."""
    node = _node(cluster)
    node.push(packages.package("krcore-node"), PACKAGE)
    try:
        node.run(f"systemctl start {NODE_UNIT}", timeout=90)
        generation = _generation(node)
        node.run(f"dpkg -i {PACKAGE}", timeout=200)
        check(_generation(node) == generation, "an upgrade began it anew")
        node.run("dpkg -r krcore-node", timeout=200)
        check(node.run("test -e /sys/module/krcore -o -e /dev/krcore", check=False).status == 1,
              "the module stays without the package")
    finally:
        node.run(f"dpkg -i {PACKAGE}", timeout=200)
        krcore.node_gone(node)


@limit(300)
def test_a_changed_file_is_taken_over(cluster):
    """krcore-node.path has the service reload, also after a file with errors."""
    node = _node(cluster)
    good = node.pull(CONFIG)

    def lease_is(lease_ms):
        wait_until(lambda: node_rows(node, "node")[0]["lease_ms"] == lease_ms, 60,
                   f"the node has the lease of the file, {lease_ms} ms")

    try:
        node.run(f"systemctl start {NODE_UNIT}", timeout=90)
        (before,) = node_rows(node, "node")
        krcore.write_config(node, node={"metaservers": "meta2", "lease_ms": 7000})
        lease_is(7000)
        if _has_dc(cluster):
            wait_until(lambda: [row["name"] for row in node_rows(node, "node_server")] == ["meta2"],
                       30, "the node has the MetaServers of the file")
        node.push(b"[node]\nmetaservers = meta2\nlease_ms = soon\n", CONFIG)
        wait_until(lambda: f"{CONFIG}:3: " in node.run(
            f"journalctl -u {NODE_UNIT} -b --no-pager -o cat").out, 60, "the journal has the error")
        check(node.run(f"systemctl is-active {NODE_UNIT}").out.strip() == "active", "it ended")
        lease_is(7000)
        node.push(good, CONFIG)
        lease_is(before["lease_ms"])
        check(_generation(node) == before["generation"], "the boot generation changed")
        node.run(f"systemctl stop {NODE_UNIT}", timeout=60)
        watching = node.run(f"systemctl is-active {NODE_UNIT}.path", check=False).out.strip()
        check(watching == "inactive", f"after its end krcore-node.path is {watching}")
    finally:
        node.push(good, CONFIG)
        krcore.node_gone(node)


def _wait_up_and_published(cluster, node):
    wait_until(lambda: any(port["state"] == "up" for port in node_rows(node, "node_port")), 90,
               "a port is up")
    krcore.wait_ready(node)
    krcore.wait_published(cluster.node("meta1"), [node])


def _stamp(machine, unit, name):
    """A time of a unit, in microseconds since the boot; 0 if that has not happened."""
    return int(machine.run(f"systemctl show -p {name}TimestampMonotonic --value {unit}").out)


@limit(500)
def test_enabled_it_is_up_after_a_boot(cluster):
    node = _node(cluster, lanes=True)
    try:
        node.run(f"systemctl enable -q {NODE_UNIT}; sync")
        node.restart()
        _wait_up_and_published(cluster, node)
        check(node.run(f"systemctl is-active {NODE_UNIT}").out.strip() == "active", "not by it")
        hardware = _stamp(node, "rdma-hw.target", "ActiveEnter")
        began = _stamp(node, NODE_UNIT, "InactiveExit")
        check(0 < hardware <= began, f"it began at {began} us, the hardware was there at "
              f"{hardware}")
    finally:
        krcore.node_gone(node)


@limit(400)
def test_enabled_it_starts_with_a_card(cluster):
    """A machine that had no RDMA device: the first one starts the service."""
    node = _node(cluster, lanes=True)
    node.remove_nic()
    try:
        node.run(f"systemctl enable -q {NODE_UNIT}; systemctl stop rdma-hw.target")
        check(not node_rows(node, "node")[0]["up"], "it is up already")
    finally:
        node.add_nic()
    try:
        _wait_up_and_published(cluster, node)
        check(node.run(f"systemctl is-active {NODE_UNIT}").out.strip() == "active", "not by it")
    finally:
        krcore.node_gone(node)


@limit(300)
def test_doctor_looks_at_the_ports(cluster):
    node = _node(cluster)
    node.run("modprobe krcore")
    try:
        check([row["verdict"] for row in _doctor(node) if "down" in row["cause"]] == ["WARN"],
              f"{_doctor(node)}")
        node_up(node)
        found = _doctor(node)
        if _has_dc(cluster):
            check(all(row["verdict"] == "OK" for row in found), f"{found}")
        else:
            check([row["subject"] for row in found if row["verdict"] == "FAIL"] ==
                  [f"{cluster.nic.device()}/1"], f"{found}")
    finally:
        krcore.node_gone(node)


@limit(300)
def test_a_server_that_moves_is_followed(cluster):
    """`node refresh`, as its timer has it done, moves the module to the address to which the
    name of its MetaServer leads now, and leaves it where it is while the name stays."""
    node = _node(cluster, lanes=True)
    meta1, meta2 = cluster.nodes("metaserver")
    with krcore.names(node) as say:
        say(f"--address=/ms.site.test/{meta1.spec.address}")
        krcore.write_config(node, node={"metaservers": "ms.site.test"})
        node_up(node)
        try:
            check(krcore.has_record(meta1, 0) and not krcore.has_record(meta2, 0),
                  "the node is published elsewhere")
            (before,) = node_rows(node, "node_server")
            node.run(f"{TOOL} node refresh", timeout=60)
            check(node_rows(node, "node_server")[0]["address"] == before["address"],
                  "it has moved without a cause")
            say(f"--address=/ms.site.test/{meta2.spec.address}")
            node.run(f"{TOOL} node refresh", timeout=60)
            krcore.wait_ready(node)
            (after,) = node_rows(node, "node_server")
            check(meta2.spec.address in after["address"], f"{before} {after}")
            wait_until(lambda: krcore.has_record(meta2, 0), 30, "the node is published there")
            timer = node.run("systemctl cat krcore-node-refresh.timer krcore-node-refresh.service",
                             check=False)
            check(not timer.status and "krcore-metactl node refresh" in timer.out, f"{timer!r}")
        finally:
            krcore.node_gone(node)
