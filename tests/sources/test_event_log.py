from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ps2stream.errors import SchemaError
from ps2stream.model.schemas import EVENTS
from ps2stream.sources.event_log import EventLog
from ps2stream.testing.generators import random_events


def _seqs(log: EventLog, size: int) -> list[int | None]:
    return [seq for batch in log.batches(size) for seq in batch.column("seq").to_pylist()]


def test_a_sorted_file_is_streamed_as_it_is(tmp_path: Path) -> None:
    events = random_events(500, seed=1, invalid_share=0.0)
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=64)
    log = EventLog(tmp_path / "events.parquet")
    assert log.is_sorted
    assert log.n_events == 500
    assert pa.Table.from_batches(log.batches(100)) == events


@pytest.mark.parametrize("size", [1, 7, 500, 501])
def test_batches_have_the_size_that_was_asked_for(tmp_path: Path, size: int) -> None:
    pq.write_table(random_events(500, seed=1), tmp_path / "events.parquet", row_group_size=33)
    sizes = [batch.num_rows for batch in EventLog(tmp_path / "events.parquet").batches(size)]
    assert sum(sizes) == 500
    assert all(each == size for each in sizes[:-1])
    assert 0 < sizes[-1] <= size


def test_parts_of_a_directory_are_read_in_the_order_of_their_seq_not_of_their_names(tmp_path: Path) -> None:
    events = random_events(300, seed=2, invalid_share=0.0)
    for name, start in (("c", 0), ("a", 100), ("b", 200)):
        pq.write_table(events.slice(start, 100), tmp_path / f"{name}.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".a.parquet.crc").touch()
    log = EventLog(tmp_path)
    assert log.is_sorted
    assert _seqs(log, 64) == events.column("seq").to_pylist()


def test_a_log_out_of_order_is_sorted_and_of_equal_seqs_the_first_stays_first(tmp_path: Path) -> None:
    rows = [{"seq": seq, "op": "publish", "id": f"{seq}-{i}"} for i, seq in enumerate([5, 3, 3, None, 9, 1])]
    pq.write_table(pa.Table.from_pylist(rows, EVENTS), tmp_path / "events.parquet")
    log = EventLog(tmp_path / "events.parquet")
    assert not log.is_sorted
    ids = [each for batch in log.batches(4) for each in batch.column("id").to_pylist()]
    assert ids == ["1-5", "3-1", "3-2", "5-0", "9-4", "None-3"]


def test_overlapping_parts_are_sorted_together(tmp_path: Path) -> None:
    events = random_events(100, seed=3, invalid_share=0.0)
    pq.write_table(events.take(list(range(0, 100, 2))), tmp_path / "a.parquet")
    pq.write_table(events.take(list(range(1, 100, 2))), tmp_path / "b.parquet")
    assert _seqs(EventLog(tmp_path), 30) == events.column("seq").to_pylist()


def test_other_columns_are_ignored_and_wider_types_are_taken(tmp_path: Path) -> None:
    events = random_events(50, seed=4)
    wide = events.set_column(2, "id", events.column("id").cast(pa.large_string())).append_column(
        "extra", pa.nulls(50)
    )
    wide = wide.set_column(1, "op", events.column("op").dictionary_encode())
    pq.write_table(wide, tmp_path / "events.parquet")
    assert pa.Table.from_batches(EventLog(tmp_path / "events.parquet").batches(50)).schema == EVENTS


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda table: table.drop_columns(["text"]), "column 'text' .string. is missing"),
        (
            lambda table: table.set_column(3, "lat", pa.array(["x"] * 10)),
            "column 'lat' must be double; got string",
        ),
        (
            lambda table: table.set_column(0, "seq", pa.array([0.5] * 10)),
            "column 'seq' must be int64; got double",
        ),
    ],
)
def test_a_wrong_schema_is_named(tmp_path: Path, spoil: object, message: str) -> None:
    assert callable(spoil)
    pq.write_table(spoil(random_events(10, seed=5)), tmp_path / "events.parquet")
    with pytest.raises(SchemaError, match=message):
        EventLog(tmp_path / "events.parquet")


def test_what_is_no_parquet_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file or directory"):
        EventLog(tmp_path / "missing")
    with pytest.raises(SchemaError, match=r"holds no \.parquet file"):
        EventLog(tmp_path)
    (tmp_path / "garbage.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(SchemaError, match="not a readable Parquet file"):
        EventLog(tmp_path)


def test_an_empty_log_has_no_batches(tmp_path: Path) -> None:
    pq.write_table(EVENTS.empty_table(), tmp_path / "events.parquet")
    log = EventLog(tmp_path / "events.parquet")
    assert (log.n_events, list(log.batches(10))) == (0, [])


def test_a_seq_that_does_not_fit_is_named_with_its_file(tmp_path: Path) -> None:
    events = random_events(10, seed=7)
    table = events.set_column(0, "seq", pa.array([2**63 + 5] * 10, pa.uint64()))
    pq.write_table(table, tmp_path / "wide.parquet")
    with pytest.raises(SchemaError, match=r"wide\.parquet"):
        EventLog(tmp_path)


def test_a_damaged_page_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "torn.parquet"
    pq.write_table(random_events(500, seed=8), path)
    data = bytearray(path.read_bytes())
    data[40:4000] = bytes(3960)
    path.write_bytes(bytes(data))
    with pytest.raises(SchemaError, match=r"torn\.parquet: cannot be read"):
        list(EventLog(path).batches(100))


def test_a_directory_with_the_name_of_a_file_is_looked_into(tmp_path: Path) -> None:
    events = random_events(20, seed=9, invalid_share=0.0)
    (tmp_path / "part.parquet").mkdir()
    pq.write_table(events, tmp_path / "part.parquet" / "a.parquet")
    assert EventLog(tmp_path).n_events == 20
