"""Where Spark writes for commands that leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ps2stream.cli.interrupts import AbruptInterrupts


@contextlib.contextmanager
def spark_log(interrupts: AbruptInterrupts) -> Iterator[Path]:
    """Give a file for what Spark writes; it stays where something went wrong."""
    descriptor, name = tempfile.mkstemp(prefix="ps2stream-spark-", suffix=".log")
    os.close(descriptor)
    log = Path(name)
    with interrupts.tidied_by(log.unlink):
        yield log
    log.unlink(missing_ok=True)
