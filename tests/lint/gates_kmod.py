# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Gates that build krcore.ko: as a whole for each kernel that it is tested on, a part of it as a
test's module, and its probes against trees of headers laid out as other kernels have them.

The headers are those that the tests build the module against: installed, or Debian's
packages unpacked into the cache. Objects are kept there as well; one that was warned about is
never made, so a second run complains again.
"""
import os
import pathlib
import re
import shutil
import sys
import tempfile
import types

from gates_layers import symbols
from lintlib import ROOT, Skipped, fail_if, gate, need, tool

sys.path.append(os.path.join(ROOT, "tests"))

from cluster import host, kbuild, kernel as kernels, probe as meta_probe  # noqa: E402

KERNELS = ("6.1", "6.12")
PARTS = ("kmod", "proto")
# what make says beside warnings: that another patch level of gcc made the kernel
NOISE = re.compile(r"warning: the compiler differs from|  The kernel was built by|  You are using")
SPARSE = "-Wsparse-error -D__CHECK_ENDIAN__"


def headers(name):
    """(release, folder to build in) of a kernel of the tests."""
    release = kernels._package(name)[0].removeprefix("linux-image-")
    return release, kernels.build_tree(types.SimpleNamespace(name=name, release=release))


def copy_sources(tree, folder):
    """Make `folder`, a path, hold kmod/ and proto/; what is equal keeps its time stamp."""
    kbuild.copy({name: pathlib.Path(ROOT, name)
                 for name in tree.files("*.c", "*.h", "*.mk", "Kbuild", "Makefile")
                 if name.split("/")[0] in PARTS}, folder)


# What the probes of compat.mk look for: (header, what it declares), by when. From 6.13 on
# kbuild exports srcroot too, as the folder of the module and not of the kernel.
EARLIER = (("linux/mlx5/driver.h", "mlx5_vector2eqn mlx5_comp_vectors_count"),
           ("linux/pci.h", "arch_can_pci_mmap_wc"),
           ("linux/hrtimer.h", "hrtimer_init"), ("linux/mm.h", "VM_MAYEXEC"),
           ("rdma/ib_verbs.h", "ib_block_iter"))
LATER = (("linux/mlx5/driver.h",
          "mlx5_comp_eqn_get mlx5_comp_vectors_max mlx5_wc_support_get"),
         ("linux/hrtimer.h", "hrtimer_setup"), ("linux/mm.h", "VM_MAYEXEC vm_flags_clear"),
         ("rdma/iter.h", "ib_block_iter"))
ALL_MACROS = {"KRC_HAVE_MLX5_COMP_EQN_GET", "KRC_HAVE_MLX5_COMP_VECTORS_MAX",
              "KRC_HAVE_MLX5_WC_SUPPORT_GET", "KRC_HAVE_HRTIMER_SETUP",
              "KRC_HAVE_VM_FLAGS_CLEAR", "KRC_HAVE_RDMA_ITER_H"}
SHOW = "include $(src)/compat.mk\n$(info FLAGS $(ccflags-y))\nall: ;\n"


def probe(folder, headers, srcroot):
    """Run compat.mk against headers; return (exit status, macros, output)."""
    shutil.rmtree(os.path.join(folder, "kernel"), ignore_errors=True)
    for name, declares in headers:
        path = os.path.join(folder, "kernel/include", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f"int {word}(void);\n" for word in declares.split())
    with open(os.path.join(folder, "Makefile"), "w", encoding="utf-8") as f:
        f.write(SHOW)
    status, out = tool(["make", "-s", "-C", folder, f"src={ROOT}/kmod",
                        f"srctree={folder}/kernel"] + srcroot)
    return status, set(re.findall(r"-D(KRC_HAVE_\w+)", out)), out


def probe_faults(folder):
    """What compat.mk does wrong with headers whose outcome is known."""
    srcroot, found = [f"srcroot={ROOT}/kmod"], []
    for what, headers, more, wanted in (("as old as 6.1", EARLIER, [], set()),
                                        ("from 6.13 on", LATER, srcroot, ALL_MACROS),
                                        ("between", EARLIER[:2] + LATER[1:], [],
                                         {"KRC_HAVE_HRTIMER_SETUP", "KRC_HAVE_VM_FLAGS_CLEAR",
                                          "KRC_HAVE_RDMA_ITER_H"})):
        status, macros, out = probe(folder, headers, more)
        if status or macros != wanted:
            found.append(f"kernels {what}: {sorted(macros)} in place of {sorted(wanted)}:\n{out}")
    for missing, _ in LATER:
        status, _, out = probe(folder, [h for h in LATER if h[0] != missing], srcroot)
        if not status or missing not in out:
            found.append(f"no error names {missing}, which is not there:\n{out}")
    return found


def dkms_faults():
    """Where dkms would build for a kernel that is not tested, or not for one that is."""
    text = _text(os.path.join(ROOT, "debian/krcore-dkms.dkms"))
    takes = re.compile(re.search(r'^BUILD_EXCLUSIVE_KERNEL="(.*)"$', text, re.MULTILINE)[1])
    later = f"6.{int(KERNELS[-1].split('.')[1]) + 1}"
    found = [f"dkms does not build for {name}, which is tested" for name in KERNELS
             if not takes.match(f"{name}.0-1-amd64")]
    return found + [f"dkms builds for {name}, which is not tested"
                    for name in ("5.19", "6.0", later, "6.20", "7.0")
                    if takes.match(f"{name}.1-amd64") or takes.match(f"{name}-rc1")]


@gate("compat")
def compat(tree):
    """the probes of krcore.ko work with headers laid out as later kernels have them"""
    need("make")
    with tempfile.TemporaryDirectory(dir=tree.work) as folder:
        fail_if(probe_faults(folder) + dkms_faults())
    return "6.1, from 6.13 on, between, and headers that are missing"


def _text(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def complaints(argv):
    """What make says that is to be complained of."""
    status, out = tool(argv)
    lines = [line for line in out.splitlines() if line.strip() and not NOISE.match(line)]
    return lines or ([f"make: exit status {status}"] if status else [])


def headers_or_skip(name):
    """headers(), without which a gate is skipped."""
    try:
        return headers(name)
    except host.ClusterError as e:
        raise Skipped(f"no headers of kernel {name}: {str(e).splitlines()[0]}") from e


def build(tree, folder, made, targets, sparse=0):
    """Build against one kernel, all of it as by hand; `sparse`: as make's C, 1: of what is
    compiled, 2: of all. Return what is to be complained of."""
    where = ["-C", f"{folder}/kmod", f"KDIR={made}"] if targets[0] == "modules" \
        else ["-C", made, f"M={folder}/kmod"]
    argv = ["make", "-s", *where, f"-j{tree.jobs}", "W=1",
            f"KCFLAGS=-Werror {kbuild.NO_DEBUG_INFO}", "CONFIG_DEBUG_INFO_BTF_MODULES=",
            "KRC_SAMPLES=y"]
    if sparse:
        argv += [f"C={sparse}", f"CF={SPARSE}"]
    return complaints(argv + targets)


def differ_by_kernel(whole):
    """Objects of those sources that say themselves that kernels differ: they include compat.h."""
    return [name.removeprefix("kmod/").replace(".c", ".o")
            for name in whole.files("*.c", under="kmod/")
            if '#include "base/compat.h"' in whole.read(name) and "/tests/" not in name]


def judge(tree, whole, release, made, named):
    """What is to be complained of with one kernel: of all, or of the objects that are named."""
    # what differs by kernel is in compat.h: all else sparse reads for the first one alone
    sparse = int(bool(shutil.which("sparse")))
    first = release.startswith(f"{KERNELS[0]}.")
    how = "sparse" if sparse and first else "plain"
    with kbuild.place(f"{release}-gate-{how}", made) as folder:
        copy_sources(whole, folder)
        lines = build(tree, folder, made, named or ["modules"], sparse and first)
        if not lines and sparse and not first:
            lines = build(tree, folder, made, differ_by_kernel(whole), 2)
        if not lines and not named:  # as kernels from 6.13 on call it; nothing to make again
            lines = build(tree, folder, made, ["modules", f"srcroot={folder}/kmod"],
                          sparse and first)
        return lines if lines or named else symbols(os.path.join(folder, "kmod"))


@gate("probe")
def probe_module(tree):
    """the MetaServer client by itself, a module of the tests, builds without a word"""
    need("gcc", "make")
    release, made = headers_or_skip(KERNELS[0])
    with meta_probe.place(release, made) as folder:
        kbuild.copy(meta_probe.sources(pathlib.Path(ROOT)), folder)
        # guests have it built here, too, and nobody heard what modpost said then
        (folder / "Module.symvers").unlink(missing_ok=True)
        lines = complaints(meta_probe.make(folder, made, tree.jobs))
    fail_if(lines)
    return KERNELS[0]


@gate("kmod")
def kmod(tree):
    """krcore.ko and the samples build for each kernel with W=1 and sparse, without a word

    Sparse reads all for the first kernel, and for the others what includes compat.h, where they
    differ."""
    need("gcc", "make")
    whole = type(tree)(tree.jobs)
    named = [name.removeprefix("kmod/").replace(".c", ".o")
             for name in tree.files("*.c", under="kmod/")] if tree.only else []
    if tree.only and not named:
        raise Skipped("no source of the module is named")
    found, judged = [], KERNELS[:1] if tree.only else KERNELS
    for name in judged:
        release, made = headers_or_skip(name)
        lines = judge(tree, whole, release, made, named)
        found += [f"for {release}:"] * bool(lines) + lines
    fail_if(found)
    return ", ".join(judged) + ("" if shutil.which("sparse") else ", sparse is not installed")
