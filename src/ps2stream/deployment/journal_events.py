"""The events of a deployment that has a journal: the only way from ``deployment/`` to it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.deployment.deployment_events import ANYWHERE, Demands
from ps2stream.deployment.publication_lookup import KnownPublication, PublishedTexts, publication_with_id
from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_updates
from ps2stream.journal.positions import position_of
from ps2stream.state.ledger import Ledger

_LOG = logging.getLogger(__name__)


class JournalEvents:
    """The events of a journal that is open."""

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        """Open the journal of a directory; ``create`` makes it if it is missing."""
        self._directory = directory
        self._journal = Journal.open(directory, create=create)
        self._texts = PublishedTexts(self._journal)

    def __str__(self) -> str:
        return f"the journal {self._directory}"

    def append(self, events: pa.RecordBatch, demands: Demands = ANYWHERE) -> Sequence[int]:
        demands.refuse(f"{self} has an order of its own: what is published later comes later")
        appended = self._journal.append(events)
        return range(appended.first_seq, appended.last_seq + 1)

    def last_seq(self) -> int | None:
        end = self._journal.last()
        return end.seq if end.position else None

    def lags(self, ledger: Ledger) -> dict[str, int]:
        # Seqs of a journal begin with 1, and have no gaps unless somebody else gave them.
        return {"journal": max(0, self._journal.last().seq - max(0, ledger.last_seq()))}

    def updates(self, after_seq: int) -> Iterator[pa.RecordBatch]:
        first = position_of(self._journal, after_seq + 1)
        last = max(first - 1, self._journal.last().position)
        for packet in self._journal.read(first - 1, last, publications=False):
            if packet.damage:
                _LOG.warning("%s", packet.damage)
            updates = decode_updates(packet.updates)
            yield updates.filter(pc.greater(updates.column("seq"), after_seq))

    def publication(self, publication_id: str) -> KnownPublication:
        return publication_with_id(self._journal, publication_id)

    def text(self, publication_id: str, seq: int) -> str | None:
        return self._texts.text(seq)  # no two events of a journal have the same

    def newest(self, n_events: int) -> Iterator[pa.RecordBatch]:
        from ps2stream.adjusting.disk_sample import newest_events

        return newest_events(self._journal, n_events)

    def pruned(self) -> int:
        return self._journal.oldest() - 1

    def close(self) -> None:
        self._journal.close()
