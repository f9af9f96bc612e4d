"""The kd^t-tree (Sec. IV-B): a kd-tree over the cells of a grid, some of whose leaves are divided by terms.

It is what a partitioner decided, kept to be read, drawn and stored; grid^t routes by its flat form, H1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ps2stream.model.space import Grid


class Box(NamedTuple):
    """A rectangle of cells; ``stop`` values are exclusive."""

    column: int
    row: int
    column_stop: int
    row_stop: int

    @property
    def n_cells(self) -> int:
        return (self.column_stop - self.column) * (self.row_stop - self.row)

    def halves(self, axis: int, cut: int) -> tuple[Box, Box]:
        """Cut the box before column (axis 0) or row (axis 1) ``cut``."""
        if axis == 0:
            return self._replace(column_stop=cut), self._replace(column=cut)
        return self._replace(row_stop=cut), self._replace(row=cut)


@dataclass(frozen=True, slots=True)
class SpaceLeaf:
    """A box that one worker owns, whatever the text."""

    box: Box
    worker: int
    load: float


@dataclass(frozen=True, slots=True)
class TermPart:
    """One set of a text leaf's terms."""

    worker: int
    n_terms: int
    load: float


@dataclass(frozen=True, slots=True)
class TextLeaf:
    """A box whose terms are divided; ``table`` is its table in H1."""

    box: Box
    table: int
    parts: tuple[TermPart, ...]

    @property
    def load(self) -> float:
        return sum(part.load for part in self.parts)


@dataclass(frozen=True, slots=True)
class Split:
    """An inner node: columns (axis 0) or rows (axis 1) before ``cut`` are on the low side."""

    box: Box
    axis: int
    cut: int
    low: Node
    high: Node


Leaf: TypeAlias = SpaceLeaf | TextLeaf
Node: TypeAlias = Split | SpaceLeaf | TextLeaf


@dataclass(frozen=True, slots=True)
class KdtTree:
    """The tree and the grid whose cells it divides."""

    grid: Grid
    root: Node

    def leaves(self) -> Iterator[Leaf]:
        """Yield the leaves, west before east and south before north."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Split):
                waiting += [node.high, node.low]
            else:
                yield node

    def bounds_of(self, box: Box) -> tuple[float, float, float, float]:
        """Return (min_lon, min_lat, max_lon, max_lat) of a box; outer ones extend to the world's edge."""
        low = self.grid.bounds_of(box.row << self.grid.bits | box.column)
        high = self.grid.bounds_of((box.row_stop - 1) << self.grid.bits | (box.column_stop - 1))
        return low[0], low[1], high[2], high[3]

    def as_dict(self) -> dict[str, Any]:
        return {"grid": self.grid._asdict(), "root": _dict_of(self.root)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> KdtTree:
        return cls(Grid(**values["grid"]), _node_of(values["root"]))

    def __str__(self) -> str:
        return "\n".join(self._lines(self.root, ""))

    def _lines(self, node: Node, indent: str) -> Iterator[str]:
        west, south, east, north = self.bounds_of(node.box)
        box = f"[{west:.2f}, {south:.2f}, {east:.2f}, {north:.2f}]"
        if isinstance(node, Split):
            at = self.bounds_of(node.high.box)[node.axis]
            yield f"{indent}{box} split at {'lon' if node.axis == 0 else 'lat'} {at:.3f}"
            yield from self._lines(node.low, indent + "  ")
            yield from self._lines(node.high, indent + "  ")
        elif isinstance(node, SpaceLeaf):
            yield f"{indent}{box} space: worker {node.worker}, load {node.load:,.0f}"
        else:
            yield f"{indent}{box} text, {len(node.parts)} parts"
            for part in node.parts:
                terms = f"{part.n_terms:,} terms"
                yield f"{indent}  worker {part.worker}: {terms}, load {part.load:,.0f}"


def _dict_of(node: Node) -> dict[str, Any]:
    if isinstance(node, Split):
        sides = {"low": _dict_of(node.low), "high": _dict_of(node.high)}
        return {"split": node.axis, "cut": node.cut, "box": list(node.box), **sides}
    if isinstance(node, SpaceLeaf):
        return {"worker": node.worker, "load": node.load, "box": list(node.box)}
    parts = [[part.worker, part.n_terms, part.load] for part in node.parts]
    return {"table": node.table, "parts": parts, "box": list(node.box)}


def _node_of(values: dict[str, Any]) -> Node:
    box = Box(*values["box"])
    if "split" in values:
        return Split(box, values["split"], values["cut"], _node_of(values["low"]), _node_of(values["high"]))
    if "worker" in values:
        return SpaceLeaf(box, values["worker"], values["load"])
    return TextLeaf(box, values["table"], tuple(TermPart(*part) for part in values["parts"]))
