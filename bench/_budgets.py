# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Budgets of ./run bench cost, and of the counts of handoff: what an operation may cost at most,
and which is above.

cost/budgets.toml and cost/handoff.toml have a table for each operation, [CASE.SYSTEM], with counts
as the bench prints them. A count may be above by the share ROOM, which is for compilers and
layouts. One that is below by the share SAVED gets a hint: a budget that nobody lowers lets the
next change spend what the last one saved.
"""

import sys
import tomllib

ROOM = 0.02
SAVED = 0.1
SLACK = 0.005           # of counts that are shares of a batch, such as 1/12
# The card also counts what comes by itself meanwhile, a signal of life now and then: a third
# of an operation, which may be one of many requests. One that is done for each is more.
ONES_OWN = 0.3
CARD = ("reads", "doorbells", "packets", "commands")
BEYOND = ("beyond_nothing", "beyond_nothing_syscalls")  # of a process: what it is more than none
COUNTS = ("instructions", "user", "syscalls", "locked", "fences", *BEYOND, *CARD)


class BudgetError(Exception):
    """Something in the file of budgets that is not as it must be."""


def load(path):
    """{"CASE.SYSTEM": {count: most}} of a file."""
    with open(path, "rb") as file:
        try:
            tables = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise BudgetError(f"{path}: {error}") from None
    budgets = {}
    for case, systems in tables.items():
        for system, counts in systems.items():
            for count, most in counts.items():
                if count not in COUNTS or isinstance(most, bool) \
                        or not isinstance(most, (int, float)) or most < 0:
                    raise BudgetError(f"{path}: [{case}.{system}] {count} = {most!r}: not a count "
                                      f"of {', '.join(COUNTS)} with a number from 0")
            budgets[f"{case}.{system}"] = counts
    return budgets


def _value(row, count):
    return row["p50"] if count == "instructions" else row[count]


def _slack(row, count):
    return ONES_OWN / row.get("per", 1) if count in CARD else SLACK


def _above(name, row, count, most):
    value = _value(row, count)
    if value <= most * (1 + ROOM) + _slack(row, count):
        return None
    share = f", {100 * (value / most - 1):.1f} % more" if most else ""
    resets = f"; initiators were reset {row['resets']} times" if row.get("resets") else ""
    return f"{name}: {value:g} {count}, the budget is {most:g}{share}{resets}"


def judge(rows, budgets):
    """(name, complaints, hints) for each row that has a budget, or is krcore's and has none."""
    verdicts = []
    for row in rows:
        name = f"{row['case']}.{row['system']}"
        counts = budgets.get(name)
        if counts is None:
            if row["system"].startswith("krcore"):
                verdicts.append((name, [f"{name}: has no budget"], []))
            continue
        complaints = [_above(name, row, count, most) for count, most in counts.items()]
        hints = [f"{name}: {_value(row, count):g} {count} of {most:g}: lower the budget"
                 for count, most in counts.items()
                 if _value(row, count) < most * (1 - SAVED) - _slack(row, count)]
        if row.get("resets"):
            hints.append(f"{name}: initiators were reset {row['resets']} times: what stood still?")
        verdicts.append((name, [line for line in complaints if line], hints))
    return verdicts


def check(bench, rows, path):
    """Compare a bench's rows with the budgets of a file. Prints a line for each; returns the exit
    status."""
    verdicts = judge(rows, load(path))
    for name, complaints, hints in verdicts:
        print(f"{'FAIL' if complaints else 'ok':4} {bench}.{name}")
        for line in complaints:
            print(f"     {line}")
        for line in hints:
            print(f"     {line}", file=sys.stderr)
    failed = sum(1 for _, complaints, _ in verdicts if complaints)
    print(f"{len(verdicts) - failed} passed, {failed} failed")
    return 1 if failed or not verdicts else 0
