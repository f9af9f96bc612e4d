"""Prometheus is served at /metrics, others are told where that is, and a port that is taken is told of."""

from __future__ import annotations

import gzip
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ps2stream.errors import ConfigError
from ps2stream.metrics.board import Board
from ps2stream.metrics.endpoint import serving
from ps2stream.metrics.measures import RoleMeasures


@pytest.fixture
def board() -> Board:
    return Board("inline")


@pytest.fixture
def url(board: Board) -> Iterator[str]:
    with serving(board) as url:
        yield url


def get(url: str, **headers: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
        content: bytes = answer.read()
        return content


def test_each_look_has_what_is_on_the_board_then(board: Board, url: str) -> None:
    for n_matches in (1, 5):
        board.post(RoleMeasures("worker", 0, counters={"matches": n_matches}))
        (family,) = (
            each
            for each in text_string_to_metric_families(get(url).decode())
            if each.name == "ps2stream_matches"
        )
        assert [sample.value for sample in family.samples] == [n_matches]


def test_it_listens_to_this_host_alone(url: str) -> None:
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/metrics")


def test_who_asks_for_it_gets_it_compressed(board: Board, url: str) -> None:
    board.post(RoleMeasures("worker", 0, counters={"matches": 1}))
    compressed = get(url, **{"Accept-Encoding": "gzip"})
    assert b"ps2stream_matches_total" in gzip.decompress(compressed)


def test_the_root_says_where_metrics_are(url: str) -> None:
    assert b"/metrics" in get(url.removesuffix("metrics"))


def test_any_other_path_is_not_found(url: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        get(url.removesuffix("/metrics") + "/status")
    assert caught.value.code == 404
    assert b"/metrics" in caught.value.read()


def test_an_address_that_is_taken_is_told_of(board: Board) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"metrics cannot be served at 127\.0\.0\.1:{port}: "):
            serving(board, port=port).__enter__()


def test_the_port_is_free_again_afterwards(board: Board) -> None:
    with serving(board) as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
    with serving(board, port=port):
        pass
