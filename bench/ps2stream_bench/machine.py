"""Facts about the machine and the code that a figure has to be read with."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from importlib.metadata import version
from pathlib import Path

_PACKAGES = ("numba", "numpy", "pyarrow", "pyspark")


def host_facts() -> dict[str, str | int]:
    """Return the commit, the processor and the versions; no names of machines or users."""
    return {
        "commit": _commit(),
        "processor": _processor(),
        "n_cores": os.cpu_count() or 0,
        "system": platform.system(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
    }


def resident_bytes() -> int:
    """Return the memory of this process that is in use now; where the system does not tell, the peak."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        run = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive, or no git
        return "unknown"
    return run.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
