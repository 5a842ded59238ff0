# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore.ko: built on this machine for the guests' kernel, put into the guests.

The guests have no compiler, and dkms would take minutes in an emulated one. What is
built is what the package krcore-dkms has: the folders kmod/ and proto/. The result
goes to updates/ of the guest's modules, as dkms would put it there.
"""

import os
import shutil

from . import host, kernel as kernels

SOURCES = ("kmod", "proto")
STAMP = "krcore.stamp"


def _sources(part):
    """Files of a folder that a build reads."""
    top = host.CHECKOUT / part
    return {path.relative_to(top) for path in top.rglob("*")
            if path.suffix in (".c", ".h", ".mk") or path.name in ("Kbuild", "Makefile")}


def _tree(folder):
    """Make `folder` hold the sources; what is equal keeps its time stamp."""
    for part in SOURCES:
        names = _sources(part)
        for name in names:
            source, target = host.CHECKOUT / part / name, folder / part / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_bytes() != source.read_bytes():
                shutil.copy(source, target)
        for path in (folder / part).rglob("*.[ch]"):
            if path.relative_to(folder / part) not in names and ".mod." not in path.name:
                path.unlink()


def _build(kernel, folder, modules, *options):
    """Build modules in a folder, without debug information; nothing happens when all is there."""
    made = [folder / name for name in modules]
    stamp = host.digest(kernel.key, options, *(host.CHECKOUT / part / name for part in SOURCES
                                               for name in sorted(_sources(part))))
    if all(path.exists() for path in made) and (folder / "stamp").exists() \
            and (folder / "stamp").read_text() == stamp:
        return made
    with host.step(f"building {' and '.join(modules)} for {kernel.release}", "20-40 s"):
        _tree(folder)
        host.run(["make", "-C", kernels.build_tree(kernel), f"-j{os.cpu_count()}",
                  f"M={folder / 'kmod'}", "CONFIG_DEBUG_INFO_BTF_MODULES=", *options, "modules"],
                 timeout=900, log=folder / "build.log")
        for path in made:
            host.run(["strip", "--strip-debug", "-o", path, folder / "kmod" / path.name])
        (folder / "stamp").write_text(stamp)
    return made


def build(kernel):
    """The module for a kernel."""
    (made,) = _build(kernel, host.build_dir() / "module" / kernel.release, ["krcore.ko"])
    return made


def build_with_suites(kernel):
    """krcore.ko with its KUnit suites, and krcore_test.ko with the others."""
    return _build(kernel, host.build_dir() / "module" / f"{kernel.release}-kunit",
                  ["krcore.ko", "krcore_test.ko"], "KRC_KUNIT=y")


def install(cluster):
    """Put the module into every guest that does not have it yet; it is not loaded."""
    made = build(cluster.kernel)
    stamp = host.digest(made)
    cluster.each(lambda machine: _install_in(machine, cluster.kernel.release, made, stamp))


def _install_in(machine, release, made, stamp):
    folder = f"/usr/lib/modules/{release}/updates"
    if machine.run(f"cat {folder}/{STAMP}", check=False).out.strip() == stamp:
        return
    machine.run(f"mkdir -p {folder}")
    machine.push(made, f"{folder}/krcore.ko")
    machine.run(f"depmod {release} && echo {stamp} >{folder}/{STAMP}", timeout=120)
