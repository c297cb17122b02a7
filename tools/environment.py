"""Make the environment, or bring it up to date: ``python tools/environment.py VENV [--this-python]``.

Called by ``tools/environment.sh``, with a Python that fits. Does nothing when neither the
interpreter, nor ``pyproject.toml``, nor the pins have changed since the last time.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import stamps

EXTRAS = "torch,train,book,test"
FITTING = ("3.11", "3.12", "3.13")
CONSTRAINTS = stamps.ROOT / "constraints.txt"


def version_of(venv: Path) -> str:
    """Return the environment's Python version as it says itself, or "" when it does not run."""
    question = "import platform; print(platform.python_version())"
    try:
        return subprocess.run([venv / "bin/python", "-c", question], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def install(venv: Path, remade: bool) -> None:
    """Install the pinned dependencies, and the package in place; say all that pip says where it takes minutes."""
    print(f"environment: installing what {CONSTRAINTS.name} pins{' (minutes)' if remade else ''}", flush=True)
    pip = [str(venv / "bin/python"), "-m", "pip", "install", "--disable-pip-version-check", "-c", str(CONSTRAINTS)]
    # The build backend comes from the pins as well, hence no build isolation.
    subprocess.run([*pip, "--quiet", "setuptools"], check=True, cwd=stamps.ROOT)
    quiet = [] if remade else ["--quiet"]
    subprocess.run([*pip, *quiet, "--no-build-isolation", "-e", f".[{EXTRAS}]"], check=True, cwd=stamps.ROOT)


def main() -> int:
    """Make and install what is not up to date."""
    venv = Path(sys.argv[1]).absolute()
    with stamps.only_one(f"environment-{venv.name.strip('.')}"):
        version = version_of(venv)
        # An environment that serves is kept, unless another Python is asked for.
        remade = version != platform.python_version() if "--this-python" in sys.argv else version[:4] not in FITTING
        if remade:
            if venv.exists() and any(venv.iterdir()) and not (venv / "pyvenv.cfg").is_file():
                raise SystemExit(f"{venv}: expected a virtual environment or nothing, found other files")
            print(f"environment: making {venv} with Python {platform.python_version()}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        places = str(venv), str(stamps.ROOT)
        inputs = stamps.digest([stamps.ROOT / "pyproject.toml", CONSTRAINTS], version_of(venv), *places)
        stamp = venv / "installed.stamp"
        if not stamps.is_fresh(stamp, inputs):
            stamp.unlink(missing_ok=True)
            install(venv, remade)
            stamps.write_atomically(stamp, inputs)
    return 0


if __name__ == "__main__":
    try:
        stamps.run(main)
    except subprocess.CalledProcessError as error:
        what = " ".join(map(str, error.cmd))
        raise SystemExit(f"environment: this command failed (its own message is above):\n  {what}") from None
