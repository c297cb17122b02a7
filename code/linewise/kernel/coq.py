"""Coq as a program: whether it is there, which goals it proves, and whether it accepts the proofs as theorems."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

#: What the real numbers of Coq's own library rest on; a proof may rest on nothing else.
AXIOMS = frozenset({
    "ClassicalDedekindReals.sig_forall_dec", "ClassicalDedekindReals.sig_not_dec", "Classical_Prop.classic",
    "FunctionalExtensionality.functional_extensionality_dep",
})  # fmt: skip
_PRELUDE = "Linewise.v"


class KernelError(RuntimeError):
    """A prover that is not there, or that refuses what it had accepted."""


@dataclass(frozen=True)
class Goal:
    """A statement of Coq, and the tactic that may prove it; the name is one word."""

    name: str
    statement: str
    tactic: str


def version() -> str:
    """Return the version of Coq, "8.16"; raise `KernelError` where there is none."""
    if shutil.which("coqc") is None:
        raise KernelError("coqc is not there: apt-get install --no-install-recommends coq")
    said = subprocess.run(["coqc", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version (\d+\.\d+)", said)
    if not found:
        raise KernelError(f"coqc: expected a version, got {said!r}")
    return found[1]


def prelude(folder: Path) -> None:
    """Compile what the signs mean into a folder, where the proofs find it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _PRELUDE).write_text((resources.files("linewise.kernel") / _PRELUDE).read_text(encoding="utf-8"))
    done = _coqc(folder, _PRELUDE)
    if done.returncode:
        raise KernelError(f"{_PRELUDE}: {done.stderr.strip()}")


def _coqc(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["coqc", "-q", name], cwd=folder, capture_output=True, text=True, check=False)


def proved(goals: Sequence[Goal], folder: Path, seconds: int, name: str = "trial") -> set[str]:
    """Return the names of the goals that their tactics prove, each within some seconds.

    folder : one with the compiled prelude.
    """
    found: set[str] = set()
    rest = list(goals)
    while rest:
        source, starts = "Require Import Linewise.\n", []
        for goal in rest:
            starts.append(source.count("\n") + 1)
            source += (f"Goal {goal.statement}.\nProof. first [timeout {seconds} (solve [\n{goal.tactic}\n]); "
                       f'idtac "yes {goal.name}" | idtac "no {goal.name}"]. Abort.\n')  # fmt: skip
        (folder / f"{name}.v").write_text(source, encoding="utf-8")
        done = _coqc(folder, f"{name}.v")
        found |= set(re.findall(r"^yes (\S+)$", done.stdout, re.M))
        if done.returncode == 0:
            break
        line = re.search(r"line (\d+)", done.stderr)
        if line is None:
            raise KernelError(f"{name}: {done.stderr.strip()[-500:]}")
        # What Coq cannot even read is no proof: go on behind it.
        rest = rest[max(k for k, start in enumerate(starts) if start <= int(line[1])) + 1 :]
    return found


def certify(goals: Sequence[Goal], folder: Path, name: str = "proofs") -> None:
    """Have Coq accept goals as theorems that rest on its real numbers alone; raise `KernelError` if it does not."""
    source = "Require Import Linewise.\n"
    for goal in goals:
        source += f"Theorem {goal.name} : {goal.statement}.\nProof.\n{goal.tactic}.\nQed.\n"
    names = [goal.name for goal in goals]
    tuples = f"({', '.join(names)})" if len(names) > 1 else "".join(names)
    source += f"Definition all_of_them := {tuples}.\nPrint Assumptions all_of_them.\n" if names else ""
    (folder / f"{name}.v").write_text(source, encoding="utf-8")
    done = _coqc(folder, f"{name}.v")
    if done.returncode:
        raise KernelError(f"{name}: {done.stderr.strip()[-500:]}")
    if others := axioms(done.stdout) - AXIOMS:
        raise KernelError(f"{name}: rests on {', '.join(sorted(others))}")


def axioms(said: str) -> set[str]:
    """Return the axioms that `Print Assumptions` names.

    >>> sorted(axioms("Axioms:\\nclassic : forall P : Prop, P\\n  \\\\/ ~ P\\nmine : False\\n"))
    ['classic', 'mine']
    """
    listed = said.partition("Axioms:\n")[2]
    return set(re.findall(r"^([\w.']+)(?= :|$)", listed, re.M))


def without_admission(goals: Iterable[Goal]) -> bool:
    """Return whether no tactic gives up a goal."""
    given_up = re.compile(r"\b(admit|Admitted|Axiom|give_up)\b")
    return not any(given_up.search(f"{goal.tactic} {goal.statement}") for goal in goals)
