# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The self-check of a virtual function, always beside a PF.

Owns: what is refused to a VF and not to a PF, and what a VF is accepted in
without that the port moves.  A part of test_model.py.
"""
import struct

from case import ModelTest
from cxdrv import Refused


class VirtualFunction(ModelTest):
    """What only a PF may do is refused to a VF, changes nothing, and is accepted of a PF."""

    PAOS, PMTU, PTYS, PFCC, PVLC, ENDIANNESS = 0x5006, 0x5003, 0x5004, 0x5007, 0x500f, 0x7004

    def setUp(self):
        self.vf, self.pf = self.driver(vf="on"), self.driver()

    def pf_only(self, status, name, values=None, tail=b"", op_mod=0):
        """The PF is answered; the VF is refused, and its trace says that it is for being one."""
        self.pf.cmd(name, values, tail, op_mod)
        self.refused(status, self.vf.cmd, name, values, tail, op_mod)
        self.assertRegex(self.vf.trace().splitlines()[-1], name + r".* syndrome 0x[0-9a-f]+: VF: ")

    def reg(self, d, number, payload=b"", read=True):
        """Write or read a register of 16 bytes; returns what it is then."""
        layout = d.ifc.encode("access_register_in", {"opcode": d.ifc.opcode["ACCESS_REG"],
                                                     "op_mod": read, "register_id": number})
        out = d.raw(layout + payload.ljust(16, b"\0"), 32)
        if out[0]:
            raise Refused("ACCESS_REG", out[0], int.from_bytes(out[4:8], "big"))
        return out[16:]

    def test_looks(self):
        """PCI device, number of interrupts, size of the BAR, number among the functions."""
        for d, device, vectors, bar in ((self.vf, 0x1018, 11, 2 << 20),
                                        (self.pf, 0x1017, 32, 32 << 20)):
            self.assertEqual(d.config(0), device << 16 | 0x15b3)
            self.assertEqual(d.bar_size(), bar)
            d.create_eq(0, intr=vectors - 1)
            self.refused("BAD_PARAM", d.create_eq, 0, intr=vectors)

    def test_pages_of_the_bar(self):
        """A VF has fewer doorbell pages; the last one works as the first one does."""
        for d, bar in ((self.vf, 2 << 20), (self.pf, 32 << 20)):
            free = bar // 4096 - 16 - 1     # 16 are not doorbells, one is the driver's
            last = [d.cmd("ALLOC_UAR")("uar") for _ in range(free)][-1]
            self.assertLess(last * 4096, bar)
            self.refused("NO_RES", d.cmd, "ALLOC_UAR")
            if d is self.vf:
                d.cmd("DEALLOC_UAR", {"uar": last})
                self.assertEqual(d.cmd("ALLOC_UAR")("uar"), last)

    def test_own_memory(self):
        """A PF is asked for pages; a VF is not, and cannot give any."""
        page = self.pf.page()
        give = {"input_num_entries": 1}
        for phase in (1, 2):
            self.assertEqual(self.pf.cmd("QUERY_PAGES", op_mod=phase)("num_pages"), 4)
            self.assertEqual(self.vf.cmd("QUERY_PAGES", op_mod=phase)("num_pages"), 0)
        self.pf_only("LIMIT", "MANAGE_PAGES", give, struct.pack(">Q", page), op_mod=1)
        self.vf.cmd("MANAGE_PAGES", {"input_num_entries": 0}, op_mod=1)

    def test_other_functions(self):
        """A VF has nobody beneath it: whatever is for another vport or function is refused."""
        other = {"other_vport": 1, "vport_number": 1}
        for name in ("QUERY_VPORT_STATE", "QUERY_NIC_VPORT_CONTEXT", "QUERY_HCA_VPORT_CONTEXT",
                     "QUERY_HCA_VPORT_GID", "QUERY_HCA_VPORT_PKEY", "QUERY_VPORT_COUNTER",
                     "QUERY_VNIC_ENV", "MODIFY_NIC_VPORT_CONTEXT"):
            self.vf.cmd(name)
            self.pf_only("BAD_PARAM", name, other)
        self.pf_only("BAD_PARAM", "QUERY_PAGES", {"function_id": 1}, op_mod=1)
        self.pf_only("BAD_PARAM", "CREATE_FLOW_TABLE", other)
        self.refused("BAD_PARAM", self.vf.cmd, "QUERY_HCA_CAP", {"other_function": 1})
        self.refused("BAD_PARAM", self.vf.cmd, "SET_HCA_CAP",
                     {"other_function": 1, "function_id": 2})

    def test_registers_of_the_port(self):
        """A VF reads them all; it writes none of them, as the PF does."""
        for number in (self.PTYS, self.PFCC, self.PVLC, self.ENDIANNESS):
            self.reg(self.vf, number)
            self.reg(self.pf, number, read=False)
            self.refused("BAD_PARAM", self.reg, self.vf, number, b"\xff" * 16, read=False)
            self.assertIn("VF: register", self.vf.trace().splitlines()[-1])
        self.assertEqual(self.reg(self.vf, self.PFCC)[8:12], b"\0" * 4)

    def test_port_is_not_moved(self):
        """The drivers set state and MTU of the port on a VF too: accepted, without effect."""
        down = b"\0\1\2\0\x80"           # port 1, admin_status down, ase
        mtu = b"\0\1\0\0\0\0\0\0\x23\x28"     # port 1, admin_mtu 9000
        for d, state, size in ((self.vf, 1, 1544), (self.pf, 0, 9000)):
            d.events()
            self.reg(d, self.PAOS, down, read=False)
            self.assertEqual(d.cmd("QUERY_VPORT_STATE")("state"), state)
            self.assertEqual([t for t, _, _ in d.events()], [] if state else [9])
            self.reg(d, self.PMTU, mtu, read=False)
            got = self.reg(d, self.PMTU, b"\0\1")
            self.assertEqual(int.from_bytes(got[8:10], "big"), size)
        self.assertEqual(self.vf.trace().count("changes nothing"), 2)
        self.vf.set("link_up", False)
        self.assertEqual(self.vf.cmd("QUERY_VPORT_STATE")("state"), 0, "it sees the PF's port")

    def test_vport(self):
        """What a VF may set of its own vport, and what is set for it."""
        context = "nic_vport_context."
        for own in ({"field_select.mtu": 1, context + "mtu": 1400},
                    {"field_select.roce_en": 1, context + "roce_en": 1},
                    {"field_select.promisc": 1}, {"field_select.change_event": 1},
                    {"field_select.disable_uc_local_lb": 1}):
            self.vf.cmd("MODIFY_NIC_VPORT_CONTEXT", own)
        before = self.vf.cmd("QUERY_NIC_VPORT_CONTEXT")
        for field in ("permanent_address", "node_guid", "port_guid", "affiliation"):
            self.pf_only("BAD_PARAM", "MODIFY_NIC_VPORT_CONTEXT", {
                "field_select." + field: 1, "field_select.mtu": 1, context + "mtu": 700,
                context + "permanent_address.mac_addr_31_0": 0x12345678})
        after = self.vf.cmd("QUERY_NIC_VPORT_CONTEXT")
        for field in ("mtu", "permanent_address.mac_addr_31_0"):
            self.assertEqual(after(context + field), before(context + field))
        self.assertEqual(after(context + "mtu"), 1400)
        self.pf_only("BAD_OP", "MODIFY_VPORT_STATE", {"admin_state": 0})
        for op_mod in (1, 2):
            self.pf_only("BAD_PARAM", "QUERY_VPORT_STATE", op_mod=op_mod)

    def test_flow_tables(self):
        for kind in (2, 3, 4, 5, 6):
            self.pf_only("BAD_PARAM", "CREATE_FLOW_TABLE", {"table_type": kind})
        for kind in (0, 1, 7, 8):
            self.vf.cmd("CREATE_FLOW_TABLE", {"table_type": kind})

    def test_management(self):
        """No subnet management interface; the performance class is answered."""
        for kind in (0x01, 0x81):
            self.pf_only("BAD_PARAM", "MAD_IFC", {"mad": bytes([1, kind]).ljust(256, b"\0")})
        self.vf.cmd("MAD_IFC", {"mad": b"\1\4".ljust(256, b"\0")})
        for d, has in ((self.vf, 0), (self.pf, 1)):
            self.assertEqual(d.cmd("QUERY_HCA_VPORT_CONTEXT")("hca_vport_context.has_smi"), has)

    def test_second_start(self):
        self.vf.cmd("TEARDOWN_HCA")
        self.vf.cmd("DISABLE_HCA")
        self.vf.bring_up()
        self.pf_only("BAD_OP", "MODIFY_VPORT_STATE")
