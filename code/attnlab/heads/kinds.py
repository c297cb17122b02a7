"""The three kinds of trained models that the book measures, and the units that a mean over one kind may count.

The 72 heads of an encoder, the 64 heads of four small decoders that the book trains, and the 270 heads of a decoder
that others have trained. A statement on trained heads is asked of each kind by itself. Heads of one layer, and texts
of one model, are no independent units: they are averaged within one. Layers of one model share their training and
their input: what they support is a statement on the layers of that model, and not on models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from attnlab.heads.load import PRETRAINED, Decoders, Heads, load_decoders, load_heads, load_pretrained
from attnmath.arrays import Numpy
from attnmath.checks import floats, function


@dataclass(frozen=True)
class Kind:
    """The heads of one kind of model.

    samples : heads on one text each, with the units along their first axis.
    units : what one entry of `by_unit` is, as an `observation` says it.
    """

    name: str
    units: str
    samples: tuple[Heads | Decoders, ...]

    @property
    def causal(self) -> bool:
        """Whether a token sees those up to itself alone."""
        return all(getattr(sample, "causal", True) for sample in self.samples)

    @property
    def group(self) -> int:
        """How many successive heads share a key head: a null that exchanges heads moves them by as many."""
        return max(getattr(sample, "group", 1) for sample in self.samples)

    def without_first(self) -> Kind:
        """The same heads with their first token masked as a key, and without its row.

        The first token receives most weight in the encoder, where it is [CLS], and in the pretrained decoder.

        >>> [sample.n for sample in kinds()[2].without_first().samples]
        [79, 79]
        """
        shorter = (
            replace(sample, Q=sample.Q[..., 1:, :], K=sample.K[..., 1:, :], tokens=sample.tokens[1:])
            for sample in self.samples
        )
        return replace(self, samples=tuple(shorter))

    def by_unit(self, measure: Callable[[Heads | Decoders], Float[Numpy, "units ..."]]) -> Float[Numpy, "units"]:
        """Return the mean of a measure for each unit, over the heads in it and over the texts.

        measure : takes the heads on one text, and gives a number for each, in their own order of axes.

        >>> encoder, small, pretrained = kinds()
        >>> pretrained.by_unit(lambda heads: heads.weights()[..., 1:, 0].mean(axis=-1)).shape
        (30,)
        """
        measure = function(measure, "measure")
        found = [floats(measure(sample), "measure", at_least=1) for sample in self.samples]
        units = self.samples[0].Q.shape[0]
        if wrong := [values.shape for values in found if values.shape[0] != units]:
            raise ValueError(f"measure: expected values for {units} units along the first axis, got shape {wrong[0]}")
        return np.mean([values.reshape(units, -1).mean(axis=1) for values in found], axis=0)


def kinds() -> tuple[Kind, Kind, Kind]:
    """Load the three kinds: the encoder, the four small decoders, the pretrained decoder on its two texts.

    >>> [(kind.name, kind.units) for kind in kinds()]  # doctest: +NORMALIZE_WHITESPACE
    [('encoder', '6 layers of one encoder, heads averaged within each'),
     ('small decoders', '4 small decoders, heads averaged within each'),
     ('pretrained decoder', '30 layers of one pretrained decoder, heads and 2 texts averaged within each')]
    """
    encoder, small = load_heads(), load_decoders()
    pretrained = tuple(load_pretrained(text) for text in PRETRAINED)
    layers = f"{pretrained[0].layers} layers of one pretrained decoder"
    return (
        Kind("encoder", f"{encoder.layers} layers of one encoder, heads averaged within each", (encoder,)),
        Kind("small decoders", f"{len(small.seeds)} small decoders, heads averaged within each", (small,)),
        Kind("pretrained decoder", f"{layers}, heads and {len(pretrained)} texts averaged within each", pretrained),
    )
