# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The virtual cluster: guests, their fabric, and the tests that run in them.

One concept a file: host (this machine), topology (what the cluster looks like),
image (root disk), kernel, machine (one QEMU), agent (commands in a guest), fabric
(the switch), nic, kernel_log, cluster (all of it), snapshot, packages (krcore's
own), suite (tests), cli. Python's standard library only.
"""
