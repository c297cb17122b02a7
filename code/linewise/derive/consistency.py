"""Whether what a chain assumes can hold together, and whether each line means the same under all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations, product
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from linewise.derive.assumptions import Assumption
from linewise.derive.entailment import entailed, factors_of, impossible
from linewise.derive.exact import exact
from linewise.derive.expectation import E, Var, random_atoms
from linewise.derive.models import always_fails, clash, refutation
from linewise.derive.rule import BINDERS, at_one_place, bound_by, contradiction, guard, places

#: The kinds of assumptions that give a value.
_SAID = ("definition", "hypothesis", "moment")


@lru_cache(maxsize=1024)
def conflict(assumptions: tuple[Assumption, ...]) -> str:
    """Return in words which assumptions cannot hold together, and "" if none is found.

    >>> from linewise.derive.expectation import RandomVariable
    >>> X = RandomVariable("X", real=True)
    >>> mean, square = Assumption("moment", E(X), sp.Integer(2)), Assumption("moment", E(X**2), sp.Integer(1))
    >>> conflict((mean,)), conflict((mean, square))
    ('', 'E(X) = 2 and E(X**2) = 1')
    """
    found = (contradiction(assumptions), next(_random(assumptions), ""), next(_unsolved(assumptions), ""))
    return next(filter(None, found), "") or next(impossible(assumptions), "") or clash(assumptions)


def _unsolved(assumptions: Sequence[Assumption]) -> Iterator[str]:
    """Yield which hypotheses give two values to one thing of which no model has a number of its own."""
    equations = [a for a in assumptions if a.kind in ("definition", "hypothesis")]
    simple = (sp.Symbol, sp.Indexed, sp.MatrixSymbol)
    given = tuple(a for a in assumptions if a not in equations and a.kind not in ("moment", "law", "independence"))
    for one, two in combinations(equations, 2):
        if isinstance(one.left, simple) or isinstance(two.left, simple) or "definition" in (one.kind, two.kind):
            continue
        if always_fails(*at_one_place(one, two), "=", given):
            yield f"{one} and {two}"


def _random(assumptions: Sequence[Assumption]) -> Iterator[str]:
    """Yield which assumptions say different things of one random quantity."""
    laws = {a.left: a for a in assumptions if a.kind == "law"}
    for one, two in combinations([a for a in assumptions if a.kind == "law"], 2):
        if one.left == two.left and one.right != two.right:
            yield f"{one} and {two}"
    defined = tuple(a for a in assumptions if a.kind == "definition")
    for law in laws.values():
        if defined and law.right.has(AppliedUndef) and (words := refutation(_mass(law), sp.Integer(1), "=", defined)):
            yield f"{law}, and what else is assumed makes its mass {words}"
    for a in assumptions:
        if a.kind == "same law":
            densities = {v: _of_any(laws[v]) for v in a.left if v in laws}
            if len(set(densities.values())) > 1:
                yield f"{a} and {' and '.join(str(laws[v]) for v in densities)}"
        if a.kind == "definition" and a.left in laws:
            yield f"{a} and {laws[a.left]}"
        if a.kind == "independence":
            yield from _dependent(a, assumptions)
    yield from _moments(assumptions, laws)


def _mass(law: Assumption) -> Any:
    at, (density, low, high) = sp.Dummy("x", real=True), law.right
    return sp.Integral(density.xreplace({law.left: at}), (at, low, high))


def _of_any(law: Assumption) -> Any:
    return law.right.xreplace({law.left: sp.Symbol("of any")})


def _dependent(a: Assumption, assumptions: Sequence[Assumption]) -> Iterator[str]:
    """Yield which definitions make groups dependent that are assumed to be independent."""
    definitions = [d for d in assumptions if d.kind in ("definition", "hypothesis") and random_atoms(d.right)]

    def rests_on(atoms: frozenset[Any]) -> set[Any]:
        found = set(atoms)
        for _ in definitions:
            for d in definitions:
                if random_atoms(d.left) & found and not _is_mean(d.left):
                    found |= random_atoms(d.right)
        return found

    for one, two in combinations(a.left, 2):
        if shared := rests_on(one) & rests_on(two):
            named = [str(d) for d in definitions if (random_atoms(d.left) | random_atoms(d.right)) & shared]
            yield " and ".join([str(a), *named])


def _is_mean(expression: Any) -> bool:
    return isinstance(expression, E)


def _moments(assumptions: Sequence[Assumption], laws: dict[Any, Assumption]) -> Iterator[str]:
    """Yield which expectations are known as two different numbers, or as numbers that no random quantity has."""
    known = [a for a in assumptions if a.kind in ("moment", "hypothesis") and _is_mean(a.left)]
    given = tuple(a for a in assumptions if a.kind not in ("moment", "law", "independence") and a not in known)
    for a in known:
        argument = a.left.args[0]
        for variable in random_atoms(argument) & set(laws):
            if random_atoms(argument) == {variable} and not random_atoms(a.right):
                at = sp.Dummy("x", real=True)
                density, low, high = laws[variable].right
                mean = sp.Integral((argument * density).xreplace({variable: at}), (at, low, high))
                fails = (
                    bool(refutation(mean, a.right, "=", given)) if a.every else always_fails(mean, a.right, "=", given)
                )
                if fails:
                    yield f"{a} and {laws[variable]}"
    values = {a.left.args[0]: a for a in known}
    apart = [a.left for a in assumptions if a.kind == "independence"]
    for a in known:  # E[XY] = E[X] E[Y]
        factors = sp.Mul.make_args(a.left.args[0])
        if len(factors) == 2 and all(f in values for f in factors) and _separated(factors[0], factors[1], apart):
            parts = [values[f] for f in factors]
            if always_fails(a.right, parts[0].right * parts[1].right, "=", given):
                yield " and ".join(map(str, (a, *parts, "independence")))
    for one, two in combinations(known, 2):
        at_one = _as_one(one, two)
        if at_one is not None and always_fails(*at_one, "=", given):
            yield f"{one} and {two}"
    yield from _negative_squares(known, assumptions, given)


#: Up to how many quantities a square is taken of, and up to how many factors a known product may have.
_MOST_TERMS, _MOST_FACTORS = 4, 6


def _negative_squares(
    known: Sequence[Assumption], assumptions: Sequence[Assumption], given: tuple[Assumption, ...]
) -> Iterator[str]:
    """Yield which expectations make that of a square negative: E[w (a f + b g + ...)^2], w a number that never is.

    The expectations E[w f g] are a positive semidefinite matrix: of the powers of one random number that of Hankel, of
    two numbers the inequality of Cauchy and Schwarz. One of them on the diagonal that is not known may be as large as
    it needs to be.
    """
    spreads = [a for a in assumptions if a.kind == "hypothesis" and isinstance(a.left, Var)]
    arguments = {_at_places(a): a for a in (*known, *spreads)}
    if len(arguments) < 2:
        return
    values = {sp.expand(a.left.args[0] ** 2): a.right + E(a.left.args[0]) ** 2 for a in spreads}
    values |= {sp.expand(_at_places(a)): a.right for a in known if not a.every}
    equations = tuple(a for a in assumptions if a.kind in (*_SAID, "independence", "same law") and a not in spreads)
    units = sorted({f for argument in arguments for f in _halves(argument)}, key=lambda f: (f.count_ops(), str(f)))

    @cache
    def mean(argument: Any) -> Any:
        found = entailed(values.get(argument, E(argument)), equations)
        return None if found.has(E, Var) or random_atoms(found) else sp.simplify(found)

    bounds = [(a.right, mean(sp.expand(a.left.args[0] ** 2)), a.left.args[0]) for a in spreads]
    bounds += [(sp.exp(low), mean(f), f) for f in units if isinstance(f, sp.exp) and (low := mean(f.exp)) is not None]
    for low, high, about in bounds:  # Var X <= E[X^2], and e^{E X} <= E e^X
        if high is not None and always_fails(low, high, "<=", given):
            yield _speaking_of(random_atoms(about), arguments)
    weights = [sp.Integer(1), *(f for f in units if f.is_nonnegative and random_atoms(f))]
    weights += [-f for f in units if f.is_nonpositive and random_atoms(f)]
    weights += [size + sign * size.args[0] for size in units if isinstance(size, sp.Abs) for sign in (1, -1)]
    for weight, count in product(weights, range(1, _MOST_TERMS + 1)):
        for chosen in combinations([sp.Integer(1), *units[: 2 * _MOST_TERMS]], count):
            unknown = sp.Symbol("as large as needed", positive=True)
            means = [[mean(sp.expand(weight * f * g)) for g in chosen] for f in chosen]
            lacking = [(i, j) for i, row in enumerate(means) for j, value in enumerate(row) if value is None]
            if any(i != j for i, j in lacking) or len(lacking) > 1:
                continue
            for i, j in lacking:
                means[i][j] = unknown
            size = sp.expand(sp.Matrix(means).det())
            if size.is_nonnegative or sp.simplify(size.coeff(unknown)) != 0:
                continue
            if always_fails(sp.Integer(0), sp.simplify(size.subs(unknown, 0)), "<=", given):
                atoms = set().union(*(random_atoms(f) for f in (weight, *chosen)))
                yield _speaking_of(atoms, arguments)
                return


def _speaking_of(atoms: set[Any], arguments: Mapping[Any, Assumption]) -> str:
    return " and ".join(str(a) for argument, a in arguments.items() if random_atoms(argument) <= atoms)


def _at_places(a: Assumption) -> Any:
    """Return what an expectation is taken of, where indices that stand for any are 1, 2, ..."""
    numbered = enumerate(sorted((i for i in a.every if i.is_integer), key=str), start=1)
    return a.left.args[0].xreplace({i: sp.Integer(k) for k, i in numbered})


def _halves(argument: Any) -> set[Any]:
    """Return the products of up to half of the factors of a product."""
    factors = factors_of(argument)
    sizes = range(1, (len(factors) + 1) // 2 + 1) if len(factors) <= _MOST_FACTORS else ()
    return {sp.Mul(*some) for size in sizes for some in combinations(factors, size)}


def _separated(one: Any, two: Any, apart: Sequence[Any]) -> bool:
    """Return whether two factors belong to different independent groups."""
    return any(
        random_atoms(one) <= g and random_atoms(two) <= h for groups in apart for g in groups for h in groups if g != h
    )


def _as_one(one: Assumption, two: Assumption) -> tuple[Any, Any] | None:
    """Return the values that two assumptions give to one expectation, or None where they speak of different ones."""
    if one.left == two.left:
        return one.right, two.right
    pattern = {i: sp.Wild(f"{i}_") for i in one.every}
    found = two.left.args[0].match(one.left.args[0].xreplace(pattern)) if pattern else None
    if not found:
        return None
    return one.right.xreplace({i: found.get(w, i) for i, w in pattern.items()}), two.right


# --- what a line binds -----------------------------------------------------------------------------


def captured(lines: Sequence[Any], assumptions: Sequence[Assumption]) -> str:
    """Return in words which line binds a symbol that is assumed to stand for something, or on which that depends.

    Under d/dx the letter y of a definition y = x^2 would be a constant, and under a sum over m the letter of c = m.

    >>> x, y = sp.symbols("x y")
    >>> captured([sp.Derivative(x * y, x)], [Assumption("definition", y, x**2)])
    'y := x**2 and the line Derivative(x*y, x), which binds a symbol of it'
    """
    for a in assumptions:
        imaginary = a.kind in ("definition", "hypothesis") and exact(a.right).has(sp.I)
        if imaginary and (of := [v for part in _parts(lines) for v in part.atoms(Var) if v.has(a.left)]):
            return f"{a} and {of[0]}, the variance of what is no real number"
        if isinstance(a.left, sp.Symbol | sp.Indexed) and a.kind in ("definition", "hypothesis"):
            for part in _parts(lines):
                try:
                    guard(part, a.left, a.right, places(a.left))
                except ValueError:
                    return f"{a} and the line {part}, which binds a symbol of it"
        elif moving := _moving(a):
            for part in _parts(lines):
                for sign in part.atoms(*BINDERS):
                    if bound_by(sign) & moving and _speaks_of(sign, a.left):
                        return f"{a} and the line {part}, which binds a symbol of it"
    return ""


def _parts(lines: Sequence[Any]) -> Iterator[Any]:
    for line in lines:
        yield from line if isinstance(line, sp.MatrixBase) else (line,)


def _moving(a: Assumption) -> set[Any]:
    """Return the symbols on which an expectation, a function or a matrix depends by an assumption, and not by name."""
    if a.kind == "law":
        return a.right.free_symbols - {a.left}
    tied = isinstance(a.left, E | Var | AppliedUndef | sp.MatrixSymbol)
    if a.kind not in ("definition", "hypothesis", "moment") or not tied:
        return set()
    return exact(a.right).free_symbols - exact(a.left).free_symbols - a.every


def _speaks_of(sign: Any, left: Any) -> bool:
    """Return whether a sign holds an expectation, a function or a matrix of which an assumption speaks."""
    if isinstance(left, AppliedUndef):
        return any(f.func == left.func for f in sign.atoms(AppliedUndef))
    if isinstance(left, sp.MatrixSymbol):
        return bool(sign.has(left))
    return any(random_atoms(left) & random_atoms(e) for e in sign.atoms(E, Var))
