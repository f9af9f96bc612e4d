"""An explanation as lines to read, and as an object for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ps2stream.cli.render.output import brief, degrees, safe
from ps2stream.cli.render.printable import counted
from ps2stream.deployment.explanation import Clause, Explanation
from ps2stream.model.space import Region


def text_of(explanation: Explanation) -> str:
    """Write the tests in the order in which one would ask, and the verdict last."""
    sections = (_publication, _subscription, _clauses, _region, _visibility, _routing, _verdict)
    return "\n".join(brief(line) for section in sections for line in section(explanation))


def object_of(explanation: Explanation) -> dict[str, Any]:
    """Give the same as JSON can hold it."""
    publication, version, cell = explanation.publication, explanation.version, explanation.cell
    reporting = explanation.reporting
    return {
        "matches": explanation.matches,
        "publication": {
            "id": publication.id,
            "seq": publication.seq,
            "lat": publication.lat,
            "lon": publication.lon,
            "text": publication.text,
            "terms": list(explanation.terms),
            "stop_words": list(explanation.stopped),
        },
        "subscription": {
            "id": version.id,
            "seq_from": version.seq_from,
            "seq_to": version.seq_to,
            "expression": version.expression,
            "region": list(_corners(version.region)),
        },
        "visible": explanation.is_visible,
        "inside": explanation.is_inside,
        "outside_by": {"north_degrees": explanation.offset.north, "east_degrees": explanation.offset.east},
        "satisfied": explanation.is_satisfied,
        "clauses": [_clause_object(clause, clause is reporting) for clause in explanation.clauses],
        "cell": None
        if cell is None
        else {
            "number": cell.number,
            "bounds": list(cell.bounds),
            "plan": cell.plan,
            "partitioner": cell.partitioner,
            "n_workers": cell.n_workers,
        },
    }


def _clause_object(clause: Clause, reports: bool) -> dict[str, Any]:
    posting = clause.posting
    return {
        "terms": list(clause.terms),
        "missing": list(clause.missing),
        "posting_term": posting and posting.term,
        "frequency": posting and posting.frequency,
        "worker": posting and posting.worker,
        "reports": reports,
    }


def _publication(explanation: Explanation) -> Iterator[str]:
    publication = explanation.publication
    yield _titled("publication", publication.id, f"seq {publication.seq}")
    yield f"  point       lat {degrees(publication.lat)}, lon {degrees(publication.lon)}"
    yield f"  text        {safe(publication.text)!r}"
    yield f"  terms       {' '.join(explanation.terms) or 'none'}"
    if explanation.stopped:
        yield f"  stop words  {' '.join(explanation.stopped)}"


def _subscription(explanation: Explanation) -> Iterator[str]:
    version = explanation.version
    yield _titled("subscription", version.id, f"seq {version.seq_from}")
    yield f"  expression  {safe(version.expression)}"
    yield f"  region      {','.join(map(degrees, _corners(version.region)))}"


def _titled(noun: str, record_id: str | None, point: str) -> str:
    return f"{noun}, as given" if record_id is None else f"{noun} {safe(record_id)!r}, {point}"


def _clauses(explanation: Explanation) -> Iterator[str]:
    n = len(explanation.clauses)
    order = ": one satisfied is enough, tried in this order" if n > 1 else ""
    yield f"words: {_yes(explanation.is_satisfied)}, {n} clause{'s' * (n > 1)}{order}"
    for number, clause in enumerate(explanation.clauses, 1):
        state = "satisfied" if clause.is_satisfied else f"missing {' '.join(clause.missing)}"
        yield f"  {number}  {' AND '.join(clause.terms)}: {state}{_posted(clause)}"


def _posted(clause: Clause) -> str:
    if clause.posting is None:
        return ""
    seen = f"in {counted(clause.posting.frequency, 'text')} of the plan's sample"
    return f"; posted under {clause.posting.term} ({seen}), here on worker {clause.posting.worker}"


def _region(explanation: Explanation) -> Iterator[str]:
    if explanation.is_inside:
        yield "region: yes, it holds the point"
        return
    offset, publication = explanation.offset, explanation.publication
    north_km, east_km = offset.km(publication.lat)
    ways = [
        f"{degrees(abs(value))} degrees ({abs(km):,.3g} km) {plus if value > 0 else minus}"
        for value, km, plus, minus in (
            (offset.north, north_km, "north", "south"),
            (offset.east, east_km, "east", "west"),
        )
        if value
    ]
    # Longitudes are compared as given: the same meridian written the other way is outside.
    far = " and ".join(ways) or "on its edge, but written as the other one of 180 and -180 degrees"
    yield f"region: no, the point lies {far}{' of it' if ways else ''}"


def _visibility(explanation: Explanation) -> Iterator[str]:
    publication, version = explanation.publication, explanation.version
    if version.seq_from is None:
        return
    when = "a publication now" if publication.seq is None else f"the publication at seq {publication.seq}"
    if explanation.is_visible:
        yield f"order: yes, subscribed at seq {version.seq_from}, before {when}"
    elif publication.seq is not None and version.seq_from >= publication.seq:
        yield f"order: no, subscribed at seq {version.seq_from}, after {when}"
    else:
        how = "replaced" if version.replaced else "unsubscribed"
        yield f"order: no, {how} at seq {version.seq_to}, before {when}"


def _routing(explanation: Explanation) -> Iterator[str]:
    cell = explanation.cell
    if cell is None:
        yield "routing: there is no plan yet; the first start of 'ps2stream run' makes it"
        return
    corners = ",".join(map(degrees, cell.bounds))
    plan = f"plan {cell.plan}, {cell.partitioner}, {cell.n_workers} workers"
    yield f"routing: cell {cell.number} of grid^t ({corners}; {plan})"


def _verdict(explanation: Explanation) -> Iterator[str]:
    clause = explanation.reporting
    if clause is not None:
        number = explanation.clauses.index(clause) + 1
        where = "" if clause.posting is None else f", on worker {clause.posting.worker}"
        yield f"match: clause {number} reports it{where}"
        return
    reasons = (
        (explanation.is_satisfied, "the text lacks words"),
        (explanation.is_inside, "the point lies outside the region"),
        (explanation.is_visible, "the subscription was not there at that time"),
    )
    yield f"no match: {', and '.join(reason for holds, reason in reasons if not holds)}"


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _corners(region: Region) -> tuple[float, float, float, float]:
    return region.min_lon, region.min_lat, region.max_lon, region.max_lat
