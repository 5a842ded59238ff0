# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The decoder of messages between nodes, against the golden vectors, and against what C code
says of packets that are almost right.

Usage: message_decoder_test.py SOURCE-TREE MESSAGE_TEST
"""
import pathlib
import random
import re
import sys
import unittest

TREE, JUDGE = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(TREE / "tests/decoder"))

import judged                      # noqa: E402
import message_decoder as md       # noqa: E402

TEXT = (TREE / "proto/vectors/message.txt").read_text()
VECTORS = judged.vectors(TEXT)
LANE = "OPENLANE"


class Messages(unittest.TestCase):
    """Bytes that C code made once, and what becomes of them."""

    def test_each_type_has_a_vector(self):
        self.assertEqual(tuple(VECTORS), (*md.NAMES, LANE))

    def test_headers_have_the_fields_that_they_were_made_of(self):
        made = re.findall(r"^#= ([A-Z]+) (.*)$", TEXT, re.M)
        self.assertEqual([name for name, _ in made], list(md.NAMES))
        for name, fields in made:
            head, _, _ = md.decode(VECTORS[name])
            for pair in fields.split():
                field, number = pair.split("=")
                self.assertEqual(head[field], int(number), f"{name}.{field}")

    def test_bodies_have_the_fields_of_message_test(self):
        opened = md.decode(VECTORS["OPEN"])
        self.assertEqual(opened[1]["gid"], "fe80000000000000505400fffe123456")
        self.assertEqual((opened[1]["tag"], opened[1]["pass"], opened[1]["peer_generation"]),
                         (0x7172737475767778, 0x8182838485868788, 0x9192939495969798))
        self.assertEqual(bytes.fromhex(opened[1]["user"]), b"hello")
        self.assertEqual(opened[2], b"what a program sends")
        self.assertEqual(md.decode(VECTORS[LANE])[1]["tag"], 0x7172737475767778)
        self.assertEqual(md.decode(VECTORS["ANNOUNCE"])[1],
                         {"addr": 0x7f0123456001, "rkey": 0x21222324, "slot": 3,
                          "lease_ms": 200, "margin_ms": 300})
        self.assertEqual(md.decode(VECTORS["ACCEPT"])[1],
                         {"tag": 0xa1a2a3a4a5a6a7a8, "user": b"ok".hex()})
        self.assertEqual(md.decode(VECTORS["DONE"])[1], {"seq": 0x0203040506070809})

    def test_both_say_the_same_of_what_is_almost_right(self):
        drawn, packets = random.Random(1), []
        for vector in VECTORS.values():
            for at in range(min(len(vector), 250)):
                for byte in (0, 1, 0xff, vector[at] ^ 1 << drawn.randrange(8)):
                    packets.append(vector[:at] + bytes([byte]) + vector[at + 1:])
            packets += [vector[:nr] for nr in range(0, len(vector), 5)] + [vector + b"\0"]
        wraps = VECTORS["ANNOUNCE"]
        packets.append(wraps[:64] + b"\xff" * 8 + wraps[72:])
        for kind in ("REFUSE", "DONE"):
            packets += [VECTORS[kind][:60] + bytes([status, 0, 0, 0]) + VECTORS[kind][64:]
                        for status in range(13)]
        verdicts = judged.said(JUDGE, packets)
        self.assertEqual(len(verdicts), len(packets))
        for packet, verdict in zip(packets, verdicts):
            self.assertEqual(judged.verdict(md, packet), verdict, packet.hex())
        # each rule is met, but that of CHALLENGE's pass, which is zero as a whole
        self.assertGreaterEqual(set(verdicts), {
            "none", "bytes", "magic", "version", "type", "flags", "rsvd", "held", "tag", "dst",
            "seq", "ack", "grant", "length", "imm", "value", "user", "slot", "lease", "addr",
            "generation"})


unittest.main(argv=sys.argv[:1])
