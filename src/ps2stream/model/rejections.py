"""Events that are not accepted, for whoever called from Python: raised, or left out and told of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import pyarrow as pa

from ps2stream.errors import ConfigError, Rejected, RejectedError, quoted

#: ``raise``: any rejected event is an error; ``skip``: the others go on without it.
OnRejected = Literal["raise", "skip"]


def rejected_rows(batch: pa.RecordBatch) -> list[Rejected]:
    """Return rejected records (schema REJECTED) as values."""
    return [Rejected(**row) for row in batch.to_pylist()]


def check_choice(on_rejected: str) -> None:
    """Raise unless it is one of OnRejected: a typing error must not drop events silently."""
    choices = get_args(OnRejected)
    if on_rejected not in choices:
        raise ConfigError(f"on_rejected must be one of {', '.join(choices)}; got {quoted(on_rejected)}")


def raise_rejected(rejected: Sequence[Rejected], n_events: int, on_rejected: OnRejected) -> None:
    """Raise what was rejected, if there is any and it is not to be skipped."""
    if rejected and on_rejected == "raise":
        raise RejectedError(rejected, n_events)
