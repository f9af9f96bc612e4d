from __future__ import annotations

import dataclasses
import io
import math
from typing import Any

import pytest

from ps2stream.demo.live_view import LiveView
from ps2stream.demo.snapshot import AdjustmentLine, SampleMatch, Snapshot
from ps2stream.demo.view import PlainView, open_view


def snapshot(elapsed_s: float, phase: str = "streaming", sample: SampleMatch | None = None) -> Snapshot:
    return Snapshot(
        elapsed_s=elapsed_s,
        remaining_s=10.0,
        phase=phase,
        n_events=1_200_000,
        n_publications=1_000_000,
        n_matches=2_000_000,
        n_rejected=3,
        n_discarded=400_000,
        n_subscriptions=100_000,
        events_per_s=98_765.4,
        matches_per_s=150_000.0,
        latency_p50_ms=310.0,
        latency_p99_ms=math.nan,
        worker_busy=(0.5, 0.9),
        worker_subscriptions=(50_100, 49_900),
        samples=(sample,) if sample else (),
    )


class Terminal(io.StringIO):
    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


def test_plain_lines_come_every_few_seconds_and_at_each_new_phase() -> None:
    stream = io.StringIO()
    view = PlainView(stream, every_s=5.0)
    for elapsed_s in (0.0, 1.0):
        view.show(snapshot(elapsed_s, "starting Spark"))
    for elapsed_s in (2.0, 6.9, 7.0):
        view.show(snapshot(elapsed_s, "streaming"))
    heads = [line for line in stream.getvalue().splitlines() if line.lstrip()[:2] in ("0:", "1:")]
    assert [line.split()[0] for line in heads] == ["0:00", "0:02", "0:07"]


def test_the_first_match_is_told_at_once() -> None:
    stream = io.StringIO()
    view = PlainView(stream, every_s=5.0)
    for elapsed_s, n_matches in ((2.0, 0), (2.5, 0), (3.0, 7), (3.5, 9)):
        view.show(dataclasses.replace(snapshot(elapsed_s), n_matches=n_matches))
    lines = [line for line in stream.getvalue().splitlines() if " events, " in line]
    told = [line.split(" events, ")[1].split(",")[0] for line in lines]
    assert told == ["0 matches", "7 matches"]


def test_plain_lines_have_the_figures_fit_80_columns_and_carry_no_escape_code() -> None:
    stream = io.StringIO()
    hostile = SampleMatch("s1\x1b[2J", "fire\nOR smoke", "1.00, 2.00", "\x1b]0;title\x07 long " * 30)
    PlainView(stream).show(snapshot(3.0, sample=hostile))
    lines = stream.getvalue().splitlines()
    assert "1,200,000 events, 2,000,000 matches" in lines[1]
    assert "98,765 events/s" in lines[2]
    assert "310 ms p50, - p99" in lines[2]
    assert len(lines) == 4
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in stream.getvalue()
    assert "\x07" not in stream.getvalue()


def test_each_adjustment_and_each_busy_place_gets_one_line_when_it_comes() -> None:
    stream = io.StringIO()
    view = PlainView(stream, every_s=1_000.0)
    first, second = AdjustmentLine(61.0, "moved 14 cells"), AdjustmentLine(75.0, "moved 3 cells")
    shown = snapshot(60.0)
    news: dict[str, Any]
    for news in (
        {},
        {"busy_around": "Jundia\u00ed\x1b[2J"},
        {"busy_around": "Jundia\u00ed\x1b[2J", "adjustments": (first,)},
        {"busy_around": "Shenyang", "adjustments": (dataclasses.replace(first, words="known now"), second)},
    ):
        view.show(dataclasses.replace(shown, **news))
    lines = stream.getvalue().splitlines()
    assert lines[3:] == [
        " 1:00 busy around Jundia\u00ed [2J",
        " 1:01 moved 14 cells",
        " 1:00 busy around Shenyang",
        " 1:15 moved 3 cells",
    ]


def test_a_log_in_ascii_gets_question_marks_and_no_error() -> None:
    raw = io.BytesIO()
    view = PlainView(io.TextIOWrapper(raw, encoding="ascii"))
    view.show(snapshot(0.0, sample=SampleMatch("s1", "Zürich", "47.37, 8.54", "🔥")))
    view.close()
    assert b"Z?rich" in raw.getvalue()


def test_a_terminal_that_can_draw_gets_the_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    view = open_view(Terminal("utf-8"))
    view.close()
    assert isinstance(view, LiveView)


@pytest.mark.parametrize(("term", "encoding"), [("dumb", "utf-8"), ("xterm", "ascii"), ("", "utf-8")])
def test_a_terminal_that_cannot_draw_gets_plain_lines(
    term: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    assert isinstance(open_view(Terminal(encoding)), PlainView)


def test_a_pipe_gets_plain_lines() -> None:
    assert isinstance(open_view(io.StringIO()), PlainView)
