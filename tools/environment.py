"""Make the environment, or bring it up to date: ``python tools/environment.py VENV [--this-python]``.

Called by ``tools/environment.sh``, with a Python that fits. Does nothing when neither the
interpreter, nor ``pyproject.toml``, nor the pins have changed since the last time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import stamps

EXTRAS = "torch,train,book,test"


def version_of(venv: Path) -> str:
    """Return the environment's Python version as it says itself, or "" when it does not run."""
    question = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    try:
        answer = subprocess.run([venv / "bin" / "python", "-c", question], capture_output=True, text=True)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def needs_remaking(venv: Path, this_python: bool) -> bool:
    """Say whether the environment is absent, broken, or of another Python than the one asked for."""
    version = version_of(venv)
    if this_python:
        return version != ".".join(map(str, sys.version_info[:3]))
    return version.rpartition(".")[0] not in {"3.11", "3.12", "3.13"}


def make(venv: Path) -> None:
    """Create the environment; refuse a folder that is something else."""
    if venv.exists() and any(venv.iterdir()) and not (venv / "pyvenv.cfg").is_file():
        raise SystemExit(f"{venv}: expected a virtual environment or nothing, found a folder with other content")
    print(f"environment: making {venv} with {stamps.python_version()}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)


def install(venv: Path, constraints: Path, quietly: bool) -> None:
    """Install the pinned dependencies, and the package in place."""
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "-c", str(constraints)]
    print(f"environment: installing what {constraints.name} pins{'' if quietly else ' (minutes)'}", flush=True)
    # The build backend comes from the pins as well, hence no build isolation.
    subprocess.run([*pip, "--quiet", "setuptools"], check=True, cwd=stamps.ROOT)
    quiet = ["--quiet"] if quietly else []
    subprocess.run([*pip, *quiet, "--no-build-isolation", "-e", f".[{EXTRAS}]"], check=True, cwd=stamps.ROOT)


def main() -> int:
    """Make and install what is not up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("venv", type=Path)
    parser.add_argument("--this-python", action="store_true", help="remake an environment of another Python")
    options = parser.parse_args()
    venv = options.venv.absolute()
    with stamps.only_one(f"environment-{venv.name.strip('.')}"):
        new = needs_remaking(venv, options.this_python)
        if new:
            make(venv)
        version = version_of(venv)
        constraints = stamps.ROOT / "constraints" / f"python-{version.rpartition('.')[0]}.txt"
        if not constraints.is_file():
            raise SystemExit(f"environment: there are no pins for Python {version}: expected {constraints}")
        inputs = stamps.digest([stamps.ROOT / "pyproject.toml", constraints], version, str(venv), str(stamps.ROOT))
        stamp = venv / "installed.stamp"
        if not stamps.is_fresh(stamp, inputs):
            stamp.unlink(missing_ok=True)
            install(venv, constraints, quietly=not new)
            stamps.record(stamp, inputs)
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except subprocess.CalledProcessError as error:
        what = " ".join(map(str, error.cmd))
        raise SystemExit(f"environment: this command failed (its own message stands above):\n  {what}") from None
