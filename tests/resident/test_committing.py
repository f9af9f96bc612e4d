"""Commits go on beside the work of a role, one at a time; what they come to shows when they have ended."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, cast

import pytest

from ps2stream.errors import FencedError
from ps2stream.metrics.recorder import Recorder
from ps2stream.resident.committing import Commits
from ps2stream.resident.pace import Pace
from ps2stream.resident.wire import Place, Send, Topic, Wire

SENDS = [Send(Place(Topic.MATCHES), b"x")]


class OpenWire:
    """A wire whose commits end when they are told to."""

    def __init__(self) -> None:
        self.begun: list[Future[list[int]]] = []
        self.ends_at_once = False

    def begin_commit(self, sends: Any, note: bytes, *, is_whole: bool) -> Future[list[int]]:
        future: Future[list[int]] = Future()
        self.begun.append(future)
        if self.ends_at_once:
            future.set_result([7])
        return future


@pytest.fixture
def wire() -> OpenWire:
    return OpenWire()


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def commits(wire: OpenWire, slept: list[float]) -> Commits:
    pace = Pace(1.0, 10.0, clock=lambda: 0.0, sleep=slept.append)
    return Commits(cast(Wire, wire), Recorder("worker", 0), pace)


def test_a_role_goes_on_while_it_commits_and_learns_later_that_it_is_done(
    wire: OpenWire, commits: Commits
) -> None:
    done: list[str] = []
    commits.begin(SENDS, b"note", lambda ago_s, offsets: done.append("first"))
    assert done == []
    wire.begun[0].set_result([3])
    assert done == []  # not from another thread, amid a step
    assert commits.settle() == [3]
    assert done == ["first"]
    assert commits.settle() == []


def test_the_next_commit_begins_when_the_one_before_has_ended(wire: OpenWire, commits: Commits) -> None:
    order: list[str] = []
    commits.begin(SENDS, b"one", lambda ago_s, offsets: order.append(f"one done, {len(wire.begun)} begun"))
    wire.begun[0].set_result([0])
    commits.begin(SENDS, b"two")
    assert order == ["one done, 1 begun"]
    assert len(wire.begun) == 2


def test_what_a_commit_fails_of_ends_the_role_before_it_commits_again(
    wire: OpenWire, commits: Commits
) -> None:
    done: list[str] = []
    commits.begin(SENDS, b"one", lambda ago_s, offsets: done.append("one"))
    wire.begun[0].set_exception(FencedError("another worker 0 has taken over"))
    for _ in range(2):  # also where somebody goes on all the same
        with pytest.raises(FencedError):
            commits.begin(SENDS, b"two")
    assert done == []
    assert len(wire.begun) == 1


def test_a_role_rests_after_a_commit_but_not_beside_one(
    wire: OpenWire, commits: Commits, slept: list[float]
) -> None:
    commits.begin(SENDS, b"note")
    commits.rest()
    assert slept == []
    wire.begun[0].set_result([])
    commits.settle()
    commits.rest()
    assert len(slept) == 1


def test_a_role_that_was_about_to_rest_learns_that_its_commit_is_done(
    wire: OpenWire, commits: Commits, slept: list[float]
) -> None:
    done: list[str] = []
    commits.begin(SENDS, b"note", lambda ago_s, offsets: done.append("one"))
    wire.begun[0].set_result([0])
    commits.rest()
    assert done == ["one"]
    assert len(slept) == 1


def test_a_role_rests_between_two_commits_also_where_it_worked_meanwhile(
    wire: OpenWire, commits: Commits, slept: list[float]
) -> None:
    commits.begin(SENDS, b"one")
    wire.begun[0].set_result([0])
    commits.begin(SENDS, b"two")
    assert len(slept) == 1


def test_a_commit_that_is_waited_for_gives_its_offsets(wire: OpenWire, commits: Commits) -> None:
    wire.ends_at_once = True
    assert commits.commit(SENDS, b"note") == [7]
