"""What a verdict rests on: derivations, agreements, counterexamples and observations.

Each constructor runs its check at once, and runs the same check on a named mistake: a wrong
version of the statement that a student or a program could commit. It raises `LedgerError` when
the check fails, and also when the mistake passes: a check that cannot fail shows nothing.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from numbers import Number
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp

from linewise.derive import display, notation
from linewise.derive.derivation import Derivation
from linewise.derive.exact import exact
from linewise.ledger import sentences, traced
from linewise.ledger.estimate import Estimate

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
    """A check that does not hold, or a mistake that was not rejected."""


# Only a check makes evidence, and only a claim a card: made by hand, they would show a verdict that nothing has given.
_CHECKED = ContextVar("made by a check", default=False)


@contextmanager
def checked() -> Iterator[None]:
    """Let what is made inside the block count as made by a check, which has held."""
    token = _CHECKED.set(True)
    try:
        yield
    finally:
        _CHECKED.reset(token)


def refuse_by_hand(what: str, makers: str) -> None:
    """Refuse to make what only a check makes."""
    if not _CHECKED.get():
        raise TypeError(f"{what}: expected what {makers} returns; made by hand, it rests on no check")


@dataclass(frozen=True)
class Evidence:
    """One check that held, in its parts; what a reader sees is drawn from them (`linewise.ledger.sentences`).

    kind : derivation, agreement, counterexample or observation.
    parts : what was checked, observed, expected and rejected, as JSON holds it.
    block : a derivation, which the page displays in view.
    """

    kind: str
    parts: Mapping[str, Any]
    block: Derivation | None = None

    def __post_init__(self) -> None:
        """Refuse what no check has made, a changed copy too."""
        refuse_by_hand("evidence", "derived, agreement, counterexample or observation")
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))

    @property
    def outcome(self) -> str | None:
        """Of an observation: supported, contradicted or undecided."""
        return self.parts.get("outcome")

    @property
    def text(self) -> str:
        """The finding in plain sentences."""
        return sentences.plain(self.record())

    def record(self) -> dict[str, Any]:
        """Return the JSON form that is stored in the cell's output."""
        return {"kind": self.kind, **self.parts}


def derived(chain: Derivation) -> Evidence:
    """Evidence of a derivation: at least one verified step, and at least one named mistake that its check rejects."""
    if not isinstance(chain, Derivation):
        raise TypeError(f"chain: expected a Derivation, got {type(chain).__name__} {chain!r}; a bare zero is no proof")
    steps = len(chain.lines) - 1
    if not steps:
        raise LedgerError("chain: expected at least one step, got a first line alone")
    if not chain.mistakes:
        raise LedgerError(f"chain: expected a common mistake that one of the steps rejects, got none in {steps}")
    record = chain.record()
    names = [mistake.name for mistake in chain.mistakes]
    parts = {"name": chain.name, "steps": steps, "mistakes": names, "derivation": display.fingerprint(record)}
    with checked():
        return Evidence("derivation", parts, block=chain)


def agreement(
    observed: Any,
    expected: Any,
    *,
    mistake: tuple[str, Any] | list[tuple[str, Any]],
    tolerance: Any = None,
    because: str = "",
    of: str = "",
) -> Evidence:
    """Evidence that `observed` agrees with `expected` within a derived tolerance, and not with a mistake.

    observed : an `Estimate` with positive standard errors, which give the tolerance (`Z` of them), or
        numbers with an explicit `tolerance` and the reason for it in `because`: "rounding of ten additions".
    expected : numbers of the same shape, or a single one.
    mistake : a name and the values of a wrong version, of the same shape or a single one, or a list of several.
        Every entry must agree with `expected`; at least one must disagree with each mistake.
    """
    _words(because, "because", blank=True)
    _words(of, "of", blank=True)
    if isinstance(observed, Estimate):
        if tolerance is not None or because:
            raise TypeError(
                "tolerance, because: expected neither for an Estimate: its standard errors are the tolerance, "
                f"got {tolerance!r} and {because!r}"
            )
        values = _numbers(observed.value, "observed")
        errors = _like(values, observed.standard_error, "observed: standard_error")
        if np.any(errors <= 0):
            raise LedgerError(
                f"observed: expected positive standard errors, got {_brief(errors)}; "
                "exact numbers take tolerance=0 and a reason"
            )
        bound, because = Z * errors, f"{Z:g} standard errors"
    else:
        if tolerance is None and not because:
            raise TypeError(
                "observed: expected an estimate, with .value and .standard_error, or numbers with tolerance and "
                f"because, got {observed!r}"
            )
        values = _numbers(observed, "observed")
        if tolerance is None or not because.strip():
            raise TypeError(
                "tolerance, because: expected both for plain numbers: how far off, and why that far, "
                f"got {tolerance!r} and {because!r}"
            )
        bound = _like(values, tolerance, "tolerance")
        if np.any(bound < 0):
            raise LedgerError(f"tolerance: expected non-negative numbers, got {bound}")
    mistakes = [_named(pair) for pair in (mistake if isinstance(mistake, list) and mistake else [mistake])]
    wanted, missed = _like(values, expected, "expected"), [_like(values, wrong, "mistake") for _, wrong in mistakes]

    def beyond(other: Any, others: np.ndarray) -> dict[str, float] | None:
        """Return how far off the entry is that is farthest beyond its tolerance, or None where none is beyond."""
        given = () if isinstance(observed, Estimate) else (observed, other, tolerance)
        exact = [x for x in map(_fractions, given) if x is not None]
        # doubles would take neighbours beyond 2^53 for equal
        seen, right, slack = np.broadcast_arrays(*exact if len(exact) == 3 else (values, others, bound))
        off = np.asarray(abs(seen - right))
        worst = np.unravel_index(np.argmax(off - slack), off.shape)
        if off[worst] <= slack[worst]:
            return None
        return {"off": _rounded(off[worst], 4), "allowed": _rounded(slack[worst], 4)}

    if beyond(expected, wanted):
        numbers = f"observed {_brief(values)}, expected {_brief(wanted)}"
        off = np.abs(values - wanted)
        raise LedgerError(f"{numbers}: off by {_brief(off)}, allowed {_brief(bound)} ({because})")
    rejected = []
    for (name, wrong), false in zip(mistakes, missed, strict=True):
        if not (farthest := beyond(wrong, false)):
            raise LedgerError(
                f"the mistake {name!r} ({_brief(false)}) passes the same check, so the check shows nothing"
            )
        rejected.append({"name": name, "value": _summary(false), **farthest})
    parts: dict[str, Any] = {"of": of} | ({"count": values.size} if values.size > 1 else {})
    if isinstance(observed, Estimate):
        one = values.size == 1 and not np.ndim(observed.value)
        parts["observed"] = _estimate(observed) if one else _summary(values)
        allowed: dict[str, Any] = {"tolerance": {"standard_errors": Z}}
    else:
        parts["observed"] = _summary(values)
        allowed = {"tolerance": _summary(bound), "because": because}
    first, *more = rejected
    parts |= {"expected": _summary(wanted), **allowed, "mistake": first} | ({"neighbours": more} if more else {})
    with checked():
        return Evidence("agreement", parts)


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
            "instead, obeys: expected what the corrected statement gives, or an instance where the sentence holds, "
            "got neither"
        )
    _uses_its_arguments(quantity)
    _depends_on_its_arguments(quantity, at)
    tol = _exact_number(tolerance, "tolerance")
    if not 0 <= tol < sp.oo:
        raise ValueError(f"tolerance: expected a non-negative finite number, got {tolerance}")

    def compare(instance: Mapping[str, Any], other: Any, slack: Any) -> tuple[bool, Any, Any]:
        left, right = quantity(**instance), other(**instance) if callable(other) else other
        if tol == 0 and any(isinstance(x, float | np.floating) for x in (left, right)):
            raise TypeError("tolerance: expected a positive number for floating-point values, got 0")
        a, b = _exact_number(left, "quantity"), _exact_number(right, "required")
        return bool(_RELATIONS[relation](a, b, slack)), left, right

    # A strict relation must fail as the numbers stand: what cannot be told from its limit has not broken it.
    strict = relation in {"<", ">"}
    holds, observed, claimed = compare(at, required, 0 if strict and tol else tol)
    place = where or sentences.instance(_parts(at))
    if holds:
        raise LedgerError(f"not a counterexample: {_show(observed)} {relation} {_show(claimed)} holds at {place}")
    parts: dict[str, Any] = {"of": of} | ({"where": where} if where else {"at": _parts(at)})
    parts |= {"observed": _part(observed), "relation": relation, "required": _part(claimed)}
    if tol:
        parts["tolerance"] = _part(tolerance)
    if instead is not None:
        passes, _, corrected = compare(at, instead, tol)
        if not passes:
            raise LedgerError(f"the corrected statement fails as well: {observed} {relation} {corrected} at {place}")
        parts["instead"] = _part(corrected)
    if obeys is not None:
        passes, kept, limit = compare(obeys, required, tol)
        if not passes:
            raise LedgerError(f"obeys: the sentence fails there too: {_show(kept)} {relation} {_show(limit)}")
        if all(name in at and np.array_equal(_plain(at[name]), _plain(given)) for name, given in obeys.items()):
            raise LedgerError("obeys: expected another instance than the one at which the sentence fails, got the same")
        parts["obeys"] = {"at": _parts(obeys), "observed": _part(kept)}
    with checked():
        return Evidence("counterexample", parts)


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
        _numbers(estimate.value, f"{argument}: value")
        error = float(_numbers(estimate.standard_error, f"{argument}: standard_error"))
        if error <= 0:
            raise LedgerError(
                f"{argument}: expected a positive standard error, got {error:g}; what cannot vary is no measurement"
            )
    if absent is observed:
        raise LedgerError(f"null: expected another estimate than the observed one, got {name!r} for both")
    if _side(absent, relation, reference) == "supported":
        seen = sentences.estimate(_estimate(absent))
        raise LedgerError(f"the null {name!r} ({seen}) comes out as supported too, so the check shows nothing")
    outcome = _side(observed, relation, reference)
    parts = {"of": of, "observed": _estimate(observed), "relation": relation, "reference": _part(reference)}
    parts |= {"units": units, "null": {"name": name} | _estimate(absent), "outcome": outcome}
    with checked():
        return Evidence("observation", parts)


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


def _depends_on_its_arguments(quantity: Callable[..., Any], at: Mapping[str, Any]) -> None:
    """Refuse a Python function whose body makes nothing of its parameters, as 0*f(x) + 5 and f(x) - f(x) do.

    One that compares or loops, and so cannot be run on letters, may not multiply by 0.
    """
    depends = traced.depends(quantity, at)
    if depends is None and hasattr(quantity, "__code__"):
        depends = not any(_is_zero(one) and two.opname == "BINARY_OP" and two.argrepr in ("*", "**", "*=", "**=")
                          for one, two in pairwise(dis.get_instructions(quantity)))  # fmt: skip
    if depends is False:
        raise TypeError("quantity: expected a function of the instance, got one whose value does not depend on it")


def _is_zero(instruction: dis.Instruction) -> bool:
    value = instruction.argval
    return instruction.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and isinstance(value, int | float) and value == 0


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
    """Return a real number exactly; refuse whatever is no number."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a scalar or an array of no dimension
        value = value.item()
    if isinstance(value, str | bytes):
        raise TypeError(f"{argument}: expected a number, got the text {value!r}")
    if not isinstance(value, Number | sp.Expr):
        raise TypeError(f"{argument}: expected a real number, got {type(value).__name__} {value!r}")
    if isinstance(value, float | np.floating):
        if np.isnan(value):
            raise LedgerError(f"{argument}: expected a number, got NaN")
        return sp.nsimplify(float(value), rational=True) if np.isfinite(value) else sp.sympify(float(value))
    number = exact(value, argument)
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
        exact = array.dtype == object and all(isinstance(x, sp.Basic | int | Fraction) for x in array.ravel())
        if array.dtype.kind not in "biuf" and not exact:
            raise TypeError(f"got {array.dtype}")
        array = array.astype(float)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{argument}: expected real numbers, got {value!r} ({error})") from None
    if array.size == 0 or not np.all(np.isfinite(array)):
        raise LedgerError(f"{argument}: expected finite numbers, got {array}")
    return array


def _fractions(value: Any) -> np.ndarray | None:
    """Return exact rational numbers as fractions, and None where one of them is a double or a root."""
    entries = np.array(value, dtype=object)
    if not all(isinstance(x, int | np.integer | Fraction | sp.Rational) for x in entries.ravel()):
        return None
    found = np.empty(entries.shape, dtype=object)
    for place, x in np.ndenumerate(entries):
        found[place] = (
            Fraction(int(x.p), int(x.q))
            if isinstance(x, sp.Rational)
            else Fraction(int(x.numerator), int(x.denominator))
        )
    return found


def _like(values: np.ndarray, other: Any, argument: str) -> np.ndarray:
    """Return numbers in the shape of the observed ones: of that shape, or a single one for all."""
    array = _numbers(other, argument)
    if array.shape != values.shape and array.size != 1:
        wanted = f"shape {values.shape} or a single number" if values.ndim else "a single number"
        raise LedgerError(f"{argument}: expected {wanted}, got shape {array.shape}")
    return array if array.shape == values.shape else np.full(values.shape, array.item())


def _parts(at: Mapping[str, Any]) -> list[list[Any]]:
    """Return an instance as pairs: a notebook sorts the keys of what it stores, and the order would be lost."""
    return [[name, _part(given)] for name, given in at.items()]


def _plain(value: Any) -> np.ndarray:
    return np.asarray(value, dtype=object)


def _part(value: Any) -> Any:
    """Return a value as a record holds it: a number to the digits that are said, an exact value with its TeX."""
    if isinstance(value, sp.Basic):
        exact, tex = _show(value.tolist()) if isinstance(value, sp.MatrixBase) else str(value), notation.latex(value)
        return {"exact": exact} | ({"tex": tex} if tex != exact else {})
    if isinstance(value, np.ndarray | np.generic | sp.MatrixBase):
        value = value.tolist()
    if isinstance(value, float):
        return _rounded(value, 6) if np.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return [_part(entry) for entry in value]
    return value if isinstance(value, int) else str(value)


def _show(value: Any) -> str:
    return sentences.value(_part(value))


def _rounded(value: Any, digits: int) -> float:
    """Return a number with so many digits: further ones differ from machine to machine."""
    return float(f"{float(value):.{digits}g}")


def _estimate(shown: Estimate) -> dict[str, float]:
    return {"value": _rounded(shown.value, 4), "standard_error": _rounded(shown.standard_error, 2)}


def _summary(values: Any) -> float | dict[str, float]:
    """Return a number to four digits, or the least and the greatest of many."""
    array = np.asarray(values, dtype=float)
    low, high = _rounded(array.min(), 4), _rounded(array.max(), 4)
    return low if low == high else {"least": low, "greatest": high}


def _brief(value: Any) -> str:
    return sentences.numbers(_summary(value))
