"""Narrow: work that cannot lead to a match is not done, and what is done is counted."""

from __future__ import annotations

import pyarrow as pa

from laws.engines import ALL_AT_ONCE, Engine
from ps2stream.config import Settings
from ps2stream.model.expressions import parse
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events
from ps2stream.text.terms import terms_of

SETTINGS = Settings(n_workers=3, n_dispatchers=2)


def subscribed_first(n_events: int, seed: int) -> list[oracle.EventRow]:
    """Make a log of valid events: every subscription lives before the first publication, none is replaced."""
    log = [oracle.EventRow(**row) for row in random_events(n_events, seed, invalid_share=0.0).to_pylist()]
    subscribes = {event.id: event for event in log if event.op == SUBSCRIBE}
    # Regions across the antimeridian are kept as two; a publication may meet both.
    whole = [event for event in subscribes.values() if (event.min_lon or 0.0) <= (event.max_lon or 0.0)]
    publishes = [event for event in log if event.op == PUBLISH]
    return [event._replace(seq=seq) for seq, event in enumerate([*whole, *publishes], start=1)]


def table_of(log: list[oracle.EventRow]) -> pa.Table:
    return pa.Table.from_pylist([event._asdict() for event in log], EVENTS)


def test_publications_without_a_live_term_are_discarded_and_counted(engine: Engine) -> None:
    log = subscribed_first(1_000, seed=31)
    live_terms = set().union(
        *(clause for event in log if event.expression for clause in parse(event.expression).clauses())
    )
    strangers = [
        oracle.EventRow(len(log) + i, PUBLISH, f"stranger{i}", 0.0, 0.0, text)
        for i, text in enumerate(["", "😀", "nobody waits for this", "Zebra!"] * 25, start=1)
    ]
    assert all(live_terms.isdisjoint(terms_of(event.text or "")) for event in strangers)
    events = table_of(log + strangers)
    run = engine.run(events, SETTINGS, ALL_AT_ONCE)
    n_publications = sum(event.op == PUBLISH for event in log) + len(strangers)
    matched = {match.publication_id for match in run.outcome.matches}
    assert run.work.n_publications == n_publications
    assert len(strangers) <= run.work.n_discarded <= n_publications - len(matched)
    assert run.outcome.matches == sorted(oracle.run(events).matches)


def test_candidates_have_a_term_in_common_with_the_publication(engine: Engine) -> None:
    log = subscribed_first(1_500, seed=32)
    clauses = [clause for event in log if event.expression for clause in parse(event.expression).clauses()]
    texts = [terms_of(event.text or "") for event in log if event.op == PUBLISH]
    n_sharing = sum(not terms.isdisjoint(clause) for terms in texts for clause in clauses)
    run = engine.run(table_of(log), SETTINGS, ALL_AT_ONCE)
    n_scanned = len(texts) * len(clauses)
    assert len(run.outcome.matches) <= run.work.n_candidates <= n_sharing < n_scanned
    # The cells count too: sharing a term is not enough where the region lies elsewhere.
    assert run.work.n_candidates < n_sharing / 2


def test_when_everybody_has_left_everything_is_discarded(engine: Engine) -> None:
    log = [event for event in subscribed_first(600, seed=33) if event.op == SUBSCRIBE]
    leaving = [oracle.EventRow(None, UNSUBSCRIBE, event.id) for event in log]
    publications = [
        oracle.EventRow(None, PUBLISH, f"p{i}", event.min_lat, event.min_lon, event.expression)
        for i, event in enumerate(log * 3)
    ]
    ordered = [event._replace(seq=seq) for seq, event in enumerate([*log, *leaving, *publications], start=1)]
    run = engine.run(table_of(ordered), SETTINGS, len(log))
    assert run.work.n_publications == len(publications)
    # Those that share a batch with the last to leave are sent in vain: H2 may be too large, never too small.
    assert run.work.n_discarded >= len(publications) - len(log)
    assert run.outcome.matches == []
