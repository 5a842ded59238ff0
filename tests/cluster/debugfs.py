# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""debugfs in a guest: where it is, and the command that sees to it that it is there.

Owns: nothing in a guest for longer than a command; once mounted, debugfs stays.
"""

FOLDER = "/sys/kernel/debug"
MOUNT = f"mountpoint -q {FOLDER} || mount -t debugfs none {FOLDER}"
