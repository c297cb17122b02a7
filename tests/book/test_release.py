"""A release is a commit's, whole, and as it was checked; each fault of one is noticed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import release

NUMBER = "2.0.0"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A folder with all files of a release, each with other bytes."""
    for name in release.expected(NUMBER):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / release.SUMS).write_text(release.sums(tmp_path), encoding="utf-8")
    return tmp_path


def test_a_whole_release_has_no_fault(whole: Path) -> None:
    assert len(release.expected(NUMBER)) == 10 and release.faults(whole, NUMBER) == []
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", release.SUMS], cwd=whole, check=True)


@pytest.mark.parametrize("name", release.expected(NUMBER))
def test_a_missing_file_is_noticed(whole: Path, name: str) -> None:
    (whole / name).unlink()
    assert f"missing: {name}" in release.faults(whole, NUMBER)


def test_a_file_that_nobody_expects_and_other_bytes_are_noticed(whole: Path) -> None:
    (whole / "linewise-1.9.0.tar.gz").write_bytes(b"")
    assert "not expected: linewise-1.9.0.tar.gz" in release.faults(whole, NUMBER)
    (whole / "linewise-1.9.0.tar.gz").unlink()
    (whole / f"linewise-{NUMBER}.tar.gz").write_bytes(b"other")
    assert release.faults(whole, NUMBER) == [f"{release.SUMS}: expected the sums of the files beside it"]


def test_what_no_commit_has_is_noticed(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert release.uncommitted(tmp_path) == []
    (tmp_path / "new.txt").touch()
    assert release.uncommitted(tmp_path) == ["?? new.txt"]


def test_an_archive_of_the_site_has_every_file_and_no_hour(tmp_path: Path) -> None:
    site = tmp_path / "html"
    (site / "pages").mkdir(parents=True)
    for name in ("index.html", "pages/one.html"):
        (site / name).write_text(name, encoding="utf-8")
    archives = [tmp_path / folder / "site.zip" for folder in ("a", "b")]
    for archive in archives:
        archive.parent.mkdir()
        release.pack(site, archive)
        (site / "index.html").touch()
    assert archives[0].read_bytes() == archives[1].read_bytes()
    assert zipfile.ZipFile(archives[0]).namelist() == ["site/index.html", "site/pages/one.html"]


@pytest.mark.parametrize(
    ("readme", "works"),
    [
        ("```python\nassert 1 + 1 == 2\n```", True),
        ("```python\n>>> 1 + 1\n2\n\n```", True),
        ("```python\nassert 1 + 1 == 3\n```", False),
        ("```python\n>>> 1 + 1\n3\n\n```", False),
        ("```python\nx = 1\n```\n```python\n>>> y = x + 1\n\n```\n```python\n>>> x + y\n3\n\n```", True),
        ("no example", False),
    ],
)
def test_an_example_of_a_readme_that_fails_is_noticed(tmp_path: Path, readme: str, works: bool) -> None:
    path = tmp_path / "README.md"
    path.write_text(readme, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", release.EXAMPLES, path], capture_output=True)
    assert (done.returncode == 0) == works
