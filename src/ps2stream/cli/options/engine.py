"""``--engine``: who runs a stream; and what of the other options that leaves no sense to."""

from __future__ import annotations

import argparse

from ps2stream.cli.options.cluster import MASTER, master_from
from ps2stream.cli.options.home import KAFKA
from ps2stream.cli.options.usage import UsageError
from ps2stream.deployment.home import Home

MICROBATCH, INLINE = "microbatch", "inline"
ENGINES = (MICROBATCH, INLINE)


def add_engine(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default=default,
        help="microbatch: on Spark; inline: in this process, without Spark or Java (default: %(default)s)",
    )


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
