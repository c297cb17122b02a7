"""Words in any script, and tokens as they are: a font that has their characters, or one line that says what is missing.

Where the style's own font has every character nothing is changed, so that pictures keep their bytes.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.font_manager import FontProperties, fontManager, get_font

#: What stands for a character that no font has; matplotlib's own font has it.
BOX = "\N{WHITE SQUARE}"
#: The scripts of which a font with Chinese, Japanese and Korean has the characters, and where they look as they should.
_REGIONS = {"CJK": "SC", "HIRAGANA": "JP", "KATAKANA": "JP", "HANGUL": "KR"}

#: Families of matplotlib's own that are not for text: pictures of scripts, and pieces of mathematics.
_NO_TEXT = ("Last Resort", "STIXNonUnicode", "STIXSize", "cm")


def as_they_are(tokens: Iterable[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the text that is drawn for each token, and the properties of a matplotlib Text that draw it so.

    Dollar signs and backslashes are no mathematics here, and a control character is written as Python writes it.
    """
    visible = {token: "".join(map(_visible, token)) for token in tokens}
    shown, families = _lettering(visible.values(), mathematics=False)
    return {token: shown[text] for token, text in visible.items()}, {"parse_math": False, "usetex": False, **families}


def named(labels: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return labels that may hold mathematics as they are drawn at ticks, and the properties of their Text."""
    shown, families = _lettering(labels)
    return [shown[label] for label in labels], families


def legible(ax: Axes) -> Axes:
    """Let titles, legend and annotations of an Axes have the fonts that their characters need; return the Axes."""
    legend = ax.get_legend()
    more = [] if legend is None else [legend.get_title(), *legend.get_texts()]
    texts = [text for text in (ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts, *more) if text.get_text()]
    shown, families = _lettering(text.get_text() for text in texts)
    for text in texts:
        text.set(text=shown[text.get_text()], **families)
    return ax


def _lettering(texts: Iterable[str], *, mathematics: bool = True) -> tuple[dict[str, str], dict[str, Any]]:
    """Return what is drawn for each text, and the property that names the families, where the style's own lack signs.

    What no font has becomes a box, with one warning. Beside mathematics matplotlib writes with fonts of its own alone.
    """
    given = set(texts)
    beside = {text for text in given if mathematics and is_math_text(text)}
    families, missing = _fonts(_lacking(given - beside))
    lost = _lacking(beside)
    said = [f"{_brief(lost)} beside mathematics, where matplotlib draws with its own fonts"] if lost else []
    if missing:
        said.insert(0, f"{_brief(missing)}{_advice(_scripts(missing))}")
    if said:
        warnings.warn(f"labels: no installed font has {'; nor '.join(said)}: {BOX} is drawn instead", stacklevel=4)
    shown = {text: boxed(text) if text in beside else _without(text, missing) for text in given}
    return shown, {"fontfamily": _default() + families} if families else {}


def _visible(character: str) -> str:
    control = unicodedata.category(character) in ("Cc", "Cs")
    return character.encode("unicode_escape", "surrogatepass").decode("ascii") if control else character


def _brief(characters: set[str]) -> str:
    first = sorted(characters)[:20]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in first) + "..." * (len(characters) > 20)


def _advice(scripts: list[str]) -> str:
    fonts = {"Noto Sans CJK" if s in _REGIONS else f"Noto Sans with {s.title()}" for s in scripts if s}
    return f" (a font that may have them: {', '.join(sorted(fonts))})" if fonts else ""


def boxed(text: str) -> str:
    """Return a text with boxes for what the style's own font lacks."""
    return _without(text, _lacking([text]))


def _without(text: str, missing: set[str]) -> str:
    return "".join(BOX if character in missing else character for character in text)


def _lacking(texts: Iterable[str]) -> set[str]:
    """The characters of texts that the style's own font lacks; spaces need no picture."""
    known = frozenset().union(*(_characters(fontManager.findfont(FontProperties(family=[f]))) for f in _default()))
    return {c for text in texts for c in text if ord(c) not in known and not c.isspace()}


def _fonts(wanted: set[str]) -> tuple[list[str], set[str]]:
    """Return installed families that have these characters together, and the characters of none."""
    installed, families = _installed() if wanted else {}, []
    while wanted:
        best = max(installed, key=lambda family: _fitness(family, installed[family], wanted))
        if not any(ord(c) in installed[best] for c in wanted):
            break
        families.append(best)
        wanted = {c for c in wanted if ord(c) not in installed[best]}
    return families, wanted


def _fitness(family: str, characters: frozenset[int], wanted: set[str]) -> tuple[int, bool, bool, str]:
    """How well a family draws characters beside the style's sans serif: compared, the greatest is the best."""
    region = next((_REGIONS[s] for s in ("HANGUL", "HIRAGANA", "KATAKANA", "CJK") if s in _scripts(wanted)), "")
    sans = "Sans" in family and "Mono" not in family
    return sum(ord(c) in characters for c in wanted), sans, family.endswith(f" {region}"), family


def _scripts(characters: set[str]) -> list[str]:
    """The scripts of characters, by the first words of their names, in order."""
    return sorted({unicodedata.name(c, "").partition(" ")[0] for c in characters})


def _default() -> list[str]:
    """The families that the style names."""
    given = mpl.rcParams["font.family"]
    return [given] if isinstance(given, str) else list(given)


@cache
def _characters(path: Any) -> frozenset[int]:
    """The characters of one font."""
    return frozenset(get_font(path).get_charmap())


def _installed() -> dict[str, frozenset[int]]:
    """The installed upright families, each with the characters of its font that is nearest to the regular weight."""
    upright = [f for f in fontManager.ttflist if f.style == "normal" and not f.name.startswith(_NO_TEXT)]
    upright.sort(key=lambda f: (f.name, abs((f.weight if isinstance(f.weight, int) else 400) - 400), f.fname))
    return {font.name: _characters(font.fname) for font in reversed(upright)}
