"""Ctrl-C and a request to terminate (SIGTERM), taken at a moment that suits the work.

There are three ways, each for its kind of work:

- ``raised_interrupts``: an exception at once, as Python does with Ctrl-C. All commands begin with it.
- ``held_interrupts``: a flag that the work looks at. For what must not be cut in two: an append, a line.
- ``abrupt_interrupts``: the process ends where it is, for what runs on Spark. An exception could come amid
  a conversation with the JVM, or in a finaliser, which would swallow it; and the engine survives a kill at
  any moment anyway. Where it can end better, the work asks for the flag.

A signal that is ignored when we start (``nohup``, a job in the background of a script) stays ignored.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from ps2stream.cli import exit_codes

_Handler = Callable[[int, FrameType | None], object]

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Terminated(KeyboardInterrupt):
    """Told to terminate: ends what Ctrl-C ends, in the same way."""


def exit_code_of(interrupt: KeyboardInterrupt) -> int:
    return exit_codes.TERMINATED if isinstance(interrupt, Terminated) else exit_codes.INTERRUPTED


def ending_of(exit_code: int) -> str:
    """Say how a process was ended that gives this exit code."""
    return _WORDS[signal.Signals(exit_code - 128)]


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


class AbruptInterrupts(Interrupts):
    """End the process with the first signal, or with the second one while the work is held."""

    def __init__(self) -> None:
        super().__init__()
        self._is_held = False
        self._tidiers: list[Callable[[], None]] = []
        self._owner = os.getpid()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let the first signal only set the flag while the context lasts; the work inside looks at it."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    @contextlib.contextmanager
    def tidied_by(self, tidier: Callable[[], None]) -> Iterator[None]:
        """While the context lasts, call this before the process ends; what came last is tidied first."""
        self._tidiers.append(tidier)
        try:
            yield
        finally:
            self._tidiers.remove(tidier)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._owner:  # a fork that has not become another program yet
            os._exit(128 + number)
        is_first, self.signal_number = not self, self.signal_number or number
        if not (is_first and self._is_held):
            self._end()

    def _end(self) -> None:
        for number in _WORDS:
            signal.signal(number, self._leave)  # somebody is in a hurry
        for tidier in reversed(self._tidiers):
            with contextlib.suppress(Exception):
                tidier()
        with contextlib.suppress(OSError, RuntimeError):  # nobody reads it; it was amid a write
            sys.stdout.flush()
        self._leave()

    def _leave(self, *signal: object) -> None:
        with contextlib.suppress(OSError):
            os.write(2, f"ps2stream: {ending_of(self.exit_code)}\n".encode())
        os._exit(self.exit_code)


@contextlib.contextmanager
def raised_interrupts() -> Iterator[None]:
    """Let both signals raise an exception."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    with _handled(interrupt, *_WORDS):
        yield


@contextlib.contextmanager
def held_interrupts() -> Iterator[Interrupts]:
    """Hold signals back while the context lasts; the work inside looks at the flag."""
    interrupts = Interrupts()
    with _handled(interrupts._remember, *_WORDS):
        yield interrupts


@contextlib.contextmanager
def abrupt_interrupts() -> Iterator[AbruptInterrupts]:
    """Let a signal end the process at once while the context lasts, except where it is held."""
    interrupts = AbruptInterrupts()
    with _handled(interrupts._take, *_WORDS):
        yield interrupts


@contextlib.contextmanager
def _handled(handler: _Handler, *numbers: int) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # Python handles signals there only
        yield
        return
    heard = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
