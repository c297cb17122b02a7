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

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

#: The parts of one piece of evidence.
Parts = Mapping[str, Any]
#: How a value is said: in plain text, or with its formula between dollar signs.
Saying = Callable[[Any], str]

#: How a sentence is said: a template, and what stands in its places.
Phrase = Callable[..., str]

_SIDES = {
    "==": "{value}",
    "<=": "at most {value}",
    ">=": "at least {value}",
    "<": "less than {value}",
    ">": "more than {value}",
}
_OUTCOMES = {
    "supported": "which the measurement supports",
    "contradicted": "which the measurement contradicts",
    "undecided": "which the measurement leaves open",
}


def plain(parts: Parts) -> str:
    """Return what evidence says, in plain sentences."""
    return _sentence(_SAID[parts["kind"]](parts, value, str.format))


def markup(parts: Parts, phrase: Phrase = str.format) -> str:
    """Return what evidence says, with exact values as formulas between dollar signs.

    phrase : says a template, such as ``"at most {value}"``, in the language of the book.
    """
    return _sentence(_SAID[parts["kind"]](parts, formula, phrase))


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


def instance(at: Iterable[Sequence[Any]], phrase: Phrase = str.format) -> str:
    """Say an instance of a function's parameters, each with its name, in the order of the call.

    >>> instance([["xs", [0, 1]], ["n", 2], ["masked", False]])
    'xs = (0, 1), n = 2, masked = False'
    """
    said = ""
    for name, given in at:
        one = f"{name} = {phrase(str(given)) if isinstance(given, bool) else value(given)}"
        said = phrase("{instance}, {next}", instance=said, next=one) if said else one
    return said


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
    asked = _SIDES[parts["relation"]].format(value=value(parts["reference"]))
    return f"{parts['outcome']}: {estimate(observed)}, asked for {asked}; {errors:g} standard errors are {margin:.2g}"


def numbers(shown: Any, phrase: Phrase = str.format) -> str:
    """Say a number to four digits, an estimate, or the range of many numbers.

    >>> numbers(0.12345678), numbers({"least": 1.0, "greatest": 2.5}), numbers({"value": 1.0, "standard_error": 0.5})
    ('0.1235', '1 to 2.5', '1 ± 0.5')
    """
    if not isinstance(shown, Mapping):
        return f"{shown:.4g}"
    if "value" in shown:
        return estimate(shown)
    return phrase("{least} to {greatest}", least=f"{shown['least']:.4g}", greatest=f"{shown['greatest']:.4g}")


def listed(names: Iterable[str], phrase: Phrase = str.format) -> str:
    """Join names in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *before, last = names
    said = ""
    for name in before:
        said = phrase("{one}, {next}", one=said, next=name) if said else name
    return phrase("{one} and {last}", one=said, last=last) if said else last


def _derivation(parts: Parts, say: Saying, phrase: Phrase) -> str:
    steps = "in one verified step" if parts["steps"] == 1 else "in {steps} verified steps"
    derived = f"{{name}}: derived {steps}." if parts["name"] else f"Derived {steps}."
    said = phrase(derived, name=parts["name"], steps=parts["steps"])
    return _then(said, _rejects(parts["mistakes"], phrase), phrase)


def _agreement(parts: Parts, say: Saying, phrase: Phrase) -> str:
    tolerance, mistakes = parts["tolerance"], [parts["mistake"], *parts.get("neighbours", ())]
    if isinstance(tolerance, Mapping) and "standard_errors" in tolerance:
        within = phrase("they agree to within {count} standard errors", count=f"{tolerance['standard_errors']:g}")
    elif tolerance == 0:
        within = phrase("they agree exactly ({because})", because=parts["because"])
    else:
        margin = numbers(tolerance, phrase)
        within = phrase("they agree to within {margin} ({because})", margin=margin, because=parts["because"])
    counted = "{count} values, observed {observed}" if "count" in parts else "observed {observed}"
    told = phrase(
        f"{{of}}: {counted}, expected {{expected}}; {{within}}." if parts["of"] else
        f"{counted}, expected {{expected}}; {{within}}.",
        of=parts["of"],
        count=f"{parts.get('count', 0):,}",
        observed=numbers(parts["observed"], phrase),
        expected=numbers(parts["expected"], phrase),
        within=within,
    )  # fmt: skip
    given = [(wrong["name"], _rejected(wrong, parts["expected"], phrase)) for wrong in mistakes]
    named = [phrase("{mistake} ({gives})", mistake=name, gives=gives) for name, gives in given]
    return _then(told, _rejects(named, phrase), phrase)


def _rejects(mistakes: Iterable[str], phrase: Phrase) -> str:
    return phrase("The same check rejects {mistakes}.", mistakes=listed(mistakes, phrase))


def _then(one: str, other: str, phrase: Phrase) -> str:
    """Put two sentences after one another."""
    return phrase("{one} {other}", one=one, other=other)


def _rejected(mistake: Parts, expected: Any, phrase: Phrase) -> str:
    """Say what a mistake would have given; where it has the range of the right numbers, how far an entry is off."""
    given = numbers(mistake["value"], phrase)
    if given != numbers(expected, phrase):
        return given
    return phrase("{given}, off by {off}", given=given, off=numbers(mistake["off"], phrase))


def _counterexample(parts: Parts, say: Saying, phrase: Phrase) -> str:
    side = _SIDES[parts["relation"]]
    said = phrase(
        "{of} is {value} at {place}; the sentence requires {required}.",
        of=parts["of"],
        value=say(parts["observed"]),
        place=parts.get("where") or instance(parts["at"], phrase),
        required=phrase(side, value=say(parts["required"])),
    )
    if "instead" in parts:
        corrected = phrase(side, value=say(parts["instead"]))
        said = _then(said, phrase("The corrected statement gives {corrected}.", corrected=corrected), phrase)
    if obeys := parts.get("obeys"):
        place, kept = instance(obeys["at"], phrase), say(obeys["observed"])
        holds = phrase("The sentence does hold at {place}, where the value is {value}.", place=place, value=kept)
        said = _then(said, holds, phrase)
    return said


def _observation(parts: Parts, say: Saying, phrase: Phrase) -> str:
    null, reference = parts["null"], value(parts["reference"])
    said = phrase(
        "{of} is {value} over {units}; the sentence asks for {asked}, {outcome}.",
        of=parts["of"],
        value=estimate(parts["observed"]),
        units=parts["units"],
        asked=phrase(_SIDES[parts["relation"]], value=reference),
        outcome=phrase(_OUTCOMES[parts["outcome"]]),
    )
    compared = "In the comparison ({name}) the value is {value}, which would not support the sentence."
    return _then(said, phrase(compared, name=null["name"], value=estimate(null)), phrase)


_SAID: Mapping[str, Callable[[Parts, Saying, Phrase], str]] = {
    "derivation": _derivation,
    "agreement": _agreement,
    "counterexample": _counterexample,
    "observation": _observation,
}


def _sentence(text: str) -> str:
    """Begin a sentence with a capital letter, but for a symbol or a word beside another script.

    >>> [_sentence(text) for text in ("the keys", "a row", "d_k = 16", "n = 5", "elu+1: recall", "identity 的")]
    ['The keys', 'A row', 'd_k = 16', 'n = 5', 'elu+1: recall', 'identity 的']
    """
    word = re.match(r"(?:a|[a-z]{2,}(?:['’-][a-z]+)*)(?=[,:;.]| (?!=)[\x21-\x7f]|$)", text)
    return text[:1].upper() + text[1:] if word else text
