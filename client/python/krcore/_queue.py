# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Queues: READ, WRITE and atomics on a peer's memory, each of which waits until it is done."""

import collections
import contextlib
import ctypes
import errno

from . import _abi
from ._abi import failed, lib
from ._error import Closed, Deadline, Error, failure, number_of, seconds_of, status_failure
from ._region import gid_text, key_of, local_of, reference_of, span

REQUEST_MAX = 1 << 30       # bytes of one request
_WORD = 2 ** 64 - 1
_STATES = {_abi.QUEUE_IDLE: "idle", _abi.QUEUE_CONNECTING: "connecting",
           _abi.QUEUE_READY: "ready", _abi.QUEUE_ERROR: "error"}

QueueInfo = collections.namedtuple("QueueInfo", "state error outstanding posted completed")
QueueInfo.__doc__ = "How a queue is: state is idle, connecting, ready or error."


class Queue:
    """A queue to one peer, made by Node.queue().

    Requests start and complete in the order in which they were posted. Each call posts one and
    waits until it is done, at most `timeout` seconds (None: for as long as it takes); threads that
    share a queue have theirs under way at once. Before it is posted, the kernel may have to ask a
    peer that has not answered lately: that takes up to 10 s, behind many such peers up to a minute,
    whatever `timeout` is, and no signal but SIGKILL ends it. One that fails puts the queue into the
    error state, in which connect() connects it again. One that takes longer than `timeout` is
    still under way: its memory may change until the queue or its region is closed.
    """

    def __init__(self, node, peer, service, depth, timeout, fresh):
        self._node, self._number = node, None
        self._posting = set()   # requests that are on their way into the queue
        self._key = key_of(peer, service)
        depth = number_of("depth", depth, 1, _abi.QUEUE_DEPTH_MAX)
        self._made, info = ctypes.c_uint32(), _abi.ConnectInfo()
        with node._turn:
            node._queues[id(self._made)] = self._made
        try:
            node._look_up(lib.krcore_queue_open, timeout, depth, ctypes.byref(self._key), None,
                          _abi.CONNECT_FRESH * bool(fresh), ctypes.byref(self._made),
                          ctypes.byref(info))
            self._number, self._info = self._made.value, info
        except BaseException:   # a handler of a signal may raise when it was made
            with contextlib.suppress(Error):
                self._end()
            raise

    @property
    def generation(self):
        """Boot generation of the peer, to which it was connected last."""
        return self._info.generation

    @property
    def reads(self):
        """READs of a MetaServer that it took; 0 if this node knew the peer."""
        return self._info.reads

    @property
    def closed(self):
        """Whether it is closed, itself or with its node."""
        return self._number is None or self._node.closed

    def __repr__(self):
        state = "closed" if self.closed else f"{self._number} to {self._peer()}"
        return f"<krcore.Queue {state}>"

    def info(self):
        """How it is: a QueueInfo."""
        info = _abi.QueueInfo()
        self._node._call(lib.krcore_queue_query, self._open(), ctypes.byref(info))
        return QueueInfo(_STATES.get(info.state, "unknown"), info.error, info.outstanding,
                         info.posted, info.completed)

    def connect(self, *, timeout=5.0, fresh=False):
        """Connect it again, after a request has failed."""
        info = _abi.ConnectInfo()
        self._node._look_up(lib.krcore_queue_connect, timeout, self._open(),
                            ctypes.byref(self._key), None, _abi.CONNECT_FRESH * bool(fresh),
                            ctypes.byref(info))
        self._info = info

    def read(self, remote, local, length=None, *, remote_offset=0, local_offset=0, timeout=10.0):
        """READ from a peer's region, a Reference or its packed bytes, into a region of this node;
        returns how many bytes. Without `length` it is as many as both have behind the offsets."""
        return self._transfer(_abi.OP_READ, "READ", remote, local, length, remote_offset,
                              local_offset, timeout, 0)

    def write(self, remote, local, length=None, *, remote_offset=0, local_offset=0,
              timeout=10.0, idempotent=False):
        """WRITE from a region of this node into a peer's; as read(). `idempotent`: it may be done
        twice rather than fail with EREMCHG, when nobody can know whether it was done."""
        return self._transfer(_abi.OP_WRITE, "WRITE", remote, local, length, remote_offset,
                              local_offset, timeout, _abi.WR_IDEMPOTENT * bool(idempotent))

    def fetch_add(self, remote, value, *, offset=0, timeout=10.0):
        """Add to the 8 bytes at an offset of a peer's region, of its byte order; returns what was
        there before. The address must be a multiple of 8."""
        return self._atomic(_abi.OP_FETCH_ADD, "fetch-and-add", remote, offset, timeout,
                            number_of("value", value, -2 ** 63, _WORD), 0)

    def compare_swap(self, remote, expected, new, *, offset=0, timeout=10.0):
        """Put `new` there if `expected` is there; returns what was there before, which is
        `expected` if it was done."""
        return self._atomic(_abi.OP_CMP_SWAP, "compare-and-swap", remote, offset, timeout,
                            number_of("expected", expected, 0, _WORD),
                            number_of("new", new, 0, _WORD))

    def close(self):
        """Close it; requests of it that are under way end with ECANCELED."""
        if not self._node._ours():
            return
        with self._node._turn:
            number, self._number = self._number, None
            try:
                while self._posting and not self._node.closed:
                    self._node._turn.wait()     # so that none gets into another one of this number
            except BaseException:
                self._number = self._number or number
                raise
            if number is None:      # of several, the first closes it, or who comes after it gave up
                number, self._number = self._number, None
        if number is not None:
            self._end()

    def _end(self):
        """Close it, if it was made and its node does not."""
        try:
            if self._made.value:
                self._node._call(lib.krcore_queue_close, self._made.value)
        except Closed:
            return
        except Error:
            self._forget()
            raise
        self._forget()

    def _forget(self):
        """There is none of this number any more."""
        with self._node._turn:
            self._node._queues.pop(id(self._made), None)

    def __enter__(self):
        self._open()
        return self

    def __exit__(self, *_):
        self.close()

    def _peer(self):
        service = f" service {self._key.service}" if self._key.service else ""
        return gid_text(bytes(self._key.gid)) + service

    def _open(self):
        number = self._number
        if number is None:
            raise Closed("the queue is closed")
        return number

    def _transfer(self, opcode, what, remote, local, length, remote_offset, local_offset,
                  timeout, flags):
        mr, remote = local_of(local, self._node), reference_of("remote", remote)
        local_offset, here = span(local_offset, None, mr.length, "local_")
        remote_offset, there = span(remote_offset, None, remote.length, "remote_")
        most = min(here, there, REQUEST_MAX)
        length = most if length is None else number_of("length", length, 1, most)
        wr = _abi.Wr(opcode=opcode, flags=flags, local_mr=mr.handle, length=length,
                     local_addr=mr.addr + local_offset, remote_token=remote.token,
                     remote_addr=remote.addr + remote_offset & _WORD)
        return self._request(f"{what} of {length} bytes", wr, timeout, local).bytes

    def _atomic(self, opcode, what, remote, offset, timeout, compare_add, swap):
        remote = reference_of("remote", remote)
        if remote.length < 8:
            raise ValueError(f"remote: an atomic works on 8 bytes, and it has {remote.length}")
        offset = number_of("offset", offset, 0, remote.length - 8)
        if (remote.addr + offset) % 8:
            raise ValueError("offset: an atomic works on an address that is a multiple of 8")
        seconds_of(timeout)
        self._open()
        self._node._check()
        region, words = self._node._words.take()
        try:
            wr = _abi.Wr(opcode=opcode, local_mr=region._open().handle, length=8,
                         local_addr=ctypes.addressof(words[0]), remote_token=remote.token,
                         remote_addr=remote.addr + offset & _WORD, compare_add=compare_add & _WORD,
                         swap=swap)
        except BaseException:
            self._node._words.free(words)
            raise
        return self._request(what, wr, timeout, region, words).value

    def _request(self, what, wr, timeout, kept, words=None):
        turn = self._node._turn

        def post(handle, user_data):
            wr.user_data = user_data
            try:
                with turn:
                    number = self._open()
                    kept._open()
                    self._posting.add(user_data)
                    kept._posting.add(user_data)
                return lib.krcore_post_wait(handle, number, ctypes.byref(wr), 1, None)
            finally:
                with turn:
                    self._posting.discard(user_data)
                    kept._posting.discard(user_data)
                    if self._number is None or kept.closed:
                        turn.notify_all()

        return self._node._request(f"{what}, {self._peer()}", post, timeout, kept, words)


def fetch(reference, *, most=64 << 20, timeout=10.0):
    """READ all that a reference, or its packed bytes, names, as the first thing that a process
    does with krcore: it opens a node, registers memory, connects and READs in one call, and
    closes the node. Returns a bytearray; ValueError if there are more bytes than `most`."""
    reference = reference_of("reference", reference)
    most = number_of("most", most, 1, REQUEST_MAX)
    deadline = Deadline(seconds_of(timeout))
    if reference.length > most:
        raise ValueError(f"reference: {reference.length} bytes, and at most {most} are wanted")
    data = bytearray(reference.length)
    first = ctypes.c_char.from_buffer(data)
    wr = _abi.Wr(user_data=1, opcode=_abi.OP_READ, remote_addr=reference.addr,
                 remote_token=reference.token, local_addr=ctypes.addressof(first), length=len(data))
    options = _abi.StartOptions(peer=key_of(reference.gid, 0), memory=ctypes.addressof(first),
                                length=len(data), access=_abi.ACCESS_LOCAL_WRITE, nr=1,
                                wrs=ctypes.pointer(wr))
    started, completion = _abi.Started(), _abi.Wc()
    try:    # a handler of a signal may raise when krcore_start() has returned, too
        while True:
            wr.local_mr, options.timeout_ms = 0, deadline.milliseconds(60000)
            result = lib.krcore_start(ctypes.byref(options), ctypes.byref(started))
            if result != -errno.EINTR or not deadline.left():
                break
        if result < 0:
            raise failed(result)
        _fetched(started, completion, f"READ of {len(data)} bytes, {gid_text(reference.gid)}",
                 deadline)
    finally:
        if started.node:
            _end_fetch(started, completion.user_data)
    return data


def _end_fetch(started, taken):
    """Close the node; the memory is the program's again. If the completion was not taken, it may
    still be written to, and closing alone waits for nothing."""
    try:
        if not taken:
            lib.krcore_queue_close(started.node, started.queue)
    finally:
        try:
            if not taken:
                lib.krcore_mr_dereg(started.node, ctypes.byref(started.mr))
        finally:
            lib.krcore_node_close(started.node)


def _fetched(started, completion, what, deadline):
    """Wait for the only request of a node."""
    if started.error:
        raise failure(started.error, what)
    while True:
        result = lib.krcore_poll(started.node, ctypes.byref(completion), 1)
        if result > 0:
            break
        if result == 0:
            last = not deadline.left()
            result = lib.krcore_wait(started.node, deadline.slice())
            if result == -errno.ETIMEDOUT and last:
                raise status_failure(result, what, "not done in time")
        if result < 0 and result not in (-errno.ETIMEDOUT, -errno.EINTR):
            raise failed(result)
    if completion.status:
        raise status_failure(completion.status, what)
