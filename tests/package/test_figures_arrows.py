"""The drawing functions of the chapter on projections and gradients: on the caller's Axes, with the caller's ticks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attnmath.figures.arrows import curves_and_arrows


def test_curves_and_arrows_at_equal_scales_on_the_given_axes() -> None:
    _, ax = plt.subplots()
    drawn = curves_and_arrows({"$x$": np.eye(2)}, {"$u$": [0.0, 1.0], "$0$": [0.0, 0.0]}, reach=2, ax=ax)
    assert drawn is ax and ax.get_aspect() == 1 and ax.get_xlim() == (-2, 2)
    assert {"$u$", "$0$"} <= {text.get_text() for text in ax.texts}
    plt.close("all")


def test_bad_input_is_named() -> None:
    with pytest.raises(TypeError, match="ax: expected a matplotlib Axes"):
        curves_and_arrows({"a": np.eye(2)}, {}, ax="here")
    plt.close("all")
