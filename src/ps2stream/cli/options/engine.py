"""``--engine``: who runs a stream; and what of the other options that leaves no sense to."""

from __future__ import annotations

import argparse

from ps2stream.cli.options.cluster import MASTER, master_from
from ps2stream.cli.options.kafka import KAFKA
from ps2stream.cli.options.usage import UsageError
from ps2stream.deployment.home import Home

MICROBATCH, INLINE, REALTIME = "microbatch", "inline", "realtime"


_MEANINGS = {
    MICROBATCH: "batches on Spark",
    INLINE: "in this process, without Spark or Java",
    REALTIME: "resident roles on Spark, with topics of Kafka between them",
}


def add_engine(
    parser: argparse.ArgumentParser, default: str, engines: tuple[str, ...] = (MICROBATCH, INLINE)
) -> None:
    words = "; ".join(f"{engine}: {_MEANINGS[engine]}" for engine in engines)
    parser.add_argument("--engine", choices=engines, default=default, help=f"{words} (default: %(default)s)")


def check_realtime(home: Home) -> None:
    """Refuse a stream of resident roles without topics."""
    if home.topics is None:
        raise UsageError(f"--engine realtime needs Kafka: --kafka HOST:PORT (or {KAFKA})")


def check_inline(arguments: argparse.Namespace, home: Home) -> None:
    """Refuse what a stream in this process cannot do: to run elsewhere, and to read topics."""
    if (master := master_from(arguments)) is not None:
        raise UsageError(
            f"--engine inline runs in this process, without a cluster; got --master {master} (or {MASTER})"
        )
    if arguments.conf:
        raise UsageError(f"--engine inline has no settings of Spark; got --conf {arguments.conf[0][0]}")
    if home.topics is not None:
        raise UsageError(
            f"--engine inline reads the journal of a home, not topics; got --kafka (or {KAFKA}): "
            "name a --home, or use --engine microbatch"
        )
