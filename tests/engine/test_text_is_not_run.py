"""No text that is given to the engine, alone or in a container, reaches sympy's parser, which runs it as a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.parsing import sympy_parser

from linewise.derive import Derivation, E, RandomVariable, RandomVector, Var, identity, rules
from linewise.derive.equality import differs, equal, is_exceeded
from linewise.derive.expectation import is_random
from linewise.derive.normal_form import normal_form
from linewise.derive.notation import non_negative
from linewise.ledger import agreement, counterexample

TEXT = "__import__('os').getpid()"
HOSTILE = {
    "text": TEXT, "bytes": TEXT.encode(), "numpy's text": np.str_(TEXT), "list": [TEXT], "tuple": (TEXT,),
    "nested": [[1, (TEXT,)]], "set": {TEXT}, "frozen set": frozenset([TEXT]), "mapping": {1: TEXT}, "key": {TEXT: 1},
    "array": np.asarray([TEXT]), "objects": np.asarray([TEXT], dtype=object), "no dimension": np.asarray(TEXT),
    "none": None, "a function": len, "range": range(2),
}  # fmt: skip
x, y, n = sp.symbols("x y n", positive=True)
z, v, k = RandomVariable("z"), RandomVector("v"), sp.Symbol("k", integer=True)
f = sp.Function("f")

#: Every door by which a value of the caller's becomes an expression.
DOORS: dict[str, Callable[[Any], Any]] = {
    "Derivation": Derivation,
    "identity": lambda bad: identity(bad, x, because="why"),
    "step": lambda bad: Derivation(x).step(bad, because="why"),
    "mistake": lambda bad: Derivation(x + x).step(2 * x + 0 * y, because="why", mistake=("wrong", bad)),
    "at_most": lambda bad: Derivation(x).at_most(x + 1, gap=bad, because="why"),
    "definition": lambda bad: rules.definition(x, bad).rewrite(x + 1),
    "definition of a function": lambda bad: rules.definition(f(x), bad).rewrite(f(y)),
    "hypothesis": lambda bad: rules.hypothesis(x, bad, "assumed").rewrite(x + 1),
    "hypothesis on a function": lambda bad: rules.hypothesis(f(x), bad, "assumed").rewrite(f(x) + 1),
    "moments": lambda bad: rules.moments({E(v[k]): bad}, "mean").rewrite(E(v[n])),
    "derived": lambda bad: rules.derived(identity(x * (x + 1), x**2 + x, because="expand"), at=[{x: bad}]),
    "substitution": lambda bad: rules.substitution(x, y, bad),
    "by_parts": lambda bad: rules.by_parts(bad, x, 0, 1),
    "by_parts from": lambda bad: rules.by_parts(x, x, bad, 1),
    "by_parts to": lambda bad: rules.by_parts(x, x, 0, bad),
    "E": E, "Var": Var, "is_random": is_random, "normal_form": normal_form, "non_negative": non_negative,
    "equal": lambda bad: equal(x, bad, ()), "differs": lambda bad: differs(bad, x, ()),
    "is_exceeded": lambda bad: is_exceeded(x, bad, ()),
    "quantity": lambda bad: counterexample(lambda n: [bad, 1][n - 1], {"n": 1}, "==", 1, obeys={"n": 2}, of="o"),
    "required": lambda bad: counterexample(lambda n: n, {"n": 1}, "==", bad, obeys={"n": 2}, of="o"),
    "instead": lambda bad: counterexample(lambda n: n, {"n": 1}, "==", 2, instead=lambda n: bad, of="o"),
    "tolerance": lambda bad: counterexample(lambda n: n, {"n": 1}, "==", 2, obeys={"n": 2}, tolerance=bad, of="o"),
    "observed": lambda bad: agreement(bad, 1, mistake=("m", 2), tolerance=0, because="b"),
    "expected": lambda bad: agreement(1, bad, mistake=("m", 2), tolerance=0, because="b"),
    "another value": lambda bad: agreement(1, 1, mistake=("m", bad), tolerance=0, because="b"),
    "a bound": lambda bad: agreement(1, 1, mistake=("m", 2), tolerance=bad, because="b"),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_text_is_refused_and_never_run(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(sympy_parser, "parse_expr", lambda text, *_, **__: parsed.append(text) or sp.Integer(1))
    for name, bad in HOSTILE.items():
        if name == "a function" and door in ("required", "instead"):  # of the instance, which is called
            continue
        with pytest.raises((TypeError, ValueError, AssertionError)):
            DOORS[door](bad)
        assert not parsed, name
