from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from ps2stream.deployment.match_reader import MatchReader, Wanted
from ps2stream.errors import StateError
from ps2stream.model.schemas import MATCHES
from ps2stream.sinks.parquet import ParquetSink

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


def _directory(sink: ParquetSink) -> Path:
    return Path(sink.matches.location())


def test_each_file_is_read_once_in_the_order_of_batches(sink: ParquetSink) -> None:
    reader = MatchReader(_directory(sink))
    _write(sink, 11, ("q", 1, "p", 30))
    _write(sink, 2, ("q", 1, "p", 21), merger=1)
    _write(sink, 2, ("q", 1, "p", 20))
    assert _seqs(reader) == [20, 21, 30]
    _write(sink, 11, ("q", 1, "p", 30))
    _write(sink, 12, ("q", 1, "p", 40))
    assert _seqs(reader) == [40]
    assert _seqs(reader) == []


def test_a_directory_may_come_later_and_foreign_files_are_left_alone(tmp_path: Path) -> None:
    sink = ParquetSink.at(tmp_path / "later")
    reader = MatchReader(_directory(sink))
    assert _seqs(reader) == []
    _directory(sink).mkdir(parents=True)
    assert _seqs(reader) == []
    (_directory(sink) / ".batch-000000000001-000.parquet.7.tmp").write_bytes(b"half")
    sink.finish()
    _write(sink, 1, ("q", 1, "p", 2))
    assert _seqs(reader) == [2]


def test_what_was_there_can_be_skipped(sink: ParquetSink) -> None:
    _write(sink, 1, ("q", 1, "p", 2))
    reader = MatchReader(_directory(sink))
    reader.skip()
    _write(sink, 2, ("q", 1, "p", 3))
    assert _seqs(reader) == [3]


def test_subscription_and_seq_select(sink: ParquetSink) -> None:
    _write(sink, 1, ("a", 1, "p", 2), ("b", 1, "p", 3), ("a", 1, "p", 4))
    assert _seqs(MatchReader(_directory(sink)), Wanted("a")) == [2, 4]
    assert _seqs(MatchReader(_directory(sink)), Wanted("a", 3)) == [4]
    assert _seqs(MatchReader(_directory(sink)), Wanted(None, 3)) == [3, 4]


def test_an_old_directory_is_not_listed_again_until_it_changes(
    sink: ParquetSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(sink, 1, ("q", 1, "p", 2))
    os.utime(_directory(sink), (1_000, 1_000))
    reader = MatchReader(_directory(sink))
    assert _seqs(reader) == [2]
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", lambda path: pytest.fail("listed"))
        assert _seqs(reader) == []
    _write(sink, 2, ("q", 1, "p", 3))
    assert _seqs(reader) == [3]


def test_a_damaged_file_is_told_of(sink: ParquetSink) -> None:
    sink.matches.put("batch-000000000001-000.parquet", b"no parquet")
    with pytest.raises(StateError, match=r"batch-000000000001-000\.parquet cannot be read"):
        _seqs(MatchReader(_directory(sink)))
