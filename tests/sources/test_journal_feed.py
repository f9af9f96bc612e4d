"""A journal as a feed."""

from __future__ import annotations

from pathlib import Path

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
