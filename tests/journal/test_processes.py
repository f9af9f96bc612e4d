"""Real processes that append, read and die."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_publications, decode_updates

# Appends batches of changing size and prints each acknowledged one: first seq, last seq, batch number.
_PUBLISHER = """
import sys
from pathlib import Path
import pyarrow as pa
from ps2stream.journal import Journal
from ps2stream.model.schemas import EVENTS

directory, name, n_appends = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with Journal.open(directory, create=True) as journal:
    for number in range(n_appends):
        size = 1 + number * 37 % 60
        rows = [
            {"op": op, "id": f"{name}-{number}-{row}", "text": "x" * 1_000}
            for row, op in enumerate((["publish"] * 3 + ["subscribe"]) * size)
        ][:size]
        appended = journal.append(pa.RecordBatch.from_pylist(rows, schema=EVENTS))
        print(appended.first_seq, appended.last_seq, number, flush=True)
"""

Acknowledged = tuple[str, int, int, int]


def publish(directory: Path, name: str, n_appends: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PUBLISHER, str(directory), name, str(n_appends)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def acknowledged(name: str, output: str) -> list[Acknowledged]:
    # A killed process may have been cut off within its last line.
    lines = [line.split() for line in output.splitlines(keepends=True) if line.endswith("\n")]
    return [(name, int(first), int(last), int(number)) for first, last, number in lines]


def read_all(journal: Journal, after: int, upto: int) -> dict[int, str]:
    """Read a range and check that its packets are whole and its seqs gapless."""
    events: dict[int, str] = {}
    for packet in journal.read(after, upto):
        assert packet.damage is None
        publications, updates = decode_publications(packet.publications), decode_updates(packet.updates)
        assert (publications.num_rows, updates.num_rows) == (packet.n_publications, packet.n_updates)
        found: dict[int, str] = {}
        for batch in (publications, updates):
            found.update(zip(batch.column("seq").to_pylist(), batch.column("id").to_pylist(), strict=True))
        assert sorted(found) == list(range(packet.first_seq, packet.last_seq + 1))
        assert not events or packet.first_seq == max(events) + 1
        events.update(sorted(found.items()))
    return events


def assert_holds(events: dict[int, str], appends: list[Acknowledged]) -> None:
    for name, first, last, number in appends:
        ids = [events[seq] for seq in range(first, last + 1)]
        assert ids == [f"{name}-{number}-{row}" for row in range(last - first + 1)]


def test_processes_append_at_once_while_one_reads(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    # All three find no journal and create it.
    publishers = [publish(tmp_path / "journal", name, 60) for name in names]
    while not (tmp_path / "journal" / "journal.sqlite").exists():
        time.sleep(0.01)
    events: dict[int, str] = {}
    position = n_reads = 0
    with Journal.open(tmp_path / "journal") as journal:
        while True:
            finished = all(publisher.poll() is not None for publisher in publishers)
            upto = journal.end_within(position, 2_000)
            if upto > position:
                events.update(read_all(journal, position, upto))
                position, n_reads = upto, n_reads + 1
            elif finished:
                break
            else:
                time.sleep(0.01)
    appends: list[Acknowledged] = []
    for name, publisher in zip(names, publishers, strict=True):
        output, _ = publisher.communicate()
        assert publisher.returncode == 0
        appends += acknowledged(name, output)
    assert len(appends) == 180
    assert n_reads > 1
    assert list(events) == list(range(1, len(events) + 1))
    assert len(events) == sum(last - first + 1 for _, first, last, _ in appends)
    assert_holds(events, appends)


def test_a_killed_publisher_loses_nothing_acknowledged_and_tears_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    random_source = random.Random(20)
    appends: list[Acknowledged] = []
    for round_number in range(5):
        names = [f"{round_number}x", f"{round_number}y"]
        publishers = [publish(directory, name, 1_000_000) for name in names]
        first_lines = [publisher.stdout.readline() for publisher in publishers if publisher.stdout]
        for name, publisher, first_line in zip(names, publishers, first_lines, strict=True):
            time.sleep(random_source.uniform(0, 0.15))
            publisher.send_signal(signal.SIGKILL)
            output, _ = publisher.communicate()
            assert publisher.returncode == -signal.SIGKILL
            appends += acknowledged(name, first_line + output)
        with Journal.open(directory) as journal:
            events = read_all(journal, 0, journal.last().position)
            assert list(events) == list(range(1, journal.last().seq + 1))
        assert_holds(events, appends)
        # An append that was not acknowledged may be there, at most one for each kill.
        n_acknowledged = sum(last - first + 1 for _, first, last, _ in appends)
        assert n_acknowledged <= len(events) <= n_acknowledged + 60 * 2 * (round_number + 1)
    assert len(appends) >= 10
