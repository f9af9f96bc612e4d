"""Raw rows in Parquet: one file for each measured case, with all that is needed to understand it later."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ps2stream.files import whole_file

Row = dict[str, Any]


class Column(NamedTuple):
    """A column of a table: its title, the field it shows, and the format of that."""

    title: str
    field: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """A directory of raw rows: ``SCALE/FIGURE/CASE.parquet``."""

    directory: Path

    def file_of(self, figure: str, scale: str, identity: Mapping[str, Any]) -> Path:
        """Return where the rows of a case belong; ``identity`` is all that makes it differ from others."""
        told = json.dumps(identity, sort_keys=True, default=str)
        digest = hashlib.sha256(told.encode()).hexdigest()[:10]
        readable = re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, identity.values())).lower()).strip("-")
        return self.directory / scale / figure / f"{readable[:60]}-{digest}.parquet"

    def write(self, path: Path, rows: Sequence[Row]) -> None:
        """Write rows all at once: a file that is there is whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            pq.write_table(table_of(rows), file, compression="zstd")

    def read(self, figure: str, scale: str) -> list[Row]:
        """Return all rows of a figure, in a fixed order; a field that a row lacks is None."""
        files = sorted((self.directory / scale / figure).glob("*.parquet"))
        together = self.directory / scale / f"{figure}.parquet"  # as a report keeps them
        files += [together] if together.exists() else []
        return joined(pq.read_table(path) for path in files)


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Lay rows out in columns: every field that any row has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


def joined(tables: Iterable[pa.Table]) -> list[Row]:
    """Return the rows of several tables; a field that a table lacks is None."""
    found = list(tables)
    rows: list[Row] = pa.concat_tables(found, promote_options="permissive").to_pylist() if found else []
    return rows


def table(rows: Iterable[Row], columns: Sequence[Column]) -> str:
    """Lay rows out as a table in Markdown; what was not measured is shown as a dash."""
    lines = ["| " + " | ".join(column.title for column in columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = [_cell(row.get(column.field), column.style) for column in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(value: Any, style: str) -> str:
    is_unknown = value is None or (isinstance(value, float) and value != value)
    return "-" if is_unknown else f"{value:{style}}"
