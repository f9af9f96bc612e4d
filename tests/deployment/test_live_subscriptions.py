from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.jobs import Job, write_journal
from ps2stream.config import Settings
from ps2stream.deployment.home import Home
from ps2stream.deployment.live_subscriptions import live_subscriptions
from ps2stream.journal import Journal
from ps2stream.model.schemas import EVENTS, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.registry.segments import BOUNDS
from ps2stream.testing import oracle
from strategies import event_logs

SETTINGS = Settings(n_workers=2, stop_words=("smoke",))


def _expected(events: pa.Table) -> dict[str, tuple[Any, ...]]:
    rejected = {rejection.seq for rejection in oracle.run(events, SETTINGS.stop_words).rejected}
    live: dict[str, tuple[Any, ...]] = {}
    for row in events.to_pylist():
        if row["seq"] in rejected:
            continue
        if row["op"] == SUBSCRIBE:
            live[row["id"]] = (row["seq"], row["expression"], *(row[name] for name in BOUNDS))
        elif row["op"] == UNSUBSCRIBE:
            del live[row["id"]]
    return live


def _found(home: Home, ids: list[str] | None = None) -> dict[str, tuple[Any, ...]]:
    rows = live_subscriptions(home, ids).to_pylist()
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)
    return {row["id"]: (row["seq"], row["expression"], *(row[name] for name in BOUNDS)) for row in rows}


@given(
    event_logs(max_size=40),
    st.integers(0, 4),
    st.integers(0, 4),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=15, deadline=None)
def test_live_subscriptions_are_what_the_whole_log_says(
    log: pa.Table, n_first: int, n_then: int, snapshots: bool, prunes: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Home(Path(directory))
        events = write_journal(home, log)
        job = Job(home, SETTINGS)
        job.process(n_first)
        if snapshots:
            job.snapshot()
            if prunes:
                job.prune()
        job.process(n_then)
        expected = _expected(events)
        assert _found(home) == expected
        some = ["s0", "s 5", "nobody"]
        assert _found(home, some) == {key: value for key, value in expected.items() if key in some}


def _subscribe(name: str) -> dict[str, Any]:
    return {"op": SUBSCRIBE, "id": name, "expression": "rain", **dict.fromkeys(BOUNDS, 0.0)}


def _write(home: Home, *rows: dict[str, Any]) -> None:
    write_journal(home, pa.Table.from_pylist(list(rows), EVENTS), 1)


def test_without_a_job_the_journal_alone_tells(home: Home) -> None:
    _write(home, _subscribe("a"), _subscribe("b"), {"op": UNSUBSCRIBE, "id": "a"})
    assert list(_found(home)) == ["b"]


def test_a_pruned_journal_without_a_job_is_told_of(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    _write(home, _subscribe("a"), _subscribe("b"))
    with Journal.open(home.journal) as journal:
        journal.prune(1)
    assert list(_found(home)) == ["b"]
    assert "was pruned and no job has kept a log" in caplog.text
