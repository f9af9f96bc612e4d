"""Match in this process: the shortest way to use PS2Stream from Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.engines.inline import InlineEngine, Outcome
from ps2stream.errors import PS2StreamError, quoted
from ps2stream.model.events import conform
from ps2stream.model.matches import Match
from ps2stream.model.publications import Publication
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, empty
from ps2stream.model.subscriptions import Subscription, Unsubscription
from ps2stream.planning.first_plan import first_plan

Event = Publication | Subscription | Unsubscription
Events: TypeAlias = Iterable[Event] | pa.Table | pa.RecordBatch


def event_table(events: Iterable[Event], first_seq: int = 1) -> pa.Table:
    """Lay events out as an ordered event log, numbered in the order given."""
    rows = [{"seq": seq, **_row(event)} for seq, event in enumerate(events, first_seq)]
    return pa.Table.from_pylist(rows, schema=EVENTS)


def _row(event: Event) -> dict[str, object]:
    match event:
        case Publication(id, text, lat, lon):
            return {"op": PUBLISH, "id": id, "text": text, "lat": lat, "lon": lon}
        case Subscription(id, expression, region):
            corners = {name: getattr(region, name) for name in ("min_lon", "min_lat", "max_lon", "max_lat")}
            return {"op": SUBSCRIBE, "id": id, "expression": expression, **corners}
        case Unsubscription(id):
            return {"op": UNSUBSCRIBE, "id": id}
        case _:
            raise TypeError(
                f"an event must be a Publication, Subscription or Unsubscription; got {quoted(event)}"
            )


class Matcher:
    """Keep subscriptions and match publications with them, in the order of the calls.

    One worker, no disk. For single events it costs about a millisecond each; tables of many
    events are what it is fast at.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        settings = settings or Settings(n_workers=1, n_dispatchers=1)
        # In one process there is nothing to balance, and counting loads would cost more than matching.
        settings = replace(settings, adjustment=AdjustmentSettings(scope="off"))
        self._engine = InlineEngine(first_plan(empty(EVENTS), settings), settings)

    def process(self, events: Events) -> Outcome:
        """Take events in order; return their matches and what was rejected as Arrow batches.

        A table brings its own seqs (schema EVENTS); other events are numbered here.
        """
        if isinstance(events, pa.RecordBatch):
            events = pa.Table.from_batches([events])
        next_seq = max(self._engine.high_water, 0) + 1
        table = conform(events) if isinstance(events, pa.Table) else event_table(events, next_seq)
        batches = table.combine_chunks().to_batches()
        return self._engine.process(batches[0] if batches else empty(EVENTS))

    def publish(self, publication: Publication) -> list[Match]:
        """Return the matches of one publication."""
        return _matches(_accepted(self.process([publication])))

    def subscribe(self, subscription: Subscription) -> None:
        """Begin a subscription, or replace the one of its id; raise why if it is not accepted."""
        _accepted(self.process([subscription]))

    def unsubscribe(self, subscription_id: str) -> bool:
        """End a subscription; say whether there was one."""
        outcome = self.process([Unsubscription(subscription_id)])
        return bool(outcome.rejected.num_rows == 0)


def _accepted(outcome: Outcome) -> Outcome:
    if outcome.rejected.num_rows:
        record = outcome.rejected.to_pylist()[0]
        raise PS2StreamError(f"{record['op']} {quoted(record['id'])}: {record['reason']}")
    return outcome


def match(events: Events, settings: Settings | None = None) -> list[Match]:
    """Return the matches of an event log, ordered by publication."""
    return _matches(Matcher(settings).process(events))


def _matches(outcome: Outcome) -> list[Match]:
    return [Match(**row) for row in outcome.matches.to_pylist()]
