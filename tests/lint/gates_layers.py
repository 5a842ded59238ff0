# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Gates that hold the floors: which folder may use which.

The tables say it of includes. What a file calls it has a declaration of, and a function is
declared only in the folder that defines it, so an arrow that no include shows can't be;
gate `kmod`, which has built objects at hand, looks at their symbols as well.
"""
import os
import re
import subprocess

from lintlib import fail_if, gate

# folder of kmod/: the folders it may use, beside proto/ and itself
KMOD = {"base": "", "hw": "base", "pool": "base hw", "meta": "base", "mem": "base hw pool",
        "message": "base hw pool", "node": "base hw pool meta mem message",
        "peer": "base hw pool meta mem node", "user": "base hw pool meta mem message node peer",
        "api": "base hw pool meta message mem node peer", "include": "",
        "ctl": "base hw pool meta message node peer user api",
        "": "api base message node peer user ctl"}
# headers of a whole folder: what is private to it, what diagnostics ask it for, what other modules
# see of it, what a suite's world offers; the others declare what the file beside them defines
KMOD_OF_FOLDER = re.compile(r"_priv\.h$|/(mlx5|verbs|show)\.h$|^kmod/(include|tests)/")
# files that may use more, and why
KMOD_MORE = {"base/trace.c": "hw"}  # tracepoints are made where their arguments' types are known

# folder of user space: the folders it may use, beside itself
TOP = {"proto": "", "common": "proto", "client": "client/include common proto",
       "client/include": "", "client/lib": "client client/include common proto",
       "client/metactl": "client client/include common proto",
       "metaserver": "client client/include common proto",
       "race/include": "", "race/lib": "client/include race/include proto",
       "race/tool": "client/include race/include common",
       "handoff/lib": "proto", "handoff/functions": "client/include handoff/lib",
       "handoff/runner": "client/include common handoff/lib"}
# of them in race/, what decides there: any network will do
RACE_CORE = re.compile(r"race/lib/(?!krcore|race|serve)\w+\.[ch]$")
RACE_CORE_MAY = re.compile(r"race/lib/(?!krcore)|proto/")
# what decides in the MetaServer, without a transport: not even the daemon's own others
CORE = re.compile(r"metaserver/(admit|aside|changes|ledger|peer|plan|session|settle|table)"
                  r"\.[ch]$")
CORE_MAY = re.compile(r"metaserver/(admit|aside|changes|ledger|log|peer|plan|session|settle|table)"
                      r"\.h$|common/(?!link)|client/include|krcore/|proto/")
TRANSPORT = re.compile(r"(infiniband|rdma)/")
# the machine that is a session with a MetaServer, and what drives it on each side; the few words
# that others say to it, that a server is lost or late, are in krp_session_state.h
MACHINE = "krp_session.h"
DRIVERS = ("client/lib/session.c", "kmod/meta/session.c")

COMPONENTS = ("kmod", "metaserver", "client/lib", "client/metactl", "common", "race/lib",
              "race/tool", "handoff", "bench", "tests/model", "tests/module", "tests/fuzz",
              "tests/stress", "tests/unit")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
TAG = re.compile(r"^(?:static |typedef |const )*(?:struct|union|enum) (\w+) \{", re.M)
ATTRIBUTES = r"(?:__\w+(?:\([^()]*\))?\s+)*"
STRUCT = re.compile(rf"{ATTRIBUTES}(?:static )?{ATTRIBUTES}struct (\w*) ?\{{")   # or without a tag
STRUCT_END = re.compile(r"\} ?(\w*)")
LOCK = re.compile(rf"\s+{ATTRIBUTES}(?:(?:raw_)?spinlock_t|rwlock_t|"
                  r"struct (?:mutex|rw_semaphore)) (\w+)(?:\[[^]]*\])?;")
LOCK_ALONE = re.compile(rf"{ATTRIBUTES}(?:static )?{ATTRIBUTES}"
                        r"DEFINE_\w*(?:LOCK|MUTEX|RWSEM)\((\w+)\)")
LOCK_KNOWN = {"krc_node_state.lock": "krc_node.lock"}     # by the name of the one there is
# a function in a header that is not defined there
DECLARED = re.compile(rf"^(?!static|typedef|#|\s){ATTRIBUTES}[\w\s*]*?\b(krc_\w+)\([^;{{]*\)"
                      r"(?:\s*__\w+(?:\([^)]*\))?)*;", re.M)
DEFINED = re.compile(rf"^(?!static|typedef|#|\s){ATTRIBUTES}[\w\s*]*?\b(krc_\w+)\([^;{{]*\)"
                     r"(?:\s*__\w+(?:\([^)]*\))?)*\n\{", re.M)


def kmod_folder(path):
    """The floor that a path below kmod/ is on: hw/mlx5 is a part of hw."""
    return path.split("/")[0] if "/" in path else ""


def kmod_may(path):
    """The folders that a file of the module may use."""
    own = kmod_folder(path)
    return {own} | set(KMOD[own].split()) | set(KMOD_MORE.get(path, "").split())


def kmod_includes(tree):
    """Includes that run up, and private headers out of their folder."""
    for name in tree.files("*.c", "*.h", under="kmod/"):
        path = name.removeprefix("kmod/")
        if path.startswith(("tests/", "samples/")):
            continue  # samples/: of include/ alone, by their Kbuild
        if kmod_folder(path) not in KMOD:
            yield f"{name}: no floor is named {kmod_folder(path)}, see {os.path.basename(__file__)}"
            continue
        for header in INCLUDE.findall(tree.read(name)):
            if ".." in header:
                yield f"{name}: {header}: a header is named from the top of kmod/"
            to = kmod_folder(header)
            if to not in KMOD or not to:
                continue  # the kernel's, or proto/'s
            if to not in kmod_may(path):
                yield f"{name}: {kmod_folder(path) or 'main'} may not use {to}: {header}"
            if header.endswith("_priv.h") and to != kmod_folder(path):
                yield f"{name}: {header} is private to its folder"


def kmod_declarations(tree):
    """Functions that are declared in another folder than they are defined in, or in a header that
    is not the one beside the file that defines them."""
    defined = {}
    for name in tree.files("*.c", under="kmod/"):
        for func in DEFINED.findall(tree.read(name)):
            defined[func] = name
    for name in tree.files("*.h", under="kmod/"):
        folder = kmod_folder(name.removeprefix("kmod/"))
        for func in DECLARED.findall(tree.read(name)):
            owner = defined.get(func)
            owner_folder = kmod_folder(owner.removeprefix("kmod/")) if owner else folder
            if owner_folder != folder:
                yield f"{name}: {func}() is declared here and defined in {owner_folder}/"
            elif owner and owner != name[:-2] + ".c" and not KMOD_OF_FOLDER.search(name):
                yield f"{name}: {func}() is defined in {owner}: the header beside it declares it"


def top_includes(tree):
    """Includes between the folders of user space that are not allowed."""
    for name in tree.files("*.c", "*.h"):
        if name.split("/")[0] not in ("client", "common", "handoff", "metaserver", "proto", "race"):
            continue
        folder = os.path.dirname(name).replace("/krcore", "")
        if folder in ("client/examples", "handoff/examples"):
            continue  # they use what is installed, as any program does
        if folder not in TOP:
            yield f"{name}: {folder} has no place in {os.path.basename(__file__)}"
            continue
        allowed = {folder} | set(TOP[folder].split())
        for header in INCLUDE.findall(tree.read(name)):
            to = os.path.dirname(re.sub("^krcore/", "client/include/", header)) \
                .replace("/krcore", "")
            if header == "krcore/race.h":
                to = "race/include"
            if header.split("/")[0] in ("client", "common", "handoff", "kmod", "krcore",
                                        "metaserver", "proto", "race") and to not in allowed:
                yield f"{name}: {folder} may not use {to}: {header}"
            if CORE.match(name) and (TRANSPORT.match(header) or "/" in header and to in TOP
                                     and not CORE_MAY.match(header)):
                yield f"{name}: what decides has no transport: {header}"
            if RACE_CORE.match(name) and "/" in header and not RACE_CORE_MAY.match(header):
                yield f"{name}: what decides has no transport: {header}"


def drivers(tree):
    """Includes of the machine of a session: on each side one file, which drives it."""
    for name in tree.files("*.c", "*.h"):
        includes = MACHINE in (os.path.basename(header)
                               for header in INCLUDE.findall(tree.read(name)))
        if includes and name not in DRIVERS and not name.startswith(("tests/", "kmod/tests/")):
            yield f"{name}: {MACHINE} is for {' and '.join(DRIVERS)}"
        if not includes and name in DRIVERS:
            yield f"{name}: it does not drive {MACHINE}"


def tags(tree):
    """Two types of one name in one component: gdb, BTF and people take one for the other."""
    for component in COMPONENTS:
        seen = {}
        for name in tree.files("*.c", "*.h", under=component + "/"):
            if name.startswith(("kmod/tests/", "tests/model/judges/", "tests/model/tools/")):
                continue
            for tag in TAG.findall(tree.read(name)):
                if seen.setdefault(tag, name) != name:
                    yield f"{name}: struct {tag} is defined in {seen[tag]} too"


def locks_of(text):
    """Locks that a file defines, by struct or, where that has no tag, by the object of it."""
    struct, fields = "", []
    for line in text.splitlines():
        opened, field, alone = (found.match(line) for found in (STRUCT, LOCK, LOCK_ALONE))
        if opened:
            struct, fields = opened.group(1), []
        elif line.startswith("}"):
            for lock in fields:
                yield f"{struct or STRUCT_END.match(line).group(1)}.{lock}"
            struct, fields = "", []
        elif field:
            fields.append(field.group(1))
        elif alone:
            yield alone.group(1)


def locks(tree):
    """Locks of the module that its table of them does not name, so that no order is said."""
    named = " ".join(re.findall(r"`([^`\n]+)`", tree.read("kmod/README.md")))
    for name in tree.files("*.c", "*.h", under="kmod/"):
        if name.startswith(("kmod/tests/", "kmod/samples/")):
            continue
        for lock in locks_of(tree.read(name)):
            if not re.search(rf"\b{re.escape(LOCK_KNOWN.get(lock, lock))}\b", named):
                yield f"{name}: {lock} is in no table of kmod/README.md"


def symbols(folder):
    """What objects of the module in `folder` call on a floor above their own."""
    defined, wanted = {}, []
    for path, _, files in os.walk(folder):
        for file in files:
            name = os.path.relpath(os.path.join(path, file), folder)
            if not file.endswith(".o") or kmod_folder(name) not in KMOD or not kmod_folder(name):
                continue
            out = subprocess.run(["nm", os.path.join(path, file)], text=True, check=True,
                                 stdout=subprocess.PIPE, timeout=60).stdout
            for line in out.splitlines():
                kind, symbol = line.split()[-2:]
                if kind == "U":
                    wanted.append((name, symbol))
                elif kind.isupper():
                    defined[symbol] = kmod_folder(name)
    return [f"kmod/{name[:-2]}.c: calls {symbol}() of {defined[symbol]}/" for name, symbol in wanted
            if symbol in defined and defined[symbol] not in kmod_may(name[:-2] + ".c")]


@gate("layers")
def layers(tree):
    """no folder uses one above it; declared where defined, tags once, locks listed, one driver"""
    tree = type(tree)(tree.jobs)  # as a whole, also where one file is named: it is about pairs
    fail_if([*kmod_includes(tree), *kmod_declarations(tree), *top_includes(tree), *drivers(tree),
             *tags(tree), *locks(tree)])
    return f"{len(KMOD)} floors of the module, {len(TOP)} folders of user space"
