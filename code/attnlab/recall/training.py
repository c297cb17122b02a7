"""Train one model, and measure its recall and the concentration of its attention rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, Real
from torch import Tensor, nn

from attnlab.devices import torch_device
from attnlab.recall.models import ATTENTIONS, Recaller
from attnlab.recall.table import check_parameter
from attnlab.recall.task import KEYS, Batch, draw
from attnlab.sweeps.training import Descent, must_be_finite
from attnlab.threads import one_thread
from attnmath.arrays import ArrayLike
from attnmath.checks import (
    flag,
    floats,
    instance,
    non_negative_integer,
    one_of,
    positive,
    positive_integer,
)
from attnmath.sparsity import sparsity

#: Sequences to train on, to choose a learning rate by, and to report are drawn from generators of their own.
_TRAIN, _VALIDATE, _TEST = range(3)


@dataclass(frozen=True)
class Settings:
    """Everything that a run depends on.

    attention : one of `ATTENTIONS`.  parameter : its fixed parameter, see `table.PARAMETERS`.  unit : whether queries
    and keys have a fixed length.  pairs : key-value pairs in a sequence.  head, width : of queries and keys, and of the
    model.  steps, batch, rate : of AdamW, with a linear warm-up over a tenth of the steps and a cosine decay to 0.
    """

    attention: str
    parameter: float
    unit: bool
    pairs: int
    head: int
    width: int
    seed: int
    steps: int = 300
    batch: int = 32
    rate: float = 0.024

    def __post_init__(self) -> None:
        one_of(self.attention, ATTENTIONS, "attention")
        check_parameter(self.attention, self.parameter)
        flag(self.unit, "unit")
        for name in ("pairs", "head", "width", "steps", "batch"):
            positive_integer(getattr(self, name), name)
        if self.pairs > KEYS:
            raise ValueError(f"pairs: expected at most {KEYS}, the number of keys, got {self.pairs}")
        non_negative_integer(self.seed, "seed")
        positive(self.rate, "rate")


def run(settings: Settings, device: str = "cpu") -> dict[str, Any]:
    """Train a model and return its settings with what was measured on fresh sequences, and the device.

    validation : recall on the sequences by which a learning rate is chosen; the others are measured on the test's.
    See `measure` for the rest.
    """
    instance(settings, Settings, "settings")
    torch_device(device)
    with one_thread():  # the order of sums, and so the result, must not depend on the number of cores
        model = train(settings, device)
        validation = measure(model, settings, stream=_VALIDATE)["recall"]
        return asdict(settings) | {"validation": validation} | measure(model, settings) | {"device": device}


def train(settings: Settings, device: str = "cpu") -> Recaller:
    """Train a model from its seed: weights and sequences depend on nothing else.

    A learning rate that is so high that weights leave the range of the numbers raises `ValueError`.
    """
    instance(settings, Settings, "settings")
    place = torch_device(device)
    rng = _generator(settings, _TRAIN)
    model = build(settings).to(place)
    descent = Descent(model, settings.rate, settings.steps, weight_decay=0.01, fused=True)
    for _ in range(settings.steps):
        tokens, answers = _tensors(draw(settings.batch, settings.pairs, rng), place)
        logits, _ = model(tokens)
        nn.functional.cross_entropy(logits[:, -settings.pairs :].flatten(0, 1), answers.flatten()).backward()
        descent.step()
    must_be_finite(model, settings.rate)
    return model


def build(settings: Settings) -> Recaller:
    """Return the model before training. Its weights depend on the seed and the two widths, not on the attention."""
    s = instance(settings, Settings, "settings")
    weights = torch.Generator().manual_seed(s.seed)
    return Recaller(s.attention, s.parameter, s.head, s.width, weights, unit=s.unit)


@torch.no_grad()
def measure(model: Recaller, settings: Settings, sequences: int = 512, *, stream: int = _TEST) -> dict[str, float]:
    """Measure recall and concentration on sequences that were not trained on.

    recall : share of the answers that are right.  target : mean share of |a| on the value that is the answer.
    S, support : mean S(a) and mean effective support n S^2, at least 1, of the rows of the queries.
    """
    pairs = instance(settings, Settings, "settings").pairs
    instance(model, Recaller, "model")
    batch = draw(sequences, pairs, _generator(settings, stream))
    tokens, answers = _tensors(batch, next(model.parameters()).device)
    logits, weights = model(tokens)
    rows = weights[:, -pairs:].double().cpu()
    S, support = concentration(rows.numpy())
    right = (logits[:, -pairs:].argmax(-1) == answers).double().mean()
    target = torch.take_along_dim(rows.abs(), torch.from_numpy(_places(batch))[:, :, None], dim=2).mean()
    return {"recall": float(right), "target": float(target), "S": S, "support": support}


def concentration(rows: Real[ArrayLike, "size pairs n"]) -> tuple[float, float]:
    """Mean S(a) and mean n S^2 of the causal rows at the last positions.

    Row i of them has n - pairs + 1 + i entries that are not masked. Rows of zeros, which relu^2 can make,
    have no S and are left out; NaN if there is no other.
    """
    rows = floats(rows, "rows", ndim=3)
    _, pairs, n = rows.shape
    if pairs > n:
        raise ValueError(f"rows: expected shape (size, pairs, n) with n at least pairs, got {rows.shape}")
    S, support = [], []
    for i in range(pairs):
        seen = rows[:, i, : n - pairs + 1 + i]
        seen = seen[np.any(seen != 0, axis=1)]
        if len(seen):
            S.append(sparsity(seen))
            support.append(seen.shape[1] * S[-1] ** 2)
    if not S:
        return float("nan"), float("nan")
    return float(np.mean(np.concatenate(S))), float(np.mean(np.concatenate(support)))


def _generator(settings: Settings, stream: int) -> np.random.Generator:
    return np.random.default_rng([settings.seed, stream, settings.pairs])


def _tensors(batch: Batch, device: torch.device) -> tuple[Int[Tensor, "size n"], Int[Tensor, "size pairs"]]:
    return torch.from_numpy(batch.tokens).to(device), torch.from_numpy(batch.answers).to(device)


def _places(batch: Batch) -> np.ndarray:
    """Where in its sequence the value stands that answers each query."""
    pairs = batch.answers.shape[1]
    listed, asked = batch.tokens[:, : 2 * pairs : 2], batch.tokens[:, 2 * pairs :]
    return 2 * (asked[:, :, None] == listed[:, None, :]).argmax(axis=2) + 1
