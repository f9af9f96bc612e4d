"""Dispatchers take their packets in portions of a bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from ps2stream.engines import batch_tasks
from ps2stream.model.events import nothing_rejected
from ps2stream.model.schemas import PUBLICATIONS
from ps2stream.sources.source import SourceBatch


class _Source:
    """Packets in memory."""

    def __init__(self, *texts: list[str]) -> None:
        self._texts = texts

    def publications(self) -> Iterator[SourceBatch]:
        for texts in self._texts:
            rows = [{"seq": number, "id": "p", "text": text} for number, text in enumerate(texts)]
            yield SourceBatch(pa.RecordBatch.from_pylist(rows, PUBLICATIONS), nothing_rejected())


@pytest.mark.parametrize(
    ("most", "most_bytes", "sizes"),
    [(100, 1 << 20, [7]), (4, 1 << 20, [3, 4]), (100, 1_200, [2, 5]), (1, 1, [1, 1, 1, 4])],
)
def test_packets_are_joined_up_to_a_number_of_publications_and_of_bytes(
    most: int, most_bytes: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_tasks, "_ROUTE_AT_ONCE", most)
    monkeypatch.setattr(batch_tasks, "_ROUTE_BYTES_AT_ONCE", most_bytes)
    sources: Any = (_Source(["x" * 500], ["y" * 500]), _Source(["z" * 500], ["a", "b", "c", "d"]))
    portions = [publications for publications, _ in batch_tasks.gathered(sources)]
    assert [portion.num_rows for portion in portions] == sizes
    texts = [text for portion in portions for text in portion.column("text").to_pylist()]
    assert texts == ["x" * 500, "y" * 500, "z" * 500, "a", "b", "c", "d"]
