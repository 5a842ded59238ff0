# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The debug kernel: that each of its checks is there and bites, and that modules can be
built for it. On a stock kernel nothing of it applies."""

import pathlib
import shutil
import tempfile

from . import debugfs, host
from .suite import check, limit

NEEDS_KRCORE = False
NEEDS = "debug"
# one file a check; all are there from the start
SIGNS = (*(f"{debugfs.FOLDER}/{name}" for name in (
    "failslab/probability", "fail_page_alloc/probability", "fail_usercopy/probability",
    "kmemleak", "dma-api/num_errors", "debug_objects/stats")), "/proc/lockdep_stats")


def test_checks_are_on(cluster):
    machine = cluster.node("node1")
    missing = machine.run(f"for f in {' '.join(SIGNS)}; do [ -e $f ] || echo $f; done").out
    check(missing == "", f"not there: {missing}")
    log = machine.kernel_log()
    check("KernelAddressSanitizer initialized" in log, "KASAN is not on")
    check("DMA-API: disabled" not in log, "DMA API debugging has given up")
    check(machine.run("grep -c 'debug_locks: *1' /proc/lockdep_stats", check=False).out == "1\n",
          "lockdep has given up")


def test_allocations_fail_on_request(cluster):
    machine = cluster.node("node1")
    folder = f"{debugfs.FOLDER}/failslab"
    # the shell asks that its own allocations fail, all of them, and nobody else's
    result = machine.run(
        f"cd {folder} && echo Y >task-filter && echo 100 >probability && echo -1 >times && "
        "echo 0 >verbose && echo N >ignore-gfp-wait; "
        "bash -c 'echo 1 >/proc/self/make-it-fail; exec 9</proc/version && cat <&9' 2>&1; "
        "echo status $?; echo 0 >probability; echo N >task-filter", check=False)
    check("status 0" not in result.out, repr(result))
    check(machine.run("cat /proc/version >/dev/null && echo fine").out == "fine\n", "stays broken")


def test_soft_iwarp_and_kunit_are_there(cluster):
    machine = cluster.node("node1")
    machine.run("modprobe kunit && modprobe siw && rdma link add siw0 type siw netdev lo && "
                "ibv_devices | grep -q siw0; s=$?; rdma link delete siw0; exit $s")


@limit(300)
def test_modules_can_be_built_for_it(cluster):
    machine = cluster.node("node1")
    made = host.run([host.TESTS / "kernel" / "build-debug-kernel"], timeout=4000).split()[-1]
    with tempfile.TemporaryDirectory() as folder:
        for path in (host.TESTS / "model/judges/kmod").iterdir():
            shutil.copy(path, folder)
        host.run(["make", "-s", "-C", f"{made}/build", f"M={folder}", "modules"], timeout=300)
        machine.push(pathlib.Path(folder, "cx_dcprobe.ko"), "/tmp/cx_dcprobe.ko")
    machine.run("modprobe mlx5_ib && insmod /tmp/cx_dcprobe.ko && rmmod cx_dcprobe")
