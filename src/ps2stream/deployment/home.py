"""The home of a deployment: one directory for all that belongs to it.

    journal/   what was published and subscribed
    state/     what the job remembers
    out/       what it delivered: matches/ and rejected/

Commands that add to the journal make it; a job makes the rest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ps2stream.errors import StateError

if TYPE_CHECKING:
    from ps2stream.config import Settings
    from ps2stream.state.state import State


@dataclass(frozen=True, slots=True)
class Home:
    """Where the parts of a deployment are; none of them need exist yet."""

    directory: Path

    @property
    def journal(self) -> Path:
        return self.directory / "journal"

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def out(self) -> Path:
        return self.directory / "out"

    @property
    def has_state(self) -> bool:
        """Say whether a job was ever started here."""
        return (self.state / "job.json").exists()

    def stop_words(self) -> tuple[str, ...]:
        """Return the stop words that the job was started with; none before its first start."""
        return self._fixed()["stop_words"] if self.has_state else ()

    def settings(self) -> Settings:
        """Return the settings that the job is bound to; all others are defaults."""
        from ps2stream.config import Settings

        return Settings(**self._fixed("n_workers", "partitioner", "grid_bits", "max_cells"))

    def _fixed(self, *names: str) -> dict[str, Any]:
        """Read the stop words, and what else is asked for."""
        path = self.state / "job.json"
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            return {"stop_words": tuple(about["stop_words"]), **{name: about[name] for name in names}}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StateError(f"{path} cannot be read: {error!r}") from error


def state_of(home: Home) -> State:
    """Return the state of a home; raise if no job was ever started there."""
    from ps2stream.state.state import State

    if not home.has_state:
        raise StateError(f"no job was started in {home.directory} yet; 'ps2stream run' starts one")
    return State(home.state)
