"""A deployment for Python: what the command line does with a home directory, as methods."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import pyarrow as pa

from ps2stream.balance.adjustments import Adjustment
from ps2stream.deployment import intake
from ps2stream.deployment.deployment_events import Demands
from ps2stream.deployment.explanation import Explanation, explain
from ps2stream.deployment.home import Home, state_of
from ps2stream.deployment.job_life import job_life
from ps2stream.deployment.live_subscriptions import at_point, live_subscriptions
from ps2stream.deployment.match_reader import POLL_S, Matches, Wanted
from ps2stream.deployment.plan_lookup import plan_for
from ps2stream.deployment.publication_lookup import KnownPublication
from ps2stream.deployment.settled import settled
from ps2stream.deployment.submission import Receipt, Record, submit
from ps2stream.deployment.subscription_history import Version, version_for, versions_of
from ps2stream.errors import RegionError, StateError
from ps2stream.files import AnyPath, absolute
from ps2stream.model.matches import Match
from ps2stream.model.publications import Publication
from ps2stream.model.rejections import OnRejected
from ps2stream.model.schemas import MATCHES
from ps2stream.model.space import check_point
from ps2stream.model.subscriptions import Subscription
from ps2stream.state.job_file import BATCHES
from ps2stream.state.state import State
from ps2stream.text.tokenizer import Tokenizer


class Deployment:
    """One deployment, by its home directory; it keeps nothing open from one call to the next.

    ``subscribe``, ``publish`` and ``unsubscribe`` add to the journal, from which a job (``ps2stream run``)
    takes them; the directory is made when it is needed. The rest looks and changes nothing. Where the job has
    its state and output in a store, the home says so, and that is where they are read.

    A record is a Publication or Subscription, or a mapping like the JSON objects that the command line
    reads (GeoJSON Features and FeatureCollections, too). What is given in one call comes in its order.
    """

    def __init__(self, home: AnyPath) -> None:
        self.home = Home(absolute(home))

    @classmethod
    def of(cls, home: Home) -> Deployment:
        """Return the deployment of a home."""
        deployment = cls(home.directory)
        deployment.home = home
        return deployment

    @classmethod
    def on_kafka(
        cls,
        servers: str,
        *,
        prefix: str = "ps2stream",
        store: str | None = None,
        home: AnyPath = "ps2stream-data",
        properties: AnyPath | None = None,
    ) -> Deployment:
        """Return the deployment of topics on Kafka (``host:port,...``); the first append makes them.

        ``store``: what its job has its state in; without one that is in the directory ``home``.
        ``properties``: a file with settings of Kafka's clients.
        """
        from ps2stream.kafka.client import Kafka
        from ps2stream.kafka.topics import Topics

        topics = Topics(Kafka(servers, None if properties is None else str(properties)), prefix)
        return cls.of(Home(absolute(home), topics, store))

    def __repr__(self) -> str:
        return f"Deployment({str(self.home)!r})"

    def subscribe(
        self, subscriptions: Record | Iterable[Record], *, on_rejected: OnRejected = "raise"
    ) -> Receipt:
        """Begin subscriptions, one or many, or replace those of their ids, from the next publication on.

        If one is not valid a RejectedError says which and why, and none is added; with ``skip`` the others
        are, and the receipt tells of it.
        """
        kind = intake.subscriptions(self.home.stop_words())
        return submit(self.home, kind, _many(subscriptions), on_rejected)

    def publish(
        self,
        publications: Record | Iterable[Record],
        *,
        on_rejected: OnRejected = "raise",
        after: int | None = None,
        as_of: int | None = None,
    ) -> Receipt:
        """Add publications, one or many; a mapping without an id gets one, which the receipt tells.

        If one is not valid a RejectedError says which and why, and none is added; with ``skip`` the others
        are, and the receipt tells of it. Resident roles match them ``after`` the update of a seq, as its
        receipt tells it, or ``as_of`` one, where that is asked for.
        """
        demands = Demands(after, as_of)
        return submit(self.home, intake.publications(), _many(publications), on_rejected, demands)

    def unsubscribe(self, ids: str | Iterable[str], *, on_rejected: OnRejected = "raise") -> Receipt:
        """End subscriptions, one or many; an id that no live subscription has is rejected."""
        wanted = dict.fromkeys([ids] if isinstance(ids, str) else ids)
        return submit(self.home, intake.unsubscriptions(self.home), wanted, on_rejected)

    def subscriptions(
        self, ids: str | Iterable[str] | None = None, *, at: tuple[float, float] | None = None
    ) -> pa.Table:
        """Return the subscriptions that the next publication would meet, oldest first.

        Columns: ``seq`` (of the subscribe), ``id``, ``expression`` and the region's four bounds. ``ids``:
        only this one, or these; ``at``: only those whose region holds a point, (lat, lon).
        """
        if at is not None and (reason := check_point(at[1], at[0])):
            raise RegionError(reason)
        wanted = [ids] if isinstance(ids, str) else ids
        live = live_subscriptions(self.home, None if wanted is None else list(wanted))
        return live if at is None else at_point(live, *at)

    def matches(self, subscription_id: str | None = None, *, since: int | None = None) -> pa.Table:
        """Return what was delivered by now (schema MATCHES), each match once, oldest first.

        ``subscription_id``: only its matches; ``since``: only those of publications from this seq on.
        """
        batches = self._reader().read(Wanted(subscription_id, since))
        return pa.Table.from_batches(batches, MATCHES)

    def follow(
        self,
        subscription_id: str | None = None,
        *,
        since: int | None = None,
        new: bool = False,
        timeout_s: float | None = None,
        poll_s: float = POLL_S,
    ) -> Iterator[Match]:
        """Yield matches as they are delivered, those that are there first unless only ``new`` ones count.

        It ends when nothing came for ``timeout_s``; without one it waits for ever. ``poll_s``: how often it
        looks; on an object store it looks once a second at most.
        """
        reader = self._reader()
        if new:
            reader.skip()  # now, not when the first match is asked for
        batches = reader.follow(Wanted(subscription_id, since), timeout_s=timeout_s, poll_s=poll_s)
        return (Match(**row) for batch in batches for row in batch.to_pylist())

    def explain(
        self,
        publication: str | Publication | KnownPublication,
        subscription: str | Subscription | Version,
    ) -> Explanation:
        """Say why a publication does or does not match a subscription; a string is an id to look up.

        Of a publication id that was used again the newest one is meant; of a subscription, the version that
        the publication met. Values need not be in the deployment: they count as if they came now.
        """
        found = self._publication(publication)
        version = self._version(subscription, found)
        return explain(found, version, Tokenizer(self.home.stop_words()), plan_for(self.home, version))

    def status(self) -> dict[str, Any]:
        """Return how the load is spread: the fields of ``ps2stream status --json``."""
        state = state_of(self.home)
        status, life = state.mailbox.read_status(), job_life(self.home, state)
        told = {"lease_age_s": life.lease_age_s} if life.has_lease else {}
        age_s = None if status is None else _age_s("status", status)
        return {"running": life.is_running, **told, "age_s": age_s, **(status or {})}

    def board(self) -> dict[str, Any]:
        """Return how the job is doing: the fields of ``ps2stream top --json``."""
        state = state_of(self.home)
        board, life = state.mailbox.read_board(), job_life(self.home, state)
        age_s = None if board is None else _age_s("board", board)
        return {"running": life.is_running, "age_s": age_s, **(board or {})}

    def adjustments(self) -> list[Adjustment]:
        """Return what load adjustment did, and why, oldest first."""
        state_of(self.home)
        return settled(self.home, None, _adjustments)

    def _reader(self) -> Matches:
        if not self.home.exists():
            raise StateError(f"there is no deployment in {self.home}")
        return self.home.matches()

    def _publication(self, publication: str | Publication | KnownPublication) -> KnownPublication:
        match publication:
            case str():
                with closing(self.home.events()) as events:
                    return events.publication(publication)
            case Publication(id, text, lat, lon):
                return KnownPublication(lat, lon, text, id)
            case _:
                return publication

    def _version(self, subscription: str | Subscription | Version, publication: KnownPublication) -> Version:
        match subscription:
            case str():
                return version_for(versions_of(self.home, subscription), publication.seq)
            case Subscription(id, expression, region):
                return Version(expression, region, id)
            case _:
                return subscription


def _age_s(name: str, word: Mapping[str, Any]) -> float:
    try:
        return max(0.0, time.time() - float(word["at"]))
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(f"the {name} of the job cannot be read: {error!r}") from error


def _adjustments(state: State) -> list[Adjustment]:
    is_resident = state.job_file.engine != BATCHES
    return (state.resident_adjustments if is_resident else state.adjustments).read()


def _many(records: Record | Iterable[Record]) -> Iterable[Record]:
    if isinstance(records, Publication | Subscription | Mapping):
        return [records]
    return records
