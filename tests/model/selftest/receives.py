# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Receive requests that the card forgets, and what still tells of it.

Owns: the tests of the fault `drop_receives`.  A part of test_model.py.
"""
from case import ModelTest
from cxdrv import Cq, Mr, Qp, Rmp, data, dc_av, make_dct, wait_for

SEND, REQ, RECV, REQ_ERR, RNR_EXC = 0xa, 0, 2, 13, 0x16
KEY = 0x1122334455667788


class LostReceives(ModelTest):
    """Posted receive requests that the card forgets."""

    POSTED, LOST, LIMIT, SRQ_LIMIT = 10, 8, 4, 0x14

    def setUp(self):
        self.d = d = self.driver()
        # the queue that has the most is the one in the middle
        self.few, self.rmp, self.none = (Rmp(d) for _ in range(3))
        self.src, self.dst, self.cq = Mr(d), Mr(d), Cq(d)
        self.few.recv(self.dst.addr, 8, self.dst.key)
        for n in range(self.POSTED):
            self.rmp.recv(self.dst.addr + 8 * n, 8, self.dst.key)
        self.dctn = make_dct(d, self.cq, self.rmp.num, KEY)
        self.i = Qp(d, 5, **{"qpc.rq_type": 3})
        self.i.connect(rnr=0)

    def limits_told(self):
        return [t for t, _, _ in self.d.events()].count(self.SRQ_LIMIT)

    def send(self, text):
        self.d.write(self.src.addr, text)
        self.i.post(SEND, dc_av(self.dctn, KEY) + data(self.src.addr, 8, self.src.key))
        return wait_for(lambda: (self.d.settle(), self.i.cq.poll())[1])[:2]

    def test_forgotten(self):
        """They never complete; the next message finds the entry behind them, and then the limit
        is told of."""
        self.rmp.limit(self.LIMIT)
        self.d.set("drop_receives", self.LOST)
        self.assertEqual((self.limits_told(), self.cq.poll()), (0, None))
        for n in range(self.LOST, self.POSTED):
            text = b"number %d" % n
            self.assertEqual(self.send(text), (REQ, 0))
            self.assertEqual(self.cq.poll(), (RECV, 0, n, 8))
            self.assertEqual(self.d.read(self.dst.addr + 8 * n, 8), text)
            self.assertEqual(self.limits_told(), n == self.LOST)
        self.assertEqual(self.d.read(self.dst.addr, 8 * self.LOST), b"\0" * 8 * self.LOST)
        self.assertEqual(self.d.counters()["fault_receives"], self.LOST)
        self.assertEqual(self.send(b"too many"), (REQ_ERR, RNR_EXC))

    def test_more_than_there_are(self):
        """No queue has so many: none is forgotten."""
        with self.assertRaises(ValueError) as caught:
            self.d.set("drop_receives", self.POSTED + 1)
        self.assertIn("no shared receive queue has 11 entries", str(caught.exception))
        self.assertEqual(self.send(b"a number"), (REQ, 0))
        self.assertEqual(self.cq.poll(), (RECV, 0, 0, 8))
        self.assertEqual(self.d.counters()["fault_receives"], 0)
        with self.assertRaises(ValueError):
            self.driver().set("drop_receives", 1)
