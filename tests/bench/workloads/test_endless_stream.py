"""An endless stream has the same subscriptions alive whenever it starts over."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa
import pytest

from ps2stream_bench.workloads import Corpus, endless_parts, mixed_events, taken_back

N_LIVE = 40


@pytest.fixture
def parts(corpus: Corpus) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    (events,) = mixed_events(corpus, "q1", N_LIVE, 3 * N_LIVE, 7).combine_chunks().to_batches()
    return events.slice(0, N_LIVE), events.slice(N_LIVE)


def alive(start: dict[str, str], events: pa.RecordBatch) -> dict[str, str]:
    """Return the expressions of the subscriptions that live after some events, by id."""
    found = dict(start)
    for row in events.to_pylist():
        if row["op"] == "subscribe":
            assert row["id"] not in found
            found[row["id"]] = row["expression"]
        elif row["op"] == "unsubscribe":
            del found[row["id"]]
    return found


def test_what_a_part_changes_the_next_takes_back(parts: tuple[pa.RecordBatch, pa.RecordBatch]) -> None:
    loading, mixed = parts
    loaded = alive({}, loading)
    changed = alive(loaded, mixed)
    assert changed != loaded
    assert len(changed) == len(loaded) == N_LIVE
    assert alive(changed, taken_back(loading, mixed)) == loaded


def test_publications_come_again_as_they_were(parts: tuple[pa.RecordBatch, pa.RecordBatch]) -> None:
    loading, mixed = parts
    back = taken_back(loading, mixed)
    columns = ["op", "id", "lat", "lon", "text"]
    first, second = (
        [row for row in each.select(columns).to_pylist() if row["op"] == "publish"] for each in (mixed, back)
    )
    assert first == second
    assert back.num_rows == mixed.num_rows


def test_parts_go_on_without_end(parts: tuple[pa.RecordBatch, pa.RecordBatch]) -> None:
    loading, mixed = parts
    found = list(islice(endless_parts(loading, mixed, 50), 20))
    assert max(part.num_rows for part in found) == 50
    assert sum(part.num_rows for part in found) > 4 * mixed.num_rows


def test_a_mix_that_ends_what_it_began_cannot_be_taken_back(corpus: Corpus) -> None:
    (events,) = mixed_events(corpus, "q1", 4, 400, 7).combine_chunks().to_batches()
    with pytest.raises(ValueError, match="ends only what was loaded"):
        taken_back(events.slice(0, 4), events.slice(4))
