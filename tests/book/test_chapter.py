"""A chapter that `make chapter` begins keeps every rule at once, and what cannot be a chapter leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import chapter
import execute
import stamps

COPIED = ("_ext", "tools", "tests", "examples", "chapters", "guide")
#: The files whose tests ask something of a chapter; of them those that name it, or that are about the whole book.
RULES = ("book/test_notebooks.py", "book/test_records.py", "book/test_derivations.py", "book/test_prose_numbers.py",
         "book/test_claim_ids.py", "book/test_sources.py", "book/test_pages.py", "book/test_tools.py",
         "book/test_tracked_files.py", "site/test_guide_pages.py",
         "attacks/test_statements_are_attacked.py")  # fmt: skip
WHOLE = ("in_the_contents", "share_a_name", "this_book_is", "ids_are_numbered", "can_be_forked", "builds_on_chapters",
         "every_entry", "both_attacked", "every_reason")  # fmt: skip


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book, copied but for its code."""
    root = tmp_path_factory.mktemp("book")
    for name in COPIED:
        shutil.copytree(stamps.ROOT / name, root / name, ignore=lambda _, names: stamps.IGNORED & set(names))
    for path in stamps.ROOT.iterdir():
        if path.is_file() and path.name not in stamps.IGNORED:
            shutil.copy(path, root)
    (root / "code").symlink_to(stamps.ROOT / "code", target_is_directory=True)
    return root


def make(book: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `make chapter` in the copy, with this environment."""
    command = ["make", "-s", "chapter", f"VENV={sys.prefix}", "INSTALL=no", *arguments]
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "NAME")}
    return subprocess.run(command, cwd=book, env=environment, capture_output=True, text=True)


def files(book: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in stamps.files([book]) if path.suffix != ".pyc"}


def test_a_new_chapter_keeps_every_rule(book: Path) -> None:
    before = files(book)
    done = make(book, "NAME=matrix/many_copies")
    assert done.returncode == 0, done.stderr
    after = files(book)
    changed = {path.relative_to(book).as_posix() for path in after if after[path] != before.get(path)}
    written = {"chapters/matrix/many_copies.ipynb", "chapters/matrix/many_copies.claims.yml",
               "tests/attacks/attack_many_copies.py", "_toc.yml"}  # fmt: skip
    assert changed == written and before.keys() <= after.keys()
    assert {line.split()[1] for line in done.stdout.splitlines() if line.startswith("wrote")} == written
    words = " or ".join(("many_copies", *WHOLE))
    for tool in (
        ["pytest", "-q", "-p", "no:cacheprovider", "-k", words, *(f"tests/{file}" for file in RULES)],
        ["ruff", "check", "--no-cache", *(file for file in written if file.endswith((".py", ".ipynb")))],
        ["ruff", "format", "--check", "--no-cache", "tests/attacks/attack_many_copies.py"],
    ):
        kept = subprocess.run([sys.executable, "-m", *tool], cwd=book, capture_output=True, text=True)
        assert kept.returncode == 0, kept.stdout
    # `make execute` has nothing to do.
    assert (book / "_build/stamps/executed/chapters--matrix--many_copies.ipynb.stamp").is_file()


def test_the_tests_that_are_about_the_whole_book_are_there() -> None:
    asked = "".join((stamps.ROOT / "tests" / file).read_text(encoding="utf-8") for file in RULES)
    assert [name for name in WHOLE if not re.search(rf"def test_\w*{name}", asked)] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "expected PART/NAME, as in NAME=matrix/example, got nothing"),
        ("rows", "expected PART/NAME, as in NAME=matrix/example, got 'rows'"),
        ("matrix/", "expected PART/NAME, as in NAME=matrix/example, got 'matrix/'"),
        ("algebra/rows", "expected a part of the book (operator, matrix, sparsity, linear_cost, "),
        ("sources/rows", "encoder_decoder), got 'sources' in 'sources/rows'"),
        ("matrix/Rows", "small letters, digits and single underscores, got 'Rows' in 'matrix/Rows'"),
        ("matrix/two rows", "small letters, digits and single underscores, got 'two rows' in"),
        ("matrix/../rows", "small letters, digits and single underscores, got '../rows' in"),
        ("matrix/" + "r" * 41, "expected at most 40 small letters"),
        ("matrix/softmax", "expected a name that no page and no file of attacks has, got 'softmax'"),
    ],
)
def test_what_cannot_be_a_chapter_is_said_in_a_line(
    given: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chapter, "begin", lambda *_: pytest.fail("nothing may be written"))
    assert chapter.main([given]) == 1
    stopped = capsys.readouterr()
    assert stopped.err.startswith("chapter: NAME: ") and said in stopped.err and stopped.err.count("\n") == 1
    assert stopped.out == ""


def test_make_hands_the_name_on_as_it_is(book: Path) -> None:
    before = files(book)
    assert "NAME: expected PART/NAME, as in NAME=matrix/example, got nothing" in make(book).stderr
    given = make(book, "NAME=matrix/a; touch b 'c")
    assert given.returncode and 'got "a; touch b \'c" in' in given.stderr
    assert files(book) == before


@pytest.mark.parametrize("fails", ["the notebook", "the contents", "an interruption"])
def test_what_fails_leaves_nothing_behind(book: Path, fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write, before = stamps.write_atomically, files(book)

    def stop(path: Path, content: str | bytes) -> None:
        if path.name == "_toc.yml":
            raise KeyboardInterrupt if fails == "an interruption" else OSError("no space")
        write(path, content)

    monkeypatch.setattr(execute, "execute", lambda _: "cell 1 failed" if fails == "the notebook" else "")
    monkeypatch.setattr(stamps, "write_atomically", stop)
    with pytest.raises((RuntimeError, OSError, KeyboardInterrupt)):
        chapter.begin("matrix", "rows", book)
    assert files(book) == before and not [*book.glob("_build/chapter-*")]
