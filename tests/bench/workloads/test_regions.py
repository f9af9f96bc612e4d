"""Q3 cuts the space where publications are into 100 regions, of two kinds that may drift."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from ps2stream_bench.workloads import Corpus, corpus_of, draws_q2, kinds_by_interval, region_of


def test_half_of_the_q3_regions_draw_q2() -> None:
    kinds = draws_q2(5)
    assert (len(kinds), kinds.sum()) == (100, 50)
    assert (draws_q2(5) == kinds).all()
    assert (draws_q2(6) != kinds).any()


def test_q3_regions_are_ten_by_ten_equal_parts_of_where_most_publications_are(corpus: Corpus) -> None:
    numbers = region_of(corpus, corpus.lon, corpus.lat)
    assert (numbers.min(), numbers.max()) == (0, 99)
    assert len(np.unique(numbers)) > 90
    for axis, values in ((numbers % 10, corpus.lon), (numbers // 10, corpus.lat)):
        edges = [(values[axis == part].min(), values[axis == part].max()) for part in range(10)]
        assert all(west[1] <= east[0] for west, east in pairwise(edges))
        inner = [high - low for low, high in edges[1:-1]]
        assert max(inner) < 1.3 * min(inner)


def test_a_few_publications_from_overseas_do_not_stretch_the_q3_regions() -> None:
    rng = np.random.default_rng(1)
    lon, lat = rng.uniform(-100, -90, 500), rng.uniform(30, 40, 500)
    texts = pa.array(["storm"] * 520)
    corpus = corpus_of(np.append(lon, np.full(20, 150.0)), np.append(lat, np.full(20, -30.0)), texts)
    assert len(np.unique(region_of(corpus, lon, lat))) > 90
    assert region_of(corpus, np.array([150.0]), np.array([-30.0])).tolist() == [9]


def test_ten_regions_change_their_kind_from_interval_to_interval() -> None:
    kinds = kinds_by_interval(5, 20)
    assert kinds.shape == (20, 100)
    assert (kinds[0] == draws_q2(5)).all()
    assert [(this != following).sum() for this, following in pairwise(kinds)] == [10] * 19
    moves = {tuple(np.flatnonzero(this != following)) for this, following in pairwise(kinds)}
    assert len(moves) == 19, "other regions every time"
    assert (kinds_by_interval(5, 20) == kinds).all()
    assert (kinds_by_interval(6, 20) != kinds).any()
    assert (kinds_by_interval(5, 4, share=0.25)[1] != kinds[0]).sum() == 25
