"""Progress of long work: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

Advance = Callable[[int, str], None]
_LINE_EVERY_S = 5.0


@contextlib.contextmanager
def open_progress(what: str, total: int, *, quiet: bool = False) -> Iterator[Advance]:
    """Yield a function that takes (done so far, a few words); all output goes to stderr."""
    if quiet:
        yield lambda done, words: None
    elif sys.stderr.isatty():
        yield from _bar(what, total)
    else:
        yield _lines(what, total)


def _bar(what: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[words]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total, words="starting")
        yield lambda done, words: progress.update(task, completed=done, words=words)


def _lines(what: str, total: int) -> Advance:
    last = 0.0

    def advance(done: int, words: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_EVERY_S or done >= total:
            last = time.monotonic()
            share = done / total if total else 1.0
            print(f"{what}: {done:,} of {total:,} events ({share:.0%}), {words}", file=sys.stderr)

    return advance
