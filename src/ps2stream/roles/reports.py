"""What roles report of a batch: counts of work, and the CPU time it took."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from ps2stream.store.traffic import Traffic


@dataclass(frozen=True, slots=True)
class DispatcherReport:
    dispatcher: int
    n_publications: int
    n_discarded: int
    n_rejected: int
    n_sent: int
    busy_s: float


@dataclass(frozen=True, slots=True)
class WorkerReport:
    worker: int
    n_publications: int
    n_updates: int
    n_candidates: int
    n_matches: int
    n_subscriptions: int
    n_bytes: int
    busy_s: float
    update_s: float  # of it, to bring the index up to date
    ready_at: float  # when it was, in seconds since the epoch
    host: str = ""  # where it was, if that can change
    rebuild_s: float = 0.0  # to build the index anew, if that had to be


@dataclass(frozen=True, slots=True)
class MergerReport:
    merger: int
    n_matches: int
    n_rejected: int
    busy_s: float


#: Beside what a role did, its task tells what it asked of the store.
Report = DispatcherReport | WorkerReport | MergerReport | Traffic
_KINDS = {kind.__name__: kind for kind in (DispatcherReport, WorkerReport, MergerReport, Traffic)}


def report_to_json(report: Report) -> str:
    return json.dumps({"kind": type(report).__name__, **asdict(report)})


def report_from_json(text: str) -> Report:
    fields: dict[str, Any] = json.loads(text)
    kind = _KINDS[fields.pop("kind")]
    report: Report = kind(**fields)
    return report
