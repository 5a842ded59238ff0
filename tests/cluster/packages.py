# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore's own Debian packages: built from this checkout, installed in guests.

Built in a copy of the tree, so that the checkout stays as it is; the copy is kept,
so that a second build compiles only what changed.
"""

import contextlib
import filecmp
import io
import json
import os
import shutil
import tarfile
import tempfile

from . import host, snapshot
from .krcore import KEY_FILE

DATA = "data"
ARCHIVE = "/run/krcore-files.tar"       # in a guest, while files are being written
FORMAT = 1
KEPT = 4            # installations
INSTALLED = ("krcore-common", "libkrcore-queue1", "libkrcore1", "krcore-metaserver", "krcore-tools",
             "krcore-node")


def _sources():
    """Files of the checkout, as git sees them: tracked, or new and not ignored."""
    # root may run it in the checkout of somebody else
    listed = host.run(["git", "-C", host.CHECKOUT, "-c", f"safe.directory={host.CHECKOUT}",
                       "ls-files", "-co", "--exclude-standard", "-z"]).split("\0")
    return [name for name in listed
            if name and (host.CHECKOUT / name).is_file()
            and not name.startswith(("tests/", "run", ".ci/"))]


def _synchronise(names, copy):
    """Make `copy` hold exactly these files; what is equal keeps its time stamp, and what is not is
    newer than what was compiled of it, however old it is here."""
    for name in names:
        source, target = host.CHECKOUT / name, copy / name
        if target.exists() and filecmp.cmp(source, target, shallow=False) \
                and source.stat().st_mode == target.stat().st_mode:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)
    kept = set(names)
    for path in copy.rglob("*"):
        name = str(path.relative_to(copy))
        if path.is_file() and name not in kept and not name.startswith("obj-"):
            path.unlink()


def _clear_packaging(copy, sources):
    """Let debhelper do its steps again; what was compiled stays, and so do the sources."""
    debian = copy / "debian"
    for path in (*debian.glob("*.substvars"), *debian.glob("*debhelper*"), debian / "files",
                 debian / "tmp", *debian.glob("*krcore*")):
        if path.is_dir():
            shutil.rmtree(path)
        elif str(path.relative_to(copy)) not in sources:
            path.unlink(missing_ok=True)


def build():
    """Build the packages; returns their paths. Nothing happens when nothing changed."""
    with host.making("packages"):
        return _build()


def _build():
    work = host.build_dir() / "packages"
    copy = work / "tree"
    names = _sources()
    stamp = host.digest([(name, (host.CHECKOUT / name).read_bytes(),
                          (host.CHECKOUT / name).stat().st_mode & 0o111) for name in names])
    done = work / "stamp"
    if not (done.exists() and done.read_text() == stamp):
        with host.step("building krcore's Debian packages", "20-40 s"):
            done.unlink(missing_ok=True)
            for old in work.glob("*.deb"):
                old.unlink()
            copy.mkdir(parents=True, exist_ok=True)
            _synchronise(names, copy)
            _clear_packaging(copy, set(names))
            # uncompressed: an emulated guest unpacks them in a tenth of the time
            environment = dict(os.environ, DPKG_DEB_COMPRESSOR_TYPE="none",
                               DEB_BUILD_OPTIONS=f"nocheck noautodbgsym parallel={os.cpu_count()}")
            host.run(["dpkg-buildpackage", "-b", "-us", "-uc", "-nc"], cwd=copy, timeout=1200,
                     env=environment, log=work / "build.log")
            done.write_text(stamp)
    return sorted(work.glob("*.deb"))


def _fields(path, *names):
    return host.run(["dpkg-deb", "-f", path, *names])


def _unpacked(paths):
    """A folder with what these packages install in DATA, and the control files of each in a
    folder that is named as its archive. It is made once for their content and then left as
    it is, for another run may be reading it."""
    folder = host.build_dir() / "packages" / "unpacked" / host.digest(*paths)
    with host.making("unpacked"):
        if not folder.exists():
            with host.made_whole(folder) as whole:
                for path in paths:
                    host.run(["dpkg-deb", "-x", path, whole / DATA])
                    host.run(["dpkg-deb", "-e", path, whole / path.name])
            host.keep_newest(folder.parent, 6)
        os.utime(folder)
    return folder


def package(name):
    """The archive of the package of this name."""
    (path,) = [path for path in build() if _fields(path, "Package").strip() == name]
    return path


def dkms_sources():
    """What the package krcore-dkms puts into /usr/src, unpacked: the folder of dkms.conf."""
    path = package("krcore-dkms")
    (conf,) = (_unpacked([path]) / DATA).glob("usr/src/krcore-*/dkms.conf")
    return conf.parent


class Packages:
    """krcore's packages as built from this checkout.

    `shape` names all that an installation does besides writing files: control files,
    names, modes. `files` are the files themselves. A cluster that was frozen with
    packages of the same shape is brought up to date by writing the files that differ.
    """

    def __init__(self):
        self.paths = [path for path in build()
                      if _fields(path, "Package").strip() in INSTALLED]
        folder = _unpacked(self.paths)
        unpacked = folder / DATA
        listing = []
        for path in self.paths:
            listing += [(file.name, file.read_bytes())
                        for file in sorted((folder / path.name).iterdir())
                        if file.name not in ("md5sums", "control")]
            listing.append(_fields(path, "Package", "Version", "Depends"))
        self._unpacked = unpacked
        self.files = {}
        for file in sorted(unpacked.rglob("*")):
            name = "/" + str(file.relative_to(unpacked))
            if file.is_symlink():
                listing.append((name, os.readlink(file)))
            elif file.is_file():
                listing.append((name, file.stat().st_mode))
                self.files[name] = host.digest(file)
        self.shape = host.digest(listing)

    def install(self, cluster):
        """Install them in every guest: in one by dpkg, whose work is kept and put into the others,
        and into those of other clusters with the same root disk. With the checks of the debug
        kernel dpkg takes a quarter of an hour."""
        disk = snapshot.identity(cluster.parts.image)
        folder = host.CACHE / "installations" / host.digest(FORMAT, disk, self.shape)
        rest = cluster.nodes()
        with host.step(f"installing {len(self.paths)} packages in {len(rest)} guests",
                       "5 s; 20 s for a new version, and minutes on the debug kernel"):
            with host.locked(host.CACHE / "locks" / "installations"):
                if not folder.exists():
                    self._install_and_keep(rest.pop(0), folder)
                os.utime(folder)
                tar = (folder / "files.tar").read_bytes()
                digests = json.loads((folder / "digests.json").read_text())
            cluster.each(lambda node: _put_in(node, tar) if node in rest else None)
            self.update(cluster, digests)

    def _install_and_keep(self, machine, folder):
        """Install them in a guest, and keep what that changed on its root disk but for logs, and
        what root's programs leave at home."""
        machine.run("touch /run/krcore-before")
        self.install_in(machine)
        machine.run("find / -xdev -cnewer /run/krcore-before ! -path '/var/log/*' "
                    "! -path /root ! -path '/root/*' -print0 | tar --null --no-recursion -T - "
                    f"-cf {ARCHIVE}", timeout=120)
        with host.made_whole(folder) as whole:
            (whole / "files.tar").write_bytes(machine.pull(ARCHIVE))
            (whole / "digests.json").write_text(json.dumps(self.files))
        machine.run(f"rm {ARCHIVE}")
        host.keep_newest(folder.parent, KEPT)

    def install_in(self, machine):
        """Install them in one guest."""
        machine.run("rm -rf /run/krcore-packages; mkdir /run/krcore-packages")
        for path in self.paths:
            machine.push(path, f"/run/krcore-packages/{path.name}")
        # each has made a cluster key of its own, where tests begin without one
        machine.run("dpkg --force-unsafe-io --force-confnew -i /run/krcore-packages/*.deb && "
                    f"rm -f {KEY_FILE} && rm -rf /run/krcore-packages && sync", timeout=240,
                    env={"DEBIAN_FRONTEND": "noninteractive"})

    def update(self, cluster, installed):
        """Write what differs from the `installed` files, where the shape is the same."""
        changed = [name for name in self.files if installed.get(name) != self.files[name]]
        if changed:
            with host.step(f"{len(changed)} files of the packages are newer: writing them"):
                cluster.each(lambda machine: self._update_in(machine, changed))

    def _update_in(self, machine, changed):
        write_files(machine, self._unpacked, changed)
        if any("systemd" in name for name in changed):
            # systemctl waits for three minutes, which the debug kernel can take on a busy machine;
            # called again, it waits for what is left
            machine.run("systemctl daemon-reload || systemctl daemon-reload", timeout=360)
        if any("sysusers" in name or "tmpfiles" in name for name in changed):
            machine.run("systemd-sysusers; systemd-tmpfiles --create krcore.conf")


def _put_in(machine, tar):
    """Have on the root disk of a guest what an installation made of it elsewhere, bytes of a tar
    archive; udev reads its files again. systemd finds a unit that it has not met before by
    itself; to read all units again takes minutes in four guests on the debug kernel."""
    machine.push(tar, ARCHIVE)
    machine.run(f"tar -C / --numeric-owner -xpf {ARCHIVE} && rm {ARCHIVE} && "
                "systemd-tmpfiles --create krcore.conf && udevadm control --reload", timeout=240)


def archive(root, names):
    """A tar archive of files below the folder `root`, root's, each under its name with ".new"."""
    def owned(info):
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        return info

    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name in names:
            name = name.lstrip("/")
            tar.add(root / name, arcname=f"{name}.new", filter=owned)
    return content.getvalue()


def write_files(machine, root, names):
    """Write files of a guest, as they are below the folder `root`: each appears as a whole.

    They come in one archive: an emulated guest takes a fifth of a second for each command.
    """
    machine.push(archive(root, names), ARCHIVE)
    machine.run(f"cd / && tar -xpf {ARCHIVE} && for new in $(tar -tf {ARCHIVE}); do "
                f"mv -f $new ${{new%.new}} || exit; done && rm {ARCHIVE}")


@contextlib.contextmanager
def staged():
    """Compile what the packages contain, as they are compiled and without making them; a folder
    for the block with all that is installed, not stripped."""
    with host.making("packages"):
        copy = host.build_dir() / "packages" / "tree"
        if not list(copy.glob("obj-*")):
            _build()
        _synchronise(_sources(), copy)
        (objects,) = copy.glob("obj-*")
        host.run(["cmake", "--build", objects], timeout=1200)
        with tempfile.TemporaryDirectory(prefix="krcore-staged-") as folder:
            host.run(["cmake", "--install", objects], env=dict(os.environ, DESTDIR=folder))
            yield folder
