"""The lease of a driver: its epoch, and a sign of life that lets others see when it is gone.

    epochs/00000003.alive      how often the driver of epoch 3 has renewed its lease and, by its own clock,
                               when it last did; or that it has let go

Safety does not rest on it (``epochs.py`` says on what); it is there so that a second driver is refused while
the first lives, and goes on in its place when it does not. Who wants the state watches the sign: one that
changes is that of a living driver; one that has not changed for the time-out, by the watcher's own clock, is
that of a dead one. No clocks are compared: signs are equal or not. A driver that lets go says so, and nobody
has to wait. The time in a sign is there to be shown to people (:func:`last_sign`): who may write does not
depend on it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ps2stream.errors import FencedError, MissingError, StateError
from ps2stream.state.epochs import Epochs, FencedStore
from ps2stream.store.contract import Store

_LOG = logging.getLogger(__name__)

#: Seconds without a renewal after which a driver is taken for dead.
TIMEOUT_S = 20.0
#: Renewals within the time-out: some may fail.
_RENEWALS = 5
#: How often one who waits looks, at least.
_LOOK_S = 0.25
_LET_GO = b"let go"


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long a driver may be silent, and how often it tells that it lives."""

    timeout_s: float = TIMEOUT_S

    @property
    def renew_s(self) -> float:
        return self.timeout_s / _RENEWALS


_USUAL = LeaseTerms()


class SignOfLife(NamedTuple):
    """What a driver said last: that it lives, and when by its own clock; or that it has let go."""

    epoch: int
    is_let_go: bool
    renewed_at: float | None = None

    @property
    def age_s(self) -> float | None:
        """Return the seconds since the lease was renewed, if two clocks agree; None if it is not known."""
        return None if self.renewed_at is None else max(0.0, time.time() - self.renewed_at)

    @property
    def seems_alive(self) -> bool:
        """Say whether a driver holds the lease, as far as its clock and ours agree: for people to read."""
        if self.is_let_go or self.renewed_at is None:
            return False
        return abs(time.time() - self.renewed_at) < TIMEOUT_S


def last_sign(store: Store) -> SignOfLife | None:
    """Return what the driver of the newest epoch of a state said last; None before the first."""
    epoch = Epochs(store.under("epochs")).newest()
    if not epoch:
        return None
    sign = _read_sign(store, epoch)
    if sign == _LET_GO:
        return SignOfLife(epoch, is_let_go=True)
    words = (sign or b"").split()
    try:
        return SignOfLife(epoch, is_let_go=False, renewed_at=float(words[1]))
    except (IndexError, ValueError):  # it has claimed its epoch and has yet to say anything
        return SignOfLife(epoch, is_let_go=False)


def refuse_if_held(store: Store, terms: LeaseTerms = _USUAL) -> bool:
    """Raise if a driver renews its lease on a state while we watch, at most until a renewal is overdue.

    For those who would find out later, after much else; whoever gets by still has to :meth:`Lease.acquire`.
    Return whether that will have to wait.
    """
    sign = last_sign(store)
    if sign is None or sign.is_let_go:
        return False
    if sign.seems_alive and _is_renewed(store, sign.epoch, 1.5 * terms.renew_s, terms):
        raise _refused(store, sign.epoch)
    return True


class Lease:
    """The claim of one driver to a state, renewed in the background until it lets go or is fenced."""

    def __init__(self, store: Store, driver: str, terms: LeaseTerms = _USUAL) -> None:
        self._store = store
        self._driver = driver
        self._terms = terms
        self._epochs = Epochs(store.under("epochs"))
        self._stopped = threading.Event()
        self._renewing: threading.Thread | None = None
        #: Between the claim of an epoch of our own and our taking note of it, it looks like another driver's.
        self._advancing = threading.Lock()
        self._fenced: FencedError | None = None
        self.epoch = 0

    @contextlib.contextmanager
    def held(self) -> Iterator[Lease]:
        """Hold the state while the block lasts; raise if another driver does."""
        self.acquire()
        try:
            yield self
        finally:
            self.release()

    def acquire(self) -> None:
        """Claim the next epoch, if need be after waiting until the driver of the newest is taken for dead."""
        newest = self._epochs.newest()
        if newest:
            self._outlive(newest)
        if not self._epochs.claim(newest + 1, self._driver):
            raise _refused(self._store, newest + 1)
        self.epoch = newest + 1
        self._renew(0)
        self._renewing = threading.Thread(target=self._go_on_renewing, name="lease", daemon=True)
        self._renewing.start()

    def advance(self) -> None:
        """Claim another epoch for this driver: one that starts again leaves its own late writes behind."""
        with self._advancing:
            if not self._epochs.claim(self.epoch + 1, self._driver):
                raise FencedError(f"another driver has taken over the state in {self._store.location()}")
            self.epoch += 1
            self._renew(0)

    def fenced(self) -> FencedStore:
        """Return the store as this driver has to write it."""
        return FencedStore(self._store, self._epochs, self.epoch)

    def check(self) -> None:
        """Raise if another driver has taken over."""
        self._epochs.check(self.epoch)

    def check_renewals(self) -> None:
        """Raise if renewals have found that another driver has taken over; asks the store for nothing."""
        if self._fenced is not None:
            raise self._fenced

    def release(self) -> None:
        """Let go; call when nothing is written any more."""
        self._stopped.set()
        if self._renewing is not None:
            self._renewing.join()
        with contextlib.suppress(StateError):  # then the next driver waits
            self._store.put(_sign(self.epoch), _LET_GO)

    def _outlive(self, epoch: int) -> None:
        """Return when the driver of an epoch has been silent for long enough; raise if it is not."""
        if _is_renewed(self._store, epoch, self._terms.timeout_s, self._terms):
            raise _refused(self._store, epoch)

    def _renew(self, n_renewals: int) -> None:
        self._store.put(_sign(self.epoch), f"{n_renewals} {time.time():.3f}".encode())

    def _go_on_renewing(self) -> None:
        n_renewals = 0
        while not self._stopped.wait(self._terms.renew_s):
            n_renewals += 1
            try:
                with self._advancing:
                    self._renew(n_renewals)
                    self.check()
            except FencedError as error:
                _LOG.warning("%s", error)
                self._fenced = error
                return
            except StateError as error:  # what needs the store will tell; the next time it may be there
                _LOG.warning("the lease cannot be renewed: %s", error)


def _sign(epoch: int) -> str:
    return f"epochs/{epoch:08}.alive"


def _read_sign(store: Store, epoch: int) -> bytes | None:
    try:
        return bytes(store.get(_sign(epoch)))
    except MissingError:
        return None


def _is_renewed(store: Store, epoch: int, watch_s: float, terms: LeaseTerms) -> bool:
    """Watch the sign of an epoch; say whether it changes other than by letting go."""
    sign = _read_sign(store, epoch)
    until = time.monotonic() + watch_s
    while sign != _LET_GO and time.monotonic() < until:
        time.sleep(min(terms.renew_s / 4, _LOOK_S))
        now = _read_sign(store, epoch)
        if now not in (sign, _LET_GO):
            return True
        sign = now
    return False


def _refused(store: Store, epoch: int) -> StateError:
    return StateError(
        f"another job is running on the state in {store.location()}: "
        f"its driver, {Epochs(store.under('epochs')).driver(epoch)}, holds epoch {epoch}"
    )
