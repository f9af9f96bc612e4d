"""What was warmed is what roles use: none of them compiles or loads a kernel amid its work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own: here other tests have used any kernel in any way.
_ROLES_AT_WORK = """
import gc
from ps2stream.engines.kernel_warmup import warm
from ps2stream.kernels.compiling import Kernel
from resident.made import House

def known():
    return {f"{each.py_func.__module__}.{each.py_func.__name__}{signature}"
            for each in gc.get_objects() if isinstance(each, Kernel) for signature in each.signatures}

warm()
before = known()
house = House()
house.update(10, *(f"s{n}" for n in range(3_000)))
house.update(20_000, "a", ends=[f"s{n}" for n in range(2_000)])
house.adjust("switch")
house.adjust("unite")
house.adjust("move", 0, 1)
assert len(house.publish(house.registrar.upto + 1)) == 1_001
for worker in house.workers:
    worker.forget(house.registrar.upto + 1)
    house.update(house.registrar.upto + 100, "b", ends=["a"])
    while any(each.index.is_compacting for each in worker.workers):
        worker.forget(house.registrar.upto + 1)
for each in sorted(known() - before):
    print(each)
"""


@pytest.mark.skipif("os.environ.get('NUMBA_DISABLE_JIT', '0') not in ('', '0')")
def test_resident_roles_wait_for_no_kernel() -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", _ROLES_AT_WORK], cwd=tests, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[:-1] == []
