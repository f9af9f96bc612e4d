"""However drivers get in each other's way, one history comes of it, and only the newest driver adds to it."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from engines.streams import SETTINGS, plan_for, random_stream
from ps2stream.balance.adjustments import Adjustment
from ps2stream.errors import FencedError, StateError
from ps2stream.partitioning.plan import Plan
from ps2stream.routing.routing import Routing
from ps2stream.state.epochs import Epochs
from ps2stream.state.host_files import HostFiles
from ps2stream.state.state import State
from ps2stream.store.contract import Store
from ps2stream.store.memory import MemoryStore
from s3_server import BUCKET, S3Server
from state.drivers import NOWHERE, Claim, as_a_task_has_it, begun, ids_of, seen, segment, taken_over
from state.jobs import N_BATCHES, job_at
from state.turns import InTurns, Turns

RECORD = Adjustment("local", 3, "now", "a test", 1, 2, (3.0, 1.0), selector="gr")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_for(random_stream(100, 1))


@dataclass(slots=True)
class History:
    """What drivers acted on: by batch, what the log had, which plan routed, and what the sink got."""

    plan: Plan
    logs: defaultdict[int, set[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(set))
    plans: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    n_fenced: int = 0

    def drive(self, store: Store, rng: random.Random, n_batches: int) -> None:
        """Be a driver: take over, then decide, work and finish until another takes over."""
        claim = Claim(store)
        try:
            state = State(store, NOWHERE).taken_over(claim)  # type: ignore[arg-type]
            self._create(state)
            state.open(SETTINGS)
            for _ in range(n_batches):
                self._batch(state, rng)
        except StateError:
            # Also what it needed may be gone by now; but only then.
            assert claim.epochs.newest() > claim.epoch
            self.n_fenced += 1

    def _create(self, state: State) -> None:
        if not state.job_file.exists():
            try:
                state.create(replace(self.plan, partitioner=f"by {state.epoch}"), SETTINGS)
            except FencedError:
                raise
            except StateError:  # the driver before did it at last; if not, opening it will tell
                return

    def _batch(self, state: State, rng: random.Random) -> None:
        decided = state.ledger.decided()
        if decided > state.ledger.last_seq() // 10:  # a driver ended in the middle of it
            self._work(state, decided)
            return
        if decided >= 0 and rng.random() < 0.25:
            state.log.snapshot(decided, segment(*ids_of(state)), state.routing())
        batch_id, routing = decided + 1, state.routing()
        adjusts = rng.random() < 0.3
        if adjusts:
            routing = Routing(routing.newest + 1)
            made = f"by {state.epoch} for {batch_id}"
            state.plans.add(replace(self.plan, number=routing.newest, partitioner=made))
        changes = segment(f"{state.epoch}-{batch_id}") if adjusts or rng.random() < 0.5 else None
        state.ledger.decide(batch_id, changes, routing)
        if adjusts:
            state.drop_plans()
        self._work(state, batch_id)

    def _work(self, state: State, batch_id: int) -> None:
        """Do what tasks do: they see the log up to the batch, and the plan that it names."""
        task = as_a_task_has_it(state.told(batch_id))
        number, made = task.routing().newest, task.plan().partitioner
        log = tuple(ids_of(task, upto=batch_id))
        if batch_id >= 0:  # before the first batch there is nothing to be late for
            task.check_newest(batch_id)
        self.plans[number].add(made)
        self.logs[batch_id].add(log)
        state.store.put(f"sink/{batch_id}", repr(log).encode())
        state.ledger.finish(batch_id, batch_id * 10)


@pytest.mark.parametrize("seed", range(60))
def test_drivers_that_take_over_at_any_moment_make_one_history(plan: Plan, seed: int) -> None:
    rng, store = random.Random(seed), MemoryStore()
    turns = Turns(rng, kill_share=0.005 if seed % 2 else 0.0)
    history = History(plan)
    seeds = [rng.random() for _ in range(4)]
    turns.run(
        [
            lambda each=each: history.drive(InTurns(store, turns), random.Random(each), 6)  # type: ignore[misc]
            for each in seeds
        ]
    )
    # Whatever is left of them, another driver goes on from it.
    history.drive(store, rng, 3)
    state = State(store, NOWHERE).newest()
    assert all(len(logs) == 1 for logs in history.logs.values()), "each batch was decided once"
    assert all(len(made) == 1 for made in history.plans.values()), "each number in use is one plan"
    ordered = [next(iter(history.logs[batch_id])) for batch_id in sorted(history.logs)]
    for earlier, later in itertools.pairwise(ordered):
        assert later[: len(earlier)] == earlier, "what was acted on is part of all that comes later"
    assert tuple(ids_of(state)) == ordered[-1]
    assert state.ledger.decided() == max(history.logs)
    assert state.ledger.last_seq() == max(history.logs) * 10
    for batch_id, (log,) in history.logs.items():
        assert store.get(f"sink/{batch_id}").to_pybytes() == repr(log).encode()
    if seed % 2 == 0:
        assert history.n_fenced > 0


def test_a_driver_that_was_taken_over_changes_nothing_whatever_it_does(store: Store, plan: Plan) -> None:
    old = begun(store, plan)
    new = taken_over(store)
    new.plans.add(replace(plan, number=2, partitioner="new"))
    new.ledger.decide(3, segment("s3"), Routing(2))
    new.mailbox.write_status({"epoch": new.epoch})
    before = seen(store)
    with pytest.raises(FencedError, match="another driver has taken over from epoch 1 of the state in"):
        old.ledger.decide(3, segment("late"), Routing(1))
    with pytest.raises(FencedError):
        old.ledger.decide(3, None, Routing(1))
    with pytest.raises(FencedError):
        old.ledger.finish(3, 99)
    with pytest.raises(FencedError):
        old.log.snapshot(2, segment("wrong"), Routing(1))
    with pytest.raises(StateError):
        old.create(replace(plan, number=2), SETTINGS)
    for batch_id in (0, 2):
        with pytest.raises(StateError, match="must not be written again"):
            old.ledger.decide(batch_id, segment("late"), Routing(1))
    old.plans.add(replace(plan, number=3, partitioner="late"))
    with pytest.raises(StateError, match="must not be written again"):
        old.plans.add(replace(plan, partitioner="late"))
    old.mailbox.write_status({"late": True})
    old.sweep()
    old.drop_plans()
    assert seen(store) == before
    assert new.plan().partitioner == "new"
    new.ledger.decide(4, segment("s4"), Routing(2))
    assert ids_of(State(store, NOWHERE).newest()) == ["s0", "s1", "s2", "s3", "s4"]


def test_a_driver_that_died_while_it_took_over_is_passed_over(store: Store, plan: Plan) -> None:
    begun(store, plan)
    Claim(store)
    assert State(store, NOWHERE).newest().epoch == 1
    late = Claim(store)
    third = taken_over(store)
    assert (late.epoch, third.epoch) == (3, 4)
    assert ids_of(third) == ["s0", "s1", "s2"]
    with pytest.raises(FencedError):
        State(store, NOWHERE).taken_over(late)  # type: ignore[arg-type]
    assert State(store, NOWHERE).newest().epoch == 4


def test_a_state_of_one_host_is_taken_over_as_it_is(store: Store, plan: Plan) -> None:
    local = State(store, NOWHERE).create(plan, SETTINGS).open(SETTINGS)
    for batch_id in range(3):
        local.ledger.decide(batch_id, segment(f"s{batch_id}"), Routing(1))
    local.log.snapshot(1, segment("s0", "s1"), Routing(1))
    local.ledger.finish(2, 20)
    state = taken_over(store).open(SETTINGS)
    with pytest.raises(StateError, match="has epochs: its driver needs a lease"):
        local.open(SETTINGS)
    assert (ids_of(state), state.ledger.decided(), state.ledger.last_seq()) == (["s0", "s1", "s2"], 2, 20)
    assert state.plan().partitioner == plan.partitioner
    state.ledger.decide(3, segment("s3"), Routing(1))
    state.log.snapshot(3, segment("s0", "s1", "s2", "s3"), Routing(1))
    assert [key for key in store.list("log") if key.endswith(".arrow")] == [
        "log/snapshot-000000000003-00000001.arrow"
    ]
    assert ids_of(taken_over(store)) == ["s0", "s1", "s2", "s3"]


def test_the_newest_epoch_is_found_though_the_listing_lags(store: Store) -> None:
    epochs = Epochs(store)
    assert epochs.newest() == 0
    for epoch in range(1, 5):
        assert epochs.claim(epoch, "one")
        assert not epochs.claim(epoch, "other")
    for n_listed in range(5):
        lagging = Epochs(Lagging(store, n_listed))  # type: ignore[arg-type]
        assert lagging.newest() == 4


class Lagging:
    """A store whose listings lack what came last."""

    def __init__(self, store: Store, n_listed: int = 0) -> None:
        self._store, self._n_listed = store, n_listed

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def under(self, prefix: str) -> Store:
        return Lagging(self._store.under(prefix), self._n_listed)  # type: ignore[return-value]

    def list(self, prefix: str = "") -> list[str]:
        return self._store.list(prefix)[: self._n_listed]


def test_no_listing_has_to_be_complete_for_a_driver_or_a_reader(store: Store, plan: Plan) -> None:
    lagging: Store = Lagging(store)  # type: ignore[assignment]
    old = begun(lagging, plan)
    old.log.snapshot(1, segment("s0", "s1"), Routing(1))
    assert ids_of(old) == ["s0", "s1", "s2"]
    new = taken_over(lagging).open(SETTINGS)
    new.ledger.decide(3, segment("s3"), Routing(1))
    new.drop_plans()
    reader = State(lagging, NOWHERE).newest()
    assert (reader.epoch, ids_of(reader), reader.ledger.decided()) == (2, ["s0", "s1", "s2", "s3"], 3)
    assert reader.plan().partitioner == plan.partitioner


def test_workers_of_a_state_in_epochs_find_what_those_of_one_host_find(store: Store, tmp_path: Path) -> None:
    lacking: Store = Lagging(store)  # type: ignore[assignment]
    job = job_at(State(lacking, HostFiles(tmp_path)).taken_over(Claim(lacking)))  # type: ignore[arg-type]
    assert job.matches() == job.expected
    again = State(lacking, HostFiles(tmp_path / "other")).taken_over(Claim(lacking))  # type: ignore[arg-type]
    assert job.matches(state=again) == job.expected
    registrar = again.open(SETTINGS).restore_registrar()
    again.snapshot(N_BATCHES - 1, registrar)
    fresh = State(lacking, HostFiles(tmp_path / "third")).newest()
    assert [number for number, _ in fresh.log.read()] == [N_BATCHES - 1]
    live = fresh.restore_registrar().registry.live_seqs().tolist()
    assert live == registrar.registry.live_seqs().tolist()
    assert len(live) > 5


def test_audit_records_count_that_are_of_the_epoch_which_decided(store: Store, plan: Plan) -> None:
    old = begun(store, plan)
    old.adjustments.write(2, replace(RECORD, batch_id=2))
    new = taken_over(store).open(SETTINGS)
    with pytest.raises(FencedError):
        old.adjustments.write(3, replace(RECORD, batch_id=3, reason="late"))
    new.adjustments.write(3, replace(RECORD, batch_id=3, reason="in time"))
    new.ledger.decide(3, segment("s3"), Routing(1))
    found = State(store, NOWHERE).newest().adjustments.read()
    assert [(each.batch_id, each.reason) for each in found] == [(2, RECORD.reason), (3, "in time")]
    assert [new.ledger.epoch_of(batch_id) for batch_id in range(5)] == [1, 1, 1, 2, 2]


def test_a_batch_costs_a_driver_a_few_requests_and_no_listing(s3: S3Server, plan: Plan) -> None:
    state = begun(s3.store(), plan)
    counts = {}
    for batch_id, (name, changes) in enumerate([("changed", segment("s")), ("unchanged", None)], start=3):
        with s3.counting() as requests:
            state.ledger.decide(batch_id, changes, Routing(1))
            state.ledger.finish(batch_id, batch_id)
        counts[name] = Counter(method for method, _ in requests)
        assert not any(path.endswith(f"/{BUCKET}") for _, path in requests), "nothing is listed"
    # Behind each root a look whether a later epoch is claimed, and nothing else is read.
    assert counts == {"changed": {"PUT": 3, "GET": 2}, "unchanged": {"PUT": 2, "GET": 2}}


def test_a_driver_does_not_read_its_own_roots_but_a_task_does(s3: S3Server, plan: Plan) -> None:
    state = begun(s3.store(), plan)
    with s3.counting() as requests:
        assert (state.ledger.decided(), state.ledger.finished(), state.log.last()) == (2, 2, 2)
        assert state.routing() == Routing(1)
    assert requests == []
    task = as_a_task_has_it(state.told(2))
    with s3.counting() as requests:
        assert (task.log.last(), task.routing()) == (2, Routing(1)), "it was told"
        task.ledger.check_decided(2)
    assert requests == []
    with s3.counting() as requests:
        task.check_newest(2)
    names = [path.rpartition("/")[2] for _, path in requests]
    assert sorted(set(names)) == ["00000002.json", "ledger-00000001.json", "manifest-00000001.json"]


@pytest.mark.parametrize("changes", [segment("later"), None], ids=["changed", "unchanged"])
def test_a_task_that_is_late_is_refused_whatever_it_was_told(
    store: Store, plan: Plan, changes: pa.RecordBatch | None
) -> None:
    state = begun(store, plan)
    task = as_a_task_has_it(state.told(2))
    task.check_newest(2)
    state.ledger.decide(3, changes, Routing(1))
    assert task.log.last() == 2, "it reads by what it was told"
    with pytest.raises(StateError, match=r"batch 2 is over: .* decided up to batch 3"):
        task.check_newest(2)
    with pytest.raises(StateError, match="only read by a known manifest"):
        task.log.append(3, segment("wrong"), Routing(1))


def test_a_task_whose_driver_was_taken_over_is_refused(store: Store, plan: Plan) -> None:
    """Its driver stands where it stood, but indexes of the host may have gone on with those of the next."""
    task = as_a_task_has_it(begun(store, plan).told(2))
    taken_over(store)
    with pytest.raises(FencedError, match="from epoch 1"):
        task.check_newest(2)


def test_a_root_whose_put_failed_is_read_again(store: Store) -> None:
    claim = Claim(store)
    fenced = claim.fenced().under("log")
    fenced.put("manifest-00000001.json", b"one")
    store.put("log/manifest-00000001.json", b"not of this driver")
    assert fenced.get("manifest-00000001.json").to_pybytes() == b"one"
    assert copy(fenced).get("manifest-00000001.json").to_pybytes() == b"not of this driver"
    claim.epochs.claim(2, "another")
    with pytest.raises(FencedError):
        fenced.put("manifest-00000001.json", b"two")
    store.put("log/manifest-00000001.json", b"what is there")
    assert fenced.get("manifest-00000001.json").to_pybytes() == b"what is there"


@pytest.mark.parametrize("on_many_hosts", [True, False])
def test_a_driver_that_is_taken_over_does_not_touch_what_the_next_one_spools(
    tmp_path: Path, on_many_hosts: bool
) -> None:
    unclaimed = State(MemoryStore(), HostFiles(tmp_path), on_many_hosts=on_many_hosts)
    first = unclaimed.taken_over(Claim(unclaimed.store))  # type: ignore[arg-type]
    with first.spool(7).writer("left") as file:
        file.write(b"behind")
    second = unclaimed.taken_over(Claim(unclaimed.store))  # type: ignore[arg-type]
    second.sweep()
    assert first.spool(7).list() == [], "what the driver before has left is removed"
    with second.spool(7).writer("mine") as file:
        file.write(b"in time")
    first.drop_spool(7)
    first.sweep()
    with first.spool(7).writer("mine") as file:
        file.write(b"late")
    assert bytes(second.spool(7).get("mine")) == b"in time"


@pytest.mark.parametrize("on_many_hosts", [True, False])
def test_a_state_that_is_made_anew_does_not_find_the_files_of_the_one_before(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_many_hosts: bool
) -> None:
    """A mark among them says how far an index has the log, and batches of both have the same numbers."""
    monkeypatch.setenv("PS2STREAM_LOCAL_DIR", str(tmp_path))
    jobs = []
    for _ in range(2):
        store = MemoryStore()
        unclaimed = State(store, HostFiles.of(store.location()), on_many_hosts=on_many_hosts)
        created = unclaimed.taken_over(Claim(store)).create(plan, SETTINGS).open(SETTINGS)  # type: ignore[arg-type]
        again = unclaimed.taken_over(Claim(store)).open(SETTINGS)  # type: ignore[arg-type]
        assert created.host == again.host == again.here().host
        jobs.append(again)
    assert jobs[0].store.location() == jobs[1].store.location()
    assert jobs[0].host != jobs[1].host
