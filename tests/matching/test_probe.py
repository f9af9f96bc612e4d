"""While two plans are in use, a worker reports by the plan that a subscription is stored under."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.indexes import COUNTERS, built, end, probe
from matching.scan import (
    TERMS,
    Published,
    Scan,
    Stored,
    n_candidates,
    random_publications,
    random_subscriptions,
)
from ps2stream.matching.contract import IndexSettings
from ps2stream.model.schemas import AFTER_ALL_SEQS, BEFORE_ALL_SEQS
from ps2stream.model.space import WORLD, Grid, Region
from sizes import examples

pytestmark = pytest.mark.kernel

CHOSEN = IndexSettings(Grid.over(WORLD, 5), COUNTERS)
TERM = TERMS[0]


def _everywhere(seq_from: int) -> Stored:
    return Stored(seq_from, Region(*WORLD), ((TERM,),))


def _published(*, now: bool, before: bool) -> Published:
    nothing: frozenset[int] = frozenset()
    mine = frozenset({TERM})
    return Published(50, 1.0, 1.0, (TERM,), mine if now else nothing, mine if before else nothing)


@pytest.mark.parametrize(
    ("now", "before", "found"),
    [(True, False, [21, 30]), (False, True, [10, 20]), (True, True, [10, 20, 21, 30]), (False, False, [])],
)
def test_a_term_owned_by_the_newer_plan_finds_what_began_after_the_switch_and_by_the_older_the_rest(
    now: bool, before: bool, found: list[int]
) -> None:
    index = built(CHOSEN, [_everywhere(seq) for seq in (10, 20, 21, 30)])
    here = _published(now=now, before=before)
    assert probe(index, [here], switch_seq=20) == [(0, seq) for seq in found]
    counted = index.cell_counters()
    assert counted["matches"].sum() == len(found)
    assert counted["lookups"].sum() == int(now or before), "once, by however many plans it is owned"
    assert counted["candidates"].sum() == 4 * int(now or before)


@pytest.mark.parametrize(
    ("switch_seq", "now", "before"), [(BEFORE_ALL_SEQS, [10, 20], []), (AFTER_ALL_SEQS, [], [10, 20])]
)
def test_with_one_plan_all_are_found_by_its_terms(switch_seq: int, now: list[int], before: list[int]) -> None:
    index = built(CHOSEN, [_everywhere(seq) for seq in (10, 20)])
    for is_now, found in ((True, now), (False, before)):
        here = _published(now=is_now, before=not is_now)
        assert probe(index, [here], switch_seq=switch_seq) == [(0, seq) for seq in found]


def test_of_several_satisfied_clauses_the_first_decides_which_plan_has_to_own_what() -> None:
    """Another clause's term under the right plan is not enough, nor is this one's under the wrong plan."""
    first, second = TERMS[0], TERMS[1]
    index = built(CHOSEN, [Stored(10, Region(*WORLD), ((first,), (second,)))])
    terms = tuple(sorted((first, second)))
    owned = [frozenset({first}), frozenset({second})]
    published = [Published(50, 1.0, 1.0, terms, now, before) for now in owned for before in owned]
    assert probe(index, published, switch_seq=20) == [(0, 10), (2, 10)]
    assert probe(index, published, switch_seq=5) == [(0, 10), (1, 10)]


@given(st.integers(0, 1 << 32), st.integers(1, 12), st.sampled_from([1, 16, 64]), st.integers(0, 90))
@settings(max_examples=examples(25), deadline=None)
def test_probe_finds_what_a_scan_finds_under_two_plans(
    seed: int, bits: int, max_cells: int, switch_seq: int
) -> None:
    rng = random.Random(seed)
    scan = Scan()
    scan.insert(random_subscriptions(rng, 40, 1))
    chosen = IndexSettings(Grid.over(WORLD, bits), COUNTERS, max_cells)
    index = built(chosen, list(scan.stored.values()))
    ends = dict.fromkeys(list(scan.stored)[::5], 60)
    end(index, ends)
    scan.end(ends)
    published = [
        each._replace(owned_before=frozenset(rng.sample(each.terms, rng.randint(0, len(each.terms)))))
        for each in random_publications(rng, 40, range(100), list(scan.stored.values()))
    ]
    assert probe(index, published, switch_seq=switch_seq) == scan.matches(published, switch_seq)
    stored = list(scan.stored.values())
    assert index.counts().n_candidates == sum(
        n_candidates(chosen.grid, max_cells, stored, each) for each in published
    )


@given(st.integers(0, 1 << 32), st.integers(0, 90))
@settings(max_examples=examples(25), deadline=None)
def test_workers_that_share_the_terms_by_both_plans_find_every_match_once(seed: int, switch_seq: int) -> None:
    rng = random.Random(seed)
    stored = random_subscriptions(rng, 30, 1)
    index = built(CHOSEN, stored)
    whole = random_publications(rng, 30, range(100), stored)
    n_workers = 3
    parts: list[list[Published]] = [[] for _ in range(n_workers)]
    for each in whole:
        now, before = ([rng.randrange(n_workers) for _ in each.terms] for _ in range(2))
        for worker in range(n_workers):
            mine = [
                frozenset(term for term, owner in zip(each.terms, owners, strict=True) if owner == worker)
                for owners in (now, before)
            ]
            parts[worker].append(each._replace(owned=mine[0], owned_before=mine[1]))
    everything = [each._replace(owned=frozenset(each.terms)) for each in whole]
    found = [match for part in parts for match in probe(index, part, switch_seq=switch_seq)]
    assert sorted(found) == probe(index, everything)
