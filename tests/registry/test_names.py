"""Names are learnt and forgotten as in a dictionary, and their memory is used again."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import StateError
from ps2stream.model.limits import MAX_ID_BYTES
from ps2stream.registry.names import Names
from sizes import examples

pytestmark = pytest.mark.kernel

IDS = ["a", "eight by", "nine byte", "ü", "a" * 300, "\x00", "日本", "x" * MAX_ID_BYTES]
#: Some are far apart, some are next to each other, and some are negative.
SEQS = [*range(40), *(1 << 40 | n << 20 for n in range(5)), -7, -(1 << 60)]

steps = st.lists(st.lists(st.sampled_from(SEQS), unique=True, max_size=8), max_size=12)


def _enter(names: Names, named: dict[int, str]) -> None:
    names.enter(np.array(list(named), np.int64), pa.array(list(named.values()), pa.string()))


def _named(names: Names, seqs: list[int]) -> list[str]:
    found: list[str] = names.ids(np.array(seqs, np.int64)).to_pylist()
    return found


@given(steps, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=examples(100))
def test_names_are_known_in_whatever_order_they_come_and_go(drawn: list[list[int]], random: Any) -> None:
    """As a worker learns them: some begin, some move in from elsewhere, some end or move out, some return."""
    names, known, ends = Names(), dict[int, str](), dict[int, int]()
    for at, all_seqs in enumerate(drawn):
        seqs = [seq for seq in all_seqs if seq not in ends]
        entered = {seq: IDS[seq % len(IDS)] + str(seq // len(IDS)) for seq in seqs if seq % 8 != 7}
        entered |= {seq: IDS[7] for seq in seqs if seq % 8 == 7}
        _enter(names, entered)
        known |= entered
        gone = [seq for seq in known if seq not in ends and random.random() < 0.3]
        names.end(np.array(gone, np.int64), np.full(len(gone), at))
        ends |= dict.fromkeys(gone, at)
        if random.random() < 0.5:
            horizon = at - random.randint(0, 3)
            names.forget(horizon)
            known = {seq: id for seq, id in known.items() if seq not in ends or ends[seq] > horizon}
        if random.random() < 0.2:
            dropped = [seq for seq in [*known, 10**9] if random.random() < 0.3]
            names.drop(np.array(dropped, np.int64))
            known = {seq: id for seq, id in known.items() if seq not in dropped}
        assert len(names) == len(known)
        assert _named(names, list(known)) == list(known.values())


def test_a_table_stays_as_large_as_what_it_holds_however_much_comes_and_goes() -> None:
    names, rng, live = Names(), random.Random(1), dict[int, str]()
    seq = 0
    sizes = []
    for turn in range(40):
        begun = {seq + n: "i" * rng.choice((3, 9, 20)) + str(seq + n) for n in range(200)}
        seq += 200
        _enter(names, begun)
        live |= begun
        gone = rng.sample(list(live), len(live) - 300) if len(live) > 300 else []
        names.end(np.array(gone, np.int64), np.full(len(gone), turn))
        names.forget(turn)
        for each in gone:
            del live[each]
        assert _named(names, list(live)) == list(live.values())
        sizes.append(names.n_bytes)
    assert len(names) == 300
    assert sizes[-1] <= 1.3 * sizes[3]


def test_a_name_that_is_known_stays_as_it_is() -> None:
    names = Names()
    _enter(names, {5: "five"})
    _enter(names, {5: "other", 6: "six"})
    assert _named(names, [6, 5, 5]) == ["six", "five", "five"]
    assert len(names) == 2


def test_what_ends_is_known_until_no_earlier_publication_can_come() -> None:
    names = Names()
    _enter(names, {1: "a", 2: "b", 3: "c"})
    names.end(np.array([1, 2]), np.array([10, 20]))
    names.forget(19)
    assert _named(names, [1, 2, 3]) == ["a", "b", "c"]
    names.forget(20)
    assert len(names) == 1


def test_who_moved_out_may_come_back_and_end() -> None:
    names = Names()
    _enter(names, {1: "a", 2: "b"})
    names.drop(np.array([2]))
    _enter(names, {1: "a", 2: "b"})
    names.end(np.array([1]), np.array([10]))
    names.forget(10)
    assert _named(names, [2]) == ["b"]
    with pytest.raises(StateError, match="does not know"):
        names.ids(np.array([2, 1]))


def test_no_seqs_have_no_names() -> None:
    names = Names()
    names.enter(np.empty(0, np.int64), pa.array([], pa.string()))
    names.end(np.empty(0, np.int64), np.empty(0, np.int64))
    names.forget(1 << 60)
    assert _named(names, []) == []
