"""The log of a job is found where its engine keeps it."""

from __future__ import annotations

from ps2stream.config import Settings
from ps2stream.deployment.decided_log import BatchLog, decided_log
from ps2stream.deployment.home import Home
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.planning.first_plan import first_plan
from ps2stream.state.state import State


def test_before_the_first_start_of_a_job_there_are_no_plans(home: Home) -> None:
    log = decided_log(home, State.at(home.state))
    assert isinstance(log, BatchLog)
    assert log.plans() is None
    assert list(log.read()) == []


def test_the_log_of_batches_is_in_the_state(home: Home) -> None:
    settings = Settings(n_workers=2)
    plan = first_plan(empty(EVENTS), settings)
    state = State.at(home.state).create(plan, settings)
    log = decided_log(home, state)
    plans = log.plans()
    assert plans is not None
    assert (plans.newest.number, plans.older) == (plan.number, None)
    assert log.base() == state.log.base()
    assert log.last_seq() == state.ledger.last_seq()
