# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Out of memory at every allocation of the module, and nothing leaks: on the debug kernel.

A call whose allocation fails says so and leaves nothing behind; the next one succeeds.
The programs in tests/module let each allocation of a call fail in its turn, a shell those
of loading the module; what the module allocates in work items, interrupts and dumps fails
at random. What they leave is looked for by kmemleak.
"""

import contextlib
import re

from . import debugfs, krcore, programs
from .kernel_log import OF_FAULTS
from .nodes import AS_USER, client, given_back, held, ports, program, saying, serve, tap, up
from .probe import Probe
from .suite import check, limit, wait_until
from .test_messages import OTHER, PROGRAM as MESSAGES, SERVICE, listening, numbers, of_port, talking

NEEDS = "debug"
LAST = True     # DMA debugging may have been given up after it
FAULTS = ("failslab", "fail_page_alloc", "fail_usercopy")
TIMES = 1000000     # counted down with each failure
# faults also where one may wait, of any size, and not a word of them in the log
READY = {"verbose": 0, "times": TIMES, "ignore-gfp-wait": "N", "ignore-gfp-highmem": "N",
         "min-order": 0}
OFF = {"probability": 0, "ignore-gfp-wait": "Y", "require-start": 0,
       "require-end": hex((1 << 64) - 1), "reject-start": 0, "reject-end": 0}
# A report of what a module allocated that is gone: its addresses have no names any more.
OURS = re.compile(r"(?m)\[krc\w*\]$|^ {4}0x[0-9a-f]+$")
RETRY_SECONDS = 60
LOADS_MAX = 400
STORM_PERCENT = 2
KNOCKED = 701       # the service of krc_ioctl PEER message-faults
RECEIVE_PERCENT = 10
RECEIVE_FAULTS = 200
# which allocation of each work item fails while a node goes down
DOWN_FAULTS = (1, 2, 3, 5, 8, 21, 55)
LACK_STEP = 13      # odd: every second allocation is one of kmemleak, which does without
LACKED = re.compile(r"krcore: .*(?:cannot make |not used: out of memory)")


# -- faults ----------------------------------------------------------------------


def _set(machine, kinds, settings):
    """Those of the settings that a kind of fault has."""
    machine.run(f"cd {debugfs.FOLDER}; for f in {' '.join(kinds)}; do "
                + "; ".join(f"[ ! -e $f/{name} ] || echo {value} >$f/{name}"
                            for name, value in settings.items()) + "; done")


@contextlib.contextmanager
def _faults(machine, kinds=FAULTS, **settings):
    """Faults are possible; gives a function that says how many there were."""
    def count():
        left = machine.run(f"cd {debugfs.FOLDER}; cat " + " ".join(f"{f}/times" for f in kinds))
        return sum(TIMES - int(word) for word in left.out.split())

    machine.log.pardon(OF_FAULTS)
    _set(machine, kinds, {**READY, **{key.replace("_", "-"): value
                                      for key, value in settings.items()}})
    try:
        yield count
    finally:
        _set(machine, FAULTS, OFF)


def _code_of_module(machine, name):
    """From where to where its code is: to the end of the page its last function begins in."""
    found = machine.run(f"awk '$2 ~ /[tT]/ && $4 == \"[{name}]\" {{print $1}}' /proc/kallsyms | "
                        "sort | sed -n '1p;$p'", timeout=60).out.split()
    check(found, f"/proc/kallsyms has no code of {name}")
    return hex(int(found[0], 16)), hex((int(found[-1], 16) | 0xfff) + 1)


def _code_of_function(machine, name):
    """From where to where its code is, in the kernel itself."""
    found = machine.run(f"grep -A1 ' {name}$' /proc/kallsyms", timeout=60).out.split()
    return f"0x{found[0]}", f"0x{found[3]}"


def _code_of_work(machine, name):
    """The same of a function of the module, whose symbols are in no order."""
    found = machine.run("grep '\\[krcore\\]$' /proc/kallsyms | sort | "
                        f"grep -A1 -P ' {name}\\t'", timeout=60).out.split()
    return f"0x{found[0]}", f"0x{found[4]}"


def _fail_works(machine, nth):
    """From now on the nth allocation of each kernel thread that does works fails; 0: none."""
    machine.run("for task in /proc/[0-9]*; do read -r name <$task/comm && case $name in kworker/*) "
                f"echo {nth} >$task/fail-nth;; esac; done 2>/dev/null; true", timeout=60)


# -- leaks -----------------------------------------------------------------------


def _leaks(machine):
    """What kmemleak has found of modules of ours that are gone; two scans, as it wants them."""
    for _ in range(2):
        machine.run(f"sleep 6; echo scan >{debugfs.FOLDER}/kmemleak", timeout=300)
    found = machine.run(f"cat {debugfs.FOLDER}/kmemleak", timeout=120).out
    reports = [report for report in re.split(r"(?m)^(?=unreferenced object)", found) if report]
    ours = [report for report in reports if OURS.search(report)]
    print(f"    {machine.name}: {len(ours)} leaks of ours, {len(reports) - len(ours)} that "
          "kmemleak suspects elsewhere", flush=True)
    return ours


def _killed(machine, peer, seconds):
    """The words that run a program with requests under way, and kill it."""
    return f"timeout -s KILL {seconds} {AS_USER} {program(machine)} {peer} hold 100"


# -- out of memory ---------------------------------------------------------------


@limit(900)
def test_every_allocation_of_a_call_fails_once(cluster):
    with up(cluster) as (node1, node2), serve(node2) as peer:
        before = held(node1)
        with _faults(node1):
            result = node1.run(f"{program(node1)} {peer} faults", timeout=600, check=False)
        for line in result.out.splitlines():
            if line.startswith("# "):
                print(f"    {line[2:]}", flush=True)
        tap(result, 22)
        given_back(node1, before, 30)


@limit(1200)
def test_every_allocation_of_a_message_fails_once(cluster):
    """Of each call of messages, at either end of a connection."""
    out = "/run/krc-knock.out"
    with talking(cluster) as (node1, node2), listening(node2, "serve") as end:
        before = held(node1)
        with saying(node2, f"{AS_USER} {MESSAGES} knock {node1.spec.address} {KNOCKED}",
                    "knocking", out, 1200):
            with _faults(node1):
                result = node1.run(f"{program(node1)} {node2.spec.address} {SERVICE} 0 0 0 0 0 "
                                   "message-faults", timeout=900, check=False)
            node2.run(f"pkill -TERM -f '^{MESSAGES} knock'")
            wait_until(lambda: "offers=" in node2.run(f"cat {out}").out, 60, "it knocks no more")
            print(f"    {node2.run(f'tail -n 1 {out}').out.strip()}", flush=True)
        for line in result.out.splitlines():
            if line.startswith("# "):
                print(f"    {line[2:]}", flush=True)
        tap(result, 28)
        end()
        given_back(node1, before, 30)


@limit(900)
def test_messages_come_though_their_receiver_lacks_memory(cluster):
    """A tenth of what is allocated for what comes: offers, messages, OPENs that wait. All
    are sent again, and come once and in order."""
    with talking(cluster) as (node1, node2):
        start, end = _code_of_work(node1, "krc_messages_work")
        with _faults(node1, ("failslab",), require_start=start, require_end=end,
                     probability=RECEIVE_PERCENT) as failed:
            with numbers(node1, node2):
                wait_until(lambda: failed() >= RECEIVE_FAULTS, 300, "allocations fail")
            count, lacked = failed(), of_port(node1)["no_memory"]
        print(f"    {count} allocations failed, {lacked} packets were dropped", flush=True)
        check(lacked, "nothing was dropped for want of memory")


NODE_UP_TESTS = 3       # into which the allocations of `node up` are dealt: all take a quarter hour


def _node_up_fails(cluster, first):
    with up(cluster) as (node1, _):
        krc_genl = programs.install(node1, "tests/module/krc_genl")
        node1.run("krcore-metactl node down", timeout=60)
        with _faults(node1):
            result = node1.run(f"{krc_genl} faults {first} {NODE_UP_TESTS}", timeout=600,
                               check=False)
        for line in result.out.splitlines():
            print(f"    {line}", flush=True)
        check(not result.status, repr(result))
        node1.run("krcore-metactl node up", timeout=60)


@limit(300)
def test_the_1st_and_each_3rd_allocation_of_node_up_fail_once(cluster):
    _node_up_fails(cluster, 1)


@limit(300)
def test_the_2nd_and_each_3rd_allocation_of_node_up_fail_once(cluster):
    _node_up_fails(cluster, 2)


@limit(300)
def test_the_3rd_and_each_3rd_allocation_of_node_up_fail_once(cluster):
    _node_up_fails(cluster, 3)


def _goes_down(node1, node2, nth, failed):
    """Take a node down that has a listener and a connection while the nth allocation of each work
    fails. Returns how many did."""
    hold = f"{AS_USER} {MESSAGES} hold {node2.spec.address} {OTHER}"
    stand = f"{AS_USER} {MESSAGES} serve {SERVICE}"
    with saying(node1, stand, "listening", "/run/krc-stand.out", 200), \
            saying(node1, hold, "open", "/run/krc-hold.out", 200):
        before = failed()
        _fail_works(node1, nth)
        node1.run("krcore-metactl node down", timeout=120)
        _fail_works(node1, 0)
        count = failed() - before
        wait_until(lambda: not node1.run("pgrep -x krc_message", check=False).out, 60,
                   "its programs have heard of it")
    node1.run("krcore-metactl node up", timeout=60)
    wait_until(lambda: ports(node1), RETRY_SECONDS, "the port is there")
    krcore.wait_ready(node1)
    return count


@limit(1500)
def test_allocations_of_node_down_fail(cluster):
    """Of the works that end a port, its pool and its connections. It is down all the same, and its
    card has what it had. The drivers are spared as when memory lacks now and then."""
    with talking(cluster) as (node1, node2), listening(node2, "serve", OTHER):
        krcore.wait_ready(node1)
        before = held(node1)
        start, end = _code_of_module(node1, "krcore")
        for spared in ("mlx5_core", "ib_core"):
            but_start, but_end = _code_of_module(node1, spared)
            counts = {}
            with _faults(node1, require_start=start, require_end=end,
                         reject_start=but_start, reject_end=but_end) as failed:
                for nth in DOWN_FAULTS:
                    counts[nth] = _goes_down(node1, node2, nth, failed)
                    if not counts[nth]:
                        break
            print(f"    but for {spared}: failed, by which of a work: {counts}", flush=True)
            check(counts[DOWN_FAULTS[0]], "no allocation failed")
            given_back(node1, before, 60)


@limit(900)
def test_port_that_lacked_memory_comes_by_itself(cluster):
    """Each so manieth allocation of `node up` fails. The module says when that kept it from
    making what a port needs; if it never did, those between them fail, too."""
    with up(cluster) as (node1, _):
        krc_genl = programs.install(node1, "tests/module/krc_genl")
        before = len(node1.kernel_log())
        for first in range(1, LACK_STEP + 1):
            with _faults(node1):
                done = node1.run(f"{krc_genl} lack {first} {LACK_STEP}", timeout=600, check=False)
            print(f"    {done.out.strip()}", flush=True)
            check(not done.status, repr(done))
            lacked = len(LACKED.findall(node1.kernel_log()[before:]))
            if lacked:
                break
        print(f"    {lacked} times something could not be made at first", flush=True)
        check(lacked, "no port lacked memory, whichever allocation failed")


@limit(900)
def test_every_allocation_of_loading_fails_once(cluster):
    """Loading says that it lacks memory and leaves nothing, or does without."""
    node1 = cluster.node("node1")
    krcore.node_gone(node1)
    node1.run("modprobe krcore && rmmod krcore", timeout=60)    # what it needs is there
    # the allocations of a task that are counted: those below what calls a module's init
    start, end = _code_of_function(node1, "do_init_module")
    script = (f"cd {debugfs.FOLDER}; nth=0; went_on=0; old=; "
              "ko=/usr/lib/modules/$(uname -r)/updates/krcore.ko; "
              f"while [ $nth -lt {LOADS_MAX} ]; do nth=$((nth + 1)); "
              f"now=$(cat {' '.join(f'{f}/times' for f in FAULTS)}); "
              '[ "$now" != "$old" ] || break; old=$now; '
              'if out=$(sh -c "echo $nth >/proc/self/fail-nth; exec insmod $ko" 2>&1); '
              'then went_on=$((went_on + 1)); rmmod krcore || exit 3; '
              'elif ! echo "$out" | grep -q "Cannot allocate memory"; '
              'then echo "allocation $nth: $out"; fi; done; '
              "echo $nth $went_on")
    with _faults(node1, require_start=start, require_end=end) as failed:
        result = node1.run(script, timeout=600)
        count = failed()
    *wrong, last = result.out.splitlines()
    steps, went_on = (int(word) for word in last.split())
    print(f"    {count} allocations failed once, {went_on - 1} times it did without", flush=True)
    check(not wrong, "\n".join(wrong))
    check(count > 20 and steps < LOADS_MAX, f"{count} failed in {steps} steps")
    node1.run("modprobe krcore && rmmod krcore", timeout=60)


def _used(machine, peer):
    """A script that has programs come, work, be killed, and be looked at."""
    show = "; ".join(f"timeout 30 krcore-metactl {words}"
                     for words in ("queue list", "peer list", "stats node", "node show"))
    works = "; ".join(f"timeout 60 {AS_USER} {program(machine)} {peer} {words}"
                      for words in ("fresh", "loop 2"))
    return (f"for i in 1 2 3; do {works}; {_killed(machine, peer, 8)} & sleep 2; {show}; wait; "
            "done >/dev/null 2>&1; true")


@limit(1500)
def test_module_lacks_memory_now_and_then(cluster):
    """Whoever allocates for it: programs, its work items, interrupts, dumps; afterwards all
    is as before. The driver is spared where the kernel itself can't do without memory: when
    verbs objects are destroyed; so once it is the driver that never lacks any, once verbs."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        servers = cluster.nodes("metaserver")
        krcore.wait_ready(node1)
        before = held(node1)
        for spared in ("mlx5_core", "ib_core"):
            start, end = _code_of_module(node1, "krcore")
            but_start, but_end = _code_of_module(node1, spared)
            with _faults(node1, ("failslab",), require_start=start, require_end=end,
                         reject_start=but_start, reject_end=but_end,
                         probability=STORM_PERCENT) as failed:      # at last: only for these
                node1.run(_used(node1, peer), timeout=300)
                servers[0].run(f"systemctl restart {krcore.UNIT}", timeout=60)
                node1.run(_used(node1, peer), timeout=300)
                node1.run("timeout 60 krcore-metactl node down; timeout 60 krcore-metactl node up",
                          timeout=120, check=False)
                count = failed()
            print(f"    but for {spared}: {count} allocations failed", flush=True)
            check(count, "no allocation failed")
            node1.run("krcore-metactl node up", timeout=60)
            wait_until(lambda: ports(node1), RETRY_SECONDS, "the port is there")
            krcore.wait_ready(node1)
            krcore.wait_published(node2, [node1])
            tap(client(node1, f"{peer} traffic", 300), 60)
            given_back(node1, before, 60)


# -- nothing is left ---------------------------------------------------------------


@limit(900)
def test_nothing_leaks(cluster):
    """Also of what the tests before this one did."""
    with up(cluster) as (node1, node2), serve(node2) as peer:
        tap(client(node1, f"{peer} traffic", 300), 60)
        tap(client(node1, f"{peer} life", 150), 6)
        node1.run(f"{_killed(node1, peer, 8)}; true", timeout=60)
        krcore.metactl(node1, "node show")
        node1.run("krcore-metactl node down", timeout=60)
    for machine in (node1, node2):
        found = _leaks(machine)
        check(not found, f"{machine.name}: {len(found)} leaks, the first:\n"
              + "".join(found[:2]))


@limit(600)
def test_leaks_would_be_seen(cluster):
    """The control: a module that forgets what it allocated, and is gone."""
    count = 16
    machine = cluster.node("node1")
    with Probe(machine) as probe:
        probe.do(f"leak {count}")
    found = [report for report in _leaks(machine) if "(size 1024)" in report]
    machine.run(f"echo clear >{debugfs.FOLDER}/kmemleak")
    check(len(found) > count // 2, f"{len(found)} of {count} leaks were seen")
