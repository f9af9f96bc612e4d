"""A publication: a text at a place (the paper's spatio-textual object)."""

from __future__ import annotations

from dataclasses import dataclass

from ps2stream.errors import PS2StreamError, RegionError, quoted
from ps2stream.model.limits import check_length
from ps2stream.model.space import check_point


@dataclass(frozen=True, slots=True)
class Publication:
    """A text at a place, in WGS84 degrees; an empty text is fine, it just matches nobody."""

    id: str
    text: str
    lat: float
    lon: float

    def __post_init__(self) -> None:
        if not self.id:
            raise PS2StreamError("the id of a publication must be a non-empty string")
        if reason := check_length("id", self.id) or check_length("text", self.text):
            raise PS2StreamError(f"publication {quoted(self.id)}: {reason}")
        if not (self.id + self.text).isascii():
            _encodable(f"publication {quoted(self.id)}", self.id + self.text)
        if reason := check_point(self.lon, self.lat):
            raise RegionError(f"publication {quoted(self.id)}: {reason}")


def _encodable(what: str, text: str) -> None:
    """Reject lone surrogates, which Python's strings may hold but no text does."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PS2StreamError(f"{what}: id and text must be valid Unicode: {error}") from error
