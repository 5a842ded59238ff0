# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The module krcore of Python, from its package, used by programs without rights of two guests:
requests, messages, what misuse says, and what is left of one that is killed."""

import contextlib

from . import host, krcore, packages
from .nodes import AS_USER, counted, given_back, held, saying, up, writing
from .suite import check, limit, wait_until

PACKAGE = "python3-krcore"
PEER = "/usr/local/bin/python_peer.py"
EXAMPLE = "/usr/local/bin/handoff.py"
SERVICE = 610
OUT = "/run/python-peer"
RUN = f"{AS_USER} python3 -B"


def _install(machine):
    """The package as it would be installed, and the programs."""
    file = f"/run/{PACKAGE}.deb"
    machine.push(packages.package(PACKAGE), file)
    machine.run(f"dpkg --force-unsafe-io -i {file} && rm {file}", timeout=240)
    machine.push(host.TESTS / "module/python_peer.py", PEER, 0o755)
    machine.push(host.CHECKOUT / "client/python/examples/handoff.py", EXAMPLE, 0o755)


def _kill(machine, signal, words=""):
    machine.run(f"pkill -{signal} -f '^python3 -B {words}'", check=False)


@contextlib.contextmanager
def _up(cluster):
    with up(cluster) as machines:
        try:
            for machine in machines:
                _install(machine)
            yield machines
        finally:
            for machine in machines:
                if machine.alive():
                    _kill(machine, "KILL")
                    machine.run(f"dpkg --purge {PACKAGE}", timeout=60, check=False)


@contextlib.contextmanager
def _serving(machine):
    """Memory and an echo; gives the packed reference, and what ends it and returns its counts."""
    out = f"{OUT}-serve.out"
    with saying(machine, f"{RUN} {PEER} serve {SERVICE}", "serving", out, 900) as said:
        def end():
            _kill(machine, "TERM", f"{PEER} serve")
            wait_until(lambda: "echoed=" in machine.run(f"cat {out}").out, 60, "it ends")
            return counted(machine.run(f"cat {out}"))
        yield said.split()[1], end
        _kill(machine, "KILL", f"{PEER} serve")


def _run(machine, words):
    result = machine.run(f"{RUN} {PEER} {words}", timeout=200, check=False)
    check(not result.status and not result.err, repr(result))
    return result.out


@limit(600)
def test_requests_and_messages(cluster):
    """READ, WRITE, atomics of several threads, messages copied and announced; all is given back.
    The example hands a text over."""
    with _up(cluster) as (node1, node2):
        before = held(node1), held(node2)
        with _serving(node1) as (packed, end):
            said = _run(node2, f"use {node1.spec.address} {SERVICE} {packed}")
            check(said == f"atomics=100 messages=55 address={node2.spec.address}\n", said)
            counts = end()
            print(f"    {counts}", flush=True)
            check(counts["echoed"] == 55 and counts["large"] == 1
                  and counts["ended"] == 1 and not counts["died"], f"{counts}")
        wait_until(lambda: (held(node1), held(node2)) == before, 60, f"all is back: {before}")
        out = f"{OUT}-give.out"
        with writing(node1, f"sleep 600 | {RUN} {EXAMPLE} give 'a text of node1'", out, 660):
            wait_until(lambda: len(node1.run(f"cat {out}").out) == 49, 30, "24 bytes")
            packed = node1.run(f"cat {out}").out.strip()
            got = node2.run(f"{RUN} {EXAMPLE} fetch {packed}")
            check(got.out == "a text of node1\n", repr(got))
            _kill(node1, "KILL", f"{EXAMPLE} give")
        krcore.node_gone(node2)
        result = node2.run(f"{RUN} {EXAMPLE} fetch {packed}", check=False)
        check(result.status == 1 and "/dev/krcore: there is none; is the module krcore loaded?"
              in result.err, repr(result))


@limit(400)
def test_misuse_says_what_is_wrong(cluster):
    """Errors of arguments, of the module and of the peer; none ends the process."""
    with _up(cluster) as (node1, node2), _serving(node1) as (packed, _):
        said = _run(node2, f"misuse {node1.spec.address} {packed}")
        print("".join(f"    {line}\n" for line in said.splitlines()), end="", flush=True)
        lines = dict(line.split(": ", 1) for line in said.splitlines())
        for name, words in (
                ("resize", "BufferError.Exception"),
                ("bounds", "ValueError.Exception: remote_offset: 0 to 1048575, not 1048576"),
                ("token", "[Errno 53]"), ("beyond", "[Errno 75]"),
                ("written", "Error.Error: [Errno 1]"), ("again", "works again"),
                ("locked", "[Errno 12] registering 67108864 bytes"),
                ("read-only", "TypeError.Exception: buffer: it must be writable"),
                ("nobody", "Error.Error: [Errno 2] connecting to"),
                ("unknown", "Error.Error: [Errno 2]"), ("bound", "[Errno 98] binding service 998"),
                ("reference", "ValueError.Exception: packed: 23 bytes are no packed reference"),
                ("stale", "[Errno 53]"),
                ("region closed", "Closed.ValueError: local: the region is closed"),
                ("queue closed", "Closed.ValueError: the queue is closed"),
                ("node closed", "Closed.ValueError: the node is closed")):
            check(words in lines[name], f"{name}: {lines[name]}")


@limit(400)
def test_killed_at_either_end(cluster):
    """kill -9 while threads READ: the other end is told, and nothing is left."""
    out = f"{OUT}-hold.out"
    with _up(cluster) as (node1, node2):
        before = held(node1), held(node2)
        with _serving(node1) as (packed, end):
            hold = f"{RUN} {PEER} hold {node1.spec.address} {SERVICE} {packed}"
            with saying(node2, hold, "holding", out, 200):
                _kill(node2, "KILL", f"{PEER} hold")
                given_back(node2, before[1], 60)
            with saying(node2, hold, "holding", out, 200):
                _kill(node1, "KILL", f"{PEER} serve")
                wait_until(lambda: "told" in node2.run(f"cat {out}").out, 60, "it is told")
                said = node2.run(f"cat {out}").out
                check("told: [Errno 104]" in said and "program or node has ended" in said, said)
                _kill(node2, "KILL", f"{PEER} hold")
        wait_until(lambda: (held(node1), held(node2)) == before, 60, f"nothing is left: {before}")
