"""Labels of any script are drawn with a font that is there, or one line says which is not; tokens are as they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from hostile_calls import DRAWING, FIGURES
from matplotlib.axes import Axes
from matplotlib.font_manager import fontManager

from attnmath.figures import attention_heatmap, show
from attnmath.figures.lettering import BOX

CHINESE = "我爱你"


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture
def latin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matplotlib's own fonts alone are installed."""
    own = [f for f in fontManager.ttflist if "mpl-data" in str(f.fname)]
    monkeypatch.setattr(fontManager, "ttflist", own)


def install(folder: Path, family: str, characters: str) -> None:
    """Install a font whose characters are all one square."""
    pen = TTGlyphPen(None)
    for k, point in enumerate([(0, 0), (0, 700), (700, 700), (700, 0)]):
        (pen.lineTo if k else pen.moveTo)(point)
    pen.closePath()
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder([".notdef", "square"])
    font.setupCharacterMap({ord(c): "square" for c in characters})
    font.setupGlyf(dict.fromkeys([".notdef", "square"], pen.glyph()))
    font.setupHorizontalMetrics(dict.fromkeys([".notdef", "square"], (800, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": family, "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    font.save(folder / f"{family}.ttf")
    fontManager.addfont(folder / f"{family}.ttf")


def drawn(
    draw: Callable[[], Axes], caplog: pytest.LogCaptureFixture, *, encoded: bool = True
) -> tuple[Axes, str, list[str]]:
    """Draw and encode; return the Axes, the SVG, and all that was said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ax = draw()
        svg = show(ax.figure).svg if encoded else ax.figure.draw_without_rendering()
    return ax, svg, [str(one.message) for one in said] + [record.getMessage() for record in caplog.records]


def labels_of(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def heat(tokens: list[str], **more: Any) -> Callable[[], Axes]:
    return lambda: attention_heatmap(np.eye(len(tokens)), query_labels=tokens, key_labels=tokens, **more)


@pytest.mark.parametrize("token", ["$", "$$", "$x$ y", r"\frac", r"$\frac$", "a_b^c", r"\$5", "{", "%", "Ġword", "##s"])
def test_a_token_is_drawn_as_it_is(token: str, caplog) -> None:
    ax, svg, said = drawn(heat([token]), caplog)
    assert labels_of(ax) == [token] and said == []
    assert not any(label.get_parse_math() for label in (*ax.get_xticklabels(), *ax.get_yticklabels()))
    assert f"<!-- {token.replace('<', '&lt;')} -->" in svg  # each character as text, none as mathematics


def test_mathematics_of_titles_stays_mathematics(caplog) -> None:
    ax, svg, said = drawn(heat(["a"], title=r"$\alpha$ and $x_1$"), caplog)
    assert ax.title.get_parse_math() and r"<!-- $\alpha$ and $x_1$ -->" in svg and said == []


def test_a_control_character_is_written_out(caplog) -> None:
    ax, _, said = drawn(heat(["\n", "\t", "\x00", "\ud800"]), caplog)
    assert labels_of(ax) == [r"\n", r"\t", r"\x00", r"\ud800"] and said == []


def test_one_line_says_which_font_is_missing(latin: None, caplog) -> None:
    ax, _, said = drawn(heat([*CHINESE, "a", "ह"]), caplog)
    assert labels_of(ax) == [BOX, BOX, BOX, "a", BOX]
    fonts = "Noto Sans CJK, Noto Sans with Devanagari"
    assert said == [f"labels: no installed font has ह你我爱 (a font that may have them: {fonts}): "
                    f"{BOX} is drawn instead"]  # fmt: skip


def test_a_font_that_is_there_is_used(latin: None, tmp_path: Path, caplog) -> None:
    _, boxes, _ = drawn(heat([*CHINESE, "a"]), caplog)
    install(tmp_path, "Some Serif", CHINESE[:1])
    install(tmp_path, "Other Sans SC", CHINESE[:2])
    install(tmp_path, "Third", CHINESE[2:] + "a")
    ax, svg, said = drawn(heat([*CHINESE, "a"]), caplog)
    assert said == [] and labels_of(ax) == [*CHINESE, "a"] and svg != boxes
    assert ax.get_yticklabels()[0].get_fontfamily()[-2:] == ["Other Sans SC", "Third"], "fewest families first"
    assert ax.get_yticklabels()[0].get_fontfamily()[0] == "sans-serif", "what the style has it draws"


def in_chinese(value: Any) -> Any:
    """An ordinary argument with Chinese words in the place of its words and labels."""
    if isinstance(value, str):
        return CHINESE
    if isinstance(value, dict):
        return {CHINESE: next(iter(value.values()))}
    return value


CHOICES = {"xscale", "yscale", "legend", "place", "legend_at", "format"}


@pytest.mark.parametrize("name", [name for name in DRAWING if {"xlabel", "ylabel", "title"} & {*FIGURES[name]}])
def test_every_drawing_function_writes_every_script(name: str, latin: None, tmp_path: Path, caplog) -> None:
    given = {key: value if key in CHOICES else in_chinese(value) for key, value in FIGURES[name].items()}
    _, _, said = drawn(lambda: DRAWING[name](**given), caplog, encoded=False)
    assert set(said) == {f"labels: no installed font has 你我爱 (a font that may have them: Noto Sans CJK): {BOX} is "
                         "drawn instead"}  # fmt: skip
    install(tmp_path, "Some Sans", CHINESE)
    assert drawn(lambda: DRAWING[name](**given), caplog, encoded=False)[2] == []


def test_what_stands_beside_mathematics_is_told(tmp_path: Path, caplog) -> None:
    ax, _, said = drawn(heat(["a"], title="力 $x$ 力"), caplog)
    assert ax.title.get_text() == f"{BOX} $x$ {BOX}"
    assert said == ["labels: no installed font has 力 beside mathematics, where matplotlib draws with its own fonts: "
                    f"{BOX} is drawn instead"]  # fmt: skip
