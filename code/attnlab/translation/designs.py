"""The designs under comparison: where the weights of the encoder's self-attention come from. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from attnmath.checks import Fixed, one_of

#: Width of the models, width of a head, encoder layers, decoder layers, and width of the feed-forward parts.
WIDTH, HEAD, ENCODER_LAYERS, DECODER_LAYERS, HIDDEN = 64, 8, 2, 1, 128


class Design(NamedTuple):
    """Where the encoder's weights come from, head by head.

    patterns : heads with a fixed pattern.  frozen : heads whose W_Q and W_K are drawn once and kept.
    learned : heads with learned W_Q and W_K.  head : width of a head.  law : how frozen matrices are drawn.
    values : whether W_V is learned.
    """

    patterns: int = 0
    frozen: int = 0
    learned: int = 0
    head: int = HEAD
    law: str = "haar"
    values: bool = True

    @property
    def heads(self) -> int:
        """All heads of a layer."""
        return self.patterns + self.frozen + self.learned


#: Designs of the encoder's self-attention. The first four are the main comparison.
DESIGNS: Mapping[str, Design] = Fixed({
    "learned": Design(learned=8),
    "fixed": Design(patterns=7, learned=1),
    "single": Design(learned=1, head=WIDTH),
    "orthogonal": Design(frozen=8),
    "gaussian": Design(frozen=8, law="gaussian"),
    "orthogonal_values": Design(frozen=8, values=False),
    "hybrid": Design(frozen=7, learned=1),
    "narrow": Design(learned=1),
    "patterns": Design(patterns=7),
    "alone": Design(patterns=1),
})  # fmt: skip


def equal_hidden(design: str) -> int:
    """The encoder's feed-forward width at which a design has as many trained parameters as eight learned heads.

    >>> equal_hidden("learned"), equal_hidden("fixed"), equal_hidden("orthogonal")
    (128, 184, 192)
    """
    plan = DESIGNS[one_of(design, DESIGNS, "design")]
    width = plan.heads * plan.head
    trained = WIDTH * (2 * plan.learned * plan.head + width * (1 + plan.values))
    return HIDDEN + (4 * WIDTH * WIDTH - trained) // (2 * WIDTH)
