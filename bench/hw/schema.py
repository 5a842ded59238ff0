# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Judge a report: by schema.json, and by what a schema cannot say.

As much of JSON Schema as schema.json uses; a keyword that is not known here is an error, so
that none is passed over.
"""

import json
import pathlib

from . import measure

FILE = pathlib.Path(__file__).with_name("schema.json")
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "title", "description", "type", "required", "properties",
         "additionalProperties", "items", "enum", "minimum", "minItems", "minLength"}


def _is(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def _object(value, schema, at):
    known = schema.get("properties", {})
    more = schema.get("additionalProperties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield f"{at}: no {name}"
    for name, part in value.items():
        if name in known or isinstance(more, dict):
            yield from faults(part, known.get(name, more), f"{at}.{name}")
        elif not more:
            yield f"{at}: {name} is not known"


def faults(value, schema, at="report"):
    """What of a value is against a schema, a text each."""
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"schema of {at}: {', '.join(sorted(unknown))} is not known here")
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, name) for name in types):
        yield f"{at}: {value!r} is no {' or '.join(types)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if _is(value, "number") and value < schema.get("minimum", value):
        yield f"{at}: {value} is below {schema['minimum']}"
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield f"{at}: too short"
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{at}: fewer than {schema['minItems']}"
        for index, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), f"{at}[{index}]")
    if isinstance(value, dict):
        yield from _object(value, schema, at)


def _identity(row):
    return tuple(row.get(key) for key in measure.KEYS)


def _rows(rows):
    """A row has a figure or a reason, and each that is planned is there once."""
    for row in rows:
        if (row["p50"] is None) != (row["reason"] is not None) or (row["n"] == 0) != \
                (row["p50"] is None):
            yield f"row {_identity(row)}: neither a figure nor a reason, or both"
    if sorted(map(str, map(_identity, rows))) != sorted(map(str, map(_identity, measure.PLAN))):
        yield "rows: not those of the plan"


def _missing(name, host):
    """What is null is named with its reason."""
    for key, value in host.items():
        if value is None and key not in host["missing"]:
            yield f"{name}.{key}: null without a reason"
    for device in host["devices"]:
        for key, value in device.items():
            if value is None and f"devices.{device['name']}.{key}" not in host["missing"]:
                yield f"{name}.devices.{device['name']}.{key}: null without a reason"


def check(report):
    """All faults of a report."""
    found = list(faults(report, json.loads(FILE.read_text())))
    if found:
        return found
    found = list(_rows(report["rows"]))
    for name in ("server", "client"):
        found += _missing(name, report["hosts"][name])
    if report["krcore"]["commit"] is None and not report["krcore"]["reason"]:
        found.append("krcore.commit: null without a reason")
    return found
