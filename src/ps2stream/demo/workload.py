"""The demo's stream: publications, and subscriptions that come and go, five to one."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Float64s, Int32s, Int64s
from ps2stream.demo.geography import Places, load_places
from ps2stream.demo.interests import Interests
from ps2stream.demo.sampling import Weighted, WeightedRows
from ps2stream.demo.texts import compose
from ps2stream.demo.topics import TOPICS
from ps2stream.demo.vocabulary import Vocabulary, load_vocabulary
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.model.square_region import KM_PER_DEGREE

# Of twelve events ten are publications, one subscribes, one unsubscribes: the paper's mix.
_EVENTS_PER_SWAP = 12
# Concentration of a region's mixture of topics: small, so that a handful of topics make up most of it.
_TASTE = 0.1
# A shift makes this share of the people this many times as busy: near half of all events are theirs then.
# More, and matches grow out of hand, as there are more subscriptions where there is more to match.
_BUSY_SHARE = 0.05
_RUSH = 16.0
# The next shift goes where the people are that live farthest away, this share of all.
_FAR_SHARE = 0.5


@functools.cache
def _world() -> tuple[Places, Vocabulary]:
    """Load what all workloads draw from, and none of them changes."""
    places = load_places()
    return places, load_vocabulary(places.names)


class BusyArea(NamedTuple):
    """A part of the world that is busier than its people are many: a circle around a city."""

    name: str
    lat: float
    lon: float
    radius_km: float


class Workload:
    """Make up events; the same seed and the same calls give the same events."""

    def __init__(self, seed: int = 7, *, first_seq: int = 1) -> None:
        self._rng = np.random.default_rng(seed)
        # Of their own, so that who watches can shift while a publisher's thread makes events.
        self._shifts = np.random.default_rng([seed, 1])
        self._places, self._vocabulary = _world()
        self._elsewhere = np.arange(len(self._places.lat))
        self._interests = Interests(self._vocabulary)
        taste = self._rng.gamma(_TASTE, size=(self._places.n_regions, len(TOPICS)))
        self._topics = WeightedRows(taste + 1e-6)
        self._live: Int64s = np.empty(0, dtype=np.int64)
        self._next_seq = first_seq
        self._n_publications = 0
        self._n_subscriptions = 0
        self._owed = 0

    @property
    def n_live(self) -> int:
        """Count the subscriptions that were made and not withdrawn."""
        return len(self._live)

    def subscriptions(self, n: int) -> pa.RecordBatch:
        """Make the next ``n`` subscribe events."""
        rows = self._subscribe(n)
        return self._numbered([(SUBSCRIBE, rows, n)], np.zeros(n, dtype=np.int64))

    def events(self, n: int) -> pa.RecordBatch:
        """Make the next ``n`` events of the mix, which leaves the number of live subscriptions as it is.

        What a call withdraws was live before the call. With fewer live subscriptions than that, the
        swaps that cannot be made are publications instead; so is the event of a call for one, as a
        swap takes two.
        """
        n_swaps, self._owed = divmod(n + self._owed, _EVENTS_PER_SWAP)
        n_swaps = min(n_swaps, self.n_live, n // 2)
        n_publications = n - 2 * n_swaps
        kinds = np.repeat(np.arange(3), [n_publications, n_swaps, n_swaps])
        self._rng.shuffle(kinds)
        withdrawn = self._unsubscribe(n_swaps)
        parts = [
            (PUBLISH, self._publish(n_publications), n_publications),
            (SUBSCRIBE, self._subscribe(n_swaps), n_swaps),
            (UNSUBSCRIBE, withdrawn, n_swaps),
        ]
        return self._numbered(parts, kinds)

    def shift(self) -> BusyArea:
        """Make another part of the world busy, far from the one before, which is as it was again.

        From the next call on, publications and new subscriptions come from there several times as often;
        subscriptions that are live stay where they are.
        """
        population = self._places.spread_km**2  # but for a factor: see how places spread
        chances = population[self._elsewhere]
        centre = int(self._shifts.choice(self._elsewhere, p=chances / chances.sum()))
        distance_km = self._distances_km(centre)
        outwards = np.argsort(distance_km, kind="stable")
        passed = np.cumsum(population[outwards]) / population.sum()
        busy = outwards[: np.searchsorted(passed, _BUSY_SHARE) + 1]
        self._elsewhere = outwards[np.searchsorted(passed, 1.0 - _FAR_SHARE) :]
        population[busy] *= _RUSH
        # As if this many more people lived there. At once, for the thread that draws them.
        self._places = replace(self._places, by_population=Weighted(population))
        lat, lon = float(self._places.lat[centre]), float(self._places.lon[centre])
        return BusyArea(self._places.names[centre].as_py(), lat, lon, float(distance_km[busy[-1]]))

    def _distances_km(self, city: int) -> Float64s:
        lat, lon = np.radians(self._places.lat), np.radians(self._places.lon)
        cosine = np.sin(lat) * np.sin(lat[city]) + np.cos(lat) * np.cos(lat[city]) * np.cos(lon - lon[city])
        angle: Float64s = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
        return angle * KM_PER_DEGREE

    def _draw_people(self, n: int) -> tuple[Int32s, Int32s]:
        cities = self._places.draw(self._rng, n)
        return cities, self._topics.draw(self._rng, self._places.region[cities])

    def _publish(self, n: int) -> dict[str, pa.Array]:
        cities, topics = self._draw_people(n)
        lat, lon = self._places.scatter(self._rng, cities)
        numbers = np.arange(self._n_publications, self._n_publications + n)
        self._n_publications += n
        text = compose(self._rng, self._vocabulary, cities, topics)
        return {"id": _ids("p", numbers), "lat": pa.array(lat), "lon": pa.array(lon), "text": text}

    def _subscribe(self, n: int) -> dict[str, pa.Array]:
        cities, topics = self._draw_people(n)
        regions = self._interests.regions(self._rng, *self._places.scatter(self._rng, cities))
        numbers = np.arange(self._n_subscriptions, self._n_subscriptions + n)
        self._n_subscriptions += n
        self._live = np.concatenate([self._live, numbers])
        expression = self._interests.expressions(self._rng, cities, topics)
        bounds = {name: pa.array(column) for name, column in regions._asdict().items()}
        return {"id": _ids("s", numbers), "expression": expression, **bounds}

    def _unsubscribe(self, n: int) -> dict[str, pa.Array]:
        chosen = self._rng.choice(self.n_live, n, replace=False)
        numbers = self._live[chosen]
        self._live = np.delete(self._live, chosen)
        return {"id": _ids("s", numbers)}

    def _numbered(self, parts: list[tuple[str, dict[str, pa.Array], int]], kinds: Int64s) -> pa.RecordBatch:
        """Join the parts, interleave them as ``kinds`` says, and number the events in this order."""
        n = len(kinds)
        columns = {"seq": pa.array(np.arange(self._next_seq, self._next_seq + n))}
        self._next_seq += n
        position = np.empty(n, dtype=np.int64)
        position[np.argsort(kinds, kind="stable")] = np.arange(n)
        order = pa.array(position)
        for field in EVENTS:
            if field.name in ("seq", "op"):
                continue
            pieces = [rows.get(field.name, pa.nulls(size, field.type)) for _, rows, size in parts]
            columns[field.name] = pa.concat_arrays(pieces).take(order)
        columns["op"] = pa.array([op for op, _, _ in parts], pa.string()).take(pa.array(kinds))
        return pa.record_batch([columns[name] for name in EVENTS.names], schema=EVENTS)


def _ids(prefix: str, numbers: Int64s) -> pa.StringArray:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")
