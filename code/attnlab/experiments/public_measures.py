"""What is measured of a public implementation: errors, bias, causality, time and memory, and the smallest instances.

Every measurement takes the name of a method of `public_adapters.METHODS` and numbers, so that a process of its own can
carry it out. Exact attention is computed in double precision, for at most `ROWS` queries.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attnlab.experiments import public_adapters
from attnlab.experiments.public_adapters import METHODS, imported
from attnlab.heads import load_decoders, load_heads, load_pretrained
from attnlab.heads.example import HEAD, LAYER
from attnmath.arrays import Numpy
from attnmath.checks import flag, non_negative_integer, one_of, positive_integer

#: Queries and keys: the trained head of the book's examples on the passage, its rows over and over up to n, and
#: Gaussian directions in 64 dimensions with norms drawn from those of all heads. "half": both at half their length.
INPUTS = ("trained", "trained, half", "gaussian", "gaussian, half")
#: Trained heads: those of the encoder on the passage, those of the small decoders, those of the pretrained decoder on
#: the passage, and all of them at half their length. Of heads that share a key head the first one counts.
GROUPS = ("encoder", "encoder, half", "decoders", "decoders, half", "pretrained", "pretrained, half")
#: Heads of each model: layers and heads, or seeds, layers and heads, or layers and key heads.
_SHAPES = {"encoder": (6, 12), "decoders": (4, 4, 4), "pretrained": (30, 3)}
#: Queries for which exact attention is computed, evenly spread.
ROWS = 256
#: Repeated calls of one method end after so many seconds; a call that takes longer than `LONG` is not repeated.
PATIENCE, LONG = 0.25, 10.0


class Number(NamedTuple):
    """A measured number and its standard error, 0 where nothing was drawn; NaN where a method gives no number."""

    value: float
    standard_error: float = 0.0


class Inputs(NamedTuple):
    """Queries, keys and values of one head, float32, of shape (n, d) each."""

    Q: Float[Numpy, "n d"]
    K: Float[Numpy, "n d"]
    V: Float[Numpy, "n d"]


def inputs(kind: str, n: int, seed: int = 0) -> Inputs:
    """Queries and keys of a kind of `INPUTS`, or of one of `heads_of` a group; the values are standard normal.

    The rows of a trained head come over and over up to n. The norms of a Gaussian head are those of q / d_k^(1/4) in
    the trained ones (d_k = 32), so that the kernel sees vectors of the same lengths. Each head of a group has a draw of
    the values of its own.

    >>> [inputs(kind, 5).Q.shape for kind in ("trained", "gaussian", "decoders 0.3.1", "pretrained 29.2")]
    [(5, 32), (5, 64), (5, 24), (5, 64)]
    """
    one_of(kind, _KINDS, "kind")
    n, seed = positive_integer(n, "n", at_most=1 << 20), non_negative_integer(seed, "seed")
    rng = np.random.default_rng(seed if kind in INPUTS else (seed, _KINDS[kind]))
    model = kind.partition(" ")[0]
    all_heads = _at_hand(model if model in _SHAPES else "encoder")
    if kind.startswith("gaussian"):
        Q, K = (_with_norms_of(trained, n, rng) for trained in all_heads)
    else:
        index: tuple[int, ...] = LAYER, HEAD
        if kind not in INPUTS:
            index = tuple(int(part) for part in kind.partition(" ")[2].removesuffix(", half").split("."))
        Q, K = (trained[index][np.arange(n) % trained.shape[-2]] for trained in all_heads)
    length = 0.5 if kind.endswith("half") else 1.0
    V = rng.standard_normal(Q.shape)
    return Inputs(*(np.ascontiguousarray(a, dtype=np.float32) for a in (length * Q, length * K, V)))


@cache
def _at_hand(model: str) -> tuple[Numpy, Numpy]:
    if model == "pretrained":
        pretrained = load_pretrained("passage")
        return pretrained.Q[:, :: pretrained.group], pretrained.K[:, :: pretrained.group]
    heads = load_decoders() if model == "decoders" else load_heads("passage")
    return heads.Q, heads.K


def causal(group: str) -> bool:
    """Whether the heads of a group are those of decoders.

    >>> [causal(group) for group in GROUPS]
    [False, False, True, True, True, True]
    """
    return not one_of(group, GROUPS, "group").startswith("encoder")


def heads_of(group: str) -> list[str]:
    """The inputs of a group, one for each head: layer and head, seed, layer and head, or layer and key head, from 0.

    >>> heads_of("encoder, half")[-1], heads_of("decoders")[0], len(heads_of("decoders"))
    ('encoder 5.11, half', 'decoders 0.0.0', 64)
    """
    name, _, half = one_of(group, GROUPS, "group").partition(", ")
    tail = f", {half}" if half else ""
    return [f"{name} {'.'.join(map(str, index))}{tail}" for index in np.ndindex(*_SHAPES[name])]


def group_of(kind: str) -> str:
    """The group of `GROUPS` that a head belongs to; "" for inputs that are not of a group.

    >>> group_of("encoder 5.11, half"), group_of("trained")
    ('encoder, half', '')
    """
    name, _, rest = one_of(kind, _KINDS, "kind").partition(" ")
    half = ", half" if rest.endswith(", half") else ""
    return "" if kind in INPUTS else name + half


def choosing(kind: str) -> bool:
    """Whether a head is of the half on which sizes are chosen, and not judged.

    Its number in its layer is even, or, of the three key heads of a layer of the pretrained decoder, the sum of the
    numbers of layer and key head.

    >>> choosing("encoder 5.10"), choosing("encoder 5.11, half"), choosing("pretrained 5.1")
    (True, False, True)
    """
    name, _, index = one_of(kind, _KINDS, "kind").removesuffix(", half").partition(" ")
    numbers = index.split(".")
    return kind not in INPUTS and sum(map(int, numbers if name == "pretrained" else numbers[-1:])) % 2 == 0


#: What `inputs` takes, and of a head its number, which seeds its values.
_KINDS = dict.fromkeys(INPUTS, 0) | {kind: i for group in GROUPS for i, kind in enumerate(heads_of(group))}


def _with_norms_of(trained: Numpy, n: int, rng: np.random.Generator, d: int = 64) -> Numpy:
    norms = np.linalg.norm(trained, axis=-1).ravel() * (d / trained.shape[-1]) ** 0.25
    X = rng.standard_normal((n, d))
    return X * (rng.choice(norms, n) / np.linalg.norm(X, axis=1))[:, None]


def _exact_weights(Q: Numpy, K: Numpy, rows: Numpy, causal: bool = False) -> Numpy:
    """Softmax attention weights of some queries, in double precision."""
    S = Q[rows].astype(np.float64) @ K.astype(np.float64).T / math.sqrt(Q.shape[1])
    if causal:
        S[rows[:, None] < np.arange(len(K))] = -np.inf
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def _equal_weights(rows: Numpy, n: int, causal: bool) -> Numpy:
    """The same weight on every key, or on every key up to the query's own."""
    seen = rows[:, None] >= np.arange(n) if causal else np.ones((len(rows), n), bool)
    equal: Numpy = seen / seen.sum(axis=1, keepdims=True)
    return equal


def _some(n: int, causal: bool = False) -> Numpy:
    """Queries for which exact attention is computed.

    A causal form leaves out the first one. It sees one key, every causal form is exact there, and its output is so long
    that it would decide the norm of all outputs.
    """
    rows = np.unique(np.linspace(0, n - 1, min(n, ROWS)).astype(int))
    return rows[1:] if causal and n > 1 else rows


def _relative(found: Numpy, exact: Numpy) -> float:
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(found.astype(np.float64) - exact) / np.linalg.norm(exact))


def mean_of_values(kind: str, n: int, *, matrix: bool = False, causal: bool = False) -> float:
    """Relative error of the simplest estimate: every weight is 1/n, and every output the mean of the values.

    matrix : that of the weights, in place of the output's.
    causal : of the values up to the query's own.
    """
    Q, K, V = inputs(kind, n)
    rows = _some(n, flag(causal, "causal"))
    P = _exact_weights(Q, K, rows, causal)
    equal = _equal_weights(rows, n, causal)
    return _relative(equal, P) if flag(matrix, "matrix") else _relative(equal @ V, P @ V)


def _over_seeds(values: list[float]) -> Number:
    """Mean over draws of the projections; what draws nothing has no standard error."""
    if len(values) < 2:
        return Number(values[0])
    return Number(float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values))))


def _draws(method: str, seeds: int) -> range:
    """Return the seeds that a method is measured with: one where nothing is drawn."""
    return range(seeds if METHODS[method].size in ("features", "projected keys") else 1)


def output_error(method: str, kind: str, n: int, m: int, causal: bool, seeds: int) -> dict[str, Number]:
    """Relative error of the output, |O - O_exact| / |O_exact| (Frobenius norms), over seeds of the projections."""
    Q, K, V = inputs(kind, n)
    rows = _some(n, causal)
    exact = _exact_weights(Q, K, rows, causal) @ V
    found = [METHODS[method].prepare(n, Q.shape[1], m, seed, causal)(Q, K, V)[rows] for seed in _draws(method, seeds)]
    return {"error": _over_seeds([_relative(output, exact) for output in found])}


def head_errors(
    method: str, group: str, n: int, m: int, causal: bool, seeds: int, *, judged: bool = False
) -> dict[str, Number]:
    """Relative error of the output on each head of a group, over seeds of the projections.

    judged : only on the heads on which no size is chosen.
    """
    kinds = [kind for kind in heads_of(group) if not (judged and choosing(kind))]
    return {kind: output_error(method, kind, n, m, causal, seeds)["error"] for kind in kinds}


def head_contrasts(method: str, group: str, n: int, m: int, causal: bool, seeds: int) -> dict[str, Number]:
    """The contrast that is kept of the weights of each head of a group, over seeds of the projections."""
    return {kind: matrix_error(method, kind, n, m, causal, seeds)["contrast"] for kind in heads_of(group)}


def matrix_error(method: str, kind: str, n: int, m: int, causal: bool, seeds: int) -> dict[str, Number]:
    """Three numbers of the matrix of weights, which is the output for V = I, over seeds.

    matrix error : relative, in Frobenius norm.
    contrast : the slope of the weights on the exact ones, both less equal weights; 1 without bias, and 0 for equal
        ones. In a causal form equal weights are those on the keys up to the query's own.
    row sum : mean sum of a row; 1 if the output is a weighted mean of the values.
    """
    Q, K, _ = inputs(kind, n)
    d, columns = Q.shape[1], np.eye(n, n + Q.shape[1], dtype=np.float32)
    # Some packages want as many columns of values as of keys; a call takes then d columns of the identity at a time.
    width = n if METHODS[method].wide else d
    exact = _exact_weights(Q, K, np.arange(n), causal)
    equal = _equal_weights(np.arange(n), n, causal)
    found: dict[str, list[float]] = {"matrix error": [], "contrast": [], "row sum": []}
    for seed in _draws(method, seeds):
        call = METHODS[method].prepare(n, d, m, seed, causal)
        blocks = [call(Q, K, np.ascontiguousarray(columns[:, low : low + width])) for low in range(0, n, width)]
        P = np.concatenate(blocks, axis=1)[:, :n].astype(np.float64)
        centred = exact - equal
        found["matrix error"].append(_relative(P, exact))
        found["contrast"].append(float(np.sum((P - equal) * centred) / np.sum(centred**2)))
        found["row sum"].append(float(P.sum(axis=1).mean()))
    return {name: _over_seeds(values) for name, values in found.items()}


def future(method: str, kind: str, n: int, m: int) -> dict[str, Number]:
    """Change of the outputs before the last one when the last token changes, over the largest of them.

    The last key becomes three times the longest one, and the last query and value three times what they were. A causal
    form gives 0.
    """
    Q, K, V = inputs(kind, n)
    call = METHODS[method].prepare(n, Q.shape[1], m, 0, True)
    before = call(Q, K, V)[:-1].copy()
    changed = Inputs(*(a.copy() for a in (Q, K, V)))
    changed.K[-1] = K[np.argmax(np.linalg.norm(K, axis=1))]
    for a in changed:
        a[-1] *= 3
    after = call(*changed)[:-1]
    return {"future": Number(float(np.max(np.abs(after - before)) / np.max(np.abs(before))))}


def shuffled_error(method: str, kind: str, n: int, m: int, orders: int) -> dict[str, Number]:
    """Relative error of the output when the tokens come in another order, over random orders.

    Exact attention gives each query the same output in every order of the tokens. A method that averages neighbours,
    or sees neighbours only, does not.
    """
    Q, K, V = inputs(kind, n)
    rows = _some(n)
    exact = _exact_weights(Q, K, rows) @ V
    errors = []
    for seed in range(orders):
        order = np.random.default_rng(seed).permutation(n)
        shuffled = METHODS[method].prepare(n, Q.shape[1], m, seed, False)(*(a[order] for a in (Q, K, V)))
        errors.append(_relative(shuffled[np.argsort(order)[rows]], exact))
    return {"error shuffled": _over_seeds(errors)}


def batch_change(method: str, kind: str, n: int, m: int) -> dict[str, Number]:
    """Relative change of the output of a sequence when another one joins its batch.

    The other one has the same values, and queries and keys of twice the length.
    """
    Q, K, V = inputs(kind, n)
    call = METHODS[method].prepare(n, Q.shape[1], m, 0, False)
    alone = call(Q, K, V)
    together = call(np.stack([Q, 2 * Q]), np.stack([K, 2 * K]), np.stack([V, V]))[0]
    return {"change in a batch": Number(_relative(together, alone.astype(np.float64)))}


def speed(method: str, kind: str, n: int, m: int, causal: bool, threads: int) -> dict[str, Number]:
    """Time and memory of one call, measured in this process, which should be a fresh one.

    seconds : processor time of all threads, the shortest of two to ten calls after the first (the first itself if it
        takes longer than `LONG`). Other processes lengthen it less than they lengthen the time of a clock.
    mebibytes : the peak of the resident memory of the process within the first call, less what it was before. What an
        earlier call gave back to the heap and not to the system is used again without being counted.

    Arguments, projections and weights are there before the clock starts; a call at a small length has loaded the code.
    """
    import torch

    torch.set_num_threads(threads)
    Q, K, V = inputs(kind, n)
    d = Q.shape[1]
    small = min(n, 64)
    METHODS[method].prepare(small, d, min(m, small), 0, causal)(*(a[:small] for a in (Q, K, V)))
    call = METHODS[method].prepare(n, d, m, 0, causal)
    before = _start_of_peak()
    start = time.process_time()
    call(Q, K, V)
    seconds = time.process_time() - start
    peak = _peak() - before
    spent = seconds
    times: list[float] = []
    while seconds < LONG and (len(times) < 2 or (spent < PATIENCE and len(times) < 10)):
        start = time.process_time()
        call(Q, K, V)
        times.append(time.process_time() - start)
        spent += times[-1]
    values = {"seconds": min(times, default=seconds), "mebibytes": max(peak, 0) / 2**20}
    return {name: Number(value) for name, value in values.items()}


def over_processes(found: Sequence[Mapping[str, Number]]) -> dict[str, Number]:
    """What `speed` gave in several processes: the median, and of the seconds the shortest and the longest too.

    >>> over_processes([{"seconds": Number(s), "mebibytes": Number(1.0)} for s in (3.0, 1.0, 2.0)])["slowest"].value
    3.0
    """
    seconds, mebibytes = ([values[name].value for values in found] for name in ("seconds", "mebibytes"))
    values = {"seconds": np.median(seconds), "fastest": min(seconds), "slowest": max(seconds),
              "mebibytes": np.median(mebibytes)}  # fmt: skip
    return {name: Number(float(value)) for name, value in values.items()}


def _status(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _start_of_peak() -> int:
    """Return the resident memory now, in bytes, and let the kernel record its peak from here on, where it can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        return _status("VmRSS")
    except OSError:
        return _peak()


def _peak() -> int:
    try:
        return _status("VmHWM")
    except OSError:
        import resource  # here, because Windows has no such module, and the chapters read the table alone

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def instances(distribution: str) -> dict[str, Number]:
    """The smallest instances: what a package answers where the chapter knows the answer of its formula."""
    one_of(distribution, public_adapters.DISTRIBUTIONS, "distribution")
    found = _INSTANCES.get(distribution, dict)()
    return {name: Number(float(value)) for name, value in found.items()}


def _performer_instances() -> dict[str, float]:
    imported("performer-pytorch")
    import torch
    from performer_pytorch import performer_pytorch as package

    def tensor(*values: float) -> torch.Tensor:
        return torch.tensor(values)[None, None, :, None]

    def attend(W: list[float], q: list[float], k: list[float], v: list[float], causal: bool = False) -> torch.Tensor:
        """Outputs of the module with heads of one dimension and the projections W."""
        with public_adapters.quiet():
            module = package.FastAttention(dim_heads=1, nb_features=len(W), causal=causal)
        module.projection_matrix.copy_(torch.tensor(W)[:, None])
        return module(tensor(*q), tensor(*k), tensor(*v))[0, 0, :, 0]

    found = {}
    for a in (1.0, 2.0, 3.0, 4.0, 5.0):
        found[f"epsilon {a:g}"] = attend([1.0, -1.0], [a, a], [a, -a], [1.0, 0.0])[0].item()
    for last in (0.0, 5.0, 10.0, 20.0):
        found[f"future {last:g}"] = attend([1.0], [0.0] * 3, [0.0, 1.0, last], [0.0, 1.0, 0.0], True)[1].item()
    torch.manual_seed(0)
    for d in (1, 2, 64):
        corner = [package.gaussian_orthogonal_random_matrix(d, d)[0, 0].item() for _ in range(200)]
        found[f"negative corners {d}"] = float(np.mean(np.asarray(corner) < 0))
    module = package.SelfAttention(dim=4, heads=1, dim_head=4, attn_out_bias=False)
    with torch.no_grad():
        for part, weight in ((module.to_q, 0.0), (module.to_k, 0.0), (module.to_v, 1.0), (module.to_out, 1.0)):
            part.weight.copy_(weight * torch.eye(4))
        mask = torch.tensor([[True, True, True, False]])
        found["masked row sum"] = module(torch.ones(1, 4, 4), mask=mask)[0, 0, 0].item()
    return found


def _efficient_instances() -> dict[str, float]:
    imported("linear-attention-transformer")
    import torch
    from linear_attention_transformer import linear_attention_transformer as package

    zeros, ones = torch.zeros(1, 1, 2, 4), torch.ones(1, 1, 2, 4)
    found = {"row sum": package.linear_attn(zeros, zeros, ones)[0, 0, 0, 0].item()}
    for level in (0.0, -10.0):
        out = package.causal_linear_attn(zeros, zeros + level, ones, bucket_size=1)
        found[f"causal row sum, keys {level:g}"] = out[0, 0, 0, 0].item()
    for level in (88.0, 89.0):
        out = package.causal_linear_attn(zeros, zeros + level, ones, bucket_size=1)
        found[f"causal finite, keys {level:g}"] = float(torch.isfinite(out).all())
    found["first of a bucket of 2"] = package.causal_linear_attn(zeros, zeros, ones, bucket_size=2)[0, 0, 0, 0].item()
    return found


def _linformer_instances() -> dict[str, float]:
    imported("linformer")
    from linformer import LinformerSelfAttention

    parts = {share: LinformerSelfAttention(4, seq_len=8, k=2, heads=1, share_kv=share) for share in (False, True)}
    return {f"value weights, share_kv={share}": float(hasattr(part, "to_v")) for share, part in parts.items()}


def _nystrom_instances() -> dict[str, float]:
    imported("nystrom-attention")
    import torch
    from nystrom_attention.nystrom_attention import NystromAttention, moore_penrose_iter_pinv

    module = NystromAttention(dim=3, dim_head=1, heads=1, num_landmarks=4, residual=False)
    module.to_qkv = module.to_out = torch.nn.Identity()
    x = torch.tensor([[[0.0, 0.0, 1.0]] * 3])
    A = torch.tensor([[[[0.9, 0.1], [0.1, 0.9]]], [[[0.9, 0.1], [0.9, 0.1]]]])
    with torch.no_grad():
        found = {
            "row sum": module(x)[0, 0, 0].item(),
            "row sum, mask": module(x, mask=torch.ones(1, 3, dtype=torch.bool))[0, 0, 0].item(),
        }
        for steps in (1, 6):
            found[f"pinv alone {steps}"] = moore_penrose_iter_pinv(A[:1], steps)[0, 0, 0, 0].item()
            found[f"pinv in a batch {steps}"] = moore_penrose_iter_pinv(A, steps)[0, 0, 0, 0].item()
    return found


def _local_instances() -> dict[str, float]:
    imported("local-attention")
    import torch
    from local_attention import LocalAttention

    zeros, ones, mask = torch.zeros(1, 1, 3, 4), torch.ones(1, 1, 3, 4), torch.ones(1, 3, dtype=torch.bool)
    found = {}
    for name, causal, given in (("", False, None), (", mask", False, mask), (", causal", True, None)):
        module = LocalAttention(window_size=4, causal=causal, autopad=True)
        found[f"row sum{name}"] = module(zeros, zeros, ones, mask=given)[0, 0, 0, 0].item()
    keys = torch.arange(16.0)[None, None, :, None]
    for exact in (False, True):
        module = LocalAttention(window_size=4, causal=True, exact_windowsize=exact)
        # With equal scores the mean of the values 0..15 tells which keys a query sees: from its index back.
        out = module(0 * keys, 0 * keys, keys)[0, 0, :, 0]
        reach = [1 + 2 * (i - out[i].item()) for i in range(8, 12)]
        found |= {
            f"keys seen {i}{', exact' if exact else ''}": seen for i, seen in zip(range(8, 12), reach, strict=True)
        }
    return found


_INSTANCES = {
    "performer-pytorch": _performer_instances,
    "linear-attention-transformer": _efficient_instances,
    "linformer": _linformer_instances,
    "nystrom-attention": _nystrom_instances,
    "local-attention": _local_instances,
}

#: The last instance of each package: with it all of them are there.
LAST_INSTANCE = {
    "performer-pytorch": "masked row sum",
    "linear-attention-transformer": "first of a bucket of 2",
    "linformer": "value weights, share_kv=True",
    "nystrom-attention": "pinv in a batch 6",
    "local-attention": "keys seen 11, exact",
}
