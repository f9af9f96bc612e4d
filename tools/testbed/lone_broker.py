"""A broker alone, on the loopback interface: `./dev kafka up|down`."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from testbed import broker, processes
from testbed.bed import locked
from testbed.errors import BedError
from testbed.jars import cache_directory
from testbed.members import START_S, kafka_jars

ADDRESS = "127.0.0.1"
_END_S = 30.0
_LOOK_EVERY_S = 0.1


def say(words: str) -> None:
    print(f"[kafka] {words}", file=sys.stderr, flush=True)


def up(port: int, data: Path | None, *, is_brief: bool = False) -> str:
    """Start the broker of a port unless it runs; return the variable that names it.

    One that ``is_brief``, for a test, starts and warms up with less work, and does not become as fast.
    """
    directory = _directory(port)
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory.with_name("lock")):
        if _running(directory) is None:
            _start(port, directory, data, is_brief)
    return f"PS2STREAM_KAFKA={ADDRESS}:{port}"


def _start(port: int, directory: Path, data: Path | None, is_brief: bool) -> None:
    if _is_taken(port):
        raise BedError(f"somebody else listens on {ADDRESS}:{port}; choose another port with --port")
    began = time.monotonic()
    jars = kafka_jars(say)
    configuration, log = directory / "kafka.properties", directory / "kafka.log"
    controller_port = _free_port()
    text = broker.properties(ADDRESS, port, controller_port, (data or directory / "data").absolute())
    configuration.write_text(text, encoding="utf-8")
    log.unlink(missing_ok=True)
    command = broker.broker_command(jars, configuration, is_brief=is_brief)
    pid = processes.spawn(command, dict(os.environ), log)
    (directory / "pid").write_text(str(pid), encoding="ascii")
    try:
        processes.wait_until(
            lambda: broker.answers(ADDRESS, port),
            "the broker",
            lambda: _running(directory) is not None,
            log,
            START_S,
        )
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        raise
    say(f"a broker listens on {ADDRESS}:{port} ({time.monotonic() - began:.0f} s); its log is {log}")


def down(port: int) -> None:
    """Stop the broker of a port, and remove its data unless they lie in a directory that was given."""
    directory = _directory(port)
    pid = _running(directory)
    if pid is None:
        say(f"no broker of ours on {ADDRESS}:{port}")
    else:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _END_S
        while _running(directory) is not None:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(_LOOK_EVERY_S)
        say(f"stopped the broker on {ADDRESS}:{port}")
    shutil.rmtree(directory, ignore_errors=True)


def kill(port: int) -> None:
    """Kill the broker of a port; ``up`` starts it again, with data that lie elsewhere."""
    directory = _directory(port)
    if (pid := _running(directory)) is not None:
        os.kill(pid, signal.SIGKILL)
    # Its first thread may be gone, and the port not yet.
    while _running(directory) is not None or _is_taken(port):
        time.sleep(_LOOK_EVERY_S)


def runs(port: int) -> bool:
    """Say whether the broker of a port runs."""
    return _running(_directory(port)) is not None


def _directory(port: int) -> Path:
    return cache_directory() / "kafka" / str(port)


def _running(directory: Path) -> int | None:
    """Return the process of a broker; its number may belong to another process by now."""
    try:
        pid = int((directory / "pid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    # Not /proc: this part needs no Linux.
    shown = subprocess.run(
        ["ps", "-ww", "-o", "stat=,args=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, line = shown.stdout.strip().partition(" ")
    return pid if str(directory) in line and not state.startswith("Z") else None


def _is_taken(port: int) -> bool:
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((ADDRESS, port))
        except OSError:
            return True
    return False


def _free_port() -> int:
    with socket.socket() as attempt:
        attempt.bind((ADDRESS, 0))
        return int(attempt.getsockname()[1])
