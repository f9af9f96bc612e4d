"""Positions are one order: updates by offset and row, adjustments behind them, publications in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ps2stream.kafka.numbering import MAX_ROWS
from ps2stream.model.schemas import AFTER_ALL_SEQS
from ps2stream.resident.positions import (
    NOTHING_YET,
    adjustment_seq,
    last_update_seq,
    offset_of,
    position_after,
    position_as_of,
    update_seq,
)

offsets = st.integers(0, 1 << 44)
rows = st.integers(0, MAX_ROWS - 1)


@given(offsets, rows, offsets, rows)
def test_seqs_are_in_the_order_of_offsets_and_rows_and_tell_their_offsets(
    offset: int, row: int, other: int, other_row: int
) -> None:
    one, two = update_seq(offset, row), update_seq(other, other_row)
    assert (one < two) == ((offset, row) < (other, other_row))
    assert one % 2 == 0
    assert offset_of(one) == offset
    assert NOTHING_YET < one <= last_update_seq(offset) < update_seq(offset + 1) <= AFTER_ALL_SEQS


@given(offsets, st.integers(1, 20))
def test_adjustments_stand_between_the_updates_of_two_records_each_at_a_seq_of_its_own(
    offset: int, n: int
) -> None:
    seqs = [last_update_seq(offset)]
    for _ in range(n):
        seqs.append(adjustment_seq(seqs[-1]))
    assert seqs == sorted(set(seqs))
    assert all(seq % 2 == 0 and seq < update_seq(offset + 1) for seq in seqs)


def test_an_adjustment_before_all_updates_has_a_place() -> None:
    assert NOTHING_YET < adjustment_seq(NOTHING_YET) < update_seq(0)


@given(offsets, rows)
def test_a_publication_sees_what_it_stands_behind_and_nothing_else(offset: int, row: int) -> None:
    seq = update_seq(offset, row)
    assert seq < position_after(seq) < seq + 2
    assert position_as_of(seq) == position_after(seq)
    assert position_as_of(position_after(seq)) == position_after(seq)


def test_behind_all_there_is_still_a_position() -> None:
    assert position_after(AFTER_ALL_SEQS) == AFTER_ALL_SEQS
