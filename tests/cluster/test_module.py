# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore.ko as programs and administrators meet it: published, connected to, used,
misused, and taken away, on the stock mlx5 driver over the ConnectX model, and by lanes.

Programs run as an unprivileged user; what they say is checked byte by byte in them
(tests/module). Whether something reached the wire that should not have is asked of the
cards, which count what they refuse.
"""

import errno
import time

from . import krcore
from .krcore import metactl
from .nodes import (AS_USER, GONE, as_user, client, finish, given_back, held, node_up, port_words,
                    program, pool, reads_by_bytes, saying, serve, tap, up, working, writing)
from .nodes import card_counters as _card, counted as _counts
from .suite import check, limit, wait_until


def _records(server):
    """The records of ports that a MetaServer has, by (address as GID, service)."""
    rows = metactl(server, "record list")
    return {(row["gid"], row["service"]): row for row in rows if row["kind"] == server.nic.kind}


# -- life ------------------------------------------------------------------------


@limit(400)
def test_node_publishes_itself_and_goes(cluster):
    with up(cluster) as (node1, node2):
        meta1, meta2 = cluster.node("meta1"), cluster.node("meta2")
        for server in (meta1, meta2):
            rows = wait_until(lambda s=server: len(_records(s)) == 2 and _records(s), 30,
                              f"{server.name} has both nodes")
            for row in rows.values():
                number = row["dctn" if cluster.nic.dc else "ud_qpn"]
                check(row["service"] == 0 and number and row["generation"], f"{row}")
        shown = node1.run("krcore-metactl -j node show").out
        check(cluster.nic.provider in shown, shown)
        node2.run("krcore-metactl node down", timeout=60)
        wait_until(lambda: len(_records(meta1)) == 1, 20, "a node that goes withdraws its record")
        node2.run("krcore-metactl node up", timeout=60)
        wait_until(lambda: len(_records(meta1)) == 2, 30, "and publishes it when it is back")


@limit(400)
def test_module_stays_while_it_is_open(cluster):
    with up(cluster) as (node1, _):
        with serve(node1):
            refused = node1.run("rmmod krcore", check=False)
            check(refused.status and "in use" in refused.err, repr(refused))
        for _ in range(5):
            wait_until(lambda: not node1.run("rmmod krcore", check=False).status, 20,
                       "it can be removed when nobody has it open")
            node_up(node1)


@limit(400)
def test_node_goes_down_beside_a_program_whose_memory_nobody_brings(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        # as root: with a page of its own a program without rights stops nobody but itself
        with saying(node1, f"{program(node1)} {peer} paged", "posting", "/run/paged.out", 200):
            time.sleep(1)
            down = node1.run("krcore-metactl node down", timeout=60, check=False)
            check(not down.status, repr(down))
            check(not node1.run("pgrep -x krc_ioctl", check=False).status, "it has ended")
            node1.run("pkill -KILL -x krc_ioctl")


@limit(300)
def test_a_context_outlives_its_port(cluster):
    """Its calls say that the port is gone, also when the node is up again."""
    pipe, out = "/run/krc-outlive.in", "/run/krc-outlive.out"
    with up(cluster) as (node1, node2), serve(node2) as peer:
        node1.run(f"rm -f {pipe}; mkfifo -m 666 {pipe}")
        words = f"{AS_USER} {program(node1)} {peer} outlive <>{pipe}"
        with writing(node1, words, out, 250) as process:
            wait_until(lambda: node1.run(f"cat {out}").out == "open\n", 60, "it is there")
            node1.run("krcore-metactl node down", timeout=60)
            node_up(node1)
            krcore.wait_ready(node1)
            node1.run(f"echo >{pipe}")
            status = process.wait(60).status
        result = node1.run(f"cat {out}; exit {status}", check=False)
        tap(result, 16)


# -- use -------------------------------------------------------------------------


@limit(400)
def test_traffic_is_right(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        tap(client(node1, f"{peer} traffic", 300), 60)


@limit(400)
def test_traffic_is_right_from_a_32_bit_program(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        tap(client(node1, f"{peer} traffic", 300, bits=32), 60)


@limit(400)
def test_file_in_the_hands_of_several(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        before = held(node1)
        for bits in (64, 32):
            tap(client(node1, f"{peer} life", 150, bits), 6)
        given_back(node1, before, 30)


MIB = 1 << 20


@limit(400)
def test_memory_of_any_kind(cluster):
    """Private and shared memory, huge pages, a memfd, 64 MiB of it, and 4 MiB in a request."""
    with up(cluster) as (node1, node2):
        node1.run("echo 32 >/proc/sys/vm/nr_hugepages; grep -q '^HugePages_Free: *[1-9]' "
                  "/proc/meminfo")
        try:
            with serve(node2, mib=4) as peer:
                tap(node1.run(f"{as_user(256 * MIB)} {program(node1)} {peer} kinds", timeout=200,
                              check=False), 48)
        finally:
            node1.run("echo 0 >/proc/sys/vm/nr_hugepages")


@limit(600)
def test_gibibytes_stop_nobody(cluster):
    """A region of 2 GiB is several keys: right over their ends, and while it is registered and
    taken back another program registers regions of its own. Without DC 1 GiB is the most."""
    gibibytes = 2 if cluster.nic.dc else 1
    with up(cluster) as (node1, node2), serve(node2) as peer:
        before = held(node1)
        tap(node1.run(f"{program(node1)} {peer} large {gibibytes}", timeout=400,
                      check=False), 14 if cluster.nic.dc else 10)
        given_back(node1, before, 60)


PARAMETERS = "/sys/module/krcore/parameters"
LOOPS = 4


def _awake(machine, spin_us, linger_us):
    machine.run(f"echo {spin_us} >{PARAMETERS}/spin_us && echo {linger_us} "
                f">{PARAMETERS}/linger_us")


@limit(900)
def test_traffic_is_right_with_little_and_however_long_it_is_waited_awake(cluster):
    """One initiator of the least depth for all, and each way to wait for a completion, which
    may be changed with requests under way."""
    with up(cluster, pool_initiators=1, pool_depth=16) as (node1, node2), serve(node2) as peer:
        pool, = (row for row in metactl(node1, "stats node") if row["type"] == "pool")
        check(pool["initiators"] == 1, f"{pool}")
        for spin_us, linger_us in ((0, 0), (10000, 10000), (0, 10000), (10000, 0)):
            _awake(node1, spin_us, linger_us)
            tap(client(node1, f"{peer} traffic", 300), 60)
        for name in ("spin_us", "linger_us"):
            refused = node1.run(f"echo many >{PARAMETERS}/{name}", check=False)
            check(refused.status, f"{name} is no number")
        out = "/run/krc-loop.out"
        begins = (f"for i in $(seq {LOOPS}); do {AS_USER} {program(node1)} {peer} loop 600 "
                  f">{out}.$i 2>&1 & done; wait")
        with node1.background(begins, limit=600) as loops:
            working(node1, LOOPS)
            node1.run("for i in $(seq 40); do for v in 0 10000 7; do "
                      f"echo $v >{PARAMETERS}/spin_us; echo $(((v + i) % 10001)) "
                      f">{PARAMETERS}/linger_us; sleep 0.05; done; done", timeout=60)
            working(node1, LOOPS, completed=20)
            finish(node1, "loop 600")
            loops.wait(90)
        for i in range(1, LOOPS + 1):
            counts = _counts(node1.run(f"cat {out}.{i}"))
            check(counts["done"] > 10 and
                  not counts["refused"] + counts["failed"] + counts["wrong"], f"{counts}")


LEASE_MS, ENTRY_BYTES = 200, 64    # of an entry of a node's directory of memory
ATTEMPTS = 6    # to use it often within a lease


@limit(300)
def test_reference_is_read_once_a_lease(cluster):
    """Use of a peer's memory all the time costs one READ of its directory a lease."""
    seconds = 5
    most = seconds * 1000 // LEASE_MS + 2
    with up(cluster) as (node1, node2), serve(node2) as peer:
        for _ in range(ATTEMPTS):
            before = reads_by_bytes(node1)
            counts = _counts(client(node1, f"{peer} watch {seconds}"))
            after = reads_by_bytes(node1)
            check(not counts["refused"] + counts["failed"] + counts["wrong"], f"{counts}")
            if counts["done"] > 2 * most:
                break
            print(f"    a guest stood still: {counts}", flush=True)
    more = {size: after[size] - before.get(size, 0) for size in after}
    check(counts["done"] > 2 * most, f"it did not use the memory all the time: {counts}")
    check(more[4096] == counts["done"], f"it READ pages, the card {more}")
    check(2 <= more.get(ENTRY_BYTES, 0) <= most,
          f"READs of the directory beside {counts['done']} of pages: {more}, at most {most}")
    print(f"    {counts['done']} READs, and {more[ENTRY_BYTES]} of the directory", flush=True)


@limit(300)
def test_service_of_a_program(cluster):
    with up(cluster) as (node1, node2):
        meta1 = cluster.node("meta1")
        with serve(node2, "4242") as peer:
            # it is bound as soon as one of the servers has it
            wait_until(lambda: any(service == 4242 for _, service in _records(meta1)), 30,
                       lambda: f"it is published: {_records(meta1)}")
            counts = _counts(client(node1, f"{peer} loop 5"))
            check(counts["done"] and not counts["refused"] + counts["failed"] + counts["wrong"],
                  f"{counts}")
        wait_until(lambda: not any(service == 4242 for _, service in _records(meta1)), 20,
                   "the record of a program that was killed is withdrawn")


# -- misuse ----------------------------------------------------------------------


@limit(400)
def test_bad_input_to_every_call(cluster):
    with up(cluster) as (node1, _):
        tap(client(node1, "bad", 150), 150)
        tap(client(node1, "bad", 150, bits=32), 150)


@limit(500)
def test_any_input(cluster):
    with up(cluster) as (node1, _):
        before = held(node1)
        for seed in (1, 2):
            tap(client(node1, f"random {seed} 6000", 200), 2)
        tap(client(node1, "random 3 3000", 200, bits=32), 2)
        given_back(node1, before, 30)


QUEUE_DEPTH = 64        # of tests/module/random.c: so many a recovery leaves in doubt at most


@limit(500)
def test_any_requests(cluster):
    """Requests that are nearly right, on a queue that works: refused, or done without an
    error, and neither card had anything to refuse. What is in doubt is so by a recovery that
    the node has counted."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        before = held(node1)
        refused, failed = _card(node2)["naks_error"], _card(node1)["completions_error"]
        for seed, bits in ((1, 64), (2, 64), (3, 32)):
            recoveries = pool(node1)["recoveries"]
            result = client(node1, f"{peer} random {seed} 2000", 150, bits=bits)
            tap(result, 12)
            recoveries = pool(node1)["recoveries"] - recoveries
            (doubted,) = [int(line.partition("=")[2]) for line in result.out.splitlines()
                          if line.startswith("doubted=")]
            print(f"    {doubted} in doubt, {recoveries} recoveries", flush=True)
            check(doubted <= recoveries * QUEUE_DEPTH, "more than recoveries leave")
        check(_card(node2)["naks_error"] == refused, "the peer's card refused something")
        check(_card(node1)["completions_error"] == failed, "a request failed on the card")
        tap(client(node1, f"{peer} traffic", 150), 60)
        given_back(node1, before, 30)


@limit(400)
def test_bad_requests_never_reach_the_wire(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        refused, failed = _card(node2)["naks_error"], _card(node1)["completions_error"]
        tap(client(node1, f"{peer} bad", 200), 50)
        check(_card(node2)["naks_error"] == refused, "the peer's card refused something")
        check(_card(node1)["completions_error"] == failed, "a request failed on the card")


MOVES = 3


@limit(400)
def test_queue_leaves_a_peer_that_stops_answering(cluster):
    """Connected to another peer at its first error, with requests still under way: it works
    at once, and each of those completes."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        with node1.background(f"{AS_USER} {program(node1)} {peer} reconnect 900 "
                              ">/run/reconnect.out 2>&1", limit=900) as moving:
            for _ in range(MOVES):
                working(node1, 1)
                cluster.cut("node1", "node2")
                # it leaves at the first error; a new one comes only when the peer answers
                wait_until(lambda: not any(row["completed"] for row in
                                           metactl(node1, "queue list")), 60,
                           "the queue has left")
                cluster.fabric.reset()
            working(node1, 1)
            finish(node1, "reconnect 900")
            moving.wait(120)
        counts = _counts(node1.run("cat /run/reconnect.out"))
        check(counts["moved"] >= MOVES and not counts["refused"] + counts["lost"], f"{counts}")


@limit(300)
def test_region_taken_back_under_readers(cluster):
    with up(cluster) as (node1, node2):
        refused = _card(node2)["naks_error"]
        with serve(node2, "0", "900") as peer:
            with node1.background(f"{AS_USER} {program(node1)} {peer} watch 900 >/run/watch.out",
                                  limit=900) as watch:
                working(node1, 1, completed=10)
                node2.run("pkill -TERM -f 'krc_ioctl serve 1000 0 900$'")
                watch.wait(60)
            counts = _counts(node1.run("cat /run/watch.out"))
            check(counts["done"] and counts["refused"] == 100 and
                  not counts["failed"] + counts["wrong"], f"{counts}")
            said = wait_until(lambda: node2.run("grep error= /run/krc-serve.out", check=False).out,
                              20, "the region is taken back").strip()
            check("error=0" in said and int(said.rpartition("=")[2]) >= 200, said)
        check(_card(node2)["naks_error"] == refused, "a READ came after the key had gone")


@limit(300)
def test_many_regions_are_one_wait(cluster):
    """Many regions are taken back in one call, for which their lease is waited for once."""
    with up(cluster, names=("node1",)) as (node1,):
        tap(client(node1, "many"), least=14)


# -- what others publish, and what servers refuse ------------------------------------

ODD = 600       # the first service of records with odd values
MAC = "mac 02c903990099"
GOOD = f"PORT {MAC} mtu 4096 max_rd_atomic 16"
ODD_RECORDS = (
    # what is published, and what who connects to it is told, by DC and by lanes: the ends of a
    # lane agree on what they can
    ("raw text", "Protocol error", "Protocol error"),
    (GOOD.replace(MAC, "lid 5"), *2 * ("Address family not supported by protocol",)),
    (GOOD.replace("max_rd_atomic 16", "max_rd_atomic 1"), "Invalid argument", "connected"),
    (GOOD.replace("mtu 4096", "mtu 256"), "Network is unreachable", "connected"),
    (GOOD, "connected", "connected"),
    (None, *2 * ("No such file or directory",)),
)
ENDED = "Cannot send after transport endpoint shutdown"


def _said_at_the_end_of_the_port(machine, words):
    """What a call that waits for a MetaServer says when the node is taken down."""
    out = "/run/krc-ended.out"
    with writing(machine, f"{AS_USER} {program(machine)} {words}", out, 100) as call:
        wait_until(lambda: not machine.run("pgrep -x krc_ioctl", check=False).status, 30,
                   "it has begun")
        time.sleep(2)
        check(not machine.run(f"cat {out}").out, "it waits")
        machine.run("krcore-metactl node down", timeout=60)
        call.wait(30)
    return machine.run(f"cat {out}").out


@limit(500)
def test_connect_says_why_not(cluster):
    """Records that lead nowhere, each with its own error, and a port that goes meanwhile."""
    # a READ of a MetaServer that does not answer takes a quarter of this
    with up(cluster, timeout_ms=600000) as (node1, node2):
        krcore.wait_ready(node1)
        address = node2.spec.address
        for service, (record, by_dc, by_lanes) in enumerate(ODD_RECORDS, ODD):
            said = by_dc if cluster.nic.dc else by_lanes
            if record:
                words = record.replace("PORT", port_words(node2, 0x77))
                node2.run(f"krcore-metactl -t 30 record publish {address} service {service} "
                          f"{words} lease_ms 120000")
            got = client(node1, f"{address} {service} 0 0 0 0 0 fresh").out.strip()
            check(got == said, f"{record}: {got!r} instead of {said!r}")
        for server in ("meta1", "meta2"):
            cluster.cut("node1", server)
        try:
            said = _said_at_the_end_of_the_port(node1, f"{address} 0 0 0 0 0 0 fresh")
            check(said == f"{ENDED}\n", said)
        finally:
            cluster.fabric.reset()


def _bound(machine, service, count=1):
    """How many services could be bound, and why not more: a positive errno."""
    counts = _counts(client(machine, f"bind {service} {count}"))
    return counts["bound"], -counts["error"]


@limit(500)
def test_bind_says_why_not(cluster):
    """Whose the record is, which boot is newer, how many there may be, and when it is over."""
    with up(cluster) as (node1, _):
        krcore.wait_ready(node1)
        publish = f"krcore-metactl -t 30 record publish {node1.spec.address} lease_ms 120000 raw x"
        node1.run(f"{publish} service 701 owner {'ab' * 16}")
        check(_bound(node1, 701) == (0, errno.EEXIST), f"another's: {_bound(node1, 701)}")
        got = _bound(node1, 1000, 300)
        check(got == (256, errno.EDQUOT), f"services of a user: {got}")
        check(_bound(node1, 1000) == (1, 0), "then there is room again")

        servers = cluster.nodes("metaserver")
        for server in servers:
            krcore.write_config(server, metaserver={"records_per_owner_max": 4})
            server.run(f"systemctl reload {krcore.UNIT}")
        bound, error = _bound(node1, 1300, 8)
        # beside the record of its port, and perhaps with one that is about to be withdrawn
        check(bound in (3, 4) and error == errno.EDQUOT, f"records of an owner: {bound}, {error}")
        for server in servers:
            krcore.write_config(server)
            server.run(f"systemctl reload {krcore.UNIT}")
        check(_bound(node1, 1300, 8) == (8, 0), "as many as it may have now")

        # the same owner, as if it had booted an hour later; its own session ends by that
        mine, = krcore.node_rows(node1, "node")
        node1.run(f"{publish} service 702 owner {mine['owner'].replace(':', '')} "
                  f"generation {mine['generation'] + 3600 * 10**9}")
        wait_until(lambda: _bound(node1, 702)[1] == errno.ESTALE, 60, "a newer boot")
        for server in servers:
            server.run(f"systemctl stop {krcore.UNIT}", timeout=60)
        said = _said_at_the_end_of_the_port(node1, "bind 703 1")
        check(said == f"bound=0 error=-{errno.ESHUTDOWN}\n", said)


# -- death -----------------------------------------------------------------------


@limit(600)
def test_killed_programs_leave_nothing(cluster):
    count = 60
    with up(cluster) as (node1, node2), serve(node2) as peer:
        _counts(client(node1, f"{peer} loop 2"))
        # what a program had is given back in the background
        wait_until(lambda: "pinned 0" in held(node1), 30, "nothing is pinned")
        before = held(node1)
        script = (f"for i in $(seq {count}); do {AS_USER} {program(node1)} {peer} hold 100 "
                  ">/run/hold.$((i % 4)) & p[$((i % 4))]=$!; sleep 0.$((RANDOM % 9 + 1)); "
                  "[ $i -lt 4 ] || kill -KILL ${p[$(((i + 1) % 4))]}; done; "
                  # those that are left are killed when all of them have requests under way
                  "for t in $(seq 600); do n=$(grep -l holding /run/hold.[023] | wc -l); "
                  "[ $n = 3 ] && break; sleep 0.1; done; "
                  "pkill -KILL -x krc_ioctl; wait; echo $n")
        result = node1.run(script, timeout=300, check=False)
        check(result.out.strip() == "3", repr(result))
        given_back(node1, before, 30)
        counts = _counts(client(node1, f"{peer} loop 3"))
        check(counts["done"] and not counts["failed"] + counts["wrong"], f"{counts}")


@limit(500)
def test_owner_of_memory_killed_under_readers(cluster):
    with up(cluster) as (node1, node2), serve(node2) as good:
        node2.run("rm -f /run/krc-dying.out")
        with node2.background(f"{AS_USER} {program(node2)} serve 900 >/run/krc-dying.out",
                              limit=900) as owner:
            # it may not have begun when it is first asked
            said = wait_until(lambda: node2.run("cat /run/krc-dying.out", check=False).out, 30,
                              "it serves")
            peer = f"{node2.spec.address} 0 {said.split(' ', 1)[1].strip()}"
            refused = _card(node2)["naks_error"]
            with node1.background(f"{AS_USER} {program(node1)} {peer} watch 900 >/run/watch.out",
                                  limit=900) as watch, \
                 node1.background(f"{AS_USER} {program(node1)} {good} loop 900 >/run/loop.out",
                                  limit=900) as loop:
                working(node1, 2, completed=10)
                owner.kill()
                node2.run("pkill -KILL -f 'krc_ioctl serve 900$'; true")
                watch.wait(90)
                finish(node1, "loop 900")
                loop.wait(90)
        seen = _counts(node1.run("cat /run/watch.out"))
        check(seen["done"] and seen["last_error"] == -53 and not seen["failed"] + seen["wrong"],
              f"{seen}")
        seen = _counts(node1.run("cat /run/loop.out"))
        check(seen["done"] and not seen["refused"] + seen["failed"] + seen["wrong"], f"{seen}")
        check(_card(node2)["naks_error"] == refused, "a READ came after the key had gone")


@limit(500)
def test_card_taken_out(cluster):
    meta1 = cluster.node("meta1")
    with up(cluster) as (node1, node2), serve(node2) as peer:
        wait_until(lambda: len(_records(meta1)) == 2, 60, "both are published")
        with node1.background(f"{AS_USER} {program(node1)} {peer} loop 900 >/run/loop.out",
                              limit=900) as loop:
            working(node1, 1)
            node1.remove_nic()
            loop.wait(60)
        try:
            seen = _counts(node1.run("cat /run/loop.out"))
            check(seen["done"] and not seen["wrong"] and seen["refused"] + seen["failed"] == 1 and
                  seen["last_error"] in GONE, f"{seen}")
            # without a device no MetaServer is reached, and it says so; the node is there
            shown = node1.run("krcore-metactl -j node show", check=False)
            check('"up": true' in shown.out and "no RDMA device" in shown.err, f"{shown!r}")
            wait_until(lambda: len(_records(meta1)) == 1, 60, "its record runs out")
        finally:
            node1.add_nic()
        wait_until(lambda: len(_records(meta1)) == 2, 120, "its record is published again")
        wait_until(lambda: _counts_or_none(node1, f"{peer} loop 2"), 120,
                   "a program can connect again", 2)


def _counts_or_none(machine, words):
    result = client(machine, words)
    return not result.status and _counts(result)


@limit(500)
def test_without_metaservers(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        servers = cluster.nodes("metaserver")
        check(_counts(client(node1, f"{peer} loop 2"))["done"], "it works")
        for server in servers:
            server.run(f"systemctl kill -s KILL {krcore.UNIT}; systemctl stop {krcore.UNIT}")
            # while another one answers, what is cached is asked for again: it may be old
            wait_until(lambda s=server: not any(
                row["name"] == s.name and row["state"] == "ready"
                for row in krcore.node_rows(node1, "node_server")), 60,
                f"the node has lost {server.name}")
            seen = _counts(client(node1, f"{peer} loop 2"))
            check(seen["done"] and not seen["failed"] + seen["refused"], f"a cached peer: {seen}")
        fresh = client(node1, f"{peer} fresh")
        check("Transport endpoint is not connected" in fresh.out, repr(fresh))
        for server in servers:
            krcore.start(server)
        wait_until(lambda: all(len(_records(server)) == 2 for server in servers), 60,
                   "the nodes publish again")
        wait_until(lambda: not client(node1, f"{peer} fresh").status, 30, "and look up again")


@limit(500)
def test_node_comes_back_with_a_new_generation(cluster):
    with up(cluster) as (node1, node2):
        meta1 = cluster.node("meta1")
        with serve(node2) as peer:
            check(_counts(client(node1, f"{peer} loop 2"))["done"], "it works")
        before = _records(meta1)
        wait_until(lambda: not node2.run("rmmod krcore", check=False).status, 20, "it is removed")
        node_up(node2)

        def renewed():
            """Records of another generation; one that was not withdrawn in time is there yet."""
            now = _records(meta1)
            return len(now) == 2 and [key for key in before if before[key]["generation"] !=
                                      now[key]["generation"]]

        key, = wait_until(renewed, 60, "it is published again")
        check(_records(meta1)[key]["generation"] > before[key]["generation"], "no newer generation")

        def refused():
            """By the record that is new, which the other node must have heard of."""
            old = client(node1, f"{peer} loop 1")
            check("done=" not in old.out or "done=0 " in old.out, f"it is used: {old!r}")
            return "-53" in old.out or "Invalid request descriptor" in old.out

        wait_until(refused, 30, "its old region is refused")
        with serve(node2) as peer:
            seen = wait_until(lambda: _counts_or_none(node1, f"{peer} loop 2"), 60,
                              "a program can connect to it", 1)
            check(seen["done"] and not seen["failed"] + seen["refused"], f"{seen}")
