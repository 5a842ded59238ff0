#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""proto/krp_genl.h and docs/netlink/krcore.yaml say the same: commands and attributes
by name and number, states, types and bounds; and what kmod/ctl/netlink.c accepts agrees.

usage: genl_check.py HEADER SPECIFICATION POLICY_SOURCE INCLUDE_FOLDER
"""
import re
import subprocess
import sys

import yaml

FAILED = []


def check(what, one, other):
    """Note a difference between the two."""
    if one != other:
        FAILED.append(f"{what}: {one!r} in the specification, {other!r} in the source")


def constants(header, folder):
    """Every KRP_ name of the header and what it includes, as the compiler sees it."""
    text = subprocess.run(["cc", "-E", "-dM", f"-I{folder}", header], check=True,
                          capture_output=True, text=True).stdout
    values = {}
    for name, value in re.findall(r"#define (KRP_\w+) (.+)", text):
        match = re.fullmatch(r'"?(\w+)"?', value)
        if match:
            try:
                values[name] = int(match[1], 0)
            except ValueError:
                values[name] = match[1]
    text = subprocess.run(["cc", "-E", "-P", f"-I{folder}", header], check=True,
                          capture_output=True, text=True).stdout
    for body in re.findall(r"enum \{(.*?)\}", text, re.S):
        number = 0
        for entry in re.findall(r"(\w+)(?:\s*=\s*\(?([^,]+?)\)?)?\s*(?:,|$)", body.strip()):
            if entry[1]:
                number = int(entry[1], 0) if entry[1].isdigit() else None
            if number is None:
                continue
            values[entry[0]] = number
            number += 1
    return values


def upper(prefix, name):
    """The C name of a YAML name."""
    return (prefix + name).upper().replace("-", "_")


def numbers(prefix, names, values, what):
    """The names are numbered from 1 and the header has no others under the prefix."""
    start = upper(prefix, "")
    wanted = {upper(prefix, name): number for number, name in enumerate(names, 1)}
    found = {name: value for name, value in values.items()
             if name.startswith(start) and name != f"{start}MAX"}
    check(what, wanted, found)


def comment_types(header):
    """Type of each attribute, which its comment in the header begins with."""
    return {name: (kind, bytes_nr) for name, kind, bytes_nr in re.findall(
        r"^\t(KRP_GENL_A_\w+),? /\* (u8|u16|u32|u64|s32|string|binary|nest)"
        r"(?:, (\d+) bytes(?=:| \*/))?", open(header).read(), re.M)}


def policies(path, values):
    """What netlink.c accepts: attribute -> (type, bounds) as far as it is spelled out."""
    text = open(path).read()
    ranges = {}
    for name, body in re.findall(r"netlink_range_validation (\w+) = \{(.*?)\};", text, re.S):
        ranges[name] = {key: values[value] for key, value in
                        re.findall(r"\.(min|max) = (\w+)", body)}
    found = {}
    for name, rule in re.findall(r"\[(KRP_GENL_A_\w+)\] =\s*(.*?),\n(?=\t\[|\};)", text, re.S):
        numbers_in = [values.get(w, int(w, 0) if w.isdigit() else None)
                      for w in re.findall(r"\b(KRP_\w+|\d+)\b", rule)]
        kind = re.search(r"NLA_(U8|U16|U32|U64|BINARY|NUL_STRING|REJECT)\b", rule)
        if "FULL_RANGE" in rule:
            bounds = ranges[re.search(r"&(\w+)", rule)[1]]
        elif "POLICY_RANGE" in rule:
            bounds = {"min": numbers_in[0], "max": numbers_in[1]}
        elif "POLICY_MIN" in rule:
            bounds = {"min": numbers_in[0]}
        elif "POLICY_MAX" in rule or ".len" in rule:
            bounds = {"max": numbers_in[-1]}
        elif "EXACT_LEN" in rule:
            bounds = {"min": numbers_in[0], "max": numbers_in[0]}
        else:
            bounds = {}
        found[name] = (kind[1] if kind else "NESTED" if "NESTED" in rule else "BINARY", bounds)
    return found


POLICY_TYPES = {"u8": "U8", "u16": "U16", "u32": "U32", "u64": "U64", "binary": "BINARY",
                "string": "NUL_STRING", "nest": "NESTED"}


def spec_bounds(attribute):
    """Bounds of an attribute of the specification, in the terms of policies()."""
    checks = attribute.get("checks", {})
    if "exact-len" in checks:
        return {"min": checks["exact-len"], "max": checks["exact-len"]}
    return {key.removesuffix("-len"): value for key, value in checks.items()}


def check_sets(spec, header, values):
    """Attribute sets: numbers, types, and lengths that the header's comments give."""
    comments = comment_types(header)
    for group in spec["attribute-sets"]:
        names = [attribute["name"] for attribute in group["attributes"]]
        numbers(group["name-prefix"], names, values, f"set {group['name']}")
        for attribute in group["attributes"]:
            full = upper(group["name-prefix"], attribute["name"])
            if attribute["type"] == "pad":
                continue
            kind, bytes_nr = comments.get(full, (None, ""))
            check(f"type of {full}", attribute["type"], kind)
            if bytes_nr:
                check(f"bytes of {full}", attribute["checks"].get("exact-len"), int(bytes_nr))


def check_requests(spec, source, values):
    """What node-up takes is what the module accepts, with the same bounds."""
    sets = {group["name"]: group for group in spec["attribute-sets"]}
    accepted = policies(source, values)
    operations = {op["name"]: op for op in spec["operations"]["list"]}
    taken = set(operations["node-up"]["do"]["request"]["attributes"])
    for name, group in sets.items():
        for attribute in group["attributes"]:
            full = upper(group["name-prefix"], attribute["name"])
            if full not in accepted:
                check(f"{full} in node-up", name == "node" and attribute["name"] in taken, False)
                continue
            kind, bounds = accepted[full]
            if name == "node":
                check(f"{full} in node-up", attribute["name"] in taken, kind != "REJECT")
            if kind != "REJECT":
                check(f"type of {full}", POLICY_TYPES[attribute["type"]], kind)
                check(f"bounds of {full}", spec_bounds(attribute), bounds)


def check_operations(spec, values):
    """Commands are numbered as in the header and name attributes that exist."""
    sets = {group["name"]: {a["name"] for a in group["attributes"]}
            for group in spec["attribute-sets"]}
    operations = spec["operations"]
    numbers(operations["name-prefix"], [op["name"] for op in operations["list"]], values,
            "commands")
    for op in operations["list"]:
        for mode in ("do", "dump"):
            for side in op.get(mode, {}).values():
                unknown = set(side.get("attributes", ())) - sets[op["attribute-set"]]
                check(f"attributes of {op['name']}", unknown, set())


def main():
    """Compare; returns the exit status."""
    header, specification, source, folder = sys.argv[1:]
    with open(specification) as file:
        spec = yaml.safe_load(file)
    values = constants(header, folder)
    for extra in ("krp_ioctl.h", "krp_ioctl_message.h", "krp_msg.h", "krp_table.h"):
        values.update(constants(f"{folder}/{extra}", folder))
    check("name", spec["name"], values[upper("", spec["c-family-name"])])
    check("version", spec.get("version", 1), values[upper("", spec["c-version-name"])])
    for group in spec["definitions"]:
        for number, entry in enumerate(group["entries"], group.get("value-start", 0)):
            full = upper(group["name-prefix"], entry)
            check(full, number, values.get(full))
    check_sets(spec, header, values)
    check_operations(spec, values)
    check_requests(spec, source, values)
    for line in FAILED:
        print(line)
    print(f"{len(spec['operations']['list'])} commands, {len(spec['attribute-sets'])} sets: "
          f"{len(FAILED)} differences")
    return 1 if FAILED else 0


sys.exit(main())
