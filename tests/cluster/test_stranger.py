# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Strangers on the wire: peers without the key, or with bad will, beside clients that are
neither. On both network cards."""

import contextlib
import re
import time

from . import krcore, nodes, programs
from .krcore import journal, lookup, metactl, publish, setup
from .probe import Probe
from .suite import check, limit, needs, wait_until

STRANGER = "test-stranger"
SERVICE = 500


def _said(machine, unit, word):
    """The number behind `word` in what a unit's program has said, or None."""
    out = machine.run(f"journalctl -u {unit} -b --no-pager -o cat", check=False).out
    found = re.findall(rf"^{word} (\d+)$", out, re.MULTILINE)
    return int(found[-1]) if found else None


def _daemon(server, how):
    server.run(f"systemctl kill -s {how} {krcore.UNIT}")


def _strangers(machine, name, server, connections, messages, buffers):
    """Connections that are open now and wait for SIGUSR1 to send."""
    machine.run(f"systemd-run --quiet --unit={name} -p LimitMEMLOCK=infinity "
                f"/usr/local/bin/stranger {server.spec.address} {connections} {messages} {buffers}")
    return wait_until(lambda: _said(machine, name, "ready"), 60, "the strangers are connected")


DEPTH = 256         # receive buffers of the server
CROWD = 100         # strangers that are killed together


def _killed_crowd(server, node, name, connections, messages):
    """Strangers send to a daemon that stands still and are killed; it goes on in jerks.
    Returns how many receive buffers their messages found."""
    wait_until(lambda: not metactl(server, "session list"), 60, "the strangers are gone")
    _strangers(node, name, server, connections, messages, DEPTH)
    _daemon(server, "STOP")
    node.run(f"systemctl kill -s USR1 {name}")
    found = wait_until(lambda: _said(node, name, "delivered") is not None, 60,
                       "the strangers have sent") and _said(node, name, "delivered")
    node.run(f"systemctl kill -s KILL {name}; systemctl reset-failed {name}", check=False)
    time.sleep(1)
    server.run(f"pid=$(systemctl show -P MainPID {krcore.UNIT}); "
               "for i in $(seq 30); do kill -CONT $pid; sleep 0.02; kill -STOP $pid; "
               "sleep 0.25; done; kill -CONT $pid", timeout=60)
    return found


@limit(900)
def test_receives_are_never_lost(cluster):
    """Clients by the hundred send and are killed while the daemon stands still, and it then
    goes on in jerks, so that it ends queue pairs before it has seen what they had received."""
    setup(cluster, key=krcore.new_key(), metaserver={"srq_depth": DEPTH})
    server, node1, node2 = (cluster.node(name) for name in ("meta1", "node1", "node2"))
    programs.install(node1, "tests/cluster/bin/stranger")
    delivered = [_killed_crowd(server, node1, f"{STRANGER}-{turn}", CROWD, 6)
                 for turn in range(4)]
    # one that is not slowed down by others finds all buffers, if all are there
    for turn in range(5):
        last = _killed_crowd(server, node1, f"{STRANGER}-last-{turn}", 1, 2 * DEPTH)
        if last:    # else the daemon had cut it before it stood still: it had no key
            break
    print(f"    receive buffers that crowds found, of {DEPTH}: {delivered}; one, then: {last}",
          flush=True)
    asked = node2.run(f"krcore-metactl -t 20 -S {server.spec.address} table check",
                      timeout=60, check=False)
    check(asked.status == 0, f"an honest client is not served any more: {asked!r}")
    check(last == DEPTH, f"{DEPTH - last} buffers of {DEPTH} were lost")
    (stats,) = metactl(server, "stats")
    check(stats["receives_posted"] == DEPTH, f"{stats}")


KEPT_LEASE_MS = 20000   # for so long, and longer, they come
FLOOD_END = "/run/krc-flood.end"
FLOODS = 2              # beside each other: one sends while another connects
HEARD = 20              # messages of a crowd that find a buffer, before the next one comes
FLOOD = f"""ulimit -l unlimited; crowds=0; delivered=0; out=/run/krc-flood.%d
while [ ! -e {FLOOD_END} ]; do
    : >$out; stranger %s {CROWD} 6 {HEARD} >$out & p=$!
    until grep -q ^ready $out || ! kill -0 $p; do sleep 0.1; done
    kill -USR1 $p
    until grep -q ^delivered $out || ! kill -0 $p; do sleep 0.1; done
    kill -KILL $p; wait $p
    some=$(sed -n 's/^delivered //p' $out)
    delivered=$((delivered + ${{some:-0}})); crowds=$((crowds + 1))
done 2>/dev/null
echo crowds=$crowds delivered=$delivered"""
NEWCOMERS = 6           # that are let in meanwhile, at least


@contextlib.contextmanager
def _flood(node, server):
    """Crowds of strangers come without end."""
    node.run(f"rm -f {FLOOD_END}")
    with contextlib.ExitStack() as stack:
        floods = [stack.enter_context(node.background(FLOOD % (i, server.spec.address), limit=400))
                  for i in range(FLOODS)]
        wait_until(lambda: len(metactl(server, "session list")) > CROWD // 2, 90, "they are there")
        yield
        node.run(f"touch {FLOOD_END}")
        for flood in floods:
            seen = nodes.pairs(flood.wait(90).out.strip().splitlines()[-1])
            print(f"    {seen}", flush=True)
            check(seen["crowds"] and seen["delivered"], "no stranger was heard")


def _only_session(server):
    """The only one that is listed."""
    sessions = metactl(server, "session list")
    return sessions[0] if len(sessions) == 1 else None


@limit(600)
def test_a_flood_of_strangers_holds_up_no_client(cluster):
    """Strangers by the hundred connect and send what is not theirs to send, one crowd after the
    other: a client that is attached stays so and renews its lease, and new ones are let in."""
    cluster.each(krcore.node_gone)      # whose modules would be sessions, too
    setup(cluster, key=krcore.new_key(), metaserver={"srq_depth": DEPTH},
          node={"lease_ms": KEPT_LEASE_MS})
    server, node1, node2 = (cluster.node(name) for name in ("meta1", "node1", "node2"))
    programs.install(node1, "tests/cluster/bin/stranger")
    unit = publish(node2, SERVICE, "kept", at=[server])
    before = wait_until(lambda: _only_session(server), 60, "it is attached alone")
    began, newcomers = time.monotonic(), 0
    with _flood(node1, server):
        while newcomers < NEWCOMERS or time.monotonic() - began < 1.5 * KEPT_LEASE_MS / 1000:
            done = node2.run(f"krcore-metactl -t 30 -S {server.spec.address} resolve "
                             f"{node2.spec.address} service {SERVICE}", timeout=60, check=False)
            check(done.status == 0, f"newcomer {newcomers}: {done!r}")
            newcomers += 1
    after = wait_until(lambda: _only_session(server), 90, "the strangers are gone")
    (stats,) = metactl(server, "stats")
    print(f"    {newcomers} newcomers", flush=True)
    check(after["id"] == before["id"], f"{before} became {after}")
    check(not stats["expired_records_total"], f"{stats}")
    node2.run(f"systemctl stop {unit}", timeout=60)


LOST = 200


@limit(300)
@needs("dc")    # no driver but the model of a card forgets receives when told to
def test_lost_receives_are_found(cluster):
    """Buffers that the card forgets, which no driver gives back: the card says that few are left,
    the server sees that too few have come back, and opens the device anew."""
    setup(cluster, key=krcore.new_key(), metaserver={"srq_depth": DEPTH})
    server, node2 = cluster.node("meta1"), cluster.node("node2")
    ask = f"krcore-metactl -t 20 -S {server.spec.address} table check"
    pid = krcore.pid(server)
    check(metactl(server, "stats")[0]["receives_posted"] == DEPTH, "they are not posted")
    server.nic.set(server, "drop_receives", LOST)

    def found():
        node2.run(ask, timeout=60, check=False)     # its messages take some of those that are left
        return "it has lost receive buffers" in journal(server, 60)
    wait_until(found, 90, "the server finds that receives are lost")
    wait_until(lambda: metactl(server, "stats")[0]["devices"] == 1, 60, "the device is opened anew")
    asked = node2.run(ask, timeout=60, check=False)
    check(asked.status == 0, f"an honest client is not served any more: {asked!r}")
    (stats,) = metactl(server, "stats")
    check(stats["receives_posted"] == DEPTH and stats["device_removals_total"] == 1, f"{stats}")
    check(krcore.pid(server) == pid, "it began anew")


CLIENTS = 5


def _hold(machine, name, server, clients):
    """Clients that attach without a key, each with a record, and stay."""
    machine.run(f"systemd-run --quiet --unit={name} -p LimitMEMLOCK=infinity "
                f"/usr/local/bin/bench_clients {server.spec.address} 18600 {clients}")


def _holding(machine, name):
    out = machine.run(f"journalctl -u {name} -b --no-pager -o cat", check=False).out
    return "holding" in out.splitlines()


@limit(400)
def test_clients(cluster):
    """A full server: a client that was there before comes in again at once, in place of the
    session that nobody uses any more; others are refused before they cost a queue pair, and
    told why."""
    # nothing that stands still is given up meanwhile
    setup(cluster, metaserver={"clients_max": CLIENTS, "lease_ms": 300000,
                               "idle_timeout_ms": 300000})
    server, node1, node2 = (cluster.node(name) for name in ("meta1", "node1", "node2"))
    programs.install(node1, "bench/bench_clients")
    _hold(node1, "test-before", server, CLIENTS)
    wait_until(lambda: _holding(node1, "test-before"), 60, "the clients are attached")

    asked = node2.run(f"krcore-metactl -t 20 -S {server.spec.address} table check", check=False)
    check(asked.status == 1 and "server has too many clients" in asked.err, repr(asked))
    (stats,) = metactl(server, "stats")
    check(stats["connections_rejected_total"] > 0, f"it was refused late: {stats}")
    if cluster.nic.dc:
        krcore.node_up(node2, ready=False)
        try:
            wait_until(lambda: "server has too many clients" in node2.run(
                "krcore-metactl node show", timeout=60, check=False).out, 30,
                "the module says why it was refused")
        finally:
            krcore.node_gone(node2)

    # the same owners, boots and ports once more: the first ones are as good as dead
    node1.run("systemctl kill -s STOP test-before")
    _hold(node1, "test-again", server, CLIENTS)
    # in their place, and not when they are given up: that is counted
    wait_until(lambda: _holding(node1, "test-again"), 60, "the same clients are attached again")
    (stats,) = metactl(server, "stats")
    check(stats["sessions_replaced_total"] == CLIENTS, f"{stats}")
    check(stats["connections_ready"] == CLIENTS, f"{stats}")
    node1.run("systemctl kill -s KILL test-before test-again; systemctl reset-failed", check=False)


# -- a miss is true ----------------------------------------------------------------

OWNER = "51" * 16
GENERATION = "generation 7"     # of one owner: its limit is one for all its programs
SETTLED_SOON = {"settle_ms": 2000}


def _names(cluster):
    return (cluster.node(name) for name in ("meta1", "meta2", "node1", "node2"))


def _wait_settled(*servers):
    for server in servers:
        wait_until(lambda s=server: metactl(s, "status")[0]["settling_ms"] == 0, 60,
                   f"{server.name} is settled")


def _services(server):
    return {row["service"] for row in metactl(server, "record list")}


@contextlib.contextmanager
def _two_sources(node, server, address):
    """The node reaches this server from a second address of its interface."""
    netdev = krcore.netdev(node)
    node.run(f"ip address add {address}/24 dev {netdev} && "
             f"ip route replace {server.spec.address}/32 dev {netdev} src {address}")
    try:
        yield
    finally:
        node.run(f"ip route del {server.spec.address}/32; ip address del {address}/24 "
                 f"dev {netdev}", check=False)


class _Readers:
    """A program of libkrcore and the kernel's client, which both ask meta1 first."""

    def __init__(self, cluster, probe):
        self.meta1, self.meta2, _, self.node2 = _names(cluster)
        self.probe = probe

    def find(self, address, service, why):
        """Both find a record that meta2 has and meta1 has not, and count the overruling."""
        check(service in _services(self.meta2) and service not in _services(self.meta1),
              f"{why}: it is not at meta2 alone")
        # so often that both servers are attached after a while: the first looks meet either
        row = lookup(self.node2, address, service, "count 1000 -t 60")
        check(row and row["hits"] == 1000 and row["misses_overruled"] > 0, f"{why}: {row}")
        before = self.overruled()
        check(self.probe.outcome(f"lookup ::ffff:{address} {service}") == "",
              f"{why}: the kernel does not find it: {self.probe.info()}")
        check(self.overruled() == before + 1, f"{why}: {self.probe.info()}")

    def overruled(self):
        """How often the kernel's client did not believe the first server."""
        return int(self.probe.info()[0][0]["misses_overruled"])


def _hung(readers, address, service):
    """A server that hangs, whose NIC goes on answering READs, is not even overruled: nobody
    takes it to know."""
    before, was = readers.probe.info()[0][0], readers.overruled()
    readers.meta1.run(f"systemctl kill -s STOP {krcore.UNIT}")
    try:
        time.sleep(1.7)         # a heartbeat is late by half a second, a look is good for one
        check(readers.probe.outcome(f"lookup ::ffff:{address} {service}") == "",
              f"the kernel does not find it: {readers.probe.info()}")
        check(readers.probe.result()["reads"] == "3", f"{readers.probe.result()}")
        after = readers.probe.info()[0][0]
        check(int(after["misses"]) == int(before["misses"]) + 1 and
              readers.overruled() == was, f"{before} {after}")
    finally:
        readers.meta1.run(f"systemctl kill -s CONT {krcore.UNIT}")


def _keyed_apart(readers, node1, key, service):
    """Keys are being changed, and meta1 was left out: it refuses the publisher, not the readers."""
    later = krcore.new_key()
    krcore.write_key(readers.meta2, f"{key}\n{later}")
    readers.meta2.run(f"systemctl reload {krcore.UNIT}", timeout=60)
    krcore.write_key(node1, later)
    publish(node1, service, "fifth", f"owner {'53' * 16}")
    readers.find(node1.spec.address, service, "a key that one server has not")


@limit(420)
def test_a_miss_is_true(cluster):
    """A record that one server took is found where the other one is asked first, whatever kept
    it from there: a limit, another source address, a path, a key."""
    key = krcore.new_key()
    order = {"metaservers": "meta1/10, meta2/20"}
    setup(cluster, key=key, metaserver=SETTLED_SOON, node=order)
    meta1, meta2, node1, node2 = _names(cluster)
    krcore.write_config(meta1, {**SETTLED_SOON, "records_per_owner_max": 1}, order)
    meta1.run(f"systemctl restart {krcore.UNIT}", timeout=60)
    _wait_settled(meta1, meta2)
    with Probe(node2) as probe:
        probe.up((meta1, 10), (meta2, 20), key=key)
        wait_until(lambda: probe.states() == ["ready", "ready"], 30, "the sessions are ready")
        readers = _Readers(cluster, probe)

        publish(node1, 800, "first", f"owner {OWNER} {GENERATION}", at=[meta1])
        check(800 in _services(meta1), "meta1 takes one record of an owner")
        publish(node1, 801, "second", f"owner {OWNER} {GENERATION}", at=[meta2])
        readers.find(node1.spec.address, 801, "a limit of one server")

        other = "10.77.0.121"
        with _two_sources(node1, meta2, other):
            node1.run("systemd-run --quiet --collect --unit=test-publish-802 krcore-metactl "
                      f"record publish {other} service 802 raw third --keep")
            wait_until(lambda: 802 in _services(meta2), 30, "meta2 takes the second address")
            readers.find(other, 802, "servers reached from different addresses")
            node1.run("systemctl stop test-publish-802", timeout=60)

        cluster.cut("node1", "meta1")
        try:
            publish(node1, 803, "fourth", f"owner {'52' * 16}")
            readers.find(node1.spec.address, 803, "a path that is broken")
            _hung(readers, node1.spec.address, 803)
        finally:
            cluster.fabric.reset()
        _keyed_apart(readers, node1, key, 804)

        row = metactl(node2, f"-t 20 resolve {node1.spec.address} service 899",
                      check_status=False)[0]
        check(not row["found"] and not row["settling"] and row["reads"] >= 2, f"{row}")


# -- who is who: tests/cluster/bin/hostile says what came of it in TAP -----------------

LEASE_MS = 12000            # a guest may stand still for a while
HOSTILE_OUT = "/run/krc-hostile.out"
OWN_PORT = 18601   # where the hostile program listens


def _nodes(cluster):
    return (cluster.node(name) for name in ("meta1", "node1", "node2"))


def _finished(attack):
    """What the hostile program said; every case of it is to be fine."""
    done = attack.wait(60)
    check(done.status == 0 and "not ok" not in done.out, repr(done))
    return done.out


def _lured(cluster, case, key_file):
    """A client that goes to the hostile program instead of to a server: what it says."""
    server, node1, node2 = _nodes(cluster)
    hostile = programs.install(node1, "tests/cluster/bin/hostile")
    said = set()
    with node1.background(f"{hostile} {server.spec.address} {key_file} {case}",
                          limit=120) as attack:
        while attack.poll() is None:
            result = node2.run(f"krcore-metactl -t 6 -S {node1.spec.address}:{OWN_PORT} "
                               "table check", check=False)
            check(result.status != 0, f"{case}: the client is content: {result!r}")
            said.add(result.err.strip())
        tap = _finished(attack)
    return "\n".join(said), tap


@limit(600)
def test_identity(cluster):
    """A host between a client and the server is let in by neither of them, and a WELCOME
    that is not as its sender made it is refused."""
    setup(cluster, key=krcore.new_key(), node={"reconnect_max_ms": 1000})
    server, _, node2 = _nodes(cluster)
    _, tap = _lured(cluster, "relay", "-")
    check("let in 0 times" in tap, tap)
    said, _ = _lured(cluster, "true-root", krcore.KEY_FILE)
    check("proof" not in said and "READ" in said, f"an honest root is not believed: {said}")
    said, _ = _lured(cluster, "forged-root", krcore.KEY_FILE)
    check("the server's proof does not hold" in said and "READ" not in said, said)
    done = node2.run(f"krcore-metactl -t 30 -S {server.spec.address} table check", check=False)
    check(done.status == 0, f"the honest client is not served: {done!r}")


@limit(400)
def test_owners(cluster):
    """A client that has the key and writes another's owner into its HELLO can neither withdraw
    what is that one's nor keep it when it is gone."""
    setup(cluster, key=krcore.new_key(), node={"lease_ms": LEASE_MS, "reconnect_max_ms": 1000})
    server, node1, node2 = _nodes(cluster)
    unit = publish(node2, SERVICE, "mine", at=[server])
    (row,) = metactl(server, "record list")
    hostile = programs.install(node1, "tests/cluster/bin/hostile")
    record = f"{row['owner']} {row['gid']} {row['service']} {row['generation']}"
    with node1.background(f"HOSTILE_RECORD='{record}' {hostile} {server.spec.address} "
                          f"{krcore.KEY_FILE} claim-owner | tee {HOSTILE_OUT}",
                          limit=300) as attack:
        wait_until(lambda: "renewing" in node1.run(f"cat {HOSTILE_OUT}", check=False).out, 60,
                   "its withdrawals are over")
        check(lookup(node2, node2.spec.address, SERVICE) is not None, "the record is gone")
        node2.run(f"systemctl kill -s KILL {unit}")
        wait_until(lambda: not metactl(server, "record list"), 5 * LEASE_MS / 1000,
                   "the record goes with its node's lease")
        check(attack.poll() is None, "the hostile client ended too early")
        node1.run("pkill -TERM -x hostile")
        _finished(attack)
    check("malformed" not in journal(server), journal(server))


def _key_ids(machine):
    return [row["key"] for row in metactl(machine, "key id")]


@limit(400)
def test_fails_closed(cluster):
    """A server that had a key goes on without it only after a restart, a node that insists
    takes no server without."""
    key = krcore.new_key()
    setup(cluster, key=key)
    server, node1, node2 = _nodes(cluster)
    ask = f"krcore-metactl -t 30 -S {server.spec.address} table check"
    krcore.write_key(server, None)
    server.run(f"systemctl reload {krcore.UNIT}", check=False)
    wait_until(lambda: "no key any more" in journal(server), 20, "the server says why not")
    krcore.write_key(node1, None)
    refused = node1.run(ask, check=False)
    check(refused.status and "demands a cluster key" in refused.err, f"{refused!r}")
    check(node2.run(ask, check=False).status == 0, "who has the key is not served any more")

    server.run(f"systemctl restart {krcore.UNIT}", timeout=60)
    check("there is no cluster key" in journal(server, 60), journal(server, 60))
    check(metactl(server, "stats")[0]["auth_required"] == 0, "it does not say so in its metrics")
    refused = node2.run(ask, check=False)
    check(refused.status and "this server has none" in refused.err, f"{refused!r}")
    krcore.write_config(node1, node={"require_auth": "yes",
                                     "metaservers": server.spec.address})
    refused = node1.run(ask, check=False)
    check(refused.status and "require_auth is yes" in refused.err, f"{refused!r}")


@limit(600)
def test_keys(cluster):
    """The key of a working cluster is changed, machine by machine, and nobody is refused."""
    setup(cluster, key=krcore.new_key(), node={"lease_ms": LEASE_MS, "reconnect_max_ms": 1000})
    server, node1, node2 = _nodes(cluster)
    machines = [*cluster.nodes("metaserver"), node1, node2]
    (old,) = _key_ids(server)
    publish(node2, SERVICE, "kept", "-t 60")

    def rotate(step):
        """A step on one machine, its file to the others, in the order that is worst for it."""
        server.run(f"krcore-metactl key rotate {step}")
        key = server.pull(krcore.KEY_FILE)
        for machine in machines if step == "use" else reversed(machines):
            machine.push(key, krcore.KEY_FILE)
            machine.run(f"chown root:krcore {krcore.KEY_FILE}; chmod 640 {krcore.KEY_FILE}; "
                        f"! systemctl is-active -q {krcore.UNIT} || "
                        f"systemctl reload {krcore.UNIT}")
            # between any two machines there is another key first, and a new client is let in
            check(lookup(node1, node2.spec.address, SERVICE) is not None,
                  f"{step} at {machine.name}: a new client is refused")

    for step in ("add", "use"):
        rotate(step)
    new = _key_ids(server)[0]
    check(new != old, "the key is the same")
    rotate("drop")
    check(_key_ids(node2) == [new], f"{_key_ids(node2)}")
    # a client that attached with the old key stays until told to go, and comes back with the new
    sessions = metactl(server, "session list")
    check(any(row.get("key") == old for row in sessions), f"{sessions}")
    (killed,) = metactl(server, f"session kill key {old}")
    check(killed["killed"] >= 1, f"{killed}")
    wait_until(lambda: any(row.get("key") == new and row["state"] == "ready"
                           for row in metactl(server, "session list")), 30,
               "the publisher is back with the new key")
    check(metactl(server, "stats")[0]["auth_failures_total"] == 0, "somebody was refused")
    check(lookup(node1, node2.spec.address, SERVICE) is not None, "the record is gone")
