"""The drivers of a campaign: processes that run the job, one after the other; and what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from engines.spark.faults.feeds import Position, is_beyond
from engines.spark.processes import kill, session_of
from waiting import HANG_S

_SCRIPT = Path(__file__).with_name("job.py")
_LOOK_EVERY_S = 0.02
#: After this a job that does not go on is given up.
LIMIT_S = 300.0
_TESTS = Path(__file__).parents[3]


class CampaignError(Exception):
    """The job did not do what it must."""


class Finished(NamedTuple):
    """A batch that some driver has finished, and when that was heard of."""

    at: float
    driver: int
    said: dict[str, Any]

    @property
    def number(self) -> int:
        return int(self.said["batch"])

    @property
    def upto(self) -> Position:
        return {str(part): int(end) for part, end in self.said["upto"].items()}


@dataclass(slots=True)
class Heard:
    """What all drivers have said; written by a thread for each."""

    batches: list[Finished] = field(default_factory=list)
    ends: dict[int, str] = field(default_factory=dict)


class Driver:
    """One process with all that it started, in a session of its own."""

    def __init__(
        self, number: int, arguments: list[str], directory: Path, heard: Heard, script: Path = _SCRIPT
    ) -> None:
        self.number = number
        self._heard = heard
        directory.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "PS2STREAM_LOCAL_DIR": str(directory / "local"),
            "SPARK_LOCAL_DIRS": str(directory / "spark"),
            # Scripts share code with the tests; so do tasks, which Spark gives the path of their driver.
            "PYTHONPATH": os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        self.log = directory / f"driver-{number}.log"
        self._said = directory / f"driver-{number}.jsonl"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(script), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                start_new_session=True,
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith("\n"):
                break  # it was killed amid its words
            said = json.loads(line)
            with self._said.open("a") as file:
                file.write(json.dumps({"at": time.time(), **said}) + "\n")
            if "batch" in said:
                self._heard.batches.append(Finished(time.monotonic(), self.number, said))
            elif "ended" in said:
                self._heard.ends[self.number] = said["ended"]

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the driver and its JVM at once."""
        self._signal(signal.SIGKILL)
        self.wait()

    def task_processes(self) -> list[int]:
        """List the processes of roles on this machine: those that our daemon forked."""
        ours = {each.pid: each for each in session_of(self._process.pid) if each.is_python_of_spark}
        return [each.pid for each in ours.values() if each.parent in ours]

    def kill_jvm(self) -> None:
        """Kill the JVM; what is left is told by its pipes."""
        for process in session_of(self._process.pid):
            if "java" in process.command.partition(" ")[0]:
                kill(process.pid)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def finish(self) -> None:
        """Let the driver process what there is, and end."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait(self) -> int:
        code = self._process.wait(HANG_S)
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return code

    def _signal(self, signum: signal.Signals) -> None:
        for process in session_of(self._process.pid):
            try:
                os.kill(process.pid, signum)
            except ProcessLookupError:
                continue


class Drivers:
    """Start drivers, the next when one ends, as a supervisor of processes does."""

    def __init__(self, arguments: list[str], directory: Path, script: Path = _SCRIPT) -> None:
        self.heard = Heard()
        self._arguments, self._script = arguments, script
        self._directory = directory
        self._n_hosts = 0
        self.all: list[Driver] = []
        self.start(elsewhere=True)

    @property
    def current(self) -> Driver:
        return self.all[-1]

    def start(self, *, elsewhere: bool = False) -> Driver:
        """Start the next driver: where the one before has left its files, or ``elsewhere``."""
        self._n_hosts += elsewhere
        number = len(self.all)
        directory = self._directory / f"driver-host-{self._n_hosts}"
        self.all.append(Driver(number, self._arguments, directory, self.heard, self._script))
        return self.current

    def wait_for_batch(self, beyond: Position, limit_s: float = LIMIT_S) -> Finished:
        """Return the first batch that has read beyond a position; start drivers that end meanwhile again."""
        until = time.monotonic() + limit_s
        n_seen = 0
        while True:
            batches = self.heard.batches
            while n_seen < len(batches):
                if is_beyond(batches[n_seen].upto, beyond):
                    return batches[n_seen]
                n_seen += 1
            self.tend()
            if time.monotonic() > until:
                raise CampaignError(f"no batch beyond {beyond} after {limit_s:.0f} s")
            time.sleep(_LOOK_EVERY_S)

    def tend(self) -> None:
        """Start the next driver if the current one has ended."""
        if not self.current.is_running:
            code = self.current.wait()
            self.heard.ends.setdefault(self.current.number, f"exit code {code}")
            self.start()

    def end(self) -> None:
        """Leave no process behind."""
        for driver in self.all:
            if driver.is_running:
                driver.kill()
