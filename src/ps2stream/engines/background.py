"""A thread beside the stream, for work that may take its time.

Plans and snapshots are made of millions of rows, most of it without Python's lock. On a machine whose cores
are all in use that would hold up deliveries, so whoever delivers goes first.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

#: A tenth of what others get, where they want all.
_NICENESS = 10


def background_thread(name: str) -> ThreadPoolExecutor:
    """Return an executor of one thread, which gives way to all others of the machine."""
    return ThreadPoolExecutor(1, name, initializer=_give_way)


def _give_way() -> None:
    if sys.platform == "linux":  # elsewhere a process has one niceness, not each thread its own
        mine = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, mine, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, mine)))
