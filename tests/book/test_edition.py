"""The edition in Chinese: Markdown comes back from its messages, and what a translation changes is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from edition import blocks, catalogue, rules, tree
from edition.faults import faults
from edition.joined import Words

ROOT = Path(__file__).resolve().parents[2]
LANGUAGE = "zh_CN"
PAGES = [page for page in catalogue.pages_of(ROOT, LANGUAGE) if page != catalogue.WORDS]
FOLDERS = ("chapters", "gallery", "guide", "ledger", "practice", "read", "reference")
SOURCES = sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in (".md", ".ipynb"))
SOURCES += sorted(ROOT.glob("*.md"))
RULES = rules.rules_of(ROOT, LANGUAGE)


def texts_of(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return [text]
    return ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"]


# --- messages ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_page_comes_back_from_its_messages(path):
    """Untouched, a page is as it was; with a word more in each message, the messages are the same with that word."""
    for text in texts_of(path):
        assert blocks.translated(text, str) == text
        rows = [block.text for block in blocks.blocks(text) if not block.text.startswith("|")]
        more = blocks.translated(text, lambda said: said if said.startswith("|") else said + " X")
        assert [b.text for b in blocks.blocks(more) if not b.text.startswith("|")] == [row + " X" for row in rows]


def test_no_translator_sees_structure():
    text = (
        "(a-label)=\n# Title\n\n```{exercise} Pencil\n:label: exercise-x\n\nWhy $x$?\n\n$$\na = b\n$$\n```\n\n"
        "{% if x %}\nSome `code`.\n{% endif %}\n\n```python\nprint('no message')\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | $x$ |\n"
    )
    assert [b.text for b in blocks.blocks(text)] == ["Title", "Pencil", "Why $x$?", "Some `code`.", "| a | b |"]


# --- catalogues --------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_a_translation_keeps_what_its_page_says(page):
    found = catalogue.of_page(ROOT, LANGUAGE, page)
    assert found.complete, f"python tools/translate.py merge {page} lists what is missing"
    assert list(rules.faults_of(ROOT, LANGUAGE, page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_a_catalogue_is_what_a_merge_writes(page, tmp_path):
    path = catalogue.path_of(ROOT, LANGUAGE, page)
    copy = tmp_path / "copy.po"
    shutil.copy(path, copy)
    catalogue.merge(copy, catalogue.messages(catalogue.source_of(ROOT, page)), LANGUAGE)
    assert copy.read_bytes() == path.read_bytes()


def test_a_message_that_has_changed_is_stale_and_its_page_is_english_again(tmp_path):
    page = "read/note"
    for name in ("read", "reference", "guide", catalogue.FOLDER):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("_config.yml", "intro.md"):
        shutil.copy(ROOT / name, tmp_path)
    source = tmp_path / f"{page}.md"
    assert page in tree.write(tmp_path, LANGUAGE, tmp_path / "_build" / "edition")
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("One question runs through", "Two questions run through"), encoding="utf-8")
    path = catalogue.path_of(tmp_path, LANGUAGE, page)
    assert len(catalogue.of_page(tmp_path, LANGUAGE, page).missing) == 1
    catalogue.merge(path, catalogue.messages(source), LANGUAGE)
    [stale] = catalogue.of_page(tmp_path, LANGUAGE, page).stale
    assert stale.startswith("Two questions run through") and "One question" in path.read_text(encoding="utf-8")
    finished = tree.write(tmp_path, LANGUAGE, tmp_path / "_build" / "edition")
    assert page not in finished and "read/article" in finished
    assert (tmp_path / "_build" / "edition" / f"{page}.md").read_text(encoding="utf-8") == source.read_text(
        encoding="utf-8"
    )


def test_a_page_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="expected one of the book, such as read/note, got 'read/nothing'"):
        catalogue.source_of(ROOT, "read/nothing")


# --- each rule rejects what it is there to reject ------------------------------------------------

MESSAGE = (
    "**Note:** the rank of $A$ is at most $d_k$, see {prf:ref}`theorem-rank` and [the chapter](rank.ipynb), "
    "in 32 cases, but not of `E`."
)
SAID = (
    "**注意**：$A$ 的秩至多为 $d_k$，见 {prf:ref}`theorem-rank` 和[那一章](rank.ipynb)，"
    "在 32 个情形里，但不是 `E` 的秩。"
)
SPOILT = {
    "a formula changed": ("$d_k$", "$d_v$", "formulas"),
    "a sign lost": ("$A$ 的", "的", "formulas"),
    "a number changed": ("32", "23", "numbers"),
    "a label changed": ("theorem-rank", "theorem-norm", "links"),
    "a link changed": ("rank.ipynb", "norm.ipynb", "links"),
    "code changed": ("`E`", "`F`", "code"),
    "bold that does not close": ("**注意**：", "**注意：**", "marks"),
    "a mark of half width": ("，见", ",见", "of half width"),
    "a full stop of half width": ("的秩。", "的秩.", "of half width"),
    "no space before a formula": ("为 $d_k$", "为$d_k$", "no space"),
    "a line that begins with a comma": ("，见", "\\\n，见", "a line begins with ，"),
    "another term": ("的秩至多", "的阶至多", "the term 'rank'"),
    "not forgotten": ("但不是", "但是", "the word 'not'"),
    "at most forgotten": ("至多为", "等于", "the word 'at most'"),
}


def test_a_good_translation_has_no_fault():
    assert list(faults(MESSAGE, SAID, *RULES)) == []


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_spoilt_translation_is_named(spoilt):
    good, bad, name = SPOILT[spoilt]
    said = SAID.replace(good, bad) if spoilt != "another term" else SAID.replace("秩", "阶")
    assert said != SAID
    found = list(faults(MESSAGE, said, *RULES))
    assert any(name in fault for fault in found), found


@pytest.mark.parametrize(
    ("message", "said", "word"),
    [
        ("Only if all rows differ.", "若各行不同。", "only"),
        ("Almost every head.", "每个头。", "almost"),
        ("It may fall.", "它下降。", "may"),
        ("In general it falls.", "它下降。", "in general"),
        ("Every row sums to 1.", "行之和为 1。", "every"),
        ("It usually falls.", "它下降。", "usually"),
        ("At least one row.", "至多一行。", "at least"),
    ],
)
def test_the_words_that_a_claim_turns_on_are_kept(message, said, word):
    found = [fault.lower() for fault in faults(message, said, {}, RULES.logic)]
    assert any(fault.startswith(f"the word '{word}'") for fault in found), found


# --- the words that no page holds ----------------------------------------------------------------


def test_words_are_put_into_the_other_language_and_a_stranger_is_not():
    words = Words(catalogue.of_words(ROOT, LANGUAGE))
    assert words("More in") == "详见" and words("(12 min);") == "（12 分钟）；"
    assert words("A title of nobody (5.1.5/hard: amended)") == "（5.1.5/hard：需修正）"
    assert words("Nobody has translated this") is None
    assert words("请把本页 5.1 放在教材旁边") is None
