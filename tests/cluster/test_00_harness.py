# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The cluster itself: that it is what the other tests take it for, and that it tells
when something is wrong. Nothing of krcore runs here."""

import re
import time

from .agent import AgentError
from .suite import check, limit, wait_until

NEEDS_KRCORE = False


def test_guests_are_up(cluster):
    for machine in cluster.nodes():
        state = machine.run("systemctl is-system-running; hostname; uname -r").out.split()
        check(state == ["running", machine.name, cluster.kernel.release], f"{state}")


def test_command_brings_back_status_and_output(cluster):
    result = cluster.node("node1").run("echo out; echo err >&2; cat; exit 7", check=False,
                                       stdin="in\n")
    check((result.status, result.out, result.err) == (7, "out\nin\n", "err\n"), repr(result))


def test_command_that_hangs_is_ended(cluster):
    began = time.monotonic()
    try:
        cluster.node("node1").run("sleep 600", timeout=2)
    except AgentError as error:
        check("did not end within" in str(error), str(error))
    else:
        raise AssertionError("no error")
    check(time.monotonic() - began < 300, "took too long to notice")
    left = cluster.node("node1").run("pgrep -x sleep", check=False)
    check(left.status == 1, f"still there: {left.out}")


def test_files_go_both_ways(cluster):
    machine = cluster.node("node2")
    data = bytes(range(256)) * 1000
    machine.push(data, "/tmp/pushed", mode=0o600)
    check(machine.pull("/tmp/pushed") == data, "content differs")
    check(machine.run("stat -c %a /tmp/pushed").out == "600\n", "mode differs")


def test_clock_is_right(cluster):
    for machine in cluster.nodes():
        away = machine.agent.clock_error()
        check(abs(away) < 2, f"{machine.name}: {away:.1f} s away")


def test_rdma_device_is_there(cluster):
    for machine in cluster.nodes():
        listed = machine.run("ibv_devices").out
        check(cluster.nic.device() in listed, f"{machine.name}: {listed}")
        info = machine.run("ibv_devinfo").out
        check("PORT_ACTIVE" in info, f"{machine.name}: {info}")


def _listens(machine, port):
    return f":{port}" in machine.run("rdma resource show cm_id | grep LISTEN", check=False).out


def test_rping_between_guests(cluster):
    server, client = cluster.node("node2"), cluster.node("node1")
    with server.background(f"rping -s -a {server.spec.address} -C 20", limit=60) as serving:
        wait_until(lambda: _listens(server, 7174), 20, "rping listens")
        client.run(f"rping -c -a {server.spec.address} -C 20", timeout=60)
        check(serving.wait(30).status == 0, "the server side failed")


def _perftest(cluster, program):
    # Not with -R: perftest 4.5 then connects twice, and its client crashes when the
    # server is not quick enough to listen again.
    server, client = cluster.node("node2"), cluster.node("node1")
    command = f"{program} -F -s 256 -n 500"
    with server.background(command, limit=90) as serving:
        wait_until(lambda: ":18515 " in server.run("ss -Hltn").out, 20, f"{program} listens")
        result = client.run(f"{command} {server.name}", timeout=90)
        check(serving.wait(30).status == 0, "the server side failed")
    check(re.search(r"^ 256 +500 ", result.out, re.M), result.out)


def test_ib_read_lat(cluster):
    _perftest(cluster, "ib_read_lat")


def test_ib_read_bw(cluster):
    _perftest(cluster, "ib_read_bw")


def _port_state(machine):
    return re.search(r"state:\s+(PORT_\w+)", machine.run("ibv_devinfo -i 1").out)[1]


def test_link_down_and_up(cluster):
    machine = cluster.node("node2")
    machine.link_down()
    wait_until(lambda: _port_state(machine) == "PORT_DOWN", 20, "the port goes down")
    lost = cluster.node("node1").run("ping -c 1 -W 1 node2", check=False)
    check(lost.status == 1, f"ping came back over a dead link: {lost}")
    machine.link_up()
    wait_until(lambda: _port_state(machine) == "PORT_ACTIVE", 20, "the port comes back")
    cluster.node("node1").run("ping -c 3 -W 20 node2")


def test_card_out_and_in(cluster):
    machine = cluster.node("node2")
    machine.remove_nic()
    wait_until(lambda: cluster.nic.device() not in machine.run("ibv_devices").out, 20,
               "the RDMA device goes")
    machine.add_nic()
    wait_until(lambda: _port_state(machine) == "PORT_ACTIVE", 20, "the port comes back")
    cluster.node("node1").run("ping -c 3 -W 20 node2")


def test_cut_and_loss(cluster):
    first, second = cluster.node("node1"), cluster.node("node2")
    cluster.cut("node1", "node2")
    check(first.run("ping -c 1 -W 1 node2", check=False).status == 1, "a cut let ping through")
    check(first.run("ping -c 3 -W 20 meta1", check=False).status == 0, "a cut hit a third guest")
    cluster.fabric.reset()
    cluster.fabric.loss(second.spec.index, 500, seed=7)
    first.run("ping -c 20 -i 0.2 -W 20 node2", check=False)    # by one, the switch knows both
    pings = first.run("ping -c 40 -i 0.05 -W 20 node2", check=False).out
    got = int(re.search(r"(\d+) received", pings)[1])
    cluster.fabric.reset()
    check(5 <= got <= 35, f"half of 40 lost, {got} came")


def test_kernel_log_check_bites(cluster):
    machine = cluster.node("node1")
    check(machine.kernel_problems() == [], "there was trouble before")
    machine.run("echo 'WARNING: this line is made by the test of the check' >/dev/kmsg")
    found = wait_until(machine.kernel_problems, 10, "the line is found")
    check(len(found) == 1 and "made by the test" in found[0], f"{found}")
    check(machine.kernel_problems() == [], "reported twice")


@limit(300)
def test_dead_guest_is_reported_and_comes_back(cluster):
    machine = cluster.node("meta2")
    machine.run("touch /root/before; sync")
    machine.kill()
    began = time.monotonic()
    try:
        machine.run("true")
    except Exception as error:
        check("the guest died" in str(error), str(error))
    else:
        raise AssertionError("a dead guest ran a command")
    check(time.monotonic() - began < 30, "took too long to notice")
    check([dead.name for dead in cluster.dead()] == ["meta2"], "not in the list of the dead")
    machine.restart()
    machine.run("test -e /root/before && ibv_devices | grep -q " + cluster.nic.device())


def test_hung_guest_is_reported(cluster):
    machine = cluster.node("node2")
    machine.pause()
    try:
        machine.agent.call("guest-ping", timeout=3)
    except AgentError as error:
        check("no answer in time" in str(error), str(error))
    else:
        raise AssertionError("a stopped guest answered")
    finally:
        machine.resume()
    machine.run("true", timeout=30)
