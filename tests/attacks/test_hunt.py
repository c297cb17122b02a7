"""The machinery of the attacks: it finds what is false, and does not trust what cannot fail."""

from __future__ import annotations

from time import perf_counter

import hunt
import instances
import numpy as np
import pytest
from hunt import Attack, at_most, equal, exactly_if, implies, less, rounding

TRUE = {"the mean exceeds the largest": lambda p: at_most(p.max(axis=1), p.mean(axis=1), 0.0)}


def largest_is_at_least_the_mean(p):
    return at_most(p.mean(axis=1), p.max(axis=1), rounding(8, 1))


def run(holds, wrong=TRUE, on=instances.probability_rows) -> hunt.Outcome:
    return Attack(("a statement",), on, holds, wrong, "a test").run()


def test_a_true_statement_is_tried_often_enough() -> None:
    outcome = run(largest_is_at_least_the_mean)
    assert outcome.random >= 10_000 and outcome.structured >= 50
    assert outcome.worst is None and outcome.failed_random == outcome.failed_structured == 0


def test_a_false_statement_is_found_and_its_smallest_instance_shown() -> None:
    with pytest.raises(AssertionError) as error:
        run(lambda p: at_most(p.max(axis=1), 0.9, 0.0))
    report = str(error.value)
    assert "a test attacks a statement" in report
    assert "p = [1.]" in report and "n = 1" in report  # of all instances, the one with a single weight
    assert "1 <= 0.9" in report and "random instances" in report


def test_a_statement_that_is_false_at_one_structured_instance_only_is_found() -> None:
    def no_tiny_weight(p):
        return ~((p > 1e-301) & (p < 1e-299)).any(axis=1)

    with pytest.raises(AssertionError, match=r"false at \d of 54 structured and 0 of 10200 random"):
        run(no_tiny_weight)


def test_a_statement_that_is_false_at_random_instances_only_is_found() -> None:
    with pytest.raises(AssertionError, match="false at 0 of 54 structured and [1-9]"):
        run(lambda p: (p.shape[1] == 1) | (p.max(axis=1) < 0.30) | (p.max(axis=1) > 0.31) | (p.min(axis=1) > 0.1))


def test_an_idle_wrong_version_is_reported() -> None:
    with pytest.raises(AssertionError, match="does not bite: no instance breaks 'also true'"):
        run(largest_is_at_least_the_mean, {**TRUE, "also true": lambda p: less(-1.0, p.max(axis=1))})


def test_a_wrong_version_does_not_bite_by_what_is_not_a_number() -> None:
    with np.errstate(invalid="ignore"), pytest.raises(AssertionError, match="does not bite"):
        run(largest_is_at_least_the_mean, {"undefined": lambda p: at_most(p.max(axis=1) * np.nan, 1.0, 0.0)})


@pytest.mark.parametrize("compare", [at_most, equal])
@pytest.mark.parametrize("left, allowance", [(np.nan, 0.0), (0.0, np.nan), (0.0, np.inf)])
def test_what_is_not_a_number_fails(compare, left, allowance) -> None:
    judged = compare(np.full(3, left), np.zeros(3), np.full(3, allowance))
    assert not judged.holds.any() and judged.undefined.all()


def test_nan_in_one_instance_fails_the_statement() -> None:
    with pytest.raises(AssertionError, match="nan <= 1 is false"):
        run(lambda p: at_most(np.where(p.max(axis=1) > 0.99, np.nan, 0.0), 1.0, 0.0))


def test_an_exception_is_reported_with_its_instance() -> None:
    def raises(p):
        if ((p > 0.2) & (p < 0.25)).any():
            raise ZeroDivisionError("no such weight")
        return p.sum(axis=1) > 0

    with pytest.raises(AssertionError, match="raises ZeroDivisionError: no such weight") as error:
        run(raises)
    assert "p = [" in str(error.value)


def test_a_warning_counts_as_an_exception() -> None:
    with pytest.raises(AssertionError, match="raises RuntimeWarning"):
        run(lambda p: np.log(p).max(axis=1) <= 0)


def test_an_exception_in_a_wrong_version_is_no_counterexample() -> None:
    with pytest.raises(AssertionError, match="raises ValueError: broken"):
        run(largest_is_at_least_the_mean, {"raises": lambda p: broken()})


def broken():
    raise ValueError("broken")


@pytest.mark.parametrize(
    "result, words",
    [
        (lambda p: True, "expected a boolean for every instance"),
        (lambda p: p.sum(axis=1), "expected a boolean for every instance, got float64"),
        (lambda p: np.ones(3, dtype=bool), "answers, one for every instance, got 3"),
        (lambda p: at_most(1.0, 2.0, 0.0), "got numbers only"),
        (lambda p: equal(p, np.ones(p.shape[1] + 7), 0.0), "instances on the first axis"),
    ],
)
def test_answers_that_are_no_answers(result, words) -> None:
    with pytest.raises(AssertionError, match=words):
        run(result)


def test_a_hypothesis_that_is_never_met_is_reported() -> None:
    with pytest.raises(AssertionError, match="met too rarely"):
        run(largest_is_at_least_the_mean, on=instances.probability_rows.such_that(lambda p: p.sum(axis=1) > 2))


def test_a_hypothesis_that_is_met_rarely_gets_more_rounds() -> None:
    rare = instances.probability_rows.such_that(lambda p: p.max(axis=1) > 0.9)
    assert run(largest_is_at_least_the_mean, {"never": lambda p: less(p.max(axis=1), 0.95)}, on=rare).random >= 10_000


def test_a_missing_hypothesis_is_a_wrong_version() -> None:
    sharp = instances.probability_rows.such_that(lambda p: p.max(axis=1) > 0.6)
    run(lambda p: less(0.5, p.max(axis=1)), {"without the hypothesis": instances.probability_rows}, on=sharp)
    with pytest.raises(AssertionError, match="does not bite"):
        run(largest_is_at_least_the_mean, {"without the hypothesis": instances.probability_rows}, on=sharp)


def test_both_sides_of_an_equivalence_must_be_seen() -> None:
    with pytest.raises(AssertionError, match="both conditions are false at 0 instances only"):
        run(lambda p: exactly_if(p.sum(axis=1) > 0.5, p.max(axis=1) > 0))
    with pytest.raises(AssertionError, match="the hypothesis is true at 0 instances only"):
        run(lambda p: implies(p.max(axis=1) > 2, p.max(axis=1) > 1))
    with pytest.raises(AssertionError, match="the first condition is True, the second False"):
        run(lambda p: exactly_if(p.max(axis=1) > 0.5, p.max(axis=1) > 0.6))


def test_comparisons_align_on_the_first_axis() -> None:
    square, rows = np.arange(9.0).reshape(3, 3), np.array([2.0, 5.0, 8.0])
    assert at_most(square, rows, 0.0).holds.all()  # each row against its own number, though (3, 3) and (3,) broadcast
    assert not at_most(square.T, rows, 0.0).holds.all()
    assert (at_most(square, rows, 0.0) & np.array([True, False, True])).holds.tolist() == [True, False, True]
    assert (np.array([True, False, True]) & at_most(square, rows, 0.0)).holds.tolist() == [True, False, True]


def test_registration_refuses_what_proves_nothing() -> None:
    with pytest.raises(ValueError, match="at least one wrong version"):
        hunt.attack("5.5.1/norm", on=instances.vectors, wrong={})(lambda x: x)
    with pytest.raises(ValueError, match="expected one of exact, measured"):
        hunt.no_attack("5.5.1/norm", because="obviously: This is so obvious that nobody would ever doubt it.")
    with pytest.raises(ValueError, match="at least eight words"):
        hunt.no_attack("5.5.1/norm", because="exact: It is exact.")


KINDS = [(name, value) for name, value in vars(instances).items() if isinstance(value, instances.Kind)]


@pytest.mark.parametrize("name, kind", KINDS, ids=[name for name, _ in KINDS])
def test_kinds(name: str, kind: instances.Kind) -> None:
    batches = list(kind.batches())
    drawn = sum(len(batch) for batch in batches if batch.names is None)
    assert drawn >= 10_000 or name in ("positive_stochastic", "random_numbers")  # these are parts of other kinds
    assert any(batch.names for batch in batches)
    for batch in batches:
        assert len(batch.arrays) == len(kind.names)
        assert {len(array) for array in batch.arrays} == {len(batch)}
        assert all(np.isfinite(array).all() for array in batch.arrays)
    again = [array for batch in kind.batches() for array in batch.arrays]
    assert all(np.array_equal(a, b) for a, b in zip(again, (a for b in batches for a in b.arrays), strict=True))


def test_kinds_are_what_they_say() -> None:
    for kind in (instances.row_stochastic, instances.positive_stochastic, instances.causal_stochastic):
        for batch in kind.batches():
            (A,) = batch.arrays
            assert (A >= 0).all() and np.abs(A.sum(axis=2) - 1).max() <= 8 * A.shape[1] * instances.EPS
    for batch in instances.masks.batches():
        assert batch.arrays[0].dtype == bool and batch.arrays[0].any(axis=2).all()
    for batch in instances.causal_stochastic.batches():
        assert (np.triu(batch.arrays[0], 1) == 0).all()
    for batch in instances.random_vectors.batches():
        x, p = batch.arrays
        assert x.shape[:2] == p.shape and np.abs(p.sum(axis=1) - 1).max() < 1e-14


def test_instances_cover_what_breaks_careless_sentences() -> None:
    random = [batch.arrays[0] for batch in instances.row_stochastic.batches() if batch.names is None]
    assert {A.shape[1] for A in random} == {1, 2, 3, 4, 5, 6}
    for special in (
        lambda A: (A.max(axis=2) == 1).all(axis=1),  # one-hot rows
        lambda A: np.abs(A - A[:, :1]).max(axis=(1, 2)) == 0,  # equal rows
        lambda A: np.abs(A.sum(axis=1) - 1).max(axis=1) < 1e-14,  # doubly stochastic
        lambda A: np.triu(A, 1).max(axis=(1, 2)) == 0,  # causal
        lambda A: A.min(axis=(1, 2)) > 0.01,  # clearly positive
    ):
        assert sum(int(special(A).sum()) for A in random if A.shape[1] > 2) >= 100
    sizes = np.concatenate([np.abs(b.arrays[0]).max(axis=1) for b in instances.vectors.batches()])
    assert sizes.max() > 1e5 and 0 < sizes[sizes > 0].min() < 1e-5


def test_random_instances_are_cheap() -> None:
    fresh = instances.kind("A", lambda: (), instances._stochastic, [(n, n) for n in instances.SIZES])
    started = perf_counter()
    assert sum(len(batch) for batch in fresh.batches()) >= 10_000
    assert perf_counter() - started < 0.5  # seconds; it takes a twentieth of that
