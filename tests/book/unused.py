"""Which public functions and classes of the packages below code/ nothing names but the tests."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

#: What calls or shows the packages, beside themselves.
PROGRAMS = ("_ext/**/*.py", "tools/*.py", "setup.py")
NOTEBOOKS = ("chapters/**/*.ipynb", "guide/**/*.ipynb")
PAGES = ("*.md", "chapters/**/*.md", "guide/**/*.md", "read/*.md", "ledger/*.md", "reference/**/*.md", "code/**/*.md")

Definition = ast.FunctionDef | ast.ClassDef


def unused(root: Path) -> list[str]:
    """Return the public top-level functions and classes below ``root/code`` that only tests may name.

    A module whose name begins with one underscore has none.

    A name counts where a notebook's cell, a program or another module takes it from the module or from a package above
    it, where a page has it in its code, and where something that counts uses it in its own module. That a package hands
    a name on does not count.
    """
    files = sorted(root.glob("code/*/**/*.py"))
    modules = {_dotted(path, root): path for path in files if not re.match("_[a-z]", path.name)}
    trees = {name: _parsed(path.read_text(encoding="utf-8")) for name, path in modules.items()}
    packages = {name.partition(".")[0] for name in modules}
    outside = [_parsed(path.read_text(encoding="utf-8")) for path in _files(root, PROGRAMS)]
    outside += [_parsed(_code_of(path.read_text(encoding="utf-8"))) for path in _files(root, NOTEBOOKS)]
    taken = {pair for tree in outside for pair in _taken(tree, packages)}
    for name, tree in trees.items():
        taken.update(_taken(tree, packages, hands_on=modules[name].name == "__init__.py"))
    words = {word for path in _files(root, PAGES) for word in _words(path.read_text(encoding="utf-8"))}
    found = []
    for module, tree in trees.items():
        above = {module[:end] for end in _ends(module)}
        named = words | {name for place, name in taken if place in above}
        used = _reached(tree, named)
        found += [f"{module}.{n.name}" for n in _definitions(tree) if not n.name.startswith("_") and n.name not in used]
    return found


def _dotted(path: Path, root: Path) -> str:
    parts = path.relative_to(root / "code").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _files(root: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from (path for path in sorted(root.glob(pattern)) if ".ipynb_checkpoints" not in path.parts)


@cache  # of a text: a spoilt copy differs from the book in one file
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _code_of(notebook: str) -> str:
    """Return the code cells of a notebook one after the other, without magic lines."""
    cells = [cell["source"] for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
    lines = "\n".join("".join(source) for source in cells).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("%", "!")))


def _definitions(tree: ast.Module) -> list[Definition]:
    return [node for node in tree.body if isinstance(node, Definition)]


def _ends(module: str) -> Iterator[int]:
    yield from (place for place, letter in enumerate(module) if letter == ".")
    yield len(module)


def _taken(tree: ast.Module, packages: set[str], *, hands_on: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each name that is imported from the packages, or is an attribute of what was, with where it is from.

    Of a module that is asked for an attribute by ``getattr``, every text of the file may be its name.
    hands_on : the imports are there for others.
    """
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                bound[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if not hands_on:
                    yield node.module, alias.name
    bound = {name: place for name, place in bound.items() if place.partition(".")[0] in packages}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (place := _place(node.value, bound)):
            yield place, node.attr
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "getattr"
            and (place := _place(node.args[0], bound))
        ):
            yield from ((place, text) for text in texts if place)


def _place(node: ast.expr, bound: dict[str, str]) -> str | None:
    """Return the dotted name of what an expression such as ``derive.rules`` stands for, if it was imported."""
    if isinstance(node, ast.Attribute):
        above = _place(node.value, bound)
        return f"{above}.{node.attr}" if above else None
    return bound.get(node.id) if isinstance(node, ast.Name) else None


def _words(page: str) -> Iterator[str]:
    """Yield the words in the code of a page: in blocks, and between backticks."""
    for code in re.findall(r"^ *```.*?^ *```|`[^`\n]+`", page, re.DOTALL | re.MULTILINE):
        yield from re.findall(r"\w+", code)


def _reached(tree: ast.Module, named: Iterable[str]) -> set[str]:
    """Return what a module uses of its own: from its statements, and from its definitions that have such a name."""
    definitions = {node.name: node for node in _definitions(tree)}
    todo: list[ast.AST] = [node for node in tree.body if not isinstance(node, Definition)]
    found = set(named) & set(definitions)
    todo += [definitions[name] for name in found]
    while todo:
        for node in ast.walk(todo.pop()):
            if isinstance(node, ast.Name) and node.id in definitions and node.id not in found:
                found.add(node.id)
                todo.append(definitions[node.id])
    return found
