#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""libkrcore shows what its header declares and its map lists, and nothing else;
every function has a manual page, which the header's errors appear in.

usage: client_symbols.py LIBRARY HEADER MAP MANUAL_DIR
"""

import pathlib
import re
import subprocess
import sys


def declared(header):
    """Functions that the header declares: name to its kernel-doc comment."""
    text = pathlib.Path(header).read_text()
    found = re.findall(r"/\*\*((?:(?!\*/).)*?)\*/\n(?:[a-z][^;{}()]*?[ *])(krcore_\w+)\([^;]*?\);",
                       text, re.S)
    return {name: comment for comment, name in found if f"{name}()" in comment}


def listed(symbol_map):
    """Functions that the version script names."""
    return set(re.findall(r"^\t(krcore_\w+);", pathlib.Path(symbol_map).read_text(), re.M))


def shown(library):
    """Dynamic symbols that the library defines, without versions' own names."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                         capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in out.splitlines()]
    versions = {name for name in names if name.startswith("KRCORE_")}
    for name in set(names) - versions:
        if "@@KRCORE_" not in name:
            raise SystemExit(f"{library}: {name} has no version")
    return {name.split("@")[0] for name in names} - versions


def manual_problems(functions, folder):
    """What is missing in the manual, one line each."""
    for name, comment in sorted(functions.items()):
        page = pathlib.Path(folder) / f"{name}.3"
        if not page.exists():
            yield f"{name}: no page {page.name}"
            continue
        text = page.read_text()
        if f".Fn {name}" not in text and f".Fo {name}" not in text and ".so man3/" not in text:
            yield f"{page.name}: does not describe {name}"
        for errno in re.findall(r"%-(E[A-Z]+)", comment):
            if f"E{errno[1:]}" not in text:
                yield f"{page.name}: does not mention {errno}"


def main():
    library, header, symbol_map, folder = sys.argv[1:]
    functions = declared(header)
    if not functions:
        raise SystemExit(f"{header}: declares nothing")
    problems = list(manual_problems(functions, folder))
    for what, names in (("the map", listed(symbol_map)), ("the library", shown(library))):
        problems += [f"{name}: declared, not in {what}" for name in set(functions) - names]
        problems += [f"{name}: in {what}, not declared" for name in names - set(functions)]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(functions)} functions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
