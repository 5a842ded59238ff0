# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A gate over the gates: plant a fault for each in a copy of the tree.

A gate that finds nothing there would find nothing anywhere; one that has no fault here fails this
one.
"""
import os
import shutil
import tempfile

from gates_layers import symbols
from gates_text import bad_subjects
from lintlib import GATES, ROOT, fail_if, gate, tool

LICENCE = "GPL-2.0-only OR MIT"
C_HEAD = f"/* SPDX-License-Identifier: {LICENCE} */\n"
SH_HEAD = f"#!/bin/sh\n# SPDX-License-Identifier: {LICENCE}\n"
PY_HEAD = f"# SPDX-License-Identifier: {LICENCE}\n"
UNIT_HEAD = PY_HEAD + "[Unit]\nDescription=planted\n[Service]\n"

# gate, file to append to or to make, what to put there, a word of the complaint
FAULTS = [
    ("build-gcc", "common/gid.c", "int planted(void)\n{\n\tint unused;\n\n\treturn 0;\n}\n",
     "unused"),
    ("build-clang", "common/gid.c", "int planted(int nr);\nint planted(int nr)\n{\n\tnr = nr;\n"
     "\treturn nr;\n}\n", "self-assign"),
    ("presets", "CMakePresets.json", "}\n", "CMakePresets.json"),
    ("headers", "common/planted.h", C_HEAD + "int planted(size_t nr);\n", "size_t"),
    ("abi32", "proto/planted.h",
     C_HEAD + "#include <linux/types.h>\nstruct krp_planted {\n\tlong a;\n};\n", "krp_planted"),
    ("kernel", "proto/planted.h", C_HEAD + "#include <stdio.h>\n", "stdio.h"),
    ("sparse", "common/gid.c", "__u32 planted(__le32 v);\n__u32 planted(__le32 v)\n{\n"
     "\treturn v;\n}\n", "restricted"),
    ("kmod", "kmod/main.c", "static int planted(void)\n{\n\treturn 0;\n}\n", "planted"),
    ("compat", "kmod/compat.mk", "ccflags-y := $(filter-out -DKRC_HAVE_%,$(ccflags-y))\n",
     "KRC_HAVE_HRTIMER_SETUP"),
    ("probe", "kmod/meta/cq.c", "int krc_planted(void);\nint krc_plant(void);\n"
     "int krc_plant(void)\n{\n\treturn krc_planted();\n}\n", "krc_planted"),
    ("dkms", "debian/krcore-dkms.dkms", 'BUILD_EXCLUSIVE_ARCH="planted"\n', "77, not 0"),
    ("layers", "kmod/pool/planted.h", C_HEAD + '#include "user/queue.h"\n',
     "pool may not use user"),
    ("layers", "kmod/pool/flow.h", "void krc_window_look(struct krc_channel *ch);\n",
     "the header beside it"),
    ("layers", "kmod/mem/planted.h", C_HEAD + '#include "../user/queue.h"\n', "from the top"),
    ("layers", "metaserver/table.h", "#include <rdma/rdma_cma.h>\n", "no transport"),
    ("layers", "kmod/user/planted.h", C_HEAD + '#include "meta/meta_priv.h"\n', "private"),
    ("layers", "kmod/ctl/planted.h", C_HEAD + "void krc_limits_exit(void);\n", "defined in base/"),
    ("layers", "kmod/ctl/planted.h", C_HEAD + "__printf(1, 2) void krc_limits_exit(const char *f, "
     "...);\n", "defined in base/"),
    ("layers", "common/planted.h", C_HEAD + '#include "client/wire.h"\n', "common may not use"),
    ("layers", "race/lib/planted.h", C_HEAD + '#include "client/wire.h"\n', "race/lib may not use"),
    ("layers", "race/lib/find.c", "#include <krcore/queue.h>\n", "no transport"),
    ("layers", "client/lib/subscribe.c", '#include "proto/krp_session.h"\n', "is for client/lib"),
    ("layers", "kmod/pool/planted.h", C_HEAD + "struct krc_planted {\n\tspinlock_t gate;\n};\n",
     "krc_planted.gate"),
    ("layers", "kmod/pool/planted.c", C_HEAD + "static DEFINE_MUTEX(krc_planted_lock);\n",
     "krc_planted_lock"),
    ("layers", "kmod/pool/planted.c",
     C_HEAD + "static __read_mostly struct {\n\tspinlock_t gates[4];\n} krc_planted;\n",
     "krc_planted.gates"),
    ("layers", "kmod/pool/planted.c",
     C_HEAD + "__maybe_unused static DEFINE_SPINLOCK(krc_planted_lock);\n", "krc_planted_lock"),
    ("layers", "metaserver/planted.h", C_HEAD + "struct ms_table {\n\tint a;\n};\n", "too"),
    ("layers", "tests/unit/planted.h", C_HEAD + "struct net {\n\tint a;\n};\n", "too"),
    ("tidy", "common/gid.c", "int planted(const char *s);\nint planted(const char *s)\n{\n"
     "\textern int atoi(const char *);\n\n\treturn atoi(s);\n}\n", "cert-err34-c"),
    ("analyzer", "common/gid.c", "#include <stdlib.h>\n"
     "int planted(int n);\nint planted(int n)\n{\n"
     "\tchar *p = malloc(9);\n\n\tfree(p);\n\tif (n)\n\t\tfree(p);\n\treturn 0;\n}\n",
     "double"),
    ("logs", "kmod/pool/planted.c", C_HEAD + 'static void krc_planted(void)\n{\n'
     '\tpr_warn_once("planted\\n");\n}\n', "names no port"),
    ("format", "common/planted.c", C_HEAD + "int  planted;\n", "planted"),
    ("checkpatch", "common/planted.c", C_HEAD + "int planted( int a ) {\n  return a; }\n", "ERROR"),
    ("kernel-doc", "common/planted.h",
     C_HEAD + "/**\n * planted() - A function.\n *\n * Return: 0.\n */\nint planted(int nr);\n",
     "nr"),
    ("kernel-doc", "tests/model/planted.h",
     C_HEAD + "/**\n * cx_planted() - A function.\n * @nr: number.\n */\nint cx_planted(int nr);\n",
     "cx_planted"),
    ("documented", "common/planted.h", C_HEAD + "int kru_planted(int nr);\n", "kru_planted"),
    ("documented", "common/planted.h", C_HEAD + "__printf(1, 2) int kru_planted(const char *f, "
     "...);\n", "kru_planted"),
    ("documented", "kmod/mem/planted.h", C_HEAD + "static __always_inline int krc_planted(void)\n"
     "{\n\treturn 0;\n}\n", "krc_planted"),
    ("documented", "handoff/lib/planted.h", C_HEAD + "int kh_planted(int nr);\n", "kh_planted"),
    ("documented", "kmod/mem/planted_priv.h", C_HEAD + "int krc_planted(int nr);\n", "krc_planted"),
    ("documented", "kmod/meta/planted_priv.h", C_HEAD + "/* Why. */\nint krc_planted(int nr);\n",
     "krc_planted"),
    ("documented", "tests/model/planted.h", C_HEAD + "struct cx_planted {\n\tint a;\n};\n",
     "cx_planted"),
    ("budget", "common/planted.c", C_HEAD + "\n" * 1000, "1001 lines"),
    ("budget", "kmod/pool/planted.c",
     C_HEAD + "static int krc_planted(int nr)\n{\n" + "\tnr++;\n" * 58 + "}\n", "61 lines"),
    ("symbols", "client/include/krcore/krcore.h", "int krcore_planted(int nr);\n",
     "krcore_planted: declared in a public header, in none"),
    ("symbols", "client/lib/libkrcore.map",
     "KRCORE_PLANTED {\n\tglobal:\n\t\tkrcore_planted;\n};\n", "krcore_planted: in one of"),
    ("man-cover", "client/include/krcore/krcore.h", "int krcore_planted(int nr);\n",
     "krcore_planted(): no manual page"),
    ("codespell", "common/planted.c", C_HEAD + "/* " + "recie" + "ve */\n", "receive"),
    ("words", "common/planted.c", C_HEAD + "/* He waits for it. */\n", "name the caller"),
    ("words", "tests/unit/planted.c", C_HEAD + "/* Who waits is told. */\n", "has a subject"),
    ("words", "common/planted.c", C_HEAD + "/* who waits is told */\n", "has a subject"),
    ("words", "tests/planted.py", PY_HEAD + "LATE = 1     # who waits is told\n", "has a subject"),
    ("words", "bench/planted.py", PY_HEAD + '"""Who waits."""\n', "has a subject"),
    ("words", "systemd/planted.service", UNIT_HEAD + "# Who waits masks it.\n", "has a subject"),
    ("words", "docs/planted.yaml", PY_HEAD + "doc: a line for people\n", "diagnostics"),
    ("words", "kmod/planted.c", C_HEAD + 'const char *a = "told \\"to who waits";\n', "name it"),
    ("words", "bench/planted.py", PY_HEAD + '"""Given to\nwho waits."""\n', "name it"),
    ("words", "proto/planted.h", C_HEAD + "/* of another\n * life */\n", "generation of a node"),
    ("words", "kmod/planted.h", C_HEAD + "/* @incarnation: life of the server */\n",
     "incarnation of a server"),
    ("words", "race/lib/planted.c", C_HEAD + "/* @patience_ns: it waits */\n", "timeout"),
    ("walks", "client/README.md", "see `lib/nowhere.c`\n", "no file lib/nowhere.c"),
    ("walks", "metaserver/README.md", "see `ms_nowhere`\n", "nothing is named ms_nowhere"),
    ("walks", "kmod/README.md", "in `user/post.c` (`krc_ioc_wait`)\n", "has no krc_ioc_wait()"),
    ("walks", "kmod/README.md", "| `mem/` | regions | user, base |\n", "mem/ may use"),
    ("shellcheck", "tests/planted.sh", SH_HEAD + "rm -r $1/*\n", "SC2086"),
    ("python", "tests/planted.py", PY_HEAD + "import os\n", "os"),
    ("man", "docs/planted.8", f'.\\" SPDX-License-Identifier: {LICENCE}\n.SH NAME\nplanted\n',
     "missing manual title"),
    ("units", "systemd/planted.service", UNIT_HEAD + "ExecStart=/bin/true\n", "exposure"),
    ("spdx", "common/planted.c", "int planted;\n", "SPDX"),
    ("text", "common/planted.c", C_HEAD + "/* TO" + "DO: 10.1" + ".2.3 */ \n", "private"),
]
# these compare files with each other: they are shown all of the copy, not the planted one alone
OF_ALL_FILES = ("symbols", "man-cover")
# gates that no fault is planted for, and why
WITHOUT_FAULT = {"gates": "it would plant all of these once more",
                 "commits": "a copy of the tree has none: plant_subjects() has some"}


def without_fault():
    """Complaints about gates that nothing is planted for, and about exceptions that are none."""
    planted = {fault[0] for fault in FAULTS}
    return [f"{name}: no fault is planted for it: FAULTS in tests/lint/gates_self.py"
            for name in GATES if name not in planted and name not in WITHOUT_FAULT] + \
           [f"{name}: no gate without a fault: WITHOUT_FAULT in tests/lint/gates_self.py"
            for name in WITHOUT_FAULT if name in planted or name not in GATES]


@gate("gates")
def gates(tree):
    """every gate above reports a fault planted in a copy of the tree"""
    fail_if(without_fault())
    lines = []
    folder = tempfile.mkdtemp(prefix="gates.", dir=tree.work)
    try:
        lines += plant_calls(os.path.join(folder, "objects")) + plant_subjects()
        for name in tree.files("*"):
            target = os.path.join(folder, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), target)
        judged = []
        for fault in FAULTS:
            verdict, line = plant(folder, *fault)
            if verdict != "SKIP":
                judged.append(fault[0])
            lines.append(line)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    fail_if(lines)
    skipped = len(FAULTS) - len(judged)
    return f"{len(set(judged))} gates, {len(judged)} faults" \
        + (f", {skipped} skip here" if skipped else "")


def plant_calls(folder):
    """Objects that call a floor below theirs, which is right, and one above it, which no include
    shows: what gate `kmod` says of those that it has built. Returns complaints."""
    for path, text in (("pool/low.c", "void krc_high(void);\nvoid krc_low(void)\n"
                                      "{\n\tkrc_high();\n}\n"),
                       ("user/high.c", "void krc_low(void);\nvoid krc_high(void)\n"
                                       "{\n\tkrc_low();\n}\n")):
        source = os.path.join(folder, path)
        os.makedirs(os.path.dirname(source))
        with open(source, "w") as f:
            f.write(text)
        status, out = tool(["gcc", "-c", source, "-o", source[:-2] + ".o"])
        if status:
            return [out]
    said = symbols(folder)
    wanted = ["kmod/pool/low.c: calls krc_high() of user/"]
    return [] if said == wanted else [f"kmod: of the calls planted in objects it says {said}"]


def plant_subjects():
    """Subjects of commits, the last two of them bad. Returns complaints."""
    said = bad_subjects([("1", "kmod: pool, peer: count"), ("2", "Merge " + "a" * 80),
                         ("3", "kmod: " + "a" * 67), ("4", "Count segments")])
    return [] if [line[0] for line in said] == ["3", "4"] \
        else [f"commits: of the subjects planted it says {said}"]


def plant(folder, name, path, text, word):
    """Plant one fault, run its gate, take the fault out; return (verdict, complaint)."""
    target = os.path.join(folder, path)
    before = None
    if os.path.exists(target):
        with open(target) as f:
            before = f.read()
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "a") as f:
        f.write(text)
    only = [] if name in OF_ALL_FILES else ["--only", path]
    status, out = tool([os.path.join(folder, "tests/lint/run"), *only, name], cwd=folder)
    if before is None:
        os.unlink(target)
    else:
        with open(target, "w") as f:
            f.write(before)
    if out.startswith("SKIP"):
        return "SKIP", ""
    if status and word in out:
        return "FAIL", ""
    return "PASS", f"{name}: does not report a fault planted in {path}:\n{out}"
