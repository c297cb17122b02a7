"""What can reach what through layers of sparse attention (report, section 2.3.3).

A mask has the shape (n, n), True where a query may see a key, as in `attnmath.operator.attention`. The layers are
given first layer first. Position j reaches position i when there is a route j, a, b, ..., i on which each position is
seen, in its layer, by the next one. Whether a trained model sends anything along a route is another question.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import as_numpy, booleans, describe, flag


def reach(masks: Bool[ArrayLike, "*layers n n"], *, residual: bool = False) -> Bool[Numpy, "n n"]:
    """Boolean product of the masks of some layers: entry (i, j) says whether j reaches i through all of them.

    residual : whether a layer also hands on what each position knows already, like a residual connection.

    >>> previous = np.eye(3, k=-1, dtype=bool)
    >>> reach([previous, previous]).astype(int)
    array([[0, 0, 0],
           [0, 0, 0],
           [1, 0, 0]])
    """
    layers = _layers(masks, flag(residual, "residual"))
    found = np.eye(layers.shape[-1], dtype=bool)
    for layer in layers:
        found = _after(layer, found)
    return found


def layers_to_reach(masks: Bool[ArrayLike, "*layers n n"], target: Bool[ArrayLike, "n n"] | None = None) -> int | None:
    """Return the smallest number of layers through which every wanted pair is reached, None where no number is enough.

    masks : one mask for all layers, or several that take turns, first layer first.
    target : True at (i, j) where j has to reach i; all pairs unless given. Causal masks need the lower triangle.

    Every layer has its residual connection, so what was reached stays reached, and 0 layers reach the position itself.

    >>> layers_to_reach(np.tri(4, dtype=bool) & ~np.tri(4, k=-2, dtype=bool), np.tri(4, dtype=bool))
    3
    """
    layers = _layers(masks, residual=True)
    n = layers.shape[-1]
    wanted = np.ones((n, n), dtype=bool) if target is None else as_numpy(booleans(target, "target"))
    if wanted.shape != (n, n):
        raise ValueError(f"target: expected booleans of shape {(n, n)}, got {describe(wanted)}")
    found, count, since = np.eye(n, dtype=bool), 0, 0
    while not np.all(found | ~wanted):
        further = _after(layers[count % len(layers)], found)
        since = since + 1 if np.array_equal(further, found) else 0
        if since == len(layers):  # each of the masks in turn has added nothing
            return None
        found, count = further, count + 1
    return count


def _after(layer: np.ndarray, found: np.ndarray) -> np.ndarray:
    """What is reached behind one more layer: i sees a, and a was reached by j. Counts below 2^24 are exact."""
    return np.asarray(layer.astype(np.float32) @ found.astype(np.float32) > 0)


def _layers(masks: Bool[ArrayLike, "*layers n n"], residual: bool) -> np.ndarray:
    """Return the masks stacked, shape (layers, n, n), with the diagonal where there is a residual connection."""
    given = as_numpy(booleans(masks, "masks"))
    layers = given[None] if given.ndim == 2 else given
    if layers.ndim != 3 or layers.shape[1] != layers.shape[2] or 0 in layers.shape:
        raise ValueError(f"masks: expected booleans of shape (n, n) or (layers, n, n), got {describe(given)}")
    return layers | np.eye(layers.shape[-1], dtype=bool) if residual else layers
