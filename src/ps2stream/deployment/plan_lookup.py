"""Which plan of a deployment routes a version of a subscription."""

from __future__ import annotations

from ps2stream.deployment.decided_log import DecidedLog, decided_log
from ps2stream.deployment.home import Home
from ps2stream.deployment.settled import settled
from ps2stream.deployment.subscription_history import Version
from ps2stream.partitioning.plan import Plan


def plan_for(home: Home, version: Version) -> Plan | None:
    """Return the plan that a version is routed by: of two, the older one if it began before the newer.

    None before the first start of a job: nobody owns anything yet.
    """
    return settled(home, None, lambda state: _plan(decided_log(home, state), version))


def _plan(log: DecidedLog, version: Version) -> Plan | None:
    plans = log.plans()
    if plans is None:
        return None
    return plans.newest if version.seq_from is None else plans.of(version.seq_from)
