"""A corpus: publications to draw from, and how often each of their words is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ps2stream.arrays import Float64s, Int64s
from ps2stream.text.tokenizer import Tokenizer
from ps2stream_bench.workloads.countries import Country
from ps2stream_bench.workloads.publications import generate
from ps2stream_bench.workloads.words import rank_words

N_STOP_WORDS = 100


@dataclass(frozen=True, slots=True)
class Corpus:
    """Publications, and their words by falling frequency; the first ones are the stop words."""

    lon: Float64s
    lat: Float64s
    texts: pa.Array
    words: pa.Array
    counts: Int64s

    def tokenizer(self) -> Tokenizer:
        """Return a tokenizer that stops the most frequent words.

        With them a text in a big city matches hundreds of a million Q1 subscriptions, and only
        the writing of matches is measured.
        """
        return Tokenizer(self.stop_words)

    @property
    def stop_words(self) -> tuple[str, ...]:
        """Return the most frequent words."""
        return tuple(self.words[:N_STOP_WORDS].to_pylist())


def corpus_for(
    country: Country, n: int, seed: int, path: Path | None = None, *, mean_terms: float | None = None
) -> Corpus:
    """Make ``n`` publications of a country, or take up to ``n`` from Parquet when a path is given."""
    if path is not None:
        return read_corpus(path, n)
    return _corpus_of(pa.Table.from_batches(generate(country, n, seed, mean_terms=mean_terms)))


def read_corpus(path: Path, limit: int | None = None) -> Corpus:
    """Take publications from Parquet with lat, lon and text; incomplete rows are left out."""
    return _corpus_of(pq.read_table(path, columns=["lat", "lon", "text"]).drop_null().slice(0, limit))


def corpus_of(lon: Float64s, lat: Float64s, texts: pa.Array) -> Corpus:
    """Count in how many texts each word occurs."""
    ranked = rank_words(texts)
    return Corpus(lon, lat, texts, ranked.words, ranked.counts)


def _corpus_of(table: pa.Table) -> Corpus:
    lon, lat = (table[name].cast(pa.float64()).to_numpy() for name in ("lon", "lat"))
    return corpus_of(lon, lat, table["text"].cast(pa.string()).combine_chunks())
