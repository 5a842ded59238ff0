# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Other modules of the kernel use krcore (kmod/include/krcore/kernel.h): the samples of
kmod/samples are loaded on one node and work with a program of another, are unloaded under traffic,
and lose their card.
"""

import contextlib
import time

from . import krcore, module, programs
from .nodes import AS_USER, GONE, given_back, held, pairs, saying, serve, up
from .suite import check, limit, wait_until

RW = "/root/krcore_rw.ko"
ECHO = "/root/krcore_echo.ko"
PARAMETERS = "/sys/module/krcore_rw/parameters"
ECHO_PARAMETERS = "/sys/module/krcore_echo/parameters"
LANES = 4
SERVICE = 777
ASKER = "krcore-example-echo-client"
PLACE_SECONDS = 25      # after which its pages are nobody else's


def _put(*machines):
    """The samples in guests."""
    for machine in machines:
        for made, target in zip(module.build_samples(machine.kernel()), (RW, ECHO)):
            machine.push(made, target)


def _words(peer, **other):
    """Parameters of the sample: the memory of `nodes.serve()` that may be written to."""
    address, service, token, first = peer.split()[:4]
    words = {"gid": f"::ffff:{address}", "service": service, "token": token, "addr": first,
             "lanes": LANES, **other}
    return " ".join(f"{name}={value}" for name, value in words.items())


def _seen(machine):
    """What the sample says: rounds, bad, error."""
    shown = machine.run(f"cd {PARAMETERS} && cat rounds bad error").out.split()
    return dict(zip(("rounds", "bad", "error"), map(int, shown)))


def _echo_seen(machine):
    """What the other sample says."""
    names = ("offers", "conns", "rounds", "bad", "failed", "error")
    shown = machine.run(f"cd {ECHO_PARAMETERS} && cat {' '.join(names)}").out.split()
    return dict(zip(names, map(int, shown)))


@contextlib.contextmanager
def _loaded(machine, words, made=RW):
    machine.run(f"insmod {made} {words}", timeout=60)
    try:
        yield
    finally:
        name = made.split("/")[-1].removesuffix(".ko")
        removed = machine.run(f"rmmod {name}", timeout=60, check=False)
    check(not removed.status, repr(removed))


@limit(500)
def test_blocks_in_a_program_of_another_node(cluster):
    """Written, read back and compared, and unloaded in the midst of it, again and again."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        _put(node1)
        before = held(node1)
        for again in range(4):
            with _loaded(node1, _words(peer)):
                wait_until(lambda: _seen(node1)["rounds"] >= 10 * LANES, 60, "it has gone round")
                if not again:
                    refused = node1.run("rmmod krcore", check=False)
                    check(refused.status and "in use" in refused.err, repr(refused))
                seen = _seen(node1)
                check(not seen["bad"] and not seen["error"], f"{seen}")
        given_back(node1, before, 30)


@limit(500)
def test_what_a_peer_has_not_opened(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        _put(node1)
        words = peer.split()
        nobody = node1.run(f"insmod {RW} {_words(peer, service=4242)}", check=False, timeout=60)
        # insmod has words of its own for ENOENT
        said = node1.run("dmesg | grep -c 'krcore_rw: can.t begin: -2$'", check=False)
        check(nobody.status and said.out.strip() == "1", f"{nobody!r} {said!r}")
        # the region that is open to READs alone
        for other, error in (({"token": words[4], "addr": words[5]}, -1),
                             ({"token": int(words[2], 0) ^ 1 << 62}, -53),
                             ({"addr": int(words[3], 0) + int(words[6])}, -75)):
            with _loaded(node1, _words(peer, **other)):
                wait_until(lambda: _seen(node1)["error"], 60, "it has ended")
                seen = _seen(node1)
                check(seen == {"rounds": 0, "bad": 0, "error": error}, f"{other}: {seen}")


@limit(500)
def test_card_taken_out_under_a_module(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        _put(node1)
        with _loaded(node1, _words(peer)):
            wait_until(lambda: _seen(node1)["rounds"] >= LANES, 60, "it has gone round")
            node1.remove_nic()
            try:
                wait_until(lambda: _seen(node1)["error"], 60, "it has heard of that")
                seen = _seen(node1)
                check(not seen["bad"] and seen["error"] in GONE, f"{seen}")
            finally:
                node1.add_nic()
        wait_until(lambda: not node1.run(f"insmod {RW} {_words(peer)} && rmmod krcore_rw",
                                         check=False, timeout=60).status, 120,
                   "it can begin again")


# -- messages --------------------------------------------------------------------


def _ask(machine, server, lines):
    """Have a program say lines to the server of a node; returns what it got back."""
    said = "\\n".join(lines)
    return machine.run(f"printf '{said}\\n' | {AS_USER} /usr/local/bin/{ASKER} "
                       f"{server.spec.address} {SERVICE}", timeout=60).out.splitlines()


@limit(500)
def test_messages_of_a_program_come_back_from_a_module(cluster):
    """A server in the kernel and programs of another node; its number is a program's afterwards."""
    lines = [f"line{number}" for number in range(20)]
    with up(cluster) as (node1, node2):
        _put(node1)
        programs.install(node2, f"client/examples/{ASKER}")
        before = held(node1)
        for again in range(2):
            with _loaded(node1, f"service={SERVICE}", ECHO):
                for _ in range(2):
                    got = _ask(node2, node1, lines)
                    check(got == lines, f"{got}")
                wait_until(lambda: not _echo_seen(node1)["conns"], 30, "they have gone")
                seen = _echo_seen(node1)
                check(seen == {"offers": 2, "conns": 0, "rounds": 2 * len(lines), "bad": 0,
                               "failed": 0, "error": 0}, f"{again}: {seen}")
        given_back(node1, before, 30)


@limit(500)
def test_large_messages_come_back_from_a_module(cluster):
    """They are READ into its pages, and READ from there; also after a program was killed in the
    midst of it."""
    connections, rounds = 4, 64
    echo = f"{AS_USER} /usr/local/bin/krc_message echo {{}} {SERVICE} {connections} {{}}"
    with up(cluster) as (node1, node2):
        _put(node1)
        programs.install(node2, "tests/module/krc_message")
        before = held(node1)
        command = echo.format(node1.spec.address, rounds)
        with _loaded(node1, f"service={SERVICE}", ECHO):
            for again in range(2):
                # answers to the program that was killed may not have been sent
                failed = _echo_seen(node1)["failed"] if again else 0
                got = node2.run(command, timeout=120).out.strip().splitlines()[-1]
                print(f"    {got}", flush=True)
                seen = pairs(got)
                check(seen["large"] == connections * rounds // 16, f"{again}: {got}")
                seen = _echo_seen(node1)
                check(seen["failed"] == failed and not seen["error"], f"{failed}, then {seen}")
                if not again:
                    node2.run(f"timeout -s KILL 3 {echo.format(node1.spec.address, 100000)}; true",
                              timeout=60)
                    wait_until(lambda: not _echo_seen(node1)["conns"], 60, "they have gone")
                    time.sleep(PLACE_SECONDS)
        given_back(node1, before, 60)


def _shown(server, client):
    """Connections of modules are listed to root: both of the server's, one of the client's."""
    for machine, peer, number in ((server, client, 2), (client, server, 1)):
        rows = [row for row in krcore.metactl(machine, "queue list")
                if row["type"] == "connection" and row["client"]]
        print(f"    {machine.name}: {rows}", flush=True)
        check(len(rows) == number and len({row["client"] for row in rows}) == 1, f"{rows}")
        for row in rows:
            check(row["comm"] == "krcore_echo" and row["state"] == "open" and row["received"]
                  and row["gid"] == peer.spec.address and row["service"] == SERVICE
                  and row["pid"] is None and row["uid"] is None
                  and row["initiator"] is not None, f"{row}")
        mine = krcore.metactl(machine, "queue list", as_user="nobody")
        check(not [row for row in mine if row.get("client")], f"nobody sees {mine}")


@limit(500)
def test_a_server_in_the_kernel_unloaded_under_traffic(cluster):
    """Its clients, a module and a program, hear of it, and it serves again when it is back."""
    client = f"service={SERVICE} gid=::ffff:{{}} lanes=16"
    with up(cluster) as (node1, node2):
        _put(node1, node2)
        programs.install(node2, f"client/examples/{ASKER}")
        before = [held(node) for node in (node1, node2)]
        for again in range(2):
            with contextlib.ExitStack() as late:
                with _loaded(node1, f"service={SERVICE}", ECHO):
                    late.enter_context(_loaded(node2, client.format(node1.spec.address), ECHO))
                    pipe = "/run/krc-ask.in"
                    node2.run(f"rm -f {pipe}; mkfifo -m 666 {pipe}")
                    command = (f"{AS_USER} /usr/local/bin/{ASKER} {node1.spec.address} {SERVICE} "
                               f"<>{pipe}")
                    node2.run(f"(sleep 1; echo one >{pipe}) >/dev/null 2>&1 &")
                    late.enter_context(saying(node2, f"stdbuf -oL {command}", "one",
                                              "/run/krc-ask.out", 200))
                    wait_until(lambda: _echo_seen(node2)["rounds"] >= 100, 120, "it has gone round")
                    seen = _echo_seen(node2)
                    check(not seen["bad"] and not seen["failed"] and not seen["error"], f"{seen}")
                    check(_echo_seen(node1)["conns"] == 2, "both are connected")
                    _shown(node1, node2)
                wait_until(lambda: (seen := _echo_seen(node2))["error"] and not seen["conns"], 60,
                           lambda: f"the module has heard of that: {_echo_seen(node2)}")
                seen = _echo_seen(node2)
                check(seen["error"] == -104 and not seen["bad"], f"{seen}")
                node2.run(f"echo two >{pipe}")
                wait_until(lambda: not node2.run(f"pgrep -f '^/usr/local/bin/{ASKER}'",
                                                 check=False).out, 60, "the program ends")
                said = node2.run("cat /run/krc-ask.out").out
                check("two" not in said, f"{again}: {said}")
        check([held(node) for node in (node1, node2)] == before, f"all is given back: {before}")


@limit(500)
def test_card_taken_out_under_a_server_in_the_kernel(cluster):
    with up(cluster) as (node1, node2):
        _put(node1)
        programs.install(node2, f"client/examples/{ASKER}")
        with _loaded(node1, f"service={SERVICE}", ECHO):
            check(_ask(node2, node1, ["one"]) == ["one"], "it answers")
            node1.remove_nic()
            try:
                wait_until(lambda: _echo_seen(node1)["error"], 60, "it has heard of that")
                check(_echo_seen(node1)["error"] == -19, f"{_echo_seen(node1)}")
            finally:
                node1.add_nic()
        wait_until(lambda: not node1.run(f"insmod {ECHO} service={SERVICE} && rmmod krcore_echo",
                                         check=False, timeout=60).status, 120,
                   "it can begin again")
