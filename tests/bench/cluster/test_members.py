"""A driver finds the members of its bed where the test bed describes them."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from ps2stream_bench.cluster.members import Member, members_here
from testbed.bed import HANDLE, Bed, Sizes
from testbed.layout import lay_out


def test_the_description_of_a_bed_is_understood(tmp_path: Path) -> None:
    layout = lay_out(7, ipaddress.IPv4Network("198.18.7.0/24"), n_hosts=2, kafka=False)
    bed = Bed(tmp_path, layout, Sizes(2, "1g"), 1, {}, {})
    bed.save()
    found = members_here({HANDLE: str(bed.description)})
    assert Member("h2", "ps2b7-h2", "ps2b7-h2", is_host=True) in found
    assert {each.name: each.is_host for each in found} == {
        "h1": True,
        "h2": True,
        "store": False,
        "master": False,
    }
