"""Settings: what a user chooses. No state and no engine in here.

Those that an index or the log depends on are kept with a job's state, which cannot be used with others
(``state.job_file``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.errors import ConfigError
from ps2stream.files import AnyPath, absolute
from ps2stream.matching.contract import IndexSettings
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning import PARTITIONERS
from ps2stream.partitioning.load import LOAD_FUNCTIONS, LoadFunction
from ps2stream.partitioning.plan import Plan
from ps2stream.text.tokenizer import Tokenizer

MAX_WORKERS = 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """How a deployment divides its work and what it takes for a term.

    ``n_workers``, ``partitioner``: into how many parts the load is divided, and how; ``n_dispatchers``: how
    many tasks read and route publications. ``stop_words`` are left out of texts and expressions.
    ``grid_bits``: a worker's GI2 has ``2**grid_bits`` columns and rows over the world.
    ``max_cells``: a region that touches more of its cells is posted on a coarser level. Postings carry
    bounds of their own and crowded cells are divided, so a finer grid wins little and costs memory
    (docs/performance.md).
    ``batch_events``: the most events of a batch; on a journal a single packet may exceed it.
    ``sample_events``: at most this many events a plan is made from, half of them publications and half
    subscribe events. They are drawn at random from the first ``sample_prefix_events`` of the stream, as its
    very first ones may all be of one hour or of one publisher; from further on only where these hold too few
    of a kind.
    ``sample_seed``: another one draws another sample.
    ``sample_file``: an event log to draw the sample from, all of it, instead of the stream.
    ``load``: what a partitioner takes for the load of a worker (``partitioning.load``).
    ``calibrate``: measure on the sample what the kernels cost on this machine, instead of standard costs.
    ``adjustment``: when and how the load is adjusted while the stream runs.
    """

    n_workers: int = 4
    n_dispatchers: int = 2
    partitioner: str = "hybrid"
    stop_words: tuple[str, ...] = ()
    grid_bits: int = 7
    max_cells: int = 16
    batch_events: int = 100_000
    sample_events: int = 200_000
    sample_prefix_events: int = 1_000_000
    sample_seed: int = 0
    sample_file: AnyPath | None = None
    load: LoadFunction = "candidates"
    calibrate: bool = False
    adjustment: AdjustmentSettings = field(default_factory=AdjustmentSettings)

    def __post_init__(self) -> None:
        _check("workers", self.n_workers, 1, MAX_WORKERS)
        _check("dispatchers", self.n_dispatchers, 1, MAX_WORKERS)
        _check("grid_bits", self.grid_bits, 1, 20)
        _check("max_cells", self.max_cells, 1, 4096)
        _check("batch_events", self.batch_events, 1, 100_000_000)
        _check("sample_events", self.sample_events, 0, 100_000_000)
        _check("sample_prefix_events", self.sample_prefix_events, 1, 1_000_000_000)
        _check("sample_seed", self.sample_seed, 0, (1 << 32) - 1)
        if self.partitioner not in PARTITIONERS:
            known = ", ".join(PARTITIONERS)
            raise ConfigError(f"partitioner must be one of {known}; got {self.partitioner!r}")
        if self.load not in LOAD_FUNCTIONS:
            raise ConfigError(f"load must be one of {', '.join(LOAD_FUNCTIONS)}; got {self.load!r}")
        if self.sample_file is not None:
            object.__setattr__(self, "sample_file", absolute(self.sample_file))

    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self.stop_words)

    def index_settings(self, plan: Plan) -> IndexSettings:
        return IndexSettings(Grid.over(WORLD, self.grid_bits), plan.grid, self.max_cells)


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ConfigError(f"{name} must lie between {least} and {most:,}; got {value:,}")
