"""A second opinion on the book: its derivations are evaluated in models of what they assume."""

from __future__ import annotations

from pathlib import Path

import pytest

import stamps
from chains import derivations
from linewise.recheck import check
from models import LARGER, NOT_EVALUABLE, UNSEEN

NOTEBOOKS = stamps.notebooks([stamps.ROOT / "chapters"])


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_models_confirm_every_derivation(notebook: Path) -> None:
    found = [(chain.name, check(chain)) for chain in derivations(notebook)]
    assert found, "a chapter without a derivation"
    wrong = [(name, str(told)) for name, told in found if told.kind in ("differs", "no model")]
    assert wrong == []
    silent = {(notebook.stem, name) for name, told in found if told.kind == "not evaluable"}
    assert silent == {key for key in NOT_EVALUABLE if key[0] == notebook.stem}
    unseen = {(notebook.stem, name) for _, told in found for name in told.unseen}
    assert unseen == {key for key in UNSEEN if key[0] == notebook.stem}
    larger = {(notebook.stem, name, size) for name, told in found for size in told.larger}
    assert larger == {key for key in LARGER if key[0] == notebook.stem}


def test_what_is_listed_has_a_reason_and_a_notebook() -> None:
    stems = {notebook.stem for notebook in NOTEBOOKS}
    assert all(
        stem in stems and reason for listed in (NOT_EVALUABLE, UNSEEN, LARGER) for (stem, *_), reason in listed.items()
    )
