"""A seeded workload in the spirit of the paper's Sec. VI: Q1, Q2 and Q3 subscriptions, and publications.

Q1 asks for what is written often, in small regions; Q2 for at least one word that is rare, in larger ones.
For Q3 the space is cut into 100 equal regions, half of which draw Q1 subscriptions and half Q2. In a
drifting stream some of these regions change their kind from interval to interval.

Everything is made as events first (schema EVENTS), texts and expressions included; the arrays
that kernels take are compiled from those events with the product's own tokenizer. So an index
and an engine can be measured on the very same workload.

The synthetic corpus imitates geo-tagged tweets of the US: places scatter around clusters of
Zipf-distributed size over a thin background, words follow Zipf's law with slope 1.05, and a text has
some eleven distinct terms. Any Parquet file with the columns lat, lon and text can take its place.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ps2stream.arrays import Float64s, Int64s, Ragged, frozen
from ps2stream.matching.layout import FOREVER, Probes, Subscriptions
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.text.clauses import compile_expressions
from ps2stream.text.frequencies import count_terms, rarest_first
from ps2stream.text.terms import terms_of
from ps2stream.text.tokenizer import Tokenizer

Kind = Literal["q1", "q2", "q3"]
KINDS: tuple[Kind, ...] = ("q1", "q2", "q3")

N_STOP_WORDS = 100

_KM_PER_DEGREE = 111.32
_Q1_SIDE_KM, _Q2_SIDE_KM = 50.0, 100.0
_TOP_SHARE = 0.01
#: Q3 cuts either side of the space into so many parts. Its space is the shortest range of longitudes and of
#: latitudes that holds this share of the publications: a few from overseas would stretch it over oceans.
_N_CUTS = 10
_N_REGIONS = _N_CUTS * _N_CUTS
_SPACE_SHARE = 0.9
#: The share of the regions that a rush makes busy, in every interval others.
_BUSY_SHARE = 0.1
#: Five publications to one update, half of the updates being subscribes.
_PUBLICATIONS_PER_SUBSCRIBE = 10

Flags = npt.NDArray[np.bool_]

_US = (-124.8, 24.4, -66.9, 49.4)
_N_CLUSTERS = 300
_CLUSTER_SLOPE = 1.0
_BACKGROUND = 0.08
_N_WORDS = 200_000
_WORD_SLOPE = 1.05


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
        return Tokenizer(self.words[:N_STOP_WORDS].to_pylist())


class Arrays(NamedTuple):
    """What the kernels take: subscriptions, and probes whose terms all belong to one worker."""

    subscriptions: Subscriptions
    probes: Probes


def synthetic_corpus(n_publications: int, seed: int) -> Corpus:
    """Make publications that look like tweets of the US."""
    rng = np.random.default_rng(seed)
    lon, lat = _places(rng, n_publications)
    # A negative binomial: 13 words on average, of which 11 are distinct; one text in twenty has over 21.
    n_words = 1 + rng.negative_binomial(4, 0.25, n_publications)
    weights = np.arange(1, _N_WORDS + 1) ** -_WORD_SLOPE
    drawn = np.searchsorted(np.cumsum(weights), rng.random(int(n_words.sum())) * weights.sum())
    vocabulary = pa.array([f"w{rank}" for rank in range(_N_WORDS)])
    offsets = np.concatenate([[0], np.cumsum(n_words)])
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), vocabulary.take(pa.array(drawn)))
    return corpus_of(lon, lat, pc.binary_join(lists, " "))


def read_corpus(path: Path, limit: int | None = None) -> Corpus:
    """Take publications from a Parquet file with lat, lon and text; incomplete rows are left out."""
    table = pq.read_table(path, columns=["lat", "lon", "text"]).drop_null().slice(0, limit)
    text = table["text"].cast(pa.string()).combine_chunks()
    return corpus_of(table["lon"].to_numpy(), table["lat"].to_numpy(), text)


def corpus_of(lon: Float64s, lat: Float64s, texts: pa.Array) -> Corpus:
    """Count in how many texts each word occurs."""
    counted = Counter(term for text in texts.to_pylist() for term in terms_of(text))
    words, counts = zip(*sorted(counted.items(), key=lambda item: (-item[1], item[0])), strict=True)
    return Corpus(lon, lat, texts, pa.array(words), np.array(counts, np.int64))


def subscribe_events(corpus: Corpus, kind: Kind, n: int, seed: int) -> pa.Table:
    """Make ``n`` subscriptions with seq 1 to ``n``: squares centred on publications, 1 to 3 keywords."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, len(corpus.lon), n)
    return _subscribes(corpus, at, _asks_q2(corpus, kind, at, seed), rng)


def publish_events(corpus: Corpus, n: int, first_seq: int, seed: int) -> pa.Table:
    """Draw ``n`` publications of the corpus, with repetition, and number them from ``first_seq``."""
    return _publishes(corpus, np.random.default_rng(seed).integers(0, len(corpus.lon), n), first_seq)


def mixed_events(corpus: Corpus, kind: Kind, n_live: int, n_publications: int, seed: int) -> pa.Table:
    """Make the paper's stream: ``n_live`` subscriptions, then publications and updates at 5 to 1.

    Ten publications come with one subscribe and one unsubscribe. A subscription lives for
    N(mu, (0.2 mu)^2) further subscribes with mu = ``n_live``, so as many stay alive.
    """
    n_subscribes = n_live + n_publications // _PUBLICATIONS_PER_SUBSCRIBE
    subscribes = subscribe_events(corpus, kind, n_subscribes, seed)
    return _interleaved(subscribes, publish_events(corpus, n_publications, 0, seed), n_live, seed)


def drifting_events(
    corpus: Corpus,
    n_live: int,
    n_publications: int,
    seed: int,
    *,
    n_intervals: int,
    share: float = 0.1,
    rush: float = 1.0,
) -> pa.Table:
    """Make a Q3 stream like that of :func:`mixed_events`, cut into equal intervals that differ.

    From each interval to the next a ``share`` of the regions changes its kind, for the subscriptions that
    begin from then on; the first ``n_live`` belong to the first interval. In the paper an interval lasts as
    long as a life, which is ``10 * n_live`` publications here. A shorter one replaces fewer subscriptions.

    The paper moves kinds only. With a ``rush`` above 1, publications and new subscriptions of the regions
    that are busy in an interval come that many times as often as the corpus has them.
    """
    n_swaps = n_publications // _PUBLICATIONS_PER_SUBSCRIBE
    begun = np.concatenate([np.zeros(n_live, np.int64), _intervals(n_swaps, n_intervals)])
    # Drawn as mixed_events draws them: what has not drifted is the same.
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, len(corpus.lon), len(begun))
    at = np.random.default_rng(seed).integers(0, len(corpus.lon), n_publications)
    region = region_of(corpus, corpus.lon, corpus.lat)
    is_busy = busy_by_interval(seed, n_intervals)[:, region]
    rush_rng = np.random.default_rng([seed, 6])
    _crowd(centres, begun, is_busy, rush, rush_rng)
    _crowd(at, _intervals(n_publications, n_intervals), is_busy, rush, rush_rng)
    is_q2 = kinds_by_interval(seed, n_intervals, share)[begun, region[centres]]
    subscribes = _subscribes(corpus, centres, is_q2, rng)
    return _interleaved(subscribes, _publishes(corpus, at, 0), n_live, seed)


def _subscribes(corpus: Corpus, at: Int64s, is_q2: Flags, rng: np.random.Generator) -> pa.Table:
    """Centre subscriptions on publications of the corpus, and number them from 1."""
    n = len(at)
    # Degrees of longitude shrink towards the poles; far north a square is wider than it is high.
    side_km = rng.uniform(1.0, np.where(is_q2, _Q2_SIDE_KM, _Q1_SIDE_KM))
    half_lat = side_km / _KM_PER_DEGREE / 2
    half_lon = half_lat / np.maximum(np.cos(np.radians(corpus.lat[at])), 0.1)
    seq = np.arange(1, n + 1)
    columns = {
        "seq": pa.array(seq),
        "op": pa.repeat(SUBSCRIBE, n),
        "id": _ids("s", seq),
        "expression": _expressions(corpus, is_q2, rng),
        "min_lon": pa.array(np.clip(corpus.lon[at] - half_lon, -180, 180)),
        "min_lat": pa.array(np.clip(corpus.lat[at] - half_lat, -90, 90)),
        "max_lon": pa.array(np.clip(corpus.lon[at] + half_lon, -180, 180)),
        "max_lat": pa.array(np.clip(corpus.lat[at] + half_lat, -90, 90)),
    }
    return _events(columns, n)


def _publishes(corpus: Corpus, at: Int64s, first_seq: int) -> pa.Table:
    n = len(at)
    seq = np.arange(first_seq, first_seq + n)
    columns = {
        "seq": pa.array(seq),
        "op": pa.repeat(PUBLISH, n),
        "id": _ids("p", seq),
        "lat": pa.array(corpus.lat[at]),
        "lon": pa.array(corpus.lon[at]),
        "text": corpus.texts.take(pa.array(at)),
    }
    return _events(columns, n)


def _interleaved(subscribes: pa.Table, publishes: pa.Table, n_live: int, seed: int) -> pa.Table:
    """Put ``n_live`` subscriptions first; one more begins and one ends with every ten publications."""
    rng = np.random.default_rng([seed, 1])
    n_swaps = subscribes.num_rows - n_live
    births = np.arange(subscribes.num_rows)
    lives = np.clip(rng.normal(n_live, 0.2 * n_live, len(births)), 0.5 * n_live, 1.5 * n_live)
    ending = np.argsort(births + lives, kind="stable")[:n_swaps]
    ended = subscribes["id"].combine_chunks().take(pa.array(ending))
    unsubscribes = _events({"op": pa.repeat(UNSUBSCRIBE, n_swaps), "id": ended}, n_swaps)
    # When each event happens, counted in publications.
    due = float(_PUBLICATIONS_PER_SUBSCRIBE) * np.arange(1, n_swaps + 1)
    before = np.full(n_live, -1.0)
    when = np.concatenate([before, due - 5.5, np.arange(publishes.num_rows), due - 0.5])
    order = np.argsort(when, kind="stable")
    events = pa.concat_tables([subscribes, publishes, unsubscribes]).take(pa.array(order)).combine_chunks()
    return events.set_column(0, EVENTS.field("seq"), pa.array(np.arange(1, events.num_rows + 1)))


def compile_arrays(corpus: Corpus, subscribes: pa.Table, publishes: pa.Table) -> Arrays:
    """Compile events as dispatchers do; frequencies are those of the publications."""
    tokenizer = corpus.tokenizer()
    terms = tokenizer.tokenize(publishes["text"].combine_chunks())
    return Arrays(compile_subscriptions(subscribes, tokenizer, terms), _probes(publishes, terms))


def compile_subscriptions(subscribes: pa.Table, tokenizer: Tokenizer, sample: Ragged) -> Subscriptions:
    """Compile subscribe events; the sample of texts says which term of a clause is the rarest."""
    compiled = compile_expressions(subscribes["expression"].combine_chunks(), tokenizer)
    if compiled.errors:
        row, reason = next(iter(compiled.errors.items()))
        raise ValueError(f"expression of event {row} must compile; {reason}")
    clause_terms = compiled.terms.copy()
    rarest_first(clause_terms, compiled.term_offsets, count_terms(sample))
    corners = ("min_lon", "min_lat", "max_lon", "max_lat")
    bounds = np.stack([subscribes[name].to_numpy() for name in corners], axis=1).ravel()
    return Subscriptions(
        seq_from=frozen(subscribes["seq"].to_numpy()),
        seq_to=frozen(np.full(subscribes.num_rows, FOREVER)),
        bounds=frozen(bounds),
        clause_offsets=frozen(compiled.clause_offsets),
        term_offsets=frozen(compiled.term_offsets),
        terms=frozen(clause_terms),
    )


def _probes(publishes: pa.Table, terms: Ragged) -> Probes:
    return Probes(
        seq=frozen(publishes["seq"].to_numpy()),
        lon=frozen(publishes["lon"].to_numpy()),
        lat=frozen(publishes["lat"].to_numpy()),
        term_offsets=frozen(terms.offsets),
        terms=frozen(terms.values),
        owned=frozen(np.ones(len(terms.values), np.uint8)),
    )


def _places(rng: np.random.Generator, n: int) -> tuple[Float64s, Float64s]:
    """Draw points around clusters; the larger a cluster, the wider it is."""
    min_lon, min_lat, max_lon, max_lat = _US
    weights = np.arange(1, _N_CLUSTERS + 1) ** -_CLUSTER_SLOPE
    cluster = rng.choice(_N_CLUSTERS, n, p=weights / weights.sum())
    centre_lon = rng.uniform(min_lon, max_lon, _N_CLUSTERS)[cluster]
    centre_lat = rng.uniform(min_lat, max_lat, _N_CLUSTERS)[cluster]
    spread = 0.3 * np.sqrt(weights)[cluster]
    lon = centre_lon + spread * rng.standard_t(3, n)
    lat = centre_lat + spread * rng.standard_t(3, n)
    background = rng.random(n) < _BACKGROUND
    lon[background] = rng.uniform(min_lon, max_lon, n)[background]
    lat[background] = rng.uniform(min_lat, max_lat, n)[background]
    return np.clip(lon, min_lon, max_lon), np.clip(lat, min_lat, max_lat)


def region_of(corpus: Corpus, lon: Float64s, lat: Float64s) -> Int64s:
    """Return the Q3 region of points, row by row from the south-west; outer ones reach beyond the space."""
    return _cut(corpus.lat, lat) * _N_CUTS + _cut(corpus.lon, lon)


def draws_q2(seed: int) -> Flags:
    """Say for every Q3 region whether its subscriptions are Q2; exactly half of them are."""
    return np.random.default_rng([seed, 3]).permutation(_N_REGIONS) < _N_REGIONS // 2


def kinds_by_interval(seed: int, n_intervals: int, share: float = 0.1) -> Flags:
    """Say for every interval and region whether subscriptions that begin there are Q2.

    It starts with :func:`draws_q2`; a ``share`` of the regions differs from one interval to the next.
    """
    return draws_q2(seed) ^ np.logical_xor.accumulate(_chosen([seed, 4], n_intervals, share))


def busy_by_interval(seed: int, n_intervals: int) -> Flags:
    """Say for every interval and region whether a rush is on there; in the first it is on nowhere."""
    return _chosen([seed, 5], n_intervals, _BUSY_SHARE)


def _chosen(seed: list[int], n_intervals: int, share: float) -> Flags:
    """Choose regions anew for every interval but the first, which gets none."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros((n_intervals, _N_REGIONS), np.bool_)
    for row in chosen[1:]:
        row[rng.choice(_N_REGIONS, round(share * _N_REGIONS), replace=False)] = True
    return chosen


def _intervals(n: int, n_intervals: int) -> Int64s:
    """Number the interval that each of ``n`` events lies in."""
    return np.arange(n) * n_intervals // n


def _crowd(drawn: Int64s, interval: Int64s, is_busy: Flags, rush: float, rng: np.random.Generator) -> None:
    """Redraw some of what was drawn evenly so that busy publications come ``rush`` times as often.

    ``is_busy`` has a row for each interval and a column for each publication of the corpus.
    """
    for each, flags in enumerate(is_busy):
        busy = np.flatnonzero(flags)
        extra = (rush - 1.0) * len(busy)
        redrawn = np.flatnonzero((interval == each) & (rng.random(len(drawn)) < extra / (len(flags) + extra)))
        drawn[redrawn] = rng.choice(busy, len(redrawn))


def _cut(space: Float64s, values: Float64s) -> Int64s:
    """Number the equal parts of the densest range of a space that values lie in, or are nearest to."""
    ordered = np.sort(space)
    n_apart = int(_SPACE_SHARE * (len(ordered) - 1))
    first = int(np.argmin(ordered[n_apart:] - ordered[: len(ordered) - n_apart]))
    low, high = ordered[first], ordered[first + n_apart]
    parts: Float64s = (values - low) / max(high - low, 1e-9) * _N_CUTS
    return np.clip(parts, 0, _N_CUTS - 1).astype(np.int64)


def _asks_q2(corpus: Corpus, kind: Kind, at: Int64s, seed: int) -> Flags:
    """Say which subscriptions are Q2, by the publications that they are centred on."""
    if kind == "q3":
        return draws_q2(seed)[region_of(corpus, corpus.lon[at], corpus.lat[at])]
    return np.full(len(at), kind == "q2")


def _expressions(corpus: Corpus, is_q2: Flags, rng: np.random.Generator) -> pa.Array:
    """Join 1 to 3 keywords by AND or by OR; stop words are not drawn."""
    n = len(is_q2)
    weights = corpus.counts[N_STOP_WORDS:].astype(np.float64)
    drawn = np.searchsorted(np.cumsum(weights), rng.random((n, 3)) * weights.sum()) + N_STOP_WORDS
    rare = max(N_STOP_WORDS, int(_TOP_SHARE * len(corpus.counts)))
    drawn[is_q2, 0] = rng.integers(rare, len(corpus.counts), int(is_q2.sum()))
    n_keywords = rng.integers(1, 4, n)
    kept = np.arange(3) < n_keywords[:, None]
    offsets = np.concatenate([[0], np.cumsum(n_keywords)])
    words = corpus.words.take(pa.array(drawn[kept]))
    keywords = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words)
    operator = pa.array([" AND ", " OR "]).take(pa.array(rng.integers(0, 2, n)))
    return pc.binary_join(keywords, operator)


def _ids(prefix: str, numbers: Int64s) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def _events(columns: dict[str, pa.Array], n: int) -> pa.Table:
    """Fill in nulls for the columns that an operation does not have."""
    filled = [columns.get(field.name, pa.nulls(n, field.type)) for field in EVENTS]
    return pa.Table.from_arrays(filled, schema=EVENTS)
