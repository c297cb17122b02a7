"""What a comparison of paired runs finds where its effect is absent: the differences of runs of the same setting."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Real

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import axis_of, floats, in_range, silent


def same_setting(values: Real[ArrayLike, "..."], axis: int = -1) -> Float[Numpy, "..."]:
    """Differences of runs of the same setting: the first run less the second, the third less the fourth, and so on.

    An effect of the setting is in both runs of a difference, and cancels. What is left is by how much runs differ
    anyhow. Nothing keeps it near 0: runs that are better at every even place give differences of one sign, which a
    comparison then supports.

    What it cannot find is a biased measure. If a measure favours one setting whatever the data are, it does so in both
    runs of a difference, and that cancels too. This takes data that are known to be without the effect.

    values : runs along `axis`, for each setting.  axis : of at least two runs; the last of an odd number has no partner
    and is left out. The result has half as many entries there.

    >>> same_setting([[0.9, 0.8, 0.7, 0.7, 0.1], [0.5, 0.6, 0.5, 0.4, 0.1]]).round(1)
    array([[ 0.1,  0. ],
           [-0.1,  0.1]])
    """
    runs = floats(values, "values", at_least=1)
    runs = np.moveaxis(runs, axis_of(runs, axis, "values"), -1)
    pairs = runs.shape[-1] // 2
    if not pairs:
        raise ValueError(f"values: expected at least 2 runs of each setting, got {runs.shape[-1]}")
    with silent():
        found = in_range(runs[..., 0 : 2 * pairs : 2] - runs[..., 1 : 2 * pairs : 2], "values")
    return np.moveaxis(found, -1, axis)
