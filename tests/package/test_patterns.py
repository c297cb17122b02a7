"""Sparse patterns and band matrices: counts, laws, closed forms, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from backends import both_backends, make, stochastic, torch_or_skip
from hypothesis import given
from hypothesis import strategies as st

from attnmath.matrix import patterns
from attnmath.matrix.spectrum import spectral_norm
from attnmath.operator.attention import causal_mask, padding_mask, softmax

sizes = st.integers(1, 12)


@given(n=sizes, width=st.integers(0, 15))
def test_a_window_has_the_entries_of_its_formula(n: int, width: int) -> None:
    mask, w = patterns.window_mask(n, width), min(width, n - 1)
    assert mask.sum() == n * (2 * w + 1) - w * (w + 1)
    assert np.array_equal(mask, mask.T) and mask.diagonal().all()


@given(n=sizes, width=st.integers(0, 15))
def test_uniform_windows_have_small_norms_and_hubs_the_largest(n: int, width: int) -> None:
    A = patterns.uniform_attention(patterns.window_mask(n, width))
    assert 1 - 1e-12 <= spectral_norm(A) < np.sqrt(2)
    assert spectral_norm(np.eye(n)[[0] * n]) == pytest.approx(np.sqrt(n))


def test_hubs_and_strides() -> None:
    assert patterns.hub_mask(6, 2).sum() == 36 - 16
    assert [patterns.strided_mask(s * s, s).sum() for s in (1, 2, 5)] == [1, 14, 305]
    assert np.array_equal(patterns.strided_mask(7, 7), patterns.window_mask(7, 6))


@both_backends
@given(n=st.integers(2, 7), seed=st.integers(0, 30))
def test_renormalising_is_masking_before_the_softmax(backend: str, n: int, seed: int) -> None:
    S = np.random.default_rng(seed).normal(size=(2, n, n))
    mask = patterns.window_mask(n, 1) & causal_mask(n)
    after = patterns.renormalised(make(backend, softmax(S)), mask)
    np.testing.assert_allclose(np.asarray(after), softmax(np.where(mask, S, -np.inf)), atol=1e-14)
    printed = np.asarray(patterns.masked_weights(make(backend, softmax(S)), mask))
    assert np.all(printed[:, 0].sum(axis=-1) < 1) and np.all(printed[:, ~mask] == 0)


def test_the_symbol_is_the_spectrum_of_the_circulant() -> None:
    n, w = 11, 3
    row = np.where(np.minimum(np.arange(n), n - np.arange(n)) <= w, 1 / (2 * w + 1), 0)
    circulant = np.asarray([np.roll(row, k) for k in range(n)])
    expected = patterns.window_symbol(2 * np.pi * np.arange(n) / n, w)
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(circulant)), np.sort(expected), atol=1e-12)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: patterns.window_mask(0, 1), ValueError, "n: expected a positive integer"),
        (lambda: patterns.window_mask(3, -1), ValueError, "width: expected an integer of at least 0, got -1"),
        (lambda: patterns.window_mask(3, 1.5), TypeError, "width: expected an integer"),
        (lambda: patterns.hub_mask(3, 4), ValueError, "hubs: expected at most n = 3, got 4"),
        (lambda: patterns.strided_mask(3, 0), ValueError, "stride: expected"),
        (lambda: patterns.masked_weights([[2.0]], [[True]]), ValueError, "A: expected rows that sum to 1"),
        (lambda: patterns.masked_weights([[1.0]], [[1]]), TypeError, "mask: expected booleans"),
        (lambda: patterns.masked_weights(stochastic(2, 0), [True, True]), ValueError, r"shape \(2, 2\)"),
        (
            lambda: patterns.renormalised([[1.0, 0.0], [1.0, 0.0]], [[False, True]] * 2),
            ValueError,
            "some weight left",
        ),
        (lambda: patterns.uniform_attention([[False]]), ValueError, "mask: expected booleans .* with a True"),
        (lambda: patterns.window_symbol([np.inf], 1), ValueError, "theta: expected"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


def test_the_symbol_is_periodic_at_any_angle() -> None:
    for angle in (1e308, -1e200, 12345.678):
        reduced = float(np.arctan2(np.sin(angle), np.cos(angle)))
        found, expected = patterns.window_symbol([angle], 5), patterns.window_symbol([reduced], 5)
        np.testing.assert_allclose(found, expected, atol=1e-13)


def test_every_position_may_be_a_hub() -> None:
    assert patterns.hub_mask(3, 3).all()


def test_patterns_are_their_definitions_entry_by_entry() -> None:
    n = 7
    for k in (1, 2, 3, 6, 7):
        seen = {
            patterns.window_mask: [[abs(i - j) <= k for j in range(n)] for i in range(n)],
            patterns.hub_mask: [[i < k or j < k for j in range(n)] for i in range(n)],
            patterns.strided_mask: [[abs(i - j) < k or abs(i - j) % k == 0 for j in range(n)] for i in range(n)],
        }
        for mask, expected in seen.items():
            assert mask(n, k).tolist() == expected, (mask.__name__, k)
    assert patterns.window_mask(n, 0).tolist() == np.eye(n, dtype=bool).tolist()
    with pytest.raises(ValueError, match="hubs: expected a positive integer, got 0"):
        patterns.hub_mask(n, 0)
    with pytest.raises(ValueError, match="hubs: expected at most n = 7, got 8"):
        patterns.hub_mask(n, 8)
    for mask in (patterns.window_mask, patterns.hub_mask, patterns.strided_mask):
        with pytest.raises(ValueError, match=f"n: expected a result of at most {2**28} numbers, got 16385 x 16385"):
            mask(16385, 1)


@pytest.mark.parametrize("width", [0, 1, 4])
def test_the_symbol_is_the_mean_of_the_waves(width: int) -> None:
    theta = np.asarray([[0.0, 0.3, -2.0], [3.0, 7.9, -8.5]])
    k = np.arange(-width, width + 1)
    expected = np.exp(1j * theta[..., None] * k).mean(axis=-1)
    np.testing.assert_allclose(patterns.window_symbol(theta, width), expected.real, atol=1e-14)
    np.testing.assert_allclose(expected.imag, 0, atol=1e-14)


def test_masked_and_renormalised_weights_row_by_row() -> None:
    A = stochastic(3, 4)
    mask = np.asarray([[True, False, True], [False, True, False], [True, True, True]])
    kept = np.where(mask, A, 0)
    np.testing.assert_array_equal(patterns.masked_weights(A, mask), kept)
    np.testing.assert_allclose(patterns.renormalised(A, mask), kept / kept.sum(axis=1, keepdims=True), rtol=1e-15)
    spread = patterns.uniform_attention([[True, False, True, True], [False, True, False, False]])
    np.testing.assert_allclose(spread, [[1 / 3, 0, 1 / 3, 1 / 3], [0, 1, 0, 0]], rtol=1e-15)
    for bad in ([True, True], [[[True]]], [[True, True], [False, False]]):
        with pytest.raises(ValueError, match=r"mask: expected booleans of shape \(n, m\) with a True in every row"):
            patterns.uniform_attention(bad)
    for bad in (mask[:2], mask[:, :2], mask[None]):
        with pytest.raises(ValueError, match=r"mask: expected booleans of shape \(3, 3\), got shape"):
            patterns.masked_weights(A, bad)
    with pytest.raises(ValueError, match="mask: expected some weight left in every row, got a row without any"):
        patterns.renormalised(A, mask & np.asarray([[True], [False], [True]]))


def test_a_mask_for_a_stack_has_the_shape_of_one_matrix() -> None:
    stack = np.stack([stochastic(3, 1), stochastic(3, 2)])
    mask = np.tril(np.ones((3, 3), bool))
    np.testing.assert_array_equal(patterns.masked_weights(stack, mask), np.tril(stack))
    for bad in (mask[:2], np.stack([mask, mask])):
        with pytest.raises(ValueError, match=r"mask: expected booleans of shape \(3, 3\), got shape"):
            patterns.masked_weights(stack, bad)


def entries(n: int, sees) -> list[list[bool]]:
    return [[bool(sees(i, j)) for j in range(n)] for i in range(n)]


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("stride", [1, 2, 3, 4, 11])
def test_factorised_patterns_are_their_definitions_entry_by_entry(n: int, stride: int) -> None:
    near, far = patterns.factorised_strided(n, stride)
    assert near.tolist() == entries(n, lambda i, j: max(0, i - stride) <= j <= i)
    assert far.tolist() == entries(n, lambda i, j: j <= i and (i - j) % stride == 0)
    for summary in {1, stride}:
        own, cells = patterns.factorised_fixed(n, stride, summary)
        assert own.tolist() == entries(n, lambda i, j: j <= i and i // stride == j // stride)
        assert cells.tolist() == entries(n, lambda i, j, c=summary: j <= i and j % stride in range(stride - c, stride))
    assert patterns.block_mask(n, stride).tolist() == entries(n, lambda i, j: i // stride == j // stride)


@given(n=st.integers(1, 40), stride=st.integers(1, 40), c=st.integers(1, 40))
def test_counts_of_factorised_patterns(n: int, stride: int, c: int) -> None:
    stride, c = min(stride, n), min(c, stride, n)
    q, r = divmod(n, stride)
    near, far = patterns.factorised_strided(n, stride)
    assert 2 * near.sum() == (stride + 1) * (2 * n - stride)
    assert 2 * far.sum() == (q + 1) * (q * stride + 2 * r)
    own, cells = patterns.factorised_fixed(n, stride, c)
    assert 2 * own.sum() == q * stride * (stride + 1) + r * (r + 1)
    if r == 0:
        assert 2 * cells.sum() == q * c * (c + 1) + c * stride * q * (q - 1)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
def test_halving_reaches_everything_before_in_two_layers(k: int) -> None:
    n = 2**k - 1
    mask = patterns.halving_mask(n)
    assert mask.sum() == (k - 1) * 2**k + 1
    assert np.array_equal(mask.astype(int) @ mask > 0, np.tri(n, dtype=bool))
    for size in range(1, 20):
        mask = patterns.halving_mask(size)
        assert np.array_equal(mask.astype(int) @ mask > 0, np.tri(size, dtype=bool))


@given(n=st.integers(1, 30), block=st.integers(1, 9), blocks=st.integers(1, 30), seed=st.integers(0, 9))
def test_random_blocks_hold_themselves_and_others(n: int, block: int, blocks: int, seed: int) -> None:
    count = -(-n // block)
    blocks = min(blocks, count)
    mask = patterns.random_block_mask(n, block, blocks, rng=np.random.default_rng(seed))
    level = patterns.tiles(mask, block)
    assert np.array_equal(mask, np.kron(level, np.ones((block, block), bool))[:n, :n])
    assert np.all(level.sum(axis=1) == blocks) and np.all(np.diagonal(level))


def test_random_blocks_are_drawn_evenly() -> None:
    rng = np.random.default_rng(1)
    seen = np.mean([patterns.random_block_mask(5, 1, 3, rng=rng) for _ in range(2000)], axis=0)
    np.testing.assert_allclose(seen, np.where(np.eye(5), 1, 1 / 2), atol=0.06)


def test_global_positions_see_and_are_seen() -> None:
    n, width, chosen = 9, 1, [0, 5]
    one_way = patterns.global_local_mask(n, width, chosen, seen=False)
    both = patterns.global_local_mask(n, width, chosen)
    assert one_way.tolist() == entries(n, lambda i, j: abs(i - j) <= width or i in chosen)
    assert both.tolist() == entries(n, lambda i, j: abs(i - j) <= width or i in chosen or j in chosen)
    assert np.array_equal(
        patterns.global_local_mask(n, 2, [0, 1]),
        patterns.window_mask(n, 2) | patterns.hub_mask(n, 2),
    )


@given(n=st.integers(1, 12), m=st.integers(1, 12), size=st.integers(1, 14), seed=st.integers(0, 9))
def test_tiles_hold_an_entry(n: int, m: int, size: int, seed: int) -> None:
    mask = np.random.default_rng(seed).random((n, m)) < 0.1
    found = patterns.tiles(mask, size)
    assert found.shape == (-(-n // size), -(-m // size))
    for row, column in np.ndindex(found.shape):
        part = mask[row * size : (row + 1) * size, column * size : (column + 1) * size]
        assert found[row, column] == part.any()


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: patterns.factorised_strided(4, 0), ValueError, "stride: expected a positive integer, got 0"),
        (lambda: patterns.factorised_fixed(4, 2, 3), ValueError, "summary: expected at most stride = 2, got 3"),
        (lambda: patterns.factorised_fixed(4, 2, 0), ValueError, "summary: expected a positive integer, got 0"),
        (lambda: patterns.halving_mask(0), ValueError, "n: expected a positive integer"),
        (lambda: patterns.halving_mask(16385), ValueError, "n: expected a result of at most"),
        (lambda: patterns.block_mask(4, 1.0), TypeError, "block: expected a positive integer"),
        (
            lambda: patterns.random_block_mask(4, 2, 3, rng=np.random.default_rng(0)),
            ValueError,
            "at most the 2 blocks",
        ),
        (lambda: patterns.random_block_mask(4, 2, 1, rng=0), TypeError, "rng: expected a numpy Generator"),
        (
            lambda: patterns.global_local_mask(4, 1, [4]),
            ValueError,
            "globals_: expected positions from 0 to 3, got 4",
        ),
        (
            lambda: patterns.global_local_mask(4, 1, [-1]),
            ValueError,
            "globals_: expected positions from 0 to 3, got -1",
        ),
        (lambda: patterns.global_local_mask(4, 1, [0.5]), TypeError, "globals_: expected a non-empty sequence"),
        (lambda: patterns.global_local_mask(4, 1, [0], seen="no"), TypeError, "seen: expected True or False"),
        (lambda: patterns.tiles([True], 1), ValueError, r"mask: expected booleans of shape \(n, m\)"),
        (lambda: patterns.tiles([[True]], 0), ValueError, "size: expected a positive integer, got 0"),
    ],
)
def test_bad_input_of_factorised_and_block_patterns(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


def test_lengths_may_be_of_a_small_type_of_integers() -> None:
    torch = torch_or_skip()
    for dtype in (torch.uint8, torch.int8, torch.int64):
        seen = padding_mask(torch.tensor([100, 3], dtype=dtype), 300)
        assert seen.sum(dim=-1).flatten().tolist() == [100, 3]
