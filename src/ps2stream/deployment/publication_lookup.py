"""Look publications up in the journal, by seq or by id, as long as it has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.errors import JournalError, quoted
from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_publications
from ps2stream.journal.positions import position_of
from ps2stream.model.events import check_publications

_NOTHING = decode_publications(None)


@dataclass(frozen=True, slots=True)
class KnownPublication:
    """A point and a text; without ``id`` and ``seq`` it is made up to be explained."""

    lat: float
    lon: float
    text: str
    id: str | None = None
    seq: int | None = None


class PublishedTexts:
    """Give the texts of seqs; neighbours mostly lie in one packet, so the last one is kept."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._span = range(0)
        self._publications = _NOTHING

    def text(self, seq: int) -> str | None:
        """Return the text of a publication, or None if the journal does not have it any more."""
        if seq not in self._span:
            self._load(seq)
        seqs = self._publications.column("seq").to_numpy()
        row = int(np.searchsorted(seqs, seq))
        if row == len(seqs) or seqs[row] != seq:
            return None
        text: str | None = self._publications.column("text")[row].as_py()
        return text

    def _load(self, seq: int) -> None:
        try:
            position = position_of(self._journal, seq)
            packet = next(self._journal.read(position - 1, position))
        except JournalError:  # beyond its end, or pruned while we looked
            self._span, self._publications = range(seq, seq + 1), _NOTHING
            return
        self._span = range(min(seq, packet.first_seq), packet.last_seq + 1)
        self._publications = decode_publications(packet.publications)


def publication_with_id(journal: Journal, publication_id: str) -> KnownPublication:
    """Return the newest publication with an id; raise if there is none, or if it is not valid."""
    oldest = journal.oldest()
    for position in range(journal.last().position, oldest - 1, -1):
        batch = decode_publications(next(journal.read(position - 1, position)).publications)
        found = batch.filter(pc.equal(batch.column("id"), pa.scalar(publication_id, pa.string())))
        if found.num_rows:
            return valid_publication(found.slice(found.num_rows - 1))
    kept = "" if oldest == 1 else f" (it was pruned up to position {oldest - 1})"
    raise JournalError(f"the journal has no publication with the id {quoted(publication_id)}{kept}")


def valid_publication(batch: pa.RecordBatch) -> KnownPublication:
    """Return the one publication of a batch; raise if it is not valid."""
    valid, rejected = check_publications(batch)
    if rejected.num_rows:
        row = rejected.to_pylist()[0]
        raise JournalError(
            f"publication {quoted(row['id'])} at seq {row['seq']} is rejected: {row['reason']}"
        )
    return KnownPublication(
        float(valid.lat[0]),
        float(valid.lon[0]),
        valid.texts[0].as_py(),
        valid.ids[0].as_py(),
        int(valid.seq[0]),
    )
