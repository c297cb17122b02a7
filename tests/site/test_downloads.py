"""What the download buttons give: notebooks that say what to install, and that read and run without the site."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from pybtex.database import BibliographyData, Entry, Person

sys.path.insert(0, str(ROOT / "_ext"))

from pages import plain_notebooks as plain

from linewise.derive import display
from linewise.ledger import card

REPOSITORY = "https://example.org/me/book"
WORKS = BibliographyData(
    {
        "two1999": Entry("book", {"title": "T", "year": "1999", "publisher": "P"},
                         {"author": [Person("One, A"), Person("Two, B")]}),
        "many2020": Entry("book", {"title": "M", "year": "2020", "publisher": "P"},
                          {"author": [Person("Many, A"), Person("B, B"), Person("C, C")]}),
    }
)  # fmt: skip
PAGE = plain.Page("chapters/part/x", REPOSITORY, "main", {"fig-a": "Fig. 3", "theorem-a": "Theorem 2"}, WORKS)


def faults(notebook: dict[str, Any]) -> list[str]:
    """Return what a downloaded notebook lacks, or holds although plain Jupyter cannot show or find it."""
    said, installs, *rest = notebook["cells"]
    command = re.search(r"^pip install (.*)$", plain.source_of(said), re.M)
    found = []
    if not command or f"%pip install --quiet {command[1]}" not in plain.source_of(installs):
        found.append("no first cells that say what to install, and install it")
    for name in re.findall(
        r"^(?:import|from) (torch|joblib|tqdm|safetensors|tokenizers)", "\n".join(map(plain.source_of, rest)), re.M
    ):
        if f'"{name}"' not in plain.source_of(installs):
            found.append(f"imports {name}, and does not ask for it")
    for text in (plain.source_of(cell) for cell in rest if cell["cell_type"] == "markdown"):
        found += re.findall(r"^[`:]{3,}\{.*|\{[\w:-]+\}`[^`]*`|\0", text, re.M)
        found += re.findall(r"\]\((?!https?://)[^)]*\)", text)
    return found


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    return {"cells": [{"cell_type": "markdown", "id": "t", "metadata": {}, "source": "# Title"}, *cells]}


def test_every_chapter_of_the_site_can_be_downloaded_and_read(site: Path) -> None:
    downloads = sorted((site / "_sources").rglob("*.ipynb"))
    pages = {path.relative_to(site).with_suffix("") for path in (site / "chapters").rglob("*.html")}
    assert {path.relative_to(site / "_sources").with_suffix("") for path in downloads} >= {*pages, Path("guide/reuse")}
    ids: dict[str, list[str]] = {}
    for path in downloads:
        copy = json.loads(path.read_text(encoding="utf-8"))
        assert faults(copy) == [], path.name
        ids[path.name] = [cell["id"] for cell in copy["cells"]]
        ast.parse(re.sub(r"%pip.*", "pass", plain.source_of(copy["cells"][1])))
    assert not [name for name, found in ids.items() if len(found) != len(set(found))], "ids that occur twice"


def test_the_notebooks_of_the_repository_would_be_faulty() -> None:
    raw = json.loads((ROOT / "chapters" / "operator" / "scaling.ipynb").read_text(encoding="utf-8"))
    found = faults(raw)
    assert found[0].startswith("no first cells") and "{numref}`fig-cosine-density`" in found
    assert faults(plain.plain_notebook(notebook(), PAGE, "attnmath @ git+x", ("attnmath",))) == []
    forgetful = notebook(plain.code_cell("import torch", "c"))
    assert faults(plain.plain_notebook(forgetful, PAGE, "attnmath", ("attnmath",))) == [
        "imports torch, and does not ask for it"
    ]


def test_a_download_folds_what_the_site_folds_and_keeps_its_records() -> None:
    raw = json.loads((ROOT / "chapters" / "operator" / "scaling.ipynb").read_text(encoding="utf-8"))
    given = [cell for cell in raw["cells"] if cell["cell_type"] == "code"]
    copy = plain.plain_notebook(notebook(*given), PAGE, "attnmath @ git+x", ("attnmath",))
    code = [cell for cell in copy["cells"] if cell["cell_type"] == "code"]
    folded = [cell["metadata"].get("jupyter") == {"source_hidden": True} for cell in code]
    assert folded == ["hide-input" in cell["metadata"].get("tags", []) for cell in code] and any(folded)
    kinds = {kind for cell in code for output in cell["outputs"] for kind in output.get("data", {})}
    assert {card.MIME, display.MIME} <= kinds


@pytest.mark.parametrize(
    ("myst", "expected"),
    [
        ("{cite:t}`two1999` and {cite:p}`many2020`", "One and Two (1999) and (Many et al., 2020)"),
        ("see {numref}`fig-a`, {prf:ref}`theorem-a` and {ref}`here <there>`", "see Fig. 3, Theorem 2 and here"),
        ("[next](../other/y.ipynb#z), [(5.1.5)](#equation-5.1.5)",
         f"[next]({REPOSITORY}/blob/main/chapters/other/y.ipynb), (5.1.5)"),
        ("````{prf:theorem} Name\n:label: theorem-a\n\nBody.\n````",
         "> **Theorem 2 (Name).** Body.\n"),
        ("```{note}\n$$\nx\n$$\n```", "<blockquote>\n\n**Note.** $$\nx\n$$\n\n</blockquote>\n"),
        ("````{exercise}\n:label: e\n\nDo.\n\n```{hint}\n:class: dropdown\nThink.\n```\n````",
         "### Exercise\n\nDo.\n\n<details>\n<summary>Hint</summary>\n\nThink.\n\n</details>\n\n"),
        ("$$\n\\sqrt[3]{x}\n$$\n\n```python\nx\n```", "$$\n\\sqrt[3]{x}\n$$\n\n```python\nx\n```"),
    ],
)  # fmt: skip
def test_what_only_the_site_can_show_becomes_plain(myst: str, expected: str) -> None:
    assert plain.plain_text(myst, PAGE) == expected


def test_solutions_are_cells_that_are_folded_and_captions_stay() -> None:
    gated = "````{exercise}\nA\n````\n\n````{solution-start} a\n:class: dropdown\n````\n\nIt is 2."
    end = "````{solution-end}\n````\n\nA remark.\n\n## References\n\n```{chapter-references}\n```\n\n{cite:t}`two1999`"
    drawn = plain.code_cell("draw()", "d") | {"metadata": {"mystnb": {"figure": {"caption": "C", "name": "fig-a"}}}}
    made = plain.plain_notebook(
        notebook(plain.markdown_cell(gated, "g"), plain.code_cell("1 + 1", "c"), plain.markdown_cell(end, "e"), drawn),
        PAGE, "attnmath", ("attnmath",),
    )["cells"][3:]  # fmt: skip
    assert [(c["id"], c["metadata"].get("jp-MarkdownHeadingCollapsed", False)) for c in made] == [
        ("g", False), ("g-1-heading", True), ("g-1", False), ("c", False), ("e-1", False), ("d", False),
        ("d-caption", False),
    ]  # fmt: skip
    assert [made[1]["source"], made[2]["source"]] == ["#### Solution", "It is 2."]
    assert made[4]["source"].startswith("### Exercises, continued\n\nA remark.\n\n## References\n\n* A One and B Two")
    assert made[6]["source"] == "**Fig. 3.** C"


def test_what_a_notebook_needs_is_found_through_the_package(tmp_path: Path) -> None:
    package = tmp_path / "attnmath"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "deep.py").write_text("from attnmath import deeper\n", encoding="utf-8")
    (package / "deeper.py").write_text("import torch\ndef f():\n    import joblib\n", encoding="utf-8")
    assert plain.needs(notebook(plain.code_cell("from attnmath import deep", "c")), tmp_path) == {"torch"}
    assert plain.needs(notebook(plain.code_cell("import attnmath", "c")), tmp_path) == set()
    extras = {"torch": ["torch>=2"], "train": ["joblib>=1", "torch>=2"], "model": ["tokenizers"]}
    assert plain.extras_for({"joblib", "os"}, extras) == ["train"]
    assert plain.extras_for({"joblib", "torch"}, extras) == ["train"], "one where one is enough"
    assert plain.extras_for({"tokenizers", "torch"}, extras) == ["model", "torch"], "and the smaller one"
    assert plain.extras_for({"os"}, extras) == []
