"""One driver at a time holds a state; a second takes over when the first is gone, also if it comes back."""

from __future__ import annotations

import logging
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from werkzeug.wrappers import Response

from engines.streams import SETTINGS, plan_for, random_stream
from ps2stream.errors import FencedError, StateError
from ps2stream.routing.routing import Routing
from ps2stream.state.epochs import Epochs
from ps2stream.state.lease import Lease, LeaseTerms, SignOfLife, last_sign, refuse_if_held
from ps2stream.state.state import State
from ps2stream.store.contract import Store
from ps2stream.store.memory import MemoryStore
from ps2stream.store.urls import store_at
from s3_server import S3Server
from state.drivers import NOWHERE, ids_of, seen, segment
from waiting import HANG_S

PATIENT, QUICK = LeaseTerms(600.0), LeaseTerms(0.5)


def test_a_second_driver_is_refused_while_the_first_lives_and_need_not_wait_when_it_lets_go(
    store: Store,
) -> None:
    first, second = Lease(store, "first", QUICK), Lease(store, "second", PATIENT)
    with first.held():
        assert first.epoch == 1
        with pytest.raises(StateError, match=r"another job is running on the state in .* holds epoch 1"):
            second.acquire()
        first.check()
    with second.held():
        assert second.epoch == 2
    with pytest.raises(FencedError):
        first.check()


def test_a_driver_that_is_silent_for_the_time_out_is_taken_over(store: Store) -> None:
    silent = Lease(store, "silent", PATIENT)  # it renews once in two minutes
    silent.acquire()
    with Lease(store, "second", QUICK).held() as second:
        assert second.epoch == 2
        with pytest.raises(FencedError, match="taken over from epoch 1"):
            silent.check()
        with pytest.raises(FencedError):
            silent.advance()
    silent.release()


def test_the_last_sign_of_a_driver_says_when_by_its_clock_and_that_it_has_let_go(store: Store) -> None:
    assert last_sign(store) is None
    began = time.time()
    lease = Lease(store, "first", PATIENT)
    with lease.held():
        sign = last_sign(store)
        assert sign is not None
        assert sign.renewed_at is not None
        assert (sign.epoch, sign.is_let_go, sign.seems_alive) == (1, False, True)
        assert began - 0.001 <= sign.renewed_at <= time.time() + 0.001  # it is told in milliseconds
        lease.advance()
        sign = last_sign(store)
        assert sign is not None
        assert sign.epoch == 2
    sign = last_sign(store)
    assert sign == SignOfLife(2, is_let_go=True)
    assert not sign.seems_alive


@pytest.mark.parametrize("said", [None, b"7", b"7 noon", b""])
def test_a_sign_without_a_time_is_that_of_a_driver_of_which_nothing_is_known(said: bytes | None) -> None:
    store = MemoryStore()
    Lease(store, "first", PATIENT).acquire()
    store.delete("epochs/00000001.alive")
    if said is not None:
        store.put("epochs/00000001.alive", said)
    sign = last_sign(store)
    assert sign == SignOfLife(1, is_let_go=False)
    assert (sign.age_s, sign.seems_alive) == (None, False)


def test_who_would_be_refused_can_know_early(store: Store) -> None:
    assert refuse_if_held(store, QUICK) is False
    with (
        Lease(store, "process 7 of h1", QUICK).held(),
        pytest.raises(StateError, match="its driver, process 7 of h1, holds epoch 1"),
    ):
        refuse_if_held(store, PATIENT)
    assert refuse_if_held(store, PATIENT) is False, "it has let go"
    silent = Lease(store, "silent", PATIENT)
    silent.acquire()
    assert refuse_if_held(store, QUICK) is True, "it may be dead: who wants the state will see"
    silent.release()


def test_a_driver_that_has_been_silent_for_long_is_not_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    Lease(store, "silent", PATIENT).acquire()
    store.put("epochs/00000001.alive", b"7 1000.0")
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("watched"))
    assert refuse_if_held(store, PATIENT) is True


def test_of_many_that_wait_for_a_dead_driver_one_takes_over(store: Store) -> None:
    Lease(store, "dead", PATIENT).acquire()
    leases = [Lease(store, str(number), LeaseTerms(1.0)) for number in range(6)]

    def acquired(lease: Lease) -> bool:
        try:
            lease.acquire()
        except StateError:
            return False
        return True

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(acquired, leases)) == 1
    for lease in leases:
        if lease.epoch:
            lease.release()


def test_a_driver_that_starts_again_fences_itself_and_goes_on(store: Store) -> None:
    with Lease(store, "first", QUICK).held() as lease:
        plan = plan_for(random_stream(50, 1))
        before = State(store, NOWHERE).taken_over(lease).create(plan, SETTINGS).open(SETTINGS)
        lease.advance()
        again = State(store, NOWHERE).taken_over(lease).open(SETTINGS)
        with pytest.raises(FencedError):
            before.ledger.decide(0, segment("late"), Routing(1))
        again.ledger.decide(0, segment("s0"), Routing(1))
        with pytest.raises(StateError, match="holds epoch 2"):
            Lease(store, "second", PATIENT).acquire()
    assert ids_of(State(store, NOWHERE).newest()) == ["s0"]


def test_the_next_epoch_of_a_driver_itself_is_no_other_driver_to_its_renewals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claim = Epochs.claim

    def slow(epochs: Epochs, epoch: int, driver: str) -> bool:
        is_ours = claim(epochs, epoch, driver)
        time.sleep(0.05)  # several renewals
        return is_ours

    with Lease(MemoryStore(), "first", LeaseTerms(0.05)).held() as lease:
        monkeypatch.setattr(Epochs, "claim", slow)
        for epoch in range(2, 5):
            lease.advance()
            assert lease.epoch == epoch
        lease.check_renewals()


def _ask_until_fenced(lease: Lease) -> None:
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        lease.check_renewals()
        time.sleep(0.01)


def test_renewals_find_that_another_driver_has_taken_over(store: Store) -> None:
    with Lease(store, "first", LeaseTerms(0.1)).held() as lease:
        lease.check_renewals()
        assert Epochs(store.under("epochs")).claim(2, "second")
        with pytest.raises(FencedError, match="taken over from epoch 1"):
            _ask_until_fenced(lease)


def test_a_lease_is_renewed_again_when_the_store_is_there_again(
    s3: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    store = s3.store(patience_s=0.05)
    with caplog.at_level(logging.WARNING), Lease(store, "first", QUICK).held() as lease:
        with s3.failing(lambda request, forward: Response(status=503)):
            until = time.monotonic() + HANG_S
            while "cannot be renewed" not in caplog.text and time.monotonic() < until:
                time.sleep(0.02)
        assert "cannot be renewed" in caplog.text
        with pytest.raises(StateError, match="another job is running"):
            Lease(store_at(store.location()), "second", PATIENT).acquire()
        lease.check()


_DRIVER = """
import sys
from pathlib import Path
from ps2stream.routing.routing import Routing
from ps2stream.state.host_files import HostFiles
from ps2stream.state.lease import Lease, LeaseTerms
from ps2stream.state.state import State
from ps2stream.store.urls import store_at
sys.path[:0] = [sys.argv[2]]
from state.drivers import segment

store = store_at(sys.argv[1])
lease = Lease(store, "first", LeaseTerms(0.5))
lease.acquire()
state = State(store, HostFiles(Path("/nowhere"))).taken_over(lease)
while True:
    batch_id = state.ledger.decided() + 1
    state.ledger.decide(batch_id, segment(f"first-{batch_id}") if batch_id % 3 else None, Routing(1))
    state.mailbox.write_status({"first": batch_id})
    state.ledger.finish(batch_id, batch_id)
    if batch_id % 10 == 9:
        ids = [each for _, part in state.log.read() for each in part.column("id").to_pylist()]
        state.log.snapshot(batch_id, segment(*ids), Routing(1))
        state.drop_plans()
    if batch_id == 4:
        print("running", flush=True)
"""


@pytest.fixture(params=["directory", "s3"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Return a store that other processes can use, too."""
    if request.param == "directory":
        return store_at(tmp_path / "store")
    server: S3Server = request.getfixturevalue("s3")
    return server.store()


@pytest.fixture
def first(shared: Store) -> Iterator[subprocess.Popen[str]]:
    """Run a driver in another process, until somebody ends it."""
    plan = plan_for(random_stream(50, 1))
    with Lease(shared, "maker", QUICK).held() as lease:
        State(shared, NOWHERE).taken_over(lease).create(plan, SETTINGS).open(SETTINGS)
    command = [sys.executable, "-c", _DRIVER, shared.location(), str(Path(__file__).parents[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stderr is not None
        assert driver.stdout.readline() == "running\n", driver.stderr.read()
        yield driver
        driver.kill()


def contents(store: Store) -> dict[str, bytes]:
    """Return all blobs but signs of life, and those that the first driver, of epoch 2, alone writes."""
    return {
        key: bytes(store.get(key)) for key in store.list() if not re.search(r"[/-]00000002\.|\.alive", key)
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_driver_that_was_paused_for_longer_than_its_lease_writes_nothing_any_more(
    shared: Store, first: subprocess.Popen[str], seed: int
) -> None:
    with pytest.raises(StateError, match="another job is running"):
        Lease(shared, "second", PATIENT).acquire()
    time.sleep(random.Random(seed).random() * 0.3)  # to stop it anywhere
    first.send_signal(signal.SIGSTOP)
    os.waitpid(first.pid, os.WUNTRACED)  # a thread of it may be amid a rename that is still to be seen
    with Lease(shared, "second", QUICK).held() as lease:
        assert lease.epoch == 3
        state = State(shared, NOWHERE).taken_over(lease).open(SETTINGS)
        theirs, decided = ids_of(state), state.ledger.decided()
        assert decided >= 4
        assert theirs == [f"first-{batch_id}" for batch_id in range(decided + 1) if batch_id % 3]
        state.ledger.decide(decided + 1, segment("second"), Routing(1))
        state.mailbox.write_status({"second": 1})
        before, seen_before = contents(shared), seen(shared)
        first.send_signal(signal.SIGCONT)
        assert first.wait(HANG_S) == 1
        assert first.stderr is not None
        assert "another driver has taken over from epoch 2" in first.stderr.read()
        assert contents(shared) == before
        assert seen(shared) == seen_before
        state.ledger.decide(decided + 2, segment("second again"), Routing(1))
        assert ids_of(State(shared, NOWHERE).newest()) == [*theirs, "second", "second again"]


def test_a_driver_that_was_killed_is_taken_over_with_all_that_it_had_decided(
    shared: Store, first: subprocess.Popen[str]
) -> None:
    first.kill()
    first.wait()
    with Lease(shared, "second", QUICK).held() as lease:
        state = State(shared, NOWHERE).taken_over(lease).open(SETTINGS)
        decided = state.ledger.decided()
        assert ids_of(state) == [f"first-{batch_id}" for batch_id in range(decided + 1) if batch_id % 3]
        assert decided - 1 <= state.ledger.last_seq() <= decided
