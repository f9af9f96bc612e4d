"""What routes the stream now: the newest plan, and for a while an older one beside it (Sec. V-B).

After a repartitioning, subscriptions that began before it stay where the older plan put them, later ones go
where the newest plan says, and publications are routed by both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ps2stream.model.schemas import BEFORE_ALL_SEQS

_Part = TypeVar("_Part")
_Other = TypeVar("_Other")


@dataclass(frozen=True, slots=True)
class Routing(Generic[_Part]):
    """Something for the newest plan and something for the older: numbers of plans, or their indexes.

    ``switch_seq``: subscriptions that began up to it go by the older plan. None does where there is none.
    """

    newest: _Part
    older: _Part | None = None
    switch_seq: int = BEFORE_ALL_SEQS

    @property
    def parts(self) -> tuple[_Part, ...]:
        """Return what there is, the newest first."""
        return (self.newest,) if self.older is None else (self.newest, self.older)

    def map(self, function: Callable[[_Part], _Other]) -> Routing[_Other]:
        """Turn each part into something else."""
        older = None if self.older is None else function(self.older)
        return Routing(function(self.newest), older, self.switch_seq)

    def of(self, seq_from: int) -> _Part:
        """Return the part that a subscription goes by."""
        return self.older if self.older is not None and seq_from <= self.switch_seq else self.newest


#: The numbers of plans, as the log and the job's files keep them.
PlanNumbers = Routing[int]
