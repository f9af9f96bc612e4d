"""What the registrar makes of reports: horizons, and questions to the controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ps2stream.adjusting.controller import Adjusted, Observed
from ps2stream.balance.adjustments import Adjustment
from ps2stream.metrics.recorder import Recorder
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.resident.controlling import Controlling
from ps2stream.resident.reporting import Reporter
from ps2stream.resident.wire import Received
from ps2stream.roles.packets import CELL_LOADS, SAMPLED

RECORD = Adjustment("local", 0, "now", "told", 1, 2, (), ())


@dataclass
class Watcher:
    """A controller that notes what it is told."""

    observed: list[Observed] = field(default_factory=list)
    done: list[Adjustment] = field(default_factory=list)

    def observe(self, observed: Observed) -> Adjustment | None:
        self.observed.append(observed)
        return None

    def adjust(self, batch_id: int, registrar: Any, hosts: Sequence[Any]) -> Adjusted | None:
        return None

    def completed(self, record: Adjustment) -> None:
        self.done.append(record)


def told(recorder: Recorder, **more: Any) -> list[Received]:
    """Return the report of a role as it comes to the registrar."""
    sends = Reporter(recorder, 0.0).sends(**more)
    return [Received(send.place, n, send.value, send.key) for n, send in enumerate(sends)]


def worker(number: int, *, horizon: int = 0, position: int = 0) -> Recorder:
    recorder = Recorder("worker", number, 1)
    recorder.set("horizon", horizon)
    recorder.set("position", position)
    return recorder


def cells(cell: int) -> pa.RecordBatch:
    row = dict.fromkeys(CELL_LOADS.names, 1) | {"cell": cell}
    return pa.RecordBatch.from_pylist([row], schema=CELL_LOADS)


def test_the_horizon_is_the_least_of_all_workers_and_unknown_before_all_have_told() -> None:
    controlling = Controlling(None, 2, 0.0)
    controlling.take(told(worker(0, horizon=31)))
    assert controlling.horizon == BEFORE_ALL_SEQS
    controlling.take(told(worker(1, horizon=21)))
    assert controlling.horizon == 21
    controlling.take(told(worker(1, horizon=(1 << 62) + 1)) + told(worker(0, horizon=(1 << 62) + 3)))
    assert controlling.horizon == (1 << 62) + 1


def test_a_controller_is_asked_when_there_is_something_new_to_see() -> None:
    watcher = Watcher()
    controlling = Controlling(watcher, 2, 0.0)
    assert controlling.asked() is None
    dispatcher = Recorder("dispatcher", 0, 1)
    controlling.take(told(dispatcher))
    controlling.take(told(worker(0), cells=cells(3)))
    controlling.asked()
    dispatcher.count("publications", 5)
    sample = pa.RecordBatch.from_pylist([{"lon": 1.0, "lat": 1.0, "terms": [1]}], schema=SAMPLED)
    controlling.take(told(worker(0), cells=cells(3)) + told(worker(0), cells=cells(4)))
    controlling.take(told(dispatcher, sampled=[sample]))
    controlling.n_updates = 7
    assert controlling.asked() is watcher
    observed = watcher.observed[-1]
    assert (observed.n_publications, observed.n_updates) == (5, 7)
    assert observed.cells[0].column("cell").to_pylist() == [3, 4]
    assert sum(each.num_rows for each in observed.sampled) == 1
    assert controlling.asked() is None
    assert controlling.n_updates == 0


def test_what_roles_did_before_this_registrar_began_is_not_new_to_it() -> None:
    watcher = Watcher()
    controlling = Controlling(watcher, 1, 0.0)
    dispatcher = Recorder("dispatcher", 0, 1)
    dispatcher.count("publications", 1_000_000)
    controlling.take(told(dispatcher) + told(worker(0), cells=cells(3)))
    controlling.asked()
    dispatcher.count("publications", 5)
    controlling.take(told(dispatcher) + told(worker(0), cells=cells(3)))
    controlling.asked()
    assert [each.n_publications for each in watcher.observed] == [0, 5]


def test_without_a_controller_nobody_is_asked() -> None:
    controlling = Controlling(None, 1, 0.0)
    controlling.take(told(worker(0), cells=cells(3)))
    assert controlling.asked() is None
    controlling.request_repartition()


def test_after_an_adjustment_nobody_is_asked_until_all_workers_have_applied_it() -> None:
    watcher = Watcher()
    controlling = Controlling(watcher, 2, 0.0)
    controlling.began(RECORD, 100)
    controlling.take(told(worker(0, position=100), cells=cells(3)))
    assert controlling.asked() is None
    assert not watcher.done
    controlling.take(told(worker(1, position=102), cells=cells(3)))
    assert controlling.asked() is watcher
    (done,) = watcher.done
    assert done.migration_s >= 0
    assert controlling.completed() == [done]
    assert controlling.completed() == []


@pytest.mark.parametrize("n_cells", [4, 16])
def test_contents_are_those_of_the_cells_that_there_are_now(n_cells: int) -> None:
    controlling = Controlling(Watcher(), 2, 0.0)
    contents = pa.record_batch({"bytes": pa.array(np.arange(4))})
    controlling.take(told(worker(1), contents=contents))
    first, second = controlling.contents(n_cells)
    assert first.tolist() == [0] * n_cells
    assert second.tolist() == ([0, 1, 2, 3] if n_cells == 4 else [0] * n_cells)


def test_reports_of_any_size_go_in_parts_that_brokers_take_and_come_to_the_same() -> None:
    contents = pa.record_batch({"bytes": pa.array(range(300_000), pa.int64())})
    reports = told(worker(0), contents=contents)
    assert len(reports) > 3
    assert max(len(report.value or b"") for report in reports) < 1_000_000
    controlling = Controlling(Watcher(), 1, 0.0)
    controlling.take(reports)
    (known,) = controlling.contents(300_000)
    assert known.tolist() == list(range(300_000))
