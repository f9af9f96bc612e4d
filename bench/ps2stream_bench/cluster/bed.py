"""Start a driver in a bed of the test bed, and take what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ps2stream_bench.results import Row

#: Of the checkout that this file lies in, if it lies in one.
TOOL = Path(__file__).parents[3] / "tools" / "run_testbed.py"
#: What the tool exits with where it can make no bed.
_NO_BED = 3
_LAST_WORDS = 3_000


class UnavailableError(Exception):
    """There can be no bed here, and why."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """What a bed is to have: hosts with slots for tasks and memory for executors, files that they read."""

    n: int
    cores: int = 2
    memory: str = "1g"
    shared: Path | None = None


def rows_of(driver: str, asked: Mapping[str, Any], hosts: Hosts, tool: Path = TOOL) -> list[Row]:
    """Run a driver of this package (a module's name) in a bed, and return the rows that it prints as JSON.

    ``asked`` is what it is to do, in JSON as well.
    """
    if not tool.exists():
        raise UnavailableError(
            f"a cluster needs the project's checkout: there is no {'/'.join(tool.parts[-2:])}"
        )
    module = f"{__package__}.{driver}"
    told = json.dumps({**asked, "testbed": str(tool)})
    done = _ended([*_command(tool, hosts), "--", sys.executable, "-m", module, told])
    if done.returncode == _NO_BED:
        raise UnavailableError(done.stderr.strip().removeprefix("[cluster] "))
    if done.returncode:
        raise RuntimeError(f"{driver} ended with {done.returncode}: {done.stderr[-_LAST_WORDS:]}")
    found: list[Row] = json.loads(done.stdout.splitlines()[-1])
    return found


def _command(tool: Path, hosts: Hosts) -> Sequence[str]:
    sizes = ["--hosts", str(hosts.n), "--cores", str(hosts.cores), "--memory", hosts.memory]
    shared = [] if hosts.shared is None else ["--share", str(hosts.shared)]
    return [sys.executable, str(tool), "cluster", "run", *sizes, *shared]


def _ended(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; if we are to end first, ask it to, and wait until it has tidied up."""
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        words, complaints = process.communicate()
    except BaseException:
        # Killed, as subprocess.run would do it, it would leave hosts and all that runs there.
        process.terminate()
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, words, complaints)
