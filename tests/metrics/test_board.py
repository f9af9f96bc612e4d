"""A board has the newest of every role, totals that never fall, and rates of the last seconds."""

from __future__ import annotations

import json

import pytest

from ps2stream.metrics.board import WINDOW_S, Board
from ps2stream.metrics.measures import Histogram, RoleMeasures


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(clock: Clock) -> Board:
    return Board("inline", clock)


def worker(n_matches: float, incarnation: int = 0, number: int = 0, **gauges: float) -> RoleMeasures:
    latency = Histogram()
    latency.observe([0.01] * int(n_matches))
    return RoleMeasures(
        "worker",
        number,
        incarnation,
        f"host-{incarnation}",
        {"matches": n_matches},
        gauges,
        {"delivery_latency_seconds": latency},
    )


def test_the_newest_measures_of_a_role_count(board: Board) -> None:
    board.post(worker(1), worker(5, number=1), worker(3))
    first, second = board.standings()
    assert first.total.counters["matches"] == 3
    assert second.total.counters["matches"] == 5


def test_a_new_incarnation_is_a_restart_and_totals_go_on(board: Board) -> None:
    board.post(worker(5, 1), worker(2, 2), worker(3, 2), worker(1, 9))
    (standing,) = board.standings()
    assert standing.total.counters == {"matches": 9, "restarts": 2}
    assert standing.total.histograms["delivery_latency_seconds"].n == 9
    assert standing.newest.host == "host-9"


def test_what_an_earlier_incarnation_still_says_is_ignored(board: Board) -> None:
    board.post(worker(5, 1), worker(2, 2), worker(50, 1))
    (standing,) = board.standings()
    assert standing.total.counters == {"matches": 7, "restarts": 1}


def test_restarts_that_a_role_tells_itself_are_added(board: Board) -> None:
    board.post(RoleMeasures("driver", 0, 1, counters={"restarts": 2}), RoleMeasures("driver", 0, 2))
    (standing,) = board.standings()
    assert standing.total.counters["restarts"] == 3


def test_rates_and_quantiles_are_those_of_the_window(board: Board, clock: Clock) -> None:
    board.post(worker(1_000_000))
    for second in range(1, 31):
        clock.now = 1000.0 + second
        board.post(worker(1_000_000 + 20 * second))
    (standing,) = board.standings()
    assert standing.rates()["matches"] == pytest.approx(20)
    assert standing.recent.histograms["delivery_latency_seconds"].n == 20 * WINDOW_S


def test_rates_go_on_over_a_restart(board: Board, clock: Clock) -> None:
    board.post(worker(0, 1))
    for n_matches, incarnation in ((30, 1), (10, 2)):
        clock.now += 1
        board.post(worker(n_matches, incarnation))
    (standing,) = board.standings()
    assert standing.rates()["matches"] == pytest.approx(20)


@pytest.mark.parametrize(("waited_s", "per_s"), [(2.0, 50), (100.0, 10)])
def test_what_a_role_tells_first_is_new(board: Board, clock: Clock, waited_s: float, per_s: float) -> None:
    clock.now += waited_s
    board.post(worker(100))
    (standing,) = board.standings()
    assert standing.rates()["matches"] == pytest.approx(per_s)
    assert standing.recent.histograms["delivery_latency_seconds"].n == 100


def test_a_silent_role_has_no_rate_and_an_age(board: Board, clock: Clock) -> None:
    board.post(worker(1))
    clock.now += 1
    board.post(worker(2))
    clock.now += 3 * WINDOW_S
    (standing,) = board.standings()
    assert standing.rates()["matches"] == 0
    assert standing.gauges["age_seconds"] == 3 * WINDOW_S


def test_a_snapshot_adds_roles_up(board: Board, clock: Clock) -> None:
    lags = [
        {"lag_events@a.publications": 3.0},
        {"lag_events@a.publications": 4.0, "lag_events@a.updates": 1.0},
    ]
    for n in (0, 10):
        board.post(worker(n, horizon=5), worker(n, number=1, horizon=4, position=8))
        board.post(*(RoleMeasures("dispatcher", number, gauges=each) for number, each in enumerate(lags)))
        board.post(RoleMeasures("registrar", 0, gauges={"subscriptions": 12, "position": 10}))
        clock.now += 1
    snapshot = json.loads(json.dumps(board.snapshot()))
    job = snapshot["job"]
    assert job["counters"]["matches"] == 20
    assert job["rates"]["matches"] == pytest.approx(10)
    assert job["lag_events"] == {"a.publications": 7, "a.updates": 1}
    assert (job["subscriptions"], job["position"], job["horizon"]) == (12, 10, 4)
    assert job["latency"]["n"] == 20
    assert 0.005 < job["latency"]["p50"] <= job["latency"]["p99"] < 0.02
    assert [(each["role"], each["number"]) for each in snapshot["roles"]] == [
        ("dispatcher", 0),
        ("dispatcher", 1),
        ("registrar", 0),
        ("worker", 0),
        ("worker", 1),
    ]


def test_a_snapshot_of_nothing_is_one(board: Board) -> None:
    snapshot = json.loads(json.dumps(board.snapshot()))
    assert snapshot["roles"] == []
    assert snapshot["job"]["latency"] == {"n": 0, "p50": None, "p90": None, "p99": None}
