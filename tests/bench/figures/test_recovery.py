"""What is said about starts follows from the rows, and a home holds the events that it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from ps2stream.config import Settings
from ps2stream.journal import Journal
from ps2stream.sources.event_log import EventLog
from ps2stream_bench.figure import SCALES, Case, Scale
from ps2stream_bench.figures.recovery import (
    COLD,
    COLD_INLINE,
    FIGURE,
    INTACT,
    LOST,
    SESSION,
    RecoveryHome,
    page,
)
from ps2stream_bench.results import Row
from ps2stream_bench.workloads import N_STOP_WORDS, Corpus, corpus_for


def rows_of(seconds: dict[str, float], n_live: int = 1_000) -> list[Row]:
    return [
        {
            "case": f"{n_live}",
            "n_live": n_live,
            "mode": mode,
            "repetition": turn,
            "first_match_s": taken + turn,
        }
        for mode, taken in seconds.items()
        for turn in range(2)
    ]


@pytest.mark.parametrize(
    ("seconds", "holds"),
    [
        ({COLD: 9.0, INTACT: 2.0, LOST: 4.0}, [True, True]),
        ({COLD: 9.0, INTACT: 2.0, LOST: 11.0}, [True, False]),
        ({COLD: 1.0, INTACT: 2.0, LOST: 4.0}, [False, False]),
    ],
)
def test_recoveries_are_compared_with_a_cold_start(seconds: dict[str, float], holds: list[bool]) -> None:
    smaller = rows_of({COLD: 1.0, INTACT: 5.0, LOST: 5.0}, 10)
    verdicts = page([*smaller, *rows_of(seconds)]).verdicts
    assert [verdict.holds for verdict in verdicts] == holds
    assert all("1,000 subscriptions" in verdict.ours for verdict in verdicts)


@pytest.mark.parametrize(
    ("seconds", "holds"),
    [
        ({}, [None, None]),
        ({COLD_INLINE: 1.0, INTACT: 1.0}, [None, None]),
        ({COLD: 2.0, LOST: 1.0}, [None, True]),
    ],
)
def test_what_was_not_measured_is_left_open(seconds: dict[str, float], holds: list[bool | None]) -> None:
    assert [verdict.holds for verdict in page(rows_of(seconds)).verdicts] == holds


def test_the_start_of_spark_is_told_apart() -> None:
    told = page([*rows_of({COLD: 2.0}), *rows_of({SESSION: 5.0}, 0)])
    assert "took 5.5 [5.0 to 6.0] s to start" in told.ours
    assert SESSION not in told.tables[0]


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_cases_and_no_case_twice(scale: Scale) -> None:
    told = [str(case) for case in FIGURE.cases(scale)]
    assert told
    assert len(set(told)) == len(told)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return corpus_for("us", 1_000, 1)


@pytest.fixture
def home(tmp_path: Path, corpus: Corpus) -> RecoveryHome:
    found = RecoveryHome(tmp_path / "home", corpus, Case({"n_live": 300, "kind": "q2"}), 1)
    found.write_events()
    return found


def last_seq(home: RecoveryHome) -> int:
    with Journal.open(home.journal) as journal:
        return journal.last().seq


def test_log_and_journal_hold_the_same_events_and_publications_can_come_again(home: RecoveryHome) -> None:
    assert EventLog(home.log).n_events == last_seq(home) == 2_300
    home.append_publications()
    home.append_publications()
    assert last_seq(home) == 6_300
    home.drop_publications()
    assert last_seq(home) == 2_300
    home.append_publications()
    assert last_seq(home) == 4_300


def test_the_inline_engine_is_timed_until_it_matches(home: RecoveryHome, corpus: Corpus) -> None:
    stop_words = tuple(corpus.words[:N_STOP_WORDS].to_pylist())
    row = home.start_inline(Settings(n_workers=2, n_dispatchers=1, stop_words=stop_words))
    assert row["mode"] == COLD_INLINE
    assert row["first_match_s"] > 0
    assert row["n_matches"] > 0
    assert not (home.home / "out-inline").exists()
