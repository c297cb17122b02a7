"""The pictures of pages say what one sees, links lead where their text says, and the README's numbers are right."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from pybtex.database import parse_file

import bench
import stamps
from attnlab.recall.sweep import grid as recall_models
from attnlab.translation.sweep import grid as translation_models
from attnmath.linear_cost.random_features import orthogonal, variance
from page_rules import LINK, Contents, beside, dead_paths, mistimed, pictures, poor_pictures
from prose_numbers import COUNT, COUNTED, wrong_counts

WRITTEN = ("*.md", "guide/*.md", "read/*.md")
PAGES = [*(page for pattern in WRITTEN for page in sorted(stamps.ROOT.glob(pattern))), *stamps.notebooks()]
README = stamps.ROOT / "README.md"


def prose(page: Path) -> str:
    """Return what a page says: its text, or that of a notebook's markdown cells."""
    if page.suffix != ".ipynb":
        return page.read_text(encoding="utf-8")
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pictures_say_what_one_sees(page: Path) -> None:
    assert poor_pictures(prose(page), page.parent) == []


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_that_a_page_names_are_there(page: str) -> None:
    assert dead_paths(prose(stamps.ROOT / page), stamps.ROOT) == []


@pytest.mark.parametrize("path", ["`tools/gone.py`", "`gone/sub/`", "[the tools](tools/gone.md)", "`code/gone/`"])
def test_a_path_that_is_not_there_is_noticed(path: str) -> None:
    assert dead_paths(f"See {path} and `tools/stamps.py`.", stamps.ROOT) == [path.strip("`").split("](")[-1].strip(")")]


def test_commands_that_a_page_names_are_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (stamps.ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        named = re.findall(r"(?:`|^)make ([a-z]+)", prose(stamps.ROOT / page), re.MULTILINE)
        assert named
        assert set(named) <= targets


def test_the_readme_has_a_picture() -> None:
    assert [source for source, _ in pictures(prose(README))] == ["figures/fig_softmax_saturation.png"]


@pytest.mark.parametrize("alt", ["", "A plot.", "fig_softmax_saturation.png_fig_softmax_saturation"])
def test_the_readmes_picture_without_alt_text_is_noticed(alt: str) -> None:
    spoilt = re.sub(r"!\[[^\]]*\]", f"![{alt}]", prose(README))
    assert poor_pictures(spoilt, README.parent) == [
        f"figures/fig_softmax_saturation.png: the alt text is no sentence: {alt!r}"
    ]


GOOD = "A line that rises from zero to six over fifty steps."


@pytest.mark.parametrize(
    ("picture", "good"),
    [
        (f"![{GOOD}](README.md)", True),
        (f"```{{figure}} README.md\n:name: fig-a\n:alt: {GOOD}\nA line.\n```", True),
        (f"<img src='README.md' alt='{GOOD}'>", True),
        ("![](README.md)", False),
        ("```{figure} README.md\n:name: fig-a\nA line.\n```", False),
        (":::{image} README.md\n:::", False),
        ("<img src='README.md'>", False),
        (f"![{GOOD}](no_such_file.png)", False),
        (f"![{GOOD}](https://a.invalid/b.png)", False),
        (f"![{GOOD}](//a.invalid/b.png)", False),
    ],
)
def test_a_poor_picture_is_noticed(picture: str, good: bool) -> None:
    assert (poor_pictures(f"# A page\n\n{picture}\n", stamps.ROOT) == []) is good


# --- links ---------------------------------------------------------------------------------------

#: Where a link leads whose text has no word of the page: what "it" is, and names that two pages share.
KNOWN = {
    "README: 中文说明": "README.zh-CN.md",
    "README.zh-CN: English": "README.md",
    "MIT": "LICENSE",
    "CC BY 4.0": "LICENSE-TEXT",
    "a second book": "examples/least_squares/README.md",
    "examples/least_squares": "examples/least_squares/README.md",
    "intro: what they are": "guide/sources.md",
    "intro: 文章": "read/article.md",
    "intro: 报告": "read/report.md",
    "intro: 札记": "read/note.md",
    "intro: 术语表": "reference/glossary.md",
    "intro: 勘误": "errata.md",
    "gallery: their own page": "play.md",
    "play: the scores themselves": "chapters/sparsity/identity_attention.ipynb",
    "reuse: attention matrix": "chapters/matrix/stochastic_matrix.ipynb",
    "associative_recall: softmax": "chapters/sparsity/exponential.ipynb",
    "associative_recall: formula for decay": "chapters/sparsity/decay.ipynb",
    "comparison: No eigenvalue of a row-stochastic matrix has a modulus above 1": "chapters/matrix/eigenvalues.ipynb",
    "comparison: its chapter": "chapters/linear_cost/random_features.ipynb",
    "comparison: linear attention": "chapters/linear_cost/linear_time.ipynb",
    "experts: its chapter": "chapters/matrix/effective_rank.ipynb",
    "fixed_patterns: the chapter on them": "chapters/matrix/stochastic_matrix.ipynb",
    "frozen_projections: another chapter": "chapters/linear_cost/random_features.ipynb",
    "linear_time: No finite number of features does that": "chapters/matrix/low_rank_computation.ipynb",
    "low_resource: Haar measure": "chapters/linear_cost/orthogonal_features.ipynb",
    "low_resource: nearest word": "chapters/fixed_attention/fixed_patterns.ipynb",
    "positional_heads: the chapter on them": "chapters/matrix/stochastic_matrix.ipynb",
    "random_features: their own": "chapters/linear_cost/orthogonal_features.ipynb",
    "scaling: chapter of its own": "chapters/operator/saturation.ipynb",
    "sinusoidal_positions: the chapter on queries and keys": "chapters/operator/query_match_aggregate.ipynb",
    "sparse_and_dense: chapter on it": "chapters/matrix/effective_rank.ipynb",
    "sparse_patterns: chapter on them": "chapters/matrix/stochastic_matrix.ipynb",
    "comparison: an earlier chapter": "chapters/linear_cost/linear_time.ipynb",
    "fixed_patterns: a later chapter": "chapters/fixed_attention/low_resource.ipynb",
    "powers: a later chapter": "chapters/matrix/effective_rank.ipynb",
    "rank: a later chapter": "chapters/matrix/low_rank_computation.ipynb",
    "The chapter": "examples/least_squares/chapters/least_squares.ipynb",
    # places of a page, and addresses
    "intro: reference": "reference/api/index.md",
    "intro: what it builds on": "#prerequisites",
    "run: its notebook": "#one-chapter-on-your-machine",
    "run: JupyterLab": "#jupyterlab-with-the-book",
    "run: make": "#the-whole-book",
    "run: plain commands": "#windows-or-no-make",
    "public_implementations: exercise": "#exercise-public-parameters",
    "associative_recall: exercise": "#exercise-recall-taylor",
    "identity_attention: reduction": "#equation-A.4",
    "Binder": "https://mybinder.org",
    "Keep a Changelog": "https://keepachangelog.com/en/1.1.0/",
    "semantic versioning": "https://semver.org/",
    "spaces.ac.cn": "https://spaces.ac.cn/archives/9889",
    "hear of it": "https://github.com/attention-checked/attention-checked/issues",
    "an issue": "https://github.com/lucidrains/performer-pytorch/issues/45",
}
LINKED = {page.relative_to(stamps.ROOT).as_posix(): page for page in PAGES}


@cache
def contents() -> Contents:
    files = ["LICENSE", "LICENSE-TEXT", "CITATION.cff", "examples/least_squares/README.md", "pyproject.toml",
             "reference/glossary.md", "reference/notation.md"]  # fmt: skip
    titles = {name: re.search(r"^# (.*)", prose(page), re.MULTILINE) for name, page in LINKED.items()}
    names = {name: title[1] if title else "" for name, title in titles.items()} | dict.fromkeys(files, "")
    listed = re.findall(r"(?:root|file): (\S+)", (stamps.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    paths = [name for stem in listed for name in (f"{stem}.ipynb", f"{stem}.md") if name in names]
    return Contents(names, paths, KNOWN)


@pytest.mark.parametrize("page", LINKED)
def test_links_lead_where_their_text_says(page: str) -> None:
    assert contents().misled(page, prose(LINKED[page])) == []


def test_no_known_text_is_told_by_its_words() -> None:
    plain = Contents(contents().names, contents().order, {})
    told = set()
    for page in LINKED:
        for text, target in LINK.findall(prose(LINKED[page])):
            if not target.startswith("#") and plain.misled(page, f"[{text}]({target})") == []:
                told |= {" ".join(text.split()), f"{Path(page).stem}: {' '.join(text.split())}"}
    assert [name for name in KNOWN if name in told] == []


@pytest.mark.parametrize(
    ("page", "old", "new"),
    [
        ("README.md", "[CC BY 4.0](LICENSE-TEXT)", "[CC BY 4.0](LICENSE)"),
        ("README.md", "[MIT](LICENSE)", "[MIT](LICENSE-TEXT)"),
        ("chapters/matrix/experts.ipynb", "[chapter on rank](rank.ipynb)", "[chapter on rank](effective_rank.ipynb)"),
        ("chapters/operator/softmax.ipynb", "[next chapter](saturation.ipynb)", "[next chapter](scaling.ipynb)"),
        ("chapters/sparsity/decay.ipynb", "[next chapter](associative_recall", "[next chapter](concentration"),
        ("chapters/operator/softmax.ipynb", "[gradients](gradients.ipynb)", "[gradients](projections.ipynb)"),
        (
            "guide/findings.ipynb",
            "on the softmax](../chapters/operator/softmax",
            "on the softmax](../chapters/operator/cost",
        ),
        ("chapters/matrix/experts.ipynb", "[its chapter](effective_rank.ipynb)", "[its chapter](rank.ipynb)"),
        ("chapters/matrix/rank.ipynb", "later chapter](low_rank_computation", "later chapter](low_rank"),
        ("chapters/operator/gradients.ipynb", "[(5.1.8)](#equation-5.1.8)", "[(5.1.8)](#equation-5.1.5)"),
        ("chapters/operator/gradients.ipynb", "[(5.1.8)](#equation-5.1.8)", "[(5.1.6)](#equation-5.1.8)"),
        ("chapters/sparsity/identity_attention.ipynb", "[reduction](#equation-A.4)", "[reduction](#equation-A.2)"),
        ("run.md", "[JupyterLab](#jupyterlab-with-the-book)", "[JupyterLab](#windows-or-no-make)"),
        ("CHANGELOG.md", "(https://semver.org/)", "(https://keepachangelog.com/en/1.1.0/)"),
    ],
)
def test_a_link_that_leads_elsewhere_is_noticed(page: str, old: str, new: str) -> None:
    words = prose(LINKED[page])
    assert old in words
    assert len(contents().misled(page, words.replace(old, new))) == words.count(old)


def test_any_link_between_pages_that_is_led_to_another_chapter_is_noticed() -> None:
    chapters = [name for name in contents().order if "chapters/" in name]
    for page in LINKED:
        for text, target in LINK.findall(prose(LINKED[page])):
            path, name = beside(page, target), " ".join(text.split())
            if path in chapters:
                other = chapters[chapters.index(path) - 1]
                assert not contents().leads(page, name, other), (page, name)


@pytest.mark.parametrize("folder", ["reference", "examples/least_squares"])
def test_links_between_the_pages_of_a_folder_lead_where_their_text_says(folder: str) -> None:
    pages = [*(stamps.ROOT / folder).rglob("*.md"), *stamps.notebooks([stamps.ROOT / folder])]
    names = {page.relative_to(stamps.ROOT).as_posix(): page for page in pages if "_build" not in page.parts}
    titled = {name: re.search(r"^# (.*)", prose(page), re.MULTILINE) for name, page in names.items()}
    there = Contents({name: title[1] if title else "" for name, title in titled.items()}, [], KNOWN)
    links = [(name, text, target) for name, page in names.items() for text, target in LINK.findall(prose(page))]
    assert links
    for name, text, target in links:
        if beside(name, target) in names:
            assert there.leads(name, text, beside(name, target)), (name, text)
            assert not any(there.leads(name, text, other) for other in names if other != beside(name, target))


# --- the README's numbers ------------------------------------------------------------------------

BUDGETS = {
    "`make book`, the first time after installation": bench.BOOK_BUDGET,
    "`make book`, nothing changed": bench.UNCHANGED_BUDGET,
    "`make test` after `make book`": bench.TEST_BUDGET,
    "the notebook of one chapter, on average": bench.NOTEBOOK_BUDGET,
}


def exact(module: ModuleType) -> list[str]:
    """Return the functions of a module that compute the variance of a map, or the covariance of its rows."""
    return [name for name in vars(module) if re.fullmatch("[a-z]+_variance|cosine_covariance", name)]


@cache
def counts() -> dict[str, int]:
    site = (stamps.ROOT / "tests" / "site" / "browser_checks.py").read_text(encoding="utf-8")
    weight = re.search(r"^MOST_BYTES, MOST_REQUESTS, \w+ = ([\d_]+), (\d+)", site, re.MULTILINE)
    assert weight
    return COUNTED | {
        r"the (\d+) small models": len(recall_models()),
        r"the (\d+) small encoder-decoder models": len(translation_models()),
        r"at most (\d+) kB in": int(weight[1]) // 1000,
        r"in at most (\d+) files": int(weight[2]),
        rf"{COUNT} findings": len(re.findall(r"^## \d+\.", prose(LINKED["guide/findings.ipynb"]), re.MULTILINE)),
        rf"{COUNT} of the \w+ maps": len(exact(orthogonal)),
        rf"of the {COUNT} maps": len(exact(variance)),
        rf"installs all {COUNT},": len([*stamps.ROOT.glob("code/*/README.md")]),
    }


def test_the_readme_counts_and_times_rightly() -> None:
    words = prose(README)
    assert wrong_counts(words, counts()) == []
    assert mistimed(words, BUDGETS) == []
    flat = " ".join(words.split())
    assert [pattern for pattern in counts().keys() - COUNTED.keys() if not re.search(pattern, flat)] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1710 small", "1711 small"),
        ("190 small", "180 small"),
        ("seven fixed patterns", "six fixed patterns"),
        ("at most 1000 kB", "at most 1100 kB"),
        ("25 files", "52 files"),
        ("eight findings", "nine findings"),
        ("four of the six maps", "five of the six maps"),
        ("four of the six maps", "four of the five maps"),
        ("installs all three,", "installs all two,"),
    ],
)
def test_a_wrong_count_of_the_readme_is_noticed(old: str, new: str) -> None:
    flat = " ".join(prose(README).split())
    assert old in flat
    assert len(wrong_counts(flat.replace(old, new), counts())) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("180 s", "170 s"),
        ("| 600 s", "| 900 s"),
        ("| 83 %", "| 38 %"),
        ("| 76 %", "| 50 %"),
        ("| 331 |", "| 133 |"),
        ("nothing changed", "once more"),
    ],
)
def test_a_wrong_time_of_the_readme_is_noticed(old: str, new: str) -> None:
    words = prose(README)
    assert words.count(old) == 1
    assert mistimed(words.replace(old, new), BUDGETS)


def test_the_reports_own_list_is_compared_rightly() -> None:
    papers = parse_file(str(stamps.ROOT / "references.bib")).entries
    rows = re.findall(
        r"^\| (.+?) (\d{4}) \| \{cite:t\}`(\w+)`.*\| ([^|]+) \|$", prose(stamps.ROOT / "references.md"), re.M
    )
    assert len(rows) == 8
    for authors, year, key, said in rows:
        names = [" ".join(person.last_names) for person in papers[key].persons["author"]]
        listed = re.split(r" and | et al\.", authors)
        complete = listed == names or (listed[-1] == "" and listed[0] == names[0] and len(names) > 2)
        assert said.startswith("not complete") != complete, (authors, names)
        assert (year == papers[key].fields["year"]) != ("preprint" in said), (authors, year)
