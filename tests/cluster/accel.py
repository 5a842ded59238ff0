# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Whether guests run on KVM, or are emulated.

That /dev/kvm can be opened says little: a guest may still not start. So a guest is
started, with a time limit, and what came out is remembered until this machine boots
again.
"""

import os
import pathlib
import subprocess
import tempfile

from . import cpio, host

PROBE_SECONDS = 10
PROBE_LINE = b"krcore-guest-probe: this machine runs"
# Five levels of page tables cost time, and no test needs them. AVX stays: without it the same
# tests took processors no less time. SMAP and SMEP stay: a module that touches memory of programs
# without asking is found by them alone.
EMULATED = ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]
EMULATED_TIMES = 3
HARDWARE = ["-accel", "kvm", "-cpu", "host"]


def _answer(folder):
    """Where what this boot of the machine has answered is kept."""
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return host.CACHE / folder / boot_id


def _boots_on_kvm(kernel):
    archive = cpio.Archive()
    archive.add_file("probe", b"")
    with tempfile.TemporaryDirectory(prefix="krcore-probe-") as work:
        initrd = pathlib.Path(work) / "initrd"
        initrd.write_bytes(kernel.initrd.read_bytes() + archive.finish())
        try:
            result = subprocess.run(
                ["qemu-system-x86_64", "-M", "q35", *HARDWARE, "-m", "256", "-nodefaults",
                 "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
                 "-kernel", str(kernel.vmlinuz), "-initrd", str(initrd),
                 "-append", "console=ttyS0 panic=-1 quiet"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                timeout=PROBE_SECONDS, check=False, preexec_fn=host.die_with_parent)
        except subprocess.TimeoutExpired:
            return False
    return PROBE_LINE in result.stdout


def arguments(kernel):
    """QEMU's arguments for the fastest way that works here."""
    forced = os.environ.get("KRCORE_ACCEL", "")
    if forced:
        if forced not in ("kvm", "tcg"):
            raise host.ClusterError(f"KRCORE_ACCEL={forced}: not kvm or tcg")
        return HARDWARE if forced == "kvm" else EMULATED
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        if os.path.exists("/dev/kvm"):
            host.say("no right to use /dev/kvm (group kvm?): guests are emulated, and slow")
        return EMULATED
    answer = _answer("kvm")
    if not answer.exists():
        host.say(f"trying a guest on KVM (at most {PROBE_SECONDS} s)")
        works = _boots_on_kvm(kernel)
        answer.parent.mkdir(parents=True, exist_ok=True)
        answer.write_text("works" if works else "does not work")
        host.say("  KVM works" if works else "  KVM does not work here: guests are emulated")
    return HARDWARE if answer.read_text() == "works" else EMULATED


def kernel_arguments(qemu_arguments):
    """What the guests' kernel has to be told about the processor they run on."""
    if qemu_arguments != EMULATED:
        return ""
    answer = _answer("tsc")
    if not answer.exists():
        rate = host.run([host.compiled(host.TESTS / "cluster" / "tsc_rate.c")])
        answer.parent.mkdir(parents=True, exist_ok=True)
        # in steps of 100 kHz, so that a snapshot outlives a reboot
        answer.write_text(f"{round(int(rate), -2)}")
    return f"tsc=reliable tsc_early_khz={answer.read_text()} no_timer_check"


def slowness(kernel):
    """By how much longer than it is written a test waits for what must come. Emulated guests have
    of the processors what other guests and builds leave, and stand still for seconds."""
    return max(kernel.times(), 1 if slowdown() == 1 else EMULATED_TIMES)


def slowdown():
    """By how much longer things take than on KVM; for time limits."""
    forced = os.environ.get("KRCORE_ACCEL", "")
    if forced:
        return 1 if forced == "kvm" else 4
    answer = _answer("kvm")
    return 1 if os.access("/dev/kvm", os.R_OK | os.W_OK) and answer.exists() \
        and answer.read_text() == "works" else 4
