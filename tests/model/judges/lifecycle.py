# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Judges that need the control of the device: reload, link, unplug, faults.

Owns: what happens to stock drivers and programs when the hardware changes or
misbehaves.  These judges use Guest.set(), get(), counters(), device() and qmp()
of ../dev/lab.py beside run() and start().
"""
import re
import threading
import time

from judges import judge, pair, perf


def wait_for(what, func, seconds=30):
    end = time.time() + seconds
    while time.time() < end:
        got = func()
        if got:
            return got
        time.sleep(0.3)
    raise AssertionError(f"{what}: not within {seconds} s")


def port_state(guest):
    return guest.run("cat /sys/class/infiniband/*/ports/1/state", where="guest",
                     check=False).out.strip()


def bring_up(guest):
    """Give the netdev of a new device its address again."""
    guest.run("""
for i in $(seq 60); do
    nic=$(ls -d /sys/bus/pci/drivers/mlx5_core/*/net/* 2>/dev/null | head -1)
    [ -n "$nic" ] && [ -d /sys/class/infiniband/mlx5_0 ] && break
    sleep 0.3
done
[ -d /sys/class/infiniband/mlx5_0 ] || exit 1
[ -n "$nic" ] || exit 0
ip link set ${nic##*/} up
ip addr add %s/16 dev ${nic##*/} 2>/dev/null || true
""" % guest.addr, where="guest")


def pull(guest, seconds):
    """Take the device out, and wait until its driver has let it go."""
    guest.qmp("device_del", id="cx")
    wait_for("device gone", lambda: not guest.run("ls /sys/bus/pci/drivers/mlx5_core/",
                                                  where="guest").out.count("0000:"), seconds)


def put_back(guest):
    """Plug in another device like the one that was pulled."""
    time.sleep(1)
    props = {k: str(v) for k, v in guest.device().items()}
    props["node"] = guest.node
    guest.qmp("device_add", driver="connectx-model", **props)
    bring_up(guest)


def works(ctx, a, b):
    c = f"ibv_rc_pingpong {ctx.gid} -n 50"
    pair(a, b, c, f"{c} {b.addr}")


@judge(needs=("kmod",))
def dc_kernel(ctx, a, b):
    """DC from a kernel module through mlx5_core: WRITE, 200 READs by interrupt, wrong rkey."""
    for g in (a, b):
        # GID 3 is the RoCE v2 one of the IPv4 address
        g.run("insmod /extra/cx_dcprobe.ko gid_index=%d" % (3 if ctx.link == "eth" else 0),
              where="guest")
    folder = "/sys/module/cx_dcprobe/parameters"
    for x, y in ((a, b), (b, a)):
        info = y.run(f"cat {folder}/info", where="guest").out.strip()
        x.run(f"echo '{info}' > {folder}/go", where="guest", timeout=120)
        result = x.run(f"cat {folder}/result", where="guest").out.strip()
        assert result == "ok", result
    for g in (a, b):
        g.run("rmmod cx_dcprobe && ! dmesg | grep -q 'no DCT_DRAINED'", where="guest")
    return "both ways"


@judge(needs=("control",))
def exact_counts(ctx, a, b):
    """The counters tell exactly what crossed the fabric: 40 READs of 256 bytes."""
    before, asked = a.ops("READ", size=256), b.ops("READ", "responder", 256)
    perf(ctx, a, b, "ib_read_lat", "-s 256 -n 40")
    got, served = a.ops("READ", size=256) - before, b.ops("READ", "responder", 256) - asked
    assert got == served == 40, (got, served)
    return "40 asked, 40 served"


@judge(needs=("control",))
def link_flap(ctx, a, b):
    """Link down and up three times: port events, then traffic."""
    for _ in range(3):
        a.set("link_up", False)
        wait_for("DOWN", lambda: "DOWN" in port_state(a))
        a.set("link_up", True)
        wait_for("ACTIVE", lambda: "ACTIVE" in port_state(a))
    works(ctx, a, b)
    return "3 times"


@judge(needs=("control", "vf"))
def virtual_function(ctx, a, b):
    """Stock drivers take it for a VF, are refused nothing, and cannot move the port of the PF."""
    for g in (a, b):
        found = g.run("cat /sys/bus/pci/drivers/mlx5_core/0000:*/device", where="guest").out
        assert found.split() == ["0x1018"], found
        found = g.run("cat /sys/class/infiniband/mlx5_0/hca_type; "
                      "ls /sys/bus/pci/drivers/mlx5_core/0000:*/", where="guest").out
        assert "MT4120" in found and "sriov_totalvfs" not in found, found
    with open(a.path("trace"), encoding="utf-8", errors="replace") as f:
        trace = f.read()
    # a driver of a PF sets the byte order of the host first of all
    assert "register_id=0x7004" not in trace, "the driver acts as that of a PF"
    if ctx.link == "eth":
        nic = a.run("ls /sys/bus/pci/drivers/mlx5_core/0000:*/net", where="guest").out.strip()
        a.run(f"ip link set {nic} down", where="guest")
        wait_for("DOWN", lambda: "DOWN" in port_state(a))
        bring_up(a)
        wait_for("ACTIVE", lambda: "ACTIVE" in port_state(a))
    refused = [g.counters()["commands_refused"] for g in (a, b)]
    assert refused == [0, 0], f"commands refused: {refused}"
    works(ctx, a, b)
    return "0x1018, nothing refused"


def pair_lossy(a, b, server, client):
    """A pair of programs on a network with losses. When the last acknowledgement is lost and
    its sender has already gone, no transport can mend it: that alone excuses a repetition."""
    for left in (2, 1, 0):
        try:
            return pair(a, b, server, client, 150)
        except AssertionError as error:
            if not left or "(12)" not in str(error) and "status 12" not in str(error):
                raise


@judge(needs=("control",))
def lossy(ctx, a, b):
    """2% loss, 1% duplicates, 2% reordered: data of RC and DC still right."""
    for g in (a, b):
        g.set("loss_ppm", 20000)
        g.set("dup_ppm", 10000)
        g.set("reorder_ppm", 20000)
    try:
        before = a.counters()
        gid = "3" if ctx.link == "eth" else "-1"
        c = f"ibv_rc_pingpong {ctx.gid} -n 200 -s 8192 -c"
        pair_lossy(a, b, c, f"{c} {b.addr}")
        c = f"ib_read_bw {ctx.x} -F -n 50 -s 65536"
        pair_lossy(a, b, c, f"{c} {b.addr}")
        pair_lossy(a, b, f"{ctx.tools}/dc_user server 7118 {gid}",
                   f"{ctx.tools}/dc_user client 7118 {gid} {b.addr}")
        after = a.counters()
    finally:
        for g in (a, b):
            for prop in ("loss_ppm", "dup_ppm", "reorder_ppm"):
                g.set(prop, 0)
    gone = after["fault_lost"] - before["fault_lost"]
    again = after["retransmits"] - before["retransmits"]
    assert gone and again, (gone, again)
    return f"{gone} frames lost, {again} retransmissions"


@judge(needs=("control",))
def partition(ctx, a, b):
    """A partition ends a QP with 'transport retry counter exceeded'; traffic after it heals."""
    c = f"ib_read_lat {ctx.x} -F -n 1000000"
    server = b.start(c, 90)
    time.sleep(2.5)
    client = a.start(f"{c} {b.addr}", 90)
    wait_for("READs", lambda: a.ops("READ", size=2) > 100, 60)
    a.set("partition", str(b.node))
    try:
        out = client.wait(check=False)
    finally:
        a.set("partition", "")
    b.run("kill $(pidof ib_read_lat)", where="guest", check=False)
    server.wait(check=False)
    assert out.code and re.search(r"status 12|Failed status", out.out), out.out
    works(ctx, a, b)
    return "status 12, then traffic"


@judge(needs=("control",))
def reload(ctx, a, b):
    """rmmod and modprobe of mlx5_ib and mlx5_core, five times, then traffic."""
    for _ in range(5):
        a.run("rmmod mlx5_ib && rmmod mlx5_core && modprobe mlx5_core && modprobe mlx5_ib",
              where="guest", timeout=120)
    bring_up(a)
    works(ctx, a, b)
    return "5 times"


@judge(needs=("control",))
def function_reset(ctx, a, b):
    """unbind, reset through sysfs (FLR), bind, then traffic."""
    a.run("""
set -e
d=$(basename $(ls -d /sys/bus/pci/drivers/mlx5_core/0000:* | head -1))
echo $d > /sys/bus/pci/drivers/mlx5_core/unbind
echo 1 > /sys/bus/pci/devices/$d/reset
echo $d > /sys/bus/pci/drivers/mlx5_core/bind
""", where="guest", timeout=120)
    bring_up(a)
    works(ctx, a, b)
    return ""


@judge(needs=("control",))
def unplug(ctx, a, b):
    """device_del while perftest runs, device_add, then traffic."""
    c = f"ib_write_bw {ctx.x} -F -D 60"
    server = a.start(c, 90)
    time.sleep(2.5)
    client = b.start(f"{c} {a.addr}", 90)
    wait_for("WRITEs", lambda: b.ops("WRITE") > 50, 60)
    pull(a, 60)
    b.run("kill $(pidof ib_write_bw)", where="guest", check=False)
    a.run("kill $(pidof ib_write_bw)", where="guest", check=False)
    server.wait(check=False)
    client.wait(check=False)
    put_back(a)
    works(ctx, a, b)
    return ""


@judge(links=("eth",), needs=("control", "three"))
def three_nodes(ctx, a, b):
    """Three nodes on one fabric, each pair at once, and two initiators on one DC target node."""
    guests = ctx.guests[:3]
    failed = []

    def one(x, y, port):
        try:
            c = f"ibv_rc_pingpong {ctx.gid} -n 200 -p {port} -c"
            pair(x, y, c, f"{c} {y.addr}", 240)
            gid = "3" if ctx.link == "eth" else "-1"
            pair(x, y, f"{ctx.tools}/dc_user server {port + 100} {gid}",
                 f"{ctx.tools}/dc_user client {port + 100} {gid} {y.addr}", 240)
        except Exception as err:    # reported by the judge, not by the thread
            failed.append(err)

    pairs = [(guests[i], guests[j]) for i, j in ((0, 1), (1, 2), (2, 0), (0, 2))]
    threads = [threading.Thread(target=one, args=(x, y, 7200 + n))
               for n, (x, y) in enumerate(pairs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]
    return "4 pairs at once"
