"""A field of a book's files that is empty, a number or a list is named; none becomes the word "None" on a page."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from linewise.__main__ import main
from linewise.conventions import ConventionError, conventions_of
from linewise.ledger import LedgerError, coverage, load_claims

#: A whole book, with every field that a file of it can have.
BOOK: dict[str, Any] = {
    "linewise.yml": {
        "chapters": "parts",
        "texts": ["guide"],
        "sources": [{"table": "s.yml", "places": "essay", "section": "part", "titles": {"0": "opening"},
                     "equations": "E"}],
        "verdicts": {"right": {"check": "prove", "means": "shown"}, "wrong": {"check": "refute", "means": "broken"},
                     "seen": {"check": "measure", "means": "observed"}, "open": {"check": "none", "means": "left"}},
        "grades": {"slip": {"heading": "Slips", "brief": True}},
        "reasons": {"heading": "a title", "repetition": "said before"},
    },
    "s.yml": {
        "source": "An essay",
        "shape": {"essay.1": [2]},
        "rows": [{"at": "essay.1 title", "gist": "what it is", "none": "heading"},
                 {"at": "essay.1 p1 s1", "gist": "a sum", "equations": ["1"]},
                 {"at": "essay.1 p1 s2", "gist": "again", "none": "repetition", "of": "essay.1 p1 s1"}],
    },
    "parts/one.claims.yml": {
        "a/right": {"title": "T", "place": "essay.1 p1 s1", "reading": "R", "verdict": "right", "scope": "S",
                    "shows": [{"left": "a", "equals": "b", "through": "c", "for": "n integer", "assuming": "d > 0"},
                              {"left": "a", "at most": "b"}, {"left": "a", "at least": "b"}],
                    "how": "W"},
        "a/wrong": {"title": "T", "place": "beyond 1", "reading": "R", "verdict": "wrong", "holds": "H",
                    "grade": "slip"},
        "a/seen": {"title": "T", "place": "beyond 1", "reading": "R", "verdict": "seen", "outcome": "supported"},
        "a/open": {"title": "T", "place": "beyond 1", "reading": "R", "verdict": "open", "reason": "W"},
    },
}  # fmt: skip
#: What YAML makes of an empty field, of 5.1, yes and 2026-01-01 without quotes, and of brackets.
OTHERS = (None, 5.1, True, 3, ["a"], {"a": "b"}, [], {}, "", " ")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts, numbers and truth values within a file."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*path, key))
    else:
        yield path


def written(folder: Path, file: str, path: tuple[Any, ...], value: Any, *, as_key: bool = False) -> Path:
    """Write the book with another value at one place, or with another key."""
    book = copy.deepcopy(BOOK)
    at = book[file]
    for key in path[:-1]:
        at = at[key]
    if as_key:
        at[value] = at.pop(path[-1])
    else:
        at[path[-1]] = value
    (folder / "parts").mkdir(exist_ok=True)
    for name, content in book.items():
        (folder / name).write_text(yaml.safe_dump(content))
    return folder


def read(folder: Path) -> None:
    conventions_of.__globals__["_of_file"].cache_clear()  # by the time of the last change, and these are too quick
    conventions_of(folder)
    coverage.read_sources(folder)
    load_claims("one", folder / "parts")


PLACES = [(file, path) for file in BOOK for path in leaves(BOOK[file])]
#: Texts that may be empty, fields whose own kind is another, and the keys whose kind a value happens to have.
ALLOWED = {"places": ("", " "), "equations": ("", " ", []), "brief": (True, False), 0: (3, True)}


@pytest.mark.parametrize(("file", "path"), PLACES, ids=[f"{file}:{'.'.join(map(str, path))}" for file, path in PLACES])
def test_a_field_of_another_kind_is_named(tmp_path: Path, file: str, path: tuple[Any, ...]) -> None:
    read(written(tmp_path, file, path, _original(file, path)))
    name = next(str(key) for key in reversed(path) if isinstance(key, str))
    for other in OTHERS:
        if any(other is allowed or (other == allowed and type(other) is type(allowed))
               for allowed in ALLOWED.get(path[-1], ())) or (path[0] == "shape" and other == 3):  # fmt: skip
            continue
        written(tmp_path, file, path, other)
        with pytest.raises((LedgerError, ConventionError)) as caught:
            read(tmp_path)
        assert name in str(caught.value) or repr(other) in str(caught.value), other


def _original(file: str, path: tuple[Any, ...]) -> Any:
    value = BOOK[file]
    for key in path:
        value = value[key]
    return value


@pytest.mark.parametrize(
    ("file", "path"),
    [("linewise.yml", ("verdicts", "seen")), ("linewise.yml", ("grades", "slip")),
     ("linewise.yml", ("reasons", "heading")), ("linewise.yml", ("sources", 0, "titles", "0")),
     ("s.yml", ("shape", "essay.1")),
     ("parts/one.claims.yml", ("a/open",))],
)  # fmt: skip
def test_a_key_of_another_kind_is_named(tmp_path: Path, file: str, path: tuple[Any, ...]) -> None:
    for other in (None, 5.1, True, 3):
        written(tmp_path, file, path, other, as_key=True)
        with pytest.raises((LedgerError, ConventionError), match=str(other)):
            read(tmp_path)


def test_the_command_says_it_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "s.yml", ("rows", 1, "gist"), None)
    assert main([str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "s.yml: essay.1 p1 s1: gist: expected text, got NoneType None" in line


def test_a_chapter_whose_name_is_too_long_is_not_there(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        with pytest.raises(FileNotFoundError, match="^chapter: expected the claims of 'xxx"):
            load_claims("x" * 5000, folder)
