"""Re-execute notebooks and store their outputs: ``python tools/execute.py [--all] [PATHS]``.

Each notebook runs in its own folder, in a fresh kernel of this environment. What is stored is
normalised, so that a second run on another machine changes nothing: no timings, no patch
versions, stable cell ids; JupyterLab folds what the site folds. A notebook that fails is left exactly as it was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import reach
import stamps

CELL_TIMEOUT = 600
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python", "pygments_lexer": "ipython3"}


def fix_environment() -> None:
    """Let each kernel compute the same bytes, whatever the caller's environment says and whichever processor it is.

    The number of threads and the width of the vector instructions decide the order of sums, hence last digits, and
    eigenvalues near zero show them in a figure. Notebooks run side by side already, so more threads would gain nothing.
    The caller's settings of Python, IPython and matplotlib are left out.
    """
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONNOUSERSITE"), "1")
    if platform.machine() in ("x86_64", "AMD64"):  # elsewhere these names mean nothing, and OpenBLAS complains
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"
        os.environ["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"
    os.environ["IPYTHONDIR"] = str(stamps.ROOT / "_build" / "ipython")
    os.environ["MPLCONFIGDIR"] = str(stamps.ROOT / "_build" / "matplotlib")
    for name in ("MPLBACKEND", "MATPLOTLIBRC", "PYTHONSTARTUP"):  # the kernel's own backend draws into the page
        os.environ.pop(name, None)


def normalise(notebook: Any) -> Any:
    """Return the notebook with everything removed that depends on the machine or the hour; in place."""
    notebook.metadata |= {"kernelspec": dict(KERNELSPEC), "language_info": dict(LANGUAGE)}
    notebook.metadata.pop("widgets", None)
    notebook.nbformat, notebook.nbformat_minor = max((notebook.nbformat, notebook.nbformat_minor), (4, 5))
    for number, cell in enumerate(notebook.cells, start=1):
        cell.setdefault("id", f"cell-{number}")
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = coalesce(cell.outputs)
            fold(cell.metadata)
    return notebook


def fold(metadata: Any) -> None:
    """Let JupyterLab fold the code that the site folds; in place."""
    jupyter = {key: value for key, value in metadata.get("jupyter", {}).items() if key != "source_hidden"}
    if "hide-input" in metadata.get("tags", []):
        jupyter["source_hidden"] = True
    metadata.pop("jupyter", None)
    if jupyter:
        metadata["jupyter"] = jupyter


def coalesce(outputs: Sequence[Any]) -> list[Any]:
    """Join neighbouring pieces of one stream: where a stream is cut is a matter of timing."""
    joined: list[Any] = []
    for output in outputs:
        if output.output_type == "stream" and joined and joined[-1].get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def without_outputs(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook as it is before it runs, each cell with an id: nbformat would make one up by chance."""
    for number, cell in enumerate(notebook["cells"], start=1):
        if (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5):
            cell.setdefault("id", f"cell-{number}")
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return notebook


def run(path: Path) -> Any:
    """Execute a notebook in its own folder, in memory, and return it normalised."""
    import nbclient
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    fix_environment()
    notebook = nbformat.reads(json.dumps(without_outputs(reach.notebook_of(path.read_bytes()))), as_version=4)
    # No kernel that a user has installed elsewhere under the same name: only this environment's.
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    client = nbclient.NotebookClient(
        notebook, km=manager, timeout=CELL_TIMEOUT, record_timing=False, resources={"metadata": {"path": path.parent}}
    )
    try:
        asyncio.run(client.async_execute(cleanup_kc=True, stderr=subprocess.DEVNULL))
    except (nbclient.exceptions.CellControlSignal, nbclient.exceptions.DeadKernelError) as error:
        code = [c for c in notebook.cells if c.cell_type == "code"]
        failed = [k for k, c in enumerate(code, start=1) if any(o.output_type == "error" for o in c.outputs)]
        place = f"code cell {failed[0]} of {len(code)} failed" if failed else type(error).__name__
        raise RuntimeError(f"{place}: " + re.sub(r"\x1b\[[0-9;]*m", "", str(error))) from None
    return normalise(notebook)


def execute(path: Path) -> str:
    """Execute a notebook and store its outputs; on a failure leave the file alone. Return the failure, or ""."""
    import nbformat

    before = path.read_bytes()
    try:
        after = (nbformat.writes(run(path)).rstrip("\n") + "\n").encode("utf-8")
    except (RuntimeError, ValueError, nbformat.ValidationError) as error:
        if not path.exists():  # a notebook that deletes itself
            stamps.write_atomically(path, before)
        return f"{os.path.relpath(path, stamps.ROOT)}: {error}\n\nThe file is as it was."
    if after != before or not path.exists():
        stamps.write_atomically(path, after)
    return ""


def due(notebooks: Sequence[Path], *kinds: str) -> dict[Path, stamps.Inputs]:
    """Return the notebooks that have no fresh stamp of these kinds, each with its inputs."""
    inputs = stamps.inputs_of(notebooks)
    return {n: i for n, i in inputs.items() if all(stamps.changes(stamps.stamp_of(k, n), i) for k in kinds)}


def read_options(doc: str | None, arguments: list[str] | None) -> tuple[list[Path], bool, int]:
    """Read a command line; return the notebooks it names, whether unchanged ones count, and the number of jobs."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    there = [path for path in stamps.NOTEBOOKS if path.is_dir()] or list(stamps.NOTEBOOKS)
    parser.add_argument("paths", nargs="*", type=Path, default=there, metavar="PATHS")
    parser.add_argument("--all", action="store_true", help="also the notebooks whose inputs have not changed")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks at a time (default: 2)")
    options = parser.parse_args(arguments)
    for path in options.paths:
        if not stamps.notebooks([path]):
            parser.error(f"{path}: expected a notebook or a folder of notebooks, found none")
    return stamps.notebooks(p.resolve() for p in options.paths), options.all, max(1, options.jobs)


def each(kind: str, work: Callable[[Path], str], due: dict[Path, stamps.Inputs], jobs: int) -> list[str]:
    """Do the work on the notebooks that are due, several at a time; stamp those without a fault, return the faults."""

    def one(notebook: Path) -> str:
        started = time.monotonic()
        fault = work(notebook)
        if not fault:  # an executed notebook is another than before, and is part of its inputs
            stamps.write_stamp(stamps.stamp_of(kind, notebook), due[notebook] | stamps.hashes([notebook]))
        seconds = time.monotonic() - started
        print(f"{'FAILED' if fault else kind} {os.path.relpath(notebook, stamps.ROOT)} in {seconds:.1f} s", flush=True)
        return fault

    # Threads, as the work is done in other processes; the last chapters first: they train models and take longest.
    return [fault for fault in ThreadPoolExecutor(jobs).map(one, reversed(due)) if fault]


def main(arguments: list[str] | None = None) -> int:
    """Execute what is due and stamp what went well; return 1 when a notebook failed."""
    notebooks, everything, jobs = read_options(__doc__, arguments)
    with stamps.only_one("executed"):
        stale = due(notebooks, *(() if everything else ("executed", "proved")))
        print(f"{len(stale)} of {len(notebooks)} notebooks to execute" + ("" if stale else "; --all runs them anyway"))
        faults = each("executed", execute, stale, jobs)
    if faults:
        print(*faults, sep="\n\n", file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    stamps.run(main)
