"""What the attacks are tried on: the one place for structured and for random instances.

A `Kind` yields batches. A batch holds many instances of one shape, stacked along a leading axis, so that a property
is evaluated for all of them at once: a kind with the names ("A",) gives arrays of shape (batch, n, n), and a kind with
the names ("Q", "K", "V") gives three arrays with the same leading axis.

    row_stochastic.such_that(lambda A: A.min((1, 2)) > 0)              # a hypothesis: only these instances count
    row_stochastic.also(x=lambda rng, A: rng.normal(size=A.shape[:2]))  # a further array for each instance
    score_rows.map("p", softmax)                                       # other instances, computed from these

Every draw is seeded. A first round has all structured instances and at least 10,000 random ones; where a hypothesis
rejects some of them, the hunt asks for further rounds.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
Named = tuple[str, tuple[Array, ...]]  # one structured instance: its name and its arrays

SIZES = (1, 2, 3, 4, 5, 6)
SHAPES = ((1, 1), (1, 4), (2, 1), (2, 3), (2, 5), (3, 1), (3, 3), (3, 6), (4, 2), (5, 6), (6, 1), (6, 3))
ROUND = 10_200  # random instances in a round, before a hypothesis rejects any
KEPT = 4  # rounds that stay in memory, about a megabyte each, because many attacks share them
SCALES = (1e-6, 1.0, 1e6)
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Batch:
    """Instances of one shape. names: one for each structured instance; None for random ones."""

    arrays: tuple[Array, ...]
    names: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.arrays[0])

    def pick(self, chosen: Array) -> Batch:
        """The instances at the given positions."""
        names = None if self.names is None else tuple(self.names[i] for i in chosen)
        return Batch(tuple(array[chosen] for array in self.arrays), names)

    def title(self, i: int) -> str:
        """Say which instance the i-th is."""
        return f"random instance {i} of its batch" if self.names is None else self.names[i]


@dataclass(frozen=True, eq=False)
class Kind:
    """A source of instances. make(round) yields batches; only round 0 has structured ones."""

    names: tuple[str, ...]
    make: Callable[[int], Iterable[Batch]]
    cached: bool = False
    _kept: dict[int, list[Batch]] = field(default_factory=dict, repr=False)

    def batches(self, round_: int = 0) -> Iterator[Batch]:
        """The batches of a round, none of them empty. Arrays are read-only: many attacks share them."""
        if round_ in self._kept:
            yield from self._kept[round_]
            return
        kept = []
        for batch in self.make(round_):
            if len(batch) > 0:
                for array in batch.arrays:
                    array.setflags(write=False)
                if self.cached:
                    kept.append(batch)
                yield batch
        if self.cached and round_ < KEPT:
            self._kept[round_] = kept

    def such_that(self, hypothesis: Callable[..., Array]) -> Kind:
        """Only the instances for which the function returns True."""

        def make(round_: int) -> Iterator[Batch]:
            for batch in self.batches(round_):
                yield batch.pick(np.flatnonzero(hypothesis(*batch.arrays)))

        return Kind(self.names, make)

    def also(self, **extras: Callable[..., Array]) -> Kind:
        """Each instance with further arrays; every function gets a generator and the arrays before it."""

        def make(round_: int) -> Iterator[Batch]:
            for number, batch in enumerate(self.batches(round_)):
                rng, arrays = np.random.default_rng([round_, number, 1]), batch.arrays
                for draw in extras.values():
                    arrays = (*arrays, np.asarray(draw(rng, *arrays)))
                yield Batch(arrays, batch.names)

        return Kind((*self.names, *extras), make)

    def map(self, names: str, function: Callable[..., Array | tuple[Array, ...]]) -> Kind:
        """What the function computes from each batch. names: of its arrays, separated by spaces."""

        def make(round_: int) -> Iterator[Batch]:
            for batch in self.batches(round_):
                made = function(*batch.arrays)
                yield Batch(made if isinstance(made, tuple) else (made,), batch.names)

        return Kind(tuple(names.split()), make)

    def __or__(self, other: Kind) -> Kind:
        """The instances of both kinds, which have the same names."""
        if self.names != other.names:
            raise ValueError(f"expected the same names, got {self.names} and {other.names}")
        return Kind(self.names, lambda round_: itertools.chain(self.batches(round_), other.batches(round_)))


def kind(
    names: str,
    structured: Callable[[], Iterable[Named]],
    random: Callable[[np.random.Generator, int, tuple[int, ...]], Array | tuple[Array, ...]],
    shapes: Sequence[tuple[int, ...]],
) -> Kind:
    """A kind from named instances, and from a function that draws `count` instances of one shape."""
    count = -(-ROUND // len(shapes))

    def make(round_: int) -> Iterator[Batch]:
        if round_ == 0:
            yield from stacked(structured())
        rng = np.random.default_rng([round_, zlib.crc32(names.encode()), len(shapes)])
        for shape in shapes:
            drawn = random(rng, count, shape)
            yield Batch(drawn if isinstance(drawn, tuple) else (drawn,), None)

    return Kind(tuple(names.split()), make, cached=True)


def stacked(named: Iterable[Named]) -> Iterator[Batch]:
    """Batches of the named instances, one for each shape."""
    groups: dict[tuple[tuple[int, ...], ...], list[Named]] = {}
    for name, arrays in named:
        arrays = tuple(np.asarray(array) for array in arrays)
        groups.setdefault(tuple(array.shape for array in arrays), []).append((name, arrays))
    for group in groups.values():
        columns = zip(*(arrays for _, arrays in group), strict=True)
        yield Batch(tuple(np.stack(column) for column in columns), tuple(name for name, _ in group))


def softmax(S: Array) -> Array:
    """Softmax over the last axis, written out here: an attack must not rest on the package that it attacks."""
    S = np.asarray(S, dtype=float)
    E = np.exp(S - S.max(axis=-1, keepdims=True))
    return E / E.sum(axis=-1, keepdims=True)


def moderate(limit: float) -> Callable[..., Array]:
    """A hypothesis: no entry of any array exceeds the limit in size."""

    def within(*arrays: Array) -> Array:
        sizes = [np.abs(array).reshape(len(array), -1).max(axis=1) for array in arrays]
        return np.max(sizes, axis=0) <= limit

    return within


# Real entries -------------------------------------------------------------------------------------------------------


def shares(count: int, parts: int) -> list[int]:
    """Divide count into that many nearly equal parts."""
    return [count // parts + (i < count % parts) for i in range(parts)]


def entries(rng: np.random.Generator, count: int, shape: tuple[int, ...], scaled: bool = True) -> Array:
    """Real arrays of one shape, of all families in equal parts; half of them at scales from 1e-6 to 1e6."""

    def normal(c: int) -> Array:
        return rng.normal(size=(c, *shape))

    def common(c: int) -> Array:
        return rng.normal(size=(c, *shape[:-1], 1))

    def loadings(c: int) -> Array:
        return rng.normal(size=(c, *(1,) * (len(shape) - 1), *shape[-1:]))

    families: tuple[Callable[[int], Array], ...] = (
        normal,
        lambda c: rng.uniform(-1, 1, size=(c, *shape)),
        lambda c: rng.standard_t(2.1, size=(c, *shape)),  # heavy tails, a variance that exists only just
        lambda c: rng.standard_t(3, size=(c, *shape)),
        lambda c: rng.choice([-1.0, 1.0], size=(c, *shape)),  # two-valued
        lambda c: rng.integers(-2, 3, size=(c, *shape)).astype(float),  # ties and zeros
        lambda c: (common(c) + normal(c)) / np.sqrt(2),  # equicorrelated components
        lambda c: common(c) * loadings(c) + normal(c) / 10,  # one factor
        lambda c: np.where(rng.random(size=(c, *shape)) < 0.5, 0.0, normal(c)),  # sparse
        lambda c: common(c) + 1e-6 * normal(c),  # rows nearly constant
        lambda c: loadings(c) + np.zeros((c, *shape)),  # equal rows
    )
    parts = [family(c) for family, c in zip(families, shares(count, len(families)), strict=True)]
    drawn = np.concatenate(parts)
    if scaled:
        exponents = np.where(np.arange(count) % 2, 0.0, rng.uniform(-6, 6, size=count))
        drawn = drawn * 10.0 ** exponents.reshape(-1, *(1,) * len(shape))
    return drawn


def named_matrices(n: int, d: int) -> Iterator[Named]:
    """The real n x d matrices that anyone would try first."""
    ramp = np.arange(n * d, dtype=float).reshape(n, d)
    plain = {
        "zeros": np.zeros((n, d)),
        "all entries 1": np.ones((n, d)),
        "identity": np.eye(n, d),
        "shifted identity": np.roll(np.eye(n, d), 1, axis=0),
        "0, 1, 2, ...": ramp,
        "all rows equal": np.tile(np.arange(1.0, d + 1), (n, 1)),
        "all columns equal": np.tile(np.arange(1.0, n + 1)[:, None], (1, d)),
        "alternating signs": (-1.0) ** ramp,
        "lower triangular": np.tril(np.ones((n, d))),
        "ties": ramp % 2,
        "one entry": np.where(ramp == 0, 1.0, 0.0),
        "one negative entry": np.where(ramp == 0, -1.0, 0.0),
        "two blocks": np.equal.outer(np.arange(n) % 2, np.arange(d) % 2).astype(float),
        "circulant": np.subtract.outer(np.arange(n), np.arange(d)) % max(n, d) + 0.0,
    }
    for name, matrix in plain.items():
        for scale in SCALES:
            yield f"{name}, {n} x {d}, times {scale:g}", (matrix * scale,)


def _matrices(shapes: Sequence[tuple[int, int]], names: str) -> Kind:
    return kind(names, lambda: itertools.chain.from_iterable(named_matrices(*s) for s in shapes), entries, shapes)


def _rows(names: str, change: Callable[[Array], Array] = lambda x: x) -> Kind:
    def structured() -> Iterator[Named]:
        for d in SIZES:
            for name, (matrix,) in named_matrices(1, d):
                yield name.replace(f", 1 x {d}", f", length {d}"), (change(matrix[0]),)

    return kind(names, structured, lambda rng, c, shape: change(entries(rng, c, shape)), [(d,) for d in SIZES])


matrices = _matrices(SHAPES, "A")
score_matrices = _matrices(SHAPES, "S")
square_matrices = _matrices([(n, n) for n in SIZES], "M")
symmetric_matrices = square_matrices.map("S", lambda M: (M + M.swapaxes(1, 2)) / 2)
score_rows = _rows("s")
vectors = _rows("x")
nonnegative_vectors = _rows("a", np.abs)
vector_pairs = vectors.also(y=lambda rng, x: entries(rng, len(x), x.shape[1:])[rng.permutation(len(x))])


# Distributions ------------------------------------------------------------------------------------------------------


def distributions(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    """Distributions along the last axis: softmax rows at all scales, Dirichlet from sharp to flat, one-hot, sparse."""
    n = shape[-1]

    def sparse(c: int) -> Array:
        raw = rng.random(size=(c, *shape)) * (rng.random(size=(c, *shape)) < 0.5)
        raw[..., 0] += 1e-3
        return raw / raw.sum(axis=-1, keepdims=True)

    families: tuple[Callable[[int], Array], ...] = (
        lambda c: softmax(entries(rng, c, shape)),
        lambda c: softmax(3 * rng.normal(size=(c, *shape))),
        lambda c: rng.dirichlet(np.full(n, 1.0), size=(c, *shape[:-1])),
        lambda c: softmax(np.log(rng.gamma(0.2, size=(c, *shape)) + 1e-30)),  # sharp
        lambda c: rng.dirichlet(np.full(n, 20.0), size=(c, *shape[:-1])),  # flat
        lambda c: np.eye(n)[rng.integers(0, n, size=(c, *shape[:-1]))],  # one-hot
        lambda c: 0.999 * np.eye(n)[rng.integers(0, n, size=(c, *shape[:-1]))] + 0.001 / n,  # nearly one-hot
        sparse,
    )
    parts = [family(c) for family, c in zip(families, shares(count, len(families)), strict=True)]
    return np.concatenate(parts)


def named_distributions(n: int) -> Iterator[Named]:
    """The distributions over n that anyone would try first."""
    plain = {
        "uniform": np.ones(n),
        "one-hot": np.eye(n)[0],
        "one-hot, last": np.eye(n)[-1],
        "two equal weights": np.eye(n)[0] + np.eye(n)[-1],
        "nearly one-hot": np.eye(n)[0] + 1e-9,
        "nearly uniform": 1 + 1e-9 * np.arange(n),
        "falling by halves": 0.5 ** np.arange(n),
        "a tiny weight": np.where(np.arange(n) == n - 1, 1e-300 if n > 1 else 1.0, 1.0),
        "1, 2, 3, ...": np.arange(1.0, n + 1),
    }
    for name, weights in plain.items():
        yield f"{name}, n = {n}", (weights / weights.sum(),)


probability_rows = kind(
    "p", lambda: itertools.chain.from_iterable(map(named_distributions, SIZES)), distributions, [(n,) for n in SIZES]
)


def permutations(rng: np.random.Generator, count: int, n: int) -> Array:
    """Permutation matrices, shape (count, n, n)."""
    return np.eye(n)[rng.random(size=(count, n)).argsort(axis=1)]


def _stochastic(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    n = shape[0]

    def doubly(c: int) -> Array:
        weights = rng.dirichlet(np.ones(3), size=c)
        return sum(weights[:, i, None, None] * permutations(rng, c, n) for i in range(3))

    def circulant(c: int) -> Array:
        row = rng.dirichlet(np.ones(n), size=c)
        return np.stack([np.roll(row, i, axis=1) for i in range(n)], axis=1)

    def blocks(c: int) -> Array:
        half = np.arange(n) < (n + 1) // 2
        raw = rng.random(size=(c, n, n)) * np.equal.outer(half, half)
        return raw / raw.sum(axis=-1, keepdims=True)

    families: tuple[Callable[[int], Array], ...] = (
        lambda c: distributions(rng, c, (n, n)),
        lambda c: distributions(rng, c, (n, n)),
        lambda c: np.repeat(distributions(rng, c, (1, n)), n, axis=1),  # all rows equal
        lambda c: permutations(rng, c, n),
        doubly,
        circulant,
        lambda c: causal_rows(rng, c, n),
        blocks,
        lambda c: 0.9 * np.eye(n) + 0.1 * distributions(rng, c, (n, n)),  # close to the identity
    )
    parts = [family(c) for family, c in zip(families, shares(count, len(families)), strict=True)]
    return np.concatenate(parts)


def causal_rows(rng: np.random.Generator, count: int, n: int) -> Array:
    """Lower triangular row-stochastic matrices, shape (count, n, n)."""
    raw = np.tril(distributions(rng, count, (n, n)) + 1e-9)
    return raw / raw.sum(axis=-1, keepdims=True)


def named_stochastic(n: int) -> Iterator[Named]:
    """The row-stochastic n x n matrices that anyone would try first."""
    eye, past = np.eye(n), np.tril(np.ones((n, n)))
    plain = {
        "identity": eye,
        "uniform": np.ones((n, n)),
        "all rows one-hot at the first": np.tile(eye[0], (n, 1)),
        "nearly all rows one-hot at the first": np.tile(eye[0] + 1e-6, (n, 1)),
        "cyclic shift": np.roll(eye, 1, axis=1),
        "reversal": eye[::-1],
        "first two swapped": eye[[1, 0, *range(2, n)]] if n > 1 else eye,
        "each looks at the previous, the first at itself": eye[np.maximum(np.arange(n) - 1, 0)],
        "uniform over the past": past,
        "two blocks": np.equal.outer(np.arange(n) % 2, np.arange(n) % 2).astype(float),
        "all rows 7, 1, 1, ...": np.tile(np.where(np.arange(n) == 0, 7.0, 1.0), (n, 1)),
        "stays with 1 - 1e-9": eye + 1e-9 / n,
        "neighbours on a line": (np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 1) + 0.0,
        "stays 1, forwards 2, back 3": eye + 2 * np.roll(eye, 1, axis=1) + 3 * np.roll(eye, -1, axis=1),
    }
    for name, weights in plain.items():
        yield f"{name}, n = {n}", (weights / weights.sum(axis=1, keepdims=True),)
    if n == 3:
        yield "defective, n = 3", (np.array([[5, 5, 2], [3, 3, 6], [4, 4, 4]]) / 12,)
        yield "defective and causal, n = 3", (np.array([[4, 0, 0], [2, 2, 0], [1, 1, 2]]) / 4,)


row_stochastic = kind(
    "A", lambda: itertools.chain.from_iterable(map(named_stochastic, SIZES)), _stochastic, [(n, n) for n in SIZES]
)
positive_stochastic = row_stochastic.such_that(lambda A: A.min(axis=(1, 2)) > 0)
causal_stochastic = kind(
    "A",
    lambda: (
        (name, (np.tril(A + 1e-9) / np.tril(A + 1e-9).sum(axis=1, keepdims=True),))
        for n in SIZES
        for name, (A,) in named_stochastic(n)
    ),
    lambda rng, count, shape: causal_rows(rng, count, shape[0]),
    [(n, n) for n in SIZES],
)
stochastic_pairs = row_stochastic.also(B=lambda rng, A: A[rng.permutation(len(A))])


def _named_maps() -> Iterator[Named]:
    for n in (1, 2, 3, 4):
        for image in itertools.product(range(n), repeat=n):
            yield f"the map {image}", (np.array(image),)


maps = kind("f", _named_maps, lambda rng, c, shape: rng.integers(0, shape[0], size=(c, *shape)), [(n,) for n in SIZES])


# Attention ----------------------------------------------------------------------------------------------------------

# n queries, m keys, d_k, d_v
ATTENTION = ((1, 1, 1, 1), (1, 3, 2, 2), (2, 1, 3, 1), (2, 2, 1, 1), (3, 2, 5, 4), (3, 3, 1, 2),
             (3, 3, 3, 3), (4, 6, 2, 1), (5, 5, 6, 3), (6, 4, 1, 5), (6, 6, 2, 2), (2, 5, 4, 6))  # fmt: skip


def _named_attention() -> Iterator[Named]:
    for n, m, d, d_v in ATTENTION:
        queries, keys = list(named_matrices(n, d)), list(named_matrices(m, d))
        for (name, (Q,)), (_, (K,)) in zip(queries, keys, strict=True):
            yield f"queries and keys: {name}", (Q, K, np.eye(m, d_v))
        yield f"no query, keys 0, 1, 2, ...; {n} x {d}", (np.zeros((n, d)), keys[12][1][0], np.ones((m, d_v)))


attention = kind(
    "Q K V",
    _named_attention,
    lambda rng, c, s: tuple(
        entries(rng, c, shape)[rng.permutation(c)] for shape in ((s[0], s[2]), (s[1], s[2]), (s[1], s[3]))
    ),
    ATTENTION,
)
queries_and_keys = attention.map("Q K", lambda Q, K, V: (Q, K))

# n tokens, d_model, d_k, d_v
INPUTS = ((1, 1, 1, 1), (1, 3, 2, 2), (2, 1, 3, 1), (2, 2, 1, 1), (2, 4, 4, 2), (3, 2, 5, 4),
          (3, 3, 3, 3), (4, 6, 2, 1), (5, 2, 2, 2), (5, 5, 3, 3), (6, 1, 1, 1), (6, 4, 4, 4))  # fmt: skip


def _named_inputs() -> Iterator[Named]:
    for n, d, d_k, d_v in INPUTS:
        weights, tokens = list(named_matrices(d, d_k)), list(named_matrices(n, d))
        for (name, (X,)), (_, (W,)) in zip(tokens, weights, strict=True):
            yield f"tokens {name}, W_Q = W_K likewise", (X, W, W, np.eye(d, d_v))
        for (name, (X,)), (_, (W,)) in zip(tokens, weights[::-1], strict=True):
            yield f"tokens {name}, W_K = -W_Q", (X, W, -W, np.ones((d, d_v)))


inputs = kind(
    "X W_Q W_K W_V",
    _named_inputs,
    lambda rng, c, s: tuple(
        entries(rng, c, shape)[rng.permutation(c)] for shape in (s[:2], s[1:3], s[1:3], (s[1], s[3]))
    ),
    INPUTS,
)


# Masks: True where a key may be seen; every row sees something ------------------------------------------------------


def _masks(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    seen = rng.random(size=(count, *shape)) < rng.uniform(0.1, 0.9, size=(count, 1, 1))
    always = rng.integers(0, shape[1], size=(count, shape[0], 1))
    return seen | (np.arange(shape[1]) == always)


def _named_masks() -> Iterator[Named]:
    for n, m in SHAPES:
        apart = np.subtract.outer(np.arange(n), np.arange(m))
        yield f"no mask, {n} x {m}", (apart == apart,)
        yield f"causal, {n} x {m}", (apart >= 0,)
        yield f"first key only, {n} x {m}", (np.arange(m) + np.zeros((n, 1)) == 0,)
        yield f"window of 1, {n} x {m}", ((np.abs(apart) <= 1) | (np.arange(m) == 0),)
        yield f"last key padded, {n} x {m}", (np.arange(m) + np.zeros((n, 1)) < max(m - 1, 1),)


masks = kind("mask", _named_masks, _masks, SHAPES)
masked_scores = masks.also(S=lambda rng, mask: entries(rng, len(mask), mask.shape[1:])[rng.permutation(len(mask))])


# Random variables: finite laws, so that every moment is a finite sum and exact ----------------------------------------


def mean(p: Array, x: Array) -> Array:
    """Expectation over the atoms. p : shape (batch, atoms). x : shape (batch, atoms, ...)."""
    return np.einsum("ba,ba...->b...", p, x)


def covariance(p: Array, x: Array, y: Array) -> Array:
    """Covariance matrix of two random vectors on the same atoms, shape (batch, d, e). x : shape (batch, atoms, d)."""
    return np.einsum("ba,bad,bae->bde", p, x - mean(p, x)[:, None], y - mean(p, y)[:, None])


def _named_vectors(d: int) -> Iterator[Named]:
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=min(d, 4))))
    signs = np.pad(signs, [(0, 0), (0, d - signs.shape[1])], mode="wrap")
    even, rare = np.full(len(signs), 1 / len(signs)), np.array([0.999, 0.001])
    yield f"signs, d = {d}", (signs, even)
    yield f"signs, d = {d}, times 1e6", (signs * 1e6, even)
    yield f"signs, d = {d}, shifted by 3", (signs + 3, even)
    yield f"all components equal, d = {d}", (np.array([[-1.0], [1.0]]) * np.ones(d), np.array([0.5, 0.5]))
    yield f"constant, d = {d}", (np.ones((1, d)), np.ones(1))
    yield f"rarely large, d = {d}", (np.array([[0.0], [1000.0]]) * np.ones(d), rare)
    yield f"one component random, d = {d}", (np.array([[-1.0], [1.0]]) * np.eye(d)[0], np.array([0.5, 0.5]))


def _vector_laws(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    x = entries(rng, count, shape)
    p = distributions(rng, count, shape[:1])
    return x, p[rng.permutation(count)]


LAWS = tuple((atoms, d) for atoms in (2, 3, 5) for d in (1, 2, 3, 6))  # atoms, components
random_vectors = kind("x p", lambda: itertools.chain.from_iterable(map(_named_vectors, SIZES)), _vector_laws, LAWS)
random_numbers = random_vectors.such_that(lambda x, p: np.full(len(x), x.shape[2] == 1)).map(
    "x p", lambda x, p: (x[..., 0], p)
)
centred_vectors = random_vectors.map("x p", lambda x, p: (x - mean(p, x)[:, None], p))


# Two independent random vectors q and k of the same width.
random_pairs = random_vectors.map("q p", lambda x, p: (x, p)).also(
    k=lambda rng, q, p: np.roll(q, 1, axis=0)[:, ::-1], r=lambda rng, q, p, k: np.roll(p, 1, axis=0)[:, ::-1]
)


# Numbers ------------------------------------------------------------------------------------------------------------


def numbers(**ranges: tuple[float, float]) -> Kind:
    """Positive numbers, each drawn evenly on a logarithmic scale, with all corners of the ranges and the middle."""
    bounds = list(ranges.values())

    def structured() -> Iterator[Named]:
        for corner in itertools.product(*((low, np.sqrt(low * high), high) for low, high in bounds)):
            text = ", ".join(f"{name} = {value:g}" for name, value in zip(ranges, corner, strict=True))
            yield text, tuple(np.array(value) for value in corner)

    def random(rng: np.random.Generator, count: int, _: tuple[int, ...]) -> tuple[Array, ...]:
        return tuple(np.exp(rng.uniform(np.log(low), np.log(high), size=count)) for low, high in bounds)

    return kind(" ".join(ranges), structured, random, [()])


def integers(**ranges: tuple[int, int]) -> Kind:
    """Whole numbers, each from low to high inclusive, with all corners of the ranges."""
    bounds = list(ranges.values())

    def structured() -> Iterator[Named]:
        for corner in itertools.product(*((low, min(low + 1, high), high) for low, high in bounds)):
            text = ", ".join(f"{name} = {value}" for name, value in zip(ranges, corner, strict=True))
            yield text, tuple(np.array(value) for value in corner)

    def random(rng: np.random.Generator, count: int, _: tuple[int, ...]) -> tuple[Array, ...]:
        return tuple(rng.integers(low, high + 1, size=count) for low, high in bounds)

    return kind(" ".join(ranges), structured, random, [()])
