"""Drivers in turns: threads that share a store, of which a seeded scheduler lets one do one step."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from ps2stream.store.contract import Store


class KilledError(Exception):
    """The driver is gone."""


class Turns:
    """Let threads take turns; at times one is killed at its step, before it or after it."""

    def __init__(self, rng: random.Random, kill_share: float = 0.0) -> None:
        self._rng = rng
        self._kill_share = kill_share
        self._go: dict[int, threading.Semaphore] = {}
        self._mine = threading.local()
        self._favoured = 0
        self._waiting: set[int] = set()
        self._running = 0
        self._changed = threading.Condition()
        self.n_kills = 0
        self.failures: list[BaseException] = []

    def run(self, drivers: list[Callable[[], None]]) -> None:
        """Run drivers until all have ended."""
        self._go = {number: threading.Semaphore(0) for number in range(len(drivers))}
        threads = [
            threading.Thread(target=self._guarded, args=(number, drive))
            for number, drive in enumerate(drivers)
        ]
        self._running = len(threads)
        for thread in threads:
            thread.start()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: len(self._waiting) == self._running)
                if not self._waiting:
                    break
                picked = self._pick(sorted(self._waiting))
                self._waiting.discard(picked)
            self._go[picked].release()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def _pick(self, waiting: list[int]) -> int:
        """Favour one for a while, then another: the others are those that come back late."""
        if self._favoured not in waiting or self._rng.random() < 0.1:
            self._favoured = self._rng.choice(waiting)
        return self._favoured

    def step(self) -> None:
        """Wait for a turn."""
        me = self._mine.number
        with self._changed:
            self._waiting.add(me)
            self._changed.notify_all()
        self._go[me].acquire()
        if self._rng.random() < self._kill_share:
            self.n_kills += 1
            raise KilledError

    def _guarded(self, number: int, drive: Callable[[], None]) -> None:
        self._mine.number = number
        try:
            with contextlib.suppress(KilledError):
                drive()
        except BaseException as failure:
            self.failures.append(failure)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class InTurns:
    """A store each of whose operations waits for a turn: everything may happen between two of them."""

    store: Store
    turns: Turns

    def put(self, key: str, data: bytes) -> None:
        self.turns.step()
        self.store.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.turns.step()
        return self.store.put_if_absent(key, data)

    @contextlib.contextmanager
    def writer(self, key: str) -> Iterator[BinaryIO]:
        with self.store.writer(key) as file:
            yield file
            self.turns.step()

    def get(self, key: str) -> pa.Buffer:
        self.turns.step()
        return self.store.get(key)

    def list(self, prefix: str = "") -> list[str]:
        self.turns.step()
        return self.store.list(prefix)

    def delete(self, *keys: str) -> None:
        for key in keys:  # in no way at once
            self.turns.step()
            self.store.delete(key)

    def sweep(self) -> None:
        self.store.sweep()

    def under(self, prefix: str) -> Store:
        return InTurns(self.store.under(prefix), self.turns)

    def location(self, key: str = "") -> str:
        return self.store.location(key)
