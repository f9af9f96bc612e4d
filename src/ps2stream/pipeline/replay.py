"""Replay an event log through the inline engine, as fast as it goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ps2stream.config import Settings
from ps2stream.partitioning.plan import Plan
from ps2stream.pipeline.event_log import EventLog
from ps2stream.pipeline.inline import InlineEngine
from ps2stream.pipeline.planning import log_sample, plan_of
from ps2stream.pipeline.sink import Sink
from ps2stream.pipeline.tally import Tally


def replay_inline(
    events: EventLog,
    out: Path,
    settings: Settings,
    on_progress: Callable[[Tally], None],
    plan: Plan | None = None,
) -> tuple[Tally, float]:
    """Process all events in this process; return the tally and the seconds it took.

    Without a plan one is made from a sample of the events.
    """
    sink = Sink(out)
    engine = InlineEngine(plan or plan_of(log_sample(events, settings), settings), settings)
    started = time.monotonic()
    for number, batch in enumerate(events.batches(settings.batch_events)):
        outcome = engine.process(batch)
        sink.write_matches(number, 0, outcome.matches)
        sink.write_rejected(number, "000", outcome.rejected)
        on_progress(engine.tally)
    sink.finish()
    return engine.tally, time.monotonic() - started
