# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore-handoff: functions of several guests hand data to each other, and what is left when
one of them, or a caller, ends at a bad moment."""

import contextlib
import json
import re

from . import krcore, programs
from .kernel_log import OOM
from .nodes import writing
from .suite import check, limit, wait_until
from .test_queues import node_up

TOOL = "krcore-handoff"
UNIT = "test-handoff"
FUNCTIONS = "/usr/local/lib/krcore/functions"
TALK = "/usr/local/bin/test-talk"
SIZES = (1, 1024, 4096, 9216, 65536, (1 << 20) + 1, 16 << 20)
GONE = "its owner has freed the data, or has ended"
LONG = "--lease 3600 --idle 3600"     # longer than a test takes in a guest that is slow

# talk ADDRESS REPLIES LINE...: say lines to a runner, print so many replies; with HOLD=FILE make
# that file then, and stay connected for as long as it is there
TALK_TEXT = r"""#!/bin/bash
exec 3<>"/dev/tcp/$1/7234" || exit 1
replies=$2
shift 2
printf '%s\n' "$@" >&3
for ((i = 0; i < replies; i++)); do
	IFS= read -r -t 180 line <&3 || line=ended
	echo "$line"
done
[ -z "$HOLD" ] || { : >"$HOLD"; while [ -e "$HOLD" ]; do sleep 0.2; done; }
"""
# what a function sees, as a text
LOOK = r"""#!/bin/bash
echo "fail pid $$ uid $(id -u) host $(uname -n) devices $(grep -c : /proc/net/dev)" \
	"processes $(ls -d /proc/[0-9]* | wc -l) writable" \
	"$(for at in /etc /var/tmp /run/look; do touch $at/x 2>/dev/null && echo $at; done)" \
	"locked $(ulimit -l) session $(cut -d' ' -f6 /proc/self/stat)" \
	"cgroup $(sed s/.*-handoff-// /proc/self/cgroup)" \
	"keys $(grep -c invocation_id /proc/keys)" \
	"oom $(echo 0 2>/dev/null >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj)"
"""
# ends when it is to take, as the first two functions of a runner, where /run/flaky is
FLAKY = r"""#!/bin/bash
[ -e /run/flaky ] && [ "$(sed 's,.*/,,' /proc/self/cgroup)" -le 2 ] && { read -r line; exit 1; }
exec %s/bytes
""" % FUNCTIONS
DEAF = "#!/bin/sh\nexec sleep 100000\n"


def _install(machine):
    machine.run(f"mkdir -p {FUNCTIONS}")
    programs.install(machine, f"handoff/{TOOL}")
    programs.install(machine, "handoff/krcore-example-handoff")
    programs.install(machine, "handoff/bytes", f"{FUNCTIONS}/bytes")
    machine.push(TALK_TEXT.encode(), TALK, 0o755)
    for name, text in (("look", LOOK), ("flaky", FLAKY), ("deaf", DEAF)):
        machine.push(text.encode(), f"{FUNCTIONS}/{name}", 0o755)


def _stop(machine):
    if machine.alive():
        machine.run(f"systemctl stop {UNIT} 2>/dev/null; systemctl reset-failed {UNIT} "
                    "2>/dev/null; rm -rf /run/hold* /run/flaky /run/look", timeout=60, check=False)


def _leave(machine):
    """MetaServers' guests are nodes here, too; no other test expects their records."""
    _stop(machine)
    if machine.alive():
        krcore.node_gone(machine)


def _serve(machine, options=""):
    _stop(machine)
    machine.run(f"systemd-run --quiet --unit={UNIT} -p Delegate=yes /usr/local/bin/{TOOL} "
                f"{options} -d {FUNCTIONS} serve {machine.spec.address}")
    said = f"journalctl -u {UNIT} _SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID " \
           f"{UNIT}) -o cat --no-pager"
    wait_until(lambda: "serving" in machine.run(said, check=False).out, 30,
               f"a runner on {machine.name}")


@contextlib.contextmanager
def runners(cluster, options=""):
    """A runner on every guest, until the end of the block."""
    node_up(cluster)
    cluster.each(_install)
    try:
        cluster.each(lambda machine: _serve(machine, options))
        yield
    finally:
        cluster.each(_leave)


def call(machine, words, status=0, timeout=180):
    """One run of the tool; its rows, after its status was compared."""
    result = machine.run(f"{TOOL} --timeout 120 --json {words}", timeout=timeout, check=False)
    check(result.status == status, f"{words}: {result!r}")
    return [json.loads(line) for line in result.out.splitlines()]


def talk(machine, to, replies, *lines):
    """Say lines to a runner; what it and its function answer."""
    quoted = " ".join(f"'{line}'" for line in lines)
    return machine.run(f"{TALK} {to.spec.address} {replies} {quoted}", timeout=200).out.splitlines()


@contextlib.contextmanager
def offered(machine, owner, size, hold="hold"):
    """Data that a function of `owner` offers, told by `machine`; gives (reference, bytes, sum).

    The connection to it lasts as long as the block.
    """
    file = f"/run/{hold}"
    with machine.background(f"HOLD={file} {TALK} {owner.spec.address} 1 'start bytes' "
                            f"'make {size} 4711' >{file}.offer", limit=300):
        wait_until(lambda: machine.run(f"test -e {file}", check=False).status == 0, 60,
                   f"{owner.name} offers data")
        line = machine.run(f"cat {file}.offer").out.strip()
        word, made, total = re.fullmatch(r"offer (\w+) (\d+) (\d+)", line).groups()
        check(int(made) == size, line)
        yield word, size, total
        machine.run(f"rm -f {file}")


@contextlib.contextmanager
def refused(machine, owner, line):
    """A function of `owner` has refused what `machine` asked for, and is there in the block."""
    file = "/run/hold-refused"
    with machine.background(f"HOLD={file} {TALK} {owner.spec.address} 1 'start bytes' '{line}' "
                            f">{file}.said", limit=300):
        wait_until(lambda: machine.run(f"test -e {file}", check=False).status == 0, 60,
                   f"{owner.name} has answered")
        said = machine.run(f"cat {file}.said").out
        check(said.startswith("fail "), said)
        yield
        machine.run(f"rm -f {file}")


def memory(machine):
    """What the one function of a guest has and may have."""
    folder = f"/sys/fs/cgroup/system.slice/{UNIT}.service/krcore-handoff-*/[0-9]*"
    return [int(word) for word in machine.run(f"cat {folder}/memory.current "
                                              f"{folder}/memory.max").out.split()]


def processes(machine):
    """Process numbers of the functions that run."""
    return machine.run(f"cat /sys/fs/cgroup/system.slice/{UNIT}.service/krcore-handoff-*/[0-9]*/"
                       "cgroup.procs 2>/dev/null; true").out.split()


def await_none(machine):
    """All functions of a guest have ended, and their cgroups are gone."""
    wait_until(lambda: not machine.run(
        f"ls -d /sys/fs/cgroup/system.slice/{UNIT}.service/krcore-handoff-*/[0-9]* 2>/dev/null; "
        "true").out, 60, f"{machine.name} runs no function")


@limit(600)
def test_data_arrive(cluster):
    """All sizes, cold and warm; a chain of five, one to many, many at once."""
    first, second = cluster.node("node1"), cluster.node("node2")
    caller = cluster.node("meta1")
    names = [machine.spec.address for machine in cluster.nodes()]
    with runners(cluster, LONG):
        for size in SIZES:
            rows = call(caller, f"chain {size} {names[2]} {names[3]}")
            check([row["type"] for row in rows] == ["hop", "chain"] and rows[0]["cold"]
                  and rows[0]["bytes"] == size and rows[0]["start_us"] > 0, f"{rows}")
        rows = [row for row in call(caller, f"--warm --times 4 chain 9216 {names[2]} {names[3]}")
                if row["type"] == "hop"]
        check([row["cold"] for row in rows] == [True, False, False, False], f"{rows}")
        check(all(row["start_us"] == 0 for row in rows[1:]), f"{rows}")
        # a chain of five functions in four guests; each changes what it takes
        five = " ".join([*names, names[0]])
        check(len(call(caller, f"chain 9216 {five}")) == 5, "four hops and their sum")
        check(len(call(caller, f"--warm --times 3 chain 100000 {five}")) == 15, "three times")
        # one to sixteen, and eight chains at once
        rows = call(caller, f"spread 9216 {names[0]} {' '.join(names * 4)}")
        check(len(rows) == 17, f"{rows}")
        rows = call(caller, f"--parallel 8 --times 2 chain 9216 {' '.join(names)}")
        check(len(rows) == 8 * 2 * 4, f"{len(rows)} rows")
        cluster.each(await_none)
        # what an author of a runtime copies
        with writing(first, "sleep 600 | krcore-example-handoff give 'a text of node1'",
                     "/run/hold-example", 700):
            wait_until(lambda: len(first.run("cat /run/hold-example").out) == 49, 60, "24 bytes")
            packed = first.run("cat /run/hold-example").out.strip()
            got = second.run(f"krcore-example-handoff fetch {packed}")
            check(got.out == "a text of node1\n", repr(got))
        result = second.run(f"krcore-example-handoff fetch {packed[:-2]}", check=False)
        check(result.status == 1 and "no packed reference" in result.err, repr(result))


@limit(600)
def test_deaths(cluster):
    """Taker, maker and caller end at any moment; nobody waits for ever, and nothing is left."""
    maker, taker, caller = (cluster.node(name) for name in ("node1", "node2", "meta1"))
    with runners(cluster, LONG):
        # a taker that ends before it has the data is started again, and finds them
        taker.run("touch /run/flaky")
        chain = f"--function flaky chain 65536 {maker.spec.address} {taker.spec.address}"
        call(caller, f"--retries 0 {chain}", 1)
        check(len(call(caller, chain)) == 2, "the second one has it")
        with offered(caller, maker, 16 << 20) as (word, _, total):
            # killed while it fetches them, again and again; the next one is told the same
            takes = " ".join([f"'take {word}'"] * 12)
            for _ in range(3):
                with caller.background(f"HOLD=/run/hold2 {TALK} {taker.spec.address} 0 "
                                       f"'start bytes' {takes}", limit=120):
                    wait_until(lambda: processes(taker), 30, "it runs")
                    taker.run("kill -9 " + " ".join(processes(taker)), check=False)
                await_none(taker)
            said = talk(caller, taker, 1, "start bytes", f"take {word}")[0]
            check(said.startswith(f"took {16 << 20} {total} "), said)
            # the maker is killed while it is read: all of it, or a clear error
            with caller.background(f"{TALK} {taker.spec.address} 12 'start bytes' {takes} "
                                   ">/run/hold-said", limit=300) as process:
                wait_until(lambda: "took" in caller.run("cat /run/hold-said", check=False).out, 60,
                           "it takes them")
                maker.run("kill -9 " + " ".join(processes(maker)))
                process.wait(200)
            said = caller.run("cat /run/hold-said").out.splitlines()
            check(len(said) == 12 and all(line.startswith(f"took {16 << 20} {total} ")
                                          or GONE in line for line in said), f"{said}")
            await_none(maker)
            said = talk(caller, taker, 1, "start bytes", f"take {word}")[0]
            check(said.startswith("fail ") and GONE in said, said)
        # a caller that ends takes its functions with it, also one that does not listen
        with offered(caller, maker, 4096) as (word, _, _):
            with caller.background(f"HOLD=/run/hold2 {TALK} {maker.spec.address} 0 'start deaf'",
                                   limit=120):
                wait_until(lambda: len(processes(maker)) == 2, 30, "both run")
        await_none(maker)
        said = talk(caller, taker, 1, "start bytes", f"take {word}")[0]
        check(GONE in said, said)
        # so does a runner
        with offered(caller, maker, 4096) as (word, _, _):
            maker.run(f"systemctl kill -s KILL {UNIT}")
            wait_until(lambda: not processes(maker), 30, "its functions have ended")
            said = talk(caller, taker, 1, "start bytes", f"take {word}")[0]
            check(GONE in said, said)


@limit(600)
def test_leases_and_bad_input(cluster):
    """A lease ends; what a function sees; what is asked for wrongly is refused with a reason."""
    maker, taker, caller = (cluster.node(name) for name in ("node1", "node2", "meta1"))
    bytes_ = "start bytes"
    with runners(cluster, "--lease 2 --most 4 --share 4 --idle 600"):
        said = talk(caller, maker, 2, bytes_, "make 9216 1")
        check(said[0].startswith("offer ") and said[1] == "lapsed", f"{said}")
        word = said[0].split()[1]
        check(len(word) == 48, f"24 bytes: {said}")
        check(GONE in talk(caller, taker, 1, bytes_, f"take {word}")[0], "nobody has it any more")
        maker.run("mkdir -p -m 777 /run/look")      # of another mount, where anybody may write
        said = talk(caller, maker, 1, "start look")[0]
        check(re.fullmatch(r"fail pid 1 uid 65534 host look devices 1 processes [1-9] writable  "
                           r"locked 262144 session 1 cgroup \d+/\d+ keys 0 oom 1000", said), said)
        # while the keyring of its unit has one, as that of each unit
        said = maker.run("systemd-run --quiet --wait --pipe grep -c invocation_id /proc/keys")
        check(int(said.out) > 0, repr(said))
        for lines, reason in (
                (("garbage",), "not 'start NAME"), (("start ../bytes",), "not 'start NAME"),
                (("start " + "x" * 600,), "too long"), (("start nosuch",), "No such file"),
                ((bytes_, "garbage"), "not a command"), ((bytes_, "make 0 1"), "not a command"),
                ((bytes_, "x" * 600), "too long"), ((bytes_, "take xyz"), "no reference"),
                ((bytes_, f"take {word[:-2]}"), "no reference"),
                ((bytes_, "make 1073741824 1"), "the limit is"),
                ((bytes_, f"take 0a4d00fa{word[8:]}"), "connecting")):  # a node that is not there
            said = talk(caller, maker, 1, *lines)[0]
            check(said.startswith("fail ") and reason in said, f"{lines}: {said}")
        # what may not be locked is not there either; nor more than the cgroup may have
        await_none(maker)
        with refused(caller, maker, "make 1073741824 1"):
            has, most = memory(maker)
            check(has < 16 << 20 and most == (256 + 64) << 20, f"{has} bytes of {most}")
        # as many as may run; the fifth is told so
        await_none(maker)
        with contextlib.ExitStack() as stack:
            for index in range(4):
                stack.enter_context(offered(caller, maker, 64, f"hold-{index}"))
            said = talk(caller, maker, 1, bytes_)[0]
            check("--most" in said, said)
        await_none(maker)
        for words, status, reason in (
                ("chain 0 a b", 2, "not a number of bytes"), ("chain 9 a", 2, "arguments"),
                ("chain 9 a b:x", 2, "NODE"), ("--function ../x chain 9 a b", 2, "name"),
                ("--parallel 65 chain 9 a b", 2, "1 to 64"), ("fly", 2, "no command"),
                (f"serve {caller.spec.address}", 1, "in use"), ("serve nowhere", 1, "address"),
                (f"--gid x serve {caller.spec.address}:7236", 2, "no GID"),
                (f"--user x serve {caller.spec.address}:7236", 1, "no user"),
                (f"chain 9 {maker.spec.address}:7235 b", 1, "refused")):
            result = caller.run(f"{TOOL} {words}", check=False)
            check(result.status == status and reason in result.err, f"{words}: {result!r}")
        # without limits: it says so, and does not serve, unless that is wanted
        shell = "systemd-run --quiet --wait --pipe -p RuntimeMaxSec=60 sh -c"
        serve = f"{TOOL} serve {caller.spec.address}:7236"
        result = caller.run(f"{shell} '{serve}; exit $?'", check=False, timeout=100)
        check(result.status == 1 and "40960 MiB together" in result.err and
              "no limit of processes" in result.err and
              "no limit of memory" in result.err and "Delegate=yes" in result.err, repr(result))
        # without the module
        krcore.node_gone(maker)
        said = talk(caller, maker, 1, bytes_, "make 9 1")[0]
        check("/dev/krcore" in said, said)


@limit(600)
def test_memory_of_a_cgroup(cluster):
    """A function that takes more memory than its cgroup may have ends alone, maker or taker."""
    maker, taker, caller = (cluster.node(name) for name in ("node1", "node2", "meta1"))
    events = f"cat /sys/fs/cgroup/system.slice/{UNIT}.service/memory.events"

    def kills(machine):
        # a function that is killed as a group counts twice in oom_kill, once for each way
        return int(re.search(r"^oom_group_kill (\d+)$", machine.run(events).out, re.M)[1])

    with runners(cluster, f"{LONG} --memory-max 24"):
        with offered(caller, maker, 1 << 20) as (word, size, total):
            maker.log.pardon(OOM)
            said = talk(caller, maker, 1, "start bytes", f"make {64 << 20} 1")
            check(said == ["ended"] and kills(maker) == 1, f"{said}, {kills(maker)} kills")
            check(len(call(caller, f"chain {1 << 20} {maker.spec.address} {taker.spec.address}"))
                  == 2, "others have room of their own")
            said = talk(caller, taker, 1, "start bytes", f"take {word}")[0]
            check(said.startswith(f"took {size} {total} "), f"its neighbour stands: {said}")
        _serve(maker, LONG)
        taker.log.pardon(OOM)
        with offered(caller, maker, 64 << 20) as (word, size, _):
            said = talk(caller, taker, 1, "start bytes", f"take {word}")
            check(said == ["ended"] and kills(taker) == 1, f"{said}, {kills(taker)} kills")
            await_none(taker)
        result = caller.run(f"{TOOL} --bare --memory-max 1 serve {caller.spec.address}:7236",
                            check=False)
        check(result.status == 2 and "no cgroups" in result.err, repr(result))
