# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A gate over the words of comments and pages: the field's, in sentences that have a subject.

Its list is of words that stood in this tree and that a newcomer had to guess at.
"""
import re

from lintlib import fail_if, gate

# (what is not to be said, what to say instead)
WORDS = [(re.compile(pattern, re.M), instead) for pattern, instead in (
    (r"\b(?:[Hh]e|[Hh]im|[Hh]is|[Hh]imself)\b", "name the caller, the task, the client"),
    (r"\bfor whom?\b", "name for what or for which caller"),
    (r"(?:^|[.:;] )[\s/*]*Who (?!(?:is|are|may|can|has)\b[^.]*\?)[a-z]",
     "a sentence has a subject: a caller that, a task that"),
    (r"\bsoft interrupts?\b", "softirq"),
    (r"\bfor people\b", "for diagnostics"),
    (r"\b(?:wait|waits|waited|waiting) awake\b", "busy-poll"),
)]
FOLDERS = ("kmod", "metaserver", "client", "common", "proto", "bench", "docs", "race", "handoff",
           "tests")
PAGES = ("README.md", "CONTRIBUTING.md", "NEWS.md", "SECURITY.md")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def texts(name, whole):
    """(offset, text) of what is written for readers in a file."""
    if not name.endswith((".c", ".h")):
        return [(0, whole)]
    return [(found.start(), found.group()) for found in COMMENT.finditer(whole)]


@gate("words")
def words(tree):
    """comments and pages use the field's words"""
    lines, judged = [], 0
    for name in tree.files("*.c", "*.h", "*.md", "*.[1-9]"):
        if name.split("/")[0] not in FOLDERS and name not in PAGES:
            continue
        judged += 1
        whole = tree.read(name)
        for start, text in texts(name, whole):
            for pattern, instead in WORDS:
                for found in pattern.finditer(text):
                    line = whole.count("\n", 0, start + found.start()) + 1
                    lines.append(f"{name}:{line}: {' '.join(found.group().split())!r}: {instead}")
    fail_if(lines)
    return f"{judged} files"
