"""The edition in Chinese: Markdown comes back from its messages, and what a translation changes is named."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from edition import blocks, catalogue, files, rules, scripts, tree
from edition.faults import faults
from edition.joined import Words
from edition.labels import labels
from search.documents import ASKED, asked_of

from linewise.derive import display
from linewise.kernel.record import kernel_of
from linewise.ledger.card import MIME as CARD

ROOT = Path(__file__).resolve().parents[2]
LANGUAGE = "zh_CN"
PAGES = catalogue.pages_of(ROOT, LANGUAGE)
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
    assert list(rules.faults_of(ROOT, LANGUAGE, page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_a_catalogue_is_what_a_merge_writes(page, tmp_path):
    path = catalogue.path_of(ROOT, LANGUAGE, page)
    copy = tmp_path / "copy.po"
    shutil.copy(path, copy)
    catalogue.merge(ROOT, LANGUAGE, page, copy)
    assert copy.read_bytes() == path.read_bytes()


def test_a_message_that_has_changed_is_stale_and_its_page_is_english_again(tmp_path):
    page = "read/note"
    shutil.copytree(ROOT / "read", tmp_path / "read")
    shutil.copytree(ROOT / "chapters" / "sources", tmp_path / "chapters" / "sources")
    shutil.copytree(ROOT / catalogue.FOLDER / LANGUAGE / "read", tmp_path / catalogue.FOLDER / LANGUAGE / "read")
    for name in (catalogue.WORDS, catalogue.SCRIPTS, catalogue.ENGINE, catalogue.LABELS):
        shutil.copy(catalogue.path_of(ROOT, LANGUAGE, name), tmp_path / catalogue.FOLDER / LANGUAGE)
    for name in ("_config.yml", "linewise.yml", "kernel.json"):
        shutil.copy(ROOT / name, tmp_path)
    asked = tmp_path / catalogue.FOLDER / LANGUAGE / ASKED
    asked.write_text("read/note: {札记: [编码器好吗]}\nread/article: {文章: [稀疏吗]}\n", encoding="utf-8")
    source = tmp_path / f"{page}.md"
    assert page in tree.write(tmp_path, LANGUAGE, tmp_path / "_build" / "edition")
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("One question runs through", "Two questions run through"), encoding="utf-8")
    path = catalogue.path_of(tmp_path, LANGUAGE, page)
    assert len(catalogue.of_page(tmp_path, LANGUAGE, page).missing) == 1
    catalogue.merge(tmp_path, LANGUAGE, page)
    [stale] = catalogue.of_page(tmp_path, LANGUAGE, page).stale
    assert stale.startswith("Two questions run through") and "One question" in path.read_text(encoding="utf-8")
    finished = tree.write(tmp_path, LANGUAGE, tmp_path / "_build" / "edition")
    assert page not in finished and "read/article" in finished
    assert asked_of(asked.parent).keys() == {"read/note", "read/article"}
    assert asked_of(tmp_path / "_build" / "edition").keys() == {"read/article"}, "its titles are English again"
    assert (tmp_path / "_build" / "edition" / f"{page}.md").read_text(encoding="utf-8") == source.read_text(
        encoding="utf-8"
    )


def test_a_question_that_is_asked_of_no_section_is_named(monkeypatch):
    title = catalogue.of_page(ROOT, LANGUAGE, "read/note").known["The note on low rank, paragraph by paragraph"]
    monkeypatch.setattr(rules, "asked", lambda root, language: {"read/note": {title: ["好吗"], "没有": ["呢"]}})
    [fault] = rules.faults_of(ROOT, LANGUAGE, "read/note")
    assert fault == "read/note: no section '没有', of which asked.yml asks"


def test_a_page_that_stays_in_english_is_named(monkeypatch):
    found = catalogue.of_page(ROOT, LANGUAGE, "read/note")
    stale, *others = found.known
    known = {message: found.known[message] for message in others}
    monkeypatch.setattr(catalogue, "of_page", lambda *_: replace(found, known=known, stale=(stale,)))
    [fault] = rules.faults_of(ROOT, LANGUAGE, "read/note")
    assert fault.startswith("read/note: the page stays in English: 0 messages are missing, 1 are stale, such as '")


def test_a_page_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="expected one of the book, such as read/note, got 'read/nothing'"):
        files.source_of(ROOT, "read/nothing")


# --- pictures ------------------------------------------------------------------------------------

LABELS = catalogue.of_words(ROOT, LANGUAGE, catalogue.LABELS)


@pytest.mark.parametrize("notebook", [p for p in SOURCES if p.suffix == ".ipynb"], ids=lambda p: p.stem)
def test_every_word_in_a_picture_is_known(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    said = {one for cell in cells if cell["cell_type"] == "code" for one in labels(files.picture_of(cell))}
    assert said - LABELS.keys() == set(), f"lang/{LANGUAGE}/labels.po: a name stays as it is"


def test_labels_keep_their_places():
    assert [one for one, other in LABELS.items() if one.count("…") != other.count("…")] == []
    used = {
        one
        for notebook in SOURCES
        if notebook.suffix == ".ipynb"
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        for one in labels(files.picture_of(cell))
    }
    assert LABELS.keys() <= used, "of pictures that are not there any more"


def test_a_caption_tells_the_words_of_its_picture_and_the_picture_stays():
    words = catalogue.of_words(ROOT, LANGUAGE)
    source = ROOT / "chapters" / "operator" / "saturation.ipynb"
    before = json.loads(source.read_text(encoding="utf-8"))["cells"]
    after = json.loads(files.in_language(source, lambda message: message, words, LABELS))["cells"]
    told = [cell["metadata"]["mystnb"]["figure"]["caption"] for cell in after if files.picture_of(cell)]
    assert told and all("图中文字：“" in caption for caption in told)
    assert [files.picture_of(cell) for cell in after] == [files.picture_of(cell) for cell in before]


def test_a_picture_that_is_shown_again_has_its_words_told_again():
    words = catalogue.of_words(ROOT, LANGUAGE)
    source = ROOT / "read" / "note.md"
    before = source.read_text(encoding="utf-8")
    after = files.in_language(source, lambda message: message, words, LABELS)
    assert after.count("图中文字：“") == before.count("{from-chapter}") > 3
    assert files.in_language(source, lambda message: message, words) == before


# --- notebooks and tables ------------------------------------------------------------------------


SCALING = ROOT / "chapters" / "operator" / "scaling.ipynb"


def outputs_of(text: str) -> list[dict]:
    return [o.get("data", {}) for cell in json.loads(text)["cells"] for o in cell.get("outputs", [])]


def test_of_a_notebook_words_are_translated_and_code_and_what_it_prints_are_not():
    before = json.loads(SCALING.read_text(encoding="utf-8"))
    after = json.loads(files.in_language(SCALING, lambda message: message + " X"))
    for one, other in zip(before["cells"], after["cells"], strict=True):
        assert one["cell_type"] == other["cell_type"]
        if one["cell_type"] == "code":
            assert one["source"] == other["source"]
            streams = [[o for o in cell["outputs"] if o["output_type"] == "stream"] for cell in (one, other)]
            assert streams[0] == streams[1]
    [card] = [d[CARD] for d in outputs_of(json.dumps(after)) if d.get(CARD, {}).get("claim") == "5.1.4/contribution"]
    assert card["title"].endswith(" X") and card["scope"].endswith(" X") and not card["place"].endswith(" X")
    assert all(m.endswith(" X") for e in card["evidence"] for m in e["mistakes"])
    assert files.in_language(SCALING, str) == json.dumps(before, indent=1, ensure_ascii=False) + "\n"


def test_a_card_finds_the_derivation_that_was_translated():
    text = files.in_language(SCALING, lambda message: message + " X")
    data = outputs_of(text)
    chains = [d[display.MIME] for d in data if display.MIME in d]
    chains += [chain for d in data for chain in d.get(CARD, {}).get("derivations", ())]
    known = {display.fingerprint(chain) for chain in chains}
    named = [e["derivation"] for d in data for e in d.get(CARD, {}).get("evidence", ()) if "derivation" in e]
    assert named and set(named) <= known
    names = files.digests(SCALING.read_text(encoding="utf-8"), text)
    assert set(names) <= set(kernel_of(ROOT).derivations) and all(old != new for old, new in names.items())


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("chapters/operator/scaling", "The factor without the division"),
        ("coverage", "the idea is named query, match, aggregate"),
        ("reference/glossary", r"Attention whose scores are $q\cdot k/\sqrt{d_k}$."),
        ("reference/notation", "number of components of a value"),
        ("guide/routes", "One evening"),
        ("guide/lexicon", "The word asserts a possibility. Only a proof that there is no case refutes it."),
        ("play", "A row of the small head, its entropy and its Jacobian."),
    ],
)
def test_a_page_has_the_messages_of_its_tables(page, says):
    assert says in files.messages(ROOT, page)


# --- scripts ---------------------------------------------------------------------------------------

SCRIPTS = [
    path
    for folder in ("_static", "_ext", "code/linewise/pages/static")
    for path in sorted((ROOT / folder).rglob("*.js"))
    if "vendor" not in path.parts
]
#: What looks like words in a script and is none for a reader: selectors, MathML, keys, complaints to authors.
NO_WORDS = re.compile(
    r"use strict|Escape|Softmax|Symbol|Equation|Term|Function|Claim|Section|right left|.*(?:[.:\[]|^)[\w-]+[ ,>].*"
    r"|[a-z, ]*(?:td|tbody|select|table|details)|<m.*|entry .*|.*(?:expected|MathML Core).*|interactive-.*",
    re.DOTALL,
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_a_script_comes_back_from_its_literals(path):
    text = path.read_text(encoding="utf-8")
    assert scripts.translated(text, lambda literal, _: literal) == text


def test_all_words_of_scripts_are_translated_and_no_other():
    known = catalogue.of_words(ROOT, LANGUAGE, catalogue.SCRIPTS)
    texts = [path.read_text(encoding="utf-8") for path in SCRIPTS]
    said = dict.fromkeys(message for text in texts for message in scripts.messages(text))
    assert [message for message in said if message not in known and not NO_WORDS.fullmatch(message)] == []
    heard: set[str] = set()
    for text in texts:
        scripts.translated(text, lambda message, _: heard.add(message) or message)
    assert set(known) <= heard


def test_what_is_no_literal_stays():
    quiet = "a = b / c; /* 'Copied' */ // 'Copied'\nif (/'Copied'/.test(x)) "
    said = scripts.in_language(quiet + "say(`${x ? 'Copied' : `no ${y}`}`, \"Copied\");", {"Copied": "已复制"})
    assert said == quiet + "say(`${x ? '已复制' : `no ${y}`}`, \"已复制\");"


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
    "a large number in other units": ("32", "32 万", "numbers"),
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
    assert words("Table of contents") == "目录" and words("(12 min)") == "（12 分钟）"
    assert words("5.1.5/hard: amended;") == "5.1.5/hard：需修正；"
    assert words("Nobody has translated this") is None
    assert words("请把本页 5.1 放在教材旁边") is None
