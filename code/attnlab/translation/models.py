"""Encoder-decoder Transformers that differ in one thing only: where the weights of the encoder's attention come from.

Every model has width 64, two encoder layers and one decoder layer, layer normalisation before each part, sinusoidal
positions and no biases in its projections. The decoder is the same in all: eight learned heads.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils import skip_init

from attnlab.translation.designs import DECODER_LAYERS, DESIGNS, ENCODER_LAYERS, HEAD, HIDDEN, WIDTH, Design
from attnlab.translation.task import PAD, SOURCE_SIZE, SOURCE_SLOTS, TARGET_SIZE, TARGET_SLOTS
from attnmath.checks import one_of, positive_integer
from attnmath.fixed_attention.fixed_patterns import PATTERNS, fixed_patterns
from attnmath.fixed_attention.positions import sinusoidal
from attnmath.linear_cost.random_features.projections import gaussian, haar

#: Share of entries that training sets to 0, after each part and after the embedding.
DROPOUT = 0.1
_INIT_STD = WIDTH**-0.5


def _pattern_table(n: int = SOURCE_SLOTS) -> Float[Tensor, "lengths 7 n n"]:
    """The seven fixed patterns for sentences of 0 to n words, rows and columns beyond a sentence's end 0.

    They are those of `attnmath.fixed_attention.fixed_patterns` with the nearest word in place of one outside of the sentence, and with
    cubic weights over the whole sentence for its end and its start.
    """
    table = torch.zeros(n + 1, len(PATTERNS), n, n)
    for m in range(1, n + 1):
        table[m, :, :m, :m] = torch.from_numpy(fixed_patterns(m))
    return table


def _linear(inputs: int, outputs: int) -> nn.Linear:
    return skip_init(nn.Linear, inputs, outputs, bias=False)


def _split(x: Tensor, head: int) -> Tensor:
    """(size, n, heads * head) to (size, heads, n, head)."""
    return x.unflatten(-1, (-1, head)).transpose(1, 2)


def _weights(q: Tensor, k: Tensor, head: int, hidden: Tensor) -> Tensor:
    """Rows of softmax(q k^T / sqrt(d_k) + hidden); `hidden` is -inf where a query must not see a key, 0 elsewhere."""
    return torch.add(hidden, _split(q, head) @ _split(k, head).mT, alpha=head**-0.5).softmax(-1)


def _hidden(mask: Bool[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """-inf where the mask is True, 0 elsewhere."""
    return torch.zeros(mask.shape, device=mask.device).masked_fill(mask, -math.inf)


class EncoderAttention(nn.Module):
    """Self-attention of the encoder. Heads with patterns come first, then frozen ones, then learned ones.

    Frozen matrices are drawn per layer: `haar` for an orthogonal W_Q and W_K of all eight heads (of which the first
    `frozen` heads keep their columns), `gaussian` for independent entries of variance 1 / width, so that a column has
    the expected squared length 1 of an orthogonal one. Learned matrices start as such Gaussian ones.
    """

    frozen_query: Tensor
    frozen_key: Tensor
    frozen_value: Tensor

    def __init__(self, design: Design, frozen: np.random.Generator) -> None:
        super().__init__()
        self.design, head = design, design.head
        if design.learned:
            self.query, self.key = (_linear(WIDTH, design.learned * head) for _ in range(2))
        if design.values:
            self.value = _linear(WIDTH, design.heads * head)
        self.out = _linear(design.heads * head, WIDTH)
        drawn = [_frozen(design.law, frozen) for _ in range(3)]  # drawn in every design, so that seeds stay paired
        if design.frozen:
            for name, matrix in zip(("frozen_query", "frozen_key"), drawn, strict=False):
                self.register_buffer(name, matrix[: design.frozen * head].contiguous())
        if not design.values:
            self.register_buffer("frozen_value", drawn[2])

    def forward(
        self, x: Float[Tensor, "size n d"], padding: Float[Tensor, "size 1 1 n"], patterns: Float[Tensor, "size 7 n n"]
    ) -> tuple[Float[Tensor, "size n d"], Float[Tensor, "size heads n n"]]:
        """Return the output of the heads and their weights."""
        design, rows = self.design, []
        if design.patterns:
            rows.append(patterns[:, : design.patterns])
        if design.frozen:
            q, k = nn.functional.linear(x, self.frozen_query), nn.functional.linear(x, self.frozen_key)
            rows.append(_weights(q, k, design.head, padding))
        if design.learned:
            rows.append(_weights(self.query(x), self.key(x), design.head, padding))
        a = rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)
        v = self.value(x) if design.values else nn.functional.linear(x, self.frozen_value)
        return self.out((a @ _split(v, design.head)).transpose(1, 2).flatten(2)), a


class Attention(nn.Module):
    """Attention of the decoder, to itself or to the encoder: eight learned heads of width 8."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (_linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Float[Tensor, "size n d"], seen: Float[Tensor, "size m d"], hidden: Tensor) -> Tensor:
        """Queries from `x`, keys and values from `seen`; `hidden` as in `_weights`."""
        a = _weights(self.query(x), self.key(seen), HEAD, hidden)
        return self.out((a @ _split(self.value(seen), HEAD)).transpose(1, 2).flatten(2))


def _feed_forward(hidden: int) -> nn.Sequential:
    return nn.Sequential(_linear(WIDTH, hidden), nn.ReLU(), _linear(hidden, WIDTH))


def _frozen(law: str, rng: np.random.Generator) -> Float[Tensor, "d d"]:
    """A frozen matrix whose rows are the heads' directions: orthogonal, or of Gaussian entries of variance 1 / d."""
    drawn = gaussian(WIDTH, WIDTH, rng=rng) * _INIT_STD if law == "gaussian" else haar(WIDTH, rng=rng)
    return torch.from_numpy(drawn).float()


def _dropped(module: nn.Module, x: Tensor) -> Tensor:
    """Dropout while the module trains; its draws come from torch's generator, which `training.train` seeds."""
    return nn.functional.dropout(x, DROPOUT, module.training)


class EncoderLayer(nn.Module):
    """Self-attention of the design and a feed-forward part, each with its normalisation before it."""

    def __init__(self, design: Design, hidden: int, frozen: np.random.Generator) -> None:
        super().__init__()
        self.attention, self.forward_part = EncoderAttention(design, frozen), _feed_forward(hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))

    def forward(self, x: Tensor, padding: Tensor, patterns: Tensor) -> tuple[Tensor, Tensor]:
        """Return the layer's output and its heads' weights."""
        mixed, a = self.attention(self.norms[0](x), padding, patterns)
        x = x + _dropped(self, mixed)
        return x + _dropped(self, self.forward_part(self.norms[1](x))), a


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder and a feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        self.own, self.cross, self.forward_part = Attention(), Attention(), _feed_forward(HIDDEN)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))

    def forward(self, x: Tensor, memory: Tensor, future: Tensor, padding: Tensor) -> Tensor:
        """Return the layer's output."""
        y = self.norms[0](x)
        x = x + _dropped(self, self.own(y, y, future))
        x = x + _dropped(self, self.cross(self.norms[1](x), memory, padding))
        return x + _dropped(self, self.forward_part(self.norms[2](x)))


class Translator(nn.Module):
    """An encoder-decoder model of one of `DESIGNS`.

    hidden : width of the encoder's feed-forward parts.  seed : of all weights, learned and frozen. Parts that two
    designs share begin with the same weights.
    """

    positions: Tensor
    patterns: Tensor
    future: Tensor

    def __init__(self, design: str, hidden: int = HIDDEN, *, seed: int) -> None:
        super().__init__()
        one_of(design, DESIGNS, "design")
        hidden = positive_integer(hidden, "hidden", at_most=10_000)
        frozen = np.random.default_rng([seed, 3])
        self.embed_source = skip_init(nn.Embedding, SOURCE_SIZE, WIDTH)
        self.embed_target = skip_init(nn.Embedding, TARGET_SIZE, WIDTH)
        self.encoder = nn.ModuleList(EncoderLayer(DESIGNS[design], hidden, frozen) for _ in range(ENCODER_LAYERS))
        self.decoder = nn.ModuleList(DecoderLayer() for _ in range(DECODER_LAYERS))
        self.norm_encoder, self.norm_decoder = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.read = _linear(WIDTH, TARGET_SIZE)
        self.register_buffer(
            "positions", torch.from_numpy(sinusoidal(TARGET_SLOTS + 1, WIDTH)).float(), persistent=False
        )
        self.register_buffer("patterns", _pattern_table(), persistent=False)
        self.register_buffer("future", _hidden(torch.ones(TARGET_SLOTS, TARGET_SLOTS).triu(1).bool()), persistent=False)
        for name, part in self.named_modules():
            if isinstance(part, nn.Linear | nn.Embedding):
                # A generator for each part: its weights do not depend on the parts that another design has besides.
                own = torch.Generator().manual_seed(_hash(seed, name))
                std = _INIT_STD if isinstance(part, nn.Embedding) else part.in_features**-0.5
                nn.init.normal_(part.weight, std=std, generator=own)

    def shared(self) -> list[nn.Parameter]:
        """The parameters that every design has: both embeddings, the decoder and what reads its output."""
        parts = (self.embed_source, self.embed_target, self.decoder, self.norm_encoder, self.norm_decoder, self.read)
        return [parameter for part in parts for parameter in part.parameters()]

    def trained_parameters(self) -> int:
        """Number of parameters that training changes; frozen matrices are none of them."""
        return sum(parameter.numel() for parameter in self.parameters())

    def encode(self, source: Int[Tensor, "size n"]) -> tuple[Float[Tensor, "size n d"], list[Tensor]]:
        """Return the encoder's output and the weights of its heads, layer by layer."""
        n = source.shape[1]
        padding = _hidden(source == PAD)[:, None, None, :]
        patterns = self.patterns[(source != PAD).sum(1)][..., :n, :n]
        x = _dropped(self, self.embed_source(source) * math.sqrt(WIDTH) + self.positions[:n])
        weights = []
        for layer in self.encoder:
            x, a = layer(x, padding, patterns)
            weights.append(a)
        return self.norm_encoder(x), weights

    def decode(self, memory: Tensor, source: Int[Tensor, "size n"], shifted: Int[Tensor, "size m"]) -> Tensor:
        """Return logits of each next target token, from the tokens before it."""
        m = shifted.shape[1]
        x = _dropped(self, self.embed_target(shifted) * math.sqrt(WIDTH) + self.positions[:m])
        padding = _hidden(source == PAD)[:, None, None, :]
        for layer in self.decoder:
            x = layer(x, memory, self.future[:m, :m], padding)
        return self.read(self.norm_decoder(x))

    def forward(self, source: Int[Tensor, "size n"], shifted: Int[Tensor, "size m"]) -> Float[Tensor, "size m words"]:
        """Return logits of each target token; `shifted` is the target behind `BEGIN`, without its last token."""
        return self.decode(self.encode(source)[0], source, shifted)


def _hash(seed: int, name: str) -> int:
    """A seed for the part of that name; Python's own hash of a string changes from run to run."""
    words = np.random.SeedSequence([seed, *name.encode()]).generate_state(2)
    return int(words[0]) | int(words[1] & 0x7FFFFFFF) << 32
