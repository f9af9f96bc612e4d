"""The home of a deployment: one directory for all that belongs to it.

    journal/   what was published and subscribed
    state/     what the job remembers
    out/       what it delivered: matches/ and rejected/

Commands that add to the journal make it; a job makes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ps2stream.errors import StateError
from ps2stream.state.home_layout import HomeLayout

if TYPE_CHECKING:
    from ps2stream.config import Settings
    from ps2stream.state.job_file import JobFile
    from ps2stream.state.state import State


@dataclass(frozen=True, slots=True)
class Home(HomeLayout):
    """Where the parts of a deployment are, and what its job is bound to."""

    @property
    def has_state(self) -> bool:
        """Say whether a job was ever started here."""
        return self._job_file().exists()

    def stop_words(self) -> tuple[str, ...]:
        """Return the stop words that the job was started with; none before its first start."""
        job_file = self._job_file()
        return job_file.stop_words if job_file.exists() else ()

    def settings(self) -> Settings:
        """Return the settings that the job is bound to; all others are defaults."""
        from ps2stream.config import Settings
        from ps2stream.state.job_file import FIXED

        return Settings(**self._job_file().values(*FIXED))

    def _job_file(self) -> JobFile:
        from ps2stream.state.job_file import JobFile
        from ps2stream.store.directory import DirectoryStore

        return JobFile(DirectoryStore(self.state))


def state_of(home: Home) -> State:
    """Return the state of a home; raise if no job was ever started there."""
    from ps2stream.state.state import State

    if not home.has_state:
        raise StateError(f"no job was started in {home.directory} yet; 'ps2stream run' starts one")
    return State.at(home.state)
