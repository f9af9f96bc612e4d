"""The ledger knows how far a job is, whenever it is killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from ps2stream.errors import StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.registry.log import SubscriptionLog
from ps2stream.registry.segments import SEGMENT
from ps2stream.routing.routing import Routing
from ps2stream.state.ledger import BatchRange, Ledger
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore

ROUTING = Routing(1)
NOTHING = pa.RecordBatch.from_pylist([], SEGMENT)


def ledger_in(store: Store) -> Ledger:
    return Ledger(store, SubscriptionLog(store.under("log")))


def test_before_the_first_batch_nothing_is_decided_and_nothing_is_finished(store: Store) -> None:
    ledger = ledger_in(store)
    assert ledger.decided() == -1
    assert ledger.last_seq() == ledger.last_seq(5) == BEFORE_ALL_SEQS
    ledger.check_decided(-1)
    assert store.list() == [], "looking writes nothing"


def test_all_is_done_up_to_the_end_of_the_last_batch_that_is_finished(store: Store) -> None:
    ledger = ledger_in(store)
    assert ledger.done() is None
    for batch_id, (after, upto) in enumerate([((0, 0), (3, 4)), ((3, 4), (3, 9))]):
        ledger.begin(BatchRange(batch_id, after, upto))
        assert ledger.done() == after
        ledger.finish(batch_id, 10 * batch_id)
        assert ledger.done() == upto


def test_a_batch_is_decided_with_or_without_changes(store: Store) -> None:
    ledger = ledger_in(store)
    for batch_id, segment in ((0, NOTHING), (1, None), (2, None), (5, NOTHING), (6, None)):
        with pytest.raises(StateError, match=f"batch {batch_id} must be decided before a worker sees it"):
            ledger.check_decided(batch_id)
        for _ in range(2):
            ledger.decide(batch_id, segment, ROUTING)
            assert ledger.decided() == ledger_in(store).decided() == batch_id
        ledger.check_decided(batch_id)
    assert [number for number, _ in ledger.log.read()] == [0, 5]


def test_what_is_decided_stays_decided_when_a_snapshot_stands_for_it(store: Store) -> None:
    ledger = ledger_in(store)
    ledger.decide(0, NOTHING, ROUTING)
    ledger.decide(1, None, ROUTING)
    ledger.log.snapshot(1, NOTHING, ROUTING)
    assert ledger.decided() == 1
    ledger.decide(2, NOTHING, ROUTING)
    assert ledger.decided() == 2


def test_a_batch_is_the_newest_until_a_later_one_is_decided_or_a_snapshot_stands_for_it(store: Store) -> None:
    ledger = ledger_in(store)
    ledger.decide(0, NOTHING, ROUTING)
    ledger.check_newest(0)
    ledger.finish(0, 10)
    ledger.check_newest(0)  # Spark may run it once more
    ledger.begin(BatchRange(1, (1,), (2,)))
    ledger.check_newest(0)
    ledger.decide(1, None, ROUTING)
    with pytest.raises(StateError, match=r"batch 0 is over: .* up to batch 1"):
        ledger.check_newest(0)
    ledger.check_newest(1)
    ledger.log.snapshot(1, NOTHING, ROUTING)
    with pytest.raises(StateError, match="batch 1 is over"):
        ledger.check_newest(1)


def test_the_last_seq_of_a_batch_and_the_one_before_are_known(store: Store) -> None:
    ledger = ledger_in(store)
    ledger.finish(0, 10)
    ledger.finish(1, 25)
    ledger.finish(1, 25)
    assert (ledger.last_seq(-1), ledger.last_seq(0), ledger.last_seq(1), ledger.last_seq(9)) == (
        BEFORE_ALL_SEQS,
        10,
        25,
        25,
    )
    ledger.finish(4, 30)  # batches 2 and 3 had no events
    assert (ledger.last_seq(3), ledger.last_seq(4), ledger.last_seq()) == (25, 30, 30)
    assert ledger.last_seq(0) == BEFORE_ALL_SEQS, "as far back nobody asks"


def test_a_batch_that_has_begun_keeps_its_range(store: Store) -> None:
    ledger = ledger_in(store)
    assert ledger.begun() is None
    assert ledger.finished() == -1
    ledger.begin(BatchRange(0, (3,), (9,)))
    assert ledger_in(store).begun() == BatchRange(0, (3,), (9,))
    ledger.decide(0, None, ROUTING)
    ledger.finish(0, 40)
    assert (ledger_in(store).begun(), ledger.finished()) == (BatchRange(0, (3,), (9,)), 0)
    ledger.begin(BatchRange(1, (9,), (10,)))
    assert (ledger.begun(), ledger.finished(), ledger.decided()) == (BatchRange(1, (9,), (10,)), 0, 0)
    assert ledger.last_seq() == 40


def test_deciding_and_finishing_do_not_forget_each_other(store: Store) -> None:
    ledger = ledger_in(store)
    ledger.decide(0, None, ROUTING)
    ledger.finish(0, 10)
    assert ledger.decided() == 0
    ledger.decide(1, None, ROUTING)
    assert (ledger.last_seq(), ledger.decided()) == (10, 1)
    ledger.decide(0, None, ROUTING)
    assert ledger.decided() == 1


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[1]",
        "7",
        "null",
        "{}",
        '{"unchanged": 1}',
        '{"unchanged": 1, "last_seqs": {}, "begun": [1]}',
        "\0",
    ],
)
def test_a_damaged_ledger_is_an_error_that_names_it(store: Store, damage: str) -> None:
    store.put("ledger.json", damage.encode())
    for ask in (ledger_in(store).decided, ledger_in(store).last_seq):
        with pytest.raises(StateError, match=r"ledger\.json cannot be read"):
            ask()


def test_a_state_is_bound_to_the_first_feed_for_good(store: Store) -> None:
    ledger = ledger_in(store)
    ledger.bind("journal 1")
    ledger.begin(BatchRange(0, (0,), (7,)))
    ledger.decide(0, None, ROUTING)
    ledger.finish(0, 9)
    ledger.bind("journal 1")
    with pytest.raises(StateError, match=r"belongs to the events of journal 1; got journal 2\. Use the same"):
        ledger_in(store).bind("journal 2")
    assert ledger_in(store).begun() == BatchRange(0, (0,), (7,))


def test_places_may_have_any_number_of_partitions(store: Store) -> None:
    batch = BatchRange(3, (5, 0, 2), (6, 1, 2, 9))
    ledger_in(store).begin(batch)
    assert ledger_in(store).begun() == batch


def test_a_ledger_of_an_earlier_version_has_positions_as_numbers_and_no_feed(store: Store) -> None:
    said = {"unchanged": 4, "last_seqs": {"3": 30, "4": 40}, "begun": [5, 17, 23]}
    store.put("ledger.json", json.dumps(said).encode())
    ledger = ledger_in(store)
    assert ledger.begun() == BatchRange(5, (17,), (23,))
    assert (ledger.finished(), ledger.last_seq()) == (4, 40)
    ledger.bind("journal 1")
    with pytest.raises(StateError, match="journal 1"):
        ledger.bind("topics t")
    assert ledger_in(store).begun() == BatchRange(5, (17,), (23,))
    assert (ledger.finished(), ledger.last_seq()) == (4, 40)


class Killed(Exception):  # noqa: N818
    """The process is gone."""


class Killing:
    """A store whose writer is killed at some of its writings: before it, or after it."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self._store, self._rng = store, rng

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def under(self, prefix: str) -> Store:
        return Killing(self._store.under(prefix), self._rng)  # type: ignore[return-value]

    def put(self, key: str, data: bytes) -> None:
        self._die()
        self._store.put(key, data)
        self._die()

    def _die(self) -> None:
        if self._rng.random() < 0.2:
            raise Killed


@pytest.mark.parametrize("seed", range(5))
def test_a_job_that_is_killed_at_any_writing_decides_each_batch_once_and_keeps_its_horizons(
    store: Store, seed: int
) -> None:
    rng = random.Random(seed)
    decisions: dict[int, str] = {}
    batch_id, n_kills = 0, 0
    while batch_id < 20:
        ledger = ledger_in(Killing(store, rng))  # type: ignore[arg-type]
        try:
            assert ledger.last_seq(batch_id - 1) == (10 * batch_id - 1 if batch_id else BEFORE_ALL_SEQS)
            if ledger.decided() < batch_id:
                ledger.decide(batch_id, NOTHING if rng.random() < 0.3 else None, ROUTING)
            how = "logged" if batch_id in [number for number, _ in ledger.log.read()] else "noted"
            assert decisions.setdefault(batch_id, how) == how, "what others have seen stays so"
            ledger.finish(batch_id, 10 * batch_id + 9)
        except Killed:
            n_kills += 1
        else:
            batch_id += 1
    assert n_kills > 3
    assert set(decisions.values()) == {"logged", "noted"}
    assert (ledger.decided(), ledger.last_seq()) == (19, 199)


_FINISHING = """
import os, signal, sys
from pathlib import Path
from ps2stream.registry.log import SubscriptionLog
from ps2stream.state.ledger import BatchRange, Ledger
from ps2stream.store.directory import DirectoryStore
store = DirectoryStore(Path(sys.argv[1]))
ledger = Ledger(store, SubscriptionLog(store.under("log")))
fsync = os.fsync
def kill(descriptor):
    os.kill(os.getpid(), signal.SIGKILL)
ledger.finish(1, 20)
os.fsync = kill
ledger.finish(2, 30)
"""


def test_a_process_that_is_killed_while_it_writes_leaves_the_ledger_of_before(tmp_path: Path) -> None:
    ledger = ledger_in(DirectoryStore(tmp_path))
    ledger.finish(0, 10)
    killed = subprocess.run([sys.executable, "-c", _FINISHING, str(tmp_path)], check=False)
    assert killed.returncode == -9
    assert len(os.listdir(tmp_path)) == 2
    assert (ledger.last_seq(), ledger.last_seq(0)) == (20, 10)
