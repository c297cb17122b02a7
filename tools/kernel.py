"""Ask a second kernel for the derivations of the book: ``make kernel``, or ``python tools/kernel.py [--all] [PATHS]``.

Coq is asked for each step, and for each mistake that a step names. What it proves it has to accept once more, as
theorems that rest on nothing but its real numbers. The record, which ``linewise.yml`` names, says what came out;
a mistake that is proved is an error. Notebooks whose steps are those of the record are left alone without ``--all``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import stamps
from chains import derivations
from linewise.conventions import conventions_of
from linewise.kernel import coq
from linewise.kernel.record import Attempt, Kernel, attempts, digest, entry_of, is_current, kernel_of, write

#: Seconds that a step may take.
SECONDS = 60


def asked(notebook: Path, folder: Path) -> dict[str, Any]:
    """Return the entries of a notebook's derivations."""
    chains = derivations(notebook)
    names = [f"c{k}" for k in range(len(chains))]
    plain, guarded, wrong = (
        [
            list(attempts(chain, name + tail, sides=sides, mistaken=mistaken))
            for chain, name in zip(chains, names, strict=True)
        ]
        for tail, sides, mistaken in (("a", False, False), ("b", True, False), ("m", True, True))
    )
    first = _proved([*plain, *wrong], folder, notebook.stem)
    again = [[b for a, b in zip(one, other, strict=True) if not _is_proved(a, first) and b.statement != a.statement]
             for one, other in zip(plain, guarded, strict=True)]  # fmt: skip
    second = _proved(again, folder, notebook.stem)
    if mistaken := [a for some in wrong for a in some if _is_proved(a, first)]:
        goal = mistaken[0].goals[0]
        raise coq.KernelError(f"{notebook.stem}: proves a mistake, {goal.name}: {goal.statement}")
    entries, accepted = {}, []
    for chain, one, other, bad in zip(chains, plain, guarded, wrong, strict=True):
        steps = [a if _is_proved(a, first) else b for a, b in zip(one, other, strict=True)]
        known = [_is_proved(a, first) or _is_proved(a, second) for a in steps]
        accepted += [goal for a, is_known in zip(steps, known, strict=True) if is_known for goal in a.goals]
        entries[digest(chain.record())] = entry_of(chain, steps, known, sum(not a.outside for a in bad))
    if not coq.without_admission(accepted):
        raise coq.KernelError(f"{notebook.stem}: a proof gives up a goal")
    coq.certify(accepted, folder, f"proofs_{_word(notebook.stem)}")
    return entries


def _proved(some: Sequence[Sequence[Attempt]], folder: Path, name: str) -> set[str]:
    goals = [goal for group in some for a in group for goal in a.goals]
    return coq.proved(goals, folder, SECONDS, f"trial_{_word(name)}")


def _word(name: str) -> str:
    return name.replace("-", "_")


def _is_proved(attempt: Attempt, names: set[str]) -> bool:
    return bool(attempt.goals) and all(goal.name in names for goal in attempt.goals)


def one(folder: Path, notebook: Path) -> tuple[str, dict[str, Any]]:
    """Return a notebook's name and the entries of its derivations."""
    return notebook.stem, asked(notebook, folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask for what has changed, or all of it, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks; those of all chapters unless given")
    parser.add_argument("--all", action="store_true", help="ask again for what the record holds")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks side by side")
    options = parser.parse_args(arguments)
    path = stamps.ROOT / conventions_of(stamps.ROOT).kernel
    try:
        prover = f"Coq {coq.version()}"
        every = stamps.notebooks([stamps.ROOT / "chapters"])
        known = kernel_of(stamps.ROOT) or Kernel(prover, {})
        again = options.all or known.prover != prover
        given = [p.resolve() for p in options.paths] or every
        chapters = {n.stem: known.chapters[n.stem] for n in every if n.stem in known.chapters}
        due = [n for n in given if again or not is_current(chapters.get(n.stem, {}), derivations(n))]
        with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(options.jobs) as pool:
            coq.prelude(Path(folder))
            for name, entries in pool.map(partial(one, Path(folder)), due):
                chapters[name] = entries
                write(Kernel(prover, chapters), path)  # what an interruption leaves is whole
                proved = sum("by" in step for entry in entries.values() for step in entry["steps"])
                print(f"kernel: {name}, {proved} of {sum(len(e['steps']) for e in entries.values())} steps", flush=True)
        kernel = Kernel(prover, chapters)
        write(kernel, path)
    except coq.KernelError as error:
        print(f"kernel: {error}", file=sys.stderr)
        return 1
    counts = kernel.counts()
    print(
        f"kernel: {prover} proves {counts['proved']} of {counts['steps']} steps ({counts['translated']} translated), "
        f"{counts['conditional']} with a condition, "
        f"and none of {counts['refused']} mistakes of {counts['mistakes']}"
    )
    for kind, number in kernel.left().items():
        print(f"kernel: without, {kind}: {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
