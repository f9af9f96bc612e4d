"""Ctrl-C and a request to terminate, taken at a moment that suits the work."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """Remember the first signal; a second one ends the process as it always did."""

    def __init__(self) -> None:
        self.signal_number = 0

    def __bool__(self) -> bool:
        return self.signal_number != 0

    @property
    def exit_code(self) -> int:
        return 128 + self.signal_number

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.signal_number = number
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@contextlib.contextmanager
def held_interrupts() -> Iterator[Interrupts]:
    """Hold signals back while the context lasts; the work inside looks at the flag."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():  # Python handles signals there only
        yield interrupts
        return
    before = {
        number: signal.signal(number, interrupts._remember) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
