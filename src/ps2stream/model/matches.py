"""A match: what a subscriber is told."""

from __future__ import annotations

from typing import NamedTuple


class Match(NamedTuple):
    """A subscription, in the version of its subscribe event, was met by a publication.

    (subscription_id, subscription_seq, publication_id) is a stable id of the match for consumers.
    """

    subscription_id: str
    subscription_seq: int
    publication_id: str
    publication_seq: int
