"""Bytes through the cables of a bed, as the system counts them: with all that HTTP and TCP add."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ps2stream_bench.cluster.members import Member

_INTERFACES = Path("/sys/class/net")


class Traffic(NamedTuple):
    """Bytes that came to a member, and that it sent."""

    to_bytes: int
    from_bytes: int


def traffic_of(members: Iterable[Member], interfaces: Path = _INTERFACES) -> dict[str, Traffic]:
    """Return what has gone through each member's cable since the bed was made."""
    return {
        # Outside is the other end of the cable: what it sends comes to the member.
        each.name: Traffic(
            _count(interfaces, each.interface, "tx_bytes"), _count(interfaces, each.interface, "rx_bytes")
        )
        for each in members
    }


def _count(interfaces: Path, interface: str, name: str) -> int:
    return int((interfaces / interface / "statistics" / name).read_text())
