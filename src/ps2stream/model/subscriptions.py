"""A subscription: which words, where (the paper's STS query)."""

from __future__ import annotations

from dataclasses import dataclass

from ps2stream.errors import PS2StreamError, quoted
from ps2stream.model.expressions import parse
from ps2stream.model.limits import check_length
from ps2stream.model.publications import Publication
from ps2stream.model.space import Region
from ps2stream.text.terms import terms_of


@dataclass(frozen=True, slots=True)
class Subscription:
    """A Boolean keyword expression and a region; both are checked when it is made."""

    id: str
    expression: str
    region: Region

    def __post_init__(self) -> None:
        if not self.id:
            raise PS2StreamError("the id of a subscription must be a non-empty string")
        if reason := check_length("id", self.id):
            raise PS2StreamError(f"subscription {quoted(self.id)}: {reason}")
        parse(self.expression)

    def matches(self, publication: Publication) -> bool:
        """Say whether a publication meets the subscription, without any index."""
        return self.region.contains(publication.lon, publication.lat) and parse(self.expression).evaluate(
            terms_of(publication.text)
        )


@dataclass(frozen=True, slots=True)
class Unsubscription:
    """The end of a subscription."""

    id: str
