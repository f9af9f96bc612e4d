"""How far partitioners are ahead of each other, told and judged for every workload by itself.

A median over workloads together would say "yes" where one country says "no". So a claim about several
workloads holds only if it does on each of them, and a claim about all together is judged by a mean in which
every workload counts the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from ps2stream_bench.contest import RATE, WORKERS_RATE
from ps2stream_bench.metrics import Middle, distinct, grouped, middle, ratio, where
from ps2stream_bench.results import Row

#: A partitioner, and the one that it is compared with.
Pair = tuple[str, str]

NOT_MEASURED = "not measured"

#: Fields of which more is better; of latency and memory less is.
_RATES = (RATE, WORKERS_RATE)


def lead(rows: Sequence[Row], name: str, other: str, field: str = RATE) -> Middle:
    """Return how many times the figure of another partitioner one has."""
    return ratio(rows, field, {"partitioner": name}, {"partitioner": other})


def lead_told(rows: Sequence[Row], name: str, other: str, field: str = RATE) -> str:
    """Say how many times the figure of another one has: of rates also by workers alone, else both figures."""
    found = _interval_told(lead(rows, name, other, field))
    if field == RATE:
        beside = f"{lead(rows, name, other, WORKERS_RATE).median:.2f} by workers alone"
        return f"{name} {found} times {other} ({beside})"
    ours, theirs = (middle(row.get(field) for row in where(rows, partitioner=each)) for each in (name, other))
    unit = field.rsplit("_", 1)[-1].replace("mb", "MB")
    return f"{name} {found} times {other} ({ours.median:,.2f} {unit} versus {theirs.median:,.2f} {unit})"


def on_all(
    rows: Sequence[Row],
    pairs: Mapping[str, Sequence[Pair]],
    holds: Callable[[float], bool],
    field: str = RATE,
) -> tuple[str, bool | None]:
    """Tell the leads of pairs on workloads, and whether all of them are as they should be."""
    told, held = [], list[bool | None]()
    for workload, compared in pairs.items():
        of_it = where(rows, workload=workload)
        leads = {pair: lead(of_it, *pair, field) for pair in compared}
        held += [holds(each.median) if each.n else None for each in leads.values()]
        known = [lead_told(of_it, *pair, field) for pair, each in leads.items() if each.n]
        prefix = f"{workload}: " if len(pairs) > 1 else ""
        told.append(f"{prefix}{', '.join(known) or NOT_MEASURED}")
    return (NOT_MEASURED if set(held) <= {None} else "; ".join(told)), all_hold(held)


def all_hold(held: Iterable[bool | None]) -> bool | None:
    """Say no if one does not hold, nothing if none of those that are known does not but some are unknown."""
    found = set(held)
    if False in found:
        return False
    return None if None in found or not found else True


def hardest(rows: Sequence[Row], workload: str, name: str, rivals: Sequence[str], field: str = RATE) -> Pair:
    """Name the rival that is most ahead, or least behind; one that was not measured counts as such.

    Of rates the most is ahead, of all else (latency, memory) the least.
    """
    of_it = where(rows, workload=workload)
    leads = {rival: lead(of_it, name, rival, field) for rival in rivals}
    sign = 1 if field in _RATES else -1
    return name, min(leads, key=lambda rival: sign * leads[rival].median if leads[rival].n else -math.inf)


def overall(rows: Sequence[Row], name: str, other: str, field: str = RATE) -> float | None:
    """Return the geometric mean of the leads on all workloads, each of which counts the same."""
    leads = [lead(where(rows, workload=each), name, other, field) for each in distinct(rows, "workload")]
    known = [each.median for each in leads if each.n]
    return math.prod(known) ** (1 / len(known)) if known else None


def wins(
    rows: Sequence[Row],
    name: str,
    rivals: Sequence[str],
    field: str = RATE,
    by: Sequence[str] = ("workload",),
) -> dict[str, bool]:
    """Say for every workload whether one is ahead of all rivals there; a tie is nobody's.

    Of rates the most is ahead, of all else the least. What was not measured of all of them is left out.
    """
    found = {}
    for key, group in grouped(rows, by).items():
        leads = [lead(group, name, rival, field) for rival in rivals]
        if all(each.n for each in leads):
            is_ahead = [each.median > 1 if field in _RATES else each.median < 1 for each in leads]
            found[" ".join(map(str, key))] = all(is_ahead)
    return found


def wins_told(found: Mapping[str, bool]) -> str:
    """Say on how many workloads, and on which, one is ahead of all."""
    won = [workload for workload, is_won in found.items() if is_won]
    return f"on {len(won)} of {len(found)} workloads" + (f" ({', '.join(won)})" if won else "")


def overall_told(rows: Sequence[Row], name: str, rivals: Sequence[str], field: str = RATE) -> str:
    """Say how many times the figures of its rivals one has, over all workloads."""
    found = {rival: overall(rows, name, rival, field) for rival in rivals}
    told = ", ".join(f"{each:.2f} times {rival}" for rival, each in found.items() if each is not None)
    return f"geometric mean over workloads: {told}"


def _interval_told(found: Middle) -> str:
    """Leave an interval out where it says nothing, as with bytes, which do not vary."""
    is_exact = f"{found.low:.2f}" == f"{found.high:.2f}"
    return f"{found.median:.2f}" if is_exact else f"{found:.2f}"
