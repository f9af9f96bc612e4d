"""A deployment on a cluster of the test bed, by commands alone; started by test_cluster.py.

python deployed_scenario.py      says what it found as JSON
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from waiting import HANG_S

_COMMAND = [sys.executable, "-m", "ps2stream"]
_RUN = ["run", "--workers", "5", "--json", "--report-every", "0.5", "--conf", "spark.executor.memory=768m"]


class Shell:
    """Run commands on one home; beside it nothing says where the deployment is."""

    def __init__(self, home: Path) -> None:
        self._home = home
        # Only `run` is told of the cluster: the others have to find the store by the home alone.
        self._alone = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PS2STREAM_MASTER", "PS2STREAM_STORE")
        }

    def call(self, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            input=text,
            capture_output=True,
            text=True,
            env=os.environ if words[0] == "run" else self._alone,
            timeout=HANG_S,
            check=False,
        )

    def rows(self, *words: str, text: str | None = None) -> list[dict[str, Any]]:
        done = self.call(*words, "--json", text=text)
        if done.returncode:
            raise SystemExit(f"{words}: {done.returncode}\n{done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def command(self, *words: str) -> list[str]:
        return [*_COMMAND, *words, "--home", str(self._home)]

    @contextlib.contextmanager
    def running(self) -> Iterator[subprocess.Popen[str]]:
        """Run the job until the block ends, then tell it to stop; its figures are read and thrown away."""
        with subprocess.Popen(self.command(*_RUN), stdout=subprocess.PIPE, text=True) as job:
            assert job.stdout is not None
            job.stdout.readline()
            rest = threading.Thread(target=job.stdout.read, daemon=True)
            rest.start()
            try:
                yield job
            finally:
                job.send_signal(signal.SIGTERM)
                job.wait(HANG_S)
                rest.join()


def publications(first: int, n: int) -> str:
    rows = [
        {"id": f"p{i}", "lat": 48.1, "lon": 11.5 + i / 1_000, "text": f"fire and smoke {i}"}
        for i in range(first, first + n)
    ]
    return "\n".join(map(json.dumps, rows))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        shell = Shell(home)
        shell.rows("subscribe", "fires", "fire AND smoke", "--region", "11,48,12,49")
        shell.rows("publish", text=publications(0, 20))
        with shell.running() as job:
            shell.rows("subscribe", "floods", "flood OR 27", "--region", "11,48,12,49")
            shell.rows("publish", text=publications(20, 20))
            followed = shell.rows("matches", "--follow", "--limit", "41", "--text")
            (status,) = shell.rows("status")
            (why,) = shell.rows("explain", "--publication", "p27", "--subscription", "floods")
            second = shell.call("run", "--workers", "5")
            asked = shell.call("repartition")
            shell.rows("unsubscribe", "floods")
        stopped = job.returncode
        shell.rows("publish", text=publications(40, 5))
        again = shell.call(*_RUN, "--until-idle")
        (status_after,) = shell.rows("status")
        found = {
            "home": sorted(path.name for path in home.iterdir()),
            "followed": sorted((row["subscription_id"], row["publication_id"]) for row in followed),
            "texts": sorted({row["text"] for row in followed})[:2],
            "running": [status["running"], status_after["running"]],
            "workers": len(status["workers"]),
            "matches": why["matches"],
            "second": [second.returncode, second.stderr],
            "repartition": [asked.returncode, asked.stderr],
            "stopped": stopped,
            "again": [again.returncode, again.stderr[-3_000:]],
            "subscriptions": [row["id"] for row in shell.rows("subscriptions")],
            "n_matches": len(shell.rows("matches")),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
