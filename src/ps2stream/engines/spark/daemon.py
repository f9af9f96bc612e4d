"""Our Python daemon: every process that Spark forks from it starts hot.

Spark's own daemon imports nothing, so each new Python process spends seconds on importing and
compiling, and Spark collects garbage over all imported modules after every task. Here the
kernels are loaded once, before the first fork, and what is imported is taken out of the
collector's sight. Named by ``spark.python.daemon.module``.
"""

from __future__ import annotations

import gc

from pyspark import daemon

from ps2stream.engines.kernel_warmup import warm

if __name__ == "__main__":
    warm()
    gc.collect()
    gc.freeze()
    daemon.manager()
