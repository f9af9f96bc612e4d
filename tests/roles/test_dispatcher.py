"""The dispatcher sends a publication to who owns one of its live terms, with all it takes to verify."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from engines.deployments import Deployment, local_stream, random_plan
from engines.streams import (
    TOKENIZER,
    batches_of,
    events_of,
    plan_for,
    publications_of,
    publish,
    random_stream,
    subscribe,
    updates_of,
)
from ps2stream.matching.contract import OWNED_BEFORE, OWNED_NOW
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.packets import ROUTED, SAMPLED, decode, encode
from ps2stream.roles.registrar import Registrar
from ps2stream.routing.index import route_by
from ps2stream.routing.layout import Postings
from ps2stream.routing.route import NOBODY

pytestmark = pytest.mark.kernel


def _terms(text: str) -> list[int]:
    return [int(term) for term in TOKENIZER.tokenize(pa.array([text])).values]


def _dispatcher(*rows: object) -> Dispatcher:
    registrar = Registrar(plan_for(events_of()))
    registrar.decide(updates_of(events_of(*rows)))  # type: ignore[arg-type]
    return Dispatcher(registrar.grid_ts, TOKENIZER)


def test_a_packet_has_all_terms_of_a_publication_and_marks_those_to_look_up() -> None:
    done = _dispatcher(subscribe(1, "a", "fire")).dispatch(
        publications_of(events_of(publish(5, "p", "Fire and rain")))
    )
    ((_, packet),) = done.packets.items()
    assert packet.schema == ROUTED
    (row,) = packet.to_pylist()
    assert (row["seq"], row["id"]) == (5, "p")
    assert row["terms"] == sorted(_terms("fire and rain"))
    assert [term for term, flag in zip(row["terms"], row["probes"], strict=True) if flag] == _terms("fire")


def test_what_nobody_waits_for_is_discarded_and_what_is_wrong_rejected() -> None:
    rows = (publish(5, "p", "rain"), publish(6, "q", ""), publish(7, "r", lat=91.0), publish(8, "s", "fire"))
    done = _dispatcher(subscribe(1, "a", "fire")).dispatch(publications_of(events_of(*rows)))
    assert (done.n_publications, done.n_discarded) == (3, 2)
    assert done.rejected.column("seq").to_pylist() == [7]
    assert [packet.column("seq").to_pylist() for packet in done.packets.values()] == [[8]]


def test_packets_hold_exactly_the_publications_that_routing_names() -> None:
    events = random_stream(80, 3)
    registrar = Registrar(plan_for(events))
    registrar.decide(updates_of(events))
    publications = publications_of(events)
    done = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications)
    valid = [
        row for row in publications.to_pylist() if row["seq"] not in done.rejected.column("seq").to_pylist()
    ]
    assert done.n_publications == len(valid)
    expected: dict[int, dict[int, list[int]]] = {}
    for row in valid:
        terms = TOKENIZER.tokenize(pa.array([row["text"]]))
        lon, lat = np.array([row["lon"]]), np.array([row["lat"]])
        (owners,) = route_by(registrar.grid_ts, lon, lat, terms).owners.tolist()
        for worker in set(owners) - {NOBODY}:
            flags = [int(owner == worker) for owner in owners]
            expected.setdefault(worker, {})[row["seq"]] = flags
    found = {
        worker: {row["seq"]: row["probes"] for row in packet.to_pylist()}
        for worker, packet in done.packets.items()
    }
    assert found == expected


def test_no_publications_make_no_packets() -> None:
    done = _dispatcher(subscribe(1, "a")).dispatch(publications_of(events_of()))
    assert done.packets == {}
    assert (done.n_publications, done.n_discarded, done.rejected.num_rows) == (0, 0, 0)


def test_removing_what_was_added_leaves_a_dispatcher_that_discards_everything() -> None:
    registrar = Registrar(plan_for(events_of()))
    segment = registrar.decide(
        updates_of(events_of(subscribe(1, "a"), subscribe(2, "b", "rain OR fire")))
    ).segment
    versions = np.arange(segment.num_rows)
    postings: Postings = registrar.registry.postings(versions)
    registrar.grid_ts.newest.remove(postings)
    done = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(
        publications_of(events_of(publish(9, "p", "fire rain")))
    )
    assert done.n_discarded == 1


def test_a_term_is_marked_for_each_plan_by_which_a_worker_owns_it() -> None:
    rng = random.Random(1)
    deployment = Deployment(random_plan(rng))
    events = local_stream(120, 1)
    first, second = batches_of(events, 60)
    deployment.process(first)
    deployment.switch(random_plan(rng))
    deployment.process(second)
    publications = publications_of(events)
    done = Dispatcher(deployment.registrar.grid_ts, TOKENIZER).dispatch(publications)
    found = {
        (row["seq"], worker, term): bits
        for worker, packet in done.packets.items()
        for row in packet.to_pylist()
        for term, bits in zip(row["terms"], row["probes"], strict=True)
    }
    marked: set[int] = set()
    for row in publications.to_pylist():
        terms = TOKENIZER.tokenize(pa.array([row["text"]]))
        lon, lat = np.array([row["lon"]]), np.array([row["lat"]])
        now, before = route_by(deployment.registrar.grid_ts, lon, lat, terms).owners
        for worker in {*now.tolist(), *before.tolist()} - {NOBODY}:
            for index, term in enumerate(terms.values.tolist()):
                bits = OWNED_NOW * (now[index] == worker) | OWNED_BEFORE * (before[index] == worker)
                assert found.pop((row["seq"], worker, term)) == bits
                marked.add(int(bits))
    assert not found, "nobody else gets anything"
    assert marked == {0, OWNED_NOW, OWNED_BEFORE, OWNED_NOW | OWNED_BEFORE}


@pytest.mark.parametrize(("n", "step"), [(0, 1), (7, 1), (500, 1), (501, 2), (2300, 5)])
def test_a_few_publications_at_equal_distances_are_the_sample(n: int, step: int) -> None:
    rows = [publish(seq, f"p{seq}", f"w{seq} word", lon=seq / 100, lat=-seq / 100) for seq in range(1, n + 1)]
    sampled = _dispatcher(subscribe(1, "a")).dispatch(publications_of(events_of(*rows))).sampled
    assert sampled.schema == SAMPLED
    chosen = range(1, n + 1, step)
    assert sampled.column("lon").to_pylist() == [seq / 100 for seq in chosen]
    assert sampled.column("lat").to_pylist() == [-seq / 100 for seq in chosen]
    found = [sorted(terms) for terms in sampled.column("terms").to_pylist()]
    assert found == [sorted(_terms(f"w{seq} word")) for seq in chosen], "discarded or not"


def test_packets_outlive_the_slices_that_they_are() -> None:
    events = random_stream(80, 3)
    registrar = Registrar(plan_for(events))
    registrar.decide(updates_of(events))
    done = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications_of(events))
    assert len(done.packets) > 1
    for packet in done.packets.values():
        assert decode(encode(packet)).to_pylist() == packet.to_pylist()
        assert len(encode(packet)) < 2 * packet.get_total_buffer_size()
