"""What the paper claims of hybrid partitioning, judged by rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ps2stream_bench.contest import RATE, lead, leads_told
from ps2stream_bench.figure import Verdict
from ps2stream_bench.metrics import Middle, distinct, middles, where
from ps2stream_bench.results import Row

#: The paper's latency is a mean.
LATENCY = "latency_mean_ms"

#: How much "much better", "noticeably larger" and "similar" are taken to be; the paper does not say.
_MUCH, _NOTICEABLY, _SIMILAR = 1.2, 1.2, 1.1
#: Metric's 407 ms are many times what the others need.
_FAR = 2.0


def verdicts(rates: Sequence[Row], latencies: Sequence[Row]) -> list[Verdict]:
    """Judge every claim that there are rows for."""
    projected = where(latencies, clock="projected")
    return [*_throughput(rates), *_latency(projected), *_dispatcher_memory(rates), *_worker_memory(rates)]


def _throughput(rows: Sequence[Row]) -> Iterator[Verdict]:
    yield from _best(rows)
    q1, q2, q3 = where(rows, workload="US-Q1"), where(rows, kind="q2"), where(rows, kind="q3")
    for other in ("metric", "kd-tree"):
        found = lead(q3, "hybrid", other)
        if found.n:
            told = leads_told(q3, "hybrid", other)
            yield Verdict(f"Q3: hybrid is 30 % faster than {other}", "30 %", told, found.median >= 1.3)
    over_kd_tree = lead(q1, "hybrid", "kd-tree")
    if over_kd_tree.n:
        claim = "US-Q1: hybrid is slightly faster than kd-tree"
        yield Verdict(claim, "slightly", leads_told(q1, "hybrid", "kd-tree"), over_kd_tree.median > 1)
    over_metric = {name: lead(q1, name, "metric") for name in ("hybrid", "kd-tree")}
    if all(found.n for found in over_metric.values()):
        yield Verdict(
            f"US-Q1: hybrid and kd-tree are much faster than metric ({_MUCH:.1f} times or more)",
            "much better",
            "; ".join(f"{name} {leads_told(q1, name, 'metric')}" for name in over_metric),
            all(found.median >= _MUCH for found in over_metric.values()),
        )
    over_kd_trees = {name: lead(q2, name, "kd-tree") for name in ("hybrid", "metric")}
    if all(found.n for found in over_kd_trees.values()):
        yield Verdict(
            "Q2: hybrid and metric are faster than kd-tree",
            "a larger throughput",
            "; ".join(f"{name} {leads_told(q2, name, 'kd-tree')}" for name in over_kd_trees),
            all(found.median > 1 for found in over_kd_trees.values()),
        )


def _best(rows: Sequence[Row]) -> Iterator[Verdict]:
    """Judge whether nobody is faster than hybrid on any workload."""
    best = _leaders(rows, RATE, most=True)
    if best:
        n = sum(name == "hybrid" for name in best.values())
        rivals = [name for name in distinct(rows, "partitioner") if name != "hybrid"]
        told = "; ".join(leads_told(rows, "hybrid", name) for name in rivals)
        yield Verdict(
            "hybrid has the best throughput, whatever the distribution",
            "overall best",
            f"best on {n} of {len(best)} workloads; over all: {told}",
            n == len(best),
        )


def _latency(rows: Sequence[Row]) -> Iterator[Verdict]:
    found = middles(rows, ("workload", "partitioner"), LATENCY)
    workloads = [name for name in distinct(rows, "workload") if (name, "hybrid") in found]
    if workloads:
        over = {name: found[name, "hybrid"].median / _least(found, name) for name in workloads}
        worst = max(over, key=over.__getitem__)
        yield Verdict(
            f"hybrid's latency is the smallest, or within {100 * (_SIMILAR - 1):.0f} % of it, everywhere",
            "smaller latency",
            f"on {sum(each <= _SIMILAR for each in over.values())} of {len(over)} workloads; on {worst} "
            f"{found[worst, 'hybrid']:.2f} ms where the smallest is {_least(found, worst):.2f} ms",
            all(each <= _SIMILAR for each in over.values()),
        )
    q2 = where(rows, kind="q2")
    slower = lead(q2, "kd-tree", "hybrid", LATENCY)
    if slower.n:
        yield Verdict(
            f"Q2: kd-tree's latency is noticeably larger than hybrid's ({_NOTICEABLY:.1f} times or more)",
            "25 ms versus 15 ms",
            f"{slower:.2f} times: {_told(q2, 'kd-tree')} versus {_told(q2, 'hybrid')}",
            slower.median >= _NOTICEABLY,
        )
    uk_q1 = where(rows, workload="UK-Q1")
    far = lead(uk_q1, "metric", "hybrid", LATENCY)
    if far.n:
        yield Verdict(
            f"UK-Q1: metric's latency is far above hybrid's ({_FAR:.0f} times or more)",
            "407 ms",
            f"{far:.2f} times: {_told(uk_q1, 'metric')} versus {_told(uk_q1, 'hybrid')}",
            far.median >= _FAR,
        )


def _dispatcher_memory(rows: Sequence[Row]) -> Iterator[Verdict]:
    found = middles(rows, ("workload", "partitioner"), "dispatcher_mb")
    if not found:
        return
    most = max(each.median for each in found.values())
    yield Verdict(
        "a dispatcher needs less than 1000 MB",
        "less than 1000 MB (5M and 10M subscriptions)",
        f"at most {most:,.1f} MB ({max(distinct(rows, 'live')):,.0f} subscriptions)",
        most < 1000,
    )
    least = _leaders(rows, "dispatcher_mb", most=False)
    if least:
        n = sum(name == "kd-tree" for name in least.values())
        ratios = "; ".join(
            f"{name} {lead(rows, name, 'kd-tree', 'dispatcher_mb'):.3f} times kd-tree"
            for name in distinct(rows, "partitioner")
            if name != "kd-tree"
        )
        claim = "kd-tree's dispatchers need the least memory"
        told = f"on {n} of {len(least)} workloads; {ratios}"
        yield Verdict(claim, "less than metric and hybrid", told, n == len(least))
    for country in distinct(rows, "country"):
        hybrid = where(rows, partitioner="hybrid", country=country)
        kinds = {kind: each for (kind,), each in middles(hybrid, ("kind",), "dispatcher_mb").items()}
        if {"q1", "q2", "q3"} <= kinds.keys():
            yield Verdict(
                f"{country.upper()}: hybrid's dispatchers need most memory on Q2",
                "the highest for Q2",
                ", ".join(f"{kind.upper()} {kinds[kind].median:,.1f} MB" for kind in ("q1", "q2", "q3")),
                kinds["q2"].median > max(kinds["q1"].median, kinds["q3"].median),
            )


def _worker_memory(rows: Sequence[Row]) -> Iterator[Verdict]:
    least = _leaders(rows, "worker_mb", most=False)
    if least:
        n = sum(name == "hybrid" for name in least.values())
        ratios = "; ".join(
            f"{lead(rows, 'hybrid', name, 'worker_mb'):.2f} times {name}"
            for name in distinct(rows, "partitioner")
            if name != "hybrid"
        )
        yield Verdict(
            "hybrid's workers need the least memory in most cases",
            "smallest in most cases",
            f"on {n} of {len(least)} workloads; {ratios}",
            2 * n > len(least),
        )


def _leaders(rows: Sequence[Row], field: str, *, most: bool) -> dict[str, str]:
    """Name who alone has the most, or the least, of a field on every workload; of equals, nobody."""
    found = middles(rows, ("workload", "partitioner"), field)
    sign = -1 if most else 1
    leaders = {}
    for workload in distinct(rows, "workload"):
        ranked = sorted(
            (sign * each.median, name) for (there, name), each in found.items() if there == workload
        )
        if len(ranked) > 1:
            leaders[workload] = ranked[0][1] if ranked[0][0] < ranked[1][0] else ""
    return leaders


def _least(found: dict[tuple[str, ...], Middle], workload: str) -> float:
    return min(each.median for (name, _), each in found.items() if name == workload)


def _told(rows: Sequence[Row], name: str) -> str:
    return f"{middles(where(rows, partitioner=name), (), LATENCY)[()]:.2f} ms"
