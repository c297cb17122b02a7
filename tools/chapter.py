"""Begin a chapter: ``python tools/chapter.py PART/NAME``, as in ``matrix/example``.

Writes the notebook, its claims and its attacks, from the small chapter in ``examples/chapter``, executes the notebook,
and puts the page at the end of its part in ``_toc.yml``. The new chapter keeps every rule; its author replaces it part
by part. What fails leaves nothing behind.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import execute
import stamps

#: The line of a chapter in the contents; the group is its part.
LISTED = re.compile(r"^ *- file: chapters/(\w+)/\w+\n", re.MULTILINE)

#: A longer name would make a line of the notebook longer than a page is wide.
LONGEST = 40


def parts(contents: str) -> list[str]:
    """Return the parts of the book, which are folders of chapters, in the order of the contents.

    >>> parts("- file: intro\\n- file: chapters/operator/softmax\\n- file: chapters/matrix/rank\\n")
    ['operator', 'matrix']
    """
    return list(dict.fromkeys(LISTED.findall(contents)))


def taken(root: Path) -> set[str]:
    """Return the names that a new chapter may not have: those of notebooks, of claims and of attacks."""
    attacks = {path.stem.removeprefix("attack_") for path in root.glob("tests/attacks/attack_*.py")}
    pages = [path for folder in ("chapters", "guide") for path in stamps.files([root / folder])]
    return attacks | {path.name.partition(".")[0] for path in pages}


def named(given: str, root: Path) -> tuple[str, str]:
    """Return the part and the name that are given; raise ValueError, in one line, for what cannot be a chapter."""
    part, slash, name = given.partition("/")
    if not (part and slash and name):
        got = repr(given) if given else "nothing"
        raise ValueError(f"NAME: expected PART/NAME, as in NAME=matrix/example, got {got}")
    known = parts((root / "_toc.yml").read_text(encoding="utf-8"))
    if part not in known:
        raise ValueError(f"NAME: expected a part of the book ({', '.join(known)}), got {part!r} in {given!r}")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or len(name) > LONGEST:
        allowed = f"at most {LONGEST} small letters, digits and single underscores"
        raise ValueError(f"NAME: expected {allowed}, got {name!r} in {given!r}")
    if name in taken(root):
        raise ValueError(f"NAME: expected a name that no page and no file of attacks has, got {name!r} in {given!r}")
    return part, name


def renamed(text: str, name: str) -> str:
    """Return a text of the model for a chapter of another name.

    >>> renamed("# Template: see fig-template-copies, template.claims.yml", "low_rank")
    '# Low rank: see fig-low-rank-copies, low_rank.claims.yml'
    """
    label = f"-{name.replace('_', '-')}-"
    words = {"Template": name.replace("_", " ").capitalize(), "-template-": label, "template": name}
    return re.sub("|".join(words), lambda match: words[match[0]], text)


def listed(contents: str, part: str, name: str) -> str:
    """Return the contents with one more chapter at the end of a part.

    >>> listed("- file: chapters/a/b\\n- file: chapters/c/d\\n", "a", "new")
    '- file: chapters/a/b\\n- file: chapters/a/new\\n- file: chapters/c/d\\n'
    """
    last = [match for match in LISTED.finditer(contents) if match[1] == part][-1]
    line = re.sub(r"/\w+\n$", f"/{name}\n", last[0])
    return contents[: last.end()] + line + contents[last.end() :]


def begin(part: str, name: str, root: Path) -> list[Path]:
    """Write the files of a chapter and return them; on a failure, or an interruption, write nothing."""
    folder, contents = root / "chapters" / part, root / "_toc.yml"
    places = {
        "template.ipynb": folder / f"{name}.ipynb",
        "template.claims.yml": folder / f"{name}.claims.yml",
        "attack_template.py": root / "tests" / "attacks" / f"attack_{name}.py",
    }
    before = contents.read_text(encoding="utf-8")
    (root / "_build").mkdir(exist_ok=True)
    # Below the root, where the claims find the book's conventions.
    with tempfile.TemporaryDirectory(dir=root / "_build", prefix="chapter-") as temporary:
        drafts = {Path(temporary, place.name): place for place in places.values()}
        for (model, place), draft in zip(places.items(), drafts, strict=True):
            text = (root / "examples" / "chapter" / model).read_text(encoding="utf-8")
            draft.write_text(renamed(text, place.name.partition(".")[0].removeprefix("attack_")), encoding="utf-8")
        if fault := execute.execute(next(iter(drafts))):
            raise RuntimeError(fault)
        try:
            for draft, place in drafts.items():
                stamps.write_atomically(place, draft.read_bytes())
            stamps.write_atomically(contents, listed(before, part, name))
        except BaseException:
            for place in places.values():
                place.unlink(missing_ok=True)
            raise
    notebook = places["template.ipynb"]
    stamps.write_stamp(stamps.stamp_of("executed", notebook), stamps.inputs_of([notebook])[notebook])
    return [*places.values(), contents]


def main(arguments: list[str] | None = None) -> int:
    """Begin the chapter that is named, and say what was written; return 1 where it cannot be."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        written = begin(*named(" ".join(given), stamps.ROOT), stamps.ROOT)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"chapter: {error}", file=sys.stderr)
        return 1
    print(*(f"wrote {path.relative_to(stamps.ROOT).as_posix()}" for path in written), sep="\n")
    print("The chapter is executed, and keeps every rule. Replace it part by part; `make execute` runs it again.")
    return 0


if __name__ == "__main__":
    stamps.run(main)
