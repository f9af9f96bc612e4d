"""Boolean expressions over keywords: parse, print, evaluate, bring into normal form.

    expression  = conjunction { "OR" conjunction }
    conjunction = operand { [ "AND" ] operand }
    operand     = keyword | "(" expression ")"

Operators are upper case; ``and`` is a keyword like any other. A keyword is whatever else stands between
spaces and parentheses. It is normalised like text, so punctuation vanishes, and if several terms
are left it asks for all of them.

The normal form is disjunctive: clauses of terms, of which one must be contained in a text. A clause that
contains another one is absorbed. At most :data:`MAX_CLAUSES` may be left in the end. Distributing AND over OR
may pass through far more clauses than it ends with, so that is bounded too (:data:`MAX_DISTRIBUTED`):
twenty pairs of alternatives must be refused at once, not after a million clauses. And so are the terms that
all distributing writes (:data:`MAX_DISTRIBUTED_TERMS`): a thousand keywords in each of 512 clauses took
seconds to compare, and 256 clauses are distributed once more by each pair of alternatives that comes again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ps2stream.errors import ExpressionError, quoted
from ps2stream.model.limits import check_length
from ps2stream.text.terms import terms_of

MAX_CLAUSES = 64
MAX_DISTRIBUTED = 512
MAX_DISTRIBUTED_TERMS = 1 << 17
MAX_DEPTH = 100

_TOKEN = re.compile(r"[()]|[^\s()]+")

_Clause = frozenset[str]


class Expression:
    """What a subscription asks of a text; made by :func:`parse`."""

    # Not an ABC: that would make every isinstance of the parser several times dearer.
    __slots__ = ()

    def evaluate(self, terms: frozenset[str]) -> bool:
        """Tell whether a text of these terms satisfies the expression."""
        raise NotImplementedError

    def _normal_form(self, work: _Work) -> set[_Clause]:
        """Return the clauses, absorbed, in no order."""
        raise NotImplementedError

    def clauses(self) -> tuple[tuple[str, ...], ...]:
        """Return the disjunctive normal form in canonical order: each clause sorted, clauses sorted."""
        return _in_order(_normalize(self))

    def without(self, stop_words: frozenset[str]) -> Expression:
        """Return the expression on texts from which stop words were removed.

        They leave their clauses, and a clause of nothing else is dropped: ``the OR fire`` is ``fire``.
        """
        if not stop_words:
            return self
        before = _normalize(self)
        if all(clause.isdisjoint(stop_words) for clause in before):
            return self
        after = _absorb({clause - stop_words for clause in before} - {frozenset()})
        if not after:
            raise ExpressionError("expression consists only of stop words", str(self), 0)
        return _any([_all([Term(term) for term in clause]) for clause in _in_order(after)])


@dataclass(frozen=True, slots=True)
class Term(Expression):
    """Satisfied by a text that contains a term."""

    term: str

    def evaluate(self, terms: frozenset[str]) -> bool:
        return self.term in terms

    def _normal_form(self, work: _Work) -> set[_Clause]:
        return {frozenset([self.term])}

    def __str__(self) -> str:
        return self.term


@dataclass(frozen=True, slots=True)
class And(Expression):
    """Satisfied by a text that satisfies all operands."""

    operands: tuple[Expression, ...]

    def evaluate(self, terms: frozenset[str]) -> bool:
        return all(operand.evaluate(terms) for operand in self.operands)

    def _normal_form(self, work: _Work) -> set[_Clause]:
        factors = [operand._normal_form(work) for operand in self.operands]
        # One by one, ten thousand keywords would be joined in quadratic time.
        common: _Clause = frozenset().union(*(next(iter(one)) for one in factors if len(one) == 1))
        product = {common}
        for factor in sorted((factor for factor in factors if len(factor) > 1), key=len):
            _bound(len(product) * len(factor))
            work.add(len(factor) * sum(map(len, product)) + len(product) * sum(map(len, factor)))
            product = _absorb({left | right for left in product for right in factor})
        return product

    def __str__(self) -> str:
        return " AND ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.operands)


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """Satisfied by a text that satisfies one operand."""

    operands: tuple[Expression, ...]

    def evaluate(self, terms: frozenset[str]) -> bool:
        return any(operand.evaluate(terms) for operand in self.operands)

    def _normal_form(self, work: _Work) -> set[_Clause]:
        union: set[_Clause] = set()
        for operand in self.operands:
            union |= operand._normal_form(work)
            _bound(len(union))
        return _absorb(union)

    def __str__(self) -> str:
        return " OR ".join(map(str, self.operands))


def parse(text: str) -> Expression:
    """Parse an expression; raise :class:`ExpressionError` with the position of the token that is wrong.

    A position counts characters from 0. Of an expression that is too large as a whole it is 0.
    """
    if reason := check_length("expression", text):
        raise ExpressionError(reason, text, 0)
    expression = _parse(text)
    _normalize(expression, text)
    return expression


def _normalize(expression: Expression, text: str | None = None) -> set[_Clause]:
    """Return the normal form; an error quotes the text, or the expression as it prints."""
    try:
        clauses = expression._normal_form(_Work())
        if len(clauses) > MAX_CLAUSES:
            need = f"an expression must have at most {MAX_CLAUSES} clauses in normal form"
            raise _TooLargeError(f"{need}; got {len(clauses)}")
    except _TooLargeError as error:
        raise ExpressionError(str(error), str(expression) if text is None else text, 0) from None
    return clauses


class _TooLargeError(Exception):
    """Say that a normal form outgrew its bound; where is for the caller to say."""


def _bound(n_clauses: int) -> None:
    if n_clauses > MAX_DISTRIBUTED:
        need = f"an expression must stay within {MAX_DISTRIBUTED} clauses on the way to its normal form"
        raise _TooLargeError(f"{need}; got {n_clauses}")


@dataclass(slots=True)
class _Work:
    """Count the terms that distributing writes."""

    n_terms: int = 0

    def add(self, n_terms: int) -> None:
        self.n_terms += n_terms
        if self.n_terms > MAX_DISTRIBUTED_TERMS:
            limit = f"{MAX_DISTRIBUTED_TERMS:,} terms on the way to its normal form"
            raise _TooLargeError(f"an expression must stay within {limit}; got {self.n_terms:,}")


@dataclass(slots=True)
class _Group:
    """What was read of the innermost open parenthesis, or of the whole expression."""

    position: int
    alternatives: list[list[Expression]] = field(default_factory=lambda: [[]])

    def expression(self) -> Expression:
        return _any([_all(operands) for operands in self.alternatives])


def _parse(text: str) -> Expression:
    # A stack of our own, since ten thousand parentheses must be an ExpressionError like any other.
    groups = [_Group(0)]
    token, position = "", 0
    needs_operand = True
    for match in _TOKEN.finditer(text):
        token, position = match.group(), match.start()
        if token in ("AND", "OR", ")") and needs_operand:
            raise ExpressionError(f"{token!r} needs a keyword or a parenthesis before it", text, position)
        if token == "(":
            if len(groups) > MAX_DEPTH:
                raise ExpressionError(f"parentheses must nest at most {MAX_DEPTH} deep", text, position)
            groups.append(_Group(position))
            needs_operand = True
        elif token in ("AND", "OR"):
            if token == "OR":
                groups[-1].alternatives.append([])
            needs_operand = True
        else:
            operand = _close(groups, text, position) if token == ")" else _keyword(token, text, position)
            groups[-1].alternatives[-1].append(operand)
            needs_operand = False
    if not token:
        raise ExpressionError("an expression must have a keyword; got none", text, 0)
    if needs_operand:
        raise ExpressionError(f"{token!r} needs a keyword or a parenthesis after it", text, position)
    if len(groups) > 1:
        raise ExpressionError("'(' is never closed", text, groups[-1].position)
    return groups[0].expression()


def _close(groups: list[_Group], text: str, position: int) -> Expression:
    if len(groups) == 1:
        raise ExpressionError("')' was never opened", text, position)
    return groups.pop().expression()


def _keyword(token: str, text: str, position: int) -> Expression:
    if token == "NOT":
        raise ExpressionError("NOT is reserved and not supported", text, position)
    terms = terms_of(token)
    if not terms:
        raise ExpressionError(f"a keyword must have a letter or a digit; got {quoted(token)}", text, position)
    return _all([Term(term) for term in sorted(terms)])


def _all(operands: list[Expression]) -> Expression:
    flat = [part for one in operands for part in (one.operands if isinstance(one, And) else (one,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def _any(operands: list[Expression]) -> Expression:
    flat = [part for one in operands for part in (one.operands if isinstance(one, Or) else (one,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def _absorb(clauses: set[_Clause]) -> set[_Clause]:
    """Drop every clause that contains another one."""
    kept: list[_Clause] = []
    for clause in sorted(clauses, key=len):
        if not any(other < clause for other in kept):
            kept.append(clause)
    return set(kept)


def _in_order(clauses: Iterable[_Clause]) -> tuple[tuple[str, ...], ...]:
    return tuple(sorted(tuple(sorted(clause)) for clause in clauses))
