#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What is installed can be used: programs are linked with both libraries in every way that
krcore(7) names, and started.

usage: client_install.py BUILD_DIR COMPILER

A program gets the krcore_open() of the library that it was linked with, which its answer to
KRCORE_OPEN_DIRECT tells; what libkrcore-queue is linked with needs the C library alone, on
which all of it rests.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = """
#include <errno.h>
#include <stdio.h>
#include <krcore/queue.h>

int main(void)
{
	struct krcore_options opts = {
		.size = sizeof(opts), .flags = KRCORE_OPEN_DIRECT, .config_file = "/nowhere",
	};
	const struct krcore_node_options none = { .size = sizeof(none), .device = "/nowhere" };
	struct krcore_node *node;
	struct krcore_ctx *ctx;
	struct krcore_key key;
	int err = krcore_open(&opts, &ctx);

	if (krcore_node_open(&none, &node) != -ENOENT ||
	    krcore_key_from_address("192.0.2.1", 0, &key) || key.gid[15] != 1)
		return 2;
	puts(err == -ENOENT ? "all" : err == -EOPNOTSUPP ? "queue" : krcore_error_text());
	return 0;
}
"""
# a function of the library that the program calls nothing else of
WALK = """
#include <krcore/krcore.h>
int main(int argc, char **argv)
{
	(void)argv;
	return argc > 9 ? krcore_walk(0, 0, 0, 0, 0) : 0;
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(installed C)
find_package(krcore REQUIRED)
foreach(name krcore queue queue_static)
	add_executable(${name} all.c)
	target_link_libraries(${name} PRIVATE krcore::${name})
endforeach()
"""
OTHERS = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "linux-vdso.so.1"}


class Wrong(Exception):
    """Something that is not as it must be."""


def run(*command, **env):
    """Output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, **env}, check=False)
    if done.returncode:
        raise Wrong(f"{' '.join(map(str, command))}: status {done.returncode}\n"
                    f"{done.stdout}{done.stderr}")
    return done.stdout


def needed(path):
    """Libraries that a program or library names itself."""
    return set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", path)))


class Installed:
    """The files, below a folder of their own."""

    def __init__(self, build, compiler, folder):
        self.compiler, self.folder = compiler, folder
        run("cmake", "--install", build, DESTDIR=str(folder))
        self.lib = next(folder.rglob("libkrcore-queue.a")).parent
        self.headers = next(folder.rglob("krcore/queue.h")).parent.parent
        self.all = self._write("all.c", PROGRAM)
        self.walk = self._write("walk.c", WALK)

    def _write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def link(self, name, source, *options):
        """Compile a program; the last options are libraries."""
        run(self.compiler, "-I", self.headers, source, "-o", self.folder / name, "-L", self.lib,
            *options)
        return self.folder / name

    def package(self, name, *options):
        """What pkg-config says, as a program of this folder would be told."""
        return run("pkg-config", "--libs", *options, name,
                   PKG_CONFIG_PATH=f"{self.lib}/pkgconfig").split()

    def expect(self, name, program, says, libraries):
        """Start a program."""
        got = run(program, LD_LIBRARY_PATH=str(self.lib), LD_BIND_NOW="1").strip()
        links = {lib for lib in needed(program) if "krcore" in lib}
        if got != says or links != libraries:
            raise Wrong(f"{name}: says '{got}', not '{says}'; needs {links}, not {libraries}")
        print(f"ok {name}")


def check(here):
    """All ways."""
    both, queue = {"libkrcore.so.1", "libkrcore-queue.so.1"}, {"libkrcore-queue.so.1"}
    more = needed(here.lib / "libkrcore-queue.so.1") - OTHERS
    if more:
        raise Wrong(f"libkrcore-queue needs more than the C library: {more}")
    if "libkrcore-queue.so.1" not in needed(here.lib / "libkrcore.so.1"):
        raise Wrong("libkrcore does not need libkrcore-queue")
    here.expect("-lkrcore", here.link("a1", here.all, "-lkrcore"), "all", both)
    here.expect("--as-needed -lkrcore",
                here.link("a2", here.all, "-Wl,--as-needed", "-lkrcore"), "all", both)
    here.expect("pkg-config krcore", here.link("a3", here.all, *here.package("krcore")), "all",
                both)
    here.expect("pkg-config libkrcore", here.link("a4", here.all, *here.package("libkrcore")),
                "all", both)
    here.expect("pkg-config krcore-queue",
                here.link("a5", here.all, *here.package("krcore-queue")), "queue", queue)
    here.expect("pkg-config --static krcore-queue",
                here.link("a6", here.all, "-static",
                          *here.package("krcore-queue", "--static")), "queue", set())
    here.expect("what libkrcore alone has", here.link("a7", here.walk, "-lkrcore"), "",
                {"libkrcore.so.1"})
    (here.folder / "CMakeLists.txt").write_text(CMAKE)
    run("cmake", "-S", here.folder, "-B", here.folder / "build",
        f"-DCMAKE_C_COMPILER={here.compiler}",
        f"-DCMAKE_PREFIX_PATH={here.lib.parent}", f"-Dkrcore_DIR={here.lib}/cmake/krcore")
    run("cmake", "--build", here.folder / "build")
    for name, says, libraries in (("krcore", "all", both), ("queue", "queue", queue),
                                  ("queue_static", "queue", set())):
        here.expect(f"cmake krcore::{name}", here.folder / "build" / name, says, libraries)


def main():
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(Installed(sys.argv[1], sys.argv[2], pathlib.Path(folder)))
        except Wrong as wrong:
            print(wrong, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
