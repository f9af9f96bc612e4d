from __future__ import annotations

import subprocess
import sys
import time

# A child that says who it is and then works for a minute, and a parent that dies meanwhile.
_CHILD = """
import os, time
from ps2stream.engines.spark.daemon import bound_to_parent
with bound_to_parent():
    print(os.getpid(), flush=True)
    time.sleep(300)
"""
_PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
print(child.stdout.readline().decode(), flush=True)
os._exit(0)
"""


def test_a_daemon_that_compiles_does_not_outlive_its_jvm() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PARENT, _CHILD], stdout=subprocess.PIPE, text=True, check=True, timeout=240
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 120
    while _lives(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
