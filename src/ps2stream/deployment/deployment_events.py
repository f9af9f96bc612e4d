"""What a deployment does with its events: add some, and read what is left of those that came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from ps2stream.deployment.publication_lookup import KnownPublication
from ps2stream.errors import ConfigError
from ps2stream.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Demands:
    """Where in the order publications want to be: after a seq, or exactly as of one."""

    after: int | None = None
    as_of: int | None = None

    def given(self) -> dict[str, int]:
        """Return what is demanded, as records say it."""
        found = {"after": self.after, "as_of": self.as_of}
        return {name: seq for name, seq in found.items() if seq is not None}

    def refuse(self, reason: str) -> None:
        """Raise where anything is demanded."""
        for name in self.given():
            raise ConfigError(f"{name} is for deployments of 'ps2stream run --engine realtime'; {reason}")


ANYWHERE = Demands()


class DeploymentEvents(Protocol):
    """The events of a deployment, open; a job takes them from there, and older ones may be dropped.

    Seqs are in the order that the job keeps to; events that were dropped are found no more.
    """

    def append(self, events: pa.RecordBatch, demands: Demands = ANYWHERE) -> Sequence[int | None]:
        """Add events (schema EVENTS) in row order, all or none; return the seq that each got.

        None where the job gives seqs when it takes events in.
        When it returns they have survived. A column ``seq`` is ignored. ``demands`` of publications are for
        resident roles; others refuse them.
        """
        ...

    def last_seq(self) -> int | None:
        """Return a seq such that a job which is there has processed all that there is; None of nothing."""
        ...

    def lags(self, ledger: Ledger) -> dict[str, int]:
        """Return how much a job that is as far as a ledger says has not processed, by topic.

        Of a journal events, under its name; of topics records, which may hold many.
        """
        ...

    def updates(self, after_seq: int) -> Iterator[pa.RecordBatch]:
        """Yield what was subscribed and unsubscribed beyond a seq (schema UPDATES), in order."""
        ...

    def publication(self, publication_id: str) -> KnownPublication:
        """Return the newest publication with an id; raise if there is none, or if it is not valid."""
        ...

    def text(self, publication_id: str, seq: int) -> str | None:
        """Return the text of a publication; None if it is there no more."""
        ...

    def newest(self, n_events: int) -> Iterator[pa.RecordBatch]:
        """Yield the newest events (schema EVENTS) in order, this many or some more."""
        ...

    def pruned(self) -> int:
        """Return up to which position events were dropped; 0 where all are there."""
        ...

    def close(self) -> None: ...

    def __str__(self) -> str:
        """Say what it is and where, for messages."""
        ...
