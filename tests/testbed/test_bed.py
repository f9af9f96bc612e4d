from __future__ import annotations

import json
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from testbed.bed import Bed, Sizes, load, record_pid
from testbed.environment import of_command, services
from testbed.errors import BedError
from testbed.layout import lay_out


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    layout = lay_out(1, IPv4Network("198.18.1.0/24"), n_hosts=2, kafka=True)
    environment = {"HOME": "/root", "PYSPARK_PYTHON": "/usr/bin/python3"}
    return Bed(tmp_path, layout, Sizes(2, "1g"), 4711, environment, {"h1": 12})


def test_a_bed_is_read_as_it_was_written(bed: Bed) -> None:
    bed.save()
    assert load(bed.description) == bed


def test_the_process_of_a_member_is_written_down(bed: Bed) -> None:
    bed.save()
    record_pid(bed.description, "kafka", 13)
    told = json.loads(bed.description.read_text())
    assert told["services"]["kafka"]["pid"] == 13
    assert told["hosts"]["h1"]["pid"] == 12
    assert told["hosts"]["h2"]["pid"] is None


def test_a_member_that_is_not_there_is_refused_by_name(bed: Bed) -> None:
    with pytest.raises(BedError, match=r"no member 'h3' in ps2b1; it has store, kafka, master, h1, h2"):
        bed.member("h3")


def test_a_command_is_told_where_everything_is(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")
    monkeypatch.setenv("AWS_PROFILE", "mine")
    told = of_command(bed)
    assert told["PS2STREAM_MASTER"] == "spark://198.18.1.4:7077"
    assert told["PS2STREAM_STORE"] == "s3://ps2stream/ps2b1"
    assert told["PS2STREAM_KAFKA"] == "198.18.1.3:9092"
    assert told["AWS_ENDPOINT_URL"] == "http://198.18.1.2:9000"
    assert told["SPARK_LOCAL_IP"] == "198.18.1.1"
    assert told["NO_PROXY"].split(",")[:2] == ["example.org", "198.18.1.2"]
    assert "AWS_PROFILE" not in told


def test_without_a_broker_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PS2STREAM_KAFKA", "somewhere.else:9092")
    layout = lay_out(1, IPv4Network("198.18.1.0/24"), n_hosts=1, kafka=False)
    bed = Bed(tmp_path, layout, Sizes(2, "1g"), 4711, {"PYSPARK_PYTHON": "python3"}, {})
    assert "PS2STREAM_KAFKA" not in services(bed)
    assert "PS2STREAM_KAFKA" not in of_command(bed)
