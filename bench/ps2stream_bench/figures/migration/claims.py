"""What the paper claims about migration, and what the rows say about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ps2stream.balance.selection import SELECTORS
from ps2stream_bench.figure import Verdict
from ps2stream_bench.figures.migration.summary import (
    PACE,
    MeanRatio,
    mean_ratio,
    migration_summary,
    sizes_of,
)
from ps2stream_bench.metrics import Middle, distinct, middle, ratio, where
from ps2stream_bench.plots import short
from ps2stream_bench.results import Row

#: "Nearly" what the paper states, "does not change", "slightly longer", "significantly longer".
_NEARLY, _SAME, _SLIGHTLY, _SIGNIFICANTLY = 0.1, 1.25, 1.25, 5.0
#: A selection that takes no longer is "very efficient".
_EFFICIENT_MS = 10.0
#: What a worker may have for DP's table, and the subscriptions for which the paper's had not enough.
_MEMORY_BYTES, _TOO_MANY = 8e9, 10_000_000


class Claim(NamedTuple):
    """What the paper claims, in our words and in its own."""

    text: str
    paper: str

    def judged(self, ours: str, holds: bool) -> Verdict:
        return Verdict(self.text, self.paper, ours, holds)

    def unknown(self, why: str = "not measured") -> Verdict:
        return Verdict(self.text, self.paper, why, None)


DP_TIME = Claim(
    f"DP takes significantly longer than the others to select cells (at least {_SIGNIFICANTLY:g} times)",
    '"DP runs significantly longer than the other algorithms"',
)
RA_TIME = Claim("RA is the fastest to select cells", '"RA is the fastest among all the algorithms"')
EFFICIENT = Claim(
    f"GR and SI are very efficient, too (below {_EFFICIENT_MS:g} ms at every size)",
    '"both GR and SI are very efficient too"',
)
TIME_BY_SIZE = Claim(
    "The time of GR, SI and RA to select changes by a quarter at most with the number of subscriptions",
    'no change from 5M to 10M: "only determined by the number of cells"',
)
DP_MEMORY = Claim(
    f"DP runs out of memory with many subscriptions (more than {_MEMORY_BYTES / 1e9:g} GB with 10M)",
    "out of memory with 5M and 10M subscriptions",
)
FEWEST_BYTES = Claim("DP and GR move the fewest bytes", "smallest cost of the four, 1M subscriptions")
LEAST_TIME = Claim(
    "Migrations take DP slightly longer than GR (up to a quarter), and both the least time",
    'DP "slightly longer", as it selects longer; 1M subscriptions',
)
GR_BYTES = Claim(
    "GR moves fewer bytes than SI and RA, whatever the number of subscriptions",
    '"GR performs the best": cost with 5M and 10M subscriptions',
)
GR_TIME = Claim(
    "A migration by GR takes less time than one by SI or RA, whatever the number of subscriptions",
    '"GR performs the best": time with 5M and 10M subscriptions',
)
SAVING = Claim("GR moves at least 30 % less than SI and RA", "30 to 40 % less, 5M subscriptions")
SHARES_OF_TIME = Claim(
    f"A migration by GR takes nearly half of the time of RA or less, and nearly 70 % of that of SI or less "
    f"(up to {0.5 + _NEARLY:.0%} and {0.7 + _NEARLY:.0%})",
    '"nearly half of the time required by RA and 70 % of the time required by SI", 5M subscriptions',
)
GROWING = Claim(
    "More subscriptions make a migration larger and longer",
    "larger and longer with 10M than with 5M subscriptions",
)
LEFT_ALONE = Claim(
    "With GR at least 80 % of the tuples wait less than 100 ms for migrations, at most 4 % more than 1 s",
    "80 % below 100 ms, 4 % above 1 s; 1M subscriptions",
)
SECOND = Claim("DP is second to GR in tuples left alone", "72 % below 100 ms; 1M subscriptions")
BETWEEN = Claim(
    "DP delays more tuples between 100 ms and 1 s than GR does",
    '"a larger fraction of tuples being delayed between 100ms and 1 second"; 1M subscriptions',
)
MORE_DELAYED = Claim(
    "SI delays more tuples than GR, and RA more than SI", "SI 10 %, RA 20 % more than GR; 1M subscriptions"
)


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Judge what the paper claims, as far as it was measured."""
    chosen, moved = where(rows, part="selection"), where(rows, row="migration")
    return [*_selecting(chosen), *_moving(moved), *_delaying(moved, where(rows, row="interval"))]


def _selecting(chosen: Sequence[Row]) -> list[Verdict]:
    of_any_size, of_two = (DP_TIME, RA_TIME, EFFICIENT, DP_MEMORY), (TIME_BY_SIZE,)
    if set(distinct(chosen, "selector")) != set(SELECTORS):
        return [claim.unknown() for claim in (*of_any_size, *of_two)]
    found = [_judge_dp_time(chosen), _judge_fastest(chosen), _judge_efficient(chosen)]
    found.append(_judge_dp_memory(chosen))
    if len(sizes_of(chosen)) < 2:
        return [*found, *(claim.unknown("one size was measured") for claim in of_two)]
    return [*found, _judge_time_by_size(chosen)]


def _judge_dp_time(chosen: Sequence[Row]) -> Verdict:
    times = {name: _time_ratio(chosen, "dp", name) for name in ("gr", "si", "ra")}
    told = ", ".join(f"{each:.1f} times as long as {name.upper()}" for name, each in times.items())
    return DP_TIME.judged(f"DP takes {told}", all(each.median >= _SIGNIFICANTLY for each in times.values()))


def _judge_fastest(chosen: Sequence[Row]) -> Verdict:
    times = {name: _time_ratio(chosen, "ra", name) for name in ("dp", "gr", "si")}
    told = ", ".join(f"{each:.2f} of {name.upper()}'s time" for name, each in times.items())
    return RA_TIME.judged(f"RA takes {told}", all(each.median < 1.0 for each in times.values()))


def _judge_efficient(chosen: Sequence[Row]) -> Verdict:
    slowest = {
        name: max((_select_ms(chosen, name, size) for size in sizes_of(chosen)), key=lambda each: each.median)
        for name in ("gr", "si")
    }
    told = ", ".join(f"{name.upper()} {each:.3f} ms" for name, each in slowest.items())
    return EFFICIENT.judged(
        f"{told} where it takes longest", all(each.median < _EFFICIENT_MS for each in slowest.values())
    )


def _judge_time_by_size(chosen: Sequence[Row]) -> Verdict:
    fewer, more = sizes_of(chosen)[-2:]
    grown = {
        name: _select_ms(chosen, name, more).median / _select_ms(chosen, name, fewer).median
        for name in ("gr", "si", "ra")
    }
    told = ", ".join(f"{name.upper()} {each:.2f}" for name, each in grown.items())
    n_cells = {
        size: middle(row["n_cells"] for row in where(chosen, subscriptions=size)) for size in (fewer, more)
    }
    return TIME_BY_SIZE.judged(
        f"time with {short(more)} over that with {short(fewer)} subscriptions: {told}, "
        f"for {n_cells[more].median / n_cells[fewer].median:.2f} times the cells",
        all(1 / _SAME <= each <= _SAME for each in grown.values()),
    )


def _judge_dp_memory(chosen: Sequence[Row]) -> Verdict:
    """Where the paper's sizes were not measured, take the worst: memory in proportion to subscriptions."""
    sizes = sizes_of(where(chosen, selector="dp"))
    peaks = {
        size: max(row["peak_bytes"] for row in where(chosen, selector="dp", subscriptions=size))
        for size in sizes
    }
    most = sizes[-1]
    expected = peaks[most] * max(_TOO_MANY / most, 1.0)
    told = ", ".join(f"{peaks[size] / 1e6:.1f} MB with {short(size)}" for size in sizes)
    told = f"DP ran at every size; its largest peaks were {told} subscriptions"
    if most < _TOO_MANY:
        told += f"; in proportion it would be {expected / 1e6:,.0f} MB with {short(_TOO_MANY)}"
    return DP_MEMORY.judged(told, expected > _MEMORY_BYTES)


def _moving(moved: Sequence[Row]) -> list[Verdict]:
    sizes = _complete_sizes(moved)
    found = []
    if sizes:
        found += _judge_at_one_million(where(moved, subscriptions=_nearest(sizes, 1_000_000)))
        found += _judge_at_five_million(where(moved, subscriptions=_nearest(sizes, 5_000_000)))
        found += [_judge_best(moved, sizes, GR_BYTES, "moved_bytes")]
        found += [_judge_best(moved, sizes, GR_TIME, "migration_s")]
    else:
        why = "no size at which every selector migrated"
        found += [
            claim.unknown(why)
            for claim in (FEWEST_BYTES, LEAST_TIME, SAVING, SHARES_OF_TIME, GR_BYTES, GR_TIME)
        ]
    return [*found, _judge_growing(where(moved, selector="gr"))]


def _judge_at_one_million(moved: Sequence[Row]) -> list[Verdict]:
    n_bytes, times = _over_gr(moved, "moved_bytes"), _over_gr(moved, "migration_s")
    return [
        FEWEST_BYTES.judged(
            f"average bytes over GR's: {_told(n_bytes)} ({_origin(moved)})",
            max(n_bytes["dp"].value, 1.0) < min(n_bytes["si"].value, n_bytes["ra"].value),
        ),
        LEAST_TIME.judged(
            f"average time over GR's: {_told(times)} ({_origin(moved)})",
            1.0 <= times["dp"].value <= _SLIGHTLY
            and times["dp"].value < min(times["si"].value, times["ra"].value),
        ),
    ]


def _judge_at_five_million(moved: Sequence[Row]) -> list[Verdict]:
    n_bytes, times = _of_others(moved, "moved_bytes"), _of_others(moved, "migration_s")
    savings = {name: 1.0 - each.value for name, each in n_bytes.items()}
    saved = ", ".join(
        f"{savings[name]:.0%} less than {name.upper()} ({each:.2f} of its bytes)"
        for name, each in n_bytes.items()
    )
    beyond = ", more than the paper's 40 %" if min(savings.values()) > 0.4 else ""
    taken = ", ".join(f"{each:.0%} of {name.upper()}'s" for name, each in times.items())
    return [
        SAVING.judged(f"{saved}{beyond} ({_origin(moved)})", min(savings.values()) >= 0.3),
        SHARES_OF_TIME.judged(
            f"{taken} ({_origin(moved)})",
            times["ra"].value <= 0.5 + _NEARLY and times["si"].value <= 0.7 + _NEARLY,
        ),
    ]


def _judge_best(moved: Sequence[Row], sizes: Sequence[int], claim: Claim, field: str) -> Verdict:
    found = {size: _of_others(where(moved, subscriptions=size), field) for size in sizes}
    told = "; ".join(f"{short(size)}: {_told(each)}" for size, each in found.items())
    return claim.judged(
        f"average of GR over that of the others, by subscriptions: {told}",
        all(each.value < 1.0 for ratios in found.values() for each in ratios.values()),
    )


def _judge_growing(moved: Sequence[Row]) -> Verdict:
    sizes = sizes_of(moved)
    if len(sizes) < 2:
        return GROWING.unknown("GR did not migrate at two sizes")
    fewer, more = (where(moved, subscriptions=size) for size in sizes[-2:])
    n_bytes, times = (mean_ratio(more, fewer, field) for field in ("moved_bytes", "migration_s"))
    return GROWING.judged(
        f"GR with {short(sizes[-1])} over {short(sizes[-2])} subscriptions: {n_bytes:.1f} times the bytes, "
        f"{times:.1f} times the time (averages of {len(more)} and {len(fewer)} migrations)",
        n_bytes.value > 1.0 and times.value > 1.0,
    )


def _delaying(moved: Sequence[Row], intervals: Sequence[Row]) -> list[Verdict]:
    """Judge delays where every selector migrated: one that moves nothing delays nobody."""
    claims = (LEFT_ALONE, SECOND, BETWEEN, MORE_DELAYED)
    sizes = [size for size in _complete_sizes(moved) if size in _complete_sizes(intervals)]
    if not sizes:
        return [claim.unknown("no size at which every selector migrated") for claim in claims]
    size = _nearest(sizes, 1_000_000)
    lines = {
        line["selector"].lower(): line
        for line in migration_summary(where(moved, subscriptions=size), where(intervals, subscriptions=size))
    }
    delayed = {name: 1.0 - line["share_below"] for name, line in lines.items()}
    between = {name: lines[name]["share_between"] for name in ("dp", "gr")}
    over_1_s, more = (
        lines["gr"]["share_above"],
        {name: delayed[name] - delayed["gr"] for name in ("si", "ra")},
    )
    told = ", ".join(f"{name.upper()} {each:.1%}" for name, each in delayed.items())
    at = f"if {PACE:,} tuples came a second; {short(size)} subscriptions"
    return [
        LEFT_ALONE.judged(
            f"{1 - delayed['gr']:.1%} below 100 ms, {over_1_s:.1%} above 1 s, {at}",
            delayed["gr"] <= 0.2 and over_1_s <= 0.04,
        ),
        SECOND.judged(
            f"delayed by more than 100 ms: {told}, {at}",
            delayed["gr"] < delayed["dp"] < min(delayed["si"], delayed["ra"]),
        ),
        BETWEEN.judged(
            f"DP {between['dp']:.1%}, GR {between['gr']:.1%}, {at}", between["dp"] > between["gr"]
        ),
        MORE_DELAYED.judged(
            f"SI {100 * more['si']:+.1f}, RA {100 * more['ra']:+.1f} percentage points of all tuples against "
            f"GR, {at}",
            0.0 < more["si"] < more["ra"],
        ),
    ]


def _time_ratio(chosen: Sequence[Row], name: str, other: str) -> Middle:
    return ratio(chosen, "select_s", {"selector": name}, {"selector": other})


def _select_ms(chosen: Sequence[Row], name: str, size: int) -> Middle:
    return middle(1e3 * row["select_s"] for row in where(chosen, selector=name, subscriptions=size))


def _over_gr(moved: Sequence[Row], field: str) -> dict[str, MeanRatio]:
    """Return the averages of the other selectors over that of GR."""
    gr = where(moved, selector="gr")
    return {name: mean_ratio(where(moved, selector=name), gr, field) for name in SELECTORS if name != "gr"}


def _of_others(moved: Sequence[Row], field: str) -> dict[str, MeanRatio]:
    """Return the average of GR over those of the selectors that the paper compares it with at 5M and 10M."""
    gr = where(moved, selector="gr")
    return {name: mean_ratio(gr, where(moved, selector=name), field) for name in ("si", "ra")}


def _told(ratios: dict[str, MeanRatio]) -> str:
    return ", ".join(f"{name.upper()} {each:.2f}" for name, each in ratios.items())


def _origin(moved: Sequence[Row]) -> str:
    """Say of one size how many migrations stand behind its averages."""
    counts = ", ".join(f"{name.upper()} {len(where(moved, selector=name))}" for name in SELECTORS)
    return f"{short(moved[0]['subscriptions'])} subscriptions; migrations: {counts}"


def _complete_sizes(rows: Sequence[Row]) -> list[int]:
    """Return the sizes of which there are rows of every selector."""
    return [
        size
        for size in sizes_of(rows)
        if set(distinct(where(rows, subscriptions=size), "selector")) == set(SELECTORS)
    ]


def _nearest(sizes: Sequence[int], size: int) -> int:
    """Return the measured number of subscriptions that is nearest to one of the paper's."""
    return min(sizes, key=lambda each: abs(math.log(each / size)))
