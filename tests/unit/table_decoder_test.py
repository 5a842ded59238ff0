# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The decoder of raw dumps, against the golden vectors and against tables that the daemon's
own code made.

Usage: table_decoder_test.py SOURCE-TREE TABLE_IMAGE
"""
import pathlib
import random
import re
import subprocess
import sys
import unittest

TREE, IMAGE = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(TREE / "tests/decoder"))

import table_decoder as td       # noqa: E402

# the fields behind proto/vectors/table.txt
INCARNATION, SALT, PAGE = 0x0123456789ABCDEF, 0xFEDCBA9876543210, 12345
GID = bytes.fromhex("fe80000000000000505400fffe123456")


def vector(name, file="table"):
    """The bytes of a golden vector."""
    text = (TREE / f"proto/vectors/{file}.txt").read_text()
    return bytes.fromhex(re.search(rf"^{name}: (.*)$", text, re.M)[1])


def image(records, removed=0, twins=0):
    """(dump, {(gid, service): value} of what is in the table, and of what was taken out)"""
    made = subprocess.run([IMAGE, str(records), str(removed), str(twins)], capture_output=True,
                          check=True)
    known = {"in": {}, "out": {}}
    for line in made.stderr.decode().splitlines():
        where, gid, service, value = line.split()
        known[where][bytes.fromhex(gid), int(service)] = td.decode_value(bytes.fromhex(value))
    return made.stdout, known["in"], known["out"]


def decoded(dump):
    """{(gid, service): value} as the decoder sees it."""
    found = {}
    for row in td.Table(dump).records():
        key = td.parse_key(f"{row.pop('gid')}:{row.pop('service')}")
        assert key not in found, key
        found[key] = row
    return found


class Vectors(unittest.TestCase):
    """Bytes that C code made once."""

    def test_xxh64_of_nothing_is_as_the_text_says(self):
        self.assertEqual(td.xxh64(b"", 0), 0xEF46DB3751D8E999)

    def test_hashes(self):
        def number(name):
            return int.from_bytes(vector(name, "hash"), "little")
        hashed = td.key_hash(GID, 0, SALT)
        self.assertEqual(hashed, number("key_hash"))
        self.assertEqual(td.mix64(1), number("mix64_of_1"))

    def test_root_segment_and_bucket(self):
        root = td.decode_root(vector("root"))
        self.assertEqual((root["incarnation"], root["salt"], root["depth"]),
                         (INCARNATION, SALT, 9))
        self.assertEqual((root["heartbeat"], root["settling_ms"]),
                         (0x0102030405060708, 0x7148))
        with self.assertRaises(td.Wrong):
            td.decode_root(vector("root")[:-1] + b"\0")
        data = vector("bucket")
        bucket = td.decode_bucket(data)
        self.assertTrue(td.bucket_sane(bucket))
        self.assertTrue(td.bucket_whole(data, INCARNATION, PAGE, bucket["index"]))
        self.assertFalse(td.bucket_whole(data, INCARNATION, PAGE + 1, bucket["index"]))
        gid, service, value = bucket["records"][0]
        self.assertEqual((gid, service, value), (GID, 0, vector("value_dct")))

    def test_a_crowded_bucket(self):
        data = vector("crowded")
        bucket = td.decode_bucket(data)
        self.assertTrue(td.bucket_sane(bucket))
        self.assertTrue(td.bucket_whole(data, INCARNATION, PAGE, bucket["index"]))
        self.assertEqual((bucket["flags"], bucket["count"]), (td.CROWDED, 0))
        bucket["flags"] = 2
        self.assertFalse(td.bucket_sane(bucket))

    def test_values(self):
        self.assertEqual(td.decode_value(vector("value_raw")),
                         {"generation": 7, "kind": "raw", "raw": b"hello".hex()})
        dct = td.decode_value(vector("value_dct"))
        self.assertEqual((dct["dctn"], dct["mac"], dct["lid"], dct["link"]),
                         (0x313233, "52:54:00:12:34:56", None, "ethernet"))
        lane = td.decode_value(vector("value_lane"))
        self.assertEqual((lane["kind"], lane["dctn"], lane["dc_key"], lane["ud_qpn"]),
                         ("lane", 0, 0, 0x717273))


class Tables(unittest.TestCase):
    """Tables of the daemon's code."""

    def test_every_record_and_no_other(self):
        for records, removed in ((0, 0), (1, 0), (30, 0), (5000, 1000), (300, 300)):
            dump, there, gone = image(records, removed)
            self.assertEqual(len(there), records - removed)
            self.assertEqual(decoded(dump), there)
            table = td.Table(dump)
            self.assertEqual({table.lookup(*key)[0] for key in gone},
                             {"miss"} if gone else set())

    def test_a_crowd_is_in_the_table_or_may_be_aside(self):
        dump, there, _ = image(500, 0, 40)
        table, found = td.Table(dump), decoded(dump)
        self.assertEqual(len(there), 540)
        aside = {key for key in there if key not in found}
        self.assertGreater(len(aside), 20)      # of keys of one hash three find room
        self.assertEqual({table.lookup(*key)[0] for key in aside}, {"aside"})
        self.assertEqual(found, {key: value for key, value in there.items()
                                 if key not in aside})
        drawn = random.Random(3)
        said = [table.lookup(drawn.randbytes(16), drawn.randrange(65536))[0]
                for _ in range(2000)]
        self.assertEqual(set(said), {"miss", "aside"})
        self.assertLess(said.count("aside"), 200)   # those of one page

    def test_a_key_that_never_was_is_a_definite_miss(self):
        table = td.Table(image(5000)[0])
        drawn = random.Random(1)
        said = {table.lookup(drawn.randbytes(16), drawn.randrange(65536))[0]
                for _ in range(2000)}
        self.assertEqual(said, {"miss"})

    def test_no_flipped_bit_is_believed(self):
        dump, there, _ = image(200)
        drawn = random.Random(2)
        noticed = 0
        for _ in range(100):
            at, bit = drawn.randrange(len(dump)), 1 << drawn.randrange(8)
            bad = bytearray(dump)
            bad[at] ^= bit
            try:
                self.assertEqual(decoded(bytes(bad)), there, f"byte {at}, bit {bit:#x}")
            except td.Wrong:
                noticed += 1
        self.assertGreater(noticed, 60)

    def test_a_file_that_was_not_finished_is_refused(self):
        dump = image(30)[0]
        for nr in (0, 23, 24, 100, len(dump) - 24, len(dump) - 1):
            with self.assertRaises(td.Wrong):
                td.Table(dump[:nr])


unittest.main(argv=sys.argv[:1])
