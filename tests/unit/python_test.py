#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The module krcore of Python, over a library that is a fake: misuse is refused with the name of
the argument, nothing is used after its end, buffers are kept, threads get what is theirs.

usage: python_test.py CHECKOUT
"""

import array
import ctypes
import errno
import gc
import mmap
import os
import pathlib
import pickle
import signal
import sys
import threading
import time
import unittest
import unittest.mock
import warnings

CHECKOUT = pathlib.Path(sys.argv.pop(1))
sys.path[:0] = [str(CHECKOUT / "client/python"), str(CHECKOUT / "tests/unit")]

import krcore  # noqa: E402
import python_fake  # noqa: E402

PEER = "192.0.2.7"
ALL = {"remote_read": True, "remote_write": True, "remote_atomic": True}


class Signal(BaseException):
    """What a handler of a signal may raise."""


def interrupted(call, *names):
    """Make a call with a Signal before the first instruction of functions of these names; then
    again from the generator on, with one before the second, and so on to their end."""
    last = False
    for wanted in range(1, 100000):
        count = 0

        def trace(frame, event, _):
            nonlocal count
            if frame.f_code.co_name not in names:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                count += 1
                if count == wanted:
                    raise Signal
            return trace

        sys.settrace(trace)
        try:
            call()
            last = True
        except Signal:
            pass
        finally:
            sys.settrace(None)
        yield
        if last:
            return


class Case(unittest.TestCase):
    """A node over a fake."""

    def setUp(self):
        self.fake = python_fake.Fake()
        self.fake.install()
        self.node = krcore.Node()
        self.addCleanup(self.node.close)

    def refused(self, kind, words, call, *args, **options):
        """A call raises, and says so."""
        with self.assertRaisesRegex(kind, words) as caught:
            call(*args, **options)
        return caught.exception

    def ends(self, *threads):
        """They do, before long."""
        for thread in threads:
            thread.join(30)
            self.assertFalse(thread.is_alive(), "a thread does not end")

    def until(self, ready):
        """Something is so before long."""
        end = time.monotonic() + 30
        while not ready():
            self.assertLess(time.monotonic(), end, "it does not happen")
            time.sleep(0.001)

    @property
    def handle(self):
        """The fake's side of the node."""
        return self.fake.nodes[self.node._handle]


class Regions(Case):
    """Buffers of all kinds, and how long they are kept."""

    def test_a_buffer_cannot_be_resized_meanwhile(self):
        data = bytearray(100)
        with self.node.region(data, remote_read=True) as region:
            self.assertIs(region.buffer, data)
            self.assertEqual(len(region), 100)
            self.refused(BufferError, "", data.extend, b"x")
            self.assertEqual(region.reference.length, 100)
        data.extend(b"x")
        self.assertTrue(region.closed and region.buffer is None)
        region.close()
        self.refused(ValueError, "the region is closed", region.pack)
        self.refused(ValueError, "the region is closed", len, region)
        self.refused(ValueError, "the region is closed", region.__enter__)

    def test_it_is_kept_though_nobody_has_it(self):
        data = bytearray(100)
        self.node.region(data)
        gc.collect()
        self.refused(BufferError, "", data.extend, b"x")
        self.node.close()
        data.extend(b"x")

    def test_kinds_of_buffers(self):
        with mmap.mmap(-1, 4096) as memory:
            with self.node.region(memory) as region:
                self.assertEqual(len(region), 4096)
                self.refused(BufferError, "", memory.close)
        numbers = array.array("d", range(10))
        with self.node.region(numbers) as region:
            self.assertEqual((len(region), region._mr.addr), (80, numbers.buffer_info()[0]))
        data = bytearray(100)
        with self.node.region(memoryview(data)[10:20]) as region:
            self.assertEqual(len(region), 10)

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        with self.node.region(numpy.zeros((4, 4)), **ALL) as region:
            self.assertEqual(len(region), 128)
        self.refused(ValueError, "contiguous", self.node.region, numpy.zeros((4, 4))[:, 1])
        self.refused(TypeError, "objects", self.node.region, numpy.array([None, "x"]))

    def test_structures(self):
        fields = [("Offset", ctypes.c_uint32), ("O", ctypes.c_uint8)]
        made = type("Made", (ctypes.Structure,), {"_fields_": fields})
        with self.node.region(made()) as region:
            self.assertEqual(len(region), ctypes.sizeof(made))
        fields = [("a", ctypes.c_uint32), ("b", ctypes.py_object)]
        made = type("Made", (ctypes.Structure,), {"_fields_": fields})
        self.refused(TypeError, "this Made has Python objects", self.node.region, made())

    def test_what_the_library_does_not_have(self):
        self.assertFalse(hasattr(krcore._abi.lib, "krcore_nothing"))

    def test_bad_buffers(self):
        for kind, words, buffer in (
                (TypeError, "buffer: an object with a buffer is needed, not str", "text"),
                (TypeError, "buffer: an object with a buffer is needed, not int", 4096),
                (TypeError, "buffer: it must be writable, and this bytes is not", b"text"),
                (ValueError, "buffer: it is empty", bytearray()),
                (TypeError, "this py_object_Array_1 has Python objects", (ctypes.py_object * 1)(1)),
                (ValueError, "buffer: it must be contiguous", memoryview(bytearray(9))[::2])):
            self.refused(kind, words, self.node.region, buffer)
        self.refused(ValueError, "^message: ", self.node.region, bytearray(1), message=True, **ALL)
        self.refused(ValueError, "^local_write: ", self.node.region, bytearray(1),
                     local_write=False, remote_write=True)
        self.fake.results["krcore_mr_reg"] = [-errno.ENOMEM]
        data = bytearray(1)
        error = self.refused(krcore.Error, "as the fake says", self.node.region, data)
        self.assertEqual(error.errno, errno.ENOMEM)
        data.extend(b"x")
        self.assertFalse(self.node._regions)
        with self.node.region(bytearray(1)) as region:
            self.refused(ValueError, "closed to peers", region.pack)


class Requests(Case):
    """READ, WRITE and atomics, over the memory of this process."""

    def setUp(self):
        super().setUp()
        self.there, self.here = bytearray(range(64)), bytearray(64)
        self.remote = self.node.region(self.there, **ALL).reference
        self.local = self.node.region(self.here)
        self.queue = self.node.queue(PEER)

    def test_read_and_write(self):
        self.assertEqual(self.queue.read(self.remote, self.local), 64)
        self.assertEqual(self.here, self.there)
        self.assertEqual(self.queue.write(self.remote, self.local, 3, remote_offset=10,
                                          local_offset=20, idempotent=True), 3)
        self.assertEqual(self.there[9:14], bytes([9, 20, 21, 22, 13]))
        self.assertEqual(self.queue.read(self.remote, self.local, local_offset=60), 4)
        self.assertEqual((self.queue.info().state, self.queue.generation), ("ready", 77))
        self.queue.connect(fresh=True)
        self.assertFalse(self.node._tickets)

    def test_atomics(self):
        word = ctypes.c_uint64.from_buffer(self.there, 8)
        word.value = 5
        self.assertEqual(self.queue.fetch_add(self.remote, 3, offset=8), 5)
        self.assertEqual(self.queue.fetch_add(self.remote, -8, offset=8), 8)
        self.assertEqual(word.value, 0)
        self.assertEqual(self.queue.compare_swap(self.remote, 1, 9, offset=8), 0)
        self.assertEqual(self.queue.compare_swap(self.remote, 0, 2 ** 64 - 1, offset=8), 0)
        self.assertEqual(word.value, 2 ** 64 - 1)
        self.assertEqual(len(self.node._words._free), 512)

    def test_arguments(self):
        read, add, swap = self.queue.read, self.queue.fetch_add, self.queue.compare_swap
        for kind, words, call, *args in (
                (TypeError, "local: a Region is needed, not bytearray", read, self.remote,
                 self.here),
                (TypeError, "remote: a Reference or its packed bytes", read, "x", self.local),
                (ValueError, "length: 1 to 64, not 65", read, self.remote, self.local, 65),
                (ValueError, "length: 1 to 64, not 0", read, self.remote, self.local, 0),
                (TypeError, "length: an integer is needed, not float", read, self.remote,
                 self.local, 1.5),
                (TypeError, "value: an integer is needed, not str", add, self.remote, "1"),
                (ValueError, "value: ", add, self.remote, 2 ** 64),
                (ValueError, "expected: ", swap, self.remote, -1, 0),
                (ValueError, "new: ", swap, self.remote, 0, 2 ** 64),
                (TypeError, "remote.addr: an integer is needed, not str", read,
                 self.remote._replace(addr="x"), self.local),
                (ValueError, "remote.length: 1 to ", read, self.remote._replace(length=0),
                 self.local),
                (ValueError, "remote.token: 0 to ", add, self.remote._replace(token=-1), 1),
                (TypeError, "reference.length: an integer is needed", krcore.fetch,
                 self.remote._replace(length=None))):
            self.refused(kind, words, call, *args)
        for kind, words, options in (
                (ValueError, "local_offset: 0 to 63, not 64", {"local_offset": 64}),
                (ValueError, "remote_offset: 0 to 63, not -1", {"remote_offset": -1}),
                (TypeError, "timeout: seconds are needed, not str", {"timeout": "1"}),
                (ValueError, "timeout: 0 to inf seconds, not nan", {"timeout": float("nan")})):
            self.refused(kind, words, read, self.remote, self.local, **options)
        self.refused(ValueError, "offset: .* multiple of 8", add, self.remote, 1, offset=4)
        self.refused(ValueError, "remote: an atomic works on 8 bytes, and it has 7", add,
                     self.remote._replace(length=7), 1)
        self.refused(TypeError, "timeout: ", add, self.remote, 1, timeout="x")
        for kind, words, args, options in (
                (TypeError, "peer: an address", (5,), {}), (ValueError, "peer: ", ("",), {}),
                (ValueError, "peer: ", ("a\0b",), {}), (ValueError, "peer: ", ("x",), {}),
                (ValueError, "service: 0 to 65535, not 65536", (PEER, 65536), {}),
                (ValueError, "depth: 1 to 1024, not 0", (PEER,), {"depth": 0}),
                (ValueError, "timeout: 0.001 to 60 seconds, not 61", (PEER,), {"timeout": 61}),
                (TypeError, "timeout: seconds are needed", (PEER,), {"timeout": None})):
            self.refused(kind, words, self.node.queue, *args, **options)
        with krcore.Node() as other, other.region(bytearray(9)) as foreign:
            self.refused(ValueError, "local: a region of another node", read, self.remote, foreign)
        self.assertFalse(self.node._tickets)

    def test_what_is_closed_is_not_used(self):
        self.local.close()
        self.refused(ValueError, "local: the region is closed", self.queue.read, self.remote,
                     self.local)
        self.queue.close()
        self.queue.close()
        self.assertTrue(self.queue.closed)
        for call in (self.queue.info, self.queue.connect, self.queue.__enter__):
            self.refused(ValueError, "the queue is closed", call)
        self.refused(ValueError, "the queue is closed", self.queue.fetch_add, self.remote, 1)
        queue, region = self.node.queue(PEER), self.node.region(bytearray(9))
        self.node.close()
        self.node.close()
        self.assertTrue(queue.closed and region.closed and self.node.closed)
        for call in (queue.info, self.node.fileno, self.node.info, self.node.ports,
                     self.node.__enter__):
            self.refused(ValueError, "the node is closed", call)
        self.refused(ValueError, "the node is closed", self.node.region, bytearray(1))
        self.refused(ValueError, "the node is closed", self.node.queue, PEER)
        self.refused(ValueError, "the node is closed", queue.fetch_add, self.remote, 1)
        queue.close()
        region.close()
        self.assertFalse(self.fake.nodes)

    def test_a_request_fails(self):
        for status, kind, words in ((-errno.EREMOTEIO, krcore.Error, "the peer refused"),
                                    (-errno.ETIMEDOUT, TimeoutError, "does not answer"),
                                    (-errno.EREMCHG, krcore.Error, "may or may not")):
            self.fake.status = status
            error = self.refused(kind, f"READ of 64 bytes, {PEER}: .*{words}", self.queue.read,
                                 self.remote, self.local)
            self.assertEqual((error.errno, isinstance(error, krcore.Error)), (-status, True))
        self.fake.results["krcore_post_wait"] = [-errno.ENOTCONN]
        error = self.refused(krcore.Error, "as the fake says", self.queue.fetch_add, self.remote, 1)
        self.assertEqual(error.errno, errno.ENOTCONN)
        self.assertFalse(self.node._tickets)
        self.assertEqual(len(self.node._words._free), 512)

    def test_a_request_takes_too_long(self):
        self.fake.held = []
        error = self.refused(TimeoutError, "not done after 0.02 s, and still under way",
                             self.queue.fetch_add, self.remote, 1, timeout=0.02)
        self.assertEqual(error.errno, errno.ETIMEDOUT)
        # its memory is not another's before it is completed
        self.assertEqual((len(self.node._tickets), len(self.node._words._free)), (1, 511))
        self.fake.release(self.node._handle)
        self.queue.read(self.remote, self.local)
        self.assertEqual((len(self.node._tickets), len(self.node._words._free)), (0, 512))

    def test_a_time_limit_holds_while_others_are_busy(self):
        def wait(handle, *_):
            waits.append(0)
            if len(waits) > 10000:
                raise AssertionError("it waits on")
            self.fake.complete(handle, 1 << 40)
            self.fake.release(handle)
            self.fake.held = []
            return 0

        waits, self.fake.held = [], []
        self.fake.krcore_post_wait = lambda *_: 1
        self.fake.install()
        python_fake.put("krcore_wait", wait)
        self.refused(TimeoutError, "still under way", self.queue.read, self.remote, self.local,
                     timeout=0.01)

    def test_a_full_queue_is_waited_for(self):
        self.fake.held, self.fake.depth = [], 1
        self.refused(TimeoutError, "", self.queue.read, self.remote, self.local, timeout=0)
        self.refused(BlockingIOError, "as the fake says", self.queue.read, self.remote, self.local,
                     timeout=0.02)
        timer = threading.Timer(0.05, self.fake.release, [self.node._handle])
        timer.start()
        self.queue.read(self.remote, self.local)
        self.ends(timer)
        self.assertFalse(self.node._tickets)

    def test_threads_get_what_is_theirs(self):
        word, wrong = ctypes.c_uint64.from_buffer(self.there, 0), []
        word.value, seen = 0, []

        def work():
            try:
                own = bytearray(8)
                with self.node.region(own) as region:
                    for _ in range(100):
                        seen.append(self.queue.fetch_add(self.remote, 1))
                        self.queue.read(self.remote, region, 8)
            except Exception as error:  # noqa: BLE001
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        self.ends(*threads)
        self.assertEqual((wrong, sorted(seen)), ([], list(range(800))))
        self.assertFalse(self.node._tickets or self.node._users)

    def test_close_waits_for_calls_and_ends_them(self):
        self.fake.held, ended = [], []

        def work():
            try:
                self.queue.read(self.remote, self.local, timeout=None)
            except ValueError as error:
                ended.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        self.until(lambda: len(self.fake.held) == 3)
        self.node.close()
        self.assertFalse(self.fake.nodes)
        self.ends(*threads)
        self.assertEqual(ended, ["the node is closed"] * 3)
        self.here.extend(b"x")

    def test_no_request_uses_another_region_of_its_handle(self):
        def post(handle, queue, wr, nr, error):
            slow.set()
            time.sleep(0.05)
            went.append(wr._obj.local_mr in self.handle.regions)
            return self.fake.krcore_post_wait(handle, queue, wr, nr, error)

        went, slow = [], threading.Event()
        python_fake.put("krcore_post_wait", post)
        thread = threading.Thread(target=self.queue.read, args=[self.remote, self.local])
        thread.start()
        slow.wait(30)
        self.local.close()
        self.ends(thread)
        self.assertEqual(went, [True])

    def test_a_region_that_closes_before_a_request_is_posted(self):
        def wait(*_):       # between the two attempts to post it
            closed.close()
            return -errno.ETIMEDOUT

        closed = self.node.region(bytearray(64))
        self.fake.results["krcore_post_wait"] = [-errno.EAGAIN]
        python_fake.put("krcore_wait", wait)
        self.refused(krcore.Closed, "the region is closed", self.queue.read, self.remote, closed,
                     timeout=0.02)
        self.fake.install()
        self.assertFalse(self.node._tickets)

    def test_a_region_while_its_node_closes(self):
        def reg(*args):
            closer.start()
            self.until(lambda: self.node.closed)
            return self.fake.krcore_mr_reg(*args)

        data, closer = bytearray(9), threading.Thread(target=self.node.close)
        python_fake.put("krcore_mr_reg", reg)
        self.refused(krcore.Closed, "the node is closed", self.node.region, data)
        self.ends(closer)
        data.extend(b"x")
        self.assertFalse(self.fake.nodes)

    def test_nothing_may_write_to_memory_when_the_node_closes(self):
        with krcore.Node() as other, other.listen(600) as listener:
            thread = threading.Thread(target=listener.accept)
            thread.start()
            self.node.connect(PEER, 600)
            self.fake.held, self.fake.said = [], []
            self.refused(TimeoutError, "still under way", self.queue.read, self.remote, self.local,
                         timeout=0.01)
            self.node.queue(PEER).close()
            self.assertEqual(len(self.node._queues), 1)
            self.node.close()       # the fake looks whether a region is left
            self.assertEqual(self.fake.said, [
                "krcore_queue_open", "krcore_queue_close", "krcore_shutdown", "krcore_queue_close",
                "krcore_mr_dereg_many", "krcore_node_close"])
            self.here.extend(b"x")
            self.there.extend(b"x")
            self.ends(thread)

    def test_all_regions_are_taken_back_though_some_are_gone(self):
        regions = [self.node.region(bytearray(9)) for _ in range(9)]
        self.fake.results["krcore_mr_dereg_many"] = [-errno.ENOMEM]
        for region in regions[::3]:
            self.fake.krcore_mr_dereg(self.node._handle, ctypes.byref(region._mr))
        self.node.close()

    def test_a_signal_while_the_node_closes(self):
        def dereg(*args):
            self.fake.install()
            self.fake.krcore_mr_dereg_many(*args)
            raise KeyboardInterrupt

        python_fake.put("krcore_mr_dereg_many", dereg)
        self.assertRaises(KeyboardInterrupt, self.node.close)
        self.assertTrue(self.node.closed)
        self.refused(BufferError, "", self.here.extend, b"x")
        self.node.close()
        self.assertFalse(self.fake.nodes)
        self.here.extend(b"x")

    def test_fetch(self):
        self.assertEqual(krcore.fetch(self.remote), self.there)
        self.assertEqual(len(self.fake.nodes), 1)
        self.fake.status = -errno.EREMOTEIO
        self.refused(krcore.Error, "the peer refused", krcore.fetch, self.remote)
        self.fake.held, self.fake.said = [], []
        self.refused(TimeoutError, "not done in time", krcore.fetch, self.remote, timeout=0.01)
        self.assertEqual(self.fake.said, ["krcore_queue_close", "krcore_mr_dereg",
                                          "krcore_node_close"])
        self.assertEqual(len(self.fake.nodes), 1)

    def test_a_signal_behind_the_start_of_fetch(self):
        def start():
            raise KeyboardInterrupt

        self.fake.after_start = start
        self.assertRaises(KeyboardInterrupt, krcore.fetch, self.remote)
        self.assertEqual(len(self.fake.nodes), 1)

    def test_no_request_gets_into_another_queue_of_its_number(self):
        went = []

        def post(handle, queue, wr, nr, error):
            slow.set()
            time.sleep(0.05)
            went.append(queue in self.handle.queues)
            return self.fake.krcore_post_wait(handle, queue, wr, nr, error)

        slow = threading.Event()
        python_fake.put("krcore_post_wait", post)
        thread = threading.Thread(target=self.queue.read, args=[self.remote, self.local])
        thread.start()
        slow.wait(30)
        self.queue.close()
        self.ends(thread)
        self.assertEqual(went, [True])
        self.refused(krcore.Closed, "the queue is closed", self.queue.read, self.remote, self.local)
        self.assertFalse(self.node._tickets)

    def test_a_signal_while_a_queue_closes(self):
        def post(*args):
            posting.set()
            go_on.wait(30)
            return self.fake.krcore_post_wait(*args)

        posting, go_on = threading.Event(), threading.Event()
        python_fake.put("krcore_post_wait", post)
        thread = threading.Thread(target=self.queue.read, args=[self.remote, self.local])
        thread.start()
        posting.wait(30)
        with unittest.mock.patch.object(self.node._turn, "wait", side_effect=Signal):
            self.assertRaises(Signal, self.queue.close)
        go_on.set()
        self.ends(thread)
        self.queue.read(self.remote, self.local)    # it is open as before
        self.queue.close()
        self.queue.close()
        self.assertFalse(self.handle.queues or self.node._queues)

    def test_a_signal_ends_a_wait_or_lets_it_go_on(self):
        self.fake.results["krcore_queue_open"] = [-errno.EINTR, -errno.EINTR]
        self.node.queue(PEER).close()
        self.fake.results["krcore_post_wait"] = [-errno.EINTR]
        self.queue.read(self.remote, self.local)
        self.fake.held = []

        def handler(*_):
            raise InterruptedError("the handler")

        def wait(*_):
            signal.raise_signal(signal.SIGALRM)
            return -errno.EINTR

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        python_fake.put("krcore_wait", wait)
        self.refused(InterruptedError, "the handler", self.queue.fetch_add, self.remote, 1,
                     timeout=None)
        self.fake.install()
        self.assertEqual((len(self.node._tickets), len(self.node._words._free)), (1, 511))
        self.fake.release(self.node._handle)
        self.queue.read(self.remote, self.local)
        self.assertEqual(len(self.node._words._free), 512)

    def test_a_child_leaves_what_its_parent_has(self):
        reading, writing = os.pipe()
        locked, forked = threading.Event(), threading.Event()

        def lock():     # as a thread does that the child does not have
            with self.node._turn:
                locked.set()
                forked.wait()

        thread = threading.Thread(target=lock)
        thread.start()
        locked.wait()
        child = os.fork()
        if not child:
            signal.alarm(20)
            said = [len(self.fake.nodes)]
            for call in (self.local.close, self.queue.close, self.node.fileno, self.node.close):
                try:
                    call()
                except ValueError as error:
                    said.append(str(error))
            os.write(writing, repr((said, self.fake.said[-1])).encode())
            os._exit(0)
        forked.set()
        self.ends(thread)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(os.read(reading, 1000).decode(), repr((
            [0, "the node belongs to the process that opened it, not to its child"],
            "krcore_node_close")))
        os.close(reading)
        os.close(writing)
        self.queue.read(self.remote, self.local)

    def test_a_node_that_is_forgotten_is_closed(self):
        node = krcore.Node()
        node.region(bytearray(9))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del node
            gc.collect()
        self.assertIn("was not closed", str(caught[0].message))
        self.assertEqual(len(self.fake.nodes), 1)

    def test_a_signal_while_completions_are_handed_out(self):
        def post(*args):
            self.fake.krcore_post_wait(*args)
            raise Signal

        rounds = 0
        word = ctypes.c_uint64.from_buffer(self.there, 0)
        ends = interrupted(lambda: self.node._take(self.node._handle), "_end", "free")
        while True:
            python_fake.put("krcore_post_wait", post)
            word.value = rounds
            for _ in range(3):
                self.assertRaises(Signal, self.queue.fetch_add, self.remote, 1)
            self.fake.install()
            tickets = list(self.node._tickets.values())
            if next(ends, self) is self:
                break
            self.node._take(self.node._handle)
            self.assertEqual([ticket.value for ticket in tickets], [rounds, rounds + 1, rounds + 2])
            self.assertEqual((len(self.node._tickets), len(self.node._words._free)), (0, 512))
            rounds += 1
        self.assertGreater(rounds, 100)

    def test_errors_can_be_pickled(self):
        self.fake.status = -errno.ETIMEDOUT
        error = self.refused(krcore.Error, "", self.queue.read, self.remote, self.local)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((again.errno, again.strerror, isinstance(again, TimeoutError)),
                         (error.errno, error.strerror, True))


class Messages(Case):
    """Listeners and connections, from one node to another of this process."""

    def setUp(self):
        super().setUp()
        self.other = krcore.Node()
        self.addCleanup(self.other.close)

    def pair(self, **options):
        """Both ends of a connection."""
        listener = self.node.listen(600)
        self.addCleanup(listener.close)
        ends = []
        thread = threading.Thread(target=lambda: ends.append(
            listener.accept(user=b"welcome", timeout=20)))
        thread.start()
        connection = self.other.connect(PEER, 600, **options)
        self.ends(thread)
        return ends[0], connection

    def test_both_ways(self):
        server, client = self.pair(user=b"hello")
        self.assertEqual((server.peer.user, client.peer.user), (b"hello", b"welcome"))
        self.assertEqual(server.peer.address, PEER)
        for data in (b"one", bytearray(b"two"), memoryview(b"three"), b"", b"x" * 4032):
            client.send(data)
            self.assertEqual(server.recv(timeout=5), bytes(data))
            server.send(data)
            self.assertEqual(client.recv(timeout=5), bytes(data))
        for number in range(200):
            client.send(b"%d" % number)
        client.shutdown()
        self.assertEqual([int(message) for message in server], list(range(200)))
        self.assertIsNone(server.recv())
        self.refused(TimeoutError, "no message came in time", client.recv, timeout=0.01)
        server.close()
        self.refused(ConnectionResetError, "program or node has ended", client.recv)
        self.refused(ConnectionResetError, "as the fake says", client.send, b"x")
        client.close()
        client.close()
        for call in (client.recv, client.shutdown, client.__enter__):
            self.refused(ValueError, "the connection is closed", call)
        self.refused(ValueError, "the connection is closed", client.send, b"x")
        self.assertFalse(self.other._inbox._connections or self.other._inbox._early)

    def test_what_comes_for_others_is_kept(self):
        first, second = self.pair()
        listener = self.node.listen(601)
        third = threading.Thread(target=lambda: self.other.connect(PEER, 601).send(b"late"))
        third.start()
        with listener.accept() as fourth:
            second.send(b"early")
            self.assertEqual(fourth.recv(), b"late")
            self.assertEqual(first.recv(), b"early")
        self.ends(third)

    def test_what_comes_before_connect_has_returned(self):
        server, client = self.pair()
        listener = self.node.listen(601)
        taker = threading.Thread(target=client.recv)    # takes letters of others meanwhile
        taker.start()

        def accept():
            listener.accept().send(b"early")
            self.until(lambda: sum(map(len, self.other._inbox._early.values())) == 2)

        self.fake.after_connect = accept
        with self.other.connect(PEER, 601) as third:
            self.assertEqual(third.recv(timeout=5), b"early")
        server.send(b"end")
        self.ends(taker)
        self.assertFalse(self.other._inbox._early)

    def test_large_ones(self):
        server, client = self.pair()
        data = bytearray(b"0123456789" * 1000)
        region = self.other.region(data, message=True)

        def receive():
            large = server.recv()
            self.assertEqual(len(large), 10000)
            got.append(large.read())
            got.append(server.recv().discard())

        got = []
        thread = threading.Thread(target=receive)
        thread.start()
        client.send_large(region)
        error = self.refused(krcore.Error, "the peer did not want it", client.send_large, region,
                             10, offset=5)
        self.assertEqual(error.errno, errno.ENOMSG)
        self.ends(thread)
        self.assertEqual(got, [data, None])
        self.refused(TimeoutError, "not done after 0.01 s, and taken back", client.send_large,
                     region, timeout=0.01)
        large = server.recv()
        self.refused(ValueError, "most: the message has 10000 bytes", large.read, most=9)
        server.close()
        self.refused(ValueError, "the connection is closed", large.discard)
        self.refused(ValueError, "the connection is closed", large.read)

    def test_arguments(self):
        server, client = self.pair()
        self.refused(ValueError, "data: at most 4032 bytes, not 4033", client.send, bytes(4033))
        self.refused(TypeError, "data: an object with bytes is needed, not str", client.send, "x")
        self.refused(TypeError, "local: a Region is needed", client.send_large, b"x")
        self.refused(TypeError, "timeout: ", server.recv, timeout="x")
        for kind, words, call, args, options in (
                (ValueError, "service: 256 to 65535, not 255", self.node.bind, (255,), {}),
                (ValueError, "service: 256 to 65535, not 255", self.node.listen, (255,), {}),
                (ValueError, "service: 256 to 65535, not 1", self.node.connect, (PEER, 1), {}),
                (ValueError, "backlog: 1 to 1024, not 0", self.node.listen, (601,),
                 {"backlog": 0}),
                (ValueError, "user: at most 32 bytes", self.node.connect, (PEER, 600),
                 {"user": bytes(33)})):
            self.refused(kind, words, call, *args, **options)
        error = self.refused(FileNotFoundError, "as the fake says", self.other.connect, PEER, 777)
        self.assertIsInstance(error, krcore.Error)
        error = self.refused(krcore.Error, "as the fake says", self.node.listen, 600)
        self.assertEqual(error.errno, errno.EADDRINUSE)
        with self.node.bind(700):
            self.refused(krcore.Error, "as the fake says", self.node.bind, 700)
        self.node.bind(700).close()

    def test_offers_end_with_their_listener(self):
        listener, said = self.node.listen(600), []

        def connect():
            try:
                self.other.connect(PEER, 600)
            except ConnectionRefusedError as error:
                said.append(str(error))
            except ConnectionResetError as error:
                said.append(str(error))

        self.refused(TimeoutError, "service 600: nobody came", listener.accept, timeout=0.01)
        thread = threading.Thread(target=connect)
        thread.start()
        while not listener._offers:
            self.node._await(lambda: listener._offers, krcore._node.Deadline(0.1), letters=True)
        listener.close()
        listener.close()
        self.ends(thread)
        self.assertEqual(len(said), 1)
        self.refused(ValueError, "the listener is closed", listener.accept)

    def test_a_signal_while_letters_are_handed_out(self):
        server, client = self.pair()
        inbox, handle = self.node._inbox, self.node._handle
        with self.node.listen(601) as listener:
            rounds = 0
            takes = interrupted(lambda: inbox.take(handle), "_take", "_read", "_hand_out", "_peer")
            while True:
                number = ctypes.c_uint32()
                key = krcore._region.key_of(PEER, 601)
                self.fake.krcore_connect(self.other._handle, ctypes.byref(key),
                                         ctypes.byref(krcore._message._options(b"me", 1)),
                                         ctypes.byref(number))
                for word in range(3):
                    client.send(b"%d" % word)
                if next(takes, self) is self:
                    break
                inbox.take(handle)
                self.assertEqual([server.recv(timeout=0) for _ in range(len(server._letters))],
                                 [b"0", b"1", b"2"])
                self.assertEqual([came.peer.user for came in listener._offers], [b"me"])
                listener._offers.popleft().connection.abort()
                rounds += 1
        self.assertGreater(rounds, 200)

    def test_a_listener_that_closes_behind_a_signal(self):
        def signal_first(*_):
            krcore._message.move = move
            raise Signal

        listener, said = self.node.listen(600), []

        def connect():
            try:
                self.other.connect(PEER, 600)
            except ConnectionRefusedError as error:
                said.append(error)

        thread = threading.Thread(target=connect)
        thread.start()
        self.until(lambda: self.handle.letters)
        move, krcore._message.move = krcore._message.move, signal_first
        self.assertRaises(Signal, self.node._inbox.take, self.node._handle)
        listener.close()
        self.node._inbox.take(self.node._handle)
        self.ends(thread)
        self.assertEqual(len(said), 1)
        self.assertFalse(self.node._inbox._connections)

    def test_no_more_is_kept_than_fits(self):
        server, client = self.pair()
        most, krcore._message.KEPT_MAX = krcore._message.KEPT_MAX, 100
        self.addCleanup(setattr, krcore._message, "KEPT_MAX", most)
        for word in range(100):
            client.send(b"%d" % word)
        self.node._await(lambda: len(server._letters) == 100, krcore._node.Deadline(20), True)
        self.assertEqual(server.recv(), b"0")
        client.send(b"100")
        client.send(b"too much")
        self.node._await(lambda: server.closed, krcore._node.Deadline(20), letters=True)
        error = self.refused(krcore.Error, "aborted, as 100 messages waited for recv", server.recv)
        self.assertEqual(error.errno, errno.ENOBUFS)
        self.refused(krcore.Error, "aborted, as 100 messages", server.send, b"x")
        server.close()
        self.refused(ConnectionResetError, "has ended", client.recv, timeout=20)
        self.assertFalse(self.node._inbox._connections or server._letters)

    def test_a_signal_behind_connect_and_accept(self):
        def after(function):
            def call(*args):
                self.fake.install()
                result = function(*args)
                raise Signal if result == 0 else AssertionError
            return call

        listener = self.node.listen(600)
        python_fake.put("krcore_connect", after(self.fake.krcore_connect))
        self.assertRaises(Signal, self.other.connect, PEER, 600)
        self.assertFalse(self.fake.peers or self.other._inbox._connections)
        self.handle.letters.clear()
        said = []

        def connect():
            try:
                self.other.connect(PEER, 600).recv()
            except ConnectionResetError as error:
                said.append(error)

        python_fake.put("krcore_accept", after(self.fake.krcore_accept))
        thread = threading.Thread(target=connect)
        thread.start()
        self.assertRaises(Signal, listener.accept, timeout=20)
        self.ends(thread)
        self.assertEqual(len(said), 1)
        self.assertFalse(self.fake.peers or self.node._inbox._connections)
        python_fake.put("krcore_queue_open", after(self.fake.krcore_queue_open))
        self.assertRaises(Signal, self.node.queue, PEER)
        self.assertFalse(self.handle.queues or self.node._queues)

    def test_a_signal_in_accept_and_shutdown(self):
        self.fake.results = {"krcore_accept": [-errno.EINTR] * 2,
                             "krcore_shutdown": [-errno.EINTR] * 2}
        server, client = self.pair()
        self.fake.results = {"krcore_cancel": [-errno.EINTR], "krcore_discard": [-errno.EINTR]}
        with self.other.region(bytearray(9), message=True) as region:
            self.refused(TimeoutError, "and taken back", client.send_large, region, timeout=0.01)
        server.recv(timeout=20).discard()
        server.close()
        self.refused(ConnectionResetError, "has ended", client.recv, timeout=20)
        listener = self.node.listen(602)
        thread = threading.Thread(target=listener.accept)
        thread.start()
        last = self.other.connect(PEER, 602)
        self.ends(thread)
        self.fake.results = {"krcore_shutdown": [-errno.EINTR]}
        self.node.close()
        self.refused(ConnectionResetError, "has ended", last.recv, timeout=20)

    def test_a_service_that_cannot_be_taken_back_yet(self):
        listener = self.node.listen(600)
        self.fake.results["krcore_unbind"] = [-errno.EBUSY]
        self.refused(krcore.Error, "as the fake says", listener.close)
        self.assertNotIn("closed", repr(listener))
        listener.close()
        self.assertIn("closed", repr(listener))
        self.assertFalse(self.handle.listening)

    def test_a_service_that_is_listened_to_anew(self):
        first = self.node.listen(600)

        def unbind(*args):      # before the first one is forgotten
            self.fake.install()
            self.fake.krcore_unbind(*args)
            listeners.append(self.node.listen(600))
            return 0

        listeners = []
        python_fake.put("krcore_unbind", unbind)
        first.close()
        thread = threading.Thread(target=self.other.connect, args=[PEER, 600])
        thread.start()
        listeners[0].accept(timeout=20)
        self.ends(thread)

    def test_nobody_accepts(self):
        with self.node.listen(600):
            self.refused(TimeoutError, "has not accepted in time", self.other.connect, PEER, 600,
                         timeout=0.02)
        self.assertFalse(self.other._inbox._connections)


if __name__ == "__main__":
    unittest.main()
