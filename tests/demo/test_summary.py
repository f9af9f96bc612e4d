from __future__ import annotations

import dataclasses
import math

from ps2stream.demo.snapshot import Summary
from ps2stream.demo.summary import NEXT_STEPS, summary

FINAL = Summary(
    elapsed_s=30.0,
    n_events=1_200_000,
    n_publications=1_000_000,
    n_matches=2_000_000,
    n_rejected=3,
    n_discarded=400_000,
    n_subscriptions=100_000,
    latency_p50_ms=310.0,
    latency_p99_ms=12_300.0,
    worker_busy=(0.5, 0.9),
    worker_subscriptions=(50_100, 49_900),
    n_adjustments=6,
    moved_bytes=1_800_000,
    paused_s=0.49,
)


def test_the_summary_has_every_figure_and_fits_80_columns() -> None:
    text = summary(FINAL)
    for figure in ("1,200,000 in 30.0 s", "40,000 events/s", "400,000 (40%)", "p50, 12.3 s p99", "49,900"):
        assert figure in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_summary_names_three_commands_to_go_on_with() -> None:
    text = summary(FINAL)
    assert len(NEXT_STEPS) == 3
    assert all(command in text for command, _ in NEXT_STEPS)


def test_a_run_that_was_stopped_at_once_has_a_summary_too() -> None:
    nothing = dataclasses.replace(
        FINAL, elapsed_s=0.0, n_events=0, n_publications=0, latency_p50_ms=math.nan, worker_busy=()
    )
    text = summary(nothing)
    assert "0 events/s" in text
    assert "- p50" in text
    assert "worker " not in text


def test_adjustments_are_counted_with_what_they_moved() -> None:
    assert "adjustments       6, 1.8 MB moved, stream paused 0.49 s in all" in summary(FINAL)
    assert "adjustments       none" in summary(dataclasses.replace(FINAL, n_adjustments=0))
