from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import JournalError, SchemaError
from ps2stream.journal import Appended, End, Journal, PacketSpan, database, packets
from ps2stream.journal.packets import decode_publications, decode_updates
from ps2stream.model.schemas import EVENTS

MakeEvents = Callable[..., pa.RecordBatch]


def seqs_and_ids(journal: Journal) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for packet in journal.read(0, journal.last().position):
        assert packet.damage is None
        for batch in (decode_updates(packet.updates), decode_publications(packet.publications)):
            found += zip(batch.column("seq").to_pylist(), batch.column("id").to_pylist(), strict=True)
    return sorted(found)


def with_seqs(events: pa.RecordBatch, seqs: list[int | None]) -> pa.RecordBatch:
    return events.set_column(0, EVENTS.field("seq"), pa.array(seqs, pa.int64()))


def test_a_new_journal_is_empty(journal: Journal) -> None:
    assert journal.last() == End(position=0, seq=0)
    assert journal.end_within(0, 100) == 0
    assert journal.spans(0, 0) == []
    assert list(journal.read(0, 0)) == []
    assert journal.prune(10) == 0


def test_what_is_appended_is_read_in_order(journal: Journal, make_events: MakeEvents) -> None:
    before_us = time.time_ns() // 1_000
    assert journal.append(make_events(4, "a")) == Appended(position=1, first_seq=1, last_seq=4)
    assert journal.append(pa.Table.from_batches([make_events(2, "b")])) == Appended(2, 5, 6)
    assert journal.last() == End(position=2, seq=6)
    first, second = journal.read(0, 2)
    assert (first.position, first.first_seq, first.last_seq) == (1, 1, 4)
    assert before_us <= first.appended_us <= second.appended_us <= time.time_ns() // 1_000
    assert decode_updates(first.updates).to_pylist() == [
        {
            "seq": 3,
            "op": "subscribe",
            "id": "a2",
            "expression": "fire OR flood",
            "min_lon": -1.0,
            "min_lat": -2.0,
            "max_lon": 3.0,
            "max_lat": 4.0,
        }
    ]
    assert decode_publications(first.publications).column("seq").to_pylist() == [1, 2, 4]
    assert seqs_and_ids(journal) == list(enumerate(["a0", "a1", "a2", "a3", "b0", "b1"], start=1))


def test_a_column_of_seqs_is_ignored_or_absent(journal: Journal, make_events: MakeEvents) -> None:
    events = make_events(2)
    journal.append(with_seqs(events, [77, None]))
    journal.append(events.drop_columns(["seq"]))
    assert [seq for seq, _ in seqs_and_ids(journal)] == [1, 2, 3, 4]


def test_an_empty_append_makes_no_packet(journal: Journal, make_events: MakeEvents) -> None:
    assert journal.append(make_events(0)) == Appended(position=0, first_seq=1, last_seq=0)
    journal.append(make_events(3))
    assert journal.append(make_events(0)) == Appended(position=1, first_seq=4, last_seq=3)
    assert journal.append_ordered(make_events(0)) == Appended(position=1, first_seq=4, last_seq=3)
    assert journal.last() == End(1, 3)


def test_events_of_nulls_are_kept_as_updates(journal: Journal) -> None:
    journal.append(pa.RecordBatch.from_pylist([{}, {"op": "dance", "id": ""}], schema=EVENTS))
    (packet,) = journal.read(0, 1)
    assert packet.publications is None
    updates = decode_updates(packet.updates)
    assert updates.column("seq").to_pylist() == [1, 2]
    assert updates.column("op").to_pylist() == [None, "dance"]
    assert updates.column("id").to_pylist() == [None, ""]


def test_a_large_append_becomes_several_packets_at_once(
    journal: Journal, make_events: MakeEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packets, "MAX_PACKET_EVENTS", 10)
    assert journal.append(make_events(25)) == Appended(position=3, first_seq=1, last_seq=25)
    assert [span.n_events for span in journal.spans(0, 3)] == [10, 10, 5]
    assert seqs_and_ids(journal) == [(number + 1, f"e{number}") for number in range(25)]


def test_an_append_that_fails_half_way_leaves_nothing(
    journal: Journal, make_events: MakeEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(make_events(2))
    encode_packet = packets.encode_packet

    def fail_on_the_second(batch: pa.RecordBatch) -> packets.EncodedPacket:
        if batch.column("seq")[0].as_py() > 12:
            raise MemoryError
        return encode_packet(batch)

    with monkeypatch.context() as patched:
        patched.setattr(packets, "MAX_PACKET_EVENTS", 10)
        patched.setattr("ps2stream.journal.journal.encode_packet", fail_on_the_second)
        with pytest.raises(MemoryError):
            journal.append(make_events(20))
    assert journal.last() == End(1, 2)
    assert journal.append(make_events(1)) == Appended(2, 3, 3)


def test_ordered_appends_keep_their_seqs(journal: Journal, make_events: MakeEvents) -> None:
    events = make_events(3)
    assert journal.append_ordered(with_seqs(events, [5, 6, 90])) == Appended(1, 5, 90)
    assert journal.append(make_events(1, "n")) == Appended(2, 91, 91)
    assert seqs_and_ids(journal) == [(5, "e0"), (6, "e1"), (90, "e2"), (91, "n0")]


def test_the_first_ordered_append_may_begin_at_any_seq(journal: Journal, make_events: MakeEvents) -> None:
    assert journal.append_ordered(with_seqs(make_events(3), [-7, 0, 2])) == Appended(1, -7, 2)
    assert journal.append_ordered(with_seqs(make_events(1), [3])) == Appended(2, 3, 3)


@pytest.mark.parametrize(
    ("seqs", "message"),
    [
        ([10, 11, 12], "must be above 10; got 10"),
        ([-1, 11, 12], "must be above 10; got -1"),
        ([11, 11, 12], "must increase"),
        ([13, 12, 14], "must increase"),
        ([11, None, 12], "must not be null"),
    ],
)
def test_ordered_appends_refuse_seqs_out_of_order(
    journal: Journal, make_events: MakeEvents, seqs: list[int | None], message: str
) -> None:
    journal.append(make_events(10))
    with pytest.raises(JournalError, match=message):
        journal.append_ordered(with_seqs(make_events(3), seqs))
    assert journal.last() == End(1, 10)


@given(sizes=st.lists(st.integers(1, 9), max_size=8), after=st.integers(0, 8), max_events=st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_end_within_takes_what_fits_and_at_least_one(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], after: int, max_events: int
) -> None:
    after = min(after, len(sizes))
    with Journal.open(tmp_path_factory.mktemp("j"), create=True, durable=False) as journal:
        for size in sizes:
            journal.append(pa.RecordBatch.from_pylist([{"op": "publish"}] * size, schema=EVENTS))
        fitting = [upto for upto in range(after, len(sizes) + 1) if sum(sizes[after:upto]) <= max_events]
        expected = max(*fitting, min(after + 1, len(sizes)), after)
        assert journal.end_within(after, max_events) == expected
        assert [span.n_events for span in journal.spans(after, expected)] == sizes[after:expected]


def test_updates_are_read_without_publications(journal: Journal, make_events: MakeEvents) -> None:
    journal.append(make_events(6))
    (whole,) = journal.read(0, 1)
    (partial,) = journal.read(0, 1, publications=False)
    assert partial.publications is None
    assert partial.damage is None
    assert partial.updates == whole.updates
    assert journal.spans(0, 1) == [PacketSpan(1, 4, 2, last_seq=6, appended_us=whole.appended_us)]


def test_a_range_beyond_the_end_is_refused(journal: Journal, make_events: MakeEvents) -> None:
    journal.append(make_events(1))
    for ask in (
        lambda: journal.spans(0, 2),
        lambda: list(journal.read(1, 2)),
        lambda: journal.end_within(2, 9),
    ):
        with pytest.raises(JournalError, match="ends at position 1; got 2"):
            ask()


def test_pruning_drops_the_oldest_and_says_what_is_left(journal: Journal, make_events: MakeEvents) -> None:
    for number in range(5):
        journal.append(make_events(2, f"p{number}-"))
    assert journal.prune(3) == 3
    assert journal.prune(3) == 0
    assert [packet.position for packet in journal.read(3, 5)] == [4, 5]
    for ask in (
        lambda: journal.spans(2, 5),
        lambda: list(journal.read(0, 5)),
        lambda: journal.end_within(0, 9),
    ):
        with pytest.raises(JournalError, match="was pruned; the oldest one left is 4"):
            ask()


def test_pruning_keeps_the_newest_packet_so_that_seqs_go_on(
    journal: Journal, make_events: MakeEvents
) -> None:
    for _ in range(3):
        journal.append(make_events(2))
    assert journal.prune(99) == 2
    assert journal.last() == End(3, 6)
    assert journal.append(make_events(1)) == Appended(4, 7, 7)


def test_pruning_in_many_steps_gives_the_space_back(
    journal: Journal, make_events: MakeEvents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ps2stream.journal.journal._PRUNE_EVENTS", 250)
    for _ in range(80):
        journal.append(make_events(100, text="x" * 2_000))
    path = tmp_path / "journal" / "journal.sqlite"
    full_bytes = path.stat().st_size
    assert full_bytes > 6_000_000
    assert journal.prune(79) == 79
    assert path.stat().st_size < full_bytes / 10
    assert len(decode_publications(next(iter(journal.read(79, 80))).publications)) == 67


def test_a_read_that_pruning_overtakes_ends_with_an_error(journal: Journal, make_events: MakeEvents) -> None:
    for _ in range(4):
        journal.append(make_events(1))
    packets_read = journal.read(0, 4)
    next(packets_read)
    journal.prune(3)
    with pytest.raises(JournalError, match=r"position 2 .* was pruned; the oldest one left is 4"):
        next(packets_read)


def test_a_paused_reader_does_not_let_the_log_grow(
    journal: Journal, make_events: MakeEvents, tmp_path: Path
) -> None:
    for _ in range(4):
        journal.append(make_events(50))
    with Journal.open(tmp_path / "journal") as other:
        paused = other.read(0, 4)
        next(paused)
        for _ in range(40):
            journal.append(make_events(500, text="x" * 2_000))
        assert database.log_bytes(tmp_path / "journal" / "journal.sqlite") < 30_000_000
        assert next(paused).position == 2


def test_a_log_that_grew_is_cut_back(
    journal: Journal, make_events: MakeEvents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal" / "journal.sqlite"
    monkeypatch.setattr(database, "MAX_LOG_BYTES", 100_000)
    monkeypatch.setattr(database, "_TRUNCATION_TIMEOUT_MS", 10)
    monkeypatch.setattr(journal, "_next_truncation_bytes", 100_000)
    with Journal.open(tmp_path / "journal") as other:
        # A foreign reader with an open snapshot: appends go on, the log waits.
        other._shared_connection.execute("BEGIN")  # type: ignore[union-attr]
        assert other.last() == End(0, 0)
        for _ in range(5):
            journal.append(make_events(100, text="x" * 1_000))
        assert database.log_bytes(path) > 100_000
        other._shared_connection.execute("COMMIT")  # type: ignore[union-attr]
    for _ in range(5):
        journal.append(make_events(100, text="x" * 1_000))
    assert database.log_bytes(path) <= 250_000
    assert journal.last() == End(10, 1_000)


def test_threads_may_share_a_journal(journal: Journal, make_events: MakeEvents) -> None:
    def append(prefix: str) -> None:
        for number in range(20):
            journal.append(make_events(3, f"{prefix}{number}-"))

    threads = [threading.Thread(target=append, args=(prefix,)) for prefix in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = seqs_and_ids(journal)
    assert [seq for seq, _ in found] == list(range(1, 181))
    assert len({event_id for _, event_id in found}) == 180


def test_a_journal_has_one_identity_and_one_that_takes_its_place_has_another(tmp_path: Path) -> None:
    with (
        Journal.open(tmp_path / "journal", create=True, durable=False) as journal,
        ThreadPoolExecutor(4) as pool,
    ):
        [identity] = {each.result() for each in [pool.submit(journal.identity) for _ in range(8)]}
    assert identity
    with Journal.open(tmp_path / "journal") as journal:
        assert journal.identity() == identity
    shutil.rmtree(tmp_path / "journal")
    with Journal.open(tmp_path / "journal", create=True, durable=False) as journal:
        assert journal.identity() != identity


def test_a_closed_journal_says_so(journal: Journal, make_events: MakeEvents) -> None:
    journal.close()
    journal.close()
    with pytest.raises(JournalError, match="is closed"):
        journal.append(make_events(1))


def test_a_journal_does_not_travel_to_other_processes(journal: Journal, make_events: MakeEvents) -> None:
    with pytest.raises(JournalError, match=r"open .* there"):
        pickle.dumps(journal)

    def use_and_exit() -> None:
        try:
            journal.last()
        except JournalError as error:
            journal.close()
            os._exit(0 if "each process must open its own" in str(error) else 1)
        os._exit(2)

    child = multiprocessing.get_context("fork").Process(target=use_and_exit)
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert journal.append(make_events(1)) == Appended(1, 1, 1)


def test_columns_may_come_in_any_order_and_others_are_left_out(
    journal: Journal, make_events: MakeEvents
) -> None:
    events = pa.Table.from_batches([make_events(3)])
    turned = events.select([*reversed(EVENTS.names)]).append_column("extra", pa.array([1, 2, 3]))
    journal.append(turned)
    (packet,) = journal.read(0, 1)
    assert packets.decode_events(packet).column("id").to_pylist() == events.column("id").to_pylist()


def test_a_column_that_is_wrong_is_named_and_nothing_is_appended(
    journal: Journal, make_events: MakeEvents
) -> None:
    events = pa.Table.from_batches([make_events(3)])
    numbered = events.set_column(events.schema.get_field_index("id"), "id", pa.array([1, 2, 3]))
    for spoiled, message in (
        (events.drop_columns(["text"]), r"column 'text' \(string\) is missing"),
        (numbered, "column 'id' must be string; got int64"),
        (events.append_column("id", events.column("id")), "column 'id' must be there once; got it 2 times"),
    ):
        with pytest.raises(SchemaError, match=message):
            journal.append(spoiled)
    assert journal.last().position == 0
