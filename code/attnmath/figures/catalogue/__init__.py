"""The catalogue of published figures: one module for each chapter, with its data and its panels."""

from collections.abc import Mapping
from types import MappingProxyType

from attnmath.figures.catalogue import (
    associative_recall,
    computing,
    concentration,
    cost,
    decay,
    linear_attention,
    low_rank,
    masks,
    projections_and_gradients,
    query_match_aggregate,
    rank,
    scaling,
    softmax,
    softmax_and_relu2,
    spectrum,
)
from attnmath.figures.published import PublishedFigure

#: Every published figure, by its name.
FIGURES: Mapping[str, PublishedFigure] = MappingProxyType({
    **associative_recall.FIGURES,
    **computing.FIGURES,
    **concentration.FIGURES,
    **cost.FIGURES,
    **decay.FIGURES,
    **linear_attention.FIGURES,
    **low_rank.FIGURES,
    **masks.FIGURES,
    **projections_and_gradients.FIGURES,
    **query_match_aggregate.FIGURES,
    **rank.FIGURES,
    **scaling.FIGURES,
    **softmax.FIGURES,
    **softmax_and_relu2.FIGURES,
    **spectrum.FIGURES,
})  # fmt: skip
