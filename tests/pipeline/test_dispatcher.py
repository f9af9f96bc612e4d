"""The dispatcher sends a publication to who owns one of its live terms, with all it takes to verify."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pipeline.streams import (
    TOKENIZER,
    events_of,
    plan_for,
    publications_of,
    publish,
    random_stream,
    subscribe,
    updates_of,
)
from ps2stream.pipeline.dispatcher import Dispatcher
from ps2stream.pipeline.packets import ROUTED
from ps2stream.pipeline.registrar import Registrar
from ps2stream.routing.layout import Postings
from ps2stream.routing.route import NOBODY

pytestmark = pytest.mark.kernel


def _terms(text: str) -> list[int]:
    return [int(term) for term in TOKENIZER.tokenize(pa.array([text])).values]


def _dispatcher(*rows: object) -> Dispatcher:
    registrar = Registrar(plan_for(events_of()))
    registrar.decide(updates_of(events_of(*rows)))  # type: ignore[arg-type]
    return Dispatcher(registrar.grid_t, TOKENIZER)


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
    done = Dispatcher(registrar.grid_t, TOKENIZER).dispatch(publications)
    valid = [
        row for row in publications.to_pylist() if row["seq"] not in done.rejected.column("seq").to_pylist()
    ]
    assert done.n_publications == len(valid)
    expected: dict[int, dict[int, list[int]]] = {}
    for row in valid:
        terms = TOKENIZER.tokenize(pa.array([row["text"]]))
        owners = registrar.grid_t.route(np.array([row["lon"]]), np.array([row["lat"]]), terms).owners.tolist()
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
    registrar.grid_t.remove(postings)
    done = Dispatcher(registrar.grid_t, TOKENIZER).dispatch(
        publications_of(events_of(publish(9, "p", "fire rain")))
    )
    assert done.n_discarded == 1
