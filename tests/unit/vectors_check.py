#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Recompute every hash, checksum and HMAC of the golden vectors independently, and find
the same vectors in the KUnit suites.

The C code and its vectors come from one hand; this second implementation, in
another language and from the text of proto/*.h and the XXH64 specification
only, shows that the text says enough. A suite of the kernel cannot read files, so it has
copies of the vectors: each of them is compared, and one that is not known here is wrong.
"""
import hashlib
import hmac
import os
import re
import struct
import sys

M = (1 << 64) - 1
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                      0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
GOLDEN = 0x9E3779B97F4A7C15


def rotl(x, n):
    return (x << n | x >> (64 - n)) & M


def xxh_round(acc, word):
    return rotl((acc + word * P2) & M, 31) * P1 & M


def xxh64(data, seed):
    at, n = 0, len(data)
    if n >= 32:
        v = [(seed + P1 + P2) & M, (seed + P2) & M, seed, (seed - P1) & M]
        while at + 32 <= n:
            for i in range(4):
                v[i] = xxh_round(v[i], struct.unpack_from("<Q", data, at + 8 * i)[0])
            at += 32
        h = (rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18)) & M
        for x in v:
            h = ((h ^ xxh_round(0, x)) * P1 + P4) & M
    else:
        h = (seed + P5) & M
    h = (h + n) & M
    while at + 8 <= n:
        h = (rotl(h ^ xxh_round(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & M
        at += 8
    if at + 4 <= n:
        h = (rotl(h ^ struct.unpack_from("<I", data, at)[0] * P1 & M, 23) * P2 + P3) & M
        at += 4
    while at < n:
        h = rotl(h ^ data[at] * P5 & M, 11) * P1 & M
        at += 1
    h = (h ^ h >> 33) * P2 & M
    h = (h ^ h >> 29) * P3 & M
    return h ^ h >> 32


def mix64(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M
    return x ^ x >> 31


def u64(data, at=0):
    return struct.unpack_from("<Q", data, at)[0]


def load(directory, name):
    vectors = {}
    with open(os.path.join(directory, name), encoding="ascii") as f:
        for line in f:
            if not line.startswith("#"):
                key, text = line.split(":")
                vectors[key] = bytes.fromhex(text.replace(" ", ""))
    return vectors


def copies(path):
    """name -> bytes of all krc_vector_* of a KUnit suite: strings of hex, or bytes."""
    with open(path, encoding="ascii") as f:
        text = f.read()
    found = {}
    for name, body in re.findall(r"\bkrc_vector_(\w+)\[\w*\] =([^;]*);", text):
        strings = re.findall(r'"([^"]*)"', body)
        found[name] = bytes.fromhex("".join(strings)) if strings else \
            bytes(int(number, 16) for number in re.findall(r"0x(\w\w)\b", body))
    named = set(re.findall(r"\bkrc_vector_(\w+)", text))
    return found, named


def constants(path):
    """name -> number of all KRC_TEST_* and KRC_VECTOR_* of a suite that are plain numbers."""
    with open(path, encoding="ascii") as f:
        return {name: int(number, 0) for name, number in re.findall(
            r"^#define KRC_(?:TEST|VECTOR)_(\w+) (0x[0-9a-f]+|\d+)U?L*$", f.read(), re.M)}


def copies_differ(directory, suites):
    """What the KUnit suites have wrong."""
    hashes, table, msg, auth, mrdir, message = (
        load(directory, n + ".txt")
        for n in ("hash", "table", "msg", "auth", "mrdir", "message"))
    value_at = 80
    wanted = {
        "krc_proto_test.c": {
            "key_hash": hashes["key_hash"], "mix64": hashes["mix64_of_1"],
            "value": table["value_dct"], "bucket": table["bucket"], "crowded": table["crowded"],
            "segment": table["segment"], "root": table["root"], "hello": msg["HELLO"],
            "challenge": msg["CHALLENGE"], "welcome": msg["WELCOME"], "key": auth["key"],
            "key_id": auth["key_id"], "link": auth["link"], "client": auth["client"],
            "server": auth["server"]},
        "krc_mr_test.c": {"live": mrdir["live"]},
        "krc_message_test.c": {name.lower(): data for name, data in message.items()},
    }
    numbers = {
        "krc_proto_test.c": {"INCARNATION": u64(table["incarnation"]), "SALT": u64(hashes["salt"]),
                             "PAGE": u64(table["page"]), "SEED": u64(hashes["seed"])},
        "krc_mr_test.c": dict(zip(("TOKEN", "GENERATION"), (
            struct.unpack_from("<Q", mrdir["live"], at)[0] for at in (8, 48)))),
    }
    bad = []
    for file, vectors in wanted.items():
        path = os.path.join(suites, file)
        found, named = copies(path)
        if set(vectors) != named or named != set(found):
            bad.append(f"{file}: has vectors {sorted(named)}, known are {sorted(vectors)}")
            continue
        if "bucket" in found:   # the value in it stands by itself
            found["bucket"] = found["bucket"].ljust(value_at, b"\0") + found["value"]
        bad += [f"{file}: krc_vector_{name} is not that of {directory}"
                for name, vector in vectors.items()
                if found[name].ljust(len(vector), b"\0") != vector]
        there = constants(path)
        bad += [f"{file}: {name} is {there.get(name, 0):#x} instead of {number:#x}"
                for name, number in numbers.get(file, {}).items() if there.get(name) != number]
    return bad


def proofs_differ(session, auth):
    """What is wrong with the proofs of the transcript, whose key and link are auth.txt's."""
    lines = {name[3:]: data for name, data in reversed(session.items())}  # the first of each
    hello, challenge, welcome = (lines[n] for n in ("client_HELLO", "server_CHALLENGE",
                                                    "server_WELCOME"))
    bad = []
    for who, last, mac in (
            ("client", b"", lines["client_AUTH"][32:]),
            ("server", welcome[:32] + bytes(32) + welcome[64:], welcome[32:64])):
        text = f"krcore auth {who} v2".encode() + auth["link"] + hello + challenge + last
        if hmac.new(auth["key"], text, hashlib.sha256).digest() != mac:
            bad.append(f"session.txt: the {who}'s proof does not hold")
    return bad


def main():
    directory, suites = sys.argv[1:]
    hashes, table, msg, auth = (load(directory, n + ".txt")
                                for n in ("hash", "table", "msg", "auth"))
    bad = copies_differ(directory, suites) + proofs_differ(load(directory, "session.txt"), auth)

    def same(what, ours, theirs):
        if ours != theirs:
            bad.append(f"{what}: computed {ours:#x}, vector has {theirs:#x}")

    bucket, root, segment = table["bucket"], table["root"], table["segment"]
    incarnation, page = u64(table["incarnation"]), u64(table["page"])
    if bucket[32:48] + bucket[248:250] != hashes["key"]:
        bad.append("the bucket's first record is not that of hash.txt")
    h = xxh64(hashes["key"], u64(hashes["salt"]))
    index = mix64(h ^ (u64(hashes["seed"]) + 1) * GOLDEN & M) >> 61
    same("hash of the empty string", xxh64(b"", 0), 0xEF46DB3751D8E999)
    same("hash of the key", h, u64(hashes["key_hash"]))
    same("mix of 1", mix64(1), u64(hashes["mix64_of_1"]))
    same("bucket index", index, u64(hashes["bucket_index"]))
    place = (page * 8 + index + 1) * GOLDEN & M
    same("bucket sum", xxh64(bucket[8:], incarnation ^ place), u64(bucket))
    crowded = table["crowded"]
    same("sum of the crowded bucket", xxh64(crowded[8:], incarnation ^ place), u64(crowded))
    same("prefix of the crowded bucket", h >> (64 - crowded[22]),
         struct.unpack_from("<I", crowded, 16)[0])
    same("bucket prefix", h >> (64 - bucket[22]), struct.unpack_from("<I", bucket, 16)[0])
    same("root sum", xxh64(root[:120], u64(b"KRCROOT1")), u64(root, 120))
    seed = incarnation ^ (u64(table["segment_nr"]) + 1) * GOLDEN & M
    same("segment check", xxh64(segment[:12], seed) & 0xFFFFFFFF,
         struct.unpack_from("<I", segment, 12)[0])
    welcome = msg["WELCOME"][:32] + bytes(32) + msg["WELCOME"][64:]   # its mac counts as zero
    key_id = hashlib.sha256(auth["key"]).digest()[:4]
    if not key_id == auth["key_id"] == msg["HELLO"][-8:-4] == msg["CHALLENGE"][-4:]:
        bad.append("the id of the key is not the begin of its SHA-256 everywhere")
    for who, last in (("client", b""), ("server", welcome)):
        text = (f"krcore auth {who} v2".encode() + auth["link"] + msg["HELLO"] + msg["CHALLENGE"] +
                last)
        mac = hmac.new(auth["key"], text, hashlib.sha256).digest()
        same(f"HMAC of the {who}", int.from_bytes(mac, "big"), int.from_bytes(auth[who], "big"))
    for name, entry in load(directory, "mrdir.txt").items():
        same(f"sum of the {name} entry", xxh64(entry[8:], u64(b"KRCROOT1")), u64(entry))
    for line in bad:
        print(line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
