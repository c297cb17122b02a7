"""Types that a user sees: mypy runs on a program that calls every public function, and is asked what comes out."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hostile
import pytest

ROOT = Path(__file__).parents[2]
HAS_TORCH = importlib.util.find_spec("torch") is not None

NUMPY = re.compile(r"numpy\.ndarray\[tuple\[[^]]*\], numpy\.dtype\[[^][]*(?:\[[^]]*\])?\]\]")


def mypy(program: str, directory: Path) -> list[str]:
    """Return what mypy says of a user's program: an option is strict, and none is the project's own."""
    (directory / "program.py").write_text(program, encoding="utf-8")
    options = [
        "--strict",
        "--config-file=",
        "--no-error-summary",
        "--ignore-missing-imports",
        "--follow-imports=silent",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, f"--cache-dir={ROOT / '.mypy_cache' / 'user'}", "program.py"],
        capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(ROOT / "code")}, cwd=directory, check=False,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def revealed(program: str, directory: Path) -> dict[int, str]:
    """Return the types that mypy reveals, by line, and raise an error if it has an objection."""
    said = mypy(program, directory)
    found = [re.fullmatch(r'program\.py:(\d+): note: Revealed type is "(.*)"', line) for line in said]
    assert all(found), [line for line, match in zip(said, found, strict=True) if not match]
    return {int(match[1]): kinds(match[2]) for match in found if match}


def kinds(text: str) -> str:
    """Return a type as mypy reveals it with short names.

    >>> kinds("tuple[numpy.ndarray[tuple[Any, ...], numpy.dtype[Any]], builtins.int]")
    'tuple[numpy, int]'
    """
    text = NUMPY.sub("numpy", text).replace("torch._tensor.Tensor", "torch")
    return re.sub(r"\b(?:builtins|(?:attnmath|attnlab)(?:\.[a-z_]+)*)\.", "", text)


# --- a user's program --------------------------------------------------------------------------

USER = """
import numpy as np
from attnmath.operator.attention import attention, attention_weights, causal_mask, entropy, padding_mask, softmax
from attnmath.encoder_decoder.bidirectional import at_equal_scores
from attnmath.operator.cost import attention_operations, dot_operations
from attnmath.estimate import mean
from attnmath.linear_cost.feature_maps import taylor_features
from attnmath.operator.gradients import attention_gradients, stack_gradients
from attnmath.linear_cost.kernels import kernel_weights, linear_attention
from attnmath.operator.online import merge, summarise
from attnmath.linear_cost.random_features.performer import performer_attention
from attnmath.linear_cost.random_features.maps import positive
from attnmath.matrix.rank import stable_rank
from attnmath.matrix.spectrum import norm_bounds, singular_values

x = np.ones((3, 2))
whole = np.arange(6).reshape(3, 2)
single = x.astype(np.float32)
rows = [[1.0, 2.0], [3.0, 4.0]]

reveal_type(attention_weights(x, x))  # numpy
reveal_type(attention_weights(x, single, mask=causal_mask(3)))  # numpy
reveal_type(attention_weights(rows, rows, mask=[[True, True]]))  # numpy
reveal_type(attention(x, whole, rows))  # numpy
reveal_type(softmax(whole))  # numpy
reveal_type(softmax((1, 2)))  # numpy
reveal_type(softmax([x, x]))  # numpy
reveal_type(entropy(x)[0])  # Any
reveal_type(causal_mask(3))  # numpy
reveal_type(causal_mask(3, like=x))  # numpy
reveal_type(padding_mask([1, 2], 3))  # numpy
reveal_type(at_equal_scores(rows).causal)  # numpy
reveal_type(attention_gradients(x, x, x, x, x).W_Q)  # numpy
reveal_type(stack_gradients(x, [(x, x, x)], x)[0].X)  # numpy
reveal_type(merge(summarise(x, x), summarise(rows, rows)).o)  # numpy
reveal_type(linear_attention(x, x, x, np.exp))  # numpy
reveal_type(kernel_weights(rows, rows, lambda a: taylor_features(a, 2)))  # numpy
reveal_type(performer_attention(x, x, x, positive(rows)))  # numpy
reveal_type(norm_bounds(x))  # tuple[numpy, numpy]
reveal_type(stable_rank(x))  # numpy
reveal_type(mean(rows).value)  # numpy | float
reveal_type(positive(rows).queries(x).values)  # numpy
reveal_type(dot_operations(200))  # int
reveal_type(dot_operations(np.arange(1, 4)))  # numpy
reveal_type(attention_operations(3, np.int64(2), 2))  # dict[str, int]
reveal_type(attention_operations(np.arange(1, 4), 2, 2))  # dict[str, numpy | int]
"""
USER_WITH_TORCH = """
import torch

t = torch.ones(3, 2)
weight = torch.nn.Parameter(t)
reveal_type(attention_weights(t, t))  # torch
reveal_type(attention_weights(t, t, mask=causal_mask(3)))  # torch
reveal_type(attention_weights(weight, t, scale=0.5))  # torch
reveal_type(softmax(softmax(t)))  # torch
reveal_type(softmax(t).requires_grad)  # bool
reveal_type(causal_mask(3, like=t))  # torch
reveal_type(at_equal_scores(t).causal)  # torch
reveal_type(attention_gradients(t, t, t, t, t).W_Q)  # torch
reveal_type(stack_gradients(t, [(t, t, t)], t)[0].X)  # torch
reveal_type(merge(summarise(t, t), summarise(t, t)).o)  # torch
reveal_type(linear_attention(t, t, t, torch.exp))  # torch
reveal_type(positive(rows).queries(t).values)  # torch
reveal_type(performer_attention(t, t, t, positive(x)))  # torch
reveal_type(norm_bounds(t))  # tuple[torch, torch]
reveal_type(stable_rank(singular_values(t)))  # numpy
"""


NO_ARRAYS = ("{1.0: 2.0}", "None", "len", "{1.0}", "object()")


def wrong_lines(program: str, said: Mapping[int, str]) -> list[str]:
    """Return the lines of a program that say another type in their comment than mypy reveals."""
    expected = {k: line for k, line in enumerate(program.split("\n"), 1) if line.startswith("reveal_type")}
    assert set(expected) == set(said)
    return [f"{line}: {said[k]}" for k, line in expected.items() if line.split("  # ")[1] != said[k]]


def test_a_users_program_sees_the_library_of_its_arrays(tmp_path: Path) -> None:
    program = USER + (USER_WITH_TORCH if HAS_TORCH else "")
    said = revealed(program, tmp_path)
    assert wrong_lines(program, said) == []
    assert len(wrong_lines(program.replace("# numpy\n", "# torch\n"), said)) > 10


def test_mypy_objects_to_what_is_no_array(tmp_path: Path) -> None:
    program = ["from attnmath.operator.attention import softmax", "from attnmath.operator.cost import dot_operations"]
    program += [*(f"softmax({what})" for what in NO_ARRAYS), "dot_operations(1.5)"]
    said = mypy("\n".join(program), tmp_path)
    lines = {int(line.split(":")[1]) for line in said if ": error: " in line}
    assert lines == set(range(3, len(program) + 1)), said


# --- every public function ---------------------------------------------------------------------

#: Why a result is Any where it is: a whole function, or a field of a class.
REASONS: dict[str, str] = {
    "attnlab.experiments.sparsity_benchmark.exact": "a number of mpmath, which has no types",
    "attnlab.experiments.sparsity_benchmark.load_table": "a row of a table has numbers and words",
}
#: What decides the library of a result, in each kind.
GIVEN = {"numpy": "numpy_array", "list": "[[1.0, 2.0]]", "torch": "tensor"}
if not HAS_TORCH:
    del GIVEN["torch"]
#: Arguments that hold arrays, and are none themselves.
HOLDERS = {
    "layers": "[({0}, {0}, {0})]",
    **dict.fromkeys(("first", "second"), "attnmath.operator.online.summarise({0}, {0})"),
}
HEAD = """from typing import Any, cast
import numpy as np
numpy_array = np.ones((2, 2))
anything: Any = None
"""


def decides(annotation: Any) -> bool:
    """Return whether an argument has a say in the library of the result."""
    return "[Array]" in str(annotation)


def call(name: str, function: Callable[..., Any], array: str) -> str:
    """Return a call with arrays of one kind; of the other arguments, those without a default are anything."""
    given = {}
    for key, parameter in inspect.signature(function).parameters.items():
        if decides(parameter.annotation):
            given[key] = HOLDERS.get(key, "{0}").format(array)
        elif "[Size]" in str(parameter.annotation):
            given[key] = "3"
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
            given[key] = "anything"
    return f"{name}({', '.join(f'{key}={value}' for key, value in given.items())})"


def members(kind: type) -> list[str]:
    """Return the public fields, properties and methods that a class has of its own."""
    names = {*vars(kind).get("__annotations__", {}), *vars(kind)}
    return sorted(name for name in names if not name.startswith("_"))


def questions(functions: Mapping[str, Callable[..., Any]]) -> dict[tuple[str, str], str]:
    """Return what to ask mypy of each function, with each kind of array, and of each member of a class beside them."""
    asked = {}
    for name, function in functions.items():
        in_kind = any(decides(p.annotation) for p in inspect.signature(function).parameters.values())
        for kind in GIVEN if in_kind else ["numpy"]:
            asked[name, kind] = call(name, function, GIVEN[kind])
    for module in sorted({function.__module__ for function in functions.values()}):
        for key, value in vars(sys.modules[module]).items():
            if inspect.isclass(value) and value.__module__ == module and not key.startswith("_"):
                for member in members(value):
                    asked[f"{module}.{key}.{member}", "numpy"] = f"cast({module}.{key}, anything).{member}"
    return asked


def faults(functions: Mapping[str, Callable[..., Any]], directory: Path) -> dict[str, str]:
    """Return the functions whose result is Any, or of another library than their arguments, with what mypy reveals."""
    asked = questions(functions)
    modules = sorted({function.__module__ for function in functions.values()})
    lines = [*HEAD.splitlines(), *(f"import {module}" for module in modules)]
    lines += ["import torch", "tensor = torch.ones(2, 2)"] if HAS_TORCH else []
    first = len(lines) + 1
    said = revealed("\n".join([*lines, *(f"reveal_type({question})" for question in asked.values())]), directory)
    found = {}
    for (name, kind), text in zip(asked, (said[k] for k in range(first, first + len(asked))), strict=True):
        result = text.rpartition(" -> ")[2] if " -> " in text or not text.startswith("def ") else "None"
        other = "numpy" if kind == "torch" else "torch"
        if "Any" in result or "Never" in result or other in result:
            found[name] = result
    return found


def test_no_result_is_any_or_of_another_library(tmp_path: Path) -> None:
    functions = {f"{one.__module__}.{one.__name__}": one for one in hostile.public_functions().values()}
    found = faults(functions, tmp_path)
    assert set(found) == set(REASONS), found


SPOILT = """from __future__ import annotations
from typing import Any
from jaxtyping import Float, Real
from attnmath.arrays import AnyArray, Array, ArrayLike, Numpy, Size, SizeLike

def right(x: Real[ArrayLike[Array], "n"]) -> Float[Array, "n"]: ...
def untyped(x: Real[ArrayLike[Array], "n"]) -> Float[AnyArray, "n"]: ...
def of_numpy(x: Real[ArrayLike[Array], "n"]) -> tuple[Float[Array, "n"], Float[Numpy, "n"]]: ...
def untyped_size(n: SizeLike[Size]) -> dict[str, Any]: ...
class Record:
    right: Float[Numpy, "n"]
    untyped: Float[AnyArray, "n"]
    def method(self, x: Any) -> list[Any]: ...
"""


def test_a_spoilt_annotation_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spoilt.py").write_text(SPOILT, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("spoilt")
    monkeypatch.setitem(sys.modules, "spoilt", sys.modules.pop("spoilt"))  # it goes when the test is over
    functions = {f"spoilt.{name}": value for name, value in vars(module).items() if inspect.isfunction(value)}
    wrong = {"untyped", "untyped_size", "Record.untyped", "Record.method"} | ({"of_numpy"} if HAS_TORCH else set())
    assert set(faults(functions, tmp_path)) == {f"spoilt.{name}" for name in wrong}
