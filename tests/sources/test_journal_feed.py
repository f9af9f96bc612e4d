"""A journal as a feed."""

from __future__ import annotations

from pathlib import Path

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
