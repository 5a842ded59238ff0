# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The parts of the tests, and jobs: a part to be run, or some of its tests.

A part is an executable NN-NAME in the folder of parts. Lines of its opening comment say
  about: what it tests       packages: lists of Debian packages it needs (see ./run)
  usually: N min...          limit: seconds after which it is ended
  load: guests               most of its time it waits for virtual machines; processor,
                             which is meant when nothing is said: it wants all there are
  priority: idle             it can wait: it has what the processors of other parts leave
  memory: N GiB              what its guests take; nothing said: little
  shares: N                  in so many equal shares it can be run, one at a time
  prepare: COMMAND           what takes long before it: it is run, with the rest of the
                             processors, while other parts are
It gets KRCORE_PART (a name for its logs), KRCORE_PATTERN and KRCORE_SHARE, and prints as
its last line "N passed, N failed", where ", N skipped" may follow. Its lines that begin with
FAIL, skip, SKIP or "partly:" are said again in the last lines of the run.
"""

import dataclasses
import os
import pathlib
import re

SHARE_START_SECONDS = 90    # what every share spends before its first test


class UsageError(Exception):
    """What was asked for is not there; said in one sentence."""


@dataclasses.dataclass(frozen=True)
class Part:
    """One part, as its file says."""
    name: str
    path: pathlib.Path
    about: str = ""
    usually: str = "1 min"
    packages: str = ""
    limit: str = "900"
    load: str = "processor"
    priority: str = "usual"
    memory: str = "1 GiB"
    shares: str = "1"
    prepare: str = ""

    @property
    def seconds(self):
        """What it usually takes, alone on the machine and with all it needs in the cache."""
        return int(self.usually.split()[0]) * 60

    @property
    def gibibytes(self):
        """Memory it takes."""
        return int(self.memory.split()[0])


@dataclasses.dataclass(frozen=True)
class Job:
    """A part to be run: all of it, the tests of a pattern, or one of several shares."""
    part: Part
    seconds: int                # what it is planned to take
    pattern: str = ""
    share: tuple = ()           # (2, 4): the second of four
    why: str = ""
    environment: tuple = ()     # pairs
    log: str = ""               # name of its logs, another one for each job of a run

    @property
    def is_planned(self):
        """Whether `seconds` is what it will take: what a pattern leaves of a part takes less, and
        nobody knows how much, but for the rows of default.toml."""
        return not self.pattern or bool(self.why)

    @property
    def name(self):
        """As ./run test takes it, but for a pattern: that may be long."""
        return f"{self.part.name}@{self.share[0]}of{self.share[1]}" if self.share \
            else self.part.name


def _says(path):
    text = "\n".join(path.read_text().splitlines()[:20])
    fields = {field.name for field in dataclasses.fields(Part)} - {"name", "path"}
    return {key: value.strip() for key, value in re.findall(r"^# (\w+):(.*)$", text, re.M)
            if key in fields and value.strip()}


def load(folder):
    """name -> Part, in their order."""
    return {path.name[3:]: Part(path.name[3:], path, **_says(path))
            for path in sorted(pathlib.Path(folder).glob("[0-9][0-9]-*"))
            if os.access(path, os.X_OK)}


def whole(part, why=""):
    """The job of a whole part."""
    return Job(part, part.seconds, why=why)


def shares(part, why=""):
    """A part as the jobs of its shares; one that has none, as a whole."""
    count = int(part.shares)
    if count == 1:
        return [whole(part, why)]
    return [Job(part, part.seconds // count + SHARE_START_SECONDS, share=(number, count), why=why)
            for number in range(1, count + 1)]


def named(parts, words):
    """Jobs for words of the command line: PART, PART/PATTERN, or PART@2of4."""
    return [_named(parts, word) for word in words]


def _named(parts, word):
    name, _, pattern = word.partition("/")
    name, _, share = name.partition("@")
    if name not in parts:
        raise UsageError(f"no part is named {name}; there are: {' '.join(parts)}")
    part = parts[name]
    if not share:
        return Job(part, part.seconds, pattern=pattern)
    match = re.fullmatch(r"([1-9]\d*)of([1-9]\d*)", share)
    if not match or int(match[1]) > int(match[2]) or part.shares == "1":
        raise UsageError(f"{word}: no share of {name}"
                         + (f", as {name}@1of{part.shares}" if part.shares != "1" else ""))
    number, count = int(match[1]), int(match[2])
    return Job(part, part.seconds // count + SHARE_START_SECONDS, pattern=pattern,
               share=(number, count))


def with_logs(jobs):
    """The jobs, each with a name for its logs that no other one has."""
    found, taken = [], set()
    for job in jobs:
        log, number = job.name, 1
        while log in taken:
            number += 1
            log = f"{job.name}-{number}"
        taken.add(log)
        found.append(dataclasses.replace(job, log=log))
    return found
