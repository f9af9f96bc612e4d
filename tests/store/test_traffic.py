"""What is asked of object stores is counted, by all threads of a process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ps2stream.errors import MissingError
from ps2stream.roles.reports import report_from_json, report_to_json
from ps2stream.store.contract import delete_all
from ps2stream.store.traffic import NO_TRAFFIC, Traffic, count, traffic_so_far
from s3_server import S3Server


def test_every_call_is_counted_with_the_bytes_of_its_blobs(s3: S3Server) -> None:
    store, before = s3.store(), traffic_so_far()
    with s3.counting() as requests:
        store.put("a", b"123")
        assert store.put_if_absent("b", b"12345")
        with store.writer("c/d") as file:
            file.write(b"12")
            file.write(b"34567")
        assert store.get("a").size + store.get("c/d").size == 10
        with pytest.raises(MissingError):
            store.get("nothing")
        assert store.list() == ["a", "b", "c/d"]
        store.delete("a")
        delete_all(store)
    traffic = traffic_so_far() - before
    assert traffic == Traffic(gets=3, puts=3, lists=2, deletes=2, bytes_in=10, bytes_out=15)
    assert traffic.requests == len(requests)


def test_a_put_that_finds_a_blob_and_looks_whose_it_is_counts_as_both(s3: S3Server) -> None:
    store = s3.store()
    store.put("a", b"one")
    before = traffic_so_far()
    assert not store.put_if_absent("a", b"two")
    assert traffic_so_far() - before == Traffic(gets=1, puts=1, bytes_out=3)


def test_threads_count_together() -> None:
    before = traffic_so_far()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: count(Traffic(gets=1, bytes_in=2)), range(4_000)))
    assert traffic_so_far() - before == Traffic(gets=4_000, bytes_in=8_000)


def test_counts_are_added_taken_away_and_sent() -> None:
    one, other = Traffic(1, 2, 3, 4, 5, 6), Traffic(10, 20, 30, 40, 50, 60)
    assert one + other == Traffic(11, 22, 33, 44, 55, 66)
    assert (one + other) - one == other
    assert one + NO_TRAFFIC == one
    assert one.requests == 10
    assert report_from_json(report_to_json(one)) == one
