# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Registered memory, and the references by which peers use it."""

import collections
import ctypes
import errno

from . import _abi
from ._abi import failed, lib
from ._error import Closed, number_of

_MAPPED_IPV4 = bytes(10) + b"\xff\xff"


def gid_text(gid):
    """A GID as the library's texts have it: an IPv4 address, where it is one."""
    if gid.startswith(_MAPPED_IPV4):
        return ".".join(str(byte) for byte in gid[12:])
    import ipaddress    # takes longer to load than all of this, and is seldom needed
    return str(ipaddress.IPv6Address(gid))


def key_of(peer, service, name="peer"):
    """struct krcore_key of an address, host name, GID or Reference."""
    key = _abi.Key(service=number_of("service", service, 0, 65535))
    if isinstance(peer, Reference):
        peer = peer.gid
    if isinstance(peer, (bytes, bytearray)):
        if len(peer) != _abi.GID_BYTES:
            raise ValueError(f"{name}: a GID has {_abi.GID_BYTES} bytes, not {len(peer)}")
        ctypes.memmove(key.gid, bytes(peer), _abi.GID_BYTES)
        return key
    if not isinstance(peer, str):
        raise TypeError(f"{name}: an address, a GID or a Reference is needed, not "
                        f"{type(peer).__name__}")
    if not peer or "\0" in peer:
        raise ValueError(f"{name}: {peer!r} is no address")
    result = lib.krcore_key_from_text(peer.encode(), key.service, ctypes.byref(key))
    if result == -errno.EINVAL:
        raise ValueError(f"{name}: {failed(result).strerror}")
    if result < 0:
        raise failed(result)
    return key


class Reference(collections.namedtuple("Reference", "gid addr length token")):
    """All that a peer needs to use a region: the GID of its node, address, length and token.

    pack() makes 24 bytes of it, or 36 where the GID is no IPv4 address; unpack() is the way back.
    Whether there is such a region is only known when it is used.
    """

    __slots__ = ()

    def pack(self):
        """The bytes, for any message or invocation."""
        ref = _abi.RegionRef(addr=number_of("addr", self.addr, 0, 2 ** 64 - 1),
                             length=number_of("length", self.length, 0, 2 ** 64 - 1),
                             token=number_of("token", self.token, 0, 2 ** 64 - 1))
        packed = ctypes.create_string_buffer(_abi.PACKED_MAX)
        result = lib.krcore_region_pack(key_of(self.gid, 0, "gid").gid, ctypes.byref(ref), packed)
        if result < 0:
            raise ValueError(failed(result).strerror)
        return packed.raw[:result]

    @classmethod
    def unpack(cls, packed):
        """The reference that these bytes are; ValueError if they are none."""
        try:
            packed = bytes(memoryview(packed))
        except TypeError:
            raise TypeError(f"packed: bytes are needed, not {type(packed).__name__}") from None
        gid, ref = ctypes.create_string_buffer(_abi.GID_BYTES), _abi.RegionRef()
        result = lib.krcore_region_unpack(packed, len(packed), gid, ctypes.byref(ref))
        if result < 0:
            raise ValueError(f"packed: {failed(result).strerror}")
        return cls(gid.raw, ref.addr, ref.length, ref.token)


def reference_of(name, value):
    """A Reference, or one of its packed bytes."""
    if isinstance(value, Reference):
        for field, least in (("addr", 0), ("length", 1), ("token", 0)):
            number_of(f"{name}.{field}", getattr(value, field), least, 2 ** 64 - 1)
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Reference.unpack(value)
    raise TypeError(f"{name}: a Reference or its packed bytes are needed, not "
                    f"{type(value).__name__}")


def span(offset, length, most, name):
    """(offset, length) of a part of so many bytes, all behind the offset if no length is said."""
    offset = number_of(f"{name}offset", offset, 0, most - 1)
    if length is None:
        return offset, most - offset
    return offset, number_of("length", length, 1, most - offset)


def _has_objects(form):
    """Whether a format has a pointer to an object, besides in the names of fields."""
    import re       # needed for structures alone
    return "O" in re.sub(":[^:]*:", "", form)


def _check_view(view, name):
    """Refuse a buffer that peers cannot write to, or must not; how many bytes it has."""
    if view.readonly:
        raise TypeError(f"buffer: it must be writable, and this {name} is not")
    if "O" in view.format and _has_objects(view.format):
        raise TypeError(f"buffer: this {name} has Python objects in it")
    if not view.c_contiguous:
        raise ValueError("buffer: it must be contiguous")
    if not view.nbytes:
        raise ValueError("buffer: it is empty")
    return view.nbytes


class Region:
    """Memory of an object, registered with a node: made by Node.region(), closed by close(), by
    the end of a `with` block, or with its node.

    The object is kept until then, and refuses to be resized or closed (BufferError). close() waits
    for requests that use the memory, and until no peer can hold a valid reference any more.
    """

    def __init__(self, node, buffer, *, remote_read=False, remote_write=False,
                 remote_atomic=False, message=False, local_write=True):
        if (remote_write or remote_atomic) and not local_write:
            raise ValueError("local_write: peers write to no region that this node may not")
        if (remote_write or remote_atomic) and message:
            raise ValueError("message: not with remote_write or remote_atomic")
        access = (_abi.ACCESS_LOCAL_WRITE * bool(local_write)
                  | _abi.ACCESS_REMOTE_READ * bool(remote_read)
                  | _abi.ACCESS_REMOTE_WRITE * bool(remote_write)
                  | _abi.ACCESS_REMOTE_ATOMIC * bool(remote_atomic)
                  | _abi.ACCESS_MESSAGE * bool(message))
        try:
            view = memoryview(buffer)
        except TypeError:
            raise TypeError("buffer: an object with a buffer is needed, not "
                            f"{type(buffer).__name__}") from None
        with view:
            nbytes = _check_view(view, type(buffer).__name__)
            # of the first byte: has its address, and keeps the object from moving
            first = ctypes.c_char.from_buffer(buffer)
        mr = _abi.Mr()
        self._node, self._mr, self._made = node, None, mr
        self._posting = set()   # requests that are on their way into a queue with its handle
        self._buffer, self._first = buffer, first
        with node._turn:    # the node keeps it as long as the memory may be registered
            node._regions.add(self)
        try:
            node._call(lib.krcore_mr_reg, ctypes.addressof(first), nbytes, access,
                       ctypes.byref(mr))
        except BaseException:
            if not mr.length:
                self._forget()
            raise
        with node._turn:
            if node.closed:     # meanwhile, and with all that it had
                raise Closed("the node is closed")
            self._mr = mr

    @property
    def buffer(self):
        """The object whose memory it is; None when the region is closed."""
        return self._buffer

    @property
    def closed(self):
        """Whether it is closed, or being closed."""
        return self._mr is None

    def __len__(self):
        return self._open().length

    def __repr__(self):
        what = "closed" if self.closed else f"{self._mr.length} bytes, access {self._mr.access:#x}"
        return f"<krcore.Region {what}>"

    @property
    def reference(self):
        """The Reference by which peers use it."""
        mr = self._open()
        if not mr.token:
            raise ValueError("the region is closed to peers: none of remote_read, remote_write, "
                             "remote_atomic was said")
        return Reference(self._node.gid, mr.addr, mr.length, mr.token)

    def pack(self):
        """The packed reference: bytes for any message or invocation."""
        return self.reference.pack()

    def close(self):
        """Deregister it; peers cannot use it any more, and the buffer is free again."""
        if not self._node._ours():
            return
        with self._node._turn:
            mr, self._mr = self._mr, None
            if mr is None:
                return
            try:
                while self._posting and not self._node.closed:
                    self._node._turn.wait()     # so that none uses another one of this handle
            except BaseException:
                self._mr = mr
                raise
        try:
            self._node._call(lib.krcore_mr_dereg, ctypes.byref(mr))
        except Closed:
            return      # with its node, which forgets it
        self._forget()

    def _open(self, node=None, name="region"):
        """struct krcore_mr, of a region that is open, and of this node."""
        mr = self._mr
        if mr is None:
            raise Closed(f"{name}: the region is closed")
        if node is not None and node is not self._node:
            raise ValueError(f"{name}: a region of another node")
        return mr

    def _forget(self):
        """Let go of the buffer: nothing uses the memory any more."""
        with self._node._turn:
            self._node._regions.discard(self)
            self._mr = self._made = self._buffer = self._first = None

    def __enter__(self):
        self._open()
        return self

    def __exit__(self, *_):
        self.close()


def local_of(region, node, name="local"):
    """struct krcore_mr of an argument that is to be a region of this node."""
    if not isinstance(region, Region):
        raise TypeError(f"{name}: a Region is needed, not {type(region).__name__}")
    return region._open(node, name)
