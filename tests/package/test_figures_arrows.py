"""The drawing functions of the chapter on projections and gradients: on the caller's Axes, with the caller's ticks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attnmath.estimate import Estimate
from attnmath.figures.arrows import curves_and_arrows, estimates_over


def test_curves_and_arrows_at_equal_scales_on_the_given_axes() -> None:
    _, ax = plt.subplots()
    drawn = curves_and_arrows({"$x$": np.eye(2)}, {"$u$": [0.0, 1.0], "$0$": [0.0, 0.0]}, reach=2, ax=ax)
    assert drawn is ax and ax.get_aspect() == 1 and ax.get_xlim() == (-2, 2)
    assert {"$u$", "$0$"} <= {text.get_text() for text in ax.texts}
    plt.close("all")


def test_estimates_over_a_linear_axis_has_a_tick_at_each_value() -> None:
    _, ax = plt.subplots()
    estimate = Estimate(np.asarray([1.0, 2.0, 4.0]), np.zeros(3))
    drawn = estimates_over(
        [0, 1, 2], {"$a$": estimate}, xlabel="$l$", xscale="linear", yscale="log", yticks=[1, 4], ax=ax
    )
    assert drawn is ax and ax.get_xlabel() == "$l$" and ax.get_xscale() == "linear" and ax.get_yscale() == "log"
    assert list(ax.get_xticks()) == [0, 1, 2] and list(ax.get_yticks()) == [1, 4]
    assert estimates_over([1, 2, 4], {"$a$": estimate}, xlabel="$n$").get_xscale() == "log"
    plt.close("all")


def test_bad_input_is_named() -> None:
    with pytest.raises(TypeError, match="ax: expected a matplotlib Axes"):
        curves_and_arrows({"a": np.eye(2)}, {}, ax="here")
    with pytest.raises(ValueError, match=r"estimates\['x'\]: expected 2 values"):
        estimates_over([1, 2], {"x": Estimate(np.ones(3), np.zeros(3))}, xlabel="")
    plt.close("all")
