# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Light guests on one fabric of the ConnectX model.

Owns: starting QEMU with the model preloaded, running commands in the guests,
setting and reading properties of the device by QMP.  A guest is a stock Debian
kernel with a 6 MB initramfs and the host's root file system read-only; a pair
is up in about ten seconds.  Every guest has a time limit and is ended by its
own process id.

Judges (../judges) use only Guest.run(), Guest.start() and the attributes node
and addr, so any other harness can call them with guests of its own.
"""
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "krcore")

ACCEL = {"tcg": "-accel tcg,thread=multi", "kvm": "-accel kvm"}
BAD_LOG = re.compile(r"WARNING:|BUG:|Oops|Call Trace|hw csum failure|refcount|"
                     r"mlx5_cmd_out_err|(mlx5|infiniband|eth0|rdma).*(timed? ?out|health|failed)")


class GuestError(Exception):
    """A command failed, or a guest did not answer."""


class Result:
    """Exit code and output of one command."""

    def __init__(self, code, out):
        self.code = code
        self.out = out


class Job:
    """A command that runs in a guest; wait() for its Result."""

    def __init__(self, guest, number, cmd, timeout):
        self.guest, self.number, self.cmd, self.timeout = guest, number, cmd, timeout
        self.result = None

    def done(self):
        """Look whether the command ended."""
        if not self.result:
            try:
                with open(self.guest.path(f"shared/rc.{self.number}"), encoding="utf-8") as f:
                    code = int(f.read())
            except (OSError, ValueError):   # not there, or not written yet
                return False
            self.result = Result(code, self.guest.output(self.number))
        return True

    def wait(self, check=True, seconds=None):
        end = time.time() + (self.timeout + 30 if seconds is None else seconds)
        while not self.done() and time.time() < end:
            if self.guest.process.poll() is not None:
                break
            time.sleep(0.02)
        if not self.result:
            raise GuestError(f"node {self.guest.node}: no answer to {self.cmd!r}\n"
                             + self.guest.console()[-2000:])
        if check and self.result.code:
            raise GuestError(f"node {self.guest.node}: {self.cmd!r} ended with "
                             f"{self.result.code}:\n{self.result.out}")
        return self.result


class Guest:
    """One virtual machine with one device."""

    def __init__(self, lab, node, **props):
        self.lab, self.node, self.props = lab, node, props
        self.addr = f"10.77.{node // 250}.{node % 250}"
        self.dir = os.path.join(lab.dir, f"node{node}")
        os.makedirs(self.path("shared"))
        self.next_id = 0
        self.past = ""      # of the kernel log, what keep_log() took
        self.lock = threading.Lock()
        self.process = self.agent = self.qmp_file = None

    def path(self, name):
        return os.path.join(self.dir, name)

    def device(self, **more):
        props = {"id": "cx", "bus": "rp0", "node": self.node, "link": self.lab.link,
                 "fabric": self.lab.fabric, "counters_file": self.path("counters.json")}
        if self.lab.trace:
            props["trace"] = self.path("trace")
            props["trace_classes"] = self.lab.trace
        props.update(self.lab.props)
        props.update(self.props)
        props.update(more)
        return props

    def boot(self):
        lab = self.lab
        cx = "connectx-model," + ",".join(f"{k}={v}" for k, v in self.device().items())
        preload = lab.model
        env = dict(os.environ)
        if lab.sanitize:
            asan = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True)
            ubsan = subprocess.check_output(["gcc", "-print-file-name=libubsan.so"], text=True)
            preload = " ".join([os.path.realpath(asan.strip()), os.path.realpath(ubsan.strip()),
                                preload])
            env["ASAN_OPTIONS"] = ("detect_leaks=0:detect_stack_use_after_return=0:"
                                   "halt_on_error=1:log_path=" + self.path("asan"))
            env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1:log_path=" \
                + self.path("ubsan")
        argv = ["timeout", "-k", "5", str(lab.limit), "env", f"LD_PRELOAD={preload}",
                "qemu-system-x86_64", "-M", "q35", *shlex.split(lab.accel), "-cpu", "max",
                "-m", str(lab.memory), "-smp", str(lab.cpus), "-display", "none",
                "-nodefaults", "-no-reboot",
                "-chardev", f"file,id=con,path={self.path('console')}", "-serial", "chardev:con",
                "-chardev", f"socket,id=agent,path={self.path('agent')},server=on,wait=off",
                "-serial", "chardev:agent",
                "-qmp", f"unix:{self.path('qmp')},server=on,wait=off",
                "-kernel", lab.kernel, "-initrd", lab.initrd,
                # a busy host may lose the ticks by which the kernel tests its timer
                "-append", "console=ttyS0 panic=-1 quiet no_timer_check "
                f"me={self.node} {'nic=virtio' if lab.link == 'ib' else ''} cache={CACHE} "
                f"{lab.append}",
                "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,"
                "multidevs=remap",
                "-virtfs", f"local,path={self.path('shared')},mount_tag=lab,security_model=none",
                *self.side_nic(),
                "-device", "pcie-root-port,id=rp0,chassis=1,slot=1,x-speed=16,x-width=16",
                "-device", cx]
        with open(self.path("qemu.err"), "wb") as err:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=err,
                                            stderr=err, env=env)
        self.agent = self.connect("agent")
        return Job(self, 0, "boot", lab.boot_limit)

    def side_nic(self):
        """InfiniBand mode has no netdev: a cable between nodes 1 and 2 for TCP."""
        if self.lab.link != "ib" or self.node > 2:
            return []
        local, remote = (os.path.join(self.lab.dir, f"cable{n}")
                         for n in (self.node, 3 - self.node))
        return ["-netdev", f"dgram,id=side,local.type=unix,local.path={local},"
                f"remote.type=unix,remote.path={remote}",
                "-device", f"virtio-net-pci,netdev=side,mac=02:00:00:00:00:0{self.node}"]

    def connect(self, name):
        for _ in range(200):
            try:
                s = socket.socket(socket.AF_UNIX)
                s.connect(self.path(name))
                return s
            except OSError:
                s.close()
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        with open(self.path("qemu.err"), encoding="utf-8") as f:
            raise GuestError(f"node {self.node}: QEMU did not start: {f.read()}")

    def output(self, job):
        try:
            with open(self.path(f"shared/out.{job}"), encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def start(self, cmd, timeout=180, where="host"):
        """Start a command (a bash script) and return a Job."""
        with self.lock:     # judges may use a guest from several threads
            self.next_id += 1
            number = self.next_id
            name = self.path(f"shared/{number}")
            with open(name, "w", encoding="utf-8") as f:
                f.write(cmd + "\n")
            os.rename(name, self.path(f"shared/cmd.{number}.{where}.{timeout}"))
            self.agent.sendall(b"\n")
        return Job(self, number, cmd, timeout)

    def run(self, cmd, timeout=180, check=True, where="host"):
        return self.start(cmd, timeout, where).wait(check)

    def console(self):
        with open(self.path("console"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def dmesg(self):
        return self.run("dmesg", where="guest").out

    def keep_log(self):
        """Begin the kernel log anew; what it says so far is still judged at the end."""
        self.past += self.drop_log()

    def drop_log(self):
        """Begin the kernel log anew; what it says so far is the caller's to judge."""
        return self.run("dmesg -c", where="guest").out

    # ---- the device, by QMP

    def qmp(self, command, **args):
        if not self.qmp_file:
            self.qmp_file = self.connect("qmp").makefile("rw", encoding="utf-8")
            self.qmp_file.readline()
            self.qmp("qmp_capabilities")
        self.qmp_file.write(json.dumps({"execute": command, "arguments": args}) + "\n")
        self.qmp_file.flush()
        while True:
            answer = json.loads(self.qmp_file.readline())
            if "error" in answer:
                raise GuestError(f"node {self.node}: {command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def set(self, prop, value, dev="cx"):
        self.qmp("qom-set", path=f"/machine/peripheral/{dev}", property=prop, value=value)

    def get(self, prop, dev="cx"):
        return self.qmp("qom-get", path=f"/machine/peripheral/{dev}", property=prop)

    def counters(self):
        return json.loads(self.get("counters"))

    def ops(self, op, side="requester", size=None):
        """How many requests of this kind completed on this node."""
        return sum(o["count"] for o in self.counters()["ops"] if o["op"] == op
                   and o["side"] == side and size in (None, o["bytes"]))

    def stop(self):
        """End it; returns QEMU's exit code, 0 also if it never ran."""
        if not self.process:
            return 0
        if self.process.poll() is None:
            try:
                self.qmp("quit")
            except (OSError, ValueError, GuestError):
                self.process.terminate()
        for end in (self.process.terminate, self.process.kill):
            try:
                return self.process.wait(10)
            except subprocess.TimeoutExpired:
                end()
        return self.process.wait()

    def sanitizer_reports(self):
        """Lines of findings; ASan's warnings about QEMU's coroutines are none."""
        found = []
        for name in os.listdir(self.dir):
            if name.startswith(("asan.", "ubsan.")):
                with open(self.path(name), encoding="utf-8", errors="replace") as f:
                    text = f.read()
                if "ERROR: AddressSanitizer" in text or "runtime error" in text:
                    found += text.splitlines()[:40]
        return found


class Lab:
    """Some guests on one fabric."""

    def __init__(self, model, nodes=2, kernel="6.1", link="eth", cpus=1, memory=1024, limit=300,
                 trace="cmd+refuse+event", sanitize=False, keep=False, append="", props=None,
                 extra=(), boot=True, boot_limit=600):
        self.model = os.path.realpath(model)
        self.link, self.cpus, self.memory, self.limit = link, cpus, memory, limit
        self.trace, self.sanitize, self.keep, self.append = trace, sanitize, keep, append
        self.props = props or {}
        self.boot_limit = boot_limit
        self.accel = ACCEL[os.environ.get("KRCORE_ACCEL") or "tcg"]
        self.dir = tempfile.mkdtemp(prefix="cx-lab-")
        self.fabric = os.path.join(self.dir, "fabric")
        self.kernel, self.initrd = self.image(kernel, extra)
        self.guests = [Guest(self, n + 1) for n in range(nodes)]
        if boot:
            self.boot()

    def image(self, series, extra):
        folder = subprocess.check_output([os.path.join(HERE, "get-kernel.sh"), series],
                                         text=True).strip()
        kernel = [os.path.join(folder, "boot", n) for n in os.listdir(os.path.join(folder, "boot"))
                  if n.startswith("vmlinuz")][0]
        initrd = os.path.join(self.dir, "initrd")
        subprocess.check_call([os.path.join(HERE, "mk-initrd.sh"), folder, initrd, *extra])
        return kernel, initrd

    def boot(self):
        try:
            for job in [g.boot() for g in self.guests]:
                job.wait()
        except BaseException:
            self.close()
            raise

    def complaints(self):
        """Ends the guests. What the kernel logs and the sanitizers say now that all is over, and
        how QEMU ended; nothing, if well."""
        bad = []
        for g in self.guests:
            lines = []
            try:
                g.keep_log()
            except (GuestError, OSError) as error:
                lines.append(f"its kernel log cannot be had: {error}".splitlines()[0])
            code = g.stop()
            if code:
                lines.append(f"QEMU ended with {code}")
            lines += [line for line in g.past.splitlines() if BAD_LOG.search(line)]
            lines += g.sanitizer_reports()
            bad += [f"node {g.node}: {line}" for line in lines]
        return bad

    def close(self):
        for g in self.guests:
            g.stop()
        if not self.keep:
            shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
