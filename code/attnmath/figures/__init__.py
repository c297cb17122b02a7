"""Figures as functions: each draws on the Axes it is given, from the data it is given.

>>> import matplotlib
>>> matplotlib.use("agg")
>>> import matplotlib.pyplot as plt
>>> from attnmath.figures import falling
>>> figure, ax = plt.subplots(figsize=(6, 4))
>>> measured, predicted = {"error": [1.0, 0.5, 0.25]}, {"1/n": [1.0, 0.5, 0.25]}
>>> ax = falling([1, 2, 4], measured, predicted, xlabel="n", ylabel="error", ax=ax)
>>> ax.get_yscale()
'log'

`show` turns a finished figure into a picture that a notebook displays and stores as SVG; its `save` writes PNG and SVG:

>>> from attnmath.figures import show
>>> show(figure)
<figure: 1 panel, 6 x 4 in>
"""

from attnmath.figures.curves import curves
from attnmath.figures.designs import recall_against
from attnmath.figures.heatmap import attention_heatmap, mask_pattern, matrix_heatmap
from attnmath.figures.lines import against_prediction, falling, family, letter_panels, ordered_colours
from attnmath.figures.methods import clouds_over_diagonal, errors_by_method, times_by_method
from attnmath.figures.show import show
from attnmath.figures.spectra import (
    decays_beside_predictions,
    dots_by_layer,
    quantile_bands,
    unit_disc,
)

__all__ = [
    "against_prediction",
    "attention_heatmap",
    "clouds_over_diagonal",
    "curves",
    "decays_beside_predictions",
    "dots_by_layer",
    "errors_by_method",
    "falling",
    "family",
    "letter_panels",
    "mask_pattern",
    "matrix_heatmap",
    "ordered_colours",
    "quantile_bands",
    "recall_against",
    "show",
    "times_by_method",
    "unit_disc",
]
