"""The null of paired runs, and what a card makes of an effect that is planted and of one that is taken away.

A card is issued for what data say. Here the cells that issue cards are run on made-up runs: with the effect of the
stored outcome, without any, and with runs that differ by their place, which is what a null must notice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnlab.heads.kinds import kinds
from attnlab.nulls import same_setting
from attnlab.recall import results as recall_results
from attnlab.recall.table import PARAMETERS
from attnlab.translation import results as translation_results
from attnmath import estimate
from attnmath.matrix import rank
from linewise.ledger import LedgerError, load_claims, observation

CHAPTERS = Path(__file__).parents[2] / "chapters"
Row = dict[str, Any]


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


# The cards of the chapter on recall -----------------------------------------------------------------------------------


def cell_of(chapter: str, name: str) -> str:
    notebook = json.loads((CHAPTERS / f"{chapter}.ipynb").read_text(encoding="utf-8"))
    (found,) = (cell for cell in notebook["cells"] if cell.get("id") == name)
    return "".join(found["source"])


def recall(cards: list[str], change: Callable[[Row, np.random.Generator], Row], monkeypatch) -> None:
    """Run cells of the chapter on recall on a table whose rows are changed."""
    rng = np.random.default_rng(3)
    rows = [change(row, rng) for row in recall_results.load_results()]
    monkeypatch.setattr(recall_results, "load_results", lambda: rows)
    space: dict[str, Any] = {}
    needed = ["001", "002", "020", "026", "027", "029", "030"]
    for name in (*needed, *cards):
        if name == "022":
            code = "SETTING" + cell_of("sparsity/associative_recall", "recall-022").partition("SETTING")[2]
        else:
            code = cell_of("sparsity/associative_recall", f"recall-{name}")
        exec(compile(code, name, "exec"), space)


def absent(row: Row, rng: np.random.Generator) -> Row:
    """Every setting recalls, concentrates and locates alike."""
    S, share, right = rng.normal([0.95, 0.3, 0.5], 0.01)
    return row | {"S": S, "support": 40 * S**2, "target": share, "recall": right, "validation": right}


def by_place(sign: int) -> Callable[[Row, np.random.Generator], Row]:
    """No setting differs, but seeds at even places have more of everything, or less."""

    def change(row: Row, rng: np.random.Generator) -> Row:
        row, more = absent(row, rng), sign * 0.3 * (row["seed"] % 2 == 0)
        return row | {name: row[name] * (1 + more) for name in ("S", "support", "target", "recall")}

    return change


#: The cells of a card, the claim, and the sign of a difference between seeds that its null takes for the effect.
CARDS = {
    "034": (["034"], "article/recall-thesis", 1),
    "041a": (["022", "041", "041a"], "recall/concentrated-without-recall", -1),
    "051": (["051"], "recall/without-concentration", 1),
    "056": (["056"], "article/recall-decay", -1),
    "065": (["058", "065"], "article/recall-softmax", -1),
    "069": (["067", "069"], "article/recall-width", 1),
}


@pytest.mark.filterwarnings("ignore:An input array is constant")
@pytest.mark.parametrize("name", CARDS)
def test_a_card_on_recall_is_issued_with_the_effect_and_not_without_it(name: str, monkeypatch) -> None:
    cells, claim, sign = CARDS[name]
    assert load_claims("associative_recall")[claim].outcome == "supported"
    recall(cells, lambda row, rng: row, monkeypatch)  # the stored runs have the effect
    with pytest.raises(LedgerError, match="outcome|supported"):
        recall(cells, absent, monkeypatch)
    with pytest.raises(LedgerError, match="comes out as supported too"):
        recall(cells, by_place(sign), monkeypatch)


def test_an_undecided_card_is_not_issued_where_every_kind_gains(monkeypatch) -> None:
    def gains(row: Row, rng: np.random.Generator) -> Row:
        values = PARAMETERS[row["attention"]][1]
        place = values.index(row["parameter"]) if row["parameter"] in values else 0
        row = absent(row, rng)
        return row | {"S": row["S"] - 0.2 * place, "recall": row["recall"] + 0.1 * place}

    recall(["039"], lambda row, rng: row, monkeypatch)
    with pytest.raises(LedgerError, match="outcome"):
        recall(["039"], gains, monkeypatch)


# The cards of the chapter on few data ---------------------------------------------------------------------------------


def few_data(card: str, change: Callable[[Row, np.random.Generator], Row], monkeypatch) -> None:
    """Run a card of the chapter on few data on a table whose rows are changed."""
    rng = np.random.default_rng(4)
    rows = [change(row, rng) for row in translation_results.load_results()]
    monkeypatch.setattr(translation_results, "load_results", lambda: rows)
    monkeypatch.setattr(translation_results, "load_rates", list)  # each design keeps the one rate
    space: dict[str, Any] = {}
    for name in ("e3a6ed4d", "1d63e29d", "b68f2dde", "1fb7c752", "39d5dc9b", "654c7457", "c944613a", "3c0a8d65",
                 "5be2d907", card):  # fmt: skip
        exec(compile(cell_of("fixed_attention/low_resource", name), name, "exec"), space)


def alike(row: Row, rng: np.random.Generator) -> Row:
    """No design differs from another."""
    bleu, loss = rng.normal([50.0, 1.0], 0.01)
    return row | {"bleu": bleu, "validation_best": loss, "validation_last": loss + 0.1, "train_last": 0.0}


def frozen_gain(row: Row, rng: np.random.Generator) -> Row:
    """Frozen heads gain, without a pattern."""
    row, more = alike(row, rng), row["design"] == "orthogonal"
    losses = {name: row[name] - more * 0.5 for name in ("validation_best", "validation_last")}
    return row | losses | {"bleu": row["bleu"] + 10 * more}


@pytest.mark.parametrize("card", ["ea4e8e19", "cf454d7c", "28700e65", "bc99112c"])
def test_a_card_on_few_data_is_issued_with_the_effect_and_not_without_it(card: str, monkeypatch) -> None:
    few_data(card, lambda row, rng: row, monkeypatch)
    with pytest.raises(LedgerError, match="outcome"):
        few_data(card, alike, monkeypatch)
    with pytest.raises(LedgerError, match="comes out as supported too"):
        few_data(card, frozen_gain, monkeypatch)


# The cards on heads ---------------------------------------------------------------------------------------------------


def of_heads(effect: float, trend: float, *shape: int) -> np.ndarray:
    """Made-up gains of heads: an effect that all have, and one that heads at even places have."""
    rng = np.random.default_rng(5)
    gains = effect + 0.02 * rng.normal(size=shape)
    gains[..., ::2] += trend
    return gains


def by_kind(of: Callable[..., np.ndarray]) -> list[list[np.ndarray]]:
    """Gains of heads for each kind and each of its texts."""
    return [[of(6, 12)], [of(4, 4, 4)], [of(30, 9), of(30, 9)]]


def between(of: Callable[..., np.ndarray]) -> list[list[np.ndarray]]:
    """Differences of the gains of heads side by side: nothing, unless heads at even places have more."""
    return by_kind(lambda *shape: -np.diff(of(*shape, 2))[..., 0])


def unit_means(found: list[np.ndarray]) -> np.ndarray:
    """Mean for each unit, over its heads and its texts."""
    return np.mean([x.reshape(len(x), -1).mean(axis=1) for x in found], axis=0)


#: One kind of models.
KIND = SimpleNamespace(name="encoder", units="6 layers of one encoder, heads averaged within each")
#: Chapter and cells of a card, and from the gains of heads to the names that the cell takes.
ON_HEADS = {
    "encoder_decoder/encoder_and_decoder, encoder-decoder-030, encoder-decoder-trained-card": lambda of: {
        "gain": lambda sigma, notion: {"mask": of(4, 4, 4), "an order": np.zeros((4, 4, 4)),
                                       "another": of(4, 4, 8)[..., ::2] - of(4, 4, 8)[..., 1::2]}[sigma[1]],
        **dict.fromkeys(("sigma_d", "sigma_u", "sigma_e"), ("no mask", "mask")), "shuffled": ["an order", "another"],
        "notions": {"entropy rank": None, "stable rank": None}},
    "encoder_decoder/remedies, rem-046": lambda of: {"up": of(6, 12), "up_d": of(4, 4, 4)},
    "matrix/effective_rank, er-next, 55f32e85": lambda of: {
        "groups": kinds(), "share": np.asarray, "sigma": by_kind(of),
        "absent": by_kind(lambda *shape: np.zeros(shape))},
    "matrix/effective_rank, er-next, er-training": lambda of: {
        "groups": kinds(), "share": lambda values: of(4, 4, 4) if values.shape[-1] == 2 else np.zeros((4, 4, 4)),
        "sigma_u": np.ones((4, 4, 4, 2)), "started": lambda factor: np.ones((4, 4, 4, 2)), "matched": 1.0,
        "sigma_d": np.ones((4, 4, 4, 3)), "spread": lambda model: np.ones(1), "decoders": None},
    "matrix/effective_rank, 01f46eeb": lambda of: {
        "groups": kinds(), "agree": lambda kind, shift=0: dict(zip(
            (one.name for one in kinds()), map(unit_means, (by_kind, between)[shift](of)), strict=True))[kind.name]},
    "matrix/condition_number, a28eb924": lambda of: {
        "short": kinds(), "lowered": by_kind(of), "apart": between(of),
        "over_units": lambda found: estimate.mean(unit_means(found))},
    "matrix/gram_and_kernel, gk-trained-measured": lambda of: {
        "groups": kinds(), "shares": [
            (unit_means(gains), 0.0, -unit_means(trend))
            for gains, trend in zip(by_kind(of), between(of), strict=True)]},
    "matrix/sparse_and_dense, sparse-and-dense-30": lambda of: {
        "groups": kinds(), "raised": [[[x] for x in found] for found in by_kind(of)]},
    "linear_cost/mean_query, mean-query-card": lambda of: {
        "models": [KIND], "gain": lambda kind, name, order: estimate.mean(
            of(6, 4)[:, 1] if name == "mean query" else of(6, 4)[:, 0] - of(6, 4)[:, 1])},
    "linear_cost/optimal_features, optimal-heads-card": lambda of: {
        "models": [KIND], "factors": {"": (4 * of(6, 4)[:, 1], np.zeros(6), 4 * (of(6, 4)[:, 0] - of(6, 4)[:, 1]))}},
    "linear_cost/public_implementations, public-045": lambda of: {
        "MODELS": ("encoder",), "units": {"encoder": "6 layers"}, "comparison": SimpleNamespace(HEAD_SIZES=(32, 64)),
        "on_heads": lambda method, group, m: {f"encoder {layer}.1, half": np.exp(-log) for layer, log in enumerate({
            "attnmath positive": np.zeros(6), "attnmath aderf": of(6, 4)[:, 1],
            "performer-pytorch, mended": of(6, 4)[:, 0] - of(6, 4)[:, 1]}[method])}},
    "sparsity/concentration, concentration-094": lambda of: {
        "S_features": of(4, 4, 4), "S_softmax": np.zeros((4, 4, 4)), "gaussian_features": of(200),
        "gaussian_softmax": np.zeros(200)},
}  # fmt: skip


@pytest.mark.parametrize("place", ON_HEADS)
def test_a_card_on_heads_is_issued_with_the_effect_and_not_without_it(place: str) -> None:
    chapter, *names = place.split(", ")

    def issue(effect: float, trend: float) -> None:
        space: dict[str, Any] = {
            "np": np, "estimate": estimate, "observation": observation, "same_setting": same_setting, "rank": rank,
            "claims": load_claims(Path(chapter).name), "by_layers": "6 layers", "by_models": "4 decoders",
            "over_layers": lambda values: estimate.mean(values.mean(axis=1)),
            "over_models": lambda values: estimate.mean(values.mean(axis=(1, 2))), "unit_means": unit_means,
        }  # fmt: skip
        space |= ON_HEADS[place](lambda *shape: of_heads(effect, trend, *shape))
        for name in names:
            exec(compile(cell_of(chapter, name), name, "exec"), space)

    issue(1.0, 0.0)
    with pytest.raises(LedgerError, match="outcome"):
        issue(0.0, 0.0)
    with pytest.raises(LedgerError, match="comes out as supported too"):
        issue(0.0, 1.0)
