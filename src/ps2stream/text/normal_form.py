"""Tokens of expressions to their normal form, a row at a time in a kernel.

A row is worked off on a stack of factors. A factor is one clause of keywords, or what a parenthesis with OR
came to: several clauses, no two alike. Factors side by side are multiplied when their alternative ends, and
the product joins the clauses of its parenthesis. A parenthesis without OR leaves its factors where they are.

So everything happens in the order in which ``model.expressions`` does it, with the same sets. That matters
for the limits: a row is refused here exactly if the parser refuses it, which then says why.

The stack is two arrays. Terms lie in the order of their clauses, and clauses in that of their factors; what
was dropped leaves a gap. Slots are three tables side by side, one of clauses, one of factors and one of open
parentheses: one array, since a call that is not inlined counts the references of every array it hands on.
With eight arrays, a column took about twice the time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int64s, UInt8s, UInt64s
from ps2stream.kernels import copy, kernel
from ps2stream.model.expressions import MAX_CLAUSES, MAX_DEPTH, MAX_DISTRIBUTED, MAX_DISTRIBUTED_TERMS
from ps2stream.text.lexer import CLOSE, OPEN, OR, TERM, Tokens
from ps2stream.text.stop_words import is_stopped
from ps2stream.text.tokenizer import sort_distinct

_REFUSED, _FULL = -1, -2

# A clause has the terms from START to END, a factor SIZE clauses from FIRST on. A parenthesis begins with the
# factor GROUP; once it HAS_OR, that factor is what its alternatives have come to so far. The first row has
# the terms that products have WRITTEN.
_START, _END, _FIRST, _SIZE, _IS_OR, _GROUP, _HAS_OR, _WRITTEN = range(8)
_N_COLUMNS = 8

#: Terms that the stack has capacity for at first; a row that needs more is read again with twice as many.
FIRST_CAPACITY = 1 << 10
assert FIRST_CAPACITY > MAX_DEPTH


class Clauses(NamedTuple):
    """Clause ``c`` has the terms ``offsets[c]`` to ``offsets[c + 1]``."""

    terms: UInt64s
    offsets: Int64s


@kernel
def normalize(tokens: Tokens, stops: UInt64s) -> tuple[Clauses, Int64s, Int64s]:
    """Return clauses, where those of each row end, and the rows that are refused and have none."""
    n_rows = len(tokens.offsets) - 1
    out = Clauses(np.empty(len(tokens.kinds), np.uint64), np.zeros(len(tokens.kinds) + 1, np.int64))
    clause_offsets = np.zeros(n_rows + 1, dtype=np.int64)
    refused = np.empty(n_rows, dtype=np.int64)
    n_refused = n_clauses = 0
    terms, slots = _stack(FIRST_CAPACITY)
    for row in range(n_rows):
        first, last = tokens.offsets[row], tokens.offsets[row + 1]
        n = _reduce(tokens.kinds, tokens.values, first, last, terms, slots)
        while n == _FULL:
            terms, slots = _stack(2 * len(terms))
            n = _reduce(tokens.kinds, tokens.values, first, last, terms, slots)
        if n > 0:
            n = _finish(terms, slots, n, stops)
        if n < 0:
            refused[n_refused] = row
            n_refused += 1
        else:
            out = _append(out, n_clauses, terms, slots, n)
            n_clauses += n
        clause_offsets[row + 1] = n_clauses
    n_terms = out.offsets[n_clauses]
    return Clauses(out.terms[:n_terms], out.offsets[: n_clauses + 1]), clause_offsets, refused[:n_refused]


@kernel
def _stack(n_terms: int) -> tuple[UInt64s, Int64s]:
    # A clause has a term and a factor a clause, but for a product of no factors.
    return np.empty(n_terms, np.uint64), np.empty((n_terms + 1, _N_COLUMNS), np.int64)


@kernel
def _reduce(kinds: UInt8s, values: UInt64s, first: int, last: int, terms: UInt64s, slots: Int64s) -> int:
    """Leave the clauses of a row at the bottom of the stack; return their number."""
    if first == last:
        return _REFUSED
    n_factors = n_clauses = end = depth = 0
    slots[0, _GROUP], slots[0, _HAS_OR], slots[0, _WRITTEN] = 0, False, 0
    is_open = False  # whether the last factor is a clause that the next term joins
    for at in range(first, last):
        kind = kinds[at]
        if kind == TERM:
            if end == len(terms):
                return _FULL
            if not is_open:
                slots[n_factors, _FIRST], slots[n_factors, _SIZE] = n_clauses, 1
                slots[n_factors, _IS_OR] = False
                slots[n_clauses, _START] = end
                n_factors += 1
                n_clauses += 1
                is_open = True
            terms[end] = values[at]
            end += 1
            slots[n_clauses - 1, _END] = end
            continue
        is_open = False
        if kind == OPEN:
            depth += 1
            slots[depth, _GROUP], slots[depth, _HAS_OR] = n_factors, False
        elif kind == OR or slots[depth, _HAS_OR]:
            n = _end_alternative(terms, slots, depth, n_factors)
            if n < 0:
                return n
            slots[depth, _HAS_OR] = True
            n_factors = slots[depth, _GROUP] + 1
            n_clauses = slots[n_factors - 1, _FIRST] + n
            end = slots[n_clauses - 1, _END]
        if kind == CLOSE:
            depth -= 1
    return _end_alternative(terms, slots, 0, n_factors)


@kernel
def _end_alternative(terms: UInt64s, slots: Int64s, depth: int, n_factors: int) -> int:
    """Multiply the factors of the last alternative and join it to the others; return how many clauses."""
    group = slots[depth, _GROUP]
    first, n, alternative = slots[group, _FIRST], 0, group
    if slots[depth, _HAS_OR]:
        n = slots[group, _SIZE]
        alternative += 1
    new, n_new = slots[alternative, _FIRST], slots[alternative, _SIZE]
    to = slots[new, _START]
    if n_factors - alternative > 1:
        new = slots[n_factors - 1, _FIRST] + slots[n_factors - 1, _SIZE]
        n_new = _multiply(terms, slots, alternative, n_factors, new)
        if n_new < 0:
            return n_new
    elif not slots[alternative, _IS_OR]:
        slots[new, _END] = sort_distinct(terms, to, slots[new, _END])
    # An alternative that has alternatives itself joins them as they are: the parser flattens it too.
    for clause in range(new, new + n_new):
        if not _is_among(terms, slots, first, n, clause):
            to = _move(terms, slots, clause, first + n, to)
            n += 1
    slots[group, _SIZE], slots[group, _IS_OR] = n, True
    return n if n <= MAX_DISTRIBUTED else _REFUSED


@kernel
def _multiply(terms: UInt64s, slots: Int64s, factor: int, n_factors: int, product: int) -> int:
    """Write the product of some factors to the clauses from ``product`` on; return their number."""
    start = end = slots[product - 1, _END]
    for each in range(factor, n_factors):
        clause = slots[each, _FIRST]
        slots[each, _SIZE] = _absorb(terms, slots, clause, slots[each, _SIZE])
        if slots[each, _SIZE] == 1:
            if end + slots[clause, _END] - slots[clause, _START] > len(terms):
                return _FULL
            for slot in range(slots[clause, _START], slots[clause, _END]):
                terms[end] = terms[slot]
                end += 1
    slots[product, _START], slots[product, _END] = start, sort_distinct(terms, start, end)
    n = size = 1
    # Small factors first, and those of one size as they stand.
    while size <= MAX_DISTRIBUTED:
        next_size = MAX_DISTRIBUTED + 1
        for each in range(factor, n_factors):
            if slots[each, _SIZE] > size:
                next_size = min(next_size, slots[each, _SIZE])
            elif slots[each, _SIZE] == size > 1:
                n = _multiply_by(terms, slots, product, n, each)
                if n < 0:
                    return n
        size = next_size
    return n


@kernel
def _multiply_by(terms: UInt64s, slots: Int64s, product: int, n: int, factor: int) -> int:
    """Multiply the clauses on top of the stack by a factor, in place; return their number."""
    n_new = n * slots[factor, _SIZE]
    if n_new > MAX_DISTRIBUTED:
        return _REFUSED
    slots[0, _WRITTEN] += slots[factor, _SIZE] * _count_terms(slots, product, n)
    slots[0, _WRITTEN] += n * _count_terms(slots, slots[factor, _FIRST], slots[factor, _SIZE])
    if slots[0, _WRITTEN] > MAX_DISTRIBUTED_TERMS:
        return _REFUSED
    to, end = slots[product, _START], slots[product + n - 1, _END]
    first = new = product + n
    for left in range(product, first):
        for each in range(slots[factor, _SIZE]):
            right = slots[factor, _FIRST] + each
            size = slots[left, _END] - slots[left, _START] + slots[right, _END] - slots[right, _START]
            if end + size > len(terms):
                return _FULL
            slots[new, _START] = end
            end = _unite(terms, slots, left, right, end)
            slots[new, _END] = end
            new += 1
    n = _absorb(terms, slots, first, n_new)
    for each in range(n):
        to = _move(terms, slots, first + each, product + each, to)
    return n


@kernel
def _count_terms(slots: Int64s, first: int, n: int) -> int:
    """Add up the terms of some clauses."""
    n_terms = 0
    for clause in range(first, first + n):
        n_terms += slots[clause, _END] - slots[clause, _START]
    return n_terms


@kernel
def _unite(terms: UInt64s, slots: Int64s, left: int, right: int, end: int) -> int:
    """Write the terms of two clauses; return the new end."""
    at, at_end = slots[left, _START], slots[left, _END]
    to, to_end = slots[right, _START], slots[right, _END]
    while at < at_end or to < to_end:
        if to == to_end or (at < at_end and terms[at] < terms[to]):
            terms[end] = terms[at]
            at += 1
        else:
            at += at < at_end and terms[at] == terms[to]
            terms[end] = terms[to]
            to += 1
        end += 1
    return end


@kernel
def _absorb(terms: UInt64s, slots: Int64s, first: int, n: int) -> int:
    """Drop the clauses that contain another one; return how many stay."""
    kept = first
    for clause in range(first, first + n):
        start, end = slots[clause, _START], slots[clause, _END]
        absorbed = False
        for other in range(first, first + n):
            # Those between were dropped or moved. Of equal clauses the first one stays.
            if other < kept or other > clause:
                other_start, other_end = slots[other, _START], slots[other, _END]
                if other_end - other_start < end - start + (other < kept):
                    absorbed = _contains(terms, start, end, other_start, other_end)
                    if absorbed:
                        break
        if not absorbed:
            slots[kept, _START], slots[kept, _END] = start, end
            kept += 1
    return kept - first


@kernel
def _contains(terms: UInt64s, at: int, at_end: int, inner: int, inner_end: int) -> bool:
    """Tell whether every term of the inner clause is one of the other."""
    for slot in range(inner, inner_end):
        while at < at_end and terms[at] < terms[slot]:
            at += 1
        if at == at_end or terms[at] != terms[slot]:
            return False
    return True


@kernel
def _is_among(terms: UInt64s, slots: Int64s, first: int, n: int, clause: int) -> bool:
    """Tell whether a clause equals one of several."""
    start, end = slots[clause, _START], slots[clause, _END]
    for other in range(first, first + n):
        to = slots[other, _START]
        if slots[other, _END] - to == end - start:
            at = start
            while at < end and terms[at] == terms[to]:
                at += 1
                to += 1
            if at == end:
                return True
    return False


@kernel
def _move(terms: UInt64s, slots: Int64s, clause: int, target: int, to: int) -> int:
    """Move a clause down, and its terms from ``to`` on; return the new end."""
    start, end = slots[clause, _START], slots[clause, _END]
    slots[target, _START] = to
    if start == to:
        to = end
    else:
        for slot in range(start, end):
            terms[to] = terms[slot]
            to += 1
    slots[target, _END] = to
    return to


@kernel
def _finish(terms: UInt64s, slots: Int64s, n: int, stops: UInt64s) -> int:
    """Absorb the clauses of a row, take stop words out and sort; return how many clauses stay."""
    n = _absorb(terms, slots, 0, n)
    if n > MAX_CLAUSES:
        return _REFUSED
    # Not earlier: until here stop words absorb clauses like other terms.
    n = _without(terms, slots, n, stops)
    for at in range(1, n):
        start, end = slots[at, _START], slots[at, _END]
        to = at
        while to > 0 and _is_before(terms, start, end, slots[to - 1, _START], slots[to - 1, _END]):
            slots[to, _START], slots[to, _END] = slots[to - 1, _START], slots[to - 1, _END]
            to -= 1
        slots[to, _START], slots[to, _END] = start, end
    return n


@kernel
def _without(terms: UInt64s, slots: Int64s, n: int, stops: UInt64s) -> int:
    """Take stop words out of the lowest clauses; return how many stay, refused if none does."""
    kept = 0
    has_stops = False
    for clause in range(n):
        start = end = slots[clause, _START]
        for slot in range(start, slots[clause, _END]):
            if is_stopped(terms[slot], stops):
                has_stops = True
            else:
                terms[end] = terms[slot]
                end += 1
        slots[kept, _START], slots[kept, _END] = start, end
        kept += end > start
    if kept == 0:
        return _REFUSED
    return _absorb(terms, slots, 0, kept) if has_stops else kept


@kernel
def _is_before(terms: UInt64s, at: int, at_end: int, to: int, to_end: int) -> bool:
    """Compare two clauses like tuples of their terms."""
    while at < at_end and to < to_end:
        if terms[at] != terms[to]:
            return bool(terms[at] < terms[to])
        at += 1
        to += 1
    return bool(at == at_end and to < to_end)


@kernel
def _append(out: Clauses, n_clauses: int, terms: UInt64s, slots: Int64s, n: int) -> Clauses:
    """Write the clauses at the bottom of the stack behind others; return all of them, moved if need be."""
    end = needed = out.offsets[n_clauses]
    for clause in range(n):
        needed += slots[clause, _END] - slots[clause, _START]
    if needed > len(out.terms):
        longer = Clauses(np.empty(2 * needed, np.uint64), np.zeros(2 * needed + 1, np.int64))
        copy(longer.terms, out.terms, end)
        copy(longer.offsets, out.offsets, n_clauses + 1)
        out = longer
    for clause in range(n):
        for slot in range(slots[clause, _START], slots[clause, _END]):
            out.terms[end] = terms[slot]
            end += 1
        out.offsets[n_clauses + clause + 1] = end
    return out
