r"""Fields for answers: a reader types a number, a formula or a choice below an exercise, and learns what it is.

A file beside a chapter, ``scaling.answers.yml``, has for the labels of exercises what is asked, the right answer, and
wrong answers with the names of their mistakes:

    exercise-scaling-by-hand:
    - {ask: The ratio, right: e, digits: 3, says: '$e\approx2.72$', mistakes: {e^2: scores were doubled}}
    - {ask: The divisor, right: sigma*sqrt(d), names: [sigma, d], says: '$\sigma\sqrt d$'}
    - {ask: Is it harmless?, right: for keys, choices: [for keys, for queries], says: common mean of the *keys*}

`right` and the mistakes are formulas of numbers, of the `names`, of ``e``, ``pi``, ``sqrt``, ``exp``, ``log``, ``abs``.
A number is compared after rounding to so many `digits`, a formula by its values at a few places. The page has salted
hashes of the answers instead of the answers, so that nobody reads them by chance; it keeps no secret from a program.
`says` is the part of the solution that has the right answer, in its text or in what its cells print: a build warns of
an answer that its solution does not give. An exercise whose answer no field can know has a word of `OPEN` instead:

    exercise-scaling-proof: proof
"""

from __future__ import annotations

import ast
import html
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx_exercise.nodes import is_exercise_node

from linewise.conventions import conventions_of
from linewise.derive.notation import html_words

logger = logging.getLogger(__name__)
SUFFIX = ".answers.yml"
ASSETS = Path(__file__).parent / "assets"
SHIPPED = ("answers.css", "answers.js")
#: How many places a formula is compared at, and to how many digits; a number may be given with fewer than `MORE` more.
PLACES, DIGITS, MORE = 3, 6, 6
FUNCTIONS: dict[str, Callable[[float], float]] = {"sqrt": math.sqrt, "exp": math.exp, "log": math.log, "abs": abs}
CONSTANTS = {"e": math.e, "pi": math.pi}
#: What an exercise without a field asks for.
OPEN = {"proof", "program", "explanation"}
_START = re.compile(r"^`{3,}\{solution-start\}[ \t]*(\S+)[^`]*^`{3,}", re.MULTILINE)
#: A command or a letter with its index, a number, or a sign.
_TOKEN = re.compile(
    r"\\?[A-Za-z]+?(?:_[A-Za-z0-9]+)?(?![A-Za-z])|\\[A-Za-z]+|[A-Za-z](?:_[A-Za-z0-9])?|\d+(?:\.\d+)?|\S"
)
_END = re.compile(r"^`{3,}\{solution-end\}", re.MULTILINE)


class AnswerError(ValueError):
    """An answer that cannot be read, that its solution does not give, or that a mistake equals."""


@dataclass(frozen=True)
class Answer:
    """What a field asks, and what it knows; see the module."""

    ask: str
    right: str
    says: str
    digits: int = DIGITS
    names: Sequence[str] = ()
    choices: Sequence[str] = ()
    mistakes: Mapping[str, str] = field(default_factory=dict)

    def normal(self, given: str, more: int = 0) -> str:
        """Return what is compared of an answer: a choice as it stands, or values with so many more digits."""
        if self.choices:
            return given
        return " ".join(rounded(value(given, at), self.digits + more) for at in places(self.names))

    @property
    def accepted(self) -> list[str]:
        """The right answer with its digits and with more: 0.105 is right where 0.1054 would be, and not as 0.10."""
        return [self.normal(self.right, more) for more in range(1 if self.choices or self.names else MORE)]


def read(path: Path) -> dict[str, list[Answer]]:
    """Return the answers of a file by the labels of its exercises: none for an open one, and no label without a file.

    Raises `AnswerError` for an entry that is neither answers nor a word of `OPEN`.
    """
    if not path.is_file():
        return {}
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    for label, entries in given.items():
        if not (entries in OPEN if isinstance(entries, str) else isinstance(entries, list) and entries):
            raise AnswerError(f"{label}: expected answers, or one of {', '.join(sorted(OPEN))}, got {entries!r}")

    def texts(entry: Mapping[str, Any]) -> Answer:
        mistakes = {str(wrong): name for wrong, name in entry.get("mistakes", {}).items()}
        return Answer(**{**entry, "right": str(entry["right"]), "mistakes": mistakes})

    return {
        label: [] if isinstance(entries, str) else [texts(entry) for entry in entries]
        for label, entries in given.items()
    }


# --- values ---------------------------------------------------------------------------------------


def places(names: Sequence[str]) -> list[dict[str, float]]:
    """Return the values of the names at which formulas are compared; a number is the same everywhere.

    >>> places(["x"])
    [{'x': 1.3}, {'x': 1.51}, {'x': 1.72}]
    """
    return [
        {name: round(1.3 + 0.37 * k + 0.21 * place, 2) for k, name in enumerate(names)}
        for place in range(PLACES if names else 1)
    ]


def value(formula: str, at: Mapping[str, float] | None = None) -> float:
    """Return the value of a formula.

    >>> value("2*x^2 - sqrt(4)", {"x": 3})
    16.0
    >>> value("x")
    Traceback (most recent call last):
    practice.answers.AnswerError: expected a formula of numbers, e, pi and functions, got 'x'
    """
    known = CONSTANTS | dict(at or {})

    def of(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name) if name in known:
                return known[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -of(inner)
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in FUNCTIONS:
                return FUNCTIONS[name](of(inner))
            case ast.BinOp(left=left, op=operator, right=right):
                a, b = of(left), of(right)
                match operator:
                    case ast.Add():
                        return a + b
                    case ast.Sub():
                        return a - b
                    case ast.Mult():
                        return a * b
                    case ast.Div():
                        return a / b
                    case ast.Pow():
                        return a**b
        raise AnswerError(f"expected a formula of numbers, {', '.join(known)} and functions, got {formula!r}")

    try:
        return float(of(ast.parse(formula.replace("^", "**"), mode="eval").body))
    except (SyntaxError, ArithmeticError) as error:
        raise AnswerError(f"expected a formula, got {formula!r}: {error}") from None


def rounded(number: float, digits: int) -> str:
    """Return a number with so many digits, as a browser's `toExponential` writes it.

    >>> rounded(2.718281828, 3), rounded(0, 2), rounded(-0.00125, 3)
    ('2.72e+0', '0.0e+0', '-1.25e-3')
    """
    written = f"{number + 0.0:.{digits - 1}e}"
    return re.sub(r"e([+-])0*(\d)", r"e\1\2", written)


def is_on_an_edge(number: float, digits: int) -> bool:
    """Return whether a number lies so near the middle of two rounded ones that machines may disagree.

    >>> is_on_an_edge(0.125, 2), is_on_an_edge(0.126, 2)
    (True, False)
    """
    return len({rounded(number * (1 + by), digits) for by in (-1e-9, 0, 1e-9)}) > 1


def digest(salt: str, text: str) -> str:
    """Return a short hash: cyrb53, which the script has as well.

    >>> digest("a", "1") == digest("a", "1"), digest("a", "1") == digest("b", "1")
    (True, False)
    """
    mask = 0xFFFFFFFF
    one, two = 0xDEADBEEF, 0x41C6CE57
    for letter in map(ord, f"{salt}|{text}"):
        one, two = ((one ^ letter) * 2654435761) & mask, ((two ^ letter) * 1597334677) & mask
    one, two = (
        (((a ^ (a >> 16)) * 2246822507) & mask) ^ (((b ^ (b >> 13)) * 3266489909) & mask)
        for a, b in ((one, two), (two, one))
    )
    return f"{(two & 0x1FFFFF) * 2**32 + one:x}"


# --- solutions ------------------------------------------------------------------------------------


def solutions(notebook: Mapping[str, Any]) -> dict[str, str]:
    """Return the solutions of a notebook by the labels of their exercises: their text, and what their cells print."""
    found: dict[str, list[str]] = {}
    label = ""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            while text:
                gate = (_END if label else _START).search(text)
                if label:
                    found[label].append(text[: gate.start()] if gate else text)
                label = "" if label and gate else gate[1] if gate else label
                if label and gate:
                    found.setdefault(label, [])
                text = text[gate.end() :] if gate else ""
        elif label:
            for output in cell.get("outputs", ()):
                shown = output.get("text") or output.get("data", {}).get("text/plain", "")
                found[label].append("".join(shown))
    return {name: " ".join("\n".join(parts).split()) for name, parts in found.items()}


def faults(label: str, answer: Answer, solution: str | None) -> Iterator[str]:
    """Yield what is wrong with an answer: its solution does not give it, or two of its answers are one.

    solution : None where the words of both are translated, each by itself.
    """
    says = " ".join(answer.says.split())
    if solution is not None and says not in solution:
        yield f"{label}: the solution does not say {says!r}"
    try:
        normal = answer.normal(answer.right)
        if answer.choices:
            known = {*answer.mistakes, answer.right}
            if not known <= set(answer.choices):
                yield f"{label}: {sorted(known - set(answer.choices))} is none of the choices"
        else:
            if not any(_is_value(piece, answer) for piece in pieces(says)):
                yield f"{label}: {says!r} is not {answer.right}"
            if any(is_on_an_edge(value(answer.right, at), answer.digits) for at in places(answer.names)):
                yield f"{label}: {answer.right} lies between two numbers of {answer.digits} digits"
        seen = {normal: "the right answer"}
        for wrong, name in answer.mistakes.items():
            if (known_as := seen.setdefault(answer.normal(wrong), name)) != name:
                yield f"{label}: {wrong} ({name}) is {known_as}"
    except AnswerError as error:
        yield f"{label}: {error}"


def pieces(says: str) -> list[str]:
    r"""Return the numbers and the formulas of a phrase, these without TeX.

    >>> pieces(r"the factor $e\approx2.72$, or $\sigma_q\sqrt{d_k}$, is 3.5")
    ['e', '2.72', 'sigma_q*sqrt(d_k)', '3.5']
    """
    found = []
    for k, part in enumerate(says.split("$")):
        if k % 2:
            found += [_untex(piece) for piece in re.split(r"=|\\(?:approx|to|le|ge)(?![A-Za-z])|,\s", part)]
        else:
            found += re.findall(r"-?\d+(?:\.\d+)?", part.replace("\N{MINUS SIGN}", "-"))
    return found


def _untex(tex: str) -> str:
    r"""Return a short TeX formula as a formula of `value`.

    >>> _untex(r"\tfrac{24}{16}"), _untex(r"\tfrac32"), _untex(r"\sqrt{2/\pi}"), _untex(r"e^{-2x}")
    ('((24)/(16))', '((3)/(2))', 'sqrt(2/pi)', 'e^(-2*x)')
    """
    text = re.sub(r"\\[,;:! ]|\\(?:left|right|displaystyle)\b", "", tex.strip())
    text = re.sub(r"\\[dt]?frac(\d)(\d)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\sqrt(?:\s*)([A-Za-z0-9](?:_[A-Za-z0-9])?)", r"\\sqrt{\1}", text)
    while (changed := re.sub(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text)) != text:
        text = changed
    text = re.sub(r"_\{([^{}]*)\}", r"_\1", text)
    while (changed := re.sub(r"(\^|\\sqrt)\{([^{}]*)\}", r"\1(\2)", text)) != text:
        text = changed
    text = re.sub(r"\\cdot|\\times", "*", text)
    tokens = _TOKEN.findall(text)
    made = ""
    for token in tokens:
        word = token.removeprefix("\\")
        starts = word[0].isalnum() or word == "("
        if made and starts and (made[-1].isalnum() or made[-1] == ")") and not made.endswith(tuple(FUNCTIONS)):
            made += "*"
        made += word
    return made


def _is_value(piece: str, answer: Answer) -> bool:
    """Return whether a piece of a solution is the right answer, to the digits that it shows."""
    shown = len(re.sub(r"^-?0*\.?0*|\.", "", piece)) if re.fullmatch(r"-?\d+\.\d+", piece) else DIGITS
    try:
        values = [(value(piece, at), value(answer.right, at)) for at in places(answer.names)]
        return all(rounded(one, shown or 1) == rounded(other, shown or 1) for one, other in values)
    except AnswerError:
        return False


# --- Sphinx ---------------------------------------------------------------------------------------


def form(label: str, number: int, answer: Answer, say: Callable[..., str] = str.format) -> str:
    """Return the field of an answer as HTML; `say` says a template in the language of the page."""
    salt = f"{label}-{number}"
    wrong = {digest(salt, answer.normal(one)): name for one, name in answer.mistakes.items()}
    known: dict[str, Any] = {"salt": salt, "right": [digest(salt, one) for one in answer.accepted], "wrong": wrong}
    if answer.choices:
        options = "".join(f"<option>{html.escape(choice)}</option>" for choice in answer.choices)
        put = f'<select><option value="">choose</option>{options}</select>'
    else:
        known |= {"digits": answer.digits, "at": places(answer.names)}
        put = '<input type="text" autocomplete="off" autocapitalize="off" spellcheck="false">'
        if answer.names:
            names = ", ".join(f"<code>{html.escape(name)}</code>" for name in answer.names)
            put += f" <small>{say('in {names}', names=names)}</small>"
        elif answer.digits < DIGITS and not re.search("digit|数字|小数", answer.ask):
            put += f" <small>to {answer.digits} digit{'s' * (answer.digits > 1)}</small>"
    data = html.escape(json.dumps(known, ensure_ascii=False, separators=(",", ":")))
    ask = re.sub(r"\*(\S[^*]*)\*", r"<em>\1</em>", html_words(answer.ask))
    ask = re.sub(r"`([^`]+)`", r"<code>\1</code>", ask)
    return (
        f'<form class="answer" data-answer="{data}"><label><span>{ask}</span> {put}</label> '
        '<button type="submit">Check</button> <output></output></form>'
    )


class Fields(SphinxPostTransform):
    """Put the fields at the end of the exercises, on the site."""

    default_priority = 5
    builders = ("html", "dirhtml")

    def run(self, **kwargs: Any) -> None:
        """Visit the exercises of a chapter that has answers."""
        path = Path(self.env.doc2path(self.env.docname))
        answers = read(path.with_suffix(SUFFIX))
        exercises = {node["label"]: node for node in self.document.findall(is_exercise_node)} if answers else {}
        solved = solutions(json.loads(path.read_text(encoding="utf-8"))) if answers else {}
        say = conventions_of(self.app.srcdir).say
        for label, asked in answers.items():
            if label not in exercises:
                logger.warning("answers: no exercise %s", label, location=self.env.docname)
                continue
            solution = solved.get(label, "") if self.config.language in (None, "en") else None
            for fault in (f for answer in asked for f in faults(label, answer, solution)):
                logger.warning("answers: %s", fault, location=self.env.docname)
            fields = "".join(form(label, k, answer, say) for k, answer in enumerate(asked))
            raw = nodes.raw("", f'<div class="answers">{fields}</div>', format="html", classes=["answers"])
            place = next(exercises[label].findall(nodes.section), exercises[label])
            hint = next((n for n in place.children if isinstance(n, nodes.hint)), None)
            place.insert(place.index(hint) if hint else len(place), raw)


def depends(app: Sphinx, docname: str, source: list[str]) -> None:
    """Read a chapter anew when its answers have changed."""
    path = Path(app.env.doc2path(docname)).with_suffix(SUFFIX)
    if path.is_file():
        app.env.note_dependency(str(path))


def load(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Let the pages that have fields load their script and style."""
    shown = doctree.findall(nodes.raw) if doctree is not None and app.builder.name in Fields.builders else ()
    if any("answers" in node["classes"] for node in shown):
        app.add_css_file("answers.css")
        app.add_js_file("answers.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform and the events."""
    app.add_post_transform(Fields)
    app.connect("source-read", depends)
    app.connect("html-page-context", load)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
