"""Plans are kept by number, and a process reads each once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.streams import plan_for, random_stream
from ps2stream.errors import StateError
from ps2stream.partitioning.plan import Plan
from ps2stream.state.plans import Plans, is_below
from ps2stream.store.contract import Store


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_for(random_stream(100, 1))


def test_a_plan_comes_back_as_it_was_and_is_read_once(store: Store, plan: Plan) -> None:
    Plans(store).add(plan)
    found = Plans(store).get(1)
    np.testing.assert_array_equal(found.h1.cell_owner, plan.h1.cell_owner)
    assert found.grid == plan.grid
    assert Plans(store).get(1) is found


def test_a_plan_that_was_written_again_is_read_again(store: Store, plan: Plan) -> None:
    """A number is used again where a crash came before the log named it, within the same instant at times."""
    plans = Plans(store)
    names = [f"way {number}" for number in range(10)]
    found = []
    for name in names:
        plans.add(replace(plan, partitioner=name))
        found.append(plans.get(1).partitioner)
    assert found == names


def test_plans_of_two_jobs_are_not_taken_for_each_other(store: Store, plan: Plan) -> None:
    one, other = Plans(store.under("one")), Plans(store.under("other"))
    one.add(replace(plan, partitioner="one"))
    other.add(replace(plan, partitioner="other"))
    assert (one.get(1).partitioner, other.get(1).partitioner) == ("one", "other")


def test_plans_that_are_not_named_go_and_foreign_files_stay(store: Store, plan: Plan) -> None:
    plans = Plans(store)
    for number in (1, 2, 3, 1_000_000):
        plans.add(replace(plan, number=number))
    store.put("notes.txt", b"not ours")
    plans.keep({2, 3})
    assert store.list() == ["notes.txt", "plan-000002.npz", "plan-000003.npz"]
    with pytest.raises(StateError, match=r"plan .*plan-000001\.npz cannot be read"):
        plans.get(1)


@pytest.mark.parametrize("data", [b"", b"no plan", b"PK\x05\x06" + bytes(18)])
def test_a_damaged_plan_is_an_error_that_names_it(store: Store, data: bytes) -> None:
    store.put("plan-000001.npz", data)
    with pytest.raises(StateError, match=r"plan .*plan-000001\.npz cannot be read"):
        Plans(store).get(1)


def test_plans_of_epochs_are_told_by_their_names_from_those_that_may_be_written_again() -> None:
    assert is_below("plan-000003-00000001.npz", 4)
    for key in ("plan-000004-00000001.npz", "plan-000003.npz", "manifest-00000001.json"):
        assert not is_below(key, 4)
