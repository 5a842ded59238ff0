# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The decoder of the hand-shake of lanes, against the golden vectors, and against what C code
says of packets that are almost right.

Usage: lane_decoder_test.py SOURCE-TREE LANE_TEST
"""
import pathlib
import random
import re
import sys
import unittest

TREE, JUDGE = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(TREE / "tests/decoder"))

import judged                   # noqa: E402
import lane_decoder as ld       # noqa: E402

TEXT = (TREE / "proto/vectors/lane.txt").read_text()
KEY = bytes.fromhex(re.search(r"^key: (.*)$", TEXT, re.M)[1])
VECTORS = judged.vectors(TEXT)


class Lanes(unittest.TestCase):
    """Bytes that C code made once, and what becomes of them."""

    def test_each_type_has_a_vector(self):
        self.assertEqual(tuple(VECTORS), ld.NAMES)

    def test_packets_have_the_numbers_that_they_were_made_of(self):
        made = re.findall(r"^#= ([A-Z]+) (.*)$", TEXT, re.M)
        self.assertEqual([name for name, _ in made], list(ld.NAMES))
        for name, fields in made:
            head = ld.decode(VECTORS[name])
            for pair in fields.split():
                field, number = pair.split("=")
                self.assertEqual(head[field], int(number), f"{name}.{field}")

    def test_packets_have_the_bytes_of_lane_test(self):
        gids = "fe80000000000000505400fffe123456", "fe80000000000000505400fffe1234a9"
        for name, data in VECTORS.items():
            head = ld.decode(data)
            order = gids if head["flags"] else gids[::-1]
            self.assertEqual((head["gid"], head["peer_gid"]), order, name)
        self.assertEqual(bytes.fromhex(ld.decode(VECTORS["REQUEST"])["value"])[36:40],
                         bytes.fromhex("73727100"))

    def test_each_vector_is_proved_and_no_changed_bit_is(self):
        drawn = random.Random(2)
        for name, data in VECTORS.items():
            ld.decode(data, KEY)
            with self.assertRaisesRegex(ld.Wrong, "^mac$"):
                ld.decode(data, KEY + b"\0")
            for at in range(len(data)):
                changed = bytearray(data)
                changed[at] ^= 1 << drawn.randrange(8)
                with self.assertRaises(ld.Wrong, msg=f"{name} at {at}"):
                    ld.decode(bytes(changed), KEY)

    def test_both_say_the_same_of_what_is_almost_right(self):
        drawn, packets = random.Random(1), []
        for vector in VECTORS.values():
            for at in range(len(vector)):
                for byte in (0, 1, 0xff, vector[at] ^ 1 << drawn.randrange(8)):
                    packets.append(vector[:at] + bytes([byte]) + vector[at + 1:])
            packets += [vector[:nr] for nr in range(0, len(vector), 5)] + [vector + b"\0"]
            for at, nr in ((8, 8), (16, 8), (24, 8), (32, 8), (40, 16), (56, 16), (72, 4), (76, 4),
                           (88, 8), (96, 8), (88, 16), (160, 4), (164, 4)):
                packets.append(vector[:at] + bytes(nr) + vector[at + nr:])
                packets.append(vector[:at] + b"\xff" * nr + vector[at + nr:])
            packets.append(vector[:40] + vector[56:72] + vector[56:])
        verdicts = judged.said(JUDGE, packets)
        self.assertEqual(len(verdicts), len(packets))
        for packet, verdict in zip(packets, verdicts):
            self.assertEqual(judged.verdict(ld, packet), verdict, packet.hex())
        self.assertEqual(set(verdicts), {
            "none", "bytes", "magic", "version", "type", "flags", "index", "mtu", "max_rd_atomic",
            "lane", "nonce", "generation", "gid", "qpn", "psn", "spent", "cookie", "value",
            "status", "mac"})


unittest.main(argv=sys.argv[:1])
