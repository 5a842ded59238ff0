#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A decoder of the hand-shake of lanes, written from the text of proto/krp_lane.h alone. It shares
no code with the rest: what it cannot decode, the text does not say.

usage: lane_decoder.py [--key HEX] HEX...   the fields of each packet, one JSON object a line

With --key, a packet that the key does not prove is wrong in its mac.
Exit code 1: one is no packet; the first field that is wrong is named.
"""

import argparse
import hashlib
import hmac
import json
import struct
import sys

MAGIC, VERSION, BYTES, INDEXES = 0x4C4B, 1, 200, 4
REQUEST, CHALLENGE, ACCEPT, REFUSE, READY, HEARD, CLOSE, CLOSED = range(1, 9)
NAMES = ("REQUEST", "CHALLENGE", "ACCEPT", "REFUSE", "READY", "HEARD", "CLOSE", "CLOSED")
LABEL = b"krcore lane v1"
REQUESTER = 1
STATUS = range(1, 5)


class Wrong(Exception):
    """The bytes are not what the text says; str() is the field."""


def need(true, field):
    """Complain of a field unless something is so."""
    if not true:
        raise Wrong(field)


def fields_of(data):
    """All fields, numbers as numbers and bytes as digits."""
    names = ("magic", "version", "type", "flags", "index", "mtu", "max_rd_atomic", "lane", "nonce",
             "generation", "peer_generation", "gid", "peer_gid", "qpn", "psn", "spent", "stamp",
             "proof", "value", "status", "key_id", "mac")
    numbers = struct.unpack("<H6B4Q16s16sIIQQQ56sI4s32s", data)
    return {name: number.hex() if isinstance(number, bytes) else number
            for name, number in zip(names, numbers)}


def value_valid(value, generation):
    """Whether the 56 bytes of a record are those of a port that makes lanes (krp_table.h)."""
    owner, kind, length, _, dctn, dc_key = struct.unpack_from("<QBBHIQ", value)
    ud_qpn, = struct.unpack_from("<I", value, 36)
    mtu, level, port, flags, _, rsvd = value[50:56]
    return (owner == generation and kind in (1, 3) and length == 0 and dctn < 1 << 24
            and (kind == 1 or (dctn == 0 and dc_key == 0)) and 1 <= ud_qpn < 1 << 24
            and 1 <= mtu <= 5 and level <= 15 and port >= 1 and flags <= 1 and rsvd == 0)


def check_head(head):
    """The rules of a packet as far as the GIDs."""
    kind, offers = head["type"], head["type"] in (REQUEST, ACCEPT)
    need(head["magic"] == MAGIC, "magic")
    need(head["version"] == VERSION, "version")
    need(REQUEST <= kind <= CLOSED, "type")
    allowed = {REQUEST: (REQUESTER,), CHALLENGE: (0,), ACCEPT: (0,), REFUSE: (0,)}
    need(head["flags"] in allowed.get(kind, (0, REQUESTER)), "flags")
    need(head["index"] < INDEXES, "index")
    need(head["mtu"] in (range(1, 6) if offers else (0,)), "mtu")
    need((head["max_rd_atomic"] > 0) == offers, "max_rd_atomic")
    need(head["lane"], "lane")
    need(head["nonce"], "nonce")
    need(head["generation"] and head["peer_generation"], "generation")
    zero = "0" * 32
    need(zero not in (head["gid"], head["peer_gid"]) and head["gid"] != head["peer_gid"], "gid")


def check_rest(head):
    """The rules behind the GIDs."""
    kind, offers = head["type"], head["type"] in (REQUEST, ACCEPT)
    need(head["qpn"] in (range(2, 0xFFFFFF) if offers else (0,)), "qpn")
    need(head["psn"] in (range(1 << 24) if offers else (0,)), "psn")
    need(kind == ACCEPT or head["spent"] == 0, "spent")
    need((head["stamp"] == 0) == (head["proof"] == 0), "cookie")
    need(head["stamp"] or kind != CHALLENGE, "cookie")
    need(head["stamp"] == 0 or kind in (REQUEST, CHALLENGE), "cookie")
    value = bytes.fromhex(head["value"])
    need(value_valid(value, head["generation"]) if kind == REQUEST else not any(value), "value")
    need(head["status"] in (STATUS if kind == REFUSE else (0,)), "status")
    need(head["key_id"] != "0" * 8 or head["mac"] == "0" * 64, "mac")


def mac_of(data, key):
    """The MAC that a key gives a packet."""
    return hmac.new(key, LABEL + data[:168] + bytes(32), hashlib.sha256).digest()


def key_id(key):
    """The id of a key."""
    return hashlib.sha256(key).digest()[:4]


def decode(data, key=None):
    """The fields of a packet, or Wrong."""
    need(len(data) == BYTES, "bytes")
    head = fields_of(data)
    check_head(head)
    check_rest(head)
    if key is not None:
        need(bytes.fromhex(head["key_id"]) == key_id(key)
             and hmac.compare_digest(bytes.fromhex(head["mac"]), mac_of(data, key)), "mac")
    return head


def main():
    """Decode the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--key", type=bytes.fromhex)
    parser.add_argument("packet", nargs="+")
    args, bad = parser.parse_args(), False
    for text in args.packet:
        try:
            head = decode(bytes.fromhex(text), args.key)
        except Wrong as wrong:
            print(f"{text[:16]}...: wrong: {wrong}", file=sys.stderr)
            bad = True
            continue
        print(json.dumps({"name": NAMES[head["type"] - 1], **head}))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
