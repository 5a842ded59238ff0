# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A gate over the pages that walk through the code: what they name is there, and a function that is
named behind a file, in brackets, is in that file."""
import os
import re

from gates_layers import KMOD
from lintlib import fail_if, gate

PAGES = ("kmod/README.md", "client/README.md", "metaserver/README.md")
NAME = re.compile(r"(?:krc|krcore|krl|ms|krp|kru)_\w+$")
FILE = re.compile(r"[\w/]+\.[ch]$")
MARKED = re.compile(r"`([^`\n]+)`")
PAIR = re.compile(r"`([\w/]+\.c)` \(`(\w+)`")
FLOOR = re.compile(r"^\| `(\w+)/` \|.*\| ([^|]*) \|$", re.M)


def files(tree, page):
    """Files that a page names and that are not there: from the top, from its folder, or by a name
    that one folder below it has."""
    folder = os.path.dirname(page)
    there = {name for name in tree.files("*.c", "*.h") if name.startswith(folder + "/")}
    bare = {os.path.basename(name) for name in there}
    everywhere = set(tree.files("*.c", "*.h"))
    for word in MARKED.findall(tree.read(page)):
        if FILE.match(word) and word not in everywhere and f"{folder}/{word}" not in there \
                and word not in bare:
            yield f"{page}: no file {word}"


def names(tree, page):
    """Functions, types and locks that a page names and that nothing below its folder has."""
    folder = os.path.dirname(page)
    text = "\n".join(tree.read(name) for name in tree.files("*.c", "*.h")
                     if name.startswith((folder + "/", "proto/", "common/"))
                     and not name.startswith(f"{folder}/tests/"))
    known = set(re.findall(r"\w+", text))
    for word in MARKED.findall(tree.read(page)):
        for part in re.split(r"[.()\s,]+", word):
            if NAME.match(part) and part not in known:
                yield f"{page}: nothing is named {part}"


def pairs(tree, page):
    """Functions that a page says are in a file, and that are not."""
    folder = os.path.dirname(page)
    for word, name in PAIR.findall(tree.read(page)):
        found = [file for file in tree.files("*.c") if file in (word, f"{folder}/{word}")
                 or file.startswith(folder + "/") and os.path.basename(file) == word]
        if found and not any(re.search(rf"\b{name}\(", tree.read(file)) for file in found):
            yield f"{page}: {word} has no {name}()"


def floors(tree):
    """Rows of the table of floors that say something else than gate `layers` holds."""
    rows = FLOOR.findall(tree.read(PAGES[0]))
    for folder, may in rows:
        said = set() if may.startswith("nothing") else set(may.replace(",", " ").split())
        if folder not in KMOD:
            yield f"{PAGES[0]}: no floor is named {folder}/"
        elif said != set(KMOD[folder].split()):
            yield f"{PAGES[0]}: {folder}/ may use {KMOD[folder] or 'nothing'}, not {may}"
    for folder in set(KMOD) - {"", "include"} - {folder for folder, _ in rows}:
        yield f"{PAGES[0]}: no row is about {folder}/"


@gate("walks")
def walks(tree):
    """the pages that walk through the code name files, functions and floors that are there"""
    tree = type(tree)(tree.jobs)  # as a whole, also where one file is named: it is about pairs
    fail_if([complaint for page in PAGES for look in (files, names, pairs)
             for complaint in look(tree, page)] + list(floors(tree)))
    return f"{len(PAGES)} pages"
