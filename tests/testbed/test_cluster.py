"""The test bed for real: what its driver, its hosts and those who clean up after it find."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters import cluster_command, driver_environment, in_cluster, needs_cluster
from testbed import network, processes
from testbed.bed import BEDS
from waiting import HANG_S

pytestmark = [pytest.mark.slow, needs_cluster]

_INSIDE = Path(__file__).with_name("inside.py")
#: A command that leaves a process behind which nobody waits for, says that it runs, and goes on.
_LASTING = ["sh", "-c", 'setsid sleep 10000 & echo "$PS2STREAM_CLUSTER"; exec sleep 10000']


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Run `inside.py` on three hosts."""
    done = in_cluster([sys.executable, str(_INSIDE)], kafka=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_tasks_run_on_all_hosts(found: dict[str, Any]) -> None:
    assert {task["host"] for task in found["first"]} == {"h1", "h2", "h3"}


def test_a_host_sees_its_own_files_and_no_others(found: dict[str, Any]) -> None:
    assert [task["files"] for task in found["second"]] == [[f"of-{task['host']}"] for task in found["second"]]
    assert not Path("/tmp/of-h1").exists()


def test_hosts_do_not_see_the_home_of_the_driver_and_cannot_write_to_the_checkout(
    found: dict[str, Any],
) -> None:
    assert not any(task["sees_home_of_driver"] for task in found["second"])
    assert all(task["checkout_is_read_only"] for task in found["second"])
    assert not _INSIDE.with_name("written-by-a-host").exists()


def test_hosts_begin_with_compiled_kernels(found: dict[str, Any]) -> None:
    assert all(task["kernels"] > 0 for task in found["first"])


def test_the_handle_names_what_the_environment_names(found: dict[str, Any]) -> None:
    handle, environment = found["handle"], found["environment"]
    assert handle["master"] == environment["PS2STREAM_MASTER"]
    assert handle["store"] == environment["PS2STREAM_STORE"]
    assert handle["kafka"] == environment["PS2STREAM_KAFKA"]
    assert handle["store_endpoint"] == environment["AWS_ENDPOINT_URL"]
    assert environment["PATH"].split(":")[0] == str(Path(sys.executable).parent)
    members = [*handle["hosts"].values(), *handle["services"].values()]
    assert len({member["address"] for member in members}) == len({member["pid"] for member in members}) == 6


def test_objects_survive_a_kill_of_the_store(found: dict[str, Any]) -> None:
    assert found["stored"] == ["0", "1", "2", "3"]


def test_records_survive_a_kill_of_the_broker(found: dict[str, Any]) -> None:
    assert found["consumed"] == ["0", "1", "2", "3"]


def test_a_host_is_cut_off_killed_and_started_with_and_without_its_disk(found: dict[str, Any]) -> None:
    assert found["after_faults"] == {
        "cut_ended_with": 0,
        "is_down_after_cut": False,
        "kill_of_the_dead": 1,
        "disk_is_kept": True,
        "disk_is_empty": True,
        "start_of_what_runs": 1,
    }


def test_a_host_that_comes_again_with_an_empty_disk_gets_tasks(found: dict[str, Any]) -> None:
    files = {task["host"]: task["files"] for task in found["third"]}
    assert files == {"h1": [], "h2": ["of-h2"], "h3": ["of-h3"]}
    assert all(task["kernels"] > 0 for task in found["third"])


def test_nothing_is_left_of_a_cluster_that_ended(found: dict[str, Any]) -> None:
    assert left_of(found["handle"]["name"], found["handle"]["launcher"]) == []


def test_the_exit_code_is_that_of_the_command_and_logs_are_kept_where_it_failed() -> None:
    done = in_cluster(["sh", "-c", "exit 7"], hosts=1)
    assert done.returncode == 7
    logs = Path(done.stderr.rpartition("the logs are kept in ")[2].strip())
    assert {"h1.log", "master.log", "store.log"} <= {path.name for path in logs.iterdir()}


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_command_and_takes_everything_down(signum: signal.Signals) -> None:
    with lasting() as (launcher, bed):
        launcher.send_signal(signum)
        assert launcher.wait(HANG_S) == 128 + signum
        assert left_of(bed, launcher.pid) == []


def test_a_signal_while_the_cluster_is_made_takes_everything_down() -> None:
    with launch("--hosts", "1", "--", "true") as launcher:
        bed = bed_of(launcher)
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(HANG_S) == 128 + signal.SIGTERM
    assert left_of(bed, launcher.pid) == []


def test_what_a_killed_launcher_leaves_is_removed_and_a_living_cluster_is_not() -> None:
    with lasting() as (living, bed_of_living):
        with lasting() as (killed, bed_of_killed):
            assert bed_of_killed != bed_of_living
            killed.kill()
            killed.wait(HANG_S)
            assert left_of(bed_of_killed, killed.pid) != []
            subprocess.run(cluster_command("down"), check=True, timeout=HANG_S)
            assert left_of(bed_of_killed, killed.pid) == []
        assert left_of(bed_of_living, living.pid) != []
        assert living.poll() is None


def test_the_next_run_removes_what_a_killed_launcher_left() -> None:
    with lasting() as (killed, bed):
        killed.kill()
        killed.wait(HANG_S)
    done = in_cluster(["true"], hosts=1)
    assert done.returncode == 0, done.stderr
    assert left_of(bed, killed.pid) == []


def launch(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        cluster_command("run", *arguments), env=driver_environment(), stdout=subprocess.PIPE, text=True
    )


@contextlib.contextmanager
def lasting() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a cluster of one host until somebody ends it."""
    launcher = launch("--hosts", "1", "--", *_LASTING)
    assert launcher.stdout is not None
    with launcher, launcher.stdout:
        # Its command leaves a process which has our end of the pipe, too: read one line, not all.
        handle = Path(launcher.stdout.readline().strip())
        try:
            yield launcher, handle.parent.name
        finally:
            launcher.terminate()


def bed_of(launcher: subprocess.Popen[str]) -> str:
    """Wait until a launcher has written down what it makes."""
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        for description in BEDS.glob("*/cluster.json"):
            with contextlib.suppress(FileNotFoundError):
                if json.loads(description.read_text(encoding="utf-8"))["launcher"] == launcher.pid:
                    return description.parent.name
        time.sleep(0.01)
    raise AssertionError("the launcher has not begun")


def left_of(bed: str, launcher: int) -> list[str]:
    """List what there is of a bed, unless another launcher has one of the same name by now."""
    description = BEDS / bed / "cluster.json"
    if description.exists() and json.loads(description.read_text(encoding="utf-8"))["launcher"] != launcher:
        return []
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [
        *(f"process {pid}" for pid in processes.marked(bed)),
        *(namespace for namespace in network.namespaces() if namespace.startswith(f"{bed}-")),
        *(path.name for path in Path("/sys/class/net").iterdir() if path.name.startswith((bed, f"{bed}-"))),
        *(line for line in mounts if f"/{bed}" in line),
        *map(str, BEDS.glob(bed)),
    ]
