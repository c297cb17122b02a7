"""Make a release: ``python tools/release.py [TAG]`` fills _build/release with a version's files, and checks them.

A release is made of a commit. It holds wheels and source distributions of the three distributions, the site as one
archive, the PDF and the e-book (`make release` makes these three first), and SHA256SUMS. Each wheel is built from its
source distribution, which is built from the files that git has; and what its README says is run in an environment that
holds the wheel and what it asks for. The folder appears only if every check passes, and the workflow of a tag publishes
what lies there and nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import stamps
import version

ROOT = stamps.ROOT
RELEASE = ROOT / "_build" / "release"
SUMS = "SHA256SUMS"
#: The distributions, where the source of each lies, and its README below that.
DISTRIBUTIONS = {
    "attnmath": ("code/attnmath", "README.md"),
    "linewise": ("code/linewise", "README.md"),
    "attention-checked": (".", "code/attnlab/README.md"),
}
#: What the Makefile has made, and its name in the release.
SITE = ROOT / "_build" / "html"
PRINTED = {"pdf": ROOT / "_build/pdf/attention-checked.pdf", "epub": ROOT / "_build/epub/attention-checked.epub"}

#: Run by the Python of an environment that holds one distribution: the examples of its README.
EXAMPLES = r"""
import doctest, pathlib, re, sys
text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
blocks, names = re.findall(r"```python\n(.*?)```", text, re.DOTALL), {}
for block in blocks:  # one after the other, as a reader types them
    if ">>>" in block:
        test = doctest.DocTestParser().get_doctest(block, names, sys.argv[1], sys.argv[1], 0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        if runner.run(test, clear_globs=False).failed:
            sys.exit(1)
        names |= test.globs
    else:
        exec(block, names)
sys.exit(0 if blocks else "no example")
"""


class Fault(Exception):
    """What is wrong with a release, in a sentence."""


def run(command: Sequence[str | Path], at: Path = ROOT) -> str:
    """Run a command without the modules of the checkout on Python's path; return what it printed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([str(part) for part in command], cwd=at, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise Fault(f"{' '.join(str(part) for part in command[:6])} ... failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def expected(number: str) -> list[str]:
    """Return the names of the files of a release.

    >>> expected("2.0.0")[:3]
    ['SHA256SUMS', 'attention-checked-2.0.0-site.zip', 'attention-checked-2.0.0.epub']
    """
    stems = [name.replace("-", "_") for name in DISTRIBUTIONS]
    built = [f"{stem}-{number}{end}" for stem in stems for end in ("-py3-none-any.whl", ".tar.gz")]
    printed = [f"attention-checked-{number}.{kind}" for kind in PRINTED]
    return sorted([SUMS, f"attention-checked-{number}-site.zip", *printed, *built])


def uncommitted(root: Path = ROOT) -> list[str]:
    """Return the files that differ from the commit, or that git does not know."""
    return run(["git", "status", "--porcelain"], root).splitlines()


def export(folder: Path) -> Path:
    """Write the files of the commit to a folder: no build output, and nothing that git does not have."""
    archive = folder / "tree.zip"
    run(["git", "archive", "--format=zip", f"--output={archive}", "HEAD"])
    with zipfile.ZipFile(archive) as tree:
        tree.extractall(folder / "tree")
    return folder / "tree"


def build(source: Path, target: Path) -> None:
    """Build a source distribution, and the wheel from it."""
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", target, source])


def pack(site: Path, archive: Path) -> None:
    """Put a site into an archive, whose bytes depend on the files alone."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in stamps.files([site]):
            entry = zipfile.ZipInfo(f"{archive.stem}/{path.relative_to(site).as_posix()}", (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


def try_alone(wheel: Path, readme: Path, folder: Path) -> None:
    """Install a wheel, and what it asks for, into an environment of its own; run the examples of its README there."""
    run([sys.executable, "-m", "venv", folder])
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q"]
    run([*pip, "install", "-c", str(ROOT / "constraints.txt"), str(wheel)])
    run([*pip, "check"])
    run([python, "-P", "-c", EXAMPLES, readme], folder)


def sums(folder: Path) -> str:
    """Return the lines of SHA256SUMS: what `sha256sum --check` reads."""
    paths = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)


def faults(folder: Path, number: str) -> list[str]:
    """Return what is wrong with the files of a release: names that are missing or that nobody expects, other bytes."""
    names = {path.name for path in folder.iterdir()}
    found = [f"missing: {name}" for name in expected(number) if name not in names]
    found += [f"not expected: {name}" for name in sorted(names - set(expected(number)))]
    if SUMS in names and (folder / SUMS).read_text(encoding="utf-8") != sums(folder):
        found.append(f"{SUMS}: expected the sums of the files beside it")
    return found


def make(number: str, target: Path) -> None:
    """Fill a folder with the files of a release, and check each."""
    os.environ["SOURCE_DATE_EPOCH"] = run(["git", "log", "-1", "--format=%ct"]).strip()
    for made in (SITE / "index.html", *PRINTED.values()):
        if not made.is_file():
            raise Fault(f"expected {made.relative_to(ROOT)}, which `make release` makes first")
    with tempfile.TemporaryDirectory() as scratch:
        tree = export(Path(scratch))
        for name, (place, readme) in DISTRIBUTIONS.items():
            print(f"release: {name}", flush=True)
            build(tree / place, target)
            (wheel,) = target.glob(f"{name.replace('-', '_')}-*.whl")
            try_alone(wheel, tree / place / readme, Path(scratch, f"alone-{name}"))
    run([sys.executable, "-m", "twine", "check", "--strict", *sorted(target.iterdir())])
    pack(SITE, target / f"attention-checked-{number}-site.zip")
    for kind, made in PRINTED.items():
        shutil.copyfile(made, target / f"attention-checked-{number}.{kind}")
    (target / SUMS).write_text(sums(target), encoding="utf-8")
    if found := faults(target, number):
        raise Fault("\n".join(found))


def main(arguments: list[str] | None = None) -> int:
    """Make the release of the commit; return 1, and say why, if there is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tag", nargs="?", help="the tag of the version, such as v1.0.0")
    tag = parser.parse_args(arguments).tag
    found = version.faults(tag=tag) + [f"no commit has {line}" for line in uncommitted()]
    number = version.versions()["pyproject.toml"]
    shutil.rmtree(RELEASE, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "_build") as folder:
        if not found:
            try:
                make(number, Path(folder))
            except Fault as fault:
                found = [str(fault)]
            else:
                shutil.copytree(folder, RELEASE)
    for fault in found:
        print(f"release: {fault}", file=sys.stderr)
    if not found:
        print(f"release: {len(expected(number))} files of {number} in {RELEASE.relative_to(ROOT)}")
    return int(bool(found))


if __name__ == "__main__":
    stamps.run(main)
