"""A board is hung up anew while nothing happens, too, and nothing that fails on the way stops that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ps2stream.deployment.board_keeper import board_kept, interval_s
from ps2stream.deployment.home import Home
from ps2stream.errors import BrokerError
from ps2stream.metrics.board import Board
from ps2stream.metrics.measures import RoleMeasures
from ps2stream.state.host_files import HostFiles
from ps2stream.state.state import State
from ps2stream.store.memory import MemoryStore
from waiting import HANG_S


class Measured:
    """Count the times that somebody asks."""

    def __init__(self) -> None:
        self.n = 0
        self.enough = threading.Event()

    def __call__(self) -> Iterator[RoleMeasures]:
        self.n += 1
        if self.n == 2:
            raise BrokerError("no answer")
        if self.n == 4:
            self.enough.set()
        yield RoleMeasures("driver", 0, counters={"batches": self.n})


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(MemoryStore(), HostFiles(tmp_path))


def test_it_goes_on_also_after_a_failure_and_ends_with_the_last_word(state: State) -> None:
    measured = Measured()
    with board_kept(Board("inline"), measured, lambda: state, 0.001):
        first = state.mailbox.read_board()
        assert first is not None, "at once"
        assert measured.enough.wait(HANG_S)
    last = state.mailbox.read_board()
    assert last is not None
    assert last["engine"] == "inline"
    assert last["job"]["counters"]["batches"] == measured.n


def test_stores_are_asked_less_often(any_home: Home) -> None:
    assert interval_s(any_home) == (2.0 if any_home.store is None else 5.0)


def test_without_a_state_there_is_a_board_all_the_same() -> None:
    board = Board()
    with board_kept(board, lambda: [RoleMeasures("driver", 0)], lambda: None, 0.001):
        assert len(board.standings()) == 1
