"""A controller that adjusts for no reason, for roles that stay."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from laws.chaos import Chaos
from ps2stream.adjusting.controller import Adjusted
from ps2stream.config import Settings
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker_host import WorkerHost


@dataclass(slots=True)
class Restless(Chaos):
    """Think anew with every question: here the number stays the same until an adjustment is made."""

    def adjust(self, batch_id: int, registrar: Registrar, hosts: Sequence[WorkerHost]) -> Adjusted | None:
        self.seed += 1
        return Chaos.adjust(self, batch_id, registrar, hosts)


@dataclass(frozen=True, slots=True)
class MakeRestless:
    """Make such a controller in the task of a registrar."""

    seed: int
    events: pa.RecordBatch
    share: float = 0.7

    def __call__(self, settings: Settings, background: ThreadPoolExecutor) -> Restless:
        return Restless(self.seed, self.events, self.share)
