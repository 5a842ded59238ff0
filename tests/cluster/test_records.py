# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Records by way of the module: programs without the cluster key, as an unprivileged user."""

import time

from . import krcore, programs
from .krcore import metactl
from .nodes import AS_USER, client, serve, tap, up
from .suite import check, limit, wait_until

READ = "krcore-example-read"
SERVICE = 300
KIND_DCT, KIND_LANE = 1, 3      # KRP_KIND_*


def _sessions(server):
    """Clients of a MetaServer, by their names."""
    return sorted(row["name"] for row in metactl(server, "session list"))


@limit(400)
def test_lookup_publish_watch(cluster):
    """Every rule of the three calls, as an unprivileged user; in a 32-bit program as well."""
    kind = KIND_DCT if cluster.nic.dc else KIND_LANE
    with up(cluster) as (node1, node2), serve(node2) as peer:
        for bits in (64, 32):
            said = client(node1, f"{peer} records", timeout=200, bits=bits)
            tap(said, 50)
            check(f"# kind of a port: {kind}\n" in said.out, f"no port of kind {kind}: {said.out}")


@limit(400)
def test_a_program_needs_no_cluster_key(cluster):
    """Two programs of users who may not read the key meet; the servers see nodes only."""
    key = krcore.new_key()
    with up(cluster) as (node1, node2):
        for machine in cluster.nodes():
            krcore.write_key(machine, key)
        cluster.each(lambda machine: machine.run(f"systemctl restart {krcore.UNIT}"), "metaserver")
        for machine in (node1, node2):
            machine.run("krcore-metactl node up", timeout=60)
            krcore.wait_ready(machine)
            programs.install(machine, f"client/examples/{READ}",
                             f"/usr/local/bin/{READ}")
        before = wait_until(lambda: (_sessions(cluster.node("meta1")) == ["node1", "node2"]
                                     and ["node1", "node2"]), 60, "both nodes are clients")
        refused = node1.run(f"{AS_USER} cat {krcore.KEY_FILE}", check=False)
        check(refused.status, "an unprivileged user reads the key")
        with node1.background(f"{AS_USER} {READ} serve {SERVICE} 'no key at all'", limit=200):
            def read():
                result = node2.run(f"{AS_USER} {READ} node1 {SERVICE}", timeout=30, check=False)
                return result if result.status == 0 else None
            result = wait_until(read, 60, "the bytes of the other program")
            check(result.out == "no key at all\n", repr(result))
            check(_sessions(cluster.node("meta1")) == before,
                  f"programs are clients of the MetaServer: {_sessions(cluster.node('meta1'))}")
            # the service is the first program's, whoever the second one is
            other = node1.run(f"{READ} serve {SERVICE} taken", timeout=30, check=False)
            check(other.status and "another program has it" in other.err, repr(other))
            # the node goes and comes back: what was published is there again
            node1.run("krcore-metactl node down", timeout=60)
            time.sleep(1)
            node1.run("krcore-metactl node up", timeout=60)
            krcore.wait_ready(node1)
            wait_until(lambda: krcore.lookup(node2, node1.spec.address, SERVICE), 60,
                       "it is published again")
