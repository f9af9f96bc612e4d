"""``--master``, ``--store``, ``--conf``: a Spark cluster to run on, what its hosts share, its settings."""

from __future__ import annotations

import argparse
import os

from ps2stream.cli.options.usage import UsageError
from ps2stream.errors import quoted

MASTER, STORE = "PS2STREAM_MASTER", "PS2STREAM_STORE"


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add all three."""
    parser.add_argument(
        "--master",
        metavar="URL",
        default=os.environ.get(MASTER) or None,
        help=f"a Spark cluster, such as spark://host:7077 or yarn (default: {MASTER}, else this machine)",
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        type=place,
        help="what the hosts of a cluster share, such as s3://bucket/prefix, or a mounted directory "
        f"(default with a cluster: {STORE})",
    )
    parser.add_argument(
        "--conf",
        metavar="KEY=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="a setting of Spark, such as spark.executor.memory=8g, in place of ours; may be repeated",
    )


def master_from(arguments: argparse.Namespace) -> str | None:
    """Return the master of a cluster; None where the work is done on this machine."""
    master: str | None = arguments.master
    return None if master is None or master.startswith("local") else master


def store_from(arguments: argparse.Namespace) -> str | None:
    """Return the store that was named: by the option or, for work on a cluster, by the environment."""
    if arguments.store is not None or master_from(arguments) is None:
        store: str | None = arguments.store
        return store
    return os.environ.get(STORE) or None


def cluster_from(arguments: argparse.Namespace) -> tuple[str | None, str | None]:
    """Return master and store of work that leaves nothing behind; None where it is done on this machine."""
    master = master_from(arguments)
    return (None, None) if master is None else (master, needed_store(master, store_from(arguments)))


def needed_store(master: str, store: str | None) -> str:
    """Return the store of work on a cluster; raise if there is none."""
    if store is None:
        raise UsageError(
            f"--master {master} needs --store (or {STORE}): a URL or a directory that all its hosts reach"
        )
    return store


def conf_from(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the settings of Spark that were given; of one that was given twice, the last."""
    return dict(arguments.conf)


def place(text: str) -> str:
    """Take the name of a place, which may be anything but nothing."""
    if not text:
        raise argparse.ArgumentTypeError("must be a URL or a directory; got nothing")
    return text


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark.") or name != name.strip():
        raise argparse.ArgumentTypeError(
            f"must be KEY=VALUE with a key that begins with 'spark.'; got {quoted(text)}"
        )
    if name == "spark.master":
        raise argparse.ArgumentTypeError(f"the master is named by --master; got {quoted(text)}")
    return name, value
