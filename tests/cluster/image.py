# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The guests' root disk, made by mmdebstrap and kept in the cache.

Its name is a digest of the package list, of the versions apt would install, and of
everything in tests/image, so that an image is never stale and never made twice.
krcore is not in it: see packages.py.
"""

import os
import subprocess

from . import host

IMAGE = host.TESTS / "image"

# Settings of this machine's apt that the image's apt has to share to get anything.
_SHARED_OPTIONS = ("Acquire::http::Proxy", "Acquire::https::Proxy",
                   "Acquire::Check-Valid-Until", "Acquire::Check-Date")


def _sources():
    """This machine's own Debian 12 archives, as lines of a sources.list."""
    listed = host.run(["apt-get", "indextargets", "--format",
                       "$(REPO_URI) $(RELEASE) $(CODENAME) $(COMPONENT) $(ORIGIN)",
                       "Created-By: Packages"])
    lines = []
    for line in sorted(set(listed.splitlines())):
        uri, release, codename, component, origin = (line.split() + [""] * 5)[:5]
        if origin == "Debian" and component == "main" and codename in (
                "bookworm", "bookworm-updates", "bookworm-security"):
            lines.append(f"deb {uri} {release} {component}")
    if not any(" bookworm " in line for line in lines):
        return ""
    return "\n".join(lines)


def _options():
    lines = []
    for name in _SHARED_OPTIONS:
        value = subprocess.run(["apt-config", "shell", "V", name], capture_output=True,
                               text=True, check=True).stdout.strip()
        if value.startswith("V='") and value != "V=''":
            lines.append(f"{name} \"{value[3:-1]}\"")
    return "\n".join(lines)


def apt_environment():
    """What scripts that call mmdebstrap are to know of this system's apt."""
    return {"KRCORE_APT_SOURCES": _sources(), "KRCORE_APT_OPTIONS": _options()}


def package_names():
    """The names in the package list."""
    lines = (IMAGE / "packages").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _key():
    policy = host.run(["apt-cache", "policy", *package_names()])
    versions = [line.strip() for line in policy.splitlines()
                if not line.startswith(" ") or "Candidate:" in line]
    recipe = [IMAGE / "build-root", IMAGE / "packages", IMAGE / "files"]
    return host.digest(versions, *recipe)


def get():
    """Path of the root disk; it is never written to."""
    folder = host.CACHE / "images" / _key()
    disk = folder / "root.ext4"
    with host.locked(host.CACHE / "locks" / "image"):
        if not disk.exists():
            environment = dict(os.environ, **apt_environment())
            with host.step("root image of the guests, by mmdebstrap", "60-120 s"), \
                 host.made_whole(folder) as whole:
                owner = f"{os.getuid()}:{os.getgid()}"
                host.run(host.as_root([str(IMAGE / "build-root"), str(whole / "root.ext4"),
                                       str(whole.parent / "work"), owner]),
                         timeout=1800, env=environment)
            host.keep_newest(folder.parent, 4)
        os.utime(folder)
    return disk
