"""The greatest lengths of an event's strings, in bytes of UTF-8.

What one event costs has to be bounded: a record that takes minutes, or all memory, would stop everybody's
stream, and again after every restart. The parser of expressions and the oracle share these limits.
"""

from __future__ import annotations

from ps2stream.errors import EXCERPT

#: Every match has two ids, so their length decides how much a batch delivers.
MAX_ID_BYTES = 1 << 10
MAX_TEXT_BYTES = 1 << 16
#: The expressions of 100,000 subscriptions, the usual batch, fit into one Arrow array.
MAX_EXPRESSION_BYTES = 1 << 14

_MAX_BYTES = {"id": MAX_ID_BYTES, "text": MAX_TEXT_BYTES, "expression": MAX_EXPRESSION_BYTES}
_ELLIPSIS = "\u2026"


def max_bytes(name: str) -> int:
    """Return the limit of a field of events."""
    return _MAX_BYTES[name]


def check_length(name: str, value: str) -> str | None:
    """Return why the value of a field is too long, or None."""
    if 4 * len(value) <= _MAX_BYTES[name]:
        return None
    return check_n_bytes(name, n_bytes_of(value))


def check_n_bytes(name: str, n_bytes: int) -> str | None:
    """Return why a field may not have this many bytes, or None."""
    if n_bytes <= _MAX_BYTES[name]:
        return None
    return f"{name} must have at most {_MAX_BYTES[name]:,} bytes; got {n_bytes:,}"


def n_bytes_of(value: str) -> int:
    # Lone surrogates, which no UTF-8 has, are somebody else's complaint.
    return len(value.encode("utf-8", "surrogatepass"))


def shortened(value: str) -> str:
    """Return what a rejected record shows of an id: all of it, or the beginning of one that is too long."""
    return value if n_bytes_of(value) <= MAX_ID_BYTES else value[:EXCERPT] + _ELLIPSIS
