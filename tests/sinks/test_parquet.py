"""The Parquet sink writes what any reader of Parquet reads, whole or not at all."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disks import small_disk
from ps2stream.errors import StateError
from ps2stream.model.events import rejected_records
from ps2stream.model.schemas import MATCHES, REJECTED
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.store.contract import Store
from ps2stream.store.memory import MemoryStore


def _matches(n: int, prefix: str = "s") -> list[pa.RecordBatch]:
    rows = [
        {
            "subscription_id": f"{prefix}{i}",
            "subscription_seq": i,
            "publication_id": f"p{i}",
            "publication_seq": i,
        }
        for i in range(n)
    ]
    return [pa.RecordBatch.from_pylist(rows, MATCHES)]


@pytest.fixture
def sink(tmp_path: Path) -> ParquetSink:
    return ParquetSink.at(tmp_path / "out")


def _read(part: Store) -> pa.Table:
    """Read a part of a sink as others do, by its directory."""
    return pq.read_table(part.location())


def test_names_are_made_of_batch_and_merger_or_source(sink: ParquetSink, tmp_path: Path) -> None:
    for _ in range(2):
        sink.write_matches(4, 0, _matches(3))
        sink.write_matches(4, 1, _matches(2, "t"))
        sink.write_matches(1_000_000, 123, _matches(1, "u"))
        sink.write_rejected(4, "updates", rejected_records([(1, "subscribe", "s", "why")]))
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")) == [
        "out/matches/batch-000000000004-000.parquet",
        "out/matches/batch-000000000004-001.parquet",
        "out/matches/batch-000001000000-123.parquet",
        "out/rejected/batch-000000000004-updates.parquet",
    ]
    assert _read(sink.matches).schema == MATCHES
    assert _read(sink.matches).num_rows == 6
    assert _read(sink.rejected).schema == REJECTED


publication_ids = st.lists(st.tuples(st.sampled_from(["", "a", "b", "ab", "ü", "日本"]), st.integers(1, 4)))


@pytest.mark.kernel
@given(publication_ids)
@settings(max_examples=40, deadline=None)
def test_matches_are_read_as_they_were_written_whatever_ids_follow_one_another(
    runs: list[tuple[str, int]],
) -> None:
    ids = [each for each, n in runs for _ in range(n)]
    columns = [[f"s{i % 3}" for i in range(len(ids))], list(range(len(ids))), ids, [7] * len(ids)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, MATCHES, strict=True)]
    matches = pa.RecordBatch.from_arrays(arrays, schema=MATCHES)
    sink = ParquetSink(MemoryStore())
    sink.write_matches(1, 0, [matches])
    sink.finish()
    (key,) = sink.matches.list()
    found = pq.read_table(pa.BufferReader(sink.matches.get(key)))
    assert found.schema == MATCHES
    assert found.equals(pa.table(matches))


def test_many_matches_in_several_row_groups_are_read_as_they_were_written(sink: ParquetSink) -> None:
    n = 1_200_000
    seq = np.arange(n)
    publication = seq // 7
    ids = [pa.array(each).cast(pa.string()) for each in (seq, publication)]
    matches = pa.RecordBatch.from_arrays(
        [ids[0], pa.array(seq), ids[1], pa.array(publication)], schema=MATCHES
    )
    sink.write_matches(1, 0, [matches])
    (key,) = sink.matches.list()
    assert pq.read_metadata(sink.matches.location(key)).num_row_groups > 1
    assert _read(sink.matches).equals(pa.table(matches))


@pytest.mark.kernel
def test_pieces_are_row_groups_of_one_file_that_is_the_same_when_written_again(sink: ParquetSink) -> None:
    (whole,) = _matches(10)
    pieces = [whole.slice(0, 4), whole.slice(4, 0), whole.slice(4, 4), whole.slice(8)]
    contents = []
    for _ in range(2):
        assert sink.write_matches(1, 0, iter(pieces)) == 10
        (key,) = sink.matches.list()
        contents.append(bytes(sink.matches.get(key)))
    assert contents[0] == contents[1]
    metadata = pq.read_metadata(sink.matches.location(key))
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [4, 4, 2]
    assert _read(sink.matches).equals(pa.table(whole))


def test_a_batch_without_matches_leaves_no_file(sink: ParquetSink, tmp_path: Path) -> None:
    sink.write_matches(1, 0, _matches(0))
    sink.write_rejected(1, "000", rejected_records([]))
    assert list(tmp_path.iterdir()) == []


def test_an_output_of_nothing_can_be_read_with_its_schema(sink: ParquetSink) -> None:
    sink.finish()
    sink.finish()
    for part, schema in ((sink.matches, MATCHES), (sink.rejected, REJECTED)):
        assert _read(part).schema == schema
        assert _read(part).num_rows == 0


def test_finishing_adds_nothing_to_an_output_that_has_something(sink: ParquetSink) -> None:
    sink.write_matches(1, 0, _matches(2))
    sink.finish()
    assert len(sink.matches.list()) == 1
    assert _read(sink.matches).num_rows == 2


def test_readers_never_see_a_file_that_is_being_written(sink: ParquetSink) -> None:
    sink.write_matches(1, 0, _matches(2))
    half = Path(sink.matches.location()) / ".batch-000000000002-000.parquet.99-1.tmp"
    half.write_bytes(b"PAR1 half")
    assert ds.dataset(sink.matches.location(), format="parquet").count_rows() == 2
    sink.claim("the next job")
    assert not half.exists()


def test_a_full_disk_is_reported_and_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        sink = ParquetSink.at(disk)
        sink.write_matches(1, 0, _matches(10))
        with pytest.raises(StateError, match=r"no space left for .*batch-000000000002-000\.parquet"):
            sink.write_matches(2, 0, _matches(300_000))
        assert os.listdir(disk / "matches") == ["batch-000000000001-000.parquet"]
        sink.write_matches(2, 0, _matches(20))
        assert _read(sink.matches).num_rows == 30


def test_a_directory_that_cannot_be_made_is_reported(sink: ParquetSink, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(StateError, match=r"cannot write .*batch-000000000001-000\.parquet"):
        sink.write_matches(1, 0, _matches(1))


def test_clearing_removes_what_a_job_wrote_and_nothing_else(sink: ParquetSink, tmp_path: Path) -> None:
    sink.finish()
    sink.write_matches(1, 0, _matches(2))
    sink.write_rejected(1, "updates", rejected_records([(1, "subscribe", "s", "why")]))
    sink.claim("one")
    for name in ("notes.txt", "matches/mine.parquet", "rejected/batch.txt"):
        (tmp_path / "out" / name).write_text("not ours")
    sink.clear()
    left = sorted(str(path.relative_to(tmp_path / "out")) for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["matches/mine.parquet", "notes.txt", "rejected/batch.txt"]


def test_a_sink_belongs_to_one_job_from_whatever_process_it_is_claimed(tmp_path: Path) -> None:
    ParquetSink.at(tmp_path).claim("one")
    with pytest.raises(StateError, match=f"the sink in {tmp_path} belongs to another job"):
        ParquetSink.at(tmp_path).claim("two")
    pickle.loads(pickle.dumps(ParquetSink.at(tmp_path))).claim("one")


class FailingLists:
    """A store whose listings fail, or show nothing of what was written lately."""

    def __init__(self, store: Store, *, fails: bool) -> None:
        self._store, self._fails = store, fails

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def under(self, prefix: str) -> Store:
        return FailingLists(self._store.under(prefix), fails=self._fails)  # type: ignore[return-value]

    def list(self, prefix: str = "") -> list[str]:
        if self._fails:
            raise StateError("cannot list")
        return []


def test_a_listing_that_lags_or_fails_doubles_and_loses_no_match(store: Store) -> None:
    sink = ParquetSink(store)
    sink.write_matches(1, 0, _matches(3))
    lagging = ParquetSink(FailingLists(store, fails=False))  # type: ignore[arg-type]
    for each in (lagging, sink):
        each.claim("one")
        each.write_matches(1, 0, _matches(3))
        each.finish()
    files = [pq.read_table(pa.BufferReader(sink.matches.get(key))) for key in sink.matches.list()]
    assert pa.concat_tables(files).num_rows == 3
    assert all(file.schema == MATCHES for file in files)
    failing = ParquetSink(FailingLists(store, fails=True))  # type: ignore[arg-type]
    for call in (failing.finish, failing.clear):
        with pytest.raises(StateError, match="cannot list"):
            call()
    assert sink.matches.list()
