# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The examples of queues, as a person would run them."""

import contextlib
import time

from . import krcore, programs
from .nodes import configured
from .suite import check, limit, wait_until

FOLDER = "client/examples"
READ, WRITE, WATCH = (f"krcore-example-{name}" for name in ("read", "batch-write", "watch"))
SERVICE = 300


def node_up(cluster):
    """MetaServers serve, nodes are up and published."""
    cluster.each(krcore.node_gone)
    krcore.setup(cluster, node=configured(cluster, lease_ms=60000,
                                           timeout_ms=krcore.LONG_TIMEOUT_MS))
    cluster.each(krcore.node_up)
    krcore.wait_published(cluster.node("node2"), cluster.nodes())


def _prepare(cluster, *names):
    node_up(cluster)
    for machine in cluster.nodes("node") + cluster.nodes("metaserver"):
        for name in names:
            programs.install(machine, f"{FOLDER}/{name}")


@contextlib.contextmanager
def serving(machine, name, words):
    """An example in its serving role, until the end of the block."""
    unit = f"test-{name}"
    machine.run(f"systemctl stop {unit} 2>/dev/null; systemctl reset-failed {unit} 2>/dev/null; "
                f"systemd-run --quiet --unit={unit} -p LimitMEMLOCK=infinity "
                f"/usr/local/bin/{name} serve {words}", check=False)
    said = f"journalctl -u {unit} _SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID " \
           f"{unit}) -o cat --no-pager"
    try:
        wait_until(lambda: "published" in machine.run(said, check=False).out, 30,
                   f"{name} serves on {machine.name}")
        yield unit
    finally:
        if machine.alive():
            machine.run(f"systemctl stop {unit}", timeout=60, check=False)


@limit(300)
def test_read(cluster):
    """Connect and READ; what is asked for wrongly is refused with its name."""
    _prepare(cluster, READ)
    server, client = cluster.node("node1"), cluster.node("node2")
    with serving(server, READ, f"{SERVICE} 'a text of node1'"):
        result = client.run(f"{READ} node1 {SERVICE}", timeout=30)
        check(result.out == "a text of node1\n", repr(result))
        check("connected in" in result.err, repr(result))
        result = client.run(f"{READ} node1 {SERVICE + 1}", timeout=30, check=False)
        check(result.status == 1 and "node1" in result.err, repr(result))
        # as a user without rights, but for that to ask a MetaServer
        result = client.run(f"setpriv --reuid=65534 --regid=krcore --clear-groups "
                            f"/usr/local/bin/{READ} node1 {SERVICE}", timeout=30)
        check(result.out == "a text of node1\n", repr(result))
    result = client.run(f"{READ} node1 {SERVICE}", timeout=30, check=False)
    check(result.status == 1, f"after its owner withdrew it: {result!r}")
    for machine in (server, client):
        krcore.node_gone(machine)
    result = client.run(f"{READ} node1 {SERVICE}", timeout=30, check=False)
    check(result.status == 1 and "/dev/krcore" in result.err, f"without module: {result!r}")


@limit(300)
def test_batch_write(cluster):
    """Batches arrive whole: written, read back, compared."""
    _prepare(cluster, WRITE)
    server, client = cluster.node("node1"), cluster.node("node2")
    with serving(server, WRITE, f"{SERVICE}"):
        for count in (1, 12, 13, 1000):
            result = client.run(f"{WRITE} node1 {SERVICE} {count}", timeout=60)
            check(result.out.startswith(f"{count} messages written"), repr(result))


@limit(400)
def test_watch(cluster):
    """Many peers in one epoll loop, one of which dies and comes back."""
    _prepare(cluster, WATCH)
    watcher, victim = cluster.node("node2"), cluster.node("node1")
    peers = [machine for machine in cluster.nodes() if machine is not watcher]
    names = " ".join(machine.name for machine in peers)
    with contextlib.ExitStack() as stack:
        for machine in peers:
            stack.enter_context(serving(machine, WATCH, f"{SERVICE}"))
        log = "/run/watch.log"
        watcher.run(f"rm -f {log}")
        with watcher.background(f"exec {WATCH} {SERVICE} 0 {names} >{log} 2>&1", limit=300):
            def said(text, times=1):
                return int(watcher.run(f"grep -c '{text}' {log}; true").out or 0) >= times

            for machine in peers:
                wait_until(lambda m=machine: said(f"^{m.name} is there"), 30,
                           f"{machine.name} is seen")
            victim.run(f"systemctl kill -s KILL test-{WATCH}")
            wait_until(lambda: said(f"^{victim.name} is gone"), 30, "its death is seen")
            with serving(victim, WATCH, f"{SERVICE}"):
                wait_until(lambda: said(f"^{victim.name} is there", 2), 60, "it is back")
            time.sleep(0.5)
