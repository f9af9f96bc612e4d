"""Rows of figures: kept raw in a file, shown as a table of medians."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median, mode
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]


class Column(NamedTuple):
    """A column of a table: its title, the field it shows, and the format of that."""

    title: str
    field: str
    style: str = ""


def check_path(path: Path) -> None:
    """Refuse a file that rows cannot be written to, before they are measured."""
    if path.suffix not in (".parquet", ".jsonl"):
        raise SystemExit(f"rows are written to a file that ends in .parquet or .jsonl; got {path}")
    if not path.parent.is_dir():
        raise SystemExit(f"rows cannot be written to {path}: there is no directory {path.parent}")


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows to Parquet, or one JSON object a line."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    else:
        path.write_text("".join(json.dumps({name: _known(row[name]) for name in row}) + "\n" for row in rows))


def medians(rows: Iterable[Row], by: Sequence[str]) -> list[Row]:
    """Join the rows that agree in some fields: medians of numbers, the most frequent of all else."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return [{name: _middle([row[name] for row in group]) for name in group[0]} for group in groups.values()]


def table(rows: Iterable[Row], columns: Sequence[Column]) -> str:
    """Lay rows out as a table in Markdown."""
    lines = ["| " + " | ".join(column.title for column in columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = [f"{row[column.field]:{column.style}}" for column in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _middle(values: list[Any]) -> Any:
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return median(values) if are_numbers else mode(values)


def _known(value: Any) -> Any:
    """JSON has neither NaN nor infinities."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
