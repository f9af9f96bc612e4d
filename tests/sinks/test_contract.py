"""Every sink has each batch once, as its last writing left it, and belongs to one job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka.produced import kept
from ps2stream.errors import StateError
from ps2stream.model.events import rejected_records
from ps2stream.model.schemas import MATCHES, REJECTED
from ps2stream.sinks.kafka import KafkaSink
from ps2stream.sinks.memory import MemorySink
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.sinks.sink import Sink
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.memory import MemoryStore


@pytest.fixture(params=["parquet files", "parquet in memory", "parquet on s3", "memory", "kafka"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Sink:
    if request.param == "memory":
        return MemorySink()
    if request.param == "parquet on s3":
        return ParquetSink.at(request.getfixturevalue("s3").store().location())
    if request.param == "kafka":
        return KafkaSink.of(request.getfixturevalue("topics"))
    return ParquetSink(DirectoryStore(tmp_path) if request.param == "parquet files" else MemoryStore())


def matches_of(sink: Sink) -> pa.Table:
    if isinstance(sink, MemorySink):
        return sink.matches()
    if isinstance(sink, KafkaSink):
        # In the order of publications: partitions have none between them.
        found = kept(sink.topics, sink.topics.matches)
        return pa.Table.from_pylist(found, MATCHES).sort_by("publication_seq")
    assert isinstance(sink, ParquetSink)
    return _read(sink.matches, MATCHES)


def rejected_of(sink: Sink) -> pa.Table:
    if isinstance(sink, MemorySink):
        return sink.rejected()
    if isinstance(sink, KafkaSink):
        return pa.Table.from_pylist(kept(sink.topics, sink.topics.rejected), REJECTED)
    assert isinstance(sink, ParquetSink)
    return _read(sink.rejected, REJECTED)


def _read(part: Store, schema: pa.Schema) -> pa.Table:
    files = [pq.read_table(pa.BufferReader(part.get(key))) for key in part.list()]
    return pa.concat_tables([schema.empty_table(), *files])


def is_readable(sink: Sink) -> bool:
    """Say whether whoever opens it finds both parts."""
    return not isinstance(sink, ParquetSink) or bool(sink.matches.list() and sink.rejected.list())


def some(*seqs: int) -> list[pa.RecordBatch]:
    """Make matches in pieces, none of which need have any."""
    rows = [(f"s{seq % 2}", seq, f"p{seq}", seq + 1) for seq in seqs]
    whole = pa.RecordBatch.from_pylist(
        [dict(zip(MATCHES.names, row, strict=True)) for row in rows], schema=MATCHES
    )
    return [whole.slice(0, 1), whole.slice(1, 0), whole.slice(1)]


def seqs_of(sink: Sink) -> list[int]:
    return sorted(matches_of(sink).column("subscription_seq").to_pylist())


def reasons_of(sink: Sink) -> list[str]:
    return sorted(rejected_of(sink).column("reason").to_pylist())


def test_a_batch_that_is_written_again_is_there_once(sink: Sink) -> None:
    for _ in range(2):
        sink.write_matches(4, 0, some(1, 2, 3))
        sink.write_matches(4, 1, some(4, 5))
        sink.write_matches(5, 0, some(6))
        sink.write_rejected(4, "updates", rejected_records([(1, "subscribe", "s", "one")]))
        sink.write_rejected(4, "000", rejected_records([(2, "publish", "p", "two")]))
        sink.write_rejected(5, "000", rejected_records([(3, "publish", "p", "three")]))
    assert seqs_of(sink) == [1, 2, 3, 4, 5, 6]
    assert reasons_of(sink) == ["one", "three", "two"]
    assert matches_of(sink).schema == MATCHES
    assert rejected_of(sink).schema == REJECTED


def test_what_is_written_last_counts_unless_it_cannot_be_replaced(sink: Sink) -> None:
    sink.write_matches(4, 0, some(1, 2, 3))
    sink.write_matches(4, 0, some(2))
    sink.write_rejected(4, "updates", rejected_records([(1, None, None, "one"), (2, None, None, "two")]))
    sink.write_rejected(4, "updates", rejected_records([(2, None, None, "two")]))
    if isinstance(sink, KafkaSink):  # records cannot be replaced: of a part, which is always the same
        assert seqs_of(sink) == [1, 2, 3]
        assert reasons_of(sink) == ["one", "two"]
    else:
        assert seqs_of(sink) == [2]
        assert reasons_of(sink) == ["two"]


def test_matches_come_back_as_they_were_written(sink: Sink) -> None:
    written = some(*range(300))
    assert sink.write_matches(1, 0, iter(written)) == 300
    assert matches_of(sink).combine_chunks().equals(pa.Table.from_batches(written).combine_chunks())


def test_pieces_that_cannot_all_be_made_leave_what_was_there_before(sink: Sink) -> None:
    def pieces() -> Iterator[pa.RecordBatch]:
        yield from some(5, 6)
        raise StateError("no more")

    sink.write_matches(1, 0, some(1))
    for batch_id in (1, 2):
        with pytest.raises(StateError, match="no more"):
            sink.write_matches(batch_id, 0, pieces())
    assert seqs_of(sink) == [1]


def test_an_output_of_nothing_has_its_schema(sink: Sink) -> None:
    assert sink.write_matches(1, 0, some()) == sink.write_matches(2, 0, []) == 0
    sink.write_rejected(1, "000", rejected_records([]))
    for _ in range(2):
        sink.finish()
        assert is_readable(sink)
        assert (seqs_of(sink), reasons_of(sink)) == ([], [])
        assert (matches_of(sink).schema, rejected_of(sink).schema) == (MATCHES, REJECTED)
    sink.write_matches(2, 0, some(1))
    sink.finish()
    assert seqs_of(sink) == [1]


def test_a_sink_belongs_to_one_job_until_it_is_cleared(sink: Sink) -> None:
    sink.claim("one")
    sink.claim("one")
    sink.write_matches(1, 0, some(1))
    sink.write_rejected(1, "updates", rejected_records([(1, None, None, "one")]))
    with pytest.raises(StateError, match=r"belongs? to another job"):
        sink.claim("two")
    assert (seqs_of(sink), reasons_of(sink)) == ([1], ["one"])
    sink.clear()
    assert (seqs_of(sink), reasons_of(sink)) == ([], [])
    sink.claim("two")
    with pytest.raises(StateError, match=r"belongs? to another job"):
        sink.claim("one")
    sink.write_matches(0, 0, some(9))
    sink.write_rejected(1, "updates", rejected_records([(1, None, None, "new")]))
    assert (seqs_of(sink), reasons_of(sink)) == ([9], ["new"]), "the batches of the job before do not count"
