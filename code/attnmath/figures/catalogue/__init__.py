"""The catalogue of published figures: one module for each chapter, with its data and its panels."""

from collections.abc import Mapping
from types import MappingProxyType

from attnmath.figures.catalogue import cost, masks, scaling, softmax
from attnmath.figures.published import PublishedFigure

#: Every published figure, by its name.
FIGURES: Mapping[str, PublishedFigure] = MappingProxyType({
    **cost.FIGURES,
    **masks.FIGURES,
    **scaling.FIGURES,
    **softmax.FIGURES,
})  # fmt: skip
