"""Numbers behind the figures of the chapter on softmax and squared ReLU (the article's two examples)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from attnmath import sparsity, sparsity_benchmark

#: Names of the methods in the figure, the same in every language.
LABELS = {"this package": "attnmath", "printed form": "(A.6)", "quad": "scipy quad", "Monte Carlo": "Monte Carlo"}
BETAS = (-2.0, -1.0, -0.5, 0.0, 1.0, 2.0)
#: Row lengths and repetitions of the empirical rows.
LENGTHS, ROWS = (16, 256, 4096), 100


def relu_squared_curves() -> dict[str, Any]:
    """S for relu^2 against gamma for several beta, the article's figure."""
    gamma = np.linspace(0.02, 6, 300)
    return {
        "x": gamma,
        "curves": {rf"$\beta={beta:g}$": sparsity.relu_squared(beta, gamma) for beta in BETAS},
        "xlabel": r"$\gamma$",
        "ylabel": "$S$",
        "legend_at": (1.0, 0.98),
    }


def exponents() -> Any:
    """Values of gamma for the empirical softmax rows."""
    return np.linspace(0.1, 5, 25)


@cache
def empirical_exponential() -> Any:
    """S of rows exp(gamma z) with Gaussian z, shape (lengths, gammas, ROWS): the same z for every gamma."""
    rng = np.random.default_rng(5)
    found = []
    for n in LENGTHS:
        z = rng.standard_normal((ROWS, n))
        found.append([sparsity.sparsity(np.exp(gamma * (z - z.max(axis=-1, keepdims=True)))) for gamma in exponents()])
    return np.asarray(found)


def finite_rows() -> dict[str, Any]:
    """Mean S of finite softmax rows against gamma, over the closed form."""
    means = empirical_exponential().mean(axis=-1)
    return {
        "x": exponents(),
        "curves": {f"$n={n}$": mean for n, mean in zip(LENGTHS, means, strict=True)},
        "reference": {r"$e^{-\gamma^2/2}$": sparsity.exponential(exponents())},
        "xlabel": r"$\gamma$",
        "ylabel": "$S$",
        "yscale": "log",
        "legend_at": (0.45, 0.6),
    }


def accuracy() -> dict[str, Any]:
    """Relative errors of the four methods from the shipped table."""
    table = sparsity_benchmark.load_table()
    errors = {label: [row["relative_error"] for row in table if row["method"] == method]
              for method, label in LABELS.items()}  # fmt: skip
    return {"x": sparsity_benchmark.RATIOS, "errors": errors, "xlabel": r"$\beta/\gamma$"}


def speed() -> dict[str, Any]:
    """Time for one value of the four methods from the shipped table, in microseconds."""
    return {"times": {LABELS[row["method"]]: row["microseconds"] for row in sparsity_benchmark.load_table()}}
