"""Pour an event log into what a stream reads, while the stream already reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa

from ps2stream.model.events import in_order
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.sinks.sink import Sink
from ps2stream.sources.event_log import EventLog

_EVENTS_AT_ONCE = 20_000

#: Pass batches of events on, each behind the one before.
Pour = Callable[[Iterator[pa.RecordBatch]], None]


class Pouring(threading.Thread):
    """Pour in a thread of its own; what is out of order is rejected here, at the border."""

    def __init__(self, events: EventLog, sink: Sink, pour: Pour) -> None:
        super().__init__(name="pouring", daemon=True)
        self._events, self._sink, self._pour = events, sink, pour
        self._failure: BaseException | None = None
        self.is_done = False
        self.n_rejected = 0

    def run(self) -> None:
        try:
            self._pour(self._in_order())
            self.is_done = True
        except BaseException as error:
            self._failure = error

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _in_order(self) -> Iterator[pa.RecordBatch]:
        high_water = BEFORE_ALL_SEQS
        for number, batch in enumerate(self._events.batches(_EVENTS_AT_ONCE)):
            kept, rejected, high_water = in_order(batch, high_water)
            self._sink.write_rejected(number, "order", rejected)
            self.n_rejected += rejected.num_rows
            if kept.num_rows:
                yield kept
