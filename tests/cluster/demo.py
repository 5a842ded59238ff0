# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run demo: krcore at work, each step with the command a person would type.

It is the whole story: nodes boot, their modules publish, an application reads from a node
it has never met, a MetaServer is killed, a node is restarted, and everything goes on.
With soft RoCE, which has no DC, nodes reach each other by lanes: LANES_TEXT is shown before
the steps that use them, and says what of the story only DC can do.

./run demo handoff: functions of two nodes, which pass data by 24 bytes of reference.
"""

import time

from . import host, krcore, programs
from .cluster import Cluster


def wait(condition):
    """Words that wait until a command succeeds, for a minute at most."""
    return f"for i in $(seq 60); do {condition} && break; sleep 1; done"


# guest, what it shows, command
STEPS = (
    ("meta1", "A guest and its RDMA device.",
     "uname -sr; ibv_devices"),
    ("meta1", "A MetaServer, started as any service of a Debian machine.",
     "systemctl start krcore-metaserver && systemctl status --no-pager -n 3 krcore-metaserver"),
    ("meta2", "A second one.",
     "systemctl start krcore-metaserver && krcore-metactl status"),
    ("node1", "A node publishes a record to both, and keeps its lease.",
     "systemd-run --quiet --unit=demo krcore-metactl record publish node1 service 700 "
     "raw hello --keep; " + wait("journalctl -u demo -o cat --no-pager | grep -q published")
     + "; journalctl -u demo -o cat --no-pager"),
    ("node2", "Another node reads it, 100 times, with one one-sided RDMA READ each.",
     "krcore-metactl resolve node1 service 700 count 100"),
    ("node2", "It reads the whole table, and verifies every bucket.",
     "krcore-metactl table check"),
    ("meta1", "The first MetaServer dies.",
     "systemctl stop krcore-metaserver.socket; systemctl kill -s KILL krcore-metaserver; "
     "systemctl stop krcore-metaserver; systemctl is-active krcore-metaserver || true"),
    ("node2", "The second one answers.",
     "krcore-metactl resolve node1 service 700"),
)

EXAMPLES = ("read", "watch", "echo-server", "echo-client")
RESTART = object()      # instead of a command: a power cut, and a boot
WATCHES = "journalctl -u watch -o cat --no-pager | tail -n 6"
SHOWS = ("systemd-run --quiet --unit=text -p LimitMEMLOCK=infinity krcore-example-read serve 300 "
         "'hello from {0}'; "
         "systemd-run --quiet --unit=beat -p LimitMEMLOCK=infinity krcore-example-watch serve 301; "
         "for u in text beat; do " + wait("journalctl -u $u -o cat --no-pager | grep -q published")
         + "; done; journalctl -u text -u beat -o cat --no-pager | grep published")

# what a node is started by, and what it does then: on a card with DC, and on one without
BY_DC = ("", "the module makes a DC target and publishes it to both")
BY_LANES = ("echo options krcore lanes=1 >/etc/modprobe.d/krcore.conf; sync; ",
            "its RDMA device has no DC, so the module is loaded with lanes=1, and publishes the "
            "queue pair to which lanes are asked for, to both")
LANES_TEXT = """
The RDMA device of these guests is soft RoCE (rdma_rxe), which has no DC. What follows runs on
lanes: reliable connections between two ports, which all programs of both nodes share. Only with
DC, and so not shown here, is
 * a first contact without a hand-shake: in step {meet} the first READ waits for a lane, which takes
   one message there and one back; later programs of both nodes find it made;
 * a node that holds nothing for a peer: here each has a queue pair for each lane of a peer.
`./run demo --nic cx` shows these steps on a model of a card with DC.
"""


def steps_by(steps, by):
    """Steps of a story, for nodes that are reached BY_DC or BY_LANES."""
    start, does = by
    return tuple((name, text.replace("{does}", does), command if command is RESTART
                  else command.replace("{start}", start))
                 for name, text, command in steps)


# the same, for nodes with queues
_QUEUE_STEPS = (
    ("meta1", "A guest with the stock kernel, its drivers, and an RDMA device.",
     "uname -sr; ibv_devices"),
    ("meta1", "A MetaServer.",
     "systemctl start krcore-metaserver && systemctl status --no-pager -n 3 krcore-metaserver"),
    ("meta2", "A second one.",
     "systemctl start krcore-metaserver && krcore-metactl status"),
    ("node1", "A node: {does}.",
     "{start}systemctl start krcore-node && { " + wait("krcore-metactl -j node show | "
     "grep -q '\"state\": *\"ready\"'") + "; krcore-metactl node show; }"),
    ("node2", "Another node.",       # with both: a look-up by one that comes later is a READ more
     "{start}systemctl start krcore-node && { " + wait("krcore-metactl -j node show | "
     "grep -o '\"state\": *\"ready\"' | wc -l | grep -qx 2 && "
     "krcore-metactl resolve node1 >/dev/null")
     + "; krcore-metactl resolve node1; }"),
    ("node1", "Two programs lend memory to whoever is told of it.", SHOWS.format("node1")),
    ("node2", "An application connects to a node it has never met, and READs.",
     "krcore-example-read node1 300"),
    ("node2", "And again: now the node knows the peer.",
     "krcore-example-read node1 300"),
    ("node1", "A server of messages: each that comes is sent back.",
     "systemd-run --quiet --unit=echo krcore-example-echo-server 302; "
     + wait("journalctl -u echo -o cat --no-pager | grep -q published")
     + "; journalctl -u echo -o cat --no-pager | grep published"),
    ("node2", "A program of another node talks to it.",
     "printf 'one\\ntwo\\nthree\\n' | krcore-example-echo-client node1 302"),
    ("node2", "One that stays: it READs the heartbeat of node1 ten times a second.",
     "systemd-run --quiet --unit=watch -p LimitMEMLOCK=infinity krcore-example-watch 301 0 node1; "
     + wait(WATCHES + " | grep -q there") + "; " + WATCHES),
    ("meta1", "The first MetaServer dies.",
     "systemctl stop krcore-metaserver.socket; systemctl kill -s KILL krcore-metaserver; "
     "systemctl stop krcore-metaserver; systemctl is-active krcore-metaserver || true"),
    ("node2", "Connections go on, and new ones are made with the second.",
     WATCHES + "; krcore-example-read node1 300"),
    ("node1", "The node loses power, and boots.", RESTART),
    ("node2", "Its peers have seen it go.",
     wait(WATCHES + " | grep -q gone") + "; " + WATCHES),
    ("node1", "It comes back under the same address, with new memory.",
     "systemctl start krcore-node && " + wait("krcore-metactl resolve node1 >/dev/null") + "; "
     + SHOWS.format("node1, again")),
    ("node2", "Who watched it has found it again, and so does everybody else.",
     wait(WATCHES + " | tail -n 1 | grep -q there") + "; " + WATCHES
     + "; krcore-example-read node1 300"),
    ("node2", "What the node has done.", "krcore-metactl stats node"),
)

QUEUE_STEPS, LANE_STEPS = steps_by(_QUEUE_STEPS, BY_DC), steps_by(_QUEUE_STEPS, BY_LANES)
MEETS = 6               # the step in which a program READs from a node that its own never met

FUNCTIONS = "/usr/local/lib/krcore/functions"
# a function that ends when it is to fetch data, the first one that finds a line in /run/frail;
# functions write nowhere, but they can take it out of a FIFO that somebody keeps open
FRAIL = f"""#!/bin/bash
[ -p /run/frail ] && read -r -t 0.2 once </run/frail && {{ read -r line; exit 1; }}
exec {FUNCTIONS}/bytes
"""
RUNNER = ("systemd-run --quiet --unit=handoff -p Delegate=yes /usr/local/bin/krcore-handoff "
          f"-d {FUNCTIONS} serve {{address}}; "
          + wait("journalctl -u handoff -o cat --no-pager | grep -q serving")
          + "; journalctl -u handoff -o cat --no-pager | grep serving")

# ./run demo handoff
_HANDOFF_STEPS = (
    ("meta1", "A MetaServer.",
     "systemctl start krcore-metaserver && systemctl is-active krcore-metaserver"),
    ("meta2", "A second one.",
     "systemctl start krcore-metaserver && systemctl is-active krcore-metaserver"),
    ("node1", "A node, published to both, and a runner of functions on it.",
     "{start}systemctl start krcore-node && { " + wait("krcore-metactl resolve node1 >/dev/null")
     + "; }; " + RUNNER),
    ("node2", "Another node, and another runner.",
     "{start}systemctl start krcore-node && { " + wait("krcore-metactl resolve node2 >/dev/null")
     + "; }; " + RUNNER),
    ("meta1", "A function on node1 makes 9 KiB. One on node2 is told where they are, in 24 bytes: "
     "it starts in a cgroup and namespaces of its own, connects, and READs them.",
     "krcore-handoff chain 9216 node1 node2"),
    ("meta1", "Functions that stay have their connection already.",
     "krcore-handoff --warm --times 4 chain 9216 node1 node2"),
    ("meta1", "1 MiB through five functions; each changes what it gets.",
     "krcore-handoff chain 1048576 node1 node2 node1 node2 node1"),
    ("meta1", "From one function to eight at once.",
     "krcore-handoff spread 65536 node1 node2 node2 node2 node2 node2 node2 node2 node2"),
    ("meta1", "A function that dies before it has its data: another one finds them still there.",
     "krcore-handoff --function frail chain 65536 node1 node2"),
    ("node1", "Nothing of it is left: no function runs, no region is registered.",
     wait("! ls -d /sys/fs/cgroup/system.slice/handoff.service/krcore-handoff-*/[0-9]* 2>/dev/null")
     + "; "
     "krcore-metactl stats node | grep -E 'regions|queues'"),
)

HANDOFF_STEPS = steps_by(_HANDOFF_STEPS, BY_DC)
LANE_HANDOFF_STEPS = steps_by(_HANDOFF_STEPS, BY_LANES)


def _restart(machine, say):
    began = time.monotonic()
    machine.restart()
    said = f"booted in {time.monotonic() - began:.0f} s"
    say(said)
    return said


def _prepare_functions(machine):
    machine.run(f"mkdir -p {FUNCTIONS}")
    if machine.name != "node1":     # there it makes the data
        machine.run("systemctl stop frail 2>/dev/null; rm -f /run/frail; mkfifo -m 666 /run/frail; "
                    "systemd-run --quiet --unit=frail bash -c "
                    "'exec 3<>/run/frail; echo once >&3; exec sleep infinity'")
    programs.install(machine, "handoff/krcore-handoff")
    programs.install(machine, "handoff/bytes", f"{FUNCTIONS}/bytes")
    machine.push(FRAIL.encode(), f"{FUNCTIONS}/frail", 0o755)


def _prepare(cluster, steps):
    """Programs that the packages do not have."""
    if steps in (HANDOFF_STEPS, LANE_HANDOFF_STEPS):
        cluster.each(_prepare_functions)
        return
    for machine in cluster.nodes("node"):
        for name in EXAMPLES:
            programs.install(machine, f"client/examples/krcore-example-{name}")
        machine.run("sync")     # one of them will lose its power


def _step(cluster, number, name, text, command, say):
    if command is not RESTART:
        command = command.replace("{address}", cluster.node(name).spec.address)
    say(f"\n{number}. {text}\n{name}# {'(power cut)' if command is RESTART else command}")
    if command is RESTART:
        return _restart(cluster.node(name), say)
    result = cluster.node(name).run(command, timeout=90, check=False)
    said = (result.out + result.err).rstrip()
    say(said)
    if result.status:
        raise host.ClusterError(f"step {number} ended with status {result.status}:\n{said}")
    return said


def play(cluster, steps=STEPS, say=print, first=1, node=None):
    """Run steps in a cluster without a cluster key; returns what each of them said. `node`: more of
    its nodes' configuration than the servers."""
    if steps is not STEPS:
        _prepare(cluster, steps)
    servers = ", ".join(machine.name for machine in cluster.nodes("metaserver"))
    cluster.each(lambda machine: krcore.write_config(
        machine, node={"metaservers": servers, **(node or {})}))
    return [_step(cluster, number, name, text, command, say)
            for number, (name, text, command) in enumerate(steps, first)]


def _show(text):
    print(text, flush=True)


def add_arguments(parser):
    """Which of the demos."""
    parser.add_argument("what", nargs="?", choices=("cluster", "handoff"), default="cluster",
                        help="cluster: the life of a cluster (default); handoff: functions that "
                             "hand data to each other")


def main(options):
    """Start a cluster, run the steps, print what they say."""
    with Cluster.start(kernel=options.kernel, nic=options.nic, cpus=options.cpus,
                       fresh=options.fresh) as cluster:
        if options.what == "handoff":
            play(cluster, HANDOFF_STEPS if cluster.nic.dc else LANE_HANDOFF_STEPS, _show)
        else:
            play(cluster, say=_show)
            first = 1 + len(STEPS)
            if not cluster.nic.dc:
                _show(LANES_TEXT.format(meet=first + MEETS))
            play(cluster, QUEUE_STEPS if cluster.nic.dc else LANE_STEPS, _show, first)
        problems = [line for machine in cluster.nodes() for line in machine.kernel_problems()]
        if problems:
            raise host.ClusterError("the guests' kernel logs have trouble:\n"
                                    + "\n".join(problems))
    if cluster.how() != "KVM":
        print("\nThe guests were emulated: times above say nothing of real hardware.")
    print("\nTo play in such a cluster: ./run up, ./run shell node1, ./run down")
    return 0
