# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The judges of the ConnectX model: software that we did not write.

Owns: the list of judges.  A judge is a function of two guests; a guest has
run(cmd, timeout), start(cmd, timeout), node and addr (see ../dev/lab.py; a job
has wait() and done()), so other harnesses can call a judge with guests of their
own.  It raises an exception if the model fails it and returns a short remark
otherwise.
"""
import re
import time

JUDGES = []


class Judge:
    """One judge: what it is called, what it runs, and where it makes sense."""

    def __init__(self, func, links, needs):
        self.func, self.links, self.needs = func, links, needs
        self.name = func.__name__.replace("_", "-")
        self.what = func.__doc__.strip().rstrip(".")


def judge(links=("eth", "ib"), needs=()):
    """Register a judge for link modes; needs names attributes of the context."""
    def register(func):
        JUDGES.append(Judge(func, links, needs))
        return func
    return register


class Context:
    """What a judge may need beside the guests."""

    def __init__(self, link, tools):
        self.link = link
        self.tools = tools      # folder, seen by the guests, with our own programs
        self.packages = ""      # folder of dev/get-tools.sh
        self.pkey = "0xffff"    # partition that krcore's provider is to be in
        self.guests = []        # all of them, for judges that want more than two

    @property
    def gid(self):
        """Options of the ibv_* examples and of perftest that choose an address."""
        return "-g 3" if self.link == "eth" else ""

    @property
    def x(self):
        return "-x 3" if self.link == "eth" else ""


NOT_READY = re.compile(r"Couldn't connect|Unable to Connect|REJECTED|rejected|Connection refused|"
                       r"Unexpected CM event|unexpected event|RDMA_CM_EVENT_UNREACHABLE|"
                       r"connect error|rdma_resolve_addr|failed to connect", re.I)


# until the server listens: some TCP port, or it has an rdma_cm event channel
READY = """for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    grep -q ' 0A ' /proc/net/tcp /proc/net/tcp6 && exit 0
    for p in $(pidof {name}); do ls -l /proc/$p/fd | grep -q rdma_cm && exit 0; done
    sleep 0.3
done"""


def pair(a, b, server, client, timeout=180, check_server=True):
    """Run server on b and client on a; try again, with both, while the server is not ready.

    With -R, perftest connects twice, and its server listens anew in between: a client that is
    faster is rejected (error 8). A server that has met a client goes on from there, so the next
    client would be taken for the first one's second connection, and both wait for ever."""
    name = next(w for w in server.split() if "=" not in w).split("/")[-1]
    job = b.start(server, timeout)
    for attempt in range(5):
        b.run(READY.format(name=name), where="guest", check=False)
        time.sleep(0.5 * (attempt + 1))
        res = a.run(client, timeout, check=False)
        if not res.code or not NOT_READY.search(res.out) or attempt == 4:
            break
        b.run(f"kill $(pidof {name})", where="guest", check=False)
        job.wait(check=False)
        job = b.start(server, timeout)
    if res.code:
        time.sleep(1)
        srv = job.result.out[-1500:] if job.done() else "(still running)"
        raise AssertionError(f"{client}: exit code {res.code}\n{res.out[-1500:]}\n"
                             f"server: {srv}")
    if check_server:
        out = job.wait(check=False)
        if out.code:
            raise AssertionError(f"{server}: exit code {out.code}\n{out.out[-1500:]}")
    return res.out


# ---- netdev

@judge(links=("eth",))
def ping(ctx, a, b):
    """busybox ping, 5 packets of 56 and 5 of 1400 bytes."""
    for size in (56, 1400):
        a.run(f"ping -c 5 -i 0.2 -w 20 -s {size} {b.addr} | grep -q '5 packets received'",
              where="guest")
    return "no loss"


@judge(links=("eth",))
def tcp(ctx, a, b):
    """TCP both ways over the netdev (Python sockets), 8 MB each, compared by SHA-1."""
    server = f"""python3 -c "
import socket, hashlib
s = socket.create_server(('{b.addr}', 7007)); c, _ = s.accept(); n = 0; h = hashlib.sha1()
data = bytes(range(251)) * 32000
while n < len(data):
    d = c.recv(65536); n += len(d); h.update(d)
    if not d: break
c.sendall(h.hexdigest().encode()); c.sendall(data); c.close()
" """
    client = f"""python3 -c "
import socket, hashlib
c = socket.create_connection(('{b.addr}', 7007), 60); data = bytes(range(251)) * 32000
c.sendall(data); want = hashlib.sha1(data).hexdigest()
assert c.recv(40, socket.MSG_WAITALL).decode() == want
h = hashlib.sha1()
while True:
    d = c.recv(65536); h.update(d)
    if not d: break
assert h.hexdigest() == want
" """
    pair(a, b, server, client, 90)
    bad = b.run("dmesg | grep -c 'hw csum failure'", where="guest", check=False).out.strip()
    assert bad == "0", "hw csum failure"
    return "8 MB each way"


# ---- libibverbs examples

@judge()
def devinfo(ctx, a, b):
    """ibv_devinfo -v."""
    out = a.run("ibv_devinfo -v").out
    assert "PORT_ACTIVE" in out, out
    return "PORT_ACTIVE"


@judge()
def rc_pingpong(ctx, a, b):
    """ibv_rc_pingpong, polling and with events (-e)."""
    for opt in ("", "-e"):
        c = f"ibv_rc_pingpong {ctx.gid} -n 300 {opt}"
        pair(a, b, c, f"{c} {b.addr}")
    return "300 iterations, both"


@judge(needs=("blueflame", "control"))
def blueflame(ctx, a, b):
    """libmlx5 pushes requests, since the driver found that writes are combined; all goes on
    where they are not any more (ibv_rc_pingpong)."""
    counts = []
    for apart in (False, True):
        a.set("writes_apart", apart)
        before = a.counters()
        c = f"ibv_rc_pingpong {ctx.gid} -n 300"
        try:
            pair(a, b, c, f"{c} {b.addr}")
        finally:
            a.set("writes_apart", False)
        after = a.counters()
        counts.append([after[k] - before[k] for k in ("blueflame", "blueflame_parts",
                                                      "blueflame_differs", "doorbells_refused")])
    (pushed, _, *bad), (none, parts, *worse) = counts
    assert pushed > 200 and not none and parts > 200 and not any(bad + worse), counts
    return f"{pushed} pushed, {parts} in parts"


@judge()
def uc_pingpong(ctx, a, b):
    """ibv_uc_pingpong."""
    c = f"ibv_uc_pingpong {ctx.gid} -n 300"
    pair(a, b, c, f"{c} {b.addr}")
    return "300 iterations"


@judge()
def ud_pingpong(ctx, a, b):
    """ibv_ud_pingpong."""
    c = f"ibv_ud_pingpong {ctx.gid} -n 300 -s 1000"
    pair(a, b, c, f"{c} {b.addr}")
    return "300 iterations"


@judge()
def srq_pingpong(ctx, a, b):
    """ibv_srq_pingpong, 16 QPs on one SRQ."""
    c = f"ibv_srq_pingpong {ctx.gid} -n 200"
    pair(a, b, c, f"{c} {b.addr}")
    return "200 iterations"


@judge()
def xsrq_pingpong(ctx, a, b):
    """ibv_xsrq_pingpong: XRC."""
    c = f"ibv_xsrq_pingpong {ctx.gid} -n 100"
    pair(a, b, c, f"{c} {b.addr}")
    return "100 iterations"


# ---- librdmacm

@judge(links=("eth",))
def rping(ctx, a, b):
    """rping, 20 iterations, data compared. Its client destroys the channel of events while its
    own thread reads it, and ends with 255 if that thread is still there: that alone excuses a
    repetition."""
    for left in (1, 0):
        try:
            pair(a, b, f"rping -s -V -C 20 -a {b.addr}", f"rping -c -V -C 20 -a {b.addr}")
            return "20 iterations"
        except AssertionError as error:
            if not left or "rdma_get_cm_event: Bad file descriptor" not in str(error):
                raise
    return None


@judge(links=("eth",))
def udaddy(ctx, a, b):
    """udaddy: UD through rdma_cm, 10 connections."""
    pair(a, b, f"udaddy -c 10 -b {b.addr}", f"udaddy -c 10 -s {b.addr}")
    return "10 connections"


@judge(links=("eth",))
def ucmatose(ctx, a, b):
    """ucmatose, 10 connections, 10 messages."""
    pair(a, b, f"ucmatose -c 10 -C 10 -b {b.addr}", f"ucmatose -c 10 -C 10 -s {b.addr}")
    return "10 connections"


@judge(links=("eth",))
def mckey(ctx, a, b):
    """mckey: UD multicast through rdma_cm."""
    pair(a, b, f"mckey -m 239.1.2.3 -c 5 -C 10 -b {b.addr}",
         f"sleep 2; mckey -s -m 239.1.2.3 -c 5 -C 10 -b {a.addr}")
    return "5 connections, 10 messages"


# ---- perftest

def perf(ctx, a, b, tool, opts="", cm=False):
    how = "-R" if cm else ctx.x
    c = f"{tool} {how} -F {opts}"
    return pair(a, b, c, f"{c} {b.addr}", 90)


@judge()
def read_lat(ctx, a, b):
    """ib_read_lat, 8 and 65536 bytes."""
    perf(ctx, a, b, "ib_read_lat", "-s 8 -n 500")
    perf(ctx, a, b, "ib_read_lat", "-s 65536 -n 100")
    return ""


@judge(links=("eth",))
def read_lat_cm(ctx, a, b):
    """ib_read_lat -R (rdma_cm)."""
    perf(ctx, a, b, "ib_read_lat", "-s 8 -n 500", cm=True)
    return ""


@judge()
def write_lat(ctx, a, b):
    """ib_write_lat over RC and UC."""
    perf(ctx, a, b, "ib_write_lat", "-n 300")
    perf(ctx, a, b, "ib_write_lat", "-c UC -n 300")
    return ""


@judge()
def send_lat(ctx, a, b):
    """ib_send_lat over RC, UC, UD and with events."""
    for opt in ("", "-c UC", "-c UD", "-e"):
        perf(ctx, a, b, "ib_send_lat", f"{opt} -n 300")
    return ""


@judge()
def atomic_lat(ctx, a, b):
    """ib_atomic_lat, FETCH_AND_ADD and CMP_AND_SWAP."""
    perf(ctx, a, b, "ib_atomic_lat", "-n 300")
    perf(ctx, a, b, "ib_atomic_lat", "-A CMP_AND_SWAP -n 300")
    return ""


@judge()
def write_bw(ctx, a, b):
    """ib_write_bw, 64 KB, then 4 QPs, both directions, 1 MB."""
    perf(ctx, a, b, "ib_write_bw", "-n 500")
    perf(ctx, a, b, "ib_write_bw", "-b -q 4 -s 1048576 -n 20")
    return ""


@judge()
def read_bw(ctx, a, b):
    """ib_read_bw, 64 KB, then both directions, 1 MB."""
    perf(ctx, a, b, "ib_read_bw", "-n 500")
    perf(ctx, a, b, "ib_read_bw", "-b -s 1048576 -n 20")
    return ""


@judge()
def send_bw(ctx, a, b):
    """ib_send_bw, 64 KB; few receive buffers (RNR); SRQ with two QPs; UD."""
    perf(ctx, a, b, "ib_send_bw", "-n 300")
    perf(ctx, a, b, "ib_send_bw", "-r 4 -t 64 -n 300 -s 4096")
    perf(ctx, a, b, "ib_send_bw", "-r 64 --use-srq -q 2 -n 100")
    perf(ctx, a, b, "ib_send_bw", "-c UD -s 1024 -n 500")
    return ""


@judge()
def atomic_bw(ctx, a, b):
    """ib_atomic_bw."""
    perf(ctx, a, b, "ib_atomic_bw", "-n 300")
    return ""


@judge()
def perf_dc(ctx, a, b):
    """perftest over DC: ib_{write,read,send,atomic}_bw, ib_{write,send}_lat."""
    for tool in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_write_lat",
                 "ib_send_lat"):
        perf(ctx, a, b, tool, "-c DC -n 200")
    return ""


@judge()
def perf_xrc(ctx, a, b):
    """perftest over XRC: ib_write_bw, ib_read_bw, ib_send_bw."""
    for tool in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
        perf(ctx, a, b, tool, "-c XRC -n 200")
    return ""


@judge(links=("eth",))
def write_bw_cm(ctx, a, b):
    """ib_write_bw -R and ib_send_bw -R (rdma_cm)."""
    perf(ctx, a, b, "ib_write_bw", "-n 300", cm=True)
    perf(ctx, a, b, "ib_send_bw", "-n 300", cm=True)
    return ""


# ---- DC through libmlx5; dc_user is ours, libmlx5 is not

@judge()
def dc_user(ctx, a, b):
    """DC through unmodified libmlx5: all operations, change of target, CQ resize, every mistake."""
    gid = "3" if ctx.link == "eth" else "-1"
    pair(a, b, f"{ctx.tools}/dc_user server 7117 {gid}",
         f"{ctx.tools}/dc_user client 7117 {gid} {b.addr}", 90)
    return "SEND, WRITE, READ, atomics, errors"


# ---- from packages that dev/get-tools.sh unpacks

def packaged(ctx, cmd):
    return f"LD_LIBRARY_PATH={ctx.packages}/usr/lib/x86_64-linux-gnu {ctx.packages}/usr/bin/{cmd}"


@judge(links=("eth",), needs=("packages",))
def iperf3(ctx, a, b):
    """iperf3 over the netdev, both directions, 3 seconds each."""
    for opt in ("", "-R"):
        pair(a, b, packaged(ctx, "iperf3 -s -1"), packaged(ctx, f"iperf3 -t 3 {opt} -c {b.addr}"))
    return ""


def ucx(ctx, a, b, tls):
    env = (f"UCX_TLS={tls},self UCX_NET_DEVICES=mlx5_0:1 UCX_LOG_LEVEL=error "
           f"UCX_MODULE_DIR={ctx.packages}/usr/lib/x86_64-linux-gnu/ucx ")
    for test in ("tag_lat", "ucp_put_bw", "ucp_get", "ucp_fadd"):
        cmd = env + packaged(ctx, f"ucx_perftest -t {test} -n 200 -w 10 "
                             f"-s {8 if test == 'ucp_fadd' else 4096}")
        pair(a, b, cmd, f"{cmd} {b.addr}", 90)
    return "tag, put, get, fetch-add"


@judge(needs=("packages",))
def ucx_rc(ctx, a, b):
    """UCX, ucx_perftest over rc_mlx5."""
    return ucx(ctx, a, b, "rc_x")


@judge(needs=("packages",))
def ucx_dc(ctx, a, b):
    """UCX, ucx_perftest over dc_mlx5."""
    return ucx(ctx, a, b, "dc_x")
