"""One-layer sequence models that differ in one function only: what turns queries and keys into weights.

Each such function has one fixed parameter, which makes its rows more or less concentrated. All rows are causal and
normalised alike, a / sum |a|, which leaves S(a) as it is and serves rows of both signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils import skip_init

from attnlab.recall.table import check_parameter
from attnlab.recall.task import KEYS, VALUES
from attnmath.checks import Fixed, flag, instance, one_of, positive_integer
from attnmath.linear_cost.kernels import elu_plus_one

Weigh = Callable[[Float[Tensor, "size n d"], Float[Tensor, "size n d"], float], Float[Tensor, "size n n"]]

#: Keeps rows of zeros, which relu^2 can make, from dividing by 0.
_TINY = 1e-9


def _scaled(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / math.sqrt(q.shape[-1])


def _exponential(q: Tensor, k: Tensor, inverse_temperature: float) -> Tensor:
    s = inverse_temperature * _scaled(q, k)
    future = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1)
    return (s - s.masked_fill(future, -math.inf).amax(-1, keepdim=True)).clamp(max=0).exp()


def _relu_squared(q: Tensor, k: Tensor, bias: float) -> Tensor:
    return torch.relu(_scaled(q, k) + bias) ** 2


def _linear(q: Tensor, k: Tensor, power: float) -> Tensor:
    phi_q: Tensor = elu_plus_one(q) ** power
    return phi_q @ (elu_plus_one(k) ** power).mT


def _identity(q: Tensor, k: Tensor, power: float) -> Tensor:
    s = _scaled(q, k)
    return s if power == 1 else s * s.abs() ** (power - 1)


def _decay(q: Tensor, k: Tensor, rate: float) -> Tensor:
    position = torch.arange(q.shape[-2], device=q.device)
    distance = (position[:, None] - position[None, :]).clamp(min=0)
    return (torch.as_tensor(rate, dtype=q.dtype, device=q.device) ** distance).expand(q.shape[0], -1, -1)


#: The attentions under test: unnormalised weights from queries, keys and the fixed parameter.
ATTENTIONS: Mapping[str, Weigh] = Fixed({
    "softmax": _exponential,
    "relu^2": _relu_squared,
    "elu+1": _linear,
    "identity": _identity,
    "decay": _decay,
})  # fmt: skip


class Attention(nn.Module):
    """A head of attention: queries and keys of width `head`, values and output of width `width`.

    Each token is first mixed with the one before it, with learned coefficients. So a value can carry its key along,
    and one layer suffices to look it up. With `unit`, queries and keys are brought to length sqrt(head): the model
    then cannot undo the parameter by longer or shorter queries.
    """

    def __init__(self, attention: str, parameter: float, head: int, width: int, *, unit: bool) -> None:
        super().__init__()
        self.weigh, self.parameter, self.unit = ATTENTIONS[attention], parameter, unit
        self.now, self.before = nn.Parameter(torch.ones(3, width)), nn.Parameter(torch.zeros(3, width))
        self.query, self.key = (skip_init(nn.Linear, width, head, bias=False) for _ in range(2))
        self.value, self.out = (skip_init(nn.Linear, width, width, bias=False) for _ in range(2))

    def forward(self, x: Float[Tensor, "size n d"]) -> tuple[Float[Tensor, "size n d"], Float[Tensor, "size n n"]]:
        """Return the head's output and its weights."""
        previous = nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
        mixed = [self.now[i] * x + self.before[i] * previous for i in range(3)]
        q, k, v = self.query(mixed[0]), self.key(mixed[1]), self.value(mixed[2])
        if self.unit:
            q, k = (nn.functional.normalize(part, dim=-1) * math.sqrt(part.shape[-1]) for part in (q, k))
        a = self.weigh(q, k, self.parameter).tril()
        a = a / (a.abs().sum(-1, keepdim=True) + _TINY)
        return self.out(a @ v), a


class Recaller(nn.Module):
    """Embedding, one layer of attention and feed-forward part, and logits over the values at every position.

    parameter : the attention's fixed parameter (see `table.PARAMETERS`).  head, width : of queries and keys, and of
    the model.  unit : fix the lengths of queries and keys.  Weights are Gaussian with variance 1 / (entries of the
    input), drawn from `generator` alone.
    """

    def __init__(
        self, attention: str, parameter: float, head: int, width: int, generator: torch.Generator, *, unit: bool = False
    ) -> None:
        super().__init__()
        one_of(attention, ATTENTIONS, "attention")
        parameter = check_parameter(attention, parameter)
        instance(generator, torch.Generator, "generator")
        head, width = positive_integer(head, "head"), positive_integer(width, "width")
        self.embed = skip_init(nn.Embedding, KEYS + VALUES, width)
        self.norm, self.norm_after, self.norm_read = (nn.LayerNorm(width) for _ in range(3))
        self.attention = Attention(attention, parameter, head, width, unit=flag(unit, "unit"))
        self.forward_part = nn.Sequential(
            skip_init(nn.Linear, width, 2 * width), nn.GELU(), skip_init(nn.Linear, 2 * width, width)
        )
        self.read = skip_init(nn.Linear, width, VALUES)
        for part in self.modules():
            if isinstance(part, nn.Embedding):
                nn.init.normal_(part.weight, generator=generator)
            elif isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=part.in_features**-0.5, generator=generator)
                if part.bias is not None:
                    nn.init.zeros_(part.bias)

    def forward(
        self, tokens: Int[Tensor, "size n"]
    ) -> tuple[Float[Tensor, "size n values"], Float[Tensor, "size n n"]]:
        """Return logits over the values, and the weights of attention."""
        x: Any = self.embed(tokens)
        mixed, weights = self.attention(self.norm(x))
        x = x + mixed
        x = x + self.forward_part(self.norm_after(x))
        return self.read(self.norm_read(x)), weights
