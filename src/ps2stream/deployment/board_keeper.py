"""Keep the board of a job: hang up what roles measure, and leave it where ``ps2stream top`` finds it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator

from ps2stream.deployment.home import Home
from ps2stream.errors import PS2StreamError
from ps2stream.metrics.board import Board
from ps2stream.metrics.measures import RoleMeasures
from ps2stream.state.state import State

#: How often, on one host; and where every look is a request to a store that may cost money.
_EVERY_S, _REMOTE_EVERY_S = 2.0, 5.0
#: A broker that does not answer must not keep a job from ending.
_PATIENCE_S = 2.0

#: Where the job has its state now; None while it has none.
CurrentState = Callable[[], State | None]
#: What roles measure, asked for every time.
Measured = Callable[[], Iterable[RoleMeasures]]


def interval_s(home: Home) -> float:
    """Return how many seconds there are between two words of a job."""
    return _EVERY_S if home.store is None else _REMOTE_EVERY_S


@contextlib.contextmanager
def board_kept(
    board: Board, measured: Measured, state: CurrentState, every_s: float = _EVERY_S
) -> Iterator[None]:
    """Keep a board in a thread while the context lasts, whether events come or not; once more at its end.

    What cannot be measured or written now is left out: nothing depends on it, and those who cannot do
    without the same disk or broker tell of it.
    """
    stopped = threading.Event()

    def keep() -> None:
        while not stopped.wait(every_s):
            _keep_once(board, measured, state)

    _keep_once(board, measured, state)
    thread = threading.Thread(target=keep, name="board", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(_PATIENCE_S)
        if not thread.is_alive():
            _keep_once(board, measured, state)


def _keep_once(board: Board, measured: Measured, state: CurrentState) -> None:
    with contextlib.suppress(PS2StreamError):
        board.post(*measured())
        current = state()
        if current is not None:
            current.mailbox.write_board(board.snapshot())
