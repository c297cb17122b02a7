"""Train one model, and measure its recall and the concentration of its attention rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Real
from torch import nn

from attnmath.arrays import ArrayLike
from attnmath.checks import floats, instance, non_negative_integer, one_of, positive, positive_integer
from attnmath.recall.models import ATTENTIONS, Recaller
from attnmath.recall.task import KEYS, draw
from attnmath.sparsity import sparsity


@dataclass(frozen=True)
class Settings:
    """Everything that a run depends on.

    attention : one of `ATTENTIONS`.  pairs : key-value pairs in a sequence.  width : of the model.
    steps, batch, rate : of AdamW, with a linear warm-up over a tenth of the steps and a cosine decay to 0.
    """

    attention: str
    pairs: int
    width: int
    seed: int
    steps: int = 1000
    batch: int = 64
    rate: float = 5e-3

    def __post_init__(self) -> None:
        one_of(self.attention, ATTENTIONS, "attention")
        for name in ("pairs", "width", "steps", "batch"):
            positive_integer(getattr(self, name), name)
        if self.pairs > KEYS:
            raise ValueError(f"pairs: expected at most {KEYS}, the number of keys, got {self.pairs}")
        non_negative_integer(self.seed, "seed")
        positive(self.rate, "rate")


def run(settings: Settings) -> dict[str, Any]:
    """Train a model and return its settings with what was measured on fresh sequences.

    recall : share of the answers that are right, of 512 sequences.
    S_1, S_2 : mean S(a) over the rows of the queries, in each layer.
    support_1, support_2 : mean effective support n S^2 of those rows, at least 1.
    """
    instance(settings, Settings, "settings")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the order of sums, and so the result, must not depend on the number of cores
    try:
        return asdict(settings) | measure(train(settings), settings)
    finally:
        torch.set_num_threads(threads)


def train(settings: Settings) -> Recaller:
    """Train a model from its seed: weights and sequences depend on nothing else."""
    instance(settings, Settings, "settings")
    rng = np.random.default_rng([settings.seed, settings.pairs, settings.width])
    model = Recaller(settings.attention, settings.width, torch.Generator().manual_seed(settings.seed))
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, settings.steps))
    for _ in range(settings.steps):
        batch = draw(settings.batch, settings.pairs, rng)
        logits, _ = model(torch.from_numpy(batch.tokens))
        answers = torch.from_numpy(batch.answers)
        loss = nn.functional.cross_entropy(logits[:, -settings.pairs :].flatten(0, 1), answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model


@torch.no_grad()
def measure(model: Recaller, settings: Settings, sequences: int = 512) -> dict[str, float]:
    """Measure recall, S(a) and effective support on sequences that were not trained on."""
    pairs = instance(settings, Settings, "settings").pairs
    instance(model, Recaller, "model")
    batch = draw(sequences, pairs, np.random.default_rng([settings.seed, 1, pairs, 0]))
    logits, weights = model(torch.from_numpy(batch.tokens))
    right = logits[:, -pairs:].argmax(-1).numpy() == batch.answers
    found = {"recall": float(right.mean())}
    for number, a in enumerate(weights, start=1):
        S, support = concentration(a[:, -pairs:].double().numpy())
        found |= {f"S_{number}": S, f"support_{number}": support}
    return found


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


def _rate(step: int, steps: int) -> float:
    warm = max(1, steps // 10)
    if step < warm:
        return (step + 1) / warm
    return float(0.5 * (1 + np.cos(np.pi * (step - warm) / max(1, steps - warm))))
