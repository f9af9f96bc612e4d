"""A job that is switching plans, as its log tells it."""

from __future__ import annotations

from ps2stream.model.schemas import empty
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.segments import SEGMENT
from ps2stream.routing.routing import Routing
from ps2stream.state.state import State


def switch(state: State, plan: Plan) -> None:
    """Let a plan route what begins after all that the job has seen."""
    running = state.plan().number
    state.plans.add(plan)
    routing = Routing(plan.number, running, state.ledger.last_seq())
    state.log.append(state.log.last() + 1, empty(SEGMENT), routing)
