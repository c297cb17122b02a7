"""No program of any template ends in a false line, and none that is true is refused."""

from __future__ import annotations

from collections import Counter

import pytest
from attack_templates import TEMPLATES, programs


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.__name__)
def test_a_program_is_accepted_if_and_only_if_its_line_is_true(template) -> None:
    wrong, kinds = [], Counter()
    for program in template():
        try:
            program.run()
            accepted = True
        except (AssertionError, ValueError, TypeError) as refused:
            accepted = False
            assert "exact sympy" not in str(refused), program.name
        kinds[program.true] += 1
        if accepted != program.true:
            wrong.append(f"{'accepted' if accepted else 'refused'}: {program.name}")
    assert wrong == []
    assert kinds[False], "a template without a false program"


def test_there_are_enough_programs() -> None:
    truths = Counter(program.true for program in programs())
    assert truths.total() > 2000 and truths[False] > 1200 and truths[True] > 700
    assert len({program.name for program in programs()}) > 1900
