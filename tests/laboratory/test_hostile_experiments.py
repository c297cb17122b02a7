"""Experiments, recall and translation under hostile arguments: an error that names the argument, or a result.

Every public function is found by inspection and called with one hostile argument at a time, the others ordinary.
"""

from __future__ import annotations

from pathlib import Path

import hostile as numeric
import pytest
from hostile_calls import ELSEWHERE, LEFT_OUT, MEASURING, OTHERS, fault, hostile, parameters_of

import attnlab


def test_every_public_function_has_ordinary_arguments() -> None:
    assert set(MEASURING) <= set(OTHERS) | set(LEFT_OUT)
    if "recall.training.run" in MEASURING:  # torch, joblib and tqdm are optional
        assert set(MEASURING) == set(OTHERS) | set(LEFT_OUT)
    for name in MEASURING.keys() & OTHERS.keys():
        assert parameters_of(MEASURING[name]) == set(OTHERS[name]), name


def test_what_is_tried_elsewhere_is_there() -> None:
    names = {name.removeprefix("attnlab.") for name in numeric.modules_of(attnlab)}
    assert set(ELSEWHERE) | set(numeric.LABORATORY) <= names
    assert all(Path(__file__).with_name(f"{test}.py").is_file() for test in ELSEWHERE.values())


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_an_experiment_names_what_it_cannot_use(name: str) -> None:
    if name not in MEASURING:  # torch, joblib and tqdm are optional
        pytest.importorskip("torch", reason="install attention-checked[train]")
        pytest.importorskip("joblib", reason="install attention-checked[train]")
        pytest.fail(f"no such function: {name}")
    function, ordinary = MEASURING[name], OTHERS[name]
    function(**ordinary)
    faults = []
    for key, value in ordinary.items():
        for label, bad in hostile(value):
            wrong = fault(lambda key=key, bad=bad: function(**ordinary | {key: bad}), list(ordinary))
            faults += [f"{key} = {label}: {wrong}"] if wrong else []
    assert faults == []
