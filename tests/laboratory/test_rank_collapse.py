"""Random networks of attention: rows become alike without a skip connection, and much less with one."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.experiments.rank_collapse import distance_from_equal_rows


def test_rows_become_alike_without_a_skip_connection_only() -> None:
    alone, kept = (distance_from_equal_rows(4, skip=skip, n=12, width=12, networks=6, seed=1) for skip in (False, True))
    assert alone.shape == kept.shape == (6, 4)
    assert np.array_equal(alone, distance_from_equal_rows(4, skip=False, n=12, width=12, networks=6, seed=1))
    assert np.all((alone >= 0) & (alone <= 1)) and np.all(np.diff(np.median(alone, axis=0)) < 0)
    assert np.median(alone[:, -1]) < 0.01 < 0.3 < np.median(kept[:, -1])


def test_one_token_is_equal_to_itself() -> None:
    assert np.array_equal(distance_from_equal_rows(2, skip=False, n=1, width=3, d_k=1, networks=2), np.zeros((2, 2)))


def test_a_network_more_changes_no_other() -> None:
    two, three = (distance_from_equal_rows(2, skip=True, n=5, width=4, networks=count) for count in (2, 3))
    assert np.array_equal(two, three[:2])


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="networks: expected at least 2, got 1"):
        distance_from_equal_rows(2, skip=True, networks=1)
    with pytest.raises(TypeError, match="skip: expected"):
        distance_from_equal_rows(2, skip="no")  # type: ignore[arg-type]
