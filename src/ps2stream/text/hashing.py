"""XXH64 of UTF-8 bytes: terms are hashed once and compared as 64-bit numbers ever after.

(The registry hashes ids by it as well, but compares what it finds byte by byte.)

A collision makes two different terms look equal. The effect is one-sided: a publication
may then match a subscription that asks for the other term (a false match), but no match is
ever lost, since equal terms always have equal hashes. By the birthday bound, n distinct terms
contain a colliding pair with probability of about n * n / 2**65: 2.7e-6 for 10 million
distinct terms, and still only 2.7e-4 for 100 million. A given subscription is touched far
less often than that, since the colliding pair must include one of its own terms.

The seed is fixed at 0: hashes are kept in the subscription log, in plans and in mapped indexes, and must not
change between runs. (The journal keeps words.)
An adversary who may choose terms can construct collisions (XXH64 is no cryptographic hash);
all that it buys is false matches between the terms so constructed, and longer lists to look through.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ps2stream.kernels import kernel

Bytes = npt.NDArray[np.uint8]

_PRIME1 = np.uint64(0x9E3779B185EBCA87)
_PRIME2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME3 = np.uint64(0x165667B19E3779F9)
_PRIME4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME5 = np.uint64(0x27D4EB2F165667C5)
_ZERO = np.uint64(0)
_STRIPE = 32


@kernel
def _rotate(value: np.uint64, bits: int) -> np.uint64:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@kernel
def _read32(data: Bytes, at: int) -> np.uint64:
    return (
        np.uint64(data[at])
        | np.uint64(data[at + 1]) << np.uint64(8)
        | np.uint64(data[at + 2]) << np.uint64(16)
        | np.uint64(data[at + 3]) << np.uint64(24)
    )


@kernel
def _read64(data: Bytes, at: int) -> np.uint64:
    return _read32(data, at) | _read32(data, at + 4) << np.uint64(32)


@kernel
def _round(accumulator: np.uint64, lane: np.uint64) -> np.uint64:
    return _rotate(accumulator + lane * _PRIME2, 31) * _PRIME1


@kernel
def _merge(hashed: np.uint64, accumulator: np.uint64) -> np.uint64:
    return (hashed ^ _round(_ZERO, accumulator)) * _PRIME1 + _PRIME4


@kernel
def _stripes(data: Bytes, start: int, stop: int) -> np.uint64:
    """Digest the whole 32-byte stripes of a span; the rest of it is the caller's."""
    first, second, third, fourth = _PRIME1 + _PRIME2, _PRIME2, _ZERO, _ZERO - _PRIME1
    at = start
    while at + _STRIPE <= stop:
        first = _round(first, _read64(data, at))
        second = _round(second, _read64(data, at + 8))
        third = _round(third, _read64(data, at + 16))
        fourth = _round(fourth, _read64(data, at + 24))
        at += _STRIPE
    hashed = _rotate(first, 1) + _rotate(second, 7) + _rotate(third, 12) + _rotate(fourth, 18)
    return _merge(_merge(_merge(_merge(hashed, first), second), third), fourth)


@kernel
def xxh64(data: Bytes, start: int, stop: int) -> np.uint64:
    """Hash ``data[start:stop]`` with seed 0.

    The arithmetic wraps on purpose; where kernels run uncompiled, numpy warns of that unless
    the caller holds ``np.errstate(over="ignore")``, which no compiled kernel could do itself.
    """
    length = stop - start
    at = start
    if length >= _STRIPE:
        hashed = _stripes(data, start, stop)
        at += length // _STRIPE * _STRIPE
    else:
        hashed = _PRIME5
    hashed += np.uint64(length)
    while at + 8 <= stop:
        hashed = _rotate(hashed ^ _round(_ZERO, _read64(data, at)), 27) * _PRIME1 + _PRIME4
        at += 8
    if at + 4 <= stop:
        hashed = _rotate(hashed ^ _read32(data, at) * _PRIME1, 23) * _PRIME2 + _PRIME3
        at += 4
    while at < stop:
        hashed = _rotate(hashed ^ np.uint64(data[at]) * _PRIME5, 11) * _PRIME1
        at += 1
    hashed = (hashed ^ (hashed >> np.uint64(33))) * _PRIME2
    hashed = (hashed ^ (hashed >> np.uint64(29))) * _PRIME3
    return hashed ^ (hashed >> np.uint64(32))


def hash_bytes(data: bytes) -> int:
    """Hash bytes as :func:`xxh64` does."""
    flat = np.frombuffer(data, dtype=np.uint8).copy()
    with np.errstate(over="ignore"):
        return int(xxh64(flat, 0, len(flat)))


def hash_term(term: str) -> int:
    """Hash the UTF-8 bytes of a term that is already normalised."""
    return hash_bytes(term.encode())
