"""The sink has each batch once, whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
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
from ps2stream.sinks.parquet import Sink, write_parquet


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
def sink(tmp_path: Path) -> Sink:
    sink = Sink(tmp_path / "out")
    sink.prepare()
    sink.prepare()
    return sink


def test_a_batch_that_is_written_again_is_there_once(sink: Sink) -> None:
    for _ in range(2):
        sink.write_matches(4, 0, _matches(3))
        sink.write_matches(4, 1, _matches(2, "t"))
        sink.write_matches(5, 0, _matches(1, "u"))
        sink.write_rejected(4, "updates", rejected_records([(1, "subscribe", "s", "why")]))
    found = pq.read_table(sink.matches)
    assert found.schema == MATCHES
    assert sorted(found.column("subscription_id").to_pylist()) == ["s0", "s1", "s2", "t0", "t1", "u0"]
    assert pq.read_table(sink.rejected).num_rows == 1


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
    with tempfile.TemporaryDirectory() as directory:
        sink = Sink(Path(directory))
        sink.prepare()
        sink.write_matches(1, 0, [matches])
        sink.finish()
        found = pq.read_table(sink.matches)
    assert found.schema == MATCHES
    assert found.equals(pa.table(matches))


def test_many_matches_in_several_row_groups_are_read_as_they_were_written(sink: Sink) -> None:
    n = 1_200_000
    seq = np.arange(n)
    publication = seq // 7
    ids = [pa.array(each).cast(pa.string()) for each in (seq, publication)]
    matches = pa.RecordBatch.from_arrays(
        [ids[0], pa.array(seq), ids[1], pa.array(publication)], schema=MATCHES
    )
    sink.write_matches(1, 0, [matches])
    (path,) = sink.matches.iterdir()
    assert pq.read_metadata(path).num_row_groups > 1
    assert pq.read_table(path).equals(pa.table(matches))


@pytest.mark.kernel
def test_pieces_are_row_groups_of_one_file_that_is_the_same_when_written_again(sink: Sink) -> None:
    (whole,) = _matches(10)
    pieces = [whole.slice(0, 4), whole.slice(4, 0), whole.slice(4, 4), whole.slice(8)]
    contents = []
    for _ in range(2):
        assert sink.write_matches(1, 0, iter(pieces)) == 10
        (path,) = sink.matches.iterdir()
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [4, 4, 2]
    assert pq.read_table(path).equals(pa.table(whole))


def test_pieces_that_cannot_all_be_made_leave_no_file(sink: Sink) -> None:
    def pieces() -> Iterator[pa.RecordBatch]:
        yield from _matches(3)
        raise StateError("no more")

    with pytest.raises(StateError, match="no more"):
        sink.write_matches(1, 0, pieces())
    assert list(sink.matches.iterdir()) == []


def test_a_batch_without_matches_leaves_no_file(sink: Sink) -> None:
    assert sink.write_matches(1, 0, []) == 0
    assert sink.write_matches(1, 0, _matches(0)) == 0
    sink.write_rejected(1, "000", rejected_records([]))
    assert list(sink.matches.iterdir()) == list(sink.rejected.iterdir()) == []


def test_an_output_of_nothing_can_be_read_with_its_schema(sink: Sink) -> None:
    sink.finish()
    sink.finish()
    for directory, schema in ((sink.matches, MATCHES), (sink.rejected, REJECTED)):
        found = pq.read_table(directory)
        assert found.schema == schema
        assert found.num_rows == 0


def test_finishing_adds_nothing_to_an_output_that_has_something(sink: Sink) -> None:
    sink.write_matches(1, 0, _matches(2))
    sink.finish()
    assert len(list(sink.matches.iterdir())) == 1
    assert pq.read_table(sink.matches).num_rows == 2


def test_readers_never_see_a_file_that_is_being_written(sink: Sink) -> None:
    sink.write_matches(1, 0, _matches(2))
    (sink.matches / ".batch-000000000002-000.parquet.99.tmp").write_bytes(b"PAR1 half")
    assert ds.dataset(sink.matches, format="parquet").count_rows() == 2


def test_a_full_disk_is_reported_and_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        sink = Sink(disk)
        sink.prepare()
        sink.write_matches(1, 0, _matches(10))
        with pytest.raises(StateError, match=r"no space left for .*batch-000000000002-000\.parquet"):
            sink.write_matches(2, 0, _matches(300_000))
        assert [path.name for path in sink.matches.iterdir()] == ["batch-000000000001-000.parquet"]
        sink.write_matches(2, 0, _matches(20))
        assert pq.read_table(sink.matches).num_rows == 30


def test_a_directory_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot write .*a\.parquet"):
        write_parquet(tmp_path / "nowhere" / "a.parquet", *_matches(1))


def test_a_sink_belongs_to_one_job_until_it_is_cleared(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    sink.claim("one")
    sink.claim("one")
    with pytest.raises(StateError, match="belongs to another job"):
        Sink(tmp_path).claim("two")
    sink.clear()
    sink.claim("two")
