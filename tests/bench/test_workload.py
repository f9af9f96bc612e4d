"""The workload of the micro-benchmarks is what it says it is, and the same for the same seed."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.micro.workload import (
    N_STOP_WORDS,
    Corpus,
    Kind,
    compile_arrays,
    mixed_events,
    publish_events,
    read_corpus,
    subscribe_events,
    synthetic_corpus,
)
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.testing.oracle import run

KM_PER_DEGREE = 111.32


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return synthetic_corpus(3000, 7)


def test_the_same_seed_gives_the_same_events(corpus: Corpus) -> None:
    assert synthetic_corpus(3000, 7).texts.equals(corpus.texts)
    assert subscribe_events(corpus, "q1", 50, 3).equals(subscribe_events(corpus, "q1", 50, 3))
    assert not subscribe_events(corpus, "q1", 50, 3).equals(subscribe_events(corpus, "q1", 50, 4))


def test_words_follow_zipf_and_a_text_has_about_eleven(corpus: Corpus) -> None:
    assert 9 < corpus.counts.sum() / len(corpus.lon) < 14
    assert 0.35 < corpus.counts[:N_STOP_WORDS].sum() / corpus.counts.sum() < 0.55
    assert (np.diff(corpus.counts) <= 0).all()


@pytest.mark.parametrize(("kind", "most_km"), [("q1", 50), ("q2", 100)])
def test_regions_are_squares_of_the_paper_s_sides(corpus: Corpus, kind: Kind, most_km: float) -> None:
    events = subscribe_events(corpus, kind, 2000, 1)
    sides = (events["max_lat"].to_numpy() - events["min_lat"].to_numpy()) * KM_PER_DEGREE
    assert sides.min() >= 0.99
    assert 0.95 * most_km < sides.max() <= most_km + 0.01


def test_a_q2_subscription_has_a_keyword_outside_the_most_frequent_hundredth(corpus: Corpus) -> None:
    frequent = set(corpus.words[: len(corpus.words) // 100].to_pylist())
    expressions = subscribe_events(corpus, "q2", 500, 1)["expression"].to_pylist()
    keywords = [
        set(expression.replace(" AND ", " ").replace(" OR ", " ").split()) for expression in expressions
    ]
    assert all(1 <= len(words) <= 3 and words - frequent for words in keywords)


def test_no_keyword_is_a_stop_word(corpus: Corpus) -> None:
    stopped = corpus.tokenizer().stop_words
    expressions = subscribe_events(corpus, "q1", 500, 1)["expression"].to_pylist()
    assert len(stopped) == N_STOP_WORDS
    assert all(stopped.isdisjoint(expression.split()) for expression in expressions)


def test_arrays_hold_every_event_with_the_rarest_term_first(corpus: Corpus) -> None:
    subscribes, publishes = subscribe_events(corpus, "q1", 300, 1), publish_events(corpus, 400, 301, 2)
    subs, probes = compile_arrays(corpus, subscribes, publishes)
    counts = dict(zip(*np.unique(probes.terms, return_counts=True), strict=True))
    first, last = subs.term_offsets[:-1], subs.term_offsets[1:]
    for clause in (subs.terms[a:b] for a, b in zip(first, last, strict=True)):
        frequencies = [counts.get(term, 0) for term in clause]
        assert frequencies == sorted(frequencies)
    assert subs.seq_from.tolist() == list(range(1, 301))
    assert probes.seq.tolist() == list(range(301, 701))


def test_the_mix_is_five_to_one_and_keeps_as_many_alive(corpus: Corpus) -> None:
    events = mixed_events(corpus, "q1", 200, 1000, 5)
    ops = events["op"].to_pylist()
    assert events.schema.equals(EVENTS)
    assert events["seq"].to_pylist() == list(range(1, 1401))
    assert (ops.count(PUBLISH), ops.count(SUBSCRIBE), ops.count(UNSUBSCRIBE)) == (1000, 300, 100)
    assert ops[:200] == [SUBSCRIBE] * 200
    assert not run(events, corpus.tokenizer().stop_words).rejected


def test_any_parquet_with_places_and_texts_can_take_the_corpus_place(tmp_path: Path) -> None:
    texts = [f"storm w{i % 150} w{i % 7}" for i in range(200)]
    columns = {
        "lat": np.linspace(30, 40, 200),
        "lon": np.linspace(-100, -90, 200),
        "text": pa.array(texts, pa.large_string()),
    }
    pq.write_table(pa.table(columns), tmp_path / "texts.parquet")
    corpus = read_corpus(tmp_path / "texts.parquet")
    assert corpus.words[0].as_py() == "storm"
    assert subscribe_events(corpus, "q2", 10, 1).num_rows == 10
