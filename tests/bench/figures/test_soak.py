"""The page of the soak sees what grows, and lets be what only fills at first."""

from __future__ import annotations

from ps2stream_bench.figures.soak import FIGURE
from ps2stream_bench.results import Row

GROWING, FILLING, FLAT = "memory of roles", "topics between roles", "memory of Java"


def looks() -> list[Row]:
    settings = dict(FIGURE.cases("tiny")[0].settings)
    return [
        {
            **settings,
            "at_s": float(n),
            "n_sent": 10 * n,
            "sent_late_s": 0.0,
            GROWING: 100.0 + 10 * n,
            FILLING: min(500.0, 100.0 * n),
            FLAT: 300.0,
        }
        for n in range(40)
    ]


def test_only_what_grows_in_the_second_half_is_blamed() -> None:
    verdicts = {each.claim.partition(" does")[0]: each.holds for each in FIGURE.page(looks()).verdicts}
    assert verdicts[GROWING] is False
    assert verdicts[FILLING] is True
    assert verdicts[FLAT] is True


def test_a_soak_without_a_broker_says_so() -> None:
    settings = dict(FIGURE.cases("tiny")[0].settings)
    page = FIGURE.page([{**settings, "unavailable": "no broker"}])
    assert "no broker" in page.ours
    assert not page.verdicts
