"""Forms of terms: values in which each sign that is no sum, product or power is a symbol, named as Coq writes it.

Nothing here has to be trusted: what a form says of a term is proved by Coq before it is used. A turn is a triple: two
terms, and the tactic that proves them equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from typing import Any

import sympy as sp

from linewise.kernel.statement import OutsideError, Scope, Statement

#: A place of a component, or an argument.
PLACE = r"\w+(?:%Z)?|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)(?:%Z)?"
_BOUND = re.compile(r"\b[iwx]\d+\b")


@dataclass(frozen=True)
class Sum:
    """A finite sum as it stands in an atom: its ends, its index and what is added."""

    low: str
    high: str
    name: str
    summand: Any


class TooMuchError(OutsideError):
    """A form that would take too long."""


def atom(text: str) -> sp.Symbol:
    """Return a term of Coq as a symbol."""
    return sp.Symbol(text)


def show(value: Any) -> str:
    """Return a value as Coq writes it, the same for equal values."""
    if value.is_Integer:
        return str(value) if value >= 0 else f"({value})"
    if value.is_Rational:
        return f"({value.p} / {value.q})" if value > 0 else f"(- ({-value.p} / {value.q}))"
    if value.is_Symbol:
        return str(value.name)
    if isinstance(value, sp.Add | sp.Mul):
        return f"({(' + ' if isinstance(value, sp.Add) else ' * ').join(sorted(map(show, value.args)))})"
    if isinstance(value, sp.Pow) and value.exp.is_Integer:
        power = f"({show(value.base)} ^ {abs(value.exp)})" if abs(value.exp) != 1 else show(value.base)
        return power if value.exp > 0 else f"(/ {power})"
    raise OutsideError(f"a form with {value}")


def deps(value: Any) -> set[str]:
    """Return the bound names that a value holds."""
    return set().union(*(_BOUND.findall(s.name) for s in value.free_symbols)) if value.free_symbols else set()


def split(term: Any, name: str) -> tuple[Any, Any]:
    """Return the factors of a term that do not hold a bound name, and those that do."""
    pairs = [(f, name in deps(f)) for f in sp.Mul.make_args(term)]
    return sp.Mul(*(f for f, in_ in pairs if not in_)), sp.Mul(*(f for f, in_ in pairs if in_))


def pattern_of(text: str, names: Sequence[str]) -> str:
    """Return the regular expression of a term in which some names stand for any place."""
    pattern, met = "", set()
    for part in re.split(rf"\b({'|'.join(names)})\b", text) if names else [text]:
        if part not in names:
            pattern += re.escape(part)
        else:
            pattern += rf"(?P={part})" if part in met else rf"(?P<{part}>{PLACE})"
            met.add(part)
    return pattern


class Forms:
    """What a search for a proof knows: the sums that it has met, roots and their squares, and what premises say."""

    def __init__(self, statement: Statement) -> None:
        self.st = statement
        self.sums: dict[str, Sum] = {}
        self.squares: dict[Any, Any] = {}
        self.known: list[tuple[re.Pattern[str], Any, str, tuple[str, ...]]] = []
        self.fresh = count()
        self.setup: list[str] = []
        self.busy: set[str] = set()
        self.steps = 0
        self.values: dict[str, Any] = {}
        self.loose = False

    def finish(self) -> str:
        """Return the last tactic: an identity of rational functions."""
        return "finish"

    def use(self, turns: Sequence[tuple[str, str, str]]) -> Iterator[str]:
        """Yield the tactics that prove some equations and rewrite by them, the longest first."""
        seen: dict[str, tuple[str, str, str]] = {}
        for turn in turns:
            seen.setdefault(turn[0], turn)
        for left, right, tactic in sorted(seen.values(), key=lambda t: -len(t[0])):
            name = f"T{next(self.fresh)}"
            yield f"assert ({name} : {left} = {right}) by ({tactic}); try rewrite {name}"

    def by(self, turns: Sequence[tuple[str, str, str]]) -> str:
        """Return the tactic that rewrites by some equations and finishes."""
        return "; ".join([*self.use(turns), self.finish()])

    def lookup(self, text: str) -> tuple[Any, list[tuple[str, str, str]]]:
        """Return what a sign is by a premise, or the sign itself."""
        for pattern, value, name, names in self.known:
            found = pattern.fullmatch(text)
            if found and name not in self.busy:
                given = {n: found[n] for n in names}
                new = self.renamed(value, given)
                self.busy.add(name)
                try:
                    new, turns = self.again(new)
                finally:
                    self.busy.discard(name)
                with_ = f"({name} {' '.join(f'{given[n]}' for n in names)})" if names else name
                proof = "; ".join([f"rewrite {with_}", "izr", *self.use(turns), self.finish()])
                return new, [(text, show(new), proof)]
        return atom(text), []

    def renamed(self, value: Any, given: dict[str, str]) -> Any:
        """Return a value with other names for the free ones."""
        if not given:
            return value
        new: dict[Any, Any] = {}
        for s in value.free_symbols:
            text = s.name
            for n, v in given.items():
                text = re.sub(rf"\b{n}\b", v, text)
            if re.fullmatch(r"\(IZR \(.*\)%Z\)", text):
                new[s] = self.pushed(text[5:-1])
                continue
            new[s] = atom(text)
            if s.name in self.sums and text != s.name:
                total = self.sums[s.name]
                low, high = (reduce(lambda t, p: re.sub(rf"\b{p[0]}\b", p[1], t), given.items(), e)
                             for e in (total.low, total.high))  # fmt: skip
                self.sums[text] = Sum(low, high, total.name, self.renamed(total.summand, given))
        return value.xreplace(new)

    def pushed(self, text: str) -> Any:
        """Return an integer of Coq as a value."""
        plain = re.sub(r"%Z", "", text)
        names = {n: atom(f"(IZR {n})") for n in re.findall(r"[a-z]\d+", plain)}
        return sp.sympify(plain, locals=names)

    def again(self, value: Any) -> tuple[Any, list[tuple[str, str, str]]]:
        """Look up the signs of a value."""
        turns: list[tuple[str, str, str]] = []
        new = {}
        for s in sorted(value.free_symbols, key=lambda s: s.name):
            new[s], more = self.lookup(s.name)
            turns += more
        return self.expand(value.xreplace(new)), turns

    def expand(self, value: Any) -> Any:
        """Expand a value, and reduce squares of roots."""
        kept = {p: sp.Dummy() for p in value.atoms(sp.Pow) if p.exp.is_negative and isinstance(p.base, sp.Add)}
        outer = {p: d for p, d in kept.items() if not any(p != q and q.has(p) for q in kept)}
        value = sp.expand(value.xreplace(outer), power_base=False, power_exp=False, log=False)
        value = value.xreplace({d: p for p, d in outer.items()})
        if not any(s in self.squares or "delta " in s.name for s in value.free_symbols):
            return value
        for _ in range(6):
            new = value.replace(lambda p: isinstance(p, sp.Pow) and p.exp.is_Integer and p.base.is_Symbol and (
                (p.base in self.squares and p.exp not in (0, 1)) or (p.base.name.startswith("(delta ") and p.exp > 1)),
                lambda p: p.base if p.base.name.startswith("(delta ") else
                self.squares[p.base] ** (p.exp // 2) * p.base ** (p.exp % 2))  # fmt: skip
            new = sp.expand(new, power_base=False, power_exp=False, log=False)
            if new == value:
                break
            value = new
        return value

    def turn(self, e: Any, scope: Scope) -> tuple[Any, list[tuple[str, str, str]]]:
        """Return a term's form, and the equations that lead to it."""
        raise NotImplementedError
