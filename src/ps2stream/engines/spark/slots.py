"""The slots of a cluster, of which executors bring some each as they register, one after the other.

Where a worker's first task runs, there the worker stays (``pinned_shuffle.py``). So all slots that it could
get should be there before: else all workers come to the host whose executor was the first.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

#: When no executor has come for so long, nobody waits for another.
PATIENCE_S = 3.0
#: When there is no slot at all for so long, somebody should know why nothing happens.
NO_SLOT_S = 30.0
_LOOK_EVERY_S = 0.05


def n_slots(context: SparkContext) -> int:
    """Return how many tasks could run at once on the executors that have registered."""
    # Spark counts them before a stage that needs all its tasks at once.
    java = context._jsc.sc()
    return int(java.maxNumConcurrentTasks(java.resourceProfileManager().defaultResourceProfile()))


@contextlib.contextmanager
def telling_of_no_slots(context: SparkContext, after_s: float = NO_SLOT_S) -> Iterator[None]:
    """Say in one line if Spark has no slot at all, while what is done in the context waits for one.

    It may wait for ever: where executors have to be started first, nobody knows how long that takes.
    """
    over = threading.Event()

    def watch() -> None:
        with contextlib.suppress(Py4JError, OSError):  # its JVM has ended: others say so
            if not over.wait(after_s) and not n_slots(context):
                _LOG.warning(
                    "no executor has come from %s for %g s: others may have its cores and memory, also a "
                    "driver that is paused or was killed just now; waiting on",
                    context.master,
                    after_s,
                )

    watching = threading.Thread(target=watch, name="slots", daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def wait_for_slots(context: SparkContext, n_needed: int, patience_s: float = PATIENCE_S) -> int:
    """Return the number of slots when there are as many as needed, or no more have come for a while."""
    # Where executors come only when there is work, this asks for them; it ends when there is at least one.
    with telling_of_no_slots(context):
        context.parallelize(range(n_needed), n_needed).count()
    found, since = n_slots(context), time.monotonic()
    while found < n_needed and time.monotonic() - since < patience_s:
        time.sleep(_LOOK_EVERY_S)
        if (now := n_slots(context)) != found:
            found, since = now, time.monotonic()
    if found < n_needed:
        _LOG.warning(
            "%d workers share %d slots of the cluster: they will wait for each other", n_needed, found
        )
    return found
