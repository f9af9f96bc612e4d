"""``--master`` and ``--store``: a Spark cluster to run on, and what its hosts share."""

from __future__ import annotations

import argparse
import os

from ps2stream.cli.options.usage import UsageError

MASTER, STORE = "PS2STREAM_MASTER", "PS2STREAM_STORE"


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add both."""
    parser.add_argument(
        "--master",
        metavar="URL",
        default=os.environ.get(MASTER) or None,
        help=f"a Spark cluster, such as spark://host:7077 or yarn (default: {MASTER}, else this machine)",
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        default=os.environ.get(STORE) or None,
        help="what the hosts of a cluster share, such as s3://bucket/prefix, or a mounted directory "
        f"(default: {STORE})",
    )


def cluster_from(arguments: argparse.Namespace) -> tuple[str | None, str | None]:
    """Return master and store; None where the work is done on this machine."""
    master = arguments.master
    if master is None or master.startswith("local"):
        return None, None
    if arguments.store is None:
        raise UsageError(
            f"--master {master} needs --store (or {STORE}): a URL or a directory that all its hosts reach"
        )
    return master, arguments.store
