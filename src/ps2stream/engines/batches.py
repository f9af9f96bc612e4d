"""The batches of a feed: which events each has, whatever happened before."""

from __future__ import annotations

from dataclasses import dataclass, field

from ps2stream.engines.durable_job import DurableJob
from ps2stream.sources.feed import Feed
from ps2stream.state.ledger import BatchRange


@dataclass(slots=True)
class Batches:
    """Let a job process a feed, a batch at a time."""

    job: DurableJob
    feed: Feed
    _done: BatchRange | None = field(init=False)
    _cut_off: BatchRange | None = None

    def __post_init__(self) -> None:
        ledger = self.job.state.ledger
        ledger.bind(self.feed.identity)
        self._done = ledger.begun()
        if self._done is not None and self._done.batch_id > ledger.finished():
            self._cut_off = self._done

    def process_next(self) -> bool:
        """Process the next batch, first one that was cut off; return whether there was any."""
        batch = self._cut_off or self._next()
        if batch is None:
            self.job.notes.settle()
            self.job.snapshots.check()
            self.job.tell_status(now=False)  # what the last batch was too early for
            return False
        self.feed.settled(*batch)
        sources = self.feed.sources(batch.after, batch.upto, self.job.settings.n_dispatchers)
        self.feed.learned(self.job.process(sources, batch.batch_id))
        self._done, self._cut_off = batch, None
        return True

    def _next(self) -> BatchRange | None:
        """Begin a batch, if the feed has anything for one."""
        # Where a feed was pruned before its first batch, that begins with what is left.
        after = self._done.upto if self._done else self.feed.beginning()
        upto = self.feed.end_within(after, self.job.settings.batch_events)
        if upto == after:
            return None
        batch = BatchRange(self._done.batch_id + 1 if self._done else 0, after, upto)
        self.job.notes.begin(batch)
        return batch
