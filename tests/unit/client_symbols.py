#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The libraries show what the headers declare and their maps list, and nothing else;
every function is described by a manual page that lists its errors.

usage: client_symbols.py HEADER_DIR MANUAL_DIR LIBRARY MAP [LIBRARY MAP]

Each function is in one library, but krcore_open(), which is in both with a version for each.
What one library has for the other alone has the version KRCORE_PRIVATE.
"""

import pathlib
import re
import subprocess
import sys

IN_BOTH = {"krcore_open"}


def declared(folder):
    """Functions that the headers declare: name to its kernel-doc comment."""
    text = "".join(header.read_text() for header in sorted(pathlib.Path(folder).glob("*.h")))
    found = re.findall(r"/\*\*((?:(?!\*/).)*?)\*/\n(?:[a-z][^;{}()]*?[ *])(krcore_\w+)\([^;]*?\);",
                       text, re.S)
    return {name: comment for comment, name in found if f"{name}()" in comment}


def listed(symbol_map):
    """Functions that the version script names."""
    return set(re.findall(r"^\t(kr\w+_\w+);", pathlib.Path(symbol_map).read_text(), re.M))


def shown(library):
    """Dynamic symbols that the library defines, without versions' own names."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                         capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in out.splitlines()]
    versions = {name for name in names if name.startswith("KRCORE_")}
    for name in set(names) - versions:
        if "@@KRCORE_" not in name:
            raise SystemExit(f"{library}: {name} has no version")
        if name.startswith("krcore_") == name.endswith("@@KRCORE_PRIVATE"):
            raise SystemExit(f"{library}: {name}: krcore_ is public, and all else is not")
    return {name.split("@")[0] for name in names} - versions


def library_problems(library, symbol_map):
    """Where a library and its map differ."""
    names, wanted = shown(library), listed(symbol_map)
    yield from (f"{library}: {name}: in the map, not shown" for name in sorted(wanted - names))
    yield from (f"{library}: {name}: shown, not in the map" for name in sorted(names - wanted))


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
    headers, folder, *libraries = sys.argv[1:]
    functions = declared(headers)
    if not functions:
        raise SystemExit(f"{headers}: declares nothing")
    problems, public = list(manual_problems(functions, folder)), []
    for library, symbol_map in zip(libraries[::2], libraries[1::2]):
        problems += library_problems(library, symbol_map)
        public += [name for name in shown(library) if name.startswith("krcore_")]
    problems += [f"{name}: declared, in no library"
                 for name in sorted(set(functions) - set(public))]
    problems += [f"{name}: not declared" for name in sorted(set(public) - set(functions))]
    problems += [f"{name}: in {public.count(name)} libraries" for name in sorted(set(public))
                 if public.count(name) != 1 + (name in IN_BOTH)]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(functions)} functions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
