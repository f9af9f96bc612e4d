"""A spool has what of a stream's events came in time."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from engines.streams import events_of, publish, subscribe, unsubscribe
from ps2stream.errors import SchemaError
from ps2stream.sources.spool import spool
from ps2stream.store.directory import DirectoryStore
from sources.test_contract import read


def test_spooled_events_are_read_back_and_late_ones_are_rejected(tmp_path: Path) -> None:
    events = [
        events_of(publish(12, "p"), subscribe(11, "a")),
        events_of(unsubscribe(15, "a"), publish(9, "late"), publish(13, "q")),
        events_of(publish(14, "r")),
        events_of(),
    ]
    spooled = spool(events, DirectoryStore(tmp_path / "part"), high_water=10)
    assert (spooled.n_publications, spooled.n_updates, spooled.last_seq) == (3, 2, 15)
    publications, updates, reasons = read([spooled])
    assert publications == [12, 13, 14]
    assert updates == [11, 15]
    assert reasons == ["seq must be above 10, the last of the batch before; got 9"]


def test_a_spool_of_nothing_keeps_the_last_seq(tmp_path: Path) -> None:
    spooled = spool([], DirectoryStore(tmp_path / "part"), high_water=10)
    assert (spooled.n_publications, spooled.n_updates, spooled.last_seq) == (0, 0, 10)
    assert read([spooled]) == ([], [], [])


def test_spooling_events_of_another_schema_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="column 'seq'"):
        spool([pa.RecordBatch.from_pylist([{"x": 1}])], DirectoryStore(tmp_path / "part"), high_water=0)


def test_a_forgotten_spool_leaves_nothing(tmp_path: Path) -> None:
    one, other = (
        spool([events_of(publish(1, "p"))], DirectoryStore(tmp_path / name), high_water=0)
        for name in ("one", "other")
    )
    one.forget()
    assert one.store.list() == []
    assert read([other])[0] == [1]
