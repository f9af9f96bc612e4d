"""A replay on one, two and three hosts that share two cores, and what the loss of a host costs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ps2stream_bench.cluster.bed import Hosts, UnavailableError, rows_of
from ps2stream_bench.cluster.processor_time import KINDS
from ps2stream_bench.engines import check_alike, stream_of
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.metrics import distinct, medians, middles, where
from ps2stream_bench.plots import in_thousands, stacked
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: What a case is about.
STEADY, LOSS = "steady", "loss of a host"
HOSTS = (1, 2, 3)

_N_LIVE: dict[Scale, int] = {"tiny": 20_000, "small": 100_000, "paper": 1_000_000}
_N_PUBLICATIONS: dict[Scale, int] = {"tiny": 50_000, "small": 200_000, "paper": 1_000_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 5_000, "small": 100_000, "paper": 200_000}
#: A replay pours events in packets of 20,000 into its journal; no batch has fewer.
_BATCH_EVENTS: dict[Scale, int] = {"tiny": 20_000, "small": 20_000, "paper": 100_000}
_N_REPETITIONS: dict[Scale, int] = {"tiny": 1, "small": 1, "paper": 1}


def cases(scale: Scale) -> list[Case]:
    """Return a case of runs without faults, and one of a host that is lost."""
    fixed: dict[str, Setting] = {
        "kind": "q1",
        "subscriptions": _N_LIVE[scale],
        "publications": _N_PUBLICATIONS[scale],
        "corpus": _N_CORPUS[scale],
        "batch_events": _BATCH_EVENTS[scale],
        "repetitions": _N_REPETITIONS[scale],
    }
    return [
        Case({"mode": STEADY, "workers": 6, "dispatchers": 6, **fixed}),
        # All subscriptions are one worker's, so that as many have to be built anew.
        Case({"mode": LOSS, "workers": 1, "dispatchers": 2, **fixed}),
    ]


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Replay one event log on beds of several sizes, in turns; all have to deliver the same matches."""
    stream = stream_of(
        context.corpus("us", case["corpus"]),
        case["kind"],
        case["subscriptions"],
        case["publications"],
        context.seed,
    )
    home = context.scratch / "cluster"
    home.mkdir()
    try:
        events = home / "events.parquet"
        pq.write_table(pa.Table.from_batches([stream.events]), events, row_group_size=100_000)
        asked = {
            "events": str(events),
            "stop_words": stream.stop_words,
            "lose": case["mode"] == LOSS,
            **{name: case[name] for name in ("publications", "workers", "dispatchers", "batch_events")},
        }
        yield from _turns(case, asked, context)
    except UnavailableError as reason:
        context.say(f"    left out: {reason}")
        yield {"unavailable": str(reason)}
    finally:
        shutil.rmtree(home)


def _turns(case: Case, asked: dict[str, Any], context: Context) -> Iterator[Row]:
    rng = np.random.default_rng([context.seed, 14])
    numbers = HOSTS if case["mode"] == STEADY else (2,)
    for repetition in range(case["repetitions"]):
        rows = []
        for n in rng.permutation(numbers).tolist():
            (row,) = rows_of("replay_driver", asked, Hosts(n))
            context.say(f"    {n} hosts: {row['wall_s']:.1f} s, {row['cpu_s']:.1f} s of processors to match")
            rows.append({"repetition": repetition, "hosts": n, **row})
        check_alike(rows, "hosts")
        yield from rows


_RATES = [
    Column("hosts", "hosts", ".0f"),
    Column("tuples/s", "matching_tuples_per_s", ",.0f"),
    Column("processor time a second", "cpu_per_s", ".2f"),
    Column("µs of it a tuple", "cpu_us_per_tuple", ",.1f"),
    *(Column(kind, f"us of {kind}", ",.1f") for kind in KINDS),
]
_BYTES = [
    Column("hosts", "hosts", ".0f"),
    Column("batches", "matching_batches", ",.0f"),
    Column("tuples a batch", "tuples_per_batch", ",.0f"),
    Column("to the store a batch, MiB", "store_to_mib", ",.2f"),
    Column("from it, MiB", "store_from_mib", ",.2f"),
    Column("to hosts a batch, MiB", "hosts_to_mib", ",.2f"),
    Column("while loading: to the store, MiB", "loading_to_mib", ",.1f"),
    Column("from it, MiB", "loading_from_mib", ",.1f"),
    Column("worker moves", "n_moves", ",.0f"),
]
_LOSSES = [
    Column("repetition", "repetition", ".0f"),
    Column("subscriptions of the worker", "worker_subscriptions", ",.0f"),
    Column("index, MiB", "worker_mib", ",.1f"),
    Column("host lost", "lost"),
    Column("moves", "worker_moves", ".0f"),
    Column("built anew", "n_rebuilds", ".0f"),
    Column("seconds to build it", "rebuild_s", ".2f"),
    Column("a usual batch, s", "usual_batch_s", ".2f"),
    Column("the longest after the loss, s", "longest_batch_s", ".2f"),
]


def page(rows: Sequence[Row]) -> Page:
    """Show rates and processor time by the number of hosts, bytes of a batch, and the loss of a host."""
    steady = [_derived(row) for row in rows if row["mode"] == STEADY and row.get("hosts")]
    losses = [_derived(row) for row in rows if row["mode"] == LOSS and row.get("hosts")]
    by_hosts = sorted(medians(steady, ["hosts"]), key=lambda row: row["hosts"])
    left_out = [f"\n\nLeft out: {reason}." for reason in distinct(rows, "unavailable")]
    tables = [
        f"{title}\n\n{table(found, columns)}"
        for title, found, columns in (
            (
                "Matching, after loading; processor time of a tuple in µs, by kind of process:",
                by_hosts,
                _RATES,
            ),
            ("Bytes through the cables, and moves of workers:", by_hosts, _BYTES),
            ("A host lost amid the matching:", losses, _LOSSES),
        )
        if found
    ]
    return Page(
        paper="",
        ours=_OURS.format(**{name: rows[0][name] for name in _TOLD}) + "".join(left_out),
        differs=_DIFFERS if steady else "",
        tables=tables,
        drawings=[Drawing("cpu", _CAPTION, lambda canvas: _draw(canvas, steady))] if steady else [],
        verdicts=_verdicts(steady, losses),
    )


_TOLD = ("subscriptions", "publications", "batch_events")
_CAPTION = "Processor time of a tuple, by kind of process, on one, two and three hosts."

_OURS = """\
The test bed's hosts are network namespaces of one machine, each with a disk view of its own, a Spark worker
with two slots, and an address; the store is an S3 server in a namespace of its own, the driver is on none
of the hosts. An event log of Q1 ({subscriptions:,} subscriptions, then {publications:,} publications and
updates at 5 to 1) is replayed in batches of up to {batch_events:,} events with six workers and six
dispatchers, however many hosts there are. Beds take turns in a random order and have to deliver the same
matches.

**All hosts share the cores of one machine**, with the store, the driver and Spark's own processes: a second
host brings no second processor. So what is to be read is not the rate but what a tuple costs: the processor
time of every process, from the system's own counts, the seconds of processes that have ended included.
*Ended unseen* is what parents know of children that ended between two looks. Bytes are those of the cables'
counters, HTTP and TCP included; *to hosts* is what comes to all of them, from the store, the driver and
each other.

For the loss of a host all subscriptions belong to one worker. Amid the matching, between two batches, all
processes of its host are killed; Spark notices, the worker moves to the other host, where its index is
built from the log in the store. The longest batch after the loss has the time until Spark noticed in it,
and what was done twice."""

_DIFFERS = """\
With more hosts each tuple costs more: each has Java and Python processes of its own, a copy of H2 and of
the names that its dispatchers and mergers need, and what was a packet from a file of the same host comes
over the network. On machines of their own, hosts would pay for that in parallel."""


def _derived(row: Row) -> Row:
    tuples = max(row["matching_events"], 1)
    hosts = [each for name, each in row.items() if name.startswith("bytes_to h") and each is not None]
    return {
        **row,
        "cpu_per_s": row["cpu_s"] / row["matching_s"],
        "cpu_us_per_tuple": 1e6 * row["cpu_s"] / tuples,
        **{f"us of {kind}": 1e6 * row[f"cpu_s of {kind}"] / tuples for kind in KINDS},
        "tuples_per_batch": tuples / row["matching_batches"],
        "store_to_mib": row["bytes_to store"] / 2**20,
        "store_from_mib": row["bytes_from store"] / 2**20,
        "hosts_to_mib": sum(hosts) / 2**20,
        "loading_to_mib": row["loading_bytes_to store"] / 2**20,
        "loading_from_mib": row["loading_bytes_from store"] / 2**20,
        "worker_mib": row["worker_bytes"] / 2**20 if row.get("worker_bytes") else None,
    }


def _verdicts(steady: Sequence[Row], losses: Sequence[Row]) -> list[Verdict]:
    verdicts = []
    if steady:
        n_moves = int(sum(row["n_moves"] for row in steady))
        claim = "No worker moves while no host is lost"
        verdicts.append(Verdict(claim, "", f"{n_moves} moves in {len(steady)} runs", n_moves == 0))
    if losses:
        n_rebuilt = sum(row["worker_moves"] == 1 and row["n_rebuilds"] == 1 for row in losses)
        claim = "A worker whose host is lost moves once, and is built once"
        told = f"{n_rebuilt} of {len(losses)} times"
        verdicts.append(Verdict(claim, "", told, n_rebuilt == len(losses)))
    return verdicts


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    numbers = sorted(distinct(rows, "hosts"))
    groups = [f"{n:.0f} host{'s' if n > 1 else ''}" for n in numbers]
    found: dict[str, list[float]] = {
        kind: [middles(where(rows, hosts=n), ["hosts"], f"us of {kind}")[n,].median for n in numbers]
        for kind in KINDS
    }
    axes = canvas.subplots()
    stacked(axes, groups, found)
    axes.set_ylabel("µs a tuple")
    in_thousands(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


FIGURE = Figure(
    name="cluster",
    title="On a cluster",
    about="A replay on one, two and three hosts: rates, the processor time of every process, bytes to and "
    "from the store, and the time to build a worker on another host.",
    cases=cases,
    measure=measure,
    page=page,
)
