"""The hypergraph partitioner keeps together what occurs together, evenly, and always in the same way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from partitioning.samples import make_sample
from ps2stream.arrays import Ragged, frozen
from ps2stream.errors import ConfigError
from ps2stream.partitioning import hypergraph
from ps2stream.partitioning.frequency import FrequencyPartitioner
from ps2stream.partitioning.hypergraph import (
    HypergraphPartitioner,
    HypergraphSettings,
    nets_of,
    outweighing,
    some_nets,
)
from ps2stream.partitioning.load import STANDARD_COSTS, rates_of
from ps2stream.partitioning.plan import Plan, owner
from ps2stream.partitioning.sample import Sample, digest_of
from ps2stream.partitioning.text_split import all_terms, term_weights
from waiting import HANG_S

N_TOPICS = 8
SETTINGS = HypergraphSettings(bits=2)


def _topical_sample(n_publications: int = 2000, n_subscriptions: int = 400) -> Sample:
    """Draw texts of five words, nearly all from one of eight topics of 20 words."""
    rng = np.random.default_rng(5)
    words = rng.integers(0, 1 << 63, (N_TOPICS, 20), dtype=np.uint64)
    texts = []
    for topic in rng.integers(0, N_TOPICS, n_publications):
        text = rng.choice(words[topic], 5)
        if rng.random() < 0.1:
            text[0] = rng.choice(words.reshape(-1))
        texts.append(np.unique(text))
    each = frozen(np.arange(n_subscriptions + 1, dtype=np.int64))
    return Sample(
        frozen(rng.uniform(0, 10, n_publications)),
        frozen(rng.uniform(0, 10, n_publications)),
        Ragged(np.concatenate(texts), np.cumsum([0, *map(len, texts)], dtype=np.int64)),
        frozen(np.tile([0.0, 0.0, 10.0, 10.0], n_subscriptions)),
        each,
        each,
        frozen(rng.choice(words.reshape(-1), n_subscriptions)),
    )


def _n_copies(plan: Plan, sample: Sample) -> int:
    """Count at how many workers publications would arrive."""
    digest = digest_of(sample)
    posted = set(digest.vocabulary[all_terms(digest).terms].tolist())
    n = 0
    for row in range(sample.n_publications):
        terms = [term for term in sample.terms.row(row) if int(term) in posted]
        n += len({owner(plan.h1, 0, term) for term in terms})
    return n


def _planned(sample: Sample, n_workers: int, settings: HypergraphSettings = SETTINGS, seed: int = 0) -> Plan:
    return HypergraphPartitioner(settings=settings).plan(sample, n_workers, seed=seed)


def test_terms_of_a_topic_stay_together() -> None:
    sample = _topical_sample()
    ours = _n_copies(_planned(sample, N_TOPICS, replace(SETTINGS, epsilon=0.1)), sample)
    by_weight = _n_copies(FrequencyPartitioner(bits=2).plan(sample, N_TOPICS), sample)
    by_hash = _n_copies(FrequencyPartitioner(max_terms=0, bits=2).plan(sample, N_TOPICS), sample)
    assert ours < 0.6 * by_hash
    assert ours < 0.6 * by_weight
    assert ours >= sample.n_publications * 0.9, "nearly every text has a word that somebody waits for"


@pytest.mark.parametrize("n_workers", [2, 8])
def test_no_worker_outweighs_the_average_by_more_than_epsilon(n_workers: int) -> None:
    sample = _topical_sample()
    plan = _planned(sample, n_workers, replace(SETTINGS, epsilon=0.05))
    digest = digest_of(sample)
    weights = term_weights(
        all_terms(digest), rates_of(STANDARD_COSTS, digest.live_weight, digest.churn_weight)
    )
    totals = np.bincount(plan.h1.table_workers, weights, n_workers)
    assert totals.max() <= 1.05 * totals.mean() + 1e-6 * totals.sum()


def test_words_above_the_average_have_workers_of_their_own() -> None:
    assert outweighing(np.array([1.0, 50.0, 1.0, 30.0, 2.0]), 4).tolist() == [1, 3]
    assert outweighing(np.array([1.0, 1.0, 1.0]), 3).tolist() == []
    assert outweighing(np.array([1.0, 5.0]), 1).tolist() == []
    assert outweighing(np.array([1.0, 5.0]), 9).tolist() == [1, 0]
    assert outweighing(np.zeros(3), 2).tolist() == []
    assert outweighing(np.empty(0), 4).tolist() == []


def test_a_word_of_every_text_shares_its_worker_with_nobody() -> None:
    sample = _topical_sample(400, 200)
    everywhere = np.uint64(77)
    texts = [np.sort(np.append(sample.terms.row(row), everywhere)) for row in range(400)]
    clauses = sample.clause_terms.copy()
    clauses[:100] = everywhere
    crowded = sample._replace(
        terms=Ragged(np.concatenate(texts), np.cumsum([0, *map(len, texts)], dtype=np.int64)),
        clause_terms=frozen(clauses),
    )
    plan = _planned(crowded, 5)
    alone = owner(plan.h1, 0, everywhere)
    assert plan.h1.table_workers.tolist().count(alone) == 1
    assert set(plan.h1.table_workers.tolist()) == set(range(5))


def test_nets_are_the_different_sets_of_vertices_that_texts_hold() -> None:
    # Terms 0 to 4 are vertices 0, 1, none, 2 and 3.
    vertices = np.array([0, 1, -1, 2, 3], np.int32)
    rows = [[1, 0], [2, 0, 1], [4], [2], [], [3, 4, 2, 0], [0, 1, 3, 4], [1, 0]]
    words = Ragged(
        np.array([term for row in rows for term in row], np.int32),
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
    )
    assert nets_of(words, vertices, HypergraphSettings(max_pins=3)) == {(0, 1): 3, (0, 2, 3): 1}
    assert nets_of(words, vertices, HypergraphSettings(min_pins=4)) == {(0, 1, 2, 3): 1}


def test_of_too_many_nets_some_are_drawn_by_the_seed() -> None:
    nets: Counter[tuple[int, ...]] = Counter({(i, i + 1): i + 1 for i in range(50)})
    assert some_nets(nets, 50, 0) == nets
    drawn = some_nets(nets, 20, 0)
    assert len(drawn) == 20
    assert drawn.items() <= nets.items()
    assert some_nets(nets, 20, 0) == drawn
    assert some_nets(nets, 20, 1) != drawn


def test_the_tail_of_terms_and_of_nets_can_be_left_out() -> None:
    plan = _planned(_topical_sample(), 4, replace(SETTINGS, max_terms=30, max_nets=100))
    assert len(plan.h1.table_terms) == 30
    assert set(plan.h1.table_workers.tolist()) == set(range(4))


_IN_ANOTHER_PROCESS = """
from partitioning.test_hypergraph import _planned, _topical_sample
print(_planned(_topical_sample(), 6, seed=3).h1.table_workers.tolist())
"""


def test_a_seed_gives_one_plan_in_this_process_and_in_others() -> None:
    sample = _topical_sample()
    plan = _planned(sample, 6, seed=3).h1.table_workers.tolist()
    _planned(sample, 5, seed=1)
    assert _planned(sample, 6, seed=3).h1.table_workers.tolist() == plan
    assert _planned(sample, 6, seed=4).h1.table_workers.tolist() != plan
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _IN_ANOTHER_PROCESS]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert done.stdout.strip() == str(plan)


@pytest.mark.parametrize("n_workers", [1, 2, 60, 64])
def test_there_may_be_more_workers_than_terms(n_workers: int) -> None:
    plan = _planned(make_sample(50, 30, n_terms=10), n_workers)
    workers = plan.h1.table_workers.tolist()
    assert set(workers) <= set(range(n_workers))
    assert len(set(workers)) == min(n_workers, len(workers))


def test_a_missing_library_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mtkahypar", None)
    with pytest.raises(ConfigError, match=r"needs mtkahypar: pip install 'ps2stream\[hypergraph\]'"):
        hypergraph._mt_kahypar.__wrapped__()
