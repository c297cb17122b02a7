"""Numbers behind the figures of the chapter on the attention operator (sections 5.1.1 to 5.1.3)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from attnmath.attention import softmax
from attnmath.heads import Heads, load_heads

#: Heads of the shipped encoder that show three habits: (layer, head), counted from 0.
PREVIOUS, SINK, TOPIC = (0, 2), (4, 5), (5, 11)


@cache
def sentence() -> Heads:
    """The heads of the encoder on the short sentence."""
    return load_heads("sentence")


def head(which: tuple[int, int], *, rows: bool) -> dict[str, Any]:
    """Weights of one head on the sentence, with its tokens; `rows` labels the queries too."""
    tokens = sentence().tokens
    title = f"$\\ell={which[0] + 1},\\ h={which[1] + 1}$"
    labels = {"query_labels": tokens if rows else [""] * len(tokens), "key_labels": tokens}
    return {"weights": sentence().weights()[which], "title": title, "colorbar": False, **labels}


def previous_token() -> dict[str, Any]:
    """A head of layer 1 that looks one token back."""
    return head(PREVIOUS, rows=True)


def sink() -> dict[str, Any]:
    """A head of layer 5 that rests on the first token."""
    return head(SINK, rows=False)


def topic() -> dict[str, Any]:
    """A head of layer 6 in which nearly every token looks at the same noun."""
    return head(TOPIC, rows=False)


def lookup() -> dict[str, Any]:
    """Weight of the best of eight keys against the temperature, for three gaps to its rivals."""
    T = np.geomspace(0.02, 20, 200)
    gaps = {r"$\Delta=1$": 1.0, r"$\Delta=0.3$": 0.3, r"$\Delta=0$": 0.0}

    def best(gap: float) -> Any:
        # With a gap of 0 the best key is tied with one rival; the other six stay at distance 1.
        row = np.asarray([gap, 0.0, *[-1.0] * 6]) if gap == 0 else np.asarray([gap, *[0.0] * 7])
        return np.asarray([softmax(row, temperature=t)[0] for t in T])

    return {
        "x": T,
        "curves": {label: best(gap) for label, gap in gaps.items()},
        "xlabel": "$T$",
        "ylabel": r"$\max_j P_{ij}$",
        "xscale": "log",
    }
