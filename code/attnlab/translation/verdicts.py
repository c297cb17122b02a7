"""The rules of PREDICTIONS.md, written as code before the sweep ended: which outcome supports which sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attnlab.sweeps.tables import Row
from attnlab.translation.results import Comparison, by_seed, compare, complete_seeds
from attnlab.translation.table import EXTRA_PAIRS, PAIRS
from attnmath.arrays import Numpy
from attnmath.checks import Fixed, one_of

#: "Low resource", "standard" and "as good as" (in BLEU) of PREDICTIONS.md.
LOW, STANDARD, MARGIN = PAIRS[:3], PAIRS[-1], 1.0
OUTCOMES = ("supported", "contradicted", "not decided")

Differences = Float[Numpy, "seeds"]


class Verdict(NamedTuple):
    """What the table says of a sentence: its outcome, and the comparisons behind it by what they compare."""

    outcome: str
    comparisons: Mapping[str, Comparison]


def judge(rows: Sequence[Row], sentence: str) -> Verdict:
    """Apply the rule of one of `SENTENCES` to a table."""
    differences, rule = SENTENCES[one_of(sentence, SENTENCES, "sentence")]
    seeds = sorted({row["seed"] for row in rows})
    if complete_seeds(rows) != seeds:  # differences are of the same seed
        raise ValueError(f"rows: expected every setting for each of the seeds {seeds}, got them all for the seeds "
                         f"{complete_seeds(rows)}; leave out the others")  # fmt: skip
    found = differences(rows)
    comparisons = {name: compare(values, len(found)) for name, values in found.items()}
    return Verdict(rule(list(comparisons.values())), comparisons)


def _some(comparisons: Sequence[Comparison], needed: int = 1) -> str:
    """Supported if so many intervals are above 0 and none below; contradicted the other way round."""
    above, below = sum(c.low > 0 for c in comparisons), sum(c.high < 0 for c in comparisons)
    if above >= needed and not below:
        return "supported"
    return "contradicted" if below >= needed and not above else "not decided"


def _two(comparisons: Sequence[Comparison]) -> str:
    """`_some` with two intervals."""
    return _some(comparisons, 2)


def _always(comparisons: Sequence[Comparison]) -> str:
    """Supported if every interval is above 0, contradicted if one is below."""
    if all(c.low > 0 for c in comparisons):
        return "supported"
    return "contradicted" if any(c.high < 0 for c in comparisons) else "not decided"


def _within(comparisons: Sequence[Comparison]) -> str:
    """Supported if every interval lies within the margin, contradicted if every one lies outside."""
    if all(c.low > -MARGIN and c.high < MARGIN for c in comparisons):
        return "supported"
    outside = all(c.high < -MARGIN or c.low > MARGIN for c in comparisons)
    return "contradicted" if outside else "not decided"


def _somewhere_not_worse(comparisons: Sequence[Comparison]) -> str:
    """Supported if an interval lies above minus the margin, contradicted if all lie below it."""
    if any(c.low > -MARGIN for c in comparisons):
        return "supported"
    return "contradicted" if all(c.high < -MARGIN for c in comparisons) else "not decided"


def _better(comparisons: Sequence[Comparison]) -> str:
    """`_some`, and contradicted also if every interval lies within the margin."""
    found = _some(comparisons)
    return "contradicted" if found == "not decided" and _within(comparisons) == "supported" else found


def _against(
    design: str, reference: str, sizes: Sequence[int], quantity: str = "bleu", *, sign: int = 1, equal: bool = False
) -> Callable[[Sequence[Row]], dict[str, Differences]]:
    """Differences of a design from a reference at each size; `equal` as in `by_seed`, for the design alone."""

    def differences(rows: Sequence[Row]) -> dict[str, Differences]:
        return {
            f"{pairs} pairs": sign
            * (by_seed(rows, design, pairs, quantity, equal=equal) - by_seed(rows, reference, pairs, quantity))
            for pairs in sizes
        }

    return differences


def _more_than_half(rows: Sequence[Row]) -> dict[str, Differences]:
    return {
        f"{pairs} pairs": by_seed(rows, "fixed", pairs, "bleu")
        - np.mean([by_seed(rows, design, pairs, "bleu") for design in ("learned", "narrow")], axis=0)
        for pairs in EXTRA_PAIRS
    }


def _learned_head(rows: Sequence[Row]) -> dict[str, Differences]:
    return {
        f"{kind}, {name}": values
        for kind in ("long", "sense")
        for name, values in _against("fixed", "patterns", EXTRA_PAIRS, f"accuracy_{kind}")(rows).items()
    }


#: Each sentence of PREDICTIONS.md: the differences that it rests on, signed so that above 0 is for it, and its rule.
SENTENCES: Mapping[
    str, tuple[Callable[[Sequence[Row]], dict[str, Differences]], Callable[[Sequence[Comparison]], str]]
] = Fixed({
    "as good in the standard setting": (_against("fixed", "learned", [STANDARD]), _within),
    "better in low resource": (_against("fixed", "learned", LOW), _some),
    "always better than one head": (_against("fixed", "single", PAIRS), _always),
    "less overfitting": (_against("fixed", "learned", LOW, "gap", sign=-1), _two),
    "better generalisation": (_against("fixed", "learned", LOW, "validation_best", sign=-1), _two),
    "more stable gradients": (_against("fixed", "learned", LOW, "gradient_jitter", sign=-1), _two),
    "better at equal parameters": (_against("fixed", "learned", EXTRA_PAIRS, equal=True), _some),
    "most of the information": (_more_than_half, _two),
    "the learned head helps": (_learned_head, _some),
    "projections may stay untrained": (_against("orthogonal", "learned", PAIRS), _somewhere_not_worse),
    "orthogonality is a good bias": (_against("orthogonal", "gaussian", EXTRA_PAIRS), _better),
    "orthogonal heads in low resource": (_against("orthogonal", "learned", LOW), _some),
})  # fmt: skip
