r"""A derivation: a chain of displayed lines, each with its reason, each verified against the line before it.

>>> from linewise.derive import Derivation, E, RandomVariable, Var, rules
>>> x, a = RandomVariable("x"), sp.Symbol("a")
>>> chain = Derivation(Var(a * x))
>>> chain.step(E(a**2 * x**2) - E(a * x) ** 2, rules.definition_of_variance)
>>> chain.step(a**2 * E(x**2) - a**2 * E(x) ** 2, rules.linearity,
...            mistake=("the forgotten square", a * E(x**2) - a * E(x) ** 2))
>>> chain.step(a * Var(x), rules.definition_of_variance)
Traceback (most recent call last):
    ...
linewise.derive.derivation.DerivationError: line 4 does not follow from line 3 by definition of the variance: it
is false, they can be 0.1539635 and -0.34096939 at a = -0.4515

A step names the rules that it uses (`linewise.derive.rules`), and may give its reason in other
words; a step without a rule is plain algebra. A rule that the step does not need is refused:
the reason on the page would not be the reason. Whatever a cell displays has been verified, since
a line that does not follow raises.

What a chain assumes belongs to the chain: it is in force in every line, earlier ones too, whatever words a reason uses;
it is shown below the block; and a rule that rests on the chain (`rules.derived`) brings it along. Assumptions that
contradict one another are refused, and so is a line that numbers refute in which all assumptions hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from linewise.derive import display, notation
from linewise.derive.assumptions import EQUATIONS, SIGNS, Assumption, noted
from linewise.derive.consistency import captured, conflict
from linewise.derive.divisors import divisors
from linewise.derive.entailment import entailed
from linewise.derive.equality import differs, equal, is_exceeded, remainder
from linewise.derive.expectation import E, Var
from linewise.derive.legible import illegible, namesakes
from linewise.derive.models import diverges, refutation
from linewise.derive.rule import Rule

_OPEN: list[list[Derivation]] = []


class DerivationError(AssertionError):
    """A line that does not follow from the line before it, or a mistake that the check does not reject."""


@dataclass(frozen=True)
class Mistake:
    """A wrong line that a student or a program could write in place of the right one."""

    name: str
    line: sp.Expr


@dataclass(frozen=True)
class Line:
    """A verified line: how it relates to the line before it, why, by which rules, and what it assumes.

    assumes : what neither the lines before it nor what they rest on assumed; it is in force in the whole chain.
    """

    value: Any
    relation: str = "="
    reason: str = ""
    rules: tuple[Rule, ...] = ()
    gap: Any = None
    mistake: Mistake | None = None
    assumes: tuple[Assumption, ...] = ()


@dataclass
class Derivation:
    """A chain of lines that starts at `start`; see the module for how it is used.

    start : a sympy expression or an explicit matrix of them.
    name : what the derivation shows, in words; the heading of the displayed block.
    displayed : whether a page has shown it.
    """

    start: Any
    name: str = ""
    _lines: list[Line] = field(init=False, repr=False)
    displayed: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        start = _exact(self.start, "start")
        self._lines = [Line(start, assumes=tuple(divisors(start)))]
        for derivations in _OPEN:
            derivations.append(self)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The verified lines; only a step adds one."""
        return tuple(self._lines)

    @property
    def result(self) -> Any:
        """The last line."""
        return self.lines[-1].value

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the chain assumes, each once: definitions, hypotheses, laws, ranges, signs, also of what it rests on."""
        return tuple(dict.fromkeys(a for line in self._lines for a in line.assumes))

    @property
    def mistakes(self) -> list[Mistake]:
        """The named mistakes, each of which its step rejected."""
        return [line.mistake for line in self.lines if line.mistake]

    def step(self, line: Any, *rules: Rule, because: str = "", mistake: tuple[str, Any] | None = None) -> None:
        """Add a line that equals the one before it, by the rules named and algebra.

        because : the reason in words; the words of the rules unless given, and required where no rule is named.
        mistake : a name and a wrong line, which the same check must reject.

        Raises `DerivationError` when the line does not follow, when it repeats the line before it, when a rule is not
        needed, when the assumptions of the chain contradict one another, when numbers refute the line, and when the
        mistake passes.
        """
        for rule in rules:
            if not isinstance(rule, Rule):
                raise TypeError(f"rules: expected a Rule, got {type(rule).__name__} {rule!r}")
        self._add(Line(_exact(line, "line"), "=", _reason(rules, because), rules, None, _mistake(mistake)))

    def at_most(self, line: Any, *rules: Rule, gap: Any, because: str, mistake: tuple[str, Any] | None = None) -> None:
        """Add a line that is at least the one before it: line = before + gap, and gap is visibly non-negative.

        gap : an expression that sympy finds non-negative from the assumptions on its symbols.
        """
        self._add(Line(_exact(line, "line"), "<=", because, rules, _exact(gap, "gap"), _mistake(mistake)))

    def at_least(self, line: Any, *rules: Rule, gap: Any, because: str, mistake: tuple[str, Any] | None = None) -> None:
        """Add a line that is at most the one before it: line = before - gap, and gap is visibly non-negative."""
        self._add(Line(_exact(line, "line"), ">=", because, rules, _exact(gap, "gap"), _mistake(mistake)))

    def follows(self, before: Any, line: Line) -> bool:
        """Return whether a line follows from the one before it by its own rules; what a rule refuses does not."""
        try:
            return self._follows(before, line)
        except ValueError:
            return False

    @staticmethod
    def _follows(before: Any, line: Line) -> bool:
        if line.gap is None:
            return equal(before, line.value, line.rules)
        sign = 1 if line.relation == "<=" else -1
        return notation.non_negative(line.gap) and equal(before + sign * line.gap, line.value, line.rules)

    def _add(self, line: Line) -> None:
        before, number = self.result, len(self._lines) + 1
        if line.value == before:
            raise DerivationError(
                f"line {number} repeats line {number - 1}: a step changes something, got {line.value} again. "
                "If they were written in different ways, sympy has evaluated one at once: give it evaluate=False, or a "
                "form that waits, such as Sum, Integral or UnevaluatedExpr"
            )
        if line.relation != "=" and any(earlier.relation not in ("=", line.relation) for earlier in self._lines):
            raise DerivationError(f"line {number}: a chain goes up or down, and this one does both")
        assumed = self.assumptions
        stated = [a for rule in line.rules for a in rule.assumes if a not in assumed]
        self._require_consistent(line, (*assumed, *stated))
        with noted() as granted:
            if not self._follows(before, line):
                raise DerivationError(self._unfollowed(before, line, (*assumed, *stated)))
        for rule in line.rules:
            fewer = tuple(r for r in line.rules if r is not rule)
            if self.follows(before, replace(line, rules=fewer)):
                raise DerivationError(f"line {number}: the step holds without the rule {rule.words!r}")
        at_every_place = {replace(a, every=frozenset()) for a in granted if a.every and a.kind in (*EQUATIONS, *SIGNS)}
        new = [a for a in dict.fromkeys([*stated, *granted, *divisors(line.value)]) if a not in at_every_place]
        line = replace(line, assumes=tuple(a for a in new if a not in assumed))
        if line.assumes != tuple(stated):
            self._require_consistent(line, (*assumed, *line.assumes))
        self._require_true(line, (*assumed, *line.assumes))
        if line.mistake and not self._rejects(before, line, (*assumed, *line.assumes)):
            raise DerivationError(f"line {number}: the mistake {line.mistake.name!r} passes the same check")
        self._lines.append(line)

    def _unfollowed(self, before: Any, line: Line, assumed: tuple[Assumption, ...]) -> str:
        """Say that a line does not follow: by numbers in which it is false, or that its rules leave it open."""
        number = len(self._lines) + 1
        said = f"line {number} does not follow from line {number - 1} by {line.reason}"
        pairs = list(zip(_entries(before), _entries(line.value), strict=False))
        numbers = (refutation(a, b, line.relation, assumed) for a, b in pairs)
        if words := next(filter(None, numbers), ""):
            return f"{said}: it is false, they can be {words}"
        if line.gap is not None:
            return f"{said}: not decided, with the gap {line.gap}\n  {before}\n  {line.value}"
        left = ", ".join(map(str, remainder(before, line.value, line.rules))) or "of another shape"
        return f"{said}: not decided, the difference is {left}\n  {before}\n  {line.value}"

    def _require_consistent(self, line: Line, assumed: tuple[Assumption, ...]) -> None:
        """Refuse assumptions that contradict one another, or that speak of what a sign of the chain binds."""
        number = len(self._lines) + 1
        if words := namesakes([*(earlier.value for earlier in self._lines), line.value], assumed):
            raise DerivationError(f"line {number}: {words}, and a page shows them alike")
        if len(assumed) == len(self.assumptions) and number > 2:
            words = captured([line.value], assumed)
        else:
            words = conflict(assumed) or captured([*(earlier.value for earlier in self._lines), line.value], assumed)
        if words:
            raise DerivationError(f"line {number}: the assumptions of the chain contradict one another, {words}")

    def _require_true(self, line: Line, assumed: tuple[Assumption, ...]) -> None:
        """Refuse a step that numbers refute, in which all holds that the chain assumes: this one, and each before it.

        Lines that were right under fewer assumptions may be wrong under more.
        """
        chain = [*self._lines, line] if line.assumes or len(self._lines) == 1 else [self._lines[-1], line]
        for value in (*(part for held in chain for part in _entries(held.value)), line.gap):
            if value is not None and (words := diverges(value, assumed)):
                raise DerivationError(f"line {len(self._lines) + 1}: expected values that are defined, got {words}")
        for number, (one, other) in enumerate(pairwise(chain), start=len(self._lines) + 3 - len(chain)):
            for a, b in zip(_entries(one.value), _entries(other.value), strict=True):
                if words := refutation(a, b, other.relation, assumed):
                    raise DerivationError(
                        f"line {number} does not follow from line {number - 1} by {other.reason}: "
                        f"where all holds that the chain assumes, they can be {words}"
                    )

    @staticmethod
    def _rejects(before: Any, line: Line, assumed: tuple[Assumption, ...]) -> bool:
        """Return whether the mistake of a line is certainly wrong: a wrong value, or a bound that fails at a point."""
        wrong = line.mistake.line if line.mistake else before
        if line.gap is None:
            return differs(before, wrong, line.rules, assumed) and not _is_entailed(before, wrong, assumed)
        lower, upper = (before, wrong) if line.relation == "<=" else (wrong, before)
        return is_exceeded(lower, upper, line.rules, assumed)

    def record(self) -> dict[str, Any]:
        """Return what a machine keeps, and what every display is drawn from; see `linewise.derive.display`."""
        lines, mistakes = [], []
        for number, line in enumerate(self.lines, start=1):
            kept: dict[str, Any] = display.formula(line.value)
            if number > 1:
                kept |= {"relation": line.relation, "rules": [rule.words for rule in line.rules]}
                if line.reason != "; ".join(kept["rules"]):
                    kept["reason"] = line.reason
            if line.gap is not None:
                kept["gap"] = display.formula(line.gap)
            lines.append(kept)
            if line.mistake:
                mistakes.append({"name": line.mistake.name, "line": number, **display.formula(line.mistake.line)})
        assumed = [{"line": k, **display.assumed(a)} for k, line in enumerate(self.lines, 1) for a in line.assumes]
        record = {"name": self.name, "lines": lines, "mistakes": mistakes}
        return record | ({"assumed": assumed} if assumed else {})

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        self.displayed = True  # so that the card of its claim does not display it again
        record = self.record()
        drawn = {"text/plain": display.plain, "text/html": display.html, "text/latex": display.latex}
        return {kind: draw(record) for kind, draw in drawn.items()} | {display.MIME: record}

    def __str__(self) -> str:
        return display.plain(self.record())

    __repr__ = __str__

    def latex(self) -> str:
        """Return one aligned display, reasons beside the lines."""
        return display.latex(self.record())

    def html(self) -> str:
        """Return the block as HTML: a line of mathematics and its reason in each row, and the mistakes folded below."""
        return display.html(self.record())


def identity(
    left: Any, right: Any, *rules: Rule, because: str = "", mistake: tuple[str, Any] | None = None, name: str = ""
) -> Derivation:
    """A derivation of one step: left = right.

    >>> x = sp.Symbol("x")
    >>> print(identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand", mistake=("no middle term", x**2 + 1)))
    derivation, 1 steps
        (x + 1)**2
      = x**2 + 2*x + 1    (expand)
      rejected, no middle term: x**2 + 1
    """
    chain = Derivation(left, name)
    chain.step(right, *rules, because=because, mistake=mistake)
    return chain


@contextmanager
def collected() -> Iterator[list[Derivation]]:
    """Collect every derivation that is begun inside the block, so that a test can try to break each of them."""
    found: list[Derivation] = []
    _OPEN.append(found)
    try:
        yield found
    finally:
        _OPEN.remove(found)


def _is_entailed(one: Any, other: Any, assumed: tuple[Assumption, ...]) -> bool:
    """Return whether what is assumed makes two lines the same, though no rule of the step does."""
    pairs = list(zip(_entries(one), _entries(other), strict=False))
    if not any(side.has(E, Var, AppliedUndef) for pair in pairs for side in pair):
        return False
    return len(_entries(one)) == len(_entries(other)) and all(
        sp.expand(entailed(a, assumed) - entailed(b, assumed)) == 0 for a, b in pairs
    )


def _entries(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, sp.MatrixBase) else (value,)


def _exact(value: Any, argument: str) -> Any:
    """Return an exact sympy expression or matrix; refuse floats, strings and whatever else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return sp.Integer(value)
    if isinstance(value, sp.MatrixBase):
        value = sp.ImmutableMatrix(value)
    if isinstance(value, sp.MatrixExpr) and not isinstance(value, sp.ImmutableMatrix):
        raise TypeError(f"{argument}: expected an entry or an explicit matrix, got the matrix symbol {value}")
    if not isinstance(value, sp.Expr | sp.ImmutableMatrix) or value.has(sp.Float) or value.has(sp.nan):
        raise TypeError(
            f"{argument}: expected an exact sympy expression or matrix, got {type(value).__name__} {value!r}"
        )
    if words := illegible(value):
        raise TypeError(f"{argument}: expected a line that means what it shows, got {value}: {words}")
    return value


def _reason(rules: tuple[Rule, ...], because: str) -> str:
    words = because.strip() or "; ".join(rule.words for rule in rules)
    if not words:
        raise DerivationError("because: expected the reason of the step in words")
    return words


def _mistake(given: tuple[str, Any] | None) -> Mistake | None:
    if given is None:
        return None
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str)):
        raise TypeError(f"mistake: expected a name and a wrong line, ('the forgotten factor', ...), got {given!r}")
    if not given[0].strip():
        raise DerivationError("mistake: expected a name for the wrong line")
    return Mistake(given[0], _exact(given[1], "mistake"))
