#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Write the golden vectors of the protocol as seeds of the fuzz targets.

Run it after a change of proto/vectors: tests/fuzz/seeds.py. Other inputs of a
corpus are what libFuzzer found and `-merge=1` kept.
"""
import os
import pathlib
import struct

import corpus

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
    path = pathlib.Path(HERE, "corpus", target + ".hex")
    inputs = corpus.read(path) if path.exists() else {}
    inputs[name] = data
    corpus.write(path, inputs)


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
    crowded = table["crowded"]
    seed("lookup", "aside", opening + b"\x5f" + crowded)
    other = bytes([key[0] ^ 1]) + opening[1:]
    seed("lookup", "miss", other + b"\x5f" + bucket)
    seed("lookup", "torn", opening + (plain + bucket) * 4 + plain + bytes(8) + everything + bucket)
    seed("lookup", "stale", opening + signed + bucket + plain + bytes(8) + everything + bucket)
    deeper = bytearray(root)
    deeper[13] = 3
    seed("lookup", "moved", opening + signed + bucket + b"\x80" + b"\x50" + bytes(deeper)
         + plain + bytes(8) + everything + bucket)
    incarnation = bytes(root[16:24])
    segments = (b"\x0c" + bytes(16 * 3))  # signed, with addresses
    whole = b"\x0d" + bytes(root)
    seed("load", "whole", incarnation + plain + whole + segments + plain + bytes(8 * 4))
    seed("load", "torn", incarnation + plain + plain + bytes(root) * 2 + whole
         + plain + bytes(16 * 3) + segments + plain + bytes(8 * 4))
    seed("load", "moved", incarnation + plain + whole + segments + b"\x10" + bytes(8 * 4)
         + b"\x0d" + bytes(deeper) + segments + plain + bytes(8 * 8))
    seed("load", "older-copy", incarnation + b"\x05\x01\x01" + bytes(8 * 2)
         + b"\x2d" + bytes(root) + segments)
    seed("load", "other-incarnation", incarnation + b"\x04\x01\x01" + bytes(8 * 2)
         + b"\x2d" + bytes(root) + segments + plain + bytes(8 * 4))
    live = dict(vectors("mrdir.txt"))["live"]
    token = live[8:16]
    edge = (0x7F0123456001 + 0x10000 - 8).to_bytes(8, "little") + (8).to_bytes(8, "little")
    seed("mrdir", "hit", plain + token + edge + live)
    seed("mrdir", "sealed", b"\7" + token + edge + live)
    seed("mrdir", "torn", plain + token + edge + live[:32] + bytes(32))
    seed("mrdir", "other", plain + bytes(8) + edge + live)
    seed("mrdir", "wraps", b"\4" + token + b"\xff" * 16 + live[:16] + b"\xff" * 8 + live[24:])
    packets = dict(vectors("message.txt"))
    for name, data in packets.items():      # as the opener takes them, and the other end
        seed("stream", f"open-{name}", b"\1" + b"\0\3" + data)
        seed("stream", f"vector-{name}", b"\0" + b"\0\3" + data)
    talk = b"".join(b"\0\3" + packets[name][:64 + 24] + b"\x80\0\2\x80\1\1\x80\2\0\x80\3\0"
                    for name in ("DATA", "ANNOUNCE", "CREDIT", "PROBE", "DONE", "CLOSE"))
    seed("stream", "opened", b"\1" + b"\0\3" + packets["ACCEPT"] + talk)
    seed("stream", "talk", b"\0" + b"\x80\0\1\x80\0\2\x80\0\3" + talk * 3 + b"\x80\7\1\xff")
    seed("key", "shortest", b"000102030405060708090a0b0c0d0e0f\n")
    seed("key", "longest", b" " + b"0f" * 64 + b"\n")
    seed("key", "too-long", b"0f" * 65)
    seed("key", "odd", b"0" * 33)
    seed("key", "past-the-end", b"0f" * 16 + b" " * 300 + b"g")
    seed("conf", "short", b"[metaserver]\nport = 18601\nlease_ms = 10s\nlisten = dev:rxe0,\n"
         b"  192.0.2.7 ; a second one\n# a comment\n[node]\nmetaservers = a, b:1/2, [::1]:3\n")
    seed("conf", "errors", b"port = 1\n[nowhere]\n[metaserver]\nport = 70000\nport = 1\nnot a key\n"
         b"lease_ms = 5 parsecs\n require_auth = maybe\n")
    seed("conf", "assignment", b"metaserver.rate_max=17")
    seed("servers", "list", b"\0host, 192.0.2.7:18601/5, [2001:db8::1]:7/0")
    seed("servers", "srv", b"\0srv:_krcore._tcp.cluster.example")
    name = b"\7_krcore\4_tcp\7cluster\7example\0"
    record = b"\xc0\x0c\0\x21\0\1\0\0\0\x3c"
    target = b"\0\x0a\0\x05\x48\xa8\5node1\7example\0"
    seed("servers", "answer", b"\1\x12\x34\x81\x80\0\1\0\2\0\0\0\0" + name + b"\0\x21\0\1"
         + (record + len(target).to_bytes(2, "big") + target) * 2)
    seed("lines", "replies", b"\x05" + b'{"ok": true}\n\n{"a": "b"}\nrest')
    seed("lines", "too-long", b"\x3f" + b"x" * 40 + b"\n")
    seed("table", "grow", b"\7" + bytes(b for nr in range(0, 256, 32) for b in (0x40, nr))
         + bytes(b for nr in range(0, 256, 32) for b in (0x41, nr)) + b"\0\1\1\1\x60\0"
         + bytes(b for nr in range(0, 256, 32) for b in (0x20, nr)))
    seed("table", "crowd", b"\7" + bytes(b for nr in range(0, 256, 32) for b in (0x41, nr))
         + b"\1\0\1\5\x81\3" + bytes(b for nr in range(0, 256, 32) for b in (0x21, nr)))
    hello = bytes([2, 1]) + bytes(184) + b"\1\0\0"
    talk = hello + b"\3" + bytes([2, 9]) + bytes(32) + b"\1" + bytes(7) + b"\5"
    talk += b"".join(bytes([2, 5]) + bytes(112) + bytes([6, nr % 3, nr]) for nr in range(6))
    talk += bytes([2, 10]) + bytes(56) + b"\7\0\1" + bytes([2, 6]) + bytes(56) + b"\7\0\1"
    seed("session", "open", b"\2" + talk + b"\4\x40")
    seed("session", "proof", b"\1" + talk + b"\4\xff\4\xff")
    challenge = struct.pack("<Q32xB3x4x", 7, 0)
    welcome = struct.pack("<32xQIIIIIIH2xI16x", 4096, 5, len(table["root"]), 3000, 100, 64, 50, 4,
                          0)
    attached = (b"\1" + b"\2\0\xff" + challenge + b"\2\0\xff" + welcome + b"\1"
                + b"\6\0\6\1")
    answers = b"".join(b"\1" + bytes((slot, 0, 0)) + b"\6" + bytes((slot,)) for slot in range(4))
    seed("client", "attached", attached + b"\7\x18\4\1\4\2\5\0" + answers + b"\3\xff" + answers
         + b"\4\x81\4\2" + answers + b"\7\0\3\xff")
    for name in ("help", "status", "stats", "metrics", "sessions", "devices", "listeners",
                 "records", "config", "reload", "monitor"):
        seed("command", name, b'{"command": "%s"}' % name.encode())
    key = b'"gid": "fd00::1", "service": 0'
    seed("command", "page", b'{"command": "records", "args": {"from": 0, "count": 2, '
         b'"keys": true}}')
    seed("command", "filter", b'{"command": "records", "args": {"service": 0, "owner": "'
         + b"0" * 32 + b'"}}')
    seed("command", "get", b'{"command": "record_get", "args": {' + key + b', "keys": true}}')
    seed("command", "withdraw", b'{"command": "record_withdraw", "args": {' + key + b"}}")
    seed("command", "events", b'{"command": "monitor", "args": {"events": ["records"]}}')
    seed("command", "ill", b'{"command": "records", "args": {"count": -1, "what": [1e400]}}')
    seed("command", "cut", b'{"command": "' + b"x" * 39 + b'\xc3\xbc"}')


if __name__ == "__main__":
    main()
