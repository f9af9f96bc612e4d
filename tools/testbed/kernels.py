"""Compiled kernels for the hosts: compiled once, outside, and copied."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from testbed.bed import Bed
from testbed.processes import MARK, last_lines

_PROGRAM = """
from ps2stream.engines.kernel_warmup import warm
from ps2stream.kernels.cache import cache_directory
warm()
print(cache_directory() or "")
"""


class Warming:
    """A process that compiles what is not compiled yet, while other things start."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._log = bed.log("kernels")
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, MARK: bed.name},
                start_new_session=True,
            )

    def finish(self, say: Callable[[str], None]) -> None:
        """Wait for it, and copy the kernels; hosts can do without, and then compile for themselves."""
        printed, _ = self._process.communicate()
        if self._process.returncode != 0:
            say(f"no compiled kernels for the hosts:\n{last_lines(self._log, 3)}")
            return
        where = Path(printed.strip())
        if printed.strip() and where.is_dir():
            shutil.copytree(where, self._bed.kernels, ignore=shutil.ignore_patterns("lock", ".*"))
