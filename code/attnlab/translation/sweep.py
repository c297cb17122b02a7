"""The runs of the experiment, and what carries them out: in parallel, and resumed where one was interrupted.

Runs go through joblib, so that a cluster takes one line around the call and no change within it:

    with joblib.parallel_config(backend="dask"):  # needs a connected client
        sweep(grid(), "translation.csv")
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from attnlab.sweeps import runs
from attnlab.translation.designs import HIDDEN, equal_hidden
from attnlab.translation.table import CONTROLS, EXTRA, EXTRA_PAIRS, MAIN, PAIRS, PARTS, SEEDS, TABLE
from attnlab.translation.training import Settings, run
from attnmath.checks import non_negative_integer, one_of, positive_integer


def grid(
    parts: Sequence[str] = PARTS, pairs: Sequence[int] = PAIRS, seeds: Sequence[int] = SEEDS, **fixed: Any
) -> list[Settings]:
    """Every run of the parts, seed by seed; `fixed` goes to `Settings` as it is.

    main : the four designs of the comparison at each number of pairs.
    extra : the other six at `EXTRA_PAIRS`, as far as these are among the pairs.
    equal : designs with fewer trained parameters, there too, the encoder's feed-forward parts widened until the numbers
        of trained parameters are equal.

    >>> len(grid(["main"])), len(grid())
    (100, 190)
    """
    runs.each("parts", parts, lambda value, name: one_of(value, PARTS, name))
    runs.each("pairs", pairs, positive_integer)
    runs.each("seeds", seeds, non_negative_integer)
    few = [n for n in pairs if n in EXTRA_PAIRS]
    plan = {
        "main": [(design, n, HIDDEN) for n in pairs for design in MAIN],
        "extra": [(design, n, HIDDEN) for n in few for design in EXTRA],
        "equal": [(design, n, equal_hidden(design)) for n in few for design in CONTROLS],
    }
    return [Settings(design, n, seed, hidden, **fixed)
            for seed in seeds for part in parts for design, n, hidden in plan[part]]  # fmt: skip


def sweep(
    settings: Iterable[Settings],
    path: str | Path,
    *,
    jobs: int | None = None,
    device: str = "cpu",
    progress: bool = True,
) -> int:
    """Carry out the runs that the table at `path` lacks, and return how many these were; see `runs.carry_out`."""
    return runs.carry_out(run, settings, Settings, path, TABLE, jobs=jobs, device=device, progress=progress, bar=tqdm)


def write_provenance(path: str | Path, command: str) -> Path:
    """Write beside the table how it came about: the command, versions, devices, its hash, and every setting."""
    return runs.write_provenance(path, command, TABLE)
