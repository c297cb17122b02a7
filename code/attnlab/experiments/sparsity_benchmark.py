"""``python -m attnlab.experiments.sparsity_benchmark --out DIR``: four ways to compute S for relu^2, equation (6).

The four ways are this package, the printed form, numerical integration and random draws. Accuracy is measured against
60 digits of mpmath. The errors are the same on every machine of one kind, the times are those of this machine.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import mpmath as mp
import numpy as np
import scipy
from jaxtyping import Float, Real
from numpy.typing import NDArray
from scipy import integrate, special

from attnlab import commands, records
from attnlab.records import replace
from attnmath import sparsity
from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import Fixed, about, floats, one_of, positive_integer, silent

Floats = NDArray[Any]

#: Ratios beta / gamma of the table.
RATIOS = (-40.0, -20.0, -10.0, -7.0, -6.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 10.0, 20.0, 37.0, 40.0)
#: Draws of the Monte Carlo estimate.
DRAWS = 100_000

_COMMAND = commands.Command(
    "attnlab.experiments.sparsity_benchmark",
    __doc__,
    takes="some seconds.",
    writes="sparsity_benchmark.csv in the folder --out, a row for each way and ratio; and sparsity_benchmark.json, a "
    "record of the command, versions and machine.",
    kept="nothing was written, and the same command begins again",
)


def printed(t: Real[ArrayLike, "*shape"]) -> Float[Numpy, "*shape"]:
    """The article's expression in double precision, at beta = t and gamma = 1; NaN or inf where it breaks.

    >>> float(printed(0.0).round(6))
    0.408248
    """
    t = floats(t, "t")
    with np.errstate(all="ignore"):
        decay, error = np.exp(-t * t / 2), special.erf(t / np.sqrt(2)) + 1
        top = decay * (np.sqrt(2) * t + np.sqrt(np.pi) * np.exp(t * t / 2) * (t * t + 1) * error)
        inside = 2 * np.sqrt(2) * t * decay * (t * t + 5) + 2 * np.sqrt(np.pi) * (t**4 + 6 * t * t + 3) * error
        return np.asarray(top / (np.pi**0.25 * np.sqrt(inside)))


def quadrature(t: Real[ArrayLike, "*shape"]) -> Float[Numpy, "*shape"]:
    """The two moments by `scipy.integrate.quad` with its default tolerances; NaN where one comes out as 0.

    >>> float(quadrature(0.0).round(6))
    0.408248
    """

    def moment(k: int, x: float) -> float:
        return integrate.quad(lambda z: (x + z) ** k * np.exp(-z * z / 2) / np.sqrt(2 * np.pi), -x, np.inf)[0]

    def ratio(x: float) -> float:
        m2, m4 = moment(2, x), moment(4, x)
        return m2 / np.sqrt(m4) if m4 > 0 else float("nan")

    t = floats(t, "t")
    with warnings.catch_warnings(), silent():
        warnings.simplefilter("ignore", integrate.IntegrationWarning)  # what comes of it is the measurement
        return np.asarray([ratio(float(x)) for x in np.ravel(t)]).reshape(np.shape(t))


def monte_carlo(t: Real[ArrayLike, "*shape"]) -> Float[Numpy, "*shape"]:
    """S of a row of `DRAWS` seeded random keys; NaN where none of them is above 0.

    >>> bool(abs(monte_carlo(0.0) - 6**-0.5) < 0.01)
    True
    """
    t = floats(t, "t")
    z = np.random.default_rng(6).standard_normal(DRAWS)
    with silent(), about("t"):
        rows = [np.maximum(x + z, 0) ** 2 for x in np.ravel(t)]
        found = [float(sparsity.sparsity(row)) if row.any() else float("nan") for row in rows]
    return np.asarray(found).reshape(np.shape(t))


def this_package(t: Real[ArrayLike, "*shape"]) -> Float[Numpy, "*shape"]:
    """`attnmath.sparsity.relu_squared` at beta = t and gamma = 1."""
    with about("t"):
        return sparsity.relu_squared(t, 1.0)


METHODS: Mapping[str, Callable[[ArrayLike], Floats]] = Fixed({
    "this package": this_package,
    "printed form": printed,
    "quad": quadrature,
    "Monte Carlo": monte_carlo,
})  # fmt: skip


def exact(t: float) -> mp.mpf:
    """S to 60 digits, from parabolic cylinder functions: M_k = k! exp(-t^2/4) D_{-k-1}(-t) / sqrt(2 pi)."""
    t = float(floats(t, "t", ndim=0))
    if abs(t) > 1e6:
        raise ValueError(f"t: expected a ratio between -1e6 and 1e6, got {t}")
    with mp.workdps(90):
        x = mp.mpf(t) if abs(t) > 1e-61 else mp.mpf(0)  # mpmath takes seconds near 0, where S changes slowly
        m2, m4 = (mp.factorial(k) * mp.exp(-x * x / 4) * mp.pcfd(-k - 1, -x) / mp.sqrt(2 * mp.pi) for k in (2, 4))
        return m2 / mp.sqrt(m4)


def relative_errors(method: str, ratios: Real[ArrayLike, "N"] = RATIOS) -> Float[Numpy, "N"]:
    """Relative error of a method at each ratio; inf where it returns no number.

    >>> bool(relative_errors("this package", [-40.0, 40.0]).max() < 4e-15)
    True
    """
    one_of(method, METHODS, "method")
    t = np.ravel(floats(ratios, "ratios"))
    with mp.workdps(60), about("ratios"):
        values = METHODS[method](t)
        return np.asarray([float(abs(mp.mpf(float(v)) / exact(float(x)) - 1)) if np.isfinite(v) else np.inf
                           for v, x in zip(values, t, strict=True)])  # fmt: skip


def microseconds(method: str, values: int = 1000) -> float:
    """Time for one value, in microseconds: the best of five calls with so many of them (one for slow methods)."""
    one_of(method, METHODS, "method")
    values = positive_integer(values, "values", at_most=10_000)
    t = np.linspace(-5, 5, values if method in {"this package", "printed form"} else 20)
    best = min(_timed(METHODS[method], t) for _ in range(5))
    return best / len(t) * 1e6


def load_table() -> list[dict[str, Any]]:
    """The table that ships with the package: a row for each method and ratio, after checking its hash."""
    return [{"method": row["method"], **{name: float(row[name]) for name in ("t", "relative_error", "microseconds")}}
            for row in csv.DictReader(records.shipped("sparsity_benchmark").splitlines())]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Measure all methods and write the table and how it came about; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("--out", type=commands.folder, required=True, metavar="DIR", help="the folder to write to")
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    given.out.mkdir(parents=True, exist_ok=True)
    lines = ["method,t,relative_error,microseconds"]
    for method in METHODS:
        speed = microseconds(method)
        lines += [f"{method},{t:g},{error:.1e},{speed:.2g}"
                  for t, error in zip(RATIOS, relative_errors(method), strict=True)]  # fmt: skip
    table = ("\n".join(lines) + "\n").encode()
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    record = {"command": line, "versions": versions, "machine": platform.machine(), "cores": os.cpu_count(),
              "draws": DRAWS, "seed": 6, "sha256": hashlib.sha256(table).hexdigest()}  # fmt: skip
    path = given.out / "sparsity_benchmark.csv"
    replace(path, table)
    replace(path.with_suffix(".json"), (json.dumps(record, indent=2) + "\n").encode())
    return f"{path}, described in {path.with_suffix('.json')}"


def _timed(function: Callable[[ArrayLike], Floats], t: Floats) -> float:
    start = time.perf_counter()
    function(t)
    return time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main())
