# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Requests that are pushed through the register of their doorbell.

Owns: the tests of property `blueflame`.  A part of test_model.py.
"""
import struct

from case import ModelTest
from cxdrv import BAR, Cq, Mr, Qp, data, dc_av, make_dct, make_rmp, raddr, wait_for

NOP, WRITE, READ = 0x0, 0x8, 0x10
REQ = 0
KEY = 0x1122334455667788
BUFFER = 0x100
SIGNALED = 8


class BlueFlame(ModelTest):
    """What is taken from the register, and what from memory."""

    def setUp(self):
        self.d = self.driver(blueflame="on")
        self.src, self.dst, self.half = Mr(self.d), Mr(self.d), 0
        self.q = self.initiator()

    def initiator(self):
        self.dctn = make_dct(self.d, Cq(self.d), make_rmp(self.d), KEY)
        q = Qp(self.d, 5, **{"qpc.rq_type": 3})
        q.connect(sra=0)
        return q

    def write(self, size, **kw):
        """Put a WRITE of so many bytes into the queue, but for its doorbell."""
        self.q.post(WRITE, dc_av(self.dctn, KEY) + raddr(self.dst.addr, self.dst.key)
                    + data(self.src.addr, size, self.src.key), ring=False, **kw)
        self.q.record(self.q.pi)

    def last(self, blocks=2):
        """The last request in memory."""
        return b"".join(self.d.read(self.q.ring_at(self.q.pi - blocks + i), 64)
                        for i in range(blocks))

    def push(self, raw, at=0):
        """Write a request, or a part of one, to a register of the page; each time the other."""
        self.half ^= 0 if at else BUFFER
        self.d.write(BAR + self.d.uar * 4096 + 0x800 + self.half + at, raw)
        self.d.settle()

    def known(self):
        """The first request that is pushed makes the register known."""
        self.write(8)
        self.push(self.last())
        self.assertEqual(self.done(), 8)

    def done(self):
        """Bytes of the next request that completes; none fails here."""
        op, syndrome, _, size = wait_for(lambda: (self.d.settle(), self.q.cq.poll())[1])
        self.assertEqual((op, syndrome), (REQ, 0))
        return size

    def drop(self):
        """Forget what has completed: a part that came 10 ms before it was cut short is done."""
        self.d.settle()
        while self.q.cq.poll():
            pass

    def counted(self, **wanted):
        counters = self.d.counters()
        self.assertEqual({k: counters[k] for k in wanted}, wanted)
        self.assertEqual((counters["doorbells_odd"], counters["doorbells_refused"]), (0, 0))

    def test_register_not_memory(self):
        """What is in the register is executed, if the device does not look into memory."""
        self.known()
        self.counted(blueflame=0, blueflame_parts=1, blueflame_differs=0)
        for n in range(40):     # across the end of the queue
            self.write(8 + n)
            self.push(self.last())
            self.assertEqual(self.done(), 8 + n)
        self.counted(blueflame=40, blueflame_parts=1, blueflame_differs=0, doorbells=41)
        self.write(100)
        other = bytearray(self.last())
        other[80:84] = struct.pack(">I", 200)
        self.push(other)
        self.assertEqual(self.done(), 200)
        self.counted(blueflame=41, blueflame_differs=1)

    def test_as_mlx5_ib_tests_it(self):
        """Requests that complete only if their copy in the register is the one that is read."""
        self.known()
        for _ in range(8):
            self.q.post(NOP, signaled=False, ring=False)
            self.q.record(self.q.pi)
            raw = bytearray(self.last(1))
            raw[11] |= SIGNALED
            self.push(raw)
        self.assertEqual([self.done() for _ in range(8)], [0] * 8)
        self.counted(blueflame=8, blueflame_differs=8)
        self.d.set("writes_apart", True)
        self.q.post(NOP, signaled=False, ring=False)
        self.q.record(self.q.pi)
        raw = bytearray(self.last(1))
        raw[11] |= SIGNALED
        self.push(raw)
        self.q.post(NOP)
        self.assertEqual(self.done(), 0)
        self.assertIsNone(self.q.cq.poll())
        self.counted(blueflame=8, blueflame_parts=2)

    def test_not_alone(self):
        """One that was posted behind another is taken from memory, as is the other."""
        self.known()
        self.write(16)
        self.write(24)
        self.push(self.last())
        self.assertEqual([self.done(), self.done()], [16, 24])
        self.counted(blueflame=0, blueflame_parts=2)

    def test_doorbell_alone(self):
        """No more than a doorbell, or a part of the request, comes: it is read from memory."""
        self.known()
        self.write(16)
        self.push(self.last()[:8])
        self.assertEqual(self.done(), 16)
        self.counted(blueflame=0, blueflame_parts=1)
        self.write(24)
        self.push(self.last()[:72])
        self.assertEqual(self.done(), 24)
        self.counted(blueflame=0, blueflame_parts=2)
        self.write(32)
        self.push(self.last()[:8])
        self.push(self.last()[8:], at=8)    # it may be whole in time
        self.assertEqual(self.done(), 32)

    def test_hole(self):
        """What does not follow is refused; the request is read from memory."""
        self.known()
        self.write(16)
        self.push(self.last()[:8])
        self.push(b"\xff" * 8, at=16)
        self.assertEqual(self.done(), 16)
        self.assertEqual(self.d.counters()["doorbells_refused"], 1)
        self.push(b"\xff" * 8, at=128)
        self.assertEqual(self.d.counters()["doorbells_refused"], 2)
        self.assertIsNone(self.q.cq.poll())

    def test_forgotten_by_a_reset(self):
        """What was pushed and waits is not executed in the queue's next life."""
        self.known()
        self.d.set("loss_ppm", 1000000)
        for _ in range(2):      # one is under way, the other waits for it
            self.q.post(READ, dc_av(self.dctn, KEY) + raddr(self.dst.addr, self.dst.key)
                        + data(self.src.addr, 8, self.src.key))
        self.write(300)
        self.push(self.last())
        self.q.reset()
        self.d.set("loss_ppm", 0)
        self.q.connect()
        for n in range(8):
            self.q.post(NOP)
            self.assertEqual(self.done(), 0, n)
        self.counted(blueflame=0)

    def test_queue_that_goes(self):
        """A queue is destroyed while a request comes in parts."""
        self.known()
        self.write(16)
        self.push(self.last()[:72])
        self.d.cmd("DESTROY_QP", {"qpn": self.q.num})
        self.d.step(15)
        self.push(b"\0" * 56, at=72)
        self.counted(blueflame=0)
        self.q = self.initiator()
        self.known()

    def test_device_that_fails(self):
        """It does nothing more, whatever it was given before."""
        self.known()
        self.write(16)
        self.push(self.last()[:72])
        self.d.set("failed", True)
        self.drop()
        self.d.step(15)
        self.push(self.last()[72:], at=72)
        self.assertIsNone(self.q.cq.poll())

    def test_two_registers(self):
        """A doorbell alone, and a request that is pushed through the other register before that
        was given up: both are done, in order."""
        self.known()
        for n in range(10):
            self.write(16 + n)
            self.push(self.last()[:8])
            self.write(64 + n)
            self.push(self.last())
            self.assertEqual([self.done(), self.done()], [16 + n, 64 + n])
        self.counted(blueflame_differs=0)

    def test_reset_meanwhile(self):
        """What comes of a request of the queue's life before is not executed in the next one."""
        self.known()
        self.write(300)
        raw = self.last()
        self.push(raw[:64])
        self.q.reset()
        self.drop()
        self.q.connect()
        self.push(raw[64:], at=64)
        self.write(8)
        self.push(self.last())
        self.assertEqual(self.done(), 8)
        self.d.step(15)
        self.assertIsNone(self.q.cq.poll())
        self.assertEqual(self.d.counters()["blueflame_differs"], 0)

    def test_long(self):
        """One that is longer than the register is rung for, and read from memory at once."""
        self.known()
        sges = [data(self.src.addr, 8, self.src.key)] * 12     # 16 + 48 + 16 + 192 bytes
        self.q.post(WRITE, dc_av(self.dctn, KEY) + raddr(self.dst.addr, self.dst.key)
                    + b"".join(sges), ring=False)
        self.q.record(self.q.pi)
        self.push(self.last(5)[:8])
        self.assertEqual(self.done(), 96)
        self.counted(blueflame=0, blueflame_parts=1)

    def test_device_without(self):
        """It says so, and refuses what is behind a doorbell."""
        self.assertEqual(self.d.capability("bf"), 1)
        self.d = self.driver()
        self.assertEqual(self.d.capability("bf"), 0)
        self.src, self.dst, self.q = Mr(self.d), Mr(self.d), self.initiator()
        self.write(8)
        self.push(self.last())
        self.assertEqual(self.done(), 8)
        counters = self.d.counters()
        self.assertEqual((counters["blueflame"], counters["doorbells_refused"]), (0, 15))
