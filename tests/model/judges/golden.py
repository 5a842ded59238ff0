# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The golden comparison: our firmware commands and work requests against those that
mlx5_ib and libmlx5 emit for the same objects.

Owns: the table of differences. A user-space DC program (dc_user) and the test module
of krcore's provider make the same kinds of objects on the same nodes; the trace of
the model has every field of every command and every byte of every request. Fields that
name an object or an address must be there or not there in both; all others must be
equal or be in the table with their values and the reason. An entry of the table that
is not met is a failure too, so the table cannot outlive its cause; but for those that
name no value, or that need not be met in each run: these are named in the result.

Looked at is the first command of each kind and the first request of each opcode. What
the commands to ERR, the doorbells and the arming of queues say is not compared.
"""
import re

from judges import judge, pair
from provider import go, load, unload

LINE = re.compile(r"^\d+ cmd (\w+) in=\d+ out=\d+ (.*)$")
REQUEST = re.compile(r"^\d+ wqe qpn=0x[0-9a-f]+ wqe=\d+ (\w+) .* raw=([0-9a-f]+)$")

# Names of objects, addresses and lengths of lists: other in every run.
IDENTITY = {
    "pd", "qpn", "cqn", "cqn_snd", "cqn_rcv", "srqn_rmpn_xrqn", "srqn_xrqn", "xrcd", "uar_page",
    "c_eqn_or_apu_element", "dbr_addr", "dctn", "rmpn", "mkey_index", "mkey_7_0", "start_addr",
    "tail_bytes", "dqpn", "raddr", "rkey", "lkey", "addr", "rmac", "rgid", "rlid",
}

ANY, ABSENT = "*", "-"
SOMETIMES = "sometimes"     # met or not, by where the memory of that run lies

PLACE = "a program's queue begins where its allocator put it in the page; ours begins one"
SIZE = "size, as each program asked for"
PAGES = "our rings are of pages of 4 KiB; a user's are larger where its memory allows it"
MTU = "the port's; the program says 1024, which is the port's on Ethernet"
PATH = ("the program gives its own address for the path; an initiator takes each request's, so "
        "ours gives none")
COUNTER = "mlx5_ib counts per port; ours go to the device's default set 0"
CLASS = ("the class that the node's settings ask for, here DSCP 26 with congestion marks; the "
         "program asks for none")
VALUE = "operand or length, as each program asked for"
UID = ("kernel queues say 0xffffff and get the queue's number in completions, as those of mlx5_ib; "
       "libmlx5 numbers its own, and its first number is 0")
# (command or request, or "request" for all requests, field):
#     (ours, theirs, why[, link, or SOMETIMES])
DIFFERENCES = {
    ("CREATE_CQ", "log_cq_size"): (ANY, ANY, SIZE),
    ("CREATE_CQ", "log_page_size"): (ABSENT, ANY, PAGES, SOMETIMES),
    ("CREATE_RMP", "log_wq_sz"): (ANY, ANY, SIZE),
    ("CREATE_RMP", "log_wq_pg_sz"): (ABSENT, ANY, PAGES, SOMETIMES),
    ("CREATE_QP", "log_page_size"): (ABSENT, ANY, PAGES, SOMETIMES),
    ("CREATE_QP", "log_sq_size"): (ANY, ANY, SIZE),
    ("CREATE_QP", "user_index"): ("0xffffff", ABSENT, UID),
    ("CREATE_DCT", "user_index"): ("0xffffff", ABSENT, UID),
    ("CREATE_DCT", "counter_set_id"): (ABSENT, ANY, COUNTER),
    ("RST2INIT_QP", "counter_set_id"): (ABSENT, ANY, COUNTER),
    ("CREATE_DCT", "mtu"): ("0x5", "0x3", MTU, "ib"),
    ("INIT2RTR_QP", "mtu"): ("0x5", "0x3", MTU, "ib"),
    ("INIT2RTR_QP", "rgid_rip"): (ABSENT, ANY, PATH, "eth"),
    ("INIT2RTR_QP", "rlid"): (ABSENT, ANY, PATH, "ib"),
    ("RTR2RTS_QP", "log_sra_max"): (
        "0x4", "0x2", "16 READs and atomics under way, the most that all devices take; the program "
        "asks for 4"),
    ("RTR2RTS_QP", "rnr_retry"): (
        "0x6", "0x7", "7 is for ever, and an initiator is shared: one peer must not stop all"),
    ("CREATE_MKEY", "umr_en"): (
        ABSENT, "0x1", "lets the key be changed by a request of a queue; ours never are"),
    ("CREATE_MKEY", "len"): (ANY, ANY, SIZE),
    ("CREATE_MKEY", "log_page_size"): (ANY, ANY, "largest page that the memory's layout allows"),
    ("CREATE_MKEY", "translations_octword_size"): (ANY, ANY, SIZE),
    ("CREATE_MKEY", "translations_octword_actual_size"): (ANY, ANY, SIZE),
    ("CREATE_CQ", "page_offset"): (ABSENT, ANY, PLACE, SOMETIMES),
    ("CREATE_QP", "page_offset"): (ABSENT, ANY, PLACE, SOMETIMES),
    ("CREATE_RMP", "page_offset"): (ABSENT, ANY, PLACE, SOMETIMES),
    ("READ", "byte_count"): (ANY, ANY, VALUE),
    ("WRITE", "byte_count"): (ANY, ANY, VALUE),
    ("SEND", "byte_count"): (ANY, ANY, VALUE),
    ("request", "swap_add"): (ANY, ANY, VALUE),
    ("request", "compare"): (ANY, ANY, VALUE),
    ("request", "index"): (ANY, ANY, "position in the queue; the first one is 0"),
    ("request", "tclass"): ("6a", ABSENT, CLASS, "eth"),
    ("CREATE_DCT", "tclass"): ("0x6a", ABSENT, CLASS, "eth"),
    ("INIT2RTR_QP", "tclass"): ("0x6a", ABSENT, CLASS, "eth"),
    ("INIT2RTR_QP", "dscp"): ("0x1a", ABSENT, CLASS, "eth"),
}

COMMANDS = {
    # command: a field that tells ours from others of the same kind, or None
    "CREATE_CQ": None, "CREATE_RMP": None, "CREATE_DCT": None, "CREATE_QP": ("qpc.st", "0x5"),
    "RST2INIT_QP": ("qpc.st", "0x5"), "INIT2RTR_QP": ("qpc.st", "0x5"),
    "RTR2RTS_QP": ("qpc.st", "0x5"),
    "CREATE_MKEY": ("memory_key_mkey_entry.a", "0x1"),
    "DRAIN_DCT": None, "DESTROY_DCT": None, "2RST_QP": None, "DESTROY_QP": None,
    "DESTROY_RMP": None, "DESTROY_CQ": None, "DESTROY_MKEY": None,
}
REQUESTS = ("READ", "WRITE", "CMP_SWAP", "FETCH_ADD", "SEND")

# segments of a request: field, first byte, bytes
CONTROL = (("opmod", 0, 1), ("index", 1, 2), ("opcode", 3, 1), ("qpn", 4, 3), ("ds", 7, 1),
           ("signature", 8, 1), ("rsvd", 9, 2), ("fm_ce_se", 11, 1), ("imm", 12, 4))
ADDRESS = (("dc_key", 0, 8), ("extended", 8, 1), ("dqpn", 9, 3), ("stat_rate_sl", 12, 1),
           ("fl_mlid", 13, 1), ("rlid", 14, 2), ("rsvd0", 16, 4), ("rmac", 20, 6),
           ("tclass", 26, 1), ("hop_limit", 27, 1), ("grh_gid_fl", 28, 4), ("rgid", 32, 16))
REMOTE = (("raddr", 0, 8), ("rkey", 8, 4), ("rsvd1", 12, 4))
ATOMIC = (("swap_add", 0, 8), ("compare", 8, 8))
DATA = (("byte_count", 0, 4), ("lkey", 4, 4), ("addr", 8, 8))


def mark(*guests):
    """Where the traces of the guests end now."""
    places = []
    for g in guests:
        with open(g.path("trace"), "rb") as f:
            places.append(f.seek(0, 2))
    return places


def lines(guests, places):
    """Lines that the traces got since, of the first guest and then of the others."""
    for g, place in zip(guests, places):
        with open(g.path("trace"), "rb") as f:
            f.seek(place)
            yield from f.read().decode().splitlines()


def fields_of_request(name, raw):
    """Bytes of a request by the name of their field; zeroes are left out."""
    found, at, data = {}, 0, bytes.fromhex(raw)
    layout = (CONTROL, ADDRESS) + ((REMOTE,) if name != "SEND" else ()) + (
        (ATOMIC,) if name in ("CMP_SWAP", "FETCH_ADD") else ()) + (DATA,)
    for segment in layout:
        for field, off, size in segment:
            value = data[at + off:at + off + size]
            if any(value):
                found[field] = value.hex()
        at += segment[-1][1] + segment[-1][2]
    if at != len(data):
        found["length"] = str(len(data))
    return found


def collect(trace):
    """First command and request of each kind: name -> {field: value}."""
    found = {}
    for line in trace:
        m = LINE.match(line)
        if m and m[1] in COMMANDS and m[1] not in found:
            fields = dict(f.split("=", 1) for f in m[2].split())
            sign = COMMANDS[m[1]]
            if not sign or fields.get(sign[0]) == sign[1]:
                found[m[1]] = {k.split(".")[-1]: v for k, v in fields.items()}
        m = REQUEST.match(line)
        if m and m[1] in REQUESTS and m[1] not in found:
            found[m[1]] = fields_of_request(m[1], m[2])
    return found


def met(rule, value):
    return rule in (ANY, value)


def here(rule, link):
    return len(rule) < 4 or rule[3] in (link, SOMETIMES)


def find_rule(what, field):
    """The entry for a field and its key; one for all requests if there is none of its own."""
    for key in (what, field), ("request" if what in REQUESTS else what, field):
        if key in DIFFERENCES:
            return key, DIFFERENCES[key]
    return None, None


def may_be_unmet(rule):
    return rule[:2] == (ANY, ANY) or SOMETIMES in rule[3:]


def wrong_key(fields):
    """Why the size of a key's translation does not fit its memory: the table lets both differ."""
    start, size, shift, octwords, actual = (int(fields.get(name, "0"), 16) for name in (
        "start_addr", "len", "log_page_size", "translations_octword_size",
        "translations_octword_actual_size"))
    pages = ((start + size - 1) >> shift) - (start >> shift) + 1
    if shift < 12 or not size:
        return f"{size} bytes in pages of 2^{shift}"
    if octwords != actual or octwords != (pages + 1) // 2:
        return f"{pages} pages in {octwords} octwords, {actual} of them given"
    return None


def compare(ours, theirs, link):
    """Complaints, entries of the table that were met and that were not, and fields looked at."""
    bad, used, looked = [], set(), 0
    for whose, seen in (("our", ours), ("their", theirs)):
        why = wrong_key(seen["CREATE_MKEY"]) if "CREATE_MKEY" in seen else None
        if why:
            bad.append(f"{whose} CREATE_MKEY: {why}")
    for what in (*COMMANDS, *REQUESTS):
        if what not in ours or what not in theirs:
            bad.append(f"{what}: not seen of {'us' if what not in ours else 'them'}")
            continue
        for field in sorted(set(ours[what]) | set(theirs[what])):
            looked += 1
            x, y = ours[what].get(field, ABSENT), theirs[what].get(field, ABSENT)
            if x == y or (field in IDENTITY and ABSENT not in (x, y)):
                continue
            key, rule = find_rule(what, field)
            if rule and met(rule[0], x) and met(rule[1], y) and here(rule, link):
                used.add(key)
            else:
                bad.append(f"{what}.{field}: ours {x}, theirs {y}")
    unmet = [key for key, rule in DIFFERENCES.items() if key not in used and here(rule, link)]
    for key in unmet:
        if not may_be_unmet(DIFFERENCES[key]):
            bad.append(f"{key[0]}.{key[1]}: in the table of differences, but there is none")
    return bad, used, unmet, looked


@judge(needs=("provider", "wqe"))
def provider_golden(ctx, a, b):
    """krcore's provider: commands and requests as mlx5_ib and libmlx5 make them, field by field."""
    start = mark(a, b)
    gid = "3" if ctx.link == "eth" else "-1"
    pair(a, b, f"{ctx.tools}/dc_user server 7127 {gid}",
         f"{ctx.tools}/dc_user client 7127 {gid} {b.addr}", 90)
    theirs = collect(lines((a, b), start))
    start = mark(a, b)
    load(ctx, a, b)
    try:
        go(ctx, a, b)
    finally:
        unload(a, b)
    ours = collect(lines((a, b), start))
    bad, used, unmet, looked = compare(ours, theirs, ctx.link)
    assert not bad, "\n".join(bad)
    return f"{looked} fields, {len(used)} of them explained" + (
        "; allowed to differ, and alike: " + ", ".join(".".join(key) for key in unmet)
        if unmet else "")
