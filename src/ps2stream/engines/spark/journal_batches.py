"""The batches of a journal: which events each has, whatever happened before."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ps2stream.engines.spark.job import MicroBatchJob
from ps2stream.journal import Journal
from ps2stream.sources.journal_range import journal_ranges
from ps2stream.state.ledger import BatchRange


@dataclass(slots=True)
class JournalBatches:
    """Let a job process a journal, a batch at a time."""

    job: MicroBatchJob
    journal: Journal
    directory: Path
    _done: BatchRange | None = field(init=False)
    _cut_off: BatchRange | None = None

    def __post_init__(self) -> None:
        ledger = self.job.state.ledger
        self._done = ledger.begun()
        if self._done is not None and self._done.batch_id > ledger.finished():
            self._cut_off = self._done

    def process_next(self) -> bool:
        """Process the next batch, first one that was cut off; return whether there was any."""
        batch = self._cut_off or self._next()
        if batch is None:
            self.job.tell_status(now=False)  # what the last batch was too early for
            return False
        n_parts = self.job.settings.n_dispatchers
        self.job.process(
            tuple(journal_ranges(self.directory, batch.after, batch.upto, n_parts)), batch.batch_id
        )
        self._done, self._cut_off = batch, None
        return True

    def _next(self) -> BatchRange | None:
        """Begin a batch, if the journal has anything for one."""
        # Where a journal was pruned before its first batch, that begins with what is left.
        after = self._done.upto if self._done else self.journal.oldest() - 1
        upto = self.journal.end_within(after, self.job.settings.batch_events)
        if upto <= after:
            return None
        batch = BatchRange(self._done.batch_id + 1 if self._done else 0, after, upto)
        self.job.state.ledger.begin(batch)
        return batch
