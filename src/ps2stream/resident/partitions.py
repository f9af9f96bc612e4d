"""A partition of publications, as a dispatcher sees it: what has come of it and is not routed yet."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field

from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.resident.reading import Order, ReadPublications
from ps2stream.resident.routed import Source
from ps2stream.resident.wire import Received


@dataclass(slots=True)
class Partition:
    """Records wait until the log is known as far as they need; ``next_offset``: of the first to route."""

    number: int
    next_offset: int
    upto: int = BEFORE_ALL_SEQS
    records: deque[Received] = field(default_factory=deque)
    first: ReadPublications | None = None  # what the first records hold
    n_first: int = 0
    waits_since: float = 0.0

    def is_ready(self, applied: int) -> bool:
        """Say whether something has come that needs nothing more of the log, as far as that is known."""
        return bool(self.records) and (self.first is None or self.first.needs <= applied)

    def has_all_before(self, stop: int) -> bool:
        """Say whether all records before an offset have come; offsets may have gaps."""
        return bool(self.records) and self.records[-1].offset >= stop - 1

    def read(self, order: Order, most: int) -> ReadPublications | None:
        """Read the first records, unless that is done; None where there are none."""
        if self.first is None and self.records:
            self._read(order, min(len(self.records), most))
        return self.first

    def read_before(self, order: Order, stop: int) -> ReadPublications:
        """Read the records before an offset, all of which have come."""
        return self._read(order, sum(record.offset < stop for record in self.records))

    def take(self) -> tuple[Source, Counter[int]]:
        """Take off what was read; return which records that was, and how many were appended when."""
        assert self.first is not None
        start, upto = self.next_offset, self.first.upto
        appended: Counter[int] = Counter()
        for _ in range(self.n_first):
            record = self.records.popleft()
            appended[record.appended_ms] += 1
            self.next_offset = record.offset + 1
        self.upto = self.upto if upto is None else upto
        self.first = None
        return Source(self.number, start, self.next_offset, upto), appended

    def _read(self, order: Order, n: int) -> ReadPublications:
        self.n_first = n
        self.first = order.publications([self.records[row] for row in range(n)])
        self.waits_since = time.monotonic()
        return self.first
