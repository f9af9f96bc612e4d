"""Records that a Python call gives: all are checked by the rules of the job, then appended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from ps2stream.deployment.deployment_events import ANYWHERE, Demands
from ps2stream.deployment.home import Home
from ps2stream.deployment.intake import Accepted, Checked, Fault, Intake, OriginRows, RecordKind, check
from ps2stream.deployment.line_reader import MAX_LINES
from ps2stream.errors import Rejected
from ps2stream.model.publications import Publication
from ps2stream.model.records import BadRecordError, Origin, features_in
from ps2stream.model.rejections import OnRejected, check_choice, raise_rejected
from ps2stream.model.space import Region
from ps2stream.model.subscriptions import Subscription

#: A record as a value, or as the JSON object that the command line reads (plain or GeoJSON).
Record: TypeAlias = Publication | Subscription | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of the records of a call: ids and seqs of those that are kept, in order, and those
    rejected.

    A seq is None where the job gives it later: on Kafka, but for updates to resident roles.
    """

    ids: tuple[str, ...]
    seqs: tuple[int | None, ...]
    rejected: tuple[Rejected, ...] = ()


def submit(
    home: Home,
    kind: RecordKind,
    values: Iterable[object],
    on_rejected: OnRejected,
    demands: Demands = ANYWHERE,
) -> Receipt:
    """Append records to the events of a home.

    If some are not valid and that is to be raised, none is appended.
    """
    check_choice(on_rejected)
    checked = [_check(kind, rows) for rows in _chunks(_numbered(values))]
    rejected = [each for chunk in checked for each in _rejected(kind, chunk)]
    n_events = sum(len(chunk.rows) for chunk in checked)
    raise_rejected(rejected, n_events, on_rejected)
    accepted = _Kept()
    if any(chunk.checked.kept for chunk in checked):
        with closing(home.events(create=True)) as events:
            intake = Intake(kind, events, accepted, demands)
            for chunk in checked:
                intake.add(chunk.checked)
    return Receipt(tuple(accepted.ids), tuple(accepted.seqs), tuple(rejected))


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Rows as they were given, by their number, and what checking them came to."""

    rows: dict[int, object]
    checked: Checked


@dataclass(slots=True)
class _Kept:
    """Receipts of an intake that keep ids and seqs; what was rejected is known before."""

    ids: list[str] = field(default_factory=list)
    seqs: list[int | None] = field(default_factory=list)

    def accepted(self, records: Iterable[Accepted]) -> None:
        for record in records:
            self.ids.append(record.id)
            self.seqs.append(record.seq)

    def rejected(self, fault: Fault) -> None: ...

    def lost(self, n_records: int) -> None: ...


def _numbered(values: Iterable[object]) -> Iterator[tuple[int, object]]:
    return enumerate(part for value in values for part in _parts(value))


def _parts(value: object) -> list[object]:
    """Return a record, or those of a FeatureCollection; one that is none of it as what is wrong with it."""
    try:
        return [part for _, part in features_in(_plain(value), None)]
    except BadRecordError as error:
        return [error]


def _chunks(rows: Iterator[tuple[int, object]]) -> Iterator[dict[int, object]]:
    while chunk := dict(islice(rows, MAX_LINES)):
        yield chunk


def _check(kind: RecordKind, rows: dict[int, object]) -> _Chunk:
    records: OriginRows = []
    faults = []
    for row, value in rows.items():
        try:
            if isinstance(value, BadRecordError):
                raise value
            records.append((Origin(row), kind.row_of(value)))
        except BadRecordError as error:
            faults.append(Fault(Origin(row), str(error)))
    return _Chunk(rows, check(kind, records, faults))


def _rejected(kind: RecordKind, chunk: _Chunk) -> Iterator[Rejected]:
    for fault in chunk.checked.faults:
        row = fault.origin.line
        assert row is not None  # every origin was made of one
        yield Rejected(kind.op, _id_of(chunk.rows[row]), fault.reason, row=row)


def _id_of(value: object) -> str | None:
    found = value.get("id") if isinstance(value, dict) else value
    return found if isinstance(found, str) else None


def _plain(value: object) -> object:
    """Return a record as the JSON object that the command line would read."""
    match value:
        case Publication(id, text, lat, lon):
            return {"id": id, "text": text, "lat": lat, "lon": lon}
        case Subscription(id, expression, region):
            return {"id": id, "expression": expression, "region": _corners(region)}
        case Mapping():
            given = value.get("region")
            return {**value, "region": _corners(given)} if isinstance(given, Region) else dict(value)
        case _:
            return value


def _corners(region: Region) -> list[float]:
    return [region.min_lon, region.min_lat, region.max_lon, region.max_lat]
