r"""How a derivation is shown: pure functions from its record, which stands as JSON beside it in the cell's output.

A record holds the name of the derivation, its lines and its mistakes. A line has its formula as ``plain`` text and as
``tex``, where the two differ; every line but the first has its ``relation`` to the line before it, the words of its
``rules``, the ``reason`` where it is given in other words, and the ``gap`` of a bound. A mistake has its ``name``, the
number of the ``line`` in whose place it would stand, and its formula. What the chain takes for granted is ``assumed``:
its ``kind``, its formula, and the ``line`` with which it comes into force. A page may add ``also``: what else has
verified the chain, in words.

>>> square = {
...     "name": "The square",
...     "lines": [
...         {"plain": "(x + 1)**2", "tex": r"\left(x + 1\right)^{2}"},
...         {"plain": "x**2 + 2*x + 1", "tex": "x^{2} + 2 x + 1", "relation": "=", "reason": "expand"},
...     ],
...     "mistakes": [{"name": "no middle term", "line": 2, "plain": "x**2 + 1", "tex": "x^{2} + 1"}],
... }
>>> print(plain(square))
The square, 1 steps
    (x + 1)**2
  = x**2 + 2*x + 1    (expand)
  rejected, no middle term: x**2 + 1
"""

from __future__ import annotations

import hashlib
import html as markup
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy as sp

from linewise.derive import notation
from linewise.derive.assumptions import Assumption

#: The mime type of the record of a derivation.
MIME = "application/vnd.linewise.derivation+json"
#: What a record holds.
Record = Mapping[str, Any]
#: The classes under which MathJax typesets the mathematics of a fragment.
TYPESET = "mathjax_process tex2jax_process"
_BLOCK = "margin:1em 0;overflow-x:auto"
_TABLE = "margin:0.3em 0;border:0;font-size:1em;color:inherit"
_ASSUMED = "margin:0.3em 0;opacity:0.8"
#: Of what folds: some pages hide the triangle that says so.
SUMMARY = "cursor:pointer;list-style:revert"
_CELLS = dict.fromkeys(("left", "right", "reason"), "border:0;text-align:left;vertical-align:baseline")
_CELLS |= {"left": _CELLS["left"] + ";padding-right:0", "reason": _CELLS["reason"] + ";padding-left:2em;opacity:0.8"}
_RELATIONS = {"=": "=", "<=": r"\le", ">=": r"\ge"}


def formula(value: Any) -> dict[str, str]:
    """Return an exact value as a record holds it: in plain text, and in TeX where that differs."""
    plain_text, tex = str(value), notation.latex(value)
    return {"plain": plain_text} | ({"tex": tex} if tex != plain_text else {})


_SIGNS = {
    "positive": "> 0", "nonnegative": r"\ge 0", "negative": "< 0", "nonpositive": r"\le 0", "nonzero": r"\ne 0",
    "integer": r"\in \mathbb{Z}",
}  # fmt: skip


def assumed(assumption: Assumption) -> dict[str, str]:
    """Return an assumption as a record holds it: its kind, and what it says in plain text and in TeX."""
    left, right = _side(assumption.left), assumption.right
    every = f"\\; ({', '.join(map(notation.latex, sorted(assumption.every, key=str)))} \\text{{ any}})"
    tex = {
        "definition": f"{left} := {_side(right)}",
        "hypothesis": f"{left} = {_side(right)}",
        "moment": f"{left} = {_side(right)}",
        "same law": rf"{left} \text{{ have one law}}",
        "independence": rf"{left} \text{{ are independent}}",
        "components": rf"\text{{the components of }} {left} \text{{ are independent, of one law}}",
    }.get(assumption.kind)
    if assumption.kind == "law":
        density, low, high = map(notation.latex, right)
        tex = rf"{left} \text{{ has the density }} {density} \text{{ from }} {low} \text{{ to }} {high}"
    elif assumption.kind == "range":
        low, high = map(notation.latex, right)
        tex = rf"{low} \le {left} \le {high}"
    tex = tex or f"{left} {_SIGNS[assumption.kind]}"
    if assumption.every and assumption.kind != "definition":
        tex += every
    return {"kind": assumption.kind, "plain": str(assumption), "tex": tex}


def _side(side: Any) -> str:
    if isinstance(side, frozenset | tuple | sp.Tuple):
        parts = sorted(side, key=str) if isinstance(side, frozenset) else side
        shown = ", ".join(map(_side, parts))
        return f"({shown})" if isinstance(side, frozenset) and len(parts) > 1 else shown
    return notation.latex(side)


def assumptions_of(record: Record) -> list[str]:
    """Return what a derivation assumes, each in TeX and once."""
    return list(dict.fromkeys(str(a["tex"]) for a in record.get("assumed", ())))


def tex_of(shown: Record) -> str:
    """Return the formula of a line or of a mistake in TeX."""
    return str(shown.get("tex", shown["plain"]))


def reason_of(line: Record, say: Callable[..., str] = str.format) -> str:
    """Return why a line follows, in words with formulas between dollar signs; `say` as in `html`."""
    return str(line.get("reason") or say("; ").join(line["rules"]))


def relation_of(line: Record) -> str:
    """Return the relation of a line to the line before it, in TeX."""
    return _RELATIONS[line["relation"]]


def heading_of(mistakes: Sequence[Record]) -> str:
    """Return what stands above the mistakes of a derivation."""
    return "A common mistake, rejected" if len(mistakes) == 1 else "Common mistakes, rejected"


def fingerprint(record: Record) -> str:
    """Return a short name that only this record has, by which another record can refer to it.

    >>> fingerprint({"name": "", "lines": []}), fingerprint({"lines": [], "name": ""})
    ('0a8e8bee4a4a', '0a8e8bee4a4a')
    """
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def plain(record: Record) -> str:
    """Return a derivation as plain text, a line each."""
    first, *rest = record["lines"]
    body = [f"  {line['relation']} {line['plain']}    ({reason_of(line)})" for line in rest]
    wrong = [f"  rejected, {mistake['name']}: {mistake['plain']}" for mistake in record["mistakes"]]
    taken = "; ".join(dict.fromkeys(a["plain"] for a in record.get("assumed", ())))
    head = [f"{record['name'] or 'derivation'}, {len(rest)} steps", f"    {first['plain']}"]
    below = [f"  assumed: {taken}"] if taken else []
    below += [f"  {record['also']}"] if record.get("also") else []
    return "\n".join([*head, *body, *below, *wrong])


def aligned(record: Record) -> str:
    """Return the lines of a derivation in TeX, aligned at their relations, reasons beside them."""
    first, *rest = record["lines"]
    rows = [rf"&{relation_of(line)} {tex_of(line)} && \text{{{notation.tex_words(reason_of(line))}}}" for line in rest]
    return f"\\begin{{aligned}}\n{tex_of(first)} " + " \\\\\n".join(rows) + "\n\\end{aligned}"


def latex(record: Record, say: Callable[..., str] = str.format) -> str:
    """Return a derivation as one aligned display; `say` says a template in the language of the page."""
    taken = say("; ").join(f"${tex}$" for tex in assumptions_of(record))
    below = f"\n{say('Assumed: {taken}.', taken=taken)}" if taken else ""
    below += f"\n{record['also']}" if record.get("also") else ""
    return f"$$\n{aligned(record)}\n$$" + below


def html(record: Record, say: Callable[..., str] = str.format) -> str:
    """Return a derivation as HTML: a table of lines and their reasons, and the mistakes folded below.

    say : says a template, such as ``"Assumed: {taken}."``, in the language of the page.

    It is legible wherever a notebook is shown: the table aligns its columns without a style sheet, the few inline
    styles undo what Jupyter does to tables of numbers, and colours are those of the text around. A page that has a
    style of its own takes the inline styles out (`without_styles`).
    """
    first, *rest = record["lines"]
    rows = []
    for k, line in enumerate(rest):
        cells = {
            "left": _typeset(tex_of(first)) if k == 0 else "",
            "right": _typeset(f"{relation_of(line)} {tex_of(line)}"),
            "reason": notation.html_words(reason_of(line, say)),
        }
        shown = "".join(f'<td class="{name}" style="{_CELLS[name]}">{cell}</td>' for name, cell in cells.items())
        rows.append(f'<tr class="line" style="background:none">{shown}</tr>')
    mistakes, name = record["mistakes"], notation.html_words(record["name"])
    head = f'<div class="derivation-name"><strong>{name}</strong></div>' if name else ""
    named = [(notation.html_words(m["name"]), _typeset(tex_of(m))) for m in mistakes]
    wrong = "".join(f"<li>{say('{one}: {other}', one=one, other=other)}</li>" for one, other in named)
    summary = f'<summary style="{SUMMARY}">{say(heading_of(mistakes))}</summary>'
    folded = f"<details>{summary}<ul>{wrong}</ul></details>" if wrong else ""
    table = f'<table style="{_TABLE}"><tbody>{"".join(rows)}</tbody></table>'
    taken = say("; ").join(rf"\({markup.escape(tex)}\)" for tex in assumptions_of(record))
    assumed = say("Assumed: {taken}.", taken=taken)
    below = f'<div class="derivation-assumed" style="{_ASSUMED}">{assumed}</div>' if taken else ""
    if also := notation.html_words(record.get("also", "")):
        below += f'<div class="derivation-also" style="{_ASSUMED}">{also}</div>'
    return f'<div class="derivation {TYPESET}" style="{_BLOCK}">{head}{table}{below}{folded}</div>'


def without_styles(shown: str) -> str:
    """Return HTML that was drawn from a record without its inline styles, for a page that has a style sheet.

    >>> without_styles('<td class="left" style="text-align:left">style="x"</td>')
    '<td class="left">style="x"</td>'
    """
    return re.sub(r'(<[^<>]*) style="[^"]*"', r"\1", shown)


def _typeset(tex: str) -> str:
    return rf"\(\displaystyle {markup.escape(tex)}\)"
