"""A Kafka broker for tests: one for all processes of a run, gone with the last of them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import lone_broker
from testbed.errors import BedError


@contextlib.contextmanager
def shared_broker(directory: Path) -> Iterator[str]:
    """Lend a broker to a process; ``directory`` is common to all processes of the run."""
    with _noted(directory) as note:
        if not note["users"]:
            note["port"] = free_port()
            try:
                lone_broker.up(note["port"], None, is_brief=True)
            except (BedError, OSError) as error:
                pytest.skip(f"no broker can be started: {error}")
        note["users"] += 1
    try:
        yield f"{lone_broker.ADDRESS}:{note['port']}"
    finally:
        with _noted(directory) as note:
            note["users"] -= 1
            if not note["users"]:
                lone_broker.down(note["port"])


@contextlib.contextmanager
def _noted(directory: Path) -> Iterator[dict[str, int]]:
    """Read and write who uses which broker, while nobody else does."""
    with (directory / "broker.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        note: dict[str, int] = json.loads(file.read() or '{"users": 0, "port": 0}')
        yield note
        file.truncate(0)
        file.write(json.dumps(note))


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as free:
        free.bind((lone_broker.ADDRESS, 0))
        return int(free.getsockname()[1])
