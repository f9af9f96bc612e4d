"""What the paper claims about migration, and what the rows say about it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ps2stream.balance.selection import SELECTORS
from ps2stream_bench.figure import Verdict
from ps2stream_bench.figures.migration.summary import mean_of, migration_summary, sizes_of
from ps2stream_bench.metrics import Middle, distinct, middle, ratio, where
from ps2stream_bench.plots import short
from ps2stream_bench.results import Row

#: "About" what the paper states, "the same", and "significantly longer".
_ABOUT, _SAME, _SIGNIFICANT = 0.1, 1.25, 5.0


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Judge what the paper claims, as far as it was measured."""
    chosen, moved = where(rows, part="selection"), where(rows, row="migration")
    intervals = where(rows, row="interval")
    found: list[Verdict] = []
    if chosen:
        found += [_judge_dp_time(chosen), _judge_fastest(chosen)]
        if len(distinct(chosen, "subscriptions")) > 1:
            found += [_judge_time_by_size(chosen), _judge_dp_memory(chosen)]
    if _are_all_there(moved):
        found += _judge_cost(moved)
    if intervals:
        found += _judge_delays(moved, intervals)
    return found


def _judge_dp_time(chosen: Sequence[Row]) -> Verdict:
    times = {name: _time_ratio(chosen, "dp", name) for name in ("gr", "si", "ra")}
    return Verdict(
        "DP runs significantly longer than the others to select cells",
        '"DP runs significantly longer than the other algorithms"; "both GR and SI are very efficient too"',
        "DP takes "
        + ", ".join(f"{each:.0f} times as long as {name.upper()}" for name, each in times.items()),
        all(each.median >= _SIGNIFICANT for each in times.values()),
    )


def _judge_fastest(chosen: Sequence[Row]) -> Verdict:
    times = {name: _time_ratio(chosen, "ra", name) for name in ("gr", "si")}
    return Verdict(
        "RA is the fastest to select cells",
        '"RA is the fastest among all the algorithms"',
        "RA takes " + ", ".join(f"{each:.2f} of {name.upper()}'s time" for name, each in times.items()),
        all(each.median < 1.0 for each in times.values()),
    )


def _judge_time_by_size(chosen: Sequence[Row]) -> Verdict:
    fewer, more = sizes_of(chosen)[-2:]
    by_size = {
        name: _median(chosen, "select_s", name, more) / _median(chosen, "select_s", name, fewer)
        for name in ("gr", "si", "ra")
    }
    told = ", ".join(f"{name.upper()} {each:.2f}" for name, each in by_size.items())
    return Verdict(
        "The time of GR, SI and RA to select does not change with the number of subscriptions",
        'no change from 5M to 10M: "only determined by the number of cells"',
        f"time with {short(more)} over that with {short(fewer)} subscriptions: {told}",
        all(1 / _SAME <= each <= _SAME for each in by_size.values()),
    )


def _judge_dp_memory(chosen: Sequence[Row]) -> Verdict:
    sizes = sizes_of(chosen)
    least, most = sizes[0], sizes[-1]
    peaks = {
        size: max(row["peak_bytes"] for row in where(chosen, selector="dp", subscriptions=size))
        for size in sizes
    }
    return Verdict(
        "DP needs more and more memory with more subscriptions, until there is none left",
        "out of memory with 5M and 10M subscriptions",
        f"DP ran at every size; its largest peak was {peaks[least] / 1e6:.1f} MB with {short(least)} and "
        f"{peaks[most] / 1e6:.1f} MB with {short(most)} subscriptions",
        peaks[most] / peaks[least] > math.sqrt(most / least),
    )


def _judge_cost(moved: Sequence[Row]) -> list[Verdict]:
    one, five = _nearest(moved, 1_000_000), _nearest(moved, 5_000_000)
    bytes_at_one, time_at_one = _ratios(moved, "moved_bytes", one), _ratios(moved, "migration_s", one)
    bytes_at_five, time_at_five = _ratios(moved, "moved_bytes", five), _ratios(moved, "migration_s", five)
    found = [
        Verdict(
            "DP and GR move the fewest bytes",
            "smallest cost of the four, 1M subscriptions",
            f"{short(one)} subscriptions, average bytes over GR's: {_told(bytes_at_one)}",
            max(bytes_at_one["dp"], 1.0) < min(bytes_at_one["si"], bytes_at_one["ra"]),
        ),
        Verdict(
            "Migrations take DP slightly longer than GR, and both the least time",
            'DP "slightly longer", as it selects longer; 1M subscriptions',
            f"{short(one)} subscriptions, average time over GR's: {_told(time_at_one)}",
            1.0 < time_at_one["dp"] < min(time_at_one["si"], time_at_one["ra"]),
        ),
        Verdict(
            "GR moves 30 to 40 % less than SI and RA",
            "30 to 40 % less, 5M subscriptions",
            f"{short(five)} subscriptions: {1 - 1 / bytes_at_five['si']:.0%} less than SI, "
            f"{1 - 1 / bytes_at_five['ra']:.0%} less than RA",
            all(1 / bytes_at_five[name] <= 0.7 for name in ("si", "ra")),
        ),
        Verdict(
            "A migration by GR takes half of the time of RA and 70 % of the time of SI",
            '"nearly half of the time required by RA and 70 % of the time required by SI", 5M subscriptions',
            f"{short(five)} subscriptions: {1 / time_at_five['ra']:.0%} of RA's, "
            f"{1 / time_at_five['si']:.0%} of SI's",
            1 / time_at_five["ra"] <= 0.5 + _ABOUT and 1 / time_at_five["si"] <= 0.7 + _ABOUT,
        ),
    ]
    sizes = sizes_of(where(moved, selector="gr"))
    if len(sizes) > 1:
        fewer, more = ({"selector": "gr", "subscriptions": size} for size in sizes[-2:])
        grown = {
            field: mean_of(where(moved, **more), field) / mean_of(where(moved, **fewer), field)
            for field in ("moved_bytes", "migration_s")
        }
        found.append(
            Verdict(
                "More subscriptions make a migration larger and longer",
                "larger and longer with 10M than with 5M subscriptions",
                f"GR with {short(sizes[-1])} over {short(sizes[-2])} subscriptions: "
                f"{grown['moved_bytes']:.1f} times the bytes, {grown['migration_s']:.1f} times the time",
                all(each > 1.0 for each in grown.values()),
            )
        )
    return found


def _judge_delays(moved: Sequence[Row], intervals: Sequence[Row]) -> list[Verdict]:
    one = _nearest(intervals, 1_000_000)
    lines = migration_summary(where(moved, subscriptions=one), where(intervals, subscriptions=one))
    delayed = {line["selector"].lower(): 1.0 - line["share_below"] for line in lines}
    if set(delayed) != set(SELECTORS):
        return []
    (over_1_s,) = (line["share_above"] for line in lines if line["selector"] == "GR")
    told = ", ".join(f"{name.upper()} {each:.1%}" for name, each in delayed.items())
    more = {name: 100 * (delayed[name] - delayed["gr"]) for name in ("si", "ra")}
    return [
        Verdict(
            "With GR migrations leave 80 % of the tuples alone and delay 4 % significantly",
            "80 % below 100 ms, 4 % above 1 s; 1M subscriptions",
            f"{1 - delayed['gr']:.1%} below 100 ms, {over_1_s:.1%} above 1 s; {short(one)} subscriptions",
            1 - delayed["gr"] >= 0.8 and over_1_s <= 0.04,
        ),
        Verdict(
            "DP is second to GR in tuples left alone",
            "72 % below 100 ms",
            f"delayed by more than 100 ms: {told}",
            delayed["gr"] < delayed["dp"] < min(delayed["si"], delayed["ra"]),
        ),
        Verdict(
            "SI delays more tuples than GR, and RA more than SI",
            "SI 10 %, RA 20 % more than GR",
            f"SI {more['si']:+.1f}, RA {more['ra']:+.1f} percentage points of all tuples against GR",
            delayed["gr"] < delayed["si"] < delayed["ra"],
        ),
    ]


def _time_ratio(chosen: Sequence[Row], name: str, other: str) -> Middle:
    return ratio(chosen, "select_s", {"selector": name}, {"selector": other})


def _ratios(moved: Sequence[Row], field: str, size: int) -> dict[str, float]:
    """Return the averages over migrations of the other selectors, over that of GR."""
    averages = {name: mean_of(where(moved, subscriptions=size, selector=name), field) for name in SELECTORS}
    return {name: each / averages["gr"] for name, each in averages.items() if name != "gr"}


def _told(ratios: dict[str, float]) -> str:
    return ", ".join(f"{name.upper()} {each:.2f}" for name, each in ratios.items())


def _are_all_there(moved: Sequence[Row]) -> bool:
    """Say whether every selector has moved something at the sizes that claims are about."""
    if not moved:
        return False
    sizes = [_nearest(moved, size) for size in (1_000_000, 5_000_000)]
    return all(where(moved, subscriptions=size, selector=name) for size in sizes for name in SELECTORS)


def _median(rows: Sequence[Row], field: str, name: str, size: int) -> float:
    return middle(row[field] for row in where(rows, selector=name, subscriptions=size)).median


def _nearest(rows: Sequence[Row], size: int) -> int:
    """Return the measured number of subscriptions that is nearest to one of the paper's."""
    return min(sizes_of(rows), key=lambda each: abs(math.log(each / size)))
