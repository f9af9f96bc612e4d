"""What the outer end of a cable sends comes to the member."""

from __future__ import annotations

from pathlib import Path

from ps2stream_bench.cluster.members import Member
from ps2stream_bench.cluster.traffic import Traffic, traffic_of


def test_bytes_are_named_from_the_members_point_of_view(tmp_path: Path) -> None:
    counts = tmp_path / "bed-store" / "statistics"
    counts.mkdir(parents=True)
    (counts / "tx_bytes").write_text("700\n")
    (counts / "rx_bytes").write_text("30\n")
    store = Member("store", "bed-store", "bed-store", is_host=False)
    assert traffic_of([store], tmp_path) == {"store": Traffic(to_bytes=700, from_bytes=30)}
