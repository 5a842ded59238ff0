# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Archives that the kernel unpacks as its initramfs (cpio "newc").

Several may follow each other in one initrd: the kernel's own, then the guest's.
"""


class Archive:
    """Files and the folders they need, in memory."""

    def __init__(self):
        self._data = bytearray()
        self._inode = 0
        self._folders = set()

    def _entry(self, name, mode, content):
        self._inode += 1
        encoded = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        self._data += b"070701" + b"".join(b"%08x" % field for field in fields) + encoded
        self._data += b"\0" * (-len(self._data) % 4)
        self._data += content
        self._data += b"\0" * (-len(self._data) % 4)

    def add_file(self, name, content, mode=0o644):
        """Add a file; the folders above it are made when they are new."""
        parts = name.strip("/").split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder not in self._folders:
                self._folders.add(folder)
                self._entry(folder, 0o040755, b"")
        self._entry("/".join(parts), 0o100000 | mode, content)

    def finish(self):
        """The bytes of the whole archive."""
        self._inode = 0
        self._entry("TRAILER!!!", 0, b"")
        self._data += b"\0" * (-len(self._data) % 512)
        return bytes(self._data)
