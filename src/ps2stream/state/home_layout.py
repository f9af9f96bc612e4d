"""How a home is laid out: the directories of the journal, of the state and of the sink."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ps2stream.files import absolute


@dataclass(frozen=True, slots=True)
class HomeLayout:
    """The parts of a home, of a deployment or of one run; none of them need exist yet."""

    directory: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "directory", absolute(self.directory))

    @property
    def journal(self) -> Path:
        return self.directory / "journal"

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def out(self) -> Path:
        return self.directory / "out"
