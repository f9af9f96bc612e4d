"""Epochs: the claims of drivers to a state, one after the other; and what keeps the earlier ones out.

    epochs/00000001.json  epochs/00000002.json  ...

Drivers on several hosts have no lock in common, and no clock. A driver may be thought dead and yet go on: it
was paused, its host was cut off, a request of its was on the way for minutes. So nothing here rests on time.
All that is asked of the store is that put-if-absent has one winner, and that who reads after a put has
returned sees it. The claim of epoch E is such a put; of two drivers one gets it.

*Names of their own.* What the driver of epoch E writes has E in its key: segments, snapshots, plans, and the
small files that say what of these counts (its *roots*: the log's manifest, the ledger). Readers go by the
roots of the newest epoch. So no driver can overwrite what another has written, whatever it does.

*Claim, then read; write, then look.* A driver that takes over claims E + 1, and only then reads the roots
of E, from which it makes its own. A driver puts a root, and only then looks whether E + 1 is claimed. If
it is not, the put came before the claim, so before the reading: whoever takes over has it. If it is, the
driver stops (FencedError) before anybody has seen what it put: tasks start when ``decide`` has returned. So

- what a driver went on from is part of all that comes later, once and for all;
- what came too late is in roots that nobody reads any more;
- of two drivers at most one gets beyond the next put of a root, and that is the later one.

*Deletes.* A driver deletes what its roots do not need any more, after it has put these and looked: files
of the log that a snapshot covers, plans below all that are in use. Later roots were made from these, so they
do not need it either, and it does not matter when the delete arrives.

*The sink.* A task writes what batch N has when N is decided for good, and that is a function of the log and
of the events: two drivers that both run N write the same bytes. Rejected updates are written before the
decision, from the log up to N - 1 and the events of N. Which events N has is settled before: in the ledger, a
root, where they come from a journal; elsewhere by Spark's checkpoint, which has to be as common to drivers as
the store is. (Events without a seq are numbered as they come: if a source gives N in another order the second
time, publications of N may change numbers among themselves, and nothing else.)

*Reports.* Status and audit records are by epoch, too; a late one is seen as what that driver said last, or
not at all. Nothing depends on them.

*What a driver remembers.* The roots of an epoch have one writer. What it put, and looked after, is what is
there: it need not read them again. A task has no such memory, and whoever is sent the store begins without.

Claims are never deleted: a driver that has slept through many of them must still find the next one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from ps2stream.errors import FencedError, MissingError
from ps2stream.store.contract import Store

_NAME = re.compile(r"(\d{8})\.json")
_ROOT = re.compile(r"(.*/)?(manifest|ledger)-\d{8}\.json")


@dataclass(frozen=True, slots=True)
class Epochs:
    """The claims in a store; epoch 0 is that of a state whose drivers share a host and its lock."""

    store: Store

    def newest(self) -> int:
        """Return the newest epoch that is claimed, 0 before the first.

        Without gaps, so a listing that lags is no harm: what it lacks is found by asking for it.
        """
        names = map(_NAME.fullmatch, self.store.list())
        epoch = max((int(name[1]) for name in names if name), default=0)
        while self.is_claimed(epoch + 1):
            epoch += 1
        return epoch

    def claim(self, epoch: int, driver: str) -> bool:
        """Claim an epoch, the one after the newest; return whether this driver got it."""
        return self.store.put_if_absent(_key(epoch), driver.encode())

    def driver(self, epoch: int) -> str:
        """Return who claimed an epoch, for messages."""
        return bytes(self.store.get(_key(epoch))).decode(errors="replace")

    def is_claimed(self, epoch: int) -> bool:
        try:
            self.store.get(_key(epoch))
        except MissingError:
            return False
        return True

    def check(self, epoch: int) -> None:
        """Raise unless an epoch is still the newest."""
        if self.is_claimed(epoch + 1):
            raise FencedError(
                f"another driver has taken over from epoch {epoch} of the state in "
                f"{self.store.location()}; this one must not go on"
            )


@dataclass(frozen=True, slots=True)
class FencedStore:
    """The store of a state as the driver of one epoch writes it: a put that returns is seen by its successor.

    Roots are put. What is put if absent or written in pieces counts only when a root names it that is put
    afterwards, so there is no look after it.
    """

    store: Store
    epochs: Epochs
    epoch: int
    _own_roots: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        """Send it without what this process remembers: elsewhere that would not be the last word."""
        return FencedStore, (self.store, self.epochs, self.epoch)

    def put(self, key: str, data: bytes) -> None:
        where = self.store.location(key)
        self._own_roots.pop(where, None)  # if this fails, nobody knows which one is there
        self.store.put(key, data)
        self.epochs.check(self.epoch)
        if _ROOT.fullmatch(key):
            self._own_roots[where] = data

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self.store.put_if_absent(key, data)

    @contextlib.contextmanager
    def writer(self, key: str) -> Iterator[BinaryIO]:
        with self.store.writer(key) as file:
            yield file

    def get(self, key: str) -> pa.Buffer:
        known = self._own_roots.get(self.store.location(key))
        return self.store.get(key) if known is None else pa.py_buffer(known)

    def list(self, prefix: str = "") -> list[str]:
        return self.store.list(prefix)

    def delete(self, *keys: str) -> None:
        for key in keys:
            self._own_roots.pop(self.store.location(key), None)
        self.store.delete(*keys)

    def sweep(self) -> None:
        self.store.sweep()

    def under(self, prefix: str) -> Store:
        return FencedStore(self.store.under(prefix), self.epochs, self.epoch, self._own_roots)

    def location(self, key: str = "") -> str:
        return self.store.location(key)


def _key(epoch: int) -> str:
    return f"{epoch:08}.json"
