# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore in the guests, as an administrator would have it: configuration, key, services."""

import contextlib
import json
import re
import secrets

from .suite import check, wait_until

UNIT = "krcore-metaserver"
NODE_UNIT = "krcore-node"
CONFIG = "/etc/krcore.conf"
KEY_FILE = "/etc/krcore/cluster.key"
MODULE_OPTIONS = "/etc/modprobe.d/krcore-tests.conf"


def write_config(machine, metaserver=None, node=None):
    """The guest's krcore.conf: these keys, the default for all others but `settle_ms`: a
    server that was restarted is not to settle for half a minute."""
    lines = []
    for section, values in (("metaserver", {"settle_ms": 3000, **(metaserver or {})}),
                            ("node", node)):
        lines.append(f"[{section}]")
        lines += [f"{key} = {value}" for key, value in (values or {}).items()]
    machine.push(("\n".join(lines) + "\n").encode(), CONFIG)


def write_key(machine, key):
    """The guest's cluster key; None takes it away."""
    if key is None:
        machine.run(f"rm -f {KEY_FILE}")
        return
    machine.push(f"{key}\n".encode(), KEY_FILE)
    machine.run(f"chown root:krcore {KEY_FILE} && chmod 640 {KEY_FILE}")


def write_module_options(machine, **options):
    """What krcore.ko of a guest is loaded with."""
    words = " ".join(f"{name}={value}" for name, value in options.items())
    machine.run(f"echo options krcore {words} >{MODULE_OPTIONS}")


def new_key():
    """A random cluster key."""
    return secrets.token_hex(32)


# A server whose READ takes a quarter of the time-out is given up, and the other is asked. Emulated
# guests may stand still for so long, with the default, and what is counted is of one that answers.
LONG_TIMEOUT_MS = 20000


def setup(cluster, key=None, metaserver=None, node=None, lanes=True):
    """Configure all guests and (re)start the MetaServers; every test begins with it.

    Guests of the role "metaserver" serve, and all guests know them in topology's order.
    `lanes`: where a card has no DC, the module makes lanes from the next time on that it is
    loaded, and has ports.
    """
    servers = cluster.nodes("metaserver")
    known = {"metaservers": ", ".join(machine.name for machine in servers), **(node or {})}

    def configure(machine):
        machine.run(f"systemctl stop {UNIT} 'test-*' 2>/dev/null; systemctl reset-failed; true")
        write_config(machine, metaserver, known)
        write_key(machine, key)
        write_module_options(machine, lanes=int(lanes and not cluster.nic.dc))

    cluster.each(configure)
    cluster.each(start, "metaserver")


def start(machine):
    """Start the MetaServer of a guest; an error with its journal when it does not serve."""
    started = machine.run(f"systemctl start {UNIT}", timeout=60, check=False)
    check(started.status == 0, f"{started!r}\n{journal(machine)}")


def unit(machine, *names):
    """Properties of the MetaServer's unit, as systemd has them."""
    out = machine.run(f"systemctl show {UNIT} -p {','.join(names)}").out
    return dict(line.split("=", 1) for line in out.splitlines())


def pid(machine):
    """The MetaServer's process, in digits; "0" for none."""
    return unit(machine, "MainPID")["MainPID"]


def journal(machine, lines=20):
    """The last lines the MetaServer said."""
    return machine.run(f"journalctl -u {UNIT} --no-pager -n {lines} -o cat", check=False).out


def metactl(machine, words, check_status=True, timeout=30, as_user="root"):
    """Rows of a krcore-metactl command, from its JSON."""
    command = f"krcore-metactl -j {words}"
    if as_user != "root":
        command = f"runuser -u {as_user} -- {command}"
    result = machine.run(command, timeout=timeout, check=check_status)
    return json.loads(result.out) if result.out.strip() else []


def publish(machine, service, value, *options, at=()):
    """Publish a record of this guest that stays; returns the unit that keeps it.

    It is published when one MetaServer has it: the others have it in the end, those of `at` when
    this returns.
    """
    unit = f"test-publish-{service}"
    machine.run(f"systemd-run --quiet --collect --unit={unit} krcore-metactl record publish "
                f"{machine.spec.address} service {service} raw {value} {' '.join(options)} --keep")
    # "republished": the first attempt to attach was in vain
    wait_until(lambda: re.search("event (re)?published", machine.run(
        f"journalctl -u {unit} --no-pager -o cat -b", check=False).out), 30,
        f"{machine.name} publishes service {service}")
    for server in at:
        wait_until(lambda s=server: has_record(s, service), 60,
                   f"{server.name} has service {service}")
    return unit


def has_record(server, service):
    """Whether a MetaServer has a record of this service."""
    return any(row["service"] == service for row in metactl(server, "record list"))


@contextlib.contextmanager
def names(machine):
    """A DNS server of this guest for itself: gives a function that has it say this, as dnsmasq's
    options, and nothing else."""
    before = machine.run("cat /etc/resolv.conf 2>/dev/null || true").out

    def say(*records):
        machine.run("systemctl stop test-dns 2>/dev/null; "
                    "systemd-run --quiet --collect --unit=test-dns dnsmasq --keep-in-foreground "
                    "--no-resolv --no-hosts --bind-interfaces --listen-address=127.0.0.1 "
                    f"{' '.join(records)}")
        wait_until(lambda: ":53 " in machine.run("ss -Hlun").out, 30, "the DNS server is there")

    try:
        machine.push(b"nameserver 127.0.0.1\n", "/etc/resolv.conf")
        yield say
    finally:
        machine.run("systemctl stop test-dns", check=False)
        machine.push(before.encode(), "/etc/resolv.conf")


def lookup(machine, address, service, *words):
    """One row of `resolve`, or None when there is no such record.

    A datagram of rdma_cm that is lost is sent again after 4.3 s: it waits for more than one.
    """
    result = machine.run(f"krcore-metactl -j -t 30 resolve {address} service {service} "
                         f"{' '.join(words)}", timeout=90, check=False)
    if result.status:
        return None
    (row,) = json.loads(result.out)
    return row


def node_rows(machine, kind):
    """Rows of one type of `node show`: node, node_port, node_server of the module."""
    shown = machine.run("krcore-metactl -j node show", timeout=60, check=False)
    return [row for row in json.loads(shown.out) if row["type"] == kind]


def netdev(machine):
    """The network interface that has the guest's address."""
    shown = machine.run(f"ip -o address show to {machine.spec.address}").out
    return shown.split()[1]


def node_up(machine, ready=True):
    """Load the module and configure it; waits until all its MetaServers are ready.

    Where no port can be up, as without DC and lanes, there is nothing to wait for.
    """
    machine.run("modprobe krcore && krcore-metactl node up", timeout=60)
    if ready and any(port["state"] == "up" for port in node_rows(machine, "node_port")):
        wait_ready(machine)


def wait_ready(machine):
    """Wait until all MetaServers of the module are ready, and have the record of each port."""
    wait_until(lambda: all(row["state"] == "ready" and row["records"]
                           for row in node_rows(machine, "node_server")),
               60, f"the MetaServers of {machine.name} are ready and have its record")


def wait_published(reader, machines):
    """Wait until the reader finds the nodes' own records."""
    for machine in machines:
        wait_until(lambda m=machine: lookup(reader, m.spec.address, 0), 60,
                   f"{machine.name} is published")


def node_gone(machine):
    """Take the node down and the module out, whatever state they are in."""
    machine.run(f"systemctl stop {NODE_UNIT}; "
                # to disable it has systemd read all units again, which takes a while emulated
                f"! systemctl is-enabled -q {NODE_UNIT} || systemctl disable -q {NODE_UNIT}; "
                f"systemctl reset-failed {NODE_UNIT} 2>/dev/null; "
                "[ ! -d /sys/module/krcore ] || "
                # a program that was killed may not have closed it yet
                "{ krcore-metactl node down; "
                "for i in $(seq 100); do modprobe -r krcore && break; sleep 0.1; done; "
                "[ ! -d /sys/module/krcore ]; }", timeout=90)
