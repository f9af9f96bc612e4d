"""The tally of resident roles is what they reported of themselves."""

from __future__ import annotations

from ps2stream.config import Settings
from ps2stream.engines.board_tally import tally_of
from ps2stream.metrics.board import Board
from ps2stream.metrics.recorder import Recorder

SETTINGS = Settings(n_workers=2, n_dispatchers=1)


def counted(role: str, number: int, incarnation: int = 1, host: str = "h", **counters: float) -> Recorder:
    recorder = Recorder(role, number, incarnation, host)
    for name, value in counters.items():
        recorder.count(name, value)
    return recorder


def test_before_any_report_all_is_zero() -> None:
    tally = tally_of(Board(), SETTINGS)
    assert (tally.n_publications, tally.n_updates, tally.n_matches) == (0, 0, 0)
    assert (len(tally.workers), len(tally.dispatchers)) == (2, 1)


def test_what_roles_counted_is_added_up() -> None:
    board = Board()
    registrar = counted("registrar", 0, updates=7, rejected_records=1, busy_seconds=0.5)
    registrar.set("subscriptions", 5)
    first = counted("worker", 0, received_publications=3, candidates=9, delivered_matches=2, host="a")
    first.set("stored_subscriptions", 4)
    first.set("index_bytes", 1_000)
    second = counted("worker", 1, delivered_matches=3, applied_updates=6, busy_seconds=0.25)
    dispatcher = counted(
        "dispatcher", 0, publications=10, discarded_publications=4, sent_publications=8, rejected_records=2
    )
    board.post(*(each.measures() for each in (registrar, first, second, dispatcher)))
    tally = tally_of(board, SETTINGS)
    assert (tally.n_updates, tally.n_subscriptions, tally.registrar_busy_s) == (7, 5, 0.5)
    assert (tally.n_publications, tally.n_matches, tally.n_rejected) == (10, 5, 3)
    assert (tally.dispatchers[0].n_discarded, tally.dispatchers[0].n_sent) == (4, 8)
    assert (tally.workers[0].n_publications, tally.workers[0].n_candidates) == (3, 9)
    assert (tally.workers[0].n_subscriptions, tally.workers[0].n_bytes, tally.workers[0].host) == (
        4,
        1_000,
        "a",
    )
    assert (tally.workers[1].n_updates, tally.workers[1].busy_s) == (6, 0.25)


def test_a_role_that_was_started_again_goes_on_counting() -> None:
    board = Board()
    board.post(counted("worker", 0, 1, delivered_matches=3).measures())
    board.post(counted("worker", 0, 2, delivered_matches=4).measures())
    assert tally_of(board, SETTINGS).n_matches == 7


def test_roles_of_an_earlier_run_that_had_more_are_left_out_of_the_tables() -> None:
    board = Board()
    board.post(counted("worker", 5, delivered_matches=3).measures())
    board.post(counted("dispatcher", 3, publications=3).measures())
    tally = tally_of(board, SETTINGS)
    assert (tally.n_matches, tally.n_publications) == (0, 0)
