# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The provider of krcore.ko alone, through its test module (tests/kernel/provider_probe).

Owns: what the kernel module's way to the hardware owes to what is above it, on two
nodes: data, faults, recovery, user memory, removal of the device under traffic.
"""
import re
import time

from judges import judge
from lifecycle import bring_up, pull, put_back, wait_for

NAME = "krc_provider_probe"
PARAMETERS = f"/sys/module/{NAME}/parameters"


def load(ctx, *guests, pkey=None, more=""):
    for g in guests:
        # GID 3 is the RoCE v2 one of the IPv4 address
        index = 3 if ctx.link == "eth" else 0
        g.run(f"insmod /extra/{NAME}.ko gid_index={index} pkey={pkey or ctx.pkey} {more}",
              where="guest")


def unload(*guests):
    for g in guests:
        g.run(f"rmmod {NAME}", where="guest", timeout=90)


def info(guest):
    text = guest.run(f"cat {PARAMETERS}/info", where="guest").out.strip()
    assert len(text.split()) == 5, text
    return text


def result(guest):
    return guest.run(f"cat {PARAMETERS}/result", where="guest").out.strip()


def go(ctx, x, y):
    x.run("ping -c 1 -w 10 " + y.addr, where="guest", check=False)
    x.run(f"echo '{info(y)}' > {PARAMETERS}/go", where="guest", timeout=300)
    got = result(x)
    assert got == "ok", got


@judge(needs=("provider",))
def provider(ctx, a, b):
    """krcore's provider: data, atomics, messages, 10 000 requests, rights, wrong targets, resets,
    lives."""
    load(ctx, a, b)
    try:
        for x, y in ((a, b), (b, a)):
            go(ctx, x, y)
    finally:
        unload(a, b)
    for g in (a, b):
        assert "did not drain" not in g.dmesg(), "a target did not drain"
    return "both ways"


@judge(links=("ib",), needs=("provider", "partition"))
def provider_partition(ctx, a, b):
    """krcore's provider: a target in another partition than the initiator is as if not there."""
    load(ctx, a)
    try:
        load(ctx, b, pkey="0xffff")
        try:
            before = b.counters()["rdma_rx_bad_pkey"]
            a.run(f"echo '{info(b)}' > {PARAMETERS}/go", where="guest", timeout=300)
            got, dropped = result(a), b.counters()["rdma_rx_bad_pkey"] - before
        finally:
            unload(b)
    finally:
        unload(a)
    # the first request is the one that is not answered
    assert re.match(r"probe_data:\d+: probe_simple\(p, KRP_OP_WRITE, ", got), got
    assert dropped, "nothing was dropped for its P_Key"
    return f"{dropped} packets dropped"


@judge(needs=("provider", "blueflame"))
def provider_blueflame(ctx, a, b):
    """krcore's provider: requests posted alone are pushed, as they are in memory; where writes are
    not combined they are read there; parameter blueflame turns it off."""
    counts = {}
    for name, apart, wanted in (("pushed", False, "Y"), ("apart", True, "Y"), ("off", False, "N")):
        a.set("writes_apart", apart)
        load(ctx, a, b, more=f"blueflame={wanted}")
        try:
            before = a.counters()
            go(ctx, a, b)
            after = a.counters()
        finally:
            unload(a, b)
            a.set("writes_apart", False)
        counts[name] = {k: after[k] - before[k] for k in after
                        if k.startswith(("blueflame", "doorbells"))}
        assert not after["doorbells_odd"] and not after["doorbells_refused"], counts
        assert not counts[name]["blueflame_differs"], counts
    assert counts["pushed"]["blueflame"] > 100, counts
    assert not counts["apart"]["blueflame"] and counts["apart"]["blueflame_parts"] > 100, counts
    assert not counts["off"]["blueflame"] and not counts["off"]["blueflame_parts"], counts
    return f"{counts['pushed']['blueflame']} of {counts['pushed']['doorbells']}"


UMEM = """
import ctypes, mmap
size = {pages} * 4096
m = mmap.mmap(-1, size + (4 << 20))
for i in range(0, len(m), 4096):
    m[i] = 1
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
if {huge}:
    at = (at + (2 << 20) - 1) & ~((2 << 20) - 1)
off, cut = {off}, {cut}
with open("{parameters}/umem", "w") as f:
    f.write("%d %d {most}" % (at + off, size - off - cut))
"""


@judge(needs=("provider",))
def provider_umem(ctx, a, b):
    """krcore's provider: keys of user memory, whole pages and odd ends, 4 KiB to 16 MiB,
    under one key and under several."""
    load(ctx, a, b)
    try:
        go(ctx, a, b)
        for pages, off, cut, huge, most in ((2, 0, 0, 0, 0), (3, 17, 33, 0, 0),
                                            (1000, 4095, 1, 0, 0), (4096, 0, 0, 1, 0),
                                            (4096, 1, 0, 1, 0),
                                            # keys that list few pages: more than one is needed
                                            (3, 17, 33, 0, 1), (1000, 4095, 1, 0, 7)):
            text = UMEM.format(pages=pages, off=off, cut=cut, huge=huge, parameters=PARAMETERS,
                               most=most)
            a.run(f"python3 - <<'EOF'\n{text}\nEOF", timeout=90)
            got = result(a)
            assert got == "ok", f"{pages} pages from {off}, {most} a key: {got}"
    finally:
        unload(a, b)
    return "7 shapes"


SPLAT = re.compile(r"WARNING:|BUG:|Oops|Call Trace|refcount|was not destroyed|use-after-free")


def nothing_worse(guest):
    """The kernel log since the guest's keep_log() may complain, but has no bug of the kernel."""
    bad = [line for line in guest.drop_log().splitlines() if SPLAT.search(line)]
    assert not bad, "\n".join(bad)


def load_again(ctx, guest):
    """Load it for a device that came back; its GIDs do so some time after the netdev."""
    unload(guest)
    time.sleep(2)
    load(ctx, guest)


def start_traffic(ctx, a, b):
    go(ctx, a, b)
    loop = a.start(f"echo 1 > {PARAMETERS}/loop", 120, where="guest")
    before = a.ops("READ", size=256)
    wait_for("READs", lambda: a.ops("READ", size=256) > before + 50, 60)
    return loop


def newest_initiator(guest):
    """Number of the last DC initiator that was made and still is there."""
    with open(guest.path("trace"), encoding="utf-8") as f:
        text = f.read()
    made = re.findall(r"cmd CREATE_QP .*qpc\.st=0x5 .*\n\d+ cmd CREATE_QP -> (0x[0-9a-f]+)", text)
    gone = set(re.findall(r"cmd DESTROY_QP .*qpn=(0x[0-9a-f]+)", text))
    return int([n for n in made if n not in gone][-1], 16)


@judge(needs=("provider", "control"))
def provider_broken(ctx, a, b):
    """krcore's provider: an initiator that dies without a completion is told, and comes back."""
    a.keep_log()
    load(ctx, a, b)
    try:
        loop = start_traffic(ctx, a, b)
        a.set("break_qp", newest_initiator(a))
        loop.wait(seconds=60)
        assert result(a) == "fatal, works again", result(a)
        go(ctx, a, b)
    finally:
        unload(a, b)
    nothing_worse(a)    # the catastrophe was said, as it should
    return ""


@judge(needs=("provider", "control"))
def provider_failure(ctx, a, b):
    """krcore's provider: an internal error of the device under traffic is told, and survived."""
    a.keep_log()
    load(ctx, a, b)
    try:
        loop = start_traffic(ctx, a, b)
        a.set("failed", True)
        loop.wait(seconds=180)      # the driver looks now and then; a busy machine is slower
        assert f"{NAME}: fatal" in a.dmesg(), "nobody said that the device failed"
        # the driver takes it down and up by itself
        wait_for("device taken down", lambda: not a.get("failed"), 90)
        bring_up(a)
        load_again(ctx, a)
        go(ctx, a, b)
    finally:
        unload(a, b)
    nothing_worse(a)    # mlx5_core has complained at length, and was right
    return ""


@judge(needs=("provider", "control"))
def provider_unplug(ctx, a, b):
    """krcore's provider: the device is pulled under traffic, comes back, and all works again."""
    load(ctx, a, b)
    try:
        loop = start_traffic(ctx, a, b)
        pull(a, 90)
        loop.wait(check=False)
        assert result(a) == "removed", result(a)
        put_back(a)
        load_again(ctx, a)
        go(ctx, a, b)
    finally:
        unload(a, b)
    return ""
