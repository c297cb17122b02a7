"""Programs by template: every rule with every binder, sign, range and order of steps that the template has room for.

Each program is true or false by construction: by arithmetic on the numbers that were put into it. A false one must be
refused, and a true one accepted, so that no template refuses everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import sympy as sp

from linewise.derive import Derivation, E, RandomVariable, identity, rules

x, y, c, t, z = sp.symbols("x y c t z", real=True)
a, b = sp.symbols("a b", positive=True)
l, m, r = sp.symbols("l m r", integer=True)  # noqa: E741
d = sp.Symbol("d", integer=True, positive=True)
X, Y = (RandomVariable(name, real=True) for name in "XY")
u, p = sp.IndexedBase("u"), sp.IndexedBase("p")
F = sp.Function("F")
Q = sp.Rational
oo, delta = sp.oo, sp.KroneckerDelta


@dataclass(frozen=True)
class Program:
    """A program, whether its last line is true, and the template and numbers that it comes from."""

    name: str
    true: bool
    run: Callable[[], object]


def chain(start: Any, *steps: tuple[Any, ...]) -> Derivation:
    made = Derivation(start)
    for line, *used in steps:
        made.step(line, *used, because="" if used else "algebra")
    return made


def _stated(kind: str, left: Any, right: Any) -> Any:
    return rules.hypothesis(left, right, "given") if kind == "hypothesis" else rules.definition(left, right)


BINDERS: dict[str, Callable[[Any], Any]] = {
    "Sum": lambda e: sp.Sum(e, (m, 1, d)),
    "Product": lambda e: sp.Product(e, (m, 1, d)),
    "Integral": lambda e: sp.Integral(e, (x, 0, 1)),
    "Limit": lambda e: sp.Limit(e, x, 1),
    "Derivative": lambda e: sp.Derivative(e, x),
    "Subs": lambda e: sp.Subs(e, x, 2),
}


def binders() -> Iterator[Program]:
    """What stands for a symbol is put under a sign: false where the sign binds a symbol of it."""
    bodies = (lambda s, v: s * v, lambda s, v: s + v**2, lambda s, v: sp.exp(s) * v, lambda s, v: s**2 - s * v,
              lambda s, v: (s + v) ** 3)  # fmt: skip
    for (name, binder), kind, (k, body) in product(BINDERS.items(), ("hypothesis", "definition"), enumerate(bodies)):
        bound = m if name in ("Sum", "Product") else x
        for value in (bound, bound + 1, 2 * bound, bound**2, bound * t, t, 2 * t, t**2 + 1):
            before, after = binder(body(c, bound)), binder(body(value, bound))
            if before == after:
                continue
            yield Program(
                f"{kind} c = {value} in {before} ({k})", bound not in value.free_symbols,
                partial(identity, before, after, _stated(kind, c, value)),
            )  # fmt: skip


def orders() -> Iterator[Program]:
    """A definition y = x^k before or after a step that took y for a constant."""
    for k, n, when in product((1, 2, 3, 4, 5), (1, 2, 3, 4), ("before", "after", "apart")):
        value = z**k if when == "apart" else x**k
        told = rules.definition(y, value)
        slope, line = sp.Derivative(x**n * y, x), n * x ** (n - 1) * y
        if when == "before":
            steps: tuple[Any, ...] = ((slope, told), (line, rules.differentiate))
            start = sp.Derivative(x ** (n + k), x)
        else:
            steps, start = ((line, rules.differentiate), (n * x ** (n - 1) * value, told)), slope
        yield Program(f"d/dx x^{n} y, y = x^{k} {when}", when == "apart", partial(chain, start, *steps))
        limit = sp.Limit((x + 1) ** n * y, x, 0)
        steps = ((y, rules.take_limit), (value, told))
        yield Program(f"lim (x+1)^{n} y, y = {value}", when == "apart", partial(chain, limit, *steps))


def moves() -> Iterator[Program]:
    """A result is used at another value: of a symbol of which its base assumes something, or of another one."""

    def run(kind: str, n: int, value: int, moved: Any, other: bool) -> object:
        base = identity(x**n + moved * y, value**n + moved * y, _stated(kind, x, sp.Integer(value)))
        at = {y: 7} if other else {x: 7}
        start = base.lines[0].value.subs(at)
        return chain(start, (base.result.subs(at), rules.derived(base, at=[at])))

    for kind, n, value, other in product(("hypothesis", "definition"), (1, 2, 3), (-2, -1, 2, 3, 5), (True, False)):
        yield Program(f"{kind} x = {value}, x^{n}, other {other}", other, partial(run, kind, n, value, t, other))


def clashes() -> Iterator[Program]:
    """Two equations for one thing: they hold together or not, by arithmetic."""
    numbers = (-2, -1, 1, 2, 3)
    for one, two in product(numbers, numbers):
        same = one == two

        def twice(left: Any, first: Any, second: Any, kind: str = "hypothesis", rest: Any = z) -> object:
            start = left + rest
            back = _stated(kind, left, first)
            return chain(start, (first + rest, back), (left + rest, back), (second + rest, _stated(kind, left, second)))

        sums = sp.Sum(p[l], (l, 1, d))
        for left in (x, sums, F(2), u[1], sp.sin(x) * 4, x * y):
            if not same:
                yield Program(f"{left} = {one} and {two}", False, partial(twice, left, one, two))
        squares = chain_of_squares(one, two)
        yield Program(f"x^2 = {one * one}, x = {two}", abs(one) == abs(two), squares)
        difference = (x + y, x - y, sp.Integer(one), sp.Integer(two))
        yield Program(f"x + y = {one}, x - y = {two}", True, partial(_two, *difference))
        if not same:
            yield Program(f"F(k) = {one} k, F(3) = {two * 3}", False, partial(_family, one, two))


def chain_of_squares(one: int, two: int) -> Callable[[], object]:
    return partial(
        chain, x**2 + x + z, (one * one + x + z, rules.hypothesis(x**2, one * one, "given")),
        (one * one + two + z, rules.hypothesis(x, two, "given")),
    )  # fmt: skip


def _two(left: Any, right: Any, first: Any, second: Any) -> object:
    start = sp.exp(left) + sp.cos(right)
    return chain(
        start, (sp.exp(first) + sp.cos(right), rules.hypothesis(left, first, "given")),
        (sp.exp(first) + sp.cos(second), rules.hypothesis(right, second, "given")),
    )  # fmt: skip


def _family(one: int, two: int) -> object:
    return chain(
        F(1) + F(3) + z, (one + F(3) + z, rules.definition(F(1), one)),
        (one + 3 * one + z, rules.definition(F(r), one * r)),
        (one + F(3) + z, rules.definition(F(r), one * r)), (one + 3 * two + z, rules.definition(F(3), 3 * two)),
    )  # fmt: skip


def poles() -> Iterator[Program]:
    """The integral of a power with a pole at a place, by its antiderivative: true where the place is outside."""
    ends = ((0, 1), (-1, 1), (1, 3), (-2, Q(1, 2)))
    places = [Q(k, 6) for k in range(-17, 24, 4)]
    for (low, high), place, power in product(ends, places, (2, 3)):
        inside = low <= place <= high
        primitive = (x - place) ** (1 - power) / (1 - power)
        claimed = primitive.subs(x, high) - primitive.subs(x, low) if place not in (low, high) else sp.Integer(1)
        line = sp.Integral((x - place) ** (-power), (x, low, high))
        name = f"int ({place})^-{power} from {low} to {high}"
        yield Program(f"{name}, integrate", not inside, partial(identity, line, claimed, rules.integrate))
        parts = partial(_by_parts, line, claimed, primitive, low, high)
        yield Program(f"{name}, by parts", not inside, parts)


def _by_parts(line: Any, claimed: Any, primitive: Any, low: Any, high: Any) -> object:
    return identity(line, claimed, rules.by_parts(primitive, x, low, high))


def parameters() -> Iterator[Program]:
    """The same with a parameter as the place: true where its sign keeps it away."""
    for (low, high), k in product(((0, 1), (0, 2), (1, 2)), (1, 2, 3)):
        for shift, away in ((x + k * a, True), (x - k * a, False), (x - k * c, False), (x + k * a + b, True)):
            value = (-1 / shift).subs(x, high) - (-1 / shift).subs(x, low)
            yield Program(
                f"int ({shift})^-2 from {low} to {high}", away,
                partial(identity, sp.Integral(shift**-2, (x, low, high)), value, rules.integrate),
            )  # fmt: skip


def factors() -> Iterator[Program]:
    """A line with its factors, and with one of them changed."""
    for first, second, off in product((1, 2, 3, -1, -4), (1, 2, 5), (0, 1, -2, 3)):
        true = off == 0
        cases: tuple[tuple[Any, Any, tuple[Any, ...]], ...] = (
            (E(first * X + second * Y), first * E(X) + (second + off) * E(Y), (rules.linearity,)),
            (E(first * X * Y), (first + off) * E(X) * E(Y), (rules.linearity, rules.independent(X, Y))),
            (sp.Sum(first * u[m] + second, (m, 1, d)), first * sp.Sum(u[m], (m, 1, d)) + (second + off) * d,
             (rules.collapse,)),
            (sp.Derivative(first * x**3 + second * x, x), 3 * first * x**2 + second + off, (rules.differentiate,)),
            (sp.Integral(first * x + second, (x, 0, 2)), 2 * first + 2 * (second + off), (rules.integrate,)),
            (sp.Limit((first * x + 1) / (second * x), x, oo), Q(first, second) + off, (rules.take_limit,)),
            (sp.Sum(first * m + second, (m, 1, d)), first * d * (d + 1) / 2 + (second + off) * d, (rules.series,)),
            (sp.Integral(first * sp.exp(-x) * x, (x, 0, oo)), sp.Integer(first + off), (rules.integrate,)),
        )  # fmt: skip
        for before, after, used in cases:
            if before != after and not (before == E(X * Y) and true):
                yield Program(f"{before} = {after}", true, partial(identity, before, after, *used))


def ranges() -> Iterator[Program]:
    """A delta decides a sum: the component, where its index lies in the range, and 0 where not."""
    for low, length, place in product((0, 1, 2), (1, 2, 4), range(-1, 7)):
        inside = low <= place <= low + length - 1
        total = sp.Sum(delta(l, place) * u[l], (l, low, low + length - 1))
        for claimed, true in ((u[place], inside), (sp.Integer(0), not inside)):
            yield Program(f"{total} = {claimed}", true, partial(identity, total + z, claimed + z, rules.collapse))
    for beyond in (1, 2, 3):
        base = partial(_beyond, beyond)
        yield Program(f"m = d + {beyond} after a sum to d", False, base)


def _beyond(beyond: int) -> object:
    base = identity(sp.Sum(delta(l, m) * u[l], (l, 1, d)), u[m], rules.collapse)
    return chain(sp.Sum(delta(l, d + beyond) * u[l], (l, 1, d)) + 1,
                 (u[d + beyond] + 1, rules.derived(base, at=[{m: d + beyond}])))  # fmt: skip


def mistakes() -> Iterator[Program]:
    """A named mistake that is true, and one that is not, where the line keeps a sign that nothing carries out."""
    for k, off in product((1, 2, 3, 4, 5, 6), (0, 1, -1, Q(1, 2))):
        signs: tuple[tuple[Any, Any], ...] = (
            (sp.Integral(k * x, (x, 0, 1)), Q(k, 2)), (sp.Derivative(x**k, x), k * x ** (k - 1)),
            (sp.Limit(k + 1 / x, x, oo), sp.Integer(k)), (E(k * X) / E(X), sp.Integer(k)),
            (sp.Product(k + 0 * m, (m, 1, 3)), sp.Integer(k**3)), (sp.Sum(m, (m, 1, k)), Q(k * (k + 1), 2)),
        )  # fmt: skip
        for sign, value in signs:
            if isinstance(sign, sp.Integer):
                continue
            square = (1 + sign) ** 2
            run = partial(identity, square, sp.expand(square), because="expand",
                          mistake=("another value", (1 + value) ** 2 + off))  # fmt: skip
            yield Program(f"({1 + sign})^2 is no {(1 + value) ** 2 + off}", off != 0, run)


def bounds() -> Iterator[Program]:
    """A bound with its gap, with a gap of another sign, and the other way round."""
    gaps = ((a, True), (x**2, True), (a * b, True), (x, False), (-a, False), (a - b, False), (E(X**2), True),
            (E(X), False), (sp.exp(x), True), (1 - sp.exp(x), False),
            (sp.Sum(u[m] ** 2, (m, 1, -3)), False))  # fmt: skip
    for (gap, true), start, up in product(gaps, (y, y**2, sp.exp(y)), (True, False)):
        yield Program(f"{start} and the gap {gap}, up {up}", true, partial(_bound, start, gap, up, up))
        yield Program(f"{start} and the gap {gap}, not {up}", False, partial(_bound, start, gap, up, not up))


def _bound(start: Any, gap: Any, up: bool, added: bool) -> object:
    made = Derivation(start)
    (made.at_most if up else made.at_least)(start + (gap if added else -gap), gap=gap, because="the gap")
    return made


def changes() -> Iterator[Program]:
    """A variable of integration is changed: the integrand with its factor and ends, or without one of them."""
    for k, s, (low, high) in product((1, 2, 3), (-1, 0, 2), ((0, 1), (-1, 2), (0, oo))):
        integrand = sp.exp(-x) * (x**2 + 1)
        inside, ends = integrand.subs(x, k * y + s), [(sp.sympify(end) - s) / k for end in (low, high)]
        line = sp.Integral(integrand, (x, low, high))
        rule = partial(rules.substitution, x, y, k * y + s)
        for words, factor, limits, true in (("right", k, ends, True), ("no factor", 1, ends, k == 1),
                                            ("old ends", k, [low, high], ends == [low, high])):  # fmt: skip
            after = sp.Integral(factor * inside, (y, *limits))
            if words == "right":
                after = rule().rewrite(line)
            elif true:
                continue
            if after.subs(y, x) != line:
                yield Program(
                    f"x = {k} y + {s} from {low} to {high}, {words}", true, partial(_changed, line, after, rule)
                )


def _changed(line: Any, after: Any, rule: Callable[[], Any]) -> object:
    return identity(line + z, after + z, rule())


def laws() -> Iterator[Program]:
    """A density and its mass, and the mean that another assumption gives."""
    for rate, scale, mean in product((1, 2, 3), (Q(1, 2), 1, 2), (Q(1, 3), Q(1, 2), 1)):
        yield Program(f"{scale} times the density of rate {rate}", scale == 1, partial(_law, rate, scale))
        yield Program(f"rate {rate} and mean {mean}", Q(1, rate) == mean, partial(_law_and_mean, rate, mean))


def _law(rate: int, scale: Any) -> object:
    density = scale * rate * sp.exp(-rate * X)
    return identity(E(X), sp.Integral((X * density).xreplace({X: x}), (x, 0, oo)), rules.law(X, density, 0, oo, over=x))


def _law_and_mean(rate: int, mean: Any) -> object:
    density = rate * sp.exp(-rate * X)
    integral = sp.Integral((X * density).xreplace({X: x}), (x, 0, oo))
    return chain(E(X) + z, (integral + z, rules.law(X, density, 0, oo, over=x)),
                 (integral + E(X) - mean + z, rules.moments({E(X): mean}, "the mean")))  # fmt: skip


def signs() -> Iterator[Program]:
    """A positive letter stands for a value: refused where no number lets it be positive."""
    for k in (1, 2, 3):
        values = ((k + x**2, True), (k * b, True), (-k * b, False), (-(x**2) - k, False), (sp.Integer(-k), False),
                  (sp.exp(-k * x), True), (-sp.exp(k * x), False), (k - x, True))  # fmt: skip
        for (value, true), kind in product(values, ("hypothesis", "definition")):
            yield Program(f"{kind} a = {value}", true, partial(_sign, kind, value))


def _sign(kind: str, value: Any) -> object:
    return identity(a + z, value + z, _stated(kind, a, value))


TEMPLATES: tuple[Callable[[], Iterator[Program]], ...] = (
    binders, orders, moves, clashes, poles, parameters, factors, ranges, mistakes, bounds, changes, laws, signs,
)  # fmt: skip


def programs() -> list[Program]:
    """Return every program, those of one template after one another."""
    return [program for template in TEMPLATES for program in template()]
