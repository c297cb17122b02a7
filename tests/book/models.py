"""The derivations of the book that no model can evaluate, and the mistakes that none tells apart, with the reasons."""

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
