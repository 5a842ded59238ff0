# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run demo: krcore at work, each step with the command a person would type."""

from . import host, packages
from .cluster import Cluster

# guest, what it shows, command
STEPS = (
    ("meta1", "the RDMA device of a guest", "ibv_devices"),
    ("meta1", "a MetaServer, started as on any Debian machine",
     "systemctl start krcore-metaserver && systemctl status --no-pager krcore-metaserver"),
    ("meta2", "a second one", "systemctl start krcore-metaserver"),
    ("meta1", "what the first one says of itself", "krcore-metactl status"),
    ("node1", "publish a record from another machine",
     "systemd-run --quiet --unit=krcore-demo krcore-metactl record publish service 7 "
     "value 6b72636f7265; sleep 3; systemctl is-active krcore-demo"),
    ("node2", "read it from a third one, with one-sided RDMA READs",
     "krcore-metactl resolve 10.77.0.21 service 7 count 100"),
    ("node2", "read and verify every bucket of the table from here",
     "krcore-metactl table check"),
    ("meta1", "kill the first MetaServer", "systemctl kill -s KILL krcore-metaserver"),
    ("node2", "the second one answers", "krcore-metactl resolve 10.77.0.21 service 7"),
)


def main(options):
    """Start a cluster, run the steps, print what they say."""
    with Cluster.start(kernel=options.kernel, nic=options.nic, fresh=options.fresh) as cluster:
        packages.install(cluster)
        for number, (name, text, command) in enumerate(STEPS, 1):
            print(f"\n{number}. {text}\n{name}# {command}", flush=True)
            result = cluster.node(name).run(command, timeout=60, check=False)
            print((result.out + result.err).rstrip(), flush=True)
            if result.status:
                raise host.ClusterError(f"step {number} ended with status {result.status}")
        problems = [line for machine in cluster.nodes() for line in machine.kernel_problems()]
        if problems:
            raise host.ClusterError("the guests' kernel logs have trouble:\n"
                                    + "\n".join(problems))
    print("\nTo play in such a cluster: ./run up, ./run shell node1, ./run down")
    return 0
