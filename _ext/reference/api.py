"""The reference of the packages: their docstrings, on a page for each room.

A page of ``reference/api`` lists its modules in a fence ``{modules}``; this extension turns each into a section of
sphinx.ext.autodoc. Three things are added to autodoc:

* Docstrings of these packages are plain text with formulas. `restructured` escapes what reStructuredText would read as
  markup, links names in backticks and numbers of equations, and makes ``Q : queries.`` a list of parameters.
* Signatures are shown as they are written, shapes included. Their names lead to the packages' own pages, or to
  those of Python, numpy, ... whose addresses are in ``assets/inventories`` (``tools/inventories.py`` makes them).
* Each function says which chapters use it, and each import in a chapter leads to the function (`uses`).
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.autodoc import DataDocumenter
from sphinx.util.inspect import isgenericalias, stringify_signature
from sphinx.util.nodes import make_refnode

import attnmath
from linewise.ledger.coverage import anchor_of, tags_of

INVENTORIES = Path(__file__).parent / "assets" / "inventories"
#: The public documentation of other projects, to whose pages the types of signatures lead.
SITES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "matplotlib": "https://matplotlib.org/stable/",
    "sympy": "https://docs.sympy.org/latest/",
    "mpmath": "https://mpmath.org/doc/current/",
    "torch": "https://docs.pytorch.org/docs/stable/",
}
PAGES = "reference/api/"
#: The packages below ``code/``.
PACKAGES = ("attnmath", "linewise", "attnlab")
MODULES = re.compile(r"```\{modules\}\n(.*?)\n```", re.DOTALL)
#: So many chapters are named after a function; more are counted.
MOST_NAMED = 8

# --- pages -----------------------------------------------------------------------------------


def modules_of(text: str) -> list[str]:
    """Return the modules that a page lists.

    >>> modules_of("# A\\n```{modules}\\nattnmath.checks attnmath.arrays\\nattnlab.records\\n```\\n")
    ['attnmath.checks', 'attnmath.arrays', 'attnlab.records']
    """
    return [name for block in MODULES.findall(text) for name in block.split()]


def section(module: str) -> str:
    """Return the Markdown of a module: a heading, and what autodoc makes of it."""
    return f"## {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n   :ignore-module-all:\n```\n"


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Write a section for each module that a page lists."""
    if docname.startswith(PAGES):
        source[0] = MODULES.sub(lambda m: "\n".join(section(name) for name in m[1].split()), source[0])


# --- docstrings ------------------------------------------------------------------------------

_PARAMETERS = re.compile(r"(?:^|(?<=  )|(?<=\n))\s*(\*{0,2}[A-Za-z]\w*(?:, \*{0,2}[A-Za-z]\w*)*) : ")
_CODE = re.compile(r"``(.+?)``|`([^`\n]+(?:\n[^`\n]+)?)`", re.DOTALL)
_NUMBER = re.compile(r"\(((?:[A-Z]|\d)\.[\d.]*\d)\)")


def restructured(lines: list[str], link: Any = None, numbers: Iterable[str] = ()) -> list[str]:
    r"""Return a docstring in reStructuredText that shows the text as it was written.

    link : the role of a name in backticks, or None where nothing has the name.
    numbers : of the equations that may be linked.

    >>> restructured(["a * b, |x|, x_.", "", "Q, K : arrays.  n : a size.", "", ">>> 1", "1"])
    ['a \\* b, \\|x\\|, x\\_.', '', ':param Q: arrays.', ':param K: arrays.', ':param n: a size.', '', '>>> 1', '1']
    >>> restructured(["As in `f`, (5.1.6).", "", "    a * b"], {"f": ":py:obj:`~m.f`"}.get, ["5.1.6"])
    ['As in :py:obj:`~m.f`, :ref:`(5.1.6) <equation-5.1.6>`.', '', '::', '', '    a * b']
    """
    numbers = set(numbers)
    result: list[str] = []
    example = False
    for block in re.split(r"\n[ \t]*\n", "\n".join(lines).strip("\n")):
        example = block.lstrip().startswith(">>>") or (example and block.startswith(" "))
        if example:
            made = block
        elif all(line.startswith("    ") for line in block.split("\n")):
            made = "::\n\n" + block
        elif _PARAMETERS.match(block):
            made = _parameters(block, link, numbers)
        else:
            made = _lists(block, link, numbers)
        result += [*made.split("\n"), ""]
    return result[:-1]


def _parameters(block: str, link: Any, numbers: set[str]) -> str:
    pieces = _PARAMETERS.split(block)[1:]
    said = zip(pieces[::2], pieces[1::2], strict=True)
    fields = [(name.lstrip("*"), _inline(" ".join(text.split()), link, numbers))
              for names, text in said for name in names.split(", ")]  # fmt: skip
    return "\n".join(f":param {name}: {text}" for name, text in fields)


def _lists(block: str, link: Any, numbers: set[str]) -> str:
    items = re.split(r"(?:^|\n)\* ", re.sub("::$", ":", block))  # what is indented is a literal block anyway
    head, items = items[0], items[1:]
    bullets = "\n".join("* " + _inline(" ".join(item.split()), link, numbers) for item in items)
    text = _inline(re.sub(r"\n +", "\n", head), link, numbers)
    return "\n\n".join(part for part in (text, bullets) if part)


def _inline(text: str, link: Any, numbers: set[str]) -> str:
    made, at = [], 0
    for code in _CODE.finditer(text):
        made.append(_escaped(text[at : code.start()], numbers))
        content = " ".join((code[1] or code[2]).split())
        role = link(content) if link else None
        made.append(role or f"``{content}``")
        if re.match(r"\w", text[code.end() : code.end() + 1]):
            made.append("\\ ")
        at = code.end()
    return "".join([*made, _escaped(text[at:], numbers)])


def _escaped(text: str, numbers: set[str]) -> str:
    text = re.sub(r"([\\*|])|(_)(?!\w)", lambda m: f"\\{m[0]}", text)
    return _NUMBER.sub(lambda m: f":ref:`{m[0]} <{anchor_of(m[1]).lower()}>`" if m[1] in numbers else m[0], text)


# --- names -----------------------------------------------------------------------------------


@cache
def names_in(module: str) -> dict[str, str]:
    """Return what each name at the top of a module means, as its source says: imports, also those for types alone.

    >>> names = names_in("attnmath.operator.attention")
    >>> names["Float"], names["ArrayLike"], names["softmax"]
    ('jaxtyping.Float', 'attnmath.arrays.ArrayLike', 'attnmath.operator.attention.softmax')
    """
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(import_module(module)))):
        if isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0]
                      for a in node.names}  # fmt: skip
    for name, value in vars(import_module(module)).items():
        if not inspect.ismodule(value) and name not in found:
            found[name] = f"{module}.{name}"
    return found


class _Qualify(ast.NodeTransformer):
    """Write the full name of each type, after the ~ that lets Sphinx show its last part."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._full(node, self.names.get(node.id, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        first, _, rest = ast.unparse(node).partition(".")
        return self._full(node, f"{self.names.get(first, first)}.{rest}")

    def _full(self, node: ast.expr, name: str) -> ast.expr:
        name = _ALIASES.get(name, name)
        return ast.Name("~" + name if "." in name else name)


#: The same thing by the name under which its documentation has it.
_ALIASES = {
    "sympy.Basic": "sympy.core.basic.Basic",
    "sympy.Dummy": "sympy.core.symbol.Dummy",
    "sympy.Expr": "sympy.core.expr.Expr",
    "sympy.Integral": "sympy.integrals.integrals.Integral",
    "sympy.Matrix": "sympy.matrices.dense.Matrix",
    "sympy.MatrixExpr": "sympy.matrices.expressions.MatrixExpr",
    "sympy.MatrixSymbol": "sympy.matrices.expressions.MatrixSymbol",
    "sympy.Rational": "sympy.core.numbers.Rational",
    "sympy.Sum": "sympy.concrete.summations.Sum",
    "sympy.Symbol": "sympy.core.symbol.Symbol",
}


def qualified(annotation: str, names: dict[str, str]) -> str:
    """Return an annotation with the full names of its types.

    >>> qualified('Float[Array, "n d_k"] | None', {"Float": "jaxtyping.Float", "Array": "attnmath.arrays.Array"})
    "~jaxtyping.Float[~attnmath.arrays.Array, 'n d_k'] | None"
    """
    return ast.unparse(_Qualify(names).visit(ast.parse(annotation, mode="eval")))


class AliasDocumenter(DataDocumenter):
    """A name for a type, shown as the source writes it: autodoc would print what jaxtyping makes of the shapes."""

    def update_content(self, more_content: StringList) -> None:
        """Add what the name stands for."""
        if not isgenericalias(self.object):
            super().update_content(more_content)
            return
        for node in ast.parse(inspect.getsource(self.parent)).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(t, ast.Name) and t.id == self.objpath[-1] for t in targets):
                more_content.append(f"Stands for ``{ast.unparse(node.value)}``.", "")  # type: ignore[attr-defined]


class _Written:
    """A default as it is written in the source."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(value: object) -> object:
    if inspect.isfunction(value) or inspect.isclass(value):
        return _Written(value.__name__)
    return _Written("...") if "<" in repr(value) or len(repr(value)) > 60 else value


def signature_of(what: Any) -> tuple[str, str] | None:
    """Return the parameters and the result of a function or class, shapes included, with full names."""
    try:
        signature = inspect.signature(what)
        names = names_in(inspect.unwrap(what).__module__)
    except (TypeError, ValueError):
        return None

    def written(annotation: Any) -> Any:
        if annotation is inspect.Signature.empty:
            return annotation
        text = getattr(annotation, "__forward_arg__", annotation)  # the fields of a named tuple hold theirs so
        return qualified(text if isinstance(text, str) else text.__name__, names)

    parameters = [p.replace(annotation=written(p.annotation),
                            default=p.default if p.default is p.empty else _default(p.default))
                  for p in signature.parameters.values() if p.name != "self"]  # fmt: skip
    result = (
        ""
        if inspect.isclass(what) or signature.return_annotation is signature.empty
        else written(signature.return_annotation)
    )
    shown = stringify_signature(signature.replace(parameters=parameters, return_annotation=signature.empty))
    return shown, result


def signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, given: str, result: str
) -> tuple[str, str] | None:
    """Show a signature as it is written."""
    return signature_of(obj) if what in ("function", "class", "method") else None


# --- which chapter uses what -----------------------------------------------------------------


def names_used(source: str) -> set[str]:
    """Return the full names of what a notebook's code takes from the packages.

    >>> imports = "from attnmath.matrix import rank\\nfrom attnmath.figures import show as s\\n"
    >>> sorted(names_used(imports + "s(rank.stable_rank)"))
    ['attnmath.figures.show.show', 'attnmath.matrix.rank.stable_rank']
    """
    tree = ast.parse(source)
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_ours(node.module or ""):
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            ours = [a for a in node.names if is_ours(a.name)]
            names |= {a.asname: a.name for a in ours if a.asname}
            names |= {a.name.partition(".")[0]: a.name.partition(".")[0] for a in ours if not a.asname}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    found = {names[name] for name in used & names.keys()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in names and re.fullmatch(r"[\w.]+", rest):
                found.add(f"{names[first]}.{rest}")
    return {home for name in found if (home := home_of(name))}


def is_ours(module: str) -> bool:
    """Return whether a module is one of the packages, or in one of them."""
    return module.partition(".")[0] in PACKAGES


@cache
def home_of(name: str) -> str | None:
    """Return the name of a function or class where it is defined, and None where the package has no such thing.

    >>> home_of("attnmath.figures.curves"), home_of("attnmath.nothing"), home_of("attnmath.matrix.rank")
    ('attnmath.figures.curves.curves', None, None)
    """
    module, _, last = name.rpartition(".")
    if not is_ours(module):
        return None
    try:
        value = getattr(import_module(module), last)
    except (ImportError, AttributeError, ValueError):
        return None
    if not (inspect.isfunction(value) or inspect.isclass(value)) or not is_ours(value.__module__):
        return None
    return f"{value.__module__}.{value.__qualname__}"


def code_of(notebook: Path) -> str:
    """Return the code of a notebook, without the commands that only IPython reads."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return "\n".join("pass" if line.startswith(("%", "!")) else line for line in code.split("\n"))


def uses(app: Sphinx) -> dict[str, list[str]]:
    """Return for each function and class of the package the chapters that use it, in the order of the book."""
    if not hasattr(app, "book_uses"):
        found: dict[str, list[str]] = defaultdict(list)
        for page in _in_order(app.env):
            path = Path(app.env.doc2path(page))
            if path.suffix == ".ipynb":
                for name in names_used(code_of(path)):
                    found[name].append(page)
        app.book_uses = found  # type: ignore[attr-defined]
    return app.book_uses  # type: ignore[attr-defined]


def _in_order(env: BuildEnvironment) -> list[str]:
    """Return the pages in the order of the table of contents."""
    site_map = getattr(env.app.config, "external_site_map", None)
    order = list(site_map) if site_map else sorted(env.found_docs)
    return [page for page in order if page in env.found_docs]


def used_in(pages: list[str]) -> list[str]:
    """Return the lines that name the chapters which use a function.

    >>> used_in(["chapters/a", "chapters/b"])
    ['', '.. container:: used-in', '', '   Used in :doc:`/chapters/a`, :doc:`/chapters/b`', '']
    """
    if not pages:
        return []
    named = ", ".join(f":doc:`/{page}`" for page in pages[:MOST_NAMED])
    more = f", and {len(pages) - MOST_NAMED} more" if len(pages) > MOST_NAMED else ""
    return ["", ".. container:: used-in", "", f"   Used in {named}{more}", ""]


# --- what Sphinx is told ----------------------------------------------------------------------


@cache
def equation_numbers(root: Path) -> frozenset[str]:
    """Return the numbers of all equations that the chapters display."""
    texts = (path.read_text(encoding="utf-8") for path in root.glob("chapters/**/*.ipynb"))
    return frozenset(n for text in texts for n in tags_of(text.replace("\\\\", "\\")))


def documented(root: Path) -> dict[str, str]:
    """Return the modules that the pages document, with their pages."""
    pages = sorted((root / PAGES).glob("*.md"))
    return {name: PAGES + page.stem for page in pages for name in modules_of(page.read_text(encoding="utf-8"))}


def role_of(name: str, module: str, owner: str, modules: Iterable[str]) -> str | None:
    """Return the role that links what backticks name, seen from a module, or None."""
    if name in modules:
        return f":py:mod:`{name}`"
    parts = re.fullmatch(r"([A-Za-z_][\w.]*?)(\(\))?", name)
    if parts is None:
        return None
    first, _, rest = parts[1].partition(".")
    candidates = [f"{owner}.{parts[1]}", names_in(module).get(first, "") + (f".{rest}" if rest else ""),
                  f"{module}.{parts[1]}", f"{module.rpartition('.')[0]}.{parts[1]}", parts[1]]  # fmt: skip
    for candidate in candidates:
        if candidate in modules:
            return f":py:mod:`{name} <{candidate}>`"
        home = home_of(candidate)
        if home and "._" not in home and home.rpartition(".")[0] in modules and inspect.getdoc(_object(home)):
            return f":py:obj:`{name} <{home}>`"
    return None


def _object(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText, and add where the book uses its object."""
    modules = documented(Path(app.srcdir))
    module = (
        name
        if what == "module"
        else next(m for m in (".".join(name.split(".")[:k]) for k in range(name.count(".") + 1, 0, -1)) if m in modules)
    )
    text = "\n".join(lines)
    lines[:] = restructured(
        text.split("\n"), lambda content: role_of(content, module, name, modules), equation_numbers(Path(app.srcdir))
    )
    lines += [*used_in(uses(app).get(name, [])), ""]


def configure(app: Sphinx, config: Any) -> None:
    """Name the project and its version in ``objects.inv``, and the inventories of other projects."""
    config.version = config.release = attnmath.__version__
    config.intersphinx_mapping |= {name: (address, str(INVENTORIES / f"{name}.txt")) for name, address in SITES.items()}


def missing(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Resolve the types of signatures: kinds of numbers lead to the page that explains them, aliases are data."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    python = env.get_domain("py")
    if target.startswith("jaxtyping."):
        target = "attnmath.arrays"
    elif not is_ours(target):
        return None
    for name in (target, home_of(target) or ""):
        entry = python.objects.get(name)  # type: ignore[attr-defined]
        if entry:
            return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, [content], name)
    module, _, last = target.rpartition(".")
    if isinstance(getattr(sys.modules.get(module), last, None), TypeVar):
        return content  # a type variable is a letter of its signature, and has no place of its own
    return None


_SPACE = r'(?: |<span class="w"> </span>)'
_IMPORT = re.compile(
    rf'<span class="kn">from</span>{_SPACE}<span class="nn">((?:{"|".join(PACKAGES)})[\w.]*)</span>'
    rf'{_SPACE}<span class="kn">import</span>'
    r"((?:[^\n(<]|<[^>]*>)*(?:\([^)]*\))?)"
)


def link_imports(body: str, address: Any) -> str:
    """Let what a cell imports from the package lead to its reference; `address` gives the page of a name, or "".

    >>> start = '<span class="kn">from</span> <span class="nn">attnmath.matrix</span> <span class="kn">import</span> '
    >>> link_imports(start + '<span class="n">rank</span>', {"attnmath.matrix.rank": "r.html"}.get).removeprefix(start)
    '<a class="api-link" href="r.html"><span class="n">rank</span></a>'
    """

    def of_line(line: re.Match[str]) -> str:
        def of_name(name: re.Match[str]) -> str:
            where = address(f"{line[1]}.{name[1]}")
            return f'<a class="api-link" href="{where}">{name[0]}</a>' if where else name[0]

        return line[0].replace(line[2], re.sub(r'<span class="n">(\w+)</span>', of_name, line[2]))

    return _IMPORT.sub(of_line, body)


def code_links(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Link the imports of a chapter's cells."""
    if not str(app.env.doc2path(page, False)).endswith(".ipynb") or "body" not in context:
        return
    objects = app.env.get_domain("py").objects  # type: ignore[attr-defined]

    def address(name: str) -> str:
        entry = objects.get(home_of(name) or "") or objects.get(name)
        return f"{app.builder.get_relative_uri(page, entry.docname)}#{entry.node_id}" if entry else ""

    context["body"] = link_imports(context["body"], address)


def order_index(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Sort the numbers in the index as numbers, and leave the modules out: the contents list them."""
    if page == "genindex":
        groups = [
            (key, [e for e in entries if not (is_ours(e[0]) and "." in e[0])])
            for key, entries in context["genindexentries"]
        ]
        context["genindexentries"] = [(key, sorted(entries, key=natural) if key == "Symbols" else entries)
                                      for key, entries in groups if entries]  # fmt: skip


def natural(entry: tuple[str, Any]) -> list[tuple[int, int, str]]:
    """Return the key that sorts an entry of the index, numbers by their size.

    >>> sorted([("(5.1.10)", []), ("(5.1.9)", [])], key=natural)
    [('(5.1.9)', []), ('(5.1.10)', [])]
    """
    parts = re.findall(r"\d+|\D+", entry[0])
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def index_in_contents(app: Sphinx, doctree: nodes.document) -> None:
    """Put the index at the end of the contents: _toc.yml can only name files. An e-book has it there by itself."""
    lists = list(doctree.findall(addnodes.toctree)) if app.env.docname == app.config.root_doc else []
    if lists and app.builder.name != "epub":
        lists[-1]["entries"].append((None, "genindex"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.intersphinx")
    app.add_autodocumenter(AliasDocumenter, override=True)
    app.connect("config-inited", configure, priority=100)  # before intersphinx reads its setting
    app.connect("source-read", fill)
    app.connect("doctree-read", index_in_contents)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-process-docstring", docstring)
    app.connect("missing-reference", missing)
    app.connect("html-page-context", code_links)
    app.connect("html-page-context", order_index)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
