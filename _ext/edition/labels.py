"""The words in a picture, which stays as it is, and what its caption says of them in the other language.

A picture that a cell has drawn has its words as comments beside their outlines. What differs from picture to picture,
numbers and formulas, is an ellipsis in the catalogue of labels, so that one line there serves many pictures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: What a caption says before the words, in the catalogue of words.
SAYS = "In the picture: {words}."
#: The kind of a stored picture that has words.
SVG = "image/svg+xml"
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_FORMULA = re.compile(r"\$[^$]*\$")
_NUMBER = re.compile(r"(?<![A-Za-z\d])[-−+]?\d[\d.,]*(?:e[-+]?\d+)?%?")
_WORD = re.compile(r"[A-Za-z]{3}|[a-z]{2}")
_MARKDOWN = re.compile(r"([\\`*_\[\]<>$|])")


def label(text: str) -> str:
    r"""Return what a label says, with an ellipsis for each formula and each number.

    >>> label("encoder, layer 4 "), label(r"$\gamma$ in units of $\sqrt{2}$"), label("0.5")
    ('encoder, layer …', '… in units of …', '…')
    """
    plain = _NUMBER.sub("…", _FORMULA.sub("…", " ".join(text.split())))
    return re.sub(r"(?:… ?)+…", "…", plain).strip(" ,:;")


def labels(svg: str) -> list[str]:
    """Return the labels with a word in a picture, each once, in order.

    >>> labels("<g><!-- weight --></g><g><!-- 0.5 --></g><g><!-- weight --></g>")
    ['weight']
    """
    return list(dict.fromkeys(said for text in _COMMENT.findall(svg) if _WORD.search(said := label(text))))


def explained(svg: str, known: Mapping[str, str]) -> str:
    """Return the labels of a picture beside what they are in the other language; "" where none has a translation.

    known : the translations; a label that is the same in both languages, such as a name, is not told.

    >>> explained("<!-- weight --><!-- FAVOR+ -->", {"weight": "权重", "FAVOR+": "FAVOR+"})
    '“weight” 权重'
    """
    said = [(_MARKDOWN.sub(r"\\\1", one), known[one]) for one in labels(svg) if known.get(one, one) != one]
    return "；".join(f"“{one}” {other}" for one, other in said)
