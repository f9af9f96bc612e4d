from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

COMMAND = [sys.executable, "-m", "ps2stream"]


def _call(*arguments: str, home: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments, "--home", str(home)], input=text, capture_output=True, text=True, check=False
    )


def _publications(first: int, n: int) -> str:
    rows = [
        {"id": f"p{i}", "lat": 48.1, "lon": 11.5, "text": "fire and smoke"} for i in range(first, first + n)
    ]
    return "\n".join(map(json.dumps, rows))


def test_a_deployment_from_subscribing_to_matches(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = _call("subscribe", "fires", "fire AND smoke", "--region", "11,48,12,49", home=home)
    assert done.returncode == 0, done.stderr
    assert _call("publish", home=home, text=_publications(0, 3)).returncode == 0
    first = _call("run", "--until-idle", "--workers", "2", "--json", home=home)
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout.splitlines()[-1])["matches"] == 3
    assert "Traceback" not in first.stderr
    # Started again, it goes on where it was.
    assert _call("publish", home=home, text=_publications(3, 2)).returncode == 0
    second = _call("run", "--until-idle", "--workers", "2", "--json", home=home)
    assert json.loads(second.stdout.splitlines()[-1])["matches"] == 2
    matches = pq.read_table(home / "out" / "matches").to_pylist()
    assert sorted(row["publication_id"] for row in matches) == ["p0", "p1", "p2", "p3", "p4"]
    status = json.loads(_call("status", "--json", home=home).stdout)
    assert status["running"] is False
    assert [worker["worker"] for worker in status["workers"]] == [0, 1]
    assert status["window_publications"] == 2
    other = _call("run", "--until-idle", "--workers", "3", home=home)
    assert other.returncode == 3
    assert "was made with n_workers=2; got 3" in other.stderr


def test_a_job_is_stopped_by_sigterm_and_goes_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    _call("subscribe", "fires", "fire", "--region", "11,48,12,49", home=home)
    process = subprocess.Popen(
        [*COMMAND, "run", "--home", str(home), "--workers", "1", "--json", "--report-every", "0.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    deadline = time.monotonic() + 120
    published = False
    for line in process.stdout:
        figures = json.loads(line)
        if not published:
            assert _call("publish", home=home, text=_publications(0, 4)).returncode == 0
            published = True
        if figures["matches"] == 4 or time.monotonic() > deadline:
            break
    status = _call("status", home=home)
    assert status.stdout.startswith("the job runs; no loads are known"), "one worker: nothing to adjust"
    assert _call("repartition", home=home).returncode == 3
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "stopped" in errors
    assert pq.read_table(home / "out" / "matches").num_rows == 4
