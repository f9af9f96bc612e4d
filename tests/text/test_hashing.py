"""XXH64 must be the published function, since hashes outlive the process."""

import warnings

import numpy as np
import pytest
import xxhash

from ps2stream.text.hashing import hash_bytes, hash_term, xxh64

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("length", range(101))
def test_xxh64_equals_the_reference_implementation(length: int) -> None:
    data = np.random.default_rng(length).integers(0, 256, length, dtype=np.uint8).tobytes()
    assert hash_bytes(data) == xxhash.xxh64_intdigest(data)


def test_xxh64_hashes_only_its_span() -> None:
    data = np.frombuffer(b"xxsmokeyy", dtype=np.uint8).copy()
    with np.errstate(over="ignore"):
        assert int(xxh64(data, 2, 7)) == xxhash.xxh64_intdigest(b"smoke")


def test_hash_term_hashes_utf8() -> None:
    assert hash_term("straße") == xxhash.xxh64_intdigest("straße".encode())
    assert hash_term("") == 0xEF46DB3751D8E999


def test_hashing_warns_of_no_overflow() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hash_term("a term of more than thirty-two bytes, so that all rounds run")
