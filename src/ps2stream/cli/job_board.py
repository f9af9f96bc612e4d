"""The board of a job that runs in this process: what its meter knows, and how much waits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ps2stream.errors import PS2StreamError

if TYPE_CHECKING:
    from ps2stream.config import Settings
    from ps2stream.deployment.deployment_events import DeploymentEvents
    from ps2stream.deployment.home import Home
    from ps2stream.engines.live_stream import LiveStream
    from ps2stream.engines.meter import Meter
    from ps2stream.metrics.board import Board
    from ps2stream.metrics.measures import RoleMeasures
    from ps2stream.resident.idleness import RolesIdleness


def job_board(
    board: Board, home: Home, events: DeploymentEvents, meter: Meter, stream: LiveStream
) -> contextlib.AbstractContextManager[None]:
    """Keep the board of a job while the context lasts."""
    from ps2stream.deployment.board_keeper import board_kept, interval_s

    def measured() -> Iterable[RoleMeasures]:
        if (state := stream.state) is not None:
            with contextlib.suppress(PS2StreamError):  # a broker that does not answer now
                for topic, n_waiting in events.lags(state.ledger).items():
                    meter.driver.set("lag_events", n_waiting, topic)
        return meter.measures(stream.n_subscriptions, stream.n_starts_again)

    return board_kept(board, measured, lambda: stream.state, interval_s(home))


def roles_board(board: Board, home: Home, stream: LiveStream) -> contextlib.AbstractContextManager[None]:
    """Keep the board of a job whose roles report by themselves."""
    from ps2stream.deployment.board_keeper import board_kept, interval_s

    return board_kept(board, tuple, lambda: stream.state, interval_s(home))


def roles_idleness(home: Home, settings: Settings) -> RolesIdleness:
    """Return who knows whether resident roles have anything left to do."""
    from ps2stream.kafka.role_topics import RoleTopics
    from ps2stream.resident.idleness import RolesIdleness

    assert home.topics is not None
    return RolesIdleness(RoleTopics(home.topics, settings.n_workers))
