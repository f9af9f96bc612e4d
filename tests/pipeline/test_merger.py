"""The merger orders, names and delivers each match once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ps2stream.errors import StateError
from ps2stream.model.schemas import MATCHES
from ps2stream.pipeline.merger import Merger
from ps2stream.pipeline.packets import FOUND
from ps2stream.registry.index import Registry


@pytest.fixture
def merger() -> Merger:
    registry = Registry.create()
    registry.apply(np.array([1, 3, 5]), np.array([True, True, True]), pa.array(["a", "b", "ü"]))
    return Merger(registry)


def _found(*rows: tuple[int, str, int]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FOUND, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FOUND)


def test_matches_of_all_workers_come_in_the_order_of_publications_then_subscriptions(merger: Merger) -> None:
    merged = merger.merge([_found((9, "q", 5), (7, "p", 3)), _found(), _found((9, "q", 1), (7, "p", 1))])
    assert merged.schema == MATCHES
    assert [tuple(row.values()) for row in merged.to_pylist()] == [
        ("a", 1, "p", 7),
        ("b", 3, "p", 7),
        ("a", 1, "q", 9),
        ("ü", 5, "q", 9),
    ]


def test_a_match_that_is_found_twice_is_delivered_once(merger: Merger) -> None:
    merged = merger.merge([_found((7, "p", 3), (7, "p", 3)), _found((7, "p", 3), (8, "p", 3))])
    assert [tuple(row.values()) for row in merged.to_pylist()] == [("b", 3, "p", 7), ("b", 3, "p", 8)]


def test_no_matches_are_an_empty_delivery(merger: Merger) -> None:
    for found in ([], [_found()], [_found(), _found()]):
        merged = merger.merge(found)
        assert merged.schema == MATCHES
        assert merged.num_rows == 0


def test_a_subscription_that_nobody_knows_is_an_error(merger: Merger) -> None:
    with pytest.raises(StateError, match="does not know"):
        merger.merge([_found((7, "p", 4))])


def test_two_publications_with_one_seq_are_both_delivered(merger: Merger) -> None:
    merged = merger.merge([_found((7, "p", 3), (7, "q", 3)), _found((7, "q", 3))])
    assert [tuple(row.values()) for row in merged.to_pylist()] == [("b", 3, "p", 7), ("b", 3, "q", 7)]


@pytest.mark.parametrize(("n_publications", "n_subscriptions"), [(1, 400), (3, 49), (200, 5), (40, 60)])
def test_the_order_does_not_depend_on_how_many_matches_a_publication_has(
    n_publications: int, n_subscriptions: int
) -> None:
    registry = Registry.create()
    seqs = np.arange(0, 7 * n_subscriptions, 7)
    ids = pa.array([f"s{seq}" for seq in seqs])
    registry.apply(seqs, np.ones(n_subscriptions, np.bool_), ids)
    pairs = [(10_000 + p, int(s)) for p in range(n_publications) for s in seqs]
    rng = np.random.default_rng(n_publications)
    workers = rng.integers(0, 4, len(pairs))
    shuffled = [pairs[i] for i in rng.permutation(len(pairs))]
    found = [
        _found(*((p, f"p{p}", s) for (p, s), at in zip(shuffled, workers, strict=True) if at == worker))
        for worker in range(4)
    ]
    merged = Merger(registry).merge(found)
    delivered = [(row["publication_seq"], row["subscription_seq"]) for row in merged.to_pylist()]
    assert delivered == pairs
    assert merged.column("subscription_id").to_pylist() == [f"s{s}" for _, s in pairs]
