"""Experiment on section 5.5.3: how alike the rows become in random networks of attention layers."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attnlab.experiments.arguments import several
from attnmath.arrays import Numpy
from attnmath.checks import fits_memory, flag, non_negative_integer, positive_integer
from attnmath.encoder_decoder.depth import attention_stack, relative_residual


def distance_from_equal_rows(
    depth: int, *, skip: bool, n: int = 32, width: int = 32, d_k: int = 8, networks: int = 20, seed: int = 553
) -> Float[Numpy, "{networks} {depth}"]:
    """Draw |X - 1 m^T| / |X|, with the mean row m, after each layer of so many random networks.

    The input has independent standard Gaussian entries, the weights are those of `attention_stack`.
    skip : each layer adds its input to its output. The same seed gives the same inputs and weights for both.
    """
    depth, n, width = positive_integer(depth, "depth"), positive_integer(n, "n"), positive_integer(width, "width")
    d_k, skip, seed = positive_integer(d_k, "d_k"), flag(skip, "skip"), non_negative_integer(seed, "seed")
    fits_memory("depth, networks", depth, several(networks, "networks"))
    fits_memory("n, width", n, width)
    found = []
    for network in range(networks):
        rng = np.random.default_rng((seed, network))
        layers = attention_stack(rng.standard_normal((n, width)), d_k=d_k, depth=depth, rng=rng, skip=skip)
        found.append([relative_residual(after) for after in layers][1:])
    return np.asarray(found)
