r"""Find the wrong line: a derivation in which a named mistake stands in the place of one line.

The directive ``{wrong-lines} chapters/scaling`` shows such an exercise for each mistake in the derivations of a
notebook that is fit for one (`exercises`). A reader is told that every other line is right: each line is compared with
the *right* line before it, so that exactly one line does not follow, though the line below a mistake does not follow
from it either. On the site the solution is folded below each exercise, and a script (``wrong_lines.js``) turns the
lines into buttons; where nothing folds, ``{wrong-lines-solutions} chapters/scaling`` lists the solutions.

``{wrong-lines-sets}`` lists sets of a site, one a line: the page that shows it, and the notebook. From the sets of its
page ``{wrong-lines-today} 5`` has the script choose so many exercises by the date. It asks for each by its id: when the
pages are finished, their exercises are copied to ``_static/wrong-lines``. What a reader has found stays in the
reader's browser.
"""

from __future__ import annotations

import html as markup
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.latex import LaTeXTranslator

from linewise.conventions import conventions_of
from linewise.derive import display, notation
from linewise.derive.display import Record
from linewise.ledger.collate import derivations_of
from linewise.pages import findable, signs
from linewise.pages.print_cards import Encode, breakable, items, used, words

#: A derivation has at least so many lines: with two, there is nothing to look for.
FEWEST = 3
#: A line shows at most so many signs.
LONGEST = 90
#: TeX that shows no sign: marks, brackets that grow, spaces.
_UNSEEN = re.compile(
    r"\\(?:[td]?frac|sqrt|math[a-z]+|operatorname|left|right|[bB]igg?[lr]?|q?quad|tilde|displaystyle)(?![A-Za-z])"
    r"|\\(?:begin|end)\{[a-z]*\}|\\[,;:! ]"
)
#: What a solution says.
SOLVED = "Line {number}: {mistake}. The right line: {right}"
Say = Callable[..., str]
_FINISHED = re.compile(r'<article class="wrong-line" id="([^"]+)".*?</article>', re.DOTALL)


@dataclass(frozen=True)
class Exercise:
    """A derivation with one wrong line.

    name : what the derivation shows.  lines : the lines as they are shown, as records.  wrong : the number of the
    wrong one, from 1.  mistake : its name.  right : the record of the line in whose place it stands.  assumed : what
    the derivation assumes, as records.
    """

    name: str
    lines: tuple[Record, ...]
    wrong: int
    mistake: str
    right: Record
    assumed: tuple[Record, ...] = ()

    @property
    def id(self) -> str:
        """A name that stays while nothing of the exercise changes."""
        said = {"lines": self.lines, "wrong": self.wrong, "mistake": self.mistake}
        return f"wrong-line-{display.fingerprint(said)}"


def width(tex: str) -> int:
    r"""Return about how many signs a formula shows.

    >>> width(r"= \frac{1}{n} \sum_{i=1}^{n} \mathbb{E}\left[x_{i}\right]")
    13
    """
    return len(re.findall(r"\\[A-Za-z]+|[^{}^_&\\\s]", _UNSEEN.sub("", tex)))


def variants(record: Record) -> Iterator[Exercise]:
    """Yield a derivation with each of its mistakes in the place of a line."""
    for mistake in record["mistakes"]:
        lines, k = list(record["lines"]), int(mistake["line"]) - 1
        right = lines[k]
        lines[k] = {key: value for key, value in right.items() if key not in ("plain", "tex")}
        lines[k] |= {key: mistake[key] for key in ("plain", "tex") if key in mistake}
        yield Exercise(record["name"], tuple(lines), k + 1, mistake["name"], right, tuple(record.get("assumed", ())))


def is_fit(exercise: Exercise) -> bool:
    """Return whether a reader can be asked.

    There are enough lines, none is too long, and no two show the same formula. Nor does the line below the mistake
    bring in a hypothesis, such as a sum that is 0: the mistake was rejected without it, and may be right with it.
    """
    shown = [display.tex_of(line) for line in exercise.lines]
    supposes = any(a["kind"] == "hypothesis" and a["line"] == exercise.wrong + 1 for a in exercise.assumed)
    if supposes or len(shown) < FEWEST:
        return False
    return len(set(shown)) == len(shown) and max(map(width, shown)) <= LONGEST


def exercises(notebook: Path) -> list[Exercise]:
    """Return the exercises that the stored derivations of a notebook give, in order, each once."""
    return list(_exercises(notebook, notebook.stat().st_mtime_ns))


@cache
def _exercises(notebook: Path, changed: int) -> tuple[Exercise, ...]:
    found = [variant for record in derivations_of(notebook) for variant in variants(record) if is_fit(variant)]
    return tuple({exercise.id: exercise for exercise in found}.values())


# --- as HTML --------------------------------------------------------------------------------------


def html(exercise: Exercise, number: int, *, folds: bool = True, say: Say = str.format) -> str:
    """Return an exercise as HTML; its solution is folded below it, or left to a list where nothing folds.

    say : says a template, such as ``"Line {number}: {mistake}."``, in the language of the page.
    """
    rows = []
    for line in exercise.lines:
        sign, reason = "", ""
        if line is not exercise.lines[0]:
            sign = f"{display.relation_of(line)} "
            reason = f' <span class="reason">{notation.html_words(display.reason_of(line, say))}</span>'
        rows.append(f'<li><span class="formula">{_typeset(sign + display.tex_of(line))}</span>{reason}</li>')
    name = notation.html_words(exercise.name) or say("A derivation")
    taken = say("; ").join(rf"\({markup.escape(tex)}\)" for tex in _assumptions(exercise))
    below = f'<p class="wrong-line-assumed">{say("Assumed: {taken}.", taken=taken)}</p>' if taken else ""
    if folds:
        below += '<p class="wrong-line-said" role="status"></p>'  # what the script says has its room from the beginning
        solved = solution(exercise, say)
        below += f'<details class="wrong-line-solution"><summary>{say("Solution")}</summary>{solved}</details>'
    shown = (
        f'<article class="wrong-line" id="{exercise.id}" data-wrong="{exercise.wrong}">'
        f'<h3><span class="wrong-line-number">{number}. </span>{name}</h3>'
        f'<ol class="{display.TYPESET}">{"".join(rows)}</ol>{below}</article>'
    )
    return signs.in_html(shown)


def solution(exercise: Exercise, say: Say = str.format) -> str:
    """Return what is wrong, and the right line."""
    right = f"{display.relation_of(exercise.right)} {display.tex_of(exercise.right)}"
    mistake = f'<em class="wrong-line-mistake">{notation.html_words(exercise.mistake)}</em>'
    said = say(SOLVED, number=exercise.wrong, mistake=mistake, right=_typeset(right))
    return f'<p class="{display.TYPESET}">{said}</p>'


def _assumptions(exercise: Exercise) -> list[str]:
    """Return what the derivation assumes, each in TeX and once."""
    return display.assumptions_of({"assumed": exercise.assumed})


def _typeset(tex: str) -> str:
    return rf"\(\displaystyle {markup.escape(tex)}\)"


# --- on paper and as text -------------------------------------------------------------------------


def tex(exercise: Exercise, number: int, encode: Encode = str, say: Say = str.format) -> str:
    """Return an exercise in LaTeX, as the style of a book draws a derivation; the reasons bear the lines' numbers."""
    first, *rest = exercise.lines
    body = [rf"\derivationname{{{number}. {words(exercise.name, encode)}}}"]
    body += [rf"\derivationleft{{{breakable(display.tex_of(first))}}}"]
    for k, line in enumerate(rest, start=2):
        right = breakable(f"{display.relation_of(line)} {display.tex_of(line)}")
        body.append(rf"\derivationline{{{right}}}{{{words(display.reason_of(line, say), encode)}\quad ({k})}}")
    if taken := _assumptions(exercise):
        listed = say("; ").join(rf"\longformula{{{breakable(one)}}}" for one in taken)
        body.append(used("assumed", say("Assumed: {taken}.", taken=listed)))
    return "\n".join(["", r"\begin{bookderivation}", *body, r"\end{bookderivation}", ""])


def tex_solutions(found: list[Exercise], encode: Encode = str, say: Say = str.format) -> str:
    """Return the solutions of a set as a list in LaTeX, ragged: a formula may need a line of its own."""
    said = []
    for number, one in enumerate(found, start=1):
        right = breakable(f"{display.relation_of(one.right)} {display.tex_of(one.right)}")
        mistake, formula = rf"\emph{{{words(one.mistake, encode)}}}", rf"\longformula{{{right}}}"
        said.append(f"{number}. {say(SOLVED, number=one.wrong, mistake=mistake, right=formula)}")
    return f"\n{{\\raggedright\n{items(said)}\n}}\n"


def plain(exercise: Exercise, number: int) -> str:
    """Return an exercise as plain text, its lines numbered."""
    first, *rest = exercise.lines
    body = [f"  {k}. {line['relation']} {line['plain']}    ({display.reason_of(line)})"
            for k, line in enumerate(rest, start=2)]  # fmt: skip
    return "\n".join([f"{number}. {exercise.name}", f"  1. {first['plain']}", *body])


def plain_solution(exercise: Exercise, number: int) -> str:
    """Return what is wrong, and the right line, as plain text."""
    right = f"{exercise.right['relation']} {exercise.right['plain']}"
    return f"{number}. Line {exercise.wrong}: {exercise.mistake}: {right}"


# --- Sphinx ---------------------------------------------------------------------------------------


class wrong_lines(nodes.Element):
    """A set of exercises, or its list of solutions (`solved`), of the notebook `path`."""


class Set(SphinxDirective):
    """``{wrong-lines} PAGE``: the exercises of a notebook; ``{wrong-lines-solutions} PAGE``: their solutions."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the set."""
        path = notebook_of(self, self.arguments[0])
        return [wrong_lines(path=str(path), solved=self.name == "wrong-lines-solutions")]


class Today(SphinxDirective):
    """``{wrong-lines-today} 5``: so many exercises of the sets of the page, which the script chooses by the date."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the place for them, as HTML: no other builder has a script."""
        most = self.arguments[0]
        if not re.fullmatch("[1-9][0-9]*", most):
            raise self.error(f"wrong-lines-today: expected a number from 1, got {most!r}")
        without = "<p>The exercises of the day need JavaScript. The sets do not.</p>"
        shown = f'<div class="wrong-line-today" data-most="{most}">{without}</div>'
        return [nodes.raw("", shown, format="html", classes=["wrong-lines"])]


class Sets(SphinxDirective):
    """``{wrong-lines-sets}``: links to sets, a line each: the page that shows the set, and the page of its notebook."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the list, as HTML: no other builder has a script."""
        if self.env.app.builder.format != "html":
            return []
        rows, index = [], []
        for line in self.content:
            if not line.strip():
                continue
            if len(pair := line.split()) != 2:
                raise self.error(f"wrong-lines-sets: expected the page of a set and a notebook, got {line!r}")
            page, name = pair
            found = exercises(notebook_of(self, name))
            address = self.env.app.builder.get_relative_uri(self.env.docname, page)
            title = markup.escape(findable.title_of(Path(self.env.srcdir), name))
            target = f"{address}#{found[0].id}" if found else address
            score = f'<span class="score">{counted(found)}</span>'
            rows.append(f'<li data-set="{name}"><a href="{target}">{title}</a> {score}</li>')
            index.append([name, address, title, [[one.id.rpartition("-")[2], len(one.lines)] for one in found]])
        known = markup.escape(json.dumps(index, separators=(",", ":"), ensure_ascii=False))
        listed = f'<ul class="wrong-line-sets" data-sets="{known}">{"".join(rows)}</ul>'
        return [nodes.raw("", listed, format="html", classes=["wrong-lines"])]


def counted(found: Sequence[Exercise]) -> str:
    """Return how many exercises there are; the script puts in its place how many of them are found."""
    return f"{len(found)} exercise" + "s" * (len(found) != 1)


def notebook_of(directive: SphinxDirective, page: str) -> Path:
    """Return the path of a notebook that a directive names, on which its page depends from now on."""
    path = Path(directive.env.srcdir, f"{page}.ipynb")
    if not path.is_file():
        raise directive.error(f"{directive.name}: expected the page of a notebook, such as chapters/name, got {page!r}")
    directive.env.note_dependency(str(path))
    return path


class Draw(SphinxPostTransform):
    """Draw the sets where the builder writes HTML or text; LaTeX has a visitor of its own."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Visit the sets of a page."""
        builder, say = self.app.builder, conventions_of(self.app.srcdir).say
        for node in list(self.document.findall(wrong_lines)) if builder.format != "latex" else ():
            found = exercises(Path(node["path"]))
            if builder.format != "html":
                shown = plain_solution if node["solved"] else plain
                text = "\n\n".join(shown(one, k) for k, one in enumerate(found, start=1))
                node.replace_self(nodes.literal_block(text, text))
                continue
            if node["solved"]:
                listed = "".join(f"<li>{solution(one, say)}</li>" for one in found)
                shown = signs.in_html(f'<ol class="wrong-line-solutions">{listed}</ol>')
            else:
                folds = builder.name != "epub"  # no reader can be sure that a book unfolds
                shown = "".join(html(one, k, folds=folds, say=say) for k, one in enumerate(found, start=1))
                shown = f'<p class="wrong-line-score">{counted(found)}</p>{shown}' if folds else shown
            node.replace_self(nodes.raw("", shown, format="html", classes=["wrong-lines"]))


def visit_latex(self: LaTeXTranslator, node: wrong_lines) -> None:
    """Draw a set, or its solutions."""
    found, say = exercises(Path(node["path"])), conventions_of(self.builder.srcdir).say
    if node["solved"]:
        self.body.append(tex_solutions(found, self.encode, say))
    else:
        self.body.append("".join(tex(one, k, self.encode, say) for k, one in enumerate(found, start=1)))
    raise nodes.SkipNode


def load(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Let the pages that have exercises load the script and the style."""
    shown = doctree.findall(nodes.raw) if doctree is not None and app.builder.name in {"html", "dirhtml"} else ()
    if any("wrong-lines" in node["classes"] for node in shown):
        app.add_css_file("wrong_lines.css")
        app.add_js_file("wrong_lines.js", loading_method="defer")


def copied(page: str) -> dict[str, str]:
    """Return the exercises of a finished page by their ids.

    >>> copied('<p><article class="wrong-line" id="wrong-line-1" data-wrong="2"><h3>A</h3></article></p>')
    {'wrong-line-1': '<article class="wrong-line" id="wrong-line-1" data-wrong="2"><h3>A</h3></article>'}
    """
    return {found[1]: found[0] for found in _FINISHED.finditer(page)}


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Copy the exercises of the finished pages to where the script asks for them, one by one."""
    if exception is not None or app.builder.name not in {"html", "dirhtml"}:
        return
    out = Path(app.outdir)
    found: dict[str, str] = {}
    for path in sorted(out.rglob("*.html")):
        if "_static" not in path.relative_to(out).parts:
            found |= copied(path.read_text(encoding="utf-8"))
    target = out / "_static" / "wrong-lines"
    for old in target.glob("*.json"):
        old.unlink()
    if found:
        target.mkdir(parents=True, exist_ok=True)
    for name, text in found.items():
        file = target / f"{name.rpartition('-')[2]}.json"
        file.write_text(json.dumps(text, ensure_ascii=False), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the directives, what draws the sets, and the events."""
    app.add_node(wrong_lines, latex=(visit_latex, None))
    app.add_directive("wrong-lines", Set)
    app.add_directive("wrong-lines-solutions", Set)
    app.add_directive("wrong-lines-today", Today)
    app.add_directive("wrong-lines-sets", Sets)
    app.add_post_transform(Draw)
    app.connect("html-page-context", load)
    app.connect("build-finished", finish, priority=950)
