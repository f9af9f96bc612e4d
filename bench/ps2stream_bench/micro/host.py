"""Facts about the machine and the code that a figure has to be read with."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import numba
import numpy as np


def host_facts() -> dict[str, str | int]:
    """Return the commit, the processor and the versions; no names of machines or users."""
    return {
        "commit": _commit(),
        "processor": _processor(),
        "n_cores": os.cpu_count() or 0,
        "system": platform.system(),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": np.__version__,
    }


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
