"""Drawing functions under hostile arguments: an error that names the argument, or a picture.

Every public function is found by inspection and called with one hostile argument at a time, the others ordinary.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import matplotlib.pyplot as plt
import pytest
from hostile_calls import DRAWING, FIGURES, HOSTILE, fault, hostile, parameters_of
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import attnmath.figures


def drawn(function: Callable[..., Any], ordinary: Mapping[str, Any], name: str, value: Any, ax: Axes) -> str | None:
    """What is wrong with a drawing function that is given a hostile value under one name."""
    before = len(ax.get_children()), ax.get_xscale(), ax.get_xlabel(), ax.get_title()

    def call() -> None:
        function(**ordinary | {"ax": ax} | {name: value})
        for axis in (ax.xaxis, ax.yaxis):  # where ticks go shows what is out of range; their text only takes time
            axis.get_majorticklocs(), axis.get_minorticklocs()
            axis.set_visible(False)
        ax.figure.draw_without_rendering()

    def untouched() -> bool:
        return (len(ax.get_children()), ax.get_xscale(), ax.get_xlabel(), ax.get_title()) == before

    return fault(call, [*ordinary, "ax"], untouched)


def touched(ax: Axes) -> bool:
    return ax.has_data() or bool(ax.texts or ax.images or ax.get_legend() or ax.get_xlabel() or ax.get_ylabel())


def drawing_faults(function: Callable[..., Any], ordinary: Mapping[str, Any]) -> list[str]:
    found, ax = [], Figure().add_subplot()
    for name, value in (*ordinary.items(), ("ax", ax)):
        for label, bad in hostile(value):
            if name == "ax" and bad is None:
                continue
            wrong = drawn(function, ordinary, name, bad, ax)
            if wrong:
                found.append(f"{name} = {label}: {wrong}")
            if touched(ax) or wrong:
                ax = Figure().add_subplot()
    return found


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


def test_every_public_function_has_ordinary_arguments() -> None:
    assert {name: parameters_of(function) for name, function in DRAWING.items()} == {
        name: set(ordinary) for name, ordinary in FIGURES.items()
    }
    assert {f.__name__ for f in DRAWING.values()} >= set(attnmath.figures.__all__)


@pytest.mark.parametrize("name", [name for name in FIGURES if "ax" in inspect.signature(DRAWING[name]).parameters])
def test_a_drawing_function_names_what_it_cannot_draw(name: str) -> None:
    function, ordinary = DRAWING[name], FIGURES[name]
    _, ax = plt.subplots()
    assert function(**ordinary, ax=ax) is ax and touched(ax)
    assert function(**ordinary).figure is not ax.figure
    assert drawing_faults(function, ordinary) == []
    with pytest.raises(TypeError, match="colour"):
        function(**ordinary, colour="red")
    removed = plt.figure().add_subplot()
    removed.remove()
    with pytest.raises(ValueError, match="ax: expected .* removed"):
        function(**ordinary, ax=removed)
    count = len(plt.get_fignums())
    with pytest.raises((TypeError, ValueError)):
        function(**dict.fromkeys(ordinary))
    assert len(plt.get_fignums()) == count, "an error leaves no new figure behind"


@pytest.mark.parametrize("name", ["letter_panels", "ordered_colours", "show", "encode"])
def test_the_other_functions_of_figures_name_what_they_cannot_use(name: str) -> None:
    function = next(f for key, f in DRAWING.items() if key.endswith(f".{name}"))
    (first, *_) = inspect.signature(function).parameters
    more = ("png",) if name == "encode" else ()
    known = ("3",) if name == "ordered_colours" else ()
    for label, value in HOSTILE.items():
        assert fault(lambda value=value: function(value, *more), [first]) is None, label
        if label not in known:
            with pytest.raises((TypeError, ValueError)):
                function(value, *more)


def test_no_panel_is_left_without_a_letter() -> None:
    with pytest.raises(ValueError, match="panels: expected 1 to 26 Axes, got 0"):
        attnmath.figures.letter_panels()
    _, panels = plt.subplots(9)
    attnmath.figures.letter_panels(*panels)
    assert panels[-1].get_title(loc="left") == "i"
    with pytest.raises(TypeError, match=r"panels\[0\]: expected a matplotlib Axes, got ndarray"):
        attnmath.figures.letter_panels(panels)


def test_what_is_obscure_or_draws_too_early_is_found() -> None:
    def obscure(x: Any, ax: Axes) -> None:
        ax.plot(x, [1, 2])

    def early(x: Any, ax: Axes) -> None:
        ax.set_xscale("log")
        if not isinstance(x, list):
            raise TypeError("x: expected a list")

    def warns(x: Any, ax: Axes) -> None:
        ax.legend()

    found = {f.__name__: drawing_faults(f, {"x": [1.0, 2.0]}) for f in (obscure, early, warns)}
    assert any("x = three: obscure: ValueError: x and y" in line for line in found["obscure"])
    assert any("ax = None" not in line and "ax = 3: obscure: AttributeError" in line for line in found["obscure"])
    assert any("draws before it checks: x: expected a list" in line for line in found["early"])
    assert any("obscure: UserWarning" in line for line in found["warns"])
