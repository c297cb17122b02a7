"""What a verdict rests on: derivations, agreements, counterexamples and observations.

Each constructor runs its check at once, and runs the same check on a named mistake: a wrong
version of the statement that a student or a program could commit. It raises `LedgerError` when
the check fails, and also when the mistake passes: a check that cannot fail shows nothing.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp

from linewise.derive import notation
from linewise.derive.derivation import Derivation
from linewise.ledger.estimate import Estimate, shown

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
_WORDS = {"==": "", "<=": "at most ", ">=": "at least ", "<": "less than ", ">": "more than "}


class LedgerError(AssertionError):
    """A check that does not hold, or a mistake that was not rejected."""


@dataclass(frozen=True)
class Evidence:
    """One check that held, in a form that a page and a machine can read.

    text : the finding in plain sentences.  markup : the same with formulas between dollar signs.
    outcome : set by observations only: supported, contradicted or undecided.
    block : a derivation, which the page displays in view.
    """

    kind: str
    text: str
    details: dict[str, Any] = field(default_factory=dict)
    outcome: str | None = None
    markup: str = ""
    block: Derivation | None = None

    def record(self) -> dict[str, Any]:
        """Return the JSON form that is stored in the cell's output."""
        out: dict[str, Any] = {"kind": self.kind, "text": self.text, **self.details}
        optional = {"outcome": self.outcome, "markup": self.markup}
        return out | {key: value for key, value in optional.items() if value}


def derived(chain: Derivation) -> Evidence:
    """Evidence of a derivation: at least one verified step, and at least one named mistake that its check rejects."""
    if not isinstance(chain, Derivation):
        raise TypeError(f"chain: expected a Derivation, got {type(chain).__name__} {chain!r}; a bare zero is no proof")
    steps = len(chain.lines) - 1
    if not steps:
        raise LedgerError("chain: expected at least one step, got a first line alone")
    if not chain.mistakes:
        raise LedgerError("chain: expected a common mistake that one of the steps rejects")
    names = _listed([m.name for m in chain.mistakes])
    subject = f"{chain.name}: derived" if chain.name else "Derived"
    lines = "in one verified step" if steps == 1 else f"in {steps} verified steps"
    text = f"{subject} {lines}. The same check rejects {names}."
    return Evidence("derivation", text, {"derivation": chain.record()}, block=chain)


def agreement(
    observed: Any,
    expected: Any,
    *,
    mistake: tuple[str, Any],
    tolerance: Any = None,
    because: str = "",
    of: str = "",
) -> Evidence:
    """Evidence that `observed` agrees with `expected` within a derived tolerance, and not with a mistake.

    observed : an `Estimate` with positive standard errors, which give the tolerance (`Z` of them), or
        numbers with an explicit `tolerance` and the reason for it in `because`: "rounding of ten additions".
    expected : numbers of the same shape, or a single one.
    mistake : a name and the values of a wrong version, of the same shape or a single one. Every entry must
        agree with `expected`; at least one must disagree with the mistake.
    """
    _words(because, "because", blank=True)
    _words(of, "of", blank=True)
    if isinstance(observed, Estimate):
        if tolerance is not None or because:
            raise TypeError(
                "tolerance, because: expected neither for an Estimate: its standard errors are the tolerance"
            )
        values = _numbers(observed.value, "observed")
        errors = _like(values, observed.standard_error, "observed: standard_error")
        if np.any(errors == 0):
            raise LedgerError(
                "observed: expected positive standard errors; exact numbers take tolerance=0 and a reason"
            )
        bound, because = Z * errors, f"{Z:g} standard errors"
    else:
        values = _numbers(observed, "observed")
        if tolerance is None or not because.strip():
            raise TypeError("tolerance, because: expected both for plain numbers: how far off, and why that far")
        bound = _like(values, tolerance, "tolerance")
        if np.any(bound < 0):
            raise LedgerError(f"tolerance: expected non-negative numbers, got {bound}")
    name, wrong = _named(mistake)
    wanted, missed = _like(values, expected, "expected"), _like(values, wrong, "mistake")
    off = np.abs(values - wanted)
    if not np.all(off <= bound):
        raise LedgerError(f"off by {_brief(off)}, allowed {_brief(bound)} ({because})")
    if np.all(np.abs(values - missed) <= bound):
        raise LedgerError(f"the mistake {name!r} ({_brief(missed)}) passes the same check, so the check shows nothing")
    what = f"{of}: " if of else ""
    size = values.size
    measured = isinstance(observed, Estimate)
    numbers = f"observed {shown(observed) if size == 1 and measured else _brief(values)}, expected {_brief(wanted)}"
    count = f"{size:,} values, " if size > 1 else ""
    within = "exactly" if np.all(bound == 0) else f"to within {because if measured else _brief(bound)}"
    why = "" if measured else f" ({because})"
    text = f"{what}{count}{numbers}; they agree {within}{why}. The same check rejects {name} ({_brief(missed)})."
    return Evidence("agreement", _sentence(text), {"because": because, "mistake": name})


def counterexample(
    quantity: Callable[..., Any],
    at: Mapping[str, Any],
    relation: str,
    required: Any,
    *,
    instead: Any = None,
    obeys: Mapping[str, Any] | None = None,
    tolerance: Any = 0,
    of: str,
    where: str = "",
) -> Evidence:
    """Evidence that one instance breaks the relation that a sentence requires.

    quantity : a function of the instance, which is called: `quantity(**at)`. What is reported was computed.
    at : the instance, by the names of the function's parameters. It must satisfy every hypothesis of the source.
    relation, required : what the sentence requires of the quantity: one of ``== <= >= < >``, and a number or a
        function of the instance.
    instead : what the corrected statement gives there, a number or a function of the instance; it must pass the
        very comparison that the required value fails.
    obeys : another instance, at which the sentence does hold. At least one of `instead` and `obeys` is needed: the
        comparison must be able to come out the other way.
    of, where : the quantity and the instance in words (`where` is made from `at` unless given).
    """
    if not isinstance(relation, str) or relation not in _RELATIONS:
        raise ValueError(f"relation: expected one of {' '.join(_RELATIONS)}, got {relation!r}")
    if not callable(quantity):
        raise TypeError(f"quantity: expected a function of the instance, got {type(quantity).__name__} {quantity!r}")
    for name, instance in (("at", at), ("obeys", {"": None} if obeys is None else obeys)):
        if not isinstance(instance, Mapping) or not instance:
            got = repr(instance) if instance else "nothing"
            raise TypeError(f"{name}: expected a mapping from the function's parameters to values, got {got}")
    _words(of, "of")
    _words(where, "where", blank=True)
    if instead is None and obeys is None:
        raise TypeError(
            "instead, obeys: expected what the corrected statement gives, or an instance where the sentence holds"
        )
    _uses_its_arguments(quantity)
    tol = _exact_number(tolerance, "tolerance")
    if not 0 <= tol < sp.oo:
        raise ValueError(f"tolerance: expected a non-negative finite number, got {tolerance}")

    def compare(instance: Mapping[str, Any], other: Any, slack: Any) -> tuple[bool, Any, Any]:
        left, right = quantity(**instance), other(**instance) if callable(other) else other
        if slack == 0 and any(isinstance(x, float | np.floating) for x in (left, right)):
            raise TypeError("tolerance: expected a positive number for floating-point values, got 0")
        a, b = _exact_number(left, "quantity"), _exact_number(right, "required")
        return bool(_RELATIONS[relation](a, b, slack)), left, right

    holds, observed, claimed = compare(at, required, tol)
    place = where or _instance(at)
    if holds:
        raise LedgerError(f"not a counterexample: {_show(observed)} {relation} {_show(claimed)} holds at {place}")
    wording: list[str | tuple[Any]] = [f"{of} is ", (observed,), f" at {place}; the sentence requires "]
    wording += [_WORDS[relation], (claimed,), "."]
    if instead is not None:
        slack = tol if relation in {"==", "<=", ">="} else -tol
        passes, _, corrected = compare(at, instead, slack)
        if not passes:
            raise LedgerError(f"the corrected statement fails as well: {observed} {relation} {corrected} at {place}")
        wording += [f" The corrected statement gives {_WORDS[relation]}", (corrected,), "."]
    if obeys is not None:
        passes, kept, allowed = compare(obeys, required, tol)
        if not passes:
            raise LedgerError(f"obeys: the sentence fails there too: {_show(kept)} {relation} {_show(allowed)}")
        wording += [f" The sentence does hold at {_instance(obeys)}, where the value is ", (kept,), "."]
    details = {"at": place, "observed": _show(observed), "required": f"{relation} {_show(claimed)}"}
    plain, markup = (
        _sentence("".join(part if isinstance(part, str) else show(part[0]) for part in wording))
        for show in (_show, _tex)
    )
    return Evidence("counterexample", plain, details, markup=markup)


def observation(
    observed: Estimate, relation: str, reference: float, *, null: tuple[str, Estimate], units: str, of: str
) -> Evidence:
    """Evidence on an empirical sentence ``observed > reference`` (or ``<``), whichever way it falls.

    The outcome is *supported* when the interval of `Z` standard errors lies wholly on the
    claimed side, *contradicted* when it lies wholly on the other, else *undecided*.

    null : a name, and the estimate where the effect is absent by construction (labels permuted, an untrained
        model). It must not come out as supported.
    units : what the standard errors take as independent: "30 sequences", "6 layers, heads averaged within each".
    """
    if not isinstance(relation, str) or relation not in {"<", ">"}:
        raise ValueError(f"relation: expected '<' or '>', got {relation!r}")
    reference = float(_like(np.zeros(()), reference, "reference"))
    name, absent = _named(null, "null")
    _words(units, "units")
    _words(of, "of")
    for estimate, argument in ((observed, "observed"), (absent, "null")):
        if not isinstance(estimate, Estimate) or np.ndim(estimate.value):
            raise TypeError(f"{argument}: expected one Estimate, got {type(estimate).__name__}")
        if float(estimate.standard_error) == 0:
            raise LedgerError(f"{argument}: expected a positive standard error: what cannot vary is no measurement")
    if _side(absent, relation, reference) == "supported":
        raise LedgerError(f"the null {name!r} ({shown(absent)}) comes out as supported too, so the check shows nothing")
    outcome = _side(observed, relation, reference)
    side = "more" if relation == ">" else "less"
    text = (
        f"{of} is {shown(observed)} over {units}; the sentence asks for {side} than {reference:g}, which the "
        f"measurement {_OUTCOME_WORDS[outcome]}. In the comparison ({name}) the value is {shown(absent)}, which would "
        "not support the sentence."
    )
    details = {"observed": shown(observed), "null": f"{name}: {shown(absent)}", "units": units}
    return Evidence("observation", _sentence(text), details, outcome)


_OUTCOME_WORDS = {"supported": "supports", "contradicted": "contradicts", "undecided": "leaves open"}


def _side(estimate: Estimate, relation: str, reference: float) -> str:
    gap = (float(estimate.value) - reference) * (1 if relation == ">" else -1)
    slack = Z * float(estimate.standard_error)
    return "supported" if gap > slack else "contradicted" if gap < -slack else "undecided"


def _uses_its_arguments(quantity: Callable[..., Any]) -> None:
    """Refuse a Python function whose body mentions none of its parameters: it reports what was typed in."""
    code = getattr(quantity, "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    if code and not any(_mentions(i, names) for i in dis.get_instructions(code)):
        signature = inspect.signature(quantity)
        raise TypeError(f"quantity: expected a function of the instance, got one that ignores {signature}")


def _mentions(instruction: dis.Instruction, names: tuple[str, ...]) -> bool:
    """Return whether an instruction loads one of the names (some interpreters load two at once)."""
    value = instruction.argval
    loaded = value if isinstance(value, tuple) else (value,)
    return instruction.opname.startswith("LOAD") and any(isinstance(n, str) and n in names for n in loaded)


def _named(pair: Any, argument: str = "mistake") -> tuple[str, Any]:
    if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and pair[0].strip()):
        raise TypeError(f"{argument}: expected a name and a value, ('the forgotten factor', ...), got {pair!r}")
    return pair


def _exact_number(value: Any, argument: str) -> sp.Expr:
    """Return a real number exactly; refuse strings, which sympy would evaluate, and whatever is no number."""
    if isinstance(value, str | bytes):
        raise TypeError(f"{argument}: expected a number, got the text {value!r}")
    if isinstance(value, float | np.floating):
        if np.isnan(value):
            raise LedgerError(f"{argument}: expected a number, got NaN")
        return sp.nsimplify(float(value), rational=True) if np.isfinite(value) else sp.sympify(float(value))
    try:
        number = sp.sympify(value.item() if isinstance(value, np.generic) else value)
    except sp.SympifyError:
        raise TypeError(f"{argument}: expected a real number, got {type(value).__name__} {value!r}") from None
    if not isinstance(number, sp.Expr) or number.is_extended_real is False or number is sp.nan:
        raise TypeError(f"{argument}: expected a real number, got {type(value).__name__} {value!r}")
    return number


def _words(value: Any, argument: str, *, blank: bool = False) -> None:
    """Raise an error unless a value is text, and says something."""
    if not isinstance(value, str) or not (blank or value.strip()):
        raise TypeError(f"{argument}: expected words, got {type(value).__name__} {value!r}")


def _numbers(value: Any, argument: str) -> np.ndarray:
    """Return finite real numbers, exact or not, as an array of doubles."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{argument}: expected numbers, got a masked array")
    try:
        array = np.asarray(value)
        exact = array.dtype == object and all(isinstance(x, sp.Basic) for x in array.ravel())
        if array.dtype.kind not in "biuf" and not exact:
            raise TypeError(f"got {array.dtype}")
        array = array.astype(float)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{argument}: expected real numbers, got {value!r} ({error})") from None
    if array.size == 0 or not np.all(np.isfinite(array)):
        raise LedgerError(f"{argument}: expected finite numbers, got {array}")
    return array


def _like(values: np.ndarray, other: Any, argument: str) -> np.ndarray:
    """Return numbers in the shape of the observed ones: of that shape, or a single one for all."""
    array = _numbers(other, argument)
    if array.shape != values.shape and array.size != 1:
        wanted = f"shape {values.shape} or a single number" if values.ndim else "a single number"
        raise LedgerError(f"{argument}: expected {wanted}, got shape {array.shape}")
    return array if array.shape == values.shape else np.full(values.shape, array.item())


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _instance(at: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_show(value)}" for name, value in at.items())


def _show(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, sp.MatrixBase):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"({', '.join(_show(v) for v in value)})"
    return str(value)


def _tex(value: Any) -> str:
    """Return a value as it reads in a page: exact values as formulas."""
    return f"${notation.latex(value)}$" if isinstance(value, sp.Basic) else _show(value)


def _brief(value: Any) -> str:
    """A number to four significant digits, or the range of many."""
    array = np.asarray(value, dtype=float).ravel()
    low, high = f"{array.min():.4g}", f"{array.max():.4g}"
    return low if low == high else f"{low} to {high}"
