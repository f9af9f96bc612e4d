"""The mailbox: what a job says of itself, and what others ask it to do. Nothing depends on either."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any

from ps2stream.errors import MissingError, StateError
from ps2stream.store.contract import Store

_STATUS = "status.json"
_REPARTITION = "requests/repartition"


@dataclass(frozen=True, slots=True)
class Mailbox:
    """``status.json`` (of each epoch but 0 its own) and ``requests/`` of a store."""

    store: Store
    epoch: int = 0

    def write_status(self, status: dict[str, Any]) -> None:
        """Leave word of what the job is like now."""
        with contextlib.suppress(StateError):  # a full disk is told by those who cannot do without it
            self.store.put(self._status, json.dumps(status).encode())

    def read_status(self) -> dict[str, Any] | None:
        """Return the last word of a job; None where there is none yet."""
        try:
            return dict(json.loads(bytes(self.store.get(self._status))))
        except MissingError:
            return None
        except (StateError, ValueError, TypeError) as error:
            raise StateError(f"{self.store.location(self._status)} cannot be read: {error}") from error

    @property
    def _status(self) -> str:
        return f"status-{self.epoch:08}.json" if self.epoch else _STATUS

    def forget_status(self) -> None:
        self.store.delete(self._status)

    def request_repartition(self) -> None:
        """Ask the job to consider a new plan; whoever asks again before it has looked changes nothing."""
        self.store.put(_REPARTITION, b"")

    def take_request(self) -> bool:
        """Say whether a new plan was asked for, and consider that answered."""
        try:
            self.store.get(_REPARTITION)
        except MissingError:
            return False
        self.store.delete(_REPARTITION)
        return True
