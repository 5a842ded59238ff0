#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Make the field tables of the ConnectX model from linux/mlx5/mlx5_ifc.h.

usage: gen_ifc.py mlx5_ifc.h commands.def > ifc-tables.c

For every command in commands.def it prints the named fields of the input
(path, bit offset, width) and a mask of the bits that are not reserved.  The
model refuses an input that has a reserved bit set and traces inputs by name.
"""
import re
import sys

MEMBER = re.compile(r"(?:(u8)|struct mlx5_ifc_(\w+)|union mlx5_ifc_(\w+))\s+(\w+)"
                    r"((?:\[[^\]]*\])*)\s*;")
NO_NAMES = {"hca_cap_union_bits"}    # too large to be read in a trace


class Layouts:
    """All bit layouts of the header, as lists of (kind, type, name, dims)."""

    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r"//.*", "", text)
        text = re.sub(r"DECLARE_FLEX_ARRAY\(([^,]+),\s*(\w+)\)", r"\1 \2[]", text)
        self.body = {}
        for m in re.finditer(r"^(struct|union) mlx5_ifc_(\w+) \{(.*?)^\};", text, re.S | re.M):
            self.body[(m[1], m[2])] = m[3]
        self.parsed = {}

    def members(self, kind, name):
        key = (kind, name)
        if key not in self.parsed:
            self.parsed[key] = self.parse(self.body[key])
        return self.parsed[key]

    def parse(self, body):
        out, pos = [], 0
        while pos < len(body):
            rest = body[pos:]
            anon = re.match(r"\s*(struct|union)\s*\{", rest)
            if anon:
                end = self.closing(body, pos + anon.end())
                tail = re.match(r"\}\s*(\w*)\s*;", body[end:])
                out.append(("anon-" + anon[1], self.parse(body[pos + anon.end():end]), tail[1], []))
                pos = end + tail.end()
                continue
            m = MEMBER.match(rest.lstrip())
            if not m:
                if rest.strip():
                    raise SystemExit(f"cannot parse: {rest.strip()[:80]!r}")
                break
            dims = [int(d, 0) if d.strip() else None for d in re.findall(r"\[([^\]]*)\]", m[5])]
            kind = "u8" if m[1] else "struct" if m[2] else "union"
            out.append((kind, m[2] or m[3], m[4], dims))
            pos += len(rest) - len(rest.lstrip()) + m.end()
        return out

    @staticmethod
    def closing(body, pos):
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(body[pos], 0)
            pos += 1
        return pos - 1

    def walk(self, member, off, path, visit):
        """Visit the leaves of one member; return its size in bits (None: open-ended)."""
        kind, typ, name, dims = member
        path = f"{path}.{name}" if path and name else path or name
        if kind == "u8":
            flex = None in dims
            bits = 1
            for d in dims:
                bits *= d or 1
            visit(path, name, off, None if flex else bits)
            return None if flex else bits
        count = dims[0] if dims else 1
        if count is None:
            visit(path, name, off, None)
            return None
        total = 0
        for i in range(count):
            sub = path + (f"[{i}]" if count > 1 else "")
            if kind == "struct":
                size = self.walk_all(self.members("struct", typ), off + total, sub, visit)
            elif kind == "anon-struct":
                size = self.walk_all(typ, off + total, sub, visit)
            else:
                inner = typ if kind == "anon-union" else self.members("union", typ)
                if kind == "union" and typ in NO_NAMES:
                    visit(sub, typ, off, None)
                    return None
                sizes = [self.walk(one, off + total, sub, visit) for one in inner]
                size = max((s for s in sizes if s is not None), default=None)
            if size is None:
                return None
            total += size
        return total

    def walk_all(self, members, off, path, visit):
        at = 0
        for m in members:
            size = self.walk(m, off + at, path, visit)
            if size is None:
                return None
            at += size
        return at


def describe(layouts, name):
    fields, used, tail = [], set(), [None]

    def visit(path, leaf, off, bits):
        if bits is None:
            tail[0] = off if tail[0] is None else min(tail[0], off)
            return
        if leaf.startswith("reserved") or leaf.startswith("rsvd"):
            return
        fields.append((path, off, bits))
        used.update(range(off, off + bits))

    size = layouts.walk_all(layouts.members("struct", name + "_bits"), 0, "", visit)
    end = tail[0] if tail[0] is not None else size
    mask = bytearray((end + 7) // 8)
    for bit in used:
        if bit < end:
            mask[bit // 8] |= 0x80 >> (bit % 8)
    return fields, bytes(mask), end // 8


def main():
    layouts = Layouts(open(sys.argv[1], encoding="utf-8").read())
    names = re.findall(r"^CX_CMD\(\w+, (\w+),", open(sys.argv[2], encoding="utf-8").read(), re.M)
    print("/* SPDX-License-Identifier: GPL-2.0-only OR MIT */")
    print("/* made by tools/gen_ifc.py, do not edit */")
    print('#include "ifc.h"\n')
    done = []
    for name in names:
        if name in done:
            continue
        done.append(name)
        fields, mask, size = describe(layouts, name + "_in")
        print(f"static const struct cx_ifc_field fields_{name}[] = {{")
        for path, off, bits in fields:
            print(f'\t{{ "{path}", {off}, {bits} }},')
        print("};")
        print(f"static const u8 mask_{name}[] = {{")
        for i in range(0, len(mask), 12):
            print("\t" + " ".join(f"0x{b:02x}," for b in mask[i:i + 12]))
        print("};")
        print(f"const struct cx_ifc_layout cx_ifc_{name} = {{")
        print(f'\t"{name}", fields_{name}, {len(fields)}, mask_{name}, {size},\n}};\n')
    return 0


if __name__ == "__main__":
    sys.exit(main())
