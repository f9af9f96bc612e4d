"""A broker for as long as a case lasts: that of ``PS2STREAM_KAFKA``, or one of our own on a free port."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ps2stream_bench.cluster.bed import TOOL, UnavailableError


class Broker(NamedTuple):
    """Where a broker is, and which process it is if that is one of this machine."""

    servers: str
    pid: int | None = None


@contextlib.contextmanager
def lent_broker(tool: Path = TOOL) -> Iterator[Broker]:
    """Lend a broker with the settings that anybody's would have."""
    if servers := os.environ.get("PS2STREAM_KAFKA"):
        yield Broker(servers, _listening(int(servers.rpartition(":")[2])))
        return
    if not tool.exists():
        raise UnavailableError(
            "a broker needs PS2STREAM_KAFKA or the project's checkout: "
            f"there is no {'/'.join(tool.parts[-2:])}"
        )
    port = _free_port()
    command = [sys.executable, str(tool), "kafka"]
    started = subprocess.run([*command, "up", "--port", str(port)], capture_output=True, text=True)
    if started.returncode:
        raise UnavailableError(f"no broker can be started: {started.stderr.strip()[-300:]}")
    try:
        yield Broker(f"127.0.0.1:{port}", _listening(port))
    finally:
        subprocess.run([*command, "down", "--port", str(port)], capture_output=True)


def _listening(port: int) -> int | None:
    """Find the broker of the test bed by the name of its configuration, which has the port in it."""
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"/kafka/{port}/".encode() in (directory / "cmdline").read_bytes():
                return int(directory.name)
    return None


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
