"""Replay an event log through the inline engine, as fast as it goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ps2stream.adjusting.controller import LoadController
from ps2stream.adjusting.status import status_of
from ps2stream.config import Settings
from ps2stream.engines.inline import InlineEngine
from ps2stream.engines.tally import Tally
from ps2stream.files import AnyPath
from ps2stream.partitioning.plan import Plan
from ps2stream.planning.first_plan import log_sample, plan_of
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.sources.event_log import EventLog


class Replayed(NamedTuple):
    """What a replay came to: its tally, its duration, and the loads of its last window.

    ``loads`` are as ``status_of`` gives them; None where the load is not adjusted.
    """

    tally: Tally
    wall_s: float
    loads: dict[str, Any] | None


def replay_inline(
    events: EventLog,
    out: AnyPath,
    settings: Settings,
    on_progress: Callable[[Tally], None],
    plan: Plan | None = None,
) -> Replayed:
    """Process all events in this process; without a plan one is made from a sample of them."""
    sink = ParquetSink.at(out)
    engine = InlineEngine(plan or plan_of(log_sample(events, settings), settings), settings)
    started, number = time.monotonic(), -1
    for number, batch in enumerate(events.batches(settings.batch_events)):
        outcome = engine.process(batch)
        sink.write_matches(number, 0, outcome.matches.to_batches())
        sink.write_rejected(number, "000", outcome.rejected)
        on_progress(engine.tally)
    sink.finish()
    return Replayed(engine.tally, time.monotonic() - started, _loads(engine, number))


def _loads(engine: InlineEngine, batch_id: int) -> dict[str, Any] | None:
    if not isinstance(engine.controller, LoadController):
        return None
    return status_of(engine.controller, engine.registrar, batch_id)
