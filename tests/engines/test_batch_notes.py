"""Notes that are put off are written together, before anything rests on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ps2stream.engines.batch_notes import BatchNotes, SettledHosts
from ps2stream.state.ledger import BatchRange, Ledger
from ps2stream.state.state import State

FIRST, SECOND = BatchRange(0, (0,), (3,)), BatchRange(1, (3,), (9,))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return State.at(tmp_path).ledger


def test_who_is_not_lazy_notes_at_once(ledger: Ledger) -> None:
    notes = BatchNotes(ledger)
    notes.begin(FIRST)
    assert ledger.begun() == FIRST
    notes.finish(0, 30)
    assert (ledger.finished(), ledger.last_seq()) == (0, 30)


def test_the_end_of_a_batch_is_noted_with_the_next_decision(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, written = BatchNotes(ledger, is_lazy=True), list[object]()
    original = Ledger._write

    def write(ledger: Ledger, said: Any) -> None:
        written.append(said)
        original(ledger, said)

    monkeypatch.setattr(Ledger, "_write", write)
    notes.begin(FIRST)
    assert ledger.begun() is None
    notes.decide_unchanged(0)
    assert (ledger.begun(), ledger.decided(), ledger.finished()) == (FIRST, 0, -1)
    notes.finish(0, 30)
    assert notes.last_seq(0) == 30
    notes.begin(SECOND)
    assert ledger.begun() == FIRST
    notes.decide_unchanged(1)
    assert (ledger.begun(), ledger.decided(), ledger.finished(), ledger.last_seq()) == (SECOND, 1, 0, 30)
    assert len(written) == 2
    notes.settle()
    assert len(written) == 2, "there is nothing to note"


def test_the_last_seq_of_earlier_batches_is_that_of_the_ledger(ledger: Ledger) -> None:
    BatchNotes(ledger).finish(4, 77)
    notes = BatchNotes(ledger, is_lazy=True)
    assert notes.last_seq(4) == 77
    notes.finish(5, 99)
    assert (notes.last_seq(5), notes.last_seq(4)) == (99, 77)


def test_nobody_asks_a_worker_before_all_is_noted(ledger: Ledger) -> None:
    notes = BatchNotes(ledger, is_lazy=True)
    host: Any = object()
    hosts = SettledHosts([host], notes)
    notes.finish(0, 30)
    assert len(hosts) == 1
    assert ledger.finished() == -1
    assert hosts[0] is host
    assert ledger.finished() == 0
