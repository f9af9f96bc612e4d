"""Find the position of a seq in a journal."""

from __future__ import annotations

from ps2stream.journal import Journal


def position_of(journal: Journal, seq: int) -> int:
    """Return the first position whose packet ends at or after a seq; one past the end if none does.

    Seqs rise with positions, so a few look-ups find it; a list of all packets would be long.
    """
    low, high = journal.oldest(), journal.last().position + 1
    while low < high:
        middle = (low + high) // 2
        if journal.spans(middle - 1, middle)[0].last_seq < seq:
            low = middle + 1
        else:
            high = middle
    return low
