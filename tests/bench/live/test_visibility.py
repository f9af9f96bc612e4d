"""A subscription that nobody saw is counted, and not left out."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ps2stream.model.schemas import MATCHES
from ps2stream_bench.live.clients import Acknowledged
from ps2stream_bench.live.visibility import Probe


def test_what_was_not_seen_counts_with_the_time_that_it_was_looked_for() -> None:
    probe = Probe.__new__(Probe)
    probe._window_s, probe._sent_at, probe._acknowledged = 2.0, [0.0, 1.0, 2.0, 3.0], Acknowledged()
    # The third is looked for in part only.
    probe._acknowledged.at = {b"visible-0": 0.5, b"visible-1": 0.75, b"visible-2": 1.5}
    row = {
        "subscription_id": "visible-0",
        "subscription_seq": 2,
        "publication_id": "visibility-1",
        "publication_seq": 3,
    }
    waited, n_unseen = probe.found_s([(9.0, pa.RecordBatch.from_pylist([row], schema=MATCHES))])
    assert waited.tolist() == pytest.approx([0.5, 2.0])
    assert n_unseen == 1
