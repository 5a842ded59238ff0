# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run demo: krcore at work, each step with the command a person would type."""

from . import host, krcore
from .cluster import Cluster

# guest, what it shows, command
STEPS = (
    ("meta1", "A guest and its RDMA device.",
     "uname -sr; ibv_devices"),
    ("meta1", "A MetaServer, started as any service of a Debian machine.",
     "systemctl start krcore-metaserver && systemctl status --no-pager -n 3 krcore-metaserver"),
    ("meta2", "A second one.",
     "systemctl start krcore-metaserver && krcore-metactl status"),
    ("node1", "A node publishes a record to both, and keeps its lease.",
     "systemd-run --quiet --unit=demo krcore-metactl record publish node1 service 7 "
     "raw hello --keep; sleep 3; journalctl -u demo -o cat --no-pager"),
    ("node2", "Another node reads it, 100 times, with one one-sided RDMA READ each.",
     "krcore-metactl resolve node1 service 7 count 100"),
    ("node2", "It reads the whole table, and verifies every bucket.",
     "krcore-metactl table check"),
    ("meta1", "The first MetaServer dies.",
     "systemctl stop krcore-metaserver.socket; systemctl kill -s KILL krcore-metaserver; "
     "systemctl stop krcore-metaserver; systemctl is-active krcore-metaserver || true"),
    ("node2", "The second one answers.",
     "krcore-metactl resolve node1 service 7"),
)


def play(cluster, say=print):
    """Run the steps in a cluster without a cluster key; returns what each of them said."""
    said = []
    servers = ", ".join(machine.name for machine in cluster.nodes("metaserver"))
    cluster.each(lambda machine: krcore.write_config(machine, node={"metaservers": servers}))
    for number, (name, text, command) in enumerate(STEPS, 1):
        say(f"\n{number}. {text}\n{name}# {command}")
        result = cluster.node(name).run(command, timeout=60, check=False)
        said.append((result.out + result.err).rstrip())
        say(said[-1])
        if result.status:
            raise host.ClusterError(f"step {number} ended with status {result.status}:\n"
                                    f"{said[-1]}")
    return said


def main(options):
    """Start a cluster, run the steps, print what they say."""
    with Cluster.start(kernel=options.kernel, nic=options.nic, fresh=options.fresh) as cluster:
        play(cluster, say=lambda text: print(text, flush=True))
        problems = [line for machine in cluster.nodes() for line in machine.kernel_problems()]
        if problems:
            raise host.ClusterError("the guests' kernel logs have trouble:\n"
                                    + "\n".join(problems))
    if cluster.how() != "KVM":
        print("\nThe guests were emulated: times above say nothing of real hardware.")
    print("\nTo play in such a cluster: ./run up, ./run shell node1, ./run down")
    return 0
