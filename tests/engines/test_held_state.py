"""A state is held by one driver: what ends one that was taken over is told as that."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ps2stream.engines.held_state import HeldState, held_state
from ps2stream.errors import EngineError, FencedError, StateError
from ps2stream.state.epochs import Epochs
from ps2stream.state.lease import LeaseTerms
from ps2stream.store.urls import store_at
from waiting import HANG_S


@pytest.fixture(autouse=True)
def local_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PS2STREAM_LOCAL_DIR", str(tmp_path / "local"))


def holding(where: Path) -> Any:
    return held_state(where, on_cluster=True)


def fail(where: Path, meanwhile: Callable[[], object]) -> None:
    """Let something happen to a driver, and let it fail."""
    with holding(where) as held:
        held.start()
        meanwhile()
        raise EngineError("plan 3 is missing")


def ask_until_fenced(held: HeldState) -> None:
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        held.check()
        time.sleep(0.01)


def test_every_start_of_a_job_is_an_epoch_and_the_one_before_it_can_write_nothing(tmp_path: Path) -> None:
    with holding(tmp_path / "state") as held:
        first, second = held.start(), held.start()
        held.check()
        assert (first.epoch, second.epoch) == (1, 2)
        with pytest.raises(FencedError):
            first.store.put("late", b"")


def test_whatever_fails_in_a_driver_that_was_taken_over_that_is_the_reason(tmp_path: Path) -> None:
    epochs = Epochs(store_at(tmp_path / "state").under("epochs"))
    with pytest.raises(FencedError, match="another driver has taken over from epoch 1") as caught:
        fail(tmp_path / "state", lambda: epochs.claim(2, "second"))
    assert str(caught.value.__cause__) == "plan 3 is missing"


def test_a_driver_that_has_nothing_to_do_learns_by_its_lease_that_it_was_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LeaseTerms, "renew_s", 0.02)
    epochs = Epochs(store_at(tmp_path / "state").under("epochs"))
    with holding(tmp_path / "state") as held:
        held.start()
        held.check()
        assert epochs.claim(2, "second")
        with pytest.raises(FencedError, match="another driver has taken over from epoch 1"):
            ask_until_fenced(held)


def test_what_fails_otherwise_is_raised_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="plan 3 is missing"):
        fail(tmp_path / "state", lambda: None)


def test_a_store_that_is_away_hides_no_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(epochs: Epochs, epoch: int) -> None:
        raise StateError("cannot read s3://bucket/epochs/00000002.json")

    with pytest.raises(EngineError, match="plan 3 is missing"):
        fail(tmp_path / "state", lambda: monkeypatch.setattr(Epochs, "check", away))
