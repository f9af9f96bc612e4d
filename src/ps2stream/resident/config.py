"""What every role of a deployment is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass

from ps2stream.config import Settings
from ps2stream.resident.files import RoleFiles
from ps2stream.resident.reading import Arrival, Given, Order
from ps2stream.resident.trimming import TRIM_S
from ps2stream.sinks.match_records import MatchFormat


@dataclass(frozen=True, slots=True)
class RoleConfig:
    """The same for all roles of a run.

    ``run``: the name of this start of the job. ``has_given_order``: events bring their seqs. ``is_exact``:
    matches are delivered once; else at least once (``seldom_notes.py``). ``as_of_s``: so long ago a position
    may lie that a publication asks for. ``most_events``: of one commit. ``report_s``: between two reports of
    a role. ``snapshot_every``: after this many rows of the log, or as many as there are subscriptions, a
    snapshot stands for it. ``after_s``: a publication waits no longer for what it wants to come after.
    """

    settings: Settings
    files: RoleFiles
    run: str
    n_match_partitions: int = 1
    has_given_order: bool = False
    match_format: MatchFormat = "arrow"
    is_exact: bool = True
    as_of_s: float = 10.0
    after_s: float = 30.0
    most_events: int = 20_000
    report_s: float = 1.0
    heartbeat_s: float = 0.2
    trim_s: float = TRIM_S
    snapshot_every: int = 100_000

    @property
    def order(self) -> Order:
        return Given() if self.has_given_order else Arrival()
