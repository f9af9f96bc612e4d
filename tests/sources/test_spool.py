"""A spool has what of a stream's events came in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engines.streams import batches_of, events_of, publish, random_stream, subscribe, unsubscribe
from ps2stream.errors import SchemaError
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.sources.spool import Spool, in_arrival_order, spool, spool_without_seq
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


def without_seq(*rows: dict[str, Any]) -> pa.RecordBatch:
    return events_of(*rows).drop_columns("seq")


def test_events_without_seq_are_numbered_updates_first_by_partition_and_row(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    first = [
        without_seq(publish(0, "p"), subscribe(0, "a")),
        without_seq(publish(0, "q"), publish(0, "r"), unsubscribe(0, "a")),
    ]
    second = [without_seq(subscribe(0, "b"), publish(0, "s"))]
    tasks: list[list[pa.RecordBatch]] = [first, [], second]
    parts = [spool_without_seq(part, store.under(f"{n}")) for n, part in enumerate(tasks)]
    placed = in_arrival_order(parts, after=10)
    updates = pa.Table.from_batches([part[0] for each in placed for part in each.updates()])
    assert updates.select(["seq", "id"]).to_pylist() == [
        {"seq": 11, "id": "a"},
        {"seq": 12, "id": "a"},
        {"seq": 13, "id": "b"},
    ]
    publications = pa.Table.from_batches([part[0] for each in placed for part in each.publications()])
    assert publications.select(["seq", "id"]).to_pylist() == [
        {"seq": 14, "id": "p"},
        {"seq": 15, "id": "q"},
        {"seq": 16, "id": "r"},
        {"seq": 17, "id": "s"},
    ]
    assert max(each.last_seq for each in placed) == 17


@pytest.mark.parametrize(
    ("n_events", "last_seqs"),
    [
        ([(0, 0)], [10]),
        ([(2, 0)], [12]),
        ([(0, 2)], [12]),
        ([(1, 1), (1, 1)], [13, 14]),
        ([(1, 0), (0, 0), (0, 1)], [11, 11, 12]),
    ],
)
def test_the_last_seq_of_numbered_events_is_that_of_the_last(
    n_events: list[tuple[int, int]], last_seqs: list[int], tmp_path: Path
) -> None:
    store = DirectoryStore(tmp_path)
    parts = [Spool(store, n_publications, n_updates, 0) for n_updates, n_publications in n_events]
    assert [each.last_seq for each in in_arrival_order(parts, after=10)] == last_seqs


def test_numbers_begin_with_one_and_do_not_depend_on_how_rows_are_cut(tmp_path: Path) -> None:
    store, events = DirectoryStore(tmp_path), random_stream(60, 5).drop_columns("seq")
    whole = in_arrival_order([spool_without_seq([events], store.under("whole"))], BEFORE_ALL_SEQS)
    pieces = batches_of(events, 7)
    cut = in_arrival_order([spool_without_seq(pieces, store.under("cut"))], BEFORE_ALL_SEQS)
    apart = [spool_without_seq([piece], store.under(f"{n}")) for n, piece in enumerate(pieces)]
    publications, updates, _ = read(whole)
    assert sorted(updates + publications) == list(range(1, events.num_rows + 1))
    assert read(cut) == read(in_arrival_order(apart, BEFORE_ALL_SEQS)) == read(whole)


def test_a_seq_that_nobody_asked_for_is_not_looked_at(tmp_path: Path) -> None:
    spooled = spool_without_seq([events_of(publish(99, "p"))], DirectoryStore(tmp_path / "part"))
    assert read(in_arrival_order([spooled], after=4)) == ([5], [], [])


def test_spooling_without_seq_needs_all_other_columns(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="column 'op'"):
        spool_without_seq([pa.RecordBatch.from_pylist([{"x": 1}])], DirectoryStore(tmp_path / "part"))
