"""Tables for the interactive figures: what the package computes when the site is built, and a browser only looks up.

Each is written as a script that a page loads when it needs it, and that works from a folder as well as from a server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.experiments.sparse_rows import ACTIVATIONS
from attnlab.heads import Heads
from attnlab.heads.example import four_tokens
from attnlab.heads.models import SENTENCE, START, heads_of
from attnmath import sparsity
from attnmath.operator.attention import softmax

Floats = NDArray[np.float64]
Table = Any

#: The share that the effective rank leaves out.
EPSILON = 0.1
#: Widths of drawn queries and keys, how many products are drawn, and the ends of the bins of their histograms.
WIDTHS, PRODUCTS, ENDS = 2 ** np.arange(9), 1 << 15, np.linspace(-40, 40, 81)
#: A row is saturated where a weight is above it.
SATURATED = 0.9

#: Lengths of the drawn rows, and the grids of gamma and of beta / gamma.
LENGTHS = (4, 16, 64, 256, 1024, 4096)
GAMMAS = np.linspace(0, 6, 25)
RATIOS = np.linspace(-12, 12, 97)
#: So many scores are drawn for each length, and so many rows at least.
SCORES, LEAST_ROWS = 1 << 14, 16

#: Norms of x + y, and numbers of features, for the estimates by random features.
NORMS = np.linspace(0, 4, 17)
SIZES = 2 ** np.arange(1, 13)
QUANTILES = (0.05, 0.5, 0.95)
REPETITIONS = 1000


def small_head() -> Table:
    """Return the scores q.k of the head of four tokens."""
    head = four_tokens()
    return {"tokens": list(head.tokens), "scores": (head.Q @ head.K.T).tolist(), "width": int(head.Q.shape[1])}


@cache
def models() -> dict[str, tuple[Heads, tuple[int, int]]]:
    """The models whose heads are shown, by a short key: the heads, and the layer and head to begin with."""
    keys = {"encoder": "encoder", "small": "small decoder", "pretrained": "pretrained decoder"}
    return {key: (heads_of(name, "sentence"), START[name]) for key, name in keys.items()}


def described_models() -> Table:
    """Return what a figure has to know of the models before it loads a head; layers and heads are counted from 1."""
    return [
        {"key": key, "layers": heads.layers, "heads": heads.heads, "tokens": list(heads.tokens),
         "causal": heads.causal, "start": [layer + 1, head + 1]}
        for key, (heads, (layer, head)) in models().items()
    ]  # fmt: skip


def scores_of(heads: Heads, layer: int) -> Table:
    """Return the scaled scores of the heads of a layer, to three places, without those that a causal mask hides."""
    S = heads.scores()[layer].round(3)
    last = np.arange(heads.n) + 1 if heads.causal else np.full(heads.n, heads.n)
    return {"scores": [[row[:end].tolist() for row, end in zip(head, last, strict=True)] for head in S]}


def products() -> Table:
    """Return histograms of q.k, drawn and of trained heads, with the division by the root of the width and without.

    The rows whose largest weight is compared have as many keys as the texts have tokens.
    """
    drawn = []
    for width in WIDTHS:
        rng = np.random.default_rng(int(width))
        Q, K = rng.standard_normal((2, PRODUCTS // SENTENCE, SENTENCE, int(width)))
        drawn.append(_product_table(np.einsum("rd,rkd->rk", Q[:, 0], K), int(width)))
    trained = []
    for key, (heads, _) in models().items():
        rows = (heads.Q @ np.swapaxes(heads.K, -1, -2)).reshape(-1, heads.n, heads.n)
        hidden = ~np.tri(heads.n, dtype=bool) & heads.causal
        rows = np.where(hidden, -np.inf, rows)[:, 1:]  # the first row of a causal head has one key
        trained.append(_product_table(rows.reshape(-1, heads.n), heads.d_k) | {"model": key})
    return {"ends": ENDS.tolist(), "drawn": drawn, "trained": trained}


def _product_table(rows: Floats, width: int) -> Table:
    """Return what a figure shows of rows of q.k, in which a hidden key has -inf."""
    plain = rows[np.isfinite(rows)]
    both = [plain, plain / np.sqrt(width)]
    shares = [np.histogram(np.clip(values, ENDS[0], ENDS[-1]), ENDS)[0] / values.size for values in both]
    saturated = [(softmax(rows / root).max(axis=1) > SATURATED).mean() for root in (1.0, np.sqrt(width))]
    return {
        "width": width,
        "plain": rounded(shares[0], 3),
        "divided": rounded(shares[1], 3),
        "deviations": rounded(np.std(both, axis=1), 4),
        "saturated": rounded(np.array(saturated), 3),
    }


def sparse_rows() -> Table:
    """Return the mean S of drawn rows of n scores beta + gamma z, by n.

    For softmax it depends on gamma, for squared ReLU and for the scores themselves on beta / gamma. The same draws
    serve a whole curve. Squared ReLU may give a row of zeros, which has no S: the mean is over the other rows, and
    there is none where they are fewer than half.
    """
    found: dict[str, list[list[float | None]]] = {"exp": [], "relu^2": [], "identity": []}
    for n in LENGTHS:
        z = np.random.default_rng(n).standard_normal((max(LEAST_ROWS, SCORES // n), n))
        found["exp"].append([mean_sparsity(ACTIVATIONS["exp"](gamma * z)) for gamma in GAMMAS])
        for law in ("relu^2", "identity"):
            found[law].append([mean_sparsity(ACTIVATIONS[law](t + z)) for t in RATIOS])
    return {"lengths": LENGTHS, "gammas": GAMMAS.tolist(), "ratios": RATIOS.tolist(), "S": found}


def mean_sparsity(rows: Floats) -> float | None:
    """Return the mean S of the rows that are not 0, or nothing where most are.

    >>> mean_sparsity(np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    0.5
    >>> mean_sparsity(np.zeros((2, 4)))
    """
    there = np.any(rows != 0, axis=1)
    return round(float(sparsity.sparsity(rows[there]).mean()), 4) if there.mean() >= 0.5 else None


def draws() -> Table:
    """Return quantiles of an estimate over the kernel, for positive features, by |x + y| and the number m of features.

    Along x + y a draw has one standard normal component t, and its share of the mean is exp(L t - L^2 / 2) with
    L = |x + y|; nothing else about x and y counts.
    """
    t = np.random.default_rng(11).standard_normal((REPETITIONS, int(SIZES[-1])))
    starts = np.concatenate([[0], SIZES[:-1]])  # a size is twice the one before it, and keeps its draws
    found = []
    for L in NORMS:
        sums = np.cumsum(np.add.reduceat(np.exp(L * t - L * L / 2), starts, axis=1), axis=1)
        found.append(rounded(np.quantile(sums / SIZES, QUANTILES, axis=0).T, 4))
    return {"norms": NORMS.tolist(), "sizes": SIZES.tolist(), "quantiles": list(QUANTILES), "estimates": found}


def rounded(values: Floats, digits: int) -> Any:
    """Return the values as lists, rounded to significant digits, which is what a drawing shows."""
    return np.vectorize(lambda value: float(f"{value:.{digits}g}"))(values).tolist()


@cache
def tables() -> dict[str, Table]:
    """Return every table by its name."""
    of_heads = {
        f"heads-{key}-{layer + 1}": scores_of(heads, layer)
        for key, (heads, _) in models().items()
        for layer in range(heads.layers)
    }
    return {
        "head": small_head(), "rows": sparse_rows(), "draws": draws(), "models": described_models(),
        "widths": products(), **of_heads,
    }  # fmt: skip


def scripts() -> Iterator[tuple[str, str]]:
    """Yield the name of each table's script, and its text."""
    for name, table in tables().items():
        data = json.dumps(table, separators=(",", ":"))
        yield f"{name}.js", f'(window.attentionTables ??= {{}})["{name}"] = {data};\n'
