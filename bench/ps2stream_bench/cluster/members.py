"""Who is in the bed of this process: hosts and services, as its description names them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

#: The variable that names the description, a JSON file (docs/testing.md, "A cluster on one machine").
_DESCRIPTION = "PS2STREAM_CLUSTER"


class Member(NamedTuple):
    """A machine of a bed: its network namespace, and the end of its cable that is outside of it."""

    name: str
    namespace: str
    interface: str
    is_host: bool


def members_of(description: Path) -> tuple[Member, ...]:
    """Read a description."""
    told = json.loads(description.read_text())
    return tuple(
        Member(name, each["namespace"], each["veth"], kind == "hosts")
        for kind in ("hosts", "services")
        for name, each in told[kind].items()
    )


def members_here(environment: Mapping[str, str] = os.environ) -> tuple[Member, ...]:
    """Return the members of the bed that this process is the command of."""
    return members_of(Path(environment[_DESCRIPTION]))
