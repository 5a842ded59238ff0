# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A gate that builds krcore.ko as a whole, for each kernel that it is tested on.

The headers are those that the tests build the module against: installed, or Debian's
packages unpacked into the cache. Objects are kept in .work/lint; one that was warned
about is never made, so a second run complains again.
"""
import os
import re
import shutil
import sys
import types

from lintlib import ROOT, Skipped, fail_if, gate, need, tool

sys.path.append(os.path.join(ROOT, "tests"))

from cluster import host, kernel as kernels  # noqa: E402

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
    """Make `folder` hold kmod/ and proto/; what is equal keeps its time stamp."""
    names = [name for name in tree.files("*.c", "*.h", "*.mk", "Kbuild")
             if name.split("/")[0] in PARTS]
    for name in names:
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target) or tree.read(name) != _text(target):
            shutil.copyfile(os.path.join(ROOT, name), target)
    for part in PARTS:
        for path, _, files in os.walk(os.path.join(folder, part)):
            for file in files:
                name = os.path.relpath(os.path.join(path, file), folder)
                if file.endswith((".c", ".h")) and not file.endswith(".mod.c") \
                        and name not in names:
                    os.unlink(os.path.join(path, file))


def _text(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def build(tree, folder, made, targets):
    """Build against one kernel; return what is to be complained of."""
    argv = ["make", "-s", "-C", made, f"M={folder}/kmod", f"-j{tree.jobs}", "W=1",
            "KCFLAGS=-Werror", "CONFIG_DEBUG_INFO_BTF_MODULES="]
    if shutil.which("sparse"):
        argv += ["C=1", f"CF={SPARSE}"]
    status, out = tool(argv + targets)
    lines = [line for line in out.splitlines() if line.strip() and not NOISE.match(line)]
    return lines or ([f"make: exit status {status}"] if status else [])


@gate("kmod")
def kmod(tree):
    """krcore.ko builds for each kernel with W=1 and sparse, without a word"""
    need("gcc", "make")
    whole = types.SimpleNamespace(files=type(tree)(tree.jobs).files, read=tree.read)
    named = [name.removeprefix("kmod/").replace(".c", ".o")
             for name in tree.files("*.c", under="kmod/")] if tree.only else []
    if tree.only and not named:
        raise Skipped("no source of the module is named")
    found, judged = [], KERNELS[:1] if tree.only else KERNELS
    for name in judged:
        try:
            release, made = headers(name)
        except host.ClusterError as e:
            raise Skipped(f"no headers of kernel {name}: {str(e).splitlines()[0]}") from e
        how = "sparse" if shutil.which("sparse") else "plain"
        folder = os.path.join(tree.work, f"kmod-{release}-{how}")
        copy_sources(whole, folder)
        lines = build(tree, folder, made, named or ["modules"])
        found += [f"for {release}:"] * bool(lines) + lines
    fail_if(found)
    return ", ".join(judged) + ("" if shutil.which("sparse") else ", sparse is not installed")
