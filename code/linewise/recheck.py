r"""A second opinion on a derivation: its lines evaluated in models of what it assumes, by no rule of algebra.

A model gives numbers to symbols, components and unknown functions, and a probability space to what is random, such
that all holds that the chain assumes. Sums are added term by term, integrals are taken by quadrature, derivatives and
limits from values nearby. Nothing of the engine is used but the signs `E`, `Var` and `Inner` and what a chain assumes.

>>> from linewise.derive import identity
>>> x = sp.Symbol("x")
>>> print(check(identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand")))
confirmed

It is a test and no proof. It cannot see a denominator that vanishes at some points only, nor that a value has another
sign than its symbol: it draws models in which all is defined. Sizes are 2 to 4, and 1 where what is assumed allows it.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import chain as chain_of
from itertools import pairwise, product
from typing import Any, Literal

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.matrices.expressions.matexpr import MatrixElement

from linewise.derive.assumptions import SIGNS, Assumption
from linewise.derive.expectation import E, RandomVariable, RandomVector, Var
from linewise.derive.matrices import Inner

#: A context of its own: digits of plain arithmetic, and those of a limit, which subtracts what is nearly equal.
CTX = mpmath.MPContext()
DIGITS, MANY_DIGITS = 40, 400
CTX.dps = DIGITS
#: Two lines agree within this share of their largest terms: exact arithmetic, and what goes through a quadrature, a
#: derivative or a limit.
CLOSE, NEAR = 1e-25, 1e-11
# Models that are tried, those with given sizes, signs that are evaluated for one line, terms of an endless sum.
_TRIES, _FEW_TRIES, _MOST_STEPS, _MOST_TERMS = 40, 6, 600_000, 1500

#: Values of bound symbols, by symbol.
Env = dict[Any, Any]


class NoModelError(Exception):
    """Numbers that break what the chain assumes."""


class NoValueError(Exception):
    """An expression that has no number in a model, or none that can be found here."""


class DivergesError(NoValueError):
    """An integral that does not settle, as where it has a pole."""


@dataclass(frozen=True)
class Verdict:
    """What the models say of a chain.

    words : where and by which numbers it differs, or why nothing can be said.
    unseen : the named mistakes that no model tells from the right line.
    larger : the sizes that were 1 in no model.
    """

    kind: Literal["confirmed", "differs", "no model", "not evaluable"]
    words: str = ""
    unseen: tuple[str, ...] = ()
    larger: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}" if self.words else self.kind


def check(chain: Any, models: int = 2) -> Verdict:
    """Evaluate every line of a derivation in models of its assumptions, and compare neighbours."""
    lines = [(line.value, line.relation) for line in chain.lines]
    failures: list[Exception] = []
    has_integral = any(value.has(sp.Integral) for value, _ in lines)
    found: list[Model] = []
    wanted = models * (4 if has_integral else 1)  # poles are met by chance
    for seed in range(_TRIES):
        try:
            model = Model(seed, chain.assumptions, [value for value, _ in lines])
            words = model.differs(lines)
        except (NoModelError, NoValueError) as error:
            failures.append(error)
            continue
        if words:
            return Verdict("differs", words)
        found.append(model)
        if len(found) == wanted:
            break
    if found:
        words, larger = _at_one(chain.assumptions, lines, found[0].sizes)
        return Verdict("differs", words) if words else Verdict("confirmed", "", tuple(_unseen(chain, found)), larger)
    values = [error for error in failures if isinstance(error, NoValueError)]
    return Verdict("not evaluable" if values else "no model", str((values or failures)[0]))


def _at_one(
    assumptions: Sequence[Assumption], lines: Sequence[tuple[Any, str]], sizes: frozenset[Any]
) -> tuple[str, tuple[str, ...]]:
    """Return where the lines differ when sizes are 1, all of them and then each, or "", and the sizes that cannot be 1.

    A size cannot be 1 where six seeds give no model, or none in which all lines have numbers.
    """
    larger = set(sizes)
    for ones in dict.fromkeys([sizes, *(frozenset({size}) for size in sorted(sizes, key=str))]) if sizes else ():
        for seed in range(_FEW_TRIES):
            with suppress(NoModelError, NoValueError):
                if words := Model(seed, assumptions, [value for value, _ in lines], ones).differs(lines):
                    return words, ()
                larger -= ones
                break
    return "", tuple(sorted(map(str, larger)))


def _unseen(chain: Any, found: Sequence[Model]) -> Iterator[str]:
    """Yield the mistakes that no model tells from the right line, under what is assumed up to there.

    found : models of all that the chain assumes, and so of what is assumed up to each line.
    """
    assumed: list[Assumption] = []
    for before, line in pairwise(chain.lines):
        assumed += [a for a in (*before.assumes, *line.assumes) if a not in assumed]
        if not line.mistake:
            continue
        tries = _TRIES * (1 if line.relation == "=" else 10)  # a bound may be sharp in few models
        models = chain_of(found, _models(tries, assumed, [before.value, line.mistake.line]))
        if not any(_tells(model, before.value, line) for model in models):
            yield line.mistake.name


def _models(tries: int, assumed: Sequence[Assumption], lines: Sequence[Any]) -> Iterator[Model]:
    """Yield the models that the first seeds give."""
    for seed in range(tries):
        with suppress(NoModelError, NoValueError):
            yield Model(seed, assumed, lines)


def _tells(model: Model, before: Any, line: Any) -> bool:
    try:
        return not _holds(model.line(before), model.line(line.mistake.line), line.relation)
    except (NoModelError, NoValueError):
        return False


@dataclass(frozen=True)
class Number:
    """A number, the size of the largest terms that it was added from, and whether it is exact but for rounding."""

    value: Any
    size: Any
    exact: bool


@dataclass(frozen=True)
class _Known(Number):
    """A number that may be asked for again, with the numbers of the model that it was computed from."""

    touched: dict[Any, Any]


def _holds(ones: list[Number], twos: list[Number], relation: str) -> bool:
    for one, two in zip(ones, twos, strict=True):
        size = max(abs(one.value), abs(two.value), (one.size + two.size) * (1e-3 if one.exact and two.exact else 1e-2))
        gap, slack = one.value - two.value, size * (CLOSE if one.exact and two.exact else NEAR) + 1e-30
        if relation != "=" and abs(CTX.im(gap)) > slack:
            return False
        gap = abs(gap) if relation == "=" else CTX.re(gap) * (1 if relation == "<=" else -1)
        if gap > slack:
            return False
    return True


def _said(numbers: list[Number]) -> str:
    return ", ".join(CTX.nstr(CTX.convert(n.value), 12) for n in numbers)


# --- models --------------------------------------------------------------------------------------


class Model:
    """Numbers within what is assumed; `NoModelError` where these cannot be had from the seed.

    ones : sizes that are 1.
    """

    def __init__(
        self,
        seed: int,
        assumptions: Sequence[Assumption],
        lines: Sequence[Any] = (),
        ones: frozenset[Any] = frozenset(),
    ) -> None:
        self.seed, self.assumptions, self.ones = seed, assumptions, ones
        self.numbers: Env = {}
        self.touched: dict[Any, Any] = {}
        self.last = 4  # the largest place at which an equation is taken to hold
        self.size, self.steps, self.exact, self.active = CTX.mpf(0), 0, True, []  # type: ignore[var-annotated]
        self.nodes: dict[Any, list[tuple[Any, Any]]] = {}
        self.finer = 0
        self.known: dict[Any, _Known] = {}  # values of what takes long, by expression and values of bound symbols
        self.moved: Any = None  # the number that is moved, and the values that have changed since
        self.known_moved: dict[Any, _Known] = {}
        self.outcomes_of: dict[Any, list[_Known]] = {}  # of an expectation, the values of its argument
        self.atoms_of: dict[Any, set[Any]] = {}  # what is found in an expression, by expression
        self.rules: dict[Any, list[tuple[Any, Any, set[Any]]]] = {}
        self.long: dict[Any, bool] = {}
        sides = [side for a in assumptions for side in (a.left, a.right) if isinstance(side, sp.Basic)]
        bound = set().union(*map(_bound, [*lines, *sides]), *(a.every for a in assumptions))
        self.told: dict[Any, list[tuple[Any, Any, set[Any]]]] = {}
        equations = []
        for a in sorted(assumptions, key=lambda a: a.kind != "definition"):
            if a.kind not in ("definition", "hypothesis", "moment"):
                continue
            side = _assigned(a, self.told)
            if side is None or any(_overlap(side[0], left, bound) for left, *_ in self.told.get(_head(side[0]), ())):
                equations.append(a)
            else:
                left, right = side
                self.told.setdefault(_head(left), []).append((left, right, bound | set(a.every)))
        self.laws = {a.left: a.right for a in assumptions if a.kind == "law"}
        self.alike = {x: a.left[0] for a in assumptions if a.kind == "same law" for x in a.left}
        self.indices = _indices([*lines, *sides])
        # What a name stands for may vary with what a line differentiates by, and never with what a sum runs over. Both
        # are tried: they agree where nothing that is assumed speaks of it.
        self.varied = set() if seed % 2 else _varied(lines)
        # Few lengths where each moment is one equation for each place.
        own = max((len(a.every) for a in assumptions if a.kind == "moment"), default=-1)
        self.lengths = (2, 3, 4) if own < 0 else (2, 3 if own < 3 else 1)[: 1 + seed % 2]
        self.components = {a.left for a in assumptions if a.kind == "components"}
        symbols = set().union(*map(_free, [*lines, *(a.left for a in equations)]))
        whole = [s for s in symbols if s.is_Symbol and s.is_integer and s not in bound and s not in self.told]
        self.sizes = frozenset(s for s in whole if s.is_positive and not s.is_even and s not in self.indices)
        for s in sorted(whole, key=str):
            self._drawn(s, s)
        self.last = max([2, *(v for v in self.numbers.values() if isinstance(v, int))])
        self._spaces([*lines, *(side for a in assumptions for side in (a.left, a.right))])
        self._solve([e for a in equations for e in self._instances(a.left, a.right, bound | set(a.every))])
        self._require(assumptions, bound)

    def __str__(self) -> str:
        shown = ((str(k), v) for k, v in self.numbers.items() if isinstance(k, sp.Symbol))
        at = ", ".join(f"{k} = {CTX.nstr(CTX.convert(v), 4)}" for k, v in sorted(shown)[:8])
        return f" at {at}" if at else ""

    def line(self, value: Any) -> list[Number]:
        """Return the numbers of a line, one for each entry."""
        return [self.number(part) for part in (value if isinstance(value, sp.MatrixBase) else (value,))]

    def number(self, expression: Any, env: Env | None = None) -> Number:
        """Return the number of an expression; raise `NoValueError` where there is none."""
        self.size, self.steps, self.exact = CTX.mpf(0), 0, True
        try:
            value = self.of(sp.sympify(expression), env or {})
        except (ArithmeticError, ValueError, TypeError, RecursionError, mpmath.libmp.NoConvergence) as error:
            raise NoValueError(f"{type(error).__name__} {error}") from error
        if not CTX.isfinite(value):
            raise NoValueError("no finite number")
        return Number(value, self.size, self.exact)

    def differs(self, lines: Sequence[tuple[Any, str]]) -> str:
        """Return in words which lines differ and by which numbers, and "" if none does."""
        numbers = [self._or_none(value) for value, _ in lines]
        if None in numbers:
            if not any(numbers):
                raise NoValueError("a quadrature that does not settle")
            have, lack = (next(k for k, n in enumerate(numbers) if bool(n) is has) for has in (True, False))
            return f"line {lack + 1} does not settle and line {have + 1} is {_said(numbers[have])}{self}"
        for k in range(1, len(lines)):
            relation = lines[k][1]
            if _holds(numbers[k - 1], numbers[k], relation):
                continue
            self.finer = 1  # rules of quadrature that reach further
            self._forget()
            one, two = self.line(lines[k - 1][0]), self.line(lines[k][0])
            if not _holds(one, two, relation):
                return f"line {k + 1}, {_said(one)} {relation} {_said(two)}{self}"
        return ""

    def _or_none(self, value: Any) -> Any:
        """Return the numbers of a line, or None where an integral in it diverges."""
        try:
            return self.line(value)
        except DivergesError:
            return None

    # --- what is assumed

    def _instances(self, left: Any, right: Any, loose: set[Any]) -> Iterator[tuple[Any, Any, Env]]:
        """Yield an equation at each value of its own indices, and at each outcome where it speaks of what is random."""
        own = sorted(((_free(left) | _free(right)) & loose), key=str)
        if any(not s.is_integer for s in own):
            own = [s for s in own if s.is_integer]
        outer = sp.Tuple(left, right).replace(lambda e: isinstance(e, E | Var), lambda e: sp.Integer(0))
        blocks = sorted({self.block[x] for x in self._atoms(outer) if x in self.block})
        sizes = [range(self.outcomes[b]) for b in blocks]
        for values in product(range(1, self.last + 1), repeat=len(own)):
            for outcome in product(*sizes):
                yield left, right, {**dict(zip(own, values, strict=True)), **dict(zip(blocks, outcome, strict=True))}

    def _solve(self, equations: list[tuple[Any, Any, Env]]) -> None:
        """Change the numbers that were drawn, as little as can be, until the equations hold."""
        expected = [e for e in equations if e[0].has(E, Var) or e[1].has(E, Var)]
        random_ = [e for e in equations if e not in expected and self._atoms(sp.Tuple(*e[:2]))]
        plain = [e for e in equations if e not in expected and e not in random_]
        kinds: tuple[tuple[list[Any], Callable[[Any], bool]], ...] = (
            (plain, lambda key: not _is_outcome(key) and not _is_weight(key)), (random_, _is_outcome),
            (expected, lambda key: not _is_outcome(key)),
        )  # fmt: skip
        for some, movable in kinds:
            if some:
                self._newton(some, movable)

    def _newton(self, equations: list[tuple[Any, Any, Env]], movable: Callable[[Any], bool]) -> None:
        equations = list({_at(*equation): equation for equation in equations}.values())
        touched: dict[Any, Any] = {}
        for turn in range(25):
            left, read = zip(*map(self._gap, equations), strict=True)
            for keys in read:
                touched |= keys
            if max(map(abs, left)) < 1e-34:
                return
            if turn == 9 and max(map(abs, left)) > 1e-2:
                break
            keys = [k for k in touched if movable(k) and not isinstance(self.numbers[k], int)]
            columns, step = [], CTX.mpf(10) ** -20
            for key in keys:
                here, signed = self.numbers[key], _is_signed(touched[key])
                self.numbers[key], self.moved = here * (1 + step) if signed else here + step, key
                columns.append([(self._gap(equation)[0] - gap) / step if key in own else CTX.mpf(0)
                                for equation, gap, own in zip(equations, left, read, strict=True)])  # fmt: skip
                self.numbers[key], self.moved = here, None
                self.known_moved.clear()
            change = _shortest(columns, [*left])
            for key, c in zip(keys, change, strict=True):
                here, signed = self.numbers[key], _is_signed(touched[key])
                self.numbers[key] = here * CTX.exp(-max(-1, min(1, CTX.re(c)))) if signed else here - c
            self._forget()
        if max(abs(self._gap(equation)[0]) for equation in equations) > 1e-28:
            raise NoModelError(f"no numbers satisfy {equations[0][0]} = {equations[0][1]}")

    def _forget(self) -> None:
        """Forget values of numbers that have changed."""
        self.known.clear()
        self.outcomes_of.clear()

    def _gap(self, equation: tuple[Any, Any, Env]) -> tuple[Any, dict[Any, Any]]:
        """Return how far apart the sides of an equation are, and the numbers that it reads."""
        left, right, env = equation
        self.touched = {}
        one, two = self.number(left, env), self.number(right, env)
        gap = one.value - two.value
        return gap if (one.exact and two.exact) or abs(gap) > 1e-13 else CTX.mpf(0), self.touched

    def _require(self, assumptions: Sequence[Assumption], bound: set[Any]) -> None:
        """Refuse numbers that break a sign, a range, an equation or the mass of a law."""
        for a in assumptions:
            if a.kind in SIGNS:
                for left, _, env in self._instances(a.left, sp.Integer(0), bound | set(a.every)):
                    self._fits(self.number(left, env).value, a.kind, a)
            elif a.kind == "range":
                low, at, high = (self.number(e).value for e in (a.right[0], a.left, a.right[1]))
                if not low <= at <= high:
                    raise NoModelError(str(a))
            elif a.kind == "law":
                self._law_nodes(a.left)
            elif a.kind in ("definition", "hypothesis") and isinstance(a.left, sp.Symbol) and not self._atoms(a.left):
                self.number(a.left)

        for atom, b in self.block.items():  # weights may be negative, as those of a quadrature, and no variance may
            for place in {key[1] for key in self.numbers if _is_outcome(key) and key[0] == atom}:
                values = [self.numbers.get((atom, place, "outcome", k), 0) for k in range(self.outcomes[b])]
                mean, square = (sum(self._weight(b, k) * v**p for k, v in enumerate(values)) for p in (1, 2))
                if CTX.re(square - mean**2) < -1e-20:
                    raise NoModelError(f"{atom} has a negative variance")

    @staticmethod
    def _fits(value: Any, kind: str, words: Any) -> None:
        real = CTX.re(value)
        if kind == "integer":
            good = abs(value - CTX.nint(real)) < 1e-20
        else:
            good = abs(CTX.im(value)) < 1e-20 and {
                "positive": real > 0, "negative": real < 0, "nonnegative": real >= -1e-25, "nonpositive": real <= 1e-25,
                "nonzero": real != 0, "real": True,
            }[kind]  # fmt: skip
        if not good:
            raise NoModelError(f"{words}, which is {CTX.nstr(CTX.convert(value), 5)}")

    # --- probability

    def _spaces(self, expressions: Sequence[Any]) -> None:
        """Divide what is random into blocks, independent of one another, each with its own outcomes."""
        atoms = sorted({x for e in expressions for x in _random(e)}, key=str)
        apart = [a.left for a in self.assumptions if a.kind == "independence"]
        self.block: dict[Any, int] = {}
        for atom in atoms:
            if atom in self.components or atom in self.told or self.alike.get(atom, atom) in self.laws:
                continue
            for k in range(len(atoms)):
                others = [x for x, b in self.block.items() if b == k]
                if not any(_separates(groups, atom, x) for groups in apart for x in others):
                    self.block[atom] = k
                    break
        self.outcomes = dict.fromkeys(self.block.values(), 3)
        for a in self.assumptions:
            if any(isinstance(side, sp.Basic) and side.has(E, Var) for side in (a.left, a.right)):
                own = _monomials(a.left, self.last)
                for b in {self.block[x] for x in _random(a.left) if x in self.block}:
                    self.outcomes[b] += 2 * own if own else 1

    def _atoms(self, expression: Any) -> set[Any]:
        """Return what is random in an expression, also by what its names stand for."""
        if expression not in self.atoms_of:
            found, more = set(), _random(expression)
            while more:
                atom = more.pop()
                found.add(atom)
                for _, right, _ in self.told.get(atom, ()):
                    more |= _random(right) - found
            self.atoms_of[expression] = found
        return self.atoms_of[expression]

    def _law_nodes(self, atom: Any) -> list[tuple[Any, Any]]:
        """Return values of a random number and their weights, such that sums over them are expectations."""
        atom = self.alike.get(atom, atom)
        if (atom, self.finer) in self.nodes:
            return self.nodes[atom, self.finer]
        density, low, high = self.laws[atom]
        ends = self.of(low, {}), self.of(high, {})
        for cut in range(_CUTS - self.finer):
            nodes = [(x, w * self.of(density, {atom: x})) for x, w in _nodes(*ends, cut + self.finer)]
            mass = sum(w for _, w in nodes)
            if any(abs(CTX.im(p)) > 1e-20 or CTX.re(p) < -1e-20 for _, p in nodes):
                raise NoModelError(f"{atom} has a density that is negative somewhere")
            if abs(mass - 1) < 1e-15:
                self.nodes[atom, self.finer] = nodes
                return nodes
        raise NoModelError(f"{atom} has a density of mass {CTX.nstr(mass, 8)}")

    def _mean(self, e: Any, env: Env) -> Any:
        argument = e.args[0]
        atoms = self._atoms(argument)
        blocks = sorted({self.block[x] for x in atoms if x in self.block})
        spaces: list[list[tuple[Env, Any]]] = [
            [({b: k}, self._weight(b, k)) for k in range(self.outcomes[b])] for b in blocks
        ]
        for atom in sorted(atoms & self.components, key=str):
            self.exact = False
            seen: set[Any] = set()
            others = {x: CTX.mpf(1) for x in atoms if x in self.laws}
            self.of(argument, {**env, **dict.fromkeys(blocks, 0), **others, atom: seen})
            if len(self.laws) != 1:
                raise NoValueError("components of an unknown law")
            (law,) = self.laws
            spaces += [[({(atom, place): x}, w) for x, w in self._law_nodes(law)] for place in sorted(seen)]
        for atom in sorted((x for x in atoms if self.alike.get(x, x) in self.laws), key=str):
            spaces.append([({atom: x}, w) for x, w in self._law_nodes(atom)])
            self.exact = False
        key = self._key(e, env)
        known: Sequence[_Known | None] = self.outcomes_of.get(key) or [None] * math.prod(map(len, spaces))
        total, size, found = CTX.mpf(0), self.size, []
        for outcome, value in zip(product(*spaces), known, strict=True):
            if value is None or self.moved in value.touched:
                value = self._apart(Model.of, argument, reduce(operator.or_, (place for place, _ in outcome), env))
            term = reduce(operator.mul, (w for _, w in outcome), value.value)
            total, size = total + term, max(size, abs(term))
            self.exact = self.exact and value.exact
            self.touched |= value.touched
            found.append(value)
        if key is not None and self.moved is None:
            self.outcomes_of[key] = found
        self.size = size  # not that of the terms on the way
        return total

    def _weight(self, block: int, k: int) -> Any:
        last = self.outcomes[block] - 1
        if k == last:
            return 1 - sum(self._weight(block, j) for j in range(last))
        key = ("weight", block, k)
        if key not in self.numbers:
            self.numbers[key] = CTX.mpf(1 + k % 3) / (2 * last + 2)
        self.touched[key] = None
        return self.numbers[key]

    # --- the meaning of each sign

    def _remembered(self, e: Any, env: Env) -> Any:
        """Return the number of what takes long, once for equal values of what it depends on."""
        meaning = Model._named if isinstance(e, sp.Symbol) else _SIGNS.get(e.__class__, Model._function)
        key = self._key(e, env) if meaning is not Model._function or self._takes_long(e) else None
        if key is None:
            return meaning(self, e, env)
        known = self.known.get(key)
        if known is None or self.moved in known.touched:
            known = self.known_moved.get(key)
        if known is None:
            known = self._apart(meaning, e, env)
            (self.known_moved if self.moved in known.touched else self.known)[key] = known
        self.size, self.exact = max(self.size, known.size), self.exact and known.exact
        self.touched |= known.touched
        return known.value

    def _takes_long(self, e: Any) -> bool:
        """Return whether what a function stands for holds a sum, an integral or the like."""
        if e not in self.long:
            self.long[e] = any(right.has(*_LONG, AppliedUndef) for _, right, _ in self._rules(e))
        return self.long[e]

    def _key(self, e: Any, env: Env) -> Any:
        """Return all that the number of an expression depends on, beside the numbers of the model, or None."""
        free = _free(e)
        reads = tuple((k, v, type(v)) for k, v in env.items()
                      if type(k) not in (sp.Symbol, sp.Dummy) or k in free or k in self.varied)  # fmt: skip
        if any(kind is set for *_, kind in reads):  # components that are asked for
            return None
        return e, reads, CTX.prec, *(told for told in self.active if isinstance(told[0], sp.Indexed))

    def _apart(self, meaning: Callable[[Model, Any, Env], Any], e: Any, env: Env) -> _Known:
        """Return the number of an expression with what is said of it alone."""
        before = self.size, self.exact, self.touched
        self.size, self.exact, self.touched = CTX.mpf(0), True, {}
        try:
            return _Known(meaning(self, e, env), self.size, self.exact, self.touched)
        finally:
            self.size, self.exact, self.touched = before

    def of(self, e: Any, env: Env) -> Any:
        """Return the number of an expression where its bound symbols have the values of `env`."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise NoValueError("too many terms")
        return _meaning(e)(self, e, env)

    def _symbol(self, e: Any, env: Env) -> Any:
        if e in env:
            return env[e]
        if e in self.told:
            return self._remembered(e, env)
        if isinstance(e, RandomVariable):
            return self._outcome(e, (), e, env)
        return self._drawn(e, e)

    def _named(self, e: Any, env: Env) -> Any:
        return self._told(self.told[e], e, (), env)

    def _indexed(self, e: Any, env: Env) -> Any:
        if isinstance(e, MatrixElement):
            return self._entry(e.parent, tuple(_whole(self.of(i, env)) for i in e.indices))
        base, place = e.base, tuple(_whole(self.of(i, env)) for i in e.indices)
        if (base, place) in env:
            return env[base, place]
        if base in env:  # components that are asked for
            env[base].add(place)
            return CTX.mpf(1)
        told = self._told(self.told[base], e, place, env) if base in self.told else None
        if told is not None:
            return told
        if isinstance(base, RandomVector):
            return self._outcome(base, place, e, env)
        return self._drawn((base, place), e)

    def _outcome(self, atom: Any, place: Any, e: Any, env: Env) -> Any:
        block = self.block.get(self.alike.get(atom, atom))
        if block is None or self.block.get(atom) not in env:
            if atom in self.block or atom in self.laws or atom in self.components:
                return self._drawn((atom, place, "outcome", "any"), e)
            raise NoValueError(f"{atom} outside of every expectation")
        return self._drawn((self.alike.get(atom, atom), place, "outcome", env[self.block[atom]]), e)

    def _entry(self, matrix: Any, place: Any) -> Any:
        """Return an entry of a matrix, counted from 1."""
        row, column = place
        if isinstance(matrix, sp.MatrixSymbol):
            if matrix in self.told:
                return self._entry(self.told[matrix][0][1], place)
            return self._drawn((sp.IndexedBase(matrix.name), place), sp.IndexedBase(matrix.name)[place])
        if isinstance(matrix, sp.Transpose):
            return self._entry(matrix.arg, (column, row))
        if isinstance(matrix, sp.MatAdd):
            return sum(self._entry(part, place) for part in matrix.args)
        if isinstance(matrix, sp.MatMul):
            first, rest = matrix.args[0], matrix.args[1:]
            tail = rest[0] if len(rest) == 1 else sp.MatMul(*rest, evaluate=False)
            if not first.is_Matrix:
                return self.of(first, {}) * self._entry(tail, place)
            middle = _whole(self.of(first.shape[1], {}))
            return sum(self._entry(first, (row, k)) * self._entry(tail, (k, column)) for k in range(1, middle + 1))
        if isinstance(matrix, sp.MatrixBase):
            return self.of(matrix[row - 1, column - 1], {})
        raise NoValueError(f"a matrix {type(matrix).__name__}")

    def _function(self, e: Any, env: Env) -> Any:
        arguments = tuple(self.of(a, env) for a in e.args)
        told = self._told(self._rules(e), e, arguments, env)
        if told is not None:
            return told
        rng = random.Random(f"{self.seed} {e.func}")
        a, b, c, *d = (CTX.mpf(rng.uniform(0.2, 1.1)) for _ in range(3 + len(arguments)))
        inner = sum(k * x for k, x in zip(d, arguments, strict=True))
        value = a + b * CTX.sin(inner + c) + CTX.cos(2 * inner) / 5
        return CTX.exp(value) if e.is_positive or e.is_nonnegative else value

    def _rules(self, e: Any) -> list[tuple[Any, Any, set[Any]]]:
        """Return what is assumed of an unknown function; asked once for each expression, as its hash takes long."""
        if e not in self.rules:
            self.rules[e] = self.told.get(e.func, [])
        return self.rules[e]

    def _told(self, rules: Sequence[tuple[Any, Any, set[Any]]], e: Any, place: Any, env: Env) -> Any:
        """Return what a name stands for at a place by what is assumed, which must be one thing; None if nothing is."""
        found = []
        for left, right, loose in rules:
            pattern = getattr(left, "indices", left.args) if place else ()
            own = self._matched(pattern, place, loose)
            if own is None:
                continue
            if (left, place) in self.active and isinstance(left, sp.Indexed):
                continue  # the pattern holds its own right side, and says nothing of it
            if (left, place) in self.active or len(self.active) > 12:
                if any(value.has(sp.Derivative) for told in self.told.values() for _, value, _ in told):
                    raise NoValueError("an unknown function that solves a differential equation")
                raise NoModelError(f"{left} is defined by itself")
            self.active.append((left, place))
            kept = {k: v for k, v in env.items() if k in self.varied or type(k) not in (sp.Symbol, sp.Dummy)}
            try:
                found.append(self.of(right, kept | own))
            finally:
                self.active.pop()
        if any(abs(v - found[0]) > 1e-15 * (1 + abs(v)) for v in found):
            raise NoModelError(f"{e} is {' and '.join(CTX.nstr(CTX.convert(v), 6) for v in found)}")
        if not found:
            return None
        for kind in ("positive", "nonnegative", "negative", "nonpositive", "integer"):
            if getattr(e, f"is_{kind}") and not _is_unknown(e):
                self._fits(found[0], kind, e)
        return _whole(found[0]) if e.is_integer and not _is_unknown(e) else found[0]

    def _matched(self, pattern: Any, place: Any, loose: set[Any]) -> Env | None:
        """Return the values of a pattern's own symbols at a place, or None where it speaks of another place."""
        own: Env = {}
        for p, value in zip(pattern, place, strict=True):
            symbol = next(iter(p.free_symbols & loose), None)
            if symbol is None or not (p - symbol).is_Integer:
                met = abs(self.of(p, {}) - value) <= 1e-20
            else:
                value -= int(p - symbol)
                met = own.setdefault(symbol, value) == value
                met = met and not (symbol.is_integer and p != symbol and value > self.last)
                met = met and not (symbol.is_integer and symbol.is_positive and value < 1)
            if not met:
                return None
        return own

    def _drawn(self, key: Any, e: Any) -> Any:
        if key not in self.numbers:
            self.numbers[key] = self._draw(key, e)
        self.touched[key] = e
        return self.numbers[key]

    def _draw(self, key: Any, e: Any) -> Any:
        if _is_outcome(key) and key[3] != "any" and key[3] % 2 and not (e.is_nonnegative or e.is_nonpositive):
            return -self._drawn((*key[:3], key[3] - 1), e)  # in pairs, so that means are small beside mean squares
        rng = random.Random(f"{self.seed} {key}")
        if key in self.ones or (self.ones and e in self.indices and not (e.is_even or e.is_nonpositive)):
            return 1  # and so is the place that an index says
        if e.is_integer:
            if not e.is_positive:
                low, high = (-2, -1) if e.is_negative else (0, 3) if e.is_nonnegative else (1, 2)
                others = {self.numbers.get(s) for s in self.indices}
                free = [k for k in range(low, high + 1) if k not in others or rng.random() < 0.3]
                return rng.choice(free or [low, high])
            taken = {v for v in self.numbers.values() if isinstance(v, int)}
            small = (1, 2) if self.components or e in self.indices else self.lengths
            free = [k for k in small if k not in taken and not (e.is_even and k % 2) and not (e.is_odd and k % 2 == 0)]
            return rng.choice(free or small)
        size = CTX.mpf(math.exp(rng.uniform(math.log(0.15), math.log(1.8))))
        if self.seed > (1 if isinstance(key, tuple) else 7):  # of different sizes, as bounds on them ask for
            size *= random.Random(f"{self.seed} {key[0] if isinstance(key, tuple) else key}").choice(
                (CTX.mpf(1), CTX.mpf(1) / 4, CTX.mpf(1) / 16)
            )
        if e.is_negative or e.is_nonpositive:
            return -size
        if e.is_positive or e.is_nonnegative:
            return size
        if self.seed % 4 == 3:  # all positive, large or small: some assumptions hold nowhere else
            return size * (3 if self.seed % 8 == 3 else CTX.mpf(1) / 3)
        if e.is_extended_real is None and self.seed % 4 == 2 and not isinstance(key, tuple):
            return size * CTX.expjpi(rng.uniform(-1, 1))
        return size * rng.choice((-1, 1))

    def _add(self, e: Any, env: Env) -> Any:
        terms = [self.of(a, env) for a in e.args]
        self.size = max(self.size, *(abs(t) for t in terms))
        return sum(terms)

    def _mul(self, e: Any, env: Env) -> Any:
        return reduce(operator.mul, (self.of(a, env) for a in e.args))

    def _pow(self, e: Any, env: Env) -> Any:
        base, exponent = self.of(e.base, env), self.of(e.exp, env)
        if isinstance(exponent, int):
            return CTX.convert(base) ** exponent if exponent < 0 else base**exponent
        if e.exp == sp.S.Half:
            return CTX.sqrt(base)
        if base == 0 and CTX.re(exponent) <= 0:
            raise NoValueError("0 to a power that is not positive")
        return CTX.power(base, exponent)

    def _range(self, limit: Any, env: Env) -> Any:
        if len(limit) != 3:
            raise NoValueError("a sum without ends")
        low, high = self.of(limit[1], env), self.of(limit[2], env)
        if high < low - 1:
            raise NoValueError("a range that runs backwards")
        if high == CTX.inf:
            raise NoValueError("an endless sum inside another")
        return range(_whole(low), _whole(high) + 1)

    def _terms(self, e: Any, env: Env, limits: Any) -> Iterator[Any]:
        if not limits:
            yield self.of(e.function, env)
            return
        for k in self._range(limits[-1], env):
            yield from self._terms(e, {**env, limits[-1][0]: k}, limits[:-1])

    def _sum(self, e: Any, env: Env) -> Any:
        if e.limits[0][-1] == sp.oo:
            return self._endless(e, env)
        terms = list(self._terms(e, env, e.limits))
        self.size = max([self.size, *map(abs, terms)])
        return sum(terms)

    def _endless(self, e: Any, env: Env) -> Any:
        (name, low, _), *others = e.limits
        if others:
            raise NoValueError("an endless sum inside another")
        total, small, first = CTX.mpf(0), 0, _whole(self.of(low, env))
        for k in range(first, first + _MOST_TERMS):
            term = self.of(e.function, {**env, name: k})
            total += term
            small = small + 1 if abs(term) <= 1e-32 * (1e-9 + abs(total)) else 0
            if small > 4:
                return total
        raise NoValueError("an endless sum that does not settle")

    def _product(self, e: Any, env: Env) -> Any:
        return reduce(operator.mul, self._terms(e, env, e.limits), 1)

    def _integral(self, e: Any, env: Env) -> Any:
        size = self.size
        self.exact = False

        def inner(limits: Any, env: Env) -> tuple[Any, Any]:
            if not limits:
                value = self.of(e.function, env)
                return value, abs(value)
            name, *ends = limits[-1]
            low, high = (CTX.re(self.of(end, env)) for end in ends)
            sign = 1 if low <= high else -1
            low, high = min(low, high), max(low, high)
            total, mass = _quadrature(lambda x: inner(limits[:-1], {**env, name: x})[0], low, high)
            return sign * total, mass

        value, mass = inner(e.limits, env)
        self.size = max(size, mass)  # not that of the terms on the way
        return value

    def _derivative(self, e: Any, env: Env) -> Any:
        self.exact = False

        def inner(counts: Any, env: Env) -> Any:
            if not counts:
                return self.of(e.expr, env)
            (name, order), rest = counts[0], counts[1:]
            key = name if name.is_Symbol else (name.base, tuple(_whole(self.of(i, env)) for i in name.indices))
            here, order = self.of(name, env), _whole(self.of(order, env))
            return _slope(lambda x: inner(rest, {**env, key: x}), here, order)

        return inner(tuple(e.variable_count), env)

    def _limit(self, e: Any, env: Env) -> Any:
        size = self.size
        value = self._approached(e, env)
        self.size, self.exact = max(size, abs(value)), False  # not that of the terms on the way
        return value

    def _approached(self, e: Any, env: Env) -> Any:
        function, name, to, side = e.args
        long = function.atoms(sp.Sum, sp.Product, sp.Integral, sp.Derivative, sp.Limit)
        nested = any(name in _free(part) for part in long)

        def at(distance: Any) -> Any:
            if to in (sp.oo, -sp.oo):
                place = distance if to == sp.oo else -distance
                return self.of(function, {**env, name: int(place) if nested and name.is_integer else place})
            step = (1 if str(side) == "+" else -1) / CTX.mpf(distance)
            return self.of(function, {**env, name: self.of(to, env) + step})

        if nested:
            return _extrapolated([at(2**k) for k in range(2, 9)])
        with CTX.workdps(MANY_DIGITS):
            try:
                one, two = at(CTX.mpf(10) ** 150), at(CTX.mpf(10) ** 160)
            except OverflowError as error:
                raise NoValueError("a limit that overflows") from error
        if abs(one - two) > 1e-13 * max(1e-13, abs(one), abs(two)):
            raise NoValueError("a limit that does not settle")
        return +two

    def _subs(self, e: Any, env: Env) -> Any:
        return self.of(e.expr, env | {v: self.of(p, env) for v, p in zip(e.variables, e.point, strict=True)})

    def _variance(self, e: Any, env: Env) -> Any:
        mean, square = self.of(E(e.args[0]), env), self.of(E(e.args[0] ** 2), env)
        size = self.of(E(e.args[0] * sp.conjugate(e.args[0])), env)
        if abs(size - square) > 1e-20 * abs(size):
            raise NoModelError(f"the variance of {e.args[0]}, which is no real number")
        return square - mean**2

    def _delta(self, e: Any, env: Env) -> Any:
        return int(self.of(e.args[0], env) == self.of(e.args[1], env))

    def _inner(self, e: Any, env: Env) -> Any:
        rows, columns = (_whole(self.of(k, env)) for k in e.args[0].shape)
        places = product(range(1, rows + 1), range(1, columns + 1))
        return sum(self._entry(e.args[0], place) * self._entry(e.args[1], place) for place in places)

    def _determinant(self, e: Any, env: Env) -> Any:
        matrix = e.args[0]
        if not isinstance(matrix, sp.MatrixBase):
            raise NoValueError("the determinant of a matrix of no size")
        return CTX.det(CTX.matrix([[self.of(x, env) for x in matrix.row(k)] for k in range(matrix.rows)]))

    def _piecewise(self, e: Any, env: Env) -> Any:
        for value, condition in e.args:
            if condition == sp.true or _true(condition, *(self.of(a, env) for a in condition.args)):
                return self.of(value, env)
        raise NoValueError("no case that holds")


def _at(left: Any, right: Any, env: Env) -> Any:
    """Return an equation with its places put in: the moment of two components is one, in whichever order they stand."""
    places = {k: sp.Integer(v) for k, v in env.items() if isinstance(k, sp.Symbol)}
    if not isinstance(left, E) or left.has(*_LONG - {E}) or right.has(*_LONG):
        return left, right, *env.items()
    return left.args[0].xreplace(places), right.xreplace(places), *(p for p in env.items() if p[0] not in places)


def _is_unknown(e: Any) -> bool:
    """Return whether an expression is the value of an unknown function."""
    return isinstance(e, AppliedUndef)


def _true(condition: Any, left: Any, right: Any) -> bool:
    compare = {sp.Gt: operator.gt, sp.Ge: operator.ge, sp.Lt: operator.lt, sp.Le: operator.le, sp.Eq: operator.eq,
               sp.Ne: operator.ne}  # fmt: skip
    return bool(compare[type(condition)](left, right))


_SIGNS: Mapping[Any, Callable[[Model, Any, Env], Any]] = {
    sp.Add: Model._add, sp.Mul: Model._mul, sp.Pow: Model._pow, sp.Indexed: Model._indexed, sp.Sum: Model._sum,
    MatrixElement: Model._indexed, sp.Product: Model._product, sp.Integral: Model._integral, sp.Subs: Model._subs,
    sp.Derivative: Model._derivative, sp.Limit: Model._limit, E: Model._mean, Var: Model._variance, Inner: Model._inner,
    sp.KroneckerDelta: Model._delta, sp.Determinant: Model._determinant, sp.Piecewise: Model._piecewise,
}  # fmt: skip
_LONG = frozenset({sp.Sum, sp.Product, sp.Integral, sp.Derivative, sp.Limit, E})
_FUNCTIONS = {
    sp.exp: "exp", sp.log: "log", sp.sin: "sin", sp.cos: "cos", sp.tan: "tan", sp.sinh: "sinh", sp.cosh: "cosh",
    sp.tanh: "tanh", sp.coth: "coth", sp.asin: "asin", sp.acos: "acos", sp.atan: "atan", sp.asinh: "asinh",
    sp.acosh: "acosh", sp.atanh: "atanh", sp.erf: "erf", sp.erfc: "erfc", sp.gamma: "gamma", sp.factorial: "factorial",
    sp.binomial: "binomial", sp.RisingFactorial: "rf", sp.FallingFactorial: "ff", sp.Abs: "fabs", sp.sign: "sign",
    sp.floor: "floor", sp.ceiling: "ceil", sp.loggamma: "loggamma", sp.conjugate: "conj", sp.re: "re", sp.im: "im",
    sp.digamma: "digamma", sp.zeta: "zeta", sp.harmonic: "harmonic",
}  # fmt: skip


@lru_cache(maxsize=10_000)
def _meaning(e: Any) -> Callable[[Model, Any, Env], Any]:
    """Return what a sign means: a function of the model, the expression and the values of bound symbols."""
    kind = type(e)
    if kind in _LONG or issubclass(kind, AppliedUndef):
        return Model._remembered
    if kind in _SIGNS:
        return _SIGNS[kind]
    if kind in _FUNCTIONS:
        function = getattr(CTX, _FUNCTIONS[kind])
        return lambda model, e, env: function(*(model.of(a, env) for a in e.args))
    if issubclass(kind, sp.Symbol):
        return Model._symbol
    if issubclass(kind, sp.Integer):
        return lambda model, e, env: int(e)
    if issubclass(kind, sp.Rational):
        return lambda model, e, env: CTX.mpf(e.p) / e.q
    if kind in (sp.Max, sp.Min):
        choose = max if kind is sp.Max else min
        return lambda model, e, env: choose(model.of(a, env) for a in e.args)
    if kind in (type(sp.oo), type(-sp.oo)):
        return lambda model, e, env: CTX.inf if e == sp.oo else -CTX.inf
    constants = {type(sp.pi): lambda: +CTX.pi, type(sp.E): lambda: +CTX.e, type(sp.I): lambda: CTX.j,
                 type(sp.EulerGamma): lambda: +CTX.euler}  # fmt: skip
    if kind in constants:
        return lambda model, e, env: constants[kind]()
    if kind is sp.UnevaluatedExpr:
        return lambda model, e, env: model.of(e.args[0], env)
    raise NoValueError(f"the sign {kind.__name__}")


# --- expressions ---------------------------------------------------------------------------------


@lru_cache(maxsize=10_000)
def _free(expression: Any) -> frozenset[Any]:
    return frozenset(getattr(expression, "free_symbols", ()))


def _bound(line: Any) -> set[Any]:
    """Return the indices that the sums and products of a line run over."""
    return {limit[0] for sign in sp.sympify(line).atoms(sp.Sum, sp.Product) for limit in sign.limits}


def _monomials(mean: Any, last: int) -> int:
    """Return how many products of components, at places up to the last, an expectation speaks of."""
    parts = [part for part in mean.atoms(sp.Indexed) if isinstance(part.base, RandomVector)]
    if not parts:
        return 0
    factors = [f.as_base_exp() for f in sp.Mul.make_args(mean.args[0])]
    degree = sum(int(power) for base, power in factors if base in parts and power.is_Integer)
    return math.comb(last ** max(len(part.indices) for part in parts) + degree - 1, degree)


def _indices(lines: Sequence[Any]) -> set[Any]:
    """Return the symbols that say a place and no length."""
    found: set[Any] = set()
    ends: set[Any] = set()
    for line in map(sp.sympify, lines):
        for sign in line.atoms(sp.Sum, sp.Product):
            ends |= _free(sp.Tuple(*(end for limit in sign.limits for end in limit[1:])))
        for sign in line.atoms(sp.Indexed, sp.KroneckerDelta):
            found |= _free(sp.Tuple(*sign.args))
    return found - ends


def _varied(lines: Sequence[Any]) -> set[Any]:
    """Return what the derivatives and limits of some lines vary."""
    signs = [sign for line in lines for sign in sp.sympify(line).atoms(sp.Derivative, sp.Limit)]
    return set().union(*({e.args[1]} if isinstance(e, sp.Limit) else set(e.variables) for e in signs))


def _random(expression: Any) -> set[Any]:
    if isinstance(expression, tuple | frozenset):
        return set().union(*map(_random, expression)) if expression else set()
    if isinstance(expression, RandomVector):
        return {expression}
    if not isinstance(expression, sp.Basic):
        return set()
    vectors = {a.base for a in expression.atoms(sp.Indexed) if isinstance(a.base, RandomVector)}
    return vectors | expression.atoms(RandomVariable)


def _separates(groups: Any, one: Any, two: Any) -> bool:
    of_one, of_two = ([g for g in groups if x in g] for x in (one, two))
    return bool(of_one and of_two and of_one != of_two)


def _head(left: Any) -> Any:
    return left.func if isinstance(left, AppliedUndef) else left.base if isinstance(left, sp.Indexed) else left


def _assigned(a: Assumption, told: Mapping[Any, Any]) -> tuple[Any, Any] | None:
    """Return the side of an equation that can be taken for the name of the other, and that other, or None."""
    if a.kind == "moment":
        return None
    for left, right in ((a.left, a.right), (a.right, a.left)):
        if isinstance(left, sp.Mul) and left.args[0].is_Rational and len(left.args) == 2:
            left, right = left.args[1], right / left.args[0]
        if not isinstance(left, sp.Symbol | sp.Indexed | sp.MatrixSymbol | AppliedUndef):
            continue
        if a.kind == "definition" and left == a.left:
            if isinstance(left, sp.Symbol) and left.is_integer and right.is_integer is None:
                return None
            return None if _is_symmetry(left, right) else (left, right)
        if a.kind == "definition" or left in sp.sympify(right).atoms(type(left)):
            continue
        again = [other for other, _, _ in told.get(_head(left), ())]
        if isinstance(left, AppliedUndef):
            again += [other for other in sp.sympify(right).atoms(AppliedUndef) if other.func == left.func]
        if again and not all(_are_steps(left, other) for other in again):
            continue
        if sp.sympify(right).has(_head(left)) and not isinstance(left, sp.Indexed | AppliedUndef):
            continue
        if isinstance(left, sp.Symbol) and left.is_integer and right.is_integer is None:
            continue
        return left, right
    return None


def _are_steps(one: Any, two: Any) -> bool:
    """Return whether these are two places of one function, whatever the numbers: F(n) and F(n + 1), F(1) and F(n)."""
    if not isinstance(one, AppliedUndef) or len(one.args) != 1:
        return False
    step = one.args[0] - two.args[0]
    return bool(step.is_Integer and step) or one.args[0].is_Integer or two.args[0].is_Integer


def _is_symmetry(left: Any, right: Any) -> bool:
    """Return whether an equation says of components that they do not change with the order of their indices."""
    if not isinstance(left, sp.Indexed):
        return False
    order = sorted(left.indices, key=str)
    return any(p.base == left.base and sorted(p.indices, key=str) == order for p in right.atoms(sp.Indexed))


def _overlap(one: Any, two: Any, loose: set[Any]) -> bool:
    """Return whether two patterns speak of one component, of which only one holds all places."""
    if not isinstance(one, sp.Indexed):
        return False
    pairs = [*zip(one.indices, two.indices, strict=False)]
    meet = all(p == q or p in loose or q in loose for p, q in pairs)
    return meet and any((p in loose) != (q in loose) for p, q in pairs)


def _is_outcome(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 4


def _is_weight(key: Any) -> bool:
    return isinstance(key, tuple) and key[0] == "weight"


def _is_signed(e: Any) -> bool:
    return e is not None and bool(e.is_nonnegative or e.is_nonpositive)


def _whole(number: Any) -> int:
    if isinstance(number, int):
        return number
    whole = int(CTX.nint(CTX.re(number)))
    if abs(number - whole) > 1e-20:
        raise NoValueError("a place that is no integer")
    return whole


# --- numbers -------------------------------------------------------------------------------------


def _shortest(columns: list[list[Any]], left: list[Any]) -> list[Any]:
    """Return the shortest change that the columns turn into what is left."""
    n = len(left)
    square = CTX.matrix(n, n)
    for i, j in product(range(n), repeat=2):
        square[i, j] = sum((c[i] * CTX.conj(c[j]) for c in columns), CTX.mpf(0))
    trace = sum(square[k, k] for k in range(n))
    for k in range(n):  # equations that say the same twice leave no pivot of their own
        square[k, k] += CTX.mpf(10) ** -25 * trace
    try:
        weights = CTX.lu_solve(square, CTX.matrix(left))
    except ZeroDivisionError as error:
        raise NoModelError("equations that no number changes") from error
    return [sum(CTX.conj(c[k]) * weights[k] for k in range(n)) for c in columns]


# Steps of the rules, and how far they reach: the first is the quickest, the others go further.
_CUTS = 6
_EVEN = tuple(zip((1.5, 2, 3, 4, 8, 16), (11, 45, 45, 45, 45, 45), strict=True))
_REACH = {"line": 6, "half": 5, "long half": 4.5, "interval": 3.5}
_BENT = (6, 10, 16, 24, 40, 60)


@lru_cache(maxsize=64)
def _unit_nodes(kind: str, cut: int) -> tuple[tuple[Any, Any], ...]:
    """Return places and weights of a rule for the line, the half line or the interval from -1 to 1."""
    parts, reach = _EVEN[cut] if kind == "even" else (_BENT[cut], _REACH[kind])
    step, last = 1 / CTX.mpf(parts), int(reach * parts)
    return tuple(_node(kind, (k + CTX.mpf(1) / 3) * step, step) for k in range(-last, last + 1))


def _node(kind: str, t: Any, step: Any) -> tuple[Any, Any]:
    bend, slope = CTX.pi / 2 * CTX.sinh(t), CTX.pi / 2 * CTX.cosh(t)
    if kind == "even":
        return t, step
    if kind == "line":
        return CTX.sinh(t), step * CTX.cosh(t)
    if kind == "half":
        x = CTX.exp(t - CTX.exp(-t))
        return x, step * x * (1 + CTX.exp(-t))
    if kind == "long half":
        return CTX.exp(bend), step * slope * CTX.exp(bend)
    return CTX.tanh(bend), step * slope / CTX.cosh(bend) ** 2


def _nodes(low: Any, high: Any, cut: int, slow: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield places from low to high and their weights; `slow` for what falls off slowly on the way to infinity."""
    half = "long half" if slow else "half"
    if low == -CTX.inf and high == CTX.inf:
        yield from _unit_nodes("line" if slow else "even", cut)
    elif high == CTX.inf:
        yield from ((low + x, w) for x, w in _unit_nodes(half, cut))
    elif low == -CTX.inf:
        yield from ((high - x, w) for x, w in _unit_nodes(half, cut))
    else:
        middle, radius = (low + high) / 2, (high - low) / 2
        yield from ((middle + radius * x, radius * w) for x, w in _unit_nodes("interval", cut))


def _quadrature(function: Callable[[Any], Any], low: Any, high: Any) -> tuple[Any, Any]:
    """Return an integral and that of the absolute value, by finer and finer rules until two agree.

    Poles and divergent parts do not settle.
    """
    if low == high:
        return CTX.mpf(0), CTX.mpf(0)
    for slow in (False, True) if CTX.inf in (-low, high) else (False,):
        before = None
        for cut in range(_CUTS):
            terms = [w * function(x) for x, w in _nodes(low, high, cut, slow)]
            total, mass = sum(terms), sum(map(abs, terms))
            if max(abs(terms[0]), abs(terms[-1])) > 1e-14 * mass and cut:
                break
            if before is not None and abs(total - before) <= 1e-14 * mass:
                return total, mass
            before = total
    raise DivergesError("a quadrature that does not settle")


@lru_cache(maxsize=8)
def _stencil(order: int) -> tuple[Any, ...]:
    """Return the weights of 13 equally spaced places that give a derivative of polynomials exactly."""
    places = range(-6, 7)
    powers = CTX.matrix([[CTX.mpf(k) ** p for k in places] for p in range(13)])
    wanted = CTX.matrix([math.factorial(order) if p == order else 0 for p in range(13)])
    return tuple(CTX.lu_solve(powers, wanted))


def _slope(function: Callable[[Any], Any], here: Any, order: int) -> Any:
    step = CTX.mpf(2) ** -9
    terms = (w * function(here + k * step) for k, w in zip(range(-6, 7), _stencil(order), strict=True))
    return sum(terms) / step**order


def _extrapolated(values: list[Any]) -> Any:
    """Return the limit of values whose distance from it is a series in 1/2^k."""
    rows = [values]
    for power in range(1, len(values)):
        last = rows[-1]
        rows.append([b + (b - a) / (2**power - 1) for a, b in pairwise(last)])
    best, near = rows[-1][0], rows[-2][-1]
    if abs(best - near) > 1e-9 * max(1e-9, abs(best)):
        raise NoValueError("a limit that does not settle")
    return best
