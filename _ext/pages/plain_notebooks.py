"""Turn a notebook of the book into one that runs and reads alone: in Jupyter, in VS Code, in Colab, anywhere.

A download gets a first cell that says what to install, and a second one that installs it where it is missing. What only
this site can show becomes plain Markdown: theorems, exercises, hints and solutions, citations, references, captions.
The functions here know nothing of Sphinx; `downloads` calls them.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from pybtex.backends.markdown import Backend as MarkdownBackend
from pybtex.database import BibliographyData, Entry
from pybtex.style.formatting.plain import Style as PlainStyle

Cell = dict[str, Any]
#: A directive: its fence, name, argument, options and body.
_DIRECTIVE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{(?P<name>[\w:.-]+)\}[ \t]*(?P<argument>[^\n]*)\n"
    r"(?P<options>(?:[ \t]*:[\w-]+:[^\n]*\n)*)(?P<body>.*?)^(?P=fence)[`:]*[ \t]*$\n?",
    re.MULTILINE | re.DOTALL,
)
_ROLE = re.compile(r"\{(?P<role>[\w:.-]+)\}`(?P<text>[^`]+)`")
_TITLED = re.compile(r"(?P<title>.*?)\s*<(?P<target>[^<>]+)>", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]*)\)")
#: Where a cell is cut: a solution begins, or ends.
_GATE = re.compile(
    r"^(?:`{3,}|:{3,})\{solution-(start|end)\}[ \t]*(\S*)[^\n]*\n(?:[ \t]*:[^\n]*\n)*[`:]{3,}[ \t]*\n?", re.M
)
#: JupyterLab folds what follows a heading with this mark.
_FOLDED = {"jp-MarkdownHeadingCollapsed": True}
#: What a figure or a box is called in a text.
_NAMES = {"figure": "Fig.", "table": "Table"}


@dataclass(frozen=True)
class Page:
    """What a notebook's text refers to.

    name : the notebook's path in the repository, without its suffix.
    repository, branch : where the repository is.
    numbers : what each label is called on the site, such as "Fig. 3" or "Theorem 2".
    works : the bibliography.
    length : how long it takes, in words.
    """

    name: str
    repository: str
    branch: str = "main"
    numbers: Mapping[str, str] = field(default_factory=dict)
    works: BibliographyData = field(default_factory=BibliographyData)
    length: tuple[str, ...] = ()


def plain_notebook(notebook: dict[str, Any], page: Page, requirement: str, modules: tuple[str, ...]) -> dict[str, Any]:
    """Return the notebook as it is downloaded: with what installs it, and in plain Markdown."""
    cells = [cell for old in notebook["cells"] for cell in plain_cells(old, page)]
    cited = re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", "\n".join(map(source_of, notebook["cells"])))
    keys = {key.strip() for keys in cited for key in keys.split(",")}
    for cell in cells:
        if cell["cell_type"] == "markdown" and _REFERENCES in cell["source"]:
            cell["source"] = cell["source"].replace(_REFERENCES, "\n".join(listed(page.works, keys)))
    return notebook | {"cells": [*first_cells(page, requirement, modules), *cells]}


def first_cells(page: Page, requirement: str, modules: tuple[str, ...]) -> list[Cell]:
    """Return the cell that says what to install, and the cell that does."""
    said = (
        f"This notebook is a chapter of [*Attention, Checked*]({page.repository}). It runs on Python 3.11 or later with"
        f" {_joined([f'`{name}`' for name in modules])}. The next cell installs what is missing:"
        f'\n\n```sh\npip install "{requirement}"\n```\n\n'
        "With a copy of the repository at hand, `pip install .` in its folder serves as well. Solutions are folded"
        " below their headings."
    )
    installs = (
        "# Install what is missing, and nothing where all is there.\n"
        "import importlib.util\n\n"
        f"missing = [name for name in {list(modules)} if importlib.util.find_spec(name) is None]\n"
        f'if missing:\n    %pip install --quiet "{requirement}"'
    )
    return [markdown_cell(said, "what-to-install"), code_cell(installs.replace("'", '"'), "install")]


def plain_cells(cell: Cell, page: Page) -> Iterator[Cell]:
    """Yield the cells that a cell becomes: of its Markdown one for each solution, of a figure one more, its caption."""
    if cell["cell_type"] != "markdown":
        yield cell
        caption = ((cell["metadata"].get("mystnb") or {}).get("figure") or {}).get("caption")
        if caption:
            name = page.numbers.get(cell["metadata"]["mystnb"]["figure"].get("name", ""), "Figure")
            yield markdown_cell(f"**{name}.** {plain_text(caption, page)}", f"{cell['id']}-caption")
        return
    pieces = cut(source_of(cell))
    for k, (text, folded) in enumerate(pieces):
        name = cell["id"] if k == 0 else f"{cell['id']}-{k}"
        if folded:
            yield markdown_cell("#### Solution", f"{name}-heading", _FOLDED)
        written = plain_text(text, page).strip("\n")
        if written:
            yield markdown_cell(
                written, name, {key: cell["metadata"][key] for key in _FOLDED if key in cell["metadata"]}
            )


def cut(text: str) -> list[tuple[str, bool]]:
    """Cut a text where solutions begin and end; say of each piece whether it is a solution, which is to be folded.

    A folded heading hides the cells below it down to the next heading of its level or above. So a piece after a
    solution gets a heading where it has none.
    """
    pieces: list[tuple[str, bool]] = []
    at, opened = 0, False
    for gate in [*_GATE.finditer(text), None]:
        piece = text[at : gate.start() if gate else len(text)]
        if at and not opened and piece.strip() and not re.match(r"\s*(#|[`:]{3,}\{exercise\})", piece):
            piece = f"### Exercises, continued\n\n{piece.lstrip()}"
        pieces.append((piece, opened))
        if gate:
            at, opened = gate.end(), gate[1] == "start"
    return pieces


def plain_text(text: str, page: Page) -> str:
    """Return a text with its directives, roles and links in plain Markdown."""
    text = _DIRECTIVE.sub(partial(_directive, page=page), text)
    text = _ROLE.sub(partial(_role, page=page), text)
    return _LINK.sub(partial(_link, page=page), text)


def _directive(match: re.Match[str], page: Page) -> str:
    name, argument, body = match["name"], match["argument"].strip(), match["body"].strip("\n")
    if name == "chapter-references":
        return _REFERENCES
    if name == "reading":
        return f"*{' · '.join([f'Level: {argument}', *page.length])}*\n"
    if name == "further":
        return quoted(f"**Further.** {body}")
    label = re.search(r":(?:label|name):[ \t]*(\S+)", match["options"])
    body = _DIRECTIVE.sub(partial(_directive, page=page), body)
    kind = name.partition(":")[2] or name
    called = page.numbers.get(label[1], "") if label else ""
    if name == "interactive":
        return f"*({called or 'This figure'} can be moved on the pages of the book.)*\n"
    if kind == "exercise":
        return f"### {called or 'Exercise'}{f' ({argument})' if argument else ''}\n\n{body}\n"
    if kind == "proof":
        return f"*Proof.* {body} ∎\n"
    if name.startswith("prf:"):
        title = f"**{called or kind.capitalize()}{f' ({argument})' if argument else ''}.**"
        return quoted(f"{title} {body}")
    if re.search(r":class:.*\bdropdown\b", match["options"]):
        summary = argument or kind.capitalize()
        return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>\n"
    if kind in _ADMONITIONS:
        return quoted(f"**{argument or kind.capitalize()}.** {body}")
    return f"{body}\n" if body else ""


def quoted(text: str) -> str:
    """Return a text as a quotation.

    The marks in front of lines would end up in a display equation, which Jupyter cuts out before it reads Markdown.
    """
    if "$$" in text:
        return f"<blockquote>\n\n{text}\n\n</blockquote>\n"
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n")) + "\n"


#: Stands for the list of references until every citation of the notebook is known.
_REFERENCES = "\0references\0"
_ADMONITIONS = {"admonition", "hint", "important", "note", "seealso", "tip", "warning"}


def _role(match: re.Match[str], page: Page) -> str:
    role, text = match["role"], match["text"].strip()
    if role.startswith("cite"):
        works = [page.works.entries[key.strip()] for key in text.split(",")]
        if role == "cite:t":
            return _joined([f"{authors(work)} ({work.fields['year']})" for work in works])
        return "(" + "; ".join(f"{authors(work)}, {work.fields['year']}" for work in works) + ")"
    titled = _TITLED.fullmatch(text)
    if titled:
        return titled["title"].replace("%s", page.numbers.get(titled["target"], ""))
    said = page.numbers.get(text, text)
    named = re.match(r"\s*(?:of|in) (?:the|its)\b", match.string[match.end() :])
    return said.partition(" of the ")[0] if named else said


def _link(match: re.Match[str], page: Page) -> str:
    text, target = match["text"], match["target"]
    if re.match(r"[a-z]+:", target):
        return match[0]
    path, _, anchor = target.partition("#")
    said = text or page.numbers.get(anchor, anchor or path)
    if not path:  # on this page there are no anchors, and elsewhere they are the site's
        return said
    there = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), path))
    return f"[{said}]({page.repository}/blob/{page.branch}/{there})"


def authors(work: Entry) -> str:
    """Return whom a citation names: one author, two, or the first and "et al."."""
    people = [" ".join(str(part) for part in person.rich_last_names) for person in work.persons.get("author", [])]
    if not people:
        return str(work.rich_fields["title"])
    return " and ".join(people) if len(people) < 3 else f"{people[0]} et al."


def listed(works: BibliographyData, keys: set[str]) -> list[str]:
    """Return the works of these keys as the items of a list, in the order of the site's bibliography."""
    entries = sorted(_style().format_entries([works.entries[key] for key in keys]), key=lambda entry: int(entry.label))
    return [f"* {' '.join(entry.text.render(MarkdownBackend()).split())}" for entry in entries]


@cache
def _style() -> PlainStyle:
    """Return the style of the site's bibliography; to make one takes long, as pybtex looks for its plugins."""
    return PlainStyle()


# --- what a notebook needs ---------------------------------------------------------------------


def needs(notebook: dict[str, Any], code: Path) -> set[str]:
    """Return the modules that a notebook imports from elsewhere than the packages below a folder.

    What it imports of them counts with all that is imported there in its turn, as far as this happens at once:
    an import inside a function comes later, and may never come.
    """
    cells = "\n".join(source_of(cell) for cell in notebook["cells"] if cell["cell_type"] == "code")
    found, todo = set(), list(_imports(ast.parse(cells), ast.walk))
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if (code / name.partition(".")[0]).is_dir():
            todo += _imports_of(_file_of(name, code))
        else:
            found.add(name.partition(".")[0])
    return found


def extras_for(modules: set[str], extras: Mapping[str, list[str]]) -> list[str]:
    """Return the fewest extras that hold those of the modules that are in any extra at all, and of these the smallest.

    >>> extras = {"train": ["joblib>=1", "torch>=2"], "torch": ["torch>=2"], "model": ["tokenizers"]}
    >>> extras_for({"torch", "numpy"}, extras), extras_for({"torch", "tokenizers"}, extras), extras_for(set(), extras)
    (['torch'], ['model', 'torch'], [])
    """
    held = {extra: set(map(required_name, names)) for extra, names in sorted(extras.items())}
    wanted = modules & set().union(*held.values())
    chosen = chain.from_iterable(combinations(held, count) for count in range(len(held) + 1))
    fitting = [some for some in chosen if wanted <= set().union(*(held[extra] for extra in some))]
    fewest = min(fitting, key=lambda some: (len(some), sum(len(held[extra]) for extra in some)))
    return list(fewest)


def required_name(requirement: str) -> str:
    """Return whom a requirement names; for the packages that chapters need it is what they import as well.

    >>> required_name("torch>=2.6")
    'torch'
    """
    return re.split(r"[^\w.-]", requirement)[0].lower()


def _imports(tree: ast.AST, walk: Callable[[ast.AST], Iterator[ast.AST]]) -> Iterator[str]:
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _at_once(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module that run when it is imported: none of a function, none for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if not later and not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node
            yield from _at_once(node)


@cache
def _imports_of(file: Path | None) -> list[str]:
    return list(_imports(ast.parse(file.read_text(encoding="utf-8")), _at_once)) if file else []


@cache
def _file_of(module: str, code: Path) -> Path | None:
    """Return the file of a module of the packages, or None where the name is no module but something in one."""
    place = code.joinpath(*module.split("."))
    return next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()), None)


# --- cells -------------------------------------------------------------------------------------


def source_of(cell: Cell) -> str:
    """Return the source of a cell as one text."""
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def markdown_cell(source: str, name: str, metadata: Mapping[str, Any] | None = None) -> Cell:
    """Return a Markdown cell."""
    return {"cell_type": "markdown", "id": name, "metadata": dict(metadata or {}), "source": source}


def code_cell(source: str, name: str) -> Cell:
    """Return a code cell that was not run."""
    return markdown_cell(source, name) | {"cell_type": "code", "execution_count": None, "outputs": []}


def called(fignumbers: Mapping[str, Mapping[str, tuple[int, ...]]]) -> dict[str, str]:
    """Return what each label of a page is called, from the numbers that Sphinx gave.

    >>> called({"figure": {"fig-a": (3,)}, "theorem": {"theorem-b": (2,)}})
    {'fig-a': 'Fig. 3', 'theorem-b': 'Theorem 2'}
    """
    return {
        label: f"{_NAMES.get(kind, kind.capitalize())} {'.'.join(map(str, number))}"
        for kind, labels in fignumbers.items()
        for label, number in labels.items()
    }


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
