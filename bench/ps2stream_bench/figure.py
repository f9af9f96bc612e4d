"""What a figure is: cases to measure at each scale, and a page made of the rows.

A case is the smallest thing that is measured on its own and kept: contenders that are to be compared belong
to one case and take turns in it. Rows are flat; a row says in its fields which contender and which
repetition it is of.
"""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ps2stream_bench.results import Row
from ps2stream_bench.workloads import Corpus, Country, corpus_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from pyspark.sql import SparkSession

Scale = Literal["tiny", "small", "paper"]
#: From the smallest to the largest: seconds, minutes, and the paper's sizes.
SCALES: tuple[Scale, ...] = ("tiny", "small", "paper")

Setting = str | int | float

#: Enough for a peer that keeps a million exploded subscriptions in Spark's cache.
_SPARK_MEMORY = "4g"


@dataclass(frozen=True, slots=True)
class Case:
    """One piece of a figure, told from the others by its settings."""

    settings: Mapping[str, Setting]

    def __getitem__(self, name: str) -> Any:
        return self.settings[name]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.settings.items())


class Context:
    """What all cases of a run share: the seed, the publications, a directory for files, a Spark session."""

    def __init__(
        self, seed: int, publications: Path | None = None, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self.seed = seed
        self.publications = publications
        self.say = say
        self._scratch = tempfile.TemporaryDirectory(prefix="ps2stream-bench-")
        self._spark: SparkSession | None = None
        self._owns_spark = False
        self._corpus = lru_cache(maxsize=2)(self._make_corpus)

    @property
    def scratch(self) -> Path:
        """Return a directory that is removed when the run ends."""
        return Path(self._scratch.name)

    def corpus(self, country: Country, n: int, *, mean_terms: float | None = None) -> Corpus:
        """Return ``n`` publications of a country, or those of the file that replaces them."""
        return self._corpus(country, n, mean_terms)

    def spark(self) -> SparkSession:
        """Return the session of this run, started when it is first asked for."""
        if self._spark is None:
            from ps2stream.engines.spark.session import local_session, warm_up

            # PySpark's own handler asks Java first, which Ctrl-C has ended as well, and fails: a run would
            # take that for a case that failed, and go on.
            handler = signal.getsignal(signal.SIGINT)
            self._spark = local_session(
                "ps2stream-bench", memory=_SPARK_MEMORY, log=self.scratch / "spark.log"
            )
            self._owns_spark = True
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, handler)
            warm_up(self._spark)
        return self._spark

    def use_spark(self, session: SparkSession) -> None:
        """Take a session that somebody else will stop."""
        self._spark, self._owns_spark = session, False

    def close(self) -> None:
        """Stop what was started, remove what was written."""
        if self._spark is not None and self._owns_spark:
            self._spark.stop()
        self._spark = None
        self._scratch.cleanup()

    def _make_corpus(self, country: Country, n: int, mean_terms: float | None) -> Corpus:
        return corpus_for(country, n, self.seed, self.publications, mean_terms=mean_terms)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim of the paper or a target of ours, and what the rows say about it.

    ``paper``: the figure that the paper states, in its words; empty for a target of ours. ``ours``: what was
    measured, with its interval. ``holds`` is None where the rows do not tell.
    """

    claim: str
    paper: str
    ours: str
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot of a page: a name for its file, what is to be seen, and how it is drawn from the rows."""

    name: str
    caption: str
    draw: Callable[[Canvas], None]
    size: tuple[float, float] = (8.0, 3.2)


@dataclass(frozen=True, slots=True)
class Page:
    """What is said about a figure: text and tables are Markdown.

    ``paper``: what the paper shows. ``ours``: what we measured and how. ``differs``: why they differ.
    """

    paper: str
    ours: str
    differs: str
    tables: Sequence[str]
    drawings: Sequence[Drawing]
    verdicts: Sequence[Verdict] = field(default=())


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: its name on the command line, its title, its cases, and what becomes of them."""

    name: str
    title: str
    about: str
    cases: Callable[[Scale], Sequence[Case]]
    measure: Callable[[Case, Context], Iterable[Row]]
    page: Callable[[Sequence[Row]], Page]
