"""The first plan, from a sample of the stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from ps2stream.arrays import frozen
from ps2stream.config import Settings
from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_events
from ps2stream.model.events import check_publications, in_order, split
from ps2stream.model.schemas import BEFORE_ALL_SEQS, EVENTS, empty
from ps2stream.partitioning import partitioner_named
from ps2stream.partitioning.plan import Plan, Sample
from ps2stream.pipeline.registrar import compile_updates
from ps2stream.registry.segments import bounds_of, ragged_of


def sample_of(events: pa.RecordBatch, settings: Settings) -> Sample:
    """Take events as a sample; those that would be rejected do not count."""
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
    )


def first_plan(events: pa.RecordBatch, settings: Settings) -> Plan:
    """Build plan version 1 with the partitioner that the settings name."""
    sample = sample_of(events, settings)
    return partitioner_named(settings.partitioner).plan(sample, settings.n_workers)


def journal_sample(directory: Path, n_events: int) -> pa.RecordBatch:
    """Read the first events that a journal still has, about as many as asked for."""
    parts = [empty(EVENTS)]
    with Journal.open(directory) as journal:
        before = journal.oldest() - 1
        if n_events:
            parts += map(decode_events, journal.read(before, journal.end_within(before, n_events)))
    return pa.concat_batches(parts)
