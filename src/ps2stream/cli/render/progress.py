"""Progress of long work: a bar on a terminal, a line every few seconds elsewhere or without rich."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from ps2stream.extras import is_installed

Advance = Callable[[int, str], None]
_LINE_EVERY_S = 5.0


def percent(done: int, total: int) -> str:
    """Write how far the work is; 100% means that all of it is done."""
    return f"{100 * done // total if total else 100}%"


@contextlib.contextmanager
def open_progress(what: str, total: int, *, quiet: bool = False) -> Iterator[Advance]:
    """Yield a function that takes (done so far, a few words); all output goes to stderr."""
    if quiet:
        yield lambda done, words: None
    elif sys.stderr.isatty() and is_installed("rich"):
        yield from _bar(what, total)
    else:
        yield _lines(what, total)


def _bar(what: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[percent]:>4}"),
        TextColumn("{task.fields[words]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total, words="starting", percent="0%")

        def advance(done: int, words: str) -> None:
            progress.update(task, completed=done, words=words, percent=percent(done, total))

        yield advance


def _lines(what: str, total: int) -> Advance:
    last, told = 0.0, -1

    def advance(done: int, words: str) -> None:
        nonlocal last, told
        if done != told and (time.monotonic() - last >= _LINE_EVERY_S or done >= total):
            last, told = time.monotonic(), done
            print(f"{what}: {done:,} of {total:,} events ({percent(done, total)}), {words}", file=sys.stderr)

    return advance
