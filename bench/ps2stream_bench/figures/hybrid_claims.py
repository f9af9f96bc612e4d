"""What the paper claims of hybrid partitioning, judged by rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ps2stream_bench.contest import N_WORKERS
from ps2stream_bench.figure import Verdict
from ps2stream_bench.leads import (
    NOT_MEASURED,
    Pair,
    all_hold,
    hardest,
    on_all,
    overall,
    overall_told,
    wins,
    wins_told,
)
from ps2stream_bench.metrics import middles, where
from ps2stream_bench.results import Row
from ps2stream_bench.workloads import COUNTRIES, KINDS

#: The paper's latency is a mean.
LATENCY = "latency_mean_ms"

#: Live subscriptions in the paper, by kind.
PAPERS_LIVE = {"q1": 5_000_000, "q2": 10_000_000, "q3": 10_000_000}

_RIVALS = ("metric", "kd-tree")

#: How much "much better", "noticeably larger" and "similar" are taken to be; the paper does not say.
_MUCH, _NOTICEABLY, _SIMILAR = 1.2, 1.2, 1.1
#: Up to where a lead is a slight one, and two rates are similar.
_SLIGHTLY = 1.15
#: Metric's 407 ms are many times what the others need.
_FAR = 2.0

#: What the paper gives as an example of memory that is not large, and what a machine of its cluster has.
_NOT_LARGE_MB, _MACHINE_MB = 1000.0, 3750.0
#: In proportion is told for up to this many times what was measured: fixed costs are most of a few megabytes.
_FARTHEST = 100.0


def verdicts(rates: Sequence[Row], latencies: Sequence[Row]) -> list[Verdict]:
    """Judge every claim, each workload by itself; without rows there is no verdict, but the claim stays."""
    projected = where(latencies, clock="projected")
    return [*_throughput(rates), *_latency(projected), *_dispatcher_memory(rates), *_worker_memory(rates)]


def _throughput(rows: Sequence[Row]) -> Iterator[Verdict]:
    yield from _best(rows)
    for other in _RIVALS:
        q3 = _on(_workloads("q3"), ("hybrid", other))
        yield Verdict(
            f"Q3: hybrid is 30 % faster than {other}", "30 %", *on_all(rows, q3, lambda each: each >= 1.3)
        )
    yield Verdict(
        f"US-Q1: hybrid is similar to kd-tree, slightly faster (above 1, up to {_SLIGHTLY} times)",
        "slightly outperforms; similar performance",
        *on_all(rows, _on(["US-Q1"], ("hybrid", "kd-tree")), lambda each: 1 < each <= _SLIGHTLY),
    )
    over_metric = _on(["US-Q1"], ("hybrid", "metric"), ("kd-tree", "metric"))
    yield Verdict(
        f"US-Q1: hybrid and kd-tree are much faster than metric ({_MUCH:.1f} times or more)",
        "much better",
        *on_all(rows, over_metric, lambda each: each >= _MUCH),
    )
    over_kd_tree = _on(_workloads("q2"), ("hybrid", "kd-tree"), ("metric", "kd-tree"))
    yield Verdict(
        "Q2: hybrid and metric are faster than kd-tree",
        "a larger throughput",
        *on_all(rows, over_kd_tree, lambda each: each > 1),
    )


def _best(rows: Sequence[Row]) -> Iterator[Verdict]:
    """Judge whether hybrid is the fastest, over all workloads and on every one of them."""
    leads = [overall(rows, "hybrid", rival) for rival in _RIVALS]
    told = f"{overall_told(rows, 'hybrid', _RIVALS)}; fastest {wins_told(wins(rows, 'hybrid', _RIVALS))}"
    yield Verdict(
        "hybrid has the best throughput overall",
        "overall best",
        NOT_MEASURED if leads == [None, None] else told,
        all_hold(None if each is None else each > 1 for each in leads),
    )
    pairs = {each: [hardest(rows, each, "hybrid", _RIVALS)] for each in _workloads(*KINDS)}
    yield Verdict(
        "hybrid has the best throughput on every workload",
        "regardless of the data distributions",
        *on_all(rows, pairs, lambda each: each > 1),
    )


def _latency(rows: Sequence[Row]) -> Iterator[Verdict]:
    pairs = {each: [hardest(rows, each, "hybrid", _RIVALS, LATENCY)] for each in _workloads(*KINDS)}
    yield Verdict(
        f"hybrid's latency is the smallest, or within {100 * (_SIMILAR - 1):.0f} % of it, everywhere",
        "smaller latency",
        *on_all(rows, pairs, lambda each: each <= _SIMILAR, LATENCY),
    )
    for other in ("hybrid", "metric"):
        slower = _on(_workloads("q2"), ("kd-tree", other))
        yield Verdict(
            f"Q2: kd-tree's latency is noticeably larger than {other}'s ({_NOTICEABLY:.1f} times or more)",
            "25 ms versus 15 ms",
            *on_all(rows, slower, lambda each: each >= _NOTICEABLY, LATENCY),
        )
    usual = [each for each in _workloads(*KINDS) if each != "UK-Q1"]
    yield Verdict(
        f"metric's latency is like hybrid's (within {100 * (_SIMILAR - 1):.0f} %) on all workloads but UK-Q1",
        "similar values",
        *on_all(
            rows, _on(usual, ("metric", "hybrid")), lambda each: 1 / _SIMILAR <= each <= _SIMILAR, LATENCY
        ),
    )
    yield Verdict(
        f"UK-Q1: metric's latency is far above hybrid's ({_FAR:.0f} times or more)",
        "407 ms",
        *on_all(rows, _on(["UK-Q1"], ("metric", "hybrid")), lambda each: each >= _FAR, LATENCY),
    )


def _dispatcher_memory(rows: Sequence[Row]) -> Iterator[Verdict]:
    yield Verdict(
        f"a dispatcher needs less than {_NOT_LARGE_MB:.0f} MB",
        f"less than {_NOT_LARGE_MB:.0f} MB (5M and 10M subscriptions)",
        *_at_the_papers_size(rows, "dispatcher_mb", _NOT_LARGE_MB, n_shares=1),
    )
    pairs = _on(_workloads(*KINDS), ("kd-tree", "hybrid"), ("kd-tree", "metric"))
    yield Verdict(
        "kd-tree's dispatchers need the least memory",
        "less than metric and hybrid",
        *on_all(rows, pairs, lambda each: each < 1, "dispatcher_mb"),
    )
    needed = middles(where(rows, partitioner="hybrid"), ("workload",), "dispatcher_mb")
    for country in COUNTRIES:
        names = [f"{country}-{kind}".upper() for kind in KINDS]
        found = {name: needed[name,].median for name in names if (name,) in needed}
        told = ", ".join(f"{name} {each:,.1f} MB" for name, each in found.items())
        yield Verdict(
            f"{country.upper()}: hybrid's dispatchers need most memory on Q2",
            "the highest for Q2",
            told if len(found) == len(names) else NOT_MEASURED,
            all(found[names[1]] > found[name] for name in (names[0], names[2]))
            if len(found) == len(names)
            else None,
        )


def _worker_memory(rows: Sequence[Row]) -> Iterator[Verdict]:
    least = wins(rows, "hybrid", _RIVALS, "worker_mb")
    told = f"{wins_told(least)}; {overall_told(rows, 'hybrid', _RIVALS, 'worker_mb')}"
    yield Verdict(
        "hybrid's workers need the least memory in most cases",
        "smallest in most cases",
        told if least else NOT_MEASURED,
        2 * sum(least.values()) > len(least) if least else None,
    )
    yield Verdict(
        "all three methods need little memory of workers (less than the "
        f"{_MACHINE_MB:,.0f} MB of a machine of the paper's cluster)",
        "no large memory requirements (5M and 10M subscriptions)",
        *_at_the_papers_size(rows, "worker_mb", _MACHINE_MB, n_shares=N_WORKERS),
    )


def _at_the_papers_size(
    rows: Sequence[Row], field: str, most_mb: float, n_shares: int
) -> tuple[str, bool | None]:
    """Tell what memory would be with the paper's subscriptions, in proportion, and whether that is little.

    ``n_shares``: among how many that have the same memory the subscriptions are divided.
    """
    found = middles(rows, ("workload", "partitioner", "kind", "live"), field)
    if not found:
        return NOT_MEASURED, None
    growth = {key: max(PAPERS_LIVE[key[2]] / key[3], 1.0) for key in found}
    key = max(found, key=lambda each: found[each].median * growth[each])
    workload, name, kind, live = key
    mb = found[key].median
    bytes_each = 1e6 * mb * n_shares / live
    told = f"most on {workload} with {name}: {mb:,.1f} MB, {bytes_each:,.0f} bytes a subscription of {live:,}"
    if max(growth.values()) > _FARTHEST:
        return f"{told}, which are too few to tell of {PAPERS_LIVE[kind]:,}", None
    grown_mb = mb * growth[key]
    if growth[key] > 1:
        told += f"; in proportion {grown_mb:,.0f} MB for {PAPERS_LIVE[kind]:,} (not measured)"
    return told, grown_mb < most_mb


def _workloads(*kinds: str) -> list[str]:
    return [f"{country}-{kind}".upper() for country in COUNTRIES for kind in kinds]


def _on(workloads: Sequence[str], *pairs: Pair) -> dict[str, tuple[Pair, ...]]:
    return dict.fromkeys(workloads, pairs)
