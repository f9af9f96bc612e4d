"""Lines from a pipe or file, in batches: large ones when they come fast, soon ones when they do not."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator

Lines = list[tuple[int, bytes]]

MAX_LINES = 10_000
#: The same for long lines.
MAX_BYTES = 16 * 1024 * 1024
#: The first line of a batch waits no longer than this for others.
WAIT_S = 0.2

_READ_BYTES = 256 * 1024


class LineReader:
    """Read numbered lines, blank ones left out, until the end or until told to stop.

    A stop leaves only an unfinished line unread: all that came whole is still handed over.
    """

    def __init__(self, descriptor: int, should_stop: Callable[[], object] = lambda: False) -> None:
        self._descriptor = descriptor
        self._should_stop = should_stop
        self._unfinished: list[bytes] = []
        self._n_lines = 0

    @property
    def has_unfinished(self) -> bool:
        """Say whether a line was left without its end."""
        return any(piece.strip() for piece in self._unfinished)

    def batches(self) -> Iterator[Lines]:
        batch: Lines = []
        n_bytes, due = 0, 0.0
        while not self._should_stop():
            wait_s = max(0.0, due - time.monotonic()) if batch else WAIT_S
            if select.select([self._descriptor], [], [], wait_s)[0]:
                chunk = os.read(self._descriptor, _READ_BYTES)
                if not chunk and self._should_stop():
                    break  # Ctrl-C ends a whole pipeline: the end that follows completes no line
                if not batch:
                    due = time.monotonic() + WAIT_S
                batch += self._cut(chunk)
                n_bytes += len(chunk)
                if not chunk:
                    break
            if batch and (len(batch) >= MAX_LINES or n_bytes >= MAX_BYTES or time.monotonic() >= due):
                yield batch
                batch, n_bytes = [], 0
        if batch:
            yield batch

    def _cut(self, chunk: bytes) -> Lines:
        """Return the lines that a chunk completes; an empty chunk, the end, completes the last one."""
        if chunk and b"\n" not in chunk:
            # Joined only when the line ends: else a line of many chunks would be copied for each.
            self._unfinished.append(chunk)
            return []
        *whole, rest = b"".join([*self._unfinished, chunk or b"\n"]).split(b"\n")
        self._unfinished = [rest] if rest else []
        first = self._n_lines + 1
        self._n_lines += len(whole)
        return [(number, line) for number, line in enumerate(whole, first) if line.strip()]
