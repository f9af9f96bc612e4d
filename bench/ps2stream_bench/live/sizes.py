"""How much memory and disk a deployment takes: by kind of process, by directory, by topic of a broker."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ps2stream_bench.live.threads import family, is_java

_PROC = Path("/proc")
_MIB = 1 << 20


def memory_mib(engine: int, broker: int | None, proc: Path = _PROC) -> dict[str, float]:
    """Return the memory that is the processes' own: of the roles together, the driver, Java and a broker.

    What processes share (the code, what was there before they were forked) counts in parts.
    """
    found = {"roles": 0.0, "driver": 0.0, "Java": 0.0}
    for pid in family(engine, proc):
        part = "Java" if is_java(pid, proc) else "driver" if pid == engine else "roles"
        found[part] += _own_mib(pid, proc)
    return found if broker is None else {**found, "broker": _own_mib(broker, proc)}


def disk_mib(directory: Path) -> float:
    """Return what all files below a directory take of the disk; files come and go meanwhile."""
    total = 0
    for path, _, files in os.walk(directory):
        for name in files:
            try:
                total += 512 * (Path(path) / name).stat().st_blocks
            except OSError:
                continue
    return total / _MIB


def topics_mib(broker: int, prefix: str, proc: Path = _PROC) -> dict[str, float]:
    """Return the sizes of topics that begin with a prefix, by the rest of their names."""
    found: dict[str, float] = {}
    for directory in _log_directory(broker, proc).glob(f"{prefix}.*-*"):
        name = directory.name[len(prefix) + 1 :].rpartition("-")[0]
        found[name] = found.get(name, 0.0) + disk_mib(directory)
    return found


def _log_directory(broker: int, proc: Path) -> Path:
    words = (proc / str(broker) / "cmdline").read_bytes().decode().split("\0")
    (properties,) = (word for word in words if word.endswith(".properties"))
    said = re.search(r"^log\.dirs=(.+)$", Path(properties).read_text(), re.MULTILINE)
    if said is None:
        raise ValueError(f"{properties} does not say where the logs are (log.dirs)")
    return Path(said[1])


def _own_mib(pid: int, proc: Path) -> float:
    try:
        told = (proc / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return 0.0
    said = re.search(r"^Pss:\s+(\d+) kB", told, re.MULTILINE)
    return int(said[1]) / 1024 if said else 0.0
