"""The history of one subscription: from which seq to which seq each of its versions counted."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from ps2stream.deployment.decided_log import decided_log
from ps2stream.deployment.deployment_events import DeploymentEvents
from ps2stream.deployment.home import Home
from ps2stream.deployment.live_subscriptions import decisions, pending, stop_words_of
from ps2stream.deployment.settled import settled
from ps2stream.errors import JournalError, quoted
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.model.space import Region
from ps2stream.registry.segments import BEGIN, BOUNDS, END
from ps2stream.state.state import State


@dataclass(frozen=True, slots=True)
class Version:
    """What a subscription asked for, after ``seq_from`` and before ``seq_to``.

    None stands for always and for ever; an ``id`` of None for a subscription made up to be explained.
    """

    expression: str
    region: Region
    id: str | None = None
    seq_from: int | None = None
    seq_to: int | None = None
    replaced: bool = False

    def sees(self, seq: int | None) -> bool:
        """Tell whether a publication of a seq met this version; None is one that comes now."""
        if seq is None:
            return self.seq_to is None
        begun = self.seq_from is None or self.seq_from < seq
        return begun and (self.seq_to is None or seq < self.seq_to)


def versions_of(home: Home, subscription_id: str) -> list[Version]:
    """Return the versions of an id that events and log still know, oldest first."""
    with closing(home.events()) as events:
        words = settled(home, events, lambda state: _words(home, state, events, subscription_id))
    versions: list[Version] = []
    for word in sorted(words.to_pylist(), key=lambda word: word["seq"]):
        if versions and versions[-1].seq_to is None:
            versions[-1] = _ended(versions[-1], word["seq"], replaced=word["is_subscribe"])
        if word["is_subscribe"]:
            region = Region(*(word[name] for name in BOUNDS))
            versions.append(Version(word["expression"], region, subscription_id, word["seq"]))
    if not versions:
        raise JournalError(
            f"no subscription with the id {quoted(subscription_id)} is known in {home.directory}"
        )
    return versions


def version_for(versions: list[Version], seq: int | None) -> Version:
    """Choose the version that a publication met, else the last one before it, else the first one after."""
    if seq is None:
        return versions[-1]
    before = [version for version in versions if version.seq_from is None or version.seq_from < seq]
    return before[-1] if before else versions[0]


def _ended(version: Version, seq: int, *, replaced: bool) -> Version:
    return Version(version.expression, version.region, version.id, version.seq_from, seq, replaced)


def _words(home: Home, state: State, events: DeploymentEvents, subscription_id: str) -> pa.Table:
    """Gather begins and ends, each once: the log and the events tell of the same ones."""
    said = {}
    # All that the events has, not only what the log lacks: a snapshot has forgotten what ended before it.
    update = pending(events, BEFORE_ALL_SEQS, stop_words_of(state), [subscription_id])
    for word in update.valid.to_pylist():
        said[word["seq"]] = word
    for row in decisions(decided_log(home, state), [subscription_id]).rows.to_pylist():
        if row["change"] == BEGIN:
            said[row["seq_from"]] = {**row, "seq": row["seq_from"], "is_subscribe": True}
        elif row["change"] == END:
            # An end that another subscribe caused is that subscribe, and stays it.
            said.setdefault(row["seq_to"], {"seq": row["seq_to"], "is_subscribe": False})
    if not said and update.rejected.num_rows:
        last = update.rejected.to_pylist()[-1]
        raise JournalError(
            f"{last['op']} {quoted(subscription_id)} at seq {last['seq']} is rejected: {last['reason']}"
        )
    return pa.Table.from_pylist(list(said.values()), schema=update.valid.schema)
