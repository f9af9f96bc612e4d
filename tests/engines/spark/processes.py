"""Processes of a job: start it, look at what it started, kill some of it."""

from __future__ import annotations

import contextlib
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import pyarrow as pa

from laws.engines import JobHome
from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_events
from ps2stream.model.schemas import EVENTS
from ps2stream.state.state import State
from waiting import HANG_S

_SCRIPT = Path(__file__).with_name("killable_job.py")
# All Python that Spark starts: the daemons with what they fork, and the reader of the data source.
_OUR_DAEMON = "-m ps2stream.engines.spark.daemon"
_READER = "-m pyspark.sql.streaming.python_streaming_source_runner"
_OF_SPARK = (_OUR_DAEMON, "-m pyspark.")


class Process(NamedTuple):
    pid: int
    parent: int
    command: str

    @property
    def is_python_of_spark(self) -> bool:
        """Tell what Spark started from the driver and the JVM."""
        return any(module in self.command for module in _OF_SPARK)


class Job:
    """A killable job in a session of its own, by which everything it started is found again."""

    def __init__(self, directory: Path, batch_events: int = 150, chaos: int | None = None) -> None:
        self.directory = directory
        self._log = (directory / "stderr").open("ab")
        environment = {
            **os.environ,
            "SPARK_LOCAL_DIRS": str(directory / "spark"),
            "PYTHONPATH": str(_SCRIPT.parents[2]),
        }
        arguments = [str(directory), str(batch_events), *([] if chaos is None else [str(chaos)])]
        self._process = subprocess.Popen(
            [sys.executable, str(_SCRIPT), *arguments],
            stdout=subprocess.PIPE,
            stderr=self._log,
            stdin=subprocess.DEVNULL,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._told: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        """Leave nothing behind, whatever happened."""
        for process in session_of(self.pid):
            kill(process.pid)
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()

    def wait_for_batches(self, n: int, timeout_s: float = HANG_S) -> list[int]:
        """Return the next ``n`` batches; fewer when the job ends before."""
        batches: list[int] = []
        for _ in range(n):
            batch = self._told.get(timeout=timeout_s)
            if batch is None:
                self._told.put(None)
                break
            batches.append(batch)
        return batches

    def wait(self, timeout_s: float = HANG_S) -> int:
        return self._process.wait(timeout_s)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def interrupt(self) -> None:
        """Do what Ctrl-C at a terminal does: signal the whole foreground group."""
        os.killpg(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """Kill driver and JVM at once; the Python processes of Spark find out by themselves."""
        for process in session_of(self.pid):
            if not process.is_python_of_spark:
                kill(process.pid)
        self._process.wait()

    def python_processes(self) -> list[int]:
        """List the Python processes that Spark started, its daemons among them."""
        return [process.pid for process in session_of(self.pid) if process.is_python_of_spark]

    def task_processes(self) -> list[int]:
        """List those of them that our daemon forked: the roles run there."""
        ours = {process.pid: process for process in session_of(self.pid) if _OUR_DAEMON in process.command}
        return [process.pid for process in ours.values() if process.parent in ours]

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("batch ") and line.endswith("\n"):
                self._told.put(int(line.split()[1]))
        self._told.put(None)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def session_of(session: int) -> list[Process]:
    """List the living processes of a session."""
    found = []
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # The name in parentheses may hold anything; what follows it is numbers.
            state, parent, _, sid = (directory / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if int(sid) == session and state not in "ZX":
                found.append(Process(int(directory.name), int(parent), command))
    return found


def source_readers(driver: int) -> list[int]:
    """List the processes that read a source for the JVM of a driver."""
    processes = session_of(os.getsid(driver))
    jvms = [process.pid for process in processes if process.parent == driver]
    return [each.pid for each in processes if each.parent in jvms and _READER in each.command]


def wait_until_gone(session: int, timeout_s: float = HANG_S) -> list[Process]:
    """Wait for the last process of a session to end; return those that do not."""
    deadline = time.monotonic() + timeout_s
    while (left := session_of(session)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def batch_in_flight(job_home: JobHome) -> bool:
    """Tell whether a batch has begun that is not finished."""
    ledger = State.at(job_home.state).ledger
    begun = ledger.begun()
    return begun is not None and begun.batch_id > ledger.finished()


@contextlib.contextmanager
def publishing(job_home: JobHome, events: pa.Table, seed: int) -> Iterator[None]:
    """Append events, some at a time, until the context ends or all are out; then say so to the job."""
    enough = threading.Event()
    events = events.drop_columns("seq")
    sizes = random.Random(seed)

    def publish() -> None:
        with Journal.open(job_home.journal, create=True) as journal:
            start = 0
            while start < events.num_rows and not enough.wait(sizes.uniform(0.0, 0.3)):
                size = sizes.randint(1, 60)
                journal.append(events.slice(start, size).combine_chunks())
                start += size

    publisher = threading.Thread(target=publish)
    Journal.open(job_home.journal, create=True).close()
    publisher.start()
    try:
        yield
    finally:
        enough.set()
        publisher.join()
        (job_home.directory / "published").touch()


def journal_events(job_home: JobHome) -> pa.Table:
    """Read back everything that was published, with the seqs it got."""
    with Journal.open(job_home.journal) as journal:
        packets = list(journal.read(0, journal.last().position))
    return pa.Table.from_batches([decode_events(packet) for packet in packets], EVENTS)
