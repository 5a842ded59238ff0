#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A decoder of messages between nodes, written from the text of proto/krp_message.h alone. It
shares no code with the rest: what it cannot decode, the text does not say.

usage: message_decoder.py HEX...        the fields of each packet, one JSON object a line

Exit code 1: one is no message; the first field that is wrong is named.
"""

import json
import struct
import sys

MAGIC, VERSION = 0x584B, 1
OPEN, DATA, ANNOUNCE, CLOSE, ACCEPT, DONE, CANCEL, CHALLENGE, CREDIT, PROBE, REFUSE = range(1, 12)
NAMES = ("OPEN", "DATA", "ANNOUNCE", "CLOSE", "ACCEPT", "DONE", "CANCEL", "CHALLENGE", "CREDIT",
         "PROBE", "REFUSE")
BODIES = {OPEN: 136, ACCEPT: 48, CHALLENGE: 8, ANNOUNCE: 24, DONE: 8, CANCEL: 8}
FLAGS = {OPEN: 0x01, DATA: 0x06, ANNOUNCE: 0x04, CREDIT: 0x18, REFUSE: 0x20}
BARE = (CHALLENGE, REFUSE)
PACKET_MAX, HEADER, LARGE_MAX, USER_MAX, ANNOUNCED_MAX = 4096, 64, 1 << 30, 32, 16
STATUS = {REFUSE: range(1, 8), DONE: (0, 8, 9, 10)}
LEASE, MARGIN = range(50, 10001), range(100, 10001)


class Wrong(Exception):
    """The bytes are not what the text says; str() is the field."""


def need(true, field):
    """Complain of a field unless something is so."""
    if not true:
        raise Wrong(field)


def decode_header(data):
    """The fields of the first 64 bytes, as numbers."""
    names = ("magic", "version", "type", "flags", "rsvd", "held", "tag", "src", "dst",
             "generation", "seq", "ack", "msgs", "units", "length", "imm")
    return dict(zip(names, struct.unpack_from("<HBBBBHQIIQQQIIII", data)))


def check_numbers(head):
    """seq, ack and grants."""
    if head["type"] in BARE:
        need(head["seq"] == 0, "seq")
        need(head["ack"] == 0, "ack")
        need(head["msgs"] == 0 and head["units"] == 0, "grant")
        return
    for name in ("seq", "ack"):
        most = 1 if head["type"] == OPEN else (1 << 62) - 1
        need(1 <= head[name] <= most, name)


def check_header(head):
    """All rules of a header, in the order of the text."""
    kind, opens = head["type"], head["type"] == OPEN
    need(head["magic"] == MAGIC, "magic")
    need(head["version"] == VERSION, "version")
    need(OPEN <= kind <= REFUSE, "type")
    need(head["flags"] | FLAGS.get(kind, 0) == FLAGS.get(kind, 0), "flags")
    need(head["rsvd"] == 0, "rsvd")
    need(head["held"] == 0 or not (opens or kind in BARE), "held")
    need((head["tag"] == 0) == opens, "tag")
    need(not opens or 256 <= head["dst"] <= 65535, "dst")
    need(head["generation"], "generation")
    check_numbers(head)
    lengths = {DATA: range(0, PACKET_MAX - HEADER + 1), ANNOUNCE: range(1, LARGE_MAX + 1),
               OPEN: range(0, PACKET_MAX - HEADER - BODIES[OPEN] + 1)}
    allowed = range(0, 1) if opens and not head["flags"] else lengths.get(kind, range(0, 1))
    need(head["length"] in allowed, "length")
    if kind in STATUS:
        need(head["imm"] in STATUS[kind], "imm")
    elif kind not in (DATA, ANNOUNCE) and not (opens and head["flags"]):
        need(head["imm"] == 0, "imm")


def value_valid(value):
    """Whether the 56 bytes of a record say how to reach a port (krp_table.h)."""
    kind, length = value[8], value[9]
    if kind == 3 and (any(value[12:24]) or not any(value[36:40])):
        return False
    dctn, ud_qpn = (struct.unpack_from("<I", value, at)[0] for at in (12, 36))
    mtu, level, port, flags, _, rsvd = value[50:56]
    return (any(value[:8]) and kind in (1, 3) and length == 0
            and dctn < 1 << 24 and ud_qpn < 1 << 24 and 1 <= mtu <= 5 and level <= 15
            and port >= 1 and flags <= 1 and rsvd == 0)


def decode_user(length, data):
    """What the program says in OPEN or ACCEPT."""
    need(length <= USER_MAX, "user")
    need(not any(data[length:]), "rsvd")
    return data[:length].hex()


def decode_open(head, data):
    """Body of OPEN."""
    value = data[16:72]
    tag, passed, peer, user_len = struct.unpack_from("<QQQB", data, 72)
    need(not any(data[97:104]), "rsvd")
    need(tag, "tag")
    need(value_valid(value), "value")
    need(peer and struct.unpack_from("<Q", value)[0] == head["generation"], "generation")
    return {"gid": data[:16].hex(), "value": value.hex(), "tag": tag, "pass": passed,
            "peer_generation": peer, "user": decode_user(user_len, data[104:136])}


def decode_accept(_, data):
    """Body of ACCEPT."""
    tag, user_len = struct.unpack_from("<QB", data)
    need(tag, "tag")
    need(not any(data[9:16]), "rsvd")
    return {"tag": tag, "user": decode_user(user_len, data[16:48])}


def decode_announce(head, data):
    """Body of ANNOUNCE."""
    addr, rkey, slot, pad, lease, margin = struct.unpack_from("<QIB3sII", data)
    need(not any(pad), "rsvd")
    need(addr + head["length"] < 1 << 64, "addr")
    need(slot < ANNOUNCED_MAX, "slot")
    need(lease in LEASE and margin in MARGIN, "lease")
    return {"addr": addr, "rkey": rkey, "slot": slot, "lease_ms": lease, "margin_ms": margin}


def decode_number(name, field):
    """Body of one number that is not zero."""
    def decoded(_, data):
        number, = struct.unpack_from("<Q", data)
        need(number, field)
        return {name: number}
    return decoded


BODY = {OPEN: decode_open, ACCEPT: decode_accept, ANNOUNCE: decode_announce,
        CHALLENGE: decode_number("pass", "pass"), DONE: decode_number("seq", "seq"),
        CANCEL: decode_number("seq", "seq")}


def decode(data):
    """(header, body, what the program sends) of a packet, or Wrong."""
    need(len(data) >= HEADER, "bytes")
    head = decode_header(data)
    check_header(head)
    kind = head["type"]
    begin = HEADER + BODIES.get(kind, 0)
    carried = 0 if kind == ANNOUNCE else head["length"]
    need(len(data) == begin + carried, "bytes")
    body = BODY[kind](head, data[HEADER:begin]) if kind in BODY else {}
    return head, body, data[begin:]


def main():
    """Decode the arguments."""
    bad = False
    for text in sys.argv[1:]:
        try:
            head, body, payload = decode(bytes.fromhex(text))
        except Wrong as wrong:
            print(f"{text[:16]}...: wrong: {wrong}", file=sys.stderr)
            bad = True
            continue
        print(json.dumps({"name": NAMES[head["type"] - 1], **head, "body": body,
                          "payload": payload.hex()}))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
