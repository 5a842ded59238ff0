#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Two ends that use krcore from Python, for tests in guests.

    python_peer.py serve SERVICE                 lend memory, send back messages, until SIGTERM
    python_peer.py use ADDRESS SERVICE PACKED    requests to that memory, messages both ways
    python_peer.py misuse ADDRESS PACKED         what misuse says, a line each
    python_peer.py hold ADDRESS SERVICE PACKED   requests without end, and a connection
"""

import array
import ctypes
import hashlib
import signal
import sys
import threading

import krcore

MIB = 1 << 20
THREADS, ADDS = 4, 25


class Ended(Exception):
    """SIGTERM has come."""


def say(**counts):
    """One line of key=value."""
    print(*(f"{key}={value}" for key, value in counts.items()), flush=True)


def check(what, is_so):
    """The first thing that is wrong ends the program."""
    if not is_so:
        raise SystemExit(f"wrong: {what}")


class Server:
    """Memory that peers use, and an end that sends messages back."""

    def __init__(self, service):
        self.service, self.counts = service, {"echoed": 0, "large": 0, "ended": 0, "died": 0}
        self.lock = threading.Lock()

    def count(self, name):
        """One more."""
        with self.lock:
            self.counts[name] += 1

    def echo(self, connection):
        """Send back what comes; of a large one, its hash."""
        try:
            for message in connection:
                large = isinstance(message, krcore.Large)
                connection.send(hashlib.sha256(message.read()).digest() if large else message)
                self.count("large" if large else "echoed")
            self.count("ended")
            connection.close()
        except krcore.Error:
            self.count("died")
            connection.close()
        except ValueError:
            pass    # the node was closed

    def run(self):
        """Until SIGTERM."""
        def end(*_):
            raise Ended

        signal.signal(signal.SIGTERM, end)
        memory = bytearray(MIB)
        try:
            with krcore.Node() as node, node.listen(self.service) as listener, \
                    node.region(memory, remote_read=True, remote_write=True,
                                remote_atomic=True) as region:
                print("serving", region.pack().hex(), flush=True)
                while True:
                    connection = listener.accept(user=b"a server")
                    check("what it said before", connection.peer.user == b"a client")
                    threading.Thread(target=self.echo, args=[connection]).start()
        except Ended:
            say(**self.counts)


def requests(node, address, packed):
    """READ, WRITE and atomics; how many atomics."""
    mine = bytearray(hashlib.shake_256(b"seed").digest(64 << 10))
    numbers = array.array("Q", [0] * 8192)
    with node.queue(address) as queue, node.region(mine) as here, node.region(numbers) as there:
        check("WRITE", queue.write(packed, here, remote_offset=4096) == 64 << 10)
        check("READ", queue.read(packed, there, remote_offset=4096) == 64 << 10)
        check("the bytes", numbers.tobytes() == mine)
        queue.read(packed, here, 10, remote_offset=4096 + 100, local_offset=5)
        check("a part", mine[5:15] == numbers.tobytes()[100:110])
        start = queue.fetch_add(packed, 0)
        check("no lock", queue.compare_swap(packed, start + 1, 5) == start)
        check("swap", queue.compare_swap(packed, start, start + 7) == start)
        seen = []

        def add():
            for _ in range(ADDS):
                seen.append(queue.fetch_add(packed, 1))

        threads = [threading.Thread(target=add) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(f"each once: {sorted(seen)}",
              sorted(seen) == [start + 7 + turn for turn in range(THREADS * ADDS)])
        check("info", queue.info().state == "ready" and queue.info().outstanding == 0)
    whole = krcore.fetch(packed)
    check("all of it", len(whole) == MIB and whole[4096:4096 + 100] == numbers.tobytes()[:100]
          and int.from_bytes(whole[:8], "little") == start + 7 + THREADS * ADDS)
    return len(seen)


def messages(node, address, service):
    """Messages of all sizes, copied and announced; how many."""
    sent = 0
    with node.connect(address, service, user=b"a client") as connection:
        check("what it said", connection.peer.user == b"a server")
        check("who it is", connection.peer.address == address)
        for size in (0, 1, 100, 1024, 4032):
            connection.send(bytes(size))
            check(f"{size} bytes", connection.recv(timeout=30) == bytes(size))
        for number in range(50):
            connection.send(b"%d" % number)
        for number in range(50):
            check(f"message {number}", connection.recv(timeout=30) == b"%d" % number)
            sent += 1
        data = bytearray(hashlib.shake_256(b"large").digest(MIB))
        with node.region(data, message=True) as region:
            connection.send_large(region)
            check("the large one",
                  connection.recv(timeout=30) == hashlib.sha256(data).digest())
        connection.shutdown()
        try:
            check("the end", connection.recv(timeout=30) is None)
        except ConnectionResetError:
            pass    # the server has closed it altogether
    return sent + 5


def use(address, service, packed):
    """All of it."""
    with krcore.Node() as node:
        say(atomics=requests(node, address, packed), messages=messages(node, address, service),
            address=node.address)


def misuse(address, packed):
    """What each says."""
    ref = krcore.Reference.unpack(packed)
    small = bytearray(100)
    with krcore.Node() as node:
        region, queue = node.region(small, remote_read=True), node.queue(address)

        def again():
            queue.read(ref, region, 100)
            return "works again"

        cases = (
            ("resize", lambda: small.extend(b"x")),
            ("bounds", lambda: queue.read(ref, region, remote_offset=ref.length)),
            ("token", lambda: queue.read(ref._replace(token=ref.token ^ 1 << 40), region)),
            ("beyond", lambda: queue.read(ref._replace(length=1 << 30), region,
                                          remote_offset=1 << 29)),
            ("written", lambda: own.write(region.reference, region)),
            ("again", again),
            ("locked", lambda: node.region(bytearray(64 << 20))),
            ("read-only", lambda: node.region(bytes(100))),
            ("nobody", lambda: node.connect(address, 999)),
            ("unknown", lambda: node.queue("192.0.2.1")),
            ("bound", lambda: node.bind(998) and node.bind(998)),
            ("reference", lambda: krcore.fetch(packed[:-1])),
            ("stale", lambda: krcore.fetch(ref._replace(token=ref.token ^ 1 << 40))),
            ("region closed", lambda: (region.close(), queue.read(ref, region))),
            ("queue closed", lambda: (queue.close(), queue.fetch_add(ref, 1))),
            ("node closed", lambda: (node.close(), node.queue(address))))
        own = node.queue(node.address)
        for name, call in cases:
            try:
                print(f"{name}: {call()}")
            except (OSError, ValueError, TypeError, BufferError) as error:
                kind = [kind.__name__ for kind in type(error).__mro__[:2]]
                print(f"{name}: {'.'.join(kind)}: {error}")


def hold(address, service, packed):
    """Until it is killed, or told that the other end was."""
    node = krcore.Node()
    region = node.region((ctypes.c_char * (4 * MIB))(), remote_read=True)
    queue = node.queue(address)
    connection = node.connect(address, service, user=b"a client")

    def work():
        while True:
            queue.read(packed, region, MIB)

    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    print("holding", flush=True)
    try:
        connection.recv()
    except krcore.Error as error:
        print(f"told: {error}", flush=True)


def main():
    """What the words say."""
    match sys.argv[1:]:
        case ["serve", service]:
            Server(int(service)).run()
        case ["use", address, service, packed]:
            use(address, int(service), bytes.fromhex(packed))
        case ["misuse", address, packed]:
            misuse(address, bytes.fromhex(packed))
        case ["hold", address, service, packed]:
            hold(address, int(service), bytes.fromhex(packed))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
