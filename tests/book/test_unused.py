"""What the packages offer is used: by a chapter, a page, a command, the site or another module, not by tests alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stamps
from unused import unused


def test_every_public_function_is_named_outside_the_tests() -> None:
    assert unused(stamps.ROOT) == []


#: A small tree, in which the tests and nothing else name `forgotten`.
TREE = {
    "code/one/__init__.py": "from one.parts import forgotten, named_in_a_cell\n__all__ = ['forgotten']\n",
    "code/one/parts.py": """
def forgotten(): return for_the_forgotten()
def for_the_forgotten(): ...
def named_in_a_cell(): return _private()
def _private(): return by_a_private_function()
def by_a_private_function(): ...
def on_a_page(): ...
def by_its_text(): ...
class OfAStatement: ...
ALL = [OfAStatement]
""",
    "code/one/__main__.py": "def main(): ...\nif __name__ == '__main__':\n    main()\n",
    "code/two/__init__.py": "",
    "code/two/parts.py": "import one.parts as first\n\ndef used(name='by_its_text'): return getattr(first, name)\n",
    "_ext/site.py": "from two import parts\nforgotten = parts.used()\nforgotten.forgotten = parts\n",
    "README.md": "Call `one.parts.on_a_page()`; what is forgotten is in no code.\n",
    "tests/test_one.py": "from one.parts import forgotten\n",
}
CELL = "%matplotlib inline\nfrom one import parts\nparts.named_in_a_cell()"


def planted(folder: Path, changes: dict[str, str], cell: str = CELL) -> Path:
    """Return a folder with the small tree, some of its files in another form."""
    notebook = {"cells": [{"cell_type": "code", "source": [cell]}, {"cell_type": "markdown", "source": "forgotten"}]}
    for name, text in (TREE | changes | {"chapters/one.ipynb": json.dumps(notebook)}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_function_that_tests_alone_name_is_found_with_what_it_alone_uses(tmp_path: Path) -> None:
    assert unused(planted(tmp_path, {})) == ["one.parts.forgotten", "one.parts.for_the_forgotten"]


@pytest.mark.parametrize(
    ("changes", "cell", "found"),
    [
        ({"README.md": "`forgotten`"}, CELL, ["one.parts.on_a_page"]),
        ({"tools/a.py": "from one import forgotten"}, CELL, []),
        ({"code/two/parts.py": "import one\n\none.parts.forgotten()"}, CELL, ["one.parts.by_its_text"]),
        ({"_ext/site.py": "from one.parts import forgotten"}, CELL, ["two.parts.used"]),
        ({"tools/a.py": "from two.parts import forgotten"}, CELL,
         ["one.parts.forgotten", "one.parts.for_the_forgotten"]),
        ({}, "import one.parts\none.parts.forgotten()",
         ["one.parts.named_in_a_cell", "one.parts.by_a_private_function"]),
    ],
)  # fmt: skip
def test_each_place_counts_and_counts_for_its_module_alone(
    changes: dict[str, str], cell: str, found: list[str], tmp_path: Path
) -> None:
    assert unused(planted(tmp_path, changes, cell)) == found
