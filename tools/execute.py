"""Re-execute notebooks and store their outputs: ``python tools/execute.py [--all] [PATHS]``.

Each notebook runs in its own folder, in a fresh kernel of this environment. What is stored is
normalised, so that a second run on another machine changes nothing: no timings, no patch
versions, stable cell ids. A notebook that fails is left exactly as it was.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stamps

CELL_TIMEOUT = 600
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python", "pygments_lexer": "ipython3"}


@dataclass(frozen=True)
class Result:
    """What became of one notebook: the seconds it took, and the failure's report, if any."""

    notebook: Path
    seconds: float
    failure: str = ""


def normalise(notebook: Any) -> Any:
    """Return the notebook with everything removed that depends on the machine or the hour; in place."""
    notebook.metadata["kernelspec"] = dict(KERNELSPEC)
    notebook.metadata["language_info"] = dict(LANGUAGE)
    notebook.metadata.pop("widgets", None)
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells, start=1):
        cell.setdefault("id", f"cell-{number}")
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = coalesce(cell.outputs)
    return notebook


def coalesce(outputs: Sequence[Any]) -> list[Any]:
    """Join neighbouring pieces of one stream: where a stream is cut is a matter of timing."""
    joined: list[Any] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if output.output_type == "stream" and last is not None and last.get("name") == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def describe_failure(notebook: Path, cells: Sequence[Any], error: BaseException) -> str:
    """Return the report of a failure: the notebook, the code cell's number, its source, the traceback."""
    name = os.path.relpath(notebook, stamps.ROOT)
    code = [c for c in cells if c.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output.traceback))
                return f"{name}: code cell {number} of {len(code)} failed:\n\n{_indent(cell.source)}\n\n{trace}"
    return f"{name}: {type(error).__name__}: {error}"


def fix_arithmetic() -> None:
    """Let each kernel round alike, whatever the caller's environment says and whichever processor it is.

    The number of threads and the width of the vector instructions decide the order of sums, hence
    last digits, and eigenvalues near zero show them in a figure. Notebooks run side by side already,
    so more threads would gain nothing.
    """
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[threads] = "1"
    if platform.machine() in ("x86_64", "AMD64"):  # elsewhere these names mean nothing, and OpenBLAS complains
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"
        os.environ["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"


def run(path: Path) -> Any:
    """Execute a notebook in its own folder, in memory, and return it normalised."""
    import nbclient
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    fix_arithmetic()
    os.environ.pop("MPLBACKEND", None)  # the kernel chooses its own, which draws into the page
    notebook = nbformat.read(path, as_version=4)
    # No kernel that a user has installed elsewhere under the same name: only this environment's.
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    client = nbclient.NotebookClient(
        notebook, km=manager, timeout=CELL_TIMEOUT, record_timing=False, resources={"metadata": {"path": path.parent}}
    )
    try:
        asyncio.run(client.async_execute(cleanup_kc=True, stderr=subprocess.DEVNULL))
    except (nbclient.exceptions.CellExecutionError, nbclient.exceptions.CellTimeoutError,
            nbclient.exceptions.DeadKernelError) as error:  # fmt: skip
        raise RuntimeError(describe_failure(path, notebook.cells, error)) from None
    return normalise(notebook)


def execute(path: Path) -> Result:
    """Execute a notebook and store its outputs; on a failure leave the file alone."""
    import nbformat

    started = time.monotonic()
    try:
        text = nbformat.writes(run(path)).rstrip("\n") + "\n"
    except RuntimeError as error:
        return Result(path, time.monotonic() - started, str(error))
    except nbformat.reader.NotJSONError as error:
        return Result(path, time.monotonic() - started, f"{path}: {error}")
    if text != path.read_text(encoding="utf-8"):
        stamps.write_atomically(path, text)
    return Result(path, time.monotonic() - started)


def find(paths: Sequence[Path]) -> list[Path]:
    """Return the notebooks at or below the paths; raise `FileNotFoundError` for a path that has none."""
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: expected a notebook or a folder, found nothing")
        if not stamps.notebooks([path]):
            raise FileNotFoundError(f"{path}: expected a notebook or a folder of notebooks, found none")
    return stamps.notebooks(path.absolute() for path in paths)


def due(notebooks: Sequence[Path], everything: bool) -> list[Path]:
    """Return the notebooks that were not executed or proved as they stand."""
    keeper = stamps.NotebookStamps()
    return [n for n in notebooks if everything or not any(keeper.is_fresh(k, n) for k in ("executed", "proved"))]


def execute_all(notebooks: Sequence[Path], jobs: int) -> list[Result]:
    """Execute the notebooks side by side, reporting each as it ends, and stamp what went well."""
    keeper, results = stamps.NotebookStamps(), []
    with ProcessPoolExecutor(max_workers=min(jobs, len(notebooks))) as pool:
        for result in pool.map(execute, notebooks):
            name = os.path.relpath(result.notebook, stamps.ROOT)
            print(f"{'FAILED  ' if result.failure else 'executed'} {name} in {result.seconds:.1f} s", flush=True)
            if not result.failure:
                stamps.record(keeper.path("executed", result.notebook), keeper.inputs(result.notebook))
            results.append(result)
    return results


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, execute what is due, and report; return 1 when a notebook failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[stamps.ROOT / "chapters"], metavar="PATHS")
    parser.add_argument("--all", action="store_true", help="also the notebooks whose inputs have not changed")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    try:
        notebooks = find(options.paths)
    except FileNotFoundError as error:
        parser.error(str(error))
    with stamps.only_one("executed"):
        stale = due(notebooks, options.all)
        print(f"{len(stale)} of {len(notebooks)} notebooks to execute" + ("" if stale else "; --all runs them anyway"))
        results = execute_all(stale, max(1, options.jobs)) if stale else []
    failures = [r.failure for r in results if r.failure]
    for failure in failures:
        print(f"\n{failure}\n\nThe file is as it was.", file=sys.stderr)
    return 1 if failures else 0


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


if __name__ == "__main__":
    raise SystemExit(main())
