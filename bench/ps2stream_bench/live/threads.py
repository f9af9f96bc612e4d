"""Processor time of every thread, by what it belongs to: roles, their clients of Kafka, Java, the broker.

Client threads of librdkafka bear names (``rdk:main``, ``rdk:broker1``); the others of a Python process are
its own.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

Part = Literal["roles", "roles' Kafka clients", "driver", "Java", "broker", "senders and observer"]
PARTS: tuple[Part, ...] = (
    "roles",
    "roles' Kafka clients",
    "driver",
    "Java",
    "broker",
    "senders and observer",
)
_PROC = Path("/proc")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def seconds_by_part(engine: int, broker: int | None, proc: Path = _PROC) -> dict[Part, float]:
    """Return the seconds so far of an engine's process with all below it, of a broker, and of this one."""
    found: dict[Part, float] = defaultdict(float)
    for pid in family(engine, proc):
        for name, seconds in _threads(pid, proc):
            if is_java(pid, proc):
                found["Java"] += seconds
            elif pid == engine:
                found["driver"] += seconds
            else:
                found["roles' Kafka clients" if name.startswith("rdk:") else "roles"] += seconds
    if broker is not None:
        found["broker"] = sum(seconds for _, seconds in _threads(broker, proc))
    found["senders and observer"] = sum(seconds for _, seconds in _threads(os.getpid(), proc))
    return {part: found[part] for part in PARTS}


def between(before: Mapping[Part, float], now: Mapping[Part, float]) -> dict[Part, float]:
    return {part: now[part] - before[part] for part in PARTS}


def _threads(pid: int, proc: Path) -> list[tuple[str, float]]:
    """Return name and seconds of each thread; those that have ended are gone with their seconds."""
    found = []
    for task in (proc / str(pid) / "task").glob("[0-9]*"):
        try:
            head, _, tail = (task / "stat").read_text(errors="replace").rpartition(")")
        except OSError:
            continue
        fields = tail.split()
        found.append((head.partition("(")[2], (int(fields[11]) + int(fields[12])) * _TICK_S))
    return found


def _command(pid: int, proc: Path) -> list[bytes]:
    try:
        return (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def is_java(pid: int, proc: Path = _PROC) -> bool:
    return b"java" in os.path.basename(_command(pid, proc)[0])


def family(root: int, proc: Path = _PROC) -> list[int]:
    """Return a process and all below it."""
    parents: dict[int, list[int]] = defaultdict(list)
    for directory in proc.glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(fields[1])].append(int(directory.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += parents[pid]
    return found
