"""The record of an adjustment: why it was made, what it moved and what it cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ps2stream.balance.local_adjustment import Step
from ps2stream.errors import StateError

#: ``local`` moves cells; ``switch`` begins to route by a new plan, ``unite`` drops the older one.
AdjustmentKind = Literal["local", "switch", "unite"]

#: This many cells of a step are named; the rest is counted.
_MOST_CELLS = 20


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a local adjustment."""

    phase: str
    source: int
    destination: int
    n_cells: int
    cells: tuple[int, ...]
    load: float
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One adjustment, made before a batch.

    Loads are those of the workers: counted before, as they are expected to be, and as they were counted
    afterwards (empty until a whole window has passed). ``n_bytes`` are those of the subscriptions that
    moved, as written to the log. ``selection_s`` is the time to decide, ``pause_s`` the time that the
    stream stood still for all of it, ``migration_s`` the time from the decision until the last worker was
    ready for publications. ``n_delayed`` publications of that batch had to wait. Resident roles have no
    batches: there ``batch_id`` counts adjustments, and publications beyond ``position`` go by this one.
    """

    kind: AdjustmentKind
    batch_id: int
    at: str
    reason: str
    plan_before: int
    plan_after: int
    loads_before: tuple[float, ...]
    loads_expected: tuple[float, ...] = ()
    loads_after: tuple[float, ...] = ()
    selector: str = ""
    steps: tuple[StepRecord, ...] = ()
    n_subscriptions: int = 0
    n_bytes: int = 0
    selection_s: float = 0.0
    pause_s: float = 0.0
    migration_s: float = 0.0
    n_delayed: int = 0
    position: int | None = None


def step_records(steps: Sequence[Step]) -> tuple[StepRecord, ...]:
    return tuple(
        StepRecord(
            step.phase,
            step.source,
            step.destination,
            len(step.cells),
            step.cells[:_MOST_CELLS],
            step.load,
            step.n_bytes,
        )
        for step in steps
    )


def adjustment_to_json(adjustment: Adjustment) -> str:
    return json.dumps(asdict(adjustment))


def adjustment_from_json(text: str) -> Adjustment:
    try:
        fields: dict[str, Any] = json.loads(text)
        steps = tuple(StepRecord(**{**step, "cells": tuple(step["cells"])}) for step in fields.pop("steps"))
        for name in ("loads_before", "loads_expected", "loads_after"):
            fields[name] = tuple(fields[name])
        return Adjustment(**fields, steps=steps)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StateError(f"a record of an adjustment cannot be read: {error}") from error
