"""Plans and snapshots lie in the store under names of their own."""

from __future__ import annotations

import pytest

from ps2stream.config import Settings
from ps2stream.errors import MissingError
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.partitioning.plan import Plan
from ps2stream.planning.first_plan import first_plan
from ps2stream.resident import files as files_module
from ps2stream.resident.entries import PlanPlace, first_entry
from ps2stream.resident.files import RoleFiles
from ps2stream.store.memory import MemoryStore


@pytest.fixture
def files() -> RoleFiles:
    return RoleFiles(MemoryStore())


@pytest.fixture
def plan() -> Plan:
    return first_plan(empty(EVENTS), Settings(n_workers=2))


def test_a_plan_is_read_from_where_it_was_written_and_once(
    files: RoleFiles, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "_plans", {})
    place = files.write_plan(plan)
    assert place.number == plan.number
    read = files.read_plan(place)
    assert (read.number, read.n_workers) == (plan.number, plan.n_workers)
    files.remove([place.key])
    assert files.read_plan(place) is read


def test_two_plans_of_one_number_are_two_files(files: RoleFiles, plan: Plan) -> None:
    assert files.write_plan(plan).key != files.write_plan(plan).key


def test_few_plans_are_kept_in_memory(files: RoleFiles, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, Plan] = {}
    monkeypatch.setattr(files_module, "_plans", kept)
    for _ in range(20):
        files.read_plan(files.write_plan(plan))
    assert len(kept) <= 8


def test_a_snapshot_is_read_as_it_was_written(files: RoleFiles) -> None:
    entry = first_entry(PlanPlace(3, "plan"))
    assert files.read_snapshot(files.write_snapshot(entry)) == entry
    assert files.write_snapshot(entry, "a name") == "a name"
    with pytest.raises(MissingError):
        files.read_snapshot("another name")


def test_what_was_found_is_removed_and_nothing_that_came_later(files: RoleFiles) -> None:
    entry = first_entry(PlanPlace(3, "plan"))
    one, other = files.write_snapshot(entry), files.write_snapshot(entry)
    found = files.keys()
    later = files.write_snapshot(entry)
    assert sorted(found) == sorted([one, other])
    files.remove(found)
    assert files.keys() == [later]
