"""From a stream to its plan: draw a sample, count what is in it, let a partitioner divide it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from ps2stream.arrays import frozen
from ps2stream.arrow import ragged_of
from ps2stream.config import Settings
from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_events
from ps2stream.model.events import as_events, check_publications, in_order, split
from ps2stream.model.schemas import BEFORE_ALL_SEQS, PUBLISH
from ps2stream.partitioning import partitioner_named
from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import CHURN, Sample
from ps2stream.planning.sampling import Mix, draw
from ps2stream.registry.segments import bounds_of
from ps2stream.roles.update_compiler import compile_updates
from ps2stream.sources.event_log import EventLog
from ps2stream.sources.feed import Feed

_READ_EVENTS = 65_536


def sample_of(events: pa.RecordBatch, settings: Settings, mix: Mix | None = None) -> Sample:
    """Take all of some events as a sample; those that would be rejected do not count."""
    tokenizer = settings.tokenizer()
    events, _, _ = in_order(events, BEFORE_ALL_SEQS)
    publications, updates = split(events)
    valid, _ = check_publications(publications)
    compiled, _ = compile_updates(updates, tokenizer)
    begun = compiled.filter(compiled.column("is_subscribe"))
    clauses = ragged_of(begun.column("clauses"), flat=False)
    terms = ragged_of(clauses.values)
    return Sample(
        frozen(valid.lon),
        frozen(valid.lat),
        tokenizer.tokenize(valid.texts),
        frozen(bounds_of(begun)),
        frozen(clauses.offsets),
        frozen(terms.offsets),
        frozen(terms.values),
        n_live=max(mix.n_live, begun.num_rows) if mix else 0,
        churn=mix.churn if mix else CHURN,
    )


def sample_from(batches: Iterable[pa.RecordBatch], settings: Settings) -> Sample:
    """Draw a sample from the front of a stream, or from the file that the settings name for it."""
    prefix: int | None = settings.sample_prefix_events
    if settings.sample_file is not None:
        batches, prefix = EventLog(settings.sample_file).batches(_READ_EVENTS), None
    drawn = draw(batches, settings.sample_events, settings.sample_seed, prefix=prefix)
    return sample_of(drawn.events, settings, drawn.mix)


def log_sample(log: EventLog, settings: Settings) -> Sample:
    """Draw a sample for the plan of a replay."""
    return sample_from(log.batches(_READ_EVENTS), settings)


def journal_sample(directory: Path, settings: Settings) -> Sample:
    """Draw a sample from what a journal holds by now; nobody who appends meanwhile has to wait.

    It may hold little or nothing yet. The plan is then as good as can be known, and to be replaced once
    more is (Sec. V-B, global adjustment).
    """
    return sample_from(_events_of(directory), settings)


def feed_sample(feed: Feed, settings: Settings) -> Sample:
    """Draw a sample from the beginning of what a feed holds by now; the same holds as for a journal."""
    return sample_from(_events_within(feed, settings.sample_prefix_events), settings)


def _events_within(feed: Feed, n_events: int) -> Iterator[pa.RecordBatch]:
    after = feed.beginning()
    while n_events > 0 and (upto := feed.end_within(after, n_events)) != after:
        n_read = 0
        for source in feed.sources(after, upto, 1):
            for batch in itertools.chain(
                (as_events(part.updates) for part in source.updates()),
                (as_events(part.publications, PUBLISH) for part in source.publications()),
            ):
                n_read += batch.num_rows
                yield batch
        feed.learned(n_read)
        after, n_events = upto, n_events - max(1, n_read)


def _events_of(directory: Path) -> Iterator[pa.RecordBatch]:
    with Journal.open(directory) as journal:
        yield from map(decode_events, journal.read(journal.oldest() - 1, journal.last().position))


def costs_of(sample: Sample, settings: Settings) -> Costs:
    """Return the costs to plan with: measured on the sample, or the standard ones."""
    from ps2stream.planning.calibration import calibrate, standard_costs

    return (calibrate if settings.calibrate else standard_costs)(sample, settings.load)


def plan_of(sample: Sample, settings: Settings) -> Plan:
    """Build plan number 1 with the partitioner that the settings name."""
    partitioner = partitioner_named(settings.partitioner, costs_of(sample, settings))
    return partitioner.plan(sample, settings.n_workers, seed=settings.sample_seed)


def first_plan(events: pa.RecordBatch, settings: Settings) -> Plan:
    """Build plan number 1 from a sample of some events."""
    return plan_of(sample_from([events], settings), settings)
