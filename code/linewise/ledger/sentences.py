"""The sentences of evidence: pure functions from its parts, as they stand in the record of a card.

Numbers of a record are numbers, rounded to the digits that a sentence says; an exact value is its text, with its TeX
where that differs: ``{"exact": "sqrt(2)", "tex": "\\sqrt{2}"}``. Many numbers are the least and the greatest of them.
Of a rejected mistake, ``off`` is how far it is from what was observed, and ``allowed`` the tolerance, both at the entry
that is farthest beyond its tolerance.

>>> counted = {
...     "kind": "agreement", "of": "the keys", "observed": 3.0, "expected": 3.0, "tolerance": 0.0,
...     "because": "both are counts", "mistake": {"name": "one too many", "value": 4.0, "off": 1.0, "allowed": 0.0},
... }
>>> plain(counted)
'The keys: observed 3, expected 3; they agree exactly (both are counts). The same check rejects one too many (4).'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

#: The parts of one piece of evidence.
Parts = Mapping[str, Any]
#: How a value is said: in plain text, or with its formula between dollar signs.
Saying = Callable[[Any], str]

_SIDES = {"==": "", "<=": "at most ", ">=": "at least ", "<": "less than ", ">": "more than "}
_OUTCOMES = {"supported": "supports", "contradicted": "contradicts", "undecided": "leaves open"}


def plain(parts: Parts) -> str:
    """Return what evidence says, in plain sentences."""
    return _sentence(_SAID[parts["kind"]](parts, value))


def markup(parts: Parts) -> str:
    """Return what evidence says, with exact values as formulas between dollar signs."""
    return _sentence(_SAID[parts["kind"]](parts, formula))


def value(shown: Any) -> str:
    """Say a value in plain text.

    >>> value(0.12345678), value([1, {"exact": "sqrt(2)"}]), value("strided")
    ('0.123457', '(1, sqrt(2))', 'strided')
    """
    if isinstance(shown, Mapping):
        return str(shown["exact"])
    if isinstance(shown, float):
        return f"{shown:.6g}"
    return f"({', '.join(map(value, shown))})" if isinstance(shown, list) else str(shown)


def formula(shown: Any) -> str:
    """Say a value as it reads in a page: an exact one as a formula.

    >>> formula({"exact": "sqrt(2)", "tex": "\\\\sqrt{2}"}), formula(2.5)
    ('$\\\\sqrt{2}$', '2.5')
    """
    return f"${shown.get('tex', shown['exact'])}$" if isinstance(shown, Mapping) else value(shown)


def instance(at: Iterable[Sequence[Any]]) -> str:
    """Say an instance of a function's parameters, each with its name, in the order of the call.

    >>> instance([["xs", [0, 1]], ["n", 2]])
    'xs = (0, 1), n = 2'
    """
    return ", ".join(f"{name} = {value(given)}" for name, given in at)


def estimate(shown: Parts) -> str:
    """Say an estimate with its standard error.

    >>> estimate({"value": 1.03, "standard_error": 0.01})
    '1.03 ± 0.01'
    """
    return f"{shown['value']:.4g} ± {shown['standard_error']:.2g}"


def measured(parts: Parts, errors: float) -> str:
    """Say the outcome of an observation with its number and its threshold, which is so many standard errors away.

    >>> seen = {"outcome": "undecided", "observed": {"value": 0.7, "standard_error": 0.1}}
    >>> measured(seen | {"relation": ">", "reference": 0.5}, 4)
    'undecided: 0.7 ± 0.1, asked for more than 0.5; 4 standard errors are 0.4'
    """
    observed, margin = parts["observed"], errors * parts["observed"]["standard_error"]
    asked = f"{_SIDES[parts['relation']]}{value(parts['reference'])}"
    return f"{parts['outcome']}: {estimate(observed)}, asked for {asked}; {errors:g} standard errors are {margin:.2g}"


def numbers(shown: Any) -> str:
    """Say a number to four digits, an estimate, or the range of many numbers.

    >>> numbers(0.12345678), numbers({"least": 1.0, "greatest": 2.5}), numbers({"value": 1.0, "standard_error": 0.5})
    ('0.1235', '1 to 2.5', '1 ± 0.5')
    """
    if not isinstance(shown, Mapping):
        return f"{shown:.4g}"
    return estimate(shown) if "value" in shown else f"{shown['least']:.4g} to {shown['greatest']:.4g}"


def listed(names: Iterable[str]) -> str:
    """Join names in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def _derivation(parts: Parts, say: Saying) -> str:
    subject = f"{parts['name']}: derived" if parts["name"] else "Derived"
    steps = parts["steps"]
    lines = "in one verified step" if steps == 1 else f"in {steps} verified steps"
    return f"{subject} {lines}. The same check rejects {listed(parts['mistakes'])}."


def _agreement(parts: Parts, say: Saying) -> str:
    what = f"{parts['of']}: " if parts["of"] else ""
    count = f"{parts['count']:,} values, " if "count" in parts else ""
    told = f"observed {numbers(parts['observed'])}, expected {numbers(parts['expected'])}"
    tolerance, mistakes = parts["tolerance"], [parts["mistake"], *parts.get("neighbours", ())]
    if isinstance(tolerance, Mapping) and "standard_errors" in tolerance:
        within = f"to within {tolerance['standard_errors']:g} standard errors"
    else:
        within = f"{'exactly' if tolerance == 0 else f'to within {numbers(tolerance)}'} ({parts['because']})"
    names = listed(f"{wrong['name']} ({_rejected(wrong, parts['expected'])})" for wrong in mistakes)
    rejected = f"The same check rejects {names}."
    return f"{what}{count}{told}; they agree {within}. {rejected}"


def _rejected(mistake: Parts, expected: Any) -> str:
    """Say what a mistake would have given; where it has the range of the right numbers, how far an entry is off."""
    given = numbers(mistake["value"])
    return f"{given}, off by {numbers(mistake['off'])}" if given == numbers(expected) else given


def _counterexample(parts: Parts, say: Saying) -> str:
    place, side = parts.get("where") or instance(parts["at"]), _SIDES[parts["relation"]]
    said = (
        f"{parts['of']} is {say(parts['observed'])} at {place}; the sentence requires {side}{say(parts['required'])}."
    )
    if "instead" in parts:
        said += f" The corrected statement gives {side}{say(parts['instead'])}."
    if obeys := parts.get("obeys"):
        said += f" The sentence does hold at {instance(obeys['at'])}, where the value is {say(obeys['observed'])}."
    return said


def _observation(parts: Parts, say: Saying) -> str:
    null, side = parts["null"], {">": "more", "<": "less"}[parts["relation"]]
    return (
        f"{parts['of']} is {estimate(parts['observed'])} over {parts['units']}; the sentence asks for {side} than "
        f"{value(parts['reference'])}, which the measurement {_OUTCOMES[parts['outcome']]}. In the comparison "
        f"({null['name']}) the value is {estimate(null)}, which would not support the sentence."
    )


_SAID: Mapping[str, Callable[[Parts, Saying], str]] = {
    "derivation": _derivation,
    "agreement": _agreement,
    "counterexample": _counterexample,
    "observation": _observation,
}


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
