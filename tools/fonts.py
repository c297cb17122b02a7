"""Make the fonts of the site again: ``python tools/fonts.py`` writes the subsets in ``_static/vendor/fonts``.

Latin Modern Math shows the formulas, and Noto Sans CJK the Chinese, on machines that have neither. The site ships
what its pages use of them: of the first the letters, alphabets and signs listed here, with all their sizes; of the
second the Han characters and the punctuation that occur in the book's own files. `tests/site/test_weight.py` finds a
page with a character that is missing. Debian has both fonts (fonts-lmodern, fonts-noto-cjk);
`--math` and `--han` name others.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTCollection, TTFont

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "_static" / "vendor" / "fonts"
MATH = Path("/usr/share/texmf/fonts/opentype/public/lm-math/latinmodern-math.otf")
HAN = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")

#: Letters and digits, Greek, and the alphabets: italic, script, double-struck, monospace, italic Greek, bold digits.
ALPHABETS = (
    (0x20, 0x7E), (0x391, 0x3A1), (0x3A3, 0x3A9), (0x3B1, 0x3C9), (0x1D434, 0x1D467), (0x1D49C, 0x1D4B5),
    (0x1D538, 0x1D551), (0x1D68A, 0x1D6A3), (0x1D6FC, 0x1D71B), (0x1D7CE, 0x1D7D7),
)  # fmt: skip
#: The letters of those alphabets that Unicode has elsewhere, variants of Greek, accents, and signs.
SIGNS = (
    "ϑϕϖϰϱϵℂℍℕℙℚℝℤℬℰℱℋℐℒℳℛℯℊℴℎℓ∂∇∅∞\u00a0\u2061\u2062\u2063"
    "\u00a8\u00af\u02c6\u02c7\u02d8\u02d9\u02dc⏞⏟′″‴"
    "±∓×÷·⋅∗∘∙⊕⊖⊗⊙∩∪∖∧∨¬−=≠<>≤≥≪≫≈≃≅∼≡∝∈∉∋⊂⊃⊆⊇∣∥⊥⊤∀∃→←↔⇒⇐⇔↦⟶⟵⟹↑↓"
    "∑∏∐∫∬∮⋂⋃⨁⨂√…⋯⋮⋱‖|⟨⟩⌈⌉⌊⌋(){}[]/†‡°□■∎⌣♭♯"
)
#: What the second font is for: Han characters and their punctuation; the same ranges are in ``_static/fonts.css``.
HAN_RANGES = re.compile("[\u2e80-\u2fdf\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
#: The files whose text comes onto pages in English, and onto any page.
IN_ENGLISH = (
    "*.md",
    "*.bib",
    "*.yml",
    "_ext/**/*.md",
    "chapters/**/*.ipynb",
    "chapters/**/*.yml",
    "guide/*.md",
    "guide/*.ipynb",
    "read/*.md",
    "ledger/*.md",
    "reference/**/*.md",
    "reference/*.yml",
    "code/**/*.py",
)
SOURCES = (*IN_ENGLISH, "lang/**/*.po")


def math_characters() -> set[int]:
    """Return the characters that a formula may have."""
    return {code for first, last in ALPHABETS for code in range(first, last + 1)} | set(map(ord, SIGNS))


def han_characters(texts: Iterable[str]) -> set[int]:
    """Return the Han characters and their punctuation that texts have, escaped or not.

    >>> sorted(map(chr, han_characters(["score (分数)", r'{"a": "\\u6e29"}'])))
    ['分', '数', '温']
    """
    return {
        ord(found)
        for text in texts
        for found in HAN_RANGES.findall(re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text))
    }


def book_texts(root: Path = ROOT, patterns: Sequence[str] = SOURCES) -> Iterable[str]:
    """Yield the text of the book's files."""
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            yield path.read_text(encoding="utf-8")


def cut(font: TTFont, characters: set[int], name: str, target: Path, features: tuple[str, ...] = ()) -> None:
    """Write the part of a font that has these characters, under a name of its own, as its licence demands."""
    options = subset.Options(
        flavor="woff2", hinting=False, notdef_outline=True, desubroutinize=True, name_IDs=[0, 1, 2, 4, 6, 13, 14]
    )
    options.layout_features = list(features)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in {1, 4, 6}:
            record.string = name.replace(" ", "") if record.nameID == 6 else name
    if "CFF " in font:
        font["CFF "].cff.fontNames = [name.replace(" ", "")]
        font["CFF "].cff.topDictIndex[0].FullName = font["CFF "].cff.topDictIndex[0].FamilyName = name
    target.parent.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, str(target), options)


def only_primes(font: TTFont) -> TTFont:
    """Leave the forms for small sizes (the feature ``ssty``) to primes: letters are scaled, which halves the file."""
    table, primes = font["GSUB"].table, {font.getBestCmap().get(ord(c)) for c in "′″‴"}
    for record in table.FeatureList.FeatureRecord:
        for index in record.Feature.LookupListIndex if record.FeatureTag == "ssty" else ():
            for forms in table.LookupList.Lookup[index].SubTable:
                forms = getattr(forms, "ExtSubTable", forms)
                for kind in ("alternates", "mapping"):
                    if hasattr(forms, kind):
                        setattr(forms, kind, {k: v for k, v in getattr(forms, kind).items() if k in primes})
    return font


def opened(path: Path) -> TTFont:
    """Return a font; of a collection that for simplified Chinese."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a font there, got no such file")
    if path.suffix != ".ttc":
        return TTFont(path, recalcTimestamp=False)
    fonts = TTCollection(path, recalcTimestamp=False).fonts
    return next((f for f in fonts if (f["name"].getDebugName(1) or "").endswith(" SC")), fonts[0])


def main(arguments: list[str] | None = None) -> int:
    """Write both fonts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--math", type=Path, default=MATH, help="a font with a MATH table")
    parser.add_argument("--han", type=Path, default=HAN, help="a font with Chinese characters")
    given = parser.parse_args(arguments)
    try:
        cut(only_primes(opened(given.math)), math_characters(), "Book Math", TARGET / "book-math.woff2", ("ssty",))
        cut(opened(given.han), han_characters(book_texts()), "Book Han", TARGET / "book-han.woff2", ("locl",))
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    for path in sorted(TARGET.glob("book-*.woff2")):
        print(f"{path.name}: {len(TTFont(path).getBestCmap())} characters, {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
