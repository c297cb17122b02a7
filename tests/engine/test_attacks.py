"""Programs that would end in a false line, each refused for the reason that it is false.

A program is written with the public names alone. Each row says which line it would show, and what must stop it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy as sp

from linewise.derive import Derivation, DerivationError, E, RandomVariable, RandomVector, Var, identity, rules
from linewise.derive.rules import (
    by_parts,
    collapse,
    definition,
    derived,
    differentiate,
    hypothesis,
    independent,
    integrate,
    law,
    linear_integral,
    linearity,
    moments,
    same_law,
    substitution,
    take_limit,
    telescoping,
)

x, y, c, t = sp.symbols("x y c t", real=True)
a, b, v, s = sp.symbols("a b v s", positive=True)
i, j, l, m = sp.symbols("i j l m", integer=True)  # noqa: E741
n, d = sp.symbols("n d", integer=True, positive=True)
h = sp.Symbol("h", positive=True)
X, Y, Z = (RandomVariable(name, real=True) for name in "XYZ")
u, w = sp.IndexedBase("u"), sp.IndexedBase("w")
J, g = RandomVariable("J"), sp.Symbol("g")
V, S = RandomVector("V"), RandomVariable("S", positive=True)
P, R = sp.symbols("P R", commutative=False)
even, M = sp.Symbol("k", even=True), sp.MatrixSymbol("M", n, n)
F, G = sp.Function("F"), sp.Function("G")
half = sp.Rational(1, 2)
Integral, Derivative, Limit, Sum, Subs = sp.Integral, sp.Derivative, sp.Limit, sp.Sum, sp.Subs
Product, log = sp.Product, sp.log
delta, oo = sp.KroneckerDelta, sp.oo
Program = Callable[[], object]


def chain(start: object, *steps: tuple[object, ...]) -> Derivation:
    """Begin at `start`, and add each line by its rules."""
    made = Derivation(start)
    for line, *used in steps:
        made.step(line, *used, because="" if used else "algebra")
    return made


def below(start: object, line: object, gap: object, *used: rules.Rule) -> Derivation:
    made = Derivation(start)
    made.at_most(line, *used, gap=gap, because="the gap")
    return made


def moved(value: object, of: Derivation, at: dict[object, object], result: object) -> Derivation:
    return chain(value, (result, derived(of, at=[at])))


ONE_AT_1 = (x**2, 1, hypothesis(x, 1, "for x = 1"))
TWICE = (x, 2 * a, definition(x, 2 * a))

ATTACKS: dict[str, tuple[str, Program, str]] = {
    # --- a definition is in force in the whole chain
    "a definition under d/dx": (
        "d/dx x^3 = x^2",
        lambda: chain(Derivative(x**3, x), (Derivative(x * y, x), definition(y, x**2)), (y, differentiate)),
        "binds a symbol of it",
    ),
    "a definition after d/dx": (
        "x^2 = d/dx (x y) = y",
        lambda: chain(Derivative(x * y, x), (y, differentiate), (x**2, definition(y, x**2))),
        "contradict one another, y := x",
    ),
    "a definition under a limit": (
        "1 = 0",
        lambda: chain(Limit((x + x**2) / x, x, 0), (Limit((x + x**2) * v, x, 0), definition(v, 1 / x)),
                      (0, take_limit)),
        "binds a symbol of it",
    ),
    "a definition after a limit": (
        "0 = x v = 1",
        lambda: chain(Limit(x * y, x, 0), (0, take_limit), (y - 1 / x, definition(y, 1 / x))),
        "contradict one another, y := 1/x",
    ),
    "a random definition of a constant": (
        "E[X^2] = X E[X]",
        lambda: chain(E(X**2), (E(c * X), definition(c, X)), (c * E(X), linearity)),
        "expected a RandomVariable",
    ),
    "a random hypothesis on a constant": (
        "E[c X] = X E[X]",
        lambda: chain(c * E(X), (X * E(X), hypothesis(c, X, "given"))),
        "expected nothing random",
    ),
    "independent of itself by a definition": (
        "E[X^2] = E[X]^2",
        lambda: chain(E(X**2), (E(X * Y), definition(Y, X)), (E(X) * E(Y), independent(X, Y))),
        "contradict one another",
    ),
    "independent of itself by two definitions": (
        "E[X^2] = E[X]^2",
        lambda: chain(
            E(X * Y), (E(X * Z), definition(Y, Z)), (E(X * X), definition(Z, X)), (E(X) * E(Y), independent(X, Y))
        ),
        "contradict one another",
    ),
    "two definitions of one component": (
        "x = x + u_j - 1",
        lambda: chain(
            Sum(u[l], (l, 1, n)) * u[j] + x, (x, definition(u[l], 0)), (x + u[j] - 1, definition(u[j], 1))
        ),
        "contradict one another",
    ),
    # --- what a chain rests on
    "a hypothesis moved away": (
        "25 = 1",
        lambda: moved(sp.Integer(25), identity(*ONE_AT_1), {x: 5}, 1),
        "expected x to stay",
    ),
    "a definition moved away": (
        "5 = 2 a",
        lambda: moved(sp.Integer(5), identity(*TWICE), {x: 5}, 2 * a),
        "expected x to stay",
    ),
    "the parameter of a definition moved": (
        "F(x) is c x and 5 x",
        lambda: moved(F(2), identity(F(2), 2 * c, definition(F(x), c * x)), {c: 5}, 10),
        "expected c to stay",
    ),
    "an index out of its range": (
        "u_{d+1} = 0",
        lambda: moved(
            Sum(delta(l, d + 1) * u[l], (l, 1, d)) + 1,
            identity(Sum(delta(l, m) * u[l], (l, 1, d)), u[m], collapse), {m: d + 1}, u[d + 1] + 1,
        ),
        "value that is nonnegative",
    ),
    "an index out of its range by a hypothesis": (
        "u_{d+1} = 0",
        lambda: chain(Sum(delta(l, m) * u[l], (l, 1, d)), (u[m], collapse), (u[d + 1], hypothesis(m, d + 1, "given"))),
        "contradict one another",
    ),
    "two hypotheses, one in the base": (
        "1 = 2",
        lambda: chain(x**2, (1, derived(identity(*ONE_AT_1))), (x - 1, hypothesis(x, 2, "for x = 2"))),
        "x = 1 and x = 2",
    ),
    # --- assumptions that contradict one another
    "two values": (
        "1 = 2",
        lambda: chain(x, (1, hypothesis(x, 1, "for x = 1")), (x, hypothesis(x, 1, "for x = 1")),
                      (2, hypothesis(x, 2, "for x = 2"))),
        "x = 1 and x = 2",
    ),
    "two values by an equation": (
        "5 = 9",
        lambda: chain(x**2 + x, (2 + x, hypothesis(x**2, 2, "given")), (5, hypothesis(x, 3, "given"))),
        "contradict one another",
    ),
    "a sum that is 1 and 2": (
        "1 = 2",
        lambda: chain(Sum(u[l], (l, 1, n)), (1, hypothesis(Sum(u[l], (l, 1, n)), 1, "given")),
                      (1 + Sum(u[l], (l, 1, n)) - 2, hypothesis(Sum(u[l], (l, 1, n)), 2, "given"))),
        "contradict one another",
    ),
    "a square that is negative": (
        "x^2 = -1",
        lambda: identity(x**2, -1, hypothesis(x**2, -1, "given")),
        "expected a value of its sign",
    ),
    "a positive number that is negative": ("a = -1", lambda: identity(a, -1, hypothesis(a, -1, "given")), "positive"),
    "a number that is another": (
        "0 = 1", lambda: identity(x, x + 1, hypothesis(sp.Integer(0), 1, "given")), "equation"),
    "a number that is its successor": (
        "x = x + 1", lambda: identity(x, x + 1, hypothesis(x, x + 1, "given")), "contradict"),
    "two laws": (
        "1 = 1/2",
        lambda: chain(E(X), (Integral(x * sp.exp(-x), (x, 0, oo)), law(X, sp.exp(-X), 0, oo, over=x)), (1, integrate),
                      (E(X) + half, law(X, 2 * sp.exp(-2 * X), 0, oo, over=x), integrate)),
        "contradict one another",
    ),
    "a law of mass 2": (
        "E X = 2",
        lambda: identity(E(X), Integral(2 * x * sp.exp(-x), (x, 0, oo)), law(X, 2 * sp.exp(-X), 0, oo, over=x)),
        "mass 1",
    ),
    "a law and another mean": (
        "1 = 3",
        lambda: chain(E(X), (Integral(x * sp.exp(-x), (x, 0, oo)), law(X, sp.exp(-X), 0, oo, over=x)), (1, integrate),
                      (E(X) - 2, moments({E(X): 3}, "mean"))),
        "contradict one another",
    ),
    "a mean without variance": (
        "E X = 2, E X^2 = 1",
        lambda: identity(E(X) + E(X**2), 3, moments({E(X): 2, E(X**2): 1}, "given")),
        "contradict one another",
    ),
    "one law for two densities": (
        "1 = 1/2",
        lambda: chain(E(X) + E(Y), (Integral(x * sp.exp(-x), (x, 0, oo)) + E(Y), law(X, sp.exp(-X), 0, oo, over=x)),
                      (Integral(x * sp.exp(-x), (x, 0, oo)) + Integral(2 * x * sp.exp(-2 * x), (x, 0, oo)),
                       law(Y, 2 * sp.exp(-2 * Y), 0, oo, over=x)),
                      (1 + E(Y) + E(X) - E(Y) - half + E(X) - E(X), same_law(X, Y), integrate)),
        "contradict|follow",
    ),
    "dependent by their moments": (
        "E[XY] = 5 and E[X] E[Y] = 1",
        lambda: chain(E(X) * E(Y) + E(X * Y), (1 + E(X * Y), moments({E(X): 1, E(Y): 1}, "means")),
                      (6, moments({E(X * Y): 5}, "product")), (6 + E(X * Y) - E(X) * E(Y), independent(X, Y))),
        "contradict one another",
    ),
    "a law and another exponential mean": (
        "1/(1-c) = e^{c^2}",
        lambda: chain(E(sp.exp(c * X)) + E(X), (sp.exp(c**2) + E(X), hypothesis(
            E(sp.exp(c * X)), sp.exp(c**2), "given", for_all=[c])),
            (sp.exp(c**2) + Integral(x * sp.exp(-x), (x, 0, oo)), law(X, sp.exp(-X), 0, oo, over=x))),
        "contradict one another",
    ),
    "up and down": (
        "x <= y for all x, y >= x - 1",
        lambda: below(x, x + a, a).at_least(x - b, gap=a + b, because="down"),
        "goes up or down",
    ),
    # --- moments that no random number has
    "a third moment beyond the second and the fourth": (
        "E[X^3]^2 = 25 > 3 = E X^2 E X^4",
        lambda: identity(E(X**2) + E(X**3) + E(X**4), 9, moments({E(X**2): 1, E(X**3): 5, E(X**4): 3}, "given")),
        "contradict one another",
    ),
    "a third moment of a constant": (
        "E X^3 = 4 where X is 1",
        lambda: identity(E(X) + E(X**2) + E(X**3), 6, moments({E(X): 1, E(X**2): 1, E(X**3): 4}, "given")),
        "contradict one another",
    ),
    "a skew number without the tails for it": (
        "E X^4 = 2 < 1 + E[X^3]^2",
        lambda: identity(E(X) + E(X**2) + E(X**3) + E(X**4), 5 + half,
                         moments({E(X): 0, E(X**2): 1, E(X**3): 2 + half, E(X**4): 2}, "given")),
        "contradict one another",
    ),
    "a fourth moment below the square of the variance": (
        "E X^4 = a^2/2 where E X^2 = a",
        lambda: identity(E(X**2) + E(X**4), a + a**2 / 2, moments({E(X**2): a, E(X**4): a**2 / 2}, "given")),
        "contradict one another",
    ),
    "a fourth moment below that of a variance": (
        "Var X = 4, E X = 0 and E X^4 = 1",
        lambda: chain(Var(X) + E(X) + E(X**4), (4 + E(X) + E(X**4), hypothesis(Var(X), 4, "given")),
                      (5, moments({E(X): 0, E(X**4): 1}, "given"))),
        "contradict one another",
    ),
    "a variance beyond the mean square": (
        "Var X = 4 and E X^2 = 2",
        lambda: chain(Var(X) + E(X**2), (4 + E(X**2), hypothesis(Var(X), 4, "given")),
                      (6, hypothesis(E(X**2), 2, "given"))),
        "contradict one another",
    ),
    "a product beyond both squares": (
        "E XY = 5 and E X^2 = E Y^2 = 1",
        lambda: identity(E(X * Y) + E(X**2) + E(Y**2), 7, moments({E(X * Y): 5, E(X**2): 1, E(Y**2): 1}, "given")),
        "contradict one another",
    ),
    "components that are more than equal": (
        "E V_i V_j = 5 beside E V_i^2 = 1",
        lambda: identity(E(V[1] * V[2]) + E(V[1] ** 2), 6,
                         moments({E(V[1] ** 2): 1, E(V[2] ** 2): 1, E(V[1] * V[2]): 5}, "given")),
        "contradict one another",
    ),
    "a positive number with too small a cube": (
        "E S^3 = 2 < E[S^2]^2 / E S",
        lambda: identity(E(S) + E(S**2) + E(S**3), 6, moments({E(S): 1, E(S**2): 3, E(S**3): 2}, "given")),
        "contradict one another",
    ),
    "a mean beyond that of the modulus": (
        "E X = 2 and E |X| = 1",
        lambda: identity(E(X) + E(sp.Abs(X)), 3, moments({E(X): 2, E(sp.Abs(X)): 1}, "given")),
        "contradict one another",
    ),
    "an exponential mean below that of the mean": (
        "E X = 1 and E e^X = 1",
        lambda: identity(E(X) + E(sp.exp(X)), 2, moments({E(X): 1, E(sp.exp(X)): 1}, "given")),
        "contradict one another",
    ),
    # --- what is no real number
    "a negative variance by an imaginary factor": (
        "Var(i X) = -Var X",
        lambda: identity(Var(sp.I * X), -Var(X), rules.definition_of_variance, linearity),
        "expected a real number",
    ),
    "the variance of what a root makes imaginary": (
        "Var(sqrt(-a) X) = -a Var X",
        lambda: identity(Var(sp.sqrt(-a) * X), -a * Var(X), rules.definition_of_variance, linearity),
        "expected a real number",
    ),
    "an imaginary random number": (
        "Var J = E J^2 - E[J]^2 < 0",
        lambda: identity(Var(RandomVariable("J", imaginary=True)), 1, rules.definition_of_variance),
        "expected a real number",
    ),
    "a random number defined as an imaginary one": (
        "Var J = -Var X",
        lambda: chain(Var(J), (E(J**2) - E(J) ** 2, rules.definition_of_variance),
                      (E(X) ** 2 - E(X**2), definition(J, sp.I * X), linearity)),
        "expected a real number",
    ),
    "a factor that is defined later as imaginary": (
        "Var(g X) = -2",
        lambda: chain(Var(g * X), (E(g**2 * X**2) - E(g * X) ** 2, rules.definition_of_variance),
                      (g**2 * E(X**2) - g**2 * E(X) ** 2, linearity),
                      (2 * g**2, moments({E(X): 0, E(X**2): 2}, "given")),
                      (-2, definition(g, sp.I))),
        "the variance of what is no real number",
    ),
    "the variance of a root of negative numbers": (
        "Var sqrt X = E X - ... for every X",
        lambda: identity(Var(sp.sqrt(X)), E(X) - E(sp.sqrt(X)) ** 2, rules.definition_of_variance),
        "does not follow",
    ),
    "a function defined later as imaginary": (
        "|F(1)|^2 E X = F(1)^2 E X = -2",
        lambda: chain(sp.Abs(F(1)) ** 2 * E(X), (F(1) ** 2 * E(X),), (2 * F(1) ** 2, moments({E(X): 2}, "given")),
                      (-2, definition(F(t), sp.I * t))),
        "expected a real number",
    ),
    # --- binders
    "a hypothesis on a factor under a sum": (
        "c d(d+1)/2 = sum of m^2",
        lambda: identity(Sum(c * m, (m, 1, d)), Sum(m**2, (m, 1, d)), hypothesis(c, m, "c = m")),
        "binds a symbol of it",
    ),
    "an expectation that is the index": (
        "sum of E X = sum of m",
        lambda: identity(Sum(E(X), (m, 1, d)), Sum(m, (m, 1, d)), hypothesis(E(X), m, "E X = m")),
        "binds a symbol of it",
    ),
    "a hypothesis under an integral": (
        "int c = int x",
        lambda: identity(Integral(c, (x, 0, 1)), Integral(x, (x, 0, 1)), hypothesis(c, x, "c = x")),
        "binds a symbol of it",
    ),
    "a function captured by a limit": (
        "F(c) = 0",
        lambda: chain(F(c), (0, definition(F(t), Limit(t + c, c, 0)), take_limit)),
        "contradict|follow|expected",
    ),
    "a function captured by a derivative": (
        "2 y^2 = 3 y^2",
        lambda: chain(F(y), (3 * y**2, definition(F(t), Derivative(t * y**2, y)), differentiate)),
        "expected no derivative",
    ),
    "a bound index given a value": (
        "sum of u_m = u_5",
        lambda: identity(Sum(u[m], (m, 1, 5)), Sum(u[5], (i, 1, 5)), definition(m, 5)),
        "binds a symbol of it",
    ),
    # --- calculus
    "an integral with a pole for some parameter": (
        "pi/4 = 0", lambda: identity(Integral(1 / (x**2 - c), (x, 0, 1)), 0, integrate), "integral: expected"),
    "an integral that sympy gets wrong": (
        "2 pi = 0", lambda: identity(Integral(1 / (sp.cos(x) + sp.sqrt(2)), (x, 0, 2 * sp.pi)), 0, integrate),
        "integral: expected"),
    "a pole between the ends": (
        "oo = -4", lambda: identity(Integral(1 / (x - c) ** 2, (x, 0, 1)), 1 / (c * (c - 1)), integrate),
        "integral: expected"),
    "a primitive with a jump": (
        "0 = 2.78",
        lambda: identity(Integral((sp.atan(x) + sp.atan(1 / x)) * sp.exp(-(x**2)), (x, -oo, oo)),
                         sp.pi * sp.sqrt(sp.pi) / 2, by_parts(sp.erf(x), x, -oo, oo)),
        "follow|converges",
    ),
    "a primitive with a pole for some parameter": (
        "false for 0 < c < 1/2",
        lambda: identity(Integral(-1 / (x - c) ** 2, (x, 0, half)), 1 / (half - c) + 1 / c,
                         by_parts(1 / (x - c), x, 0, half)),
        "primitive: expected",
    ),
    "an integral split into parts that diverge": (
        "pi = 0",
        lambda: chain(Integral(sp.atan(x + 1) - sp.atan(x), (x, -oo, oo)),
                      (Integral(sp.atan(x + 1), (x, -oo, oo)) - Integral(sp.atan(y), (y, -oo, oo)), linear_integral)),
        "expected one that converges",
    ),
    "a limit that depends on the order of its parameters": (
        "0 = 1/b for a > b",
        lambda: identity(Limit(sp.exp(-b * x) / (a * sp.exp(-a * x) + b * sp.exp(-b * x)), x, oo), 0, take_limit),
        "limit: expected",
    ),
    "a derivative under an integral": (
        "1 = 0 at t = 0",
        lambda: identity(Derivative(Integral(t**3 * sp.exp(-(t**2) * x), (x, 0, oo)), t),
                         Integral(sp.diff(t**3 * sp.exp(-(t**2) * x), t), (x, 0, oo)), differentiate),
        "differentiate under the sign",
    ),
    "the exponential of a sum beyond its range": (
        "E e^{2X} = -1",
        lambda: identity(
            E(sp.exp(Sum(2 * RandomVector("X")[m], (m, 1, d)))), sp.Product(-1, (m, 1, d)),
            rules.independent_exponentials(RandomVector("X"), identity(
                E(sp.exp(sp.Symbol("s", negative=True) * X)), 1 / (1 - sp.Symbol("s", negative=True)),
                hypothesis(E(sp.exp(sp.Symbol("s", negative=True) * X)), 1 / (1 - sp.Symbol("s", negative=True)),
                           "given", for_all=[sp.Symbol("s", negative=True)]))),
        ),
        "expected a value that is",
    ),
    # --- what has no value
    "a gap that diverges for some parameter": (
        "x <= x + oo - oo for a >= 1",
        lambda: below(x, x + Integral(v**-a, (v, 0, 1)), Integral(v**-a, (v, 0, 1))),
        "expected values that are defined, got Integral.* which does not converge",
    ),
    "a gap with a pole at one parameter": (
        "oo at c = 0",
        lambda: below(y, y + Integral((v + c**2) ** -2, (v, 0, 1)), Integral((v + c**2) ** -2, (v, 0, 1))),
        "which does not converge at .*c = 0",
    ),
    "a multiple of what diverges": (
        "0 oo = 0",
        lambda: identity((x * (x + 1) - x**2 - x) * Integral(1 / v, (v, 0, 1)), 0, because="expand"),
        "which does not converge",
    ),
    "an endless sum as a gap": (
        "x <= oo", lambda: below(x, x + Sum(1 / d, (d, 1, oo)), Sum(1 / d, (d, 1, oo))), "which does not converge"),
    "an integral that diverges like a logarithm of a logarithm": (
        "0 oo = 0",
        lambda: identity((x * (x + 1) - x**2 - x) * Integral(1 / (v * log(v)), (v, 2, oo)), 0, because="expand"),
        "which does not converge"),
    "an integral that diverges slower still": (
        "0 oo = 0",
        lambda: identity((x * (x + 1) - x**2 - x) * Integral(1 / (v * log(v) * log(log(v))), (v, 3, oo)), 0,
                         because="expand"),
        "which does not converge"),
    "an integral that diverges slowly towards 0": (
        "0 oo = 0",
        lambda: identity((x * (x + 1) - x**2 - x) * Integral(1 / (v * log(v)), (v, 0, half)), 0, because="expand"),
        "which does not converge"),
    "an integral that diverges slowly towards 1": (
        "0 oo = 0",
        lambda: identity((x * (x + 1) - x**2 - x) * Integral(1 / ((1 - v) * log(1 - v)), (v, half, 1)), 0,
                         because="expand"),
        "which does not converge"),
    "an endless sum that diverges slowly": (
        "x <= oo",
        lambda: below(x, x + Sum(1 / ((d + 1) * log(d + 1)), (d, 1, oo)), Sum(1 / ((d + 1) * log(d + 1)), (d, 1, oo))),
        "which does not converge"),
    "an endless sum of endless sums": (
        "0 oo = 0",
        lambda: identity((x * (x + 1) - x**2 - x) * Sum(1 / (d * n**2), (d, 1, oo), (n, 1, oo)), 0, because="expand"),
        "which does not converge"),
    "a multiple of an endless product": (
        "0 oo = 0",
        lambda: identity((x * (x + 1) - x**2 - x) * Product(1 + 1 / d, (d, 1, oo)), 0, because="expand"),
        "which does not converge"),
    "an integral of waves that stay as high": (
        "0 = 0 times what has no value",
        lambda: identity((x * (x + 1) - x**2 - x) * Integral(sp.cos(t), (t, 0, oo)), 0, because="expand"),
        "which does not converge"),
    "an integral of waves on one side": (
        "x <= oo", lambda: below(x, x + Integral(sp.Abs(sp.cos(t)) / t, (t, 1, oo)),
                                 Integral(sp.Abs(sp.cos(t)) / t, (t, 1, oo))),
        "which does not converge"),
    "a mean that a density does not have": (
        "E[X - X^2] + E X^2 = E X for the law of Cauchy",
        lambda: chain(E(X - X**2) + E(X**2), (E(X), linearity),
                      (Integral(x / (sp.pi * (1 + x**2)), (x, -oo, oo)),
                       law(X, 1 / (sp.pi * (1 + X**2)), -oo, oo, over=x))),
        "which does not converge",
    ),
    "functions defined later, whose integrals diverge": (
        "0 = oo - oo",
        lambda: chain(Integral(F(x) + G(x), (x, 0, 1)),
                      (Integral(F(x), (x, 0, 1)) + Integral(G(x), (x, 0, 1)), linear_integral),
                      (Integral(1 / x, (x, 0, 1)) + Integral(G(x), (x, 0, 1)), definition(F(t), 1 / t)),
                      (Integral(1 / x, (x, 0, 1)) + Integral(-1 / x, (x, 0, 1)), definition(G(t), -1 / t))),
        "which does not converge",
    ),
    # --- generic algebra
    "a sum with half-integer ends": (
        "-3 = 3", lambda: identity(Sum(sp.cos(2 * sp.pi * i), (i, half, 5 * half)), 3, collapse), "follow"),
    "a rule of one's own": (
        "1 = 0", lambda: identity(x, 0, rules.Rule("algebra", lambda e: sp.Integer(0))),  # type: ignore[attr-defined]
        "expected a named rule"),
    "a telescoping sum run backwards": (
        "0 = 1 - 9",
        lambda: identity(Sum(m**2 - (m + 1) ** 2, (m, 1, -5)), 1 - 16, telescoping(m**2, m)),
        "nonnegative",
    ),
    "a substitution that goes down": (
        "int x = - int", lambda: identity(Integral(x, (x, 0, 1)), Integral(y, (y, 0, -1)), substitution(x, y, -y)),
        "increases"),
    # --- what a page shows by its name alone
    "two letters of one name": (
        "d/dx (x x) = x",
        lambda: identity(Derivative(x * sp.Symbol("x"), sp.Symbol("x")), x, differentiate),
        "x is the name of two different things",
    ),
    "two random numbers of one name": (
        "E[X X] = E[X]^2",
        lambda: identity(E(X * RandomVariable("X")), E(X) * E(RandomVariable("X")),
                         independent(X, RandomVariable("X"))),
        "X is the name of two different things",
    ),
    "a random vector and a vector of one name": (
        "E[u_i u_i] = u_i E[u_i]",
        lambda: identity(E(RandomVector("u")[i] * u[i]), u[i] * E(RandomVector("u")[i]), linearity),
        "u is the name of two different things",
    ),
    "an index with the name of a length": (
        "1 + 2 + 3 = 3 d",
        lambda: identity(Sum(d, (sp.Symbol("d", integer=True), 1, 3)), 3 * d, collapse),
        "d is the name of two different things",
    ),
    "factors that do not commute": (
        "E[A W B] = A B E[W]",
        lambda: identity(E(P * RandomVariable("W", commutative=False) * R),
                         P * R * E(RandomVariable("W", commutative=False)), linearity),
        "depends on the order of its factors",
    ),
    "a positive index that is not": (
        "F(-2) = -2",
        lambda: identity(Sum(F(d), (d, -2, n)), Sum(d, (d, -2, n)), hypothesis(F(d), d, "given", for_all=[d])),
        "declared to be positive, and runs from -2",
    ),
    "a sum differentiated by its length": (
        "d/dn n(n+1)/2 = n + 1/2",
        lambda: identity(Derivative(Sum(m, (m, 1, n)), n), n + half, rules.series, differentiate),
        "which is an integer",
    ),
    "one sign that binds an index twice": (
        "d n = n",
        lambda: identity(Sum(1, (m, 1, n), (m, 1, d)), n, collapse),
        "binds a symbol twice",
    ),
    # --- what depends on a letter by an assumption
    "a mean differentiated by its value": (
        "d/dc (c E X) = c where E X = c",
        lambda: chain(Derivative(c * E(X), c), (E(X), differentiate), (c, moments({E(X): c}, "the mean"))),
        "binds a symbol of it",
    ),
    "a mean differentiated by the parameter of its law": (
        "d/da (a E X) = a where E X = a",
        lambda: chain(E(Y) * Derivative(a * E(X), a), (E(X) * E(Y), differentiate),
                      (3 * E(X), moments({E(Y): 3}, "the mean")),
                      (3 * Integral(v * sp.exp(-v / a) / a, (v, 0, oo)), law(X, sp.exp(-X / a) / a, 0, oo, over=v))),
        "binds a symbol of it",
    ),
    "a function differentiated by what it equals": (
        "d/dx (x F(y)) = x y where F(y) = x y",
        lambda: chain(Derivative(x * F(y), x), (F(y), differentiate), (x * y, hypothesis(F(y), x * y, "given"))),
        "binds a symbol of it",
    ),
    "a hypothesis at one place, used at all": (
        "int F(x) for F(x) = x^2 at one x, and F(2) = 5",
        lambda: chain(Integral(F(x), (x, 0, 1)) + F(2),
                      (Integral(x**2, (x, 0, 1)) + F(2),
                       derived(identity(F(x), x**2, hypothesis(F(x), x**2, "given")))),
                      (Integral(x**2, (x, 0, 1)) + 5, hypothesis(F(2), 5, "given"))),
        "contradict one another",
    ),
    # --- what the other assumptions make of one of them
    "divided by a mean that is 0": (
        "E X != 0 and E X = 0",
        lambda: chain((E(X) ** 2 - E(X)) / E(X), (E(X) - 1,), (-1, moments({E(X): 0}, "centred"))),
        "what else is assumed makes it 0",
    ),
    "divided by a variance that is 0": (
        "Var X != 0 and Var X = 0",
        lambda: chain((sp.Pow(Var(X), 2) + Var(X)) / Var(X), (Var(X) + 1,),
                      (1, hypothesis(Var(X), 0, "constant"))),
        "what else is assumed makes it 0",
    ),
    "divided by a difference of functions that are equal": (
        "F(1) != F(2) and F(2) = F(1)",
        lambda: chain((F(1) ** 2 - F(2) ** 2) / (F(1) - F(2)), (F(1) + F(2),),
                      (2 * F(1), hypothesis(F(2), F(1), "given"))),
        "what else is assumed makes it 0",
    ),
    "uncorrelated with itself": (
        "E u_m^2 = 1 and E u_i u_j = 0 for any i, j",
        lambda: chain(E(V[m] ** 2), (1, moments({E(V[i] ** 2): 1}, "unit")),
                      (1 + E(V[m] * V[l]), moments({E(V[i] * V[j]): 0}, "uncorrelated"))),
        "contradict one another",
    ),
    "one law and two means": (
        "E X = 1 and E Y = 2 for one law",
        lambda: chain(E(Y), (E(X), same_law(X, Y)), (1, moments({E(X): 1}, "mean")),
                      (E(Y) - 1, moments({E(Y): 2}, "mean"))),
        "what else is assumed makes the difference",
    ),
    "the mean of a sum": (
        "E Z = 4 for Z = X + Y with E X = 1 and E Y = 2",
        lambda: chain(E(Z), (E(X) + E(Y), definition(Z, X + Y), linearity), (3, moments({E(X): 1, E(Y): 2}, "means")),
                      (E(Z) - 1, moments({E(Z): 4}, "mean"))),
        "what else is assumed makes the difference",
    ),
    "a function and another slope": (
        "F(x) = x^2 and F'(x) = 1",
        lambda: chain(Derivative(F(x), x) + F(x), (1 + F(x), hypothesis(Derivative(F(x), x), 1, "given", for_all=[x])),
                      (1 + x**2, hypothesis(F(x), x**2, "given", for_all=[x]))),
        "what else is assumed makes the difference",
    ),
    "a recurrence and another value": (
        "F(n + 1) = 2 F(n), F(1) = 2 and F(2) = 3",
        lambda: chain(F(n + 1) + F(1) + F(2),
                      (2 * F(n) + F(1) + F(2), hypothesis(F(n + 1), 2 * F(n), "given", for_all=[n])),
                      (2 * F(n) + 2 + F(2), hypothesis(F(1), 2, "given")),
                      (2 * F(n) + 5, hypothesis(F(2), 3, "given"))),
        "what else is assumed makes the difference",
    ),
    "a negative variance": ("Var X = -1", lambda: identity(Var(X), -1, hypothesis(Var(X), -1, "given")),
                            "value of its sign"),
    "a positive number with a negative mean": (
        "E X = -3 for X > 0",
        lambda: chain(E(S) + x, (c + x, hypothesis(E(S), c, "mean")), (x - 3, hypothesis(c, -3, "given"))),
        "contradict one another",
    ),
    # --- laws
    "a positive number with a normal law": (
        "E|X| = 0",
        lambda: identity(E(S), Integral(x * sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi), (x, -oo, oo)),
                         law(S, sp.exp(-(S**2) / 2) / sp.sqrt(2 * sp.pi), -oo, oo, over=x)),
        "values that S can take",
    ),
    "a density that is negative": (
        "E X^2 = -1/5",
        lambda: identity(E(X**2), Integral(x**2 * (3 * half - 3 * x**2), (x, -1, 1)),
                         law(X, 3 * half - 3 * X**2, -1, 1, over=x)),
        "never negative",
    ),
    "a density without a mass": (
        "E X = 1", lambda: identity(E(S), Integral(1, (v, 0, 1)), law(S, 1 / S, 0, 1, over=v)), "mass 1"),
    "an integer with a density": (
        "P(N = n) = 0",
        lambda: identity(E(RandomVariable("N", integer=True)), Integral(x, (x, 0, 1)),
                         law(RandomVariable("N", integer=True), 1, 0, 1, over=x)),
        "the integer N",
    ),
    # --- special values
    "a sum that is wrong for one term": (
        "sum of (-1)^m m C(n, m) = 0, which is -1 for n = 1",
        lambda: identity(Sum(m * (-1) ** m * sp.binomial(n, m), (m, 0, n)), 0, rules.series), "at n = 1"),
    "a limit that is wrong for one parameter": (
        "1 = 0 at c = 3",
        lambda: identity(Limit(x * (c - 3) / (1 + x * (c - 3)), x, oo), 1, take_limit), "at c = 3"),
    "a pole at an integer parameter": (
        "oo = -2 at n = 10", lambda: identity(Integral((x - n) ** -2, (x, 9, 11)), 2 / ((n - 11) * (n - 9)), integrate),
        "integral: expected"),
    "parts that diverge and cancel": (
        "int F = oo - oo",
        lambda: identity(Integral(F(x), (x, 0, 1)), Integral(F(x) + 1 / x, (x, 0, 1)) - Integral(1 / x, (x, 0, 1)),
                         linear_integral),
        "expected one that converges",
    ),
    "an expectation that is not real": (
        "E e^{itX} is its conjugate",
        lambda: chain(E(X) + sp.conjugate(E(sp.exp(sp.I * t * X))),
                      (sp.conjugate(E(sp.exp(sp.I * t * X))), moments({E(X): 0}, "centred")),
                      (E(sp.exp(sp.I * t * X)),)),
        "does not follow",
    ),
    "a result at an odd number": (
        "F(3) = 1",
        lambda: moved(F(3), identity(F(even), 1, hypothesis(F(even), 1, "given", for_all=[even])), {even: 3}, 1),
        "expected a value that is even",
    ),
    "a logarithm of what is not positive": (
        "F(-2) = log(-2)", lambda: identity(F(-2), sp.log(-2), definition(F(a), sp.log(a))), "argument that is"),
    "a value for every value of a letter": (
        "x = 3 for every x", lambda: identity(x, 3, hypothesis(x, 3, "given", for_all=[x])), "one value is assumed"),
    "an expectation given a value by at": (
        "Var X = E X^2 - 49",
        lambda: moved(Var(X) + 1, identity(Var(X), E(X**2) - E(X) ** 2, rules.definition_of_variance),
                      {E(X): 7}, E(X**2) - 48),
        "symbols that are not random",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_false_line_is_refused_for_its_reason(name: str) -> None:
    line, program, words = ATTACKS[name]
    with pytest.raises((DerivationError, ValueError, AttributeError, TypeError), match=words):
        program()
        pytest.fail(f"accepted: {line}")


@pytest.mark.parametrize(
    "sign",
    [
        Integral(1 / (v * log(v) ** 2), (v, 2, oo)), Integral(1 / (v * log(v) * log(log(v)) ** 2), (v, 3, oo)),
        Integral(1 / (v * log(v) ** 2), (v, 0, half)), Integral(v ** sp.Rational(-11, 10), (v, 1, oo)),
        Integral(log(v) ** 3 / v**2, (v, 1, oo)), Sum(1 / ((d + 1) * log(d + 1) ** 2), (d, 1, oo)),
        Sum(1 / d**2, (d, 1, oo)), Sum((-1) ** d / d, (d, 1, oo)), Sum(d * sp.Rational(9, 10) ** d, (d, 1, oo)),
        Sum(1 / (d * n) ** 2, (d, 1, oo), (n, 1, oo)), Product(1 + 1 / d**2, (d, 1, oo)),
        Integral(sp.sin(x) / x, (x, 0, oo)), Integral(sp.cos(x) / log(x + 2), (x, 0, oo)),
        Integral(sp.Abs(sp.cos(x)) / x**2, (x, 1, oo)),
    ],
    ids=str,
)  # fmt: skip
def test_what_converges_slowly_is_no_divergence(sign: sp.Expr) -> None:
    assert identity((y * (y + 1) - y**2 - y) * sign, 0, because="expand")


# --- what is assumed is shown, and carried along ---------------------------------------------------


def assumed(made: Derivation) -> list[str]:
    return [str(a) for a in made.assumptions]


def test_a_chain_says_what_it_assumes_whatever_the_reason_says() -> None:
    made = Derivation(x)
    made.at_most(x + a, gap=a, because="a is positive")
    made.step(y, definition(a, y - x), because="so it is")
    assert assumed(made) == ["a := -x + y", "-x + y > 0"]
    page = made._repr_mimebundle_()
    kept = page["application/vnd.linewise.derivation+json"]["assumed"]
    assert [(k["kind"], k["line"]) for k in kept] == [("definition", 3), ("positive", 3)]
    assert "Assumed: " in page["text/html"] and "Assumed: " in page["text/latex"] and "assumed: " in page["text/plain"]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: identity((x**2 - x) / (x - 1), x, because="cancel"), ["x - 1 != 0"]),
        (lambda: identity(Sum(1, (m, 1, d / h)), d / h, collapse), ["d/h - 1 is an integer"]),
        (lambda: identity(Sum(delta(l, m) * u[l], (l, 1, d)), u[m], collapse), ["m lies in 1, d"]),
        (lambda: identity(Sum(m, (m, 1, i)), i * (i + 1) / 2, rules.series), ["i >= 0"]),
        (lambda: identity(E(X * Y), E(X) * E(Y), independent(X, Y)), ["X, Y are independent"]),
        (lambda: identity(Sum(u[l], (l, 1, d)), d, hypothesis(u[l], 1, "given"), collapse), ["u[l] = 1"]),
    ],
)
def test_what_a_step_takes_for_granted_is_an_assumption(made: Program, words: list[str]) -> None:
    assert assumed(made()) == words  # type: ignore[arg-type]


def test_assumptions_are_carried_along_and_moved() -> None:
    base = identity((x**2 - x) / (x - 1), x, because="cancel")
    total = identity(Sum(u[l] * (x**2 - x) / (x - 1), (l, 1, d)), d * x, hypothesis(u[l], 1, "ones"), collapse)
    used = chain(total.lines[0].value.subs(x, c) + y, (d * c + y, derived(total, at=[{x: c}])))
    assert "c - 1 != 0" in assumed(used)
    with pytest.raises(ValueError, match="expected a value that is nonzero"):
        derived(base, at=[{x: sp.Integer(1)}])
    for_all = identity(F(x), 2 * x, hypothesis(F(x), 2 * x, "given", for_all=[x]))
    assert assumed(chain(F(3), (6, derived(for_all, at=[{x: sp.Integer(3)}])))) == ["F(x) = 2*x"]


def test_an_assumption_cannot_be_taken_out_of_a_rule() -> None:
    import dataclasses

    with pytest.raises((TypeError, ValueError), match="named rule"):
        dataclasses.replace(hypothesis(x, 1, "given"), assumes=())
    with pytest.raises(AttributeError):
        identity(*ONE_AT_1).assumptions = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        (E(2 * X), 2 * E(X)), (Integral(2 * x, (x, 0, 1)), sp.Integer(1)),
        (F(x), F(x) + sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1),
        (Derivative(x**2, x), 2 * x), (sp.Product(2 * u[m], (m, 1, 3)), 8 * u[1] * u[2] * u[3]),
        (Limit((1 + 1 / x) ** x, x, oo), sp.E),
    ],
)  # fmt: skip
def test_a_mistake_that_is_true_is_an_error(line: sp.Expr, mistake: sp.Expr) -> None:
    square = (1 + line) ** 2
    right = 1 + 2 * line + line**2
    with pytest.raises(DerivationError, match="passes the same check"):
        identity(square, right, because="expand", mistake=("true", (1 + mistake) ** 2))
    assert identity(square, right, because="expand", mistake=("false", (2 + mistake) ** 2)).mistakes


def test_a_mistake_that_the_assumptions_make_true_is_an_error() -> None:
    made = chain(E(X) + E(2 * X), (3 + E(2 * X), moments({E(X): 3}, "the mean")))
    with pytest.raises(DerivationError, match="passes the same check"):
        made.step(3 + 2 * E(X), linearity, mistake=("true", sp.Integer(9)))
    made.step(3 + 2 * E(X), linearity, mistake=("false", sp.Integer(8)))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: identity(Derivative(sp.Abs(x), x), sp.sign(x), differentiate), ["x != 0"]),
        (lambda: identity(Derivative(sp.Max(0, x), x), sp.Heaviside(x), differentiate), ["x != 0"]),
        (lambda: identity(sp.tan(x) * sp.cos(x), sp.sin(x), because="by its definition"), ["cos(x) != 0"]),
        (lambda: identity(F(n - 1), n - 1, definition(F(d), d)), ["F(d) := d", "n - 1 > 0"]),
        (
            lambda: identity(sp.Trace(sp.MatMul(M, M.I, evaluate=False)), n, because="$M$ is regular"),
            ["Determinant(M) != 0"],
        ),
    ],
)
def test_a_kink_a_pole_and_an_inverse_are_assumptions(made: Program, words: list[str]) -> None:
    assert [w.replace("-x", "x") for w in assumed(made())] == words  # type: ignore[arg-type]


@pytest.mark.parametrize("mistake", [1 + x, "no pair", (x, "the wrong way round"), ("three", x, y)])
def test_a_mistake_is_a_name_and_a_line(mistake: object) -> None:
    with pytest.raises(TypeError, match="expected a name and a wrong line"):
        identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand", mistake=mistake)  # type: ignore[arg-type]
