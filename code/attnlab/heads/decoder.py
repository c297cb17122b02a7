"""A small causal decoder that predicts the next character of a text, and its training from a seed.

It is a Transformer with the norms in front of attention and of the feed-forward part, and with learned positions.
Attention is torch's own, which takes a sixth of the time that `attnmath.operator.attention` with its checks takes;
the tests compare both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import skip_init

from attnmath.arrays import Numpy
from attnmath.checks import instance, non_negative_integer, positive, positive_integer


@dataclass(frozen=True)
class Settings:
    """Everything that a training run depends on, beside its text.

    layers, heads, width : of the model; d_k = width / heads.  context : characters that it sees at most.
    steps, batch, rate, decay : of AdamW, with a linear warm-up over a tenth of the steps and a cosine decay to 0.
    """

    seed: int
    layers: int = 4
    heads: int = 4
    width: int = 96
    context: int = 128
    steps: int = 1000
    batch: int = 16
    rate: float = 3e-3
    decay: float = 0.1

    def __post_init__(self) -> None:
        non_negative_integer(self.seed, "seed")
        for name in ("layers", "heads", "width", "context", "steps", "batch"):
            positive_integer(getattr(self, name), name)
        for name in ("rate", "decay"):
            positive(getattr(self, name), name)
        if self.width % self.heads:
            raise ValueError(f"width: expected a multiple of the {self.heads} heads, got {self.width}")


class Layer(nn.Module):
    """Attention and a feed-forward part, each behind a norm and with a skip connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project = nn.ModuleList(skip_init(nn.Linear, width, width, bias=False) for _ in range(4))
        self.forward_part = nn.Sequential(
            skip_init(nn.Linear, width, 4 * width), nn.GELU(), skip_init(nn.Linear, 4 * width, width)
        )

    def forward(
        self, x: Float[Tensor, "size n d"]
    ) -> tuple[Float[Tensor, "size n d"], Float[Tensor, "size heads n d_k"], Float[Tensor, "size heads n d_k"]]:
        """Return the layer's output, and the queries and keys of its heads."""
        normed = self.norm(x)
        Q, K, V = (self.project[i](normed).unflatten(-1, (self.heads, -1)).transpose(1, 2) for i in range(3))
        O = nn.functional.scaled_dot_product_attention(Q, K, V, is_causal=True)  # noqa: E741
        x = x + self.project[3](O.transpose(1, 2).flatten(2))
        return x + self.forward_part(self.norm_after(x)), Q, K


class Decoder(nn.Module):
    """Embeddings of characters and positions, the layers, and logits over the next character.

    At initialisation, weights are Gaussian with variance 1 / (entries of the input), those of embeddings with
    variance 1 / width, drawn from `generator` alone.
    """

    def __init__(self, settings: Settings, alphabet: int, generator: torch.Generator) -> None:
        super().__init__()
        s, alphabet = instance(settings, Settings, "settings"), positive_integer(alphabet, "alphabet")
        instance(generator, torch.Generator, "generator")
        self.characters = skip_init(nn.Embedding, alphabet, s.width)
        self.positions = skip_init(nn.Embedding, s.context, s.width)
        self.layers = nn.ModuleList(Layer(s.width, s.heads) for _ in range(s.layers))
        self.norm, self.read = nn.LayerNorm(s.width), skip_init(nn.Linear, s.width, alphabet)
        for part in self.modules():
            if isinstance(part, nn.Embedding | nn.Linear):
                nn.init.normal_(part.weight, std=part.weight.shape[1] ** -0.5, generator=generator)
                if isinstance(part, nn.Linear) and part.bias is not None:
                    nn.init.zeros_(part.bias)

    def forward(self, ids: Int[Tensor, "size n"]) -> Float[Tensor, "size n alphabet"]:
        """Return the logits of the character after each position."""
        return self._run(ids)[0]

    @torch.no_grad()
    def queries_and_keys(
        self, ids: Int[Tensor, "n"]
    ) -> tuple[Float[Numpy, "layers heads n d_k"], Float[Numpy, "layers heads n d_k"]]:
        """Q and K of every head for one text."""
        _, Q, K = self._run(ids[None])
        return torch.cat(Q).cpu().numpy(), torch.cat(K).cpu().numpy()

    def _run(self, ids: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        x = self.characters(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        queries, keys = [], []
        for layer in self.layers:
            x, Q, K = layer(x)
            queries.append(Q)
            keys.append(K)
        return self.read(self.norm(x)), queries, keys


def initial(settings: Settings, alphabet: int) -> Decoder:
    """Return the model of a seed before its training."""
    seed = instance(settings, Settings, "settings").seed
    return Decoder(settings, alphabet, torch.Generator().manual_seed(seed))


def train(
    settings: Settings,
    ids: Int[Numpy, "length"],
    alphabet: int,
    *,
    device: str = "cpu",
    start: Decoder | None = None,
    order: Int[Numpy, "window"] | None = None,
    report: Callable[[int, float], None] = lambda step, loss: None,
) -> Decoder:
    """Train a model from its seed on a text, given as numbers from 0 to alphabet - 1.

    Weights and the order of the text depend on the seed alone.
    start : a model to train further, which is changed, instead of the one of the seed.
    order : a permutation of the context + 1 characters of each window, in which the model reads and predicts them.
    report : called after each step with its number and its loss in nats per character.
    """
    model = (initial(settings, alphabet) if start is None else instance(start, Decoder, "start")).to(device)
    text = torch.from_numpy(_text(ids, alphabet, settings.context))
    rng = np.random.default_rng([settings.seed, 1])
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.rate, weight_decay=settings.decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, settings.steps))
    window = np.arange(settings.context + 1) if order is None else np.asarray(order)
    if not np.array_equal(np.sort(window), np.arange(settings.context + 1)):
        raise ValueError(f"order: expected a permutation of {settings.context + 1} places, got {order}")
    for step in range(settings.steps):
        starts = rng.integers(len(text) - settings.context, size=settings.batch)
        piece = text[starts[:, None] + window].to(device)
        loss = nn.functional.cross_entropy(model(piece[:, :-1]).flatten(0, 1), piece[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        report(step, float(loss.detach()))
    return model


@torch.no_grad()
def bits_per_character(model: Decoder, ids: Int[Numpy, "length"]) -> float:
    """Mean cross-entropy of the next character in bits, over windows of the model's context that do not overlap."""
    context = instance(model, Decoder, "model").positions.num_embeddings
    text = torch.from_numpy(_text(ids, model.characters.num_embeddings, context))
    count = (len(text) - 1) // context
    given, wanted = (text[first : first + count * context].view(count, context) for first in (0, 1))
    total = 0.0
    for start in range(0, count, 32):
        part = slice(start, start + 32)
        logits = model(given[part].to(model.read.weight.device)).flatten(0, 1)
        total += float(nn.functional.cross_entropy(logits, wanted[part].flatten().to(logits.device), reduction="sum"))
    return total / (count * context * math.log(2))


def _text(ids: NDArray[np.int64], alphabet: int, context: int) -> NDArray[np.int64]:
    ids = np.asarray(ids)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer) or len(ids) <= context:
        raise ValueError(f"ids: expected more than {context} integers, got shape {ids.shape}, dtype {ids.dtype}")
    if ids.min() < 0 or ids.max() >= alphabet:
        raise ValueError(f"ids: expected values from 0 to {alphabet - 1}, got {ids.min()} to {ids.max()}")
    return ids.astype(np.int64)


def _rate(step: int, steps: int) -> float:
    warm = max(1, steps // 10)
    if step < warm:
        return (step + 1) / warm
    return float(0.5 * (1 + np.cos(np.pi * (step - warm) / max(1, steps - warm))))
