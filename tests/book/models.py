"""What the models of the book's derivations leave out, with the reasons.

Derivations that none can evaluate, mistakes that none tells apart, and sizes that are 1 in none.
"""

from __future__ import annotations

_DIFFERENTIAL = "the function is known by its derivative, in terms of itself: a model would have to solve that equation"

#: By notebook and name of the derivation.
NOT_EVALUABLE: dict[tuple[str, str], str] = {
    ("feature_maps", "The derivative of the ratio"): _DIFFERENTIAL,
    ("feature_maps", "The ratio to the left of 0"): _DIFFERENTIAL,
    ("squared_relu", "A moment of the rectified score"): "the function is known by two equations alone",
}
#: By notebook and name of the mistake.
UNSEEN: dict[tuple[str, str], str] = {
    ("concentration", "the forgotten largest modulus"): "it shows only where entries beyond 1 are drawn, M beyond them",
}

_TWO_PLACES = "equations are taken to hold at the places 1 and 2 at least, and one component does not satisfy both"
_APART = "two indices are apart, and beside a size that is 1 each index is"
_VARIANCE = "the seeds that are tried give a negative variance"
_LOGARITHM = "a positive number is made from the logarithm of the size, which is 0"
#: By notebook, name of the derivation and size.
LARGER: dict[tuple[str, str, str], str] = {
    ("frozen_projections", "The squared length of $gU$", "m"): _TWO_PLACES,
    ("scaling", "The mean square of the cosine", "d"): _TWO_PLACES,
    ("projections", "The dot product of $xU$ and $yU$", "m"): _TWO_PLACES,
    ("projections", "The score after the change", "d_k"): _TWO_PLACES,
    ("projections", "The variance of a scaled score", "d_k"): _VARIANCE,
    ("gradients", "The mean square of $\\xi^\\top H\\xi$", "n"): _VARIANCE,
    ("gradients", "The mean square of $\\xi^\\top H\\zeta$", "n"): _VARIANCE,
    ("positional_heads", "The mean of an entry off the diagonal", "n"): "a row of one entry has none off the diagonal",
    ("eigenvalues", "$\\theta$ times the left side", "n"): _APART,
    ("powers", "The difference of two entries of $Ax$, for rows $o+t\\alpha$ and $o+t\\beta$", "n"): _APART,
    ("softmax", "The case $i\\ne j$", "n"): _APART,
    ("decay", "The sum of the weights", "n"): _TWO_PLACES,
    ("linear_attention", "With the geometric shares", "B"): "one share would satisfy two equations",
    ("exponential", "The closed form at one $\\gamma$", "n"): _LOGARITHM,
    ("exponential", "The logarithm of the bound", "n"): _LOGARITHM,
    ("exponential", "The logarithm of the bound for $A$, $c>1$", "n"): _LOGARITHM,
    ("exponential", "The closed form at $c=2$", "n"): _LOGARITHM,
}
