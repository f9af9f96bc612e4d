"""Our Python daemon: every process that Spark forks from it starts hot.

Spark's own daemon imports nothing, so each new Python process spends seconds on importing and
compiling, and Spark collects garbage over all imported modules after every task. Here the
kernels are loaded once, before the first fork, and what is imported is taken out of the
collector's sight. Named by ``spark.python.daemon.module``.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator

from pyspark import daemon

from ps2stream.engines.kernel_warmup import warm

_LOOK_EVERY_S = 0.5


@contextlib.contextmanager
def bound_to_parent() -> Iterator[None]:
    """End with the JVM while the context lasts.

    Spark's daemon notices the end of its JVM by itself, but only once it listens: one that was compiling went
    on for minutes, for nobody.
    """
    parent, done = os.getppid(), threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_EVERY_S):
            if os.getppid() != parent:
                os._exit(1)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()  # Spark forks next, and no thread may be left behind in that


if __name__ == "__main__":
    with bound_to_parent():
        warm()
    gc.collect()
    gc.freeze()
    daemon.manager()
