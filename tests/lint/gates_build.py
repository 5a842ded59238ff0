# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Gates that compile: both compilers, each header alone, the kernel, analysers."""
import glob
import json
import os
import re
import shutil

from lintlib import ROOT, Skipped, build_folder, fail_if, gate, need, tool
from passed import Passed, in_turn

PROTO_FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}"]


def configure(compiler):
    """Prepare a build with one compiler, warnings as errors; return the folder."""
    need(compiler, "cmake", "ninja")
    folder = build_folder(compiler)
    cache = os.path.join(folder, "CMakeCache.txt")
    if os.path.exists(cache):
        with open(cache) as f:
            if f"CMAKE_HOME_DIRECTORY:INTERNAL={ROOT}\n" not in f.read():
                shutil.rmtree(folder)  # the tree was moved
    status, out = tool(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DKRC_WERROR=ON",
                        f"-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"])
    fail_if(out.splitlines()[-120:] if status else [])
    return folder


def build(tree, compiler):
    """Build everything, or what --only names, with one compiler."""
    folder = configure(compiler)
    targets = [os.path.join(ROOT, name) + "^" for name in tree.files("*.c")] if tree.only else []
    status, out = tool(["ninja", "-C", folder, f"-j{tree.jobs}", "-k0"] + targets)
    fail_if([line for line in out.splitlines() if not re.match(r"\[\d+/\d+\] ", line)]
            if status else [])


def compile_commands(tree):
    """(path, compiler arguments) of every C file of ours that the gcc build compiles."""
    path = os.path.join(configure("gcc"), "compile_commands.json")
    with open(path) as f:
        entries = json.load(f)
    seen = {}
    for entry in entries:
        name = os.path.relpath(entry["file"], ROOT)
        if name in seen or name not in tree.files("*.c"):
            continue
        args = entry["command"].split()
        seen[name] = [a.replace('\\"', '"') for a in args
                      if re.match(r"-(D|I|isystem|std|W)", a) or a.startswith("/usr/include")]
    return sorted(seen.items())


@gate("build-gcc")
def build_gcc(tree):
    """everything compiles with gcc without a warning"""
    build(tree, "gcc")


@gate("build-clang")
def build_clang(tree):
    """everything compiles with clang without a warning"""
    build(tree, "clang")


@gate("presets")
def presets(tree):
    """cmake reads CMakePresets.json; its options and labels are there"""
    need("cmake")
    lines = []
    for kind in ("configure", "build", "test"):
        status, out = tool(["cmake", "-S", ROOT, f"--list-presets={kind}"])
        lines += out.splitlines() if status else []
    fail_if(lines)
    told = json.loads(tree.read("CMakePresets.json"))
    options = re.findall(r"^(?:option|set)\((KRC_\w+)", tree.read("CMakeLists.txt"), re.MULTILINE)
    lines = [f"CMakePresets.json: {preset['name']}: CMakeLists.txt has no {option}"
             for preset in told["configurePresets"] for option in preset.get("cacheVariables", {})
             if option.startswith("KRC_") and option not in options]
    labels = [preset["filter"]["include"]["label"].strip("^$")
              for preset in told["testPresets"] if "filter" in preset]
    parts = "".join(tree.read(name) for name in glob.glob("tests/parts/[0-9]*", root_dir=ROOT))
    lines += [f"CMakePresets.json: no part tests the label {label}" for label in labels
              if not re.search(rf'/ctest-label" (?:\w+,)*{label}\b', parts)]
    fail_if(lines)
    return f"{len(labels)} of tests"


def public_headers(tree):
    """Headers that are installed."""
    return tree.files("*.h", under="client/include/") + tree.files("*.h", under="race/include/")


def compile_text(argv, text):
    """Syntax-check a piece of C; return the compiler's words if it fails."""
    status, out = tool(argv + ["-fsyntax-only", "-"], stdin=text)
    return out.splitlines() or [f"{' '.join(argv)}: exit status {status}"] if status else []


@gate("headers")
def headers(tree):
    """each header compiles alone; the public and shared ones as C++ too"""
    need("gcc", "g++")
    shared = tree.files("*.h", under="proto/")
    public = public_headers(tree)
    own = [h for h in tree.files("*.h") if h.split("/")[0] in ("common", "metaserver", "client",
                                                                  "race")]
    if not shared + public + own:
        raise Skipped("there is no header yet")
    jobs = []
    for name in sorted(set(shared + public + own)):
        # twice: the include guard must hold
        text = f'#include "{name}"\n#include "{name}"\nextern int krc_header_gate;\n'
        base = ["gcc", "-x", "c", "-D_GNU_SOURCE"] + PROTO_FLAGS
        jobs.append((base + ["-Iclient/include", "-Irace/include"], text))
        if name in public:  # installed: must not reach into the tree
            include = name.split("/include/")[1]
            text = f"#include <{include}>\n"
            jobs.append((["gcc", "-x", "c", "-std=c11", "-pedantic-errors", "-Wall", "-Wextra",
                          "-Werror", "-Iclient/include", "-Irace/include"], text))
            jobs.append((["g++", "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror",
                          "-Iclient/include", "-Irace/include"], text))
        if name in shared:
            jobs.append((["g++", "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror",
                          f"-I{ROOT}"], text))
    found = tree.each(lambda job: compile_text(*job), jobs)
    fail_if([line for lines in found for line in lines])
    return f"{len(jobs)} compilations"


def wire_structs(tree, names):
    """Structures of proto/ made of wire types alone: no pointer, no host-order number."""
    found = []
    for name in names:
        for m in re.finditer(r"^struct (krp_\w+) \{\n(.*?)^\}", tree.read(name), re.M | re.S):
            if not re.search(r"\*|__u(16|32|64)\b", m.group(2)):
                found.append(m.group(1))
    return found


@gate("abi32")
def abi32(tree):
    """the structures of proto/ have the same size for 32-bit programs"""
    need("gcc", "nm")
    if not glob.glob("/usr/include/**/stubs-32.h", recursive=True):
        raise Skipped("no 32-bit C library headers (libc6-dev-i386)")
    names = tree.files("*.h", under="proto/")
    structs = wire_structs(tree, names)
    if not structs:
        raise Skipped("there is no proto/ yet")
    text = "".join(f'#include "{n}"\n' for n in names)
    text += "".join(f"char krc_{s}[sizeof(struct {s})];\n" for s in structs)
    sizes = {}
    for mode in ("-m64", "-m32"):
        obj = os.path.join(tree.work, f"abi{mode}.o")
        status, out = tool(["gcc", mode, "-x", "c", "-D_GNU_SOURCE", "-c", "-o", obj, "-idirafter",
                            "/usr/include/x86_64-linux-gnu"] + PROTO_FLAGS + ["-"], stdin=text)
        fail_if(out.splitlines() if status else [])
        nm = tool(["nm", "-S", obj])[1]
        sizes[mode] = {m[1]: int(m[0], 16)
                       for m in re.findall(r"^\w+ (\w+) [BC] krc_(\w+)$", nm, re.M)}
    fail_if([f"struct {s}: {sizes['-m64'].get(s)} bytes with -m64, {sizes['-m32'].get(s)} with -m32"
             for s in structs if not sizes["-m64"].get(s)
             or sizes["-m64"][s] != sizes["-m32"].get(s)])
    return f"{len(structs)} structures"


def kernel_build_dirs():
    """Installed kernel build trees, the newest last."""
    candidates = glob.glob("/lib/modules/*/build") + glob.glob("/usr/src/linux-headers-*")
    return sorted(d for d in candidates if os.path.exists(os.path.join(d, "Module.symvers"))
                  and os.path.exists(os.path.join(d, "include/generated/autoconf.h")))


KBUILD_SOURCE = """// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
%s
int krc_gate_verdict(const void *b, u64 incarnation, const struct krp_key *key);
int krc_gate_verdict(const void *b, u64 incarnation, const struct krp_key *key)
{
	struct krp_value value;

	return krp_bucket_verdict(b, incarnation, 0, 0, krp_key_hash(key, incarnation), key,
				  &value);
}
MODULE_LICENSE("GPL");
"""


@gate("kernel")
def kernel(tree):
    """proto/ compiles inside the kernel with W=1 and without a word from sparse"""
    need("gcc", "make", "sparse")
    dirs = {os.path.realpath(d): d for d in kernel_build_dirs()}
    names = tree.files("*.h", under="proto/")
    if not dirs:
        raise Skipped("no kernel headers (linux-headers-amd64)")
    if not names:
        raise Skipped("there is no proto/ yet")
    lines = []
    for real in sorted(dirs):
        folder = os.path.join(tree.work, "kernel-" + os.path.basename(real))
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        with open(os.path.join(folder, "krc_gate.c"), "w") as f:
            f.write(KBUILD_SOURCE % "\n".join(f'#include "{n}"' for n in names))
        with open(os.path.join(folder, "Kbuild"), "w") as f:
            f.write(f"obj-m := krc_gate.o\nccflags-y := -I{ROOT} -Werror\n")
        status, out = tool(["make", "-s", "-C", real, f"M={folder}", "W=1", "C=2",
                            "krc_gate.o"])
        ours = [line for line in out.splitlines() if "proto/" in line or "krc_gate" in line]
        if status or ours:
            lines += [f"against {real}:"] + (ours if ours and not status else out.splitlines())
    fail_if(lines)
    return ", ".join(os.path.basename(d) for d in sorted(dirs))


def is_ours(path):
    """Whether a path that a tool printed lies in this tree."""
    path = os.path.realpath(os.path.join(ROOT, path))
    return path.startswith(ROOT + os.sep) and not path.startswith(ROOT + "/.work")


def own_reports(out):
    """Those reports of a tool that are about a file of ours, with the lines that follow them."""
    lines, keep = [], False
    for line in out.splitlines():
        m = re.match(r"([^\s:]+):\d+:\d+: (error|warning|fatal)", line)
        if m:
            keep = is_ours(m.group(1))
        if keep:
            lines.append(line)
    return lines


@gate("sparse")
def sparse(tree):
    """sparse finds no mixed byte orders or other faults in user space"""
    need("sparse", "gcc")
    version = tool(["gcc", "-dumpversion"])[1].strip()
    gcc_include = f"/usr/lib/gcc/x86_64-linux-gnu/{version}/include"

    def check(item):
        name, args = item
        # glibc's fortified inlines are beyond sparse, and no business of ours
        args = [a for a in args if not a.startswith(("-W", "-D_FORTIFY_SOURCE"))]
        out = tool(["sparse", "-Wbitwise", "-Wcast-to-as", "-Wdefault-bitfield-sign",
                    "-Wone-bit-signed-bitfield", "-Wtypesign",
                    "-Wno-vla", "-Wno-unknown-attribute", "-Wno-transparent-union",
                    "-D__CHECK_ENDIAN__", f"-I{gcc_include}", name] + args)[1]
        return own_reports(out)

    items = compile_commands(tree)
    if not items:
        raise Skipped("nothing is compiled yet")
    fail_if([line for lines in tree.each(check, items) for line in lines])
    return f"{len(items)} files"


def _version(program):
    return tool([program, "--version"])[1]


@gate("tidy")
def tidy(tree):
    """clang-tidy (.clang-tidy: bugprone, cert, clang-analyzer) has nothing to say"""
    need("clang-tidy", "clang")
    items = compile_commands(tree)
    if not items:
        raise Skipped("nothing is compiled yet")
    passed = Passed("tidy", _version("clang-tidy"), *map(tree.read, tree.files(".clang-tidy")))

    def check(item):
        name, args = item
        args = [a for a in args if not a.startswith("-W")]

        def run():
            status, out = tool(["clang-tidy", "--quiet", name, "--"] + args)
            if status and "clang-diagnostic-error" in out:
                return out.splitlines()
            # a path that begins here and ends in a system header is judged by its end
            return own_reports(out) or ([f"{name}: clang-tidy: no end"] if status == 124 else [])

        return passed.judge("clang", name, args, run)

    judged = in_turn(tree, items)
    fail_if([line for lines in tree.each(check, judged) for line in lines])
    return passed.note(judged, items)


@gate("analyzer")
def analyzer(tree):
    """gcc -fanalyzer finds no leak, double free or use after free"""
    need("gcc")
    items = [i for i in compile_commands(tree) if not i[0].startswith("tests/")]
    if not items:
        raise Skipped("nothing is compiled yet")
    passed = Passed("analyzer", _version("gcc"))

    def check(item):
        name, args = item
        # unoptimised: else pairs of malloc() and free() are taken away before they are seen
        args = [a for a in args if not a.startswith("-D_FORTIFY_SOURCE")]

        def run():
            status, out = tool(["gcc", "-fanalyzer", "-O0", "-c", "-o", "/dev/null", name] + args)
            said = re.search(r"\[-W(error=)?analyzer", out)
            return out.splitlines() if said or status else []

        return passed.judge("gcc", name, args, run)

    judged = in_turn(tree, items)
    fail_if([line for lines in tree.each(check, judged) for line in lines])
    return passed.note(judged, items)
