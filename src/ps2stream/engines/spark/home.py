"""A home for Spark from which its Python processes start fast.

Spark puts ``python/lib/pyspark.zip`` of its home before all other packages of its Python processes. What
is imported from an archive is compiled anew by every process: PySpark takes 1.7 s of CPU instead of 0.4 s,
and the process that reads a source must report within 10 s, which no setting changes. On a busy machine it
took longer, and the job ended. The interpreter of these processes is our own and has the same PySpark among
its packages, compiled; so Spark gets a home without the archive.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyspark

_NEEDED = ("bin", "conf", "jars")


@contextlib.contextmanager
def home_without_archive() -> Iterator[None]:
    """Let a JVM that is started meanwhile take the other home; one that the user has named is respected."""
    if "SPARK_HOME" in os.environ:
        yield
        return
    os.environ["SPARK_HOME"] = str(_linked_home(Path(pyspark.__file__).parent))
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _linked_home(installed: Path) -> Path:
    home = Path(tempfile.mkdtemp(prefix="ps2stream-spark-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for name in _NEEDED:
        if (installed / name).exists():
            (home / name).symlink_to(installed / name)
    return home
