#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The corpora of the fuzz targets: a text file each, with an input a line, in hexadecimal.

    corpus.py unpack FILE FOLDER    write each input to a file of its own, as libFuzzer wants it
    corpus.py merge FILE FOLDER     add the files of a folder, such as `-merge=1` has left

A line is `name: digits` for a seed that seeds.py writes, else the digits alone.
"""
import hashlib
import pathlib
import sys

HEAD = "# SPDX-License-Identifier: GPL-2.0-only OR MIT\n"


def read(path):
    """{name: bytes} of the inputs of a file; those without a name are named by their hash."""
    inputs = {}
    for number, line in enumerate(path.read_text(encoding="ascii").splitlines(), 1):
        if line.startswith("#"):
            continue
        name, _, digits = line.rpartition(": ")
        try:
            data = bytes.fromhex(digits)
        except ValueError as error:
            raise SystemExit(f"{path}:{number}: {error}") from None
        inputs[name or hashlib.sha1(data).hexdigest()] = data
    return inputs


def write(path, inputs):
    """Write {name: bytes}: seeds first, each input once."""
    named = {data: name for name, data in sorted(inputs.items(), reverse=True)}
    lines = [data.hex() if name == hashlib.sha1(data).hexdigest() else f"{name}: {data.hex()}"
             for data, name in named.items()]
    path.write_text(HEAD + "".join(f"{line}\n" for line in
                                   sorted(lines, key=lambda line: (": " not in line, line))),
                    encoding="ascii")


def unpack(path, folder):
    """Files of a folder are the inputs of @path, and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, data in read(path).items():
        (folder / name).write_bytes(data)


def merge(path, folder):
    """Add the files of a folder to @path."""
    inputs = read(path) if path.exists() else {}
    known = set(inputs.values())
    for new in folder.iterdir():
        data = new.read_bytes()
        if data not in known:
            inputs[hashlib.sha1(data).hexdigest()] = data
    write(path, inputs)


if __name__ == "__main__":
    actions = {"unpack": unpack, "merge": merge}
    if len(sys.argv) != 4 or sys.argv[1] not in actions:
        raise SystemExit(__doc__)
    actions[sys.argv[1]](pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
