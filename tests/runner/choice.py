# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What is run: the default set, all there is, or what a change can have broken.

Two tables beside the parts say so, each line with its reason: default.toml and changed.toml.
"""

import dataclasses
import os
import re
import subprocess
import tomllib

from . import parts as parts_module
from .parts import Job, UsageError


def full(parts):
    """Everything."""
    return [parts_module.whole(part) for part in parts.values()]


def default(parts, folder, limited=False):
    """The default set, as default.toml has it; without that file, all parts. `limited`: with a
    limit of time, as CI has one: the rows that are for that as well."""
    path = folder / "default.toml"
    if not path.exists():
        return full(parts)
    return [_default(parts, row, path) for row in tomllib.loads(path.read_text())["run"]
            if limited or not row.get("with_limit")]


def _default(parts, row, path):
    if row["part"] not in parts:
        raise UsageError(f"{path}: no part is named {row['part']}")
    return Job(parts[row["part"]], int(row["minutes"] * 60), why=row["why"],
               pattern=joined(row.get("tests", [])),
               environment=tuple(row.get("environment", {}).items()))


def joined(patterns):
    """One pattern for several: what one of them matches."""
    return "|".join(patterns)


def rest(parts, chosen):
    """The shares of all parts that are not run as a whole already."""
    done = {job.part.name for job in chosen if not job.pattern and not job.share}
    return [share for part in parts.values() if part.name not in done
            for share in parts_module.shares(part)]


# -- what a change can have broken -----------------------------------------------


@dataclasses.dataclass(frozen=True)
class Rule:
    """One rule of changed.toml: these paths, those tests, and why."""
    paths: tuple
    tests: tuple
    why: str


def rules(folder):
    """The rules in their order: the first one that has a path decides."""
    return [Rule(tuple(row["paths"]), tuple(row["tests"]), row["why"])
            for row in tomllib.loads((folder / "changed.toml").read_text())["rule"]]


def glob_regex(glob):
    """A glob as a regular expression over whole paths: ** is any path, * any name, {a,b} one
    of these and {test} any name, which the tests of the rule may use as {test}."""
    return re.compile("".join(_glob_word(word)
                              for word in re.split(r"(\*\*|\*|\{[^}]*\})", glob)))


def _glob_word(word):
    if word.startswith("{"):
        names = [re.escape(name) for name in word[1:-1].split(",")]
        return f"(?P<test>{'[^/.]+' if names == ['test'] else '|'.join(names)})"
    return {"**": ".*", "*": "[^/]*"}.get(word, re.escape(word))


def decides(path, table):
    """(rule, glob, match) that decides for a path, or None."""
    for rule in table:
        for glob in rule.paths:
            match = glob_regex(glob).fullmatch(path)
            if match:
                return rule, glob, match
    return None


def tests_for(path, table):
    """(tests, reason) for a changed file; (None, reason) where the table has no rule."""
    found = decides(path, table)
    if not found:
        return None, "no rule is about it: the default set"
    rule, _, match = found
    # a number in front of a file's name orders the files, no more
    name = re.sub(r"^\d+_", "", match.groupdict().get("test") or "")
    return [test.replace("{test}", name) for test in rule.tests], rule.why


def changed(parts, folder, paths):
    """(jobs, lines that give the reasons) for changed files."""
    patterns, reasons, table = {}, {}, rules(folder)
    for path in paths:
        tests, why = tests_for(path, table)
        if tests is None:
            # a whole set: what is known of the others adds to it
            for job in default(parts, folder):
                patterns.setdefault(job.part.name, set()).add(job.pattern)
            tests = ["the default set"]
        else:
            for test in tests:
                name, _, pattern = test.partition("/")
                patterns.setdefault(name, set()).update(pattern.split("|"))
        reasons.setdefault((tuple(tests), why), []).append(path)
    lines = [f"{_some(those)} -> {', '.join(tests) or 'nothing'}: {why}"
             for (tests, why), those in reasons.items()]
    unknown = set(patterns) - set(parts)
    if unknown:
        raise UsageError(f"changed.toml: no part is named {', '.join(sorted(unknown))}")
    return [Job(part, part.seconds, pattern="" if "" in patterns[name]
                else joined(sorted(patterns[name])))
            for name, part in parts.items() if name in patterns], lines


def _some(paths):
    more = len(paths) - 3
    return ", ".join(paths[:3]) + (f" and {more} more" if more > 0 else "")


def _git(checkout, *words):
    # root may run it in the checkout of somebody else
    try:
        result = subprocess.run(["git", "-C", str(checkout), "-c", f"safe.directory={checkout}",
                                 *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UsageError("git is not installed") from None
    if result.returncode:
        raise UsageError(f"git {' '.join(words)}: {result.stderr.strip()}")
    return result.stdout


def base(checkout, since=None):
    """The commit a change is seen from: `since`, or where HEAD left the newest tag, or the
    one before HEAD."""
    if not since:
        tags = _git(checkout, "tag", "--sort=-creatordate").split()
        if not tags:
            return _git(checkout, "rev-parse", "HEAD~1").strip()
        since = tags[0]
    return _git(checkout, "merge-base", since, "HEAD").strip()


def changed_paths(checkout, since=None):
    """(base, paths): what differs from it, with what is not committed yet."""
    commit = base(checkout, since)
    tracked = _git(checkout, "diff", "--name-only", "--no-renames", "-z", commit).split("\0")
    new = _git(checkout, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
    return commit, sorted({path for path in tracked + new if path})


def is_shallow(checkout):
    """Whether it is a clone without its history."""
    try:
        return _git(checkout, "rev-parse", "--is-shallow-repository").strip() == "true"
    except UsageError:
        return False


def turn(checkout):
    """The number of this commit in the history: another one for each. A clone without its history
    has the hour of the commit instead."""
    if os.environ.get("KRCORE_TURN"):
        return int(os.environ["KRCORE_TURN"])
    try:
        if is_shallow(checkout):
            return int(_git(checkout, "show", "-s", "--format=%ct", "HEAD")) // 3600
        return int(_git(checkout, "rev-list", "--count", "HEAD"))
    except UsageError:
        return 0
