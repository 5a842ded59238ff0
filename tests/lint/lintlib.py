# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What all gates share: the list of files, running a tool, verdicts.

The tree is read from git where there is a repository (tracked files and new
ones that are not ignored), else by walking it, so that a tarball can be checked
as well. Scratch files go to .work/lint, builds to .work/build-COMPILER, which git ignores.
"""
import concurrent.futures
import fnmatch
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GATES = {}
TOOL_TIMEOUT_S = 3600     # with what other parts of a run leave
OUTPUT_LINES_MAX = 200


class Failed(Exception):
    """The gate found something; the text is what to show."""


class Skipped(Exception):
    """The gate has nothing to judge, or no tool to judge it with; the text says which."""


def gate(name):
    """Register a gate. Its docstring's first line is what --list shows."""
    def enter(func):
        GATES[name] = func
        return func
    return enter


def need(*tools):
    """Skip the gate if a program is not installed."""
    for tool in tools:
        if not shutil.which(tool):
            raise Skipped(f"{tool} is not installed, see tests/lint/packages")


def tool(argv, cwd=ROOT, env=None, stdin=None):
    """Run a program; return (exit status, stdout and stderr together)."""
    full_env = dict(os.environ, LC_ALL="C.UTF-8", **(env or {}))
    try:
        done = subprocess.run(argv, cwd=cwd, env=full_env, input=stdin, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              errors="replace", timeout=TOOL_TIMEOUT_S)
    except subprocess.TimeoutExpired as e:
        return 124, f"{argv[0]}: no end after {TOOL_TIMEOUT_S} s\n{e.stdout or ''}"
    return done.returncode, done.stdout


def git(*words):
    """Run git in the tree, whoever owns it; as tool()."""
    return tool(["git", "-c", f"safe.directory={ROOT}", *words])


def build_folder(compiler):
    """Where everything is compiled with it. Two floors down, as the folders in build/ are: ccache
    knows the objects of those by commands in which sources have the way up before them."""
    return os.path.join(ROOT, ".work", "build-" + compiler)


def fail_if(lines):
    """Fail with these lines, if there are any."""
    lines = [line for line in lines if line]
    if not lines:
        return
    text = lines[:OUTPUT_LINES_MAX]
    if len(lines) > OUTPUT_LINES_MAX:
        text.append(f"... and {len(lines) - OUTPUT_LINES_MAX} lines more")
    raise Failed("\n".join(text))


class Tree:
    """The files under judgement, and where to build."""

    def __init__(self, jobs, fix=False, only=()):
        self.jobs = jobs
        self.fix = fix
        self.partly = []        # how much was judged, by gates that have judged a share
        self.only = tuple(os.path.relpath(os.path.abspath(p), ROOT) for p in only)
        self.work = os.path.join(ROOT, ".work", "lint")
        os.makedirs(self.work, exist_ok=True)
        self._all = sorted(f for f in self._git_files() or self._walk_files()
                           if not self.only or f in self.only
                           or f.startswith(tuple(p + "/" for p in self.only)))

    @staticmethod
    def _git_files():
        if not os.path.exists(os.path.join(ROOT, ".git")) or not shutil.which("git"):
            return None
        status, out = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        if status:
            return None
        names = (name for name in out.split("\0") if name)
        return [name for name in names if os.path.isfile(os.path.join(ROOT, name))]

    @staticmethod
    def _walk_files():
        found = []
        for folder, dirs, files in os.walk(ROOT):
            dirs[:] = [d for d in dirs if d not in (".git", ".work", "__pycache__")
                       and not d.startswith("build")]
            found += [os.path.relpath(os.path.join(folder, f), ROOT) for f in files]
        return found

    def files(self, *patterns, under=""):
        """Paths, relative to the root, whose name matches a pattern."""
        return [f for f in self._all if f.startswith(under)
                and any(fnmatch.fnmatch(os.path.basename(f), p) for p in patterns)]

    def c_files(self):
        """All C sources and headers."""
        return self.files("*.c", "*.h")

    def scripts(self, *interpreters):
        """Files whose first line names one of the interpreters."""
        found = []
        for name in self._all:
            with open(os.path.join(ROOT, name), "rb") as f:
                first = f.readline(200).decode("utf-8", "replace")
            if first.startswith("#!") and any(f"/{i}" in first or f" {i}" in first
                                              for i in interpreters):
                found.append(name)
        return found

    @staticmethod
    def read(name):
        """Text of a file; undecodable bytes are replaced."""
        with open(os.path.join(ROOT, name), encoding="utf-8", errors="replace") as f:
            return f.read()

    def each(self, func, items):
        """Call func on each item, several at once; return what they returned, in order."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(func, items))
