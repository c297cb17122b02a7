"""Hunt for counterexamples to the sentences of the book.

    def norm(A):
        return np.linalg.norm(A, 2, axis=(1, 2))

    @attack(
        "5.5.1/norm",
        on=instances.row_stochastic,
        wrong={"the 2-norm is at most 1": lambda A: at_most(norm(A), 1, rounding(A.shape[1], norm(A)))},
    )
    def norm_is_at_least_one(A):
        return at_most(1, norm(A), rounding(A.shape[1], norm(A)))

The property gets a batch of instances and says for each whether the sentence is true there: a boolean array, or what
`at_most`, `less`, `equal`, `exactly_if` and `implies` return; `&` joins them. All structured instances are tried and at
least 10,000 random ones. What is not a number fails.

Every attack names at least one wrong version of its sentence, a mistake that someone could make. The same hunt must
break it; otherwise the attack proves nothing. A wrong version is a function like the property, or a kind (the property
itself, tried where a hypothesis is missing), or both as a pair.

`no_attack` names the statements that need none, with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from instances import EPS, Array, Batch, Kind

RANDOM = 10_000  # random instances that every attack has to try
SEEN = 100  # instances on which a hypothesis, and each side of an equivalence, has to be met
ROUNDS = 30  # after so many rounds a hypothesis counts as met too rarely

REASONS = {
    "exact": "the chapter derives it with symbols for every value, and no instance is left to try",
    "measured": "it says what was measured on given data",
    "definition": "it says what a word or a symbol means",
    "instance": "it is about one named object, which the chapter computes",
    "wording": "it says what a printed sentence means or leaves out",
}


@dataclass(frozen=True)
class Judged:
    """Where a property is true. undefined: where it compared what is not a number."""

    holds: Array
    undefined: Array
    parts: tuple[Callable[[int], str | None], ...] = ()
    sides: tuple[tuple[str, Array], ...] = ()
    __array_ufunc__ = None  # so that `boolean array & judged` comes here

    def __and__(self, other: Judged | Array) -> Judged:
        other = other if isinstance(other, Judged) else true(other)
        return Judged(
            self.holds & other.holds,
            self.undefined | other.undefined,
            self.parts + other.parts,
            self.sides + other.sides,
        )

    __rand__ = __and__

    def why(self, i: int) -> str:
        """What was false at the i-th instance."""
        return "; ".join(said for said in (part(i) for part in self.parts) if said)


Property = Callable[..., "Judged | Array"]
Wrong = Property | Kind | tuple[Property, Kind]


def rounding(operations: float | Array, size: float | Array, condition: float | Array = 1.0) -> Array:
    """How far rounding may move a result: operations * eps * size * condition, and never less than underflow.

    operations : how many roundings add up, for example the number of terms of a sum.
    size : of the largest intermediate result, for example the sum of the absolute values of the terms.
    condition : by how much the problem enlarges relative errors, for example the condition number of eigenvectors.
    """
    return np.asarray(operations * EPS * size * condition + np.finfo(float).tiny)


def true(condition: Array) -> Judged:
    """A boolean array as it is; further axes are joined by and."""
    condition = np.asarray(condition)
    if condition.dtype != bool or condition.ndim == 0:
        raise TypeError(f"expected a boolean for every instance, got {condition.dtype} of shape {condition.shape}")
    holds = condition.reshape(len(condition), -1).all(axis=1)
    return Judged(holds, np.zeros(len(holds), dtype=bool))


def at_most(left: Array | float, right: Array | float, allowance: Array | float) -> Judged:
    """left <= right + allowance. Arrays have the instances on their first axis; further axes are joined by and."""
    return _compare(left, right, allowance, "<=", lambda a, b, slack: a <= b + slack, lambda a, b: a - b)


def less(left: Array | float, right: Array | float) -> Judged:
    """left < right, strictly and without allowance."""
    return _compare(left, right, 0.0, "<", lambda a, b, slack: a < b, lambda a, b: a - b)


def equal(left: Array | float, right: Array | float, allowance: Array | float) -> Judged:
    """|left - right| <= allowance."""
    return _compare(left, right, allowance, "=", lambda a, b, slack: np.abs(a - b) <= slack, lambda a, b: np.abs(a - b))


def exactly_if(one: Array, other: Array) -> Judged:
    """Both are true or both are false. The hunt fails unless it has seen each of the two often enough."""
    one, other = true(one).holds, true(other).holds

    def why(i: int) -> str | None:
        return None if one[i] == other[i] else f"the first condition is {one[i]}, the second {other[i]}"

    sides = (("both conditions are true", one & other), ("both conditions are false", ~one & ~other))
    return Judged(one == other, np.zeros(len(one), dtype=bool), (why,), sides)


def implies(hypothesis: Array, conclusion: Judged | Array) -> Judged:
    """The conclusion wherever the hypothesis is true. The hunt fails unless that was often enough."""
    met, then = true(hypothesis).holds, conclusion if isinstance(conclusion, Judged) else true(conclusion)
    parts = tuple(lambda i, part=part: part(i) if met[i] else None for part in then.parts)
    sides = (("the hypothesis is true", met), *((said, seen & met) for said, seen in then.sides))
    return Judged(then.holds | ~met, then.undefined & met, parts, sides)


def _compare(
    left: Array | float,
    right: Array | float,
    allowance: Array | float,
    sign: str,
    compare: Callable[[Array, Array, Array], Array],
    excess: Callable[[Array, Array], Array],
) -> Judged:
    """Align the arrays on their first axis, compare, and remember how to say what is false."""
    given = [np.asarray(value) for value in (left, right, allowance)]
    deepest = max(array.ndim for array in given)
    if deepest == 0:
        raise TypeError("expected a value for every instance, got numbers only")
    # Trailing axes are added, so that (batch,) meets (batch, n) instance by instance whatever batch and n are.
    padded = [a.reshape(*a.shape, *(1,) * (deepest - a.ndim)) if a.ndim else a for a in given]
    lengths = {array.shape[0] for array in padded if array.ndim}
    if len(lengths - {1}) > 1:
        raise ValueError(f"expected the instances on the first axis (a constant gets [None]), got {sorted(lengths)}")
    a, b, slack = np.broadcast_arrays(*padded)
    with np.errstate(invalid="ignore", over="ignore"):
        fine = compare(a, b, slack) & np.isfinite(slack)
        size = len(fine)
        undefined = (np.isnan(a) | np.isnan(b) | ~np.isfinite(slack)).reshape(size, -1).any(axis=1)
        holds = fine.reshape(size, -1).all(axis=1) & ~undefined

    def why(i: int) -> str | None:
        if holds[i]:
            return None
        flat = [array[i].reshape(-1) for array in (a, b, slack)]
        with np.errstate(invalid="ignore"):
            worst = int(np.argmax(np.where(fine[i].reshape(-1), -np.inf, excess(flat[0], flat[1]))))
        x, y, allowed = (array[worst] for array in flat)
        return f"{x:.17g} {sign} {y:.17g} is false (allowance {allowed:.2g})"

    return Judged(holds, undefined, (why,))


@dataclass(frozen=True)
class Outcome:
    """What a hunt found. worst: a report of the smallest instance that fails, None if none does."""

    structured: int
    random: int
    failed_structured: int
    failed_random: int
    worst: str | None
    sides: dict[tuple[int, str], int]


def hunt(holds: Property, on: Kind, stop_at_first: bool = False) -> Outcome:
    """Try all structured instances and at least 10,000 random ones.

    stop_at_first : for wrong versions. Stop at the first batch that breaks the property by numbers that are defined.
    Raises AssertionError if the property raises, or if the hypothesis is met too rarely.
    """
    tried, failed = [0, 0], [0, 0]
    sides: dict[tuple[int, str], int] = {}
    worst: tuple[tuple[int, int], str] | None = None
    for round_ in range(ROUNDS):
        for batch in on.batches(round_):
            judged = _judge(holds, batch, on)
            bad = ~judged.holds & ~judged.undefined if stop_at_first else ~judged.holds
            random = int(batch.names is None)
            tried[random] += len(batch)
            failed[random] += int(bad.sum())
            for number, (said, seen) in enumerate(judged.sides):
                sides[number, said] = sides.get((number, said), 0) + int(seen.sum())
            for i in np.flatnonzero(bad)[:20]:
                shown = show(batch, on, i)
                rank = (sum(array[i].size for array in batch.arrays), len(shown))
                if worst is None or rank < worst[0]:
                    worst = rank, f"{shown}\n{judged.why(i)}".rstrip()
            if stop_at_first and worst is not None:
                return Outcome(*tried, *failed, worst[1], sides)
        if tried[1] >= RANDOM:
            return Outcome(*tried, *failed, worst[1] if worst else None, sides)
    raise AssertionError(f"only {tried[1]} random instances in {ROUNDS} rounds: the hypothesis is met too rarely")


def _judge(holds: Property, batch: Batch, on: Kind) -> Judged:
    """Evaluate, and report an exception together with an instance that raises it."""
    try:
        result = holds(*batch.arrays)
        judged = result if isinstance(result, Judged) else true(result)
        if len(judged.holds) != len(batch):
            raise TypeError(f"expected {len(batch)} answers, one for every instance, got {len(judged.holds)}")
    except Exception as error:
        said = f"the property raises {type(error).__name__}: {error}"
        for i in range(min(len(batch), 2000)):
            try:
                holds(*(array[i : i + 1] for array in batch.arrays))
            except Exception as alone:
                said = f"the property raises {type(alone).__name__}: {alone}"
                raise AssertionError(f"{said}\n{show(batch, on, i)}") from alone
        raise AssertionError(f"{said}\nin the batch of this instance\n{show(batch, on, 0)}") from error
    return judged


def show(batch: Batch, on: Kind, i: int) -> str:
    """One instance, readably."""
    lines = [f"at {batch.title(i)}:"]
    for name, array in zip(on.names, batch.arrays, strict=True):
        with np.printoptions(precision=6, linewidth=110):
            lines.append(f"  {name} = " + str(array[i]).replace("\n", "\n" + " " * (len(name) + 5)))
    return "\n".join(lines)


@dataclass(frozen=True)
class Attack:
    """One property against one or more statements of the book."""

    statements: tuple[str, ...]
    on: Kind
    holds: Property
    wrong: Mapping[str, Wrong]
    name: str = field(default="")

    def run(self) -> Outcome:
        """Hunt. Raises AssertionError on a counterexample, and if a wrong version finds none."""
        outcome = hunt(self.holds, self.on)
        heading = f"{self.name} attacks {', '.join(self.statements)}"
        if outcome.worst is not None:
            raise AssertionError(
                f"{heading}\nfalse at {outcome.failed_structured} of {outcome.structured} structured"
                f" and {outcome.failed_random} of {outcome.random} random instances, the smallest\n{outcome.worst}"
            )
        if outcome.random < RANDOM:
            raise AssertionError(f"{heading}\ntried {outcome.random} random instances, expected {RANDOM}")
        for (_, said), count in outcome.sides.items():
            if count < SEEN:
                raise AssertionError(f"{heading}\n{said} at {count} instances only, expected {SEEN}")
        for mistake, version in self.wrong.items():
            holds, on = self._version(version)
            if hunt(holds, on, stop_at_first=True).worst is None:
                raise AssertionError(f"{heading}\nthe attack does not bite: no instance breaks {mistake!r}")
        return outcome

    def _version(self, version: Wrong) -> tuple[Property, Kind]:
        if isinstance(version, Kind):
            return self.holds, version
        return version if isinstance(version, tuple) else (version, self.on)


@dataclass(frozen=True)
class NoAttack:
    """A statement that needs no attack: the kind of reason, and the reason in a sentence."""

    statement: str
    reason: str
    sentence: str


ATTACKS: dict[str, Attack] = {}
UNATTACKED: dict[str, NoAttack] = {}


def attack(*statements: str, on: Kind, wrong: Mapping[str, Wrong]) -> Callable[[Property], Property]:
    """Register a property as an attack on the statements: ids of claims, labels of theorems and exercises."""

    def register(holds: Property) -> Property:
        module = Path(inspect.getsourcefile(holds) or "").stem.removeprefix("attack_")
        name = f"{module}: {holds.__name__}"
        if not statements or not wrong:
            raise ValueError(f"{name}: expected a statement to attack and at least one wrong version of it")
        if name in ATTACKS and ATTACKS[name].holds.__code__ != holds.__code__:
            raise ValueError(f"{name}: expected another name, this one is taken")
        ATTACKS[name] = Attack(statements, on, holds, wrong, name)
        return holds

    return register


def no_attack(*statements: str, because: str) -> None:
    """Say why statements need no attack. because: 'kind: a sentence', with a kind of `REASONS`."""
    reason, _, sentence = because.partition(": ")
    if reason not in REASONS:
        raise ValueError(f"because: expected one of {', '.join(REASONS)} before a colon, got {because!r}")
    if len(sentence.split()) < 8 or not sentence.endswith("."):
        raise ValueError(f"because: expected a sentence of at least eight words with a full stop, got {sentence!r}")
    for statement in statements:
        known = UNATTACKED.get(statement)
        if known is not None and known.sentence != sentence:
            raise ValueError(f"{statement}: expected one reason, got a second one")
        UNATTACKED[statement] = NoAttack(statement, reason, sentence)
