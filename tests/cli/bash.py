# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Drives the functions of a bash completion as bash does."""

import os
import subprocess

DRIVE = r"""
. "$1"
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
COMP_LINE=$2
COMP_POINT=${#2}
if [[ $4 ]]; then
	read -ra COMP_WORDS <<<"$2"
	[[ $2 == *' ' ]] && COMP_WORDS+=('')
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
fi
"$3"
(( ${#COMPREPLY[@]} )) && printf '%s\n' "${COMPREPLY[@]}"
true
"""


def complete(completion, function, line, cwd=None, words=False, environment=None):
    """What the file's function offers after a line; `words`: the function wants them split."""
    done = subprocess.run(["bash", "-c", DRIVE, "bash", os.path.abspath(completion), line, function,
                           "words" if words else ""], capture_output=True, text=True, timeout=60,
                          check=True, cwd=cwd, env={**os.environ, **(environment or {})})
    assert not done.stderr, done.stderr
    return done.stdout.split("\n")[:-1]
