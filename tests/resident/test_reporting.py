"""Reports: measures for those who watch, loads for the controller."""

from __future__ import annotations

import pyarrow as pa

from ps2stream.metrics.measures import RoleMeasures
from ps2stream.metrics.recorder import Recorder
from ps2stream.model.schemas import empty
from ps2stream.resident.reporting import Reporter, ReportKind
from ps2stream.resident.wire import Place, Topic
from ps2stream.roles.packets import CELL_LOADS, SAMPLED, WORKER, decode


def test_a_report_is_due_at_once_and_then_when_its_time_has_come() -> None:
    reporter = Reporter(Recorder("worker", 3), 1e9)
    assert reporter.is_due()
    assert not reporter.is_due()


def test_measures_are_always_told_and_the_rest_where_there_is_any() -> None:
    recorder = Recorder("worker", 3)
    recorder.count("batches", 2)
    recorder.set("horizon", (1 << 62) + 1)
    (send,) = Reporter(recorder, 1.0).sends()
    assert (send.place, send.key) == (Place(Topic.LOADS), ReportKind.MEASURES.encode())
    told = RoleMeasures.from_json(send.value)
    assert (told.role, told.number, told.counters) == ("worker", 3, {"batches": 2})
    assert told.gauges == {"horizon": (1 << 62) + 1}  # a horizon that is rounded up is none


def test_loads_say_whose_they_are() -> None:
    reporter = Reporter(Recorder("worker", 3), 1.0)
    contents = pa.record_batch({"bytes": pa.array([1, 2])})
    sampled = [empty(SAMPLED), empty(SAMPLED)]
    sends = reporter.sends(sampled, cells=empty(CELL_LOADS), contents=contents)
    assert [send.key for send in sends] == [b"measures", b"sample", b"cells", b"contents"]
    cells, told = (decode(send.value) for send in sends[2:])
    assert cells.schema.metadata[WORKER] == told.schema.metadata[WORKER] == b"3"
    assert told.column("bytes").to_pylist() == [1, 2]
