"""What is said about a cluster follows from the rows; a driver's row follows from what it saw."""

from __future__ import annotations

import pytest

from clusters import needs_cluster
from ps2stream.engines.tally import Tally, WorkerTally
from ps2stream_bench.cluster import bed
from ps2stream_bench.cluster.processor_time import KINDS
from ps2stream_bench.cluster.replay_driver import Loss, Moment, after_the_loss, between
from ps2stream_bench.cluster.traffic import Traffic
from ps2stream_bench.figure import Context
from ps2stream_bench.figures.cluster import FIGURE, LOSS, STEADY, page
from ps2stream_bench.results import Row

ABOUT: Row = {"subscriptions": 1_000, "publications": 2_000, "batch_events": 100, "kind": "q1"}


def steady(hosts: int, *, cpu_s: float = 8.0, n_moves: int = 0, repetition: int = 0) -> Row:
    return {
        **ABOUT,
        "mode": STEADY,
        "hosts": hosts,
        "repetition": repetition,
        "matching_tuples_per_s": 500.0,
        "matching_s": 4.0,
        "matching_events": 2_000,
        "matching_batches": 20,
        "cpu_s": cpu_s,
        **{f"cpu_s of {kind}": cpu_s / len(KINDS) for kind in KINDS},
        "bytes_to store": 3 * 2**20,
        "bytes_from store": 5 * 2**20,
        **{f"bytes_to h{n + 1}": 2**20 for n in range(hosts)},
        "loading_bytes_to store": 2**20,
        "loading_bytes_from store": 2**20,
        "n_moves": n_moves,
    }


def lost(*, moves: int = 1, rebuilds: int = 1) -> Row:
    worker = {"worker_subscriptions": 1_000, "worker_bytes": 2**21, "worker_moves": moves, "lost": "h1"}
    seconds = {"rebuild_s": 7.25, "usual_batch_s": 1.0, "longest_batch_s": 12.5}
    return {**steady(2), "mode": LOSS, **worker, "n_rebuilds": rebuilds, **seconds}


def test_processor_time_is_told_of_a_tuple_and_bytes_of_a_batch() -> None:
    told = page([steady(1), steady(3, cpu_s=16.0)])
    rates, traffic = told.tables
    assert "| 1 | 500 | 2.00 | 4,000.0 |" in rates
    assert "| 3 | 500 | 4.00 | 8,000.0 |" in rates
    assert "| 3 | 20 | 100 | 3.00 | 5.00 | 3.00 |" in traffic
    assert [each.name for each in told.drawings] == ["cpu"]


@pytest.mark.parametrize(("n_moves", "holds"), [(0, True), (1, False)])
def test_a_worker_that_moves_without_a_fault_is_told(n_moves: int, holds: bool) -> None:
    (verdict,) = page([steady(1), steady(2, n_moves=n_moves), steady(3)]).verdicts
    assert verdict.holds is holds
    assert verdict.ours == f"{n_moves} moves in 3 runs"


@pytest.mark.parametrize(("moves", "rebuilds", "holds"), [(1, 1, True), (0, 0, False), (1, 2, False)])
def test_a_worker_of_a_lost_host_moves_once_and_is_built_once(moves: int, rebuilds: int, holds: bool) -> None:
    told = page([lost(), lost(moves=moves, rebuilds=rebuilds)])
    assert [verdict.holds for verdict in told.verdicts] == [holds]
    assert "| 1,000 | 2.0 | h1 | 1 | 1 | 7.25 | 1.00 | 12.50 |" in told.tables[0]


def test_a_machine_without_beds_gives_a_page_that_says_why() -> None:
    told = page([{**ABOUT, "mode": mode, "unavailable": "it needs root"} for mode in (STEADY, LOSS)])
    assert told.ours.count("Left out: it needs root.") == 1
    assert not told.tables
    assert not told.verdicts
    assert not told.drawings


def test_a_machine_without_beds_gives_a_row_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*asked: object) -> list[Row]:
        raise bed.UnavailableError("it needs root")

    monkeypatch.setattr("ps2stream_bench.figures.cluster.rows_of", refuse)
    context = Context(seed=1)
    try:
        rows = [row for case in FIGURE.cases("tiny") for row in FIGURE.measure(case, context)]
    finally:
        context.close()
    assert rows == [{"unavailable": "it needs root"}] * 2


def test_beds_that_deliver_other_matches_fail_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(driver: str, asked: object, hosts: bed.Hosts) -> list[Row]:
        return [{"n_matches": hosts.n, "fingerprint": 1, "wall_s": 1.0, "cpu_s": 1.0}]

    monkeypatch.setattr("ps2stream_bench.figures.cluster.rows_of", answer)
    context = Context(seed=1)
    try:
        with pytest.raises(ValueError, match="must deliver the same matches"):
            list(FIGURE.measure(FIGURE.cases("tiny")[0], context))
    finally:
        context.close()


def test_only_what_came_after_loading_counts() -> None:
    loaded = Moment(
        10.0, 1_000, 3, {("h1", "Python"): 5.0}, {"h1": Traffic(1, 1), "store": Traffic(1_000, 500)}
    )
    ended = Moment(
        14.0,
        3_000,
        7,
        {("h1", "Python"): 8.0, ("driver", "driver"): 1.0},
        {"h1": Traffic(41, 81), "store": Traffic(1_400, 500)},
    )
    row = between(loaded, ended)
    assert (row["matching_s"], row["matching_events"], row["matching_batches"]) == (4.0, 2_000, 4)
    assert (row["cpu_s"], row["cpu_s of Python"], row["cpu_s on h1"], row["cpu_s on driver"]) == (
        4.0,
        3.0,
        3.0,
        1.0,
    )
    assert (row["bytes_to store"], row["bytes_from store"], row["bytes_to h1"]) == (100.0, 0.0, 10.0)
    assert row["loading_bytes_to store"] == 1_000


def test_the_first_build_of_a_worker_is_no_rebuild() -> None:
    before = WorkerTally(n_subscriptions=900, n_bytes=90, host="h2", n_rebuilds=1, rebuild_s=0.5)
    tally = Tally.of(2, 1)
    tally.workers[1] = WorkerTally(n_subscriptions=950, host="h1", n_moves=1, n_rebuilds=2, rebuild_s=4.5)
    tally.latencies += [(1.0, 10), (3.0, 10), (2.0, 10), (9.0, 10), (1.0, 10)]
    row = after_the_loss(Loss(3, before), tally)
    assert (row["lost"], row["worker_subscriptions"], row["worker_moves"]) == ("h2", 900, 1)
    assert (row["n_rebuilds"], row["rebuild_s"]) == (1, 4.0)
    assert (row["usual_batch_s"], row["longest_batch_s"]) == (2.0, 9.0)
    assert after_the_loss(None, tally) == {}
    with pytest.raises(ValueError, match="a batch has to come after the loss of h2"):
        after_the_loss(Loss(5, before), tally)


@needs_cluster
def test_beds_are_measured_and_a_lost_worker_is_built_on_another_host() -> None:
    context = Context(seed=1)
    try:
        rows = [
            {**case.settings, **row} for case in FIGURE.cases("tiny") for row in FIGURE.measure(case, context)
        ]
    finally:
        context.close()
    assert sorted(row["hosts"] for row in rows if row["mode"] == STEADY) == [1, 2, 3]
    for row in rows:
        assert row["n_matches"] > 0
        assert row["cpu_s"] > 0
        assert (
            min(
                row[f"cpu_s of {kind}"] for kind in ("driver", "driver's Java", "executor", "Python", "store")
            )
            > 0
        )
        assert min(row["bytes_to store"], row["bytes_from store"]) > 0
        assert all(row[f"cpu_s on h{n + 1}"] > 0 for n in range(row["hosts"]))
    assert [verdict.holds for verdict in page(rows).verdicts] == [True, True]
