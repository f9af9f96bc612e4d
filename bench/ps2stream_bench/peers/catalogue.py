"""All peers by name, and why one cannot run here.

Modules are imported when their peer is asked for: who lacks one of the tools can still run the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import pyarrow as pa
from pyspark.sql import SparkSession

from ps2stream.engines.spark.java import require_java
from ps2stream.errors import ConfigError
from ps2stream_bench.peers.contract import Peer
from ps2stream_bench.peers.postgres_server import missing


@dataclass(frozen=True, slots=True)
class Setup:
    """What peers are made with.

    ``spark``: gives the one session of this process; it is asked by peers that run on Spark only, and none of
    them stops it. ``sample``: publish events that a plan of PS2Stream may be made from.
    """

    spark: Callable[[], SparkSession]
    stop_words: tuple[str, ...] = ()
    n_workers: int = 2
    sample: pa.Table | None = None


def open_peer(name: str, setup: Setup) -> Peer:
    """Make a peer; whoever asks for it has to close it."""
    return _PEERS[name].make(setup)


def unavailable(name: str) -> str | None:
    """Say in a sentence why a peer cannot run here; None if it can."""
    reason = _PEERS[name].lacks()
    return f"{name}: {reason}" if reason else None


def _numpy_scan(setup: Setup) -> Peer:
    from ps2stream_bench.peers.numpy_scan import NumpyScan

    return NumpyScan(setup.stop_words)


def _str_tree(setup: Setup) -> Peer:
    from ps2stream_bench.peers.str_tree import StrTree

    return StrTree(setup.stop_words)


def _spark_sql(setup: Setup) -> Peer:
    from ps2stream_bench.peers.spark_sql import SparkSql

    return SparkSql(setup.spark(), setup.stop_words)


def _postgresql(setup: Setup) -> Peer:
    from ps2stream_bench.peers.postgresql import PostgreSql

    return PostgreSql(setup.stop_words)


def _inline(setup: Setup) -> Peer:
    from ps2stream_bench.peers.ps2stream_peers import PS2StreamInline, settings_of

    return PS2StreamInline(settings_of(setup.stop_words, setup.n_workers), setup.sample)


def _microbatch(setup: Setup) -> Peer:
    from ps2stream_bench.peers.ps2stream_peers import PS2StreamMicrobatch, settings_of

    return PS2StreamMicrobatch(setup.spark(), settings_of(setup.stop_words, setup.n_workers), setup.sample)


def _nothing() -> str | None:
    return None


def _shapely() -> str | None:
    return None if find_spec("shapely") else "shapely is not installed (pip install shapely)"


def _java() -> str | None:
    try:
        require_java()
    except ConfigError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True)
class _Entry:
    make: Callable[[Setup], Peer]
    lacks: Callable[[], str | None]


_PEERS = {
    "PS2Stream inline": _Entry(_inline, _nothing),
    "PS2Stream microbatch": _Entry(_microbatch, _java),
    "Spark SQL": _Entry(_spark_sql, _java),
    "numpy scan": _Entry(_numpy_scan, _nothing),
    "shapely STRtree": _Entry(_str_tree, _shapely),
    "PostgreSQL + PostGIS": _Entry(_postgresql, missing),
}

#: Ours first, then the others.
NAMES = tuple(_PEERS)
