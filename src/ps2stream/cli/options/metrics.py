"""``--metrics``: where Prometheus finds the figures of a job, if anywhere."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ps2stream.cli.render.output import note
from ps2stream.errors import quoted
from ps2stream.extras import require

if TYPE_CHECKING:
    from ps2stream.metrics.board import Board

_LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>[^:\s\[\]]+|\[[0-9a-fA-F:.]+\]):)?(?P<port>\d{1,5})", re.ASCII)
_LAST_PORT = 65_535


class Address(NamedTuple):
    host: str
    port: int


def add_metrics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics",
        metavar="[HOST:]PORT",
        type=address,
        help="serve counters and latencies of all roles to Prometheus at http://HOST:PORT/metrics; "
        f"without HOST to this host alone ({_LOOPBACK}); port 0 takes a free one (default: off)",
    )


def address(text: str) -> Address:
    """Read ``[HOST:]PORT``; an address of IPv6 stands in brackets."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > _LAST_PORT:
        raise argparse.ArgumentTypeError(
            f"must be PORT or HOST:PORT, with a port up to {_LAST_PORT}; got {quoted(text)}"
        )
    return Address((found["host"] or _LOOPBACK).strip("[]"), int(found["port"]))


@contextlib.contextmanager
def metrics_served(arguments: argparse.Namespace, engine: str) -> Iterator[Board]:
    """Yield the board of a job; it is served while the context lasts, if that was asked for."""
    from ps2stream.metrics.board import Board

    board = Board(engine)
    if arguments.metrics is None:
        yield board
        return
    require("--metrics", "metrics")
    from ps2stream.metrics.endpoint import serving

    with serving(board, *arguments.metrics) as url:
        note(f"metrics at {url}")
        yield board
