"""A corpus is generated, or read from any Parquet with places and texts."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ps2stream_bench.workloads import (
    COUNTRIES,
    N_STOP_WORDS,
    PROFILES,
    Corpus,
    Country,
    corpus_for,
    generate,
    read_corpus,
    subscribe_events,
)


def test_a_corpus_is_what_the_generator_makes(corpus: Corpus) -> None:
    made = pa.Table.from_batches(generate("us", 6000, 7))
    assert corpus.texts.equals(made["text"].combine_chunks())
    assert (corpus.lon == made["lon"].to_numpy()).all()
    assert not corpus_for("us", 6000, 8).texts.equals(corpus.texts)


def test_words_follow_zipf_and_a_text_has_about_eleven(corpus: Corpus) -> None:
    assert 9 < corpus.counts.sum() / len(corpus.lon) < 14
    assert 0.35 < corpus.counts[:N_STOP_WORDS].sum() / corpus.counts.sum() < 0.55
    assert (np.diff(corpus.counts) <= 0).all()


@pytest.mark.parametrize("country", COUNTRIES)
def test_publications_lie_in_their_country(country: Country) -> None:
    made = corpus_for(country, 2000, 1)
    assert PROFILES[country].frame.holds(made.lon, made.lat).all()


@pytest.mark.parametrize("mean_terms", [2.0, 5.0, 50.0, 200.0])
def test_texts_have_as_many_distinct_terms_as_asked_for(mean_terms: float) -> None:
    made = corpus_for("uk", 3000, 1, mean_terms=mean_terms)
    assert made.counts.sum() / 3000 == pytest.approx(mean_terms, rel=0.08)


def test_a_corpus_of_a_file_is_the_file(tmp_path: Path) -> None:
    for number, words in enumerate(["storm rain", "storm"]):
        columns = {"lat": [10.0 + number, None], "lon": [20.0, 21.0], "text": [words, "lost"]}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    made = corpus_for("us", 100, 1, tmp_path)
    assert sorted(made.lat) == [10.0, 11.0]
    assert (made.words.to_pylist(), made.counts.tolist()) == (["storm", "rain"], [2, 1])
    assert len(corpus_for("us", 1, 1, tmp_path).lon) == 1


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
