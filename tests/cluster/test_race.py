# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""krcore-race, the key-value store over queues."""

import contextlib
import re
import time

from . import krcore, nodes, packages, programs
from .suite import check, limit, wait_until
from .test_queues import node_up

TOOL = "krcore-race"
SERVER = "node1"


def _prepare(cluster):
    node_up(cluster)
    for machine in cluster.nodes("node") + cluster.nodes("metaserver"):
        programs.install(machine, "race/krcore-race")
        programs.install(machine, "race/libkrcore-race.so", "/usr/local/lib/libkrcore-race.so.0")
        machine.run("ldconfig")


@contextlib.contextmanager
def serving(machine, words="", folder="/usr/local/bin"):
    """A table on `machine`, until the end of the block."""
    unit = "test-race"
    machine.run(f"systemctl stop {unit} 2>/dev/null; systemctl reset-failed {unit} 2>/dev/null; "
                f"systemd-run --quiet --unit={unit} -p LimitMEMLOCK=infinity "
                f"{folder}/{TOOL} {words} serve", check=False)
    said = f"journalctl -u {unit} _SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID " \
           f"{unit}) -o cat --no-pager"
    try:
        wait_until(lambda: "serving" in machine.run(said, check=False).out, 30,
                   f"{machine.name} serves a table")
        yield unit
    finally:
        if machine.alive():
            machine.run(f"systemctl stop {unit}", timeout=60, check=False)


def tool(machine, words, status=0, timeout=60, given=None):
    """One run of the tool; what it printed, after its status was compared."""
    pipe = f"printf '%s' '{given}' | " if given is not None else ""
    result = machine.run(f"{pipe}{TOOL} {words}", timeout=timeout, check=False)
    check(result.status == status, f"{words}: {result!r}")
    return result


def report(machine, words="check " + SERVER, status=0, timeout=120):
    """The numbers that `check` prints."""
    out = tool(machine, words, status, timeout).out
    return {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", out, re.M)}


@limit(400)
def test_put_and_get(cluster):
    """Each command, from two guests; what is asked for wrongly is refused with its name."""
    _prepare(cluster)
    server, first, second = (cluster.node(name) for name in (SERVER, "node2", "meta1"))
    with serving(server):
        result = tool(first, f"--verbose get {SERVER} apple", 3)
        check(re.search(r"connect_reads [12] ", result.err), f"of node and table: {result!r}")
        tool(first, f"put {SERVER} apple red")
        check(tool(second, f"get {SERVER} apple").out == "red\n", "another guest sees it")
        tool(second, f"insert {SERVER} apple blue", 3)
        tool(second, f"update {SERVER} apple green")
        result = tool(first, f"--verbose get {SERVER} apple")
        check(result.out == "green\n" and "searches 1 search_reads 3 " in result.err, repr(result))
        tool(first, f"update {SERVER} pear yellow", 3)
        tool(first, f"insert {SERVER} pear yellow")
        check("connect_reads 0 " in result.err, f"this node knows both by now: {result!r}")
        saved = tool(second, f"scan {SERVER}").out
        check(sorted(saved.splitlines()) == ["apple\tgreen", "pear\tyellow"], saved)
        result = first.run(f"{TOOL} put {SERVER} pear - </", check=False)
        check(result.status == 1 and "reading the value" in result.err, repr(result))
        tool(second, f"del {SERVER} apple")
        tool(first, f"del {SERVER} apple", 3)
        check(report(first)["entries"] == 1, "one entry is left")
        tool(first, f"del {SERVER} pear")
        loaded = second.run(f"printf '%s' '{saved}' | {TOOL} load {SERVER}").out
        check(loaded == "2 entries\n" and tool(first, f"scan {SERVER}").out == saved,
              f"what scan has said is loaded: {loaded!r}")
        tool(second, f"del {SERVER} apple")
        # the longest value and key, and what is too long
        long = "head -c 65536 /dev/zero | tr '\\0' x"
        first.run(f"{long} | {TOOL} put {SERVER} long -", timeout=60)
        check(len(tool(second, f"get {SERVER} long").out) == 65537, "the longest value")
        result = first.run(f"{{ {long}; echo; }} | {TOOL} put {SERVER} long -", check=False)
        check(result.status == 2 and "longer" in result.err, repr(result))
        first.run(f'{TOOL} put {SERVER} "$({long})" end', timeout=60)
        check(second.run(f'{TOOL} get {SERVER} "$({long})"', timeout=60).out == "end\n",
              "the longest key")
    result = tool(second, f"get {SERVER} pear", 1)
    check("no such key, table or node" in result.err, repr(result))
    for machine in (server, first):
        krcore.node_gone(machine)
    result = tool(first, f"get {SERVER} pear", 1)
    check("/dev/krcore" in result.err, f"without module: {result!r}")


@limit(400)
def test_packages(cluster):
    """What the packages install serves and asks, and nothing of it is left when they go."""
    node_up(cluster)
    machine = cluster.node("node2")
    names = ("libkrcore-race0", "krcore-race", "krcore-handoff")
    for name in names:
        machine.push(packages.package(name), f"/run/{name}.deb")
    place = "/usr/local/bin/krcore-race /usr/local/lib/libkrcore-race.so.0"
    machine.run(f"rm -f {place}; ldconfig")         # of other tests
    try:
        machine.run(f"dpkg -i {' '.join(f'/run/{name}.deb' for name in names)}", timeout=200)
        version = machine.run("krcore-metactl --version").out.split()[1]
        for name in ("krcore-race", "krcore-handoff"):
            check(machine.run(f"/usr/bin/{name} --version").out.split() == [name, version], name)
        with serving(machine, folder="/usr/bin"):
            machine.run("/usr/bin/krcore-race put node2 apple red")
            check(machine.run("/usr/bin/krcore-race get node2 apple").out == "red\n", "it is there")
        machine.run("test -x /usr/lib/krcore/functions/bytes")
    finally:
        machine.run(f"dpkg -P {' '.join(reversed(names))}", timeout=200, check=False)
        machine.run("rm -f /run/*.deb")
    left = machine.run("ls -d /usr/bin/krcore-race /usr/bin/krcore-handoff "
                       "/usr/lib/krcore/functions /usr/lib/*/libkrcore-race* 2>/dev/null",
                       check=False).out
    check(not left, f"left behind: {left}")


# -- what happens to clients and to the table ------------------------------------------

PROGRAM = "tests/module/krc_race"
BUCKETS_BYTES = 128     # a READ of two buckets that share one for what overflows
BLOCK_BYTES = 768       # a READ of an entry of BLOCK_VALUE bytes
BLOCK_VALUE = 500
SEARCHES = (100, 300)
MORTALS = 12            # clients killed beside a history
LIVE = 3                # of others in it
MORTALS_CUT = 5         # of which so many in the middle of an operation
KILLED = 24             # by each of two guests
GROWN = 1500
GROWN_SPLITS = 20       # there are 21 slots in a subtable
BIG_BYTES = 60000
BIG_MOST = 40
UNHEARD_SECONDS = 7     # longer than all retries
UNHEARD_MOST = 15
UNKNOWN = 3             # requests of unknown outcome that a history must have
UNDER_WAY_US = 40_000
HISTORY_SECONDS = 900   # it is told when it is over
HISTORY_ROUNDS = 10


def _users(cluster):
    """The memory node, and two guests with the test program."""
    _prepare(cluster)
    machines = [cluster.node(name) for name in (SERVER, "node2", "meta1")]
    for machine in machines[1:]:
        programs.install(machine, PROGRAM)
    return machines


def _clean(machine):
    """The numbers of a table in which nothing is broken, or about to be."""
    found = report(machine)
    check(not found["damaged"] and not found["tentative"] and not found["clients"], f"{found}")
    return found


@limit(300)
def test_a_search_is_three_reads(cluster):
    """By the counters of the client's card, whatever the client itself counts: 2 READs of buckets
    and one of the entry, and not one that grows with the searches besides."""
    server, first, second = _users(cluster)
    with serving(server):
        second.run(f"printf %{BLOCK_VALUE}d 1 | {TOOL} put {SERVER} counted -", timeout=60)
        seen = []
        for searches in SEARCHES:
            before = nodes.reads_by_bytes(first)
            first.run(f"krc_race search {SERVER} counted {searches}", timeout=120)
            after = nodes.reads_by_bytes(first)
            seen.append({size: after[size] - before.get(size, 0) for size in after})
    few, many = seen
    more = {size: many[size] - few.get(size, 0) for size in many}
    searches = SEARCHES[1] - SEARCHES[0]
    print(f"    READs of {searches} searches more, by bytes: {more}", flush=True)
    check(more.get(BUCKETS_BYTES) == 2 * searches, f"buckets: {seen}")
    check(more.get(BLOCK_BYTES) == searches, f"entries: {seen}")


@limit(400)
def test_killed_clients_leave_nothing_broken(cluster):
    """Clients of two guests are killed in the middle of changes of the same entries. No slot
    is damaged and nobody has to wait for the dead; what they had comes back."""
    server, first, second = _users(cluster)
    with serving(server, "--groups 2 --lease 5 --memory 128"):
        with first.background(f"krc_race kill {SERVER} 1 {KILLED}", limit=200) as other:
            out = second.run(f"krc_race kill {SERVER} 2 {KILLED}", timeout=200).out
            check(other.wait(200).status == 0 and out == f"killed {KILLED}\n", repr(out))
        left = report(first)
        check(not left["damaged"], f"{left}")
        check(left["clients"] > KILLED, f"most have written, and did not say goodbye: {left}")
        second.run(f"krc_race rewrite {SERVER}", timeout=60)
        taken = report(first, f"--reclaim check {SERVER}")
        check(not taken["damaged"] and taken["dead"] > KILLED and taken["reclaimed"], f"{taken}")
        after = _clean(second)
        first.run(f"krc_race rewrite {SERVER}", timeout=60)
        check(_clean(first)["chunks_used"] <= after["chunks_used"],
              f"what was taken back was used: {after}")


@limit(400)
def test_growth_and_a_full_node(cluster):
    """Subtables are split under look-ups that go on; a node that has no memory left says so,
    and what it has stays; what is asked for wrongly is refused, and changes nothing."""
    server, first, second = _users(cluster)
    with serving(server, "--groups 1 --memory 4"):
        with second.background(f"while :; do {TOOL} put {SERVER} turns $((++i)); done"):
            out = first.run(f"krc_race grow {SERVER} 1 {GROWN}", timeout=300).out
        splits, found, bad = map(int, re.fullmatch(r"splits=(\d+) found=(\d+) bad=(\d+)\n",
                                                   out).groups())
        check(splits >= GROWN_SPLITS and found > GROWN and not bad, out)
        now = report(first)
        check(now["entries"] == GROWN + 1 and not now["damaged"]
              and now["subtables"] > GROWN_SPLITS, f"{now}")
    with serving(server, "--memory 1"):
        # another size than what a tomb has, so that a deletion finds no memory
        server.run("systemctl kill -s STOP test-race")      # clients do all the work
        first.run(f"printf %500d 1 | {TOOL} put {SERVER} small -", timeout=60)
        check(tool(second, f"get {SERVER} small").out.strip() == "1", "without the server")
        server.run("systemctl kill -s CONT test-race")
        said = first.run(f"for ((i = 1; i <= {BIG_MOST}; i++)); do head -c {BIG_BYTES} /dev/zero "
                         f"| tr '\\0' x | {TOOL} put {SERVER} big$i - || break; done; echo $i",
                         timeout=120)
        last = int(said.out)
        check(2 <= last < BIG_MOST and "the memory node is full" in said.err, repr(said))
        check(len(tool(second, f"get {SERVER} big{last - 1}").out) == BIG_BYTES + 1, "it is there")
        tool(second, f"get {SERVER} big{last}", 3)
        _bad_input(first)
        said = first.run(f"prlimit --memlock=65536 setpriv --reuid=nobody --regid=nogroup "
                         f"--clear-groups /usr/local/bin/{TOOL} serve", check=False)
        check(said.status == 1 and "RLIMIT_MEMLOCK" in said.err, f"which limit it is: {said!r}")
        check(tool(second, f"get {SERVER} small").out.strip() == "1", "the small one is as it was")
        check(_clean(second)["entries"] == last, "and so are all others")
        tool(second, f"del {SERVER} big1")
        tool(second, f"get {SERVER} big1", 3)
        first.run(f"head -c {BIG_BYTES} /dev/zero | {TOOL} put {SERVER} again -", timeout=60)
        check(_clean(second)["entries"] == last, "what was deleted made room")


def _bad_input(machine):
    """Each is refused with the name of what is wrong."""
    for words, status, text, given in (
            ("--memory 0 serve", 2, "--memory: '0' is not a number from 1", None),
            ("--depth 17 serve", 2, "--depth: '17'", None),
            ("--lease 1x serve", 2, "--lease: '1x'", None),
            ("--memory 1 --depth 16 serve", 1, "1 MiB do not hold a table of such", None),
            (f"--service 80 get {SERVER} small", 2, "--service: '80'", None),
            (f"get {SERVER}", 2, "wrong number of arguments", None),
            (f"swap {SERVER} small", 2, "there is no command 'swap'", None),
            (f"put {SERVER} '' x", 1, "a length or an option is out of its range", None),
            (f"--service 9999 get {SERVER} small", 1, "there is no such key, table or node", None),
            (f"load {SERVER}", 1, "line 1: not KEY TAB VALUE", "small two\n"),
            (f"load {SERVER}", 1, "line 1: not KEY TAB VALUE", "small\\ttwo\\\\q\n"),
            (f"load {SERVER} /nowhere", 1, "/nowhere: No such file", None)):
        result = tool(machine, words, status, given=given)
        check(text in result.err, f"{words}: {result!r}")


HISTORY = "/run/krc-race-history.out"


@contextlib.contextmanager
def _history(machine, seed, how=""):
    """Threads of a guest change the same few entries, until the end of the block; gives what they
    counted by then. What they saw has an order."""
    counts = {}
    with machine.background(f"krc_race history {SERVER} {seed} {HISTORY_SECONDS} {how} "
                            f">{HISTORY} 2>&1", limit=HISTORY_SECONDS + 60) as process:
        yield counts
        machine.run("pkill -TERM -x krc_race")
        status = process.wait(120).status
    said = machine.run(f"cat {HISTORY}").out
    counts.update((name, int(value)) for name, value in re.findall(r"(\w+)=(\d+)", said))
    print(f"    {counts}", flush=True)
    check(not status and counts.get("violations") == 0 and counts["rounds"] >= HISTORY_ROUNDS,
          said[-2000:])


@limit(600)
def test_linearizable_under_resets(cluster):
    """Threads of a guest change the same few entries while answers are lost for so long that
    initiators are reset, so that nobody knows what became of some requests. What they saw has
    an order; of threads that answer with old values it has none."""
    server, first, _ = _users(cluster)
    with serving(server, "--groups 1"):
        result = first.run(f"krc_race history {SERVER} 1 15 stale", timeout=60, check=False)
        check(result.status == 1 and "there is no order" in result.out, repr(result))
        with _history(first, 2) as counts:
            for _ in range(UNHEARD_MOST):
                time.sleep(3)
                cluster.fabric.delay(first.spec.index, UNDER_WAY_US)
                time.sleep(1)
                cluster.fabric.loss(first.spec.index, 1000)
                time.sleep(UNHEARD_SECONDS)
                cluster.fabric.reset()
                said = re.findall(r"unknown so far: (\d+)", first.run(f"cat {HISTORY}").out)
                if said and int(said[-1]) >= UNKNOWN:
                    break
        check(counts["unknown"] >= UNKNOWN, f"hardly an outcome was unknown: {counts}")
        check(nodes.pool(first)["recoveries"] > 0, "no initiator was reset")
        check(not report(first)["damaged"], "nothing is damaged")


@limit(600)
def test_linearizable_as_clients_are_killed(cluster):
    """In each round one of those who change the same few entries is killed in the middle of it:
    what the others saw has an order, in which its last operation was done or not. What the dead
    had comes back."""
    server, first, second = _users(cluster)
    with serving(server, "--groups 1 --lease 5 --memory 128"):
        with _history(first, 4, "mortal") as counts:
            wait_until(lambda: report(second)["clients"] >= MORTALS + LIVE, 240,
                       f"{MORTALS} are dead")
        check(counts["killed"] >= MORTALS and counts["cut"] >= MORTALS_CUT, f"{counts}")
        found = report(second, f"--reclaim check {SERVER}")
        check(not found["damaged"] and found["dead"] >= MORTALS and found["reclaimed"], f"{found}")
        check(not report(first)["clients"], "nobody's word is left")


def _goes_on(machine, requests=1000):
    """It posts so many requests more, by whatever queues: each round has new ones."""
    before = nodes.pool(machine)["posted"]
    wait_until(lambda: nodes.pool(machine)["posted"] >= before + requests, 60,
               f"{machine.name} goes on")


@limit(600)
def test_linearizable_as_servers_die(cluster):
    """Both MetaServers are killed, and the memory node is cut off for a while meanwhile: who is
    connected goes on, and what they saw has an order. Then another node finds the table again."""
    server, first, second = _users(cluster)
    servers = cluster.nodes("metaserver")
    with serving(server, "--groups 1"):
        with _history(first, 3) as counts:
            _goes_on(first)
            for machine in servers:
                machine.run(f"systemctl kill -s KILL {krcore.UNIT}; systemctl stop {krcore.UNIT}")
            _goes_on(first)
            cluster.fabric.loss(server.spec.index, 1000)
            time.sleep(UNHEARD_SECONDS)
            cluster.fabric.reset()
            _goes_on(first)
            for machine in servers:
                machine.run(f"systemctl start {krcore.UNIT}", timeout=60)
        check(counts["failed"] + counts["unknown"], f"nobody noticed the cut: {counts}")
        wait_until(lambda: second.run(f"{TOOL} check {SERVER}", check=False).status == 0, 90,
                   "another node finds the table")
        check(not report(first)["damaged"], "nothing is damaged")
