"""What a piece of Python reaches: the modules that it imports, those that they import in turn, and files they name.

The imports are read (`ast`), nothing is executed. The rules count too much rather than too little:

* An import counts wherever it stands, in a function as well; only the body of ``if TYPE_CHECKING:`` does not.
* With a module come the ``__init__`` of the packages above it. What a package's own ``__getattr__`` hands out is found
  at the place that asks: ``package.room`` and ``from package import room`` reach that room. A name that is no module
  and does not stand in the ``__init__`` reaches all of the package, as ``import package`` does, and the package as a
  value.
* A file that holds no Python is reached by its name: as the end of a string, as a string with holes (f"{name}.csv"
  reaches every table), or as a string that is its name without endings. A style sheet is reached by everybody, because
  matplotlib finds style sheets by names of its own. A file that no string names is reached by nobody; a README, which
  explains, needs its whole name.
* A file beside notebooks is reached by the notebook of its name, by ``load_claims`` with it, and by its full name.
* An import by a name that is computed reaches every module that a string names, anywhere in what is reached, and so
  does ``python -m`` in a process of its own. A name out of a table of constants is not computed.
* What cannot be parsed reaches everything, and so does what asks where a module lies (``module.__file__``).

Standard library only, as `stamps` is, which is used before anything is installed.
"""

from __future__ import annotations

import ast
import doctest
import fnmatch
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The ending of style sheets.
STYLES = ".mplstyle"
#: What reads the file of a chapter's claims, which is named after its argument.
CLAIMS, CLAIMS_SUFFIX = "load_claims", ".claims.yml"
# A string that may be a path, or the name of a module; "*" stands for what a program fills in.
_NAME = re.compile(r"[\w.*/-]{1,200}")
# Functions that import what their argument names.
_IMPORTERS = {"import_module", "__import__", "run_module", "importorskip", "exec", "eval"}


@dataclass
class Facts:
    """What is read from one source, whatever else there is: enough to find out what it reaches.

    chains : the dotted names that are imported or used, from a module on, as in "package.room.function"; "package.*"
        for a package that is imported whole, or is used as a value.
    strings : the strings that may name a file or a module.  computed : whether an import's name is computed.
    claims : the chapters whose claims are loaded; "*" for a name that is computed.
    lazy : whether it has a ``__getattr__``.  bound : the names that its top level has.
    placed : whether it asks where it lies (``__file__``), and so may read what lies around it.
    locates : whether it asks where a module lies, and so may read what lies around that one.
    """

    chains: list[str] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    computed: bool = False
    claims: list[str] = field(default_factory=list)
    lazy: bool = False
    bound: list[str] = field(default_factory=list)
    placed: bool = False
    locates: bool = False


def facts(source: str, package: str = "", *, examples: bool = False) -> Facts:
    """Read a module, or the code of a notebook.

    package : to which relative imports refer.  examples : whether the examples of docstrings count as code.
    Raises `SyntaxError` for what is no Python.
    """
    tree = ast.parse(source)
    if examples:
        for text in list(_docstrings(tree)):
            for example in doctest.DocTestParser().get_examples(text):
                tree.body += ast.parse(example.source).body
    reader = _Reader(package)
    reader.visit(tree)
    lazy = "__getattr__" in _bound(tree.body)
    strings = reader.strings - ({s for s in reader.strings if s.startswith(f"{package}.")} if lazy else set())
    return Facts(
        chains=sorted(reader.chains | set(reader.uses())),
        strings=sorted(strings),
        computed=reader.is_computed(),
        claims=sorted(reader.claims),
        lazy=lazy,
        bound=sorted(_bound(tree.body)) if lazy else [],
        placed=reader.placed,
        locates=reader.locates,
    )


def _docstrings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def _bound(body: Iterable[ast.stmt]) -> set[str]:
    """Return the names that statements bind: imports, definitions and assignments."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(statement.name)
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
    return found


class _Reader(ast.NodeVisitor):
    """Collects the facts of one source."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.chains: set[str] = set()
        self.strings: set[str] = set()
        self.claims: set[str] = set()
        self.computed = self.placed = self.locates = False
        self._modules: dict[str, set[str]] = {}  # what each imported name may stand for
        self._used: set[tuple[str, str]] = set()  # a name, and the attributes after it ("*": it is used as a value)
        self._tables: dict[str, list[str]] = {}  # dictionaries of strings: their values
        self._runs = False  # whether a module is run by its name

    def uses(self) -> Iterator[str]:
        """Yield a chain for each use of an imported name."""
        for name, attributes in self._used:
            for module in self._modules.get(name, ()):
                yield f"{module}.{attributes}"

    def is_computed(self) -> bool:
        """Return whether a module is imported, or run by this Python, whose name is computed."""
        return self.computed or (self._runs and ("sys", "executable") in self._used)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            whole = "." not in alias.name and alias.asname is None
            self.chains.add(f"{alias.name}.*" if whole else alias.name)
            first = alias.name.split(".")[0]
            self._modules.setdefault(alias.asname or first, set()).add(alias.name if alias.asname else first)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        above = self.package.split(".")
        base = [*above[: len(above) - node.level + 1], *([node.module] if node.module else [])] if node.level else []
        source = ".".join(base) if node.level else str(node.module)
        for alias in node.names:
            self.chains.add(f"{source}.{alias.name}")
            self._modules.setdefault(alias.asname or alias.name, set()).add(f"{source}.{alias.name}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        self.locates |= "__file__" in names
        if isinstance(inner, ast.Name):
            self._used.add((inner.id, ".".join(reversed(names))))
        else:
            self.visit(inner)

    def visit_Name(self, node: ast.Name) -> None:
        self.placed |= node.id == "__file__"
        if isinstance(node.ctx, ast.Load):
            self._used.add((node.id, "*"))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        computed = self.computed
        self.generic_visit(node)
        if node.name == "__getattr__":  # what it imports is found where it is asked for
            self.computed = computed

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called == CLAIMS:
            first = node.args[0] if node.args else None
            self.claims.add(str(first.value) if isinstance(first, ast.Constant) else "*")
        if called in _IMPORTERS and node.args:
            first = node.args[0]
            table = first.value if isinstance(first, ast.Subscript) else None
            if isinstance(first, ast.Constant):
                name = str(first.value)
                self.chains.add(f"{self.package}{name}" if name.startswith(".") else name)
            elif isinstance(table, ast.Name) and table.id in self._tables:
                self.chains.update(self._tables[table.id])
            else:
                self.computed = True
        self.generic_visit(node)

    def visit_Module(self, node: ast.Module) -> None:
        for statement in node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
                values = [v.value if isinstance(v, ast.Constant) else None for v in statement.value.values]
                names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
                if names and all(isinstance(v, str) for v in values):
                    self._tables |= {name: [str(v) for v in values] for name in names}
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a string that stands alone is a docstring
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._string(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._string("".join(str(v.value) if isinstance(v, ast.Constant) else "*" for v in node.values))
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                self.visit(value.value)

    def _string(self, value: str) -> None:
        if value == "-m":
            self._runs = True
        elif _NAME.fullmatch(pattern := re.sub(r"\{\w*\}|%s", "*", value)):
            self.strings.add(pattern)
        elif re.search(r"\bimport\b", value):  # a program in a string, for a process of its own
            try:
                self.visit(ast.parse(value))
            except (SyntaxError, ValueError):
                return


def of_notebook(content: bytes) -> str:
    """Return the code of a notebook, its cells one after another; raise `SyntaxError` for what is none."""
    try:
        cells = json.loads(content)["cells"]
        return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise SyntaxError(f"no notebook: {error}") from None


def notebook_of(content: bytes) -> dict[str, Any]:
    """Return a notebook from the content of its file; for what is none, `ValueError` says what it is in one line."""
    try:
        found = json.loads(content.decode("utf-8"))
        json.dumps(found, ensure_ascii=False).encode("utf-8")  # half of a pair of surrogates cannot be stored again
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected a notebook, which is JSON in UTF-8, got {type(error).__name__}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"expected a notebook, which is a JSON object, got {type(found).__name__}")
    kinds = {"nbformat": int, "nbformat_minor": int, "metadata": dict, "cells": list}
    for name, kind in kinds.items():
        if type(found.get(name)) is not kind or (name == "nbformat" and found[name] != 4):
            expected = "4" if name == "nbformat" else f"a {kind.__name__}"
            raise ValueError(f"{name}: expected {expected}, as a notebook has it, got {found.get(name)!r:.60}")
    for number, cell in enumerate(found["cells"], start=1):
        if fault := _fault(cell):
            raise ValueError(f"cell {number}: {fault}")
    ids = [cell["id"] for cell in found["cells"] if "id" in cell]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise ValueError(f"cells: expected an id of its own for each, got {twice[0]!r} twice")
    return found


def _fault(cell: Any) -> str:
    """Return what keeps a cell from being one; "" if nothing does."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        return f"expected a cell of code, markdown or raw text, got {cell!r:.60}"
    source = cell.get("source")
    if not isinstance(source, str) and not (isinstance(source, list) and all(isinstance(line, str) for line in source)):
        return f"source: expected text or lines of text, got {source!r:.60}"
    if not isinstance(cell.get("metadata"), dict) or not isinstance(cell.get("id", ""), str):
        return "expected metadata that are an object, and an id that is text"
    outputs = cell.get("outputs", []) if cell["cell_type"] == "code" else []
    if not isinstance(outputs, list) or not all(isinstance(one, dict) and "output_type" in one for one in outputs):
        return f"outputs: expected a list of outputs, got {outputs!r:.60}"
    return ""


class Sources:
    """The modules and the other files below some source roots, and what they reach.

    roots : folders whose packages and modules can be imported, the first found counting.
    files : the files below a folder.  beside : files that lie beside notebooks.
    cache : a file that keeps what was read, by the contents' hashes, so that a second run is quick.
    """

    def __init__(
        self,
        roots: Iterable[Path],
        files: Callable[[Path], Iterable[Path]],
        beside: Iterable[Path] = (),
        cache: Path | None = None,
    ) -> None:
        self._paths: dict[str, Path | None] = {}
        self._others: list[Path] = []
        self._beside = list(beside)
        for root in roots:
            for path in files(root):
                self._add(root, path)
        self._cache = cache
        self._known: dict[str, dict[str, object]] = {}
        self._asked: dict[str, dict[str, object]] = {}
        if cache is not None and cache.is_file():
            try:
                self._known = json.loads(cache.read_text(encoding="utf-8"))
            except ValueError:
                self._known = {}
        # Facts hold only what begins with one of these names; with other modules, other facts count.
        self._tops = {name for name in self._paths if "." not in name}
        self._packages = {name.split(".")[0] for name in self._paths if "." in name}
        self._key = hashlib.sha256(repr(sorted(self._tops)).encode() + Path(__file__).read_bytes()).hexdigest()[:16]
        self._facts: dict[str, Facts | None] = {}
        self._modules: dict[str, frozenset[str]] = {}

    def _add(self, root: Path, path: Path) -> None:
        parts = path.relative_to(root).parts
        if path.suffix == ".py" and all(part.isidentifier() for part in (*parts[:-1], path.stem)):
            names = parts[:-1] if path.name == "__init__.py" else (*parts[:-1], path.stem)
            for end in range(1, len(names)):
                self._paths.setdefault(".".join(names[:end]), None)
            if names and self._paths.get(".".join(names)) is None:
                self._paths[".".join(names)] = path
        elif len(parts) > 1 and path.suffix != ".py":
            self._others.append(path)

    def module(self, path: Path) -> str | None:
        """Return the name of the module that a file holds; None for another file."""
        return next((name for name, place in self._paths.items() if place == path), None)

    def reached(self, path: Path, *, examples: bool = False) -> set[Path]:
        """Return the files that a notebook or a module reaches, without itself.

        examples : whether the examples of its docstrings are run.
        """
        known = self.closure(path, examples=examples)
        if known is None or any(one.locates for one in known.values()):
            return {*(p for p in self._paths.values() if p), *self._others, *self._beside} - {path}
        strings = {string for one in known.values() for string in one.strings}
        return (set(known) | self._data(strings) | self._companions(path, known[path])) - {path}

    def closure(self, path: Path, *, examples: bool = False) -> dict[Path, Facts] | None:
        """Return the facts of a notebook or module, and those of every module that it reaches.

        None for a source that is no Python: what it reaches is not known.
        """
        name = self.module(path)
        first = self._read(path.read_bytes(), name, path, examples)
        if first is None:
            return None
        known = {path: first}
        found: set[str] = set()
        new = self._modules_of(first, name)
        while True:
            if not new and any(one.computed for one in known.values()):
                new = {m for one in known.values() for string in one.strings for m in self._named(string)} - found
            if not new:
                return {p: one for p, one in known.items() if p.is_absolute()}
            found |= new
            reads = {module: self._facts_of(module) for module in new}
            for module, one in reads.items():
                if one is None:
                    return None
                known.setdefault(self._paths[module] or Path(module), one)
            new = set().union(*(self._modules_of(one, m) for m, one in reads.items() if one is not None)) - found

    def _modules_of(self, one: Facts, name: str | None) -> set[str]:
        """Return the modules that facts name: those imported and used, and the packages above the module itself."""
        above = _above(name) - {name} if name else set()
        return above.union(*(self._resolved(chain) for chain in one.chains))

    def _resolved(self, chain: str) -> frozenset[str]:
        """Return the modules that a chain reaches."""
        if chain not in self._modules:
            self._modules[chain] = frozenset(self._resolve(chain))
        return self._modules[chain]

    def _resolve(self, chain: str) -> set[str]:
        at, *rest = chain.split(".")
        if at not in self._paths:
            return set()
        found = {at}
        for part in rest:
            if f"{at}.{part}" in self._paths:
                at = f"{at}.{part}"
                found.add(at)
                continue
            one = self._facts_of(at)
            if part == "__path__" or ((one is None or one.lazy) and (part == "*" or self._hidden(one, part))):
                found |= self._below(at)
            break
        return found

    @staticmethod
    def _hidden(one: Facts | None, name: str) -> bool:
        """Return whether a name of a package comes out of its ``__getattr__``."""
        return one is None or (name not in one.bound and not (name.startswith("__") and name.endswith("__")))

    def _below(self, package: str) -> set[str]:
        return {m for m in self._paths if m.startswith(f"{package}.") and not m.endswith(".__main__")}

    def _named(self, string: str) -> set[str]:
        """Return the packages and their modules that a string names; with a package that can be run, what runs it."""
        first = string.split(".")[0]
        if first not in self._tops or ("." not in string and first not in self._packages):
            return set()  # no name of a module, or a word that may be the name of a module as well
        found = {m for m in (fnmatch.filter(self._paths, string) if "*" in string else [string]) if m in self._paths}
        found |= {f"{m}.__main__" for m in found if f"{m}.__main__" in self._paths}
        return found.union(*(_above(m) for m in found))

    def _data(self, strings: set[str]) -> set[Path]:
        """Return the files that are no Python and that strings name, and every style sheet."""
        ends = {string.rsplit("/", 1)[-1] for string in strings}
        patterns = {end if not end.startswith(".") else f"*{end}" for end in ends}
        holes = [p for p in patterns if "*" in p and re.search(r"\.[\w.]+$", p)]
        return {
            path
            for path in self._others
            if path.suffix == STYLES
            or path.name in patterns
            or path.name.split(".")[0] in ends
            or (path.stem != "README" and any(fnmatch.fnmatchcase(path.name, p) for p in holes))
        }

    def _companions(self, path: Path, one: Facts) -> set[Path]:
        """Return the files beside notebooks that belong to one: by its own name, by that of its claims, or in full."""
        ends = {string.rsplit("/", 1)[-1] for string in one.strings}
        named = set(one.claims)
        return {
            p
            for p in self._beside
            if p.name in ends
            or (p.parent == path.parent and p.name.startswith(f"{path.stem}."))
            or (p.name.endswith(CLAIMS_SUFFIX) and ("*" in named or p.name.removesuffix(CLAIMS_SUFFIX) in named))
        }

    def _facts_of(self, module: str) -> Facts | None:
        """Return the facts of a module; a package without ``__init__`` has none, and None is for what is no Python."""
        if module not in self._facts:
            path = self._paths[module]
            self._facts[module] = Facts() if path is None else self._read(path.read_bytes(), module, path, False)
        return self._facts[module]

    def _read(self, content: bytes, name: str | None, path: Path, examples: bool) -> Facts | None:
        """Return the facts of a source, from the cache if it is known; None for what cannot be parsed."""
        package = name or ""
        if name and path.name != "__init__.py":
            package = name.rpartition(".")[0]
        key = f"{self._key}:{hashlib.sha256(content).hexdigest()}:{package}:{int(examples)}"
        if key not in self._known:
            try:
                text = of_notebook(content) if path.suffix == ".ipynb" else content.decode("utf-8")
                one = facts(text, package, examples=examples)
            except (SyntaxError, ValueError):
                return None
            one.chains = [chain for chain in one.chains if chain.split(".")[0] in self._tops]
            self._known[key] = asdict(one)
        self._asked[key] = self._known[key]
        return Facts(**self._known[key])  # type: ignore[arg-type]

    def remember(self, write: Callable[[Path, str], None]) -> None:
        """Keep what was read for the next run; of what nobody asked for, not more than a thousand."""
        known = self._known if len(self._known) < 1000 else self._asked
        if self._cache is not None:
            text = json.dumps(known, separators=(",", ":"))
            if not self._cache.is_file() or self._cache.read_text(encoding="utf-8") != text:
                write(self._cache, text)


def _above(module: str) -> set[str]:
    """Return a module's name and those of the packages above it."""
    parts = module.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
