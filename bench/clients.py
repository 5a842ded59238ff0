# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench clients: one MetaServer with very many clients attached.

KRCORE_BENCH_CLIENTS of them (10000 unless said otherwise), spread over the other
guests; each has its own queue pair and owner, READs the root, keeps one record and
renews it in time.

Rows: attach, in microseconds, with per_second, and how often a connection broke before its
client was attached and was made again; memory, bytes that one client takes of
the server's process, of its whole guest (queue pairs and the like are the kernel's) and
of the guest it runs in; renew, microseconds of the server's process for one renewal,
with per_second and the share of a processor that is; miss, a look-up meanwhile beside a
raw READ; leave, seconds until all are gone after they were killed.
"""

import contextlib
import json
import os
import re
import time

import _lab
from _lab import us
from cluster import host

USUALLY = "10 min emulated"
CLIENTS = int(os.environ.get("KRCORE_BENCH_CLIENTS", "10000"))
WATCH_SECONDS = 30
SESSIONS = 'connections{state="ready"}'
LEASE_MS = 180000   # renewed every third: what an emulated processor can take
CONFIG = f"""\
[metaserver]
key_file =
require_auth = no
clients_max = {CLIENTS + 16}
lease_ms = {LEASE_MS}
idle_timeout_ms = {LEASE_MS}
"""


def _memory(machine):
    """Bytes of a guest that are free for programs and the kernel."""
    machine.run("sync; echo 3 >/proc/sys/vm/drop_caches")
    found = re.search(r"MemAvailable:\s+(\d+) kB", machine.run("cat /proc/meminfo").out)
    return int(found.group(1)) * 1024


def _attached(lab, machine):
    """What the clients of a guest said when all were attached."""
    out = machine.run(f"grep -B 2 -m 1 holding {_lab.FOLDER}/bench_clients.log").out
    last, took, _ = out.splitlines()
    return json.loads(last), json.loads(took)


def _report_attach(lab, report, machines):
    seconds, clients, again, worst = 0, 0, 0, {}
    for machine in machines:
        last, took = _attached(lab, machine)
        seconds += last["ms"] / 1000
        clients += last["attached"]
        again += last["again"]
        worst = max(worst, took, key=lambda t: t.get("p50", 0))
    lab.row(report, "attach", "krcore", "us", n=clients, p50=us(worst["p50"]),
            p99=us(worst["p99"]), p999=us(worst["p999"]), clients=clients,
            per_second=round(clients / seconds, 1), again=again)


def _report_renewals(lab, report):
    """What the daemon does when all are attached and want nothing but their leases."""
    pid = lab.daemon_pid()
    renewed, before = lab.metric("renewed_total"), lab.cpu_seconds(pid)
    time.sleep(WATCH_SECONDS)
    renewed, after = lab.metric("renewed_total") - renewed, lab.cpu_seconds(pid)
    cpu, seconds = after.process - before.process, after.uptime - before.uptime
    if not renewed:
        raise host.ClusterError("nobody renews")
    lab.row(report, "renew", "krcore", "us", n=int(renewed), p50=round(cpu / renewed * 1e6, 1),
            clients=CLIENTS, per_second=round(renewed / seconds, 1),
            processor_share=round(cpu / seconds, 4),
            sweep_max_us=us(lab.metric("sweep_max_seconds") * 1e9))


def _report_lookups(lab, report):
    """A look-up among all these; misses, since the records are not this program's."""
    with lab.service(lab.server, f"bench_read_server {lab.address} 18700 64"):
        ours, raw = lab.program(f"bench_lookup -s {lab.address} -p {lab.address}:18700 "
                                f"-n {_lab.SAMPLES} -c miss")
    for system, got, more in (("krcore", ours, {"peer": "raw_read", "ratio_of": "cost",
                                                "ratio": round(ours["p50"] / raw["p50"], 3)}),
                              ("raw_read", raw, {})):
        lab.row(report, "miss", system, "us", n=got["n"], p50=us(got["p50"]), p99=us(got["p99"]),
                p999=us(got["p999"]), clients=CLIENTS, **more)


def bench(cluster, report):
    """All of it, with one number of clients."""
    lab = _lab.Lab(cluster)
    machines = [machine for machine in cluster.nodes() if machine is not lab.server]
    cluster.each(lambda machine: machine.run("systemctl stop krcore-metaserver || true"))
    lab.server.push(CONFIG.encode(), "/etc/krcore.conf", 0o644)
    lab.server.run("systemctl reset-failed; systemctl start krcore-metaserver", timeout=120)
    free = {machine.name: _memory(machine) for machine in cluster.nodes()}
    resident = lab.resident()
    with contextlib.ExitStack() as stack:
        for i, machine in enumerate(machines):
            share = CLIENTS // len(machines) + (i < CLIENTS % len(machines))
            with host.step(f"attaching {share} clients in {machine.name}"):
                stack.enter_context(lab.service(
                    machine, f"bench_clients {lab.address} 18600 {share}", ready="holding"))
        for name in (SESSIONS, "owners", "records"):
            lab.await_metric(name, CLIENTS, 30)
        _report_attach(lab, report, machines)
        lab.row(report, "memory", "krcore", "bytes", n=CLIENTS, clients=CLIENTS,
                server_process=round((lab.resident() - resident) / CLIENTS),
                server_guest=round((free[lab.server.name] - _memory(lab.server)) / CLIENTS),
                client_guest=round(sum(free[m.name] - _memory(m) for m in machines) / CLIENTS))
        _report_renewals(lab, report)
        _report_lookups(lab, report)
        began = time.monotonic()
    sessions = lab.await_metric(SESSIONS, 0, 600)
    records = sessions + lab.await_metric("records", 0, 600)
    lab.row(report, "leave", "krcore", "s", n=CLIENTS, p50=round(sessions, 1), clients=CLIENTS,
            ended_in=round(time.monotonic() - began, 1), records_gone_after=round(records, 1),
            server_process_left=round((lab.resident() - resident) / CLIENTS))
