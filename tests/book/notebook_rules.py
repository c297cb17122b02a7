"""The rules that every chapter's notebook keeps, each a pure function from a notebook to its faults.

A notebook is the dictionary that its JSON holds. A rule returns a list of sentences, one for each
fault; an empty list is a pass. `RULES` names them all; ``tests/book/test_notebooks.py`` applies
them to every chapter and shows of each rule a notebook that it rejects.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from linewise.pages.first_reading import FURTHER, cut, heading_of, told_in
from prove import PICTURE, THIS_MACHINE
from randomness import unseeded

Notebook = dict[str, Any]
Rule = Callable[[Notebook], list[str]]

MOST_LINES = 16
MOST_COLUMNS = 88
LEAST_ALT = 40
LEAST_EXERCISES = 3
#: Paths of a particular machine, and addresses in memory: neither is the same for two readers.
MACHINE = re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|work|private|opt)/[\w.~-]+|\b0x[0-9a-fA-F]{8,}\b")
#: The opening line of a directive, its argument, and the option lines below it.
EXERCISE = re.compile(r"^[`:]{3,}\{exercise(?:-start)?\}([^\n]*)\n((?:\s*:[\w-]+:[^\n]*\n)*)", re.MULTILINE)
SOLUTION = re.compile(r"^[`:]{3,}\{solution(?:-start)?\}\s*(\S+)[^\n]*\n((?:\s*:[\w-]+:[^\n]*\n)*)", re.MULTILINE)
#: Ways to tell nbval to look away.
LOOKS_AWAY = {"nbval-skip", "nbval-ignore-output", "nbval-raises-exception", "raises-exception", "skip-execution"}


def code_cells(notebook: Notebook) -> list[Any]:
    """Return the code cells, in order."""
    return [c for c in notebook["cells"] if c["cell_type"] == "code"]


def text(value: str | list[str]) -> str:
    """Return a multi-line JSON field as one string."""
    return value if isinstance(value, str) else "".join(value)


def executed_in_order(notebook: Notebook) -> list[str]:
    """Every code cell was executed, 1..n in order: nbval passes a cell without a count unchecked."""
    counts = [c.get("execution_count") for c in code_cells(notebook)]
    if not counts:
        return ["there is no code cell"]
    wrong = [f"code cell {n} has execution count {c}" for n, c in enumerate(counts, start=1) if c != n]
    return wrong[:3]


def no_errors(notebook: Notebook) -> list[str]:
    """No stored output is an error, and nothing was written to the error stream."""
    return [
        f"code cell {n} holds {'an error' if o['output_type'] == 'error' else 'error-stream'} output"
        for n, o in _outputs(notebook)
        if o["output_type"] == "error" or o.get("name") == "stderr"
    ]


def short_cells(notebook: Notebook) -> list[str]:
    """A code cell has at most sixteen lines that are not blank; more belongs in the package."""
    lengths = [sum(bool(line.strip()) for line in text(c["source"]).splitlines()) for c in code_cells(notebook)]
    return [f"code cell {n} has {k} lines, {MOST_LINES} at most" for n, k in enumerate(lengths, 1) if k > MOST_LINES]


def narrow_cells(notebook: Notebook) -> list[str]:
    """A line of a code cell has at most 88 columns: a page shows no more without scrolling."""
    faults = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        widest = max(map(len, text(cell["source"]).splitlines()), default=0)
        if widest > MOST_COLUMNS:
            faults.append(f"code cell {number} has a line of {widest} columns, {MOST_COLUMNS} at most")
    return faults


def one_idea_a_line(notebook: Notebook) -> list[str]:
    """No line packs several assignments into one: no walrus, and no tuple of expressions for a tuple of names."""
    faults = []
    for number, tree in _trees(notebook):
        for node in ast.walk(tree):
            if isinstance(node, ast.NamedExpr):
                faults.append(f"code cell {number} assigns inside an expression: {ast.unparse(node)}")
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Tuple)
                and isinstance(node.targets[0], ast.Tuple)
            ):
                faults.append(f"code cell {number} packs assignments: {ast.unparse(node.targets[0])} = ...")
    return faults


def computed_counterexamples(notebook: Notebook) -> list[str]:
    """The quantity of a counterexample is a function of its instance, and no number that was typed in."""
    faults = []
    for number, tree in _trees(notebook):
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and _name(call.func) == "counterexample":
                given = [k.value for k in call.keywords if k.arg == "quantity"] + call.args[:1]
                fault = _typed_in(given[0]) if given else "takes no quantity"
                faults += [f"code cell {number}: the counterexample {fault}"] if fault else []
    return faults


def _typed_in(quantity: ast.expr) -> str:
    """Return how the quantity of a counterexample was typed in, or "" where it is computed from the instance."""
    if isinstance(quantity, ast.Lambda):
        parameters = {a.arg for a in (*quantity.args.args, *quantity.args.kwonlyargs)}
        used = {n.id for n in ast.walk(quantity.body) if isinstance(n, ast.Name)}
        if not parameters & used:
            return f"takes a function that ignores its instance: {ast.unparse(quantity)}"
        if isinstance(quantity.body, ast.Name):
            return f"takes a function that returns what it is given: {ast.unparse(quantity)}"
        return ""
    if isinstance(quantity, ast.Name | ast.Attribute):
        return ""
    return f"takes the expression {ast.unparse(quantity)} where a function of the instance is expected"


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _trees(notebook: Notebook) -> Iterator[tuple[int, ast.Module]]:
    """Yield the code cells that are plain Python, read (see `no_shell` for the others)."""
    for number, cell in enumerate(code_cells(notebook), start=1):
        try:
            yield number, ast.parse(text(cell["source"]))
        except SyntaxError:
            continue


def no_semicolon(notebook: Notebook) -> list[str]:
    """No code cell ends in a semicolon: it hides an output, and nbval then fails."""
    cells = enumerate(code_cells(notebook), start=1)
    return [f"code cell {n} ends in a semicolon" for n, c in cells if text(c["source"]).rstrip().endswith(";")]


def nothing_skipped(notebook: Notebook) -> list[str]:
    """No cell is exempt from the comparison of outputs."""
    faults = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        away = LOOKS_AWAY & set(cell["metadata"].get("tags", []))
        if away or re.search(r"#\s*(NBVAL|PYTEST_VALIDATE)", text(cell["source"])):
            faults.append(f"code cell {number} is exempt from checking ({', '.join(sorted(away)) or 'by a comment'})")
    return faults


def no_shell(notebook: Notebook) -> list[str]:
    """Every code cell is plain Python: no magics, no shell commands."""
    faults = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        try:
            ast.parse(text(cell["source"]))
        except SyntaxError as error:
            faults.append(f"code cell {number} is not plain Python: {error.msg}")
    return faults


def seeded_randomness(notebook: Notebook) -> list[str]:
    """Every random number comes from a seeded generator; see `randomness.unseeded`."""
    faults = []
    if no_shell(notebook):
        return ["the code cells cannot be read (see no_shell)"]
    joined = "\n".join(text(c["source"]) for c in code_cells(notebook))
    for fault in unseeded(joined):
        faults.append(f"in the code cells read as one, {fault}")
    return faults


def described_figures(notebook: Notebook) -> list[str]:
    """Every figure has alt text that says what one sees, a caption and a name."""
    return [
        f"code cell {number} draws a figure {fault}"
        for number, cell in enumerate(code_cells(notebook), start=1)
        if any(m.startswith("image/") for o in cell["outputs"] for m in o.get("data", {}))
        for fault in _figure_faults(cell["metadata"].get("mystnb") or {})
    ]


def _figure_faults(mystnb: dict[str, Any]) -> Iterator[str]:
    alt = str((mystnb.get("image") or {}).get("alt") or "")
    figure = mystnb.get("figure") or {}
    if len(alt) < LEAST_ALT:
        yield f"whose alt text (mystnb.image.alt) has {len(alt)} characters, fewer than {LEAST_ALT}"
    elif len(alt.split()) < LEAST_ALT // 8:
        yield f"whose alt text is a slug, not a sentence: {alt!r}"
    for field in ("caption", "name"):
        if not str(figure.get(field) or "").strip():
            yield f"without a {field} (mystnb.figure.{field})"


def shown_figures(notebook: Notebook) -> list[str]:
    """A figure cell ends in `figures.show(figure)`, and what it stores is one picture, as SVG alone."""
    faults = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        pictures = [o["data"] for o in cell["outputs"] if any(k.startswith("image/") for k in o.get("data", {}))]
        named = bool(((cell["metadata"].get("mystnb") or {}).get("figure") or {}).get("name"))
        if not (pictures or named or "figures.show(" in text(cell["source"])):
            continue
        if not ends_in_show(text(cell["source"])):
            faults.append(f"code cell {number} draws a figure and does not end in figures.show(figure)")
        if len(pictures) != 1:
            faults.append(f"code cell {number} stores {len(pictures)} pictures, 1 is expected")
        kinds = {k for data in pictures for k in data if k.startswith("image/") and text(data[k]).strip()}
        if kinds != {PICTURE}:
            stored = ", ".join(sorted(kinds)) or "nothing"
            faults.append(f"code cell {number} stores its figure as {stored}, {PICTURE} alone is expected")
    return faults


def ends_in_show(source: str) -> bool:
    """Return whether the last statement is the call `figures.show(...)`, alone.

    >>> [ends_in_show(s) for s in ("figures.show(figure)", "plt.show()", "x = figures.show(figure)", "a b")]
    [True, False, False, False]
    """
    try:
        last = ast.parse(source).body[-1:]
    except SyntaxError:
        return False
    call = last[0].value if last and isinstance(last[0], ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) == "figures.show"


def one_machine(notebook: Notebook) -> list[str]:
    """A picture is exempt from the comparison (`prove`) only where its caption says "one machine"."""
    faults = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        caption = str(((cell["metadata"].get("mystnb") or {}).get("figure") or {}).get("caption") or "")
        if THIS_MACHINE in cell["metadata"].get("tags", []) and "one machine" not in caption:
            faults.append(f"code cell {number} is tagged {THIS_MACHINE}, and its caption does not say `one machine`")
    return faults


def figure_names(notebook: Notebook) -> list[str]:
    """Return the names of a notebook's figures; over the whole book no two may be the same."""
    figures = [(c["metadata"].get("mystnb") or {}).get("figure") or {} for c in code_cells(notebook)]
    return [str(f["name"]) for f in figures if f.get("name")]


def solved_exercises(notebook: Notebook) -> list[str]:
    """At least three exercises, each with a label and a solution that is folded away."""
    prose = "\n".join(text(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown")
    exercises = [label for _, options in EXERCISE.findall(prose) for label in re.findall(r":label:\s*(\S+)", options)]
    solutions = dict(SOLUTION.findall(prose))
    faults = [f"exercise {e} has no solution" for e in exercises if e not in solutions]
    faults += [f"the solution of {e} is not folded (:class: dropdown)" for e in exercises
               if e in solutions and "dropdown" not in solutions[e]]  # fmt: skip
    if len(exercises) < LEAST_EXERCISES:
        faults.append(f"there are {len(exercises)} labelled exercises, {LEAST_EXERCISES} at least")
    return faults


def portable_outputs(notebook: Notebook) -> list[str]:
    """No output shows a path of the machine it ran on, or an address in memory."""
    faults = []
    for number, output in _outputs(notebook):
        for shown in _shown(output):
            faults += [f"code cell {number} shows {match}" for match in MACHINE.findall(shown)[:1]]
    return faults


def marked_once(notebook: Notebook) -> list[str]:
    """Nothing is escaped twice, and what a cell shows as HTML holds no Markdown: readers would see the marks."""
    faults = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            faults += [
                f"code in a text holds {code}" for code in re.findall(r"`[^`\n]*\\\"[^`\n]*`", text(cell["source"]))
            ]
        caption = str(((cell["metadata"].get("mystnb") or {}).get("figure") or {}).get("caption") or "")
        faults += [f"a caption holds {command}" for command in re.findall(r"\\\\[A-Za-z]+", caption)]
    for number, output in _outputs(notebook):
        shown = text(output.get("data", {}).get("text/html", ""))
        faults += [
            f"code cell {number} shows {mark}" for mark in re.findall(r"(?<![\w*])\*[A-Za-z]+\*(?![\w*])", shown)
        ]
    return faults


def folded_alike(notebook: Notebook) -> list[str]:
    """JupyterLab folds the code that the site folds (the tag hide-input), and no other; `make execute` sees to it."""
    faults = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        on_site = "hide-input" in cell["metadata"].get("tags", [])
        in_jupyter = (cell["metadata"].get("jupyter") or {}).get("source_hidden", False)
        if on_site != in_jupyter:
            where = "on the site and not in JupyterLab" if on_site else "in JupyterLab and not on the site"
            faults.append(f"code cell {number} is folded {where}")
    return faults


#: JupyterLab folds what follows a heading whose cell has this mark.
COLLAPSED = "jp-MarkdownHeadingCollapsed"
_BELOW_A_HEADING = re.compile(r"#{1,6}[ \t][^\n]*\n+\Z")


def folded_sections(notebook: Notebook) -> Iterator[str]:
    """Yield what is wrong with the sections that go further.

    A block stands right below a heading that is no title, has one line that ends in a full stop, and is not inside a
    folded section. Its heading, and the heading that ends what it folds, begin cells, since JupyterLab folds cells.
    """
    folded_from = 0
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] != "markdown":
            continue
        pieces = cut(text(cell["source"]))
        for place, piece in enumerate(pieces):
            blocks, heading = list(FURTHER.finditer(piece)), heading_of(piece)
            if heading and folded_from and heading[0] <= folded_from:
                folded_from = 0
                if place:
                    yield f"cell {number}: {heading[1]!r} ends a folded section and does not begin a cell"
            if not blocks:
                continue
            name = heading[1] if heading else "text without a heading"
            told = told_in(piece)
            if len(blocks) > 1 or not heading or not _BELOW_A_HEADING.search(piece[: blocks[0].start()]):
                yield f"cell {number}: expected one block `further` right below a heading, got {name!r}"
            elif heading[0] == 1 or folded_from:
                yield f"cell {number}: {name!r} is a title, or folded already"
            elif not told.endswith(".") or "\n" in blocks[0]["told"].strip():
                yield f"cell {number}: expected a sentence on one line of what {name!r} shows, got {told!r}"
            elif place or len(pieces) > 1 or piece[blocks[0].end() :].strip():
                yield f"cell {number}: {name!r} and its line do not stand in a cell alone"
            elif not cell["metadata"].get(COLLAPSED):
                yield f"cell {number}: JupyterLab does not fold {name!r}"
            if heading and told:
                folded_from = heading[0]


def loads_its_claims(notebook: Notebook) -> list[str]:
    """The first code cell loads the chapter's claims and sets the book's style."""
    first = text(code_cells(notebook)[0]["source"]) if code_cells(notebook) else ""
    wanted = ("load_claims(", "attnmath.figures.book")
    return [f"the first code cell does not mention {w}" for w in wanted if w not in first]


def _outputs(notebook: Notebook) -> Iterator[tuple[int, Any]]:
    for number, cell in enumerate(code_cells(notebook), start=1):
        for output in cell["outputs"]:
            yield number, output


def _shown(output: Any) -> Iterator[str]:
    """Yield the texts of an output: streams, tracebacks and data, but not images."""
    yield text(output.get("text", ""))
    yield "\n".join(output.get("traceback", []))
    for kind, data in output.get("data", {}).items():
        if not kind.startswith("image/"):
            yield text(data) if isinstance(data, str | list) else str(data)


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        executed_in_order, no_errors, short_cells, narrow_cells, one_idea_a_line, computed_counterexamples,
        no_semicolon, nothing_skipped, no_shell, seeded_randomness, described_figures, shown_figures, one_machine,
        solved_exercises, portable_outputs, marked_once, folded_alike, loads_its_claims,
    )
}  # fmt: skip
#: What is asked of chapters alone: an executed page of the guide has neither exercises nor claims.
OF_CHAPTERS = {"solved_exercises", "loads_its_claims"}


def pages(contents: Any) -> set[str]:
    """Return the pages that a table of contents (`_toc.yml`, read) names, without their suffixes."""
    if isinstance(contents, list):
        return {page for entry in contents for page in pages(entry)}
    if not isinstance(contents, dict):
        return set()
    own = {re.sub(r"\.(ipynb|md)$", "", str(contents[k])) for k in ("file", "root") if k in contents}
    return own.union(*(pages(v) for v in contents.values() if isinstance(v, list)))
