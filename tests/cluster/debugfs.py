# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""debugfs in a guest: where it is, and that it is there.

Every guest has it from the time it is handed to tests, booted or restored, so that no test
needs another one to have run before it. The image does not mount it: systemd's units cost
time at each boot.
"""

FOLDER = "/sys/kernel/debug"
# DMA API debugging reports one error only, unless told otherwise, and registering memory twice
# is one; a kernel without it has no such file
DMA_ERRORS = f"{FOLDER}/dma-api/num_errors"


def prepare(machine):
    """See to it that it is there, and that the kernel's checks go on after their first report."""
    machine.run(f"mountpoint -q {FOLDER} || mount -t debugfs none {FOLDER}; "
                f"[ ! -e {DMA_ERRORS} ] || echo 1000 >{DMA_ERRORS}")
