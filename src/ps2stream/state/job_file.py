"""The job file: the settings that all else depends on. Written once, and last: it makes a state valid."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ps2stream.errors import MissingError, StateError
from ps2stream.store.contract import Store

if TYPE_CHECKING:  # commands that add to a journal read this file and should start fast
    from ps2stream.config import Settings

FORMAT = 4
#: Settings that cannot change from one start of a job to the next.
FIXED = ("n_workers", "partitioner", "stop_words", "grid_bits", "max_cells")
_KEY = "job.json"
#: There if the job numbers events itself.
_NUMBERS = "numbers_events"
#: There if the state is not one that micro-batches and the inline engine share.
_ENGINE, BATCHES = "engine", "batches"


@dataclass(frozen=True, slots=True)
class JobFile:
    """The file ``job.json`` of a store."""

    store: Store

    def exists(self) -> bool:
        try:
            self.store.get(_KEY)
        except MissingError:
            return False
        return True

    def create(
        self,
        settings: Settings,
        first_plan: int,
        epoch: int = 0,
        *,
        numbers_events: bool = False,
        engine: str = BATCHES,
    ) -> None:
        """Name the job and write down what it is bound to.

        ``first_plan``, made in an epoch, holds while the log is empty. ``numbers_events``: events come
        without a seq of their own.
        """
        fixed = {name: asdict(settings)[name] for name in FIXED}
        about = {"format": FORMAT, "job_id": uuid.uuid4().hex, "plan": first_plan, **fixed}
        if epoch:
            about["plan_epoch"] = epoch
        if numbers_events:
            about[_NUMBERS] = True
        if engine != BATCHES:
            about[_ENGINE] = engine
        if not self.store.put_if_absent(_KEY, json.dumps(about, indent=2).encode()):
            raise StateError(f"there is a state in {self.store.location()} already")

    def check(self, settings: Settings) -> None:
        """Raise unless the job can go on with these settings."""
        about = self._read()
        if about.get("format") != FORMAT:
            raise StateError(
                f"{self.store.location(_KEY)} must have format {FORMAT}; got {about.get('format')}"
            )
        for name in FIXED:
            wanted = asdict(settings)[name]
            found = tuple(about[name]) if isinstance(about.get(name), list) else about.get(name)
            if found != wanted:
                raise StateError(
                    f"the state in {self.store.location()} was made with {name}={found!r}; got {wanted!r}. "
                    "Use the same settings, or another state directory"
                )

    def check_engine(self, engine: str = BATCHES) -> None:
        """Raise unless the state is of engines of this kind: they number events in ways of their own."""
        found = self.engine
        if found != engine:
            words = {BATCHES: "--engine microbatch or inline"}
            raise StateError(
                f"the state in {self.store.location()} was made by "
                f"{words.get(found, f'--engine {found}')}; got {words.get(engine, f'--engine {engine}')}. "
                "Use the same engine, or another state directory"
            )

    @property
    def engine(self) -> str:
        """Return which engine the state is of: ``batches`` for those that share one."""
        return str(self._read().get(_ENGINE, BATCHES))

    def check_order(self, numbers_events: bool) -> None:
        """Raise unless events are ordered as they were from the start.

        A batch that is decided keeps the seqs of its updates. Run again with publications that are numbered
        in the other way, it would miss matches, and nothing would tell.
        """
        if bool(self._read().get(_NUMBERS, False)) != numbers_events:
            was, came = ("with", "without") if numbers_events else ("without", "with")
            raise StateError(
                f"the state in {self.store.location()} was made by events {was} a seq; got events {came}. "
                "Use the same kind of events, or another state directory"
            )

    @property
    def job_id(self) -> str:
        """Return what tells this job from all others."""
        return str(self.values("job_id")["job_id"])

    @property
    def first_plan(self) -> int:
        return int(self.values("plan")["plan"])

    @property
    def first_plan_epoch(self) -> int:
        return int(self._read().get("plan_epoch", 0))

    @property
    def stop_words(self) -> tuple[str, ...]:
        found = self.values("stop_words")["stop_words"]
        if not isinstance(found, tuple):
            raise StateError(f"{self.store.location(_KEY)} cannot be read: stop_words is {found!r}")
        return found

    def values(self, *names: str) -> dict[str, Any]:
        """Return some of what was written down; lists become tuples, as in settings."""
        about = self._read()
        try:
            chosen = {name: about[name] for name in names}
        except KeyError as error:
            raise StateError(f"{self.store.location(_KEY)} cannot be read: it has no {error}") from error
        return {name: tuple(each) if isinstance(each, list) else each for name, each in chosen.items()}

    def _read(self) -> dict[str, Any]:
        try:
            return dict(json.loads(bytes(self.store.get(_KEY))))
        except (StateError, ValueError, TypeError) as error:
            raise StateError(f"{self.store.location(_KEY)} cannot be read: {error}") from error
