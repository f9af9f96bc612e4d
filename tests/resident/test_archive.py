"""The archive has the rows of subscriptions as a dictionary by seq would."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import StateError
from ps2stream.registry.segments import BEGIN, END, SEGMENT
from ps2stream.resident import archive as archive_module
from ps2stream.resident.archive import Archive

pytestmark = pytest.mark.kernel


def segment(*seqs: int) -> pa.RecordBatch:
    """Return a segment that begins subscriptions; all that is odd ends something else."""
    rows = [
        {
            "change": END if seq % 2 else BEGIN,
            "seq_from": seq,
            "seq_to": 0,
            "id": f"s{seq}",
            "min_lon": float(seq),
            "min_lat": 0.0,
            "max_lon": seq + 1.0,
            "max_lat": 1.0,
            "clauses": [[seq, seq + 1]],
            "workers": [0],
        }
        for seq in seqs
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SEGMENT)


steps = st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=12)


@given(steps, st.randoms(use_true_random=False), st.integers(0, 3))
@settings(deadline=None)
def test_an_archive_has_what_a_dictionary_would(
    drawn: list[tuple[int, bool]], random: object, many: int
) -> None:
    archive, known, seq = Archive(), dict[int, str](), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive_module, "_MANY", many)
        for n, forgets in drawn:
            seqs = list(range(seq, seq + n))
            seq += n
            archive.add(segment(*seqs))
            known |= {each: f"s{each}" for each in seqs if each % 2 == 0}
            if forgets:
                kept = [each for each in sorted(known) if random.random() < 0.5]  # type: ignore[attr-defined]
                archive.sealed()
                rows = archive.rows(np.array(kept, np.int64))
                later = range(seq, seq + n)
                seq += n
                archive.add(segment(*later))
                archive.replace_sealed(rows)
                known = {each: f"s{each}" for each in (*kept, *later) if each % 2 == 0}
            some = np.array(
                [each for each in sorted(known) if random.random() < 0.7],  # type: ignore[attr-defined]
                np.int64,
            )
            rows = archive.rows(some)
            assert rows.column("seq_from").to_pylist() == some.tolist()
            assert rows.column("id").to_pylist() == [known[each] for each in some.tolist()]


def test_subscriptions_are_handed_over_whole_and_in_the_order_of_their_seqs() -> None:
    archive = Archive()
    archive.add(segment(2, 4))
    archive.add(segment(6))
    found = archive.fetch(0, np.array([6, 2]))
    assert found.seq_from.tolist() == [2, 6]
    assert found.terms.tolist() == [2, 3, 6, 7]
    assert found.bounds.tolist() == [2, 0, 3, 1, 6, 0, 7, 1]


@pytest.mark.parametrize("seq", [0, 3, 8])
@pytest.mark.parametrize("is_empty", [False, True])
def test_what_is_not_there_is_an_error(seq: int, is_empty: bool) -> None:
    archive = Archive()
    if not is_empty:
        archive.add(segment(2, 4))
    with pytest.raises(StateError, match="does not know a subscription"):
        archive.rows(np.array([seq]))


def test_many_small_batches_are_joined() -> None:
    archive = Archive()
    for seq in range(0, 2_000, 2):
        archive.add(segment(seq))
    assert len(archive._batches) < 300
    assert archive.rows(np.arange(0, 2_000, 2)).num_rows == 1_000


def test_what_is_forgotten_is_not_held_in_memory_by_what_is_kept() -> None:
    archive = Archive()
    archive.add(segment(*range(0, 4000, 2)))
    archive.sealed()
    archive.replace_sealed(archive.rows(np.array([2000], np.int64)))
    [batch] = archive._batches
    assert batch.num_rows == 1
    assert batch.get_total_buffer_size() < 10_000
