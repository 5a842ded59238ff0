# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A library and a module that are this process: requests work on its own memory, connections go
from one node to another of it. For tests of the module krcore of Python."""

import collections
import ctypes
import errno
import os
import threading
import time

from krcore import _abi

GID = bytes(10) + b"\xff\xff\xc0\x00\x02\x07"


def put(name, function):
    """Have the module call this instead of a function of the library."""
    setattr(_abi.lib, name, function)


class FakeNode:
    """What one handle has."""

    def __init__(self):
        self.ring, self.letters = collections.deque(), collections.deque()
        self.regions, self.listening, self.queues = {}, {}, set()
        self.inbox, self.waiting, self.calls = False, False, 0
        self.under_way = set()  # requests whose completions were not taken
        self.started = False    # it was made by krcore_start()
        self.process = os.getpid()


class Fake:
    """The functions of the library, by their names; put in its place by install()."""

    def __init__(self):
        self.lock = threading.Lock()
        self.nodes = {}
        self.said = []          # names of the calls that change something
        self.results = {}       # name: results that calls of it are to have first
        self.held = None        # a list: completions go there, not into the ring
        self.depth = 1 << 30
        self.status = 0         # of the completions that follow
        self.numbers = 100
        self.after_connect = self.after_start = lambda: None
        self.peers = {}         # (handle, connection): that of the other end

    def install(self):
        """Be the library."""
        for name in _abi.FUNCTIONS:
            put(name, self._counted(name, getattr(self, name)))

    def _counted(self, name, function):
        def call(*args):
            node = self.nodes.get(args[0]) if args else None
            if name == "krcore_node_close":
                assert node.calls == 0, "closed while another thread is in a call"
            if name.startswith(("krcore_mr", "krcore_queue", "krcore_node_c", "krcore_unb",
                                "krcore_shut")):
                self.said.append(name)
            if self.results.get(name):
                return self.results[name].pop(0)
            if node is None:
                assert name in ("krcore_error_text", "krcore_node_open", "krcore_key_from_text",
                                "krcore_letter_peer", "krcore_start", "krcore_version"), name
                return function(*args)
            with self.lock:
                node.calls += 1
            try:
                return function(*args)
            finally:
                with self.lock:
                    node.calls -= 1
        return call

    def number(self):
        """A number that was not there before."""
        with self.lock:
            self.numbers += 1
            return self.numbers

    # -- nodes, regions, queues ---------------------------------------------------

    def krcore_error_text(self):
        """Always the same."""
        return b"as the fake says"

    def krcore_version(self):
        """Of none."""
        return b"9.9.9"

    def krcore_node_open(self, _, ret):
        """A handle that no pointer is."""
        ret._obj.value = handle = self.number()
        self.nodes[handle] = FakeNode()
        return 0

    def krcore_node_close(self, handle):
        """It is gone; nothing may write to memory that is the program's again. A child only closes
        what it got from its parent."""
        node = self.nodes.pop(handle)
        if node.process == os.getpid():
            assert not node.regions or node.started and not node.under_way, \
                "closed while memory may be written to"

    def krcore_start(self, options, started):
        """All of it, by the others."""
        opts, made = options._obj, started._obj
        node, queue = ctypes.c_void_p(), ctypes.c_uint32()
        self.krcore_node_open(None, ctypes.byref(node))
        self.nodes[node.value].started = True
        self.krcore_mr_reg(node.value, opts.memory, opts.length, opts.access,
                           ctypes.byref(made.mr))
        self.krcore_queue_open(node.value, 1, None, 0, 0, ctypes.byref(queue),
                               ctypes.byref(_abi.ConnectInfo()))
        made.node, made.queue = node.value, queue.value
        self.krcore_post_wait(made.node, made.queue, ctypes.byref(opts.wrs.contents), 1, None)
        self.after_start()
        return 0

    def krcore_node_fd(self, _):
        """Any descriptor."""
        return 0

    def krcore_node_query(self, _, info):
        """One port."""
        info._obj.ports = 1
        return 0

    def krcore_node_port(self, _handle, _index, info):
        """The same for all."""
        ctypes.memmove(info._obj.gid, GID, 16)
        info._obj.device = b"fake_0"
        return 0

    def krcore_mr_reg(self, handle, addr, length, access, mr):
        """Remember it."""
        found = mr._obj
        found.addr, found.length, found.access = addr, length, access
        found.handle = self.number()
        found.token = (1 << 40) + found.handle if access & 0xe else 0
        self.nodes[handle].regions[found.handle] = (addr, length)
        return 0

    def krcore_mr_dereg(self, handle, mr):
        """Forget it."""
        found = self.nodes[handle].regions.pop(mr._obj.handle, None)
        return 0 if found else -errno.ENOENT

    def krcore_mr_dereg_many(self, handle, mrs, nr):
        """Up to one that is not there."""
        for done in range(nr):
            if self.nodes[handle].regions.pop(mrs[done].handle, None) is None:
                return done or -errno.ENOENT
        return nr

    def krcore_queue_open(self, handle, _depth, _key, _timeout, _flags, ret, info):
        """A number."""
        ret._obj.value = self.number()
        info._obj.generation = 77
        self.nodes[handle].queues.add(ret._obj.value)
        return 0

    def krcore_queue_connect(self, *_):
        """Always."""
        return 0

    def krcore_queue_query(self, _handle, _queue, info):
        """Ready."""
        info._obj.state = _abi.QUEUE_READY
        return 0

    def krcore_queue_close(self, handle, queue):
        """Forget it."""
        if queue not in self.nodes[handle].queues:
            return -errno.ENOENT
        self.nodes[handle].queues.remove(queue)
        return 0

    # -- requests -----------------------------------------------------------------

    def complete(self, handle, user_data, nbytes=0, status=None):
        """Put a completion where completions go."""
        completion = _abi.Wc(user_data=user_data, bytes=nbytes,
                             status=self.status if status is None else status)
        where = self.nodes[handle].ring if self.held is None else self.held
        where.append(completion)

    def release(self, handle):
        """Completions that were held come now."""
        held, self.held = self.held, None
        self.nodes[handle].ring.extend(held)

    def krcore_post_wait(self, handle, _queue, wr_ref, _nr, _error):
        """Do it on this process' memory."""
        wr = wr_ref._obj
        if self.held is not None and len(self.held) >= self.depth:
            return -errno.EAGAIN
        self.nodes[handle].under_way.add(wr.user_data)
        if wr.opcode == _abi.OP_READ:
            ctypes.memmove(wr.local_addr, wr.remote_addr, wr.length)
        elif wr.opcode == _abi.OP_WRITE:
            ctypes.memmove(wr.remote_addr, wr.local_addr, wr.length)
        else:
            with self.lock:
                there = ctypes.c_uint64.from_address(wr.remote_addr)
                ctypes.c_uint64.from_address(wr.local_addr).value = there.value
                if wr.opcode == _abi.OP_FETCH_ADD:
                    there.value += wr.compare_add
                elif there.value == wr.compare_add:
                    there.value = wr.swap
        self.complete(handle, wr.user_data, wr.length)
        return 1

    def krcore_poll(self, handle, array, nr):
        """Take completions."""
        node, taken = self.nodes[handle], 0
        while taken < nr and node.ring:
            completion = node.ring.popleft()
            node.under_way.discard(completion.user_data)
            if hasattr(array, "_obj"):      # one
                ctypes.memmove(array, ctypes.byref(completion), ctypes.sizeof(completion))
            else:
                array[taken] = completion
            taken += 1
        return taken

    def krcore_wait(self, handle, timeout_ms, letters=False):
        """Wait for one."""
        node, end = self.nodes[handle], time.monotonic() + timeout_ms / 1000
        assert not node.waiting, "several threads wait at once"
        node.waiting = True
        try:
            while not node.ring and not (letters and node.letters):
                if time.monotonic() >= end:
                    return -errno.ETIMEDOUT
                time.sleep(0.001)
        finally:
            node.waiting = False
        return 0

    def krcore_wait_any(self, handle, timeout_ms):
        """Wait for one, or for a letter."""
        return self.krcore_wait(handle, timeout_ms, True)

    # -- messages -----------------------------------------------------------------

    def krcore_inbox_create(self, handle, _bytes, _depth):
        """Once."""
        node = self.nodes[handle]
        was, node.inbox = node.inbox, True
        return -errno.EALREADY if was else 0

    def krcore_bind(self, handle, service, _timeout):
        """Once."""
        if service in self.nodes[handle].listening:
            return -errno.EADDRINUSE
        self.nodes[handle].listening[service] = True
        return 0

    def krcore_listen(self, handle, service, _backlog, timeout):
        """As krcore_bind()."""
        return self.krcore_bind(handle, service, timeout)

    def krcore_unbind(self, handle, service):
        """Undo it."""
        del self.nodes[handle].listening[service]
        return 0

    def krcore_key_from_text(self, text, service, key):
        """One address."""
        if text != b"192.0.2.7":
            return -errno.EINVAL
        ctypes.memmove(key._obj.gid, GID, 16)
        key._obj.service = service
        return 0

    def letter(self, handle, connection, kind, content=b"", **fields):
        """A letter comes."""
        self.nodes[handle].letters.append(
            (_abi.Letter(connection=connection, kind=kind, bytes=len(content), **fields), content))

    @staticmethod
    def peer(service, user):
        """What an offer or an acceptance says."""
        peer = _abi.Peer(service=service, user_len=len(user))
        ctypes.memmove(peer.gid, GID, 16)
        ctypes.memmove(peer.user, user, len(user))
        return bytes(peer)

    def krcore_connect(self, handle, key, options, ret):
        """To whichever node listens."""
        for other, node in self.nodes.items():
            if key._obj.service in node.listening:
                break
        else:
            return -errno.ENOENT
        here, there = self.number(), self.number()
        self.peers[handle, here], self.peers[other, there] = (other, there), (handle, here)
        user = options._obj.user[:options._obj.user_len]
        self.letter(other, there, _abi.LETTER_OFFER, self.peer(key._obj.service, user))
        ret._obj.value = here
        self.after_connect()
        return 0

    def krcore_accept(self, handle, connection, options):
        """The other end is told."""
        other = self.peers.get((handle, connection))
        if other is None:
            return -errno.ECONNRESET
        user = options._obj.user[:options._obj.user_len]
        self.letter(*other, _abi.LETTER_OPENED, self.peer(1, user))
        return 0

    def krcore_refuse(self, handle, connection):
        """The other end is told."""
        self.end(handle, connection, -errno.ECONNREFUSED)
        return 0

    def end(self, handle, connection, status):
        """The other end has died."""
        other = self.peers.pop((handle, connection), None)
        if other in self.peers:
            del self.peers[other]
            self.letter(*other, _abi.LETTER_DIED, status=status)

    def krcore_shutdown(self, handle, connection, how):
        """The other end is told."""
        if how != _abi.SHUT_SEND:
            self.end(handle, connection, -errno.ECONNRESET)
        else:
            self.letter(*self.peers[handle, connection], _abi.LETTER_ENDED)
        return 0

    def krcore_send_many(self, handle, wr_ref, _nr, _error):
        """It arrives at once; what is announced completes when it is fetched."""
        wr = wr_ref._obj
        other = self.peers.get((handle, wr.connection))
        if other is None:
            return -errno.ECONNRESET
        if wr.mr:
            self.letter(*other, _abi.LETTER_LARGE, seq=wr.addr, length=wr.length)
            self.peers["large", wr.addr] = (handle, wr.user_data)
        else:
            content = ctypes.string_at(wr.addr, wr.length)
            self.letter(*other, _abi.LETTER_MESSAGE, content, length=wr.length)
            self.complete(handle, wr.user_data, wr.length)
        return 1

    def krcore_fetch(self, handle, letter, offset, _mr, local, nbytes, _flags, user_data):
        """Both ends complete."""
        ctypes.memmove(local, letter._obj.seq + offset, nbytes)
        self.complete(handle, user_data, nbytes)
        self.complete(*self.peers.pop(("large", letter._obj.seq)))
        return 0

    def krcore_discard(self, _, letter):
        """The sender is told."""
        sender, user_data = self.peers.pop(("large", letter._obj.seq))
        self.complete(sender, user_data, status=-errno.ENOMSG)
        return 0

    def krcore_cancel(self, handle, _connection, user_data):
        """It comes back."""
        self.complete(handle, user_data, status=-errno.ECANCELED)
        return 0

    def krcore_recv(self, handle, letters, nr, buffer, _size, _timeout):
        """Take letters."""
        node, taken, used = self.nodes[handle], 0, 0
        while taken < nr and node.letters and used < 32 << 10:
            letter, content = node.letters.popleft()
            letter.offset = used
            ctypes.memmove(ctypes.addressof(buffer) + used, content, len(content))
            used += len(content) + 7 & ~7
            letters[taken] = letter
            taken += 1
        return taken

    def krcore_letter_peer(self, letter, buffer, peer):
        """It is in the buffer."""
        ctypes.memmove(ctypes.addressof(peer._obj),
                       ctypes.addressof(buffer) + letter._obj.offset, ctypes.sizeof(_abi.Peer))
        return 0

    # -- what these tests do not call ---------------------------------------------

    def __getattr__(self, name):
        return lambda *_: -errno.ENOSYS
