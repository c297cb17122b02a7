"""A script for each figure: what its cell needs of its notebook, and nothing else.

``python tools/figure_scripts.py --out DIR [NAMES]`` writes ``DIR/fig_name.py`` for the figures of the book, or for
those that are named. Each script runs by itself wherever the package is installed, and saves its figure as PNG and SVG.
``python tools/figure_scripts.py --check [NAMES]`` runs them in an empty folder and compares the SVG that they
draw with the notebook's, byte for byte; a figure of one machine (`prove.THIS_MACHINE`) has to be drawn, and may differ.

A script is a backward slice of the notebook: the cell that draws, and of the cells before it the statements that give
the cell its names. What only judges a claim, or prints, is left out.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import os
import re
import subprocess
import symtable
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import execute
import figure_models
import publish
import reach
import stamps
from prove import THIS_MACHINE

COLUMNS = 88
#: Calls whose results change whenever they are used: to leave out one use would change all later ones.
STATEFUL = re.compile(r"\b(default_rng|Generator|RandomState|iter|count|cycle)\(")


@dataclass(frozen=True)
class Statement:
    """A statement of a notebook's top level.

    Attributes
    ----------
    text : its lines, with the comment right above it.
    cell : the number of its code cell, from 0.
    loose : whether a blank line, or the beginning of a cell, is above it.
    node : its syntax tree.
    uses : the names that it reads.
    defines : the names that it binds.
    """

    text: str
    cell: int
    loose: bool
    node: ast.stmt
    uses: frozenset[str]
    defines: frozenset[str]

    @property
    def replaces(self) -> frozenset[str]:
        """The names that have nothing of their earlier values after this statement."""
        plain = ast.Assign | ast.AnnAssign | ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
        return self.defines if isinstance(self.node, plain) else frozenset()

    @cached_property
    def code(self) -> str:
        """The statement without its comments, in Python's own layout."""
        return ast.unparse(self.node)


@dataclass(frozen=True)
class Figure:
    """A figure of the book: its name, its notebook, and what the notebook says of it; `script` redraws it.

    Attributes
    ----------
    name : as in the chapter's links, `fig-relu2-sparsity`.
    page : the notebook without its suffix, from the book's root.
    caption, alt : as in the chapter.
    one_machine : whether the picture differs from machine to machine.
    script : the source of a program that draws it.
    ratio : the width of the stored picture over its height.
    choice : of a figure that shows trained heads: the models of which its program draws it, or why of no other one.
    """

    name: str
    page: str
    caption: str
    alt: str
    one_machine: bool
    script: str
    ratio: float
    choice: figure_models.Choice | str | None = None

    @property
    def others(self) -> dict[str, str]:
        """The program with each of the other models that are offered, by the stem of its file."""
        offered = self.choice.others if isinstance(self.choice, figure_models.Choice) else ()
        return {f"{self.stem}-{figure_models.slug(m)}": figure_models.chosen(self.script, m) for m in offered}

    @property
    def stem(self) -> str:
        """The name of the published files, without their suffixes."""
        return self.name.replace("-", "_")


def figures_of(notebook: Any, page: str) -> Iterator[Figure]:
    """Yield the figures of a notebook, which is its JSON, read."""
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    sources = ["".join(c["source"]) for c in cells]
    plain = statements(sources)
    for number, cell in enumerate(cells):
        described = cell["metadata"].get("mystnb") or {}
        figure = described.get("figure") or {}
        if figure.get("name"):
            name, caption = str(figure["name"]), str(figure["caption"])
            alt = str((described.get("image") or {}).get("alt") or "")
            one_machine = THIS_MACHINE in cell["metadata"].get("tags", [])
            choice = figure_models.choices().get(name)
            chosen = isinstance(choice, figure_models.Choice)
            found = statements(figure_models.changed(name, sources)) if chosen else plain
            about = header(page, caption, choice.book if isinstance(choice, figure_models.Choice) else "")
            source = script(found, number, name.replace("-", "_"), about)
            yield Figure(name, page, caption, alt, one_machine, source, ratio_of(cell), choice)


def ratio_of(cell: Any) -> float:
    """Return the width over the height of the picture that a cell has stored, and 1 where it has stored none."""
    stored = "".join(str(output.get("data", {}).get("image/svg+xml", "")) for output in cell["outputs"])
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', stored)
    return float(box[1]) / float(box[2]) if box else 1.0


def header(page: str, caption: str, model: str = "") -> str:
    """Return the docstring of a script: what the figure shows, of which model, and where it comes from."""
    origin = f'From {page}.ipynb of the book "Attention, Checked". It needs the book\'s packages, attention-checked.'
    chosen = f"This is about the {model}. MODEL, below, draws the same figure of another model.\n\n" if model else ""
    text = f"{caption}\n\n{chosen}{origin}"
    paragraphs = [textwrap.fill(p, COLUMNS, break_long_words=False) for p in text.split("\n\n")]
    return 'r"""' + "\n\n".join(paragraphs).replace('"""', "'''").removesuffix('"') + '\n"""'


def statements(sources: Sequence[str]) -> list[Statement]:
    """Return the statements of the code cells of a notebook, in order.

    >>> [(s.text, sorted(s.uses), sorted(s.defines)) for s in statements(["x = 1", "# twice\\ny = 2 * x  # or 2"])]
    [('x = 1', [], ['x']), ('# twice\\ny = 2 * x  # or 2', ['x'], ['y'])]
    """
    found = []
    for cell, source in enumerate(sources):
        lines, end = source.splitlines(), 0
        for node in ast.parse(source).body:
            start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]) - 1
            while start > end and lines[start - 1].lstrip().startswith("#"):
                start -= 1
            text = "\n".join(lines[start : node.end_lineno])
            loose = start == 0 or not lines[start - 1].strip()
            uses, defines = names(node)
            found.append(Statement(text, cell, loose, node, uses, defines))
            end = node.end_lineno or end
    return found


def names(node: ast.stmt) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a statement reads, those that its functions read among them, and the names that it binds.

    >>> reads, binds = names(ast.parse("total = sum(f(x, y) for x in xs)").body[0])
    >>> sorted(reads), sorted(binds)
    (['f', 'xs', 'y'], ['total'])
    >>> reads, binds = names(ast.parse("table = {k: [v * c for v in row] for k, row in rows.items()}").body[0])
    >>> sorted(reads), sorted(binds)
    (['c', 'rows'], ['table'])
    """
    table = _table(node)
    defines = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    return frozenset(_reads(node) - set(dir(builtins))), frozenset(defines)


class _Generators(ast.NodeTransformer):
    """Turns comprehensions into generators, which have a table of their own: the others do only up to Python 3.11."""

    def visit_ListComp(self, node: ast.ListComp) -> ast.GeneratorExp:
        return ast.GeneratorExp(self.visit(node.elt), [self.visit(part) for part in node.generators])

    def visit_SetComp(self, node: ast.SetComp) -> ast.GeneratorExp:
        return ast.GeneratorExp(self.visit(node.elt), [self.visit(part) for part in node.generators])

    def visit_DictComp(self, node: ast.DictComp) -> ast.GeneratorExp:
        pair = ast.Tuple([self.visit(node.key), self.visit(node.value)], ast.Load())
        return ast.GeneratorExp(pair, [self.visit(part) for part in node.generators])


@cache
def _table(node: ast.AST) -> symtable.SymbolTable:
    """Return the names of a statement or an expression, the same ones on every Python."""
    source = ast.unparse(node)
    if any(isinstance(part, ast.ListComp | ast.SetComp | ast.DictComp) for part in ast.walk(node)):
        source = ast.unparse(_Generators().visit(ast.parse(source)))
    return symtable.symtable(source, "cell", "exec")


def _reads(node: ast.stmt) -> set[str]:
    """Return the names whose values from before the statement it may read; a loop binds its variable first."""
    match node:
        case ast.For():
            return _mentions(node.iter) | (_reads_all(node.body) - _bound(node.target)) | _reads_all(node.orelse)
        case ast.While() | ast.If():
            return _mentions(node.test) | _reads_all(node.body) | _reads_all(node.orelse)
        case ast.With():
            bound = set().union(*(_bound(item.optional_vars) for item in node.items if item.optional_vars))
            opened = set().union(*(_mentions(item.context_expr) for item in node.items))
            return opened | (_reads_all(node.body) - bound)
        case ast.AugAssign():
            return _mentions(node) | {_root(node.target)}
        case _:
            return _mentions(node)


def _reads_all(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that statements in order read, without those that a plain assignment above has bound."""
    found: set[str] = set()
    bound: set[str] = set()
    for node in body:
        found |= _reads(node) - bound
        if isinstance(node, ast.Assign):
            bound |= set().union(*map(_bound, node.targets))
    return found


def _bound(target: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _mentions(node: ast.AST) -> set[str]:
    """Return the names of the notebook that code reads, in functions and comprehensions as well."""
    table = _table(node)
    found = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    return found | {s.get_name() for inner in _below(table) for s in inner.get_symbols() if s.is_global()}


def _below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for inner in table.get_children():
        yield inner
        yield from _below(inner)


@cache
def changes(statement: Statement, imported: frozenset[str], stateful: frozenset[str]) -> frozenset[str]:
    """Return the names whose values a statement changes in place.

    A call that stands alone is made for its effect: of a method on its receiver, of a module's function on its
    arguments. The functions that a notebook calls by a bare name of its own, `print` among them, show something.

    >>> def changed(source):
    ...     return sorted(changes(statements([source])[0], frozenset({"figures", "plt"}), frozenset({"rng"})))
    >>> changed("rows[k] = 2"), changed("for k in keys: rows.append(k)"), changed("print(rows)")
    (['rows'], ['rows'], [])
    >>> changed("figures.curves(x, ax=ax)"), changed("plt.style.use('book')"), changed("y = f(rng)")
    (['ax', 'x'], ['plt'], ['rng'])
    """
    found = set(statement.uses & stateful)
    if isinstance(statement.node, ast.FunctionDef | ast.ClassDef):
        return frozenset()
    for node in ast.walk(statement.node):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            parts = [part for target in node.targets for part in ast.walk(target)]
            targets = [part for part in parts if isinstance(part, ast.Subscript | ast.Attribute)]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            receiver = _root(node.value)
            given = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)} - imported - {receiver}
            if receiver in imported:
                found |= given or {receiver}
            elif not isinstance(node.value.func, ast.Name):
                found.add(receiver)
        found |= {_root(target) for target in targets}
    return frozenset(found) - {""}


def _root(node: ast.expr) -> str:
    """Return the name that an expression begins with, or ""."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def needed(found: Sequence[Statement], cell: int) -> list[Statement]:
    """Return the statements that a cell needs, itself among them, in order."""
    imported = frozenset(n for s in found if isinstance(s.node, ast.Import | ast.ImportFrom) for n in s.defines)
    assigned = [s for s in found if isinstance(s.node, ast.Assign) and STATEFUL.search(s.code)]
    stateful = frozenset(n for s in assigned for n in s.defines)
    functions = {s.node.name: s.uses for s in found if isinstance(s.node, ast.FunctionDef)}
    before = [s for s in found if s.cell <= cell]
    kept: list[Statement] = []
    late: set[str] = set()  # functions that are bound below the first code that names them
    while True:
        wanted: set[str] = set()
        kept = []
        for statement in reversed(before):
            wanted |= _through(wanted, functions)
            style = statement.code.startswith("plt.style.use(")
            gives = statement.defines | changes(statement, imported, stateful)
            if statement.cell == cell or style or gives & (wanted | late):
                wanted -= statement.replaces
                wanted |= statement.uses
                kept.append(statement)
        missing = {s.node.name for s in before if isinstance(s.node, ast.FunctionDef)} & wanted - late
        if not missing:
            return kept[::-1]
        late |= missing


def _through(wanted: Iterable[str], functions: dict[str, frozenset[str]]) -> set[str]:
    """Return what the wanted functions read when they are called, which may be bound after them."""
    found: set[str] = set()
    due = [name for name in wanted if name in functions]
    while due:
        reads = functions[due.pop()] - found
        found |= reads
        due += [name for name in reads if name in functions]
    return found


def script(found: Sequence[Statement], cell: int, stem: str, docstring: str) -> str:
    """Return a program that draws the figure of a cell, and saves it under a name.

    >>> cells = ["import numpy as np", "x = np.arange(3)", "print(x)", "figure = f(x)\\nfigures.show(figure)"]
    >>> print(script(statements(cells), 3, "fig_line", '"A line."'))
    "A line."
    import numpy as np
    <BLANKLINE>
    x = np.arange(3)
    <BLANKLINE>
    # The cell that draws the figure
    figure = f(x)
    figures.show(figure).save("fig_line")
    <BLANKLINE>
    """
    kept = needed(found, cell)
    used = frozenset().union(*(s.uses for s in kept))
    lines, gap = [docstring], False
    for statement in found[: found.index(kept[-1]) + 1]:
        gap |= statement.loose
        if statement in kept:
            lines += [""] * (gap and len(lines) > 1)
            if gap and statement is next(s for s in kept if s.cell == cell):
                lines.append("# The cell that draws the figure")
            node = statement.node
            lines.append(_narrowed(node, used) if isinstance(node, ast.Import | ast.ImportFrom) else statement.text)
            gap = False
    if not lines[-1].rstrip().endswith("figures.show(figure)"):
        raise ValueError(f"{stem}: expected a cell that ends in figures.show(figure), got {lines[-1]!r}")
    lines[-1] = f'{lines[-1].rstrip()}.save("{stem}")'
    return "\n".join(lines) + "\n"


def _narrowed(node: ast.Import | ast.ImportFrom, used: frozenset[str]) -> str:
    """Return an import of the used names alone, in lines that are short enough."""
    aliases = [a for a in node.names if (a.asname or a.name.partition(".")[0]) in used]
    text = ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), "names": aliases}))
    if len(text) <= COLUMNS:
        return text
    opening, _, listed = text.partition(" import ")
    body = textwrap.fill(listed + ",", COLUMNS, initial_indent="    ", subsequent_indent="    ")
    return f"{opening} import (\n{body}\n)"


def read(notebooks: Iterable[Path], root: Path = stamps.ROOT) -> list[Figure]:
    """Return the figures of notebooks below the book's root, in order."""
    found: list[Figure] = []
    for path in notebooks:
        page = path.relative_to(root).with_suffix("").as_posix()
        try:
            found += figures_of(reach.notebook_of(path.read_bytes()), page)
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from None
    return found


def differences(figure: Figure, svg: str) -> str:
    """Run a figure's script in an empty folder; return how what it draws differs from the notebook's SVG, or ""."""
    execute.fix_environment()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{figure.stem}.py")
        path.write_text(figure.script, encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(stamps.ROOT / "code"), "MPLBACKEND": "agg"}
        done = subprocess.run([sys.executable, path.name], cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            return f"{figure.stem}: {done.stderr.strip().splitlines()[-1]}"
        for suffix in publish.SUFFIXES:
            if not path.with_suffix(suffix).is_file():
                return f"{figure.stem}: drew no {figure.stem}{suffix}"
        if path.with_suffix(".svg").read_bytes() != svg.encode("utf-8") and not figure.one_machine:
            return f"{figure.stem}: drew another {figure.stem}.svg than its notebook"
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Write the scripts, or run them; return 1 where one of them draws another figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="figures, such as fig_relu2_sparsity (default: all)")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, help="a folder for the scripts")
    what.add_argument("--models", type=Path, help="a folder for pictures of other models, where the figures offer them")
    what.add_argument("--check", action="store_true", help="run the scripts, and compare with the notebooks' figures")
    options = parser.parse_args(arguments)
    notebooks = stamps.notebooks([stamps.ROOT / "chapters"])
    try:
        found = {figure.stem: figure for figure in read(notebooks)}
    except ValueError as error:
        print(f"figures: {error}", file=sys.stderr)
        return 1
    for name in options.names:
        if name.replace("-", "_") not in found:
            parser.error(f"names: expected figures of the book, such as {next(iter(found))}, got {name!r}")
    chosen = [found[name.replace("-", "_")] for name in options.names] or list(found.values())
    if options.models:
        programs = {name: program for figure in chosen for name, program in figure.others.items()}
        for name in figure_models.draw(programs, options.models):
            print(f"{name}: drawn", flush=True)
        return 0
    drawn = publish.collect(notebooks) if options.check else {}
    faults = []
    for figure in chosen:
        if options.check:
            fault = differences(figure, drawn[figure.stem])
            print(fault or f"{figure.stem}: {'drawn' if figure.one_machine else 'the same bytes'}", flush=True)
            faults += [fault] if fault else []
        else:
            stamps.write_atomically(options.out / f"{figure.stem}.py", figure.script)
    print(f"{len(chosen)} scripts, {len(faults) or 'no'} faults" if options.check else f"{len(chosen)} scripts written")
    return int(bool(faults))


if __name__ == "__main__":
    stamps.run(main)
