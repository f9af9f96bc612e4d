"""Adjustments made up for the audit log."""

from __future__ import annotations

from ps2stream.balance.adjustments import Adjustment, StepRecord

LOCAL = Adjustment(
    kind="local",
    batch_id=41,
    at="2026-03-01T12:01:07.250+00:00",
    reason="the busiest worker had 4.00 times the load of the least busy one, above 1.5",
    plan_before=2,
    plan_after=3,
    loads_before=(40.0, 10.0),
    loads_expected=(26.0, 24.0),
    loads_after=(27.0, 22.5),
    selector="gr",
    steps=(
        StepRecord("move", 0, 1, 14, tuple(range(14)), 12.5, 800_000),
        StepRecord("split", 0, 1, 1, (77,), 1.0, 950),
    ),
    n_subscriptions=3_211,
    n_bytes=812_345,
    selection_s=0.004,
    pause_s=0.052,
    migration_s=12.3,
    n_delayed=9_800,
)
SWITCH = Adjustment(
    kind="switch",
    batch_id=50,
    at="2026-03-01T12:03:00.000+00:00",
    reason="a new plan lowers the load of the busiest worker by 33%, more than 20%",
    plan_before=3,
    plan_after=4,
    loads_before=(30.0, 0.0),
    loads_expected=(15.0, 15.0),
)
UNITE = Adjustment(
    kind="unite",
    batch_id=60,
    at="2026-03-01T12:09:00.000+00:00",
    reason="4,821 of 100,000 subscriptions are left to the older plan",
    plan_before=3,
    plan_after=4,
    loads_before=(15.0, 15.0),
    n_subscriptions=4_821,
    n_bytes=2_300_000,
    pause_s=0.21,
)
