#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Write the golden vectors of the protocol as seeds of the fuzz targets.

Run it after a change of proto/vectors: tests/fuzz/seeds.py. Other files of a
corpus are what libFuzzer found and `-merge=1` kept.
"""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def vectors(name):
    """Yield (name, bytes) of each vector in a file of proto/vectors."""
    with open(os.path.join(ROOT, "proto", "vectors", name), encoding="ascii") as f:
        for line in f:
            title, colon, digits = line.partition(":")
            if colon and not line.startswith("#"):
                yield title.strip(), bytes.fromhex(digits)


def seed(target, name, data):
    """Write one seed."""
    folder = os.path.join(HERE, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def main():
    for name, data in vectors("msg.txt"):
        seed("message", "vector-" + name, data)
    table = dict(vectors("table.txt"))
    everything, signed, plain = b"\x7f", b"\x40", b"\x00"
    key = bytes.fromhex("fe80000000000000505400fffe123456") + b"\0\0"
    # depth 2, three segments of 2 pages: small enough for the harness
    root = bytearray(table["root"])
    root[12:14] = b"\x01\x02"
    directory = bytes(8 * 4)
    opening = key + b"\x50" + bytes(root) + directory
    bucket = table["bucket"]
    seed("lookup", "hit", opening + everything + bucket)
    other = bytes([key[0] ^ 1]) + opening[1:]
    seed("lookup", "miss", other + b"\x5f" + bucket)
    seed("lookup", "torn", opening + (plain + bucket) * 4 + plain + bytes(8) + everything + bucket)
    seed("lookup", "stale", opening + signed + bucket + plain + bytes(8) + everything + bucket)
    deeper = bytearray(root)
    deeper[13] = 3
    seed("lookup", "moved", opening + signed + bucket + b"\x80" + b"\x50" + bytes(deeper)
         + plain + bytes(8) + everything + bucket)
    seed("key", "shortest", b"000102030405060708090a0b0c0d0e0f\n")
    seed("key", "longest", b" " + b"0f" * 64 + b"\n")
    seed("key", "too-long", b"0f" * 65)
    seed("key", "odd", b"0" * 33)
    seed("key", "past-the-end", b"0f" * 16 + b" " * 300 + b"g")


if __name__ == "__main__":
    main()
