"""Places of topics, what comes from them and what goes there, as roles speak of them."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A partition of a topic; its name is without the prefix of the deployment."""

    topic: str
    partition: int = 0


class Received(NamedTuple):
    """A record that came; ``appended_ms``: when a broker, or its writer, says it was appended."""

    place: Place
    offset: int
    value: bytes | None
    key: bytes | None = None
    appended_ms: int = 0


class Send(NamedTuple):
    """A record to write; its key is for readers."""

    place: Place
    value: bytes
    key: bytes | None = None


class RoleName(NamedTuple):
    """A role by its kind and its number: ``worker 3``."""

    kind: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"
