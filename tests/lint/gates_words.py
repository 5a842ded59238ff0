# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A gate over the words of comments, pages and what programs say: the field's, in sentences that
have a subject.

Its list is of words that stood in this tree and that a newcomer had to guess at.
"""
import io
import re
import tokenize

from lintlib import fail_if, gate

# (what is not to be said, what to say instead)
WORDS = [(re.compile(pattern, re.M), instead) for pattern, instead in (
    (r"\b(?:[Hh]e|[Hh]im|[Hh]is|[Hh]imself)\b", "name the caller, the task, the client"),
    (r"\b[Ff]or whom?\b", "name for what or for which caller"),
    (r"(?:(?:^|[.:;] )[\s/*\"]*Who|(?:/\*+|[.;\"]) who|(?<!#)# [Ww]ho) "
     r"(?!(?:is|are|may|can|has)\b[^.]*\?)[a-z]",
     "a sentence has a subject: a caller that, a task that"),
    (r"\b(?:to|of|by|with|than|from|joins|stops|nor|only)\s[\s/*#]*who [a-z]",
     "name it: to a caller that, by a task that"),
    (r"\bsoft interrupts?\b", "softirq"),
    (r"\bfor people\b", "for diagnostics"),
    (r"\b(?:wait|waits|waited|waiting) awake\b", "busy-poll"),
    (r"\bgraves?\b", "tombstone"),
    (r"\b(?:and|in|out) sight\b|Owns: sight\b|---- sight\b", "diagnostics"),
    (r"[Pp]atience|PATIENCE", "timeout"),
    (r"\b(?:another|other|each|old|older|new|newer|later|earlier)[\s/*#]+life\b|\bother_life\b|"
     r"\b[Ll]ife[\s/*#]+of[\s/*#]+the[\s/*#]+(?:server|node|peer|receiver|accepter)\b",
     "generation of a node, incarnation of a server"),
    (r"\b(?:a|the) desk\b", "the look-ups"),
    (r"\b(?:is|are|be|who) asleep\b", "blocked, or sleeps"),
    (r"\bstray (?:bytes|completions?)\b", "unexpected"),
    (r"\bquiet (?:requests?|segments?)\b", "unsignaled"),
    (r"\bbarren\b", "without progress"),
)]
FOLDERS = ("kmod", "metaserver", "client", "common", "proto", "bench", "docs", "race", "handoff",
           "systemd", "tests")
PAGES = ("README.md", "CONTRIBUTING.md", "NEWS.md", "SECURITY.md")
# comments, and strings: a program's words are read by more people than its source
TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.S)


def texts(name, whole):
    """(line, text) of what is written for readers in a file."""
    if name.endswith((".c", ".h")):
        return [(1 + whole.count("\n", 0, found.start()), found.group())
                for found in TEXT.finditer(whole)]
    if name.endswith(".py"):
        return [(token.start[0], token.string)
                for token in tokenize.generate_tokens(io.StringIO(whole).readline)
                if token.type == tokenize.COMMENT or token.string.startswith('"""')]
    return [(1, whole)]


@gate("words")
def words(tree):
    """comments, pages and what programs say use the field's words"""
    lines, judged = [], 0
    for name in tree.files("*.c", "*.h", "*.py", "*.md", "*.[1-9]", "*.yaml",
                           "*.in",
                           "*.path", "*.service", "*.timer"):
        if name.split("/")[0] not in FOLDERS and name not in PAGES:
            continue
        judged += 1
        whole = tree.read(name)
        for line, text in texts(name, whole):
            for pattern, instead in WORDS:
                for found in pattern.finditer(text):
                    lines.append(f"{name}:{line + text.count(chr(10), 0, found.start())}: "
                                 f"{' '.join(found.group().split())!r}: {instead}")
    fail_if(lines)
    return f"{judged} files"
