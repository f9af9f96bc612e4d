"""Kernels of a table from seqs to names.

Open addressing by a hash of the seq. A slot is two words: the seq, and where the id lies and how long it is.
The bytes of ids lie in chunks of whole words; a chunk that is left goes to the next id that takes as many
words, so nothing ever has to be moved together. The first word of such a chunk says where the next one is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int32s, Int64s
from ps2stream.arrow import Spans, buffer_for, copy_string
from ps2stream.kernels import kernel, prefetch, signed
from ps2stream.model.limits import MAX_ID_BYTES
from ps2stream.model.space import mix
from ps2stream.registry.naming import copy_ids
from ps2stream.text.hashing import Bytes

# Positions in `head`. head[FREE + n] is the first chunk of n words that was left, plus one.
N_NAMES, N_WORDS, FREE = range(3)
_WORD = 8
HEAD_SIZE = FREE + MAX_ID_BYTES // _WORD + 1

_LENGTH_BITS = 11
_LENGTH = (1 << _LENGTH_BITS) - 1
assert MAX_ID_BYTES <= _LENGTH
_FULL_PERCENT = 70
#: This many rows ahead the slots they go to, or come from, are prefetched.
_AHEAD = 16


class NameArrays(NamedTuple):
    """There is a power of two of slots; one whose second word is 0 is free. ``ids`` has a word to spare."""

    head: Int64s
    slots: Int64s
    ids: Int64s


@kernel
def _home(slots: Int64s, seq: int) -> int:
    return signed(mix(np.uint64(seq)) & np.uint64((len(slots) >> 1) - 1))


@kernel
def _find(slots: Int64s, seq: int) -> int:
    """Return the slot of a seq, or the free one where it belongs."""
    last = (len(slots) >> 1) - 1
    slot = _home(slots, seq)
    while slots[2 * slot + 1] != 0 and slots[2 * slot] != seq:
        slot = (slot + 1) & last
    return slot


@kernel
def _words(length: int) -> int:
    return (length + _WORD - 1) // _WORD


def n_slots_for(n_names: int) -> int:
    """Return how many slots a table takes for this many names."""
    return 1 << (100 * n_names // _FULL_PERCENT).bit_length()


@kernel
def refill(old: Int64s, slots: Int64s) -> None:
    """Enter all names into an empty table."""
    for at in range(len(old) >> 1):
        if old[2 * at + 1] != 0:
            slot = _find(slots, old[2 * at])
            slots[2 * slot], slots[2 * slot + 1] = old[2 * at], old[2 * at + 1]


@kernel
def enter(arrays: NameArrays, seqs: Int64s, spans: Spans) -> None:
    """Name seqs, for which there is capacity; those that have a name keep it."""
    head, slots, ids = arrays.head, arrays.slots, arrays.ids.view(np.uint8)
    for i in range(len(seqs)):
        if i + _AHEAD < len(seqs):
            prefetch(slots, 2 * _home(slots, seqs[i + _AHEAD]))
        slot = _find(slots, seqs[i])
        if slots[2 * slot + 1] != 0:
            continue
        start, stop = signed(spans.offsets[i]), signed(spans.offsets[i + 1])
        n_words = _words(stop - start)
        word = head[FREE + n_words] - 1
        if word >= 0:
            head[FREE + n_words] = arrays.ids[word]
        else:
            word = head[N_WORDS]
            head[N_WORDS] += n_words
        copy_string(spans.data, start, stop, ids, _WORD * word)
        slots[2 * slot] = seqs[i]
        slots[2 * slot + 1] = (word + 1) << _LENGTH_BITS | (stop - start)
        head[N_NAMES] += 1


@kernel
def leave(arrays: NameArrays, seqs: Int64s) -> None:
    """Forget the names of seqs, those that are known."""
    head, slots = arrays.head, arrays.slots
    last = (len(slots) >> 1) - 1
    for i in range(len(seqs)):
        if i + _AHEAD < len(seqs):
            prefetch(slots, 2 * _home(slots, seqs[i + _AHEAD]))
        hole = _find(slots, seqs[i])
        entry = slots[2 * hole + 1]
        if entry == 0:
            continue
        word, n_words = (entry >> _LENGTH_BITS) - 1, _words(entry & _LENGTH)
        arrays.ids[word] = head[FREE + n_words]
        head[FREE + n_words] = word + 1
        head[N_NAMES] -= 1
        # Those behind come forward, unless they would come before their home.
        at = hole
        while True:
            at = (at + 1) & last
            if slots[2 * at + 1] == 0:
                break
            if (at - _home(slots, slots[2 * at])) & last >= (at - hole) & last:
                slots[2 * hole], slots[2 * hole + 1] = slots[2 * at], slots[2 * at + 1]
                hole = at
        slots[2 * hole + 1] = 0


@kernel
def name_seqs_by(slots: Int64s, ids: Int64s, seqs: Int64s) -> tuple[Int32s, Bytes, int]:
    """Return the ids of seqs as offsets and bytes, and how many bytes.

    -1 if a seq has no name. There are none where they are more than an array of strings takes.
    """
    starts, offsets = np.empty(len(seqs), np.int64), np.zeros(len(seqs) + 1, np.int32)
    n_bytes = 0
    for i in range(len(seqs)):
        if i + _AHEAD < len(seqs):
            prefetch(slots, 2 * _home(slots, seqs[i + _AHEAD]))
        entry = slots[2 * _find(slots, seqs[i]) + 1]
        if entry == 0:
            return offsets, buffer_for(-1), -1
        starts[i] = _WORD * ((entry >> _LENGTH_BITS) - 1)
        offsets[i + 1] = entry & _LENGTH
        n_bytes += entry & _LENGTH
    data = buffer_for(n_bytes)
    if len(data) > 0:
        copy_ids(ids.view(np.uint8), starts, offsets, data)
    return offsets, data, n_bytes
