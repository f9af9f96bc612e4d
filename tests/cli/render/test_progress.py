from __future__ import annotations

import pytest

from ps2stream.cli.render.progress import open_progress, percent


@pytest.mark.parametrize(
    ("done", "total", "shown"),
    [(0, 3_000, "0%"), (2_989, 3_000, "99%"), (2_999, 3_000, "99%"), (3_000, 3_000, "100%"), (0, 0, "100%")],
)
def test_only_the_end_is_100_percent(done: int, total: int, shown: str) -> None:
    assert percent(done, total) == shown


def test_lines_elsewhere_than_on_a_terminal_say_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with open_progress("replaying", 3_000) as advance:
        advance(2_989, "5 matches")
        advance(3_000, "6 matches")
        advance(3_000, "6 matches")
    assert capsys.readouterr().err.splitlines() == [
        "replaying: 2,989 of 3,000 events (99%), 5 matches",
        "replaying: 3,000 of 3,000 events (100%), 6 matches",
    ]
