"""Find randomness that nobody seeded, in Python source, without running it.

The book's outputs must be the same on every run, so every random number comes from
``np.random.default_rng(seed)`` (passed on as `rng`) or from a torch generator with a seed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: What of numpy.random may be named at all; everything else is the legacy global state.
NUMPY_ALLOWED = {
    "default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937",
}  # fmt: skip
#: Constructors that draw a seed from the operating system when they are given none.
NUMPY_NEED_SEED = {"default_rng", "SeedSequence", "PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"}
TORCH_NEED_GENERATOR = {
    "rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson",
    "rand_like", "randn_like", "randint_like",
}  # fmt: skip
TENSOR_NEED_GENERATOR = {
    "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_",
}  # fmt: skip
#: Layers that draw their first weights, or their zeros, from torch's global generator.
TORCH_LAYERS = {
    "Linear", "Bilinear", "Embedding", "EmbeddingBag", "Conv1d", "Conv2d", "Conv3d", "RNN", "GRU", "LSTM",
    "MultiheadAttention", "Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer", "Dropout",
}  # fmt: skip
#: Names that mean a module by custom, where no import says otherwise.
CUSTOM = {"np": "numpy", "torch": "torch", "nn": "torch.nn", "random": "random"}


def unseeded(source: str) -> list[str]:
    """Return one sentence for each use of unseeded or legacy randomness, with its line.

    >>> unseeded("import numpy as np\\nx = np.random.default_rng(0).normal()")
    []
    >>> unseeded("import numpy as np\\nx = np.random.normal()")
    ['line 2: numpy.random.normal uses the legacy global state; use np.random.default_rng(seed)']
    """
    tree = ast.parse(source)
    names = dict(CUSTOM) | dict(_imports(tree))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    seeded = any(_dotted(c.func, names) in {"torch.manual_seed", "torch.random.manual_seed"} for c in calls)
    found = [(n.lineno, text) for n in ast.walk(tree) if isinstance(n, ast.expr) for text in _legacy(n, names)]
    found += [(c.lineno, text) for c in calls for text in _unseeded_call(c, names, seeded)]
    return [f"line {line}: {text}" for line, text in sorted(set(found))]


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each imported name with the dotted name it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    """Return the full dotted name of an expression, or "" when it is not a plain one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join([names[node.id], *reversed(parts)])


def _legacy(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Attribute | ast.Name):
        full = _dotted(node, names)
        module, _, name = full.rpartition(".")
        if module == "numpy.random" and name not in NUMPY_ALLOWED:
            yield f"{full} uses the legacy global state; use np.random.default_rng(seed)"


def _unseeded_call(call: ast.Call, names: dict[str, str], seeded: bool) -> Iterator[str]:
    full = _dotted(call.func, names)
    module, _, name = full.rpartition(".")
    keywords = {k.arg for k in call.keywords}
    if module == "numpy.random" and name in NUMPY_NEED_SEED and _no_seed(call):
        yield f"{full}() without a seed"
    elif module == "random" and (name not in {"Random", "seed"} or _no_seed(call)):
        yield f"{full} of the standard library; use np.random.default_rng(seed)"
    elif module == "torch" and name in TORCH_NEED_GENERATOR and not keywords & {"generator", None}:
        yield f"{full} without generator=; pass torch.Generator().manual_seed(seed)"
    elif module == "torch.nn" and name in TORCH_LAYERS and not seeded:
        yield f"{full} draws its weights unseeded; call torch.manual_seed(seed) first"
    elif isinstance(call.func, ast.Attribute):
        method = call.func.attr
        if method in TENSOR_NEED_GENERATOR and not module.startswith("torch.nn") and "generator" not in keywords:
            yield f".{method}() without generator=; pass torch.Generator().manual_seed(seed)"
        elif method == "rvs" and "random_state" not in keywords:
            yield ".rvs() without random_state=; pass a seeded generator"


def _no_seed(call: ast.Call) -> bool:
    """Say whether the call is given no seed, or None for one."""
    values = [*call.args[:1], *(k.value for k in call.keywords if k.arg in {"seed", "entropy", "x", None})]
    return not values or (isinstance(values[0], ast.Constant) and values[0].value is None)
