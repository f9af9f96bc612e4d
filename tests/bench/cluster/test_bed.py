"""A driver is started in a bed by the tool of the checkout, and its last line is what counts."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from ps2stream_bench.cluster.bed import TOOL, Hosts, UnavailableError, rows_of

#: Instead of making a bed it says how it was called, or what it was told to.
FAKE = """\
import json, sys
at = sys.argv.index("--")
asked = json.loads(sys.argv[-1])
print("words of others")
if "complaint" in asked:
    print(asked["complaint"], file=sys.stderr)
    sys.exit(asked["code"])
print(json.dumps([{"options": sys.argv[1:at], "module": sys.argv[at + 3], "asked": asked}]))
"""


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    path = tmp_path / "run_testbed.py"
    path.write_text(FAKE)
    return path


def test_a_driver_is_told_what_to_do_and_where(tool: Path, tmp_path: Path) -> None:
    (row,) = rows_of("replay_driver", {"workers": 3}, Hosts(2, 4, "2g", tmp_path), tool)
    assert row["options"] == [
        *("cluster", "run", "--hosts", "2", "--cores", "4", "--memory", "2g"),
        *("--share", str(tmp_path)),
    ]
    assert row["module"] == "ps2stream_bench.cluster.replay_driver"
    assert row["asked"] == {"workers": 3, "testbed": str(tool)}


def test_nothing_is_shared_unless_asked_for(tool: Path) -> None:
    (row,) = rows_of("replay_driver", {}, Hosts(1), tool)
    assert "--share" not in row["options"]


def test_a_machine_that_can_have_no_bed_says_why(tool: Path) -> None:
    told = {"code": 3, "complaint": "[cluster] a cluster on one machine needs root"}
    with pytest.raises(UnavailableError, match=r"^a cluster on one machine needs root$"):
        rows_of("replay_driver", told, Hosts(1), tool)


def test_without_a_checkout_there_is_no_bed(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"checkout: there is no tools/run_testbed\.py"):
        rows_of("replay_driver", {}, Hosts(1), tmp_path / "tools" / "run_testbed.py")


def test_a_driver_that_fails_is_quoted(tool: Path) -> None:
    with pytest.raises(RuntimeError, match="replay_driver ended with 1: out of luck"):
        rows_of("replay_driver", {"code": 1, "complaint": "out of luck"}, Hosts(1), tool)


def test_whoever_is_interrupted_waits_until_the_bed_is_taken_down(tool: Path, tmp_path: Path) -> None:
    ready, tidy = tmp_path / "ready", tmp_path / "tidy"
    tool.write_text(
        "import pathlib, signal, sys, time\n"
        f"def end(*signal): time.sleep(0.2); pathlib.Path({str(tidy)!r}).touch(); sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(600)\n"
    )

    def interrupt() -> None:
        while not ready.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGALRM)

    def stop(*told: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        waiting = threading.Thread(target=interrupt)
        waiting.start()
        with pytest.raises(KeyboardInterrupt):
            rows_of("replay_driver", {}, Hosts(1), tool)
        waiting.join()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert tidy.exists()


def test_the_tool_of_this_checkout_is_found() -> None:
    assert TOOL.exists()
