# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Kernels for the guests: Debian's own, or one that was built elsewhere.

A kernel is three files: vmlinuz, initrd (a tiny one, with the modules that reach
the root disk) and modules.ext4 (a disk with those modules a guest may want). They
fit any root image. The modules are the packaged ones, untouched but for being
fewer and uncompressed.
"""

import dataclasses
import lzma
import os
import pathlib
import re
import shutil

from . import cpio, host

IMAGE = host.TESTS / "image"
NAMES = ("6.1", "6.12", "debug")
FORMAT = 1      # of the three files; another one makes all kernels anew


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One kernel, ready to boot."""
    name: str
    release: str
    vmlinuz: pathlib.Path
    initrd: pathlib.Path
    modules: pathlib.Path
    key: str

    def times(self):
        """By how much longer things take than on a stock kernel; for time limits."""
        return 4 if self.name == "debug" else 1

    def memory_times(self):
        """By how much more memory a guest needs: KASAN keeps freed memory and a shadow."""
        return 2 if self.name == "debug" else 1

    def hot_plug(self):
        """Whether it notices cards that come and go; else it must be told to look."""
        return self.name != "debug"

    def command_line(self):
        """What this kernel is told beside what all are told."""
        return "systemd.default_timeout_start_sec=900" if self.name == "debug" else ""


def _version_key(name):
    return [int(n) for n in re.findall(r"\d+", name)]


def _package(name):
    """The newest stock package of a kernel series, and its version."""
    if name == "6.1":
        pattern = r"linux-image-6\.1\.0-\d+-amd64"
    else:
        pattern = r"linux-image-6\.12\.[^-]*(-\d+)?-amd64"
    known = host.run(["apt-cache", "pkgnames", "linux-image-6."]).split()
    found = [p for p in known if re.fullmatch(pattern, p)]
    for package in sorted(found, key=_version_key, reverse=True):
        policy = host.run(["apt-cache", "policy", package])
        candidate = re.search(r"Candidate: (\S+)", policy)
        if candidate and candidate[1] != "(none)":
            return package, candidate[1]
    raise host.ClusterError(
        f"no package of kernel {name} is known to apt: is bookworm-security among its "
        "sources? (then: apt-get update)")


def _wanted_modules():
    early, wanted = [], []
    for line in (IMAGE / "modules").read_text().splitlines():
        words = line.split("#")[0].split()
        if len(words) == 2 and words[0] == "early":
            early.append(words[1].replace("-", "_"))
        elif len(words) == 1:
            wanted.append(words[0].replace("-", "_"))
    return early, wanted


def _module_name(path):
    return os.path.basename(path).split(".ko")[0].replace("-", "_")


def _closure(dependencies, names):
    """Paths of the named modules, each after those it needs."""
    order = []

    def visit(path):
        if path in order:
            return
        for needed in reversed(dependencies[path]):
            visit(needed)
        order.append(path)

    by_name = {_module_name(path): path for path in dependencies}
    for name in names:
        if name in by_name:
            visit(by_name[name])
    return order


def _read_dependencies(folder):
    dependencies = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, needs = line.partition(":")
        dependencies[path] = needs.split()
    return dependencies


def _copy_module(source, target):
    """Copy a module uncompressed; returns where it went."""
    data = source.read_bytes()
    if source.suffix == ".xz":
        data = lzma.decompress(data)
        target = target.with_suffix("")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


def _prune(source, target, release):
    """Copy the wanted modules of a tree; returns the early ones in load order."""
    host.run(["/sbin/depmod", "-b", source.parents[2], release])
    dependencies = _read_dependencies(source)
    early, wanted = _wanted_modules()
    for path in _closure(dependencies, early + wanted):
        _copy_module(source / path, target / path)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        if (source / name).exists():
            shutil.copy(source / name, target / name)
    host.run(["/sbin/depmod", "-b", target.parents[2], release])
    return _closure(_read_dependencies(target), early)


def _make(name, tree, release, vmlinuz, whole):
    """Fill the folder `whole` from an unpacked kernel."""
    pruned = tree / "pruned" / "lib" / "modules" / release
    pruned.mkdir(parents=True)
    early = _prune(tree / "lib" / "modules" / release, pruned, release)
    shutil.copy(vmlinuz, whole / "vmlinuz")

    archive = cpio.Archive()
    init = host.compiled(IMAGE / "init.c", "-static", "-s")
    archive.add_file("init", init.read_bytes(), 0o755)
    for path in early:
        archive.add_file("modules/" + os.path.basename(path), (pruned / path).read_bytes())
    archive.add_file("modules.order", "".join(
        f"/modules/{os.path.basename(path)}\n" for path in early).encode())
    (whole / "initrd").write_bytes(archive.finish())

    # Root of this disk is /usr/lib/modules; room for modules that tests install.
    size = sum(p.stat().st_size for p in pruned.rglob("*") if p.is_file())
    host.run(["/sbin/mke2fs", "-q", "-t", "ext4", "-m", "0", "-O", "^metadata_csum,^64bit",
              "-E", "root_owner=0:0,lazy_itable_init=1", "-d", tree / "pruned/lib/modules",
              whole / "modules.ext4", f"{size // 1024 + 128 * 1024}k"])
    (whole / "release").write_text(release)


def _from_cache(name, folder):
    os.utime(folder)
    return Kernel(name, (folder / "release").read_text(), folder / "vmlinuz",
                  folder / "initrd", folder / "modules.ext4", folder.name)


def _recipe():
    return host.digest(FORMAT, IMAGE / "modules", IMAGE / "init.c")


def _debug_folder():
    """The kernel of tests/kernel, or another one: KRCORE_DEBUG_KERNEL names a folder
    with bzImage, lib/modules/RELEASE, and build, which modules are built against."""
    given = os.environ.get("KRCORE_DEBUG_KERNEL")
    if not given:
        with host.step("kernel debug: built once from Debian's source, then kept",
                       "20 min the first time"):
            given = host.run([host.TESTS / "kernel" / "build-debug-kernel"],
                             timeout=4000).split()[-1]
    return pathlib.Path(given)


def _get_debug():
    source = _debug_folder()
    releases = sorted(p.name for p in (source / "lib/modules").glob("*"))
    if not (source / "bzImage").is_file() or len(releases) != 1:
        raise host.ClusterError(f"{source}: needs a bzImage and one folder in lib/modules")
    image = source / "bzImage"
    key = "debug-" + host.digest(_recipe(), image.read_bytes(), releases)
    folder = host.CACHE / "kernels" / key
    with host.locked(host.CACHE / "locks" / "kernel"):
        if not folder.exists():
            with host.made_whole(folder) as whole:
                tree = whole.parent / "tree"
                shutil.copytree(source / "lib", tree / "lib", symlinks=True,
                                ignore=shutil.ignore_patterns("build", "source"))
                _make("debug", tree, releases[0], image, whole)
    return _from_cache("debug", folder)


def get(name):
    """The kernel of this name, downloaded and prepared when that is not yet done."""
    if name == "debug":
        return _get_debug()
    if name not in NAMES:
        raise host.ClusterError(f"kernel {name}: not one of {', '.join(NAMES)}")
    package, version = _package(name)
    folder = host.CACHE / "kernels" / f"{name}-{host.digest(_recipe(), package, version)}"
    with host.locked(host.CACHE / "locks" / "kernel"):
        if not folder.exists():
            with host.step(f"kernel {name}: {package} {version}", "20 s"), \
                 host.made_whole(folder) as whole:
                tree = whole.parent / "tree"
                tree.mkdir()
                host.run(["apt-get", "download", "-q", f"{package}={version}"],
                         cwd=whole.parent)
                (archive,) = whole.parent.glob("*.deb")
                host.run(["dpkg-deb", "-x", archive, tree])
                release = package.removeprefix("linux-image-")
                _make(name, tree, release, tree / "boot" / f"vmlinuz-{release}", whole)
            host.keep_newest(folder.parent, 6)
    return _from_cache(name, folder)


def _header_packages(release):
    """The Debian packages that a module for this kernel is built against."""
    package = f"linux-headers-{release}"
    listed = host.run(["apt-cache", "depends", package])
    return [package] + re.findall(r"Depends: (linux-(?:headers|kbuild)-\S+)", listed)


def _relocate(whole, folder):
    """Headers name each other by absolute path: let those in `whole` be found in `folder`."""
    for tree in (whole / "usr/src").glob("linux-headers-*"):
        makefile = tree / "Makefile"
        if makefile.is_file() and makefile.stat().st_size < 4096:
            text = makefile.read_text()
            makefile.write_text(text.replace("/usr/src/", f"{folder}/usr/src/"))
        for link in (tree / "scripts", tree / "tools"):
            if link.is_symlink() and os.readlink(link).startswith("/"):
                target = f"{folder}{os.readlink(link)}"
                link.unlink()
                link.symlink_to(target)


def build_tree(kernel):
    """What out-of-tree modules for this kernel are built against: its folder.

    The headers that are installed, or the packages unpacked into the cache.
    """
    if kernel.name == "debug":
        return _debug_folder() / "build"
    installed = pathlib.Path("/usr/src") / f"linux-headers-{kernel.release}"
    if installed.is_dir():
        return installed
    folder = host.CACHE / "headers" / f"{kernel.release}-{host.digest(FORMAT)}"
    with host.locked(host.CACHE / "locks" / "headers"):
        if not folder.exists():
            with host.step(f"headers of kernel {kernel.release}", "20 s"), \
                 host.made_whole(folder) as whole:
                host.run(["apt-get", "download", "-q", *_header_packages(kernel.release)],
                         cwd=whole.parent)
                for archive in whole.parent.glob("*.deb"):
                    host.run(["dpkg-deb", "-x", archive, whole])
                _relocate(whole, folder)
            host.keep_newest(folder.parent, 4)
    return folder / "usr/src" / f"linux-headers-{kernel.release}"
