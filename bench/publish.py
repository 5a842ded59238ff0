# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run bench publish: what publishing costs as the table grows.

For each table size (KRCORE_BENCH_RECORDS): latency of one publication and one
withdrawal at a time; publications a second when one node publishes as many at once
as its credits let it; the turns of the lease sweep; memory of a record. Draws
build/bench/publish.svg.

Rows: case publish and withdraw in microseconds; publish_pipelined with per_second,
bytes_per_record (table and book-keeping), table_bytes, process_bytes, import_s; sweep,
turns of the lease sweep since the daemon started, in microseconds: the last, when nothing
ran out, and the longest; expire, the records of publish_pipelined after their publisher
was killed: seconds until the last was gone, and the longest turn of the sweep with them.
"""

import json
import time

import _lab
import _plot
from _lab import us
from cluster import host

USUALLY = "10 min emulated, 1 min on KVM"
PIPELINED = 5000    # records published at once
FROM = 1 << 36      # numbers that no table of the other benchmark has


def _latency(lab, report, records):
    """One at a time."""
    samples = min(_lab.SAMPLES, 2000)
    for got in lab.program(f"bench_publish -s {lab.address} -f {2 * FROM} -n {samples} latency"):
        lab.row(report, got["case"], "krcore", "us", n=got["n"], p50=us(got["p50"]),
                p99=us(got["p99"]), p999=us(got["p999"]), records=records)


def _pipelined(lab, report, records):
    """Many at once: stored while the server is away, published when it is there."""
    lab.stop_daemon()
    log = f"{_lab.FOLDER}/bench_publish.log"
    command = f"bench_publish -s {lab.address} -r {PIPELINED} -f {FROM} fill"
    with lab.service(lab.client, command, ready="stored") as pid:
        took = lab.start_daemon(records)
        deadline = time.monotonic() + 600
        while "filled" not in lab.client.run(f"tail -n 1 {log}").out:
            if time.monotonic() > deadline:
                raise host.ClusterError("the publications do not end: "
                                        + lab.client.run(f"tail -n 1 {log}; ps {pid}").out)
            time.sleep(0.5)
        lines = [json.loads(line) for line in lab.client.run(f"cat {log}").out.splitlines()]
        memory = _memory(lab, records + PIPELINED)
    points = [(p["at"], p["published"]) for p in lines if "published" in p]
    first = max((p for p in points if p[1] == 0), default=points[0])
    last = points[-1]
    if last[0] == first[0]:
        raise host.ClusterError("the publications were over before they could be counted")
    rate = (last[1] - first[1]) / ((last[0] - first[0]) / 1e9)
    lab.row(report, "publish_pipelined", "krcore", "1/s", n=last[1] - first[1],
            p50=round(rate, 1), per_second=round(rate, 1), records=records,
            import_s=round(took, 2), **memory)


def _memory(lab, records):
    """What the table and the whole process take."""
    table = lab.metric("table_shared_bytes")
    private = lab.metric("table_private_bytes")
    resident = lab.resident()
    return {"bytes_per_record": round((table + private) / records, 1), "table_bytes": int(table),
            "book_keeping_bytes": int(private), "process_bytes": resident,
            "process_bytes_per_record": round(resident / records, 1),
            "occupancy": round(lab.metric("table_occupancy_ratio"), 3)}


def _sweep(lab, report, records):
    """Turns of the lease sweep since the daemon started."""
    lab.row(report, "sweep", "krcore", "us", n=int(lab.metric("sweeps_total")),
            p50=us(lab.metric("sweep_last_seconds") * 1e9), records=records,
            longest=us(lab.metric("sweep_max_seconds") * 1e9))


def _expire(lab, report, records):
    """The publisher has been killed: its leases run out."""
    seconds = lab.await_metric("records", records, 120)
    lab.row(report, "expire", "krcore", "s", n=PIPELINED, p50=round(seconds, 1), records=records,
            sweep_longest_us=us(lab.metric("sweep_max_seconds") * 1e9))


def bench(cluster, report):
    """All sizes; then the plot."""
    lab = _lab.Lab(cluster)
    for records in _lab.SIZES:
        host.say(f"{records} records")
        _pipelined(lab, report, records)
        _sweep(lab, report, records)
        _expire(lab, report, records)
        _latency(lab, report, records)
    report.picture("publish", _plot.growth(lab.rows, lab.how))
