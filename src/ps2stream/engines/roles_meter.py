"""A meter on a running stream whose roles report by themselves."""

from __future__ import annotations

import math

from ps2stream.config import Settings
from ps2stream.engines.board_tally import tally_of
from ps2stream.engines.meter import RecentRates
from ps2stream.engines.tally import Tally
from ps2stream.metrics.board import LATENCY, Board, merged


class RolesMeter:
    """Read totals and recent rates off a board; the same figures as ``engines.meter.Meter``."""

    def __init__(self, board: Board, settings: Settings) -> None:
        self._board = board
        self._settings = settings

    @property
    def tally(self) -> Tally:
        return tally_of(self._board, self._settings)

    @property
    def n_batches(self) -> int:
        """Return how many commits there were."""
        return int(sum(each.total.counters.get("batches", 0) for each in self._board.standings()))

    def recent(self) -> RecentRates:
        standings = self._board.standings()
        rates = [each.rates() for each in standings]
        latency = merged(*(each.recent.histograms for each in standings)).get(LATENCY)
        p50, p99 = (latency.quantile(q) * 1000 if latency else math.nan for q in (0.5, 0.99))
        busy = tuple(
            min(1.0, each.rates().get("busy_seconds", 0.0))
            for each in standings
            if each.newest.role == "worker"
        )
        return RecentRates(
            sum(each.get("publications", 0.0) + each.get("updates", 0.0) for each in rates),
            sum(each.get("delivered_matches", 0.0) for each in rates),
            p50,
            p99,
            busy,
        )
