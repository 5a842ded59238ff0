# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore.ko: built on this machine for the guests' kernel, put into the guests.

The guests have no compiler, and dkms would take minutes in an emulated one. What is
built is what the package krcore-dkms has, by the command of its dkms.conf. The result
goes to updates/ of the guest's modules, as dkms would put it there.
"""

import os

from . import host, kbuild, kernel as kernels, packages

STAMP = "krcore.stamp"

# As dkms does it: the command begins with make, and the kernel is named.
MAKE = """
make() {
	command make -j"$jobs" KERNELRELEASE="$kernelver" "$@" "${options[@]}"
}
options=("$@")
. ./dkms.conf
eval "${MAKE[0]}"
echo "made: ${BUILT_MODULE_LOCATION[0]}/${BUILT_MODULE_NAME[0]}.ko"
"""


def _make(kernel, folder, sources, *options):
    """Have dkms's place for a module in `folder`, and build there; returns the module's path."""
    name, _, version = sources.name.partition("-")
    place = folder / name / version / "build"
    kbuild.copy({str(path.relative_to(sources)): path
                 for path in sources.rglob("*") if path.is_file()}, place)
    environment = dict(os.environ, dkms_tree=str(folder), kernelver=kernel.release,
                       kernel_source_dir=str(kernels.build_tree(kernel)),
                       jobs=str(os.cpu_count()))
    said = host.run(["bash", "-ec", MAKE, "make", "CONFIG_DEBUG_INFO_BTF_MODULES=",
                     f"KCFLAGS={kbuild.NO_DEBUG_INFO}", *options],
                    cwd=place, env=environment, timeout=3600, log=folder / "build.log")
    return place / said.rpartition("made: ")[2].strip()


def _build(kernel, folder, modules, *options):
    """Build modules, named from kmod/ on, in a folder, without debug information; nothing happens
    when all is there."""
    with host.making(folder.name):
        return _build_alone(kernel, folder, modules, *options)


def _build_alone(kernel, folder, modules, *options):
    made = [folder / os.path.basename(name) for name in modules]
    sources = packages.dkms_sources()
    stamp = host.digest(kernel.key, options, sources)
    if all(path.exists() for path in made) and (folder / "stamp").exists() \
            and (folder / "stamp").read_text() == stamp:
        return made
    folder.mkdir(parents=True, exist_ok=True)
    with host.step(f"building {' and '.join(modules)} for {kernel.release}", "20-40 s"), \
         kbuild.place(folder.name, kernel.key, options) as place:
        built = _make(kernel, place, sources, *options)
        for name, path in zip(modules, made):
            host.run(["strip", "--strip-debug", "-o", path, built.parent / name])
        (folder / "stamp").write_text(stamp)
    return made


def _build_all(kernel):
    """The module for a kernel, and the samples that use it."""
    return _build(kernel, host.build_dir() / "module" / kernel.release,
                  ["krcore.ko", "samples/krcore_rw.ko", "samples/krcore_echo.ko"],
                  "KRC_SAMPLES=y")


def build(kernel):
    """The module for a kernel."""
    return _build_all(kernel)[0]


def build_with_suites(kernel):
    """krcore.ko with its KUnit suites, and krcore_test.ko with the others."""
    return _build(kernel, host.build_dir() / "module" / f"{kernel.release}-kunit",
                  ["krcore.ko", "krcore_test.ko"], "KRC_KUNIT=y")


def build_samples(kernel):
    """The modules of kmod/samples that use krcore.ko, which come with it."""
    return _build_all(kernel)[1:]


def build_metered(kernel):
    """krcore.ko with the marks of ./run bench cost."""
    (made,) = _build(kernel, host.build_dir() / "module" / f"{kernel.release}-meter",
                     ["krcore.ko"], "KRC_METER=y")
    return made


def build_from_checkout(kernel):
    """The module as `./run build module` compiles it, of what has changed and without packages:
    for a cluster that is up while the module is being changed."""
    said = host.run([host.TESTS / "kernel/build-module", kernel.name], timeout=900)
    folder = host.build_dir() / "module" / f"{kernel.release}-checkout"
    folder.mkdir(parents=True, exist_ok=True)
    host.run(["strip", "--strip-debug", "-o", folder / "krcore.ko", said.split()[-1]])
    return folder / "krcore.ko"


def install(cluster, how=build):
    """Put the module, as `how` builds it, into every guest that does not have it yet; it is
    not loaded."""
    made = how(cluster.kernel)
    stamp = host.digest(made)
    face = host.digest(*(host.run(["/sbin/modinfo", "-F", field, made])
                         for field in ("depends", "alias")))
    cluster.each(lambda machine: _install_in(machine, cluster.kernel.release, made, stamp, face))


def _install_in(machine, release, made, stamp, face):
    """`face`: what depmod has to know of it, which takes an emulated guest long."""
    folder = f"/usr/lib/modules/{release}/updates"
    there = machine.run(f"cat {folder}/{STAMP}", check=False).out.split()
    if there[:1] == [stamp]:
        return
    known = there[1:] == [face]
    machine.run(f"mkdir -p {folder} && rm -f {folder}/{STAMP}")
    machine.push(made, f"{folder}/krcore.ko")
    machine.run(("" if known else f"depmod {release} && ")
                + f"echo {stamp} {face} >{folder}/{STAMP}", timeout=120)
