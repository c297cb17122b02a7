"""The model check catches false lines: here the engine takes every line, so that only the models can refuse it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import sympy as sp
from attack_templates import TEMPLATES, Program
from test_attacks import ATTACKS

from linewise.derive import Derivation, E, RandomVariable, RandomVector, collected, identity
from linewise.derive.assumptions import Assumption
from linewise.derive.derivation import Line
from linewise.derive.rule import made
from linewise.recheck import Model, NoModelError, Verdict, check

x, t = sp.symbols("x t", real=True)
X = RandomVariable("X", real=True)
#: Attacks that models do not see, or of which they can say nothing, and why.
OUT_OF_SIGHT = {
    "a law and another exponential mean": "a mean that is stated for every c is taken as stated beside the law",
    "up and down": "each line is right; what is refused is to read the chain as one bound",
    "a derivative under an integral": "the lines differ where t is 0 alone, and t is drawn elsewhere before it is set",
    "the exponential of a sum beyond its range": "the law of the components is known by a moment alone",
    "an integral split into parts that diverge": "a part has no number",
    "a sum with half-integer ends": "such a sum has no terms that one could add",
    "a telescoping sum run backwards": "such a range has no terms that one could add",
    "two letters of one name": "each line is right of two letters; what is refused is that a page shows one",
    "two random numbers of one name": "right of the two; what is refused is that a page shows one",
    "a random vector and a vector of one name": "right of the two; what is refused is that a page shows one",
    "an index with the name of a length": "right of the two; what is refused is that a page shows one",
    "a mean differentiated by its value": "a name that a moment ties to the letter is drawn apart from it",
    "divided by a mean that is 0": "the moment and its opposite are solved to within rounding",
    "divided by a variance that is 0": "the variance and its opposite are solved to within rounding",
    "a function and another slope": "a derivative is told, and not what it is the derivative of",
    "a third moment of a constant": "weights may be negative",
    "a skew number without the tails for it": "weights may be negative",
    "a fourth moment below the square of the variance": "weights may be negative",
    "a fourth moment below that of a variance": "weights may be negative",
    "components that are more than equal": "weights may be negative",
    "a positive number with too small a cube": "weights may be negative",
    "an exponential mean below that of the mean": "weights may be negative",
    "a gap with a pole at one parameter": "no model draws this one value of the parameter",
    "an endless sum as a gap": "an endless sum has no number",
    "a limit that is wrong for one parameter": "no model draws this one value of the parameter",
    "a pole at an integer parameter": "no model draws this one value of the parameter",
    "a logarithm of what is not positive": "the logarithm is continued into the plane on both sides",
}
#: False programs that pass: what is false there is the gap, and not the line.
SILENT = {
    "bounds": ["exp(y) and the gap -a, not True", "y and the gap Sum(u[m]**2, (m, 1, -3)), up False"],
}
#: Programs of each template that are tried.
SOME = 10


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let derivations take their lines without a check."""

    def take(chain: Derivation, line: Line) -> None:
        stated = (a for rule in line.rules for a in rule.assumes)
        chain._lines.append(replace(line, assumes=tuple(a for a in stated if a not in chain.assumptions)))

    monkeypatch.setattr(Derivation, "_add", take)


def verdicts(run: Callable[[], object]) -> list[Verdict]:
    """Run a program, and check what it builds; nothing where a rule itself refuses."""
    with collected() as found:
        try:
            run()
        except (AssertionError, TypeError, ValueError):
            return []
    return [check(chain) for chain in found]


def caught(told: list[Verdict]) -> bool:
    return any(v.kind in ("differs", "no model") or v.unseen for v in told)


@pytest.mark.usefixtures("door")
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_caught(name: str) -> None:
    told = verdicts(ATTACKS[name][1])
    if told:
        assert caught(told) is (name not in OUT_OF_SIGHT), [*map(str, told)]


def some(template: Any, true: bool) -> Iterator[Program]:
    programs = [program for program in template() if program.true is true]
    Random(1).shuffle(programs)
    yield from programs[:SOME]


@pytest.mark.usefixtures("door")
@pytest.mark.parametrize("template", TEMPLATES, ids=lambda f: f.__name__)
def test_false_programs_are_caught_and_true_ones_are_not(template: Any) -> None:
    false = {p.name: told for p in some(template, False) if (told := verdicts(p.run)) and not caught(told)}
    assert [*false] == SILENT.get(template.__name__, [])
    true = {p.name: [*map(str, told)] for p in some(template, True) if caught(told := verdicts(p.run))}
    assert true == {}


def test_a_differing_line_is_named_with_its_numbers(door: None) -> None:
    told = check(identity((x + 1) ** 2, x**2 + 1, because="expand"))
    assert told.kind == "differs" and "line 2" in told.words and "x = " in told.words


def test_a_law_has_mass_one(door: None) -> None:
    law = made("a law", lambda e: e, assumes=[Assumption("law", X, sp.Tuple(2 * sp.exp(-X), 0, sp.oo))])
    told = check(identity(E(X), sp.Integral(2 * t * sp.exp(-t), (t, 0, sp.oo)), law))
    assert told.kind == "no model" and "mass 2.0" in told.words


def test_a_law_is_negative_nowhere(door: None) -> None:
    density = sp.Rational(3, 2) - 3 * X**2
    law = made("a law", lambda e: e, assumes=[Assumption("law", X, sp.Tuple(density, -1, 1))])
    told = check(identity(E(X**2), sp.Integral(t**2 * density.subs(X, t), (t, -1, 1)), law))
    assert told.kind == "no model" and "negative somewhere" in told.words


def test_it_cannot_see_a_denominator_that_vanishes_at_points(door: None) -> None:
    assert check(identity((x**2 - x) / (x - 1), x, because="algebra")).kind == "confirmed"


# --- what a model remembers ----------------------------------------------------------------------

f, u = sp.Function("f"), RandomVector("u")
i, j, n = sp.symbols("i j n", integer=True, positive=True)
s = sp.Symbol("s", positive=True)
INTEGRAL = sp.Integral(sp.exp(-(t**2) - x * t), (t, 0, sp.oo))
SECOND = Assumption("moment", E(u[i] * u[j]), sp.KroneckerDelta(i, j) * s**2, frozenset({i, j}))
CHAINS = {
    "a function that stands for an integral": (
        [Assumption("definition", f(x), INTEGRAL, frozenset({x}))],
        [sp.Derivative(f(x), x) + f(2 * x) * f(x), sp.Sum(f(i * x) / f(x), (i, 1, n))],
    ),
    "a name that varies": ([Assumption("definition", t, x**2)], [sp.Derivative(sp.Sum(t**i, (i, 1, n)), x), t]),
    "moments": ([SECOND], [sp.Sum(E(u[i] * u[j]) * x**j, (i, 1, n), (j, 1, n)), E(sp.Sum(u[i], (i, 1, n)) ** 2)]),
    "a law": (
        [Assumption("law", X, sp.Tuple(sp.exp(-X), 0, sp.oo))],
        [sp.Sum(E(X**i), (i, 1, n)) * E(sp.cos(x * X)), E(X * E(X**2) * x)],
    ),
}


def models(assumed: list[Assumption], lines: list[Any]) -> list[Model]:
    found = []
    for seed in range(6):
        with suppress(NoModelError):
            found.append(Model(seed, assumed, lines))
    return found


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_remembered_is_what_is_found_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assumed, lines = CHAINS[name]

    def numbers() -> list[Any]:
        return [n for model in models(assumed, lines)[:2] for line in (*lines, *lines) for n in model.line(line)]

    remembered = numbers()
    assert len(remembered) == 8
    monkeypatch.setattr(Model, "_key", lambda model, e, env: None)
    for one, two in zip(remembered, numbers(), strict=True):
        assert abs(one.value - two.value) <= 1e-30 * abs(two.value) and abs(one.size - two.size) <= 1e-30 * two.size
        assert one.exact is two.exact


def test_a_moment_that_depends_on_the_order_of_its_factors_has_no_model() -> None:
    """Moments that differ by the order of their components are solved for once, and their right sides must agree."""
    line = E(u[i] * u[j])
    assert models([SECOND], [line])
    assert not models([replace(SECOND, right=SECOND.right + (i - j) / sp.Integer(100))], [line])


# --- sizes of 1 ----------------------------------------------------------------------------------

k, d, w = *sp.symbols("k d", integer=True, positive=True), sp.IndexedBase("w")
ALTERNATING = sp.Sum((-1) ** k * k * sp.binomial(n, k), (k, 1, n))


@pytest.mark.parametrize(
    ("lines", "kind", "larger"),
    [
        ((ALTERNATING, 0), "differs", ()),  # right for n > 1 alone
        ((ALTERNATING / (n - 1), 0), "confirmed", ("n",)),  # and no number for n = 1
        ((ALTERNATING + f(d), f(d)), "differs", ()),
        ((sp.Sum(w[k], (k, 1, n)) * d, sp.Sum(d * w[k], (k, 1, n))), "confirmed", ()),
        ((ALTERNATING / (d - 1), 0 * d), "differs", ()),  # n is 1 while d is larger
    ],
)
def test_sizes_are_1_where_the_assumptions_allow_it(lines: Any, kind: str, larger: Any, door: None) -> None:
    told = check(identity(*lines, because="algebra"))
    assert (told.kind, told.larger) == (kind, larger)
