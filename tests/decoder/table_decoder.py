#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A reader of raw dumps of a MetaServer's table, written from the text of proto/krp_dump.h,
krp_table.h and krp_hash.h alone. It shares no code with the rest: what it cannot decode, the
text does not say.

usage: table_decoder.py FILE                      the records, one JSON object a line
       table_decoder.py FILE GID:SERVICE...       what a reader is told of each of these keys

Exit code 1: the file is no dump, or its table contradicts itself.
"""

import ipaddress
import json
import struct
import sys

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
ROOT_MAGIC, DUMP_MAGIC = 0x31544F4F5243524B, 0x31504D554443524B
ROOT, SEGMENTS, DIRECTORY, PAGES = 1, 2, 3, 4
PAGE_BYTES, BUCKET_BYTES, BUCKETS, RECORDS = 2048, 256, 8, 3
FREE, LIVE = 0, 1
CROWDED = 1
KINDS = {1: "dct", 3: "lane"}
DEPTH_MAX = 26
SETTLING_MS_MAX = 86400000


class Wrong(Exception):
    """The bytes are not what the text says."""


# -- XXH64, after doc/xxhash_spec.md ------------------------------------------------

PRIME = (0, 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
         0x27D4EB2F165667C5)


def _rotate(x, bits):
    return ((x << bits) | (x >> (64 - bits))) & MASK


def _round(accumulator, lane):
    return _rotate((accumulator + lane * PRIME[2]) & MASK, 31) * PRIME[1] & MASK


def _stripes(data, seed):
    """The converged accumulator of the whole stripes of 32 bytes."""
    lanes = [(seed + PRIME[1] + PRIME[2]) & MASK, (seed + PRIME[2]) & MASK, seed & MASK,
             (seed - PRIME[1]) & MASK]
    for at in range(0, len(data) // 32 * 32, 32):
        words = struct.unpack_from("<4Q", data, at)
        lanes = [_round(lane, word) for lane, word in zip(lanes, words)]
    total = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
    for lane in lanes:
        total = ((total ^ _round(0, lane)) * PRIME[1] + PRIME[4]) & MASK
    return total


def xxh64(data, seed):
    """XXH64 of bytes."""
    h = _stripes(data, seed) if len(data) >= 32 else (seed + PRIME[5]) & MASK
    h = (h + len(data)) & MASK
    at = len(data) // 32 * 32
    while at + 8 <= len(data):
        h ^= _round(0, struct.unpack_from("<Q", data, at)[0])
        h = (_rotate(h, 27) * PRIME[1] + PRIME[4]) & MASK
        at += 8
    if at + 4 <= len(data):
        h ^= struct.unpack_from("<I", data, at)[0] * PRIME[1] & MASK
        h = (_rotate(h, 23) * PRIME[2] + PRIME[3]) & MASK
        at += 4
    for byte in data[at:]:
        h = _rotate(h ^ byte * PRIME[5] & MASK, 11) * PRIME[1] & MASK
    for shift, prime in ((33, PRIME[2]), (29, PRIME[3])):
        h = (h ^ h >> shift) * prime & MASK
    return h ^ h >> 32


def mix64(x):
    """The finaliser of splitmix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


# -- the structures of krp_table.h --------------------------------------------------


def decode_root(data):
    """struct krp_root as a dictionary."""
    (magic, version, size, log2_pages, depth, pad, incarnation, salt, _, _, segments_nr, _, _,
     epoch, records, heartbeat, settling_ms) = struct.unpack_from("<QHHBB2sQQQIIQIIQQI", data)
    (total,) = struct.unpack_from("<Q", data, 120)
    if len(data) != 128 or magic != ROOT_MAGIC or version != 2 or size != 128:
        raise Wrong("the root is none of version 2")
    if total != xxh64(data[:120], ROOT_MAGIC):
        raise Wrong("the root's sum does not hold")
    if any(pad) or any(data[84:120]) or depth > DEPTH_MAX or not incarnation \
            or settling_ms > SETTLING_MS_MAX:
        raise Wrong("the root is out of its limits")
    return {"incarnation": incarnation, "salt": salt, "log2_segment_pages": log2_pages,
            "depth": depth, "segments_nr": segments_nr, "epoch": epoch, "records": records,
            "heartbeat": heartbeat, "settling_ms": settling_ms}


def check_segments(data, root):
    """Every entry of the array carries its check word."""
    if len(data) != 16 * root["segments_nr"]:
        raise Wrong(f"{len(data)} bytes of segments, not {root['segments_nr']} of them")
    for nr in range(root["segments_nr"]):
        entry = data[16 * nr:16 * nr + 16]
        seed = root["incarnation"] ^ (nr + 1) * GOLDEN & MASK
        if xxh64(entry[:12], seed) & 0xFFFFFFFF != struct.unpack_from("<I", entry, 12)[0]:
            raise Wrong(f"segment {nr}: its check does not hold")


def decode_bucket(data):
    """struct krp_bucket as a dictionary; its records as (GID, service, value)."""
    total, incarnation, prefix, seed, depth, index, _, count, state, flags, pad = \
        struct.unpack_from("<QQIHBBIBBBB", data)
    services = struct.unpack_from("<3H", data, 248)
    records = [(data[32 + 16 * i:48 + 16 * i], services[i], data[80 + 56 * i:136 + 56 * i])
               for i in range(RECORDS)]
    return {"sum": total, "incarnation": incarnation, "prefix": prefix, "seed": seed,
            "depth": depth, "index": index, "count": count, "state": state, "flags": flags,
            "records": records, "pads": not pad and not any(data[254:])}


def bucket_whole(data, incarnation, page, index):
    """Whether these bytes are one whole write of that bucket in that incarnation."""
    place = (page * BUCKETS + index + 1) * GOLDEN & MASK
    return struct.unpack_from("<Q", data)[0] == xxh64(data[8:], incarnation ^ place)


def bucket_sane(bucket):
    """Whether every field is in its range."""
    return (bucket["pads"] and bucket["count"] <= RECORDS and bucket["state"] <= LIVE
            and not bucket["flags"] & ~CROWDED
            and bucket["index"] < BUCKETS and bucket["depth"] <= DEPTH_MAX
            and bucket["prefix"] >> bucket["depth"] == 0)


def key_hash(gid, service, salt):
    """Hash of a key."""
    return xxh64(gid + struct.pack("<H", service), salt)


def bucket_index(hashed, seed):
    """Which bucket of a page a key belongs to."""
    return mix64(hashed ^ (seed + 1) * GOLDEN & MASK) >> 61


def top_bits(hashed, depth):
    """The top bits of a hash."""
    return hashed >> (64 - depth) if depth else 0


def decode_value(data):
    """struct krp_value as a dictionary."""
    generation, kind, length = struct.unpack_from("<QBB", data)
    if kind == 2:
        return {"generation": generation, "kind": "raw", "raw": data[10:10 + length].hex()}
    if kind not in KINDS:
        raise Wrong(f"a value of kind {kind}")
    lid, dctn, dc_key, mrdir_addr, mrdir_rkey, ud_qpn, ud_qkey = \
        struct.unpack_from("<HIQQIII", data, 10)
    mac, (mtu, sl, port, flags, rd_atomic) = data[44:50], struct.unpack_from("<5B", data, 50)
    ethernet = bool(flags & 1)
    return {"generation": generation, "kind": KINDS[kind], "dctn": dctn, "dc_key": dc_key,
            "mrdir_addr": mrdir_addr, "mrdir_rkey": mrdir_rkey, "ud_qpn": ud_qpn,
            "ud_qkey": ud_qkey, "lid": None if ethernet else lid,
            "mac": mac.hex(":") if ethernet else None, "mtu_bytes": 128 << mtu, "sl": sl,
            "port": port, "link": "ethernet" if ethernet else "infiniband",
            "max_rd_atomic": rd_atomic}


def print_gid(gid):
    """A GID as verbs print it, or its IPv4 address."""
    address = ipaddress.IPv6Address(gid)
    return str(address.ipv4_mapped or address)


# -- the file ---------------------------------------------------------------------------


class Table:
    """A dump, taken apart."""

    def __init__(self, data):
        if len(data) < 24 or struct.unpack_from("<QII", data) != (DUMP_MAGIC, 1, 0):
            raise Wrong("no raw dump of version 1")
        (incarnation,) = struct.unpack_from("<Q", data, 16)
        self.directory, self.pages, segments = [], {}, b""
        self.root = None
        for kind, first, part in self._parts(data):
            if kind == ROOT:
                self.root = decode_root(part)
            elif kind == SEGMENTS:
                segments = part
            elif kind == DIRECTORY:
                if first != len(self.directory):
                    raise Wrong(f"entries from {first} on follow {len(self.directory)} others")
                self.directory += [struct.unpack_from("<IHBB", part, at)
                                   for at in range(0, len(part), 8)]
            elif kind == PAGES:
                for at in range(0, len(part), PAGE_BYTES):
                    self.pages[first + at // PAGE_BYTES] = part[at:at + PAGE_BYTES]
            else:
                raise Wrong(f"a part of kind {kind}")
        if not self.root or self.root["incarnation"] != incarnation:
            raise Wrong("no root of that incarnation")
        check_segments(segments, self.root)
        if len(self.directory) != 1 << self.root["depth"]:
            raise Wrong(f"{len(self.directory)} entries, depth {self.root['depth']}")

    @staticmethod
    def _parts(data):
        at = 24
        while at + 24 <= len(data):
            kind, pad, first, size = struct.unpack_from("<IIQQ", data, at)
            at += 24
            if pad or at + size > len(data):
                break
            if not kind:
                if size or at != len(data):
                    break
                return
            yield kind, first, data[at:at + size]
            at += size
        raise Wrong("the file was not finished")

    def bucket(self, page, index):
        """Bytes of a bucket, as a READ would bring them."""
        whole = self.pages.get(page, bytes(PAGE_BYTES))
        return whole[BUCKET_BYTES * index:BUCKET_BYTES * (index + 1)]

    def lookup(self, gid, service):
        """What a reader is told of a key: "hit" and the value, or "miss", "torn", "stale", or
        "aside": only the server can tell."""
        hashed = key_hash(gid, service, self.root["salt"])
        page, seed, _, _ = self.directory[top_bits(hashed, self.root["depth"])]
        index = bucket_index(hashed, seed)
        data = self.bucket(page, index)
        if not bucket_whole(data, self.root["incarnation"], page, index):
            return "torn", None
        bucket = decode_bucket(data)
        if not bucket_sane(bucket) or bucket["state"] != LIVE or bucket["index"] != index \
                or bucket["incarnation"] != self.root["incarnation"] \
                or bucket["prefix"] != top_bits(hashed, bucket["depth"]) \
                or bucket_index(hashed, bucket["seed"]) != index:
            return "stale", None
        for found, number, value in bucket["records"][:bucket["count"]]:
            if (found, number) == (gid, service):
                return "hit", decode_value(value)
        return "aside" if bucket["flags"] & CROWDED else "miss", None

    def _judge(self, page, index, entry, prefix):
        """A bucket that the directory names; returns its records."""
        data, name = self.bucket(page, index), f"page {page}, bucket {index}"
        if not bucket_whole(data, self.root["incarnation"], page, index):
            raise Wrong(f"{name}: torn")
        bucket = decode_bucket(data)
        _, seed, depth, _ = entry
        if not bucket_sane(bucket) or (bucket["state"], bucket["index"], bucket["depth"],
                                       bucket["seed"], bucket["prefix"],
                                       bucket["incarnation"]) != (
                LIVE, index, depth, seed, prefix, self.root["incarnation"]):
            raise Wrong(f"{name}: is not what the directory says")
        for gid, service, value in bucket["records"][bucket["count"]:]:
            if any(gid) or service or any(value):
                raise Wrong(f"{name}: a slot that is not in use is not zero")
        return bucket["records"][:bucket["count"]]

    def _judge_flags(self, page):
        """All buckets of a page are crowded, or none."""
        if len({decode_bucket(self.bucket(page, index))["flags"] for index in range(BUCKETS)}) > 1:
            raise Wrong(f"page {page}: its buckets differ in their flags")

    def records(self):
        """Every record, each found again by its key; all that is wrong is an exception."""
        seen = set()
        for at, entry in enumerate(self.directory):
            page, _, depth, _ = entry
            if depth > self.root["depth"]:
                raise Wrong(f"entry {at}: deeper than the directory")
            if page in seen:
                continue
            seen.add(page)
            self._judge_flags(page)
            for index in range(BUCKETS):
                for gid, service, value in self._judge(
                        page, index, entry, at >> (self.root["depth"] - depth)):
                    if self.lookup(gid, service) != ("hit", decode_value(value)):
                        raise Wrong(f"{print_gid(gid)} {service}: is not found by its key")
                    yield {"gid": print_gid(gid), "service": service, **decode_value(value)}


def parse_key(text):
    """GID:SERVICE, where the GID may be an IPv4 address."""
    gid, _, service = text.rpartition(":")
    address = ipaddress.ip_address(gid.strip("[]"))
    if address.version == 4:
        return bytes(10) + b"\xff\xff" + address.packed, int(service)
    return address.packed, int(service)


def main():
    """Returns the exit status."""
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    try:
        table = Table(data)
        for text in sys.argv[2:]:
            verdict, value = table.lookup(*parse_key(text))
            print(json.dumps({"key": text, "verdict": verdict, **(value or {})}))
        if len(sys.argv) == 2:
            for record in table.records():
                print(json.dumps(record))
    except Wrong as wrong:
        print(f"{sys.argv[1]}: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
