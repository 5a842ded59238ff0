# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What drivers get away with on a lenient device and not on this one.

Owns: the tests of the path MTU, of connections that a DC target forgot, of
doorbells, of optional parameters and advertised limits, of what an initiator
has to be given, and of slow firmware.
"""
import re
import shutil
import socket
import struct
import tempfile
import time

from case import ModelTest
from cxdrv import Cq, Mr, Qp, data, dc_av, make_dct, make_rmp, raddr, wait_for

NOP, WRITE, SEND, READ, FETCH_ADD = 0x0, 0x8, 0xa, 0x10, 0x12
REQ, REQ_ERR = 0, 13
LOCAL_OP, BAD_RESP, REM_INVAL, REM_ACCESS, RETRY_EXC = 0x02, 0x10, 0x12, 0x13, 0x15
KEY = 0x1122334455667788
DC_CONNECT = 9


def done(drv, queue):
    """How the next request of a queue completed."""
    return wait_for(lambda: (drv.settle(), queue.cq.poll())[1])


class PathMtu(ModelTest):
    """No packet is longer than what its receiver was made for."""

    def setUp(self):
        self.d = self.driver()
        self.src, self.dst = Mr(self.d), Mr(self.d)
        self.payload = bytes(i * 7 % 251 for i in range(3000))
        self.d.write(self.src.addr, self.payload)

    def initiator(self, mtu):
        q = Qp(self.d, 5, **{"qpc.rq_type": 3})
        q.connect(mtu=mtu)
        return q

    def run_one(self, queue, opcode, size, av=b""):
        queue.post(opcode, av + raddr(self.dst.addr, self.dst.key)
                   + data(self.src.addr, size, self.src.key))
        return done(self.d, queue)[:2]

    def test_of_a_target(self):
        """A WRITE in longer packets is an invalid request; the answers to a READ are too short."""
        dctn = make_dct(self.d, Cq(self.d), make_rmp(self.d), KEY, mtu=1)
        av, wide = dc_av(dctn, KEY), self.initiator(3)
        self.assertEqual(self.run_one(wide, WRITE, 256, av), (REQ, 0))
        self.assertEqual(self.run_one(wide, READ, 256, av), (REQ, 0))
        self.d.write(self.dst.addr, b"\0" * 3000)
        self.assertEqual(self.run_one(wide, WRITE, 257, av), (REQ_ERR, REM_INVAL))
        self.assertEqual(self.d.read(self.dst.addr, 3000), b"\0" * 3000)
        wide.reset()
        wide.connect(mtu=3)
        self.assertEqual(self.run_one(wide, READ, 257, av), (REQ_ERR, BAD_RESP))
        self.assertEqual(self.run_one(self.initiator(1), WRITE, 3000, av), (REQ, 0))
        self.assertEqual(self.d.read(self.dst.addr, 3000), self.payload)

    def test_of_an_initiator(self):
        """A target that takes longer packets answers in those of its initiator."""
        dctn = make_dct(self.d, Cq(self.d), make_rmp(self.d), KEY, mtu=5)
        narrow = self.initiator(1)
        for opcode in (WRITE, READ):
            self.assertEqual(self.run_one(narrow, opcode, 3000, dc_av(dctn, KEY)), (REQ, 0))
        self.assertEqual(self.d.read(self.dst.addr, 3000), self.payload)

    def test_of_a_pair(self):
        """RC refuses, UC drops."""
        for service, wanted in ((0, (REQ_ERR, REM_INVAL)), (1, (REQ, 0))):
            a, b = Qp(self.d, service), Qp(self.d, service)
            a.connect(b.num, mtu=3)
            b.connect(a.num, mtu=1)
            self.d.write(self.dst.addr, b"\0" * 1000)
            self.assertEqual(self.run_one(a, WRITE, 1000), wanted)
            self.assertEqual(self.d.read(self.dst.addr, 1000), b"\0" * 1000)


class Forgotten(ModelTest):
    """A DC target that no longer knows an initiator."""

    def setUp(self):
        self.fabric = tempfile.mkdtemp(prefix="cx-fab-")
        self.addCleanup(lambda: shutil.rmtree(self.fabric, ignore_errors=True))

    def nodes(self, **props):
        self.x, self.y = (self.driver(node=n, fabric=self.fabric, timeout_floor_ms=20, **props)
                          for n in (1, 2))
        self.i, self.src = Qp(self.x, 5, **{"qpc.rq_type": 3}), Mr(self.x)
        self.i.connect(timeout=18)     # 1 s a try: enough for a busy machine
        self.memory = self.y.page()
        self.serve()

    def serve(self):
        """Make the target and register its memory, the same each time."""
        d, self.y.next_page = self.y, self.memory
        d.set_gid(0, bytes.fromhex("fe80") + b"\0" * 13 + b"\2", bytes.fromhex("02c903000002"))
        was = d.read(self.memory, 8)
        self.dst = Mr(d)
        d.write(self.memory, was)
        self.dctn = make_dct(d, Cq(d), make_rmp(d), KEY)

    def begin_anew(self):
        """Node 2 loses all it knows, and comes back with a target of the same number."""
        before = self.dctn, self.dst.key
        self.y.cmd("TEARDOWN_HCA")
        self.y.cmd("DISABLE_HCA")
        self.y.bring_up()
        self.serve()
        self.assertEqual((self.dctn, self.dst.key), before)

    def post(self, opcode, operands=b""):
        av = dc_av(self.dctn, KEY, bytes.fromhex("02c903000002"),
                   bytes.fromhex("fe80") + b"\0" * 13 + b"\2")
        self.i.post(opcode, av + raddr(self.memory, self.dst.key) + operands
                    + data(self.src.addr, 8, self.src.key))

    def add(self):
        self.post(FETCH_ADD, struct.pack(">QQ", 5, 0))

    def word(self):
        return struct.unpack("<Q", self.y.read(self.memory, 8))[0]

    def until_done(self):
        return wait_for(lambda: (self.y.settle(), self.x.settle(), self.i.cq.poll())[2], 20)

    def test_atomic_is_not_executed_twice(self):
        """Its answer is lost, and then all that the target knew: nobody can say if it was done."""
        self.nodes()
        self.add()
        self.assertEqual(self.until_done()[:2], (REQ, 0))
        self.y.set("loss_ppm", 1000000)
        self.add()
        wait_for(lambda: self.word() == 10)
        self.begin_anew()
        self.y.set("loss_ppm", 0)
        self.assertEqual(self.until_done()[:2], (REQ_ERR, RETRY_EXC))
        self.assertEqual(self.word(), 10)
        self.assertEqual(self.x.counters()["dc_doubts"], 1)

    def test_read_is_asked_again(self):
        """Nothing is lost by that: a connection is made, and the READ is sent once more."""
        self.nodes()
        self.post(READ)
        self.assertEqual(self.until_done()[:2], (REQ, 0))
        self.begin_anew()
        self.post(READ)
        self.assertEqual(self.until_done()[:2], (REQ, 0))
        self.assertEqual(self.x.counters()["dc_doubts"], 0)
        self.assertEqual(self.x.counters()["dc_connects"], 2)

    def test_late_connect(self):
        """A connect request that comes after a later one does not end what that one began."""
        self.nodes()
        self.add()
        self.assertEqual(self.until_done()[:2], (REQ, 0))
        conn = int(re.search(rf"tx DC op={DC_CONNECT} .* conn=(0x[0-9a-f]+)",
                             self.x.trace())[1], 16)
        pkt = struct.pack("=8BH12I4Q32x", DC_CONNECT, 5, 0, 0, 0, 0, 0, 0, 0xffff, 0, self.dctn,
                          self.i.num, 0, 0, 1024, 0, 0, 0, 0, conn - 1, 0, 0, 0, 0, KEY)
        head = struct.pack("=IHH6s6s", 20 + len(pkt), 2, 1, bytes.fromhex("02c903000002"),
                           bytes.fromhex("02c903000001"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(head + pkt, f"{self.fabric}/2")
        self.assertTrue(wait_for(lambda: (self.y.settle(),
                                          self.y.counters()["dc_stale_connects"])[1]))
        self.add()
        self.assertEqual(self.until_done()[:2], (REQ, 0))
        self.assertEqual(self.word(), 10)
        self.assertEqual(self.x.counters()["dc_connects"], 1)

    def test_target_that_is_gone(self):
        """Its number is nobody's: refused, or not answered until the retries are over."""
        for refusal, timeouts in (("nak", 0), ("silent", 7)):
            self.nodes(dc_refusal=refusal)
            self.post(READ)
            self.assertEqual(self.until_done()[:2], (REQ, 0))
            before = self.x.counters()["timeouts"]
            self.y.cmd("DRAIN_DCT", {"dctn": self.dctn})
            self.y.cmd("DESTROY_DCT", {"dctn": self.dctn})
            self.post(READ)
            self.assertEqual(self.until_done()[:2], (REQ_ERR, RETRY_EXC))
            self.assertEqual(self.x.counters()["timeouts"] - before, timeouts, refusal)
            for drv in (self.x, self.y):
                drv.set("link_up", False)
            self.setUp()

    def test_slow_answers(self):
        """Those of a target that is slow come one by one, and in order."""
        self.nodes()
        self.y.set("slow_us", 200000)
        self.y.set("slow_dct", self.dctn)
        began = time.monotonic()
        for _ in range(4):
            self.post(READ)
        for _ in range(4):
            self.assertEqual(self.until_done()[:2], (REQ, 0))
        self.assertGreaterEqual(time.monotonic() - began, 0.6)
        self.y.set("slow_dct", self.dctn + 1)      # of another
        self.y.set("slow_us", 60000000)
        self.post(READ)
        self.post(READ)
        for _ in range(2):
            self.assertEqual(self.until_done()[:2], (REQ, 0))

    def test_access_that_is_not_answered(self):
        """What a key does not allow is refused, or dropped until the retries are over, as is what
        comes behind it; what it allows is answered all the while."""
        for silent, wanted in ((False, (REQ_ERR, REM_ACCESS)), (True, (REQ_ERR, RETRY_EXC))):
            self.nodes()
            self.y.set("access_silent", silent)
            self.assertEqual(self.y.get("access_silent"), silent)
            self.post(READ)
            self.assertEqual(self.until_done()[:2], (REQ, 0))
            right, self.dst.key = self.dst.key, self.dst.key + 1
            self.post(READ)
            self.dst.key = right
            self.post(READ)
            self.assertEqual(self.until_done()[:2], wanted, silent)
            for drv in (self.x, self.y):
                drv.set("link_up", False)
            self.setUp()


class Doorbells(ModelTest):
    """What is posted and not rung for is not there."""

    def setUp(self):
        self.d = d = self.driver()
        self.a, self.b, self.m = Qp(d), Qp(d), Mr(d)
        self.a.connect(self.b.num)
        self.b.connect(self.a.num)

    def odd(self):
        return self.d.counters()["doorbells_odd"]

    def last(self):
        return self.d.read(self.a.ring_at(self.a.pi - 1), 8)

    def test_record_without_doorbell(self):
        """A record that is written while the queue is busy waits for its doorbell."""
        seg = data(self.m.addr, 8, self.m.key)
        self.a.post(SEND, seg)
        self.assertIsNone(self.a.cq.poll(), "there is no receive request yet")
        self.a.post(SEND, seg, ring=False)
        self.a.record(self.a.pi)
        for _ in range(2):
            self.b.recv(self.m.addr, 64, self.m.key)
        self.assertEqual(done(self.d, self.a)[:2], (REQ, 0))
        self.d.step(50)
        self.assertIsNone(self.a.cq.poll())
        self.a.ring(self.last())
        self.assertEqual(done(self.d, self.a)[:2], (REQ, 0))
        self.assertEqual(self.odd(), 0)

    def test_doorbell_before_rts(self):
        """One that is rung early is not forgotten; one rung in RESET is."""
        self.a.reset()
        self.a.post(NOP)
        self.a.pi = 0
        self.a.modify("RST2INIT_QP")
        self.a.modify("INIT2RTR_QP", mtu=3, log_msg_max=30)
        self.a.modify("RTR2RTS_QP")
        self.d.step(5)
        self.assertIsNone(self.a.cq.poll())
        self.a.reset()
        self.a.modify("RST2INIT_QP")
        self.a.modify("INIT2RTR_QP", mtu=3, log_msg_max=30)
        self.a.post(NOP)
        self.assertIsNone(self.a.cq.poll())
        self.a.modify("RTR2RTS_QP")
        self.assertEqual(done(self.d, self.a)[:2], (REQ, 0))

    def test_record_that_goes_back(self):
        """It is told and starts nothing; so is one that is more than the ring ahead."""
        for _ in range(3):
            self.a.post(NOP)
            self.assertEqual(done(self.d, self.a)[0], REQ)
        self.assertEqual(self.odd(), 0)
        for count, record in enumerate((1, 3 + 65, 0xffff), 1):
            self.a.record(record)
            self.a.ring(self.last())
            self.assertEqual(self.odd(), count)
            self.assertIsNone(self.a.cq.poll())
        self.a.post(NOP)
        self.assertEqual(done(self.d, self.a)[:3], (REQ, 0, 3))
        self.assertEqual(self.odd(), 3)

    def test_register_and_record_differ(self):
        """The record counts, and it is told that the register says something else."""
        self.a.post(NOP, ring=False)
        first = self.last()
        self.a.post(NOP, ring=False)
        self.a.record(self.a.pi)
        self.a.ring(first)
        self.assertEqual([done(self.d, self.a)[:3] for _ in range(2)], [(REQ, 0, 0), (REQ, 0, 1)])
        self.assertEqual(self.odd(), 1)

    def test_no_complaint_of_good_ones(self):
        """Requests of one and two blocks, a thousand of them round a ring of 64."""
        seg = raddr(self.m.addr, self.m.key) + data(self.m.addr, 4, self.m.key)
        for _ in range(50):
            for k in range(20):
                more = data(self.m.addr + 4, 4, self.m.key) * (k % 3)
                self.a.post(WRITE, seg + more, signaled=k == 19, ring=k % 7 == 6 or k == 19)
            self.assertEqual(done(self.d, self.a)[:2], (REQ, 0))
        self.assertEqual(self.odd(), 0)


class Options(ModelTest):
    """Optional parameters of the transitions."""

    RRE, RWE, QKEY, RNR, PATH, RETRY, COUNTER = (1 << n for n in (1, 3, 5, 6, 7, 12, 25))

    def test_of_each_transition(self):
        """What a transition or a service does not take is refused and changes nothing."""
        d = self.driver()
        cq = Cq(d)
        base = {"qpc.mtu": 3, "qpc.log_msg_max": 30, "qpc.pm_state": 3}
        rows = (
            # service, command, state before, refused, taken
            (0, "RST2INIT_QP", 0, (self.RRE, self.COUNTER), 0),
            (0, "INIT2RTR_QP", 1, (self.PATH, self.RETRY, self.RNR), self.RRE),
            (0, "RTR2RTS_QP", 2, (self.RETRY, self.PATH, self.COUNTER), self.RNR),
            (0, "RTS2RTS_QP", 3, (self.RETRY, self.PATH, self.QKEY), self.COUNTER),
            (1, "INIT2RTR_QP", 1, (self.RRE,), self.RWE),
            (2, "RTR2RTS_QP", 2, (self.RNR, self.RWE), self.QKEY),
            (5, "RTR2RTS_QP", 2, (self.RETRY, self.QKEY), self.RNR),
            (0xc, "INIT2INIT_QP", 1, (self.QKEY, self.RWE), 0))
        way = ("RST2INIT_QP", "INIT2RTR_QP", "RTR2RTS_QP")
        port = {"qpc.primary_address_path.vhca_port_num": 1}
        for service, name, state, bad, good in rows:
            q = Qp(d, service, cq=cq, **({"qpc.rq_type": 3} if service == 5 else {}))
            for step in way[:state]:
                d.cmd(step, {"qpn": q.num, **base, **port})
            for mask in bad:
                self.refused("BAD_PARAM", d.cmd, name,
                             {"qpn": q.num, "opt_param_mask": mask, **base})
                self.assertEqual(q.state(), state, (service, name, mask))
            d.cmd(name, {"qpn": q.num, "opt_param_mask": good, **base})
            d.cmd("DESTROY_QP", {"qpn": q.num})


class Limits(ModelTest):
    """What the adapter says it takes at most is what it takes at most."""

    def test_queues(self):
        self.d = d = self.driver(log_max_qp_sz=5, log_max_srq_sz=3)
        self.assertEqual((d.capability("log_max_qp_sz"), d.capability("log_max_srq_sz")),
                         (5, 3))
        self.refused("LIMIT", Qp, d, **{"qpc.log_sq_size": 6})
        self.refused("LIMIT", Qp, d, **{"qpc.log_sq_size": 5, "qpc.log_rq_size": 6})
        self.refused("LIMIT", Qp, d, **{"qpc.log_sq_size": 5, "qpc.log_rq_size": 1,
                                        "qpc.log_rq_stride": 6})
        Qp(d, **{"qpc.log_sq_size": 5, "qpc.log_rq_size": 1, "qpc.log_rq_stride": 5})
        self.refused("LIMIT", make_rmp, d, 4)
        make_rmp(d, 3)
        entry, xrcd, cq = "xrc_srq_context_entry.", d.cmd("ALLOC_XRCD")("xrcd"), Cq(d)

        def xrc_srq(log_size):
            d.cmd("CREATE_XRC_SRQ", {
                entry + "pd": d.pd, entry + "xrcd": xrcd, entry + "cqn": cq.num,
                entry + "log_xrc_srq_size": log_size, entry + "log_rq_stride": 1},
                struct.pack(">Q", d.page()))
        self.refused("LIMIT", xrc_srq, 4)
        xrc_srq(3)
        self.assertEqual(d.counters()["objects"]["RMP"], 1)

    def test_requests(self):
        """One that is longer than a request may be is a local operation error."""
        self.d = d = self.driver(max_wqe_sz_sq=64, max_wqe_sz_sq_dc=96)
        self.assertEqual((d.capability("max_wqe_sz_sq"), d.capability("max_wqe_sz_sq_dc")),
                         (64, 96))
        a, b, m = Qp(d), Qp(d), Mr(d)
        a.connect(b.num)
        b.connect(a.num)
        one = data(m.addr, 8, m.key)
        dci, dctn = Qp(d, 5, **{"qpc.rq_type": 3}), make_dct(d, Cq(d), make_rmp(d), KEY)
        dci.connect()
        for queue, av in ((a, b""), (dci, dc_av(dctn, KEY))):
            fits = 2 if queue is a else 1
            queue.post(WRITE, av + raddr(m.addr + 64, m.key) + one * fits)
            self.assertEqual(done(d, queue)[:2], (REQ, 0))
            queue.post(WRITE, av + raddr(m.addr + 64, m.key) + one * (fits + 1))
            self.assertEqual(done(d, queue)[:2], (REQ_ERR, LOCAL_OP))


class Initiators(ModelTest):
    """What a DC initiator has to be given, and how long it waits."""

    def test_path(self):
        """A port and a path MTU; a path need not be given, but must not be a wrong one."""
        d, path = self.driver(), "primary_address_path__"
        cq, good = Cq(d), {"mtu": 3, "log_msg_max": 30}

        def initiator(**init):
            q = Qp(d, 5, cq=cq, **{"qpc.rq_type": 3})
            q.modify("RST2INIT_QP", **init)
            return q
        q = initiator()
        self.refused("BAD_PARAM", q.modify, "INIT2RTR_QP", **good)
        self.assertEqual(q.state(), 1)
        q = initiator(**{path + "vhca_port_num": 1})
        for bad in ({"mtu": 0}, {"mtu": 6}, {path + "vhca_port_num": 2},
                    {path + "src_addr_index": 77},
                    {path + "src_addr_index": 44, path + "rgid_rip": b"\1" * 16}):
            self.refused("BAD_PARAM", q.modify, "INIT2RTR_QP", **{**good, **bad})
            self.assertEqual(q.state(), 1)
        q.modify("INIT2RTR_QP", **good)
        q = initiator(**{path + "vhca_port_num": 1})
        q.modify("INIT2RTR_QP", **good,
                 **{path + "vhca_port_num": 1, path + "rgid_rip": b"\1" * 16})
        self.assertEqual(q.state(), 2)

    def test_time_out_of_0(self):
        """It is for ever on hardware; the model gives up after its floor unless told otherwise."""
        for endless in ("off", "on"):
            d = self.driver(timeout_floor_ms=10, endless_timeout=endless)
            q, m = Qp(d, 5, **{"qpc.rq_type": 3}), Mr(d)
            dctn = make_dct(d, Cq(d), make_rmp(d), KEY)
            q.connect(retry=1, timeout=0)
            d.set("loss_ppm", 1000000)
            q.post(READ, dc_av(dctn, KEY) + raddr(m.addr, m.key) + data(m.addr, 8, m.key))
            if endless == "on":
                d.step(200)
                self.assertIsNone(q.cq.poll())
                self.assertEqual(d.counters()["timeouts"], 0)
            else:
                self.assertEqual(done(d, q)[:2], (REQ_ERR, RETRY_EXC))


class SlowCommands(ModelTest):
    """Firmware that takes its time."""

    def nops(self, count):
        """Ring for some commands at once; returns the ends of their queue entries."""
        for i in range(count):
            self.d.write(self.d.queue + 64 * i, struct.pack(
                ">B3xIQ16s16sQIBBBB", 7, 16, 0, struct.pack(">H14x", self.d.ifc.opcode["NOP"]),
                b"", 0, 16, 1 + i, 0, 0, 1))
        self.d.bar_write(0x18, (1 << count) - 1, 4)
        return [self.d.queue + 64 * i + 63 for i in range(count)]

    def owned(self, ends):
        return [self.d.read(end, 1)[0] & 1 for end in ends]

    def test_one_after_the_other(self):
        self.d = d = self.driver()
        d.set("cmd_delay_ms", 1000)
        d.timeout, began = 10, time.monotonic()
        pd = d.cmd("ALLOC_PD")("pd")
        self.assertGreaterEqual(time.monotonic() - began, 0.99)
        d.cmd("DEALLOC_PD", {"pd": pd})
        began, ends = time.monotonic(), self.nops(3)
        self.assertEqual(self.owned(ends), [1, 1, 1])
        seen = []
        while self.owned(ends)[-1] and time.monotonic() < began + 10:
            seen.append(self.owned(ends))
        self.assertGreaterEqual(time.monotonic() - began, 2.99)
        for state in seen:
            self.assertEqual(state, sorted(state), "in the order of the queue")
        d.set("cmd_delay_ms", 0)
        d.timeout = 0
        d.cmd("QUERY_ISSI")
        with self.assertRaises(ValueError):
            d.set("cmd_delay_ms", 600001)

    def test_reset_forgets_them(self):
        self.d = d = self.driver()
        d.set("cmd_delay_ms", 1000)
        ends, before = self.nops(2), d.counters()["commands"]
        d.set("failed", True)
        d.step(1500)
        self.assertEqual((self.owned(ends), d.counters()["commands"]), ([1, 1], before))
