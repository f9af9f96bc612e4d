"""What a user sees of kernels being compiled: on first use, and never again."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator

_LINE_EVERY_S = 10.0


def load_kernels(*, quiet: bool = False) -> None:
    """Compile or load all kernels that a stream needs; say how far it is when they have to be compiled."""
    from ps2stream.engines.kernel_warmup import warm

    with compilation_shown(quiet=quiet):
        warm()


@contextlib.contextmanager
def compilation_shown(*, quiet: bool = False) -> Iterator[None]:
    """Show on stderr how many kernels are compiled meanwhile; nothing if all of them are loaded."""
    from ps2stream.kernels import compilation_watched

    if quiet:
        yield
        return
    show = _Line() if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else _Lines()
    try:
        with compilation_watched(show.advance):
            yield
    finally:
        show.close()


def _words(done: int, known: int) -> str:
    return f"compiling kernels: {done} of at most {known} (first use on this machine)"


class _Line:
    """Write one line again and again."""

    def __init__(self) -> None:
        self._written = False

    def advance(self, done: int, known: int) -> None:
        self._written = True
        print(f"\r{_words(done, known)}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._written:
            print(file=sys.stderr)


class _Lines:
    """Write a line with the first kernel, then one every few seconds."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def advance(self, done: int, known: int) -> None:
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _LINE_EVERY_S
            print(_words(done, known), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the lines as they are."""
