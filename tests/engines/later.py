"""An executor whose tasks run when a test says so: what goes on beside them is what the test does."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any


class Later(Executor):
    """Keep tasks until somebody runs them."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, partial(fn, *arguments, **options)))
        return future

    def run(self) -> None:
        waiting, self.waiting = self.waiting, []
        for future, task in waiting:
            try:
                future.set_result(task())
            except Exception as error:
                future.set_exception(error)
