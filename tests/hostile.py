"""Hostile arguments for every public function of the numeric modules, and a judge of what comes of them."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import pkgutil
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

import attnmath
from attnlab.heads import load
from attnmath.estimate import Estimate
from attnmath.linear_cost.kernels import elu_plus_one
from attnmath.linear_cost.random_features.maps import positive
from attnmath.operator.dot_product import COMPONENT_LAWS
from attnmath.operator.initialisation import xavier_variance
from attnmath.operator.online import summarise

#: Modules of attnmath that are checked elsewhere: pictures, symbols, and the checks themselves.
GROUND = {"arrays", "checks", "figures", "symbols"}
#: The numeric modules of attnlab.
LABORATORY = (
    "experiments.sparsity_benchmark", "heads.corpus", "heads.encoder", "heads.extract", "heads.load", "heads.locality",
    "heads.positional", "heads.removal",
)  # fmt: skip
#: Not called: they read the command line.
COMMANDS = {"heads.extract.main", "experiments.sparsity_benchmark.main"}

SECONDS = 10


def key(module: str) -> str:
    """Return the name that tables know a module by: without its package, and without its room in attnmath.

    >>> key("attnmath.operator.attention"), key("attnmath.figures.lines"), key("attnlab.heads.load")
    ('attention', 'figures.lines', 'heads.load')
    """
    package, *inside = module.split(".")
    return ".".join(inside if package == "attnlab" or inside[0] == "figures" else inside[-1:])


def modules_of(package: ModuleType) -> list[str]:
    """Return the public modules of a package, and of the packages within it; packages themselves are left out."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [info.name for info in found if not info.ispkg and not re.search(r"\._[a-z]", info.name)]


#: The numeric modules, by their keys.
MODULES = {key(name): name for name in modules_of(attnmath) if name.split(".")[1] not in GROUND}
MODULES |= {name: f"attnlab.{name}" for name in LABORATORY}


def public_functions() -> dict[str, Callable[..., Any]]:
    """Return the public functions that a numeric module defines itself, by the key of the module and the name."""
    found = {}
    for place, name in MODULES.items():
        module = importlib.import_module(name)
        for function, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__ and not function.startswith("_"):
                found[f"{place}.{function}"] = value
    return {name: value for name, value in found.items() if name not in COMMANDS}


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def rows(*shape: int) -> np.ndarray:
    return rng().standard_normal(shape)


STOCHASTIC = np.asarray([[0.75, 0.125, 0.125], [0.25, 0.5, 0.25], [0.125, 0.125, 0.75]])

#: An ordinary argument for each name of a parameter; made anew for each call.
ORDINARY: dict[str, Callable[[], Any]] = {
    "A": lambda: STOCHASTIC.copy(),
    "E": lambda: rows(2, 3),
    "F": lambda: rows(2, 3),
    "G": lambda: rows(3, 2),
    "K": lambda: rows(3, 2),
    "Omega": lambda: rows(4, 2),
    "P": lambda: STOCHASTIC.copy(),
    "Q": lambda: rows(3, 2),
    "S": lambda: rows(3, 3),
    "V": lambda: rows(3, 2),
    "W_K": lambda: rows(2, 2),
    "W_Q": lambda: rows(2, 2),
    "W_V": lambda: rows(2, 2),
    "X": lambda: rows(3, 2),
    "Y": lambda: rows(4, 2),
    "a": lambda: rows(3, 2),
    "above": lambda: 0.5,
    "arrays": lambda: {"a": rows(2)},
    "axis": lambda: 0,
    "base": lambda: 100.0,
    "below": lambda: 0.25,
    "beta": lambda: [-1.0, 0.5],
    "bias": lambda: False,
    "block": lambda: 2,
    "blocks": lambda: 2,
    "causal": lambda: True,
    "centre": lambda: rows(2),
    "choice": lambda: [1, 0],
    "chunk": lambda: 2,
    "coefficients": lambda: [1.0, 0.5],
    "context": lambda: 1,
    "covariance": lambda: np.eye(2),
    "d": lambda: 3,
    "d_in": lambda: 3,
    "d_k": lambda: 3,
    "d_model": lambda: 3,
    "d_out": lambda: 2,
    "d_v": lambda: 2,
    "coverage": lambda: 0.95,
    "coupling": lambda: "orthogonal",
    "dP": lambda: rows(3, 3),
    "depth": lambda: 2,
    "deviation": lambda: 0.5,
    "diagonal": lambda: 0.5,
    "directory": lambda: "no-such-model",
    "doublings": lambda: 3,
    "edges": lambda: "nearest",
    "encoder": lambda: None,
    "ends": lambda: "cubic",
    "epsilon": lambda: 0.25,
    "error": lambda: 0.25,
    "estimate": lambda: Estimate(1.0, 0.5),
    "estimates": lambda: [Estimate(1.0, 0.5), Estimate(2.0, 0.5)],
    "experts": lambda: rows(2, 2, 3),
    "feature": lambda: elu_plus_one,
    "features": lambda: positive(rows(4, 2)),
    "frozen_values": lambda: False,
    "first": lambda: summarise(rows(3, 2), rows(2, 2)),
    "function": lambda: list,
    "g": lambda: [1.0, 2.0],
    "gamma": lambda: [1.0, 0.5],
    "gates": lambda: np.asarray([[0.25, 0.75], [0.5, 0.5]]),
    "globals_": lambda: [1],
    "groups": lambda: ["a", "a", "b", "b"],
    "heads": lambda: 2,
    "hubs": lambda: 1,
    "image": lambda: [1, 0],
    "k": lambda: 1,
    "kept": lambda: 3,
    "lam": lambda: [0.5, 1.0],
    "largest": lambda: 2.0,
    "law": lambda: "normal",
    "law_name": lambda: "gaussian",
    "layers": lambda: [(rows(2, 2), rows(2, 2), rows(2, 2))],
    "learned": lambda: 1,
    "learned_from": lambda: "another word",
    "length": lambda: 4,
    "lengths": lambda: [1, 3],
    "like": lambda: rows(2),
    "log": lambda: False,
    "logits": lambda: rows(2, 3),
    "longest": lambda: 9,
    "m": lambda: 5,
    "mask": lambda: np.tril(np.ones((3, 3), bool)),
    "masks": lambda: np.stack([np.tril(np.ones((3, 3), bool))] * 2),
    "mean": lambda: [0.5, 1.0],
    "mechanism": lambda: "performer",
    "moment": lambda: [0.25, 2.0],
    "method": lambda: "this package",
    "n": lambda: 3,
    "name": lambda: "A",
    "norm": lambda: [0.5, 1.0],
    "normalise": lambda: True,
    "norms": lambda: "chi",
    "nu": lambda: 5,
    "one_coefficient": lambda: True,
    "order": lambda: 2,
    "p": lambda: [0.25, 0.75],
    "path": lambda: "no-such-file.npz",
    "pattern": lambda: "left",
    "positions": lambda: [0, 2, 5],
    "power": lambda: 2,
    "q": lambda: [1.0, 2.0],
    "r": lambda: 1,
    "radius": lambda: 1.5,
    "ratios": lambda: [-1.0, 2.0],
    "relative": lambda: 1e-9,
    "residual": lambda: True,
    "ridge": lambda: 1e-6,
    "rng": rng,
    "rounds": lambda: 2,
    "rows": lambda: 2,
    "runs": lambda: 3,
    "rule": lambda: xavier_variance,
    "s": lambda: [0.5, -1.0],
    "sample": lambda: "sentence",
    "samples": lambda: rows(4),
    "scale": lambda: 0.5,
    "seen": lambda: True,
    "second": lambda: summarise(rows(3, 2), rows(2, 2)),
    "shared": lambda: True,
    "sigma": lambda: [2.0, 1.0],
    "size": lambda: 4,
    "square": lambda: [0.5, 1.0],
    "skip": lambda: True,
    "steps": lambda: 2,
    "stride": lambda: 2,
    "summary": lambda: 1,
    "t": lambda: [0.5, -0.25],
    "target": lambda: np.tril(np.ones((3, 3), bool)),
    "temperature": lambda: 2.0,
    "text": lambda: "a word",
    "theta": lambda: [0.5, 1.0],
    "trained": lambda: True,
    "values": lambda: 4,
    "variance": lambda: 0.5,
    "width": lambda: 1,
    "widths": lambda: [2, 3, 2],
    "x": lambda: rows(2, 2),
    "y": lambda: [0.25, 0.75],
}

DIAGONAL: dict[str, Callable[[], Any]] = {"A": lambda: np.asarray([0.1, -0.2])}
ROOT_OF_DIAGONAL = np.diag(np.sqrt([0.6, 1.8]))
#: Dense exponential features in two dimensions.
DENSE: dict[str, Callable[[], Any]] = {"A": lambda: np.asarray([-0.25, 0.0]), "relative": lambda: False}
#: A query and a key of a kernel.
PAIR: dict[str, Callable[[], Any]] = {"x": lambda: rows(3, 2), "y": lambda: rows(3, 2), "relative": lambda: False}


def small_decoder() -> load.TrainedDecoder:
    """Return a decoder of two layers and two heads, of width 4, that knows three letters and sees five."""
    shapes = load._shapes(4, 3, 5, 2)
    draws = rng()
    weights = {name: draws.standard_normal(shape).astype(np.float32) / 2 for name, shape in shapes.items()}
    return load.TrainedDecoder(weights, 2, ("a", "b", "c"))


#: Windows of the small decoder's characters.
WINDOWS: dict[str, Callable[[], Any]] = {
    "decoder": small_decoder,
    "ids": lambda: np.asarray([[0, 1, 2, 0], [2, 2, 1, 0]]),
    "text": lambda: "abcabcabcabc",
}

#: Where a function wants another kind of argument under the same name.
SPECIAL: dict[str, dict[str, Callable[[], Any]]] = {
    "cost.counted_linear_attention": {"Q": lambda: np.exp(rows(3, 2)), "K": lambda: np.exp(rows(3, 2))},
    "bidirectional.two_token_margin": {"a": lambda: [0.25, 0.5], "b": lambda: [0.5, 0.75]},
    "dot_product.cosine_density": {"t": lambda: 0.5},
    "dot_product.draws": {"law": lambda: COMPONENT_LAWS["uniform"], "sigma": lambda: 1.5},
    "dot_product.gaussian_cdf": {"x": lambda: [0.5, 1.0]},
    "dot_product.gaussian_density": {"x": lambda: [0.5, 1.0]},
    "dot_product.score_rows": {"sigma": lambda: 1.5},
    "estimate.slope": {"x": lambda: [0.0, 1.0, 2.0], "y": lambda: [0.0, 2.0, 3.0]},
    "feature_maps.truncation_bound": {"relative": lambda: False},
    "gaussian_rows.deviation_for_entropy": {"entropy": lambda: 0.5},
    "initialisation.measured_gains": {"x": lambda: [1.0, 2.0]},
    "initialisation.scaled_scores": {"x": lambda: [1.0, 2.0], "y": lambda: [2.0, 1.0]},
    **{
        f"variance.{name}": {"relative": lambda: False}
        for name in ("hyperbolic_variance", "positive_variance", "trigonometric_variance")
    },
    "variance.gerf_variance": {"A": lambda: -0.25, "relative": lambda: False},
    "variance.sderf_variance": DENSE | {"B": lambda: np.diag([2.0**0.5, 1.0])},
    "variance.aderf_variance": DENSE | {"B_q": lambda: np.diag([1.0, 2.0]), "B_k": lambda: np.diag([2.0, 0.5])},
    "orthogonal.gerf_variance": {**PAIR, "A": lambda: -0.25},
    **{f"orthogonal.{kind}_variance": PAIR for kind in ("hyperbolic", "positive")},
    "projections.hadamard": {"d": lambda: 4},
    "projections.walsh_hadamard": {"X": lambda: rows(3, 4)},
    "closed_forms.linear_independent": {"mean": lambda: 0.5},
    "experiments.sparsity_benchmark.exact": {"t": lambda: 0.5},
    "johnson_lindenstrauss.distortion": {"X": lambda: rows(5, 3), "Omega": lambda: rows(2, 3)},
    "maps.aderf": DIAGONAL | {"B_q": lambda: ROOT_OF_DIAGONAL * 2, "B_k": lambda: ROOT_OF_DIAGONAL / 2},
    "maps.gerf": {"A": lambda: 0.1},
    "maps.sderf": DIAGONAL | {"B": lambda: ROOT_OF_DIAGONAL.copy()},
    "fixed_patterns.fixed_pattern": {"name": lambda: "previous"},
    **{f"sinks.{name}": {"key": lambda: 0} for name in ("sink_weight", "without_key")},
    **{f"positions.{name}": {"d": lambda: 4} for name in ("frequencies", "shift_matrix", "sinusoidal")},
    "heads.locality.frequent_words": {"count": lambda: 2},
    **{
        f"heads.locality.{name}": {
            "numbers": lambda: [0, 1, 0, 1, 1, 0, 0, 1],
            "distance": lambda: 1,
            "blocks": lambda: 2,
        }
        for name in ("information_at", "pair_counts")
    },
    "heads.locality.mutual_information": {"counts": lambda: [[2.0, 1.0], [0.0, 3.0]]},
    "heads.positional.distance": {"B": lambda: np.full((3, 3), 1 / 3)},
    **{
        f"heads.positional.{name}": {"patterns": lambda: np.stack([STOCHASTIC, np.eye(3)])}
        for name in ("distances", "mixture")
    },
    "heads.positional.at_offsets": {"offsets": lambda: [-1.0, 0.0]},
    "heads.removal.attention": WINDOWS,
    "heads.removal.bits": WINDOWS
    | {
        "kept": lambda: np.stack([np.eye(4)] * 2),
        "units": lambda: np.ones((2, 16)),
        "weights": lambda: lambda layer, P: P,
        "patterns": lambda: {(0, 1): STOCHASTIC.copy()},
    },
    "heads.removal.greedy_order": WINDOWS,
    "heads.removal.projected": WINDOWS | {"directions": lambda: [1, 0]},
    "heads.removal.windows": WINDOWS | {"count": lambda: 2},
    "heads.removal.without": WINDOWS | {"removed": lambda: [(0, 1)]},
    "frozen_heads.frozen_projection": {"d_k": lambda: 2},
    "frozen_heads.inputs_for": {
        "Q": lambda: rows(3, 2),
        "K": lambda: rows(3, 2),
        "W_Q": lambda: rows(5, 2),
        "W_K": lambda: rows(5, 4)[:, 2:],
    },
    "frozen_heads.invariant": {"W_Q": lambda: rows(2, 4, 2), "W_K": lambda: rows(2, 4, 3)[..., 1:]},
    "frozen_heads.logit_moments": {"d_k": lambda: 2, "x": lambda: rows(2, 3), "y": lambda: rows(4, 3)[2:]},
    "heads.corpus.passage": {"text": lambda: "A sentence."},
    "heads.load.load_pretrained": {"text": lambda: "passage"},
    "heads.corpus.section": {"text": lambda: "One\n===\n\nwords", "title": lambda: "One"},
    "heads.corpus.split": {"text": lambda: "a paragraph\n\n" * 200},
}

#: Infinities (and the only NaN) that a docstring promises, each with the reason.
PROMISED = {
    "attention.masked": "-inf takes a score out of the softmax",
    "mixing.log_distances": "-inf is the logarithm of a distance of 0",
    "rank.condition_number": "inf where the smallest singular value is 0",
    **{
        f"variance.{name}_variance": "-inf is the logarithm of a variance of 0"
        for name in ("trigonometric", "positive", "hyperbolic", "gerf", "sderf", "aderf")
    },
    "experiments.sparsity_benchmark.printed": "it measures where the printed form breaks",
    "experiments.sparsity_benchmark.quadrature": "NaN where a moment comes out as 0",
    "experiments.sparsity_benchmark.monte_carlo": "NaN where no draw is above 0",
    "experiments.sparsity_benchmark.relative_errors": "inf where a method returns no number",
    "experiments.sparsity_benchmark.load_table": "inf where a method returns no number",
    "spectrum.eigenvector_condition": "inf where there is no basis of eigenvectors",
    "spectrum.log_determinant": "-inf is the logarithm of a determinant of 0",
}

#: Functions whose docstring promises FileNotFoundError.
FILES = {f"heads.encoder.{name}" for name in ("load_encoder", "model_directory", "tokenize", "weights_hash")}
FILES |= {"heads.extract.extract", *(f"heads.load.{name}" for name in ("read_decoder", "read_decoders", "read_heads"))}


def hostile_values(ordinary: Any) -> Iterator[tuple[str, Any]]:
    """Yield named hostile values: scalars of all kinds, and arrays in the shape of the ordinary argument."""
    scalars: dict[str, Any] = {
        "None": None, "True": True, "text": "abc", "long text": "x" * 5000,
        "bytes": b"abc", "object": object(), "0": 0, "0.0": 0.0,
        "-0.0": -0.0,
        "-1": -1, "1": 1, "1.5": 1.5, "2**70": 2**70, "10**400": 10**400, "10**9": 10**9, "nan": np.nan, "inf": np.inf,
        "-inf": -np.inf, "1e308": 1e308, "1e160": 1e160, "1e-308": 1e-308, "1e-170": 1e-170, "5e-324": 5e-324, "1j": 1j,
        "uint8(200)": np.uint8(200), "int32(50000)": np.int32(50000), "float16(1)": np.float16(1),
        "longdouble(1)": np.longdouble(1), "[]": [], "{}": {}, "ragged": [[1.0], [1.0, 2.0]], "[None]": [None],
        "['a']": ["a"], "nested": [[1.0]], "a function": len, "a class": int, "RandomState": np.random.RandomState(0),
        "five": [0.1, 0.2, 0.3, 0.4, 0.5], "empty": np.ones((0, 2)), "(2, 3, 4, 5)": np.ones((2, 3, 4, 5)),
        "masked": np.ma.masked_array([1.0, 2.0], [True, False]), "matrix": _matrix([[1.0, 2.0]]), "set": {1.0},
        "a path": "/", "negative zero array": -np.zeros(2), "generator": (x for x in ()),
    }  # fmt: skip
    yield from scalars.items()
    try:
        usual = np.asarray(ordinary)
    except (TypeError, ValueError):
        return
    if usual.dtype.kind == "b" and usual.ndim:
        yield from {
            "all False": np.zeros_like(usual), "numbers": usual.astype(float), "first row": usual[0],
            "masked mask": np.ma.masked_array(usual, ~usual), "transposed stack": np.stack([usual.T] * 2),
            "torch bool": _torch(usual, "bool"),
        }.items()  # fmt: skip
    if usual.dtype.kind not in "if":
        return
    plain = usual.astype(float)
    for factor in (1e308, 1e160, 1e-170, 1e-308, -1.0, 0.0):
        with np.errstate(over="ignore"):
            yield f"times {factor:g}", plain * factor
    yield "alternating 1e308", 1e308 * (-1.0) ** np.indices(plain.shape).sum(axis=0)
    for bad in (np.nan, np.inf, -np.inf, 1e308, -0.0):
        spoiled = np.array(plain)
        spoiled[(0,) * plain.ndim] = bad
        yield f"an entry of {bad}", spoiled
    for dtype in ("bool", "str", "object", "complex", "uint8", "int32", "float16", "float32", "longdouble"):
        yield dtype, plain.astype(dtype)
    yield "integers above 2^53", np.where(plain > 0, 2**62 + 1, 2**62)
    yield "unsigned above 2^63", np.full(plain.shape, 2**64 - 1, np.uint64)
    yield "foreign byte order", plain.astype(">f8")
    yield "backwards", plain[::-1] if plain.ndim else plain
    yield "masked array", np.ma.masked_array(plain, plain > 0)
    yield "list", plain.tolist()
    if plain.ndim:
        yield "one row less", plain[1:]
        yield "without its first axis", plain[0]
        yield "one column less", plain[..., 1:]
    if plain.ndim == 2:
        yield "np.matrix", _matrix(plain)
        yield "transposed", plain.T
    yield "a batch of 2", np.stack([plain] * 2)
    yield "a batch of 5, 1", np.stack([plain] * 5)[:, None]
    for dtype in ("float64", "float32", "float16", "bfloat16", "int32"):
        yield f"torch {dtype}", _torch(plain, dtype)
    yield "torch that requires grad", _torch(plain, "float64", requires_grad=True)
    yield "torch above 2^24", _torch(np.full(plain.shape, 2**24 + 1), "int32")
    if hasattr(tensor := _torch(plain, "complex128"), "imag"):
        yield "torch with a negative bit", (tensor * 1j).conj().imag


def _matrix(values: Any) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asmatrix(values)


def _torch(values: np.ndarray, dtype: str, *, requires_grad: bool = False) -> Any:
    try:
        import torch
    except ImportError:
        return values
    return torch.tensor(values).to(getattr(torch, dtype)).requires_grad_(requires_grad)


def parameters(name: str, function: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
    """Return what makes an ordinary argument for each parameter; a parameter without one is an error."""
    known = {**ORDINARY, **SPECIAL.get(name, {})}
    wanted = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    if unknown := [parameter for parameter in wanted if parameter not in known]:
        raise LookupError(f"{name}: no ordinary argument for {', '.join(unknown)}; add one to ORDINARY or SPECIAL")
    return {parameter: known[parameter] for parameter in wanted}


def verdict(name: str, function: Callable[..., Any], arguments: Mapping[str, Any], *, seconds: float = SECONDS) -> str:
    """Call a function; return "" if it answers finitely or raises an error that teaches, and else what is wrong."""
    try:
        with _at_most(seconds), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = _call(function, arguments)
    except TimeoutError:
        return f"took more than {seconds} s"
    except FileNotFoundError as error:
        return "" if name in FILES else f"obscure {type(error).__name__}: {error}"
    except (ValueError, TypeError) as error:
        named = any(re.search(rf"\b{re.escape(parameter)}\b[^:]*:", str(error)) for parameter in arguments)
        return "" if named and "expected" in str(error) else f"obscure {type(error).__name__}: {error}"
    except Exception as error:
        return f"obscure {type(error).__name__}: {error}"
    return "" if name in PROMISED or _finite(result) else f"not finite: {str(result)[:200]}"


def _call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    positional = [p for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_ONLY]
    assert not positional, "a parameter without a name cannot be named by an error"
    result = function(**arguments)
    return list(itertools.islice(result, 3)) if inspect.isgenerator(result) else result


def _finite(result: Any) -> bool:
    """Return whether every number in a result is finite."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return all(_finite(v) for v in vars(result).values())
    if isinstance(result, Mapping):
        return all(_finite(v) for v in result.values())
    if isinstance(result, list | tuple):
        return all(_finite(v) for v in result)
    if is_torch_array(result):
        return bool(result.isfinite().all())
    if isinstance(result, np.ndarray | np.generic | int | float | complex):
        array = np.asarray(result)
        return array.dtype.kind not in "fc" or bool(np.all(np.isfinite(array)))
    return True


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer (where the system has alarms, and in the main thread, which alone gets them)."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
