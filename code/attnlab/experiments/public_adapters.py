"""Public implementations of attention in linear cost behind one interface: float32 numpy arrays in, one head.

`METHODS` lists them. `Method.prepare` builds what a model would build once (projections drawn, weights set), and gives
a function of Q, K, V that computes the output alone. A package is imported when one of its methods is prepared.

Modules that project their input themselves get queries, keys and values side by side as input, and their projections
are replaced by slices, so that every method attends with the same Q, K and V.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float

from attnmath.arrays import Numpy
from attnmath.checks import one_of
from attnmath.linear_cost.expansion import expanded_attention
from attnmath.linear_cost.random_features import maps, optimal, projections
from attnmath.linear_cost.random_features.performer import performer_attention

#: Q, K and V to the output, each of shape (n, d).
Call = Callable[[Float[Numpy, "n d"], Float[Numpy, "n d"], Float[Numpy, "n d"]], Float[Numpy, "n d"]]
#: Length n, head size d, size m (features, landmarks, ...), seed, and whether the attention is causal.
Prepare = Callable[[int, int, int, int, bool], Call]

#: What the optional group `compare` installs: distribution, and the module that it brings.
DISTRIBUTIONS = {
    "torch": "torch",
    "performer-pytorch": "performer_pytorch",
    "linear-attention-transformer": "linear_attention_transformer",
    "linformer": "linformer",
    "nystrom-attention": "nystrom_attention",
    "local-attention": "local_attention",
}
#: The maps of this package.
MAPS = ("trigonometric", "positive", "hyperbolic", "gerf", "sderf", "aderf")


@dataclass(frozen=True)
class Method:
    """One way to compute attention.

    distribution : what is installed for it.  size : what m counts; "" if there is nothing to choose.
    causal : whether it has a causal form.  wide : whether the values may have more columns than queries and keys.
    """

    name: str
    distribution: str
    size: str
    causal: bool
    wide: bool
    prepare: Prepare


def imported(distribution: str) -> ModuleType:
    """Import the module of a distribution; `ModuleNotFoundError` has the name of what is missing.

    What packages say while they are imported (warnings about their own dependencies) is left out.
    """
    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        return importlib.import_module(DISTRIBUTIONS[one_of(distribution, DISTRIBUTIONS, "distribution")])


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing on standard output: a package reports there what it falls back to."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def _tensors(*arrays: Numpy) -> list[Any]:
    """Return arrays as tensors with a batch and a head in front, memory shared."""
    import torch

    return [torch.from_numpy(a)[None, None] for a in arrays]


def _exact(n: int, d: int, m: int, seed: int, causal: bool) -> Call:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    def call(Q: Numpy, K: Numpy, V: Numpy) -> Numpy:
        q, k, v = _tensors(Q, K, V)
        with torch.inference_mode():
            return scaled_dot_product_attention(q, k, v, is_causal=causal)[0, 0].numpy()

    return call


def _performer(n: int, d: int, m: int, seed: int, causal: bool) -> Call:
    imported("performer-pytorch")
    import torch
    from performer_pytorch import FastAttention

    torch.manual_seed(seed)
    with quiet():
        attention = FastAttention(dim_heads=d, nb_features=m, causal=causal).eval()

    def call(Q: Numpy, K: Numpy, V: Numpy) -> Numpy:
        with torch.inference_mode():
            return attention(*_tensors(Q, K, V))[0, 0].numpy()

    return call


def _performer_mended(n: int, d: int, m: int, seed: int, causal: bool) -> Call:
    """The package's own functions, with a far smaller epsilon in the features, and a random sign for each projection.

    1e-18 is small beside the features that count, and the product of two is still a number in single precision.
    """
    imported("performer-pytorch")
    import torch
    from performer_pytorch import performer_pytorch as package

    torch.manual_seed(seed)
    W = package.gaussian_orthogonal_random_matrix(m, d)
    W = W * (2 * torch.randint(0, 2, (m, 1), generator=torch.Generator().manual_seed(seed)) - 1)
    attend = partial(package.causal_linear_attention_noncuda, eps=0.0) if causal else package.linear_attention
    features = partial(package.softmax_kernel, projection_matrix=W, eps=1e-18)

    def call(Q: Numpy, K: Numpy, V: Numpy) -> Numpy:
        q, k, v = _tensors(Q, K, V)
        with torch.inference_mode():
            return attend(features(q, is_query=True), features(k, is_query=False), v)[0, 0].numpy()

    return call


def _efficient(n: int, d: int, m: int, seed: int, causal: bool) -> Call:
    imported("linear-attention-transformer")
    import torch
    from linear_attention_transformer import linear_attention_transformer as package

    attend = partial(package.causal_linear_attn, bucket_size=1) if causal else package.linear_attn

    def call(Q: Numpy, K: Numpy, V: Numpy) -> Numpy:
        with torch.inference_mode():
            return attend(*_tensors(Q, K, V))[0, 0].numpy()

    return call


def _linformer(n: int, d: int, m: int, seed: int, causal: bool) -> Call:
    imported("linformer")
    import torch
    from linformer import LinformerSelfAttention

    torch.manual_seed(seed)
    module = LinformerSelfAttention(3 * d, seq_len=n, k=m, heads=1, dim_head=d).eval()
    return _side_by_side(module, d)


def _side_by_side(module: Any, d: int) -> Callable[..., Numpy]:
    """A module that projects its input to queries, keys and values of d columns, here by slices of the input.

    The call takes arrays of shape (n, d), or of shape (b, n, d) for a batch of b sequences.
    """
    import torch

    for place, name in enumerate(("to_q", "to_k", "to_v")):
        if hasattr(module, name):
            delattr(module, name)  # a registered part takes no plain function in its place
        setattr(module, name, lambda x, low=place * d: x[..., low : low + d])
    module.to_qkv = torch.nn.Identity()
    module.to_out = torch.nn.Identity()

    def call(Q: Numpy, K: Numpy, V: Numpy, **options: Any) -> Numpy:
        x = torch.from_numpy(np.concatenate([Q, K, V], axis=-1))
        batch = x if x.ndim == 3 else x[None]
        with torch.inference_mode():
            return module(batch, **options).reshape(*x.shape[:-1], d).numpy()

    return call


def _nystrom(n: int, d: int, m: int, seed: int, causal: bool) -> Call:
    """The mask says that every token is there: without it the tokens that fill up the last landmark take part."""
    imported("nystrom-attention")
    import torch
    from nystrom_attention import NystromAttention

    module = NystromAttention(dim=3 * d, dim_head=d, heads=1, num_landmarks=m, residual=False).eval()
    call = _side_by_side(module, d)
    mask = torch.ones(1, n, dtype=torch.bool) if n % m else None
    return partial(call, mask=mask)


def _local(n: int, d: int, m: int, seed: int, causal: bool) -> Call:
    """The mask as for `_nystrom`; rotary embeddings stay off as long as the module is not told its size `dim`."""
    imported("local-attention")
    import torch
    from local_attention import LocalAttention

    module = LocalAttention(window_size=m, causal=causal, autopad=True).eval()
    mask = torch.ones(1, n, dtype=torch.bool) if n % m and not causal else None

    def call(Q: Numpy, K: Numpy, V: Numpy) -> Numpy:
        with torch.inference_mode():
            return module(*_tensors(Q, K, V), mask=mask)[0, 0].numpy()

    return call


def _ours(name: str, torch: bool, n: int, d: int, m: int, seed: int, causal: bool) -> Call:
    """m features by orthogonal projections.

    Parameters that depend on the data are found within the call. A causal form must not do that, since the queries
    and keys of the future would decide them: it keeps those of its first call, as a model keeps those of other data.
    """
    waves = name in ("trigonometric", "hyperbolic")
    W = projections.orthogonal(max(m // 2, 1) if waves else m, d, rng=np.random.default_rng(seed))

    def features(Q: Numpy, K: Numpy) -> maps.RandomFeatures:
        X, Y = Q * d**-0.25, K * d**-0.25
        if name == "gerf":
            return maps.gerf(W, optimal.optimal_gerf(X, Y))
        if name == "sderf":
            return maps.sderf(W, *optimal.optimal_sderf(X, Y))
        if name == "aderf":
            return maps.aderf(W, *optimal.optimal_aderf(X, Y))
        return getattr(maps, name)(W)

    chunk = 256 if causal else 1024
    kept: list[maps.RandomFeatures] = []

    def call(Q: Numpy, K: Numpy, V: Numpy) -> Numpy:
        f = kept[0] if kept else features(Q, K)
        if causal and not kept:
            kept.append(f)
        if not torch:
            return performer_attention(Q, K, V, f, causal=causal, chunk=chunk)
        q, k, v = _tensors(Q, K, V)
        return performer_attention(q, k, v, f, causal=causal, chunk=chunk)[0, 0].numpy()

    return call


def _expansion(order: int, torch: bool, n: int, d: int, m: int, seed: int, causal: bool) -> Call:
    """The expansion about the mean query; a causal form keeps that of its first call, as `_ours` keeps parameters."""
    kept: list[Numpy] = []

    def call(Q: Numpy, K: Numpy, V: Numpy) -> Numpy:
        if not kept or not causal:
            kept[:] = [Q.mean(axis=0)]
        if not torch:
            return expanded_attention(Q, K, V, centre=kept[0], order=order, causal=causal)
        q, k, v, c = (part[0, 0] for part in _tensors(Q, K, V, kept[0]))
        return expanded_attention(q, k, v, centre=c, order=order, causal=causal).numpy()

    return call


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("softmax, torch", "torch", "", True, True, _exact),
        Method("performer-pytorch", "performer-pytorch", "features", True, True, _performer),
        Method("performer-pytorch, mended", "performer-pytorch", "features", True, True, _performer_mended),
        Method("linear-attention-transformer", "linear-attention-transformer", "", True, False, _efficient),
        Method("linformer", "linformer", "projected keys", False, False, _linformer),
        Method("nystrom-attention", "nystrom-attention", "landmarks", False, False, _nystrom),
        Method("local-attention", "local-attention", "window", True, True, _local),
        Method("attnmath expansion", "torch", "", True, True, partial(_expansion, 1, True)),
        Method("attnmath expansion, numpy", "", "", True, True, partial(_expansion, 1, False)),
        Method("attnmath expansion of order 2", "torch", "", False, True, partial(_expansion, 2, True)),
        *(Method(f"attnmath {name}", "torch", "features", True, True, partial(_ours, name, True)) for name in MAPS),
        *(Method(f"attnmath {name}, numpy", "", "features", True, True, partial(_ours, name, False)) for name in MAPS),
    )
}
