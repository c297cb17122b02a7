"""What could be mistaken for a confirmed or a measured claim is named in its record, and fails by the record's numbers.

Each agreement of a confirmed claim names at least three near misses of its formula: a neighbouring index, another
factor, another norm, another mask. A measured claim has for each observation a null without the effect. (Where the
sentence is contradicted, its null may be contradicted as well.) What was found is computed again, from the numbers that
the notebook stores.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import stamps
from linewise.ledger import card
from linewise.ledger.evidence import Z

Parts = dict[str, Any]
#: Near misses that an agreement of a confirmed claim names at least.
LEAST = 3
#: Agreements that name fewer, by claim and by what they are of, and why.
FEWER = {
    ("5.1.7/finite-instead", "weights that are no numbers in a row without a visible position"):
        "a format holds no other number that fails: minus infinity alone subtracted from itself is no number",
}  # fmt: skip
#: Numbers of a record have four digits, standard errors two.
ROUNDED, ROUNDED_ERROR = 6e-4, 0.06


def records(verdict: str) -> dict[str, Parts]:
    """Return the records of all claims with a verdict, by chapter and claim."""
    found: dict[str, Parts] = {}
    for path in stamps.notebooks():
        notebook = json.loads(path.read_text(encoding="utf-8"))
        outputs = (output for cell in notebook["cells"] for output in cell.get("outputs", []))
        judged = (output["data"][card.MIME] for output in outputs if card.MIME in output.get("data", {}))
        found |= {f"{path.stem}: {record['claim']}": record for record in judged if record["verdict"] == verdict}
    return found


def of_kind(record: Parts, kind: str) -> list[Parts]:
    return [parts for parts in record["evidence"] if parts["kind"] == kind]


def near_misses(agreement: Parts) -> list[Parts]:
    return [agreement["mistake"], *agreement.get("neighbours", [])]


def ends(shown: Any) -> tuple[float, float]:
    """Return the least and the greatest of the numbers that a record sums up."""
    if isinstance(shown, Mapping) and "least" in shown:
        return shown["least"], shown["greatest"]
    value = shown["value"] if isinstance(shown, Mapping) else shown
    return value, value


def untold(agreement: Parts, wrong: Parts) -> Iterator[str]:
    """Yield what of a rejected near miss does not follow from the record."""
    if not wrong["off"] > wrong["allowed"]:
        yield f"passes: off by {wrong['off']}, allowed {wrong['allowed']}"
    (low, high), (least, greatest) = ends(agreement["observed"]), ends(wrong["value"])
    size = max(map(abs, (low, high, least, greatest)))
    if wrong["off"] > max(high - least, greatest - low) + ROUNDED * size:
        yield f"cannot be off by {wrong['off']}"
    if agreement.get("count", 1) == 1 and abs(abs(low - least) - wrong["off"]) > ROUNDED * size:
        yield f"is not off by {wrong['off']}"
    tolerance = agreement["tolerance"]
    if not isinstance(tolerance, Mapping) or "least" in tolerance:
        slack, most = ends(tolerance)
        if not slack * (1 - ROUNDED) <= wrong["allowed"] <= most * (1 + ROUNDED):
            yield f"is not allowed {wrong['allowed']}"
    elif agreement.get("count", 1) == 1:
        margin = tolerance["standard_errors"] * agreement["observed"]["standard_error"]
        if abs(margin - wrong["allowed"]) > ROUNDED_ERROR * margin:
            yield f"is not allowed {wrong['allowed']}"


def weak(record: Parts) -> list[str]:
    """Return what keeps a confirmed claim from being one that could have failed."""
    agreements = of_kind(record, "agreement")
    found = [] if agreements else ["no agreement"]
    for agreement in agreements:
        for wrong in near_misses(agreement):
            found += [f"{wrong['name']} {fault}" for fault in untold(agreement, wrong)]
        names = [wrong["name"] for wrong in near_misses(agreement)]
        found += [f"{name}: named twice" for name in sorted(set(names)) if names.count(name) > 1]
        if len(names) < LEAST and (record["claim"], agreement["of"]) not in FEWER:
            found.append(f"{agreement['of']}: only {len(names)} near misses: {names}")
    return found


def outcome(seen: Parts, relation: str, reference: float) -> str:
    """Return what an estimate says of a sentence, from its numbers in the record."""
    gap = (seen["value"] - reference) * (1 if relation == ">" else -1)
    margin = Z * seen["standard_error"]
    return "supported" if gap > margin else "contradicted" if gap < -margin else "undecided"


def idle(record: Parts) -> list[str]:
    """Return what keeps a measured claim from being one that could have come out otherwise."""
    found, seen = [], of_kind(record, "observation")
    for parts in seen:
        asked = parts["relation"], parts["reference"]
        if outcome(parts["observed"], *asked) != parts["outcome"]:
            found.append(f"{parts['of']}: the numbers do not say {parts['outcome']}")
        if outcome(parts["null"], *asked) == "supported":
            found.append(f"{parts['of']}: {parts['null']['name']} supports it")
    outcomes = {parts["outcome"] for parts in seen}
    if (outcomes.pop() if len(outcomes) == 1 else "undecided") != record["outcome"]:
        found.append(f"the observations do not say {record['outcome']}")
    return found


CONFIRMED, MEASURED = records("confirmed"), records("measured")


@pytest.mark.parametrize("name", CONFIRMED)
def test_a_confirmed_claim_rejects_three_near_misses_by_its_own_numbers(name: str) -> None:
    assert weak(CONFIRMED[name]) == []


def test_no_agreement_is_excused_in_vain() -> None:
    short = [(record["claim"], agreement["of"]) for record in CONFIRMED.values()
             for agreement in of_kind(record, "agreement") if len(near_misses(agreement)) < LEAST]  # fmt: skip
    assert sorted(short) == sorted(FEWER)


@pytest.mark.parametrize("name", MEASURED)
def test_a_measured_claim_would_have_come_out_otherwise_without_the_effect(name: str) -> None:
    assert idle(MEASURED[name]) == []


# --- a record that was spoilt ---------------------------------------------------------------------------------------


def first(record: Parts, kind: str) -> Parts:
    return of_kind(record, kind)[0]


def passes(record: Parts) -> None:
    agreement = first(record, "agreement")
    agreement["neighbours"][-1]["off"] = agreement["neighbours"][-1]["allowed"] / 2


def right(record: Parts) -> None:
    """One near miss is the right number, and the record still says that it was far off."""
    agreement = first(record, "agreement")
    agreement["mistake"]["value"] = agreement["observed"]


def nearer(record: Parts) -> None:
    """An estimate's near miss is within its standard errors, and the record still says that it was far off."""
    agreement = first(record, "agreement")
    seen = agreement["observed"]
    agreement["mistake"]["value"] = seen["value"] + seen["standard_error"]


def strict(record: Parts) -> None:
    first(record, "agreement")["neighbours"][0]["allowed"] /= 1000


def fewer(record: Parts) -> None:
    agreement = of_kind(record, "agreement")[-1]
    agreement["neighbours"] = agreement["neighbours"][:1]


def twice(record: Parts) -> None:
    agreement = first(record, "agreement")
    agreement["neighbours"][0]["name"] = agreement["mistake"]["name"]


SPOILT_CONFIRMED: dict[str, tuple[str, Callable[[Parts], None], str]] = {
    "a near miss within the tolerance": ("scaling: scaling/normal-limit", passes, "passes"),
    "a near miss of many numbers": ("exponential: article/2", passes, "passes"),
    "the right number": ("rank: 5.5.2/causal", right, "is not off by"),
    "within four standard errors": ("orthogonal_features: orthogonal_features/simplex", nearer, "is not off by"),
    "another tolerance": ("remedies: note/missed-detail", strict, "is not allowed"),
    "two near misses": ("scaling: scaling/normal-limit", fewer, "only 2 near misses"),
    "one near miss under two names": ("masks: 5.1.7/matrix-form", twice, "named twice"),
}


@pytest.mark.parametrize("what", SPOILT_CONFIRMED)
def test_a_check_that_a_near_miss_passes_is_noticed(what: str) -> None:
    name, spoil, said = SPOILT_CONFIRMED[what]
    record = copy.deepcopy(CONFIRMED[name])
    spoil(record)
    assert any(said in fault for fault in weak(record))


def as_if_there(record: Parts) -> None:
    parts = first(record, "observation")
    margin = 5 * parts["null"]["standard_error"]
    parts["null"]["value"] = parts["reference"] + (margin if parts["relation"] == ">" else -margin)


def less_sure(record: Parts) -> None:
    parts = first(record, "observation")
    parts["observed"]["standard_error"] = abs(parts["observed"]["value"] - parts["reference"])


def turned(record: Parts) -> None:
    record["outcome"] = "undecided"


SPOILT_MEASURED = {"supports it": as_if_there, "the numbers do not say": less_sure,
                   "the observations do not say": turned}  # fmt: skip


@pytest.mark.parametrize("said", SPOILT_MEASURED)
@pytest.mark.parametrize("settled", ["supported", "contradicted"])
def test_a_measurement_that_could_not_come_out_otherwise_is_noticed(settled: str, said: str) -> None:
    record = copy.deepcopy(next(record for record in MEASURED.values() if record["outcome"] == settled))
    SPOILT_MEASURED[said](record)
    assert any(said in fault for fault in idle(record))
