"""Both engines on the same event log, in one run: throughput, latency, memory.

    python -m ps2stream_bench.replay --subscriptions 1000000 --events 1200000

Makes an event log (all subscriptions first, then the paper's mix of five publications to one
change), replays it with ``ps2stream replay`` on each engine in turn, checks that they deliver
the same matches, and prints a table. Loading the subscriptions counts in "all events" only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ps2stream.demo.workload import Workload
from ps2stream.model.schemas import EVENTS

_CHUNK = 100_000


def make_log(path: Path, n_subscriptions: int, n_events: int, seed: int) -> None:
    """Write subscriptions and then mixed events, in row groups of moderate size."""
    workload = Workload(seed)
    with pq.ParquetWriter(path, EVENTS) as file:
        for start in range(0, n_subscriptions, _CHUNK):
            file.write_batch(workload.subscriptions(min(_CHUNK, n_subscriptions - start)))
        for start in range(0, n_events, _CHUNK):
            file.write_batch(workload.events(min(_CHUNK, n_events - start)))


class MemoryWatch(threading.Thread):
    """Sample the memory of this process's descendants: what is theirs alone, and what they map together."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._stopped = threading.Event()
        self.peak_bytes = 0

    def run(self) -> None:
        while not self._stopped.wait(1.0):
            self.peak_bytes = max(self.peak_bytes, sum(map(_proportional_bytes, _family(self._root))))

    def stop(self) -> int:
        self._stopped.set()
        self.join()
        return self.peak_bytes


def _family(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(after_name[1]), []).append(int(path.parent.name))
    found, waiting = [], [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def _proportional_bytes(process_id: int) -> int:
    try:
        lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def replay(events: Path, engine: str, scratch: Path, extra: list[str]) -> dict[str, Any]:
    """Run the command as a user would; return its report with the peak memory of all its processes."""
    out, report = scratch / engine, scratch / f"{engine}.json"
    command = [sys.executable, "-m", "ps2stream", "replay", str(events), "--out", str(out), "--quiet"]
    command += ["--report", str(report), "--engine", engine, *extra]
    started = time.monotonic()
    process = subprocess.Popen(command)
    watch = MemoryWatch(process.pid)
    watch.start()
    if process.wait():
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    figures: dict[str, Any] = json.loads(report.read_text())
    figures["peak_bytes"] = watch.stop()
    figures["command_s"] = time.monotonic() - started
    figures["fingerprint"] = fingerprint(out / "matches")
    return figures


def fingerprint(matches: Path) -> tuple[int, int]:
    """Return the number of matches and an order-free sum over them."""
    table = pq.read_table(matches)
    mixed = pc.bit_wise_xor(
        pc.multiply(table.column("publication_seq"), pa.scalar(1_000_003, pa.int64())),
        table.column("subscription_seq"),
    )
    return table.num_rows, pc.sum(mixed).as_py() or 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--subscriptions", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=1_200_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--engines", default="inline,microbatch")
    parser.add_argument("--log", type=Path, help="replay this event log instead of making one")
    parser.add_argument("--raw", type=Path, help="write the reports here, as JSON")
    arguments, extra = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="ps2stream-bench-") as directory:
        scratch = Path(directory)
        events = arguments.log or scratch / "events.parquet"
        if arguments.log is None:
            make_log(events, arguments.subscriptions, arguments.events, arguments.seed)
        reports = {engine: replay(events, engine, scratch, extra) for engine in arguments.engines.split(",")}
    if arguments.raw:
        arguments.raw.write_text(json.dumps(reports, indent=2))
    print_table(reports)
    if len({report["fingerprint"] for report in reports.values()}) > 1:
        raise SystemExit("the engines do not deliver the same matches")


def print_table(reports: dict[str, dict[str, Any]]) -> None:
    rows = [
        ("events", "events", ",.0f"),
        ("live subscriptions", "live_subscriptions", ",.0f"),
        ("matches", "matches", ",.0f"),
        ("matches a publication", "matches_per_publication", ".2f"),
        ("candidates a publication", "candidates_per_publication", ".2f"),
        ("seconds for all events", "wall_s", ",.1f"),
        ("tuples/s, all events", "tuples_per_s", ",.0f"),
        ("tuples/s, after loading", "matching_tuples_per_s", ",.0f"),
        ("projected tuples/s", "projected_tuples_per_s", ",.0f"),
        ("index bytes a subscription", "index_bytes_per_subscription", ",.0f"),
        ("peak memory, all processes, MiB", "peak_mib", ",.0f"),
    ]
    for report in reports.values():
        report["peak_mib"] = report["peak_bytes"] / 2**20
    print(f"{'':34}" + "".join(f"{engine:>14}" for engine in reports))
    for name, key, style in rows:
        print(f"{name:34}" + "".join(f"{report[key]:>14{style}}" for report in reports.values()))
    for quantile in ("p50", "p99"):
        values = "".join(f"{report['latency_ms'][quantile]:>14,.0f}" for report in reports.values())
        print(f"{f'batch latency {quantile}, ms':34}{values}")


if __name__ == "__main__":
    main()
