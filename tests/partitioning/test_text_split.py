"""Terms are dealt out as SALB does, and what each part gets is counted right."""

from __future__ import annotations

import numpy as np
import pytest

from partitioning.samples import make_sample
from ps2stream.partitioning.load import Costs, Rates, rates_of
from ps2stream.partitioning.sample import digest_of
from ps2stream.partitioning.text_split import TermTable, all_terms, some_terms, split_terms, term_table

pytestmark = pytest.mark.kernel

PUBLICATIONS = Rates(match=0.0, publication=1.0, subscription=0.0, is_paper=False)
CANDIDATES = rates_of(Costs(20.0, 30.0, 50.0, 10.0), 3.0, 0.5)
PAPER = rates_of(Costs(0.01, 30.0, 50.0, 10.0, "paper"), 3.0, 0.5)


def rows_of(table: TermTable, term: int) -> tuple[set[int], set[int]]:
    a, b = table.publication_offsets[term : term + 2]
    c, d = table.subscription_offsets[term : term + 2]
    return set(table.publications[a:b].tolist()), set(table.subscriptions[c:d].tolist())


def test_a_table_turns_entries_round() -> None:
    digest = digest_of(make_sample(60, 40))
    publications, subscriptions = np.arange(5, 50), np.arange(3, 37)
    table = term_table(digest, publications, subscriptions)
    reads, stands = digest.reads, digest.stands
    standing = np.bincount(
        np.concatenate([stands.lists[stands.offsets[r] : stands.offsets[r + 1]] for r in subscriptions]),
        minlength=digest.n_lists,
    )
    assert len(table.terms) > 10
    for i, term in enumerate(table.terms):
        by_publication = {
            k: [
                int(standing[reads.lists[j]])
                for j in range(reads.offsets[row], reads.offsets[row + 1])
                if reads.terms[j] == term and standing[reads.lists[j]]
            ]
            for k, row in enumerate(publications)
        }
        holding = {
            k
            for k, row in enumerate(subscriptions)
            if term in stands.terms[stands.offsets[row] : stands.offsets[row + 1]]
        }
        assert rows_of(table, i) == ({k for k, found in by_publication.items() if found}, holding)
        assert table.looks[i] == sum(len(found) + sum(found) for found in by_publication.values())


@pytest.mark.parametrize("rates", [PUBLICATIONS, CANDIDATES, PAPER], ids=["metric", "candidates", "paper"])
@pytest.mark.parametrize("n_parts", [1, 3, 70])
def test_parts_count_what_their_terms_bring(rates: Rates, n_parts: int) -> None:
    table = all_terms(digest_of(make_sample(80, 60, seed=4)))
    parts = split_terms(table, n_parts, rates)
    for part in range(n_parts):
        rows = [rows_of(table, int(term)) for term in np.flatnonzero(parts.part_of == part)]
        assert parts.n_publications[part] == len(set().union(*(pubs for pubs, _ in rows)))
        assert parts.n_subscriptions[part] == len(set().union(*(subs for _, subs in rows)))
        assert parts.n_looks[part] == table.looks[parts.part_of == part].sum()
    assert parts.part_of.min() >= 0
    assert parts.part_of.max() < n_parts


def salb(table: TermTable, n_parts: int) -> list[int]:
    """Deal terms out as S3-TM does, without any cleverness."""
    held = [rows_of(table, term)[0] for term in range(len(table.terms))]
    parts: list[set[int]] = [set() for _ in range(n_parts)]
    part_of = [0] * len(held)
    for term in sorted(range(len(held)), key=lambda each: (-len(held[each]), each)):
        n = len(held[term])
        capacity = 1.1 * max(n, (sum(map(len, parts)) + n) / n_parts)
        new = [len(held[term] - part) for part in parts]
        fitting = [j for j in range(n_parts) if len(parts[j]) + new[j] <= capacity]
        if fitting and n:
            score = {j: (1 - new[j] / n + 1e-3) * (1 - len(parts[j]) / capacity) for j in fitting}
            best = min(fitting, key=lambda j: (-score[j], len(parts[j]), j))
        else:
            best = min(range(n_parts), key=lambda j: (len(parts[j]) + new[j], j))
        parts[best] |= held[term]
        part_of[term] = best
    return part_of


@pytest.mark.parametrize("seed", range(4))
def test_with_the_load_of_the_metric_it_is_salb(seed: int) -> None:
    table = all_terms(digest_of(make_sample(120, 60, seed)))
    table = some_terms(table, np.flatnonzero(np.diff(table.publication_offsets)))
    assert split_terms(table, 4, PUBLICATIONS).part_of.tolist() == salb(table, 4)


def test_terms_that_occur_together_stay_together() -> None:
    # Two languages that share no word, spoken in the same place.
    north, south = make_sample(150, 80, seed=1), make_sample(150, 80, seed=2)
    both = north._replace(
        lon=np.concatenate([north.lon, south.lon]),
        lat=np.concatenate([north.lat, south.lat]),
        terms=north.terms._replace(
            values=np.concatenate([north.terms.values, south.terms.values]),
            offsets=np.concatenate([north.terms.offsets, south.terms.offsets[1:] + north.terms.offsets[-1]]),
        ),
        bounds=np.tile([-20.0, 30.0, 40.0, 70.0], 160),
        clause_offsets=np.concatenate(
            [north.clause_offsets, south.clause_offsets[1:] + north.clause_offsets[-1]]
        ),
        term_offsets=np.concatenate([north.term_offsets, south.term_offsets[1:] + north.term_offsets[-1]]),
        clause_terms=np.concatenate([north.clause_terms, south.clause_terms]),
    )
    digest = digest_of(both)
    table = all_terms(digest)
    parts = split_terms(table, 2, PUBLICATIONS)
    of_north = np.isin(digest.vocabulary[table.terms], north.terms.values)
    shares = [np.bincount(parts.part_of[which], minlength=2) / which.sum() for which in (of_north, ~of_north)]
    assert max(shares[0]) > 0.9
    assert max(shares[1]) > 0.9
    assert shares[0].argmax() != shares[1].argmax()
    assert parts.n_publications.sum() < 1.25 * len(set(table.publications.tolist())), (
        "hardly any goes to both"
    )


def test_some_terms_of_a_table_are_a_table() -> None:
    table = all_terms(digest_of(make_sample(60, 40)))
    rows = np.array([7, 0, 3])
    smaller = some_terms(table, rows)
    assert smaller.terms.tolist() == table.terms[rows].tolist()
    assert smaller.looks.tolist() == table.looks[rows].tolist()
    assert [rows_of(smaller, i) for i in range(3)] == [rows_of(table, int(row)) for row in rows]
