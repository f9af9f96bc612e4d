"""A recorder adds up what its role does, and takes known names only."""

from __future__ import annotations

import pytest

from ps2stream.metrics.recorder import Recorder


def test_counters_add_up_and_gauges_are_replaced() -> None:
    recorder = Recorder("dispatcher", 1, 7, "here")
    recorder.count("publications", 3)
    recorder.count("publications")
    recorder.set("position", 5)
    recorder.set("position", 9)
    recorder.set("lag_events", 4, "alerts.publications")
    recorder.observe("commit_seconds", 0.01)
    measures = recorder.measures()
    assert (measures.role, measures.number, measures.incarnation, measures.host) == (
        "dispatcher",
        1,
        7,
        "here",
    )
    assert measures.counters == {"publications": 4}
    assert measures.gauges == {"position": 9, "lag_events@alerts.publications": 4}
    assert measures.histograms["commit_seconds"].n == 1


def test_measures_do_not_change_when_the_role_goes_on() -> None:
    recorder = Recorder("worker", 0)
    recorder.count("matches")
    recorder.observe("commit_seconds", 0.01)
    before = recorder.measures()
    recorder.count("matches")
    recorder.observe("commit_seconds", 0.01)
    assert before.counters == {"matches": 1}
    assert before.histograms["commit_seconds"].n == 1


def test_a_later_start_is_a_later_incarnation() -> None:
    assert Recorder("worker", 0).incarnation < Recorder("worker", 0).incarnation


@pytest.mark.parametrize(
    "slip",
    [
        lambda recorder: recorder.count("publicatons"),
        lambda recorder: recorder.count("position"),
        lambda recorder: recorder.set("publications", 1),
        lambda recorder: recorder.set("lag_events", 1),
        lambda recorder: recorder.set("position", 1, "alerts.updates"),
        lambda recorder: recorder.observe("latency", 1),
    ],
)
def test_a_name_that_nobody_knows_is_a_mistake_of_the_role(slip: object) -> None:
    with pytest.raises(ValueError, match=r"ps2stream\.metrics\.names"):
        slip(Recorder("worker", 0))  # type: ignore[operator]
