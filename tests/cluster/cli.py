# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The cluster's commands, for ./run and for a person: /usr/bin/python3 -m cluster."""

import argparse
import json
import os
import pathlib
import signal
import sys

from . import bench, demo, host, kernel, loop, module, nic, packages, shell
from .cluster import Cluster
from .suite import Suite, can, select, share


def _up_folder():
    """Where the cluster that `up` leaves running keeps its sockets; short, for their sake."""
    folder = pathlib.Path(f"/tmp/krcore-{os.getuid()}-up-{host.digest(str(host.CHECKOUT))[:8]}")
    if folder.exists() and (folder.is_symlink() or folder.stat().st_uid != os.getuid()):
        raise host.ClusterError(f"{folder}: not ours")
    return folder


def _running():
    cluster = Cluster.attach(_up_folder())
    if not cluster:
        raise host.ClusterError("no cluster is up: ./run up")
    return cluster


def _test(options):
    log_dir = host.build_dir() / "logs" / options.part
    tests = select(options.pattern, can(nic.get(options.nic), options.kernel))
    if options.share:
        tests = share(tests, options.share)
    if options.list:
        print("\n".join(name for name, _, _ in tests))
        return 0
    krcore = any(needs_krcore for _, _, needs_krcore in tests)
    with Cluster.start(kernel=options.kernel, nic=options.nic, cpus=options.cpus,
                       fresh=options.fresh, krcore=krcore) as cluster:
        suite = Suite(cluster, log_dir)
        good = suite.run(tests)
    if not good:
        host.say(f"logs of the guests: {log_dir}")
    print(suite.summary())
    return 0 if good else 1


def _up(options):
    folder = _up_folder()
    if Cluster.attach(folder):
        raise host.ClusterError("a cluster is up already: ./run down")
    folder.mkdir(mode=0o700)
    cluster = Cluster.start(kernel=options.kernel, nic=options.nic, cpus=options.cpus,
                            fresh=options.fresh, folder=folder, stay=True,
                            krcore=not options.bare)
    cluster.save_state()
    if cluster.packages:
        _pushed(cluster, cluster.packages).write_text(json.dumps(cluster.packages.files))
    names = ", ".join(machine.name for machine in cluster.nodes())
    host.say(f"up: {names}. ./run shell {cluster.nodes()[0].name}, ./run push, ./run down")
    return 0


def _down(_options):
    cluster = Cluster.attach(_up_folder())
    if cluster:
        cluster.stop()
    host.say("down" if cluster else "no cluster was up")
    return 0


def _status(_options):
    for machine in _running().nodes():
        print(f"{machine.name:12} {machine.spec.address:15} "
              f"{'running' if machine.alive() else 'dead':8} {','.join(machine.spec.roles)}")
    return 0


def _shell(options):
    machine = _running().node(options.node)
    machine.require_alive()
    if not options.command:
        return shell.interactive(machine)
    result = machine.run(" ".join(options.command), timeout=options.timeout, check=False)
    sys.stdout.write(result.out)
    sys.stderr.write(result.err)
    return result.status if result.status >= 0 else 128 - result.status


def _pushed(cluster, built):
    """Where the digests of the files in a running cluster are noted."""
    return cluster.folder / f"pushed-{built.shape}"


def _push(options):
    cluster = _running()
    loop.forget(cluster)
    if options.what == "module":
        module.install(cluster, module.build_from_checkout)
        return 0
    built = packages.Packages()
    notes = _pushed(cluster, built)
    if notes.exists():
        built.update(cluster, json.loads(notes.read_text()))
    else:
        cluster.each(built.install_in)
    notes.write_text(json.dumps(built.files))
    module.install(cluster)
    return 0


def _loop(options):
    return loop.run(_running(), options.pattern)


def _packages(_options):
    for path in packages.build():
        print(path)
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, function, text, boots=None):
        sub = commands.add_parser(name, help=text, description=text,
                                  prog=f"{os.environ.get('KRCORE_PROG', 'cluster')} {name}")
        sub.set_defaults(function=function)
        if boots:
            sub.add_argument("--kernel", choices=kernel.NAMES, default="6.1",
                             help="kernel of the guests (default: %(default)s)")
            sub.add_argument("--nic", choices=sorted(nic.NICS),
                             default=os.environ.get("KRCORE_NIC", boots),
                             help="their network card: rxe is soft RoCE, cx a model of a "
                                  f"ConnectX (default: {boots})")
            sub.add_argument("--cpus", type=int, choices=range(1, 17), metavar="N",
                             default=os.environ.get("KRCORE_CPUS"),
                             help="processors of each node (default: 2; 1 for benchmarks)")
            sub.add_argument("--fresh", action="store_true",
                             default=bool(os.environ.get("KRCORE_FRESH")),
                             help="boot the guests, even if a snapshot of them exists")
        return sub

    test = command("test", _test, "run the tests of the cluster", boots="rxe")
    test.add_argument("--part", default="cluster", help="name of the part, for its logs")
    test.add_argument("--share", metavar="K/N", default=os.environ.get("KRCORE_SHARE"),
                      help="only the Kth of N shares of them")
    test.add_argument("--list", action="store_true",
                      default=bool(os.environ.get("KRCORE_LIST")),
                      help="print their names, run nothing")
    test.add_argument("pattern", nargs="?", default="",
                      help="regular expression over the tests' names")
    demo.add_arguments(command("demo", demo.main, "show krcore at work in a cluster", boots="cx"))
    up = command("up", _up, "start a cluster and leave it running", boots="cx")
    up.add_argument("--bare", action="store_true", help="do not install krcore in it")
    command("down", _down, "end the cluster that is up")
    command("status", _status, "list the guests of the cluster that is up")
    push = command("push", _push,
                   "build krcore's packages and module, and install them in the cluster that is up")
    push.add_argument("what", nargs="?", choices=("all", "module"), default="all",
                      help="module: krcore.ko alone, straight from the checkout")
    sub = command("loop", _loop, "compile what has changed, put it into the cluster that is up, "
                                 "and run tests there; says what each step took")
    sub.add_argument("pattern", help="regular expression over the tests' names, such as "
                                     "module.traffic")
    command("packages", _packages, "build krcore's packages; prints their paths")
    sub = command("shell", _shell, "a shell in a guest of the cluster that is up, or one command")
    sub.add_argument("--timeout", type=float, default=600, help="seconds (default: %(default)s)")
    sub.add_argument("node", help="name of the guest")
    sub.add_argument("command", nargs=argparse.REMAINDER, help="command and its arguments")
    sub = command("bench", bench.main, "measure; prints a table, or one JSON object a line",
                  boots="the benchmark's choice")
    bench.add_arguments(sub)
    return parser


def _stop(_signal, _frame):
    raise SystemExit(143)


def main():
    """Run one command; returns its exit status."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGHUP, _stop)
    try:
        return options.function(options)
    except host.ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
