from __future__ import annotations

import dataclasses
import io
import math
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from ps2stream.demo.live_view import LiveView, render
from ps2stream.demo.snapshot import AdjustmentLine, SampleMatch, Snapshot

SNAPSHOT = Snapshot(
    elapsed_s=17.2,
    remaining_s=12.8,
    phase="streaming",
    n_events=168_456,
    n_publications=140_000,
    n_matches=270_000,
    n_rejected=2,
    n_discarded=35_000,
    n_subscriptions=100_000,
    events_per_s=10_262.0,
    matches_per_s=18_000.0,
    latency_p50_ms=380.0,
    latency_p99_ms=910.0,
    worker_busy=(0.2, 0.95),
    worker_subscriptions=(25_000, 75_000),
    samples=(SampleMatch("s9", "Zürich OR lake", "47.37, 8.54", "a lake in Zürich, 東京 " + "long " * 40),),
)


# What the environment of a test says about its terminal is not asked: a dumb one has a size of its own.
TERMINAL = {"TERM": "xterm-256color"}


def drawn(
    snapshot: Snapshot, width: int = 80, height: int = 24, rates: tuple[float, ...] = (1.0, 2.0)
) -> str:
    console = Console(
        file=io.StringIO(), width=width, height=height, color_system=None, record=True, _environ=TERMINAL
    )
    console.print(render(snapshot, rates, width, height))
    return console.export_text()


def test_the_screen_shows_every_figure() -> None:
    screen = drawn(SNAPSHOT)
    for figure in (
        "168,456", "140,000", "270,000", "35,000 (25%)", "100,000", "10,262 events/s", "18,000", "380 ms",
        "910 ms", "0:17 · 0:13 left", "95.0%", "75,000 subscriptions", "Zürich OR lake", "47.37, 8.54",
        "streaming",
    ):  # fmt: skip
        assert figure in screen, figure


ADJUSTED = dataclasses.replace(
    SNAPSHOT,
    adjustments=tuple(AdjustmentLine(10.0 * i, f"moved {i} cells, " + "long " * 40) for i in range(1, 9)),
    busy_around="Jundiaí",
)


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("n_workers", [0, 1, 8, 40])
@pytest.mark.parametrize("shown", [SNAPSHOT, ADJUSTED], ids=["calm", "adjusted"])
def test_the_screen_fits_the_terminal(shown: Snapshot, width: int, n_workers: int) -> None:
    crowded = dataclasses.replace(
        shown,
        worker_busy=(0.5,) * n_workers,
        worker_subscriptions=(1_000_000,) * n_workers,
        samples=SNAPSHOT.samples * 9,
    )
    lines = drawn(crowded, width, 24, tuple(float(i) for i in range(60))).splitlines()
    assert len(lines) <= 24
    assert max(cell_len(line) for line in lines) <= width


def test_before_the_first_event_there_are_dashes_and_no_empty_panels() -> None:
    nothing = Snapshot(0.4, None, "starting Spark", 0, 0, 0, 0, 0, 0, 0.0, 0.0, math.nan, math.nan)
    screen = drawn(nothing, rates=())
    assert "starting Spark" in screen
    assert "Ctrl-C ends it" in screen
    assert re.search(r"latency p50 +- ", screen)
    assert "workers" not in screen
    assert "rejected" not in screen


def test_texts_of_the_stream_are_shown_as_written_and_steer_nothing() -> None:
    hostile = SampleMatch("[b]s1", "[red]fire", "0.00, 0.00", "[bold]a[/bold] \x1b[2J\u202e fire\nx [/no]")
    screen = drawn(dataclasses.replace(SNAPSHOT, samples=(hostile,)))
    assert "[bold]a[/bold] [2J fire x [/no]" in screen
    assert "[b]s1  [red]fire" in screen
    assert "\x1b" not in screen
    assert "\u202e" not in screen


def test_the_newest_sample_is_on_top() -> None:
    older = SampleMatch("s-old", "a", "0.00, 0.00", "a")
    newer = SampleMatch("s-new", "b", "0.00, 0.00", "b")
    screen = drawn(dataclasses.replace(SNAPSHOT, samples=(older, newer)))
    assert screen.index("s-new") < screen.index("s-old")


def test_bars_are_drawn_beside_the_busiest_worker() -> None:
    calm = drawn(dataclasses.replace(SNAPSHOT, worker_busy=(0.01, 0.02)))
    first, second = (line for line in calm.splitlines() if "subscriptions" in line and "━" in line)
    assert (first.count("━"), second.count("━")) == (17, 34)
    assert "━" not in drawn(dataclasses.replace(SNAPSHOT, worker_busy=(0.0, 0.0)))


def test_the_newest_adjustments_are_on_top_and_the_busy_place_below() -> None:
    shown = dataclasses.replace(ADJUSTED, worker_busy=(0.5,) * 4)
    screen = drawn(shown)
    assert "load adjustment" in screen
    assert screen.index("1:20  moved 8 cells") < screen.index("1:10  moved 7 cells")
    assert "busy around Jundiaí" in screen
    assert "moved 6 cells" not in screen, "24 lines have space for two"
    assert "moved 5 cells" in drawn(shown, height=40)
    assert "47.37, 8.54" in screen, "a match is always shown"


def test_a_screen_that_nothing_was_adjusted_on_has_no_panel_for_it() -> None:
    assert "load adjustment" not in drawn(SNAPSHOT)
    drifting = drawn(dataclasses.replace(SNAPSHOT, busy_around="[red]Shenyang\x1b[2J"))
    assert "nothing to adjust so far" in drifting
    assert "busy around [red]Shenyang [2J" in drifting


def test_keywords_are_marked_in_the_text_and_operators_are_not() -> None:
    sample = SampleMatch("s1", "fire OR smoke", "0.00, 0.00", "Fire or nothing")
    console = Console(
        file=io.StringIO(),
        width=80,
        force_terminal=True,
        color_system="standard",
        record=True,
        _environ=TERMINAL,
    )
    console.print(render(dataclasses.replace(SNAPSHOT, samples=(sample,)), (), 80, 24))
    styled = console.export_text(styles=True)
    assert "\x1b[1;32mFire\x1b[0m or nothing" in styled


def test_the_live_view_keeps_the_rates_of_streaming_and_gives_the_screen_back() -> None:
    stream = io.StringIO()
    console = Console(
        file=stream, width=80, height=24, force_terminal=True, color_system=None, _environ=TERMINAL
    )
    view = LiveView(console=console)
    view.show(dataclasses.replace(SNAPSHOT, phase="loading", events_per_s=0.0))
    for rate in (1_000.0, 8_000.0):
        view.show(dataclasses.replace(SNAPSHOT, events_per_s=rate))
    view.close()
    view.close()
    assert "▂█" in stream.getvalue()
    # The cursor is shown again.
    assert "\x1b[?25h" in stream.getvalue()
