"""What all peers have in common: subscriptions in, then publications in and pairs out."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from ps2stream.arrays import Int64s

#: Who is told of what, each pair once, in any order.
PAIRS = pa.schema([("subscription_seq", pa.int64()), ("publication_seq", pa.int64())])


class Peer(Protocol):
    """Something that matches publications with subscriptions.

    What is done once for a machine (a server started, kernels compiled) is done when a peer is made. The
    caller measures ``load`` and ``match``, so neither may leave work for later.
    """

    @property
    def name(self) -> str:
        """Return what the peer is called in reports."""
        ...

    def load(self, subscriptions: pa.Table) -> None:
        """Take subscribe events (schema EVENTS), all of them valid; call once."""
        ...

    def match(self, publications: pa.Table) -> pa.Table:
        """Return the pairs (schema PAIRS) of publish events; texts are cut into terms in here.

        Seqs lie above those of all events before: a stream does not run backwards.
        """
        ...

    def wake(self) -> None:
        """Get ready to match after a rest."""
        ...

    def rest(self) -> None:
        """Use no processor until woken: others are measured."""
        ...

    def index_bytes(self) -> int | None:
        """Return what the loaded subscriptions occupy, if that can be told."""
        ...

    def close(self) -> None:
        """Give back what was taken; a second call does nothing."""
        ...


class Restful:
    """A peer that does nothing by itself while it is not asked."""

    def wake(self) -> None:
        """Be ready, as always."""

    def rest(self) -> None:
        """Rest, as always."""


def pairs_of(subscription_seqs: Int64s, publication_seqs: Int64s) -> pa.Table:
    """Lay pairs out as a table."""
    return pa.table([pa.array(subscription_seqs), pa.array(publication_seqs)], schema=PAIRS)
