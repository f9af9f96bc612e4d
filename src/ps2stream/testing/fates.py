"""What became of each publication of a history: put together for the laws to look at."""

from __future__ import annotations

from dataclasses import dataclass, field

from ps2stream.model.limits import shortened
from ps2stream.model.matches import Match
from ps2stream.testing.history import History, SentPublication
from ps2stream.testing.oracle import Version, met_by


@dataclass(slots=True)
class Fate:
    """A publication, whom it meets at any time (None: it makes no sense), and what came out of it."""

    sent: SentPublication
    met: list[Version] | None
    delivered: list[Match] = field(default_factory=list)
    is_rejected: bool = False

    @property
    def has_happened(self) -> bool:
        """Whether a broker has it for sure."""
        return self.sent.acked_s is not None or self.sent.offset is not None or bool(self.delivered)

    @property
    def positions(self) -> list[int]:
        """The positions that deliveries tell; one, if all is well."""
        return sorted({match.publication_seq for match in self.delivered})

    @property
    def position(self) -> int | None:
        """The one position that deliveries tell."""
        return self.positions[0] if len(self.positions) == 1 else None

    @property
    def demanded(self) -> int | None:
        """The position that ``as_of`` demands: behind the update of that seq."""
        return None if self.sent.as_of is None else self.sent.as_of | 1

    def expected_at(self, position: int) -> set[tuple[str, int]]:
        """Return the versions that match at a position, by id and seq."""
        return {(version.id, version.seq) for version in self.met or () if version.is_live_at(position)}

    def __str__(self) -> str:
        where = f" (partition {self.sent.partition}, offset {self.sent.offset})"
        return f"publication {self.sent.event.id!r}{'' if self.sent.offset is None else where}"


def fates_of(history: History, lives: list[Version]) -> list[Fate]:
    """Return the fates of all publications; deliveries of others are left out."""
    fates = [Fate(sent, met_by(sent.event, lives, history.stop_words)) for sent in history.publications]
    by_id: dict[str, Fate] = {}
    for fate in fates:
        name = fate.sent.event.id
        if name and by_id.setdefault(name, fate) is not fate:
            raise ValueError(f"publications of a history must have ids of their own; got {name!r} twice")
    for match, _ in history.deliveries:
        if match.publication_id in by_id:
            by_id[match.publication_id].delivered.append(match)
    refused = {(rejection.op, rejection.id) for rejection in history.rejections}
    for fate in fates:
        fate.is_rejected = shown(fate) in refused
    return fates


def shown(fate: Fate) -> tuple[str | None, str | None]:
    """Return how a rejected record names a publication; its seq is not known to those who sent it."""
    event = fate.sent.event
    return event.op and shortened(event.op), event.id and shortened(event.id)
