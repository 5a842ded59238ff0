# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A driver for the ConnectX model in Python, over QEMU's qtest protocol.

Owns: a machine without a guest.  The only CPU halts at its first instruction;
the test reads and writes guest memory, PCI configuration and BARs itself by
the qtest protocol.  (Debian has no qtest accelerator, so time runs.)  Commands
are built by the field names of linux/mlx5/mlx5_ifc.h.
"""
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import gen_ifc  # noqa: E402

BAR = 0xE0000000
RAM_FREE = 0x200000     # guest memory handed out from here on
STATUS = {0x0: "OK", 0x2: "BAD_OP", 0x3: "BAD_PARAM", 0x4: "BAD_SYS_STATE", 0x5: "BAD_RES",
          0x6: "BUSY", 0x8: "LIMIT", 0x9: "BAD_RES_STATE", 0xa: "BAD_INDEX", 0xf: "NO_RES",
          0x10: "BAD_QP_STATE", 0x40: "BAD_CQ_SIZE", 0x50: "BAD_INLEN", 0x51: "BAD_OUTLEN"}


class Refused(Exception):
    """The device ended a command with a status."""

    def __init__(self, name, status, syndrome):
        super().__init__(f"{name}: {STATUS.get(status, hex(status))} syndrome {syndrome:#x}")
        self.status = STATUS.get(status, hex(status))


class Ifc:
    """Layouts of the commands by name."""

    def __init__(self, header, commands):
        with open(header, encoding="utf-8") as f:
            text = f.read()
        self.layouts = gen_ifc.Layouts(text)
        self.opcode = {m[1]: int(m[2], 0)
                       for m in re.finditer(r"MLX5_CMD_OP_(\w+)\s*=\s*(0x[0-9a-f]+)", text)}
        with open(commands, encoding="utf-8") as f:
            self.struct = dict(re.findall(r"^CX_CMD\((\w+), (\w+),", f.read(), re.M))
        self.cache = {}

    def fields(self, name):
        if name not in self.cache:
            fields, tail = {}, [None]

            def visit(path, leaf, off, bits):
                if bits is None:
                    tail[0] = off if tail[0] is None else min(off, tail[0])
                else:
                    fields[path] = (off, bits)
            size = self.layouts.walk_all(self.layouts.members("struct", name + "_bits"), 0, "",
                                         visit)
            self.cache[name] = fields, (tail[0] if tail[0] is not None else size) // 8
        return self.cache[name]

    def encode(self, name, values):
        fields, size = self.fields(name)
        whole = 0
        for path, val in values.items():
            off, bits = fields[path]
            if isinstance(val, bytes):
                val = int.from_bytes(val, "big")
            assert val >> bits == 0, path
            whole |= val << (size * 8 - off - bits)
        return whole.to_bytes(size, "big")

    def decode(self, name, data, path):
        off, bits = self.fields(name)[0][path]
        return int.from_bytes(data, "big") >> (len(data) * 8 - off - bits) & ((1 << bits) - 1)


class Machine:
    """One QEMU with one device, both without a driver."""

    def __init__(self, model, node=1, fabric=None, sanitize=False, **props):
        self.dir = tempfile.mkdtemp(prefix="cx-self-")
        self.model, self.sanitize = os.path.realpath(model), sanitize
        dev = {"id": "cx", "addr": "4.0", "node": node, "trace": self.path("trace"),
               "trace_classes": "all", **props}
        if fabric:
            dev["fabric"] = fabric
        preload, env = self.model, dict(os.environ)
        if sanitize:
            libs = [os.path.realpath(subprocess.check_output(
                ["gcc", "-print-file-name=lib" + s + ".so"], text=True).strip())
                for s in ("asan", "ubsan")]
            preload = " ".join(libs + [self.model])
            env["ASAN_OPTIONS"] = "detect_leaks=0:log_path=" + self.path("asan")
            env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1:log_path=" \
                + self.path("ubsan")
        with open(self.path("halt.bin"), "wb") as f:
            # cli; hlt; jmp at the reset vector
            f.write((b"\0" * 65520 + b"\xfa\xf4\xeb\xfc").ljust(65536, b"\0"))
        self.qtest_end, child = socket.socketpair()
        self.qmp_end, child2 = socket.socketpair()
        for s in (child, child2):
            os.set_inheritable(s.fileno(), True)
        err = open(self.path("err"), "wb")
        self.process = subprocess.Popen(
            ["timeout", "-k", "5", "1200", "env", "LD_PRELOAD=" + preload, "qemu-system-x86_64",
             "-M", "q35", "-accel", "tcg", "-bios", self.path("halt.bin"), "-m", "64",
             "-display", "none", "-nodefaults",
             "-chardev", f"socket,id=qtest,fd={child.fileno()}", "-qtest", "chardev:qtest",
             "-chardev", f"socket,id=mon,fd={child2.fileno()}", "-mon", "chardev=mon,mode=control",
             "-device", "connectx-model," + ",".join(f"{k}={v}" for k, v in dev.items())],
            pass_fds=[child.fileno(), child2.fileno()], stdin=subprocess.DEVNULL,
            stderr=err, env=env)
        child.close()
        child2.close()
        err.close()
        self.rx = self.qtest_end.makefile("rw", encoding="ascii")
        self.qmp_io = self.qmp_end.makefile("rw", encoding="utf-8")
        try:
            self.qmp_io.readline()
            self.qmp("qmp_capabilities")
            self.qt("inl", "0xcf8")
        except (OSError, ValueError, RuntimeError):
            self.not_started()

    def not_started(self):
        self.process.wait(10)
        for end in (self.rx, self.qmp_io, self.qtest_end, self.qmp_end):
            with contextlib.suppress(OSError):  # what was not yet sent never will be
                end.close()
        with open(self.path("err"), encoding="utf-8") as f:
            why = f.read()
        shutil.rmtree(self.dir)
        raise RuntimeError("QEMU did not start: " + why)

    def path(self, name):
        return os.path.join(self.dir, name)

    def close(self):
        """End QEMU; returns the sanitizers' reports, or how it ended if not well."""
        try:
            self.qmp("quit")
        except (OSError, ValueError):
            pass
        code = self.process.wait(120)
        for end in (self.rx, self.qmp_io, self.qtest_end, self.qmp_end):
            end.close()
        reports = [n for n in os.listdir(self.dir) if n.startswith(("asan.", "ubsan."))]
        text = ""
        for name in reports:
            with open(self.path(name), encoding="utf-8", errors="replace") as f:
                text += f.read()
        shutil.rmtree(self.dir, ignore_errors=True)
        # QEMU's coroutines make ASan warn about itself; those are no findings
        if "ERROR: AddressSanitizer" in text or "runtime error" in text:
            return text
        return f"QEMU ended with {code}" if code else ""

    # ---- qtest and QMP

    def qt(self, *words):
        self.rx.write(" ".join(str(w) for w in words) + "\n")
        self.rx.flush()
        while True:
            answer = self.rx.readline().split()
            if not answer:
                raise RuntimeError("QEMU is gone")
            if answer[0] == "OK":
                return answer[1] if len(answer) > 1 else None
            if answer[0] in ("FAIL", "ERR"):
                raise RuntimeError("qtest: " + " ".join(answer))

    def qmp(self, command, **args):
        self.qmp_io.write(json.dumps({"execute": command, "arguments": args}) + "\n")
        self.qmp_io.flush()
        while True:
            answer = json.loads(self.qmp_io.readline())
            if "error" in answer:
                raise ValueError(answer["error"]["desc"])
            if "return" in answer:
                return answer["return"]

    def set(self, prop, value):
        self.qmp("qom-set", path="/machine/peripheral/cx", property=prop, value=value)

    def get(self, prop):
        return self.qmp("qom-get", path="/machine/peripheral/cx", property=prop)

    def counters(self):
        return json.loads(self.get("counters"))

    def step(self, ms):
        """Let time pass."""
        time.sleep(ms / 1000)
        self.settle()

    def settle(self):
        """Let bottom halves and sockets of QEMU's main loop run."""
        for _ in range(3):
            self.get("link_up")

    def read(self, addr, size):
        return bytes.fromhex(self.qt("read", hex(addr), size)[2:])

    def write(self, addr, data):
        if data:
            self.qt("write", hex(addr), len(data), "0x" + bytes(data).hex())

    def trace(self):
        with open(self.path("trace"), encoding="utf-8", errors="replace") as f:
            return f.read()


class Driver(Machine):
    """The machine with a device brought up as a driver does it."""

    def __init__(self, model, ifc, init=True, **kw):
        super().__init__(model, **kw)
        self.ifc, self.next_page, self.eth = ifc, RAM_FREE, kw.get("link", "eth") == "eth"
        self.pci()
        self.queue = self.page()
        self.mbox_in = [self.page() for _ in range(8)]
        self.mbox_out = [self.page() for _ in range(4)]
        self.token, self.timeout = 0, 0
        self.bar_write(0x10, self.queue >> 32, 4)
        self.bar_write(0x14, self.queue & 0xffffffff, 4)
        if init:
            self.bring_up()

    def page(self, nr=1):
        at = self.next_page
        self.next_page += 4096 * nr
        self.write(at, b"\0" * 4096 * nr)
        return at

    def pci(self):
        self.config(0x10, BAR)
        self.config(0x14, 0)
        self.config(0x18, BAR + (32 << 20))
        self.config(0x04, 0x6)      # memory space, bus master

    def config(self, reg, val=None):
        """Read, or write, 32 bits of the PCI configuration."""
        self.qt("outl", "0xcf8", hex(0x80000000 | 4 << 11 | reg))
        if val is None:
            return int(self.qt("inl", "0xcfc"), 16)
        return self.qt("outl", "0xcfc", hex(val))

    def bar_size(self):
        was = self.config(0x10)
        self.config(0x10, 0xffffffff)
        size = -(self.config(0x10) & ~0xf) & 0xffffffff
        self.config(0x10, was)
        return size

    def bar_write(self, off, val, size):
        self.write(BAR + off, val.to_bytes(size, "big"))

    def bar_read(self, off):
        return int.from_bytes(self.read(BAR + off, 4), "big")

    # ---- commands

    def chain(self, pages, data, token):
        """Lay data into mailbox blocks, two to a page; returns the first block."""
        blocks = [p + o for p in pages for o in (0, 1024, 2048, 3072)]
        need = max(1, -(-len(data) // 512))
        for i in range(need):
            nxt = blocks[i + 1] if i + 1 < need else 0
            part = data[512 * i:512 * i + 512].ljust(512, b"\0")
            self.write(blocks[i], part + b"\0" * 48
                       + struct.pack(">QIBBBB", nxt, i, 0, token, 0, 0))
        return blocks[:need]

    def raw(self, data, outlen=16):
        """Run one command; returns its whole output."""
        self.token = self.token % 255 + 1
        first_in, out_blocks = 0, []
        if len(data) > 16:
            first_in = self.chain(self.mbox_in, data[16:], self.token)[0]
        if outlen > 16:
            out_blocks = self.chain(self.mbox_out, b"\0" * (outlen - 16), self.token)
        entry = struct.pack(">B3xIQ16s16sQIBBBB", 7, len(data), first_in, data[:16], b"",
                            out_blocks[0] if out_blocks else 0, outlen, self.token, 0, 0, 1)
        self.write(self.queue, entry)
        self.bar_write(0x18, 1, 4)
        entry, end = self.read(self.queue, 64), time.monotonic() + self.timeout
        while entry[63] & 1 and time.monotonic() < end:
            time.sleep(0.005)
            entry = self.read(self.queue, 64)
        assert not entry[63] & 1, "command is still owned by the device"
        self.delivery = entry[63] >> 1
        out = entry[32:48] + b"".join(self.read(b, 512) for b in out_blocks)
        return out[:max(outlen, 16)]

    def cmd(self, name, values=None, tail=b"", op_mod=0, outlen=None):
        """Run a command given by field names; returns a reader of its output."""
        layout = self.ifc.struct[name]
        data = self.ifc.encode(layout + "_in", {"opcode": self.ifc.opcode[name],
                                                "op_mod": op_mod, **(values or {})}) + tail
        size = self.ifc.fields(layout + "_out")[1]
        out = self.raw(data, max(16, outlen or size))
        if out[0]:
            raise Refused(name, out[0], int.from_bytes(out[4:8], "big"))

        def field(path):
            return self.ifc.decode(layout + "_out", out[:size], path)
        return field

    def capability(self, name):
        """One of the general capabilities, as they are now."""
        out = self.raw(struct.pack(">HHHH8x", self.ifc.opcode["QUERY_HCA_CAP"], 0, 0, 1), 16 + 4096)
        return self.ifc.decode("cmd_hca_cap", out[16:16 + self.ifc.fields("cmd_hca_cap")[1]], name)

    def bring_up(self):
        self.cmd("ENABLE_HCA")
        self.cmd("QUERY_ISSI")
        self.cmd("SET_ISSI", {"current_issi": 1})
        self.cmd("INIT_HCA")
        self.uar = self.cmd("ALLOC_UAR")("uar")
        self.eqn = self.create_eq(1 << 0x1c | 1 << 0x1d | 1 << 0x09 | 1 << 0x10 | 1 << 0x11 |
                                  1 << 0x02 | 1 << 0x13 | 1 << 0x14 | 1 << 0x04 | 1 << 0x05)
        self.pd = self.cmd("ALLOC_PD")("pd")
        if self.eth:
            self.set_gid(0, bytes.fromhex("fe80") + b"\0" * 13 + b"\1")

    def set_gid(self, index, gid, mac=None):
        mac = mac or bytes.fromhex("02c903000001")
        self.cmd("SET_ROCE_ADDRESS", {"roce_address_index": index,
                                      "roce_address.source_l3_address": gid,
                                      "roce_address.source_mac_47_32": mac[:2],
                                      "roce_address.source_mac_31_0": mac[2:],
                                      "roce_address.roce_version": 2,
                                      "roce_address.roce_l3_type": 1})

    def create_eq(self, events, intr=0):
        self.eq_page, self.eq_ci = self.page(2), 0
        return self.cmd("CREATE_EQ", {"eq_context_entry.log_eq_size": 7,
                                      "eq_context_entry.uar_page": self.uar,
                                      "eq_context_entry.intr": intr,
                                      "event_bitmask": events << 192},
                        struct.pack(">QQ", self.eq_page, self.eq_page + 4096))("eq_number")

    def events(self):
        """New entries of the event queue: (type, sub-type, 28 bytes)."""
        out = []
        while True:
            e = self.read(self.eq_page + self.eq_ci % 128 * 64, 64)
            if e[63] & 1 != self.eq_ci >> 7 & 1 or (not e[1] and not any(e)):
                return out
            if self.eq_ci < 128 and not e[1] and e[32:60] == b"\0" * 28:
                return out
            out.append((e[1], e[3], e[32:60]))
            self.eq_ci += 1


class Cq:
    def __init__(self, drv, log_size=6, **more):
        self.drv, self.log, self.ci = drv, log_size, 0
        self.ring, self.dbr = drv.page(max(1, 64 << log_size >> 12)), drv.page()
        drv.write(self.ring, (b"\0" * 63 + b"\xf1") * (1 << log_size))
        pages = [self.ring + 4096 * i for i in range(max(1, 64 << log_size >> 12))]
        self.num = drv.cmd("CREATE_CQ", {
            "cq_context.log_cq_size": log_size, "cq_context.uar_page": drv.uar,
            "cq_context.c_eqn_or_apu_element": drv.eqn, "cq_context.dbr_addr": self.dbr, **more},
            b"".join(struct.pack(">Q", p) for p in pages))("cqn")

    def poll(self):
        """The next completion as (opcode, syndrome, wqe counter, bytes), or None."""
        e = self.drv.read(self.ring + self.ci % (1 << self.log) * 64, 64)
        if e[63] >> 4 == 15 or e[63] & 1 != self.ci >> self.log & 1:
            return None
        self.ci += 1
        self.drv.write(self.dbr, struct.pack(">I", self.ci & 0xffffff))
        syndrome = e[0x37] if e[63] >> 4 in (13, 14) else 0
        return e[63] >> 4, syndrome, struct.unpack(">H", e[60:62])[0], \
            struct.unpack(">I", e[0x2c:0x30])[0]


class Mr:
    """A registered page of guest memory."""

    def __init__(self, drv, access="lr lw rr rw a", pd=None, pages=1, start=None):
        self.drv, self.addr = drv, drv.page(pages)
        self.start = self.addr if start is None else start
        octwords = -(-pages // 2)
        mtt = b"".join(struct.pack(">Q", self.addr + 4096 * i) for i in range(pages))
        values = {"memory_key_mkey_entry." + f: 1 for f in access.split()}
        values.update({"memory_key_mkey_entry.access_mode_1_0": 1,
                       "memory_key_mkey_entry.pd": drv.pd if pd is None else pd,
                       "memory_key_mkey_entry.mkey_7_0": 0x42,
                       "memory_key_mkey_entry.start_addr": self.start,
                       "memory_key_mkey_entry.len": 4096 * pages,
                       "memory_key_mkey_entry.log_page_size": 12,
                       "memory_key_mkey_entry.translations_octword_size": octwords,
                       "translations_octword_actual_size": octwords})
        self.index = drv.cmd("CREATE_MKEY", values, mtt.ljust(octwords * 16, b"\0"))("mkey_index")
        self.key = self.index << 8 | 0x42


class Qp:
    """A queue pair with 16 receive entries of one segment and 64 send blocks."""

    def __init__(self, drv, service=0, cq=None, **more):
        self.drv, self.service = drv, service
        self.cq = cq or Cq(drv)
        self.buf, self.dbr = drv.page(2), drv.page()
        self.sq, self.pi, self.rpi = self.buf + 256, 0, 0
        values = {"qpc.st": service, "qpc.pm_state": 3, "qpc.pd": drv.pd,
                  "qpc.uar_page": drv.uar, "qpc.cqn_snd": self.cq.num,
                  "qpc.cqn_rcv": self.cq.num, "qpc.log_rq_size": 4, "qpc.log_sq_size": 6,
                  "qpc.dbr_addr": self.dbr, "qpc.user_index": 0xabc}
        values.update(more)
        if values.get("qpc.rq_type"):
            self.sq = self.buf
        self.num = drv.cmd("CREATE_QP", values,
                           struct.pack(">QQ", self.buf, self.buf + 4096))("qpn")

    def modify(self, how, **values):
        self.drv.cmd(how, {"qpn": self.num, "qpc.st": self.service, "qpc.pm_state": 3,
                           **{"qpc." + k.replace("__", "."): v for k, v in values.items()}})

    def connect(self, peer=None, mac=bytes.fromhex("02c903000001"), psn=0x123456,
                gid=bytes.fromhex("fe80") + b"\0" * 13 + b"\1", access=True, lid=1, retry=7,
                rnr=7, mtu=3, sra=3, timeout=14, pkey_index=0, grh=False):
        path = "primary_address_path__"
        self.modify("RST2INIT_QP", rre=access, rwe=access, rae=access, q_key=0x11111111,
                    **{path + "vhca_port_num": 1, path + "pkey_index": pkey_index})
        addr = {path + "rmac_47_32": mac[:2], path + "rmac_31_0": mac[2:],
                path + "rgid_rip": gid, path + "rlid": 0 if self.drv.eth else lid,
                path + "grh": grh}
        self.modify("INIT2RTR_QP", mtu=mtu, log_msg_max=30, remote_qpn=peer if peer else 0,
                    next_rcv_psn=psn, log_rra_max=3, min_rnr_nak=12,
                    **(addr if self.service in (0, 1) else {}))
        self.modify("RTR2RTS_QP", next_send_psn=psn, log_sra_max=sra, retry_count=retry,
                    rnr_retry=rnr, **{path + "ack_timeout": timeout})

    def reset(self):
        self.drv.cmd("2RST_QP", {"qpn": self.num})
        self.pi = self.rpi = 0
        self.drv.write(self.dbr, b"\0" * 8)

    def state(self):
        return self.drv.cmd("QUERY_QP", {"qpn": self.num})("qpc.state")

    def ring_at(self, index):
        return self.sq + index % 64 * 64

    def post(self, opcode, segments=b"", imm=0, signaled=True, fence=0, qpn=None, index=None,
             ring=True):
        """Post a send request made of an opcode and its segments; rings the doorbell."""
        ds = 1 + len(segments) // 16
        flags = (8 if signaled else 0) | fence << 5
        ctrl = struct.pack(">IIBBBBI", ((self.pi if index is None else index) & 0xffff) << 8
                           | opcode, (self.num if qpn is None else qpn) << 8 | ds, 0, 0, 0, flags,
                           imm)
        wqe = ctrl + segments
        for i in range(0, len(wqe), 64):
            self.drv.write(self.ring_at(self.pi + i // 64), wqe[i:i + 64])
        self.pi += -(-len(wqe) // 64)
        if ring:
            self.record(self.pi)
            self.ring(ctrl[:4] + struct.pack(">I", self.num << 8 | ds))

    def record(self, index):
        """Say in the doorbell record where the requests end."""
        self.drv.write(self.dbr + 4, struct.pack(">I", index & 0xffff))

    def ring(self, request):
        """Write the first 8 bytes of a request to the doorbell."""
        self.drv.write(BAR + self.drv.uar * 4096 + 0x800, request)
        self.drv.settle()

    def recv(self, addr, size, lkey):
        self.drv.write(self.buf + self.rpi % 16 * 16, struct.pack(">IIQ", size, lkey, addr))
        self.rpi += 1
        self.drv.write(self.dbr, struct.pack(">I", self.rpi & 0xffff))


class Rmp:
    """A shared receive queue, for DC targets, of entries with one segment."""

    def __init__(self, drv, log_size=4):
        self.drv, self.size, self.pi = drv, 1 << log_size, 0
        self.ring, self.dbr = drv.page(), drv.page()
        self.num = drv.cmd("CREATE_RMP", {
            "ctx.state": 1, "ctx.wq.wq_type": 0, "ctx.wq.pd": drv.pd, "ctx.wq.log_wq_stride": 5,
            "ctx.wq.log_wq_sz": log_size, "ctx.wq.dbr_addr": self.dbr},
            struct.pack(">Q", self.ring))("rmpn")

    def recv(self, addr, size, lkey):
        at, self.pi = self.pi % self.size, self.pi + 1
        self.drv.write(self.ring + 32 * at, struct.pack(">HH12xIIQ", 0, self.pi % self.size, size,
                                                        lkey, addr))
        self.drv.write(self.dbr, struct.pack(">I", self.pi & 0xffff))

    def limit(self, entries):
        self.drv.cmd("MODIFY_RMP", {"rmp_state": 1, "rmpn": self.num, "bitmask.lwm": 1,
                                    "ctx.state": 1, "ctx.wq.lwm": entries})


def make_rmp(drv, log_size=4):
    return Rmp(drv, log_size).num


def make_dct(drv, cq, rmp, key, mtu=3, pkey_index=0):
    """A DC target for READ, WRITE and atomics."""
    entry = "dct_context_entry."
    return drv.cmd("CREATE_DCT", {
        entry + "pd": drv.pd, entry + "cqn": cq.num, entry + "srqn_xrqn": rmp, entry + "port": 1,
        entry + "mtu": mtu, entry + "pkey_index": pkey_index, entry + "rre": 1, entry + "rwe": 1,
        entry + "rae": 1, entry + "dc_access_key": key})("dctn")


def dc_av(dctn, key, mac=bytes.fromhex("02c903000001"),
          gid=bytes.fromhex("fe80") + b"\0" * 13 + b"\1", lid=0, grh=True):
    """The address that a request of a DC initiator carries."""
    return struct.pack(">QIBBHI6sBBI", key, dctn | 1 << 31, 0, 0, lid, 0, mac, 0, 64,
                       grh << 30) + gid


def raddr(addr, key):
    return struct.pack(">QII", addr, key, 0)


def data(addr, size, key):
    return struct.pack(">IIQ", size, key, addr)


def wait_for(func, seconds=60):
    end = time.time() + seconds
    while time.time() < end:
        got = func()
        if got:
            return got
        time.sleep(0.01)
    return None
