"""Two-layer sequence models that differ in one function only: what turns queries and keys into weights.

All rows are causal and normalised alike, a / sum |a|, which leaves S(a) as it is and serves rows of both signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils import skip_init

from attnmath.checks import instance, one_of, positive_integer
from attnmath.kernels import elu_plus_one
from attnmath.recall.task import KEYS, VALUES

Weigh = Callable[[Float[Tensor, "size n d"], Float[Tensor, "size n d"], Float[Tensor, ""]], Float[Tensor, "size n n"]]

#: Keeps rows of zeros, which relu^2 can make, from dividing by 0.
_TINY = 1e-9


def _scaled(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / math.sqrt(q.shape[-1])


def _exponential(q: Tensor, k: Tensor, rate: Tensor) -> Tensor:
    s = _scaled(q, k)
    future = torch.ones(s.shape[-2:], dtype=torch.bool).triu(1)
    return (s - s.masked_fill(future, -math.inf).amax(-1, keepdim=True)).clamp(max=0).exp()


def _relu_squared(q: Tensor, k: Tensor, rate: Tensor) -> Tensor:
    return torch.relu(_scaled(q, k)) ** 2


def _linear(q: Tensor, k: Tensor, rate: Tensor) -> Tensor:
    phi_q: Tensor = elu_plus_one(q)
    return phi_q @ elu_plus_one(k).mT


def _identity(q: Tensor, k: Tensor, rate: Tensor) -> Tensor:
    return _scaled(q, k)


def _decay(q: Tensor, k: Tensor, rate: Tensor) -> Tensor:
    position = torch.arange(q.shape[-2])
    distance = (position[:, None] - position[None, :]).clamp(min=0)
    return torch.sigmoid(rate) ** distance.expand(q.shape[0], -1, -1)


#: The attentions under test: unnormalised weights from queries, keys and a rate of decay.
ATTENTIONS: Mapping[str, Weigh] = MappingProxyType({
    "softmax": _exponential,
    "relu^2": _relu_squared,
    "elu+1": _linear,
    "identity": _identity,
    "decay": _decay,
})  # fmt: skip


class Layer(nn.Module):
    """Attention and a feed-forward part, each behind a norm and with a skip connection.

    Before attention each token is mixed with the one before it, with learned coefficients. So a value can carry
    its key along, and one layer suffices to look it up.
    """

    def __init__(self, attention: str, width: int) -> None:
        super().__init__()
        self.weigh = ATTENTIONS[attention]
        self.norm, self.norm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.now, self.before = nn.Parameter(torch.ones(3, width)), nn.Parameter(torch.zeros(3, width))
        self.project = nn.ModuleList(skip_init(nn.Linear, width, width, bias=False) for _ in range(4))
        self.rate = nn.Parameter(torch.tensor(2.0))  # of decay: sigmoid(2) = 0.88
        self.forward_part = nn.Sequential(
            skip_init(nn.Linear, width, 2 * width), nn.GELU(), skip_init(nn.Linear, 2 * width, width)
        )

    def forward(self, x: Float[Tensor, "size n d"]) -> tuple[Float[Tensor, "size n d"], Float[Tensor, "size n n"]]:
        """Return the layer's output and its weights."""
        normed = self.norm(x)
        previous = nn.functional.pad(normed, (0, 0, 1, 0))[:, :-1]
        q, k, v = (self.project[i](self.now[i] * normed + self.before[i] * previous) for i in range(3))
        a = self.weigh(q, k, self.rate).tril()
        a = a / (a.abs().sum(-1, keepdim=True) + _TINY)
        x = x + self.project[3](a @ v)
        return x + self.forward_part(self.norm_after(x)), a


class Recaller(nn.Module):
    """Embedding, two layers, and logits over the values at every position.

    Weights are Gaussian with variance 1 / (entries of the input), drawn from `generator` alone.
    """

    def __init__(self, attention: str, width: int, generator: torch.Generator) -> None:
        super().__init__()
        one_of(attention, ATTENTIONS, "attention")
        instance(generator, torch.Generator, "generator")
        width = positive_integer(width, "width")
        self.embed = skip_init(nn.Embedding, KEYS + VALUES, width)
        self.layers = nn.ModuleList(Layer(attention, width) for _ in range(2))
        self.norm, self.read = nn.LayerNorm(width), skip_init(nn.Linear, width, VALUES)
        for part in self.modules():
            if isinstance(part, nn.Embedding):
                nn.init.normal_(part.weight, generator=generator)
            elif isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=part.in_features**-0.5, generator=generator)
                if part.bias is not None:
                    nn.init.zeros_(part.bias)

    def forward(
        self, tokens: Int[Tensor, "size n"]
    ) -> tuple[Float[Tensor, "size n values"], list[Float[Tensor, "size n n"]]]:
        """Return logits over the values, and the weights of both layers."""
        x: Any = self.embed(tokens)
        weights = []
        for layer in self.layers:
            x, a = layer(x)
            weights.append(a)
        return self.read(self.norm(x)), weights
