"""How load adjustment behaves: what a user chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ps2stream.balance.selection import SELECTORS
from ps2stream.errors import ConfigError

Scope = Literal["both", "local", "global", "off"]
SCOPES: tuple[Scope, ...] = ("both", "local", "global", "off")


@dataclass(frozen=True, slots=True)
class AdjustmentSettings:
    """When load is adjusted, and how far.

    ``scope``: local adjustment moves cells between two workers, global adjustment makes a new plan.
    ``selector``: how the cells to move are chosen (``balance.selection``).
    ``sigma``: local adjustment begins when the busiest worker has more than this many times the load of the
    least busy one, in both halves of the window. ``target``: it ends when they are within this. The
    distance between the two is what keeps it from going to and fro.
    ``window``: the newest publications that loads are counted over. Nothing is decided before a whole
    window has passed since the last change.
    ``hot_cells``: this many of the busiest cells are looked at for a division by terms (the paper's p).
    ``check_every``: global adjustment is considered each time this many publications have passed.
    ``margin``: a new plan has to lower the load of the busiest worker by this share to be adopted.
    ``drain_share``: the older plan goes when no more than this share of subscriptions depends on it.
    ``drain_limit``: it goes after at most this many publications.
    """

    scope: Scope = "both"
    selector: str = "gr"
    sigma: float = 1.5
    target: float = 1.1
    window: int = 200_000
    hot_cells: int = 8
    check_every: int = 5_000_000
    margin: float = 0.2
    drain_share: float = 0.05
    drain_limit: int = 10_000_000

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise ConfigError(f"adjust must be one of {', '.join(SCOPES)}; got {self.scope!r}")
        if self.selector not in SELECTORS:
            raise ConfigError(f"selector must be one of {', '.join(SELECTORS)}; got {self.selector!r}")
        if not 1.0 <= self.target < self.sigma:
            raise ConfigError(
                f"sigma must be above target, and target at least 1; got {self.sigma}, {self.target}"
            )
        for name in ("window", "check_every", "drain_limit"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1; got {getattr(self, name):,}")
        if self.hot_cells < 0:
            raise ConfigError(f"hot_cells must not be negative; got {self.hot_cells}")
        for name in ("margin", "drain_share"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ConfigError(f"{name} must lie in [0, 1); got {getattr(self, name)}")

    @property
    def is_local(self) -> bool:
        return self.scope in ("both", "local")

    @property
    def is_global(self) -> bool:
        return self.scope in ("both", "global")
