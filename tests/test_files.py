"""Paths mean what they meant when they came in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import ps2stream as ps2
from ps2stream.files import absolute
from ps2stream.journal import Journal
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning.plan import Plan, owners_of_cells
from ps2stream.sources.event_log import EventLog

EVENTS = ps2.event_table([ps2.Publication("p", "x", lat=0.0, lon=0.0)])


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand in one directory, and go to another when called."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    return lambda: monkeypatch.chdir(tmp_path / "elsewhere")


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_becomes_absolute(kind: Any, elsewhere: Any) -> None:
    assert absolute(kind("a/b")) == Path.cwd() / "a" / "b"
    assert absolute(kind("/a")) == Path("/a")


@pytest.mark.parametrize("kind", [str, Path])
def test_a_journal_stays_open_wherever_the_process_goes(kind: Any, elsewhere: Any) -> None:
    with Journal.open(kind("journal"), create=True, durable=False) as journal:
        elsewhere()
        assert journal.append(EVENTS).last_seq == 1
    assert not Path("journal").exists()


@pytest.mark.parametrize("kind", [str, Path])
def test_an_event_log_is_read_wherever_the_process_goes(kind: Any, elsewhere: Any) -> None:
    pq.write_table(EVENTS, "events.parquet")
    log = EventLog(kind("events.parquet"))
    elsewhere()
    assert [batch.num_rows for batch in log.batches(10)] == [1]


@pytest.mark.parametrize("kind", [str, Path])
def test_a_plan_is_saved_and_loaded_by_either_name(kind: Any, elsewhere: Any) -> None:
    plan = Plan(1, "grid", 1, Grid.over(WORLD, 2), owners_of_cells(np.zeros(16, np.int32)))
    plan.save(kind("plan.npz"))
    assert Plan.load(kind("plan.npz")).grid == plan.grid
