"""Models of what a chain assumes: numbers in which all of it holds, and what lines are worth there.

Where no numbers can be found, the assumptions contradict one another. Where two lines differ in a model, the second
does not follow from the first, whatever a rule or a simplification says.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, combinations, islice, product
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from linewise.derive.assumptions import SIGNS, Assumption
from linewise.derive.divisors import divisors
from linewise.derive.expectation import E, Var, random_atoms
from linewise.derive.values import EXACT, QUICK, DivergesError, Model, MoreDigitsError, NoValueError, draw, fits

#: Two ordinary models, and one whose numbers are special where they may be: 0, 1, -1.
_SEEDS = (0, 1, -1)
_MANY = (0, 1, 2, 3, 4, -1)
_DRAWS, _TRIALS, _ROUNDS = 100, 8, 25
_AGREE, _CLOSE = 1e-8, 1e-5

Equation = Callable[[Model], Any]


def clash(assumptions: tuple[Assumption, ...]) -> str:
    """Return in words which assumptions cannot hold together, and "" if some numbers satisfy them all.

    >>> x = sp.Symbol("x", real=True)
    >>> one, two = (Assumption("hypothesis", x, value) for value in (1, 2))
    >>> clash((one,)), clash((one, two))
    ('', 'x = 1 and x = 2')
    """
    bounding = tuple(a for a in assumptions if _constrains(a))
    if not bounding or not _impossible(assumptions):
        return ""
    definitions = tuple(a for a in assumptions if not _constrains(a))
    for size in (1, 2):
        for few in combinations(bounding, size):
            if _impossible((*definitions, *few)):
                return " and ".join(map(str, few))
    return " and ".join(map(str, bounding))


@lru_cache(maxsize=2048)
def _impossible(assumptions: tuple[Assumption, ...]) -> bool:
    """Return whether the assumptions can be evaluated, and no numbers are found that satisfy them."""
    tried = [found_model(assumptions, seed) for seed in (0, 1)]
    return all(found is False for found in tried) and found_model(assumptions, -1) is False


def _constrains(a: Assumption) -> bool:
    return a.kind in ("hypothesis", "range", *SIGNS)


@lru_cache(maxsize=2048)
def found_model(assumptions: tuple[Assumption, ...], seed: int) -> Model | bool:
    """Return a model, False where there seems to be none, and True where the assumptions cannot be evaluated."""
    unknown, tried = False, 0
    for trial in range(_DRAWS):
        model = Model(seed + 10 * trial * (1 if seed >= 0 else -1), assumptions)
        try:
            if not _placed(model, assumptions):
                continue
            tried += 1
            if _solved(model, _equations(model, assumptions, 1 + tried * tried)) and _signed(model):
                return model
        except NoValueError:
            unknown, tried = True, tried + 1
        if tried >= _TRIALS:
            break
    return unknown


def _placed(model: Model, assumptions: Sequence[Assumption]) -> bool:
    """Draw the integers of a model, each index within its range; return whether they are what is assumed of them."""
    draws = random.Random(model.seed)
    for a in assumptions:
        if a.kind == "range" and isinstance(a.left, sp.Symbol) and a.left not in model.numbers:
            low, high = (round(model.value(end)) for end in a.right)
            if high < low:
                return False
            model.numbers[a.left] = draws.randint(low, high)
    for a in assumptions:
        if a.kind == "integer":
            number = model.value(a.left)
            if abs(number - round(number.real)) > 1e-9:
                return False
        elif a.kind == "range":
            low, high = (model.value(end) for end in a.right)
            if not low <= model.value(a.left) <= high:
                return False
    return True


def _equations(model: Model, assumptions: Sequence[Assumption], nearer: int = 1) -> list[Equation]:
    """Return what must be 0 in the model: of an equation its difference, of a sign its value minus one of that sign."""
    found: list[Equation] = []
    for k, a in enumerate(assumptions):
        if a.kind in ("definition", "hypothesis") and not isinstance(a.left, sp.MatrixSymbol):
            if not model.is_first(a) and model.can_solve(a):
                for inner in _everywhere(a, model):
                    found.append(partial(_gap, a.left, a.right, inner))
        elif a.kind in SIGNS and a.kind != "integer":
            for inner in _everywhere(a, model):
                if not _has_sign(model.inside(a.left, inner), a.kind):
                    wanted = (
                        float(draw(sp.Symbol("wanted", **{a.kind: True}), (k, str(inner)), abs(model.seed))) / nearer
                    )
                    found.append(partial(_gap, a.left, sp.Float(wanted, 15), inner))
    return found


def _gap(left: Any, right: Any, inner: dict[Any, Any], model: Model) -> Any:
    return model.inside(left, inner) - model.inside(right, inner)


def _signed(model: Model) -> bool:
    """Return whether every value has the sign that is assumed of it."""
    signs = (a for a in model.assumptions if a.kind in SIGNS and a.kind != "integer")
    return all(_has_sign(model.inside(a.left, inner), a.kind) for a in signs for inner in _everywhere(a, model))


def _everywhere(a: Assumption, model: Model) -> Iterator[dict[Any, Any]]:
    """Yield numbers for the symbols of an equation that stand for any value: every place up to the longest sum."""
    every = sorted(a.every, key=str)
    longest = max((v for v in model.numbers.values() if isinstance(v, int)), default=2)
    values = [range(1, longest + 1) if s.is_integer else [draw(s, k, model.seed) for k in (1, 2)] for s in every]
    for chosen in product(*values):
        yield dict(zip(every, chosen, strict=True))


def _has_sign(number: Any, kind: str) -> bool:
    if abs(complex(number).imag) > 1e-9:
        return kind == "nonzero"
    number = number.real
    return bool(
        {"positive": number > 1e-9, "nonnegative": number > -1e-9, "negative": number < -1e-9,
         "nonpositive": number < 1e-9, "nonzero": abs(number) > 1e-9}[kind]
    )  # fmt: skip


def _solved(model: Model, equations: Sequence[Equation]) -> bool:
    """Move the numbers of a model until every equation holds: Newton's method, each step as short as can be."""
    if not equations:
        return True
    ctx, model.moved = model.ctx, True
    left = [_real(e(model)) for e in equations]
    free = [k for k, v in model.numbers.items() if not isinstance(v, int) and not (v == 0 and _keeps_sign(k))]
    for _ in range(_ROUNDS):
        if all(abs(r) < (1e-12 if ctx is QUICK else 1e-30) for r in left):
            return True
        rows = _slopes(model, equations, left, free)
        change = _shortest(rows, left, ctx)
        if change is None:
            return False
        before, size = {k: model.numbers[k] for k in free}, max(abs(r) for r in left)
        for scale in (1.0, 0.5, 0.1, 0.02):
            for k, c in zip(free, change, strict=True):
                model.numbers[k] = _moved(k, before[k], -scale * c, ctx)
            model.forget()
            try:
                left = [_real(e(model)) for e in equations]
            except NoValueError:
                continue
            if max(abs(r) for r in left) < size:
                break
        else:
            return False
    return all(abs(r) < 1e-10 for r in left)


def _real(number: Any) -> Any:
    if isinstance(number, complex | EXACT.mpc):
        if abs(number.imag) > 1e-9:
            raise NoValueError("no real number")
        return number.real
    return number


def _symbol_of(key: Any) -> Any:
    return key if isinstance(key, sp.Basic) and not isinstance(key, tuple) else key[0][tuple(key[1])] if (
        isinstance(key, tuple) and isinstance(key[0], sp.IndexedBase) and isinstance(key[1], tuple)
    ) else None  # fmt: skip


@lru_cache(maxsize=4096)
def _keeps_sign(key: Any) -> bool:
    symbol = _symbol_of(key)
    return symbol is not None and bool(symbol.is_nonnegative or symbol.is_nonpositive)


def _moved(key: Any, number: Any, change: Any, ctx: Any) -> Any:
    """Return a number changed; one whose sign is assumed is changed by a factor, so that it keeps it."""
    if not _keeps_sign(key):
        return number + change
    return number * ctx.exp(max(-1, min(1, change)))


def _slopes(model: Model, equations: Sequence[Equation], left: list[Any], free: list[Any]) -> list[list[Any]]:
    """Return how each equation answers to each number, or to its logarithm where it keeps its sign."""
    step = 1e-6 if model.ctx is QUICK else EXACT.mpf(10) ** -18
    columns = []
    for key in free:
        here = model.numbers[key]
        size = here if _keeps_sign(key) else 1
        model.numbers[key] = here + step * size
        model.forget()
        columns.append([(_real(e(model)) - r) / step for e, r in zip(equations, left, strict=True)])
        model.numbers[key] = here
    model.forget()
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in left]


def _shortest(rows: list[list[Any]], left: list[Any], ctx: Any) -> list[Any] | None:
    """Return the shortest change that the rows turn into what is left, or None where there is none."""
    n = len(rows)
    square = [[sum(a * b for a, b in zip(r, s, strict=True)) for s in rows] + [left[k]] for k, r in enumerate(rows)]
    ridge = (1e-13 if ctx is QUICK else EXACT.mpf(10) ** -30) * sum(square[k][k] for k in range(n))
    for k in range(n):  # equations that say the same twice leave no pivot of their own
        square[k][k] += ridge
    for k in range(n):
        best = max(range(k, n), key=lambda r: abs(square[r][k]))
        if square[best][k] == 0:
            return None
        square[k], square[best] = square[best], square[k]
        for r in range(n):
            if r != k and square[r][k] != 0:
                factor = square[r][k] / square[k][k]
                square[r] = [a - factor * b for a, b in zip(square[r], square[k], strict=True)]
    weights = [square[k][n] / square[k][k] for k in range(n)]
    return [sum(w * row[c] for w, row in zip(weights, rows, strict=True)) for c in range(len(rows[0]))]


#: What a line is worth in a model of few digits that takes many.
_MORE = object()


# --- lines in a model ----------------------------------------------------------------------------


def number(model: Model, line: Any) -> Any:
    """Return what a line is worth in a model, or None where it has no number."""
    if line not in model.known:
        try:
            model.known[line] = (model.value(line), model.doubt, model.size, model.share)
        except MoreDigitsError:
            model.known[line] = _MORE
        except NoValueError:
            model.known[line] = None
    return model.known[line]


def sharp(model: Model, assumptions: tuple[Assumption, ...]) -> Model | None:
    """Return the model with many digits, in which the assumptions hold to as many."""
    if model.sharper is None:
        exact = model.exact()
        try:
            model.sharper = (exact if _solved(exact, _equations(exact, assumptions)) else None,)
        except NoValueError:
            model.sharper = (None,)
    return model.sharper[0]


def off(model: Model, one: Any, other: Any) -> tuple[Any, Any, Any] | None:
    """Return two numbers and how far they are apart beyond what the evaluation leaves in doubt, or None."""
    a, b = number(model, one), number(model, other)
    if a is None or b is None or a is _MORE or b is _MORE:
        return None
    slack = _AGREE * (abs(a[0]) + abs(b[0]))
    if model.ctx is QUICK:  # what is left in doubt is in doubt by a share; where that is not enough, digits decide
        slack += 100 * (a[3] + b[3]) * (abs(a[0]) + abs(b[0])) + 1e-12
    else:
        slack += 10 * (a[1] + b[1]) + 1e-9 * max(a[2], b[2])
        slack += 1e-12 if model.moved else EXACT.mpf(10) ** -25
    return a[0], b[0], (a[0] - b[0], slack)


def refutation(one: Any, other: Any, relation: str, assumptions: tuple[Assumption, ...]) -> str:
    """Return in words numbers that satisfy the assumptions and in which the relation fails, and "" if none is found."""
    return next((words for words in verdicts(one, other, relation, assumptions) if words), "")


def has_other_sign(value: sp.Expr, symbol: sp.Expr) -> bool:
    """Return whether a value has, wherever it is drawn, a sign that is ruled out for the symbol that it is given to.

    A value that has the right sign at some points may be given under a hypothesis, as C - t to a symbol that is
    positive. Free indices are 1 or 2, and sums have two or three terms.

    >>> x, r = sp.IndexedBase("x", positive=True), sp.Symbol("r", nonnegative=True)
    >>> (i, j), n = sp.symbols("i j", integer=True), sp.Symbol("n", integer=True, positive=True)
    >>> rest = sp.Sum(x[i], (i, 1, n)) - x[j]
    >>> has_other_sign(rest, r), has_other_sign(-rest, r)
    (False, True)
    """
    if not (symbol.is_nonnegative or symbol.is_nonpositive):
        return False
    if value.is_nonnegative if symbol.is_nonnegative else value.is_nonpositive:
        return False
    found = False
    for seed in (*range(12), *range(-6, 0)):
        told = number(Model(seed), value)
        if told is None or abs(complex(told[0]).imag) > _AGREE:
            continue
        if abs(told[0]) < 1e-9:  # at the border, where a sum has one term or a square is 0
            continue
        found = True
        if told[0].real > 0 if symbol.is_nonnegative else told[0].real < 0:
            return False
    return found


def compared(one: Any, other: Any) -> str | None:
    """Compare an expression with what it is said to be, at drawn values of all symbols, within what is assumed of each.

    Return "" where they agree, in words the numbers where they do not, and None where no number exists. Where the
    expression has no number and the other has, they do not agree; the other may divide by 0, which is for its line.
    """
    agreed = False
    for model in _probes(one):
        told, found = _both(model, one, other)
        if told[1] is None or (told[0] is None and told[1] is None):
            continue
        if told[0] is None and _divides_by_0(model, one):
            continue
        if told[0] is None:
            return f"it has no number{_where(model, one)}"
        if found is not None and not _holds(found[2], "="):
            return _said(model, found, one, other)
        agreed = True
    return "" if agreed else None


def _divides_by_0(model: Model, expression: Any) -> bool:
    """Return whether a model breaks what is assumed of an expression, since it divides by it."""
    values = (number(model, needed.left) for needed in divisors(expression) if not needed.every)
    return any(told is None or (told is not _MORE and abs(told[0]) < 1e-9) for told in values)


def settles(integral: Any) -> bool:
    """Return whether an integral has a number at all drawn values of its symbols."""
    for model in _probes(integral):
        told = number(model, integral)
        if told is _MORE:
            exact = sharp(model, ())
            told = None if exact is None else number(exact, integral)
        if told is None and not _divides_by_0(model, integral):
            return False
    return True


@lru_cache(maxsize=2048)
def diverges(line: Any, assumptions: tuple[Assumption, ...]) -> str:
    """Return in words which sign of a line has no value where all holds that is assumed, and "" if none is found.

    A sign is an integral, an endless sum, or an expectation by a density. Of unknown functions nothing is known.

    >>> x, a = sp.symbols("x a", positive=True)
    >>> short = Assumption("positive", 1 - a)
    >>> diverges(sp.Integral(x**-a, (x, 0, 1)), (short,)), diverges(sp.Integral(1 / x, (x, 0, 1)), (short,))
    ('', 'Integral(1/x, (x, 0, 1)), which does not converge')
    """
    defined = [a for a in assumptions if a.kind == "definition"]
    own = {a.left.func for a in defined if isinstance(a.left, AppliedUndef)}
    for sign in dict.fromkeys(_endless(line, {a.left for a in assumptions if a.kind == "law"})):
        parts = [sign, *(a.right for a in assumptions if a.kind == "law"), *(a.right for a in defined)]
        if any(f.func not in own for part in parts if isinstance(part, sp.Basic) for f in part.atoms(AppliedUndef)):
            continue
        held = [*_in_force(sign, assumptions)]
        lost = [m for m in held or _probes(sign) if _has_no_end(m, sign) and not _divides_by_0(m, sign)]
        if lost and (held or len(lost) == len(_probes(sign))):
            return f"{sign}, which does not converge{_where(lost[0], sign)}"
    return ""


def _endless(line: Any, laws: set[Any]) -> Iterator[Any]:
    """Yield the outermost signs of a line that may have no value."""
    if isinstance(line, sp.Integral) or (isinstance(line, E | Var) and random_atoms(line) & laws):
        yield line
    elif isinstance(line, sp.Sum | sp.Product):
        inside = line.has(sp.Integral) or any(random_atoms(e) & laws for e in line.atoms(E, Var))
        if inside or any(limit[-1].is_infinite for limit in line.limits):
            yield line
    elif not isinstance(line, sp.Limit | sp.Derivative | sp.Subs | sp.Lambda):
        for part in line.args if isinstance(line, sp.Basic) else line:
            yield from _endless(part, laws)


def _in_force(sign: Any, assumptions: tuple[Assumption, ...]) -> Iterator[Model]:
    """Yield models of what is assumed, and the probes of an expression among which it holds."""
    yield from (model for seed in _MANY if isinstance(model := found_model(assumptions, seed), Model))
    for probe in _probes(sign):
        model = Model(probe.seed, assumptions, dict(probe.numbers))
        try:
            if _placed(model, assumptions) and all(abs(e(model)) < _AGREE for e in _equations(model, assumptions)):
                yield model
        except NoValueError:
            continue


def _has_no_end(model: Model, sign: Any) -> bool:
    try:
        model.value(sign)
    except DivergesError:
        return True
    except MoreDigitsError:
        exact = model.exact()
        return exact.ctx is not model.ctx and _has_no_end(exact, sign)
    except NoValueError:
        pass
    return False


def _both(model: Model, one: Any, other: Any) -> tuple[tuple[Any, Any], Any]:
    """Return the numbers of two lines and how far they are apart; with many digits where few do not agree."""
    told, found = (number(model, one), number(model, other)), off(model, one, other)
    if found is not None and _agree(found):
        return told, found
    if found is None and _MORE not in told and (told[0] is not None or not _may_need_digits(one)):
        return told, found
    exact = sharp(model, ())
    if exact is None:
        return (None, None), None
    return (number(exact, one), number(exact, other)), off(exact, one, other)


def _may_need_digits(line: Any) -> bool:
    return bool(line.has(sp.Limit, sp.Derivative))


@lru_cache(maxsize=256)
def _probes(expression: Any) -> tuple[Model, ...]:
    """Return models for an expression: ordinary ones, and such that one parameter has a value of its own.

    That value is 0, small, large, or lies between the ends of an integral, where a pole would.
    """
    seeds = [Model(seed) for seed in _MANY]
    bound = set().union(*(_names(sign) for sign in expression.atoms(sp.Integral, sp.Limit, sp.Sum, sp.Product)))
    symbols = sorted((s for s in expression.free_symbols - bound if s.is_Symbol), key=str)
    free, whole = ([s for s in symbols if bool(s.is_integer) is kind] for kind in (False, True))
    values = [*_OWN, *_between(expression)]
    own = [
        Model(6 + k, (), {symbol: float(value)})
        for symbol in free if not isinstance(symbol, sp.Dummy)
        for k, value in enumerate(values) if fits(value, symbol)
    ]  # fmt: skip
    lengths = [Model(40 + n, (), {symbol: n}) for symbol in whole for n in (1, 0, 6) if fits(sp.Integer(n), symbol)]
    special = chain(_on_poles(expression, symbols), _where_terms_vanish(expression, free))
    return (*seeds, *own[:_MOST_PROBES], *lengths[:_MOST_PROBES], *islice(special, _MOST_PROBES))


def _on_poles(expression: Any, free: Sequence[Any]) -> Iterator[Model]:
    """Yield models in which one parameter puts a pole between the ends of an integral, if its assumptions let it."""
    for integral in expression.atoms(sp.Integral):
        if len(integral.limits) != 1 or len(integral.limits[0]) != 3:
            continue
        name = integral.limits[0][0]
        divided = [p.base for p in integral.function.atoms(sp.Pow) if not p.exp.is_nonnegative and p.base.has(name)]
        places = _between(integral)
        for symbol, base in product(free, divided):
            inside = [*_whole_between(integral, base, symbol), *places] if symbol.is_integer else places[:2]
            for place in inside:
                yield from _at_roots(base.subs(name, place), symbol)


def _whole_between(integral: Any, base: Any, symbol: Any) -> list[sp.Rational]:
    """Return places at which a divisor vanishes for an integer value of a parameter, as far as the ends are numbers."""
    name, low, high = integral.limits[0]
    if not (low.is_number and high.is_number and low.is_finite and high.is_finite and base.is_polynomial(name, symbol)):
        return []
    found = []
    for n in range(-12, 13):
        if fits(sp.Integer(n), symbol):
            found += [root for root in sp.roots(base.subs(symbol, n), name) if root.is_real and low < root < high]
    return found[:2]


def _where_terms_vanish(expression: Any, free: Sequence[Any]) -> Iterator[Model]:
    """Yield models in which the coefficient of a limit's variable, or what stands beside it, is 0."""
    for limit in expression.atoms(sp.Limit):
        name = limit.args[1]
        for part in sp.preorder_traversal(limit.args[0]):
            if isinstance(part, sp.Add | sp.Mul) and part.has(name) and part.is_polynomial(name):
                for coefficient in sp.Poly(part, name).coeffs():
                    for symbol in free:
                        yield from _at_roots(coefficient, symbol)


def _at_roots(polynomial: Any, symbol: Any) -> Iterator[Model]:
    """Yield models in which an expression vanishes that is a polynomial in a symbol, whose value it gives."""
    if not polynomial.has(symbol) or not polynomial.is_polynomial(symbol):
        return
    for k, root in enumerate(sp.roots(polynomial, symbol)):
        model = Model(50 + k)
        try:
            value = _real(model.value(root))
        except NoValueError:
            continue
        near = sp.Rational(str(round(value, 12)))
        if fits(near, symbol):
            model.numbers[symbol] = int(near) if symbol.is_integer else value
            yield model


_OWN = [sp.Rational(*pair) for pair in ((0, 1), (1, 4), (-1, 4), (5, 1), (-5, 1))]
_MOST_PROBES = 24


def _names(sign: Any) -> set[Any]:
    return {sign.args[1]} if isinstance(sign, sp.Limit) else {limit[0] for limit in sign.limits}


def _between(expression: Any) -> list[sp.Rational]:
    """Return places inside the intervals of an expression, as far as their ends are numbers."""
    places = []
    for integral in expression.atoms(sp.Integral):
        for limit in integral.limits:
            ends = [float(end) for end in limit[1:] if end.is_number and end.is_finite]
            if len(ends) == 2:
                places += [
                    sp.Rational(round(1000 * (ends[0] + f * (ends[1] - ends[0]))), 1000) for f in (0.3, 0.5, 0.9)
                ]
    return places


def _where(model: Model, *spoken_of: Any) -> str:
    """Say which numbers a model gives to the symbols of these: it may have met many others."""
    among = set().union(*(getattr(part, "free_symbols", set()) for part in spoken_of))
    names = {str(k): v for k, v in model.numbers.items() if isinstance(k, sp.Symbol) and k in among}
    at = ", ".join(f"{name} = {EXACT.nstr(EXACT.convert(v), 4)}" for name, v in sorted(names.items())[:6])
    return f" at {at}" if at else ""


def always_fails(one: Any, other: Any, relation: str, assumptions: tuple[Assumption, ...]) -> bool:
    """Return whether a relation fails in every model in which both sides have numbers, and there is one."""
    told = [*verdicts(one, other, relation, assumptions, _MANY)]
    return bool(told) and all(told)


def verdicts(
    one: Any,
    other: Any,
    relation: str,
    assumptions: tuple[Assumption, ...],
    seeds: Sequence[int] = _SEEDS,
    coarse: bool = False,
) -> Iterator[str]:
    """Yield, for each model in which both lines have numbers, "" where the relation holds and the numbers where not.

    coarse : believe few digits where they are far apart.
    """
    for seed in seeds:
        model = found_model(assumptions, seed)
        if not isinstance(model, Model):
            continue
        found = off(model, one, other)
        if found is not None and _agree(found) if relation == "=" else found is not None and _holds(found[2], relation):
            yield ""
            continue
        told = number(model, one), number(model, other)
        if found is None and (None in told or _MORE not in told):
            continue
        if coarse and found is not None and not _holds((found[2][0], 1e-3 * (abs(found[0]) + abs(found[1]))), relation):
            yield _said(model, found, one, other, *assumptions)
            continue
        exact = sharp(model, assumptions)
        found = None if exact is None else off(exact, one, other)
        if exact is not None and found is not None:
            yield "" if _holds(found[2], relation) else _said(exact, found, one, other, *assumptions)


def _agree(found: Any) -> bool:
    """Return whether two numbers agree so well that no doubt about them is left."""
    one, two, (difference, slack) = found
    return bool(abs(difference) <= slack and slack <= _CLOSE * (abs(one) + abs(two)) + 1e-9)


def _holds(gap: Any, relation: str) -> bool:
    difference, slack = gap
    if isinstance(difference, complex | EXACT.mpc) and relation == "=":
        return bool(abs(difference) <= slack)
    difference = difference.real
    return bool(abs(difference) <= slack if relation == "=" else difference <= slack if relation == "<=" else
                difference >= -slack)  # fmt: skip


def _said(model: Model, found: Any, *spoken_of: Any) -> str:
    one, two = (EXACT.nstr(EXACT.convert(x), 8) for x in found[:2])
    return f"{one} and {two}{_where(model, *spoken_of)}"
