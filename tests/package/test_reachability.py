from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnmath.fixed_attention.reachability import layers_to_reach, reach
from attnmath.matrix import patterns


def random_masks(layers: int, n: int, seed: int, share: float = 0.3) -> np.ndarray:
    return np.random.default_rng(seed).random((layers, n, n)) < share


def by_hand(masks: np.ndarray, j: int, residual: bool) -> set[int]:
    """Where the information of position j arrives, layer by layer."""
    there = {j}
    for mask in masks:
        there = {i for i in range(len(mask)) if any(mask[i, a] for a in there) or (residual and i in there)}
    return there


@given(layers=st.integers(1, 4), n=st.integers(1, 6), seed=st.integers(0, 50), residual=st.booleans())
def test_reach_follows_every_route(layers: int, n: int, seed: int, residual: bool) -> None:
    masks = random_masks(layers, n, seed)
    found = reach(masks, residual=residual)
    for j in range(n):
        assert set(np.flatnonzero(found[:, j])) == by_hand(masks, j, residual)


def test_the_first_mask_is_the_first_layer() -> None:
    gather = np.asarray([[True, False, False], [True, True, False], [False, False, True]])
    hand_on = np.asarray([[True, False, False], [False, True, False], [False, True, True]])
    assert reach([gather, hand_on])[2, 0] and not reach([hand_on, gather])[2, 0]


@given(n=st.integers(1, 7), count=st.integers(1, 3), seed=st.integers(0, 50))
def test_layers_to_reach_is_the_first_time_that_all_is_reached(n: int, count: int, seed: int) -> None:
    masks = random_masks(count, n, seed)
    needed = layers_to_reach(masks)
    cycle = [masks[k % count] for k in range(count * n + count)]
    reached = [n == 1, *(bool(reach(cycle[:k], residual=True).all()) for k in range(1, len(cycle) + 1))]
    assert needed == (reached.index(True) if True in reached else None)


def test_windows_strides_and_blocks() -> None:
    n, causal = 20, np.tri(20, dtype=bool)
    for width in (1, 3, 19):
        assert layers_to_reach(patterns.window_mask(n, width)) == -(-(n - 1) // width)
    near, far = patterns.factorised_strided(n, 5)
    for masks in ((near, far), (far, near), near | far):
        assert layers_to_reach(masks, causal) == 2
        assert layers_to_reach(masks) is None
    assert layers_to_reach(patterns.block_mask(n, 5)) is None
    own, cells = patterns.factorised_fixed(n, 5, 1)
    assert layers_to_reach((own, cells), causal) == 2
    assert layers_to_reach((cells, own), causal) == 3
    assert layers_to_reach(np.eye(1, dtype=bool)) == 0
    assert layers_to_reach(np.eye(3, dtype=bool), np.eye(3, dtype=bool)) == 0


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: reach([[1, 0], [0, 1]]), TypeError, "masks: expected booleans"),
        (lambda: reach([[True, False]]), ValueError, r"masks: expected booleans of shape \(n, n\) or"),
        (lambda: reach([True]), ValueError, r"masks: expected booleans of shape \(n, n\) or"),
        (lambda: reach(np.ones((0, 2, 2), bool)), ValueError, r"masks: expected booleans of shape \(n, n\) or"),
        (lambda: reach([[True]], residual=2), TypeError, "residual: expected True or False"),
        (lambda: reach([np.ones((2, 2), bool), np.ones((3, 3), bool)]), TypeError, "masks: expected booleans"),
        (lambda: layers_to_reach([[True]], [[1]]), TypeError, "target: expected booleans"),
        (lambda: layers_to_reach([[True]], [True]), ValueError, r"target: expected booleans of shape \(1, 1\)"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()
