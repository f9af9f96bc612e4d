"""The state of a stream while one driver holds it: by a lock of its host, or by a lease in the store.

A lock costs nothing and is let go of by the operating system when its holder dies, but only processes of one
host see it. A state at a URL, and any state on a cluster, may be wanted by a driver on another host: there
it is a lease, and every start of the job is an epoch of its own (``state/epochs.py``).
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator

from ps2stream.errors import FencedError, StateError
from ps2stream.files import AnyPath
from ps2stream.state.host_files import HostFiles
from ps2stream.state.lease import Lease
from ps2stream.state.state import State
from ps2stream.store.urls import is_url, store_at


def state_at(where: AnyPath, *, on_cluster: bool = False) -> State:
    """Return the state at a path or a URL, as a driver sees it whose tasks run on this host, or on many."""
    if on_cluster:
        return State.among_hosts(store_at(where))
    if not is_url(where):
        return State.at(where)
    store = store_at(where)
    return State(store, HostFiles.of(store.location()))


class HeldState:
    """A state that this driver holds; without a lease by a lock, which nobody can take from it."""

    def __init__(self, state: State, lease: Lease | None = None) -> None:
        self._state, self._lease = state, lease
        self._n_starts = 0

    def start(self) -> State:
        """Return the state for the next start of its job."""
        if self._lease is None:
            return self._state
        if self._n_starts:
            self._lease.advance()  # what is late of the start before is left behind
        self._n_starts += 1
        return self._state.taken_over(self._lease)

    def check(self) -> None:
        """Raise if another driver is known to have taken over: one that has nothing to write asks nobody."""
        if self._lease is not None:
            self._lease.check_renewals()


@contextlib.contextmanager
def held_state(where: AnyPath, *, on_cluster: bool = False) -> Iterator[HeldState]:
    """Hold a state while the context lasts."""
    state = state_at(where, on_cluster=on_cluster)
    if not on_cluster and not is_url(where):
        with state.host.lock.held():
            yield HeldState(state)
        return
    lease = Lease(state.store, f"process {os.getpid()} of {socket.gethostname()}")
    with lease.held():
        try:
            yield HeldState(state, lease)
        except Exception as error:
            _raise_if_fenced(lease, error)
            raise


def _raise_if_fenced(lease: Lease, error: Exception) -> None:
    """Say of a driver that was taken over that it was, however it noticed: files go that it still reads."""
    if isinstance(error, FencedError):
        return
    try:
        lease.check()
    except FencedError as fenced:
        raise fenced from error
    except StateError:  # nobody can tell: the store is away
        return
