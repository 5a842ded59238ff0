#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Self-check of the ConnectX model without a guest.

usage: test_model.py --model connectx-model.so --headers FOLDER [--sanitize] [unittest options]

The judges show that stock drivers work; this shows what the model refuses, with
which status, that a refusal changes nothing, and what the transport does when
packets are lost, doubled and reordered.
"""
import os
import shutil
import struct
import sys
import tempfile
import time
import unittest

from cxdrv import (BAR, Cq, Driver, Ifc, Mr, Qp, Rmp, data, dc_av, make_dct, make_rmp, raddr,
                   wait_for)
from blueflame import BlueFlame  # noqa: F401
from case import OPT, ModelTest
from judging import Golden, Pyverbs  # noqa: F401  tests of other files are run as well
from partitions import GlobalRouting, Partitions  # noqa: F401
from receives import LostReceives  # noqa: F401
from strict import (Doorbells, Forgotten, Initiators, Limits, Options,  # noqa: F401
                    PathMtu, SlowCommands)
from vf import VirtualFunction  # noqa: F401

HERE = os.path.dirname(os.path.realpath(__file__))
NOP, WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CMP_SWAP, FETCH_ADD, UMR = \
    0x0, 0x8, 0x9, 0xa, 0xb, 0x10, 0x11, 0x12, 0x25
REQ, RECV, REQ_ERR, RESP_ERR = 0, 2, 13, 14
FLUSH, LOCAL_PROT, LOCAL_OP, MW_BIND, REM_INVAL, REM_ACCESS, RETRY_EXC, RNR_EXC = \
    0x05, 0x04, 0x02, 0x06, 0x12, 0x13, 0x15, 0x16


class Commands(ModelTest):
    """Transport and checks common to all commands."""

    def test_order_of_life(self):
        d = self.driver(init=False)
        self.refused("BAD_SYS_STATE", d.cmd, "ALLOC_PD")
        self.refused("BAD_SYS_STATE", d.cmd, "QUERY_ISSI")
        d.cmd("ENABLE_HCA")
        self.refused("BAD_SYS_STATE", d.cmd, "ENABLE_HCA")
        self.refused("BAD_PARAM", d.cmd, "SET_ISSI", {"current_issi": 7})
        d.cmd("INIT_HCA")
        self.refused("BAD_SYS_STATE", d.cmd, "DISABLE_HCA")
        pd = d.cmd("ALLOC_PD")("pd")
        d.cmd("TEARDOWN_HCA")
        d.cmd("INIT_HCA")
        self.refused("BAD_RES", d.cmd, "DEALLOC_PD", {"pd": pd})

    def test_unknown_opcode(self):
        d = self.driver()
        out = d.raw(struct.pack(">H14x", 0x7777))
        self.assertEqual(out[0], 0x2)

    def test_short_input_and_output(self):
        d = self.driver()
        out = d.raw(struct.pack(">HHHH", d.ifc.opcode["CREATE_QP"], 0, 0, 0) + b"\0" * 8)
        self.assertEqual(out[0], 0x50)
        out = d.raw(struct.pack(">H14x", d.ifc.opcode["ALLOC_PD"]), outlen=4)
        self.assertEqual(out[0], 0x51)
        register = d.ifc.encode("access_register_in", {
            "opcode": d.ifc.opcode["ACCESS_REG"], "op_mod": 1, "register_id": 0x5003})
        pages = d.ifc.encode("manage_pages_in", {"opcode": d.ifc.opcode["MANAGE_PAGES"],
                                                 "op_mod": 2, "input_num_entries": 1})
        for text in (register + bytes(16), pages):
            self.assertEqual(d.raw(text, outlen=8)[0], 0x51)

    def test_reserved_bits(self):
        """Every reserved bit of these inputs is refused, one at a time."""
        d = self.driver()
        for name in ("ALLOC_PD", "DEALLOC_PD", "DRAIN_DCT", "QUERY_QP"):
            layout = d.ifc.struct[name]
            fields, size = d.ifc.fields(layout + "_in")
            used = {b for p, (off, bits) in fields.items() if "reserved" not in p
                    for b in range(off, off + bits)}
            base = int.from_bytes(d.ifc.encode(layout + "_in", {"opcode": d.ifc.opcode[name]}),
                                  "big")
            for bit in set(range(size * 8)) - used:
                val = base | 1 << (size * 8 - 1 - bit)
                out = d.raw(val.to_bytes(size, "big"))
                self.assertEqual(out[0], 0x3, f"{name} bit {bit}")

    def test_mailbox_token(self):
        d = self.driver()
        good = d.ifc.encode("create_dct_in", {"opcode": d.ifc.opcode["CREATE_DCT"]})
        d.raw(good)
        self.assertEqual(d.delivery, 0)
        real = d.chain
        d.chain = lambda pages, payload, token: real(pages, payload, token ^ 1)
        d.raw(good)
        self.assertEqual(d.delivery, 0x2)

    def test_doorbell_of_nobody(self):
        d = self.driver()
        before = d.counters()["doorbells_refused"]
        d.write(BAR + d.uar * 4096 + 0x800, struct.pack(">II", 0, 0x3fff << 8))
        d.write(BAR + (d.uar + 1) * 4096 + 0x800, b"\0" * 8)
        d.write(BAR + d.uar * 4096 + 0x20, struct.pack(">II", 0, 0x3fff))
        self.assertGreaterEqual(d.counters()["doorbells_refused"], before + 3)


class Properties(ModelTest):
    """A wrong property is named and ends QEMU."""

    def test_wrong_properties(self):
        for props, words in (({"node": 0}, "node: 0 is not in 1..65534"),
                             ({"link": "foo"}, "link: 'foo' is neither eth nor ib"),
                             ({"loss_ppm": 2000000}, "loss_ppm: 2000000 is more than 1000000"),
                             ({"trace": "/nowhere/x"}, "trace: cannot open '/nowhere/x'"),
                             ({"trace_classes": "bogus"}, "unknown class 'bogus'"),
                             ({"fabric": "/proc/nope"}, "cannot make folder '/proc/nope'"),
                             ({"fabric": "x" * 120}, "is too long for a socket"),
                             ({"partition": "1x"}, "'1x' is not a list of nodes"),
                             ({"cmd_delay_ms": 600001}, "600001 is more than 600000"),
                             ({"pkeys": "ffff:10000"}, "pkeys: 'ffff:10000' is not a list of"),
                             ({"pkeys": "ffff" + ":1" * 128}, "is not a list of at most 128"),
                             ({"grh_required": "on"}, "an Ethernet port has no packet without"),
                             ({"log_max_qp_sz": 16}, "log_max_qp_sz: 16 is not in 1..15"),
                             ({"log_max_srq_sz": 0}, "log_max_srq_sz: 0 is not in 1..15"),
                             ({"max_wqe_sz_sq": 1025}, "max_wqe_sz_sq: 1025 is not in 64..1024"),
                             ({"max_wqe_sz_sq_dc": 63},
                              "max_wqe_sz_sq_dc: 63 is not in 64..1024")):
            with self.assertRaises(RuntimeError) as caught:
                Driver(OPT["model"], OPT["ifc"], sanitize=OPT["sanitize"], **props)
            self.assertIn(words, str(caught.exception))

    def test_another_qemu(self):
        """An object whose structures have other sizes says so, and what to install."""
        folder = os.path.dirname(os.path.realpath(OPT["model"]))
        misfit = os.path.join(folder, "connectx-misfit.so")
        self.assertTrue(os.path.exists(misfit), misfit)
        with self.assertRaises(RuntimeError) as caught:
            Driver(misfit, OPT["ifc"], sanitize=OPT["sanitize"])
        for words in ("was built for qemu-system-x86 ", "'pci-device' has ",
                      "Install that version"):
            self.assertIn(words, str(caught.exception))

    def test_no_snapshot(self):
        d = self.driver()
        answer = d.qmp("human-monitor-command", **{"command-line": "migrate -d exec:true"})
        self.assertIn("non-migratable", answer)


class Objects(ModelTest):
    """Existence, ownership and use counts."""

    def test_alloc_free(self):
        d = self.driver()
        for alloc, free, field in (("ALLOC_PD", "DEALLOC_PD", "pd"),
                                   ("ALLOC_XRCD", "DEALLOC_XRCD", "xrcd"),
                                   ("ALLOC_UAR", "DEALLOC_UAR", "uar"),
                                   ("ALLOC_TRANSPORT_DOMAIN", "DEALLOC_TRANSPORT_DOMAIN",
                                    "transport_domain")):
            num = d.cmd(alloc)(field)
            self.assertNotEqual(num, d.cmd(alloc)(field))
            d.cmd(free, {field: num})
            self.refused("BAD_RES", d.cmd, free, {field: num})
            self.assertNotEqual(num, d.cmd(alloc)(field), "number used again at once")

    def test_counted_by_kind(self):
        """An object is counted as what it is while it is there, and a refused one never."""
        d = self.driver()
        before = d.counters()["objects"]
        self.assertEqual([before[kind] for kind in ("PD", "UAR", "EQ", "CQ", "QP", "DCT")],
                         [1, 1, 1, 0, 0, 0])
        cq, rmp = Cq(d), make_rmp(d)
        rc, dci = Qp(d, cq=cq), Qp(d, 5, cq=cq, **{"qpc.rq_type": 3})
        mr = Mr(d)
        self.refused("BAD_RES", Mr, d, pd=0x7777)
        dctn = d.cmd("CREATE_DCT", {
            "dct_context_entry.pd": d.pd, "dct_context_entry.cqn": cq.num,
            "dct_context_entry.srqn_xrqn": rmp, "dct_context_entry.port": 1,
            "dct_context_entry.mtu": 3})("dctn")
        made = {"CQ": 1, "RMP": 1, "QP": 2, "mkey": 1, "DCT": 1}
        self.assertEqual(d.counters()["objects"],
                         {kind: count + made.get(kind, 0) for kind, count in before.items()})
        d.cmd("DRAIN_DCT", {"dctn": dctn})
        for name, field, number in (
                ("DESTROY_DCT", "dctn", dctn), ("DESTROY_MKEY", "mkey_index", mr.index),
                ("DESTROY_QP", "qpn", rc.num), ("DESTROY_QP", "qpn", dci.num),
                ("DESTROY_RMP", "rmpn", rmp), ("DESTROY_CQ", "cqn", cq.num)):
            d.cmd(name, {field: number})
        self.assertEqual(d.counters()["objects"], before)

    def test_index_of_a_key(self):
        """That of a destroyed key rests, or is given to the next one if that is asked for."""
        d = self.driver()
        self.assertFalse(d.get("reuse_mkeys"))
        seen = set()
        for _ in range(300):
            mr = Mr(d)
            self.assertNotIn(mr.index, seen)
            seen.add(mr.index)
            d.cmd("DESTROY_MKEY", {"mkey_index": mr.index})
        d.set("reuse_mkeys", True)
        kept, gone = Mr(d), Mr(d)
        self.assertEqual({kept.index, gone.index}, {min(seen), min(seen) + 1})
        for _ in range(300):
            d.cmd("DESTROY_MKEY", {"mkey_index": gone.index})
            gone, before = Mr(d), gone
            self.assertEqual(gone.index, before.index)
        d.set("reuse_mkeys", False)
        self.assertGreater(Mr(d).index, max(seen))
        d.set("reuse_mkeys", True)
        d.cmd("TEARDOWN_HCA")
        d.cmd("INIT_HCA")
        self.assertTrue(d.get("reuse_mkeys"), "it is the card's, not its driver's")

    def test_busy(self):
        d = self.driver()
        q = Qp(d)
        self.refused("BUSY", d.cmd, "DEALLOC_PD", {"pd": d.pd})
        self.refused("BUSY", d.cmd, "DESTROY_CQ", {"cqn": q.cq.num})
        self.refused("BUSY", d.cmd, "DESTROY_EQ", {"eq_number": d.eqn})
        d.cmd("DESTROY_QP", {"qpn": q.num})
        d.cmd("DESTROY_CQ", {"cqn": q.cq.num})
        d.cmd("DESTROY_EQ", {"eq_number": d.eqn})

    def test_missing_parts(self):
        d = self.driver()
        self.refused("BAD_RES", Qp, d, **{"qpc.pd": 0x7777})
        self.refused("BAD_RES", Qp, d, **{"qpc.uar_page": 0x777})
        self.refused("BAD_RES", Qp, d, **{"qpc.cqn_snd": 0x777})
        self.refused("BAD_RES", Qp, d, **{"qpc.cqn_rcv": 0x777})
        self.refused("BAD_RES", Qp, d, **{"qpc.rq_type": 1, "qpc.srqn_rmpn_xrqn": 0x777})
        self.refused("BAD_PARAM", Qp, d, 0x77)
        self.refused("BAD_PARAM", Qp, d, **{"qpc.state": 3})
        self.refused("BAD_PARAM", Qp, d, **{"qpc.log_sq_size": 9})
        self.refused("BAD_PARAM", Qp, d, **{"qpc.dbr_addr": 0x300004})
        self.refused("BAD_RES", Cq, d, **{"cq_context.c_eqn_or_apu_element": 0x33})
        self.refused("BAD_PARAM", Cq, d, **{"cq_context.log_page_size": 0,
                                           "cq_context.log_cq_size": 12})
        self.refused("BAD_RES", Mr, d, pd=0x7777)
        self.refused("BAD_INLEN", d.cmd, "CREATE_MKEY", {
            "memory_key_mkey_entry.access_mode_1_0": 1, "memory_key_mkey_entry.pd": d.pd,
            "memory_key_mkey_entry.log_page_size": 12, "translations_octword_actual_size": 9})
        self.assertEqual(d.counters()["commands_refused"], 13)

    def test_dct_commands(self):
        d = self.driver()
        cq, srq = Cq(d), make_rmp(d)
        good = {"dct_context_entry.pd": d.pd, "dct_context_entry.cqn": cq.num,
                "dct_context_entry.srqn_xrqn": srq, "dct_context_entry.port": 1,
                "dct_context_entry.mtu": 3}
        for field, bad, status in (("pd", 0x777, "BAD_RES"), ("cqn", 0x777, "BAD_RES"),
                                   ("srqn_xrqn", 0x777, "BAD_RES"), ("port", 2, "BAD_PARAM"),
                                   ("mtu", 0, "BAD_PARAM"), ("my_addr_index", 9, "BAD_PARAM")):
            self.refused(status, d.cmd, "CREATE_DCT",
                         {**good, "dct_context_entry." + field: bad})
        dctn = d.cmd("CREATE_DCT", good)("dctn")
        self.refused("BUSY", d.cmd, "DESTROY_RMP", {"rmpn": srq})
        self.refused("BAD_RES_STATE", d.cmd, "DESTROY_DCT", {"dctn": dctn})
        d.cmd("DRAIN_DCT", {"dctn": dctn})
        self.assertEqual([(t, int.from_bytes(b[24:28], "big")) for t, _, b in d.events()],
                         [(0x1c, dctn)])
        self.refused("BAD_RES_STATE", d.cmd, "DRAIN_DCT", {"dctn": dctn})
        d.cmd("DESTROY_DCT", {"dctn": dctn})
        self.refused("BAD_RES", d.cmd, "QUERY_DCT", {"dctn": dctn})


class States(ModelTest):
    """The state machine of queue pairs."""

    def test_every_transition(self):
        """All pairs of state and command: allowed ones pass, others change nothing."""
        d = self.driver()
        reach = {0: [], 1: ["RST2INIT_QP"], 2: ["RST2INIT_QP", "INIT2RTR_QP"],
                 3: ["RST2INIT_QP", "INIT2RTR_QP", "RTR2RTS_QP"], 6: ["2ERR_QP"]}
        allowed = {(0, "RST2INIT_QP"): 1, (1, "INIT2INIT_QP"): 1, (1, "INIT2RTR_QP"): 2,
                   (2, "RTR2RTS_QP"): 3, (3, "RTS2RTS_QP"): 3}
        attrs = {"qpc.mtu": 3, "qpc.log_msg_max": 30, "qpc.pm_state": 3}
        cq = Cq(d)
        for state, path in reach.items():
            for name in ("RST2INIT_QP", "INIT2INIT_QP", "INIT2RTR_QP", "RTR2RTS_QP",
                         "RTS2RTS_QP", "SQERR2RTS_QP", "2ERR_QP", "2RST_QP"):
                q = Qp(d, cq=cq)
                for step in path:
                    d.cmd(step, {"qpn": q.num, **({} if step[0] == "2" else attrs)})
                self.assertEqual(q.state(), state)
                values = {"qpn": q.num, **({} if name[0] == "2" else attrs)}
                if name == "2ERR_QP":
                    d.cmd(name, values)
                    self.assertEqual(q.state(), 6)
                elif name == "2RST_QP":
                    d.cmd(name, values)
                    self.assertEqual(q.state(), 0)
                elif (state, name) in allowed:
                    d.cmd(name, values)
                    self.assertEqual(q.state(), allowed[state, name])
                else:
                    self.refused("BAD_QP_STATE", d.cmd, name, values)
                    self.assertEqual(q.state(), state)
                d.cmd("DESTROY_QP", {"qpn": q.num})

    def test_bad_attributes(self):
        d = self.driver()
        q = Qp(d)
        self.refused("BAD_PARAM", q.modify, "RST2INIT_QP", pd=d.pd + 1)
        q.modify("RST2INIT_QP")
        for bad in ({"mtu": 0}, {"mtu": 6}, {"log_msg_max": 31}, {"log_rra_max": 5},
                    {"primary_address_path__src_addr_index": 77}):
            self.refused("BAD_PARAM", q.modify, "INIT2RTR_QP",
                         **{"mtu": 3, "log_msg_max": 30, **bad})
            self.assertEqual(q.state(), 1)


class Loopback(ModelTest):
    """Data of one device to itself."""

    def pair(self, **kw):
        self.d = self.driver(**kw)
        self.a, self.b = Qp(self.d), Qp(self.d)
        self.src, self.dst = Mr(self.d), Mr(self.d)
        self.join()

    def join(self, **kw):
        self.a.connect(self.b.num, **kw)
        self.b.connect(self.a.num, **kw)

    def rejoin(self):
        for q in (self.a, self.b):
            q.reset()
            while q.cq.poll():
                pass
        self.join()

    def done(self, q=None):
        q = q or self.a
        return wait_for(lambda: (self.d.settle(), q.cq.poll())[1])

    def test_write_read(self):
        self.pair()
        payload = bytes(i * 7 % 256 for i in range(3000))
        self.d.write(self.src.addr, payload)
        self.a.post(WRITE, raddr(self.dst.addr + 10, self.dst.key)
                    + data(self.src.addr, 3000, self.src.key))
        self.assertEqual(self.done()[:2], (REQ, 0))
        self.assertEqual(self.d.read(self.dst.addr + 10, 3000), payload)
        back = Mr(self.d)
        self.a.post(READ, raddr(self.dst.addr + 10, self.dst.key)
                    + data(back.addr, 1000, back.key) + data(back.addr + 2000, 2000, back.key))
        self.assertEqual(self.done(), (REQ, 0, 1, 3000))
        self.assertEqual(self.d.read(back.addr, 1000) + self.d.read(back.addr + 2000, 2000),
                         payload)

    def test_atomics(self):
        self.pair()
        self.d.write(self.dst.addr, struct.pack("<Q", 5))
        word = data(self.src.addr, 8, self.src.key)
        self.a.post(FETCH_ADD, raddr(self.dst.addr, self.dst.key)
                    + struct.pack(">QQ", 10, 0) + word)
        self.assertEqual(self.done()[:2], (REQ, 0))
        self.assertEqual(self.d.read(self.src.addr, 8), struct.pack("<Q", 5))
        for compare, want in ((99, 15), (15, 77)):
            self.a.post(CMP_SWAP, raddr(self.dst.addr, self.dst.key)
                        + struct.pack(">QQ", 77, compare) + word)
            self.assertEqual(self.done()[:2], (REQ, 0))
            self.assertEqual(self.d.read(self.dst.addr, 8), struct.pack("<Q", want))

    def test_send_and_short_buffer(self):
        self.pair()
        self.b.recv(self.dst.addr, 200, self.dst.key)
        self.d.write(self.src.addr, b"x" * 100)
        self.a.post(SEND, data(self.src.addr, 100, self.src.key))
        self.assertEqual(self.done()[:2], (REQ, 0))
        self.assertEqual(self.done(self.b), (RECV, 0, 0, 100))
        self.b.recv(self.dst.addr, 50, self.dst.key)
        self.a.post(SEND, data(self.src.addr, 100, self.src.key))
        self.assertEqual(self.done()[:2], (REQ_ERR, REM_INVAL))
        self.assertEqual(self.done(self.b)[:2], (RESP_ERR, 0x01))
        self.assertEqual((self.a.state(), self.b.state()), (6, 6))

    def test_remote_errors(self):
        """Each wrong reference ends in the right syndrome and in both error states."""
        self.pair()
        ro = Mr(self.d, access="lr lw rr")
        pd2 = self.d.cmd("ALLOC_PD")("pd")
        other = Mr(self.d, pd=pd2)
        gone = Mr(self.d)
        self.d.cmd("DESTROY_MKEY", {"mkey_index": gone.index})
        good = data(self.src.addr, 8, self.src.key)
        atomic = struct.pack(">QQ", 1, 1)
        for op, seg, syndrome in (
                (WRITE, raddr(self.dst.addr, self.dst.key + 1) + good, REM_ACCESS),
                (WRITE, raddr(ro.addr, ro.key) + good, REM_ACCESS),
                (READ, raddr(self.dst.addr + 4090, self.dst.key) + good, REM_ACCESS),
                (READ, raddr(self.dst.addr - 1, self.dst.key) + good, REM_ACCESS),
                (READ, raddr(other.addr, other.key) + good, REM_ACCESS),
                (READ, raddr(gone.addr, gone.key) + good, REM_ACCESS),
                (FETCH_ADD, raddr(ro.addr, ro.key) + atomic + good, REM_ACCESS),
                (FETCH_ADD, raddr(self.dst.addr + 4, self.dst.key) + atomic + good, REM_INVAL)):
            self.a.post(op, seg)
            self.assertEqual(self.done()[:2], (REQ_ERR, syndrome), f"opcode {op:#x}")
            self.assertEqual((self.a.state(), self.b.state()), (6, 6))
            kinds = [t for t, _, _ in self.d.events()]
            self.assertIn(0x11 if syndrome == REM_ACCESS else 0x10, kinds)
            self.rejoin()

    def test_access_of_the_queue(self):
        self.pair()
        self.rejoin_without_access()
        self.a.post(READ, raddr(self.dst.addr, self.dst.key) + data(self.src.addr, 8, self.src.key))
        self.assertEqual(self.done()[:2], (REQ_ERR, REM_ACCESS))

    def rejoin_without_access(self):
        for q in (self.a, self.b):
            q.reset()
        self.join(access=False)

    def test_local_errors(self):
        self.pair()
        wo = Mr(self.d, access="lw")
        for op, seg, kw, syndrome in (
                (SEND, data(self.src.addr, 8, self.src.key + 1), {}, LOCAL_PROT),
                (SEND, data(self.src.addr + 4095, 8, self.src.key), {}, LOCAL_PROT),
                (SEND, data(wo.addr, 8, wo.key), {}, LOCAL_PROT),
                (0x3f, data(self.src.addr, 8, self.src.key), {}, LOCAL_OP),
                (SEND, b"", {"qpn": 0x99}, LOCAL_OP),
                (SEND, b"", {"index": 55}, LOCAL_OP),
                (WRITE, b"", {}, LOCAL_OP)):
            self.a.post(op, seg, **kw)
            self.assertEqual(self.done()[:2], (REQ_ERR, syndrome), f"opcode {op:#x} {kw}")
            self.assertEqual(self.a.state(), 6)
            self.rejoin()

    def umr(self, queue, key, mask, flags=0x80, octwords=0, pd=0, rights="", free=0):
        """A request that changes a key; returns how it completed."""
        bits = sum(1 << 10 + ("lr", "lw", "rr", "rw", "a").index(r) for r in rights.split())
        context = struct.pack(">IIII", bits | free << 30, 0xffffff42, 0, pd)
        queue.post(UMR, struct.pack(">B3xHHQ", flags, octwords, 0, mask).ljust(48, b"\0")
                   + context.ljust(64, b"\0"), imm=key)
        return wait_for(queue.cq.poll)[:2]

    def test_umr_changes_a_key(self):
        """Rights, domain and freedom of a key by UMR; all else is refused and changes nothing."""
        self.pair()
        key, old = Mr(self.d, access="lr lw rr umr_en"), Mr(self.d, access="lr lw rr")
        pd2 = self.d.cmd("ALLOC_PD")("pd")
        umr = Qp(self.d, service=0xc)
        rights = sum(1 << n for n in range(17, 22))
        good = data(self.src.addr, 8, self.src.key)

        def write():
            self.a.post(WRITE, raddr(key.addr, key.key) + good)
            got = self.done()[:2]
            if got != (REQ, 0):
                self.rejoin()
            return got

        def refused(*args, **more):
            umr.reset()
            umr.connect()
            return self.umr(umr, *args, **more)

        umr.connect()
        self.assertEqual(write(), (REQ_ERR, REM_ACCESS))
        self.assertEqual(self.umr(umr, key.key, rights, rights="lr lw rr rw"), (REQ, 0))
        self.assertEqual(write(), (REQ, 0))
        self.assertEqual(self.umr(umr, key.key, 1 << 7, pd=pd2), (REQ, 0))
        self.assertEqual(write(), (REQ_ERR, REM_ACCESS))
        self.refused("BUSY", self.d.cmd, "DEALLOC_PD", {"pd": pd2})
        self.assertEqual(self.umr(umr, key.key, 1 << 7 | 1 << 29, pd=self.d.pd, free=1), (REQ, 0))
        self.d.cmd("DEALLOC_PD", {"pd": pd2})
        self.assertEqual(write(), (REQ_ERR, REM_ACCESS))
        self.assertEqual(self.umr(umr, key.key, 1 << 29), (REQ, 0))
        self.assertEqual(write(), (REQ, 0))
        for args, more in (((key.key, 1 << 1), {}), ((key.key, rights), {"octwords": 4}),
                           ((key.key + 1, rights), {}), ((old.key, rights), {}),
                           ((0x99999900, rights), {}), ((key.key, 1 << 7), {"pd": 0xabcde}),
                           ((key.key, rights), {"flags": 0xa0})):
            self.assertEqual(refused(*args, **more), (REQ_ERR, MW_BIND), (args, more))
        self.assertEqual(write(), (REQ, 0))
        umr.reset()
        umr.connect()
        self.d.cmd("2ERR_QP", {"qpn": umr.num})
        self.assertEqual(self.umr(umr, key.key, 1 << 29, free=1), (REQ_ERR, FLUSH))
        self.assertEqual(write(), (REQ, 0), "what is flushed has changed nothing")

    def test_flush(self):
        self.pair()
        self.a.recv(self.src.addr, 64, self.src.key)
        self.d.cmd("2ERR_QP", {"qpn": self.a.num})
        self.assertEqual(self.done()[:2], (RESP_ERR, FLUSH))
        self.a.post(SEND, data(self.src.addr, 8, self.src.key), signaled=False)
        self.assertEqual(self.done()[:2], (REQ_ERR, FLUSH))
        self.a.recv(self.src.addr, 64, self.src.key)    # rings no doorbell
        self.d.step(10)
        self.assertEqual(self.done()[:2], (RESP_ERR, FLUSH))

    def test_rnr(self):
        self.pair()
        self.a.post(SEND, data(self.src.addr, 8, self.src.key))
        self.d.settle()
        self.assertIsNone(self.a.cq.poll())
        self.assertGreaterEqual(self.d.counters()["naks_rnr"], 1)
        self.b.recv(self.dst.addr, 64, self.dst.key)
        self.d.step(2)
        self.assertEqual(self.done()[:2], (REQ, 0))
        for q in (self.a, self.b):
            q.reset()
        self.join(rnr=2)
        self.a.post(SEND, data(self.src.addr, 8, self.src.key))
        for _ in range(4):
            self.d.step(2)
        self.assertEqual(self.done()[:2], (REQ_ERR, RNR_EXC))

    def test_many_reads_at_once(self):
        """As many READs as the responder has room for pass; more are an invalid request."""
        for sra, wanted in ((3, (REQ, 0)), (4, (REQ_ERR, REM_INVAL))):
            self.pair()
            for q in (self.a, self.b):
                q.reset()
            self.join(sra=sra)
            for i in range(16):
                self.a.post(READ, raddr(self.dst.addr, self.dst.key)
                            + data(self.src.addr, 8, self.src.key), ring=i == 15)
            self.assertIn(wanted, [self.done()[:2] for _ in range(16)])

    def test_fence(self):
        """A fenced WRITE of what a READ brings leaves after the READ."""
        self.pair()
        self.d.write(self.dst.addr, b"answer!!")
        self.a.post(READ, raddr(self.dst.addr, self.dst.key)
                    + data(self.src.addr, 8, self.src.key), ring=False)
        self.a.post(WRITE, raddr(self.dst.addr + 64, self.dst.key)
                    + data(self.src.addr, 8, self.src.key), fence=2)
        self.assertEqual([self.done()[:2] for _ in range(2)], [(REQ, 0)] * 2)
        self.assertEqual(self.d.read(self.dst.addr + 64, 8), b"answer!!")

    def test_wrap_around(self):
        self.pair()
        for i in range(100):
            self.d.write(self.src.addr, struct.pack("<Q", i))
            seg = raddr(self.dst.addr, self.dst.key) + data(self.src.addr, 4, self.src.key) \
                + data(self.src.addr + 4, 2, self.src.key) + data(self.src.addr + 6, 2,
                                                                  self.src.key)
            self.a.post(WRITE, seg)
            self.assertEqual(self.done()[:2], (REQ, 0))
            self.assertEqual(self.d.read(self.dst.addr, 8), struct.pack("<Q", i))

    def test_cq_overrun(self):
        self.pair()
        q, small = None, Cq(self.d, log_size=1)
        q = Qp(self.d, cq=small)
        q.connect(q.num)
        for _ in range(3):
            q.post(NOP)
        self.assertIn(4, [t for t, _, _ in self.d.events()])
        self.assertEqual(self.d.cmd("QUERY_CQ", {"cqn": small.num})("cq_context.status"), 0xa)

    def test_resize_needs_room(self):
        self.pair()
        for _ in range(4):
            self.a.post(NOP)
        ring = self.d.page()
        values = {"cqn": self.a.cq.num, "cq_context.log_cq_size": 2}
        self.refused("BAD_CQ_SIZE", self.d.cmd, "MODIFY_CQ", values, struct.pack(">Q", ring),
                     op_mod=1)
        self.assertEqual([self.done()[0] for _ in range(4)], [REQ] * 4)
        self.d.cmd("MODIFY_CQ", values, struct.pack(">Q", ring), op_mod=1)
        self.assertEqual(self.done()[0], 5, "the old buffer ends with a mark")
        self.a.post(NOP)
        self.assertEqual(self.d.read(ring + 64, 64)[63] >> 4, REQ)

    def test_events_of_the_port(self):
        d = self.driver()
        d.set("link_up", False)
        d.set("link_up", False)
        d.set("link_up", True)
        self.assertEqual([(t, s) for t, s, _ in d.events()], [(9, 1), (9, 4)])

    def test_broken_queue(self):
        self.pair()
        self.d.step(1)
        self.d.events()
        self.d.set("break_qp", self.a.num)
        self.assertEqual([(t, data[24:28]) for t, _, data in self.d.events()],
                         [(5, struct.pack(">I", self.a.num))])
        self.assertIsNone(self.a.cq.poll())
        with self.assertRaises(ValueError):
            self.d.set("break_qp", 0x7fff)
        self.d.cmd("2RST_QP", {"qpn": self.a.num})

    def test_internal_error(self):
        d = self.driver()
        d.set("failed", True)
        self.assertEqual(d.bar_read(0x14) >> 8 & 7, 1, "interface disabled")
        with self.assertRaises(AssertionError):     # no answer
            d.cmd("ALLOC_PD")
        with self.assertRaises(ValueError):
            d.set("failed", False)
        d.bar_write(0x14, d.queue & 0xffffffff | 1 << 8, 4)
        self.assertTrue(d.get("failed"), "the driver only said that it has seen it")
        d.bar_write(0x10, d.queue >> 32, 4)
        d.bar_write(0x14, d.queue & 0xffffffff, 4)
        self.assertEqual(d.bar_read(0x14) >> 8 & 7, 0)
        d.bring_up()

    def test_psn_wraps(self):
        self.pair()
        for q in (self.a, self.b):
            q.reset()
        self.join(psn=0xfffffd, mtu=1)
        payload = bytes(i % 251 for i in range(4000))
        self.d.write(self.src.addr, payload)
        for op in (WRITE, READ):
            self.a.post(op, raddr(self.dst.addr, self.dst.key)
                        + data(self.src.addr, 4000, self.src.key))
            self.assertEqual(self.done()[:2], (REQ, 0))
        self.assertEqual(self.d.read(self.dst.addr, 4000), payload)
        qp = self.d.cmd("QUERY_QP", {"qpn": self.a.num})
        self.assertLess(qp("qpc.next_send_psn"), 0x100)

    def test_key_kinds(self):
        """PA and KLM keys; a list adds the checks of the keys it names."""
        self.pair()
        values = {"memory_key_mkey_entry." + f: 1 for f in "lr lw rr rw length64".split()}
        pa = self.d.cmd("CREATE_MKEY", {**values, "memory_key_mkey_entry.pd": self.d.pd})
        pa = pa("mkey_index") << 8
        one, two = Mr(self.d), Mr(self.d, access="lr lw rr")
        entry = b"".join(struct.pack(">IIQ", 100, m.key, m.addr + 8) for m in (one, two))
        klm = self.d.cmd("CREATE_MKEY", {
            **{k: v for k, v in values.items() if "length64" not in k},
            "memory_key_mkey_entry.access_mode_1_0": 2, "memory_key_mkey_entry.pd": self.d.pd,
            "memory_key_mkey_entry.start_addr": 0x1000, "memory_key_mkey_entry.len": 200,
            "memory_key_mkey_entry.translations_octword_size": 2,
            "translations_octword_actual_size": 2}, entry)("mkey_index") << 8
        self.d.write(self.src.addr, bytes(range(200)))
        self.a.post(WRITE, raddr(0x1000 + 10, klm) + data(self.src.addr, 90, pa))
        self.assertEqual(self.done()[:2], (REQ, 0))
        self.assertEqual(self.d.read(one.addr + 18, 90), bytes(range(90)))
        self.a.post(READ, raddr(0x1000 + 50, klm) + data(self.dst.addr, 100, pa))
        self.assertEqual(self.done()[:2], (REQ, 0))
        self.assertEqual(self.d.read(self.dst.addr, 50), self.d.read(one.addr + 58, 50))
        self.a.post(WRITE, raddr(0x1000 + 50, klm) + data(self.src.addr, 100, pa))
        self.assertEqual(self.done()[:2], (REQ_ERR, REM_ACCESS))

    def test_arm(self):
        """One event for one arming, at once if something came since the last event."""
        self.pair()

        def comps():
            return sum(t == 0 and struct.unpack(">I", b[24:28])[0] == self.a.cq.num
                       for t, _, b in self.d.events())

        def arm(ci, solicited=False):
            self.d.write(BAR + self.d.uar * 4096 + 0x20,
                         struct.pack(">II", ci | solicited << 24, self.a.cq.num))
        self.a.post(NOP)
        self.assertEqual(comps(), 0)
        arm(0)
        self.assertEqual(comps(), 1)
        arm(0)
        self.assertEqual(comps(), 0, "nothing new since the last event")
        self.a.post(NOP)
        self.assertEqual(comps(), 1)
        self.a.post(NOP)
        self.assertEqual(comps(), 0, "not armed")
        arm(3, solicited=True)
        self.a.post(NOP)
        self.assertEqual(comps(), 0, "not solicited")
        self.d.cmd("2ERR_QP", {"qpn": self.a.num})
        self.a.post(NOP)
        self.assertEqual(comps(), 1, "an error counts as solicited")

    def test_moderation(self):
        """An event after so many completions, or when the period since the first is over."""
        self.pair()
        num = self.a.cq.num

        def modify(count, period_us):
            # the two values are chosen by bits 1 and 0
            self.d.cmd("MODIFY_CQ", {
                "cqn": num, "modify_field_select_resize_field_select.modify_field_select"
                            ".modify_field_select": 3,
                "cq_context.cq_max_count": count, "cq_context.cq_period": period_us})

        def events_after(posts):
            self.d.write(BAR + self.d.uar * 4096 + 0x20, struct.pack(">II", self.a.cq.ci, num))
            for _ in range(posts):
                self.a.post(NOP)
            return sum(t == 0 for t, _, _ in self.d.events())

        modify(4, 4095)
        began = time.monotonic()
        three = events_after(3)
        if time.monotonic() - began < 0.003:
            self.assertEqual(three, 0, "three of four, and the period is not over")
        self.d.step(20)
        self.assertEqual(three + sum(t == 0 for t, _, _ in self.d.events()), 1, "it is over")
        modify(2, 0)
        self.assertEqual(events_after(1), 1, "no period, no moderation")

    def test_datagrams(self):
        """UD: 40 bytes of header, Q_Key, longer than the MTU."""
        self.d = d = self.driver()
        a, b, src, dst = Qp(d, 2), Qp(d, 2), Mr(d), Mr(d)
        for q in (a, b):
            q.connect()
        gid = bytes.fromhex("fe80") + b"\0" * 13 + b"\1"

        def av(qkey):
            return struct.pack(">IIIBBHI6sBBI", qkey, 0, b.num | 1 << 31, 0, 0, 0, 0,
                               bytes.fromhex("02c903000001"), 0, 64, 1 << 30) + gid
        b.recv(dst.addr, 4096, dst.key)
        d.write(src.addr, b"datagram")
        a.post(SEND, av(0x11111111) + data(src.addr, 8, src.key))
        self.assertEqual(self.done(b), (RECV, 0, 0, 48))
        got = d.read(dst.addr, 48)
        self.assertEqual((got[0] >> 4, got[8:24], got[24:40], got[40:]), (6, gid, gid, b"datagram"))
        b.recv(dst.addr, 4096, dst.key)
        a.post(SEND, av(0x22222222) + data(src.addr, 8, src.key))
        self.assertEqual(self.done(a)[:2], (REQ, 0))
        self.assertEqual(self.done(a)[:2], (REQ, 0))
        self.assertEqual(d.counters()["rdma_rx_bad_qkey"], 1)
        a.post(SEND, av(0x11111111) + data(src.addr, 1025, src.key))
        self.assertEqual(self.done(a)[:2], (REQ_ERR, 0x01))
        self.assertEqual(a.state(), 4)


class Dc(ModelTest):
    """DC of one device to itself."""

    def setUp(self):
        self.d = d = self.driver()
        self.rmp, self.cq = make_rmp(d), Cq(d)
        self.key = 0x1122334455667788
        self.targets = [self.target() for _ in range(2)]
        self.i = Qp(d, 5, **{"qpc.rq_type": 3})
        self.i.connect(retry=1)
        self.src, self.dst = Mr(d), Mr(d)

    def target(self):
        return make_dct(self.d, self.cq, self.rmp, self.key)

    def read(self, dctn, key=None, rkey=None):
        self.i.post(READ, dc_av(dctn, key or self.key) + raddr(self.dst.addr, rkey or self.dst.key)
                    + data(self.src.addr, 64, self.src.key))
        return wait_for(lambda: (self.d.settle(), self.i.cq.poll())[1])[:2]

    def test_connects(self):
        """One connect exchange for every change of target and no other; the first target since
        a reset is a connection, and no change."""
        for dctn, connects in ((0, 1), (0, 1), (1, 2), (1, 2), (0, 3)):
            self.assertEqual(self.read(self.targets[dctn]), (REQ, 0))
            counters = self.d.counters()
            self.assertEqual((counters["dc_connects"], counters["dc_target_changes"]),
                             (connects, connects - 1))
        self.assertEqual(self.d.counters()["dc_accepted"], 3)

    def test_mistakes(self):
        d = self.d
        d.cmd("ARM_DCT_FOR_KEY_VIOLATION", {"dct_number": self.targets[0]})
        self.assertEqual(self.read(self.targets[0], key=1), (REQ_ERR, RETRY_EXC))
        self.assertIn(0x1d, [t for t, _, _ in d.events()])
        count = "dct_context_entry.dc_access_key_violation_count"
        self.assertEqual(d.cmd("QUERY_DCT", {"dctn": self.targets[0]})(count), 1)
        for kw, want in (({"dctn": 0x3fff}, RETRY_EXC),
                         ({"dctn": self.targets[0], "rkey": self.dst.key + 1}, REM_ACCESS)):
            self.i.reset()
            self.i.connect()
            self.assertEqual(self.read(**kw), (REQ_ERR, want))
            self.assertEqual(self.i.state(), 6)
        self.i.reset()
        self.i.connect()
        self.assertEqual(self.read(self.targets[0]), (REQ, 0), "the target serves on")

    def test_drained(self):
        self.assertEqual(self.read(self.targets[0]), (REQ, 0))
        self.d.cmd("DRAIN_DCT", {"dctn": self.targets[0]})
        self.assertIn(0x1c, [t for t, _, _ in self.d.events()])
        self.assertEqual(self.read(self.targets[0]), (REQ_ERR, RETRY_EXC))

    def test_limit_of_the_rmp(self):
        rmp = Rmp(self.d)
        rmp.limit(3)
        self.assertEqual(self.d.cmd("QUERY_RMP", {"rmpn": rmp.num})("rmp_context.wq.lwm"), 3)


class DcOfOthers(Dc):
    """DC where a target that is not there, or a wrong key, is not answered at all."""

    def driver(self, *args, **kw):
        return super().driver(*args, dc_refusal="silent", **kw)

    def test_mistakes(self):
        """It is asked again until the retries are over; a refusal of memory is something else."""
        before = self.d.counters()["dc_connects"]
        for kw in ({"dctn": self.targets[0], "key": 1}, {"dctn": 0x3fff}):
            self.assertEqual(self.read(**kw), (REQ_ERR, RETRY_EXC))
            self.i.reset()
            self.i.connect(retry=1)
        self.assertGreaterEqual(self.d.counters()["dc_connects"], before + 4)
        self.assertEqual(self.read(self.targets[0], rkey=self.dst.key + 1),
                         (REQ_ERR, REM_ACCESS))
        self.i.reset()
        self.i.connect()
        self.assertEqual(self.read(self.targets[0]), (REQ, 0), "the target serves on")


class WithoutDc(ModelTest):
    """An adapter that has no DC."""

    def test_neither_target_nor_initiator(self):
        d = self.driver(dct="off")
        cq, rmp = Cq(d), make_rmp(d)
        self.refused("BAD_OP", d.cmd, "CREATE_DCT", {
            "dct_context_entry.pd": d.pd, "dct_context_entry.cqn": cq.num,
            "dct_context_entry.srqn_xrqn": rmp, "dct_context_entry.port": 1,
            "dct_context_entry.mtu": 3})
        self.refused("BAD_PARAM", Qp, d, 5, **{"qpc.rq_type": 3})
        Qp(d).connect(1)


class Faults(ModelTest):
    """The transport between two devices under faults."""

    def nodes(self, mtu=1, **kw):
        fabric = tempfile.mkdtemp(prefix="cx-fab-")
        self.addCleanup(lambda: shutil.rmtree(fabric, ignore_errors=True))
        self.x = self.driver(node=1, fabric=fabric, **kw)
        self.y = self.driver(node=2, fabric=fabric, **kw)
        self.macs = [bytes.fromhex("02c903000001"), bytes.fromhex("02c903000002")]
        self.gids = [bytes.fromhex("fe80") + b"\0" * 13 + bytes([n]) for n in (1, 2)]
        self.y.set_gid(0, self.gids[1], self.macs[1])
        self.a, self.b = Qp(self.x), Qp(self.y)
        self.a.connect(self.b.num, mac=self.macs[1], gid=self.gids[1], mtu=mtu)
        self.b.connect(self.a.num, mac=self.macs[0], gid=self.gids[0], mtu=mtu)
        self.src, self.dst = Mr(self.x), Mr(self.y)

    def until_done(self, q=None, steps=400):
        q = q or self.a
        for _ in range(steps):
            got = q.cq.poll()
            if got:
                return got
            self.y.settle()
            self.x.settle()
            self.y.step(5)
            self.x.step(5)
        return None

    def test_faults_change_no_data(self):
        """WRITE, READ and FETCH_ADD while frames are lost, doubled and reordered."""
        self.nodes(timeout_floor_ms=20, seed=7)
        for d in (self.x, self.y):
            d.set("loss_ppm", 50000)
            d.set("dup_ppm", 50000)
            d.set("reorder_ppm", 50000)
        word = data(self.src.addr + 4000, 8, self.src.key)
        for i in range(12):
            payload = bytes((i * 31 + k) % 256 for k in range(3500))
            self.x.write(self.src.addr, payload)
            self.a.post(WRITE, raddr(self.dst.addr, self.dst.key)
                        + data(self.src.addr, 3500, self.src.key))
            self.assertEqual(self.until_done()[:2], (REQ, 0))
            self.assertEqual(self.y.read(self.dst.addr, 3500), payload)
            self.x.write(self.src.addr, b"\0" * 3500)
            self.a.post(READ, raddr(self.dst.addr, self.dst.key)
                        + data(self.src.addr, 3500, self.src.key))
            self.assertEqual(self.until_done()[:2], (REQ, 0))
            self.assertEqual(self.x.read(self.src.addr, 3500), payload)
            self.a.post(FETCH_ADD, raddr(self.dst.addr + 4000, self.dst.key)
                        + struct.pack(">QQ", 1, 0) + word)
            self.assertEqual(self.until_done()[:2], (REQ, 0))
            self.assertEqual(self.x.read(self.src.addr + 4000, 8), struct.pack("<Q", i))
        got = self.x.counters()
        self.assertGreater(got["fault_lost"], 0)
        self.assertGreater(got["fault_duplicated"], 0)
        self.assertGreater(got["fault_reordered"], 0)
        self.assertGreater(got["retransmits"], 0)
        self.assertGreater(self.y.counters()["duplicates"], 0)

    def test_late_duplicates_take_no_room(self):
        """Answers to duplicates don't use up the responder's room for READs."""
        self.nodes(mtu=5, timeout_floor_ms=20, seed=3)
        src, dst = Mr(self.x, pages=16), Mr(self.y, pages=16)
        for d in (self.x, self.y):
            d.set("loss_ppm", 20000)
            d.set("dup_ppm", 100000)
            d.set("reorder_ppm", 100000)
        for i in range(4):
            for k in range(48):
                self.a.post(READ, raddr(dst.addr, dst.key)
                            + data(src.addr, 65536, src.key), ring=k == 47)
            for k in range(48):
                self.assertEqual(self.until_done()[:2], (REQ, 0), f"READ {48 * i + k}")
        self.assertGreater(self.y.counters()["replays"], 0)

    def test_atomic_answer_lost(self):
        """The answer of an atomic is lost: asked again, executed once."""
        self.nodes(timeout_floor_ms=20)
        self.x.write(self.src.addr, b"\0" * 8)
        seg = raddr(self.dst.addr, self.dst.key) + struct.pack(">QQ", 5, 0) \
            + data(self.src.addr, 8, self.src.key)
        self.a.post(FETCH_ADD, seg)
        self.assertEqual(self.until_done()[:2], (REQ, 0))
        self.y.set("loss_ppm", 1000000)
        self.a.post(FETCH_ADD, seg)
        for _ in range(3):
            self.y.settle()
        self.assertEqual(self.y.read(self.dst.addr, 8), struct.pack("<Q", 10))
        self.y.set("loss_ppm", 0)
        self.assertEqual(self.until_done()[:2], (REQ, 0))
        self.assertEqual(self.y.read(self.dst.addr, 8), struct.pack("<Q", 10))
        self.assertEqual(self.x.read(self.src.addr, 8), struct.pack("<Q", 5))
        self.assertGreater(self.y.counters()["replays"], 0)

    def test_lost_on_arrival(self):
        """A node that loses what arrives: nothing is executed there, until it stops losing."""
        self.nodes(timeout_floor_ms=20)
        self.y.write(self.dst.addr, b"\0" * 8)
        self.x.write(self.src.addr, b"arrived!")
        self.y.set("rx_loss_ppm", 1000000)
        self.a.post(WRITE, raddr(self.dst.addr, self.dst.key)
                    + data(self.src.addr, 8, self.src.key))
        for _ in range(3):
            self.y.settle()
        self.assertEqual(self.y.read(self.dst.addr, 8), b"\0" * 8)
        self.assertGreater(self.y.counters()["fault_lost"], 0)
        self.y.set("rx_loss_ppm", 0)
        self.assertEqual(self.until_done()[:2], (REQ, 0))
        self.assertEqual(self.y.read(self.dst.addr, 8), b"arrived!")

    def test_dead_peer(self):
        self.nodes(timeout_floor_ms=20)
        self.x.set("partition", "2")
        self.assertEqual(self.x.get("partition"), "2")
        self.a.post(SEND, data(self.src.addr, 8, self.src.key))
        self.a.post(SEND, data(self.src.addr, 8, self.src.key))
        self.assertEqual(self.until_done()[:2], (REQ_ERR, RETRY_EXC))
        self.assertEqual(self.until_done()[:2], (REQ_ERR, FLUSH))
        self.assertEqual(self.x.counters()["timeouts"], 7)

    def test_same_seed_same_faults(self):
        fates = []
        for _ in range(2):
            d = self.driver(seed=42, loss_ppm=300000)
            a, m = Qp(d), Mr(d)
            a.connect(a.num)
            a.modify("RTS2RTS_QP")
            for _ in range(20):
                a.post(WRITE, raddr(m.addr, m.key) + data(m.addr, 8, m.key))
            fates.append([line.split(" ", 2)[2] for line in d.trace().splitlines()
                          if " fault " in line])
        self.assertEqual(fates[0], fates[1])
        self.assertGreater(len(fates[0]), 2)

    def test_bad_partition(self):
        d = self.driver()
        d.set("partition", "3,4")
        with self.assertRaises(ValueError):
            d.set("partition", "3,x")
        self.assertEqual(d.get("partition"), "3,4")


def main():
    argv = [sys.argv[0]]
    args = iter(sys.argv[1:])
    for arg in args:
        if arg == "--model":
            OPT["model"] = next(args)
        elif arg == "--headers":
            OPT["headers"] = next(args)
        elif arg == "--sanitize":
            OPT["sanitize"] = True
        else:
            argv.append(arg)
    OPT["ifc"] = Ifc(os.path.join(OPT["headers"], "ifc/linux/mlx5/mlx5_ifc.h"),
                     os.path.join(HERE, "..", "commands.def"))
    unittest.main(argv=argv)


if __name__ == "__main__":
    main()
