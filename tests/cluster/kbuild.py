# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Where modules are compiled: folders of the cache that all checkouts share.

A compiler's command names the folder, so what it has made in one checkout is of no use in
another, to make and to ccache alike. Here it is: a copy of the sources lies at a place that only
depends on what they are compiled for; what is equal keeps its time stamp, and another checkout
compiles what differs.
"""

import contextlib
import os
import shutil

from . import host

KEPT = 12           # places
FORMAT = 1
# Modules are stripped before they are loaded, so nobody would see it.
NO_DEBUG_INFO = "-g0"


def copy(sources, folder):
    """Make `folder` hold the files that `sources` names (path in the folder: where it is). What
    is equal keeps its time stamp; C files that are not named are gone, and their objects."""
    for name, source in sources.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
    for path in folder.rglob("*.[ch]"):
        if str(path.relative_to(folder)) not in sources and not path.name.endswith(".mod.c"):
            path.unlink()
            path.with_suffix(".o").unlink(missing_ok=True)      # nor is it linked any more


@contextlib.contextmanager
def place(name, *key):
    """Hold the folder for a kind of build, alone. `key`: what it depends on beside the compiler
    and the sources. The folder is empty if the last who held it was killed in the middle, as a
    compiler may have been that was writing an object."""
    folder = host.CACHE / "modules" / f"{name}-{host.digest(FORMAT, _compiler(), *key)}"
    unfinished = folder / ".unfinished"
    with host.locked(host.CACHE / "locks" / folder.name):
        if unfinished.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        unfinished.touch()
        try:
            yield folder
        except Exception:       # an error is no kill: make has ended by itself
            unfinished.unlink()
            raise
        unfinished.unlink()
    host.keep_newest(folder.parent, KEPT)


def _compiler():
    return host.run(["gcc", "--version"]).splitlines()[0]
