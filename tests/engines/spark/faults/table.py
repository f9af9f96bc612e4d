"""Make the table of a report from the lines that campaigns have written.

python tests/engines/spark/faults/table.py docs/faults.jsonl
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: What each kind of fault is, in the order of the table.
_WORDS = {
    "none": "nothing",
    "python": "a Python process is killed",
    "role-pause": "a process of a role is stopped, for 2 to 22 s",
    "usurped": "all roles are stopped, others write in their place, and the first go on",
    "executor": "an executor is killed",
    "worker": "Spark's worker process of a host is killed",
    "host": "a host is killed; it may come back with an empty disk",
    "host-pause": "a host is stopped until its roles run elsewhere, and goes on",
    "driver": "the driver is killed",
    "jvm": "the driver's JVM is killed",
    "pause": "the driver is paused; another takes over",
    "cut-5": "a host is cut off for 5 s",
    "cut-40": "a host is cut off for 40 s",
    "link-5": "a host and the broker are cut off from each other for 5 s",
    "link-25": "a host and the broker are cut off from each other for 25 s",
    "store": "the store is killed, and away for up to 8 s",
    "store-cut-40": "the store is cut off for 40 s",
    "master": "Spark's master is killed, and away for up to 8 s",
    "kafka": "the broker is killed, and away for up to 8 s",
    "kafka-cut-5": "the broker is cut off for 5 s",
    "kafka-cut-25": "the broker is cut off for 25 s",
    "disk-full": "the broker's disk is full, for up to 8 s",
}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def of_engine(campaigns: Iterable[dict[str, Any]], engine: str) -> list[dict[str, Any]]:
    """Return the campaigns of an engine; those that name none are of the micro-batch engine."""
    return [each for each in campaigns if each.get("engine", "microbatch") == engine]


def table_of(campaigns: Iterable[dict[str, Any]]) -> str:
    """Return a table in Markdown: how often each kind of fault was made, and how long going on took."""
    times: dict[str, list[float]] = {}
    for campaign in campaigns:
        for row in campaign["faults"]:
            times.setdefault(row["kind"], []).append(row["to_go_on_s"])
    lines = ["| fault | times | seconds to go on: median | worst |", "|---|---|---|---|"]
    for kind, words in _WORDS.items():
        if found := times.get(kind):
            lines.append(f"| {words} | {len(found)} | {statistics.median(found):.1f} | {max(found):.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    for engine in ("microbatch", "realtime"):
        print(engine, table_of(of_engine(read(Path(sys.argv[1])), engine)), sep="\n\n", end="\n\n")
