"""The lock of a job: one at a time on a state."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ps2stream.errors import StateError


@dataclass(frozen=True, slots=True)
class JobLock:
    """A file that the running job holds; the kernel lets go of it when the process ends, however it ends."""

    path: Path

    @contextlib.contextmanager
    def held(self, patience_s: float = 1.0) -> Iterator[None]:
        """Hold the state for one job.

        ``patience_s``: who asks whether a job is running holds the lock for a moment, too.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + patience_s
        with self.path.open("a") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if time.monotonic() >= until:
                        raise StateError(
                            f"another job is running on the state in {self.path.parent}"
                        ) from error
                    time.sleep(0.05)
            yield

    def is_held(self) -> bool:
        """Say whether a job holds the state now; nothing is written, the disk may be read-only."""
        try:
            with self.path.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:  # no job was ever here
            return False
        except BlockingIOError:
            return True
