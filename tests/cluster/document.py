# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Commands of a document, as a reader of it would type them.

A line of a command is indented by four spaces, and says where it is typed: `one: ip link   note`.
The note stands behind three spaces or more. It tells a reader what comes out, and a test what to
wait for: `says WORD` is a word of what the command prints, `stays` a command that does not end,
`paste` one that takes what the command before it has printed.
"""

import dataclasses
import re

_LINE = re.compile(r"^    (?P<where>[a-z]+):\s+(?P<command>\S.*?)(?:\s{3,}(?P<note>\S.*))?$")


@dataclasses.dataclass(frozen=True)
class Step:
    """One command: at which machine, its text, what the document says of it."""
    where: str
    command: str
    note: str

    def says(self):
        """A word that it prints, or None."""
        found = re.search(r"\bsays (\S+)", self.note)
        return found and found[1].rstrip(";,.:")


def steps(text, heading, machines):
    """The steps below a heading of a document, in its order, until the next one of its level.

    A line that is indented as a command is and names none of `machines` is an error: it would be
    passed over in silence.
    """
    below = re.search(rf"^{re.escape(heading)}$(.*?)(?=^{heading.split()[0]} |\Z)", text,
                      re.M | re.S)
    if not below:
        raise ValueError(f"there is no heading '{heading}'")
    found = []
    for line in below[1].splitlines():
        if not line.startswith("    "):
            continue
        said = _LINE.match(line)
        if not said or said["where"] not in machines:
            raise ValueError(f"'{line.strip()}' is no command at {', '.join(machines)}")
        found.append(Step(said["where"], said["command"], said["note"] or ""))
    if not found:
        raise ValueError(f"there are no commands below '{heading}'")
    return found
