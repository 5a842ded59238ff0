# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Programs of the build tree, for tests and benchmarks that need more than packages."""

import functools
import pathlib
import tempfile

from . import host


def compiled(*targets):
    """The build folder without sanitizers, with these targets up to date, or all there are. It
    compiles by the commands of part stress and gate build-gcc: ccache has each object once."""
    folder = host.build_dir() / "programs"
    words = [word for target in targets for word in ("--target", target)]
    with host.making("programs"), \
            host.step("compiling the programs of tests and benchmarks", "10 s"):
        host.run(["cmake", "-G", "Ninja", "-S", host.CHECKOUT, "-B", folder,
                  "-DCMAKE_C_COMPILER=gcc", "-DKRC_WERROR=ON"])
        host.run(["cmake", "--build", folder, *words], timeout=3600)
    return folder


@functools.lru_cache
def _all_compiled():
    return compiled()


def built(name):
    """Path of a program, as "bench/NAME", in an up-to-date build without sanitizers."""
    folder = _all_compiled()
    path = folder / name
    if not path.is_file():
        raise host.ClusterError(f"{path}: not built")
    return path


def install_once(machine, name, target):
    """install(), unless the guest has it already as it is built now."""
    stamp = _digest(built(name))
    if machine.run(f"test -x {target} && cat {target}.stamp", check=False).out.strip() == stamp:
        return
    install(machine, name, target)
    machine.push(f"{stamp}\n".encode(), f"{target}.stamp")


@functools.lru_cache
def _digest(path):
    """Of a program, which does not change any more once built() has returned it."""
    return host.digest(path)


def install(machine, name, target=None):
    """Put a program into a guest, stripped; returns its path there."""
    path = built(name)
    target = target or f"/usr/local/bin/{pathlib.Path(name).name}"
    with tempfile.NamedTemporaryFile(prefix="krcore-stripped-") as stripped:
        host.run(["strip", "-o", stripped.name, path])
        machine.push(pathlib.Path(stripped.name), target, mode=0o755)
    return target
