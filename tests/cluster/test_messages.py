# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Messages between programs of two nodes, as users without rights: what is sent comes back byte
for byte, a large one without a copy, numbered ones once and in order through trouble; a program
that ends is noticed, one that does not read stops nobody else."""

import collections
import contextlib
import errno
import time

from . import krcore, programs
from .nodes import (AS_USER, NAMES, card_counters, counted, given_back, held, node_up, pairs, pool,
                    saying, up)
from .suite import check, limit, needs, wait_until

PROGRAM = "/usr/local/bin/krc_message"
SERVICE, OTHER = 600, 601
MIB = 1 << 20
SEGMENT = 256 << 10         # the module posts a larger READ in parts of it: flows take turns
ANNOUNCE, DONE = 88, 72     # bytes of these packets, proto/krp_message.h
OUT = "/run/krc-message"


@contextlib.contextmanager
def talking(cluster, names=NAMES):
    """Nodes, two of them unless these are named, with the module up, and the program that sends
    messages."""
    with up(cluster, names) as machines:
        for machine in machines:
            programs.install_once(machine, "tests/module/krc_message", PROGRAM)
        try:
            yield machines
        finally:
            for machine in machines:
                machine.run("pkill -KILL -x krc_message; true")


@contextlib.contextmanager
def listening(machine, role, service=SERVICE):
    """One that listens; gives a function that ends it and returns what it has counted."""
    out = f"{OUT}-{role}.out"
    with saying(machine, f"{AS_USER} {PROGRAM} {role} {service}", "listening", out, 900):
        def end():
            machine.run(f"pkill -TERM -f '^{PROGRAM} {role} {service}$'")
            wait_until(lambda: "offers=" in machine.run(f"cat {out}").out, 60, f"{role} ends")
            last = machine.run(f"cat {out}").out.strip().splitlines()[-1]
            print(f"    {role}: {last}", flush=True)
            return pairs(last)
        try:
            yield end
        except Exception:
            print(f"    {role}: {machine.run(f'cat {out}').out}", flush=True)
            raise
        machine.run(f"pkill -KILL -f '^{PROGRAM} {role} {service}$'; true")


def _run(machine, words, timeout=200):
    result = machine.run(f"{AS_USER} {PROGRAM} {words}", timeout=timeout, check=False)
    check(not result.status, f"{result!r}; {pool(machine)}")
    return counted(result)


@limit(400)
def test_echo(cluster):
    """Messages of 0 to 4096 bytes by many connections, copied and announced; all is given back."""
    connections, rounds = 24, 64
    with talking(cluster) as (node1, node2):
        before = held(node2)
        with listening(node1, "serve") as end:
            seen = _run(node2, f"echo {node1.spec.address} {SERVICE} {connections} {rounds}")
            served = end()
        print(f"    {seen}", flush=True)
        large = connections * rounds // 16
        check(seen["open"] == connections and seen["large"] == large
              and seen["echoed"] == connections * rounds - large, f"{seen}")
        check(served["offers"] == connections and not served["failed"]
              and served["large"] == large, f"{served}")
        given_back(node2, before, 60)


def _ops(machine):
    return {(row["op"], row["bytes"]): row["count"] for row in card_counters(machine)["ops"]
            if row["side"] == "requester"}


def _again(machine):
    """What its connections have dropped because it had come before."""
    return sum(row["repeats"] for row in _connections(machine))


def _more(before, after):
    return {key: after[key] - before.get(key, 0) for key in after
            if after[key] != before.get(key, 0)}


@limit(400)
def test_a_large_message_is_announced_read_and_done(cluster):
    """1 MiB: the sender's card sends an announcement, the receiver's READs the bytes once, in the
    module's segments, to where they are wanted, and sends that it has them; no SEND has any."""
    pipe, out = f"{OUT}.in", f"{OUT}-large.out"
    with talking(cluster) as (node1, node2), listening(node1, "sink") as end:
        node2.run(f"rm -f {pipe}; mkfifo -m 666 {pipe}")
        command = f"{AS_USER} {PROGRAM} large {node1.spec.address} {SERVICE} {MIB} <>{pipe}"
        with saying(node2, command, "ready", out, 300):
            for number in (1, 2):
                time.sleep(2)       # what the connection has to say of itself has been said
                before, again = (_ops(node2), _ops(node1)), _again(node2)
                node2.run(f"echo >{pipe}")
                wait_until(lambda n=number: f"done={n}" in node2.run(f"cat {out}").out, 60,
                           "it has been fetched")
                # on a slow machine the receiver says it again after 20 ms, and the sender counts it
                wait_until(lambda b=before[1], a=again: _more(b, _ops(node1)).get(("SEND", DONE))
                           == 1 + _again(node2) - a, 30, "the receiver has said so, and once")
                sent, got = _more(before[0], _ops(node2)), _more(before[1], _ops(node1))
                print(f"    sender {sent}, receiver {got}", flush=True)
                check(sent.get(("SEND", ANNOUNCE)) == 1, f"the sender's card: {sent}")
                check(got.get(("READ", SEGMENT)) == MIB // SEGMENT, f"the receiver's card: {got}")
                check(not [key for key in sent if key == ("READ", SEGMENT)], f"the sender: {sent}")
                check(not [key for key in (*sent, *got) if key[0] == "SEND" and key[1] > 1024],
                      f"bytes were copied: {sent} {got}")
            node2.run("pkill -KILL -x krc_message; true")
        wait_until(lambda: not node2.run("pgrep -x krc_message", check=False).out, 30, "it ends")
        counts = end()
        check(counts["large"] == 2 and not counts["failed"], f"{counts}")


def _announce(to, count, size, slots, more=""):
    return (f"{AS_USER} {PROGRAM} announce {to.spec.address} {SERVICE} {count} {size} {slots}"
            f"{more}")


@limit(400)
def test_a_large_message_goes_to_a_posted_buffer(cluster):
    """512 KiB each: the receiver's card READs every byte once, to where its program has said
    before; no SEND has any. All is given back, also the buffers to which no message went."""
    count, half = 7, MIB // 2       # as many as there are buffers of this size
    with talking(cluster) as (node1, node2):
        before_held = held(node1)
        with listening(node1, "collect") as end:
            before = _ops(node1)
            node2.run(_announce(node1, count, half, count), timeout=200)
            got = _more(before, _ops(node1))
            print(f"    receiver {got}", flush=True)
            counts = end()
        check(counts["posted"] == count and not counts["fetched"], f"{counts}")
        check(got.get(("READ", SEGMENT)) == count * half // SEGMENT, f"{got}")
        check(not [key for key in got if key[0] == "SEND" and key[1] > 1024], f"copied: {got}")
        given_back(node1, before_held, 60)


def _posted_to(cluster, role):
    """Several connections to one program's buffers, with messages that fit the small one, the
    others, and none, while packets come late, twice, or not: each once, in order, byte for
    byte."""
    sizes, out = (4096, 100000, MIB // 2, MIB), f"{OUT}-announce.out"
    with talking(cluster) as (node1, node2), listening(node1, role) as end:
        cluster.fabric.disorder(node1.spec.index, 20, 20)
        cluster.fabric.loss(node2.spec.index, 20)
        command = " & ".join(_announce(node1, 24, size, 4) for size in sizes)
        node2.run(f"({command}; wait) >{out} 2>&1", timeout=300)
        cluster.fabric.reset()
        said = node2.run(f"cat {out}").out
        check(said.splitlines().count("announced=24 declined=0") == 4, said)
        counts = end()
        check(counts["fetched"] >= 24, f"1 MiB fits no buffer: {counts}")
        check(counts["posted"] + counts["fetched"] == 96 and counts["posted"] >= 24, f"{counts}")


@limit(400)
def test_posted_buffers_get_each_message(cluster):
    """Those for one message each."""
    _posted_to(cluster, "collect")


@limit(400)
def test_a_posted_buffer_gets_several_messages(cluster):
    """Those that take eight, one behind the other."""
    _posted_to(cluster, "gather")


@contextlib.contextmanager
def announcing(machine, *words):
    """A connected sender; gives a function that has it begin."""
    pipe, out = f"{OUT}-{machine.name}.in", f"{OUT}-{machine.name}.out"
    machine.run(f"rm -f {pipe}; mkfifo -m 666 {pipe}")
    with saying(machine, f"{_announce(*words, ' wait')} <>{pipe}", "ready", out, 300):
        def begin():
            machine.run(f"echo >{pipe}")
            return lambda: machine.run(f"cat {out}").out
        yield begin
        machine.run("pkill -KILL -x krc_message; true")


@needs("dc")
@limit(400)
def test_a_slow_sender_leaves_buffers_to_others(cluster):
    """It takes 200 ms to READ what one announces, and it has announced as much as it may all the
    time: half of the buffers wait for that, and messages of another go to the rest. The program
    has eight; what goes to no buffer it does not want."""
    half, count = MIB // 2, 24
    with talking(cluster, ("node1", "node2", "meta1")) as (node1, node2, slow), \
            listening(node1, "choose") as end, \
            announcing(slow, node1, 1000000, half, 16) as announce, \
            announcing(node2, node1, count, half, 1) as send:
        cluster.fabric.delay(slow.spec.index, 200000)
        try:
            announce()
            wait_until(lambda: sum(row["received"] for row in _connections(node1)) > 32, 60,
                       "it has announced")
            said = send()
            wait_until(lambda: f"announced={count}" in said(), 60, "the other is done")
            received = sum(row["received"] for row in _connections(node1))
        finally:
            cluster.fabric.reset()
        declined = pairs(said().splitlines()[-1])["declined"]
        print(f"    {declined} of {count} went to no buffer, {received} received", flush=True)
        check(declined <= count // 2, "the slow one has next to all buffers")
        slow.run("pkill -KILL -x krc_message; true")
        end()


@contextlib.contextmanager
def numbers(node1, node2):
    """Numbered messages, small and large, from node2 to node1 in a block, with what befalls them
    there; each has come once and in order, and none has failed."""
    out = f"{OUT}-numbers.out"
    with listening(node1, "sink") as end:
        command = f"{AS_USER} {PROGRAM} numbers {node1.spec.address} {SERVICE} 8"
        with saying(node2, command, "sending", out, 600) as _:
            yield
            node2.run(f"pkill -TERM -f '^{PROGRAM} numbers'")
            wait_until(lambda: not node2.run("pgrep -x krc_message", check=False).out, 150,
                       "it ends")
            said = node2.run(f"cat {out}").out
        check("sent=" in said, said + node1.run(f"cat {OUT}-sink.out").out + f"{of_port(node1)}")
        seen = dict(pair.split("=") for pair in said.strip().splitlines()[-1].split())
        counts = end()
        print(f"    {seen}", flush=True)
        check(int(seen["sent"]) > 100 and seen["completed"] == seen["sent"], f"{seen}")
        check(counts["messages"] + counts["large"] == int(seen["sent"])
              and counts["ended"] == 8 and not counts["died"], f"{counts}")


@limit(900)
def test_numbered_messages_come_once_and_in_order(cluster):
    """While packets are lost, doubled and late, and while all of one side is lost for so long
    that initiators are reset."""
    with talking(cluster) as (node1, node2), numbers(node1, node2):
        for trouble in range(6):
            time.sleep(3)
            index = (node1, node2)[trouble % 2].spec.index
            if trouble < 2:
                cluster.fabric.loss(index, 50)
            elif trouble < 4:
                cluster.fabric.disorder(index, 50, 50)
            else:
                cluster.fabric.loss(index, 1000)
            time.sleep(2)
            cluster.fabric.reset()
        time.sleep(3)


STILL_SECONDS = 5       # longer than a lane goes on asking, less than what ends a connection


@limit(900)
def test_a_node_stands_still(cluster):
    """For so long that lanes to it break: READs of large messages, too, are done when it goes
    on."""
    with talking(cluster) as (node1, node2), numbers(node1, node2):
        for node in (node2, node1, node2):
            time.sleep(3)
            node.pause()
            try:
                time.sleep(STILL_SECONDS)
            finally:
                node.resume()
        time.sleep(3)
        resets = [{key: pool(node)[key] for key in ("recoveries", "timeouts", "expired")}
                  for node in (node1, node2)]
        print(f"    {resets}", flush=True)
        check(cluster.nic.dc or all(row["recoveries"] for row in resets),
              f"no lane broke: {resets}")


@limit(400)
def test_a_message_comes_after_the_writes(cluster):
    """Each tells of a WRITE of 512 KiB, which is there then, also while packets come late; a queue
    that is closed under its WRITEs takes its own message with it and no other."""
    with talking(cluster) as (node1, node2), listening(node1, "watch") as end:
        before = held(node2)
        cluster.fabric.disorder(node1.spec.index, 20, 20)
        seen = _run(node2, f"after {node1.spec.address} {SERVICE} 48")
        cluster.fabric.reset()
        given_back(node2, before, 60)
        counts = end()
        print(f"    {seen}", flush=True)
        check(seen["dropped"] == 1 and seen["cancelled"], f"{seen}")
        check(counts["told"] == 48 and counts["last"] == 1, f"{counts}")


@limit(400)
def test_killed_at_either_end(cluster):
    """kill -9: the other end is told that the connection was reset, and nothing is left."""
    out = f"{OUT}-hold.out"
    with talking(cluster) as (node1, node2):
        before = held(node1), held(node2)
        hold = f"{AS_USER} {PROGRAM} hold {node1.spec.address} {SERVICE}"
        with listening(node1, "serve"), saying(node2, hold, "open", out, 200):
            node1.run("pkill -KILL -x krc_message")
            wait_until(lambda: "kind=" in node2.run(f"cat {out}").out, 60, "it is told")
            said = node2.run(f"cat {out}").out.splitlines()[-1]
            check(said == f"kind=6 status={-errno.ECONNRESET}", said)
        with listening(node1, "serve") as end:
            with saying(node2, hold, "open", out, 200):
                node2.run("pkill -KILL -x krc_message")
                wait_until(lambda: not _connections(node1), 60, "its death is noticed")
            counts = end()
            check(counts["died"] == 1, f"{counts}")
        wait_until(lambda: (held(node1), held(node2)) == before, 60, f"nothing is left: {before}")


KEEPALIVE_S = 2


def _keepalive(machine, seconds):
    """Have the port of a node come up with that setting, which goes with the module."""
    machine.run("krcore-metactl node down && "
                f"echo {seconds} >/sys/module/krcore/parameters/keepalive_s", timeout=60)
    node_up(machine)
    krcore.wait_ready(machine)


@limit(400)
def test_a_node_that_is_gone_is_noticed(cluster):
    """Though nothing is said on its connection; while it is there, nothing ends that. It notices,
    too, when it goes on: the other end may know the connection no more, and say nothing."""
    out = f"{OUT}-hold.out"
    with talking(cluster) as machines:
        for machine in machines:
            _keepalive(machine, KEEPALIVE_S)
        node1, node2 = machines
        before = held(node1), held(node2)
        hold = f"{AS_USER} {PROGRAM} hold {node1.spec.address} {SERVICE}"
        with listening(node1, "serve") as end, saying(node2, hold, "open", out, 300):
            asked = of_port(node2)["posted"]
            time.sleep(6 * KEEPALIVE_S)
            asked = of_port(node2)["posted"] - asked
            check(len(_connections(node1)) == 1, "it is there")
            node2.pause()
            try:
                wait_until(lambda: not _connections(node1), 60, "its end is noticed")
            finally:
                node2.resume()
            wait_until(lambda: "kind=" in node2.run(f"cat {out}").out, 60, "it is told")
            said = node2.run(f"cat {out}").out.splitlines()[-1]
            print(f"    {asked} questions and answers in {6 * KEEPALIVE_S} s; {said}", flush=True)
            check(asked >= 3, "nobody was asked")
            check(said in [f"kind=6 status={-err}" for err in (errno.ECONNRESET, errno.ETIMEDOUT)],
                  said)
            counts = end()
        check(counts["died"] == 1, f"{counts}")
        wait_until(lambda: (held(node1), held(node2)) == before, 60, f"nothing is left: {before}")


POINTS = ("offered", "taken", "open", "backlog", "announced", "fetching", "half", "closing")


def _told(machine, out):
    """What the one that was not killed says in the end: of the letters, and of each thing that was
    under way with what it has `ended`."""
    wait_until(lambda: not machine.run("pgrep -x krc_message", check=False).out, 120, "it ends")
    lines = machine.run(f"cat {out}").out.strip().splitlines()
    ended = [int(line.split()[1]) for line in lines if line.startswith("ended ")]
    print(f"        {lines[-1]} ended={dict(collections.Counter(ended))}", flush=True)
    check("=" in lines[-1], lines[-1])
    return {**pairs(lines[-1]), "ended": ended}


def _there(machine, out):
    """What an end has sent when it is at its point, and what of it is acknowledged."""
    said = [line for line in machine.run(f"cat {out}").out.splitlines()
            if line.startswith("there ")]
    return pairs(said[0].removeprefix("there ")) if said else None


def _killed_at(cluster, point, listener):
    """Both ends go to a point, one is killed there; returns what the other one is told, what the
    opener had sent by then, and how long the other one has heard nothing, at most."""
    node1, node2 = cluster.node("node1"), cluster.node("node2")
    stand, out = f"{AS_USER} {PROGRAM} stand {SERVICE} {point}", f"{OUT}-point.out"
    go = f"{AS_USER} {PROGRAM} point {node1.spec.address} {SERVICE} {point}"
    with contextlib.ExitStack() as both:
        both.enter_context(saying(node1, stand, "listening", out, 300))
        began = time.monotonic()
        both.enter_context(saying(node2, go, "there", out, 300))
        if point == "closing":      # until then it was acknowledged what was sent
            began = time.monotonic()
        wait_until(lambda: _there(node1, out), 60, "both are there")
        sent = _there(node2, out)
        if point == "fetching":     # its packets are lost, so it is under way when one is killed
            cluster.fabric.loss(node1.spec.index, 1000)
            node1.run("pkill -TERM -x krc_message")
            wait_until(lambda: "fetching" in node1.run(f"cat {out}").out, 60, "it is fetched")
        dead, alive = (node1, node2) if listener else (node2, node1)
        dead.run("pkill -KILL -x krc_message")
        cluster.fabric.reset()
        silent = time.monotonic() - began
        alive.run("pkill -TERM -x krc_message", check=False)
        return _told(alive, out), sent, silent


IN_TIME = 8     # seconds: less than those after which an end is given up that is not killed


def _in_time(told, silent):
    """Whether the guests were quick enough that an end was killed before it was given up; where
    packets were lost meanwhile, a lane that gave up is made anew only after a pause."""
    quick = silent < IN_TIME and told.get("status") != -errno.ETIMEDOUT
    if not quick:
        print(f"    once more: it took {silent:.1f} s", flush=True)
    return quick


@limit(900)
def test_killed_at_every_point(cluster):
    """kill -9 of either end at each point: the other one is told, and whatever it sent has an end;
    nothing is left, and both connect anew."""
    with talking(cluster) as (node1, node2):
        before = held(node1), held(node2)
        for point in POINTS:
            for listener in (False, True):
                print(f"    {point}: the {'listener' if listener else 'opener'} is killed",
                      flush=True)
                for _ in range(5):
                    told, sent, silent = _killed_at(cluster, point, listener)
                    wait_until(lambda: (held(node1), held(node2)) == before, 60,
                               f"nothing is left: {before}")
                    if _in_time(told, silent):
                        break
                _check_told(point, listener, told, sent)
        with listening(node1, "serve") as end:
            check(_run(node2, f"try {node1.spec.address} {SERVICE} yes")["status"] == 0, "anew")
            check(end()["offers"] == 1, "anew")


def _check_told(point, listener, told, sent):
    """Of the end that was not killed. `sent`: by the opener, before."""
    if "accept" in told:
        check(point in POINTS[:2] and told["accept"] in
              (-errno.ECONNRESET, -errno.ETIMEDOUT), f"{point}: {told}")
        return
    check(not told["stuck"] and len(told["ended"]) == told["completed"] - listener *
          sent["completed"], f"{point}: {told}, {sent}")
    fetches = not listener and point in ("announced", "fetching")
    # a dead program takes nothing; but what it has announced stays as long as it may be READ
    check({*told["ended"]} <= {-errno.ECONNRESET, 0 if fetches else -errno.ECONNRESET},
          f"{point}: {told}")
    under_way = sent["sent"] - sent["completed"] if listener else fetches
    check(told["failed"] + told["ended"].count(0) == under_way, f"{point}: {told}, {sent}")
    # what the opener has heard to have arrived has, and no more than it has sent
    least, most = (0, 0) if listener else (sent["completed"], sent["sent"])
    check(least <= told["messages"] <= most, f"{point}: {told}, {sent}")
    if point == "closing":
        check(listener or told["kind"] == 6 and told["status"] == -errno.ECONNRESET or
              told["kind"] == 5 and told["messages"] == sent["sent"], f"{point}: {told}, {sent}")
        return      # what has closed is told of nothing but what it has sent
    # no program has ended in peace but one that said so before it was killed
    check(told["ends"] == (point == "half" and not listener), f"{point}: {told}")
    refused = listener and point in POINTS[:2]      # it ends without having answered
    check(told["kind"] == 6 and told["status"] ==
          (-errno.ECONNREFUSED if refused else -errno.ECONNRESET), f"{point}: {told}")


@limit(400)
def test_who_does_not_read_stops_nobody_else(cluster):
    """One program takes nothing: what is sent to it waits, and another one of the same node is
    served."""
    with talking(cluster) as (node1, node2), listening(node1, "deaf", OTHER) as deaf, \
            listening(node1, "serve") as end:
        seen = _run(node2, f"beside {node1.spec.address} {SERVICE} {OTHER} 64")
        counts = end()
        check(deaf()["offers"] == 1, "the deaf one accepted")
        print(f"    {seen}", flush=True)
        check(seen["stuck"] and seen["echoed"] == 60 and seen["large"] == 4, f"{seen}")
        check(counts["messages"] == 60, f"{counts}")


def _slab(machine, group):
    """Bytes of kernel objects that a cgroup is charged with."""
    return int(machine.run(f"sed -n 's/^slab //p' {group}/memory.stat").out)


@limit(300)
def test_what_waits_is_charged_to_its_receiver(cluster):
    """Messages that a program does not take are memory of its cgroup, not of nobody's."""
    group, out = "/sys/fs/cgroup/krcore-messages", f"{OUT}-charged.out"
    window, bytes_each = 48, 1024   # KRC_WINDOW, and what `beside` sends
    with talking(cluster) as (node1, node2), listening(node1, "serve"):
        node1.run(f"echo +memory >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p {group}")
        command = f"echo $$ >{group}/cgroup.procs; exec {AS_USER} {PROGRAM} deaf {OTHER}"
        try:
            with saying(node1, command, "listening", out, 250):
                before = _slab(node1, group)
                check(_run(node2, f"beside {node1.spec.address} {SERVICE} {OTHER} 16")["stuck"],
                      "it is full")
                wait_until(lambda: _slab(node1, group) - before >= window * bytes_each, 30,
                           "what waits is charged")
                print(f"    {_slab(node1, group) - before} bytes", flush=True)
                node1.run(f"pkill -KILL -f '^{PROGRAM} deaf'")
            wait_until(lambda: _slab(node1, group) < before, 60, "it is given back")
        finally:
            node1.run(f"rmdir {group}", check=False)


def _connections(machine, user="root"):
    """Connections as krcore-metactl shows them to a user."""
    return [row for row in krcore.metactl(machine, "queue list", as_user=user)
            if row["type"] == "connection"]


def of_port(machine):
    """Counters of the messages of the machine's port."""
    rows = [row for row in krcore.metactl(machine, "node show", check_status=False)
            if row["type"] == "node_messages"]
    check(len(rows) == 1, f"{rows}")
    return rows[0]


def _stuck(machine):
    """The row of a connection whose peer has no room left, once there is."""
    rows = _connections(machine)
    return rows[0] if len(rows) == 1 and not rows[0]["window"] and rows[0]["waiting"] else None


@limit(400)
def test_connections_are_shown(cluster):
    """Of a program that takes nothing and one that sends to it: whose they are, window, what waits
    and the backlog; to their user, and to no other. And what the port has counted."""
    out = f"{OUT}-stuck.out"
    with talking(cluster) as (node1, node2), listening(node1, "deaf", OTHER):
        check(not _connections(node1) and not _connections(node2), "there are connections")
        check(of_port(node1)["listeners"] == 1 and of_port(node1)["connections"] == 0, "a listener")
        command = f"{AS_USER} {PROGRAM} numbers {node1.spec.address} {OTHER} 1"
        with saying(node2, command, "sending", out, 300):
            sender = wait_until(lambda: _stuck(node2), 60, "it is stuck")
            (receiver,) = _connections(node1)
            print(f"    {sender}\n    {receiver}", flush=True)
            for row, peer in ((sender, node1), (receiver, node2)):
                check(row["state"] == "open" and row["comm"] == "krc_message" and not row["errno"]
                      and row["uid"] == 65534 and row["service"] == OTHER
                      and row["gid"] == peer.spec.address, f"{row}")
                check(row["initiator"] is not None, f"{row}")
            # a CHALLENGE that was sent again, to an OPEN that was, comes when it is not awaited
            again = max(of_port(node1)["challenges"] - 1, 0)
            check(sender["foreign"] <= again and not receiver["foreign"],
                  f"{sender}, {receiver}: {again} challenges were sent again")
            check(sender["sent"] and sender["waiting"] <= sender["outstanding"] <= sender["depth"]
                  and not sender["backlog"], f"{sender}")
            check(0 < receiver["backlog"] <= receiver["received"] <= sender["sent"]
                  and not receiver["waiting"] and receiver["window"], f"{receiver}")
            pid = int(node2.run("pgrep -x krc_message").out)
            for filter_, found in (("", 1), (f" pid {pid}", 1), (f" pid {pid + 1}", 0),
                                   (" uid 65534", 1), (" uid 1", 0)):
                rows = krcore.metactl(node2, f"queue list{filter_}")
                check(len(rows) == found, f"{filter_}: {rows}")
            check(len(_connections(node2, "nobody")) == 1, "its own user does not see it")
            check(_connections(node2, "daemon") == [], "another user sees it")
            for machine in (node1, node2):
                row = of_port(machine)
                print(f"    {row}", flush=True)
                check(row["connections"] == 1 and row["posted"] and row["packets"]
                      and not row["malformed"] and row["foreign"] <= again, f"{row}")
            check(of_port(node1)["opens"] >= 1, "nobody has connected")
            node2.run("pkill -KILL -x krc_message; true")
        wait_until(lambda: not _connections(node2) and not of_port(node2)["connections"], 60,
                   "it is gone")


@limit(300)
def test_refused(cluster):
    """By the program, and where nobody listens though the service is bound or was."""
    with talking(cluster) as (node1, node2), listening(node1, "serve") as end:
        for says, status in (("no", -errno.ECONNREFUSED), ("yes", 0)):
            seen = _run(node2, f"try {node1.spec.address} {SERVICE} {says}")
            check(seen["status"] == status, f"{says}: {seen}")
        counts = end()
        check(counts["offers"] == 2 and counts["refused"] == 1, f"{counts}")
        # nobody has ever listened there
        result = node2.run(f"{AS_USER} {PROGRAM} try {node1.spec.address} {OTHER} yes", check=False)
        check(result.status == 1 and "No such file" in result.err, repr(result))


@limit(300)
def test_examples(cluster):
    """The echo server on epoll, and its client, as a person would run them."""
    server, reader = "krcore-example-echo-server", "krcore-example-echo-client"
    with talking(cluster) as (node1, node2):
        programs.install(node1, f"client/examples/{server}")
        programs.install(node2, f"client/examples/{reader}")
        with saying(node1, f"{AS_USER} /usr/local/bin/{server} {SERVICE}", "published",
                    f"{OUT}-server.out", 200):
            for _ in range(2):
                said = node2.run(f"printf 'one\\ntwo\\n' | {AS_USER} /usr/local/bin/{reader} "
                                 f"{node1.spec.address} {SERVICE}", timeout=60)
                check(said.out == "one\ntwo\n", repr(said))
            node1.run(f"pkill -KILL -f '^/usr/local/bin/{server}'")


@limit(400)
def test_two_people_talk(cluster):
    """The chat, as two would run it: names, a line each way, and who leaves; no escape sequence
    of one gets to the other's terminal."""
    chat, pipe = "krcore-example-chat", f"{OUT}-chat.in"
    outs = [f"{OUT}-chat{i}.out" for i in (1, 2)]
    with talking(cluster) as (node1, node2):
        for machine in (node1, node2):
            programs.install(machine, f"client/examples/{chat}")
        node1.run(f"rm -f {pipe}; mkfifo -m 666 {pipe}")
        with saying(node1, f"{AS_USER} /usr/local/bin/{chat} anna {SERVICE} <>{pipe}", "* waiting",
                    outs[0], 300):
            says = (f"( while ! grep -q 'anna is here' {outs[1]}; do sleep 0.2; done; "
                    "printf 'hello\\033 anna\\n'; "
                    f"while ! grep -q '^anna: ' {outs[1]}; do sleep 0.2; done ) | ")
            with saying(node2, f"{says} {AS_USER} /usr/local/bin/{chat} berta {SERVICE} "
                        f"{node1.spec.address}", "* anna is here", outs[1], 300):
                wait_until(lambda: "berta: hello" in node1.run(f"cat {outs[0]}").out, 60, "said")
                node1.run(f"echo hello berta >{pipe}")
                wait_until(lambda: "berta has left" in node1.run(f"cat {outs[0]}").out, 60, "left")
            heard = [machine.run(f"cat {out}").out.splitlines()
                     for machine, out in ((node1, outs[0]), (node2, outs[1]))]
        print("\n".join(f"    {line}" for line in heard[0]), flush=True)
        check(heard[0] == [f"* waiting at service {SERVICE}", "* berta is here",
                           "berta: hello? anna", "* berta has left"], f"{heard[0]}")
        check(heard[1] == ["* anna is here", "anna: hello berta"], f"{heard[1]}")


def _refused_files(machine, server, folder):
    """What it does not begin with: it says of which file, and why, and publishes nothing."""
    machine.run(f"truncate -s {64 * MIB} {folder}/huge")    # one byte more than there is room for
    for words, status, why in ((f"{folder}/small {folder}/none", 1,
                                f"{folder}/none: No such file or directory"),
                               (folder, 1, f"{folder}: Is a directory"),
                               (f"{folder}/small {folder}/huge", 1, f"{folder}/huge: too large"),
                               (f"{folder}/small " * 65, 2, "65 files, at most 64"),
                               ("", 2, "usage: ")):
        said = machine.run(f"timeout 30 {server} {words}", timeout=60, check=False)
        check(said.status == status and not said.out and why in said.err, f"{why}: {said!r}")


@limit(400)
def test_calls_with_large_replies(cluster):
    """Files of another node by calls that are all made at once: what comes is what there is."""
    server, caller = "krcore-example-rpc-server", "krcore-example-rpc-client"
    folder = "/run/krc-files"
    files = [f"{folder}/{name}" for name in ("large", "small", "empty")]
    with talking(cluster) as (node1, node2):
        programs.install(node1, f"client/examples/{server}")
        programs.install(node2, f"client/examples/{caller}")
        node1.run(f"mkdir -p {folder}; head -c {3 * MIB + 5} /dev/urandom >{files[0]}; "
                  f"echo some words >{files[1]}; : >{files[2]}")
        _refused_files(node1, f"{AS_USER} /usr/local/bin/{server} {SERVICE}", folder)
        want = node1.run(f"cat {' '.join(files)} {files[0]} | sha256sum").out
        with saying(node1, f"{AS_USER} /usr/local/bin/{server} {SERVICE} "
                    f"{' '.join(files)}", "published 3 files", f"{OUT}-rpc.out", 300):
            call = (f"{AS_USER} /usr/local/bin/{caller} {node1.spec.address} "
                    f"{SERVICE}")
            got = node2.run(f"( {call} {' '.join(files)} {files[0]} ) | sha256sum", timeout=120)
            check(got.out == want, f"{got!r} instead of {want}")
            none = node2.run(f"{call} {files[1]}x", timeout=60, check=False)
            check(none.status == 1 and "there is no such file" in none.err, repr(none))
            many = node2.run(f"{call} {f'{files[1]} ' * 33}", timeout=60, check=False)
            check(many.status == 2 and not many.out and "33 names" in many.err, repr(many))
            node1.run(f"pkill -KILL -f '^/usr/local/bin/{server}'")
