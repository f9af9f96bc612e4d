"""The recent past is sampled from what is on disk: newest publications, living subscriptions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from engines.streams import events_of, plan_for, publish, subscribe, unsubscribe, updates_of
from ps2stream.adjusting import disk_sample as looking_back
from ps2stream.adjusting.disk_sample import newest_events, sample_on_disk, some_living
from ps2stream.config import Settings
from ps2stream.errors import StateError
from ps2stream.journal import Journal
from ps2stream.registry.log import SubscriptionLog
from ps2stream.roles.registrar import Registrar
from ps2stream.store.directory import DirectoryStore
from ps2stream.text.hashing import hash_term


def _journal(directory: Path, events: pa.RecordBatch, n_a_packet: int) -> Path:
    with Journal.open(directory / "journal", create=True, durable=False) as journal:
        for start in range(0, events.num_rows, n_a_packet):
            journal.append(events.slice(start, n_a_packet))
    return directory / "journal"


def _publications(n: int) -> pa.RecordBatch:
    return events_of(*(publish(i, f"p{i}", lon=float(i % 100)) for i in range(1, n + 1)))


def _log(directory: Path, *batches: pa.RecordBatch) -> SubscriptionLog:
    log, registrar = SubscriptionLog(DirectoryStore(directory / "log")), Registrar(plan_for(events_of()))
    for number, batch in enumerate(batches):
        log.append(number, registrar.decide(updates_of(batch)).segment, registrar.plan_numbers)
    return log


def _seqs(journal: Path, n_events: int) -> list[int]:
    with Journal.open(journal) as opened:
        return [seq for batch in newest_events(opened, n_events) for seq in batch.column("seq").to_pylist()]


@pytest.mark.parametrize("at_once", [1, 3, 4096])
def test_the_newest_events_come_in_whole_packets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(looking_back, "_SPANS_AT_ONCE", at_once)
    journal = _journal(tmp_path, _publications(40), 4)
    assert _seqs(journal, 1) == [37, 38, 39, 40]
    assert _seqs(journal, 4) == [37, 38, 39, 40]
    assert _seqs(journal, 9) == list(range(29, 41))
    assert _seqs(journal, 1_000) == list(range(1, 41))
    with Journal.open(journal) as opened:
        opened.prune(8)
    assert _seqs(journal, 1_000) == list(range(33, 41))


def test_an_empty_journal_has_no_newest_events(tmp_path: Path) -> None:
    assert _seqs(_journal(tmp_path, _publications(0), 1), 10) == []


def test_who_has_ended_or_was_replaced_does_not_live(tmp_path: Path) -> None:
    log = _log(
        tmp_path,
        events_of(subscribe(1, "a"), subscribe(2, "b", "rain"), subscribe(3, "c", "snow", min_lon=5.0)),
        events_of(unsubscribe(4, "a"), subscribe(5, "b", "hail")),
    )
    living = some_living(log, 10, seed=0)
    assert living.n_live == 2
    assert sorted(living.subs.seq_from.tolist()) == [3, 5]
    assert set(living.subs.terms.tolist()) == {hash_term("snow"), hash_term("hail")}


def test_only_so_many_are_drawn_and_all_are_counted(tmp_path: Path) -> None:
    log = _log(tmp_path, events_of(*(subscribe(i, f"s{i}") for i in range(1, 31))))
    draws = [some_living(log, 5, seed) for seed in (0, 0, 1)]
    assert [len(living.subs.seq_from) for living in draws] == [5, 5, 5]
    assert {living.n_live for living in draws} == {30}
    assert draws[0].subs.seq_from.tolist() == draws[1].subs.seq_from.tolist()
    assert draws[0].subs.seq_from.tolist() != draws[2].subs.seq_from.tolist()


def test_an_empty_log_has_nobody(tmp_path: Path) -> None:
    assert some_living(SubscriptionLog(DirectoryStore(tmp_path / "log")), 5, 0).n_live == 0


def test_a_snapshot_in_between_makes_it_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = _log(tmp_path, events_of(subscribe(1, "a")))
    bases = iter([-1, 7])
    reads = iter([StateError("a file has gone"), log.read()])
    monkeypatch.setattr(log, "base", lambda: next(bases, 7))

    def read() -> object:
        found = next(reads)
        if isinstance(found, StateError):
            raise found
        return found

    monkeypatch.setattr(log, "read", read)
    assert some_living(log, 5, 0).n_live == 1


def test_damage_is_not_read_again(tmp_path: Path) -> None:
    log = _log(tmp_path, events_of(subscribe(1, "a")))
    (path,) = (tmp_path / "log").iterdir()
    path.write_bytes(b"no log")
    with pytest.raises(StateError, match="is damaged"):
        some_living(log, 5, 0)


def test_a_sample_has_the_publications_the_living_and_how_they_are_mixed(tmp_path: Path) -> None:
    rows = [publish(i, f"p{i}", f"fire {i}", lon=float(i)) for i in range(1, 41)]
    rows += [subscribe(41, "x"), unsubscribe(42, "x"), publish(43, "p43"), publish(44, "bad", lon=999.0)]
    journal = _journal(tmp_path, events_of(*rows), 4)
    log = _log(tmp_path, events_of(subscribe(1, "a"), subscribe(2, "b", "rain AND wind")))
    settings = Settings(n_workers=2, sample_events=1_000)
    with Journal.open(journal) as opened:
        sample = sample_on_disk(newest_events(opened, 24), log, settings)
    # The newest 24 events are 22 publications, one of them off the map, and 2 updates.
    assert sample.n_publications == 21
    assert np.all(sample.lon[:-1] == np.arange(21, 41))
    assert sample.n_subscriptions == 2
    assert sample.n_live == 2
    assert sample.churn == pytest.approx(2 / 22 / 2)
    assert set(sample.clause_terms.tolist()) == {hash_term(word) for word in ("fire", "rain", "wind")}
