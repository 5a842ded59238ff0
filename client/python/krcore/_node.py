# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The node: one open /dev/krcore, and how threads wait for what comes there.

Of the threads that wait for a completion or a letter, one at a time asks the library for all of
them, and hands out what came; the others wait for it. Every call is counted while it is in the
library, and the node is closed by the last one that leaves: so close() frees nothing that another
thread still uses.
"""

import atexit
import collections
import contextlib
import ctypes
import errno
import itertools
import os
import threading
import warnings
import weakref

from . import _abi
from ._abi import failed, lib
from ._error import Closed, Deadline, Error, failure, number_of, seconds_of, status_failure
from ._message import Inbox, move
from ._queue import Queue
from ._region import Region, gid_text, key_of

LOOK_UP_MAX = 60.0          # seconds, of every call that may ask a MetaServer
_COMPLETIONS = 64

Port = collections.namedtuple("Port", "gid address device port_num mtu ethernet")
Port.__doc__ = "A port of this node: `address` is its GID as text; `mtu` is an enum ibv_mtu."
Info = collections.namedtuple("Info", "ports ring_entries_max queue_depth_max post_max "
                                      "queues_max requests_max mrs_max")
Info.__doc__ = "What the module offers this user, as struct krcore_node_info has it."

_open_nodes = weakref.WeakSet()


class Ticket:
    """A request under way, and what it needs until it is completed."""

    __slots__ = ("done", "status", "bytes", "value", "kept", "words")

    def __init__(self, kept=None, words=None):
        self.done, self.status, self.bytes, self.value = False, 0, 0, 0
        self.kept, self.words = kept, words


class Node:
    """One open /dev/krcore: regions, queues, services and connections are made by it.

    `port` is the number of the RDMA port to use, from 1, or `gid` its 16 bytes; without them it is
    the first one whose link is up. `ring_entries` is a power of two from 16 to 65536, into which
    the depths of all queues together must fit. All threads may use a node and what it has made;
    each call takes as long as it says, and others go on meanwhile. close(), or the end of a `with`
    block, closes all of it; a call that another thread is in ends with Closed then.
    """

    def __init__(self, *, port=0, gid=None, ring_entries=1024, device=None):
        self._handle, self._pid = None, os.getpid()
        self._turn = threading.Condition()
        self._users = []        # threads that are in the library now
        self._closing = self._asking = False
        self._completed = 0
        self._numbers = itertools.count(1)
        self._tickets = {}
        self._regions = set()
        self._queues = {}       # by id(): their numbers, each a c_uint32, 0 before it is made
        self._completions = (_abi.Wc * _COMPLETIONS)()
        self._inbox = Inbox(self)
        self._words = _Words(self)
        options = _abi.NodeOptions(port=number_of("port", port, 0, 2 ** 32 - 1),
                                   ring_entries=number_of("ring_entries", ring_entries, 16, 65536))
        if gid is not None:
            ctypes.memmove(options.gid, bytes(key_of(gid, 0, "gid").gid), _abi.GID_BYTES)
        if device is not None:
            options.device = os.fsencode(device)
        handle = ctypes.c_void_p()
        _open_nodes.add(self)
        try:
            result = lib.krcore_node_open(ctypes.byref(options), ctypes.byref(handle))
            if result < 0:
                raise failed(result)
            self._handle = handle.value
            self._port = self._port_of(0)
        except BaseException:
            self._handle = handle.value     # a signal may have come when it was made
            self.close()
            raise

    # -- what it is ---------------------------------------------------------------

    @property
    def gid(self):
        """GID of the port that the node uses: 16 bytes, by which peers find it."""
        return self._port.gid

    @property
    def address(self):
        """The same as text: an IPv4 address, or a GID."""
        return self._port.address

    @property
    def closed(self):
        """Whether it is closed, or being closed."""
        return self._handle is None or self._closing

    def fileno(self):
        """A descriptor that is readable as long as a completion or a letter waits."""
        with self._using() as handle:
            return lib.krcore_node_fd(handle)

    def info(self):
        """What the module offers this user: an Info."""
        info = _abi.NodeInfo()
        self._call(lib.krcore_node_query, ctypes.byref(info))
        return Info(*(getattr(info, name) for name in Info._fields))

    def ports(self):
        """The RDMA ports that can be used now, a Port each."""
        return [self._port_of(index + 1) for index in range(self.info().ports)]

    def _port_of(self, index):
        info = _abi.PortInfo()
        self._call(lib.krcore_node_port, index, ctypes.byref(info))
        gid = bytes(info.gid)
        return Port(gid, gid_text(gid), os.fsdecode(info.device), info.port_num, info.mtu,
                    bool(info.flags & _abi.DCT_ETHERNET))

    def __repr__(self):
        return f"<krcore.Node {'closed' if self.closed else self.address}>"

    # -- what it makes ------------------------------------------------------------

    def region(self, buffer, *, remote_read=False, remote_write=False, remote_atomic=False,
               message=False, local_write=True):
        """Register the memory of `buffer`: a bytearray, mmap, array, NumPy array or any other
        object with a writable, contiguous buffer; returns a Region.

        Peers may do with it what is said to be allowed; `message` is for what
        Connection.send_large() sends. Without `local_write` it is only read by this node's own
        requests. The buffer is kept, and cannot be resized, until the region is closed.
        """
        return Region(self, buffer, remote_read=remote_read, remote_write=remote_write,
                      remote_atomic=remote_atomic, message=message, local_write=local_write)

    def queue(self, peer, service=0, *, depth=64, timeout=5.0, fresh=False):
        """Connect to a peer, by one READ of a MetaServer or none; returns a Queue.

        `peer` is an address or host name, the 16 bytes of a GID, or a Reference, whose node is
        meant; `service` one that a program there has bound, or 0 for the node. `timeout` is how
        long a look-up may take, at most 60 seconds. `fresh`: use nothing that this node remembers
        of the peer.
        """
        return Queue(self, peer, service, depth, timeout, fresh)

    def bind(self, service, *, timeout=5.0):
        """Let peers connect queues to a service of this node, 256 to 65535; returns a Service."""
        return self._inbox.bind(service, timeout)

    def listen(self, service, *, backlog=16, timeout=5.0):
        """Let programs open connections to a service, 256 to 65535; returns a Listener."""
        return self._inbox.listen(service, backlog, timeout)

    def connect(self, peer, service, *, user=b"", depth=64, timeout=10.0, fresh=False):
        """Open a connection to a service that a program listens to, and wait until that has
        accepted it; returns a Connection. `user`: up to 32 bytes that it sees before."""
        return self._inbox.connect(peer, service, user, depth, timeout, fresh)

    # -- its end ------------------------------------------------------------------

    def close(self):
        """Close the node and all that it has made. Threads that are in a call are waited for, and
        all that may use the memory of a region.

        A child of fork() has none: its copies were closed when it began.
        """
        self._close(wait=True)

    def _close(self, wait):
        if self._handle is None or not self._ours():
            return              # the parent's locks may be held for ever in a child
        with self._turn:
            self._closing = True
            self._turn.notify_all()
            while self._handle is not None:
                if not self._users:
                    self._finish()
                elif wait and any(user != threading.get_ident() for user in self._users):
                    self._turn.wait()
                else:
                    break

    def _finish(self):
        """Nobody is in the library; with _turn held. What a signal has kept it from is done by the
        next one that closes the node."""
        self._release(self._handle)
        handle, self._handle = self._handle, None
        lib.krcore_node_close(handle)
        for region in list(self._regions):
            region._forget()
        self._tickets.clear()
        self._queues.clear()
        self._inbox.clear()

    def _release(self, handle):
        """End all that may use memory, and wait until nothing does: closing a node only has the
        kernel do that some time later, when the memory may be another object's."""
        for number in self._inbox.numbers():
            _abi.again(lib.krcore_shutdown, handle, number, _abi.SHUT_ABORT)
        for number in self._queues.values():
            if number.value:
                lib.krcore_queue_close(handle, number.value)
        made = [region._made for region in self._regions if region._made.length]
        while made:
            done = lib.krcore_mr_dereg_many(handle, (_abi.Mr * len(made))(*made), len(made))
            if done < 0:        # of the first, which is gone; or all, without memory
                lib.krcore_mr_dereg(handle, ctypes.byref(made[0]))
                done = 1
            del made[:done]

    def __enter__(self):
        self._check()
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None) is not None and self._ours():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
            self._close(wait=False)

    def _ours(self):
        """Whether this process has opened it, and is not a child of that."""
        return self._pid == os.getpid()

    def _check(self):
        if not self._ours():
            raise ValueError("the node belongs to the process that opened it, not to its child")
        if self.closed:
            raise Closed("the node is closed")

    # -- calls of the library -----------------------------------------------------

    @contextlib.contextmanager
    def _using(self):
        """The handle, which stays valid in the block."""
        self._check()       # in a child of fork() the lock may be held for ever
        entered, thread = False, threading.get_ident()
        try:                # a handler of a signal may raise anywhere
            with self._turn:
                self._check()
                entered = True
                self._users.append(thread)
            yield self._handle
        finally:
            if entered:
                with self._turn:
                    if thread in self._users:
                        self._users.remove(thread)
                    if self._closing and not self._users and self._handle is not None:
                        self._finish()
                        self._turn.notify_all()

    def _call(self, function, *args):
        """The result of a function; an error of it is raised."""
        with self._using() as handle:
            result = function(handle, *args)
            if result < 0:
                raise failed(result)
        return result

    def _call_again(self, function, *args):
        """A call that does what it does soon: it begins again after a signal."""
        return self._call(lambda *all_args: _abi.again(function, *all_args), *args)

    def _look_up(self, function, timeout, *args):
        """A call that may ask a MetaServer: args, where None is the time that is left. One that a
        signal has interrupted begins again, after Python has handled that."""
        deadline = Deadline(seconds_of(timeout, 0.001, LOOK_UP_MAX))
        while True:
            left = deadline.milliseconds(LOOK_UP_MAX * 1000)
            try:
                return self._call(function, *(left if arg is None else arg for arg in args))
            except InterruptedError as error:
                if not isinstance(error, Error) or not deadline.left():
                    raise

    # -- what comes ---------------------------------------------------------------

    def _request(self, what, post, timeout, kept=None, words=None, late=None):
        """Post a request by post(handle, its number), and wait until it is completed; returns its
        ticket, with the bytes that were transferred, or what has come to the word of `words`.
        `kept` lives until then, when the word is given back. When the time is over,
        late(its number) may take it back and say in how many seconds it will have ended."""
        deadline = Deadline(seconds_of(timeout))
        ticket, number = Ticket(kept, words), next(self._numbers)
        self._post(post, ticket, number, deadline)
        if not self._await(lambda: ticket.done, deadline):
            grace = late(number) if late else None
            if grace is None or not self._await(lambda: ticket.done, Deadline(grace)):
                raise status_failure(-errno.ETIMEDOUT, what,
                                     f"not done after {timeout:g} s, and still under way")
            if ticket.status == -errno.ECANCELED:
                raise status_failure(-errno.ETIMEDOUT, what,
                                     f"not done after {timeout:g} s, and taken back")
        if ticket.status:
            raise status_failure(ticket.status, what)
        return ticket

    def _post(self, post, ticket, number, deadline):
        self._tickets[number] = ticket      # until its completion, whatever interrupts the thread
        while True:
            with self._using() as handle:
                seen = self._completed
                try:
                    result = post(handle, number)
                except Closed:      # nothing was posted
                    self._end(self._tickets.pop(number, ticket), -errno.ECANCELED, 0)
                    raise
                if result >= 0:
                    return
                if result not in (-errno.EAGAIN, -errno.EINTR) or not deadline.left():
                    self._end(self._tickets.pop(number, ticket), result, 0)
                    raise failed(result)
            if result == -errno.EAGAIN:     # as many are under way as may be: one must end
                self._await(lambda: self._completed != seen, deadline)

    def _await(self, ready, deadline, letters=False):
        """Wait until ready(), which is asked with _turn held; returns whether it is."""
        if letters:
            with self._turn:
                self._inbox.wanted += 1
        try:
            while True:
                with self._turn:
                    if ready():
                        return True
                    self._check()
                    last = not deadline.left()
                    if self._asking:
                        self._turn.wait(deadline.slice() / 1000)
                self._ask(deadline)
                if last:        # whatever came
                    with self._turn:
                        return ready()
        finally:
            if letters:
                with self._turn:
                    self._inbox.wanted -= 1

    def _ask(self, deadline):
        """Wait for what comes and hand it out, unless another thread does."""
        asking = False
        try:
            with self._turn:
                if self._asking:
                    return
                asking = self._asking = True
            with self._using() as handle:
                letters = self._inbox.wanted > 0
                wait = lib.krcore_wait_any if letters else lib.krcore_wait
                result = wait(handle, deadline.slice())
                if result < 0 and result not in (-errno.ETIMEDOUT, -errno.EINTR):
                    raise failed(result)
                self._take(handle)
                if letters:
                    self._inbox.take(handle)
        finally:
            if asking:
                with self._turn:
                    self._asking = False
                    self._turn.notify_all()

    def _take(self, handle):
        """Take completions and hand them out. One thread at a time. What a signal has kept it from
        handing out is still there the next time."""
        if not self._completions[0].user_data:
            taken = lib.krcore_poll(handle, self._completions, _COMPLETIONS)
            if taken < 0:
                raise failed(taken)
        with self._turn:
            for completion in self._completions:
                if not completion.user_data:
                    break
                ticket = self._tickets.get(completion.user_data)
                if ticket is not None:
                    self._end(ticket, completion.status, completion.bytes)
                    del self._tickets[completion.user_data]
            ctypes.memset(self._completions, 0, ctypes.sizeof(self._completions))

    def _end(self, ticket, status, nbytes):
        """It is completed. A signal may end this anywhere, and then it is done again."""
        if not ticket.done:
            if ticket.words:
                ticket.value = ticket.words[0].value
            ticket.status, ticket.bytes = status, nbytes
            self._completed += 1
            ticket.done = True
        self._words.free(ticket.words)      # another request has it now


class _Words:
    """Registered memory of 8 bytes each, to which old values of atomics come."""

    def __init__(self, node):
        self._node, self._region, self._free = node, None, collections.deque()
        self._lock = threading.Lock()

    def take(self):
        """(region, a deque with a ctypes integer in it), which is given back by free()."""
        with self._lock:
            if self._region is None:
                array = (ctypes.c_uint64 * 512)()
                region = Region(self._node, array)
                self._free = collections.deque(ctypes.c_uint64.from_buffer(array, 8 * index)
                                               for index in range(512))
                self._region = region
            if not self._free:
                raise failure(errno.EAGAIN, "512 atomics are under way")
            words = collections.deque()
            move(self._free, words)
            return self._region, words

    def free(self, words):
        """What take() gave is not used any more, if it is still there."""
        if words:
            move(words, self._free)


@atexit.register
def _close_all():
    for node in list(_open_nodes):
        if not node.closed and node._ours():
            node._close(wait=False)


def _leave_to_parent():
    """In a child of fork(): its copies of the descriptors would keep the parent's nodes alive when
    that has closed them. Only the copies are closed, and no lock is taken."""
    for node in list(_open_nodes):
        handle, node._handle = node._handle, None
        if handle is not None:
            lib.krcore_node_close(handle)


os.register_at_fork(after_in_child=_leave_to_parent)
