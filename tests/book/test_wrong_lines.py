"""Of each exercise "find the wrong line" exactly one line fails the check of the engine: the one that is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import sympy as sp

import stamps
from chains import derivations
from linewise.derive import Derivation
from linewise.kernel.record import digest
from linewise.ledger.collate import derivations_of
from linewise.pages.wrong_lines import Exercise, exercises, is_fit, variants

NOTEBOOKS = stamps.notebooks([stamps.ROOT / "chapters"])


def failing(chain: Derivation, number: int) -> list[int]:
    """Return the lines that fail when a mistake stands for line `number`: each is held to the right line before it."""
    mistake = chain.lines[number - 1].mistake
    assert mistake
    found = []
    for k in range(2, len(chain.lines) + 1):
        line = replace(chain.lines[k - 1], value=mistake.line) if k == number else chain.lines[k - 1]
        if not chain.follows(chain.lines[k - 2].value, line):
            found.append(k)
    return found


def is_alone(chain: Derivation, number: int) -> bool:
    """Return whether the line below a mistake does not follow from the mistake: nothing else makes both right."""
    mistake = chain.lines[number - 1].mistake
    assert mistake
    return number == len(chain.lines) or not chain.follows(mistake.line, chain.lines[number])


def shows(exercise: Exercise, chain: Derivation) -> bool:
    """Return whether an exercise shows the lines of a derivation, and the mistake of the wrong one in its place."""
    expected = [line["plain"] for line in chain.record()["lines"]]
    mistake = chain.lines[exercise.wrong - 1].mistake
    if mistake is None or mistake.name != exercise.mistake:
        return False
    expected[exercise.wrong - 1] = str(mistake.line)
    return [line["plain"] for line in exercise.lines] == expected


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_exactly_one_line_of_an_exercise_fails(notebook: Path) -> None:
    chains = {digest(chain.record()): chain for chain in derivations(notebook)}
    wrong, tried = [], 0
    for record in derivations_of(notebook):
        for exercise in filter(is_fit, variants(record)):
            chain = chains[digest(record)]
            assert shows(exercise, chain)
            failed = failing(chain, exercise.wrong)
            if failed != [exercise.wrong] or not is_alone(chain, exercise.wrong):
                wrong.append(f"{exercise.name}, {exercise.mistake}: line {exercise.wrong}, and {failed} fail")
            tried += 1
    assert wrong == []
    assert tried == len(exercises(notebook))


def chain_of_three() -> Derivation:
    x = sp.Symbol("x", positive=True)
    chain = Derivation((x + 1) ** 2 - 1)
    chain.step(x**2 + 2 * x, because="expand", mistake=("no middle term", x**2))
    chain.step(x * (x + 2), because="take out $x$")
    return chain


def test_a_line_too_many_and_a_line_too_few_are_noticed() -> None:
    chain = chain_of_three()
    assert failing(chain, 2) == [2] and is_alone(chain, 2)
    [exercise] = variants(chain.record())
    assert shows(exercise, chain) and not shows(replace(exercise, wrong=3), chain)
    _, second, third = chain._lines
    chain._lines[2] = replace(third, value=third.value + 1)  # a second line is wrong
    assert failing(chain, 2) == [2, 3]
    chain._lines[1] = replace(second, mistake=replace(second.mistake, line=second.value))  # type: ignore[type-var]
    chain._lines[2] = third  # no line is wrong
    assert failing(chain, 2) == [] and not is_alone(chain, 2)
