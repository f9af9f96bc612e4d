"""The merger orders, names and delivers each match once."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import StateError
from ps2stream.model.schemas import MATCHES
from ps2stream.registry.index import Registry
from ps2stream.roles.merger import Merger
from ps2stream.roles.packets import FOUND, decode, encode
from sizes import examples

pytestmark = pytest.mark.kernel

NAMES = {1: "a", 3: "b", 5: "ü", 8: "", 9: "a long id that takes several words", 12: "日本"}
Run = tuple[int, str, list[int]]
Delivery = tuple[str, int, str, int]


@pytest.fixture
def merger() -> Merger:
    return _merger()


def _merger() -> Merger:
    registry = Registry.create()
    ids = pa.array(list(NAMES.values()), pa.string())
    registry.apply(np.array(list(NAMES)), np.ones(len(NAMES), np.bool_), ids)
    return Merger(registry)


def _found(*runs: Run) -> pa.RecordBatch:
    columns = zip(*runs, strict=True) if runs else ((), (), ())
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FOUND, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FOUND)


def _delivered(merged: pa.Table | pa.RecordBatch) -> list[Delivery]:
    return [tuple(row.values()) for row in merged.to_pylist()]


def test_matches_of_all_workers_come_in_the_order_of_publications_then_subscriptions(merger: Merger) -> None:
    merged = merger.merge(
        [_found((9, "q", [5]), (7, "p", [3])), _found(), _found((9, "q", [1]), (7, "p", [1]))]
    )
    assert merged.schema == MATCHES
    assert _delivered(merged) == [("a", 1, "p", 7), ("b", 3, "p", 7), ("a", 1, "q", 9), ("ü", 5, "q", 9)]


def test_a_match_that_is_found_twice_is_delivered_once(merger: Merger) -> None:
    merged = merger.merge([_found((7, "p", [3, 3])), _found((7, "p", [3]), (8, "p", [3, 3, 5]))])
    assert _delivered(merged) == [("b", 3, "p", 7), ("b", 3, "p", 8), ("ü", 5, "p", 8)]


def test_no_matches_are_an_empty_delivery(merger: Merger) -> None:
    for found in ([], [_found()], [_found(), _found()]):
        merged = merger.merge(found)
        assert merged.schema == MATCHES
        assert merged.num_rows == 0


def test_a_subscription_that_nobody_knows_is_an_error(merger: Merger) -> None:
    with pytest.raises(StateError, match="does not know"):
        merger.merge([_found((7, "p", [4]))])


def test_two_publications_with_one_seq_are_both_delivered(merger: Merger) -> None:
    merged = merger.merge([_found((7, "q", [3]), (7, "p", [3])), _found((7, "q", [3]))])
    assert _delivered(merged) == [("b", 3, "p", 7), ("b", 3, "q", 7)]


runs = st.tuples(
    st.integers(-3, 3),
    st.sampled_from(["p", "pq", "", "ü", "a publication with a long name"]),
    st.lists(st.sampled_from(sorted(NAMES)), min_size=1, max_size=8).map(sorted),
)
found_by_workers = st.lists(st.lists(runs, max_size=6), max_size=4)


def _expected(found: list[list[Run]]) -> list[Delivery]:
    matches = defaultdict(set)
    for seq, name, subscriptions in (run for worker in found for run in worker):
        matches[seq, name.encode()].update(subscriptions)
    return [
        (NAMES[subscription], subscription, name.decode(), seq)
        for seq, name in sorted(matches)
        for subscription in sorted(matches[seq, name])
    ]


@given(found_by_workers)
@settings(max_examples=examples(150), deadline=None)
def test_the_merger_delivers_what_a_set_of_matches_would(found: list[list[Run]]) -> None:
    merged = _merger().merge([decode(encode(_found(*worker))) for worker in found])
    assert _delivered(merged) == _expected(found)


@given(found_by_workers, st.integers(1, 3))
@settings(max_examples=examples(50), deadline=None)
def test_several_mergers_that_part_the_publications_deliver_what_one_would(
    found: list[list[Run]], n_mergers: int
) -> None:
    merger = _merger()
    parts = []
    for number in range(n_mergers):
        own = [[run for run in worker if run[0] % n_mergers == number] for worker in found]
        part = _delivered(merger.merge([_found(*worker) for worker in own]))
        assert part == _expected(own), "each in the order of publications"
        parts += part
    assert sorted(parts) == sorted(_expected(found))


@given(found_by_workers, st.integers(1, 9))
@settings(max_examples=examples(100), deadline=None)
def test_pieces_are_the_same_deliveries_cut_where_they_are_full(
    found: list[list[Run]], max_piece: int
) -> None:
    batches = [_found(*worker) for worker in found]
    pieces = list(Merger(_merger()._naming, max_piece).pieces(batches))
    assert [row for piece in pieces for row in _delivered(piece)] == _expected(found)
    assert all(piece.schema == MATCHES for piece in pieces)
    assert all(piece.num_rows == max_piece for piece in pieces[:-1])
    assert all(0 < piece.num_rows <= max_piece for piece in pieces[-1:])


def test_slices_are_merged_like_batches_of_their_own(merger: Merger) -> None:
    whole = _found((7, "p", [1, 3]), (8, "q", [5]), (9, "r", [3, 5]))
    merged = merger.merge([whole.slice(1, 1), whole.slice(2)])
    assert _delivered(merged) == [("ü", 5, "q", 8), ("b", 3, "r", 9), ("ü", 5, "r", 9)]


@pytest.mark.parametrize(("n_publications", "n_subscriptions"), [(1, 400), (3, 49), (40, 60)])
def test_the_order_does_not_depend_on_how_many_matches_a_publication_has(
    n_publications: int, n_subscriptions: int
) -> None:
    registry = Registry.create()
    seqs = np.arange(0, 7 * n_subscriptions, 7)
    registry.apply(seqs, np.ones(n_subscriptions, np.bool_), pa.array([f"s{seq}" for seq in seqs]))
    worker = np.random.default_rng(n_publications).integers(0, 4, (n_publications, n_subscriptions))
    found = [
        _found(*((10_000 + p, f"p{p}", seqs[worker[p] == each].tolist()) for p in range(n_publications)))
        for each in range(4)
    ]
    merged = Merger(registry).merge(found)
    expected = [(10_000 + p, int(seq)) for p in range(n_publications) for seq in seqs]
    assert [(row["publication_seq"], row["subscription_seq"]) for row in merged.to_pylist()] == expected
    assert merged.column("subscription_id").to_pylist() == [f"s{seq}" for _, seq in expected]


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(1, 9), st.lists(st.sampled_from(list(NAMES)), unique=True)), max_size=6
        ),
        max_size=4,
    ),
    st.integers(1, 5),
)
@settings(deadline=None)
def test_one_worker_delivers_in_the_order_of_its_packets_what_a_merger_would(
    drawn: list[list[tuple[int, list[int]]]], max_piece: int
) -> None:
    number = iter(range(100))
    runs = [[(seq, f"p{next(number)}", sorted(seqs)) for seq, seqs in batch if seqs] for batch in drawn]
    merger = Merger(_merger()._naming, max_piece)
    pieces = list(merger.in_order([_found(*batch) for batch in runs]))
    assert all(0 < piece.num_rows <= max_piece for piece in pieces)
    delivered = [each for piece in pieces for each in _delivered(piece)]
    assert delivered == [
        (NAMES[seq], seq, id, position) for batch in runs for position, id, seqs in batch for seq in seqs
    ]
    merged = _delivered(merger.merge([_found(*batch) for batch in runs]))
    assert sorted(delivered) == sorted(merged)


def test_publications_that_share_a_position_and_an_id_are_each_delivered_by_a_worker(merger: Merger) -> None:
    (piece,) = merger.in_order([_found((7, "p", [1]), (7, "p", [1, 3]))])
    assert _delivered(piece) == [("a", 1, "p", 7), ("a", 1, "p", 7), ("b", 3, "p", 7)]
