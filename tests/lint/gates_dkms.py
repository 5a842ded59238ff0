# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Gates of what dkms makes of the package krcore-dkms: added, built, installed, upgraded and
removed in trees of their own, by dkms itself.

The kernel is called by a name that no kernel of a machine has, so that dkms finds no program
to sign the module with, for which it would make a key outside of these trees.
"""
import os
import re
import shutil

from gates_kmod import headers, host, kbuild
from lintlib import ROOT, Skipped, fail_if, gate, need, tool

PARTS = ("kmod", "proto", "debian")
RELEASE = "6.1-krcore"          # one that the package takes
LATER_RELEASE = "6.13-krcore"   # one that it does not
# The module of the later version: all that an upgrade looks at is its name and its version, and
# the whole one has been compiled as the first.
LATER_SOURCES = {
    "kmod/Kbuild": "obj-m := krcore.o\n",
    "kmod/krcore.c": '#include <linux/module.h>\n\nMODULE_DESCRIPTION("a later version");\n'
                     'MODULE_LICENSE("GPL");\nMODULE_VERSION("1.1");\n'}
NOT_FOR_THIS = 77               # exit status of dkms
WITHOUT = "CONFIG_MLX5_CORE"    # an option that the module cannot do without


def _text(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def version_faults():
    """dkms installs no module over one of the same version: all that name it must agree."""
    said = {name: re.search(pattern, _text(name), re.MULTILINE)[1] for name, pattern in (
        ("CMakeLists.txt", r"^project\(krcore VERSION (\S+)"),
        ("debian/changelog", r"^krcore \(([0-9.]+)"),
        ("kmod/main.c", r'^MODULE_VERSION\("(.*)"\);'))}
    return [f"{name}: version {version}" for name, version in said.items()] \
        if len(set(said.values())) > 1 else []


class Dkms:
    """dkms with source, build and module trees in a folder."""

    def __init__(self, tree, folder, made):
        self.tree, self.folder, self.made = tree, folder, made
        for name in ("tree", "src", f"lib/{RELEASE}"):
            os.makedirs(self.path(name))

    def path(self, *names):
        """A place in the folder."""
        return os.path.join(self.folder, *names)

    def source(self, version, texts):
        """What the package of a version puts into /usr/src: `texts` by name, and its dkms.conf."""
        conf = _text("debian/krcore-dkms.dkms").replace("#MODULE_VERSION#", version)
        for name, text in (texts | {"dkms.conf": conf}).items():
            to = self.path("src", f"krcore-{version}", name)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(to, "w", encoding="utf-8") as f:
                f.write(text)

    def whole_module(self, version):
        """Its sources as they are here, but for the version, for source()."""
        names = self.tree.files("*.c", "*.h", "*.mk", "Kbuild", "Makefile")
        texts = {name: _text(name) for name in names if name.split("/")[0] in PARTS[:2]}
        texts["kmod/main.c"] = re.sub(r'^MODULE_VERSION\(".*"\);', f'MODULE_VERSION("{version}");',
                                      texts["kmod/main.c"], flags=re.MULTILINE)
        return texts

    def run(self, word, version, *more, release=RELEASE, made=None, status=0):
        """Run it; fails unless it ends with that status. Returns what it said."""
        kernel = ["-k", release, "--kernelsourcedir", made or self.made, "--no-depmod",
                  "-j", str(self.tree.jobs)] if word in ("build", "install") else []
        got, out = tool(["dkms", word, "--dkmstree", self.path("tree"), "--sourcetree",
                         self.path("src"), "--installtree", self.path("lib"), "-m", "krcore",
                         "-v", version, *kernel, *more])
        if got != status:
            fail_if([f"dkms {word} {version} for {release}: exit status {got}, not {status}",
                     *out.splitlines()[-60:]])
        return out

    def installed(self):
        """(path, version) of the modules that a kernel would find."""
        found = []
        for path, _, files in os.walk(self.path("lib")):
            for name in (os.path.join(path, name) for name in files):
                found.append((os.path.relpath(name, self.path("lib", RELEASE)),
                              tool(["modinfo", "-F", "version", name])[1].strip()))
        return found

    def left(self):
        """What there is still of it in dkms's own tree."""
        return [name for name in os.listdir(self.path("tree")) if name == "krcore"]

    def expect(self, when, *versions):
        """Just these versions of the module are installed, where dkms puts them."""
        found = self.installed()
        wanted = [("updates/dkms/krcore.ko", version) for version in versions]
        fail_if([f"{when}: {found} instead of {wanted}"] if found != wanted else [])


def headers_without(dkms):
    """What dkms looks at of the headers of a kernel that lacks an option."""
    folder = dkms.path("headers")
    os.makedirs(folder)
    with open(os.path.join(dkms.made, ".config"), encoding="utf-8") as f, \
         open(os.path.join(folder, ".config"), "w", encoding="utf-8") as to:
        to.writelines(line for line in f if not line.startswith(f"{WITHOUT}="))
    return folder


def life(dkms):
    """From the first installation over an upgrade to the end."""
    dkms.source("1.0", dkms.whole_module("1.0"))
    dkms.source("1.1", LATER_SOURCES)
    dkms.run("add", "1.0")
    dkms.run("build", "1.0", release=LATER_RELEASE, status=NOT_FOR_THIS)
    dkms.run("build", "1.0", made=headers_without(dkms), status=NOT_FOR_THIS)
    dkms.run("build", "1.0")
    dkms.expect("built")
    dkms.run("install", "1.0")
    dkms.expect("installed", "1.0")
    # the new one comes before the old one goes, and must not go with it
    dkms.run("add", "1.1")
    dkms.run("build", "1.1")
    dkms.run("install", "1.1")
    dkms.expect("upgraded", "1.1")
    dkms.run("remove", "1.0", "--all", "--no-depmod")
    dkms.expect("without the old one", "1.1")
    dkms.run("remove", "1.1", "--all", "--no-depmod")
    dkms.expect("removed")
    fail_if([f"dkms keeps {name}" for name in dkms.left()])


@gate("dkms")
def gate_dkms(tree):
    """dkms adds, builds, installs, upgrades and removes krcore-dkms, for kernels that it is for"""
    if tree.only and not any(name.split("/")[0] in PARTS for name in tree.files("*")):
        raise Skipped("nothing of the package is named")
    fail_if(version_faults())
    need("dkms", "make", "modinfo")
    if os.geteuid():
        raise Skipped("dkms wants to be root")
    try:
        _, made = headers("6.1")
    except host.ClusterError as e:
        raise Skipped(f"no headers of kernel 6.1: {str(e).splitlines()[0]}") from e
    # ccache finds what dkms had compiled before at the same place
    with kbuild.place("dkms", made) as place:
        folder = place / "life"
        shutil.rmtree(folder, ignore_errors=True)
        life(Dkms(type(tree)(tree.jobs), folder, str(made)))
    return "6.1, and a later version"
