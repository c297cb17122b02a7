"""What a line is worth in a model: numbers for its symbols, by the meaning of its signs and by no rule of algebra.

A sum is added term by term, an integral is taken by quadrature, a derivative and a limit from values nearby, an
expectation over a small space or against a density, an unknown function is some smooth function. Nothing here knows
`simplify`, a normal form or a rule: it shows where those err. A number can refute a line; no number proves one.
"""

from __future__ import annotations

import operator
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial, reduce
from itertools import pairwise, product
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.miscellaneous import MinMaxBase
from sympy.matrices.expressions.matexpr import MatrixElement

from linewise.derive.assumptions import Assumption
from linewise.derive.exact import exact
from linewise.derive.expectation import E, RandomVariable, RandomVector, Var, random_atoms

#: Quick numbers, and those that decide where the quick ones differ: a precision of their own, whatever mpmath's is.
QUICK, EXACT = mpmath.fp, mpmath.MPContext()
EXACT.dps = 40
# Terms of an endless sum, and evaluations in all, after which a line has no value.
_MOST_TERMS, _MOST_STEPS = 3000, 200_000
# How finely a quadrature is laid out, one after the other: quick numbers cost little.
_PIECES = {True: ((10, 15), (60, 91), (300, 451)), False: ((4, 7), (16, 25))}
_WEIGHTS = ((1, 2), (1, 3), (1, 6))
#: What numbers may be that have gone through a quadrature or a limit: relative doubt beyond which they tell nothing.
_DOUBTFUL = 1e-4

#: The numbers of a model, by symbol, or by base and place.
Numbers = dict[Any, Any]


class NoValueError(Exception):
    """An expression that has no number in a model: it diverges, or nothing here can evaluate it."""


class DivergesError(NoValueError):
    """An integral that does not settle, or an endless sum whose terms stay as large as they are."""


class MoreDigitsError(NoValueError):
    """An expression whose number needs many digits: a derivative or a limit, by numbers nearby."""


class Model:
    """Numbers for symbols, components and unknown functions, drawn within their assumptions.

    seed : draws another model.  assumptions : definitions, laws and independence, which are in force everywhere.
    numbers : those already known, by symbol or by base and place; more are drawn when they are asked for.
    """

    def __init__(
        self, seed: int = 0, assumptions: Sequence[Assumption] = (), numbers: Numbers | None = None, ctx: Any = QUICK
    ) -> None:
        self.seed, self.ctx, self.assumptions = seed, ctx, tuple(assumptions)
        self.numbers: Numbers = {} if numbers is None else numbers
        self.doubt, self.share, self.size, self.steps = 0.0, 0.0, 0.0, 0
        self.known: dict[Any, Any] = {}
        self.sharper: tuple[Model | None] | None = None
        self.moved = False  # whether the numbers were found by approach
        self._defined: dict[Any, list[Assumption]] = {}
        self._tied: set[Any] = set()
        for a in self.assumptions:
            if assigns(a):
                self._defined.setdefault(_head(a.left), []).append(a)
        for a in self.assumptions:
            if assigns(a):
                continue
            if a.kind == "components":
                self._tied.add(a.left)
            elif a.kind == "moment" or (a.kind == "hypothesis" and not self.can_solve(a)):
                for side in (a.left, a.right):
                    self._tied |= random_atoms(side) | {f.func for f in side.atoms(AppliedUndef)}
        self._laws = {a.left: a.right for a in self.assumptions if a.kind == "law"}
        self._apart = [a.left for a in self.assumptions if a.kind == "independence"]
        self._alike = {x: a.left[0] for a in self.assumptions if a.kind == "same law" for x in a.left}

    def exact(self) -> Model:
        """Return this model with numbers of many digits."""
        numbers = {k: EXACT.convert(v) if isinstance(v, float) else v for k, v in self.numbers.items()}
        return Model(self.seed, self.assumptions, numbers, EXACT)

    def value(self, expression: Any, env: Numbers | None = None) -> Any:
        """Return the number of an expression; raise `NoValueError` where it has none."""
        self.doubt, self.share, self.size, self.steps = 0.0, 0.0, 0.0, 0
        try:
            number = self._of(exact(expression), env or {})
        except OverflowError as error:
            raise MoreDigitsError from error
        except (ArithmeticError, ValueError, TypeError, RecursionError, mpmath.libmp.NoConvergence) as error:
            raise NoValueError(str(error)) from error
        if not self._finite(number):
            raise NoValueError("no finite number")
        return number

    def can_solve(self, a: Assumption) -> bool:
        """Return whether numbers can be found that satisfy an equation: it speaks of no expectation, and of no function
        but defined ones."""
        unknown = {f.func for side in (a.left, a.right) for f in side.atoms(AppliedUndef)} - set(self._defined)
        if random_atoms(a.left) or random_atoms(a.right):  # what holds at every outcome ties the random numbers
            return False
        return not unknown and not any(side.has(E, Var, sp.Derivative, sp.Limit) for side in (a.left, a.right))

    def is_first(self, a: Assumption) -> bool:
        """Return whether an assumption is what the model takes for the meaning of its left side."""
        return assigns(a) and self._defined[_head(a.left)][0] == a

    def inside(self, expression: Any, env: Numbers) -> Any:
        """Return the number of an expression in which some symbols stand for other numbers."""
        return self.value(expression, env)

    def forget(self) -> None:
        """Forget what lines are worth, since a number has changed."""
        self.known.clear()

    # --- numbers ------------------------------------------------------------------------------

    def _finite(self, number: Any) -> bool:
        return bool(self.ctx.isfinite(number)) if hasattr(self.ctx, "isfinite") else abs(number) < mpmath.inf

    def _real(self, number: Any) -> Any:
        if isinstance(number, complex | self.ctx.mpc):
            if abs(number.imag) > 1e-12 * (1 + abs(number)):
                raise NoValueError("no real number")
            return number.real
        return number

    def _whole(self, number: Any) -> int:
        number = self._real(number)
        if abs(number - round(number)) > 1e-9:
            raise NoValueError("no integer")
        return round(number)

    def _drawn(self, key: Any, symbol: Any) -> Any:
        """Return the number of a symbol or component, drawn at the first use."""
        if key not in self.numbers:
            number = draw(symbol, key, self.seed)
            if symbol.is_integer and symbol.is_positive and symbol.is_Symbol:  # different lengths stay different
                others = {v for k, v in self.numbers.items() if isinstance(v, int) and getattr(k, "is_positive", False)}
                free = [n for n in (number, 2, 3, 4, 5, 6) if n not in others and fits(sp.Integer(n), symbol)]
                number = sp.Integer((free or [number])[0])
            self.numbers[key] = self.ctx.mpf(number.p) / number.q if not number.is_Integer else int(number)
        return self.numbers[key]

    # --- the meaning of each sign -----------------------------------------------------------------

    def _of(self, e: Any, env: Numbers) -> Any:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise NoValueError("too long")
        handler = _HANDLERS.get(type(e))
        if handler is None:
            handler = _HANDLERS[type(e)] = _handler_of(e)
        return handler(self, e, env)

    def _symbol(self, e: Any, env: Numbers) -> Any:
        if e in env:
            return env[e]
        if e in self._defined:
            return self._of(self._defined[e][0].right, env)
        return self._drawn(e, e)

    def _indexed(self, e: Any, env: Numbers) -> Any:
        place = tuple(self._whole(self._of(i, env)) for i in e.indices)
        if (e.base, place) in env:
            return env[e.base, place]
        if e.base in env:  # a random vector, at an outcome
            return env[e.base](place)
        for a in self._defined.get(e.base, ()):
            inner = self._matched(a.left.indices, place, env, a.every)
            if inner is not None:
                return self._of(a.right, inner)
        return self._drawn((e.base, place), e)

    def _matched(self, pattern: Any, place: Any, env: Numbers, every: Any) -> Numbers | None:
        """Return the numbers with those of a pattern's own symbols, or None where the place is another one.

        A pattern such as n + 1 is met by every number that leaves an n of the right kind.
        """
        own: Numbers = {}
        for p, k in zip(pattern, place, strict=True):
            symbol = next(iter(p.free_symbols & every), None)
            if symbol is None or p == symbol:
                found = k
            elif (p - symbol).is_Integer:
                found = k - int(p - symbol)
            else:
                return None
            if symbol is None:
                if abs(self._of(p, env) - k) > 1e-12:
                    return None
            elif (symbol in own and own[symbol] != found) or (symbol.is_integer and symbol.is_positive and found < 1):
                return None
            else:
                own[symbol] = found
        return {**env, **own}

    def _function(self, e: Any, env: Numbers) -> Any:
        if e.func in self._tied:
            raise NoValueError("known by an equation alone")
        arguments = tuple(self._of(a, env) for a in e.args)
        for a in self._defined.get(e.func, ()):
            inner = self._matched(a.left.args, arguments, env, a.every)
            if inner is not None:
                return self._of(a.right, inner)
        c = [_share(self.seed, str(e.func), k) for k in range(4 + len(arguments))]
        inner_sum = sum((k * a for k, a in zip(c[4:], arguments, strict=True)), self.ctx.mpf(0))
        wave, ripple = self._apply("sin", inner_sum + c[2]), self._apply("cos", 2 * inner_sum)
        number = c[0] + (0.2 + c[1]) * wave + c[3] * ripple / 3
        return self._apply("exp", number) if e.is_positive or e.is_nonnegative else number

    def _apply(self, name: str, x: Any) -> Any:
        """Return a function of a number, or of many at once."""
        return _on_arrays(name)(x) if isinstance(x, np.ndarray) else getattr(self.ctx, name)(x)

    def _entry(self, e: Any, env: Numbers) -> Any:
        place = tuple(self._whole(self._of(i, env)) for i in e.indices)
        if not isinstance(e.parent, sp.MatrixSymbol):
            raise NoValueError("entry of a product")
        return self._drawn((e.parent, place), e)

    def _add(self, e: Any, env: Numbers) -> Any:
        return reduce(operator.add, (self._of(a, env) for a in e.args))

    def _mul(self, e: Any, env: Numbers) -> Any:
        total, exponent = 1, None
        for a in e.args:
            if isinstance(a, sp.exp):  # together, since one alone may be too large
                exponent = self._of(a.exp, env) if exponent is None else exponent + self._of(a.exp, env)
            else:
                total = total * self._of(a, env)
        if exponent is None:
            return total
        return total * self._apply("exp", exponent)

    def _pow(self, e: Any, env: Numbers) -> Any:
        base, exponent = self._of(e.base, env), self._of(e.exp, env)
        if isinstance(base, np.ndarray) or isinstance(exponent, np.ndarray):
            return np.power(base, float(exponent) if isinstance(exponent, int) else exponent)
        if isinstance(exponent, int):
            if exponent < 0 and isinstance(base, int):
                base = self.ctx.mpf(base)
            return base**exponent
        if base == 0 and (exponent.real if isinstance(exponent, complex | self.ctx.mpc) else exponent) <= 0:
            raise NoValueError("0 to a power that is not positive")
        if e.exp == sp.S.Half:
            return self.ctx.sqrt(base)
        return self.ctx.power(base, exponent) if base != 0 else self.ctx.mpf(0)

    def _range(self, limit: Any, env: Numbers) -> range:
        if len(limit) != 3:
            raise NoValueError("no ends")
        low, high = self._whole(self._of(limit[1], env)), self._of(limit[2], env)
        if high == mpmath.inf:
            return range(low, low + _MOST_TERMS)
        return range(low, self._whole(high) + 1)

    def _places(self, limits: Sequence[Any], env: Numbers) -> Iterator[Numbers]:
        """Yield the numbers of the indices; an empty range has none."""
        if not limits:
            yield env
            return
        for k in self._range(limits[-1], env):
            yield from self._places(limits[:-1], {**env, limits[-1][0]: k})

    def _sum(self, e: Any, env: Numbers) -> Any:
        endless = any(limit[2] == sp.oo for limit in e.limits)
        if endless and len(e.limits) > 1:  # the first of the inner sums, which has to have a number
            name, low, _ = e.limits[-1]
            self._sum(sp.Sum(e.function, *e.limits[:-1]), {**env, name: self._whole(self._of(low, env))})
            raise NoValueError("an endless sum")
        total, small, totals = self.ctx.mpf(0) if endless else 0, 0, []
        for inner in self._places(e.limits, env):
            term = self._of(e.function, inner)
            total = total + term
            if endless:
                totals.append(total)
                small = small + 1 if abs(term) <= 1e-17 * (1e-9 + abs(total)) else 0
                if small > 8:
                    return total
        if endless:
            raise self._unsettled(totals, lambda k: self._of(e.function, {**env, e.limits[0][0]: k}), _is_plain(e))
        return total

    def _unsettled(self, totals: Sequence[Any], term: Callable[[Any], Any], plain: bool) -> NoValueError:
        """Return what an endless sum raises: that it diverges, or that its number is not known."""
        if _goes_on(totals) or (plain and _gains_slowly(totals) and _falls_too_slowly(term, None, 1, self.ctx)):
            return DivergesError("an endless sum that does not settle")
        return NoValueError("an endless sum")

    def _product(self, e: Any, env: Numbers) -> Any:
        if any(limit[2] == sp.oo for limit in e.limits):
            raise self._endless_product(e, env)
        return reduce(operator.mul, (self._of(e.function, inner) for inner in self._places(e.limits, env)), 1)

    def _endless_product(self, e: Any, env: Numbers) -> NoValueError:
        """Return what an endless product raises: that it diverges as the sum of what its factors are beyond 1 does."""
        if len(e.limits) == 1:
            total, beyond = self.ctx.mpf(1), [self.ctx.mpf(0)]
            for inner in self._places(e.limits, env):
                factor = self._of(e.function, inner)
                total, beyond = total * factor, [*beyond, beyond[-1] + factor - 1]
            if abs(total) > 1e-9 and _goes_on(beyond):
                return DivergesError("an endless product that does not settle")
        return NoValueError("an endless product")

    def _integral(self, e: Any, env: Numbers) -> Any:
        if any(len(limit) != 3 for limit in e.limits):
            raise NoValueError("no ends")
        return self._quadrature(e.function, e.limits, env)

    def _quadrature(self, function: Any, limits: Sequence[Any], env: Numbers) -> Any:
        if not limits:
            return self._of(function, env)
        name, *ends = limits[-1]
        low, high = (self._real(self._of(end, env)) for end in ends)
        if low == high:
            return self.ctx.mpf(0)
        sign = 1
        if low > high:
            low, high, sign = high, low, -1
        plain = len(limits) == 1 and _is_plain(function)
        return sign * self.integral(
            lambda x: self._quadrature(function, limits[:-1], {**env, name: x}), low, high, plain=plain
        )

    def integral(self, function: Callable[[Any], Any], low: Any, high: Any, *, plain: bool = False) -> Any:
        """Integrate by two rules of quadrature; where they differ, the number is in doubt.

        The doubt is what refuses poles and divergent parts.
        """
        for pieces in _PIECES[self.ctx is QUICK]:
            (first, _), (second, mass) = (_gauss(function, low, high, cuts, self.ctx) for cuts in pieces)
            off = abs(first - second)
            if off <= 1e-9 * mass:
                break
        if not off <= _DOUBTFUL * mass:
            kind = DivergesError if _is_endless(function, low, high, self.ctx, plain) else NoValueError
            raise kind("a quadrature that does not settle")
        self._doubtful(float(off), second)
        return second

    def _derivative(self, e: Any, env: Numbers) -> Any:
        return self._slope(e.expr, [v for v, count in e.variable_count for _ in range(int(count))], env)

    def _slope(self, function: Any, variables: list[Any], env: Numbers) -> Any:
        """Return a derivative from four values nearby, with the doubt that their distance and their digits leave."""
        if not variables:
            return self._of(function, env)
        *others, variable = variables
        if isinstance(variable, sp.Indexed):
            key: Any = (variable.base, tuple(self._whole(self._of(i, env)) for i in variable.indices))
        else:
            key = variable
        if variable.is_integer or not isinstance(variable, sp.Symbol | sp.Indexed):
            raise NoValueError("a derivative by that")
        here, size = self._of(variable, env), self._of(function, env)
        if self.ctx is QUICK:
            step, left = (4e-3, 1e-7) if others else (1e-3, 1e-9)
        else:
            step, left = (EXACT.mpf(10) ** -8, 1e-20) if others else (EXACT.mpf(10) ** -10, 1e-24)
        self._doubtful(left * float(abs(size)), size)
        return sum(
            c * self._slope(function, others, {**env, key: here + k * step})
            for k, c in ((-2, 1), (-1, -8), (1, 8), (2, -1))
        ) / (12 * step)

    def _limit(self, e: Any, env: Numbers) -> Any:
        quick = self.ctx is QUICK
        function, name, at, side = e.args
        at = self._of(at, env)
        sides = (1, -1) if str(side) == "+-" else (1 if str(side) == "+" else -1,)
        found = []
        for sign in sides:
            if abs(at) == mpmath.inf:
                whole = name.is_integer
                nearer = [
                    self.ctx.mpf(10) ** k * (1 if at > 0 else -1) for k in ((1, 2, 3, 4) if quick else (1, 2, 3, 6, 9))
                ]
                places = [int(p) for p in nearer] if whole else nearer
            else:
                places = [at + sign * self.ctx.mpf(10) ** -k for k in ((1, 2, 3) if quick else (3, 4, 6, 9))]
            found.append(self._settled([partial(self._of, function, {**env, name: p}) for p in places]))
        if any(abs(f - found[0]) > 1e-3 * (1e-6 + abs(found[0])) for f in found):
            raise NoValueError("two sides")
        return found[0]

    def _settled(self, values: Sequence[Callable[[], Any]]) -> Any:
        """Return what a sequence of values approaches, with the doubt that remains."""
        known: list[Any] = []
        for value in values:
            try:
                known.append(value())
            except NoValueError:
                break
        if len(known) < 3:
            raise NoValueError("no limit")
        a, b, c = known[-3:]
        last, before = abs(c - b), abs(b - a)
        if last > max(before / 2, 1e-12 * abs(c)):
            raise NoValueError("no limit")
        self._doubtful(float(last * last / before) if before else 0.0, c)
        return c

    def _doubtful(self, off: float, number: Any) -> None:
        """Note how far off a number may be that a quadrature or an approach has given."""
        self.doubt += 10 * off
        size = float(abs(number))
        self.size = max(self.size, size)
        if off:
            self.share = max(self.share, off / size if size else 1.0)

    def _subs(self, e: Any, env: Numbers) -> Any:
        return self._of(e.expr, {**env, **{v: self._of(p, env) for v, p in zip(e.variables, e.point, strict=True)}})

    # --- expectation ------------------------------------------------------------------------------

    def _expectation(self, e: Any, env: Numbers) -> Any:
        argument = e.args[0]
        atoms = {a for a in self._random_atoms(argument) if a not in env}
        if not atoms:
            return self._of(argument, env)
        if atoms & self._tied:
            raise NoValueError("known by its moments alone")
        if atoms & set(self._laws):
            if len(atoms) > 1:
                raise NoValueError("a joint law")
            (variable,) = atoms
            density, low, high = self._laws[variable]
            low, high = (self._real(self._of(end, env)) for end in (low, high))

            def weighted(x: Any) -> Any:
                inner = {**env, variable: x}
                return self._of(argument, inner) * self._of(density, inner)

            return self.integral(weighted, low, high)
        groups = self._groups(atoms)
        total = self.ctx.mpf(0)
        for outcome in product(range(len(_WEIGHTS)), repeat=len(groups)):
            weight = self.ctx.mpf(1)
            inner = dict(env)
            for k, group in zip(outcome, groups, strict=True):
                weight = weight * _WEIGHTS[k][0] / _WEIGHTS[k][1]
                inner |= {a: self._outcome(a, k) for a in group}
            total = total + weight * self._of(argument, inner)
        return total

    def _random_atoms(self, e: Any) -> set[Any]:
        """The random atoms of an expression, and of what its symbols stand for."""
        found, seen, todo = set(), set(), [e]
        while todo:
            part = todo.pop()
            found |= {a for a in random_atoms(part) if a not in self._defined}
            for symbol in part.free_symbols | {f.func for f in part.atoms(AppliedUndef)}:
                head = symbol.base if isinstance(symbol, sp.Indexed) else symbol
                if head in self._defined and head not in seen:
                    seen.add(head)
                    todo += [a.right for a in self._defined[head]]
        return found

    def _outcome(self, atom: Any, k: int) -> Any:
        name = self._alike.get(atom, atom)
        if isinstance(atom, RandomVector):
            return lambda place: self._drawn((name, place, k), atom[place])
        return self._drawn((name, k), atom)

    def _groups(self, atoms: set[Any]) -> list[list[Any]]:
        """Sort random atoms into groups that are independent of one another."""
        groups: list[list[Any]] = []
        for atom in sorted(atoms, key=str):
            mine = [g for g in groups if any(not self._are_apart(atom, other) for other in g)]
            groups = [g for g in groups if g not in mine] + [[a for g in mine for a in g] + [atom]]
        if any(self._are_apart(a, b) for g in groups for a in g for b in g if a != b):
            raise NoValueError("independent in part")
        return groups

    def _are_apart(self, one: Any, two: Any) -> bool:
        return any(
            one in g and two in h for groups in self._apart for g in groups for h in groups if g is not h
        )  # fmt: skip

    def _variance(self, e: Any, env: Numbers) -> Any:
        """Return the mean square of the distance from the mean, which is not negative, whatever the argument is."""
        x = e.args[0]
        size, mean = E(x * sp.conjugate(x), evaluate=False), E(x, evaluate=False)
        return self._expectation(size, env) - abs(self._expectation(mean, env)) ** 2


def _goes_on(totals: Sequence[Any]) -> bool:
    """Return whether a sum gains as much by its last terms as by those before, half as many."""
    last = len(totals) - 1
    late, early = totals[last] - totals[last // 2], totals[last // 2] - totals[last // 4]
    ends = totals[last] - totals[last - 1], totals[last // 2] - totals[last // 2 - 1]
    return any(abs(one) >= 0.98 * abs(two) > 0 for one, two in ((late, early), ends))


def _gains_slowly(totals: Sequence[Any]) -> bool:
    """Return whether the terms of a sum have one sign, and its last ones add up to most of what half as many did."""
    last = len(totals) - 1
    terms = [two - one for one, two in pairwise(totals[last // 4 :])]
    late, early = totals[last] - totals[last // 2], totals[last // 2] - totals[last // 4]
    return (all(t == abs(t) for t in terms) or all(t == -abs(t) for t in terms)) and abs(late) >= 0.75 * abs(early)


def _head(symbol: Any) -> Any:
    if isinstance(symbol, AppliedUndef):
        return symbol.func
    return symbol.base if isinstance(symbol, sp.Indexed) else symbol


def assigns(a: Assumption) -> bool:
    """Return whether an assumption says what one thing is, of which its other side does not speak."""
    if a.kind not in ("definition", "hypothesis") or not isinstance(a.left, sp.Symbol | sp.Indexed | AppliedUndef):
        return False
    if a.kind == "hypothesis" and isinstance(a.left, AppliedUndef):
        return False
    right = exact(a.right)
    parts = right.free_symbols | {f.func for f in right.atoms(AppliedUndef)}
    return _head(a.left) not in {_head(part) for part in parts}


@lru_cache(maxsize=4096)
def _share(seed: int, name: str, k: int) -> float:
    """A number between 0 and 1 that depends on its names alone."""
    return random.Random(zlib.crc32(f"{seed} {name} {k}".encode())).random()


#: What a model may try for an integer, and for any number; the first ones are small and apart.
_NUMBERS = [sp.Rational(p, q) for p, q in ((7, 5), (3, 4), (9, 8), (1, 3), (12, 7), (2, 5), (19, 9), (5, 8))]
_SPECIAL = [sp.Integer(0), sp.Integer(1), sp.Integer(-1), sp.Rational(1, 2), sp.Integer(2)]


def draw(symbol: Any, key: Any, seed: int) -> sp.Rational:
    """Draw a number that satisfies what is assumed of a symbol; a negative seed draws special ones, such as 0."""
    draws = random.Random(zlib.crc32(f"{seed} {key}".encode()))
    integer = symbol.is_integer
    for _ in range(200):
        if integer and symbol.is_positive:  # the length of a sum
            number = sp.Integer(draws.choice((2, 3, 4) if seed >= 0 else (1,) if seed == -1 else (1, 2, 3)))
        elif integer:  # an index: small, so that two of them meet
            number = sp.Integer(draws.choice((1, 2, 0) if symbol.is_nonnegative else (1, 2)))
        elif seed < 0:
            number = draws.choice(_SPECIAL)
        else:
            number = draws.choice(_NUMBERS) + sp.Rational(draws.randint(-20, 20), 97)
            if seed % 100 > 9:
                number /= draws.choice((1, 4, 30))
        if symbol.is_nonpositive or (not integer and not symbol.is_nonnegative and draws.random() < 0.4):
            number = -number
        if fits(number, symbol):
            return number
    for number in (sp.Rational(1, 3), sp.Integer(2), sp.Integer(-2), sp.Integer(7)):
        if fits(number, symbol):
            return number
    raise NoValueError(f"no number for {symbol}")


def fits(number: sp.Rational, symbol: Any) -> bool:
    """Return whether a number is what is assumed of a symbol."""
    return all(getattr(number, f"is_{name}", None) == truth for name, truth in _asked(symbol))


@lru_cache(maxsize=4096)
def _asked(symbol: Any) -> tuple[tuple[str, bool], ...]:
    known = symbol.assumptions0
    if isinstance(symbol, sp.Indexed):
        known = {name: truth for name in ("integer", "positive", "nonnegative", "nonzero", "negative")
                 if (truth := getattr(symbol, f"is_{name}")) is not None}  # fmt: skip
    return tuple((n, t) for n, t in known.items() if n not in ("commutative", "finite", "infinite"))


@lru_cache(maxsize=64)
def _nodes(ctx: Any) -> tuple[tuple[Any, Any], ...]:
    """Nodes and weights of Gauss and Legendre on (-1, 1)."""
    degree = 12
    found = []
    for k in range(degree):
        x = EXACT.cos(EXACT.pi * (k + 0.75) / (degree + 0.5))
        for _ in range(12):
            p, slope = EXACT.mpf(1), EXACT.mpf(0)
            before = EXACT.mpf(0)
            for n in range(1, degree + 1):
                p, before = ((2 * n - 1) * x * p - (n - 1) * before) / n, p
            slope = degree * (x * p - before) / (x * x - 1)
            x -= p / slope
        found.append((x, 2 / ((1 - x * x) * slope**2)))
    return (
        tuple((ctx.convert(x), ctx.convert(w)) for x, w in found)
        if ctx is EXACT
        else tuple((float(x), float(w)) for x, w in found)
    )


@lru_cache(maxsize=512)
def _places_of(low: Any, high: Any, pieces: int, ctx: Any) -> tuple[list[Any], list[Any]]:
    """Return places and weights of a quadrature, piece by piece; what is steep or endless at the ends has many places.

    An odd number of pieces is laid out lopsidedly, so that no pole vanishes by symmetry.
    """
    one = 1.0 if ctx is QUICK else EXACT.mpf(1)
    inner = one * (pieces % 2) * 19 / 50
    if abs(low) == mpmath.inf or abs(high) == mpmath.inf:
        middle = inner if low == -high else low + one if high == mpmath.inf else high - one
    else:
        middle = low + (high - low) * (one / 2 - inner / 4)
    places, weights, half = [], [], one / (2 * pieces)
    for end, sign in ((low, -1), (high, 1)):
        endless = abs(end) == mpmath.inf
        width = 1 if endless else abs(end - middle)
        if width == 0:
            continue
        for piece in range(pieces):
            centre = (2 * piece + 1) * half
            for node, weight in _nodes(ctx):
                s = centre + half * node
                if endless:  # from the middle outwards
                    stretch = 1 + sign * inner
                    off, factor = stretch * s / (1 - s), stretch / (1 - s) ** 2
                else:  # the nodes crowd at the end
                    off, factor = width * (1 - (1 - s) ** 3), 3 * width * (1 - s) ** 2
                places.append(middle + sign * off)
                weights.append(weight * half * factor)
    return places, weights


def _without_tails(places: Any, parts: Any) -> Any:
    """Take for 0 what is too large or small for quick numbers far out, where all around it has died away."""
    bad = ~np.isfinite(parts)
    if not bad.any():
        return parts
    near = np.abs(places) < np.min(np.abs(places[bad]))
    mass = np.sum(np.abs(parts[near])) if near.any() else 0.0
    rest = parts[~near & ~bad]
    outermost = parts[near][np.argsort(np.abs(places[near]))[-8:]] if near.any() else parts[near]
    if mass > 0 and np.all(np.abs(rest) < 1e-18 * mass) and np.all(np.abs(outermost) < 1e-18 * mass):
        return np.where(bad, 0.0, parts)
    raise MoreDigitsError


def _gauss(function: Callable[[Any], Any], low: Any, high: Any, pieces: int, ctx: Any) -> tuple[Any, Any]:
    """Return an integral by the places and weights of a quadrature, and that of the modulus, which is its scale.

    With quick numbers all places are taken at once, where that can be done.
    """
    places, weights = _places_of(low, high, pieces, ctx)
    if ctx is QUICK:
        try:
            with np.errstate(all="ignore"):
                parts = np.array(weights) * function(np.array(places))
            parts = _without_tails(np.array(places), parts)
            total = np.sum(parts)
            return (complex(total) if np.iscomplexobj(total) else float(total)), float(np.sum(np.abs(parts)))
        except MoreDigitsError:
            raise
        except (ArithmeticError, ValueError, TypeError, NoValueError):
            pass  # a function of one number at a time
    parts = [w * function(x) for x, w in zip(places, weights, strict=True)]
    return sum(parts, ctx.mpf(0)), sum((abs(part) for part in parts), ctx.mpf(0))


def _is_endless(function: Callable[[Any], Any], low: Any, high: Any, ctx: Any, plain: bool = False) -> bool:
    """Return whether an integral diverges: towards an end, or around a place within, it gains as much at every scale.

    A peak that a quadrature misses, and a slow end, are none. Of a plain function the end is compared with logarithms.
    """

    def size(x: Any) -> Any:
        try:
            found = function(x)
        except OverflowError as error:
            raise MoreDigitsError from error
        except (ArithmeticError, NoValueError):
            return ctx.mpf(0), False
        if ctx is QUICK and not np.isfinite(found):
            raise MoreDigitsError
        return abs(found), found.real > 0

    for end, sign in ((low, 1), (high, -1)):
        gains, signs, heights = [], set(), []
        for k in (4, 6, 8):
            scale = ctx.mpf(10) ** (k if abs(end) == mpmath.inf else -k)
            first = -sign * scale if abs(end) == mpmath.inf else sign * scale + end
            found = [size(first + (first if abs(end) == mpmath.inf else sign * scale) * j / 24) for j in range(24)]
            signs |= {positive for _, positive in found}
            heights.append(max(height for height, _ in found))
            gains.append(heights[-1] * scale)
        waves = len(signs) > 1 and abs(end) == mpmath.inf
        if (later := heights if waves else gains)[2] >= 0.98 * later[1] > 0:
            return True
        is_slow = plain and len(signs) == 1 and later[2] >= 0.5 * later[1] > 0
        if is_slow and _falls_too_slowly(function, None if abs(end) == mpmath.inf else end, -sign if
                                         abs(end) == mpmath.inf else sign, ctx):  # fmt: skip
            return True
    places = sorted(_places_of(low, high, 10, ctx)[0])
    k = max(range(1, len(places) - 1), key=lambda k: size(places[k])[0])
    at, step, gains = places[k], (places[k + 1] - places[k - 1]) / 2, []
    for _ in range(30):
        at = max((at - step, at, at + step), key=lambda x: size(x)[0])
        step /= 2
        gains.append(size(at)[0] * step)
    return bool(sum(gains[20:]) >= 0.8 * sum(gains[10:20]) > 0)


def _falls_too_slowly(function: Callable[[Any], Any], end: Any, side: int, ctx: Any) -> bool:
    """Return whether a function of one sign has no integral towards an end, by the test of Bertrand.

    Beyond 1/t it falls as (log t)^-p (log log t)^-q, where t goes to infinity, or is one over the distance from the
    end: the integral diverges if p < 1, or p = 1 and q <= 1. Both are read off at two places, far out.

    >>> def slow(p, q):
    ...     return lambda t: 1 / (t * EXACT.log(t) ** p * EXACT.log(EXACT.log(t)) ** q)
    >>> [_falls_too_slowly(slow(p, q), None, 1, EXACT) for p, q in ((0.5, 2), (1, 0), (1, 1), (1, 2), (1.5, 0))]
    [True, True, True, False, False]
    """
    if ctx is QUICK:
        raise MoreDigitsError
    far = (1_000, 100_000) if end is None or end == 0 else (300, 1_000)

    def mass(t: Any) -> Any:  # the logarithm of the function times t, or times the distance, at the logarithm t
        place = EXACT.exp(t) if end is None else EXACT.exp(-t)
        return EXACT.log(abs(function(side * place if end is None else end + side * place)) * place)

    try:
        with EXACT.workdps(50 if far[1] > 1_000 else 600):
            steps = [(mass(t * EXACT.mpf("1.01")) - mass(t * EXACT.mpf("0.99"))) / (EXACT.mpf(t) / 50) for t in far]
            near, more = (-t * step for t, step in zip(far, steps, strict=True))
            one, two = (1 / EXACT.log(t) for t in far)
    except (ArithmeticError, ValueError, NoValueError):
        return False
    second = (near - more) / (one - two)
    first = more - second * two
    if max(abs(near), abs(more)) > 50:  # another power than 1
        return bool(more < 0)
    return bool(first < 0.9 or (first < 1.1 and second < 1.2))


def _is_plain(function: Any) -> bool:
    """Return whether an expression can be evaluated far out: it has powers, logarithms and moduli alone."""
    return not function.has(E, Var, sp.Integral, sp.Limit, sp.Derivative, sp.Subs) and all(
        isinstance(f, sp.log | sp.Abs) for f in function.atoms(sp.Function)
    )


_NAMED: Mapping[str, str] = {
    name: name
    for names in (
        ("exp", "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech"),
        ("asin", "acos", "atan", "asinh", "acosh", "atanh", "gamma", "loggamma", "erf", "erfc", "erfi", "factorial"),
        ("binomial", "zeta", "polylog", "floor", "besselj", "besseli", "besselk", "expint", "beta", "re", "im"),
    )
    for name in names
} | {
    "log": "log", "ceiling": "ceil", "RisingFactorial": "rf", "FallingFactorial": "ff", "Ei": "ei", "Abs": "fabs",
    "conjugate": "conj", "polygamma": "psi", "Si": "si", "Ci": "ci", "atan2": "atan2", "LambertW": "lambertw",
    "harmonic": "harmonic", "factorial2": "fac2",
}  # fmt: skip


def _named(name: str) -> Callable[[Model, Any, Numbers], Any]:
    def call(model: Model, e: Any, env: Numbers) -> Any:
        if model.ctx is QUICK and len(e.args) == 1:
            return model._apply(name, model._of(e.args[0], env))
        function = getattr(model.ctx, name, None)
        if function is None and model.ctx is QUICK:
            raise MoreDigitsError
        if function is None:
            raise NoValueError(name)
        return function(*(model._of(a, env) for a in e.args))

    return call


@lru_cache(maxsize=64)
def _on_arrays(name: str) -> Callable[[Any], Any]:
    """Return a function of many numbers at once."""
    known = getattr(np, {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name), None)
    if known is not None and name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
                                      "fabs"):  # fmt: skip
        return known
    single = np.frompyfunc(getattr(QUICK, name), 1, 1)
    return lambda x: single(x).astype(float)


def _no_value(model: Model, e: Any, env: Numbers) -> Any:
    raise NoValueError(f"no number for {type(e).__name__}")


def _number(model: Model, e: Any, env: Numbers) -> Any:
    return model.ctx.mpf(e.p) / e.q


def _constant(model: Model, e: Any, env: Numbers) -> Any:
    return model.ctx.convert(mpmath.mpmathify(sp.N(e, 60))) if model.ctx is EXACT else float(e)


def _delta(model: Model, e: Any, env: Numbers) -> Any:
    return int(abs(model._of(e.args[0], env) - model._of(e.args[1], env)) < 1e-12)


def _extreme(model: Model, e: Any, env: Numbers) -> Any:
    return (max if isinstance(e, sp.Max) else min)(model._real(model._of(a, env)) for a in e.args)


def _piecewise(model: Model, e: Any, env: Numbers) -> Any:
    for part, condition in e.args:
        if _truth(model, condition, env):
            return model._of(part, env)
    raise NoValueError("no piece")


def _truth(model: Model, condition: Any, env: Numbers) -> bool:
    if condition in (sp.true, sp.false):
        return bool(condition)
    if isinstance(condition, sp.And | sp.Or):
        return (all if isinstance(condition, sp.And) else any)(_truth(model, c, env) for c in condition.args)
    if isinstance(condition, sp.Not):
        return not _truth(model, condition.args[0], env)
    if isinstance(condition, sp.core.relational.Relational):
        gap = model._real(model._of(condition.lhs, env) - model._of(condition.rhs, env))
        compare = {"==": gap == 0, "!=": gap != 0, "<": gap < 0, "<=": gap <= 0, ">": gap > 0, ">=": gap >= 0}
        return bool(compare[condition.rel_op])
    raise NoValueError("a condition")


def _sign(model: Model, e: Any, env: Numbers) -> Any:
    x = model._real(model._of(e.args[0], env))
    return (x > 0) - (x < 0)


def _step(model: Model, e: Any, env: Numbers) -> Any:
    x = model._real(model._of(e.args[0], env))
    return sp.Rational(1, 2) if x == 0 else int(x > 0)


def _through(model: Model, e: Any, env: Numbers) -> Any:
    return model._of(e.args[0], env)


def _determinant(model: Model, e: Any, env: Numbers) -> Any:
    matrix = e.args[0]
    if not isinstance(matrix, sp.MatrixBase):
        raise NoValueError("a matrix of letters")
    rows = [[model._of(entry, env) for entry in row] for row in matrix.tolist()]
    return _laplace(rows)


def _laplace(rows: list[list[Any]]) -> Any:
    if not rows:
        return 1
    first, *rest = rows
    return sum((-1) ** k * x * _laplace([row[:k] + row[k + 1 :] for row in rest]) for k, x in enumerate(first))


def _gamma_below(model: Model, e: Any, env: Numbers) -> Any:
    s, x = (model._of(a, env) for a in e.args)
    ends = (0, x) if isinstance(e, sp.lowergamma) else (x, mpmath.inf)
    return EXACT.gammainc(s, *ends) if model.ctx is EXACT else float(mpmath.fp.gammainc(s, *ends))


_HANDLERS: dict[type, Callable[[Model, Any, Numbers], Any]] = {
    E: Model._expectation, Var: Model._variance, sp.Add: Model._add, sp.Mul: Model._mul, sp.Pow: Model._pow,
    sp.Sum: Model._sum, sp.Product: Model._product, sp.Integral: Model._integral, sp.Derivative: Model._derivative,
    sp.Limit: Model._limit, sp.Subs: Model._subs, sp.Indexed: Model._indexed, sp.KroneckerDelta: _delta,
    sp.Piecewise: _piecewise, sp.sign: _sign, sp.Heaviside: _step, sp.UnevaluatedExpr: _through,
    sp.lowergamma: _gamma_below, sp.Determinant: _determinant, sp.uppergamma: _gamma_below,
}  # fmt: skip


def _handler_of(e: Any) -> Callable[[Model, Any, Numbers], Any]:
    """Return how an expression of this type is evaluated."""
    if isinstance(e, sp.Integer):
        return lambda model, e, env: int(e)
    if isinstance(e, sp.Rational):
        return _number
    if e is sp.I:
        return lambda model, e, env: model.ctx.mpc(0, 1)
    if e is sp.oo or e is -sp.oo:
        return lambda model, e, env: mpmath.inf if e is sp.oo else -mpmath.inf
    if isinstance(e, sp.Float):
        return lambda model, e, env: model.ctx.mpf(str(e))
    if isinstance(e, sp.NumberSymbol):
        return _constant
    if isinstance(e, RandomVariable | sp.Symbol):
        return Model._symbol
    if isinstance(e, MatrixElement):
        return Model._entry
    if isinstance(e, AppliedUndef):
        return Model._function
    if isinstance(e, MinMaxBase):
        return _extreme
    name = _NAMED.get(type(e).__name__, "")
    return _named(name) if name else _no_value
