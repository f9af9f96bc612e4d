"""The streams that all partitioners are tried on, and what plans are made from: samples and costs."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ps2stream.config import Settings
from ps2stream.partitioning.load import LOAD_FUNCTIONS, Costs, LoadFunction
from ps2stream.partitioning.sample import Sample
from ps2stream.pipeline.calibration import calibrate, standard_costs
from ps2stream.pipeline.planning import sample_from
from ps2stream_bench.results import Row
from ps2stream_bench.workload import N_STOP_WORDS, Corpus, Kind, mixed_events, read_corpus, synthetic_corpus


@dataclass(frozen=True, slots=True)
class Stream:
    """``n_live`` subscriptions to load, then publications and updates at 5 to 1."""

    kind: Kind
    events: pa.RecordBatch
    n_live: int
    stop_words: tuple[str, ...]

    def loading(self, size: int) -> Iterator[pa.RecordBatch]:
        return _batches(self.events.slice(0, self.n_live), size)

    def mixed(self, size: int) -> Iterator[pa.RecordBatch]:
        return _batches(self.events.slice(self.n_live), size)

    @property
    def n_mixed(self) -> int:
        return int(self.events.num_rows) - self.n_live

    def sample(self, n: int, seed: int) -> Sample:
        """Draw ``n`` publications and ``n`` subscriptions, or as many as there are."""
        settings = Settings(
            stop_words=self.stop_words,
            sample_events=2 * n,
            sample_prefix_events=max(self.events.num_rows, 1),
            sample_seed=seed,
        )
        return sample_from([self.events], settings)


def _batches(events: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, events.num_rows, size):
        yield events.slice(start, size)


def corpus_at(path: Path | None, n_synthetic: int, seed: int) -> Corpus:
    """Read a corpus, or make one up where there is no path."""
    return read_corpus(path) if path else synthetic_corpus(n_synthetic, seed)


def stream_of(corpus: Corpus, kind: Kind, n_live: int, n_publications: int, seed: int) -> Stream:
    (events,) = mixed_events(corpus, kind, n_live, n_publications, seed).combine_chunks().to_batches()
    return Stream(kind, events, n_live, tuple(corpus.words[:N_STOP_WORDS].to_pylist()))


def add_load(parser: ArgumentParser) -> None:
    parser.add_argument("--load", choices=LOAD_FUNCTIONS, default="candidates", help="what plans minimise")


def costs_for(sample: Sample, load: LoadFunction, *, calibrated: bool) -> Costs:
    """Measure the costs here and now, or take those that are the same everywhere."""
    return calibrate(sample, load) if calibrated else standard_costs(sample, load)


def costs_fields(costs: Costs) -> Row:
    return {
        "load": costs.load,
        "cost_match_ns": costs.match,
        "cost_publication_ns": costs.publication,
        "cost_insert_ns": costs.insert,
        "cost_delete_ns": costs.delete,
    }
