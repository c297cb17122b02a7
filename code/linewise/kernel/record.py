"""What a second kernel says of a book's derivations: which steps it has proved too, if what is not 0, and what is left.

A book keeps it in a file that ``linewise.yml`` names (``kernel: kernel.json``). It belongs to the lines that a page
shows: a derivation that changes has no entry any more, until the kernel is asked again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import sympy as sp

from linewise.conventions import book_of, conventions_of
from linewise.derive.display import assumed
from linewise.derive.expectation import E, Var
from linewise.derive.matrices import Inner
from linewise.kernel.coq import Goal
from linewise.kernel.hints import Search
from linewise.kernel.statement import OutsideError, Statement, entries
from linewise.ledger.sentences import listed

#: The parts of a displayed derivation that an entry belongs to.
_LINE = ("plain", "relation", "rules", "reason", "gap")


def digest(record: Mapping[str, Any]) -> str:
    """Return a short name of a displayed derivation, by which the kernel's record knows it.

    >>> digest({"name": "", "lines": [{"plain": "x"}], "mistakes": []})
    'b614eefe395a'
    """
    lines = [{key: line[key] for key in _LINE if key in line} for line in record["lines"]]
    mistakes = [[m["name"], m["line"], m["plain"]] for m in record["mistakes"]]
    text = json.dumps([record["name"], lines, mistakes], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Attempt:
    """A step, or the mistake that it names, as the kernel is asked for it.

    goals : one, or one for each entry of a matrix; empty where the language of the kernel does not hold the step.
    sides : what must hold for the lines to be defined, in TeX, where it is a premise.
    takes : the kinds of the other premises.
    outside : why there is no goal.
    """

    number: int
    mistaken: bool
    goals: tuple[Goal, ...] = ()
    sides: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    outside: str = ""

    @property
    def statement(self) -> str:
        """A short name of what the kernel is asked."""
        return hashlib.sha256("\n".join(goal.statement for goal in self.goals).encode()).hexdigest()[:12]


def attempts(
    chain: Any, name: str, *, sides: bool = True, mistaken: bool = False, search: bool = True
) -> Iterator[Attempt]:
    """Yield the steps of a derivation, or its mistakes, as goals for the kernel.

    sides : whether what the lines need to be defined is a premise.  search : whether to look for proofs as well.
    """
    for number, (before, line) in enumerate(pairwise(chain.lines), 1):
        if mistaken and not line.mistake:
            continue
        try:
            goals: list[Goal] = []
            needed: dict[str, None] = {}
            takes: dict[str, None] = {}
            for k, (left, right) in enumerate(entries(before.value, line, mistaken)):
                gap = line.gap
                if mistaken and gap is not None:
                    gap = right - left if line.relation == "<=" else left - right
                statement = Statement(left, right, line.relation, line.rules, gap, sides)
                tactic = Search(statement).proof() if search else ""
                goals.append(Goal(f"{name}_{number}_{k}" + ("m" if mistaken else ""), statement.text, tactic))
                needed |= {assumed(p.value)["tex"]: None for p in statement.premises if p.kind == "side"}
                takes |= {p.words or p.kind: None for p in statement.premises if p.kind not in ("side", "sign")}
            yield Attempt(number, mistaken, tuple(goals), tuple(needed), tuple(takes))
        except OutsideError as error:
            yield Attempt(number, mistaken, outside=str(error))


def entry_of(chain: Any, steps: Sequence[Attempt], known: Sequence[bool], refused: int) -> dict[str, Any]:
    """Return the entry of a derivation.

    known : whether the kernel has proved the step.  refused : the mistakes that it was asked for and did not prove.
    """
    shown = []
    for (before, line), attempt, is_known in zip(pairwise(chain.lines), steps, known, strict=True):
        step: dict[str, Any] = {"statement": attempt.statement} if attempt.goals else {"outside": attempt.outside}
        if is_known:
            step |= {"by": True} | {k: list(v) for k, v in (("if", attempt.sides), ("takes", attempt.takes)) if v}
        else:
            step["kind"] = kind_of(before, line)
        shown.append(step)
    return {"name": chain.name, "steps": shown, "mistakes": len(chain.mistakes), "refused": refused}


#: What a step is called that has no proof, by the first of these signs that it holds.
_KINDS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("limits", (sp.Limit,)),
    ("derivatives", (sp.Derivative, sp.Subs)),
    ("integrals", (sp.Integral,)),
    ("matrices", (sp.MatrixBase, sp.MatrixExpr, Inner)),
    ("gamma, erf and other functions", (sp.gamma, sp.erf, sp.factorial, sp.binomial, sp.RisingFactorial, sp.loggamma)),
    ("products", (sp.Product,)),
    ("expectations", (E, Var)),
)


def kind_of(before: Any, line: Any) -> str:
    """Return what a step is about, for a table of the steps without a proof."""
    both = [sp.sympify(x.value) for x in (before, line)]
    assumes = [a for rule in line.rules for a in rule.assumes]
    held = [*both, *(s for a in assumes for s in (a.left, a.right) if isinstance(s, sp.Basic))]
    for name, signs in _KINDS:
        if any(isinstance(x, signs) or x.has(*signs) for x in (both if name != "integrals" else held)):
            return name
    if any(a.kind == "law" for a in assumes):
        return "integrals"
    ends = [end for x in both for s in x.atoms(sp.Sum) for limit in s.limits for end in limit[1:]]
    if any(end.is_infinite for end in ends):
        return "series"
    if line.relation != "=":
        return "bounds"
    if any(x.has(sp.I) for x in both):
        return "complex numbers"
    return "sums" if any(x.has(sp.Sum) for x in both) else "powers, roots and logarithms"


def is_current(entries: Mapping[str, Any], chains: Sequence[Any]) -> bool:
    """Return whether the entries are those of some derivations, and each statement is as it was."""
    if set(entries) != {digest(chain.record()) for chain in chains}:
        return False
    for chain in chains:
        forms: list[set[str]] = [set() for _ in chain.lines[1:]]
        for sides in (False, True):
            for attempt in attempts(chain, "c", sides=sides, search=False):
                forms[attempt.number - 1].add(attempt.statement if attempt.goals else "")
        for step, known in zip(entries[digest(chain.record())]["steps"], forms, strict=True):
            if "statement" in step and step["statement"] not in known:
                return False
    return True


@dataclass(frozen=True)
class Kernel:
    """The record of a book: the prover, and by chapter and digest each derivation's entry."""

    prover: str
    chapters: Mapping[str, Mapping[str, Any]]

    @property
    def derivations(self) -> dict[str, Any]:
        """The entries of all chapters by their digests."""
        return {key: entry for chapter in self.chapters.values() for key, entry in chapter.items()}

    def counts(self) -> dict[str, int]:
        """Return how many steps there are, how many the kernel can say, and has proved; and the same of mistakes."""
        found: Counter[str] = Counter()
        for entry in self.derivations.values():
            found["derivations"] += 1
            found["whole"] += all("by" in step for step in entry["steps"])
            for step in entry["steps"]:
                found["steps"] += 1
                found["translated"] += "outside" not in step
                found["proved"] += "by" in step
                found["conditional"] += bool(step.get("if"))
            found["mistakes"] += entry["mistakes"]
            found["refused"] += entry["refused"]
        return dict(found)

    def left(self) -> dict[str, int]:
        """Return the steps without a proof by their kind, the most first."""
        steps = [step for entry in self.derivations.values() for step in entry["steps"] if "by" not in step]
        return dict(sorted(Counter(step["kind"] for step in steps).items(), key=lambda kind: (-kind[1], kind[0])))

    def sentence(self, record: Mapping[str, Any], phrase: Callable[..., str] = str.format) -> str:
        """Return what a page says of a displayed derivation, with formulas between dollar signs, or "".

        phrase : says a template, such as ``"{said}, if {conditions}"``, in the language of the page.
        """
        entry = self.derivations.get(digest(record))
        if not entry:
            return ""
        steps = [k for k, step in enumerate(entry["steps"], 1) if "by" in step]
        if not steps:
            return ""
        said = {a["tex"] for a in record.get("assumed", ())}
        needed = dict.fromkeys(tex for k in steps for tex in entry["steps"][k - 1].get("if", ()) if tex not in said)
        found = phrase("Also by {prover}", prover=self.prover)
        if len(steps) < len(entry["steps"]):
            which = "{said}: step {numbers}" if len(steps) == 1 else "{said}: steps {numbers}"
            found = phrase(which, said=found, numbers=listed(map(str, steps), phrase))
        if needed:
            found = phrase("{said}, if {conditions}", said=found, conditions=listed((f"${x}$" for x in needed), phrase))
        return phrase("{said}.", said=found)


def kernel_of(folder: str | Path) -> Kernel | None:
    """Return the kernel's record of the book that a folder belongs to, or None where the book keeps none."""
    root, name = book_of(folder), conventions_of(folder).kernel
    if root is None or not name:
        return None
    path = root / name
    return _read(path, path.stat().st_mtime_ns) if path.is_file() else None


@cache
def _read(path: Path, changed: int) -> Kernel:
    given = json.loads(path.read_text(encoding="utf-8"))
    return Kernel(given["prover"], given["chapters"])


def write(kernel: Kernel, path: Path) -> None:
    """Write a record: a line for each derivation, chapters and derivations in an order of their own."""
    body = []
    for chapter in sorted(kernel.chapters):
        rows = [f"    {json.dumps(key)}: {json.dumps(entry, sort_keys=True)}"
                for key, entry in sorted(kernel.chapters[chapter].items())]  # fmt: skip
        body.append(f"  {json.dumps(chapter)}: {{\n" + ",\n".join(rows) + "\n  }")
    text = f'{{"prover": {json.dumps(kernel.prover)},\n "chapters": {{\n' + ",\n".join(body) + "\n }\n}\n"
    path.write_text(text, encoding="utf-8")
