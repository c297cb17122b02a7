"""Derivations accept what follows, reject what does not, and say of each step what it rests on."""

from __future__ import annotations

import pytest
import sympy as sp

from linewise.derive import Derivation, DerivationError, E, RandomVariable, RandomVector, Var, identity, notation, rules
from linewise.derive.equality import differs, equal
from linewise.derive.normal_form import normal_form

i, j, l, m = sp.symbols("i j l m", integer=True)  # noqa: E741
n, d = sp.symbols("n d", integer=True, positive=True)
sigma, a, b = sp.symbols("sigma a b", positive=True)
x, y = sp.symbols("x y", real=True)
q, k, z = RandomVector("q"), RandomVector("k"), RandomVector("z")
X, Y, W = (RandomVariable(name, real=True) for name in "XYW")
u, w = sp.IndexedBase("u"), sp.IndexedBase("w")
delta = sp.KroneckerDelta


def over(summand: sp.Expr, *indices: sp.Symbol) -> sp.Expr:
    return sp.Sum(summand, *((index, 1, d) for index in indices))


def integral(integrand, low=0, high=1, variable=x):
    return sp.Integral(integrand, (variable, low, high))


# --- each rule does its own work and no more ---------------------------------------------------

c = sp.Symbol("c")
ONE = identity(E(sp.exp(c * X)), sp.exp(c**2), rules.hypothesis(
    E(sp.exp(c * X)), sp.exp(c**2), "given", for_all=[c]))  # fmt: skip

STEPS = [
    ("linearity", E(2 * X + Y), 2 * E(X) + E(Y), rules.linearity, 2 * E(X) - E(Y)),
    ("linearity under sums", E(over(a * q[m], m)), a * over(E(q[m]), m), rules.linearity, over(E(q[m]), m)),
    ("independence", E(X**2 * Y), E(X**2) * E(Y), rules.independent(X, Y), E(X) ** 2 * E(Y)),
    ("a moment", E(q[m] * q[l]), sigma**2 * delta(l, m),
     rules.moments({E(q[i] * q[j]): sigma**2 * delta(i, j)}, "uncorrelated"), sigma**2),
    ("a moment of one index", E(q[m] ** 2), sigma**2 * delta(m, m),
     rules.moments({E(q[i] * q[j]): sigma**2 * delta(i, j)}, "uncorrelated"), sigma),
    ("a decided sum", over(delta(l, m) * u[l], l), u[m], rules.collapse, u[l]),
    ("a sum that ends before the index", over(delta(l, d + 1) * u[l], l), sp.Integer(0), rules.collapse, u[d + 1]),
    ("a sum that begins after the index", over(delta(l, 0) * u[l], l), sp.Integer(0), rules.collapse, u[0]),
    ("equal terms", over(a, m), d * a, rules.collapse, a),
    ("the variance", Var(X), E(X**2) - E(X) ** 2, rules.definition_of_variance, E(X**2)),
    ("one law", E(X) * E(Y), E(X) ** 2, rules.same_law(X, Y), E(X)),
    ("a definition", sp.Function("f")(3), sp.Integer(9), rules.definition(sp.Function("f")(x), x**2), 6),
    ("a derivative", sp.Derivative(x**3, x), 3 * x**2, rules.differentiate, x**2),
    ("a limit", sp.Limit(1 / x, x, sp.oo), sp.Integer(0), rules.take_limit, 1),
    ("an integral", sp.Integral(x, (x, 0, 1)), sp.Rational(1, 2), rules.integrate, 1),
    ("integrals added", sp.Integral(x + a, (x, 0, 1)), sp.Integral(x, (x, 0, 1)) + sp.Integral(a, (x, 0, 1)),
     rules.linear_integral, sp.Integral(x, (x, 0, 1)) - sp.Integral(a, (x, 0, 1))),
    ("parts", sp.Integral(a * sp.exp(-a), (a, 0, sp.oo)), sp.Integral(sp.exp(-a), (a, 0, sp.oo)),
     rules.by_parts(-a * sp.exp(-a), a, 0, sp.oo), 2 * sp.Integral(sp.exp(-a), (a, 0, sp.oo))),
    ("a density", E(X**2), sp.Integral(x**2 * sp.exp(-x), (x, 0, sp.oo)),
     rules.law(X, sp.exp(-X), 0, sp.oo, over=x), sp.Integral(x * sp.exp(-x), (x, 0, sp.oo))),
    ("a product of exponentials", E(sp.exp(over(u[m] * q[m], m))), sp.Product(sp.exp(u[m] ** 2), (m, 1, d)),
     rules.independent_exponentials(q, ONE), sp.Product(sp.exp(2 * u[m] ** 2), (m, 1, d))),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "rule", "wrong"), [s[1:] for s in STEPS], ids=[s[0] for s in STEPS])
def test_a_rule_gives_its_step_and_nothing_else_does(before, after, rule, wrong) -> None:
    assert equal(before, after, [rule])
    assert not equal(before, after), "the step needs its rule"
    assert differs(before, wrong, [rule]) and not equal(before, wrong, [rule])
    others = [s[3] for s in STEPS if s[3] is not rule and s[3].words != rule.words]
    unrelated = [r for r in others if r.words in {"linearity of the expectation", "take the limit", "differentiate"}]
    assert not any(equal(before, after, [r]) for r in unrelated)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (over(u[m], m) ** 2, over(u[m] * u[l], m, l)),
        (over(u[m] * w[l], m, l), over(u[m], m) * over(w[m], m)),
        (over(u[m] + w[m], m), over(u[l], l) + over(w[j], j)),
        ((x + y) ** 2, x**2 + 2 * x * y + y**2),
        (E((X + Y) ** 2), E(X**2 + 2 * X * Y + Y**2)),
        (1 / (1 + sp.exp(-x)), sp.exp(x) / (1 + sp.exp(x))),
        (over(u[m] * delta(m, l), m) * w[j], over(w[j] * u[i] * delta(l, i), i)),
    ],
)
def test_algebra_needs_no_rule(before, after) -> None:
    assert equal(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (over(u[m], m) ** 2, over(u[m] ** 2, m)),
        (over(u[m] * w[m], m), over(u[m], m) * over(w[m], m)),
        (sp.Sum(u[m], (m, 1, d)), sp.Sum(u[m], (m, 0, d))),
        (sp.Sum(u[m], (m, 1, d)), sp.Sum(u[m], (m, 1, n))),
        (over(u[m] * w[l], m), over(u[l] * w[m], m)),
        (E(X * Y), E(X) * E(Y)),
        (E(X) ** 2, E(X**2)),
    ],
)
def test_algebra_does_no_more_than_algebra(before, after) -> None:
    assert not equal(before, after) and differs(before, after)


@pytest.mark.parametrize(
    ("before", "after"), [(E(2 * X), 2 * E(X)), (over(delta(l, m) * u[l], l), u[m]), (integral(2 * x), 1)]
)
def test_what_is_true_by_a_rule_is_neither_algebra_nor_a_mistake(before, after) -> None:
    assert not equal(before, after) and not differs(before, after)


def test_what_no_group_names_is_not_independent_of_anything() -> None:
    assert not equal(E(X * Y * W), E(X) * E(Y) * E(W), [rules.independent(X, Y)])
    assert not equal(E(X * W), E(X) * E(W), [rules.independent(X, Y)])
    assert equal(E(X * Y), E(X) * E(Y), [rules.independent(X, (Y, W))])
    assert not equal(E(Y * W), E(Y) * E(W), [rules.independent(X, (Y, W))])


def test_a_delta_decides_only_a_sum_over_the_same_range() -> None:
    square = sp.Sum(delta(l, m), (l, 1, d), (m, 1, d))
    uneven = sp.Sum(delta(l, m), (l, 1, d), (m, 1, d + 1))
    assert equal(square, d, [rules.collapse]) and not equal(uneven, d, [rules.collapse])


def test_a_moment_is_matched_by_its_pattern_only() -> None:
    rule = rules.moments({E(q[i] * q[j]): sigma**2 * delta(i, j)}, "uncorrelated")
    assert not equal(E(q[m] * k[l]), sigma**2 * delta(l, m), [rule])
    assert not equal(E(q[m] ** 3), sigma**2, [rule])


# --- the chain ---------------------------------------------------------------------------------


def chain() -> Derivation:
    steps = Derivation(E((X + Y) ** 2), "a square")
    steps.step(E(X**2) + 2 * E(X * Y) + E(Y**2), rules.linearity, because="expand")
    return steps


@pytest.mark.parametrize(
    ("line", "arguments", "words"),
    [
        (E(X**2) + E(X * Y) + E(Y**2), {"because": "algebra"}, "does not follow"),
        (E(X**2) + 2 * E(X * Y) + E(Y**2), {"because": "again"}, "repeats"),
        (E(X**2) + 2 * E(X) * E(Y) + E(Y**2), {"because": "algebra"}, "does not follow"),
        (E(X**2) + E(Y**2) + 2 * E(X * Y) + 0 * x, {"because": ""}, "repeats|in words"),
    ],
)
def test_a_wrong_step_raises(line, arguments, words) -> None:
    with pytest.raises(DerivationError, match=words):
        chain().step(line, **arguments)


def test_a_step_without_words_or_rules_raises() -> None:
    with pytest.raises(DerivationError, match="in words"):
        Derivation((x + 1) ** 2).step(x**2 + 2 * x + 1)


def test_a_rule_that_is_not_needed_is_refused() -> None:
    with pytest.raises(DerivationError, match="without the rule"):
        Derivation((x + 1) ** 2).step(x**2 + 2 * x + 1, rules.linearity)


def test_a_mistake_must_have_a_name_and_must_be_rejected() -> None:
    with pytest.raises(DerivationError, match="passes the same check"):
        identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand", mistake=("none", (1 + x) ** 2))
    with pytest.raises(DerivationError, match="expected a name"):
        identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand", mistake=(" ", x))


@pytest.mark.parametrize("value", [0.5, "x", None, True, sp.Float(2), sp.nan, [x]])
def test_lines_are_exact(value) -> None:
    with pytest.raises(TypeError, match="start: expected an exact"):
        Derivation(value)


def test_matrices_are_compared_entry_by_entry() -> None:
    assert equal(sp.Matrix([[(x + 1) ** 2]]), sp.Matrix([[x**2 + 2 * x + 1]]))
    assert not equal(sp.Matrix([[x, y]]), sp.Matrix([[y, x]])) and not equal(sp.Matrix([[x]]), sp.Matrix([[x], [x]]))
    assert not equal(sp.Matrix([[x]]), x)


def test_bounds_need_a_gap_that_is_visibly_non_negative() -> None:
    steps = Derivation(2 * x * y)
    steps.at_most(x**2 + y**2, gap=(x - y) ** 2, because="a square is not negative")
    with pytest.raises(DerivationError, match="does not follow"):
        Derivation(x).at_most(x + y, gap=y, because="y may be negative")
    with pytest.raises(DerivationError, match="does not follow"):
        Derivation(2 * x * y).at_most(x**2 + 2 * y**2, gap=(x - y) ** 2, because="the wrong gap")
    with pytest.raises(DerivationError, match="does not follow"):
        Derivation(2 * x * y).at_least(x**2 + y**2, gap=(x - y) ** 2, because="the wrong way round")


@pytest.mark.parametrize(
    ("expression", "truth"),
    [(x**2, True), (x, False), (-(x**2), False), (E(X**2), True), (E(X), False), (over(u[m] ** 2, m), False),
     (1 - sp.exp(-(x**2)), True), (1 - sp.exp(x), False), (a * b, True), (a - b, False)],
)  # fmt: skip
def test_what_is_visibly_non_negative(expression, truth) -> None:
    assert notation.non_negative(expression) is truth


def test_derived_needs_equalities_and_can_be_used_elsewhere() -> None:
    square = identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand")
    assert equal((y + 1) ** 2 * a, a * (y**2 + 2 * y + 1), [rules.derived(square, at=[{x: y}])])
    bound = Derivation(2 * x * y)
    bound.at_most(x**2 + y**2, gap=(x - y) ** 2, because="a square")
    with pytest.raises(ValueError, match="equalities"):
        rules.derived(bound)


def step(before, after, *used) -> bool:
    """Whether the rules make a step."""
    return equal(before, after, used)


k1 = sp.Symbol("k", integer=True, positive=True)
t, v, real = sp.Symbol("t", real=True), sp.Symbol("v", positive=True), {"real": True}
f, g, M = sp.Function("f"), sp.Function("g"), sp.Function("M")


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: step(integral(-1 / (1 + x**2), -1, 1), sp.pi / 2, rules.by_parts(sp.atan(1 / x), x, -1, 1)),
        lambda: step(integral(-1 / (x - 1) ** 2, 0, 2), -2, rules.by_parts(1 / (x - 1), x, 0, 2)),
        lambda: step(integral(1 / x, -1, 1), 0, rules.by_parts(sp.log(x**2) / 2, x, -1, 1)),
        lambda: step(integral(x * y), integral((y + 1) * y, -1, 0, y), rules.substitution(x, y, y + 1)),
        lambda: step(integral(sp.Integer(1), -1, 1), 0, rules.substitution(x, v, sp.sqrt(v))),
        lambda: step(integral(x), 0, rules.substitution(x, y, 1 / y)),
        lambda: step(integral(x), 0, rules.substitution(x, y, -y)),
        lambda: step(integral(sp.Abs(x), 0, -1), integral(x, 0, -1), rules.linear_integral),
        lambda: step(integral(sp.Abs(x), 0, t), integral(x, 0, t), rules.linear_integral),
        lambda: step(sp.Derivative(y * x, x), x**2, rules.differentiate, rules.definition(y, x**2)),
        lambda: step(sp.Derivative(sp.exp(-(x**2)), y), 0, rules.differentiate),
        lambda: step(M(4, t), y, rules.definition(M(0, t), y)),
        lambda: step(g(1, 2), 1, rules.definition(g(x, x), x)),
        lambda: step(integral(g(y)), integral(y + x), rules.definition(g(y), y + x)),
        lambda: step(M(1, x), integral(x * sp.exp(-x)), rules.definition(M(k1, t), integral(x**k1 * sp.exp(-t)))),
        lambda: step(a, -1, rules.definition(a, -1)),
        lambda: step(M(1), t * M(0), rules.derived(RECURSION, at=[{k1: 0}])),
        lambda: step(E(sp.exp(X * W)), sp.exp(W**2), rules.derived(ONE, at=[{c: W}])),
        lambda: step(E(sp.exp(b + over(u[m] * q[m], m))), sp.Product(sp.exp((b * u[m]) ** 2), (m, 1, d)),
                     rules.independent_exponentials(q, ONE)),
        lambda: step(E(sp.exp(over(q[m] * q[m + 1], m))), sp.Product(sp.exp(q[m + 1] ** 2), (m, 1, d)),
                     rules.independent_exponentials(q, ONE)),
        lambda: step(sp.log(sp.Product(u[m], (m, 1, d))), over(sp.log(u[m]), m), rules.log_of_product),
        lambda: step(E(x * X), integral(x**2), rules.law(X, sp.Integer(1), 0, 1, over=x)),
        lambda: step(E(q[2]), 0, rules.moments({E(q[1]): 0}, "the first is centred")),
        lambda: step(over(delta(i, 0) * u[i], i), u[0], rules.collapse),
        lambda: step(over(delta(i, d + 1) * u[i], i), u[d + 1], rules.collapse),
        lambda: step(over(delta(l, m + 1) * u[l], l), 0, rules.collapse),
        lambda: step(over(delta(l, d - 1) * u[l], l), 0, rules.collapse),
        lambda: step(over(delta(i, j + 1), i, j), d, rules.collapse),
        lambda: step(over(delta(2 * l, m) * u[m], m, l), over(u[2 * l], l), rules.collapse),
        lambda: step(sp.Sum(delta(l, j) * u[l], (l, 1, m), (m, 1, d)), d * u[j], rules.collapse),
        lambda: step(over(u[l] / delta(l, m), l), u[m], rules.collapse),
        lambda: step(sp.Sum(1, (l, 1, d - 2)), d - 2, rules.collapse),
        lambda: step(sp.Sum(u[m], (m, 1, m)), sp.Sum(u[l], (l, 1, l))),
        lambda: step(sp.Sum(w[m], (l, 1, d), (m, 1, l)), sp.Sum(w[m], (m, 1, l), (l, 1, d))),
        lambda: step(sp.Sum(1 / m - 1 / (m + 1), (m, 1, sp.oo)),
                     sp.Sum(1 / m, (m, 1, sp.oo)) - sp.Sum(1 / (m + 1), (m, 1, sp.oo))),
        lambda: step(over(sp.exp(u[m] * u[sp.Symbol("i_1", integer=True)]), m), over(sp.exp(u[m] ** 2), m)),
        lambda: step(E(q[m]), m, rules.moments({E(q[1]): 1}, "one")),
        lambda: step(E(sp.Sum(q[m], (m, 1, W))), sp.Sum(E(q[m]), (m, 1, W)), rules.linearity),
        lambda: step(over(a, m), over(u[m], m), rules.definition(a, u[m])),
        lambda: step(sp.Derivative(over(u[m] * w[m], m), u[m]), over(w[m], m), rules.differentiate),
        lambda: step(sp.Derivative(over(u[l], l), u[d + 1]), 1, rules.differentiate, rules.collapse),
        lambda: step(integral(1 / x**2, -1, 1), -2, rules.by_parts(-1 / x, x, -1, 1)),
        lambda: step(integral(1 / sp.cos(x) ** 2, 0, sp.pi), 0, rules.by_parts(sp.tan(x), x, 0, sp.pi)),
        lambda: step(E(sp.Sum(q[m], (m, 1, sp.oo))), sp.Sum(E(q[m]), (m, 1, sp.oo)), rules.linearity),
    ],
)  # fmt: skip
def test_a_rule_is_not_stretched_beyond_what_it_says(attempt) -> None:
    try:
        assert not attempt()
    except ValueError as refused:
        assert "expected" in str(refused)


RECURSION = identity(M(k1 + 1), t * M(k1) + k1 * M(k1 - 1), rules.hypothesis(
    M(k1 + 1), t * M(k1) + k1 * M(k1 - 1), "given"))  # fmt: skip


@pytest.mark.parametrize(
    "expression",
    [
        integral(x**2, 1, 0), integral(x**2, 0, t), sp.Integral(v, (v, -1, 0)), sp.Sum(k1, (k1, -3, 1)),
        sp.Sum(a**2, (m, 1, -3)), integral(x, -1, 1),
    ],
)  # fmt: skip
def test_what_is_not_visibly_non_negative(expression) -> None:
    assert not notation.non_negative(expression)


@pytest.mark.parametrize(
    ("line", "same"),
    [
        (over(2 * u[m], m), 2 * sp.Sum(u[m + 1], (m, 0, d - 1))),
        (over(m, m), d * (d + 1) / 2),
        (over(u[m], m), over(u[d + 1 - m], m)),
    ],
)
def test_a_true_line_is_no_mistake(line, same) -> None:
    assert not differs(line, same)


def test_a_line_that_sympy_evaluated_at_once_is_explained() -> None:
    """x + x is 2 x before the derivation sees it; unevaluated, it is a step."""
    with pytest.raises(DerivationError, match=r"line 2 repeats line 1: .*, got 2\*x again.*evaluate=False"):
        Derivation(x + x).step(2 * x, because="add")
    unevaluated = Derivation(sp.Add(x, x, evaluate=False))
    unevaluated.step(2 * x, because="add", mistake=("a square", x**2))
    assert len(unevaluated.lines) == 2


def test_a_bound_that_is_no_bound_is_refused() -> None:
    with pytest.raises(DerivationError, match="repeats"):
        Derivation(x).at_most(x, gap=0, because="nothing")
    with pytest.raises(DerivationError, match="passes the same check"):
        Derivation(2 * x * y).at_most(
            x**2 + y**2, gap=(x - y) ** 2, because="a square", mistake=("a true bound", 2 * x**2 + 2 * y**2)
        )
    Derivation(2 * x * y).at_most(
        x**2 + y**2, gap=(x - y) ** 2, because="a square", mistake=("half", (x**2 + y**2) / 2)
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rules.independent(X), "at least two groups"),
        (lambda: rules.independent(X, X), "without a common member"),
        (lambda: rules.moments({X: 1}, "mean"), "expected expectations"),
        (lambda: rules.substitution(x, y, y**2), "solved for y in one way"),
    ],
)
def test_bad_rules_are_named(make, words) -> None:
    with pytest.raises(ValueError, match=words):
        make()


# --- how it looks --------------------------------------------------------------------------------


def test_a_derivation_renders_as_one_block_with_its_mistakes_folded() -> None:
    steps = Derivation(over(E(q[m]) * E(k[m]), m), "a <sum>")
    steps.step(0, rules.moments({E(q[m]): 0}, "mean $0$ & centred"), mistake=("one <half>", over(E(k[m]), m)))
    page = steps._repr_mimebundle_()
    assert steps.displayed and page["text/html"].count('class="line"') == 1
    assert "<sum>" not in page["text/html"] and "one &lt;half&gt;" in page["text/html"]
    assert r"mean \(0\) &amp; centred" in page["text/html"] and "<details>" in page["text/html"]
    assert page["text/latex"].startswith("$$\n\\begin{aligned}") and r"\&" in page["text/latex"]
    assert r"\mathbb{E}\left[{q}_{m}\right] \mathbb{E}\left[{k}_{m}\right]" in page["text/latex"]
    assert steps.record()["mistakes"][0]["name"] == "one <half>"


def test_lines_cannot_be_slipped_in() -> None:
    steps = chain()
    with pytest.raises(AttributeError):
        steps.lines.append(steps.lines[0])
    assert len(steps.lines) == 2


def test_a_normal_form_does_not_depend_on_names() -> None:
    assert normal_form(over(u[m] * w[l], m, l)) == normal_form(over(u[i] * w[j], j, i))


def test_the_limit_of_a_function_that_nothing_defines_is_left_alone() -> None:
    f = sp.Function("f")
    unknown = sp.Limit(f(x) / x, x, sp.oo)
    assert rules.take_limit.rewrite(unknown) == unknown
    defined = rules.definition(f(x), 2 * x, "$f(x)=2x$")
    assert equal(unknown, 2, (defined, rules.take_limit)) and not equal(unknown, 1, (defined, rules.take_limit))


def test_a_sum_over_too_many_indices_names_the_argument() -> None:
    indices = sp.symbols("a:f", integer=True)
    line = sp.Sum(sp.IndexedBase("u")[indices], *((i, 1, sp.Symbol("n", integer=True)) for i in indices))
    with pytest.raises(ValueError, match="expression: expected sums over at most 5 indices, got one over 6"):
        normal_form(line)


def test_a_definition_keeps_the_sign_of_its_symbol() -> None:
    parts, rest = sp.IndexedBase("p", positive=True), sp.IndexedBase("r", nonnegative=True)
    others = sp.Sum(parts[l], (l, 1, n)) - parts[j]
    assert rules.definition(rest[j], others).rewrite(rest[j]) == others
    with pytest.raises(ValueError, match="expected a value of its sign"):
        rules.definition(rest[j], -others)


F, G = sp.Function("F"), sp.Function("G")


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ((x, 2 * a), (x, 3 * a), "x is 2\\*a and 3\\*a"),
        ((x, 2 * y), (y, 3 * x), "is defined by itself"),
        ((u[i], a), (u[i], b), "u\\[i\\] is a and b"),
        ((F(i), i**2), (F(m), m**3), r"F\(m\)"),
        ((F(i), i**2), (F(3), 8), r"F\(3\) is 9 and 8"),
        ((F(3), 8), (F(i), i**2), r"F\(i\) is 8 and 9"),
        ((F(x), 2 * G(x)), (G(y), 3 * F(y)), "is defined by itself"),
    ],
)
def test_the_definitions_of_a_chain_agree(first: tuple, second: tuple, words: str) -> None:  # type: ignore[type-arg]
    chain = Derivation(5 * first[0] + second[0])
    chain.step(5 * first[1] + second[0].subs(*first), rules.definition(*first))
    with pytest.raises(DerivationError, match=words):
        chain.step(chain.result + 1, rules.definition(*second))


def test_a_derivation_brings_its_definitions_along() -> None:
    twice = identity(x, 2 * a, rules.definition(x, 2 * a))
    chain = Derivation(x + 1)
    chain.step(2 * a + 1, rules.derived(twice))
    with pytest.raises(DerivationError, match="x is 2\\*a and 3\\*a"):
        chain.step(3 * a + 1, rules.definition(x, 3 * a))


def test_definitions_that_agree_are_accepted_twice() -> None:
    chain = Derivation(F(3) + F(m) + x)
    chain.step(9 + m**2 + x, rules.definition(F(i), i**2))
    chain.step(F(4) - 7 + m**2 + x, rules.definition(F(j), j * j))
    assert chain.result == F(4) - 7 + m**2 + x


def test_a_hypothesis_on_a_function_reaches_into_sums_and_catches_no_index() -> None:
    line = sp.Sum(F(n - 1) * u[m], (m, 1, n))
    product = sp.Product(u[m], (m, 1, n - 1))
    assert rules.hypothesis(F(n - 1), product, "by induction").rewrite(line) == sp.Sum(product * u[m], (m, 1, n))
    with pytest.raises(ValueError, match="right: expected no symbol that the line sums"):
        rules.hypothesis(F(n - 1), u[m], "assumed").rewrite(line)
