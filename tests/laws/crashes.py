"""Crashes at chosen moments: from one call of a function on, nothing of the job goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class CrashError(Exception):
    """Stand for the end of a process."""


def crashing(original: Callable[..., Any], n_before: int, *, is_done: bool) -> Callable[..., Any]:
    """Let a function succeed this many times, then end the job just before, or just after, what it does.

    What is called after that, on the way out, does nothing either: a dead process tidies nothing up.
    """
    n_calls = 0

    def wrapped(*arguments: Any, **options: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        result = original(*arguments, **options) if n_calls <= n_before + is_done else None
        if n_calls > n_before:
            raise CrashError
        return result

    return wrapped
