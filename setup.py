"""Build steps: the claims of the chapters go along, and the distribution asks for what its three packages ask for.

Everything else is in pyproject.toml. The claims are written and kept beside their notebooks; in an installation they
are in ``attnlab/claims/``, so that a notebook finds them wherever it runs.
"""

import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CHAPTERS = Path("chapters")
CONVENTIONS = Path("linewise.yml")
#: The two packages that are distributions of their own as well.
PACKAGES = {name: Path("code", name, "pyproject.toml") for name in ("attnmath", "linewise")}
#: What attnlab asks for beside the two others.
OWN = ["threadpoolctl>=3.5"]  # results that do not depend on the number of cores


class BuildWithClaims(build_py):
    """Copy the packages, and every claims file to ``attnlab/claims/``.

    An editable install has no such folder: the package then reads the files of the checkout itself.
    """

    def run(self) -> None:
        """Build as usual, then copy the claims to a fresh folder: an older build may have left some there."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "attnlab", "claims")
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in carried():
            shutil.copyfile(path, target / path.name)

    def get_source_files(self) -> list[str]:
        """Name the claims, and what `dependencies` reads, so that a source distribution holds them."""
        return [*super().get_source_files(), *(path.as_posix() for path in (*carried(), *PACKAGES.values()))]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Name the copies among what is built."""
        copies = [str(Path(self.build_lib, "attnlab", "claims", path.name)) for path in carried()]
        return [*super().get_outputs(include_bytecode), *([] if self.editable_mode else copies)]


def claims_files() -> list[Path]:
    """Return the claims of all chapters. Two chapters of one name would share a place, so there are none."""
    paths = sorted(CHAPTERS.glob("*/*.claims.yml"))
    names = [path.name for path in paths]
    if not paths or len(names) != len(set(names)):
        raise SystemExit(f"chapters: expected claims files, each with a name of its own, got {names}")
    return paths


def carried() -> list[Path]:
    """Return what goes along: the claims, and the conventions by which they are read."""
    return [CONVENTIONS, *claims_files()]


def dependencies() -> list[str]:
    """Return what the three packages ask for; the book draws pictures and proves with symbols."""
    attnmath, linewise = (tomllib.loads(path.read_text(encoding="utf-8"))["project"] for path in PACKAGES.values())
    extras = attnmath["optional-dependencies"]
    return sorted({*attnmath["dependencies"], *linewise["dependencies"], *extras["figures"], *extras["symbols"], *OWN})


setup(cmdclass={"build_py": BuildWithClaims}, install_requires=dependencies())
