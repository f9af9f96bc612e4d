"""Generated publications have the figures of real ones, and are the same for the same arguments."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ps2stream.text.terms import terms_of
from ps2stream_bench.workloads import (
    COUNTRIES,
    PROFILES,
    PUBLICATIONS,
    Country,
    Statistics,
    Targets,
    generate,
    statistics_of,
    write_publications,
)

N = 200_000
FIGURES = [field.name for field in fields(Targets)]


@pytest.fixture(scope="module", params=COUNTRIES)
def country(request: pytest.FixtureRequest) -> Country:
    chosen: Country = request.param
    return chosen


@pytest.fixture(scope="module")
def found(country: Country) -> Statistics:
    made = pa.Table.from_batches(generate(country, N, 5))
    lon, lat = made["lon"].to_numpy(), made["lat"].to_numpy()
    profile = PROFILES[country]
    texts = made["text"].combine_chunks()
    return statistics_of(lon, lat, texts, frame=profile.frame, region_degrees=profile.region_degrees)


@pytest.mark.parametrize("figure", [name for name in FIGURES if name != "gini"])
def test_a_figure_is_within_a_tenth_of_that_of_real_tweets(
    country: Country, found: Statistics, figure: str
) -> None:
    assert getattr(found, figure) == pytest.approx(getattr(PROFILES[country].targets, figure), rel=0.1)


def test_what_gini_lacks_to_one_is_within_a_tenth_of_what_it_lacks_for_real_tweets(
    country: Country, found: Statistics
) -> None:
    assert 1 - found.gini == pytest.approx(1 - PROFILES[country].targets.gini, rel=0.1)


def test_regions_differ_in_what_they_write_of(found: Statistics) -> None:
    assert found.region_cosine < 0.7 * found.random_cosine


def test_the_same_arguments_give_the_same_batches() -> None:
    first, second = (list(generate("us", 5000, 3, chunk=2000)) for _ in range(2))
    assert [batch.num_rows for batch in first] == [2000, 2000, 1000]
    assert all(one.equals(other) for one, other in zip(first, second, strict=True))
    other_seed, other_country = generate("us", 5000, 4, chunk=2000), generate("uk", 5000, 3, chunk=2000)
    assert not next(other_seed)["text"].equals(first[0]["text"])
    assert not next(other_country)["lat"].equals(first[0]["lat"])
    assert not first[0]["text"].equals(first[1]["text"])


def test_texts_are_ids_places_and_words_that_tokenise_to_themselves() -> None:
    made = pa.Table.from_batches(generate("uk", 3000, 1, chunk=1000))
    assert made.schema.equals(PUBLICATIONS)
    assert made["id"].to_pylist() == [str(number) for number in range(3000)]
    assert not any(column.null_count for column in made.columns)
    for text in made["text"].to_pylist():
        words = text.split(" ")
        assert terms_of(text) == frozenset(words)
        assert {"and", "or", "not", ""}.isdisjoint(words)


def test_words_of_a_topic_come_together() -> None:
    made = next(generate("us", 30_000, 1))
    texts = pc.split_pattern(made["text"], " ").to_pylist()
    held: dict[str, list[int]] = {}
    for row, words in enumerate(texts):
        for word in set(words):
            held.setdefault(word, []).append(row)
    frequent = sorted(held, key=lambda word: -len(held[word]))[150:200]
    lifts = np.array(
        [
            len(set(held[one]) & set(held[other])) * len(texts) / (len(held[one]) * len(held[other]))
            for index, one in enumerate(frequent)
            for other in frequent[:index]
        ]
    )
    # By chance, pairs of words would meet once as often as they do; those of one topic meet far more often.
    assert np.median(lifts) < 1.2
    assert lifts.max() > 4


def test_publications_are_written_whole_and_counted(tmp_path: Path) -> None:
    path, told = tmp_path / "publications.parquet", list[int]()
    write_publications("us", 70_000, 2, path, told.append)
    assert told == [65_536, 70_000]
    assert pq.read_table(path).equals(pa.Table.from_batches(generate("us", 70_000, 2)))
    assert [each.name for each in tmp_path.iterdir()] == ["publications.parquet"]


def test_a_writing_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def fail(n_written: int) -> None:
        raise RuntimeError(f"stopped after {n_written}")

    with pytest.raises(RuntimeError, match="stopped after 500"):
        write_publications("us", 500, 2, tmp_path / "publications.parquet", fail)
    assert not list(tmp_path.iterdir())
