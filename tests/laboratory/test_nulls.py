"""The null of paired runs, and what a card makes of an effect that is planted and of one that is taken away.

A card is issued for what data say. Here the cells that issue cards are run on made-up runs: with the effect of the
stored outcome, without any, and with runs that differ by their place, which is what a null must notice.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cards import cards
from planted import DATA, SIGNS, WITHOUT, Plan

from attnlab.nulls import same_setting
from attnlab.recall.table import ATTENTION_NAMES, STANDARD
from attnlab.recall.task import VALUES
from attnlab.recall.training import Settings, build, measure
from attnmath import estimate
from linewise.ledger import LedgerError, observation

# The function --------------------------------------------------------------------------------------------------------


def test_differences_are_of_runs_side_by_side_and_the_last_of_an_odd_number_is_left_out() -> None:
    runs = np.arange(30.0).reshape(2, 3, 5) ** 2
    np.testing.assert_array_equal(same_setting(runs), runs[..., [0, 2]] - runs[..., [1, 3]])
    np.testing.assert_array_equal(same_setting(runs, axis=1), runs[:, [0]] - runs[:, [1]])
    np.testing.assert_array_equal(same_setting([5, 3]), [2.0])


def test_what_all_runs_of_a_setting_share_cancels() -> None:
    rng = np.random.default_rng(1)
    runs = rng.normal(size=(2, 6))
    np.testing.assert_allclose(same_setting(runs + np.array([[7.0], [-30.0]])), same_setting(runs), atol=1e-12)


@pytest.mark.parametrize(
    "values, axis, said",
    [
        ([[1.0], [2.0]], -1, "values: expected at least 2 runs of each setting, got 1"),
        ([1.0, 2.0], 1, "axis: expected an axis of values"),
        (3.0, -1, "values: expected at least 1 dimensions"),
    ],
)
def test_what_is_no_table_of_runs_is_named(values: object, axis: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        same_setting(values, axis)  # type: ignore[arg-type]


def test_a_null_can_fail_whatever_the_number_of_runs() -> None:
    """Exchanged signs hold |t| at sqrt(n - 1); these differences do not."""
    rng = np.random.default_rng(2)
    runs = rng.normal(size=(2, 6)) * 0.01 + [1.0, 0.0] * 3  # better at every even place, in both settings
    null = estimate.mean(same_setting(runs).ravel())
    assert null.value > 20 * null.standard_error
    found = estimate.mean(rng.normal(size=6))
    with pytest.raises(LedgerError, match="comes out as supported too"):
        observation(found, ">", 0, null=("same setting, another run", null), units="6 runs", of="the difference")


# Cards ----------------------------------------------------------------------------------------------------------------

CARDS = cards()


def plan(claim: str, signs: list[int], biased: int | None = None) -> Plan:
    return Plan(CARDS[claim], signs, [int(place == biased) for place in range(len(signs))])


def test_every_card_on_what_was_measured_has_made_up_data_and_no_other() -> None:
    assert sorted(DATA) == sorted(CARDS)


@pytest.mark.filterwarnings("ignore:An input array is constant")
@pytest.mark.parametrize("claim", sorted(DATA))
def test_a_card_is_issued_with_the_effect_and_not_without_it(claim: str) -> None:
    card = CARDS[claim]
    found = [SIGNS[one["outcome"]] for one in card.observations]
    card.issue(DATA[claim](plan(claim, found)))
    if card.record["verdict"] == "measured":  # others may be issued whatever was observed
        for sign in {"supported": [0], "contradicted": [0], "undecided": [1, -1]}[card.record["outcome"]]:
            with pytest.raises(LedgerError, match="outcome|supported"):
                card.issue(DATA[claim](plan(claim, [sign] * len(found))))
    for place in range(len(found)):
        with pytest.raises(LedgerError, match="comes out as supported too"):
            card.issue(DATA[claim](plan(claim, found, place)))


@pytest.mark.parametrize("claim", WITHOUT)
def test_a_measure_finds_nothing_in_heads_without_structure(claim: str) -> None:
    """Runs of the same setting cannot tell a measure that favours one setting. Data without the effect can."""
    with pytest.raises(LedgerError, match="outcome"):
        CARDS[claim].issue(WITHOUT[claim])


@pytest.mark.parametrize("attention", ATTENTION_NAMES)
@pytest.mark.parametrize("unit", [False, True])
def test_what_is_measured_of_recall_favours_no_attention(attention: str, unit: bool, monkeypatch) -> None:
    """Of a model that spreads its weights evenly and answers at random, whatever the attention is."""
    settings = Settings(attention, STANDARD[attention], unit, 16, 8, 32, 1)
    model, random = build(settings), torch.Generator().manual_seed(6)

    def forward(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        size, n = tokens.shape
        return torch.randn(size, n, VALUES, generator=random), torch.ones(n, n).tril().div(n).expand(size, n, n)

    monkeypatch.setattr(model, "forward", forward)
    found, n = measure(model, settings), 3 * settings.pairs
    error = np.sqrt((1 - 1 / VALUES) / VALUES / (512 * settings.pairs))
    assert abs(found["recall"] - 1 / VALUES) < 4 * error
    assert found["target"] == pytest.approx(1 / n) and found["S"] == pytest.approx(1)
    assert found["support"] == pytest.approx(np.mean(np.arange(n - settings.pairs, n) + 1))
