"""The formulas that no derivation carries, and what holds each of them in another place.

A numbered equation of a source is held by the readings, the corrected statements and the verified lines of its
chapter's records. A formula of "What to remember" or of a table is held by any other place of its chapter: prose,
captions, records, and code, whose expressions are read as formulas too. What is held nowhere else is stated a second
time in ``stated.yml``. Numbers of a formula that holds nothing but numbers need no second place: the formula is
worked out.

No program here reads what a formula is said to be: a formula that is right, in a sentence that is wrong, passes.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from formulas import PROGRAM, Side, drawn, sides
from notebook_rules import Notebook, code_cells, text

REMEMBERED = "## What to remember"
DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
INLINE = re.compile(r"\$((?:[^$\\]|\\.)+)\$")
TAG = re.compile(r"\\tag\{([^}]*)\}")
#: A formula that a text calls a bound, and which of these words mean one from above.
BOUND = re.compile(r"\b(at most|at least|below|above|less than|more than|fewer than|up to)\s+" + INLINE.pattern)
_FROM_ABOVE = {"at most", "below", "less than", "fewer than", "up to"}
ROW = re.compile(r"^\|.*\|[ \t]*$", re.MULTILINE)
GREEK = frozenset(re.findall(r"\w+", "alpha beta gamma delta epsilon eta theta kappa lambda mu nu pi rho sigma tau "
                                      "phi omega Delta Sigma Omega"))  # fmt: skip
_TURNED = {">": "<", ">=": "<="}
_OPERATIONS: dict[type, Callable[[complex, complex], complex]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


def formulas(markdown: str) -> list[str]:
    r"""Return the formulas of a text, displayed ones first.

    >>> formulas(r"Of $x$ it is $$ y \tag{1} $$ and $z$")
    [' y \\tag{1} ', 'x', 'z']
    """
    return DISPLAY.findall(markdown) + INLINE.findall(DISPLAY.sub(" ", markdown))


def read(found: Iterable[str]) -> Iterator[tuple[str, Sequence[Side]]]:
    """Yield those formulas that can be read, each with its sides."""
    for tex in found:
        try:
            yield tex, sides(tex)
        except (ValueError, ArithmeticError):
            continue


@cache  # several tests read every notebook
def of_code(source: str) -> tuple[Side, ...]:
    """Return the value of each expression of a program that reads as a formula.

    >>> of_code("2 * n**2 * (d_k - r)")[0] == sides(r"2n^2(d_k-r)")[0]
    True
    """
    found = []
    with contextlib.suppress(SyntaxError):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.BinOp | ast.Call):
                with contextlib.suppress(ValueError, ArithmeticError, TypeError):
                    found.append(Side(PROGRAM, _value(node), ""))
    return tuple(found)


def _value(node: ast.expr) -> complex:
    match node:
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](_value(left), _value(right))
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand)
        case ast.Constant(int() | float() as value):
            return complex(value)
        case ast.Name(name):
            stem, _, index = name.partition("_")
            return complex(drawn(("\\" + stem if stem in GREEK else stem) + (f"_{index}" if index else "")))
        case ast.Call(ast.Attribute(_, "sqrt"), [argument]):
            return _value(argument) ** 0.5
        case ast.Call(ast.Attribute(_, "exp"), [argument]):
            return sides("e")[0].value ** _value(argument)
    raise ValueError


# --- what holds a formula ------------------------------------------------------------------------


class Held:
    """Formulas that stand somewhere: their sides, what they say of two of them, and what bounds something."""

    def __init__(self, texts: Iterable[str] = (), programs: Iterable[str] = ()) -> None:
        self.sides: list[Side] = [side for source in programs for side in of_code(source)]
        self.relations: list[tuple[Side, str, Side]] = []
        self.bounds: list[tuple[bool, Side]] = []
        for words in texts:
            self.bounds += [(above, side) for above, side, _ in bounds(words)]
            for _, found in read(formulas(words)):
                self.sides += found
                self.relations += relations(found)
        for left, relation, right in self.relations:
            self.bounds += [(False, left), (True, right)] if "<" in relation else []

    def __add__(self, other: Held) -> Held:
        both = Held()
        both.sides, both.relations = self.sides + other.sides, self.relations + other.relations
        both.bounds = self.bounds + other.bounds
        return both

    def misses(self, found: Sequence[Side]) -> list[str]:
        """Return the sides of a formula that stand nowhere, and, if all do, its relations that do not."""
        alone = [
            side.tex
            for place, side in enumerate(found)
            if not named(side) and side not in (*found[:place], *found[place + 1 :], *self.sides)
        ]
        return alone or [
            f"{left.tex} {relation} {right.tex}"
            for left, relation, right in relations(found)
            if (left, relation, right) not in self.relations
            and (relation not in {"=", "!=", "~"} or (right, relation, left) not in self.relations)
        ]


def bounds(words: str) -> Iterator[tuple[bool, Side, str]]:
    """Yield the formulas that a text calls bounds: whether from above, the formula, and the words.

    >>> [(above, side.tex) for above, side, _ in bounds("It is at most $2p$ and more than $p$.")]
    [(True, '2 p'), (False, 'p')]
    """
    for match in BOUND.finditer(DISPLAY.sub(" ", words)):
        for _, found in read([match[2]]):
            yield match[1] in _FROM_ABOVE, found[0], match[0]


def relations(found: Sequence[Side]) -> Iterator[tuple[Side, str, Side]]:
    r"""Yield what a formula says of each two of its sides, with the smaller one first.

    >>> [(left.tex, relation, right.tex) for left, relation, right in relations(sides(r"a=b\ge c,d"))]
    [('a', '=', 'b'), ('c', '<=', 'a'), ('c', '<=', 'b')]
    """
    for first, left in enumerate(found):
        said = set()
        for right in found[first + 1 :]:
            said.add(right.relation)
            if len(said - {"="}) > 1 and not said <= {"=", "<", "<="} and not said <= {"=", ">", ">="}:
                break
            strongest = min(said - {"="}, key=len, default="=")
            if strongest not in {"=", "<", "<=", ">", ">=", "!="}:
                if strongest and len(said) == 1:  # such as a membership, which goes no further
                    yield left, strongest, right
                break
            yield (right, _TURNED[strongest], left) if strongest in _TURNED else (left, strongest, right)


def named(side: Side) -> bool:
    """Return whether a side is a symbol alone, which says nothing."""
    return re.fullmatch(r"(- )?\\?[A-Za-z]+( _ (\S+|\{[^{}]*\}))?", side.tex) is not None


def records(notebook: Notebook) -> Iterator[str]:
    """Yield the texts and the lines of a notebook's records, without the mistakes that they reject."""
    for cell in code_cells(notebook):
        for output in cell["outputs"]:
            for kind, record in output.get("data", {}).items():
                if "linewise" in kind:
                    yield from _texts(record)


def _texts(record: Any) -> Iterator[str]:
    if isinstance(record, str):
        yield record
    elif isinstance(record, list):
        for part in record:
            yield from _texts(part)
    elif isinstance(record, dict):
        if lines := record.get("lines"):  # one formula, so that it says what any two of its lines are to one another
            signs = {"=": "=", "<=": r"\le", ">=": r"\ge"}
            chain = [signs.get(line.get("relation"), "") + (line.get("tex") or line["plain"]) for line in lines]
            yield f"${' '.join(chain)}$"
        for key, part in record.items():
            if key != "mistakes":
                yield from [f"${part}$"] if key == "tex" else _texts(part)


def prose(notebook: Notebook) -> list[str]:
    """Return the texts of a notebook: its Markdown, and the captions of its figures."""
    captions = (((c["metadata"].get("mystnb") or {}).get("figure") or {}).get("caption") for c in notebook["cells"])
    return [text(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown"] + [c for c in captions if c]


def remembered(markdown: str) -> str:
    """Return the part "What to remember" of a text."""
    return re.split(r"^## ", markdown.partition(REMEMBERED)[2], maxsplit=1, flags=re.MULTILINE)[0]


def elsewhere(notebook: Notebook) -> Held:
    """Return what a notebook says outside of its tables and of "What to remember"."""
    texts = [ROW.sub("", words.replace(remembered(words), "") if REMEMBERED in words else words)
             for words in prose(notebook)]  # fmt: skip
    programs = [text(cell["source"]) for cell in code_cells(notebook)]
    quoted = [words.replace("\\\\", "\\") for words in programs]
    fractions = re.findall(r"(?<![\w.])\d+/\d+", "\n".join(_printed(notebook)))
    return Held([*texts, *quoted, *records(notebook)], [*programs, *fractions])


def told(stated: Iterable[str]) -> Held:
    """Return what is stated: formulas, or words with formulas in them."""
    return Held(words if "$" in words else f"${words}$" for words in stated)


def _printed(notebook: Notebook) -> Iterator[str]:
    for cell in code_cells(notebook):
        for output in cell["outputs"]:
            yield text(output.get("text", "")) + text(output.get("data", {}).get("text/plain", ""))


# --- the rules -----------------------------------------------------------------------------------


def said_once(notebook: Notebook, held: Held) -> list[str]:
    """Each formula of "What to remember" and of a table is held: by `elsewhere`, or because it is `told`.

    So does what is called a bound there: as a bound.
    """
    faults = []
    for place, words in second_places(notebook):
        for tex, found in read(formulas(words)):
            faults += [f"only {place} says {missed} (in {tex})" for missed in held.misses(found)]
        for above, side, phrase in bounds(words):
            if (above, side) not in held.bounds:
                faults.append(f"only {place} says {phrase}")
    return faults


def second_places(notebook: Notebook) -> Iterator[tuple[str, str]]:
    """Yield what has to be said elsewhere as well."""
    for words in prose(notebook):
        yield "What to remember", remembered(words)
        yield "a table", "\n".join(ROW.findall(words))


def numbered(notebook: Notebook) -> dict[str, str]:
    """Return the equations of a notebook that bear a source's number."""
    displays = [tex for words in prose(notebook) for tex in DISPLAY.findall(words)]
    return {tag[1]: tex for tex in displays if (tag := TAG.search(tex))}


def unheld(notebook: Notebook, stated: dict[str, str]) -> list[str]:
    """Each side and each relation of a numbered equation is in a record of the notebook, or the equation is stated."""
    recorded = list(records(notebook))
    faults = []
    for number, tex in numbered(notebook).items():
        held = Held([*recorded, f"${stated.get(number, '')}$"])
        faults += [f"({number}): nothing else says {missed}" for missed in held.misses(sides(tex))]
    return faults


def untrue(notebook: Notebook) -> list[str]:
    """What a formula says of two sides that hold nothing but numbers is worked out, and true."""
    return [fault for words in prose(notebook) for fault in wrong_numbers(words)]


def wrong_numbers(markdown: str) -> list[str]:
    r"""Return what is said of numbers in a text and is not true; a sentence may say of a formula that it is false.

    >>> wrong_numbers(r"So $\frac12+\frac13=\frac56\approx0.83$, $2\cdot3<5$, and $1>2$, which is false.")
    ['2 \\cdot 3 < 5']
    """
    faults = []
    for match in re.finditer(f"{DISPLAY.pattern}|{INLINE.pattern}", markdown, re.DOTALL):
        for _, found in read([match[1] or match[2]]):
            for left, right in numeric(found):
                if not true(left, right) and not markdown[match.end() :].startswith(", which is false"):
                    faults.append(f"{left.tex} {right.relation} {right.tex}")
    return faults


def numeric(found: Sequence[Side]) -> Iterator[tuple[Side, Side]]:
    """Yield the neighbours that are compared in a formula and hold nothing but numbers."""
    for left, right in pairwise(found):
        compared = right.relation in {"=", "~", "<", "<=", ">", ">="} and left.rows == right.rows
        if compared and not (left.symbols or right.symbols or named(left) or named(right)):
            yield left, right


def true(left: Side, right: Side) -> bool:
    """Return whether what is said of two numbers is true, as precisely as the second is written."""
    one, other = left.value, right.value
    if right.relation in {"=", "~"}:
        return left == right or abs(one - other) <= _rounding(left, right)
    one, other = (one, other) if right.relation[0] == "<" else (other, one)
    return one.real < other.real or (len(right.relation) == 2 and left == right)


def _rounding(left: Side, right: Side) -> float:
    """Return by how much a rounded number may differ: half a unit of its last digit, or one, if the others are rounded
    too; and an eighth of an approximation that is no decimal number."""
    if digits := re.fullmatch(r"(?:- )?(\d+?)(0*)(?:\.(\d+))?", right.tex):
        unit = 10.0 ** -len(digits[3]) if digits[3] else 10.0 ** len(digits[2])
        if digits[3] or right.relation == "~":
            return (1.0 if "." in left.tex else 0.5) * unit * (1 + 1e-9)
    return abs(right.value) / 8 if right.relation == "~" else 0.0
