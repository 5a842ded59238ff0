# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Gates that read C: format, checkpatch, kernel-doc, size budget, symbols.

checkpatch.pl and its word lists come out of Debian's linux-source package, and
kernel-doc out of linux-kbuild, so that their versions are those of the kernel
the modules are built for. KRC_CHECKPATCH and KRC_KERNEL_DOC name others.
"""
import glob
import os
import re
import sys
import tarfile

from lintlib import ROOT, Failed, Skipped, build_folder, fail_if, gate, need, tool
from passed import Passed, in_turn

sys.path.append(os.path.join(ROOT, "tests"))

from cluster import host  # noqa: E402

FILE_LINES_MAX = 1000
FUNCTION_LINES_MAX = 60
CHECKS_PER_KLOC_MAX = 10

# What the kernel demands and a user program, or a header both include, cannot follow.
USER_IGNORES = [
    "PREFER_KERNEL_TYPES", "USE_NEGATIVE_ERRNO", "EXECUTE_PERMISSIONS",
    "PREFER_DEFINED_ATTRIBUTE_MACRO",  # __packed and __aligned() are the kernel's
    "SYMBOLIC_PERMS",  # S_IRWXO is how POSIX spells it
    "BIT_MACRO",  # so is BIT()
    "ENOSYS", "SSCANF_TO_KSTRTO", "CONSIDER_KSTRTO",
    "NEW_TYPEDEFS",  # types of callbacks
    "VOLATILE", "YIELD", "MEMORY_BARRIER", "DATA_RACE",
    "PREFER_FALLTHROUGH", "STRLCPY", "STRNCPY",
    "ARRAY_SIZE",  # a macro of the kernel's
    "SPLIT_STRING", "MISSING_SPACE",  # usage texts; nobody greps the log for them
    "QUOTED_WHITESPACE_BEFORE_NEWLINE",
    "EMBEDDED_FUNCTION_NAME", "EMBEDDED_FILENAME",  # takes a verb in a message for one
    "TRAILING_SEMICOLON", "COMPLEX_MACRO",  # macros that expand the lines of a .def file
    "LINE_SPACING",  # takes members of types it does not know for statements
    "SPDX_LICENSE_TAG",  # has a gate of its own, which knows a string from a comment
]
TEST_IGNORES = [
    "STATIC_CONST_CHAR_ARRAY",
    "LINUX_VERSION_CODE", "CONSTANT_COMPARISON",  # test modules for several kernels
]
KUNIT_IGNORES = ["SPLIT_STRING"]  # tables of bytes, which the log never shows


# Of one version, whatever else is installed: each knows more warnings than the one before.
CHECKPATCH_SOURCE = "/usr/src/linux-source-6.1.tar.xz"
CHECKPATCH_LISTS = ["spelling.txt", "const_structs.checkpatch"]
LOGS = re.compile(r"\b(pr_(?:err|warn|notice|info|debug)\w*|ibdev_\w+|printk\w*)\(")
# what is no port's: a device that has none yet, objects of a device, limits of a node
LOGS_OF_NO_PORT = ("kmod/base/log.h", "kmod/base/limits.c", "kmod/node/device.c",
                   "kmod/hw/mlx5/cmd.c", "kmod/tests/", "kmod/samples/")


@gate("logs")
def logs(tree):
    """log lines of the module name device and port: krc_port_*() of base/log.h"""
    lines = []
    for name in tree.files("*.c", "*.h", under="kmod/"):
        if not name.startswith(LOGS_OF_NO_PORT):
            lines += [f"{name}:{nr}: {found[1]}() names no port: krc_port_*() of base/log.h"
                      for nr, line in enumerate(tree.read(name).splitlines(), 1)
                      if (found := LOGS.search(line)) and not line.lstrip().startswith("*")]
    fail_if(lines)


@gate("format")
def clang_format(tree):
    """every C file is as clang-format leaves it (--fix does it)"""
    need("clang-format", "diff")
    names = tree.c_files()
    if not names:
        raise Skipped("there is no C yet")
    if tree.fix:
        tool(["clang-format", "-i"] + names)

    def check(name):
        out = tool(["clang-format", name])[1]
        return tool(["diff", "-u", "--label", name, "--label", name + " as clang-format has it",
                     name, "-"], stdin=out)[1].splitlines()

    fail_if([line for lines in tree.each(check, names) for line in lines])
    return f"{len(names)} files"


def find_checkpatch():
    """Path of checkpatch.pl, taken out of linux-source if need be."""
    if os.environ.get("KRC_CHECKPATCH"):
        return os.environ["KRC_CHECKPATCH"]
    archive = CHECKPATCH_SOURCE
    if not os.path.exists(archive):
        raise Skipped("no checkpatch.pl (linux-source-6.1, or name one in KRC_CHECKPATCH)")
    size = os.path.getsize(archive)
    folder = host.CACHE / "lint" / f"scripts-{host.digest(os.path.basename(archive), size)}"
    with host.locked(host.CACHE / "locks" / "lint-scripts"):
        if not folder.exists():
            with host.made_whole(folder) as part:
                _take_scripts(archive, part)
    return str(folder / "checkpatch.pl")


def _take_scripts(archive, folder):
    """What is wanted of the scripts of an archive of the kernel's source, into a folder."""
    wanted = {"checkpatch.pl", *CHECKPATCH_LISTS}
    with tarfile.open(archive, "r|xz") as tar:
        for member in tar:
            base = os.path.basename(member.name)
            if member.isfile() and base in wanted and member.name.count("/") == 2:
                (folder / base).write_bytes(tar.extractfile(member).read())
                wanted.discard(base)
            if not wanted:
                break
    if "checkpatch.pl" in wanted:
        raise Failed(f"{archive} has no scripts/checkpatch.pl")


@gate("checkpatch")
def checkpatch(tree):
    """checkpatch.pl --strict: no ERROR, no WARNING, few CHECKs"""
    need("perl")
    script = find_checkpatch()
    names = tree.c_files()
    if not names:
        raise Skipped("there is no C yet")

    words = [os.path.join(os.path.dirname(script), name) for name in CHECKPATCH_LISTS]
    passed = Passed("checkpatch", *map(tree.read, [script, *filter(os.path.exists, words)]))

    def hard_line(line):
        return ": CHECK:" not in line

    def check(name):
        ignored = [] if name.startswith("kmod/") else USER_IGNORES
        ignored = ignored + (KUNIT_IGNORES if name.startswith("kmod/tests/") else [])
        ignored = ignored + (TEST_IGNORES if name.startswith("tests/") else [])
        ignores = ["--ignore", ",".join(ignored)] if ignored else []

        def run():
            out = tool(["perl", script, "--terse", "--no-summary"] + ignores + ["-f", name])[1]
            return [line for line in out.splitlines()
                    if re.search(r": (ERROR|WARNING|CHECK):", line)]

        return passed.judge_alone(name, tree.read(name), ignores, run, hard_line)

    judged = [name for name, in in_turn(tree, [(name,) for name in names])]
    found = [line for lines in tree.each(check, judged) for line in lines]
    hard = [line for line in found if hard_line(line)]
    soft = [line for line in found if not hard_line(line)]
    kloc = sum(tree.read(n).count("\n") for n in judged) / 1000
    if len(soft) > max(CHECKS_PER_KLOC_MAX * kloc, 10):
        hard += soft + [f"{len(soft)} CHECKs in {kloc:.1f} kLOC, "
                        f"more than {CHECKS_PER_KLOC_MAX} a kLOC"]
    fail_if(hard)
    return passed.note(judged, names) + f", {len(soft) / max(kloc, 0.001):.1f} CHECKs per kLOC"


def find_kernel_doc():
    """Path of the kernel's kernel-doc."""
    found = [os.environ["KRC_KERNEL_DOC"]] if os.environ.get("KRC_KERNEL_DOC") else []
    found += sorted(glob.glob("/usr/lib/linux-kbuild-*/scripts/kernel-doc"), reverse=True)
    if not found:
        raise Skipped("no kernel-doc (linux-kbuild-6.1, or name one in KRC_KERNEL_DOC)")
    return found[0]


@gate("kernel-doc")
def kernel_doc(tree):
    """every documented function, message and structure is documented in full"""
    need("perl")
    script = find_kernel_doc()
    names = tree.files("*.h") + tree.files("*.c", under="kmod/")
    if not names:
        raise Skipped("there is no header yet")
    # up to 6.1 it is -v that warns of a missing Return:, later -Wall
    wall = "-Wall" if "-Wall" in tool(["perl", script, "-h"])[1] else "-v"

    def check(name):
        out = tool(["perl", script, "-none", wall, name])[1]
        # a function without parameters, described before its Return:, is no fault
        return [line for line in out.splitlines() if re.search(r"\b(warning|error):", line, re.I)
                and not line.endswith("contents before sections")]

    fail_if([line for lines in tree.each(check, names) for line in lines])
    return f"{len(names)} files"


DOC_NAME = re.compile(r"/\*\*\s*(?:\*\s*)?(?:struct |enum |union |typedef )?(\w+)(?:\(\))? -")
PROTOTYPE = re.compile(r"^(?:__\w+(?:\([^()]*\))?\s+)*(?:[\w ]+[ *]+)\**"
                       r"((?:kr|krp|kru|krcore|kh|kt|ms|cx|krc|krl|mc|bn|ex|st)_\w+)"
                       r"\([^;{]*\)[^;{]*;", re.M)
INLINE = re.compile(r"^static (?:inline|__always_inline) [\w ]+[ *]+(\w+)\(", re.M)


@gate("documented")
def documented(tree):
    """every function and structure of a header, internal ones too, has a kernel-doc comment"""
    names = tree.files("*.h")
    if not names:
        raise Skipped("there is no header yet")
    lines = []
    for name in names:
        text = tree.read(name)
        known = set(DOC_NAME.findall(text))
        declared = set(re.findall(r"^(?:struct|enum|union) (\w+) \{", text, re.M))
        flat = re.sub(r"/\*.*?\*/|^#.*?[^\\]$", "", text, flags=re.S | re.M)
        declared |= set(PROTOTYPE.findall(flat)) | set(INLINE.findall(flat))
        lines += [f"{name}: {what} has no kernel-doc comment" for what in sorted(declared - known)]
    fail_if(lines)
    return f"{len(names)} headers"


FUNCTION = re.compile(r"^(?:[\w ]+[ *]+)?\**(\w+)\([^;{}]*\)[^;{}]*\n\{\n.*?^\}$", re.M | re.S)


def long_functions(name, text):
    """Functions of C of which no screen shows the whole, from the line with their name on."""
    for found in FUNCTION.finditer(text):
        lines = found.group().count("\n") + 1
        if lines > FUNCTION_LINES_MAX:
            line = text.count("\n", 0, found.start()) + 1
            yield f"{name}:{line}: {found.group(1)}() has {lines} lines, " \
                  f"at most {FUNCTION_LINES_MAX}"


@gate("budget")
def budget(tree):
    """no source file is longer than 1000 lines, and no function of C than 60"""
    names = tree.files("*.c", "*.h", "*.py", "*.sh", "*.cmake", "CMakeLists.txt") \
        + tree.scripts("sh", "bash", "python3")
    lines = [f"{n}: {tree.read(n).count(chr(10))} lines, at most {FILE_LINES_MAX}"
             for n in sorted(set(names)) if tree.read(n).count("\n") > FILE_LINES_MAX]
    for name in tree.c_files():
        lines += long_functions(name, tree.read(name))
    fail_if(lines)
    return f"{len(set(names))} files"


def map_symbols(text):
    """Names that a linker's version script exports."""
    text = re.sub(r"/\*.*?\*/|#.*", "", text, flags=re.S)
    names = set()
    for block in re.findall(r"global:(.*?)(?:local:|\})", text, re.S):
        names |= {n for n in re.findall(r"(\w+)\s*;", block)}
    return names


def header_functions(tree):
    """Functions that the public headers declare."""
    names = set()
    for header in tree.files("*.h", under="client/include/") \
            + tree.files("*.h", under="race/include/"):
        text = re.sub(r"/\*.*?\*/", "", tree.read(header), flags=re.S)
        names |= set(re.findall(r"^[\w ]+[ *]+\**(krcore_\w+)\([^;{]*\);", text, re.M))
        names -= set(re.findall(r"^typedef [\w ]+[ *]+(krcore_\w+)\(", text, re.M))
    return names


@gate("symbols")
def symbols(tree):
    """the libraries export what their headers declare, and nothing else"""
    maps = tree.files("*.map", under="client/") + tree.files("*.map", under="race/")
    declared = header_functions(tree)
    if not maps or not declared:
        raise Skipped("libkrcore has no symbol map yet")
    listed = set().union(*(map_symbols(tree.read(name)) for name in maps))
    private = {n for n in listed if n.startswith("krl_")}  # between the two libraries
    exported = listed - private
    lines = [f"{n}: declared in a public header, in none of {maps}"
             for n in sorted(declared - exported)]
    lines += [f"{n}: in one of {maps}, not declared in a public header"
              for n in sorted(exported - declared)]
    real = set()
    for library in ("client/libkrcore.so", "client/libkrcore-queue.so", "race/libkrcore-race.so"):
        for path in glob.glob(os.path.join(build_folder("gcc"), library)):
            out = tool(["nm", "-D", "--defined-only", "--format=posix", path])[1]
            real |= {m.split("@")[0] for m in re.findall(r"^(\S+) [TDBRVW] ", out, re.M)}
    real = {n for n in real if n.startswith("krcore_")} | (real - exported - private)
    if real:
        lines += [f"{n}: not in a built library" for n in sorted(exported - real)]
        lines += [f"{n}: in a built library, not in a map" for n in sorted(real - exported)]
    fail_if(lines)
    return f"{len(exported)} symbols"


@gate("man-cover")
def man_cover(tree):
    """every exported function and every program has a manual page"""
    pages = {os.path.basename(n).split(".")[0]: n
             for n in tree.files("*.[1-8]", "*.[1-8].in", "*.[1-8].md", "*.[1-8].rst")}
    if not pages:
        raise Skipped("there is no manual page yet")
    text = "\n".join(tree.read(n) for n in set(pages.values()))
    named = set(pages) | set(re.findall(r"^\.so man3/(\w+)\.3", text, re.M))
    for name in pages.values():  # a page may document several functions: its NAME lists them
        head = re.search(r"(?:\.SH NAME|^# NAME|\.Sh NAME)\s*\n(.*?)(?=^\.SH|^# |^\.Sh)",
                         tree.read(name), re.S | re.M)
        named |= set(re.findall(r"krcore_\w+", head.group(1))) if head else set()
    wanted = header_functions(tree)
    missing = [f"{n}(): no manual page" for n in sorted(wanted - named)]
    for program, folder in (("krcore-metaserver", "metaserver/"), ("krcore-metactl", "client/"),
                            ("krcore-race", "race/"), ("krcore-handoff", "handoff/")):
        if tree.files("main.c", "metactl.c", under=folder) and program not in pages:
            missing.append(f"{program}: no manual page")
    cmake = "\n".join(tree.read(n) for n in tree.files("CMakeLists.txt"))
    if "install(" not in cmake:
        missing.append("nothing is installed by CMake")
    fail_if(missing)
    return f"{len(wanted)} functions, {len(pages)} pages"
