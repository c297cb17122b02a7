"""The report on a model: what it measures, what its sentences quote, and the page."""

from __future__ import annotations

import csv
import html.parser
import json
import re
from dataclasses import replace
from pathlib import Path

import llama_files
import numpy as np
import pytest

from attnlab.heads import load_heads, read_heads
from attnlab.heads.local import is_decoder, local_heads
from attnlab.report import __main__ as command
from attnlab.report.measures import MEASURES, RANK, Attention, attention_of
from attnmath.matrix import rank
from attnmath.matrix.sinks import sink_weight

ROOT = Path(__file__).parents[2]
SENTENCE = ROOT / "code/attnlab/data/sentence.npz"
EMPTY = {"meta", "br", "link", "path", "use", "rect"}


def plain(markdown: str) -> str:
    """A text without the marks of Markdown, citations and glosses in Chinese."""
    text = re.sub(r"\s*\([^)]*[一-鿿][^)]*\)|\s*\{cite:\w\}`[^`]*`", "", markdown)
    text = text.replace(r"$\kappa$", "κ")
    return " ".join(re.sub(r"[*$]", "", text).split())


def chapter(name: str) -> str:
    cells = json.loads((ROOT / f"chapters/{name}.ipynb").read_text())["cells"]
    return plain("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"))


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.title)
def test_a_sentence_stands_in_its_chapter(measure) -> None:
    assert measure.sentence in chapter(measure.chapter)
    assert "no such sentence in any chapter" not in chapter(measure.chapter)


def test_eight_chapters_at_least_explain_the_numbers() -> None:
    assert len({measure.chapter for measure in MEASURES}) >= 8
    assert len({measure.label for measure in MEASURES}) == len({measure.title for measure in MEASURES}) == len(MEASURES)


def uniform(n: int = 6, *, causal: bool) -> Attention:
    A = np.tri(n) if causal else np.ones((n, n))
    A = np.broadcast_to(A / A.sum(axis=1, keepdims=True), (2, 3, n, n))
    return Attention(A, np.zeros((2, 3, n, 4)), np.zeros((2, 3, n, 4)), causal)


def one_hot(n: int = 6) -> Attention:
    return replace(uniform(n, causal=False), A=np.broadcast_to(np.roll(np.eye(n), 1, axis=1), (2, 3, n, n)))


def of(title: str, given: Attention) -> float:
    (measure,) = (each for each in MEASURES if each.title == title)
    values = measure.of(given)
    assert values.shape == given.A.shape[:2] and np.ptp(values) <= 1e-12
    return float(values[0, 0])


@pytest.mark.parametrize(
    ("title", "even", "single"),
    [
        ("Exact rank", 5, 0),
        ("Effective rank", 1, 6),
        ("Entropy rank", 1, 6),
        ("Distance from low rank", 0, 0),
        ("Condition number", np.log10(1 / (6 * np.finfo(float).eps)), 0),
        ("Spectral norm", 1, 1),
        ("Attention sink", 1 / 6, 1 / 5),
        ("Entropy of the rows", np.log2(6), 0),
        ("Concentration", 6, 1),
        ("Saturation", 0, 1),
        ("What a gradient keeps", np.sqrt(5) / 6, 0),
        ("Locality", 1, 1),
        ("Forgetting", 0, 1),
    ],
)
def test_even_and_single_weights_have_known_numbers(title: str, even: float, single: float) -> None:
    assert of(title, uniform(causal=False)) == pytest.approx(even, abs=1e-7)
    assert of(title, one_hot()) == pytest.approx(single, abs=1e-7)


def test_a_causal_row_of_one_entry_is_not_saturated_and_hidden_pairs_do_not_count() -> None:
    assert of("Saturation", uniform(causal=True)) == 0
    Q, K = (np.zeros((2, 3, 6, 4)) for _ in "QK")
    K[:, :, :] = np.arange(1, 7)[:, None]  # later keys are longer, and the early queries do not see them
    causal = of("Distance from random features", replace(uniform(causal=True), Q=Q, K=K))
    assert causal < of("Distance from random features", replace(uniform(causal=False), Q=Q, K=K))


def test_features_follow_the_book() -> None:
    Q = np.full((1, 1, 3, 4), 0.5)
    given = Attention(np.full((1, 1, 3, 3), 1 / 3), Q, Q, causal=False)
    square = np.sum((2 * Q[0, 0, 0] / 4**0.25) ** 2)
    assert of("Distance from random features", given) == pytest.approx(np.log10(np.expm1(square) / 0.1**2))


def test_the_distance_is_that_of_the_best_approximation() -> None:
    A = load_heads("sentence").weights()[:1, :2]
    given = Attention(A, *(np.zeros((1, 2, 18, 4)) for _ in "QK"), causal=False)
    (measure,) = (each for each in MEASURES if each.title == "Distance from low rank")
    errors = np.linalg.norm(A - rank.best_approximation(A, RANK), axis=(2, 3)) / np.linalg.norm(A, axis=(2, 3))
    np.testing.assert_allclose(measure.of(given), errors, rtol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_the_sink_is_the_key_with_the_largest_weight(causal: bool) -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(2, 3, 7, 7)) + 3 * (np.arange(7) == 2)
    A = np.exp(scores) * (np.tri(7) if causal else 1)
    given = replace(uniform(7, causal=causal), A=A / A.sum(axis=-1, keepdims=True))
    weights = [float(sink_weight(given.A, key, causal=causal).mean()) for key in range(6)]
    assert given.sink() == int(np.argmax(weights)) == 2
    assert given.without(2).A.shape == (2, 3, 6, 6) and given.without(2).n == 6


class Page(html.parser.HTMLParser):
    """What a page loads, and whether its tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loaded += [str(given[name]) for name in ("src", "data") if name in given]
        self.loaded += [str(given["href"])] if tag == "link" else []
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    assert command.main([str(SENTENCE), "--out", str(folder)]) == 0
    return folder


def test_the_page_holds_everything_and_loads_nothing(written: Path) -> None:
    text, page = (written / "report.html").read_text(), Page()
    page.feed(text)
    assert page.open == [] and page.loaded == [] and "<script" not in text
    assert text.count("<svg") == len(MEASURES) and "url(http" not in text
    assert all(measure.sentence in text for measure in MEASURES)
    assert "<code>&#x27;[CLS]&#x27;</code>, at position 0" in text


def test_the_table_has_the_numbers_of_every_head(written: Path) -> None:
    rows = list(csv.DictReader((written / "report.csv").read_text().splitlines()))
    given = attention_of(load_heads("sentence"))
    assert len(rows) == 72 and (rows[-1]["layer"], rows[-1]["head"]) == ("6", "12")
    for measure in MEASURES:
        found = np.reshape([float(row[measure.label]) for row in rows], (6, 12))
        np.testing.assert_allclose(found, measure.of(given), rtol=1e-5)


def test_a_decoder_from_a_folder_and_from_a_file_gives_the_same_report(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("gguf")
    monkeypatch.setattr("attnlab.report.page.compared", dict)  # the models of the book stand on the page alone
    text = tmp_path / "text.txt"
    text.write_text("the cat and the hat")
    folder = llama_files.directory(tmp_path / "model")
    file = llama_files.gguf(tmp_path / "model.gguf")
    for model, out in ((folder, "a"), (file, "b")):
        given = ["--text", str(text), "--length", "6", "--out", str(tmp_path / out)]
        assert command.main([str(model), *given]) == 0
    first, second = ((tmp_path / out / "report.csv").read_text() for out in "ab")
    assert first.splitlines()[0] == second.splitlines()[0] and first.count("\n") > 1
    numbers = [np.loadtxt(part.splitlines()[1:], delimiter=",", ndmin=2) for part in (first, second)]
    np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-6)
    heads = local_heads(folder, "the cat and the hat", length=6)
    assert (heads.n, heads.causal, is_decoder(folder), is_decoder(file)) == (6, True, True, True)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([str(SENTENCE), "--length", "9"], "text, length: expected none beside a file of heads"),
        ([str(SENTENCE.parent)], "text: expected a file with a text for the model, --text FILE"),
        (["."], "text: expected a file with a text"),
    ],
)
def test_wrong_options_are_one_line(given: list[str], words: str, tmp_path: Path, capsys) -> None:
    assert command.main([*given, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1 and not (tmp_path / "out").exists()


def test_a_text_of_too_few_tokens_is_named_before_anything_is_measured(tmp_path: Path, capsys) -> None:
    text, folder = tmp_path / "text.txt", llama_files.directory(tmp_path / "model")
    text.write_text("a")
    assert command.main([str(folder), "--text", str(text), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.endswith("error: text: expected at least 3 tokens, got 1\n") and "measuring" not in said
    (folder / "model.safetensors").unlink()
    assert command.main([str(folder), "--text", str(text), "--out", str(tmp_path / "out")]) == 1
    assert "attnlab.report: MODEL: expected the file model.safetensors in" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main([str(folder), "--length", "9" * 5000])
    said = capsys.readouterr().err
    assert "argument --length: expected a whole number of at least 3, got 9999" in said and len(said) < 200


def test_the_page_says_how_much_lies_on_the_sink(written: Path) -> None:
    A = load_heads("sentence").weights()
    text = " ".join((written / "report.html").read_text().split())
    assert f"(the first is 0): {sink_weight(A, 0).mean():.2g}, where equal weights would put {1 / 18:.2g}." in text
    assert "four small decoders of characters" in text


def test_two_tokens_are_too_few() -> None:
    short = replace(load_heads("sentence"), tokens=("a", "b"), **{
        name: getattr(load_heads("sentence"), name)[:, :, :2] for name in "QK"})  # fmt: skip
    with pytest.raises(ValueError, match="heads: expected at least 3 tokens, got 2"):
        attention_of(short)
    assert read_heads(SENTENCE).n == 18
