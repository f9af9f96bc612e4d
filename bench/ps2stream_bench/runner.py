"""Run the cases of figures that are not measured yet, and keep their rows."""

from __future__ import annotations

import hashlib
import time
import traceback
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ps2stream_bench.figure import Case, Context, Figure, Scale
from ps2stream_bench.machine import host_facts
from ps2stream_bench.results import Results, Row
from ps2stream_bench.workloads import COUNTRIES

#: The source of publications that no file was given for.
GENERATED = "generated"


class Watcher(Protocol):
    """Whoever wants to know how far a run is."""

    def begins(self, figure: Figure, n_cases: int, n_kept: int) -> None: ...

    def case_begins(self, figure: Figure, case: Case) -> None: ...

    def case_ends(self, figure: Figure, case: Case, seconds: float, failure: str | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a run: cases that were measured, that were there already, that failed."""

    n_measured: int
    n_kept: int
    failures: tuple[str, ...]


def run(
    figures: Iterable[Figure],
    scale: Scale,
    context: Context,
    results: Results,
    watcher: Watcher,
    *,
    again: bool = False,
) -> Done:
    """Measure every case that has no rows yet, or all of them ``again``.

    A case that fails is told and left out; the others are measured all the same.
    """
    facts = host_facts()
    n_measured = n_kept = 0
    failures: list[str] = []
    for figure in figures:
        cases = cases_of(figure, scale, source_of(context.publications))
        waiting = [
            (case, path)
            for case in in_random_order(cases, figure.name, context.seed)
            for path in [results.file_of(figure.name, scale, identity_of(case, context))]
            if again or not path.exists()
        ]
        n_there = len(cases) - len(waiting)
        n_kept += n_there
        watcher.begins(figure, len(waiting), n_there)
        for case, path in waiting:
            watcher.case_begins(figure, case)
            started = time.monotonic()
            failure = _measure(figure, scale, case, path, context, results, facts)
            watcher.case_ends(figure, case, time.monotonic() - started, failure)
            if failure is None:
                n_measured += 1
            else:
                failures.append(f"{figure.name} {case}: {failure}")
    return Done(n_measured, n_kept, tuple(failures))


def cases_of(figure: Figure, scale: Scale, source: str) -> list[Case]:
    """Return what is to be measured; publications of a file are of one country, whichever that is."""
    cases = figure.cases(scale)
    if source == GENERATED:
        return list(cases)
    return [case for case in cases if case.settings.get("country", COUNTRIES[0]) == COUNTRIES[0]]


def in_random_order(cases: Sequence[Case], name: str, seed: int) -> list[Case]:
    """Mix the cases of a figure, always in the same way: a slow hour of the machine hits no series alone."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return [cases[index] for index in rng.permutation(len(cases))]


def identity_of(case: Case, context: Context) -> dict[str, Any]:
    """Return what a case is known by: its settings, the seed, and where its publications come from."""
    return {**case.settings, "seed": context.seed, "source": source_of(context.publications)}


def source_of(publications: Path | None) -> str:
    """Name where publications come from; files are told apart by what the file system knows of them."""
    if publications is None:
        return GENERATED
    known = publications.stat()
    told = f"{publications.name} {known.st_size} {known.st_mtime_ns}"
    return f"file {hashlib.sha256(told.encode()).hexdigest()[:8]}"


def _measure(
    figure: Figure,
    scale: Scale,
    case: Case,
    path: Path,
    context: Context,
    results: Results,
    facts: dict[str, str | int],
) -> str | None:
    """Measure a case and write its rows; return why that failed."""
    try:
        rows: list[Row] = list(figure.measure(case, context))
    except Exception as error:
        context.say(traceback.format_exc())
        return f"{type(error).__name__}: {error}"
    # What cannot be written is no failure of the case: it ends the run.
    about = {
        "figure": figure.name,
        "scale": scale,
        "case": str(case),
        "seed": context.seed,
        "source": source_of(context.publications),
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **facts,
        **case.settings,
    }
    results.write(path, [{**about, **row} for row in rows])
    return None
