"""Build step: put the claims of the chapters into the package, so that a notebook finds them wherever it runs.

Everything else about the package is in pyproject.toml. The claims are written and kept beside their notebooks.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CHAPTERS = Path("chapters")


class BuildWithClaims(build_py):
    """Copy the package, and beside it every claims file, to ``attnmath/claims/``.

    An editable install has no such folder: the package then reads the files of the checkout itself.
    """

    def run(self) -> None:
        """Build as usual, then copy the claims to a fresh folder: an older build may have left some there."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "attnmath", "claims")
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in claims_files():
            shutil.copyfile(path, target / path.name)

    def get_source_files(self) -> list[str]:
        """Name the claims among the sources, so that a source distribution holds them."""
        return [*super().get_source_files(), *(path.as_posix() for path in claims_files())]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Name the copies among what is built."""
        copies = [str(Path(self.build_lib, "attnmath", "claims", path.name)) for path in claims_files()]
        return [*super().get_outputs(include_bytecode), *([] if self.editable_mode else copies)]


def claims_files() -> list[Path]:
    """Return the claims of all chapters. Two chapters of one name would share a place, so there are none."""
    paths = sorted(CHAPTERS.glob("*/*.claims.yml"))
    names = [path.name for path in paths]
    if not paths or len(names) != len(set(names)):
        raise SystemExit(f"chapters: expected claims files, each with a name of its own, got {names}")
    return paths


setup(cmdclass={"build_py": BuildWithClaims})
