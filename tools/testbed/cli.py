"""The command line of the test bed."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from testbed import faults, launch, leftovers, lone_broker
from testbed.bed import Sizes, beds_directory, load, locked
from testbed.errors import BedError
from testbed.layout import MAX_HOSTS
from testbed.requirements import require

_DOWN_S = 120.0


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    try:
        return int(given.run(given) or 0)
    except BedError as error:
        print(f"[{given.tool}] {error}", file=sys.stderr)
        return error.exit_code
    except launch.InterruptedLaunchError as interrupt:
        return interrupt.exit_code


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="./dev", allow_abbrev=False)
    tools = top.add_subparsers(dest="tool", required=True, metavar="cluster|kafka")
    _add_cluster(tools.add_parser("cluster", help="a Spark cluster on hosts of its own, for one command"))
    _add_kafka(tools.add_parser("kafka", help="a broker alone, on this machine"))
    server = tools.add_parser("serve-store")
    server.add_argument("address")
    server.add_argument("port", type=int)
    server.add_argument("journal", type=Path)
    server.set_defaults(run=_serve_store)
    return top


def _add_cluster(cluster: argparse.ArgumentParser) -> None:
    commands = cluster.add_subparsers(dest="action", required=True)
    run = commands.add_parser(
        "run", help="make a cluster, run a command as Spark's driver, remove the cluster"
    )
    run.add_argument("--hosts", type=_count, default=3, metavar="N", help="how many hosts (default: 3)")
    run.add_argument("--kafka", action="store_true", help="with a Kafka broker")
    run.add_argument("--cores", type=_count, default=2, metavar="N", help="slots of each host (default: 2)")
    run.add_argument(
        "--memory", type=_memory, default="1g", metavar="SIZE", help="for executors of a host (1g)"
    )
    run.add_argument(
        "--share", type=Path, action="append", default=[], metavar="PATH", help="hosts can read this, too"
    )
    run.add_argument(
        "--bare",
        action="store_true",
        help="hosts have Python, Java and Spark, and neither the environment nor the checkout",
    )
    run.add_argument("command", nargs="+", metavar="-- COMMAND")
    run.set_defaults(run=_run)

    cut = commands.add_parser("cut", help="cut a member off the network for a while")
    cut.add_argument("member")
    cut.add_argument("seconds", type=float)
    cut.set_defaults(run=lambda given: faults.cut(faults.current_bed(), given.member, given.seconds))

    kill = commands.add_parser(
        "kill", help="kill all processes of a member: h1, h2, ..., kafka, store, master"
    )
    kill.add_argument("member")
    kill.add_argument("--only", choices=sorted(faults.KINDS), help="only processes of this kind, on a host")
    kill.set_defaults(run=_kill)

    start = commands.add_parser("start", help="start a member that was killed")
    start.add_argument("member")
    start.add_argument("--empty", action="store_true", help="the host has lost its disk")
    start.set_defaults(run=_start)

    execute = commands.add_parser("exec", help="run a command on a host")
    execute.add_argument("member")
    execute.add_argument("command", nargs="+", metavar="-- COMMAND")
    execute.set_defaults(run=lambda given: faults.execute(faults.current_bed(), given.member, given.command))

    down = commands.add_parser("down", help="remove what launchers that were killed have left")
    down.add_argument("--all", action="store_true", help="end the clusters of living launchers, too")
    down.set_defaults(run=_down)


def _add_kafka(kafka: argparse.ArgumentParser) -> None:
    commands = kafka.add_subparsers(dest="action", required=True)
    up = commands.add_parser("up", help="start it, unless it runs, and print PS2STREAM_KAFKA=...")
    up.add_argument("--port", type=int, default=9092)
    up.add_argument("--data", type=Path, metavar="DIR", help="keep its data here")
    up.set_defaults(run=lambda given: print(lone_broker.up(given.port, given.data)))
    down = commands.add_parser("down", help="stop it")
    down.add_argument("--port", type=int, default=9092)
    down.set_defaults(run=lambda given: lone_broker.down(given.port))


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_HOSTS:
        raise argparse.ArgumentTypeError(f"a number from 1 to {MAX_HOSTS} is needed; got {text!r}")
    return int(text)


def _memory(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[mg]", text):
        raise argparse.ArgumentTypeError(f"a size such as 512m or 2g is needed; got {text!r}")
    return text


def _run(given: argparse.Namespace) -> int:
    sizes = Sizes(given.cores, given.memory)
    shared = tuple(path.absolute() for path in given.share)
    wanted = launch.Wanted(given.hosts, given.kafka, sizes, shared, tuple(given.command), given.bare)
    return launch.run(wanted)


def _kill(given: argparse.Namespace) -> None:
    n = faults.kill(faults.current_bed(), given.member, given.only)
    launch.say(f"killed {n} process{'' if n == 1 else 'es'} of {given.member}")


def _start(given: argparse.Namespace) -> None:
    pid = faults.start(faults.current_bed(), given.member, empty=given.empty)
    launch.say(f"{given.member} runs again, as process {pid}")


def _down(given: argparse.Namespace) -> None:
    require()
    beds = beds_directory()
    if given.all:
        _end_launchers(beds)
    with locked(beds / launch.LOCK_OF_ALL):
        removed = leftovers.sweep()
    launch.say(f"removed {', '.join(removed)}" if removed else "nothing was left")


def _end_launchers(beds: Path) -> None:
    alive = [path for path in beds.glob("ps2b*") if leftovers.is_alive(path.name)]
    for path in alive:
        os.kill(load(path / "cluster.json").launcher, signal.SIGTERM)
    deadline = time.monotonic() + _DOWN_S
    while any(leftovers.is_alive(path.name) for path in alive):
        if time.monotonic() > deadline:
            raise BedError("a launcher does not end")
        time.sleep(0.1)


def _serve_store(given: argparse.Namespace) -> None:
    # moto takes a second to import, and nothing else needs it.
    from testbed.store_server import serve

    serve(given.address, given.port, given.journal)
