"""Which plan of a deployment routes a version of a subscription."""

from __future__ import annotations

from ps2stream.deployment.home import Home
from ps2stream.deployment.settled import settled
from ps2stream.deployment.subscription_history import Version
from ps2stream.partitioning.plan import Plan
from ps2stream.state.state import State


def plan_for(home: Home, version: Version) -> Plan | None:
    """Return the plan that a version is routed by: of two, the older one if it began before the newer.

    None before the first start of a job: nobody owns anything yet.
    """
    return settled(home, None, lambda state: _plan(state, version))


def _plan(state: State, version: Version) -> Plan | None:
    if not state.job_file.exists():
        return None
    routing = state.routing()
    return state.plans.get(routing.newest if version.seq_from is None else routing.of(version.seq_from))
