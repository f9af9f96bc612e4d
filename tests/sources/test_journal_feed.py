"""A journal as a feed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engines.streams import random_stream
from ps2stream.journal import Journal
from ps2stream.sources.journal_feed import JournalFeed


def test_a_feed_of_a_pruned_journal_begins_with_what_is_left(tmp_path: Path) -> None:
    with Journal.open(tmp_path, create=True, durable=False) as journal:
        feed = JournalFeed(journal, tmp_path)
        assert feed.beginning() == feed.end_within(feed.beginning(), 10) == (0,)
        for seed in range(3):
            journal.append(random_stream(10, seed))
        journal.prune(1)
        assert feed.beginning() == (journal.oldest() - 1,) == (1,)
        assert feed.identity == f"journal {journal.identity()}"


def test_ranges_that_stay_in_this_process_are_read_by_the_journal_that_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal.open(tmp_path, create=True, durable=False) as journal:
        for seed in range(3):
            journal.append(random_stream(10, seed))
        sent, kept = (JournalFeed(journal, tmp_path, stays_here=here) for here in (False, True))
        (others,) = sent.sources((0,), (3,), 1)
        expected = [each.publications.to_pylist() for each in others.publications()]
        monkeypatch.setattr(Journal, "open", lambda *of: pytest.fail("it is open"))
        (own,) = kept.sources((0,), (3,), 1)
        assert [each.publications.to_pylist() for each in own.publications()] == expected
        assert (own.n_updates, own.last_seq) == (others.n_updates, others.last_seq)
        assert len(own.waits(0.0)) == 3


def test_a_look_at_a_journal_that_nobody_changed_reads_no_packets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        Journal.open(tmp_path, create=True, durable=False) as journal,
        Journal.open(tmp_path, durable=False) as publisher,
    ):
        feed = JournalFeed(journal, tmp_path)
        n_looks, look = 0, Journal.end_within

        def counted(*of: Any) -> int:
            nonlocal n_looks
            n_looks += 1
            return look(*of)

        monkeypatch.setattr(Journal, "end_within", counted)
        for position in range(3):
            for _ in range(4):
                assert feed.end_within((position,), 10) == (position,)
            publisher.append(random_stream(5, position))
            assert feed.end_within((position,), 10) == (position + 1,)
        assert n_looks == 2 * 3
