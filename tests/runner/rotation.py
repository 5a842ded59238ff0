# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What of many jobs runs in the time that is left, another choice with each commit.

Nothing has to be remembered: the number of commits says with which job a run begins. From
one commit to the next that place moves on by the golden ratio of the whole, so that runs of
two commits that follow each other differ most, and so that every job has its turn also
where only every second or every tenth commit is run.
"""

GOLDEN = (5 ** 0.5 - 1) / 2
FURTHEST = 200      # commits that are looked at for the next turn of a job


def share(turn, count):
    """Which of so many shares this commit begins with, from 0."""
    return int(turn * GOLDEN % 1 * count)


def in_turn(jobs, turn):
    """The jobs in the order of this commit."""
    first = share(turn, len(jobs))
    return jobs[first:] + jobs[:first]


def fitting(jobs, turn, seconds, lanes):
    """Those of the jobs that fit into so many seconds of so many lanes."""
    lanes, found = [seconds] * lanes, []
    for job in in_turn(jobs, turn):
        widest = max(range(len(lanes)), key=lanes.__getitem__)
        if job.seconds <= lanes[widest]:
            lanes[widest] -= job.seconds
            found.append(job)
    return found


def next_turn(job, jobs, turn, seconds, lanes):
    """The first commit after this one with which the job fits, or None."""
    for later in range(turn + 1, turn + 1 + FURTHEST):
        if job in fitting(jobs, later, seconds, lanes):
            return later
    return None
