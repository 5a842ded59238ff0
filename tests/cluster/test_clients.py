# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Some hundred clients at once, as ./run bench clients has ten thousand: all are served,
none is lost, and nothing is left of them when they are gone."""

import time

from . import krcore, programs
from .krcore import metactl, setup
from .suite import check, limit, wait_until

EACH = 150          # clients a guest
FIRST_SERVICE = 256 # of a program
LEASE_MS = 24000    # a client that does not renew is gone while it is watched
FEW = 64            # receive buffers: the least that srq_depth takes


def _status(server):
    (row,) = metactl(server, "status")
    return row


def _serve(cluster, **metaserver):
    """Clients of two guests come, are served, and go."""
    setup(cluster, metaserver={"lease_ms": LEASE_MS, **metaserver})
    server, guests = cluster.node("meta1"), [cluster.node("node1"), cluster.node("node2")]
    total = EACH * len(guests)
    pid = _status(server)["pid"]
    for guest in guests:
        programs.install(guest, "bench/bench_clients")
        guest.run(f"systemd-run --quiet --unit=test-clients -p LimitMEMLOCK=infinity "
                  f"/usr/local/bin/bench_clients {server.spec.address} 18600 {EACH}")
    began = time.monotonic()
    wait_until(lambda: _status(server)["sessions"] == total, 150, f"{total} clients", 1)
    print(f"    {total} clients were attached after {time.monotonic() - began:.0f} s", flush=True)
    time.sleep(1.25 * LEASE_MS / 1000)
    status = _status(server)
    check((status["sessions"], status["owners"], status["records"]) == (total,) * 3, f"{status}")
    for guest in guests:        # each has its own record, and finds one of the others'
        check(guest.run("systemctl is-active test-clients", check=False).out.strip() == "active",
              guest.run("journalctl -u test-clients --no-pager -n 3 -o cat").out)
        found = krcore.lookup(guest, guests[0].spec.address, FIRST_SERVICE + EACH - 1,
                              f"-S {server.spec.address}")
        check(found and found["reads"] <= 3, f"{found}")
    checked = guests[0].run(f"krcore-metactl -t 60 -S {server.spec.address} table check",
                            check=False)
    check(checked.status == 0, repr(checked))

    for guest in guests:
        guest.run("systemctl kill -s KILL test-clients; systemctl reset-failed")
    wait_until(lambda: _status(server)["sessions"] == 0, 60, "the sessions are gone", 1)
    wait_until(lambda: _status(server)["records"] == 0, 60, "the leases are over", 1)
    check(_status(server)["pid"] == pid, "the daemon was restarted")


@limit(300)
def test_many_clients(cluster):
    _serve(cluster)


@limit(300)
def test_many_clients_and_few_receive_buffers(cluster):
    """While no buffer is left, clients wait, and are served: none is lost, nor a buffer."""
    _serve(cluster, srq_depth=FEW)
    server = cluster.node("meta1")
    wait_until(lambda: metactl(server, "stats")[0]["receives_posted"] == FEW, 30,
               "all receive buffers are there again")
    (stats,) = metactl(server, "stats")
    check(stats["device_removals_total"] == 0, f"the device was opened anew: {stats}")
