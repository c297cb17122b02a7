"""Made-up data for each card on what was measured: with the effect, without it, and with what its null must notice.

A row of `DATA` goes from a plan to the names that a card takes. The plan says what each observation of the card shall
find, and what its null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from cards import Card

from attnlab.heads.kinds import Kind, kinds
from attnlab.heads.load import Heads
from attnlab.recall import results as recall_results
from attnlab.recall.table import PARAMETERS
from attnlab.translation import results as translation_results
from attnmath import estimate
from attnmath.estimate import Estimate
from attnmath.matrix.rank import singular_values
from attnmath.operator.attention import softmax

Row = dict[str, Any]
Given = dict[str, Any]
SIGNS = {"supported": 1, "undecided": 0, "contradicted": -1}
KINDS = kinds()
PAIRS = "10 language pairs"


@dataclass(frozen=True)
class Plan:
    """What each observation of a card shall find: 1 what supports it, 0 nothing, -1 the opposite; and what its null."""

    card: Card
    signs: Sequence[int]
    nulls: Sequence[int]

    @property
    def seen(self) -> list[float]:
        """The numbers that the observations shall find."""
        return self._numbers(self.signs)

    @property
    def null(self) -> list[float]:
        """The numbers that the nulls shall find."""
        return self._numbers(self.nulls)

    @property
    def biased(self) -> bool:
        return any(self.nulls)

    @property
    def recorded(self) -> bool:
        """Whether the plan is what the card has found."""
        return list(self.signs) == [SIGNS[one["outcome"]] for one in self.card.observations] and not self.biased

    def _numbers(self, signs: Sequence[int]) -> list[float]:
        return [one["reference"] + (sign if one["relation"] == ">" else -sign)
                for one, sign in zip(self.card.observations, signs, strict=True)]  # fmt: skip


def about(value: float, *shape: int) -> np.ndarray:
    """Made-up numbers with this mean."""
    noise = 0.02 * np.random.default_rng(shape).normal(size=shape)
    return value + noise - noise.mean()


def steps(value: float, step: float, count: int) -> np.ndarray:
    """Made-up numbers with this mean, of which each at an even place is greater than the next, by a step."""
    return about(value, count) + np.resize([step / 2, -step / 2], count)


def sure(value: float) -> Estimate:
    return Estimate(value, 0.01)


def of_units(value: float, kind: Kind) -> np.ndarray:
    return about(value, len(kind.samples[0].Q))


def of_heads(value: float, step: float, kind: Kind) -> list[np.ndarray]:
    """Made-up numbers for each head and text of a kind, greater by a step in each second head with keys of its own."""
    shape = kind.samples[0].Q.shape[:-2]
    turns = np.resize(np.repeat([step / 2, -step / 2], kind.group), shape[-1])
    return [about(value, *shape) + turns for _ in kind.samples]


def each(plan: Plan, of: Callable[[float, float, Kind], Any]) -> list[Any]:
    """What three observations find, one on each kind."""
    return [of(*numbers, kind) for *numbers, kind in zip(plan.seen, plan.null, KINDS, strict=False)]


def named(found: Sequence[Any]) -> dict[str, Any]:
    return dict(zip((kind.name for kind in KINDS), found, strict=True))


def both(seen: float, null: float, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
    """What is observed for each unit, and its null."""
    return of_units(seen, kind), of_units(null, kind)


def model(scores: np.ndarray) -> Kind:
    """Made-up heads with these scores, for units along the first axis."""
    n = scores.shape[-1]
    K = np.broadcast_to(np.eye(n), scores.shape)
    return Kind("made up", f"{len(scores)} units", (Heads(scores * np.sqrt(n), K, ("",) * n),))


# Runs ----------------------------------------------------------------------------------------------------------------


@cache
def cells_on_recall() -> list[Any]:
    return recall_results.best_cells(recall_results.load_results())


@cache
def rows_on_few_data() -> list[Row]:
    rows = translation_results.load_results()
    seeds = translation_results.complete_seeds(rows)
    return [row for row in rows if row["seed"] in seeds]


def alike(row: Row, rng: np.random.Generator) -> Row:
    """A run of a setting that recalls, concentrates and locates as every other does."""
    S, share, right = rng.normal([0.95, 0.3, 0.5], 0.01)
    return row | {"S": S, "support": 40 * S**2, "target": share, "recall": right}


def recall(sign: int) -> Callable[[Plan], Given]:
    """Runs on recall as stored, or all alike; or with more of everything, or less, at even seeds."""

    def change(plan: Plan, row: Row, rng: np.random.Generator) -> Row:
        if plan.recorded:
            return row
        values = PARAMETERS[row["attention"]][1]
        place = values.index(row["parameter"]) if row["parameter"] in values else 0
        row, more = alike(row, rng), 1 + plan.biased * sign * 0.3 * (row["seed"] % 2 == 0)
        gain = 0 if plan.biased else plan.signs[0] * place
        row |= {"S": row["S"] - 0.2 * abs(gain), "recall": row["recall"] + 0.1 * gain}
        return row | {name: row[name] * more for name in ("S", "support", "target", "recall")}

    def names(plan: Plan) -> Given:
        rng = np.random.default_rng(3)
        cells = [cell._replace(runs=tuple(change(plan, row, rng) for row in cell.runs)) for cell in cells_on_recall()]
        return {"cells": cells}

    return names


def few_data(better: str, anyhow: str, quantity: str = "bleu") -> Callable[[Plan], Given]:
    """Runs on few data as stored; or alike but for two designs: the one of the sentence, and one in its null."""

    def change(plan: Plan, row: Row, rng: np.random.Generator) -> Row:
        design, gains = row["design"], {better: plan.signs[0], anyhow: max(plan.nulls)}
        good = gains.get(design, 0) + 0.001 * rng.normal()
        return row | {
            "bleu": 50 + 10 * good, "validation_best": 1 - good, "validation_last": 2 - 2 * good, "train_last": 0.0,
            "gradient_jitter": 2 - good, "clipped": 0.5 - good / 4, "accuracy_long": 0.5 + good / 4,
            "accuracy_sense": 0.5 + good / 4,
        }  # fmt: skip

    def names(plan: Plan) -> Given:
        rng = np.random.default_rng(4)
        rows = rows_on_few_data()
        rows = rows if plan.recorded else [change(plan, row, rng) for row in rows]
        return {"rows": rows, "UNITS": PAIRS, "RUNS": dict.fromkeys(("one rate", "own rate by BLEU"), rows)}

    return names


def margins(plan: Plan) -> Given:
    """BLEU of 7F+1L, of 8L and of 8 orthogonal heads: ways to be worse by less than one, and by more."""
    if plan.recorded:
        return {"rows": rows_on_few_data(), "UNITS": PAIRS}
    rng, rows = np.random.default_rng(4), []
    worse = 0.5 if plan.biased else 20
    for row in rows_on_few_data():
        less = worse * (row["pairs"] == 500) + (row["design"] == "orthogonal") * (plan.signs[0] == 0)
        rows.append(row | {"bleu": 50 - less + 0.01 * rng.normal()})
    return {"rows": rows, "UNITS": PAIRS}


def division(plan: Plan) -> Given:
    """Runs with and without the division, of which those with it recall more at one width, or at another one."""
    more = {256: plan.seen[0], 16: plan.null[0], 64: 0.0}
    rng = np.random.default_rng(5)
    rows = [row | {"recall": more[row["head"]] * (row["parameter"] == 1.0) + 0.01 * rng.normal()}
            for row in recall_results.load_division()]  # fmt: skip
    return {"results": SimpleNamespace(**vars(recall_results) | {"load_division": lambda: rows})}


# Heads ---------------------------------------------------------------------------------------------------------------


def masks(plan: Plan) -> Given:
    values = iter(zip(plan.seen, plan.null, strict=True))

    def gains(kind: Kind, notion: None) -> tuple[np.ndarray, ...]:
        seen, null = both(*next(values), kind)
        return seen, np.zeros(len(seen)), null

    return {"models": KINDS, "sigma": named(KINDS), "gains": gains,
            "notions": dict.fromkeys(("entropy rank", "stable rank"))}  # fmt: skip


def by_kind_and_order(plan: Plan) -> Given:
    def gain(kind: Kind, name: str, order: int) -> Estimate:
        place = [one.name for one in KINDS].index(kind.name) + (3 * order if len(plan.seen) > 3 else 0)
        return sure((plan.seen if name == "mean query" else plan.null)[place])

    return {"models": KINDS, "gain": gain}


def features(plan: Plan) -> Given:
    def errors(method: str, group: str, m: int) -> dict[str, float]:
        place = ("encoder", "decoders", "pretrained").index(group.partition(",")[0])
        logs = {"attnmath aderf": about(plan.seen[place], 6), "attnmath positive": np.zeros(6)}
        found = np.exp(logs.get(method, about(plan.null[place], 6)))
        return {f"encoder {layer}.1": error for layer, error in enumerate(found)}

    return {"on_heads": errors}


def contrasts(plan: Plan) -> Given:
    def kept(method: str, group: str) -> np.ndarray:
        place = ("encoder", "decoders", "pretrained").index(group)
        return about((plan.null if "aderf" in method else plan.seen)[place], (72, 64, 90)[place])

    return {"contrasts": kept}


def same_queries(plan: Plan) -> Given:
    found = each(plan, lambda *one: np.stack(of_heads(*one)))
    return {"models": KINDS, "S_heads": named([np.stack([0 * one, one]) for one in found]),
            "gaussian_features": steps(plan.seen[3], plan.null[3], 200), "gaussian_softmax": np.zeros(200)}  # fmt: skip


def spectra(**given: Any) -> Callable[[Plan], Given]:
    """What a notion gives of the singular values of heads, and of heads with permuted weights."""
    return lambda plan: given | {
        "groups": KINDS, "sigma": each(plan, lambda seen, null, kind: of_heads(seen, 0, kind)),
        "absent": each(plan, lambda seen, null, kind: of_heads(null, 0, kind))}  # fmt: skip


def norms(plan: Plan) -> Given:
    """The same for two norms."""
    pairs = [[[np.stack(two, axis=-1) for two in zip(*(of_heads(values[k + 3 * norm], 0, kind) for norm in (0, 1)),
              strict=True)] for k, kind in enumerate(KINDS)] for values in (plan.seen, plan.null)]  # fmt: skip
    take = {"Frobenius norm": lambda x: x[..., 0], "2-norm": lambda x: x[..., 1]}
    return {"groups": KINDS, "sigma": pairs[0], "absent": pairs[1], "norms": take}


def layers(plan: Plan) -> Given:
    """Entropies that fall over the layers; those that fall in the order in which the null shuffles them."""

    def falling(place: int, count: int, shuffled: np.ndarray) -> np.ndarray:
        if plan.nulls[place]:
            return np.argsort(shuffled) * -1.0 + about(0, count)
        return plan.seen[place] * np.arange(count) + about(0, count)

    order = [np.random.default_rng(6).permutation(count) for count in (6, 30)]
    found = iter([falling(2 * k + i, len(order[k]), order[k]) for k in (0, 1) for i in (0, 1)])
    mixed = np.random.default_rng(8).permuted(np.tile(np.arange(4), (4, 1)), axis=1)
    return {"groups": KINDS, "sigma": KINDS, "by_layer": lambda notion, kind: next(found), "entropy_of": None,
            "entropies_d": np.stack([falling(4, 4, one) for one in mixed]) + 0.02 * about(0, 4, 4)}  # fmt: skip


def divergences(plan: Plan) -> Given:
    """A divergence and a miss of the student, of another one, and of what they are compared with."""
    logs = {"student": plan.seen, "other": (plan.null[0], 0), "untrained": (0, plan.null[1])}
    first, second = (lambda P, of, place=place: np.exp(of and about(logs[of][place], 8)) for place in (0, 1))
    return {"P": "", "P_student": "student", "uniform": 0, "untrained": "untrained", "best": 0, "B": np.zeros(8),
            "C": np.zeros(8), "tokens": np.zeros((1, 8)), "weights": lambda Q, K: "other", "divergence": first,
            "miss": second}  # fmt: skip


def collapse(plan: Plan) -> Given:
    tables = {False: about(plan.seen[0], 10, 10), True: about(plan.null[0], 10, 10)}
    return {"distance_from_equal_rows": lambda layers, skip: 10 ** tables[skip]}


def dimensions(plan: Plan) -> Given:
    """Ranks that grow with the size, and an order by chance that would order them."""
    sizes = [np.log(2.0 ** np.arange(count)) for count in (6, 5, 6, 5)]
    tables = [slope * size + np.outer(about(0, units), size) + about(0, units, len(size))
              for slope, size, units in zip(plan.seen, sizes, (30, 30, 4, 4), strict=True)]  # fmt: skip
    given = dict(zip(("by_span", "by_number", "span_learned", "number_learned"), tables, strict=True))
    return given | ({"rng": SimpleNamespace(permuted=np.sort)} if plan.biased else {"rng": np.random.default_rng(1)})


def gradients_of_scores(plan: Plan) -> Given:
    rows = {16: (steps(plan.seen[0], plan.null[0], 50), np.zeros(50)),
            4096: (np.zeros(50), steps(plan.seen[1], plan.null[1], 50))}  # fmt: skip
    return {"norms": dict(zip(("raw", "scaled"), ({width: both[k] for width, both in rows.items()} for k in (0, 1)),
                              strict=True))}  # fmt: skip


def departures(plan: Plan) -> Given:
    def excess(gamma: float, n: int, rows: int, seed: int) -> Estimate:
        whole = np.isclose(gamma, np.sqrt(np.log(n) / 2))
        place = 2 * (16, 256, 4096).index(n) + (not whole)
        other = place + (1 if whole else -1)  # the observation whose null it is
        return sure(plan.null[other] if plan.nulls[other] else plan.seen[place])

    return {"sparse_rows": SimpleNamespace(log_excess=excess)}


def sinks(plan: Plan) -> Given:
    texts = [f"text {k}" for k in range(8)]
    spent = {"none": np.zeros(8), "first": -about(plan.seen[0], 8), "another": -about(plan.null[0], 8)}
    return {"table": [SimpleNamespace(model="pretrained decoder", text=text) for text in texts],
            "bits": lambda model, change, size, choice, texts_: spent[choice][texts.index(texts_[0])]}  # fmt: skip


def heavy_keys(plan: Plan) -> Given:
    """Heads with most weight on the first key; of those of the null, on a later one."""
    scores = np.zeros((30, 2, 24, 24)) + 0.5 * np.random.default_rng(7).normal(size=(30, 2, 24, 24))
    scores[..., 9 if plan.biased else 0] += 4.0 * plan.signs[0]
    return {"PRETRAINED": model(scores)}


def first_token(plan: Plan) -> Given:
    places = {"encoder": 0, "pretrained decoder": 1, "small decoders": 2}
    encoder, small, pretrained = KINDS
    return {"ENCODER": encoder, "SMALL": small, "PRETRAINED": pretrained, "gains": lambda kind: [
        estimate.mean(x) for x in both(plan.seen[places[kind.name]], plan.null[places[kind.name]], kind)]}  # fmt: skip


# Positions -----------------------------------------------------------------------------------------------------------


def medians(plan: Plan) -> Given:
    texts = ["pretrained, passage", "pretrained, documentation"]
    kappa = {name: [np.tile(about(values[k], units)[:, None], 5) for values in (plan.seen, plan.null)]
             for k, (units, names) in enumerate([(6, ["passage"]), (6, ["sentence"]), (4, ["decoders"]), (30, texts)])
             for name in names}  # fmt: skip
    agree, flat = (np.tile(about(values[4], 6)[:, None], 5) for values in (plan.seen, plan.null))
    return {"TEXTS": dict.fromkeys(texts), "kappa": kappa, "agree": agree, "flat": flat}


def information(plan: Plan) -> Given:
    """Bits at eight distances, of text and of shuffled text: as many more at distance 1 as shall be found."""
    names = ("characters", "words")
    found = {(name, kind): [sure(value)] + [sure(0.0)] * 7
             for kind, values in (("text", plan.seen), ("shuffled", plan.null))
             for name, value in zip(names, values, strict=False)}  # fmt: skip
    return {"found": found, "symbols": names}


def places(plan: Plan) -> Given:
    near = {"text": plan.seen[0], "scattered": 0.0, "shuffled": -plan.null[0]}
    rows = [SimpleNamespace(form=form, near=value, near_equal=0.0) for form, mean in near.items()
            for value in about(mean, 4)]  # fmt: skip
    return {"load_locality": lambda: rows}


def partners(plan: Plan) -> Given:
    def pairs(value: float, units: int, heads: int) -> np.ndarray:
        return np.repeat(about(value, units), heads)[:, None] * np.ones(units * heads)

    alike, large = ([pairs(values[k], *size) for values in (plan.seen, plan.null)] for k, size in
                    ((0, (6, 12)), (2, (30, 9))))  # fmt: skip
    both = [pairs(values[1], 4, 16).reshape(4, 16, 64) for values in (plan.seen, plan.null)]
    return {"alike": alike, "large": large[0], "large_moved": large[1],
            "in_decoders": lambda name, order: both[0 if np.all(np.diff(order) > 0) else 1]}  # fmt: skip


def partners_elsewhere(plan: Plan) -> Given:
    """Heads that have a partner or not: most, half of them, or few."""

    def pairs(many: bool, seed: int, size: int) -> np.ndarray:
        has = np.random.default_rng(seed).random(size) < (0.95 if many else 0.5)
        return np.tile(np.where(has, 0.9, 0.1)[:, None], size)

    found = [[pairs(sign, 1, size), pairs(False, 2, size), pairs(null, 3, size)]
             for sign, null, size in zip(plan.signs, plan.nulls, (72, 270), strict=True)]  # fmt: skip
    rows_used = found[0][2][:, :1, None] / 304  # the weight of a row on each of so many positions
    return {"alike": found[0][:2], "rows_used": rows_used, "A": np.broadcast_to(1.0, (72, 304, 304)),
            "large": found[1][0], "large_moved": found[1][1], "large_again": found[1][2]}  # fmt: skip


def pruned(plan: Plan) -> Given:
    rises = plan.null[1] if plan.biased else plan.seen[0]
    return {"rise": lambda kind, gone: sure(rises), "draws": lambda kind, gone: sure(plan.null[0]),
            "adapted": lambda gone: sure(plan.seen[1]), "in_large": lambda kind, gone: [sure(plan.seen[2])],
            "at_random": sure(plan.null[2])}  # fmt: skip


def kept(plan: Plan) -> Given:
    """Weight that the window keeps beyond that of the strides, and random keys beyond random keys."""
    turn = iter(range(100))

    def by(kind: Kind, choose: Callable[..., Any], sink: bool = True) -> np.ndarray:
        place = KINDS.index(kind)
        if choose.__name__ == "scattered":
            return of_units(plan.null[place], kind) if next(turn) % 2 == 0 else -of_units(0, kind)
        return of_units(plan.seen[place], kind) if choose.__name__ == "nearest" else np.zeros(1)

    return {"models": KINDS, "kept_by": by}


def slopes_of_layers(plan: Plan) -> Given:
    x = np.arange(4) - 1.5
    tables = [np.outer(about(value, 10), x) for value in (*plan.seen, *plan.null)]
    return {"counts": [16, 32, 64, 128], "layers": tables[0], "close_by": tables[1]}


def conditions(plan: Plan) -> Given:
    theirs, again = about(0, 20), -about(plan.null[0], 20)
    table = 10 ** np.stack([theirs, theirs, theirs - about(plan.seen[0], 20), theirs], axis=1)
    return {"table": {(96, 12): table}, "conditions": lambda seed, *sizes: ([0, 0, 0, 10 ** again[seed - 20]], None)}


def concentrated(plan: Plan) -> Given:
    softmax = steps(0.5, max(plan.null), 5)
    return {"S": {"softmax": softmax} | {kind: softmax + about(seen, 5) for kind, seen in
                                         zip(("elu+1", "identity"), plan.seen, strict=True)}}  # fmt: skip


def deficits(plan: Plan) -> Given:
    return {"deficits": {(size, size): {"elu+1": about(seen, 5), "relu^2": about(null, 5)}
                         for size, seen, null in zip((8, 16), plan.seen, plan.null, strict=True)}}  # fmt: skip


def copies(plan: Plan) -> Given:
    """Heads that look elsewhere, or copies of one; and a head drawn that is the best of its layer."""
    rng = np.random.default_rng(6)

    def weights(sign: int, kind: Kind) -> np.ndarray:
        units, heads = kind.samples[0].Q.shape[0], 3
        scores = rng.normal(0, 6, size=(units, heads if sign else 1, 10, 10))
        return softmax(scores + rng.normal(0, 0.01, size=(units, heads, 10, 10)))

    best = SimpleNamespace(permuted=lambda log, axis: -np.sort(-log))
    texts = [[weights(sign, kind)] for sign, kind in zip(plan.signs, KINDS, strict=True)]
    return {"models": KINDS, "texts": texts, "rng": best if plan.biased else rng}


def errors_of_parts(plan: Plan) -> Given:
    return {"models": KINDS, "less": each(plan, lambda *one: np.mean(of_heads(*one), axis=0))}


def losses(plan: Plan) -> Given:
    return {"lost": {12: steps(plan.seen[0], plan.null[0], 16)}}


def mixtures(plan: Plan) -> Given:
    pairs = each(plan, both)
    return {"observed": [(kind, gain, ways * np.resize([1, -1], len(ways)))
                         for kind, (gain, ways) in zip(KINDS, pairs, strict=True)]}  # fmt: skip


def lengths(plan: Plan) -> Given:
    found = dict(zip((kind.name for kind in KINDS), each(plan, both), strict=True))
    return {"models": KINDS, "settings": [(), (), ()],
            "of_kind": lambda kind, setting, shuffled=False: found[kind.name][shuffled]}  # fmt: skip


def before_training(plan: Plan) -> Given:
    return {"forms": lambda kind, unit: None, "untrained": {("elu+1", False): about(plan.null[0], 5)},
            "results": SimpleNamespace(by_seed=lambda cells, quantity: about(plan.seen[0], 1, 5))}  # fmt: skip


def halves(plan: Plan) -> Given:
    found = named(each(plan, both))
    return {"groups": KINDS, "agree": lambda kind, shift=0: found[kind.name][shift]}


def trained(plan: Plan) -> Given:
    one, other = (of_heads(*numbers, KINDS[1])[0] for numbers in zip(plan.seen, plan.null, strict=True))
    return {"groups": KINDS, "share": np.asarray, "sigma_u": one, "started": lambda factor: other, "matched": 1.0,
            "sigma_d": np.zeros(one.shape)}  # fmt: skip


def in_pairs(name: str, *between: float) -> Callable[[Plan], Given]:
    """A table by kind, of what is observed and of its null."""
    return lambda plan: {"models": KINDS, name: named([(seen, *between, null) for seen, null in each(plan, both)])}


#: What a card takes, for each claim that was measured.
DATA: dict[str, Callable[[Plan], Given]] = {
    "5.1.9/key-guarantee": division,
    "5.5/intrinsic-dimension": dimensions,
    "5.5.2/about-dk": spectra(away=lambda d_k: np.asarray, widths=[32, 24, 64]),
    "5.5.2/by-head": halves,
    "5.5.2/deeper": layers,
    "5.5.2/fast-decay": spectra(share=np.asarray),
    "5.5.2/small-error": norms,
    "5.5.3/scaling-condition": lambda plan: {
        "short": KINDS,
        "lowered": each(plan, lambda seen, null, kind: of_heads(seen, 0, kind)),
        "apart": each(plan, lambda seen, null, kind: of_heads(null, 0, kind)),
    },
    "5.5.4/distillation": divergences,
    "article/linear-harder": concentrated,
    "article/recall-decay": recall(-1),
    "article/recall-softmax": recall(-1),
    "article/recall-thesis": recall(1),
    "article/recall-width": recall(1),
    "article/summary-linear": recall(1),
    "attention_sinks/first-token": first_token,
    "attention_sinks/loss": sinks,
    "attention_sinks/without-it": heavy_keys,
    "concentration/as-many-features": deficits,
    "concentration/same-queries": same_queries,
    "decay/trained": lambda plan: {
        "models": KINDS,
        "slopes": named(each(plan, lambda seen, null, kind: of_units(seen, kind))),
        "chance": named(each(plan, lambda seen, null, kind: of_units(null, kind)[:, None] * np.ones(200))),
    },
    "effective_rank/energy-share": lambda plan: {
        "groups": KINDS,
        "share": np.asarray,
        "sigma": each(plan, of_heads),
        "absent": each(plan, lambda seen, null, kind: np.zeros(len(kind.samples))),
    },
    "effective_rank/training": trained,
    "encoder_and_decoder/trained-decoders": masks,
    "exponential/departure": departures,
    "factorised_attention/kept-weight": kept,
    "factorised_attention/random-blocks": slopes_of_layers,
    "frozen_projections/conditioning": conditions,
    "gram_and_kernel/trained-symmetry": lambda plan: {
        "groups": KINDS,
        "shares": each(plan, lambda *one: (both(*one)[0], 0.0, -both(*one)[1])),
    },
    "mean_query/trained": by_kind_and_order,
    "mean_query/trained-second": by_kind_and_order,
    "note/diversity": mixtures,
    "note/long-sequences": lengths,
    "note/multi-head": copies,
    "note/performance": losses,
    "note/residual": errors_of_parts,
    "note/similar-context": in_pairs("agreement_of"),
    "note/singular-values": in_pairs("small_share"),
    "optimal_features/heads": in_pairs("factors", 0.0),
    "powers/collapse": collapse,
    "public/contrast": contrasts,
    "public/features": features,
    "recall/concentrated-without-recall": recall(-1),
    "recall/identity-spreads": recall(1),
    "recall/linear-concentrates": before_training,
    "recall/within-kinds": recall(1),
    "recall/without-concentration": recall(1),
    "remedies/random-patterns": lambda plan: {
        "models": KINDS,
        "up": each(plan, lambda *one: np.mean(of_heads(*one), axis=0)),
    },
    "report/better-than-one-head": few_data("fixed", "orthogonal"),
    "report/capacity": few_data("fixed", "orthogonal"),
    "report/generalisation": few_data("fixed", "orthogonal"),
    "report/gradient-stability": few_data("fixed", "orthogonal"),
    "report/less-overfitting": few_data("fixed", "orthogonal"),
    "report/locality": information,
    "report/locality-bias": places,
    "report/long-dependencies": information,
    "report/low-resource-gain": few_data("fixed", "orthogonal"),
    "report/most-heads": medians,
    "report/one-learned-head": few_data("fixed", "orthogonal"),
    "report/orthogonal-bias": few_data("orthogonal", "gaussian"),
    "report/orthogonal-low-resource": few_data("orthogonal", "single"),
    "report/patterns-suffice": few_data("fixed", "orthogonal"),
    "report/prunable-heads": pruned,
    "report/similar-heads": partners,
    "report/similar-layers": partners_elsewhere,
    "report/standard-as-good": margins,
    "report/untrained-projections": margins,
    "saturation/gain": gradients_of_scores,
    "sparse_and_dense/window-rank": lambda plan: {
        "groups": KINDS,
        "raised": each(plan, lambda *one: [[text] for text in of_heads(*one)]),
    },
    "stochastic_matrix/trained-norms": lambda plan: {
        "groups": KINDS,
        "found": [pair[0] for pair in each(plan, both)],
        "shuffled": None,
        "over_units": lambda kind, change: named([pair[1] for pair in each(plan, both)])[kind.name],
    },
}


def blind(n: int) -> tuple[Kind, ...]:
    """Made-up heads of each kind, whose scores are normal and independent: no place, key or head is like another."""
    rng = np.random.default_rng(8)

    def heads(units: int, causal: bool) -> Heads:
        K = np.sqrt(n) * np.linalg.qr(rng.normal(size=(units, 6, n, n)))[0]
        return Heads(rng.normal(size=K.shape), K, ("",) * n, causal)

    return tuple(replace(kind, samples=tuple(heads(len(one.Q), kind.causal) for one in kind.samples)) for kind in KINDS)


def share_of_blind() -> Given:
    one, other, third = (heads.samples[0].weights() for heads in (BLIND[1], BLIND[2], BLIND[2].without_first()))
    rows = [singular_values(weights[:4, :, -23:, -23:]) for weights in (one, other, third)]
    return {"groups": BLIND, "sigma_d": rows[0], "sigma_u": rows[1], "started": lambda factor: rows[2], "matched": 1.0}


BLIND, SHORT = blind(24), blind(8)
#: What a card takes to measure heads without structure, by the notebook's own measure. Those of 8 tokens are shorter
#: than the windows.
WITHOUT: dict[str, Given] = {
    "5.5.2/by-head": {"groups": BLIND},
    "attention_sinks/first-token": dict(zip(("ENCODER", "SMALL", "PRETRAINED"), BLIND, strict=True)),
    "decay/trained": {"models": BLIND},
    "effective_rank/energy-share": {"groups": BLIND},
    "effective_rank/training": share_of_blind(),
    "gram_and_kernel/trained-symmetry": {"groups": BLIND},
    "mean_query/trained": {"models": BLIND},
    "note/similar-context": {"models": BLIND},
    "note/singular-values": {"models": BLIND},
    "remedies/random-patterns": {
        "models": SHORT,
        "texts": [[one.weights() for one in kind.samples] for kind in SHORT],
    },
    "sparse_and_dense/window-rank": {"groups": SHORT},
}
