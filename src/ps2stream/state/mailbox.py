"""The mailbox: what a job says of itself, and what others ask it to do. Nothing depends on either."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any

from ps2stream.errors import MissingError, StateError
from ps2stream.store.contract import Store

_STATUS, _BOARD = "status", "board"
_REPARTITION = "requests/repartition"


@dataclass(frozen=True, slots=True)
class Mailbox:
    """``status.json`` and ``board.json`` (of each epoch but 0 their own) and ``requests/`` of a store."""

    store: Store
    epoch: int = 0

    def write_status(self, status: dict[str, Any]) -> None:
        """Leave word of what the job is like now."""
        self._write(_STATUS, status)

    def read_status(self) -> dict[str, Any] | None:
        """Return the last word of a job; None where there is none yet."""
        return self._read(_STATUS)

    def forget_status(self) -> None:
        self.store.delete(self._key(_STATUS))

    def write_board(self, snapshot: dict[str, Any]) -> None:
        """Leave what is on the job's board now (``metrics/board.py``)."""
        self._write(_BOARD, snapshot)

    def read_board(self) -> dict[str, Any] | None:
        """Return what was on the job's board last; None where there is none yet."""
        return self._read(_BOARD)

    def _write(self, name: str, word: dict[str, Any]) -> None:
        with contextlib.suppress(StateError):  # a full disk is told by those who cannot do without it
            self.store.put(self._key(name), json.dumps(word).encode())

    def _read(self, name: str) -> dict[str, Any] | None:
        key = self._key(name)
        try:
            return dict(json.loads(bytes(self.store.get(key))))
        except MissingError:
            return None
        except (StateError, ValueError, TypeError) as error:
            raise StateError(f"{self.store.location(key)} cannot be read: {error}") from error

    def _key(self, name: str) -> str:
        return f"{name}-{self.epoch:08}.json" if self.epoch else f"{name}.json"

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
