"""A bed from its beginning to its end: `./dev cluster run`."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from testbed import environment, layout, leftovers, members, network, processes
from testbed.bed import Bed, Sizes, beds_directory, load, locked
from testbed.errors import BedError
from testbed.kernels import Warming
from testbed.requirements import require

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: For the command to end after a signal, before it is killed.
_GRACE_S = 30
_SET_CHILD_SUBREAPER = 36
LOCK_OF_ALL = "lock"


class InterruptedLaunchError(Exception):
    """A signal came before the command had begun."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.exit_code = 128 + signum


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody asks for."""

    n_hosts: int
    kafka: bool
    sizes: Sizes
    shared: tuple[Path, ...]
    command: tuple[str, ...]
    bare: bool = False


def say(words: str) -> None:
    print(f"[cluster] {words}", file=sys.stderr, flush=True)


def run(wanted: Wanted) -> int:
    """Make a bed, run a command in it, remove the bed, and return the command's exit code."""
    require()
    program = _program(wanted.command[0])
    code = 1
    with _signals_interrupt():
        if wanted.kafka:
            members.kafka_jars(say)
        bed, lock = _reserve(wanted)
        try:
            bed = _make(bed, wanted)
            code = _run_command(bed, program, wanted.command)
        except InterruptedLaunchError as interrupt:
            code = interrupt.exit_code
            say(f"{interrupt} while the bed was made")
        finally:
            # From here on nothing may stop us; what is left takes seconds.
            for signum in _ENDING:
                signal.signal(signum, signal.SIG_IGN)
            _take_down(bed.name, failed=code != 0)
            os.close(lock)
    return code


def _program(name: str) -> str:
    found = shutil.which(name, path=environment.command_path())
    if found is None:
        error = BedError(f"{name}: command not found")
        error.exit_code = 127
        raise error
    return found


def _reserve(wanted: Wanted) -> tuple[Bed, int]:
    """Take the first free number, and with it names, addresses and a directory; remove beds that are dead."""
    beds = beds_directory()
    with locked(beds / LOCK_OF_ALL):
        for dead in leftovers.sweep():
            say(f"removed what was left of {dead}")
        number = next(
            (n for n in range(1, layout.MAX_BEDS + 1) if not (beds / layout.bed_name(n)).exists()), None
        )
        if number is None:
            raise BedError(f"there are {layout.MAX_BEDS} beds on this machine already")
        subnet = layout.free_subnet(number, layout.routed_networks())
        members_ = layout.lay_out(number, subnet, n_hosts=wanted.n_hosts, kafka=wanted.kafka)
        directory = beds / members_.bed
        directory.mkdir(mode=0o700)
        lock = os.open(directory / leftovers.LOCK, os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
    of_hosts = environment.of_hosts(os.environ, bare=wanted.bare)
    return Bed(directory, members_, wanted.sizes, os.getpid(), of_hosts, {}), lock


def _make(bed: Bed, wanted: Wanted) -> Bed:
    """Start everything, and wait until all of it can be used."""
    began = time.monotonic()
    bed = replace(bed, host_environment={**bed.host_environment, **environment.services(bed)})
    bed.logs.mkdir()
    bed.save()
    _adopt_orphans()
    network.make_network(bed.layout)
    # Bare hosts are there to show what they have to be given.
    warming = None if wanted.bare else Warming(bed)
    services = [members.start(bed, member) for member in bed.layout.members if not member.is_host]
    visible = environment.visible(wanted.shared, bare=wanted.bare)
    for host in bed.layout.hosts:
        members.prepare_host(bed, host, visible)
    # A worker that finds no master tries again only after seconds.
    next(started for started in services if started.member.name == layout.MASTER).wait()
    started = [members.start(bed, host) for host in bed.layout.hosts]
    if warming is not None:
        warming.finish(say)
        for host in bed.layout.hosts:
            members.give_kernels(bed, host)
    for one in (*services, *started):
        one.wait()
    bed = load(bed.description)
    kafka = f", Kafka {bed.kafka}" if bed.kafka else ""
    hosts = "1 host" if wanted.n_hosts == 1 else f"{wanted.n_hosts} hosts"
    where = f"Spark master {bed.master_url}, S3 {bed.store_endpoint}{kafka}"
    say(f"{hosts}, {where} ({time.monotonic() - began:.0f} s)")
    return bed


def _adopt_orphans() -> None:
    """Become the parent of processes whose parent ends: members that a command started again are ours."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _run_command(bed: Bed, program: str, command: tuple[str, ...]) -> int:
    """Run the command in a process group of its own, and hand on signals to all of it."""
    with _terminal() as hand_over:
        pid = os.posix_spawn(
            program,
            command,
            environment.of_command(bed),
            setpgroup=0,
            setsigmask=[],
            setsigdef=[*_ENDING, signal.SIGTTOU],
        )
        hand_over(pid)
        _forward_signals(pid)
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == pid:
                break
        signal.alarm(0)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _forward_signals(pid: int) -> None:
    def forward(signum: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signum)
        signal.alarm(_GRACE_S)

    def end(signum: int, frame: FrameType | None) -> None:
        say(f"the command goes on {_GRACE_S} s after a signal to end; it is killed")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    for signum in _ENDING:
        signal.signal(signum, forward)


@contextlib.contextmanager
def _terminal() -> Iterator[_HandOver]:
    """Let the command read the terminal and get its Ctrl-C, if we have one and it is ours."""
    terminal = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
    ours = terminal is not None and os.tcgetpgrp(terminal) == os.getpgrp()
    if terminal is None or not ours:
        yield _HandOver(None)
        return
    # Taking the terminal back is something that only the one who has it may do unasked.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield _HandOver(terminal)
    finally:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal, os.getpgrp())


@dataclass(frozen=True, slots=True)
class _HandOver:
    terminal: int | None

    def __call__(self, pid: int) -> None:
        if self.terminal is not None:
            os.tcsetpgrp(self.terminal, pid)
            # It may have asked for the terminal before it had it.
            os.killpg(pid, signal.SIGCONT)


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise InterruptedLaunchError(signum)

    for signum in _ENDING:
        signal.signal(signum, interrupt)
    yield


def _take_down(bed: str, *, failed: bool) -> None:
    if failed:
        with contextlib.suppress(FileNotFoundError):
            say(f"the logs are kept in {leftovers.keep_logs(bed)}")
    leftovers.remove_bed(bed)
    processes.reap()
