# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""libkrcore-queue as ctypes see it: constants, structures and functions of its headers.

Every name here is that of krcore.h, queue.h or message.h without its prefix; the unit test
python_abi compares sizes, offsets, values and arguments with what the compiler says of them.
Nothing is loaded before the first function is called.
"""

import ctypes
import errno
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_size_t, c_uint, c_uint8, c_uint16, \
    c_uint32, c_uint64, c_void_p

from ._error import Error, failure

SONAME = "libkrcore-queue.so.1"

GID_BYTES = 16

POST_MAX = 256
QUEUE_DEPTH_MAX = 1024
SERVICE_NODE = 0
SERVICE_USER_MIN = 256
DCT_ETHERNET = 0x01

ACCESS_LOCAL_WRITE = 0x1
ACCESS_REMOTE_READ = 0x2
ACCESS_REMOTE_WRITE = 0x4
ACCESS_REMOTE_ATOMIC = 0x8
ACCESS_MESSAGE = 0x10

OP_READ = 1
OP_WRITE = 2
OP_CMP_SWAP = 3
OP_FETCH_ADD = 4
OP_SEND = 5
OP_FETCH = 6

WR_IDEMPOTENT = 0x02
CONNECT_FRESH = 0x1

QUEUE_IDLE = 0
QUEUE_CONNECTING = 1
QUEUE_READY = 2
QUEUE_ERROR = 3

PACKED_IPV4 = 24
PACKED_MAX = 36

SEND_COPY_MAX = 4032
SEND_LARGE_MAX = 1 << 30
USER_MAX = 32
RECV_MAX = 1024
CONNECTION_DEPTH_MAX = 1024

LETTER_OFFER = 1
LETTER_OPENED = 2
LETTER_MESSAGE = 3
LETTER_LARGE = 4
LETTER_ENDED = 5
LETTER_DIED = 6

FETCH_KEEP = 0x1
SHUT_SEND = 1
SHUT_CLOSE = 2
SHUT_ABORT = 3

_Gid = c_uint8 * GID_BYTES


class Struct(ctypes.Structure):
    """A structure of the headers; one that begins with `size` has it set."""

    def __init__(self, **fields):
        super().__init__(**fields)
        if self._fields_[0][0] == "size":
            self.size = ctypes.sizeof(self)


class Key(Struct):
    """struct krcore_key"""
    _fields_ = [("gid", _Gid), ("service", c_uint16)]


class NodeOptions(Struct):
    """struct krcore_node_options"""
    _fields_ = [("size", c_size_t), ("device", c_char_p), ("ring_entries", c_uint32),
                ("port", c_uint32), ("gid", _Gid)]


class NodeInfo(Struct):
    """struct krcore_node_info"""
    _fields_ = [("size", c_size_t), ("ports", c_uint32), ("ring_entries_max", c_uint32),
                ("queue_depth_max", c_uint32), ("post_max", c_uint32), ("queues_max", c_uint32),
                ("requests_max", c_uint32), ("mrs_max", c_uint32), ("rsvd", c_uint32)]


class PortInfo(Struct):
    """struct krcore_port_info"""
    _fields_ = [("size", c_size_t), ("gid", _Gid), ("device", c_char * 64),
                ("port_num", c_uint32), ("mtu", c_uint32), ("flags", c_uint32),
                ("rsvd", c_uint32)]


class Mr(Struct):
    """struct krcore_mr"""
    _fields_ = [("addr", c_uint64), ("length", c_uint64), ("token", c_uint64),
                ("handle", c_uint32), ("access", c_uint32)]


class RegionRef(Struct):
    """struct krcore_region_ref"""
    _fields_ = [("addr", c_uint64), ("length", c_uint64), ("token", c_uint64)]


class ConnectInfo(Struct):
    """struct krcore_connect_info"""
    _fields_ = [("size", c_size_t), ("generation", c_uint64), ("reads", c_uint32),
                ("rsvd", c_uint32)]


class QueueInfo(Struct):
    """struct krcore_queue_info"""
    _fields_ = [("size", c_size_t), ("state", c_uint32), ("error", c_int32),
                ("outstanding", c_uint32), ("posted", c_uint64), ("completed", c_uint64)]


class Wr(Struct):
    """struct krcore_wr"""
    _fields_ = [("user_data", c_uint64), ("local_addr", c_uint64), ("remote_addr", c_uint64),
                ("remote_token", c_uint64), ("local_mr", c_uint32), ("length", c_uint32),
                ("opcode", c_uint8), ("flags", c_uint8), ("rsvd", c_uint8 * 6),
                ("compare_add", c_uint64), ("swap", c_uint64)]


class Wc(Struct):
    """struct krcore_wc"""
    _fields_ = [("user_data", c_uint64), ("status", c_int32), ("bytes", c_uint32),
                ("queue", c_uint32), ("opcode", c_uint8), ("flags", c_uint8),
                ("rsvd", c_uint8 * 2), ("offset", c_uint32), ("rsvd2", c_uint32)]


class StartOptions(Struct):
    """struct krcore_start_options"""
    _fields_ = [("size", c_size_t), ("node", POINTER(NodeOptions)), ("peer", Key),
                ("memory", c_void_p), ("length", c_size_t), ("wrs", POINTER(Wr)),
                ("access", c_uint32), ("nr", c_uint32), ("depth", c_uint32),
                ("timeout_ms", c_uint32), ("flags", c_uint32), ("record", c_uint32)]


class Started(Struct):
    """struct krcore_started"""
    _fields_ = [("size", c_size_t), ("node", c_void_p), ("mr", Mr), ("remote", RegionRef),
                ("generation", c_uint64), ("queue", c_uint32), ("reads", c_uint32),
                ("taken", c_uint32), ("error", c_int32)]


class Letter(Struct):
    """struct krcore_letter"""
    _fields_ = [("seq", c_uint64), ("connection", c_uint32), ("status", c_int32),
                ("length", c_uint32), ("imm", c_uint32), ("offset", c_uint32),
                ("bytes", c_uint32), ("kind", c_uint8), ("flags", c_uint8),
                ("rsvd", c_uint8 * 6)]


class Peer(Struct):
    """struct krcore_peer"""
    _fields_ = [("gid", _Gid), ("generation", c_uint64), ("queue", c_uint32),
                ("service", c_uint16), ("user_len", c_uint8), ("rsvd", c_uint8),
                ("user", c_uint8 * USER_MAX)]


class SendWr(Struct):
    """struct krcore_send_wr"""
    _fields_ = [("user_data", c_uint64), ("addr", c_uint64), ("connection", c_uint32),
                ("mr", c_uint32), ("length", c_uint32), ("imm", c_uint32), ("flags", c_uint32),
                ("queue", c_uint32), ("rsvd", c_uint32 * 2)]


class ConnectionOptions(Struct):
    """struct krcore_connection_options"""
    _fields_ = [("size", c_size_t), ("user", c_char_p), ("user_len", c_uint32),
                ("depth", c_uint32), ("timeout_ms", c_uint32), ("flags", c_uint32),
                ("first", POINTER(SendWr))]


# what each function takes; all but the exceptions return an int
FUNCTIONS = {
    "krcore_accept": (c_void_p, c_uint32, POINTER(ConnectionOptions)),
    "krcore_bind": (c_void_p, c_uint16, c_uint32),
    "krcore_cancel": (c_void_p, c_uint32, c_uint64),
    "krcore_connect": (c_void_p, POINTER(Key), POINTER(ConnectionOptions), POINTER(c_uint32)),
    "krcore_discard": (c_void_p, POINTER(Letter)),
    "krcore_error_text": (),
    "krcore_fetch": (c_void_p, POINTER(Letter), c_uint64, POINTER(Mr), c_void_p, c_uint32,
                     c_uint32, c_uint64),
    "krcore_inbox_create": (c_void_p, c_uint32, c_uint32),
    "krcore_key_from_text": (c_char_p, c_uint16, POINTER(Key)),
    "krcore_letter_peer": (POINTER(Letter), c_void_p, POINTER(Peer)),
    "krcore_listen": (c_void_p, c_uint16, c_uint32, c_uint32),
    "krcore_mr_dereg": (c_void_p, POINTER(Mr)),
    "krcore_mr_dereg_many": (c_void_p, POINTER(Mr), c_uint),
    "krcore_mr_reg": (c_void_p, c_void_p, c_size_t, c_uint32, POINTER(Mr)),
    "krcore_node_close": (c_void_p,),
    "krcore_node_fd": (c_void_p,),
    "krcore_node_open": (POINTER(NodeOptions), POINTER(c_void_p)),
    "krcore_node_port": (c_void_p, c_uint32, POINTER(PortInfo)),
    "krcore_node_query": (c_void_p, POINTER(NodeInfo)),
    "krcore_poll": (c_void_p, POINTER(Wc), c_uint32),
    "krcore_post_wait": (c_void_p, c_uint32, POINTER(Wr), c_uint32, POINTER(c_int)),
    "krcore_queue_close": (c_void_p, c_uint32),
    "krcore_queue_connect": (c_void_p, c_uint32, POINTER(Key), c_uint32, c_uint32,
                             POINTER(ConnectInfo)),
    "krcore_queue_open": (c_void_p, c_uint32, POINTER(Key), c_uint32, c_uint32,
                          POINTER(c_uint32), POINTER(ConnectInfo)),
    "krcore_queue_query": (c_void_p, c_uint32, POINTER(QueueInfo)),
    "krcore_recv": (c_void_p, POINTER(Letter), c_uint32, c_void_p, c_size_t, c_int),
    "krcore_refuse": (c_void_p, c_uint32),
    "krcore_region_pack": (c_void_p, POINTER(RegionRef), c_void_p),
    "krcore_region_unpack": (c_char_p, c_size_t, c_void_p, POINTER(RegionRef)),
    "krcore_send_many": (c_void_p, POINTER(SendWr), c_uint32, POINTER(c_int)),
    "krcore_shutdown": (c_void_p, c_uint32, c_uint32),
    "krcore_start": (POINTER(StartOptions), POINTER(Started)),
    "krcore_unbind": (c_void_p, c_uint16),
    "krcore_version": (),
    "krcore_wait": (c_void_p, c_int),
    "krcore_wait_any": (c_void_p, c_int),
}
RESULTS = {"krcore_error_text": c_char_p, "krcore_node_close": None, "krcore_version": c_char_p}


class Library:
    """The functions of the library, which is loaded when one is called for the first time."""

    _loaded = None

    def __getattr__(self, name):
        arguments = FUNCTIONS.get(name)
        if arguments is None:
            raise AttributeError(name)
        if self._loaded is None:
            try:
                self._loaded = ctypes.CDLL(SONAME)
            except OSError as reason:
                raise Error(errno.ELIBACC, f"{reason}; is libkrcore-queue1 installed?") from None
        function = getattr(self._loaded, name)
        function.argtypes = arguments
        function.restype = RESULTS.get(name, c_int)
        setattr(self, name, function)
        return function


lib = Library()


def again(function, *args):
    """What a function returns that a signal does not end: it begins again then."""
    while True:
        result = function(*args)
        if result != -errno.EINTR:
            return result


def failed(result):
    """The Error of a call that has returned this, with what the library says of it."""
    return failure(result, lib.krcore_error_text().decode(errors="replace"))
