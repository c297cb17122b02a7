"""Find randomness that nobody seeded, in Python source, without running it.

The book's outputs must be the same on every run, so every random number comes from
``np.random.default_rng(seed)`` (passed on as `rng`) or from a torch generator with a seed, and the seed
is a number of the source: not the clock, not an address in memory, not what the operating system draws.
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
#: Modules and functions that draw from the operating system: never the same twice, whatever is done with them.
ENTROPY = {"secrets", "uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getrandom", "random.SystemRandom"}
#: Functions whose values differ from run to run, as those of time and datetime do: allowed, but not in a seed.
VARYING = {"id", "hash", "object", "os.getpid", "os.times", "threading.get_ident"}
#: Calls whose first argument is a seed, and keywords that pass one.
SEEDED = {"seed", "manual_seed", "manual_seed_all", "Random", "RandomState", *NUMPY_NEED_SEED}
SEED_KEYWORDS = {"seed", "entropy", "random_state", "rng"}
RANDOM_MODULES = {"numpy.random", "random", "secrets", "torch.random"}
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
    names = _names(tree)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    seeded = any(_dotted(c.func, names) in {"torch.manual_seed", "torch.random.manual_seed"} for c in calls)
    found = [(n.lineno, text) for n in ast.walk(tree) if isinstance(n, ast.expr) for text in _legacy(n, names)]
    found += [(c.lineno, text) for c in calls for text in _unseeded_call(c, names, seeded)]
    found += [*_hidden(tree, names), *_varying_seeds(tree, calls, names)]
    return [f"line {line}: {text}" for line, text in sorted(set(found))]


def _names(tree: ast.AST) -> dict[str, str]:
    """Return what each name stands for: by custom, by an import, or by `r = np.random`."""
    names = dict(CUSTOM) | dict(_imports(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _dotted(node.value, names):
            names[node.targets[0].id] = _dotted(node.value, names)
    return names


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
    """Return the full dotted name of an expression, or "" when it is not a plain one.

    ``getattr(np.random, "rand")`` is ``np.random.rand``.
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Call):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif _is_getattr(node) and isinstance(name := node.args[1], ast.Constant):
            parts.append(str(name.value))
            node = node.args[0]
        else:
            return ""
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join([names[node.id], *reversed(parts)])


def _is_getattr(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "getattr" and len(call.args) >= 2


def _legacy(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Attribute | ast.Name | ast.Call):
        full = _dotted(node, names)
        module, _, name = full.rpartition(".")
        if module == "numpy.random" and name not in NUMPY_ALLOWED | {"__dict__"}:
            yield f"{full} uses the legacy global state; use np.random.default_rng(seed)"
        if full in ENTROPY or module in ENTROPY:
            yield f"{full} draws from the operating system; use np.random.default_rng(seed)"


def _hidden(tree: ast.AST, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yield ways around a name that can be read: computed names, dictionaries of modules, star imports."""
    for node in ast.walk(tree):
        hides = False
        if isinstance(node, ast.ImportFrom):
            hides = node.module in RANDOM_MODULES and node.names[0].name == "*"
        elif isinstance(node, ast.Attribute):
            hides = node.attr == "__dict__" and _dotted(node.value, names) in RANDOM_MODULES
        elif isinstance(node, ast.Call) and _is_getattr(node):
            computed = not isinstance(node.args[1], ast.Constant)
            hides = computed and _dotted(node.args[0], names) in RANDOM_MODULES | {"numpy", "torch"}
        elif isinstance(node, ast.Call) and node.args:
            function = _dotted(node.func, names) or getattr(node.func, "id", "")
            given = getattr(node.args[0], "value", "") if function != "vars" else _dotted(node.args[0], names)
            hides = function in {"vars", "__import__", "importlib.import_module"} and given in RANDOM_MODULES
        if hides and isinstance(node, ast.expr | ast.stmt):
            yield node.lineno, f"{ast.unparse(node)} hides which random numbers are drawn"


def _varying_seeds(tree: ast.AST, calls: list[ast.Call], names: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the seeds that depend on the clock, on an address in memory, on the process or on a salted hash."""
    varying: set[str] = set()
    assigned = [
        (_used(node.value), _varies(node.value, names, varying), _stored(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value
    ]
    grown: set[str] | None = None
    while grown != varying:
        grown = set(varying)
        varying.update(*(targets for used, varies, targets in assigned if varies or used & grown))
    for call in calls:
        name = (_dotted(call.func, names) or ast.unparse(call.func)).rpartition(".")[2]
        seeds = [k.value for k in call.keywords if k.arg in SEED_KEYWORDS] + (call.args[:1] if name in SEEDED else [])
        for seed in seeds:
            if _varies(seed, names, varying):
                yield call.lineno, f"the seed {ast.unparse(seed)} is another one on every run"


def _used(value: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}


def _stored(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _varies(value: ast.expr, names: dict[str, str], varying: set[str]) -> bool:
    """Return whether an expression depends on a call of something in `VARYING`, or on a name that does."""
    called = [n.func for n in ast.walk(value) if isinstance(n, ast.Call)]
    full = [_dotted(f, names) or getattr(f, "id", "") for f in called]
    return bool(_used(value) & varying) or any(f in VARYING or f.startswith(("time.", "datetime.")) for f in full)


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
    """Return whether the call is given no seed, or None for one."""
    values = [*call.args[:1], *(k.value for k in call.keywords if k.arg in {"seed", "entropy", "x", None})]
    return not values or (isinstance(values[0], ast.Constant) and values[0].value is None)
