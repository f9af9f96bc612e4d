from __future__ import annotations

import re
import unicodedata
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ps2stream.arrays import Int64s
from ps2stream.demo.topics import TOPICS
from ps2stream.demo.workload import BusyArea, Workload
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.testing.oracle import run

N_SUBSCRIPTIONS = 5_000
N_EVENTS = 12_000


@pytest.fixture(scope="module")
def stream() -> tuple[pa.RecordBatch, pa.RecordBatch]:
    workload = Workload(seed=3)
    return workload.subscriptions(N_SUBSCRIPTIONS), workload.events(N_EVENTS)


def only(batch: pa.RecordBatch, op: str) -> pa.RecordBatch:
    return batch.filter(pc.equal(batch["op"], op))


def terms(text: str) -> set[str]:
    return set(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def test_the_same_seed_makes_the_same_stream() -> None:
    first, second = Workload(seed=11), Workload(seed=11)
    assert first.subscriptions(500).equals(second.subscriptions(500))
    for n in (1, 300, 700):
        assert first.events(n).equals(second.events(n))


def test_another_seed_makes_another_stream() -> None:
    assert not Workload(seed=1).subscriptions(50).equals(Workload(seed=2).subscriptions(50))


def test_batches_have_the_schema_of_events_and_seq_goes_up_from_the_start_given() -> None:
    workload = Workload(first_seq=40)
    batches = [workload.subscriptions(10), workload.events(25), workload.subscriptions(0), workload.events(3)]
    assert all(batch.schema.equals(EVENTS) for batch in batches)
    assert pa.Table.from_batches(batches)["seq"].to_pylist() == list(range(40, 40 + 38))


def test_columns_are_null_exactly_where_the_operation_has_no_use_for_them(
    stream: tuple[pa.RecordBatch, pa.RecordBatch],
) -> None:
    needed = {
        PUBLISH: {"lat", "lon", "text"},
        SUBSCRIBE: {"expression", "min_lon", "min_lat", "max_lon", "max_lat"},
        UNSUBSCRIBE: set(),
    }
    for op, columns in needed.items():
        rows = only(stream[1], op)
        assert rows.num_rows > 0
        for name in EVENTS.names:
            expected = 0 if name in columns | {"seq", "op", "id"} else rows.num_rows
            assert rows[name].null_count == expected, (op, name)


def test_ten_publications_come_with_one_subscribe_and_one_unsubscribe(
    stream: tuple[pa.RecordBatch, pa.RecordBatch],
) -> None:
    assert Counter(stream[1]["op"].to_pylist()) == {PUBLISH: 10_000, SUBSCRIBE: 1_000, UNSUBSCRIBE: 1_000}


def test_small_batches_keep_the_mix() -> None:
    workload = Workload()
    workload.subscriptions(1_000)
    ops = Counter(op for _ in range(240) for op in workload.events(5)["op"].to_pylist())
    assert ops == {PUBLISH: 1_000, SUBSCRIBE: 100, UNSUBSCRIBE: 100}


def test_only_live_subscriptions_are_withdrawn_and_no_id_comes_twice() -> None:
    workload = Workload(seed=5)
    batches = [workload.subscriptions(200), *(workload.events(600) for _ in range(8))]
    live: set[str] = set()
    seen: set[str] = set()
    for row in pa.Table.from_batches(batches).select(["op", "id"]).to_pylist():
        if row["op"] == UNSUBSCRIBE:
            live.remove(row["id"])
            continue
        assert row["id"] not in seen
        seen.add(row["id"])
        if row["op"] == SUBSCRIBE:
            live.add(row["id"])
    assert len(live) == workload.n_live == 200


def test_without_subscriptions_all_events_are_publications() -> None:
    assert set(Workload().events(120)["op"].to_pylist()) == {PUBLISH}


def test_coordinates_lie_in_their_domain(stream: tuple[pa.RecordBatch, pa.RecordBatch]) -> None:
    published, subscribed = only(stream[1], PUBLISH), stream[0]
    for batch, lats, lons in (
        (published, ("lat",), ("lon",)),
        (subscribed, ("min_lat", "max_lat"), ("min_lon", "max_lon")),
    ):
        for names, limit in ((lats, 90.0), (lons, 180.0)):
            for name in names:
                values = batch[name].to_numpy()
                assert np.isfinite(values).all()
                assert np.abs(values).max() <= limit
    assert pc.all(pc.less_equal(subscribed["min_lat"], subscribed["max_lat"])).as_py()


def test_some_regions_cross_the_antimeridian_and_few_are_wide() -> None:
    batch = Workload().subscriptions(20_000)
    height = batch["max_lat"].to_numpy() - batch["min_lat"].to_numpy()
    assert 0.002 < np.mean(height > 1.0) < 0.008
    assert pc.sum(pc.greater(batch["min_lon"], batch["max_lon"])).as_py() > 5


def test_texts_have_the_length_and_the_scripts_of_short_messages(
    stream: tuple[pa.RecordBatch, pa.RecordBatch],
) -> None:
    texts = only(stream[1], PUBLISH)["text"].to_pylist()
    n_terms = np.array([len(terms(text)) for text in texts])
    assert 10 < n_terms.mean() < 12.5
    assert 19 <= np.percentile(n_terms, 95) <= 23
    assert 0.02 < np.mean([not text.isascii() for text in texts]) < 0.06
    for sign in "#@":
        assert np.mean([sign in text for text in texts]) > 0.02


def test_word_frequencies_fall_like_zipf(stream: tuple[pa.RecordBatch, pa.RecordBatch]) -> None:
    words = Counter(word for text in only(stream[1], PUBLISH)["text"].to_pylist() for word in text.split())
    counts = np.array([count for _, count in words.most_common(2_000)], dtype=np.float64)
    slope = np.polyfit(np.log(np.arange(1, len(counts) + 1)), np.log(counts), 1)[0]
    assert -1.5 < slope < -0.6
    assert words.most_common(1)[0][0] == "the"


def test_what_a_region_talks_about_differs_from_the_next(
    stream: tuple[pa.RecordBatch, pa.RecordBatch],
) -> None:
    published = only(stream[1], PUBLISH)
    topic_of = {word: topic.name for topic in reversed(TOPICS) for word in topic.words}
    by_cell: dict[tuple[int, int], Counter[str]] = {}
    for row in published.to_pylist():
        cell = int(row["lat"] // 10), int(row["lon"] // 10)
        by_cell.setdefault(cell, Counter()).update(topic_of[w] for w in terms(row["text"]) if w in topic_of)
    busiest = sorted(by_cell.values(), key=Counter.total)[-10:]
    assert len({cell.most_common(1)[0][0] for cell in busiest}) >= 5


def test_expressions_have_one_to_three_distinct_keywords_and_the_grammar_of_subscriptions(
    stream: tuple[pa.RecordBatch, pa.RecordBatch],
) -> None:
    grammar = re.compile(r"K|K (AND |OR )?K|K AND K AND K|K OR K OR K|K AND \(K OR K\)|\(K OR K\) AND K")
    kinds = set()
    for expression in stream[0]["expression"].to_pylist():
        shape = re.sub(r"\b(?!AND\b|OR\b)[^\W\d_]+", "K", expression)
        assert grammar.fullmatch(shape), expression
        keywords = re.findall(r"\b(?!AND\b|OR\b)\w+", expression)
        assert len(set(keywords)) == len(keywords)
        kinds.add(shape)
    assert len(kinds) == 8


def test_stop_words_are_no_keywords(stream: tuple[pa.RecordBatch, pa.RecordBatch]) -> None:
    keywords = {word for text in stream[0]["expression"].to_pylist() for word in text.strip("()").split()}
    assert keywords.isdisjoint({"the", "to", "and", "of", "a", "in", "i", "is", "for", "that", "you", "it"})


def test_publications_meet_subscriptions_as_often_as_the_demo_needs() -> None:
    """Estimate the matches of a publication at 100,000 subscriptions from single-keyword ones."""
    workload = Workload()
    subscribed = workload.subscriptions(100_000)
    single = subscribed.filter(pc.match_substring_regex(subscribed["expression"], r"^\S+$"))
    keywords = [word.casefold() for word in single["expression"].to_pylist()]
    box = {name: single[name].to_numpy() for name in ("min_lon", "min_lat", "max_lon", "max_lat")}
    n_matches = []
    for row in only(workload.events(720), PUBLISH).to_pylist():
        past_min, before_max = box["min_lon"] <= row["lon"], row["lon"] <= box["max_lon"]
        in_lon = np.where(box["min_lon"] <= box["max_lon"], past_min & before_max, past_min | before_max)
        covering = in_lon & (box["min_lat"] <= row["lat"]) & (row["lat"] <= box["max_lat"])
        said = terms(row["text"])
        n_matches.append(sum(keywords[i] in said for i in np.flatnonzero(covering)))
    assert 0.5 < np.mean(n_matches) < 10


def share_in(area: BusyArea, batch: pa.RecordBatch) -> float:
    """Return the share of publications, or of the centres of regions, that lie in a busy area."""
    if batch["lon"].null_count:
        width = (batch["max_lon"].to_numpy() - batch["min_lon"].to_numpy()) % 360.0
        lat = (batch["min_lat"].to_numpy() + batch["max_lat"].to_numpy()) / 2.0
        lon = batch["min_lon"].to_numpy() + width / 2.0
    else:
        lat, lon = batch["lat"].to_numpy(), batch["lon"].to_numpy()
    # Haversines, another formula than the workload's.
    halves = np.sin(np.radians(lat - area.lat) / 2) ** 2, np.sin(np.radians(lon - area.lon) / 2) ** 2
    both = halves[0] + halves[1] * np.cos(np.radians(lat)) * np.cos(np.radians(area.lat))
    # Around the outermost cities, too, there are people.
    return float(np.mean(12_742.0 * np.arcsin(np.sqrt(both)) <= area.radius_km + 25.0))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_a_shift_a_twentieth_of_the_people_make_near_half_of_the_events(seed: int) -> None:
    workload = Workload(seed)
    before = [workload.subscriptions(4_000), only(workload.events(6_000), PUBLISH)]
    area = workload.shift()
    after = [workload.subscriptions(4_000), only(workload.events(6_000), PUBLISH)]
    for usual, busy in zip(before, after, strict=True):
        assert 0.03 < share_in(area, usual) < 0.09
        assert 0.38 < share_in(area, busy) < 0.55


def counts_by_cell(batch: pa.RecordBatch) -> Int64s:
    """Count publications by cells of ten degrees."""
    rows, columns = (np.floor(batch[name].to_numpy() / 10.0).astype(np.int64) for name in ("lat", "lon"))
    return np.bincount((rows + 9) * 37 + columns + 18, minlength=19 * 37)


def test_a_shift_is_felt_in_a_few_places_and_the_others_are_quieter() -> None:
    workload = Workload()
    before = counts_by_cell(only(workload.events(20_000), PUBLISH))
    workload.shift()
    after = counts_by_cell(only(workload.events(20_000), PUBLISH))
    risen = after > 3 * np.maximum(before, 20)
    assert 1 <= risen.sum() <= 15
    assert after[risen].sum() > 0.3 * after.sum()
    quieter = (before > 100) & (after < before)
    assert quieter.sum() > 0.8 * (before > 100).sum()


def test_the_next_shift_moves_on_to_another_part_of_the_world() -> None:
    workload = Workload(seed=4)
    areas = [workload.shift()]
    for _ in range(5):
        areas.append(workload.shift())
        published = only(workload.events(5_000), PUBLISH)
        assert share_in(areas[-1], published) > 0.38
        assert share_in(areas[-2], published) < 0.1
    assert len({area.name for area in areas}) == 6


def test_the_same_seed_and_the_same_shifts_make_the_same_stream() -> None:
    first, second, third = Workload(seed=11), Workload(seed=11), Workload(seed=11)
    for workload in (first, second, third):
        workload.subscriptions(500)
    assert first.shift() == second.shift()
    assert first.events(600).equals(second.events(600))
    assert first.shift() == second.shift()
    shifted = first.events(600)
    assert shifted.equals(second.events(600))
    third.events(600)
    assert not shifted.equals(third.events(600))


def test_shifts_leave_the_mix_the_order_and_the_number_of_live_subscriptions_alone() -> None:
    workload = Workload(seed=5)
    batches = [workload.subscriptions(300)]
    for _ in range(10):
        workload.shift()
        batches.append(workload.events(240))
        assert workload.n_live == 300
    events = pa.Table.from_batches(batches)
    assert events.schema.equals(EVENTS)
    assert events["seq"].to_pylist() == list(range(1, 2_701))
    assert Counter(events["op"].to_pylist()) == {PUBLISH: 2_000, SUBSCRIBE: 500, UNSUBSCRIBE: 200}


def test_events_after_a_shift_are_as_valid_as_before() -> None:
    workload = Workload(seed=6)
    workload.shift()
    events = pa.Table.from_batches([workload.subscriptions(1_500), workload.events(3_000)])
    assert not run(events).rejected
    n_terms = [len(terms(text)) for text in events["text"].drop_null().to_pylist()]
    assert 10 < np.mean(n_terms) < 12.5
