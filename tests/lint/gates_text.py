# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Gates for all that is not C: scripts, manual pages, units, licences, text."""
import os
import re
import shutil
import tempfile

from lintlib import ROOT, Failed, Skipped, fail_if, gate, git, need, tool

EXPOSURE_MAX = 25  # of 100: 2.5 in the words of systemd-analyze
LICENCES = {
    "proto/": "(GPL-2.0-only WITH Linux-syscall-note) OR MIT",
    "kmod/": "GPL-2.0-only",
    "tests/model/judges/kmod/": "GPL-2.0-only",
    "tests/kernel/bites/": "GPL-2.0-only",
    "tests/kernel/provider_probe/": "GPL-2.0-only",
    "": "GPL-2.0-only OR MIT",
}
NO_LICENCE_LINE = ("README.md", "COPYING", "LICENSES/", "debian/changelog", "debian/copyright",
                   "debian/source/", "debian/control")
DATA = (".bin", ".svg", ".png", ".json", ".gz", ".patch", ".txt", ".symbols", ".install",
        ".lintian-overrides", ".docs", ".manpages", ".dirs", ".examples", ".links")


@gate("codespell")
def codespell(tree):
    """no common misspelling (--fix corrects the certain ones)"""
    need("codespell")
    status, out = tool(["codespell"] + (["-w"] if tree.fix else []) + ["."])
    fail_if(out.splitlines() if status else [])


@gate("shellcheck")
def shellcheck(tree):
    """shellcheck is content with every shell script"""
    need("shellcheck")
    names = sorted(set(tree.files("*.sh", "*.bash") + tree.scripts("sh", "bash", "dash")))
    if not names:
        raise Skipped("there is no shell script yet")
    def check(name):
        shell = [] if tree.read(name).startswith("#!") else ["-s", "bash"]
        return tool(["shellcheck", "-x", "-f", "gcc"] + shell + [name])
    fail_if([line for status, out in tree.each(check, names) if status
             for line in out.splitlines()])
    return f"{len(names)} scripts"


@gate("python")
def python(tree):
    """every Python file compiles, and pyflakes finds nothing in it"""
    need("pyflakes3")
    names = sorted(set(tree.files("*.py") + tree.scripts("python3")))
    lines = []
    for name in names:
        try:
            compile(tree.read(name), name, "exec")
        except SyntaxError as e:
            lines.append(f"{name}:{e.lineno}: {e.msg}")
        lines += [f"{name}:{nr}: longer than 100 columns"
                  for nr, line in enumerate(tree.read(name).splitlines(), 1) if len(line) > 100]
    lines += [line for line in tool(["pyflakes3"] + names)[1].splitlines()
              if "# noqa" not in source_line(tree, line)]
    fail_if(lines)
    return f"{len(names)} files"


SUBJECT = re.compile(r"[\w./*, -]+: \S")
SUBJECT_MAX = 72
OF_GIT = ("Merge ", 'Revert "', "fixup! ", "squash! ")     # it writes those


def bad_subjects(subjects):
    """Complaints about (commit, subject)."""
    ours = [(commit, subject) for commit, subject in subjects if not subject.startswith(OF_GIT)]
    return [f"{commit}: {len(subject)} characters, at most {SUBJECT_MAX}: {subject}"
            for commit, subject in ours if len(subject) > SUBJECT_MAX] + \
           [f"{commit}: not `area: imperative`: {subject}"
            for commit, subject in ours if not SUBJECT.match(subject)]


@gate("commits")
def commits(tree):
    """subjects of commits, from this gate's own on, are `area: imperative` in 72 characters"""
    if not os.path.exists(os.path.join(ROOT, ".git")) or not shutil.which("git"):
        raise Skipped("there is no repository")
    status, out = git("log", "-S", '@gate("commits")', "--format=%H", "--reverse", "--",
                      "tests/lint/gates_text.py")
    if status:
        raise Skipped(f"git: {out.strip()}")
    first = out.split()[:1]
    status, out = git("log", "--ancestry-path", "--format=%h %s", f"{first[0]}..HEAD") \
        if first else (0, "")       # it is not committed yet
    if status:
        raise Failed(out)
    subjects = [line.split(" ", 1) for line in out.splitlines() if " " in line]
    fail_if(bad_subjects(subjects))
    return f"{len(subjects)} commits"


def source_line(tree, report):
    """The line of the source that a report of the form path:line:... is about."""
    m = re.match(r"([^:]+):(\d+):", report)
    if not m or not os.path.isfile(os.path.join(ROOT, m.group(1))):
        return ""
    lines = tree.read(m.group(1)).splitlines()
    return lines[int(m.group(2)) - 1] if int(m.group(2)) <= len(lines) else ""


@gate("man")
def man(tree):
    """mandoc -Tlint is content with every manual page"""
    need("mandoc")
    names = tree.files("*.[1-8]", "*.[1-8].in")
    if not names:
        raise Skipped("there is no manual page yet")
    lines = []
    for name in names:
        text = re.sub(r"@\w+@", "1", tree.read(name))
        out = tool(["mandoc", "-Tlint", "-Wwarning"], stdin=text)[1]
        for line in out.splitlines():
            # an alias is one .so line, whose target a pipe cannot see
            if text.startswith(".so ") or "referenced manual not found" in line:
                continue
            lines.append(line.replace("<stdin>", name).replace("mandoc: ", "", 1))
    fail_if(lines)
    return f"{len(names)} pages"


def unit_files(tree, folder):
    """Copy the units into a folder as they will be installed; return their paths."""
    paths = []
    for name in tree.files("*.service", "*.socket", "*.service.in", "*.socket.in", "*.target",
                           "*.path", under="systemd/"):
        text = tree.read(name)
        text = re.sub(r"@(KRC|CMAKE)_\w+@", "/usr/bin", text)
        # the programs need not be installed where the gate runs
        text = re.sub(r"^(Exec\w+=[-+!@:]*)\S*(krcore-[\w-]+)", r"\1/bin/true", text, flags=re.M)
        base = os.path.basename(name)
        path = os.path.join(folder, base[:-3] if base.endswith(".in") else base)
        with open(path, "w") as f:
            f.write(text)
        paths.append(path)
    return paths


@gate("units")
def units(tree):
    """systemd-analyze: every unit verifies, every service is sandboxed (2.5 or less)"""
    need("systemd-analyze")
    folder = tempfile.mkdtemp(prefix="units.", dir=tree.work)
    try:
        paths = unit_files(tree, folder)
        if not paths:
            raise Skipped("there is no unit yet")
        env = {"SYSTEMD_UNIT_PATH": folder + ":", "SYSTEMD_LOG_LEVEL": "warning"}
        lines = []
        status, out = tool(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no"]
                           + paths, env=env)
        if status or out.strip():
            lines += [line.replace(folder + "/", "") for line in out.splitlines()]
            if status and not lines:
                lines.append(f"systemd-analyze verify: exit status {status}")
        notes = []
        for path in paths:
            if not path.endswith(".service"):
                continue
            status, out = tool(["systemd-analyze", "security", "--offline=true", "--no-pager",
                                f"--threshold={EXPOSURE_MAX}", path], env=env)
            level = re.search(r"exposure level for \S+: ([\d.]+)", out)
            what = f"{os.path.basename(path)} {level.group(1) if level else '?'}"
            notes.append(what)
            if status:
                lines.append(f"exposure of {what}, at most {EXPOSURE_MAX / 10}")
                lines += [line for line in out.splitlines() if line.startswith("✗")]
        fail_if(lines)
        return ", ".join(notes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@gate("spdx")
def spdx(tree):
    """every file says its licence in its first lines, and the right one"""
    lines = []
    for name in tree.files("*"):
        if name.startswith(NO_LICENCE_LINE) or name.endswith(DATA) \
                or os.path.getsize(os.path.join(ROOT, name)) == 0:
            continue
        head = "\n".join(tree.read(name).splitlines()[:5])
        m = re.search(r"SPDX-License-Identifier: (.*?)\s*(?:\*/|-->|$)", head, re.M)
        want = next(v for k, v in LICENCES.items() if name.startswith(k))
        if not m:
            lines.append(f"{name}: no SPDX-License-Identifier")
        elif m.group(1).rstrip(". ") != want:
            lines.append(f"{name}: licence '{m.group(1)}', this folder has '{want}'")
    fail_if(lines)


TEXT_RULES = [
    (re.compile(r"(?<![\w.])/(home|Users|work|workspace)/\w"), "absolute path of a developer",
     ("tests/lint/",)),
    (re.compile(r"(?<![\d.])(10(\.\d{1,3}){3}|192\.168(\.\d{1,3}){2}"
                r"|172\.(1[6-9]|2\d|3[01])(\.\d{1,3}){2})(?![\d.])"), "private address",
     ("tests/", "docs/", "bench/", "README.md", "client/", "conf/")),
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "work left undone", ("tests/lint/",)),
    (re.compile(r"^(<{7}|>{7}) "), "mark of a merge conflict", ()),
    (re.compile(r"[ \t]+$"), "blank at the end of the line", ("LICENSES/",)),
    (re.compile(r"\r"), "carriage return", ()),
    (re.compile(r"\b[Ii]ssue #?\d+\b"), "number of a ticket that a reader cannot see",
     ("tests/lint/",)),
]


@gate("text")
def text(tree):
    """no developer's paths, stray addresses, leftovers, blanks at line ends"""
    lines = []
    for name in tree.files("*"):
        if name.endswith((".bin", ".png", ".gz")) or "/corpus/" in name:
            continue
        content = tree.read(name)
        for nr, line in enumerate(content.splitlines(), 1):
            for rule, what, allowed in TEXT_RULES:
                if rule.search(line) and not name.startswith(allowed):
                    lines.append(f"{name}:{nr}: {what}: {line.strip()[:80]}")
        if content and not content.endswith("\n") and not name.endswith(".svg"):
            lines.append(f"{name}: no newline at the end")
    fail_if(lines)
