"""Signatures say true shapes: every public function is run under jaxtyping's check of its arguments and its result."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Annotated, Any

import beartype
import hostile
import llama_files
import matplotlib.pyplot as plt
import numpy as np
import pytest
from array_api_compat import is_torch_array
from backends import both_backends, make, torch_or_skip
from beartype.door import is_bearable
from beartype.vale import IsInstance
from hostile_calls import DRAWING, FIGURES, MEASURING, OTHERS
from jaxtyping import AbstractArray, Float, Int, TypeCheckError, jaxtyped
from numpy.typing import NDArray

from attnlab.heads import Decoders, Heads, llama, load_decoders, load_heads, load_pretrained
from attnlab.heads.encoder import Encoder
from attnlab.heads.layout import Layout
from attnmath.arrays import Array, ArrayLike, Numpy
from attnmath.estimate import Estimate
from attnmath.operator.gradients import StageGradients

checked = jaxtyped(typechecker=beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True)))
rows = hostile.rows

NUMERIC = hostile.public_functions()
FUNCTIONS = NUMERIC | MEASURING | {f"figures.{name}": function for name, function in DRAWING.items()}
FUNCTIONS.pop("devices.torch_device")  # it has no array, and its module knows torch only when it is called

#: Functions that are not called here: those that need a file or train, and those without an array.
NOT_CALLED = hostile.FILES | {name for name in MEASURING if name not in OTHERS | NUMERIC}
NOT_CALLED |= {"figures.lines.letter_panels", "figures.show.show", "figures.show.encode"}

#: Arguments whose axes all have different sizes, n = 3, m = 5, d_k = 2, d_v = 4, d_model = 6.
DISTINCT: dict[str, Callable[[], Any]] = {
    "G": lambda: rows(7, 3, 4),
    "K": lambda: rows(5, 2),
    "Q": lambda: rows(7, 3, 2),
    "S": lambda: rows(3, 5),
    "V": lambda: rows(5, 4),
    "W_K": lambda: rows(6, 2),
    "W_Q": lambda: rows(6, 2),
    "W_V": lambda: rows(6, 4),
    "X": lambda: rows(7, 3, 6),
    "dP": lambda: rows(3, 5),
    "experts": lambda: rows(2, 6, 4),
    "gates": lambda: np.asarray([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]),
    "groups": lambda: np.asarray(["a", "a", "b", "b"]),
    "mask": lambda: np.tril(np.ones((3, 5), bool)),
    "x": lambda: rows(3, 6),
}
STACK = np.stack([hostile.STOCHASTIC] * 2)
OF_A_STACK: dict[str, Callable[[], Any]] = {"A": lambda: STACK, "mask": lambda: np.tril(np.ones((3, 3), bool))}
ANY_MATRIX: dict[str, Callable[[], Any]] = {"A": lambda: rows(7, 3, 5)}
FALLING: dict[str, Callable[[], Any]] = {"sigma": lambda: np.asarray([[3.0, 2.0, 1.0], [2.0, 2.0, 0.0]])}
KINDS = {
    "spectrum": (OF_A_STACK, "row_stochastic square norm_bounds eigenvalues eigenvector_condition log_determinant"),
    "mixing": (OF_A_STACK, "dobrushin doeblin"),
    "patterns": (OF_A_STACK, "masked_weights renormalised"),
    "sinks": (OF_A_STACK, "sink_weight without_key"),
    "rank": (FALLING, "effective_rank entropy_rank stable_rank"),
}
CHOSEN: dict[str, dict[str, Callable[[], Any]]] = {
    **{f"{module}.{name}": given for module, (given, names) in KINDS.items() for name in names.split()},
    **{f"spectrum.{name}": ANY_MATRIX for name in ("singular_values", "spectral_norm")},
    **{f"rank.{name}": ANY_MATRIX for name in ("numerical_rank", "condition_number", "best_approximation")},
    **{f"bidirectional.{name}": {"S": lambda: rows(7, 3, 3)} for name in ("at_equal_scores", "rows_won")},
    "bidirectional.mean_row_cosine": {"A": lambda: rows(7, 3, 5)},
    "cost.counted_attention": {"Q": lambda: rows(3, 2), "K": lambda: rows(3, 2), "V": lambda: rows(3, 4)},
    "cost.counted_linear_attention": {
        "Q": lambda: np.exp(rows(3, 2)),
        "K": lambda: np.exp(rows(3, 2)),
        "V": lambda: rows(3, 4),
    },
    "mechanisms.counted_positive_features": {"X": lambda: rows(3, 2), "Omega": lambda: rows(4, 2)},
    "depth.attention_stack": {"X": lambda: rows(3, 6)},
    "experts.block_matrix": {"choice": lambda: [1, 0, 1]},
    "gradients.softmax_pullback": {"P": lambda: np.full((3, 5), 0.2)},
    "gradients.stack_gradients": {
        "X": lambda: rows(3, 4),
        "G": lambda: rows(3, 4),
        "layers": lambda: [(rows(4, d_k), rows(4, d_k), rows(4, 4)) for d_k in (2, 5)],
    },
    "gradients.attention_gradients": {"mask": lambda: np.tril(np.ones((3, 3), bool))},
    "expansion.expanded_attention": {"causal": lambda: False},
    "kernels.linear_attention": {"causal": lambda: False},
    "kernels.linear_attention_recurrent": {"Q": lambda: rows(7, 5, 2)},
    **{f"performer.{name}": {"causal": lambda: False} for name in ("attention_estimate", "performer_attention")},
    **{f"residual_attention.{name}": ANY_MATRIX for name in ("largest_entries", "low_rank_plus_sparse")},
    "residual_attention.linformer_weights": {"E": lambda: rows(4, 5), "F": lambda: rows(4, 5)},
    "performer.kernel_estimate": {"X": lambda: rows(7, 3, 2), "Y": lambda: rows(5, 2)},
    "initialisation.measured_gains": {"x": lambda: [1.0, 2.0, 3.0]},
    "online.summarise": {"S": lambda: rows(3, 5)},
    **{
        f"optimal.optimal_{name}": {"X": lambda: rows(3, 2), "Y": lambda: rows(5, 2)}
        for name in ("gerf", "sderf", "aderf")
    },
    **{
        f"variance.{name}_variance": {"x": lambda: rows(3, 2), "y": lambda: rows(3, 2)}
        for name in ("trigonometric", "positive", "hyperbolic", "gerf", "sderf", "aderf")
    },
}

#: Where there is no shape to tell: function or class, and parameter, field or "return".
SHAPELESS = {
    ("cost.peak_memory", "function"): "a function of anything",
    ("cost.peak_memory", "arguments"): "what that function takes",
    ("experiments.arguments.several", "value"): "a check of whatever was given",
    ("experiments.arguments.widths_of", "widths"): "a check of whatever was given",
    ("sweeps.runs.Sweep", "run"): "from settings to a row of a table",
    ("sweeps.tables.Table", "told"): "what reads a cell of a table",
    ("sweeps.tables.Table", "measured"): "what reads a cell of a table",
    ("sweeps.tables.Table.checked", "rows"): "rows of whatever was given",
    ("sweeps.runs.each", "values"): "a check of whatever was given",
    ("sweeps.runs.each", "check"): "a check of whatever was given",
    ("sweeps.tables.exact", "value"): "a cell of a table, number or word",
    ("sweeps.tables.rounded", "value"): "a cell of a table, number or word",
    ("sweeps.tables.exact", "return"): "a cell of a table, number or word",
    ("sweeps.tables.rounded", "return"): "a cell of a table, number or word",
    ("recall.sweep.grid", "fixed"): "fields of Settings",
    **{(f"translation.sweep.{name}", "fixed"): "fields of Settings" for name in ("grid", "rate_grid", "own_rate_grid")},
}  # fmt: skip
#: Here dict[str, Any] is a row of a table, from a column's name to a number or a word.
TABLES = (
    "recall.",
    "sweeps.",
    "translation.",
    "experiments.sparsity_benchmark.load_table",
    "experiments.public_implementations.",
)


def members(hint: Any) -> tuple[Any, ...]:
    """Return what a Union consists of, and anything else as it is."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, type(int | str)) else (hint,)


def array_hints(hint: Any) -> list[Any]:
    return [part for part in members(hint) if inspect.isclass(part) and issubclass(part, AbstractArray)]


def arguments(name: str) -> dict[str, Any]:
    """Return ordinary arguments, with axes of different sizes where the shapes allow it."""
    if name not in NUMERIC:
        return dict({**OTHERS, **{f"figures.{key}": value for key, value in FIGURES.items()}}[name])
    mine = {**DISTINCT, **hostile.SPECIAL.get(name, {}), **CHOSEN.get(name, {})}
    return {key: mine.get(key, new)() for key, new in hostile.parameters(name, NUMERIC[name]).items()}


def as_arrays(value: Any, hint: Any, backend: str) -> Any:
    """Return an argument with arrays of one library where its annotation says array: a list has no shape to check."""
    if array_hints(hint) and isinstance(value, list | tuple | np.ndarray):
        array = np.asarray(value)
        for_torch = array.dtype.kind in "bifc" and all(part.array_type is not np.ndarray for part in array_hints(hint))
        return make(backend, array, str(array.dtype)) if for_torch else array
    inside = [typing.get_args(part) for part in members(hint) if typing.get_args(part)]
    if not inside or isinstance(value, str) or hasattr(value, "_fields"):
        return value
    if isinstance(value, Mapping):
        return {key: as_arrays(item, inside[0][-1], backend) for key, item in value.items()}
    if isinstance(value, list | tuple):
        hints = inside[0] if isinstance(value, tuple) else inside[0][:1] * len(value)
        return type(value)(as_arrays(item, part, backend) for item, part in zip(value, hints, strict=True))
    return value


def parts(result: Any, hint: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what a result consists of, with the annotation of each part; arrays and records are not taken apart."""
    inside = typing.get_args(hint)
    if isinstance(result, list | tuple) and not hasattr(result, "_fields") and inside:
        hints = inside if typing.get_origin(hint) is tuple and inside[-1] is not ... else inside[:1] * len(result)
        for item, part in zip(result, hints, strict=True):
            yield from parts(item, part)
    elif isinstance(result, dict) and inside:
        for item in result.values():
            yield from parts(item, inside[-1])
    else:
        yield result, hint


def records(result: Any, hint: Any) -> Iterator[Any]:
    """Yield the dataclasses and named tuples of the package in a result."""
    for item, _ in parts(result, hint):
        if type(item).__module__.startswith(("attnmath.", "attnlab.")) and (
            dataclasses.is_dataclass(item) or hasattr(item, "_fields")
        ):
            yield item


def check_record(record: Any) -> None:
    """Raise an error unless the fields of a record have the shapes that its class says."""
    with jaxtyped("context"):
        for field, hint in typing.get_type_hints(type(record)).items():
            assert is_bearable(getattr(record, field), hint), (type(record).__name__, field, hint)


def check_library(result: Any, hint: Any, backend: str) -> None:
    """Raise an error unless what is annotated `Array` is of the library that the arguments came in."""
    for item, part in parts(result, hint):
        if any(array.array_type is Any for array in array_hints(part)):
            assert is_torch_array(item) == (backend == "torch"), part


def annotated(function: Callable[..., Any], hints: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a copy of a function with other annotations."""
    function = inspect.unwrap(function)
    assert isinstance(function, FunctionType)
    parts = function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    copy = FunctionType(*parts)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = dict(hints)
    return copy


def without_variable(hint: Any) -> Any:
    """Return a class in place of a named tuple of `Array`, unknown to beartype; `check_record` checks those."""
    origin = typing.get_origin(hint)
    named = inspect.isclass(origin) and issubclass(origin, tuple) and hasattr(origin, "_fields")
    return Annotated[tuple, IsInstance[origin]] if named else hint


def check(function: Callable[..., Any], given: Mapping[str, Any], backend: str = "numpy") -> None:
    """Call a function under jaxtyping's check, and check the parts of its result as well."""
    function = inspect.unwrap(function)  # what is around it takes whatever comes
    hints = typing.get_type_hints(function)
    given = {key: as_arrays(value, hints.get(key), backend) for key, value in given.items()}
    plain = {key: without_variable(hint) for key, hint in hints.items()}
    result = checked(annotated(function, plain) if plain != hints else function)(**given)
    if inspect.isgenerator(result):
        (each,) = typing.get_args(hints["return"])
        with jaxtyped("context"):
            assert all(is_bearable(value, hints[key]) for key, value in given.items())
            assert all(is_bearable(item, each) for item in result)
        return
    in_kind = any(array_hints(hints[key]) for key in given)
    if in_kind:
        check_library(result, hints["return"], backend)
    for record in records(result, hints["return"]):
        check_record(record)
        if in_kind and not isinstance(record, Estimate):
            for field, hint in typing.get_type_hints(type(record)).items():
                check_library(getattr(record, field), hint, backend)


CALLED = sorted(set(FUNCTIONS) - NOT_CALLED)


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@both_backends
@pytest.mark.parametrize("name", CALLED)
def test_a_signature_says_the_shapes_of_arguments_and_result(name: str, backend: str) -> None:
    check(FUNCTIONS[name], arguments(name), backend)


def test_every_function_is_called() -> None:
    assert set(FUNCTIONS) >= NOT_CALLED
    assert set(CHOSEN) <= set(NUMERIC)
    assert len(CALLED) > 130


def swapped(hint: Any) -> Any:
    """Return an annotation with its last two axes exchanged, or None where that changes nothing."""
    found = []
    for part in array_hints(hint):
        *front, a, b = ("", "", *part.dim_str.split())
        if a == b or any(axis in ("", "_", "...") or axis.startswith("*") for axis in (a, b)):
            return None
        found.append(part.dtype[part.array_type, " ".join([*front, b, a])])
    return typing.Union[tuple(found)] if found else None  # noqa: UP007 (so many, as there are)


def axes(hint: Any) -> set[str]:
    """Return the names of axes in an annotation and within it; a minimum tells nothing of their order."""
    found = set().union(*(axes(part) for part in typing.get_args(hint)))
    if inspect.isclass(hint) and issubclass(hint, AbstractArray):
        found |= set(re.findall(r"[A-Za-z_]\w*", re.sub(r"min\([^)]*\)", "", hint.dim_str)))
    return found


def mistakes() -> Iterator[tuple[str, str]]:
    """Yield each array in a signature two of whose axes occur elsewhere in it, or one: exchanging them is a mistake."""
    for name in CALLED:
        hints = typing.get_type_hints(FUNCTIONS[name])
        for key, hint in hints.items():
            others = set().union(*(axes(other) for which, other in hints.items() if which != key))
            if swapped(hint) is not None and (others & axes(hint) or "{" in str(hint)):
                yield name, key


MISTAKES = sorted(set(mistakes()))


@pytest.mark.parametrize("name, key", MISTAKES)
def test_a_signature_with_two_axes_exchanged_is_found(name: str, key: str) -> None:
    right = FUNCTIONS[name]
    hints = typing.get_type_hints(right)
    wrong = annotated(right, hints | {key: swapped(hints[key])})
    with pytest.raises((TypeCheckError, AssertionError)):
        check(wrong, arguments(name))


def test_many_mistakes_are_tried() -> None:
    assert len(MISTAKES) > 50
    assert {("attention.scores", key) for key in ("Q", "K", "return")} <= set(MISTAKES)


def test_a_wrong_shape_or_dtype_within_a_result_is_found() -> None:
    def of_two(x: Float[Array, "n d"]) -> tuple[Float[Array, "d"], Float[Array, "d"]]:
        return x[0], x[:, 0]

    def integers(x: Float[Array, "n d"]) -> Int[Array, "n d"]:
        return x

    def answers_in_numpy(x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        return np.asarray(x)

    for function in (of_two, integers):
        with pytest.raises((TypeCheckError, AssertionError)):
            check(function, {"x": rows(3, 2)})
    torch_or_skip()
    check(answers_in_numpy, {"x": rows(3, 2)})
    with pytest.raises(AssertionError):
        check(answers_in_numpy, {"x": rows(3, 2)}, "torch")


@pytest.mark.parametrize("wrong", [{"P": rows(5, 3)}, {"K": rows(3, 2)}, {"V": rows(5, 4).astype(int)}])
def test_a_wrong_field_of_a_record_is_found(wrong: dict[str, Any]) -> None:
    given = {"Q": rows(3, 2), "K": rows(5, 2), "V": rows(5, 4), "S": rows(3, 5), "P": rows(3, 5)}
    check_record(StageGradients(**given))
    with pytest.raises(AssertionError):
        check_record(StageGradients(**given | wrong))


def small_encoder() -> Encoder:
    rows_of_tables = dict.fromkeys(("word", "position", "token_type"), 5)
    shapes = Layout(2, 3, 6, 8, 1e-12, None, rows_of_tables, "").shapes()
    return Encoder(2, 3, 6, 1e-12, {name: rows(*filter(None, shape)) for name, shape in shapes.items()})


def test_methods_say_their_shapes() -> None:
    for heads in (load_heads("sentence"), load_pretrained()):
        check_record(heads)
        for method in (Heads.scores, Heads.weights):
            checked(method)(heads)
    decoders = load_decoders()
    check_record(decoders)
    for method in (Decoders.scores, Decoders.weights):
        checked(method)(decoders)
    check_record(small_encoder())
    checked(Encoder.queries_and_keys)(small_encoder(), np.asarray([1, 0, 4, 2]))


def test_a_decoder_says_its_shapes() -> None:
    parameters = {name.removeprefix("model."): array for name, array in llama_files.parameters().items()}
    model, ids = llama.Llama(llama_files.SIZES, parameters, adjacent=True), np.asarray([1, 0, 4, 2])
    check_record(model)
    found = checked(llama.Llama.run)(model, ids)
    check_record(found)
    assert checked(llama.bits)(found.logits, ids).shape == (3,)
    assert checked(llama.continuation)(model, ids, 2).shape == (2,)


def test_models_say_their_shapes() -> None:
    torch = torch_or_skip()
    from attnlab.heads import decoder
    from attnlab.recall import models

    def forward(module: Any, x: Any) -> Any:
        return checked(type(module).forward)(module, x)

    for attention, weigh in models.ATTENTIONS.items():
        recaller = models.Recaller(attention, 0.5, 4, 8, torch.Generator().manual_seed(0))
        forward(recaller, torch.asarray([[1, 64, 2, 65, 2, 1]]))
        x, a = forward(recaller.attention, torch.asarray(rows(2, 5, 8)).float())
        assert weigh(x, x, 0.5).shape == a.shape == (2, 5, 5)

    model = decoder.initial(decoder.Settings(0, layers=3, heads=2, width=8, context=6), 9)
    assert forward(model, torch.asarray([[1, 4, 2, 8, 2]] * 7)).shape == (7, 5, 9)
    forward(model.layers[0], torch.asarray(rows(7, 5, 8)).float())
    Q, _ = checked(type(model).queries_and_keys)(model, torch.asarray([1, 4, 2, 8, 2]))
    assert Q.shape == (3, 2, 5, 4)


def shapeless(hint: Any, *, tables: bool = False) -> bool:
    """Return whether an annotation says Any, or array without its axes, by itself or within."""
    if tables and hint == dict[str, Any]:
        return False
    origin = typing.get_origin(hint)
    if hint in (Any, Array, Numpy, np.ndarray) or origin is np.ndarray:
        return True
    if getattr(origin, "__module__", "").startswith("attnmath."):
        return False  # a record of arrays, whose fields say their shapes
    return any(shapeless(part, tables=tables) for part in typing.get_args(hint) if part is not ...)


def signatures() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the annotations of every public function, and of every public class its fields and methods."""
    for name, function in FUNCTIONS.items():
        yield name, typing.get_type_hints(function)
    for module in sorted({function.__module__ for function in FUNCTIONS.values()}):
        for name, kind in vars(sys.modules[module]).items():
            if inspect.isclass(kind) and kind.__module__ == module and not name.startswith("_"):
                name = f"{hostile.key(module)}.{name}"
                yield name, typing.get_type_hints(kind)
                for method, function in inspect.getmembers(kind, inspect.isfunction):
                    if not method.startswith("_") and function.__module__ == module:
                        yield f"{name}.{method}", typing.get_type_hints(function)


def test_no_array_is_without_its_shape() -> None:
    found = {(name, key) for name, hints in signatures() for key, hint in hints.items()
             if shapeless(hint, tables=name.startswith(TABLES))}  # fmt: skip
    assert found <= set(SHAPELESS)
    if "recall.training.run" in FUNCTIONS:  # torch, joblib and tqdm are optional
        assert found == set(SHAPELESS)


@pytest.mark.parametrize(
    "hint", [Any, Array, Numpy, np.ndarray, NDArray[Any], ArrayLike, ArrayLike[Array] | None, dict[str, Any]]
)
def test_an_array_without_its_shape_is_found(hint: Any) -> None:
    assert shapeless(hint)
    assert not shapeless(Float[ArrayLike[Array], "n d"] | None)


def test_the_package_imports_neither_torch_nor_the_checker() -> None:
    modules = ", ".join(hostile.MODULES.values())
    program = f"import {modules}, sys; print({{'torch', 'beartype'}} & {{*sys.modules}})"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "set()"
