"""What a job measures is told in a few lines and a table, whatever is missing."""

from __future__ import annotations

import pytest

from cli.boards import board_snapshot, full_board
from ps2stream.cli.render.board_figures import BoardFigures
from ps2stream.cli.render.board_text import board_lines, up_for
from ps2stream.errors import StateError
from ps2stream.metrics.board import Board
from ps2stream.metrics.recorder import Recorder


def lines_of(board: Board) -> list[str]:
    return board_lines(BoardFigures.of(board.snapshot()))


def test_the_job_as_a_whole_comes_first() -> None:
    lines = lines_of(full_board())
    assert lines[:7] == [
        "throughput     2,000 publications/s, 5 updates/s, 20 matches/s, 25% discarded, "
        "3.0 candidates a publication",
        "latency        p50 18 ms, p90 21 ms, p99 22 ms",
        "batches        -",
        "commits        -",
        "lag            1,200 in alerts.publications",
        "subscriptions  1,000",
        "since start    20,000 publications, 50 updates, 200 matches, 3 rejected, 1 restart",
    ]


def test_roles_come_in_the_order_in_which_events_pass_them() -> None:
    rows = [line.split() for line in lines_of(full_board())[8:]]
    assert rows[0] == [
        "role",
        "rate",
        "busy",
        "subscriptions",
        "lag",
        "restarts",
        "position",
        "horizon",
        "host",
    ]
    assert rows[1:] == [
        ["driver", "0", "2.0", "batches/s", "0%", "0", "host-a"],
        ["registrar", "0", "5.0", "updates/s", "0%", "1,000", "0", "host-a"],
        ["dispatcher", "0", "2,000", "publications/s", "0%", "1,200", "0", "host-a"],
        ["worker", "0", "900", "publications/s", "25%", "600", "0", "101", "99", "host-a"],
        ["worker", "1", "900", "publications/s", "25%", "1", "host-b"],
    ]


def test_a_silent_role_is_told_by_its_age() -> None:
    now = 0.0
    board = Board("", lambda: now)
    board.post(Recorder("worker", 0, 1, "host-a").measures())
    now = 60.0
    header, row = lines_of(board)[8:]
    assert header.split()[-2:] == ["heard", "host"]
    assert row.split()[-4:] == ["60", "s", "ago", "host-a"]


def test_a_role_of_another_version_is_shown_last() -> None:
    board = full_board()
    board.post(Recorder("archivist", 0, 1, "host-a").measures())
    assert lines_of(board)[-1].startswith("archivist 0")


def test_nothing_is_told_in_dashes() -> None:
    assert lines_of(Board())[0] == "throughput     0 publications/s, 0 updates/s, 0 matches/s, - discarded"


def test_what_comes_from_elsewhere_cannot_break_the_terminal() -> None:
    board = Board()
    board.post(Recorder("wor\x1b[2Jker", 0, 1, "ho\nst").measures())
    text = "\n".join(lines_of(board))
    assert "\x1b" not in text
    assert "ho st" in text


@pytest.mark.parametrize("damage", [{"job": {}}, {"roles": [{}]}, {"roles": 5}, {"job": None}, {"up_s": "x"}])
def test_a_damaged_board_is_told_of(damage: dict[str, object]) -> None:
    with pytest.raises(StateError, match="the board that the job has left cannot be read"):
        BoardFigures.of(board_snapshot(**damage))


@pytest.mark.parametrize(
    ("seconds", "words"), [(5.9, "0 min 5 s"), (125, "2 min 5 s"), (7_300, "2 h 1 min"), (90_000, "1 d 1 h")]
)
def test_how_long_a_job_has_run_is_told_in_two_units(seconds: float, words: str) -> None:
    assert up_for(seconds) == words
