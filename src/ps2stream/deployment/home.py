"""The home of a deployment: one directory, from which all that belongs to it is found.

    journal/     what was published and subscribed
    state/       what the job remembers
    out/         what it delivered: matches/ and rejected/
    store.json   where state/ and out/ are if they are not here: below a URL (``store_note.py``)

Commands that add to the journal make it; a job makes the rest. A deployment on Kafka has topics in place of
``journal`` and ``out``, and its state in a store below the prefix of the topics, or in the home. Three
questions have one answer each: where the state is (``state``), how to get at the events (``events``), and how
at what was delivered (``matches``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ps2stream.errors import StateError
from ps2stream.files import AnyPath, absolute
from ps2stream.state.home_layout import HomeLayout

if TYPE_CHECKING:
    from ps2stream.config import Settings
    from ps2stream.deployment.deployment_events import DeploymentEvents
    from ps2stream.deployment.match_reader import Matches
    from ps2stream.kafka.topics import Topics
    from ps2stream.state.job_file import JobFile
    from ps2stream.state.state import State


@dataclass(frozen=True, slots=True)
class Home:
    """Where the parts of a deployment are, and what its job is bound to."""

    directory: Path
    topics: Topics | None = None
    given_store: str | None = None  # of a deployment on Kafka

    def __post_init__(self) -> None:
        object.__setattr__(self, "directory", absolute(self.directory))

    @property
    def journal(self) -> Path:
        return HomeLayout(self.directory).journal

    @property
    def store(self) -> str | None:
        """Return the URL of the store that the job has its state in; None where that is the home."""
        from ps2stream.deployment.store_note import StoreNote

        if self.topics is None:
            return StoreNote(self.directory).store()
        # Topics have a name: so one store serves any number of deployments.
        return None if self.given_store is None else f"{self.given_store.rstrip('/')}/{self.topics.prefix}"

    @property
    def state(self) -> AnyPath:
        """Return the directory or the URL of the job's state."""
        return self.state_in(self.store)

    def state_in(self, store: str | None) -> AnyPath:
        """Return where the job's state is, or would be, in a store or without one."""
        return HomeLayout(self.directory).state if store is None else f"{store}/state"

    @property
    def out(self) -> AnyPath:
        """Return the directory or the URL of what the job delivers."""
        store = self.store
        return HomeLayout(self.directory).out if store is None else f"{store}/out"

    def events(self, *, create: bool = False) -> DeploymentEvents:
        """Open the events of the deployment; ``create`` makes what is missing."""
        if self.topics is None:
            from ps2stream.deployment.journal_events import JournalEvents

            return JournalEvents(self.journal, create=create)
        from ps2stream.deployment.kafka_events import KafkaEvents

        if create:
            self.topics.create()
        from ps2stream.state.job_file import BATCHES

        if self.has_state and self._job_file().engine != BATCHES:
            from ps2stream.deployment.roles_events import RolesEvents

            return RolesEvents(self.topics)
        return KafkaEvents(self.topics)

    def matches(self) -> Matches:
        """Return a reader of what the job has delivered, and delivers."""
        if self.topics is None:
            from ps2stream.deployment.match_reader import MatchReader
            from ps2stream.sinks.parquet import ParquetSink

            return MatchReader(ParquetSink.at(self.out).matches)
        from ps2stream.deployment.kafka_match_reader import KafkaMatchReader

        return KafkaMatchReader(self.topics)

    def exists(self) -> bool:
        """Say whether there is a deployment, whatever is in it."""
        return self.directory.is_dir() if self.topics is None else self.topics.exist()

    def __str__(self) -> str:
        if self.topics is None:
            return str(self.directory)
        return f"the topics {self.topics.prefix}.* at Kafka {self.topics.kafka.servers}"

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
        from ps2stream.store.urls import store_at

        return JobFile(store_at(self.state))


def newest_state(where: AnyPath) -> State:
    """Return the state in a directory or at a URL as its newest driver has it; it need not be there yet.

    It is one driver's view: where drivers follow each other, whoever reads for long asks again (``settled``).
    """
    from ps2stream.state.host_files import HostFiles
    from ps2stream.state.state import State
    from ps2stream.store.urls import is_url, store_at

    if not is_url(where):
        return State.at(where).newest()
    store = store_at(where)
    return State(store, HostFiles.of(store.location())).newest()


def state_of(home: Home) -> State:
    """Return the state of a home as its newest driver has it; raise if no job was ever started there."""
    if not home.has_state:
        raise StateError(f"no job was started in {home} yet; 'ps2stream run' starts one")
    return newest_state(home.state)
