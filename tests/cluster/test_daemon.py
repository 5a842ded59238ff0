# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore-metaserver as a service on a real RDMA device: what systemd sees of it, its
sandbox, reload, watchdog, control socket, and what it says when something is missing."""

import json
import re

from . import krcore, packages
from .suite import check, limit, wait_until

UNIT = "krcore-metaserver"
SOCKET = "/run/krcore/metaserver.sock"
DROP_IN = f"/run/systemd/system/{UNIT}.service.d/test.conf"
EXPOSURE_MAX = 2.5
SERVICE = 310
PACKAGE = f"/run/{UNIT}.deb"


def _sessions(machine):
    """The sessions that are attached, and since when."""
    return sorted((row["id"], row["gid"]) for row in krcore.metactl(machine, "session list"))


def _drop_in(machine, *lines):
    """Change the unit for this boot; no lines take the change back."""
    if lines:
        machine.push(("[Service]\n" + "\n".join(lines) + "\n").encode(), DROP_IN)
    machine.run(f"{'' if lines else f'rm -f {DROP_IN}; '}systemctl daemon-reload")


def _restarted(machine, old_pid):
    """It serves, and not as the process it was."""
    state = krcore.unit(machine, "MainPID", "ActiveState")
    return state["ActiveState"] == "active" and state["MainPID"] not in ("0", old_pid)


class _Changed:
    """`with`: the unit of a machine has these lines, and is whole again afterwards."""

    def __init__(self, machine, *lines):
        self._machine = machine
        self._lines = lines

    def __enter__(self):
        self._machine.run(f"mkdir -p $(dirname {DROP_IN})")
        _drop_in(self._machine, *self._lines)

    def __exit__(self, *_unused):
        _drop_in(self._machine)
        self._machine.run(f"systemctl reset-failed {UNIT}; systemctl restart {UNIT}", timeout=90)


def _status(machine):
    (row,) = krcore.metactl(machine, "status")
    return row


def _configured(machine, key):
    rows = krcore.metactl(machine, "config show running")
    (value,) = [row["value"] for row in rows if row["key"] == key]
    return value


@limit(300)
def test_ready_means_serving(cluster):
    krcore.setup(cluster)
    server = cluster.node("meta1")
    state = krcore.unit(server, "ActiveState", "Type", "StatusText", "MainPID")
    check(state["ActiveState"] == "active" and state["Type"] == "notify", f"{state}")
    check(state["StatusText"].startswith("serving: "), f"{state}")
    status = _status(server)
    check(status["serving"] and status["state"] == "serving", f"{status}")
    check(str(status["pid"]) == state["MainPID"], f"{status} {state}")
    check(status["registered_bytes"] > 0 and status["devices"] == 1, f"{status}")


@limit(300)
def test_sandbox(cluster):
    krcore.setup(cluster)
    server = cluster.node("meta1")
    pid = krcore.pid(server)
    process = dict(line.split(":\t", 1) for line in
                   server.run(f"cat /proc/{pid}/status").out.splitlines() if ":\t" in line)
    for field in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
        check(int(process[field], 16) == 0, f"{field} {process[field]}")
    check(process["NoNewPrivs"].strip() == "1", process["NoNewPrivs"])
    check(process["Seccomp"].strip() == "2", process["Seccomp"])
    check(server.run(f"ps -o user= -p {pid}").out.strip() == "krcore", "not user krcore")
    limits = server.run(f"grep 'locked memory' /proc/{pid}/limits").out
    check("unlimited" in limits, limits)
    out = server.run(f"systemd-analyze security {UNIT} --no-pager | tail -1", timeout=60).out
    exposure = float(re.search(r": ([0-9.]+)", out)[1])
    check(exposure <= EXPOSURE_MAX, out)
    check("denied" not in krcore.journal(server, 100), krcore.journal(server, 100))


@limit(300)
def test_journal_has_fields(cluster):
    krcore.setup(cluster)
    server = cluster.node("meta1")
    incarnation = _status(server)["incarnation"]
    out = server.run(f"journalctl -u {UNIT} -o json -n 200 --no-pager "
                     f"KRCORE_INCARNATION={incarnation}").out
    lines = [json.loads(line) for line in out.splitlines()]
    check(any(line["MESSAGE"] == "serving" for line in lines), f"{lines[-3:]}")
    check(all(line["SYSLOG_IDENTIFIER"] == UNIT for line in lines), f"{lines[-3:]}")


@limit(300)
def test_control_socket(cluster):
    krcore.setup(cluster)
    server = cluster.node("meta1")
    check("control socket handed over" in krcore.journal(server, 50), krcore.journal(server))
    check(server.run(f"stat -c '%a %U %G' {SOCKET}").out.strip() == "660 krcore krcore", "mode")
    stranger = server.run("setpriv --reuid nobody --regid nogroup --clear-groups "
                          "krcore-metactl status", check=False)
    check(stranger.status == 1 and "Permission denied" in stranger.err, repr(stranger))
    member = server.run("setpriv --reuid nobody --regid nogroup --groups krcore "
                        "krcore-metactl status", check=False)
    check(member.status == 0, repr(member))

    # Stopped for maintenance it stays stopped, whatever client asks meanwhile.
    server.run(f"systemctl stop {UNIT}", timeout=60)
    check(server.run(f"test -e {SOCKET}", check=False).status, "the socket is left over")
    server.run("krcore-metactl -t 5 status", timeout=60, check=False)
    check(krcore.unit(server, "ActiveState")["ActiveState"] == "inactive", "asking has started it")
    krcore.start(server)
    check(_status(server)["serving"], "does not serve")


@limit(300)
def test_own_control_socket(cluster):
    """Without the .socket unit the daemon makes the socket, inside the sandbox."""
    krcore.setup(cluster)
    server = cluster.node("meta1")
    server.run(f"systemctl stop {UNIT} {UNIT}.socket; systemctl mask --runtime {UNIT}.socket",
               timeout=60)
    try:
        krcore.start(server)
        check(server.run(f"stat -c '%a %U %G' {SOCKET}").out.strip() == "660 krcore krcore",
              "mode")
        check(_status(server)["serving"], "does not serve")
        old = krcore.pid(server)
        server.run(f"kill -9 {old}")
        wait_until(lambda: _restarted(server, old), 30, "restart")
        wait_until(lambda: server.run("krcore-metactl status", check=False).status == 0, 30,
                   "the socket that was left over is replaced")
    finally:
        server.run(f"systemctl unmask --runtime {UNIT}.socket; systemctl stop {UNIT}; "
                   f"systemctl start {UNIT}.socket {UNIT}", timeout=90)


@limit(400)
def test_reload(cluster):
    krcore.setup(cluster)
    server, node = cluster.node("meta1"), cluster.node("node1")
    # an answer that comes late does not end its session, so nothing but a reload could
    unit = krcore.publish(node, SERVICE, "hello", "-t 60", at=[server])
    before = krcore.unit(server, "MainPID")
    sessions = [row["id"] for row in krcore.metactl(server, "session list")]

    krcore.write_config(server, {"lease_ms": "25000", "port": "18601"})
    server.run(f"systemctl reload {UNIT}")
    wait_until(lambda: _configured(server, "metaserver.lease_ms") == "25000", 20, "reload")
    check("metaserver.port = 18601 needs a restart" in krcore.journal(server, 50),
          krcore.journal(server))
    check(_configured(server, "metaserver.port") == "18600", "port was taken over")

    krcore.write_config(server, {"lease_ms": "26000", "zork": "1"})
    result = server.run(f"systemctl reload {UNIT}", check=False)
    check(result.status != 0, "a bad file was reloaded")
    server.run(f"systemctl kill -s HUP {UNIT}")
    wait_until(lambda: "the old configuration stays" in krcore.journal(server, 50), 20,
               "the daemon refuses a bad file")
    written = server.run(f"cat {krcore.CONFIG}").out.splitlines()
    line = 1 + written.index("zork = 1")
    check(f"{krcore.CONFIG}:{line}: unknown key 'zork'" in krcore.journal(server, 50),
          krcore.journal(server))
    check(_configured(server, "metaserver.lease_ms") == "25000", "half a reload")

    state = krcore.unit(server, "ActiveState", "SubState", "MainPID", "NRestarts")
    check((state["ActiveState"], state["SubState"], state["MainPID"]) ==
          ("active", "running", before["MainPID"]), f"{state}")
    check([row["id"] for row in krcore.metactl(server, "session list")] == sessions,
          "sessions did not survive")
    check(krcore.lookup(node, node.spec.address, SERVICE), "the record did not survive")
    node.run(f"systemctl stop {unit}", timeout=60)


@limit(200)
def test_installation_makes_a_key(cluster):
    """The first installation of a MetaServer makes a cluster key, which its daemon takes; a later
    one leaves it as it is."""
    krcore.setup(cluster)
    server = cluster.node("meta1")
    server.run(f"systemctl stop {UNIT}", timeout=60)
    configure = f"sh /var/lib/dpkg/info/{UNIT}.postinst configure"
    try:
        server.run(configure, timeout=60)
        made = server.run(f"cat {krcore.KEY_FILE}").out
        check(re.fullmatch(r"[0-9a-f]{64}\n", made), repr(made))
        check(server.run(f"stat -c %U:%G:%a {krcore.KEY_FILE}").out == "root:krcore:640\n",
              "nobody else reads it")
        server.run(f"systemctl restart {UNIT}", timeout=90)
        (stats,) = krcore.metactl(server, "stats")
        check(stats["auth_required"] == 1, f"{stats}")
        server.run(f"{configure} 1.0", timeout=60)
        check(server.run(f"cat {krcore.KEY_FILE}").out == made, "it was made anew")
    finally:
        krcore.write_key(server, None)


@limit(500)
def test_an_upgrade_stops_no_serving_one(cluster):
    """The package put in again, as an upgrade does it, leaves a MetaServer that serves as it is:
    same process, same session, same record. Taken off it ends, and the key stays; purged
    nothing of it is left; installed anew it takes the key that is there, and serves."""
    krcore.setup(cluster, key=krcore.new_key())
    server, node = cluster.node("meta1"), cluster.node("node1")
    server.push(packages.package(UNIT), PACKAGE)
    krcore.publish(node, 801, "stays", "-t 60", at=[server])
    key = server.run(f"cat {krcore.KEY_FILE}").out
    process = krcore.pid(server)
    before = _sessions(server)
    unit = f"/lib/systemd/system/{UNIT}.service"    # the version before had other lines
    server.run(f"sed -i s/TimeoutStartSec=.*/TimeoutStartSec=77/ {unit} && systemctl daemon-reload")
    server.run(f"dpkg -i {PACKAGE}", timeout=200)
    check(krcore.unit(server, "NeedDaemonReload", "TimeoutStartUSec") ==
          {"NeedDaemonReload": "no", "TimeoutStartUSec": "1min 30s"},
          "systemd has the unit of the version before")
    check(krcore.pid(server) == process, "it was stopped")
    check(_sessions(server) == before and krcore.has_record(server, 801),
          f"{before}, then {_sessions(server)}")
    try:
        server.run(f"dpkg -r {UNIT}", timeout=200)
        check(server.run(f"kill -0 {process}", check=False).status,
              "it serves without being installed")
        server.run(f"dpkg -P {UNIT}", timeout=200)
        left = server.run(f"ls -d /usr/sbin/{UNIT} /lib/systemd/system/{UNIT}* "
                          "/usr/share/krcore/monitoring 2>/dev/null", check=False).out
        check(not left, f"left behind: {left}")
    finally:
        server.run(f"dpkg -i {PACKAGE}", timeout=200)
    check(server.run(f"cat {krcore.KEY_FILE}").out == key, "the key is another one")
    krcore.start(server)
    wait_until(lambda: krcore.has_record(server, 801), 60, "the publisher is back")


@limit(200)
def test_a_changed_key_is_taken_over(cluster):
    """krcore-metaserver.path has the daemon read its key again when that is another file."""
    krcore.setup(cluster, key=krcore.new_key())
    server, node = cluster.node("meta1"), cluster.node("node1")
    ask = f"krcore-metactl -t 10 -S {server.spec.address} table check"
    key = krcore.new_key()
    krcore.write_key(node, key)
    check(node.run(ask, check=False).status, "a client with another key is served")
    made = f"{krcore.KEY_FILE}.new"
    server.push(f"{key}\n".encode(), made)
    server.run(f"chown root:krcore {made} && chmod 640 {made} && mv {made} {krcore.KEY_FILE}")
    wait_until(lambda: not node.run(ask, check=False).status, 60, "the client is served", pause=1)


@limit(300)
def test_a_key_that_only_the_unit_can_read(cluster):
    """The cluster key as an encrypted credential: the server proves it to its clients, and no
    file has it that group krcore could read."""
    krcore.setup(cluster, key=krcore.new_key())
    server, node = cluster.node("meta1"), cluster.node("node1")
    server.run(f"systemd-creds setup && systemd-creds encrypt --name=cluster {krcore.KEY_FILE} "
               "/etc/krcore/cluster.cred", timeout=60)
    krcore.write_key(server, None)
    krcore.write_config(server, {"key_file": "credential:cluster", "require_auth": "yes"})
    with _Changed(server, "LoadCredentialEncrypted=cluster:/etc/krcore/cluster.cred",
                  "ExecReload=", "ExecReload=/bin/kill -HUP $MAINPID"):  # see operation.md
        server.run(f"systemctl restart {UNIT}", timeout=90)
        (stats,) = krcore.metactl(server, "stats")
        check(stats["auth_required"] == 1, f"{stats}")
        unit = krcore.publish(node, SERVICE, "hello")
        wait_until(lambda: krcore.metactl(server, "session list"), 30,
                   "a client with the key is attached")
        server.run(f"systemctl reload {UNIT}")
        wait_until(lambda: "configuration reloaded" in krcore.journal(server, 50), 20,
                   "the daemon reads its credential again")
        check(krcore.metactl(server, "session list"), "a reload lost the key")
        node.run(f"systemctl stop {unit}", timeout=60)
        # not handed over any more: it is no server without a key now, it does not start
        _drop_in(server)
        result = server.run(f"systemctl restart {UNIT}", timeout=90, check=False)
        check(result.status != 0, "it started without the credential that it is told to use")
        check("no such credential was handed over" in krcore.journal(server, 50),
              krcore.journal(server))
        krcore.write_config(server, {})


@limit(300)
def test_stop_lets_clients_go(cluster):
    krcore.setup(cluster)
    server, node = cluster.node("meta1"), cluster.node("node1")
    unit = krcore.publish(node, SERVICE, "hello", at=cluster.nodes("metaserver"))
    server.run(f"systemctl stop {UNIT}", timeout=60)
    state = krcore.unit(server, "ActiveState", "Result", "ExecMainStatus")
    check(state == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"},
          f"{state}")
    check("all clients have gone" in krcore.journal(server, 20), krcore.journal(server))
    row = krcore.lookup(node, node.spec.address, SERVICE)
    check(row, "the other MetaServer does not answer")
    krcore.start(server)
    node.run(f"systemctl stop {unit}", timeout=60)


@limit(300)
def test_watchdog(cluster):
    krcore.setup(cluster)
    server = cluster.node("meta1")
    with _Changed(server, "WatchdogSec=10", "WatchdogSignal=SIGKILL"):
        server.run(f"systemctl restart {UNIT}", timeout=60)
        old = krcore.pid(server)
        server.run(f"kill -STOP {old}")
        wait_until(lambda: _restarted(server, old), 60, "a daemon that hangs is restarted")
        out = server.run(f"journalctl -u {UNIT} -n 30 --no-pager").out
        check("Watchdog timeout" in out, out)
        check(_status(server)["serving"], "does not serve")


@limit(300)
def test_metrics(cluster):
    krcore.setup(cluster)
    server, node = cluster.node("meta1"), cluster.node("node1")
    unit = krcore.publish(node, SERVICE, "hello", at=[server])
    text = server.run("exec 3<>/dev/tcp/127.0.0.1/9600; "
                      r"printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3; cat <&3").out
    values = dict(re.findall(r"^(krcore_meta_\S+) (\S+)$", text, re.MULTILINE))
    (stats,) = krcore.metactl(server, "stats")
    check(float(values["krcore_meta_records"]) == stats["records"] >= 1, f"{stats}")
    check(float(values["krcore_meta_serving"]) == 1, values["krcore_meta_serving"])
    check(float(values['krcore_meta_answers_total{result="ok"}']) >= 1, text)
    check(int(values["krcore_meta_publish_duration_seconds_count"]) >= 1, text)
    check(float(values["krcore_meta_registered_bytes"]) > 0, text)
    node.run(f"systemctl stop {unit}", timeout=60)


@limit(400)
def test_card_removed_and_back(cluster):
    krcore.setup(cluster)
    server = cluster.node("meta1")
    pid = krcore.pid(server)
    server.remove_nic()
    wait_until(lambda: _status(server)["state"] == "waiting", 30, "it notices")
    check("no longer serving" in krcore.journal(server, 20), krcore.journal(server))
    wait_until(lambda: krcore.unit(server, "StatusText")["StatusText"].startswith("waiting: "), 20,
               "status line")
    server.add_nic()
    wait_until(lambda: _status(server)["state"] == "serving", 60, "it serves again")
    check(krcore.pid(server) == pid, "it was restarted")


@limit(400)
def test_start_without_a_device_says_why(cluster):
    krcore.setup(cluster)
    server = cluster.node("meta1")
    server.run(f"systemctl stop {UNIT}", timeout=60)
    server.remove_nic()
    try:
        with _Changed(server, "TimeoutStartSec=5", "Restart=no"):
            result = server.run(f"systemctl start {UNIT}", timeout=60, check=False)
            check(result.status != 0, "READY without a device")
            check("device" in krcore.journal(server, 20), krcore.journal(server))
            server.add_nic()
    finally:
        wait_until(lambda: krcore.unit(server, "ActiveState")["ActiveState"] == "active", 60,
                   "active")


@limit(300)
def test_start_without_locked_memory_says_why(cluster):
    krcore.setup(cluster)
    server = cluster.node("meta1")
    with _Changed(server, "LimitMEMLOCK=65536", "TimeoutStartSec=5", "Restart=no"):
        result = server.run(f"systemctl restart {UNIT}", timeout=60, check=False)
        check(result.status != 0, "READY without memory")
        check(re.search("memory|MEMLOCK", krcore.journal(server, 20)), krcore.journal(server))
