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
from attnlab.heads import load_heads
from attnlab.heads.example import HEAD, LAYER, four_tokens
from attnmath import sparsity
from attnmath.matrix import rank
from attnmath.operator.attention import softmax

Floats = NDArray[np.float64]
Table = dict[str, Any]

#: Temperatures of the trained heads: equal steps of the logarithm, with 1 in the middle.
TEMPERATURES = np.geomspace(0.05, 20, 41)
#: Singular values below it count as 0 in a drawing.
SMALLEST = 1e-5
#: The share that the effective rank leaves out.
EPSILON = 0.1

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
    return {"tokens": list(head.tokens), "scores": (head.Q @ head.K.T).tolist(), "width": int(head.Q.shape[1]),
            "trained": [LAYER + 1, HEAD + 1]}  # fmt: skip


def spectra(layer: int) -> Table:
    """Return singular values and ranks of the heads of a layer, counted from 0, at each temperature.

    The weights are those of the trained encoder on the sentence. Singular values are stored as the thousandfold of
    their decimal logarithm, a hundredth of what a drawing shows.
    """
    S = load_heads("sentence").scores()[layer]
    sigma = np.stack([rank.singular_values(softmax(S, temperature=float(T))) for T in TEMPERATURES], axis=1)
    with np.errstate(divide="ignore"):
        logarithms = np.log10(np.maximum(sigma, SMALLEST))
    return {
        "temperatures": rounded(TEMPERATURES, 4),
        "sigma": np.rint(1000 * logarithms).astype(int).tolist(),
        "entropy": rounded(rank.entropy_rank(sigma), 4),
        "stable": rounded(rank.stable_rank(sigma), 4),
        "share": rank.effective_rank(sigma, EPSILON).tolist(),
        "epsilon": EPSILON,
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
    by_layer = {f"spectra-{layer + 1}": spectra(layer) for layer in range(load_heads("sentence").layers)}
    return {"head": small_head(), "rows": sparse_rows(), "draws": draws(), **by_layer}


def scripts() -> Iterator[tuple[str, str]]:
    """Yield the name of each table's script, and its text."""
    for name, table in tables().items():
        data = json.dumps(table, separators=(",", ":"))
        yield f"{name}.js", f'(window.attentionTables ??= {{}})["{name}"] = {data};\n'
