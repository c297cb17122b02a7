"""What a verdict rests on: proofs, agreements, counterexamples and observations.

Each constructor runs its check at once, and runs the same check on its negative control.
It raises `LedgerError` when the check fails, and also when the control passes: a check
that cannot fail shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp

from attnmath.estimate import Estimate
from attnmath.ledger import symbols

#: Two-sided normal quantile behind every statistical agreement: a true statement is
#: rejected once in about 16 000 checks, so a book of some hundred checks stays quiet.
Z = 4.0

_RELATIONS: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "==": lambda a, b, tol: abs(a - b) <= tol,
    "<=": lambda a, b, tol: a <= b + tol,
    ">=": lambda a, b, tol: a >= b - tol,
    "<": lambda a, b, tol: a < b - tol,
    ">": lambda a, b, tol: a > b + tol,
}


class LedgerError(AssertionError):
    """A check that does not hold, or a negative control that was not rejected."""


@dataclass(frozen=True)
class Evidence:
    """One check that held, in a form that a page and a machine can read.

    text : the finding in plain words.  markup : the same with formulas between dollar signs.
    outcome : set by observations only: supported, contradicted or undecided.
    """

    kind: str
    text: str
    details: dict[str, str] = field(default_factory=dict)
    outcome: str | None = None
    markup: str = ""

    def record(self) -> dict[str, Any]:
        """Return the JSON form that is stored in the cell's output."""
        out: dict[str, Any] = {"kind": self.kind, "text": self.text, **self.details}
        optional = {"outcome": self.outcome, "markup": self.markup}
        return out | {key: value for key, value in optional.items() if value}


def proof(residual: Any, *, control: Any, of: str = "") -> Evidence:
    """Evidence that `residual` is exactly zero in general symbols, and that `control` is not.

    Both are sympy expressions, matrices or collections; every entry of the residual must
    vanish, and at least one entry of every control must not. The control is the residual
    of a wrong statement, and must hold a free symbol: a check of plain numbers is an
    `agreement`, not a proof.
    """
    residuals = symbols.expressions(residual, "residual")
    if not residuals:
        raise LedgerError("residual: expected at least one expression, got an empty collection")
    for entry in residuals:
        if not symbols.vanishes(entry):
            raise LedgerError(f"the residual does not vanish: {sp.simplify(entry)}")
    wrong = symbols.expressions(control, "control")
    if not any(e.free_symbols for e in wrong):
        raise LedgerError(f"control: expected general symbols, got {control}; use agreement() for numbers")
    shown = next((e for e in wrong if symbols.witness(e) is not None), None)
    if shown is None:
        raise LedgerError(f"the control passes the same check, so the check shows nothing: {control}")
    point = symbols.witness(shown) or {}
    at = ", ".join(f"{k} = {v}" for k, v in sorted(point.items(), key=lambda kv: str(kv[0])))
    count = "the residual is exactly 0" if len(residuals) == 1 else f"all {len(residuals)} residuals are exactly 0"
    shown = sp.factor(shown)
    text = f"{of + ': ' if of else ''}{count}; the control {{}} is not".format
    details = {"residual": "0", "control": str(shown), "control_at": at}
    return Evidence("proof", text(shown), details, markup=text(f"${sp.latex(shown)}$"))


def agreement(
    observed: Any, expected: Any, *, control: Any, tolerance: Any = None, because: str = "", of: str = ""
) -> Evidence:
    """Evidence that `observed` agrees with `expected` within a derived tolerance, and not with `control`.

    observed : an `Estimate` (its standard error gives the tolerance, `Z` of them), or numbers
        with an explicit `tolerance` and the reason for it in `because`.
    expected, control : numbers, broadcast against `observed`. Every entry must agree with
        `expected`; at least one must disagree with `control`.
    """
    if isinstance(observed, Estimate):
        values, bound = np.asarray(observed.value), Z * np.asarray(observed.standard_error)
        because = because or f"{Z:g} standard errors"
    else:
        values = _numbers(observed, "observed")
        if tolerance is None or not because:
            raise TypeError("tolerance, because: expected both for plain numbers: how far off, and why that far")
        bound = _numbers(tolerance, "tolerance")
    if np.any(~np.isfinite(bound)) or np.any(bound < 0):
        raise LedgerError(f"tolerance: expected finite and non-negative, got {bound}")
    errors = np.abs(values - _numbers(expected, "expected"))
    if not np.all(errors <= bound):
        raise LedgerError(f"off by {_brief(errors)}, allowed {_brief(bound)} ({because})")
    misses = np.abs(values - _numbers(control, "control"))
    if np.all(misses <= bound):
        raise LedgerError(f"the control {_brief(control)} passes the same check, so the check shows nothing")
    n = np.broadcast(values, errors, bound).size
    what = f"{n} values agree" if n > 1 else f"{_brief(values)} agrees with {_brief(expected)}"
    text = f"{of + ': ' if of else ''}{what} within {because}; the control {_brief(control)} does not"
    return Evidence("agreement", text, {"because": because, "control": _brief(control)})


def counterexample(
    observed: Any, relation: str, claimed: Any, *, instead: Any, at: str, tolerance: Any = 0, of: str = ""
) -> Evidence:
    """Evidence that one instance breaks the printed relation, and obeys the corrected one.

    The negative control is `instead`: the value that the correct statement gives for the
    same instance must pass the very comparison that the claimed one fails. `relation` is one
    of ``== <= >= < >``; `at` names the instance and `of` the quantity; floating-point values need a
    `tolerance`.
    """
    if relation not in _RELATIONS:
        raise ValueError(f"relation: expected one of {' '.join(_RELATIONS)}, got {relation!r}")
    left, printed, right = (sp.nsimplify(x, rational=True) if isinstance(x, float) else sp.sympify(x)
                            for x in (observed, claimed, instead))  # fmt: skip
    tol = sp.nsimplify(tolerance, rational=True)
    if tol == 0 and any(isinstance(x, float | np.floating) for x in (observed, claimed, instead)):
        raise TypeError("tolerance: expected a positive number for floating-point values, got 0")
    holds = _RELATIONS[relation]
    if bool(holds(left, printed, tol)):
        raise LedgerError(f"not a counterexample: {left} {relation} {printed} holds at {at}")
    if not bool(holds(left, right, tol if relation in {"==", "<=", ">="} else -tol)):
        raise LedgerError(f"the corrected statement fails as well: {left} {relation} {right} at {at}")
    shown = [_show(x) for x in (observed, claimed, instead)]
    sign = {"==": "", "<=": "≤ ", ">=": "≥ "}.get(relation, f"{relation} ")
    text = (
        f"at {at}: {of + ' is ' if of else ''}{shown[0]}, not {sign}{shown[1]} as printed; "
        f"what holds gives {sign}{shown[2]}"
    )
    return Evidence("counterexample", text, {"at": at, "observed": shown[0], "claimed": shown[1], "instead": shown[2]})


def observation(observed: Estimate, relation: str, reference: float, *, control: Estimate, of: str = "") -> Evidence:
    """Evidence on an empirical sentence ``observed > reference`` (or ``<``), whichever way it falls.

    The outcome is *supported* when the interval of `Z` standard errors lies wholly on the
    claimed side, *contradicted* when it lies wholly on the other, else *undecided*. The
    control is an estimate in which the effect is absent by construction (shuffled, say);
    it must not come out as supported.
    """
    if relation not in {"<", ">"}:
        raise ValueError(f"relation: expected '<' or '>', got {relation!r}")
    if _side(control, relation, reference) == "supported":
        raise LedgerError(f"the control {control} comes out as supported too, so the check shows nothing")
    outcome = _side(observed, relation, reference)
    text = f"{of + ': ' if of else ''}{observed} {relation} {reference:g} is {outcome}; the control is {control}"
    return Evidence("observation", text, {"observed": str(observed), "control": str(control)}, outcome)


def _side(estimate: Estimate, relation: str, reference: float) -> str:
    gap = (float(estimate.value) - reference) * (1 if relation == ">" else -1)
    slack = Z * float(estimate.standard_error)
    return "supported" if gap > slack else "contradicted" if gap < -slack else "undecided"


def _numbers(value: Any, argument: str) -> np.ndarray:
    array = np.asarray(value, dtype=float)
    if array.size == 0 or not np.all(np.isfinite(array)):
        raise LedgerError(f"{argument}: expected finite numbers, got {array}")
    return array


def _show(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _brief(value: Any) -> str:
    """A number to four significant digits, or the range of many."""
    array = np.asarray(value, dtype=float).ravel()
    if array.size == 1:
        return f"{array[0]:.4g}"
    return f"{array.min():.4g} … {array.max():.4g}"
