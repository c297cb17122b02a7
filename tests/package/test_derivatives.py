"""Every public function of tensors has the derivative of autograd: where it is smooth, and where it is degenerate.

At a degenerate point (zeros, ties, equal or one-hot rows, saturated ones) the derivative in a direction lies between
the one-sided difference quotients: they are equal where the function is smooth, and enclose subgradients at a kink.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import formats
import hostile
import numpy as np
import pytest
from backends import torch_or_skip

from attnmath.checks import derivable
from attnmath.linear_cost.random_features.optimal import optimal_aderf
from attnmath.matrix.spectrum import eigenvector_condition, log_determinant

STEP = 1e-6


def in_tensors(name: str) -> list[str]:
    """Return the parameters whose tensors decide the library of the result, and have a derivative."""
    parameters = inspect.signature(formats.FUNCTIONS[name]).parameters
    kinds = {key: str(parameter.annotation) for key, parameter in parameters.items()}
    return [key for key, kind in kinds.items() if ("[Array]" in kind or "Summary" in kind) and key != "like"]


#: Functions of integers or lengths, and those that count.
NO_DERIVATIVE = {"bidirectional.rows_won", "attention.padding_mask", "attention.causal_mask"}
NAMES = sorted(name for name in formats.FUNCTIONS if in_tensors(name) and name not in NO_DERIVATIVE)
#: Functions that have no derivative where eigenvalues or singular values coincide: no NaN is all that is promised.
SPECTRA = {
    *(f"spectrum.{name}" for name in ("eigenvalues", "eigenvector_condition", "log_determinant", "singular_values")),
    *(f"optimal.optimal_{name}" for name in ("aderf", "sderf")),
}
#: Functions whose derivative is one of several, or infinite, where weights are 0, as their docstrings say.
AT_THE_EDGE = {
    "attention.entropy", "attention.jacobian_norm", "mixing.dobrushin", "mixing.doeblin", "mixing.distances_to_limit",
    "mixing.log_distances",
    "spectrum.norm_bounds", "sinks.without_key",
}  # fmt: skip


def floating(result: Any) -> list[Any]:
    """Return the floating tensors in a result, infinite entries taken as 0."""
    if hasattr(result, "detach"):
        torch = torch_or_skip()
        result = torch.view_as_real(result) if result.is_complex() else result
        return [result.masked_fill(result.isinf(), 0)] if result.is_floating_point() else []
    if isinstance(result, dict | list | tuple):
        return [a for part in (result.values() if isinstance(result, dict) else result) for a in floating(part)]
    return floating(list(vars(result).values())) if hasattr(result, "__dict__") else []


def tensors(name: str) -> dict[str, Any]:
    """Return ordinary arguments with tensors in place of arrays, but for what is always of numpy."""
    torch = torch_or_skip()
    arguments = formats.renewed(formats.ordinary(name))
    return {
        key: value if key == "coefficients" else formats.mapped(value, torch.tensor) for key, value in arguments.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_gradcheck(name: str) -> None:
    torch, leaves = torch_or_skip(), []
    arguments = formats.ordinary(name)

    def leaf(value: np.ndarray) -> Any:
        leaves.append((torch.tensor(value, requires_grad=True), formats.is_stochastic(value)))
        return leaves[-1][0]

    for key in in_tensors(name):
        formats.mapped(arguments[key], leaf)

    def call(*given: Any) -> tuple[Any, ...]:
        rows = (a / a.sum(-1, keepdim=True) if is_row else a for a, (_, is_row) in zip(given, leaves, strict=True))
        changed = {key: formats.mapped(arguments[key], lambda _: next(rows)) for key in in_tensors(name)}
        return tuple(a for a in floating(formats.FUNCTIONS[name](**tensors(name) | changed)) if a.requires_grad)

    assert torch.autograd.gradcheck(call, tuple(a for a, _ in leaves))


def degenerate(value: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield arrays of the shape of an ordinary one at which functions have ties, kinks or zeros."""
    width = value.shape[-1] if value.ndim else 1
    rows = value.reshape(-1, width)
    first = np.zeros(value.shape)
    first[(0,) * value.ndim] = 1
    if formats.is_stochastic(value):
        almost = formats.normalised(np.eye(width)[0] + 1e-12)
        yield "uniform", np.full(value.shape, 1 / width)
        yield "one-hot", np.eye(width)[np.arange(len(rows)) % width].reshape(value.shape)
        yield "same one-hot", np.broadcast_to(np.eye(width)[0], value.shape)
        yield "equal rows", np.broadcast_to(rows[0], value.shape)
        yield "a column of zeros", formats.normalised(value * (np.arange(width) > 0))
        yield "saturated", np.broadcast_to(almost, value.shape)
        return
    yield "zeros", np.zeros(value.shape)
    yield "ones", np.ones(value.shape)
    yield "signs", np.sign(value)
    yield "equal rows", np.broadcast_to(value[:1] if value.ndim else value, value.shape)
    yield "large", 300 * value
    yield "a zero", value * (1 - first)
    yield (
        "a row of zeros",
        value * (np.arange(len(value)) > 0).reshape(-1, *[1] * (value.ndim - 1)) if value.ndim else value,
    )
    yield "identity", np.eye(len(rows), width).reshape(value.shape)


def direction(value: np.ndarray, is_row: bool, rng: np.random.Generator) -> np.ndarray:
    """Return a direction in which an argument may move: weight of a row goes from where some is to elsewhere."""
    moves = rng.standard_normal(value.shape)
    if is_row:
        width = value.shape[-1]
        moves = np.zeros((value.size // width, width))
        for move, row in zip(moves, value.reshape(moves.shape), strict=True):
            move[rng.choice(np.flatnonzero(row > 1e-3))] -= 1
            move[rng.integers(width)] += 1
    return moves.reshape(value.shape)


def wrong(function: Callable[[Any], Any], at: np.ndarray, moves: list[np.ndarray], *, strict: bool, edge: bool) -> str:
    """Say where the derivatives of a function are NaN, or not between the one-sided difference quotients."""
    torch = torch_or_skip()
    x = torch.tensor(at, requires_grad=True)
    out = function(x)
    if not out.requires_grad:
        return ""
    quotients = []
    for move in moves:
        with torch.no_grad():
            ahead, behind = (differences(function, x, move, step, out) for step in (STEP, -STEP))
        quotients.append([q for q in (ahead, behind) if q is not None])
    for k in range(min(out.numel(), 9)):
        (gradient,) = torch.autograd.grad(out[k], x, retain_graph=True, allow_unused=True)
        gradient = torch.zeros_like(x) if gradient is None else gradient
        if not gradient.isfinite().all():
            return f"entry {k}: the derivative is {gradient}"
        for move, sides in zip(moves, quotients, strict=True):
            if not strict or not sides or (edge and len(sides) == 1):
                continue
            slope, found = float((gradient * torch.tensor(move)).sum()), [float(side[k]) for side in sides]
            # The quotient is off by the curvature times the step, and by the rounding of the difference over it.
            slack = 1e-4 * (1 + abs(slope) + max(map(abs, found)))
            if not min(found) - slack <= slope <= max(found) + slack:
                return f"entry {k}: {slope} is not between {found}"
    return ""


def differences(function: Callable[[Any], Any], x: Any, move: np.ndarray, step: float, out: Any) -> Any:
    """Return the difference quotients to one side, or None where that side is outside of the domain."""
    torch = torch_or_skip()
    try:
        return (function(x + step * torch.tensor(move)) - out) / step
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_at_degenerate_points(name: str) -> None:
    torch, rng = torch_or_skip(), hostile.rng()
    arguments, found = formats.ordinary(name), {}
    for key in in_tensors(name):
        if not isinstance(arguments[key], np.ndarray):
            continue
        base, is_row = tensors(name), formats.is_stochastic(arguments[key])

        def function(x: Any, key: str = key, base: dict[str, Any] = base) -> Any:
            return torch.cat([a.reshape(-1) for a in floating(formats.FUNCTIONS[name](**base | {key: x}))])

        for label, at in degenerate(arguments[key]):
            moves = [direction(at, is_row, rng) for _ in range(3)]
            # Near a vertex logarithms curve more than a quotient resolves.
            strict = name not in SPECTRA and not (label == "saturated" and name in AT_THE_EDGE)
            try:
                found[key, label] = wrong(function, at, moves, strict=strict, edge=name in AT_THE_EDGE)
            except (TypeError, ValueError):  # outside of the domain
                continue
    assert {key: text for key, text in found.items() if text} == {}


def test_half_of_a_derivative_and_a_nan_are_found() -> None:
    torch = torch_or_skip()
    at, moves = np.zeros(1), [np.ones(1)]

    def half(x: Any) -> Any:
        return torch.where(x > 0, x + 1, torch.exp(torch.minimum(x, torch.zeros_like(x))))

    assert "0.5 is not between" in wrong(half, at, moves, strict=True, edge=False)
    assert "nan" in wrong(lambda x: x * torch.sqrt(x**2), at, moves, strict=True, edge=False)
    assert wrong(lambda x: torch.sqrt(derivable(x) ** 2), at, moves, strict=True, edge=False) == ""
    assert wrong(torch.abs, at, moves, strict=True, edge=False) == ""


@pytest.mark.filterwarnings("ignore:.*torch.jit")  # torch's own, of its first use of forward mode
def test_forward_mode_gives_the_derivative_or_says_that_there_is_none() -> None:
    torch = torch_or_skip()
    eye, move = torch.eye(2, dtype=torch.float64), torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    singular = torch.full((2, 2), 0.5, dtype=torch.float64)

    def log(A: Any) -> Any:
        return log_determinant(A)[1]

    for found in (torch.func.grad(log)(singular), torch.func.jacrev(log)(singular)):
        assert not found.any()
    assert torch.func.jvp(log, (singular,), (move,)) == (-np.inf, 0)
    both = torch.stack([move, singular])
    grad = torch.func.grad(lambda A: log(A)[0])(both)
    torch.testing.assert_close(grad[0], torch.linalg.inv(move).mT)
    assert not grad[1].any()
    for function in (eigenvector_condition, lambda A: optimal_aderf(A, eye)[1]):
        with pytest.raises(
            ValueError, match=r"^[\w, ]+: .*expected a point with a derivative, for forward mode[^\n]*$"
        ):
            torch.func.jvp(function, (eye,), (move,))
        ahead, behind = (function(move + step * eye) for step in (STEP, -STEP))
        torch.testing.assert_close(
            torch.func.jvp(function, (move,), (eye,))[1], (ahead - behind) / 2 / STEP, rtol=1e-6, atol=1e-6
        )
