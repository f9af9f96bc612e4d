"""The subscription log keeps whole segments, in order, and says when one is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from disks import small_disk
from ps2stream.errors import StateError
from ps2stream.matching.contract import FOREVER
from ps2stream.registry.log import SubscriptionLog, is_covered
from ps2stream.registry.manifest import Manifest
from ps2stream.registry.segments import BEGIN, SEGMENT
from ps2stream.routing.routing import Routing
from ps2stream.store.directory import DirectoryStore

ROUTING = Routing(1)
TWO = Routing(5, 3, 1 << 40)


def segment(*seqs: int) -> pa.RecordBatch:
    rows = [
        {
            "change": BEGIN,
            "seq_from": seq,
            "seq_to": FOREVER,
            "id": f"s{seq}",
            "expression": "fire",
            "clauses": [[seq]],
            "workers": [0],
        }
        for seq in seqs
    ]
    return pa.RecordBatch.from_pylist(rows, SEGMENT)


def contents(log: SubscriptionLog, after: int = -1, upto: int | None = None) -> list[tuple[int, list[int]]]:
    return [(number, part.column("seq_from").to_pylist()) for number, part in log.read(after, upto)]


def test_segments_come_back_in_the_order_of_their_batches(tmp_path: Path) -> None:
    log = SubscriptionLog(DirectoryStore(tmp_path / "log"))
    for batch_id in (3, 0, 12):
        log.append(batch_id, segment(batch_id, batch_id + 1), ROUTING)
    assert contents(log) == [(0, [0, 1]), (3, [3, 4]), (12, [12, 13])]
    assert contents(log, after=0, upto=11) == [(3, [3, 4])]
    assert contents(log, after=12) == []
    assert log.last() == 12


def test_a_segment_comes_back_as_it_was(tmp_path: Path) -> None:
    log = SubscriptionLog(DirectoryStore(tmp_path))
    log.append(0, segment(4, 5), ROUTING)
    ((_, found),) = log.read()
    assert found.equals(segment(4, 5))


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    log = SubscriptionLog(DirectoryStore(tmp_path / "nothing"))
    assert contents(log) == []
    assert (log.base(), log.last()) == (-1, -1)
    assert log.routing() is None


def test_appending_a_batch_again_replaces_it(tmp_path: Path) -> None:
    log = SubscriptionLog(DirectoryStore(tmp_path))
    log.append(1, segment(1), ROUTING)
    log.append(1, segment(1), ROUTING)
    assert contents(log) == [(1, [1])]


def test_a_snapshot_stands_for_everything_up_to_its_batch(tmp_path: Path) -> None:
    log = SubscriptionLog(DirectoryStore(tmp_path))
    for batch_id in range(5):
        log.append(batch_id, segment(batch_id), ROUTING)
    log.snapshot(1, segment(1), ROUTING)
    log.snapshot(3, segment(1, 3), ROUTING)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "batch-000000000004.arrow",
        "snapshot-000000000003.arrow",
    ]
    assert contents(log) == [(3, [1, 3]), (4, [4])]
    assert contents(log, after=2) == [(3, [1, 3]), (4, [4])]
    assert contents(log, after=3) == [(4, [4])]
    assert (log.base(), log.last()) == (3, 4)


def test_what_a_snapshot_replaces_does_not_count_before_it_is_deleted(tmp_path: Path) -> None:
    """As after a crash between writing the snapshot and dropping older files."""
    log = SubscriptionLog(DirectoryStore(tmp_path))
    for batch_id in range(3):
        log.append(batch_id, segment(batch_id), ROUTING)
    log.snapshot(0, segment(0), ROUTING)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    log.snapshot(1, segment(0, 1), ROUTING)
    for name, data in kept.items():
        (tmp_path / name).write_bytes(data)
    assert contents(log) == [(1, [0, 1]), (2, [2])]


def test_a_file_without_its_final_name_is_ignored(tmp_path: Path) -> None:
    log = SubscriptionLog(DirectoryStore(tmp_path))
    log.append(0, segment(0), ROUTING)
    (tmp_path / "batch-000000000001.arrow.tmp").write_bytes(b"half of")
    (tmp_path / "snapshot-000000000009.arrow.tmp").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("not ours")
    assert contents(log) == [(0, [0])]
    assert log.last() == 0


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    log = SubscriptionLog(DirectoryStore(tmp_path))
    log.append(7, segment(*range(50)), ROUTING)
    path = tmp_path / "batch-000000000007.arrow"
    whole = path.read_bytes()
    for size in (*range(0, len(whole), 97), len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(StateError, match=r"batch-000000000007\.arrow is damaged"):
            contents(log)
    rng = np.random.default_rng(1)
    path.write_bytes(rng.bytes(len(whole)))
    with pytest.raises(StateError, match="is damaged"):
        contents(log)


def test_a_file_without_a_segment_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "batch-000000000001.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SEGMENT):
        pass
    with pytest.raises(StateError, match="is damaged"):
        contents(SubscriptionLog(DirectoryStore(tmp_path)))


def test_a_file_of_another_schema_is_an_error(tmp_path: Path) -> None:
    other = pa.RecordBatch.from_pylist([{"x": 1}])
    path = tmp_path / "batch-000000000001.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, other.schema) as writer:
        writer.write_batch(other)
    with pytest.raises(StateError, match="is damaged"):
        contents(SubscriptionLog(DirectoryStore(tmp_path)))


def test_a_full_disk_is_reported_and_leaves_no_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        log = SubscriptionLog(DirectoryStore(disk / "log"))
        log.append(0, segment(1), ROUTING)
        with pytest.raises(StateError, match=r"no space left for .*batch-000000000001"):
            log.append(1, segment(*range(20_000)), ROUTING)
        assert [path.name for path in (disk / "log").iterdir()] == ["batch-000000000000.arrow"]
        assert contents(log) == [(0, [1])]
        log.append(1, segment(2), ROUTING)
        assert log.last() == 1


def test_the_newest_file_says_by_which_plans_the_stream_is_routed(tmp_path: Path) -> None:
    log = SubscriptionLog(DirectoryStore(tmp_path))
    log.append(3, segment(1), TWO)
    log.append(1, segment(2), ROUTING)
    assert log.routing() == TWO, "the newest batch, not the one that was written last"
    assert log.routing() == SubscriptionLog(DirectoryStore(tmp_path)).routing()
    log.snapshot(3, segment(1), TWO)
    assert log.routing() == TWO
    log.append(4, segment(), ROUTING)
    assert log.routing() == ROUTING, "a segment of nothing can still change the routing"
    log.snapshot(4, segment(1), ROUTING)
    assert log.routing() == ROUTING
    assert contents(log) == [(4, [1])]


def test_routing_is_no_part_of_a_segment_and_may_change_without_one(tmp_path: Path) -> None:
    log = SubscriptionLog(DirectoryStore(tmp_path))
    log.append(0, segment(4), ROUTING)
    log.append(0, segment(4), TWO)
    ((_, found),) = log.read()
    assert found.schema.metadata is None
    assert found.equals(segment(4))
    assert log.routing() == TWO


@pytest.mark.parametrize(
    "metadata", [None, {}, {"routing": "x"}, {"routing": "[1]"}, {"routing": "[[1]]"}, {"routing": "7"}]
)
def test_a_file_that_does_not_name_its_plans_is_an_error(
    tmp_path: Path, metadata: dict[str, str] | None
) -> None:
    path = tmp_path / "batch-000000000001.arrow"
    schema = SEGMENT.with_metadata(metadata)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(segment(1))
    log = SubscriptionLog(DirectoryStore(tmp_path))
    assert contents(log) == [(1, [1])], "its rows are sound"
    with pytest.raises(StateError, match=r"batch-000000000001\.arrow does not say by which plan"):
        log.routing()


def test_a_damaged_file_has_no_routing(tmp_path: Path) -> None:
    log = SubscriptionLog(DirectoryStore(tmp_path))
    log.append(1, segment(1), ROUTING)
    path = tmp_path / "batch-000000000001.arrow"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StateError, match="is damaged"):
        log.routing()


def test_a_log_is_read_by_a_manifest_that_is_known_without_asking_for_one(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    log = SubscriptionLog(store, 1)
    log.begin(Manifest())
    log.append(0, segment(1), ROUTING)
    known = log.manifest()
    log.append(1, segment(2), ROUTING)
    store.delete("manifest-00000001.json")
    told = SubscriptionLog(store, 1, known)
    assert [number for number, _ in told.read()] == [0]
    assert (told.last(), told.base(), told.span(), told.routing()) == (0, -1, (-1, 0), ROUTING)
    with pytest.raises(StateError, match="only read by a known manifest"):
        told.append(1, segment(3), ROUTING)


def test_what_a_snapshot_covers_is_told_by_names() -> None:
    names = [f"{kind}-{number:012}-00000001.arrow" for number in (6, 7, 8) for kind in ("batch", "snapshot")]
    covered = [name for name in names if is_covered(name, 7)]
    assert covered == [names[0], names[1], names[2]]
    assert not is_covered("batch-000000000001.arrow", 7), "of epoch 0: it may be written again"
