#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The module krcore of Python against the headers and the library: sizes, offsets, constants and
arguments are what the compiler says; and what it says on a machine without /dev/krcore.

usage: python_abi_test.py CHECKOUT LIBRARY COMPILER
"""

import ctypes
import errno
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

COMPILER, LIBRARY = sys.argv.pop(), sys.argv.pop()
CHECKOUT = pathlib.Path(sys.argv.pop())
HEADERS = CHECKOUT / "client/include"
sys.path.insert(0, str(CHECKOUT / "client/python"))
ctypes.CDLL(LIBRARY)        # what is loaded by its SONAME later is this one

import krcore  # noqa: E402
from krcore import _abi  # noqa: E402

POINTER = "pointer"
# types of the headers' arguments, and of the ctypes that they are: of equal size and sign
KINDS = {"int": ctypes.c_int, "unsigned int": ctypes.c_uint, "uint8_t": ctypes.c_uint8,
         "uint16_t": ctypes.c_uint16, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64,
         "size_t": ctypes.c_size_t}


def structures():
    """The structures of the module, by their names in C."""
    return {made.__doc__.removeprefix("struct "): made for made in vars(_abi).values()
            if isinstance(made, type) and issubclass(made, _abi.Struct) and made is not _abi.Struct}


def constants():
    """Its constants, by their names in C."""
    return {f"KRCORE_{name}": value for name, value in vars(_abi).items()
            if name.isupper() and isinstance(value, int)}


def declared():
    """Functions of the headers: name to (result, arguments)."""
    text = "".join((HEADERS / "krcore" / name).read_text()
                   for name in ("krcore.h", "queue.h", "message.h"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = re.findall(r"^(?!typedef)([\w ]+?[ *]+)(krcore_\w+)\(([^;{]*?)\);", text, re.M)
    return {name: (kind(result), [kind(word) for word in arguments.split(",")
                                  if word.strip() != "void"])
            for result, name, arguments in found}


def kind(declaration):
    """Of an argument or result: POINTER, or its type without its name."""
    if "*" in declaration or "[" in declaration:
        return POINTER
    words = [word for word in declaration.split() if word != "const"]
    return " ".join(words if len(words) == 1 or words == ["unsigned", "int"] else words[:-1])


def is_pointer(made):
    """Whether a ctypes type is one."""
    return made in (ctypes.c_void_p, ctypes.c_char_p) or hasattr(made, "contents")


class Layout(unittest.TestCase):
    """What would drift silently."""

    def test_structures_and_constants_are_those_of_the_compiler(self):
        lines = [("#include <krcore/message.h>", "#include <stdio.h>", "int main(void) {")]
        expected = []
        for name, made in structures().items():
            lines.append((f'printf("%zu\\n", sizeof(struct {name}));',))
            expected.append((name, ctypes.sizeof(made)))
            for field, *_ in made._fields_:
                lines.append((f'printf("%zu\\n", offsetof(struct {name}, {field}));',
                              f'printf("%zu\\n", sizeof(((struct {name} *)0)->{field}));'))
                place = getattr(made, field)
                expected += [(f"{name}.{field}", place.offset), (f"{name}.{field}", place.size)]
        for name, value in constants().items():
            lines.append((f'printf("%lld\\n", (long long){name});',))
            expected.append((name, value))
        lines.append(("return 0; }",))
        source = "\n".join(line for several in lines for line in several)
        self.assertGreater(len(expected), 200)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "layout.c").write_text(source)
            subprocess.run([COMPILER, f"-I{HEADERS}", "-o", f"{folder}/layout",
                            f"{folder}/layout.c"], check=True)
            said = subprocess.run([f"{folder}/layout"], check=True, capture_output=True,
                                  text=True).stdout.split()
        self.assertEqual(len(said), len(expected))
        for (name, value), word in zip(expected, said):
            self.assertEqual(value, int(word), name)

    def test_no_field_is_left_out(self):
        text = "".join((HEADERS / "krcore" / name).read_text()
                       for name in ("krcore.h", "queue.h", "message.h"))
        for name, made in structures().items():
            body = re.search(rf"^struct {name} \{{\n(.*?)^\}};", text, re.S | re.M).group(1)
            fields = re.findall(r"(\w+)(?:\[\w+\])?;", body)
            self.assertEqual([field for field, *_ in made._fields_], fields, name)

    def test_functions_take_what_the_headers_say(self):
        headers = declared()
        for name, arguments in _abi.FUNCTIONS.items():
            result, wanted = headers[name]
            self.assertEqual(len(arguments), len(wanted), name)
            for made, want in zip(arguments, wanted):
                if want == POINTER:
                    self.assertTrue(is_pointer(made), f"{name}: {made}")
                else:
                    self.assertIs(made, KINDS[want], f"{name}: {want}")
            made = _abi.RESULTS.get(name, ctypes.c_int)
            self.assertEqual(made, {"int": ctypes.c_int, "void": None,
                                    POINTER: ctypes.c_char_p}[result], name)

    def test_the_library_has_all_of_them(self):
        for name in _abi.FUNCTIONS:
            self.assertTrue(getattr(_abi.lib, name), name)
        self.assertRegex(krcore.version(), r"^\d+\.\d+\.\d+$")


class WithoutModule(unittest.TestCase):
    """The real library, where no module is."""

    def test_no_device(self):
        with self.assertRaises(FileNotFoundError) as caught:
            krcore.Node(device="/nowhere/krcore")
        self.assertIsInstance(caught.exception, krcore.Error)
        self.assertIsInstance(caught.exception, OSError)
        self.assertEqual(caught.exception.errno, errno.ENOENT)
        self.assertIn("/nowhere/krcore: there is none; is the module krcore loaded?",
                      str(caught.exception))
        with self.assertRaises(krcore.Error) as caught:
            krcore.Node(device="/dev/null")
        self.assertEqual(caught.exception.errno, errno.ENOTTY)

    def test_bad_options(self):
        for options, words in (({"ring_entries": 100}, "not a power of two"),
                               ({"port": 1, "gid": "192.0.2.1"}, "both port 1 and a GID")):
            with self.assertRaisesRegex(krcore.Error, words) as caught:
                krcore.Node(**options)
            self.assertEqual(caught.exception.errno, errno.EINVAL)
        for options, words in (({"ring_entries": "x"}, "ring_entries: an integer"),
                               ({"gid": 5}, "gid: an address")):
            with self.assertRaisesRegex(TypeError, words):
                krcore.Node(**options)
        for options, words in (({"ring_entries": 1 << 20}, "ring_entries: 16 to 65536"),
                               ({"gid": b"short"}, "gid: a GID has 16 bytes, not 5"),
                               ({"gid": "192.0.2"}, "gid: .*four numbers")):
            with self.assertRaisesRegex(ValueError, words):
                krcore.Node(**options)

    def test_references(self):
        gid = bytes(10) + b"\xff\xff\xc0\x00\x02\x07"
        for maker, size in ((gid, 24), (bytes(range(1, 17)), 36)):
            reference = krcore.Reference(maker, 0x1000, 77, 1 << 40 | 5)
            packed = reference.pack()
            self.assertEqual(len(packed), size)
            self.assertEqual(krcore.Reference.unpack(packed), reference)
            self.assertEqual(krcore.Reference.unpack(bytearray(packed)), reference)
            for bad in (packed[:-1], packed + b"x", b"", b"\0" * size):
                with self.assertRaisesRegex(ValueError, "^packed: "):
                    krcore.Reference.unpack(bad)
        with self.assertRaisesRegex(TypeError, "packed: bytes are needed, not str"):
            krcore.Reference.unpack("00" * 24)
        with self.assertRaisesRegex(ValueError, "no peer could use such a region"):
            krcore.Reference(gid, 0x1000, 77, 0).pack()
        with self.assertRaisesRegex(TypeError, "length: an integer is needed, not str"):
            krcore.Reference(gid, 0x1000, "77", 5).pack()

    def test_fetch(self):
        gid = bytes(10) + b"\xff\xff\xc0\x00\x02\x07"
        packed = krcore.Reference(gid, 0x1000, 1 << 20, 1 << 40 | 5).pack()
        with self.assertRaisesRegex(ValueError, "reference: 1048576 bytes, and at most 1000"):
            krcore.fetch(packed, most=1000)
        with self.assertRaisesRegex(TypeError, "reference: a Reference or its packed bytes"):
            krcore.fetch("text")
        with self.assertRaisesRegex(TypeError, "timeout: seconds are needed"):
            krcore.fetch(packed, timeout="1")
        if not pathlib.Path("/dev/krcore").exists():
            with self.assertRaisesRegex(FileNotFoundError, "/dev/krcore: there is none"):
                krcore.fetch(packed)


if __name__ == "__main__":
    unittest.main()
