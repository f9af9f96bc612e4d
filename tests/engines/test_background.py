"""What is done beside a stream gives way to it, and to it alone."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from ps2stream.engines.background import background_thread

linux = pytest.mark.skipif(sys.platform != "linux", reason="threads have no niceness of their own")


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@linux
def test_work_in_the_background_gives_way_to_whoever_began_it() -> None:
    before = niceness()
    with background_thread("snapshots") as beside:
        found = beside.submit(niceness).result()
    assert found == max(before, 10)
    assert niceness() == before


def test_one_thread_does_one_thing_after_the_other() -> None:
    with background_thread("snapshots") as beside:
        names = {beside.submit(lambda: threading.current_thread().name).result() for _ in range(4)}
    assert names == {"snapshots_0"}
