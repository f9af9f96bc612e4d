from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from ps2stream.deployment.match_reader import MatchReader, Wanted
from ps2stream.errors import StateError
from ps2stream.model.schemas import MATCHES
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore

EVERYTHING = Wanted()


def _write(sink: ParquetSink, batch_id: int, *matches: tuple[str, int, str, int], merger: int = 0) -> None:
    rows = [dict(zip(MATCHES.names, match, strict=True)) for match in matches]
    sink.write_matches(batch_id, merger, [pa.RecordBatch.from_pylist(rows, schema=MATCHES)])


def _seqs(reader: MatchReader, wanted: Wanted = EVERYTHING) -> list[int]:
    batches = reader.read(wanted)
    return [seq for batch in batches for seq in batch.column("publication_seq").to_pylist()]


@pytest.fixture
def sink(tmp_path: Path) -> ParquetSink:
    return ParquetSink.at(tmp_path)


@pytest.fixture
def any_sink(store: Store) -> ParquetSink:
    return ParquetSink(store)


def _directory(sink: ParquetSink) -> Path:
    return Path(sink.matches.location())


def test_each_file_is_read_once_in_the_order_of_batches(any_sink: ParquetSink) -> None:
    reader = MatchReader(any_sink.matches)
    _write(any_sink, 11, ("q", 1, "p", 30))
    _write(any_sink, 2, ("q", 1, "p", 21), merger=1)
    _write(any_sink, 2, ("q", 1, "p", 20))
    assert _seqs(reader) == [20, 21, 30]
    _write(any_sink, 11, ("q", 1, "p", 30))
    _write(any_sink, 12, ("q", 1, "p", 40))
    assert _seqs(reader) == [40]
    assert _seqs(reader) == []


def test_a_directory_may_come_later_and_foreign_files_are_left_alone(tmp_path: Path) -> None:
    sink = ParquetSink.at(tmp_path / "later")
    reader = MatchReader(sink.matches)
    assert _seqs(reader) == []
    _directory(sink).mkdir(parents=True)
    assert _seqs(reader) == []
    (_directory(sink) / ".batch-000000000001-000.parquet.7.tmp").write_bytes(b"half")
    sink.finish()
    _write(sink, 1, ("q", 1, "p", 2))
    assert _seqs(reader) == [2]


def test_what_was_there_can_be_skipped(any_sink: ParquetSink) -> None:
    _write(any_sink, 1, ("q", 1, "p", 2))
    reader = MatchReader(any_sink.matches)
    reader.skip()
    _write(any_sink, 2, ("q", 1, "p", 3))
    assert _seqs(reader) == [3]


def test_subscription_and_seq_select(any_sink: ParquetSink) -> None:
    _write(any_sink, 1, ("a", 1, "p", 2), ("b", 1, "p", 3), ("a", 1, "p", 4))
    assert _seqs(MatchReader(any_sink.matches), Wanted("a")) == [2, 4]
    assert _seqs(MatchReader(any_sink.matches), Wanted("a", 3)) == [4]
    assert _seqs(MatchReader(any_sink.matches), Wanted(None, 3)) == [3, 4]


def test_an_old_directory_is_not_listed_again_until_it_changes(
    sink: ParquetSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(sink, 1, ("q", 1, "p", 2))
    os.utime(_directory(sink), (1_000, 1_000))
    reader = MatchReader(sink.matches)
    assert _seqs(reader) == [2]
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", lambda path: pytest.fail("listed"))
        assert _seqs(reader) == []
    _write(sink, 2, ("q", 1, "p", 3))
    assert _seqs(reader) == [3]


def test_a_damaged_file_is_told_of(any_sink: ParquetSink) -> None:
    any_sink.matches.put("batch-000000000001-000.parquet", b"no parquet")
    with pytest.raises(StateError, match=r"batch-000000000001-000\.parquet cannot be read"):
        _seqs(MatchReader(any_sink.matches))


def test_whether_there_is_anything_to_read_is_known_before_it_is_read(any_sink: ParquetSink) -> None:
    reader = MatchReader(any_sink.matches)
    assert not reader.has_any()
    any_sink.finish()
    assert not reader.has_any(), "a file without rows is for other readers"
    _write(any_sink, 1, ("q", 1, "p", 2))
    assert reader.has_any()
    assert _seqs(reader) == [2]
    assert reader.has_any()


def test_a_file_that_goes_while_others_are_read_is_left_out(any_sink: ParquetSink) -> None:
    for batch_id in (1, 2, 3):
        _write(any_sink, batch_id, ("q", 1, "p", batch_id))
    found = MatchReader(any_sink.matches).read(EVERYTHING)
    first = next(found)
    any_sink.matches.delete("batch-000000000002-000.parquet")
    seqs = [batch.column("publication_seq").to_pylist() for batch in (first, *found)]
    assert seqs == [[1], [3]]


def test_an_object_store_is_asked_at_most_once_a_second(
    any_sink: ParquetSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        _write(any_sink, len(pauses), ("q", 1, "p", len(pauses)))

    monkeypatch.setattr("time.sleep", sleep)
    followed = MatchReader(any_sink.matches).follow(EVERYTHING, poll_s=0.01)
    assert [next(followed).column("publication_seq")[0].as_py() for _ in range(3)] == [1, 2, 3]
    pause_s = 0.01 if isinstance(any_sink.store, DirectoryStore) else 1.0
    assert pauses == [pause_s] * 3
