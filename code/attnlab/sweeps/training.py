"""How the small models are trained: AdamW along a warm-up and a cosine decay, with gradients of bounded length."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from attnmath.checks import instance, non_negative_integer, positive, positive_integer

#: The norm beyond which a gradient is shortened.
CLIP = 1.0


class Descent:
    """The steps of AdamW that train a model, at learning rates of `schedule` times the highest, `rate`.

    options : further ones of `torch.optim.AdamW`.

    >>> model = torch.nn.Linear(1, 1)
    >>> descent = Descent(model, 0.01, 1)
    >>> model(torch.full((1, 1), 3.0)).sum().backward()
    >>> round(float(descent.step()), 3)  # the gradient is (3, 1)
    3.162
    """

    def __init__(self, model: torch.nn.Module, rate: float, steps: int, **options: Any) -> None:
        self.model, steps = instance(model, torch.nn.Module, "model"), positive_integer(steps, "steps")
        self._optimiser = torch.optim.AdamW(model.parameters(), lr=positive(rate, "rate"), **options)
        self._rates = torch.optim.lr_scheduler.LambdaLR(self._optimiser, lambda step: schedule(step, steps))
        self._optimiser.zero_grad()

    def step(self) -> torch.Tensor:
        """Follow the gradient that the parameters hold, set it to zero, and return the norm that it had.

        A gradient of a norm above `CLIP` is shortened to it before.
        """
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self._optimiser.step()
        self._rates.step()
        self._optimiser.zero_grad()
        return norm


def must_be_finite(model: torch.nn.Module, rate: float) -> None:
    """Raise `ValueError`, which names the learning rate, if a weight of the trained model is no finite number.

    >>> must_be_finite(torch.nn.Linear(2, 1), 0.1)
    """
    instance(model, torch.nn.Module, "model")
    positive(rate, "rate")
    if not all(bool(weights.isfinite().all()) for weights in model.parameters()):
        raise ValueError(f"rate: expected a learning rate at which the weights stay finite, got {rate}")


def schedule(step: int, steps: int) -> float:
    """Learning rate at a step as a share of the highest: linear warm-up over a tenth, then a cosine decay to 0.

    >>> schedule(0, 100), schedule(10, 100)
    (0.1, 1.0)
    """
    step, steps = non_negative_integer(step, "step"), positive_integer(steps, "steps")
    if step > steps:
        raise ValueError(f"step: expected at most {steps}, the number of steps, got {step}")
    warm = max(1, steps // 10)
    if step < warm:
        return (step + 1) / warm
    return float(0.5 * (1 + np.cos(np.pi * (step - warm) / max(1, steps - warm))))
