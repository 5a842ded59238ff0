#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""libkrcore shows what its headers declare and its map lists, and nothing else;
every function is described by a manual page that lists its errors.

usage: client_symbols.py LIBRARY HEADER_DIR MAP MANUAL_DIR
"""

import pathlib
import re
import subprocess
import sys


def declared(folder):
    """Functions that the headers declare: name to its kernel-doc comment."""
    text = "".join(header.read_text() for header in sorted(pathlib.Path(folder).glob("*.h")))
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
    pages = {page.name: page.read_text() for page in pathlib.Path(folder).glob("krcore_*.3")}
    for name, comment in sorted(functions.items()):
        about = [page for page, text in pages.items()
                 if re.search(rf"^\.Nm {name}( ,)?$", text, re.M)
                 and re.search(rf"^\.F[no] {name}\b", text, re.M)]
        if len(about) != 1:
            yield f"{name}: is not the subject of one page, but of {about}"
            continue
        for errno in sorted(set(re.findall(r"%-(E[A-Z]+)", comment))):
            if f"Er -{errno}" not in pages[about[0]]:
                yield f"{about[0]}: does not mention {errno} of {name}"


def main():
    library, headers, symbol_map, folder = sys.argv[1:]
    functions = declared(headers)
    if not functions:
        raise SystemExit(f"{headers}: declares nothing")
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
