# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore-metactl over real RDMA READs and beside a real daemon: what it shows agrees,
whoever is asked; what it changes is seen elsewhere; and doctor finds each fault."""

import json
import pathlib
import tempfile

from . import document, host, krcore, nodes
from .suite import check, limit, wait_until

SERVICE = 300
DCT_SERVICE = 299   # those below 256 are the node's own
TOOL = "krcore-metactl -t 15"


def _ask(machine, words, status=0, timeout=60):
    """The rows of a command, asked for as JSON, and what it wrote to stderr."""
    result = machine.run(f"{TOOL} -j {words}", check=False, timeout=timeout)
    check(result.status == status, f"{words}: {result!r}")
    return json.loads(result.out), result.err


def _start(cluster):
    """Two MetaServers, everybody configured, no record of an earlier test left."""
    krcore.setup(cluster, key=krcore.new_key(), metaserver={"lease_ms": 20000},
                 node={"lease_ms": 20000, "reconnect_max_ms": 1000})
    return cluster.node("meta1"), cluster.node("node1"), cluster.node("node2")


def _keep(machine, words):
    """`record publish` that stays; the caller ends it."""
    return machine.background(f"exec {TOOL} -j --keep record publish {words}", limit=120)


def _found(machine, gid, service=SERVICE):
    words = f"resolve {gid} service {service}"
    return machine.run(f"{TOOL} {words}", check=False, timeout=30).status == 0


@limit(300)
def test_publish_resolve_withdraw(cluster):
    server, node1, node2 = _start(cluster)
    gid = node1.spec.address
    # a server that takes a quarter of the time-out is not asked alone
    with _keep(node1, f"{gid} service {SERVICE} raw hello -t 60") as process:
        wait_until(lambda: _found(node2, gid), 30, "the record is seen by READ")
        rows, _ = _ask(node2, f"resolve {gid} service {SERVICE} verify -t 60")
        check(rows[0]["reads"] == 1 and rows[0]["raw"] == b"hello".hex(), f"{rows[0]}")
        check([r["verdict"] for r in rows[1:]] == ["agree", "agree"], f"{rows[1:]}")

        rows, _ = _ask(node2, f"resolve {gid} service {SERVICE} count 300 -t 60")
        row = rows[0]
        order = [row[k] for k in ("min_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns")]
        check(order == sorted(order) and order[0] > 0, f"{row}")
        check((row["lookups"], row["hits"], row["reads_per_1000_lookups"]) == (300, 300, 1000),
              f"{row}")

        by_read = _ask(node2, "record list")[0]
        by_control = _ask(server, "record list")[0]
        keys = ("gid", "service", "kind", "generation", "raw", "dctn", "dc_key")
        check([[r[k] for k in keys] for r in by_read] ==
              [[r[k] for k in keys] for r in by_control], f"{by_read} {by_control}")
        check(0 < by_control[0]["lease_left_ms"] <= 20000, f"{by_control}")
        sessions = _ask(server, "session list")[0]
        check(node1.name in [s["name"] for s in sessions], f"{sessions}")

        node1.run("pkill -TERM -x krcore-metactl")
        done = process.wait(30)
        events = [r["event"] for r in json.loads(done.out)]
        check(done.status == 0 and events[0] == "published" and events[-1] == "withdrawn",
              repr(done))
    _, err = _ask(node2, f"resolve {gid} service {SERVICE}", status=1)
    check("no such record" in err, err)


@limit(300)
def test_keys_of_dc_targets_are_hidden(cluster):
    server, node1, node2 = _start(cluster)
    gid = node1.spec.address
    _ask(node1, f"record publish {gid} service {DCT_SERVICE} dctn 0x1234 dc_key 0xfeedbeef "
                "mtu 4096 mac 52:54:00:00:00:01 mrdir_rkey 77 lease_ms 200000")
    for machine in (server, node2):
        row = _ask(machine, f"record get {gid} service {DCT_SERVICE}")[0][0]
        check((row["dctn"], row["dc_key"], row["mrdir_rkey"], row["mtu_bytes"], row["mac"]) ==
              (0x1234, "(hidden)", "(hidden)", 4096, "52:54:00:00:00:01"), f"{row}")
        row = _ask(machine, f"--show-keys record get {gid} service {DCT_SERVICE}")[0][0]
        check(int(row["dc_key"], 16) == 0xfeedbeef and int(row["mrdir_rkey"], 16) == 77, f"{row}")
    dump = node2.run(f"{TOOL} table dump").out.splitlines()
    columns = dump[0].split("\t")
    check(len(columns) == 19 and columns[:3] == [gid, str(DCT_SERVICE), "dct"] and
          "(hidden)" in columns, f"{columns}")
    rows, _ = _ask(server, f"record withdraw {gid} service {DCT_SERVICE} operator")
    check(rows[0]["event"] == "withdrawn", f"{rows}")
    # withdrawn there only
    _ask(node2, f"-S {server.spec.address} record get {gid} service {DCT_SERVICE}", status=1)


@limit(300)
def test_refused_records_say_why(cluster):
    _, node1, node2 = _start(cluster)
    gid = node1.spec.address
    _ask(node1, f"record publish {gid} service {SERVICE} raw new generation 10 "
                "lease_ms 200000")
    _, err = _ask(node1, f"record publish {gid} service {SERVICE} raw old generation 9", status=1)
    check("generation" in err, err)
    _, err = _ask(node1, f"record publish {gid} service {SERVICE} raw x owner {'ab' * 16}",
                  status=1)
    check("owner" in err, err)
    _, err = _ask(node2, f"record publish {gid} service {SERVICE + 1} raw x", status=1)
    check("GID" in err, err)
    row = _ask(node2, f"record get {gid} service {SERVICE}")[0][0]
    check(row["raw"] == b"new".hex() and row["generation"] == 10, f"{row}")
    _ask(node1, f"record withdraw {gid} service {SERVICE} generation 10")


@limit(300)
def test_table_is_verified_from_elsewhere(cluster):
    server, node1, node2 = _start(cluster)
    gid = node1.spec.address
    for service in range(SERVICE, SERVICE + 8):     # nobody keeps them
        node1.run(f"{TOOL} record publish {gid} service {service} hex {service:04x} "
                  "lease_ms 200000", timeout=30)
    rows, _ = _ask(node2, "table check")
    check([(r["verdict"], r["records"], r["bad"], r["directory_errors"]) for r in rows] ==
          [("ok", 8, 0, 0)] * 2, f"{rows}")
    dump = sorted(int(line.split("\t")[1]) for line in
                  node2.run(f"{TOOL} table dump server 1").out.splitlines())
    check(dump == list(range(SERVICE, SERVICE + 8)), f"{dump}")
    check(len(_ask(server, "record list count 3")[0]) == 3, "count is not kept")
    check(len(_ask(node2, f"record list service {SERVICE + 2}")[0]) == 1, "service is not kept")
    _, err = _ask(node2, "table check server 9", status=1)
    check("no such server" in err, err)


@limit(400)
def test_raw_dump_is_decoded_by_code_of_its_own(cluster):
    """A live table, by tests/decoder, which knows nothing but the text of proto/."""
    _, node1, node2 = _start(cluster)
    gid, raw, records = node1.spec.address, "/run/krc-table.raw", 48
    _ask(node1, f"record publish {gid} service {DCT_SERVICE} dctn 0x1234 dc_key 0xfeedbeef "
                "mtu 4096 mac 52:54:00:00:00:01 mrdir_rkey 77 lease_ms 200000")
    node1.run(f"for s in $(seq {SERVICE} {SERVICE + records - 1}); do "
              f"{TOOL} record publish {gid} service $s raw v$s lease_ms 200000 || "
              "exit; done", timeout=200)
    node2.run(f"rm -f {raw}; {TOOL} table dump --raw {raw}", timeout=60)
    again = node2.run(f"{TOOL} table dump --raw {raw}", check=False)
    check(again.status == 1 and raw in again.err and "exists" in again.err, repr(again))
    check(node2.run(f"stat -c %a {raw}").out == "600\n", "others can read the keys in it")

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "table.raw")
        path.write_bytes(node2.pull(raw))
        decoder = host.TESTS / "decoder/table_decoder.py"
        rows = [json.loads(line) for line in host.run([decoder, path]).splitlines()]
        keys = [f"{gid}:{service}" for service in (DCT_SERVICE, SERVICE, SERVICE + records)]
        said = [json.loads(line)["verdict"] for line in
                host.run([decoder, path, *keys, f"{node2.spec.address}:0"]).splitlines()]
    check(said == ["hit", "hit", "miss", "miss"], f"{said}")
    ours = {(row["gid"], row["service"]): row for row in rows}
    theirs = {(row["gid"], row["service"]): row
              for row in _ask(node2, "--show-keys record list")[0]}
    check(len(rows) == len(ours) == records + 1 and set(ours) == set(theirs),
          f"{sorted(set(ours) ^ set(theirs))}")
    dct = ours[gid, DCT_SERVICE]
    check((dct["dctn"], dct["dc_key"], dct["mrdir_rkey"], dct["mac"], dct["mtu_bytes"]) ==
          (0x1234, 0xfeedbeef, 77, "52:54:00:00:00:01", 4096), f"{dct}")
    for key, row in ours.items():
        check(row["generation"] == theirs[key]["generation"] and
              row.get("raw") == theirs[key].get("raw"), f"{row} {theirs[key]}")


@limit(300)
def test_daemon_on_this_machine(cluster):
    server, _, node2 = _start(cluster)
    row = _ask(server, "status")[0][0]
    check(row["serving"] is True and row["state"] == "serving", f"{row}")
    check(row["incarnation"] in
          [r["incarnation"] for r in _ask(node2, "node show")[0] if r["type"] == "server"],
          "the incarnation seen by RDMA is another")
    check(_ask(server, "stats")[0], "no counters")
    text = server.run(f"{TOOL} stats prometheus").out
    check("# TYPE krcore_meta_" in text, text[:500])
    ports = _ask(server, "server devices")[0]
    check(any(p["in_use"] for p in ports), f"{ports}")
    check(_ask(server, "server listeners")[0][0]["state"] == "listening", "nothing listens")
    running = {r["key"]: r for r in _ask(server, "config show running")[0]}
    check(running["metaserver.lease_ms"]["value"] == "20000", f"{running}")
    _ask(server, "config check")

    server.run("sed -i 's/^lease_ms = 20000/lease_ms = 25000/' /etc/krcore.conf")
    rows = _ask(server, "server reload")[0]
    check("lease_ms" in json.dumps(rows), f"{rows}")
    server.run("echo 'colour = blue' >> /etc/krcore.conf")
    _, err = _ask(server, "server reload", status=1)
    check("colour" in err, err)
    rows, _ = _ask(server, "config check", status=1)
    check("colour" in rows[0]["error"] and rows[0]["line"] > 0, f"{rows}")
    running = {r["key"]: r for r in _ask(server, "config show running")[0]}
    check(running["metaserver.lease_ms"]["value"] == "25000", "the bad file changed something")


@limit(300)
def test_monitor_near_and_far(cluster):
    server, node1, node2 = _start(cluster)
    gid = node1.spec.address
    with server.background(f"exec {TOOL} -j monitor records > /tmp/near", limit=120) as near, \
            node2.background(f"exec {TOOL} -j -S {server.spec.address} monitor > /tmp/far",
                             limit=120) as far:
        wait_until(lambda: node2.name in [s["name"] for s in _ask(server, "session list")[0]
                                          if s["subscribed"]], 30, "node2 has subscribed")
        _ask(node1, f"record publish {gid} service {SERVICE} raw x")
        _ask(node1, f"record withdraw {gid} service {SERVICE}")
        for machine, process, path in ((server, near, "/tmp/near"), (node2, far, "/tmp/far")):
            wait_until(lambda m=machine, p=path: "gone" in m.run(f"cat {p}").out, 30,
                       f"{path} tells of the end")
            machine.run("pkill -TERM -x krcore-metactl")
            done = process.wait(30)
            rows = json.loads(machine.run(f"cat {path}").out)
            check(done.status == 0, repr(done))
            check([(r["change"], r["gid"], r["service"]) for r in rows
                   if r["event"] == "record"] ==
                  [("changed", gid, SERVICE), ("gone", gid, SERVICE)], f"{rows}")


@limit(300)
def test_kept_record_survives_a_restart(cluster):
    server, node1, node2 = _start(cluster)
    gid = node1.spec.address
    with _keep(node1, f"{gid} service {SERVICE} raw x") as process:
        wait_until(lambda: _found(node2, gid), 30, "the record is there")
        server.run("systemctl restart krcore-metaserver", timeout=60)
        wait_until(lambda: [r["service"] for r in _ask(server, "record list")[0]] == [SERVICE],
                   30, "the record is back")
        node1.run("pkill -TERM -x krcore-metactl")
        done = process.wait(30)
    events = [r["event"] for r in json.loads(done.out)]
    check("republished" in events, f"{events}")


@limit(400)
def test_a_drained_server_sends_its_clients_to_the_other(cluster):
    server, node1, node2 = _start(cluster)
    gid = node1.spec.address
    with _keep(node1, f"{gid} service {SERVICE} raw hello") as process:
        wait_until(lambda: _found(node2, gid), 30, "the record is there")
        _ask(node2, "cluster wait", timeout=120)
        row = _ask(server, "server drain")[0][0]
        check((row["state"], row["sessions"]) == ("drained", 0), f"{row}")

        # whoever comes is told why it is sent away, and finds everything at the other one
        rows, err = _ask(node2, "cluster status", status=1)
        away = [r for r in rows if r["state"] != "up"]
        check(len(away) == 1 and "drained by its operator" in json.dumps(away), f"{rows} {err}")
        check(all(_found(node2, gid) for _ in range(5)), "the other server has it")
        probe = server.run("curl -s -w '%{http_code}' http://127.0.0.1:9600/readyz").out
        check(probe.startswith("drained") and probe.endswith("503"), probe)
        _says(_doctor(node2)[1], "server", "server undrain")

        row = _ask(server, "server undrain")[0][0]
        check(row["state"] == "serving", f"{row}")
        _ask(node2, "cluster wait", timeout=150)
        # settled is not complete: who publishes comes when it is its turn
        wait_until(lambda: not node2.run(f"{TOOL} table diff", check=False).status, 60,
                   "both have the same")
        node1.run("pkill -TERM -x krcore-metactl")
        done = process.wait(30)
    check(done.status == 0, repr(done))


LOOKED, LOOKED_ENOUGH = "/run/krcore-looked", "/run/krcore-looked-enough"
LOOKING = f"""looked=0; missed=0
while [ ! -e {LOOKED_ENOUGH} ]; do
    {TOOL} -t 60 resolve %s service {SERVICE} >/dev/null || missed=$((missed + 1))
    looked=$((looked + 1)); echo $looked >{LOOKED}.new; mv {LOOKED}.new {LOOKED}
done
echo looked=$looked missed=$missed"""


def _typed(machine, step):
    """A line of the document; tables are compared until they are the same."""
    words = f"{machine.name}: {step.command}"
    print(f"    {words}", flush=True)
    if step.command.endswith("table diff"):
        wait_until(lambda: not machine.run(step.command, check=False).status, 60, words, pause=1)
    else:
        machine.run(step.command, timeout=150)


def _looked(machine):
    """How many look-ups have ended."""
    return int(machine.run(f"cat {LOOKED}").out)


@limit(900)
def test_a_rolling_restart(cluster):
    """One server after the other, by the lines of docs/operation.md: each look-up, of a client that
    was never attached before, finds what is published; after each line one begins and ends."""
    _, node1, node2 = _start(cluster)
    gid = node1.spec.address
    text = (host.CHECKOUT / "docs/operation.md").read_text()
    steps = [step for step in document.steps(text, "## A rolling restart, and an upgrade",
                                             ("node", "server"))
             if not step.command.startswith("apt-get ")]    # there is no newer one
    node2.run(f"rm -f {LOOKED_ENOUGH}; echo 0 >{LOOKED}")
    with node1.background(f"exec {TOOL} --keep record publish {gid} service {SERVICE} raw hello",
                          limit=600):
        wait_until(lambda: _found(node2, gid), 30, "the record is there")
        with node2.background(LOOKING % gid, limit=900) as looking:
            for server in cluster.nodes("metaserver"):
                for step in steps:
                    _typed(server if step.where == "server" else node1, step)
                    before = _looked(node2)     # the next to end may have begun before
                    wait_until(lambda n=before: _looked(node2) >= n + 2, 150, "look-ups end")
            node2.run(f"touch {LOOKED_ENOUGH}")
            done = looking.wait(90)
    seen = nodes.pairs(done.out.strip().splitlines()[-1])
    print(f"    {seen}", flush=True)
    check(not seen["missed"], f"{done!r}")


def _doctor(machine, prefix="", words=""):
    """(exit code, findings that are not OK by check) of doctor."""
    done = machine.run(f"{prefix} {TOOL} -j {words} doctor", check=False, timeout=90)
    found = {}
    for row in json.loads(done.out):
        check(bool(row["remedy"]) == (row["verdict"] != "OK"), f"{row}")
        if row["verdict"] != "OK":
            found.setdefault(row["check"], []).append(row)
    return done.status, found


def _says(found, name, text, verdict="FAIL"):
    rows = found.get(name, [])
    check(any(r["verdict"] == verdict and text in r["cause"] + r["remedy"] for r in rows),
          f"{name}: no {verdict} with '{text}' in {found}")


def _address_is_late(found):
    """Whether a neighbour did not answer ARP in time, as doctor says itself."""
    return any("finding its address took" in row["cause"] for row in found.get("server", []))


@limit(300)
def test_doctor_on_a_healthy_node(cluster):
    _start(cluster)
    for machine in cluster.nodes():
        # of an emulated guest that stands still an answer or an address may be late
        status, found = _doctor(machine, words="-t 60")
        for _ in range(4):
            if not _address_is_late(found):
                break
            status, found = _doctor(machine, words="-t 60")
        check(status == 0 and not any(r["verdict"] == "FAIL" for f in found.values() for r in f),
              f"{machine.name}: {found}")


@limit(600)
def test_doctor_finds_what_is_wrong_with_servers(cluster):
    _, node1, _ = _start(cluster)
    cluster.node("meta2").run("systemctl stop krcore-metaserver krcore-metaserver.socket")
    status, found = _doctor(node1)
    check(status == 1, f"{found}")
    _says(found, "server", "systemctl status")
    cluster.node("meta2").run("systemctl start krcore-metaserver", timeout=60)

    node1.push(("ff" * 32 + "\n").encode(), "/etc/krcore/cluster.key", mode=0o640)
    status, found = _doctor(node1)
    check(status == 1, f"{found}")
    _says(found, "server", "copy the cluster key")
    node1.run("chmod 0644 /etc/krcore/cluster.key")
    _says(_doctor(node1)[1], "key", "0644")
    node1.run("rm /etc/krcore/cluster.key")
    _says(_doctor(node1)[1], "key", "no cluster key", "WARN")

    _says(_doctor(node1, words="-S 127.0.0.1")[1], "route", "wrong subnet")
    _says(_doctor(node1, words="-S 192.0.2.1")[1], "route", "no route")
    _says(_doctor(node1, words="-S no-such-host.invalid")[1], "route", "getent")
    node1.run("printf '[node]\\nmetaserver = x\\n' > /etc/krcore.conf")
    found = _doctor(node1)[1]
    _says(found, "config", "krcore.conf:2")


@limit(600)
def test_doctor_finds_what_is_wrong_with_the_machine(cluster):
    _, node1, _ = _start(cluster)
    node1.link_down()
    try:
        wait_until(lambda: "PORT_DOWN" in node1.run("ibv_devinfo").out, 20, "the port is down")
        _says(_doctor(node1)[1], "port", "DOWN")
    finally:
        node1.link_up()
    wait_until(lambda: "PORT_ACTIVE" in node1.run("ibv_devinfo").out, 20, "the port is up")

    small = "prlimit --memlock=65536:65536 setpriv --reuid=nobody --regid=nogroup --clear-groups"
    _says(_doctor(node1, prefix=small)[1], "memlock", "LimitMEMLOCK")
    node1.run("chmod 0600 /dev/infiniband/rdma_cm")
    try:
        _says(_doctor(node1, prefix=small)[1], "devnode", "Permission denied")
    finally:
        node1.run("chmod 0666 /dev/infiniband/rdma_cm")
    node1.run("modprobe -r rdma_ucm")
    try:
        _says(_doctor(node1)[1], "module", "modprobe rdma_ucm")
    finally:
        node1.run("modprobe rdma_ucm")
    node1.run("date -s '2001-01-01'")
    try:
        _says(_doctor(node1)[1], "clock", "timedatectl", "WARN")
    finally:
        node1.agent.set_clock()
