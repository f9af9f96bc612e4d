"""Clusters on this machine for tests, where the machine lets us have them.

A test that needs several hosts has the mark ``needs_cluster`` and runs what it is about by ``in_cluster``: a
command that is Spark's driver, with ``PS2STREAM_MASTER``, ``PS2STREAM_STORE`` and ``PS2STREAM_KAFKA`` set.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.requirements import missing
from waiting import HANG_S

_ROOT = Path(__file__).parent.parent
_REASON = missing()

needs_cluster = pytest.mark.skipif(_REASON is not None, reason=_REASON or "")


def cluster_command(action: str, *arguments: str) -> list[str]:
    """Return what ``./dev cluster`` runs once the environment is there."""
    return [sys.executable, str(_ROOT / "tools" / "run_testbed.py"), "cluster", action, *arguments]


def in_cluster(
    command: Sequence[str],
    *,
    hosts: int = 3,
    kafka: bool = False,
    share: Path | None = None,
    bare: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command as the driver of a cluster, and wait for both to end; hosts can read what is shared.

    ``bare``: they have nothing of this checkout and its environment.
    """
    options = ["--hosts", str(hosts), *(["--kafka"] if kafka else []), *(["--bare"] if bare else [])]
    options += ["--share", str(share)] if share else []
    return subprocess.run(
        cluster_command("run", *options, "--", *command),
        env=driver_environment(),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


def driver_environment() -> dict[str, str]:
    """Return an environment in which driver and hosts import from this checkout."""
    sources = [*(str(_ROOT / name) for name in ("src", "tools", "tests")), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sources))}
