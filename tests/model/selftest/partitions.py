# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Which node reaches which on an InfiniBand port, and which does not.

Owns: the tests of the table of P_Keys and of what is dropped for its P_Key, or
for want of a GRH: of DC, of reliable connections, of datagrams.  A part of
test_model.py.
"""
import struct

from case import ModelTest
from cxdrv import Cq, Mr, Qp, data, dc_av, make_dct, make_rmp, raddr, wait_for

WRITE, SEND = 0x8, 0xa
REQ, RECV, REQ_ERR = 0, 2, 13
RETRY_EXC = 0x15
KEY = 0x1122334455667788
QKEY = 0x11111111


def tries(reaches):
    """Of a sender: a second a try where an answer comes, little where none does."""
    return {"timeout": 18} if reaches else {"timeout": 1, "retry": 1}


class Partitions(ModelTest):
    """A request reaches a queue of its partition unless both are limited members of it."""

    PKEYS = (0xffff, 0x8001, 0x0001, 0x8000)
    # places in the table of the sender and of the receiver; no place has what cannot reach itself
    REACHES = {(0, 0), (1, 1), (1, 2), (2, 1)}
    PLACES = (0, 1, 2, 3, 77)

    def setUp(self):
        self.d = self.driver(link="ib", timeout_floor_ms=1,
                             pkeys=":".join(f"{key:x}" for key in self.PKEYS))
        self.src, self.dst = Mr(self.d), Mr(self.d)

    def done(self, cq):
        return wait_for(lambda: (self.d.settle(), cq.poll())[1])[:2]

    def dropped(self):
        return self.d.counters()["rdma_rx_bad_pkey"]

    def tries(self, sender, receiver):
        return tries((sender, receiver) in self.REACHES)

    def judge(self, sender, receiver, got):
        """Whether what came of a request is right, and what was dropped was counted."""
        reaches = (sender, receiver) in self.REACHES
        self.assertEqual(got, (REQ, 0) if reaches else (REQ_ERR, RETRY_EXC), (sender, receiver))
        self.assertEqual(self.dropped() > self.before, not reaches, (sender, receiver))

    def write(self, queue, av=b""):
        self.before = self.dropped()
        queue.post(WRITE, av + raddr(self.dst.addr, self.dst.key)
                   + data(self.src.addr, 8, self.src.key))
        return self.done(queue.cq)

    def query(self, index, entries):
        layout = self.d.ifc.encode("query_hca_vport_pkey_in", {
            "opcode": self.d.ifc.opcode["QUERY_HCA_VPORT_PKEY"], "pkey_index": index})
        out = self.d.raw(layout, 16 + 4 * entries)
        return out[0], struct.unpack(f">{entries}I", out[16:16 + 4 * entries])

    def test_table(self):
        """One place, a place that has none, all of them, a place that is not there."""
        for place, key in enumerate(self.PKEYS):
            self.assertEqual(self.query(place, 1), (0, (key,)))
        self.assertEqual(self.query(127, 1), (0, (0,)))
        self.assertEqual(self.query(0xffff, 128), (0, self.PKEYS + (0,) * 124))
        self.assertEqual(self.query(128, 1)[0], 0xa)

    def test_without_the_property(self):
        """The table has the default partition alone."""
        self.d = self.driver(link="ib")
        self.assertEqual(self.query(0xffff, 128), (0, (0xffff,) + (0,) * 127))

    def test_dc(self):
        """A connect to a target of another partition is dropped, and not refused."""
        d, cq, rmp = self.d, Cq(self.d), make_rmp(self.d)
        targets = {place: make_dct(d, cq, rmp, KEY, pkey_index=place) for place in self.PLACES}
        for sender in self.PLACES:
            initiator = Qp(d, 5, cq=cq, **{"qpc.rq_type": 3})
            for receiver, dctn in targets.items():
                initiator.reset()
                initiator.connect(pkey_index=sender, **self.tries(sender, receiver))
                self.judge(sender, receiver,
                           self.write(initiator, dc_av(dctn, KEY, lid=1, grh=False)))
        self.assertEqual(d.counters()["dc_accepted"], len(self.REACHES))
        self.assertEqual(d.counters()["dc_rejected"], 0)

    def test_rc(self):
        """A request to a queue pair of another partition is dropped; its sender waits in vain."""
        a, b = Qp(self.d), Qp(self.d)
        for sender in self.PLACES:
            for receiver in self.PLACES:
                for queue, peer, place in ((a, b, sender), (b, a, receiver)):
                    queue.reset()
                    queue.connect(peer.num, pkey_index=place, **self.tries(sender, receiver))
                self.judge(sender, receiver, self.write(a))

    def test_datagrams(self):
        """One to a queue pair of another partition finds no buffer there, whatever its Q_Key."""
        a, b = Qp(self.d, 2), Qp(self.d, 2)
        av = struct.pack(">IIIBBHI6sBBI16s", QKEY, 0, b.num | 1 << 31, 0, 0, 1, 0, b"", 0, 0, 0,
                         b"")
        for sender in self.PLACES:
            for receiver in self.PLACES:
                for queue, place in ((a, sender), (b, receiver)):
                    queue.reset()
                    queue.connect(pkey_index=place)
                before, reaches = self.dropped(), (sender, receiver) in self.REACHES
                b.recv(self.dst.addr, 4096, self.dst.key)
                a.post(SEND, av + data(self.src.addr, 8, self.src.key))
                self.assertEqual(self.done(a.cq), (REQ, 0))
                self.d.settle()
                self.assertEqual(self.dropped(), before + (not reaches), (sender, receiver))
                if reaches:
                    self.assertEqual(self.done(b.cq), (RECV, 0))
        self.assertEqual(self.d.counters()["rdma_rx_bad_qkey"], 0)

    def test_management(self):
        """QP1 takes what is of any partition of the port, and says of which."""
        a, b = Qp(self.d, 2), Qp(self.d, 8)
        b.connect()
        av = struct.pack(">IIIBBHI6sBBI16s", QKEY, 0, 1 | 1 << 31, 0, 0, 1, 0, b"", 0, 0, 0, b"")
        for place, key in ((0, 0xffff), (1, 0x8001), (2, 0x0001), (3, None), (77, None)):
            a.reset()
            a.connect(pkey_index=place)
            at, before = b.cq.ring + b.cq.ci * 64, self.dropped()
            b.recv(self.dst.addr, 4096, self.dst.key)
            a.post(SEND, av + data(self.src.addr, 8, self.src.key))
            self.assertEqual(self.done(a.cq), (REQ, 0))
            self.d.settle()
            self.assertEqual(self.dropped(), before + (not key), place)
            if key:
                self.assertEqual(self.done(b.cq), (RECV, 0))
                self.assertEqual(struct.unpack(">I", self.d.read(at + 0x24, 4)), (key,))


class GlobalRouting(ModelTest):
    """A port that requires a GRH drops requests without one; no port takes another's GID."""

    OWN = bytes.fromhex("fe800000000000000002c90300000001")
    CONTEXT = "hca_vport_context."

    def start(self, **props):
        self.d = self.driver(link="ib", timeout_floor_ms=1, **props)
        self.src, self.dst = Mr(self.d), Mr(self.d)

    def write(self, queue, av=b""):
        queue.post(WRITE, av + raddr(self.dst.addr, self.dst.key)
                   + data(self.src.addr, 8, self.src.key))
        return wait_for(lambda: (self.d.settle(), queue.cq.poll())[1])[:2]

    def dc(self, grh, gid, reaches=True):
        dctn = make_dct(self.d, Cq(self.d), make_rmp(self.d), KEY)
        initiator = Qp(self.d, 5, **{"qpc.rq_type": 3})
        initiator.connect(**tries(reaches))
        return self.write(initiator, dc_av(dctn, KEY, lid=1, grh=grh, gid=gid))

    def rc(self, grh, gid, reaches=True):
        a, b = Qp(self.d), Qp(self.d)
        for queue, peer in ((a, b), (b, a)):
            queue.connect(peer.num, grh=grh, gid=gid, **tries(reaches))
        return self.write(a)

    def dropped(self, name, how, grh, gid):
        """It is not answered, and this counter says why."""
        before = self.d.counters()[name]
        self.assertEqual(how(grh, gid, reaches=False), (REQ_ERR, RETRY_EXC))
        self.assertGreater(self.d.counters()[name], before)

    def test_required(self):
        self.start(grh_required="on")
        self.assertEqual(self.d.cmd("QUERY_HCA_VPORT_CONTEXT")(self.CONTEXT + "grh_required"), 1)
        for how in (self.dc, self.rc):
            self.assertEqual(how(True, self.OWN), (REQ, 0))
            self.dropped("rdma_rx_no_grh", how, False, self.OWN)

    def test_not_required(self):
        self.start()
        self.assertEqual(self.d.cmd("QUERY_HCA_VPORT_CONTEXT")(self.CONTEXT + "grh_required"), 0)
        for how in (self.dc, self.rc):
            for grh in (True, False):
                self.assertEqual(how(grh, self.OWN), (REQ, 0))
        self.assertEqual(self.d.counters()["rdma_rx_no_grh"], 0)

    def test_another_gid(self):
        """A GRH with the GID of another port is for another; without one, the GID says nothing."""
        self.start()
        for how in (self.dc, self.rc):
            for wrong in (self.OWN[:15] + b"\2", bytes(8) + self.OWN[8:]):
                self.dropped("rx_foreign", how, True, wrong)
                self.assertEqual(how(False, wrong), (REQ, 0))
