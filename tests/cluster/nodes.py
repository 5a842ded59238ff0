# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Guests with krcore.ko up in them, and the test program that uses it.

Owns: bringing the module up for a block and taking it away after it, in any state; running
tests/module/krc_ioctl in a guest, clients and servers as an unprivileged user; what a guest
holds for programs. On a card without DC the module makes lanes.
"""

import contextlib

from . import krcore, programs
from .cluster import each
from .nic import NIC_DEVICE
from .suite import check, wait_until

PROGRAM = "tests/module/krc_ioctl"
NAMES = ("node1", "node2")
# Emulated, an answer may take half a second: the card's model waits as long for one. What
# peers have posted must not be taken back by that.
# A guest may stand still for seconds, too: its records must not run out by that, nor may who
# asks it give it up.
NODE = {"lease_ms": 15000, "timeout_ms": 10000, "reconnect_max_ms": 1000, "margin_ms": 2000}
ALL_PROGRAMS = "krc_ioctl|krc_ioctl32|krc_stress|krc_message|krc_race"
# How a program learns that its device is gone: ENODEV, ENOTCONN when it posts, and EREMCHG for a
# WRITE that was under way, which may or may not have been done.
GONE = (-19, -107, -78)
# What RDMA is made of. The card counts it, whoever made it: restrack does not know what the
# module makes by firmware commands. The rest belongs to the netdev, which has its own life.
OBJECTS = ("PD", "UAR", "CQ", "mkey", "RMP", "QP", "DCT")


def as_user(memlock_bytes, user="nobody"):
    """The words before a program that has no rights, but may lock so much memory."""
    return (f"prlimit --memlock={memlock_bytes} "
            f"setpriv --reuid={user} --regid=nogroup --clear-groups")


AS_USER = as_user(16 << 20)


# -- the module ------------------------------------------------------------------


def node_up(machine):
    """Load the module and configure it; waits until a port is up."""
    krcore.node_up(machine, ready=False)
    wait_until(lambda: ports(machine), 60, f"{machine.name}: a port is up")


def card_counters(machine, card=NIC_DEVICE):
    """The counters of a guest's card; see nic.Nic.counters()."""
    return machine.nic.counters(machine, card)


def reads_by_bytes(machine):
    """READs that the card of a guest has completed, by their length in bytes."""
    return {row["bytes"]: row["count"] for row in card_counters(machine)["ops"]
            if row["op"] == "READ" and row["side"] == "requester"}


def objects(machine, card=NIC_DEVICE):
    """How many objects of RDMA there are on its card now, by kind."""
    if not machine.nic.dc:      # all of it is made by verbs
        words = machine.run(f"rdma resource show {machine.nic.device()}").out.split()
        return {kind: int(count) for kind, count in zip(words[2::2], words[3::2])}
    there = card_counters(machine, card)["objects"]
    return {kind: there[kind] for kind in OBJECTS}


# mlx5_ib of later kernels makes objects of its own when memory is first registered, once
# for each card that is put in: a server that listens, on port 18515, has done that.
DRIVERS_OWN = ("seen=/run/krc-registered.$(stat -Lc %i /sys/class/infiniband/* | tr '\\n' .); "
               "[ -e $seen ] || { timeout 100 ibv_rc_pingpong -g 1 >/dev/null 2>&1 & "
               "for turn in $(seq 200); do "
               "grep -qs ':4853 ' /proc/net/tcp /proc/net/tcp6 && break; "
               "kill -0 $! || break; sleep 0.2; done 2>/dev/null; "
               "kill $! 2>/dev/null; wait; touch $seen; }")


def _leave(machine):
    """End all programs of tests, and take the node away."""
    machine.run(f"pkill -KILL -x '{ALL_PROGRAMS}'; for i in $(seq 50); do "
                f"pgrep -x '{ALL_PROGRAMS}' >/dev/null || break; sleep 0.1; done")
    krcore.node_gone(machine)


def configured(cluster, **node):
    """The configuration of nodes: NODE, what this card wants, and more."""
    return {**NODE, **cluster.nic.node, **node}


@contextlib.contextmanager
def up(cluster, names=NAMES, key=None, **node):
    """MetaServers serve, and these guests, no others, have the module up and are published at
    all of them; afterwards it is gone, and the cards of nodes, where nothing else uses RDMA,
    have what they had before. On a card without DC it makes lanes. `key`: of the cluster;
    `node`: more of its configuration."""
    machines = [cluster.node(name) for name in names]
    cluster.each(krcore.node_gone)
    krcore.setup(cluster, key=key, node=configured(cluster, **node))
    users = [machine for machine in machines if "node" in machine.spec.roles]
    drivers_own = cluster.kernel.name != "6.1" and cluster.nic.dc
    if drivers_own:
        for machine in users:
            machine.run(DRIVERS_OWN)
    before = [(machine, objects(machine)) for machine in users]
    try:
        each(machines, node_up)
        each(machines, krcore.wait_ready)
        yield machines
    finally:
        alive = [machine for machine in machines if machine.alive()]
        each(alive, _leave)
        for machine in alive:
            check(machine.run("test ! -d /sys/module/krcore", check=False).status == 0,
                  f"{machine.name}: the module could not be removed")
    for machine, had in before:
        if drivers_own:
            machine.run(DRIVERS_OWN)    # if it has another card by now
        wait_until(lambda m=machine, h=had: objects(m) == h, 20,
                   f"{machine.name}: the card has what it had without the module: {had}")


def pool(machine):
    """Counters of the initiators that the programs of a node share."""
    (row,) = [row for row in krcore.metactl(machine, "stats node") if row["type"] == "pool"]
    return row


def held(machine):
    """What must be as it was when all programs have ended. Lanes are the port's: how many queue
    pairs there are says nothing of programs."""
    own = "" if machine.nic.dc else " | sed 's/ qp [0-9]*//'"
    script = (f"rdma resource show | sed 's/^[0-9]*: //'{own}; "
              "echo 1 >/proc/sys/vm/stat_refresh; "     # what each processor has not added yet
              "awk '/nr_foll_pin_acquired/ {a=$2} /nr_foll_pin_released/ {r=$2} "
              "END {print \"pinned\", a - r}' /proc/vmstat; "
              "awk '/^krcore / {print \"module\", $3}' /proc/modules")
    return machine.run(script).out + (str(objects(machine)) if machine.nic.dc else "")


def given_back(machine, before, timeout):
    """Wait until a guest has what held() said before, and nothing else."""
    seen = None

    def is_so():
        nonlocal seen
        seen = held(machine)
        return seen == before

    wait_until(is_so, timeout, lambda: f"{machine.name}: all is given back: there was {before}, "
                                       f"there is {seen}")


def programs_hold(machine):
    """What the module counts as held by programs, each kind that is not 0. What one that has ended
    held is given back by a work item."""
    (row,) = [row for row in krcore.metactl(machine, "stats node") if "pinned_bytes" in row]
    kinds = ("contexts", "queues", "regions", "pinned_bytes")
    return {kind: row[kind] for kind in kinds if row[kind]}


# -- the test program ------------------------------------------------------------


def program(machine, bits=64):
    """Its path in a guest, installed once."""
    name = PROGRAM if bits == 64 else f"{PROGRAM}32"
    target = f"/usr/local/bin/{name.rpartition('/')[2]}"
    programs.install_once(machine, name, target)
    return target


def ports(machine):
    """GIDs of the ports that are up, a line each."""
    return machine.run(f"{program(machine)} ports", check=False).out.strip()


def client(machine, words, timeout=120, bits=64):
    """Run it to its end."""
    return machine.run(f"{AS_USER} {program(machine, bits)} {words}", timeout=timeout,
                       check=False)


def finish(machine, words):
    """Tell the programs whose last words these are that their time is over."""
    machine.run(f"pkill -TERM -f '^{program(machine)} .*{words}$'")


def working(machine, queues, completed=1):
    """Wait until programs of a node have so many queues, each with as many completed requests."""
    wait_until(lambda: sum(row["completed"] >= completed
                           for row in krcore.metactl(machine, "queue list")) >= queues, 60,
               f"{machine.name}: {queues} queues have completed {completed} requests each")


@contextlib.contextmanager
def writing(machine, command, out, limit):
    """A command in the background that writes to file `out` of the guest; gives its process.

    The file is there from the beginning: the command may not have begun when one looks.
    """
    machine.run(f": >{out}")
    with machine.background(f"{command} >{out} 2>&1", limit=limit) as process:
        yield process


@contextlib.contextmanager
def saying(machine, command, begins, out, limit):
    """A command in the background; gives what it says first, which begins with this word.

    What it says later is in file `out` of the guest.
    """
    with writing(machine, command, out, limit):
        said = wait_until(lambda: machine.run(f"cat {out}").out, 60,
                          f"{machine.name}: {command} says something")
        check(said.startswith(begins), said)
        yield said


@contextlib.contextmanager
def serve(machine, *words, mib=1):
    """Memory of a process there, so much, open to peers: the PEER words of krc_ioctl."""
    command = f"KRC_SERVE_MIB={mib} {AS_USER} {program(machine)} serve 1000 {' '.join(words)}"
    with saying(machine, command, "memory ", "/run/krc-serve.out", 1000) as said:
        service = words[0] if words else "0"
        yield f"{machine.spec.address} {service} {said.splitlines()[0].removeprefix('memory ')}"
        machine.run("pkill -KILL -x krc_ioctl; true")


def pairs(words):
    """The key=value pairs of a line, whose values are numbers."""
    return {key: int(value) for key, value in (pair.split("=") for pair in words.split())}


def counted(result):
    """key=value pairs of the last line that it said."""
    check(result.out.strip(), repr(result))
    return pairs(result.out.split("\n")[-2])


def port_words(machine, number):
    """How krcore-metactl is told of a port of a card like this guest's: a target or a queue pair
    of that number."""
    return (f"dctn {number:#x} dc_key 1" if machine.nic.dc else f"ud_qpn {number:#x} ud_qkey 1")


def publish_silent(machine, service):
    """A peer of its own that is published at the address of a guest, and never answers: nobody
    has its MAC, nor its number."""
    machine.run(f"krcore-metactl -t 30 record publish {machine.spec.address} service {service} "
                f"{port_words(machine, 0x700 + service % 16)} mtu 4096 "
                f"mac 02c90399{service:04x} max_rd_atomic 16 mrdir_addr 0x1000 "
                "mrdir_rkey 0x1234 lease_ms 300000")


def tap(result, least):
    """All cases passed, and there were as many as there should be."""
    lines = result.out.splitlines()
    bad = [line for line in lines if line.startswith(("not ok", "Bail out"))]
    good = sum(line.startswith("ok ") for line in lines)
    check(not bad and not result.status, "\n".join(bad) or repr(result))
    check(good >= least, f"only {good} cases: {result!r}")
    print(f"    {good} cases", flush=True)
