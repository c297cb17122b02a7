"""The report as one page of HTML: a table of all numbers, and a figure and a sentence for each."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float

from attnlab.heads.load import load_decoders, load_heads, load_pretrained
from attnlab.report.measures import MEASURES, Attention, Measure, attention_of, of_decoders
from attnmath import figures
from attnmath.arrays import Numpy
from attnmath.matrix.sinks import sink_weight

#: Where a reader finds the book, and the chapters.
BOOK = "https://github.com/attention-checked/attention-checked"
CHAPTERS = f"{BOOK}/blob/main/chapters/"

_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d0d7de, #3d444d); --quiet: light-dark(#57606a, #9198a1); }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
figure { margin: 1rem 0; padding: .5rem; background: #fff; border-radius: 6px; overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 34rem; height: auto; margin: auto; }
blockquote { margin: .5rem 0; padding-left: .8rem; border-left: 3px solid var(--line); }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
thead th { vertical-align: bottom; }
tbody th { text-align: left; font-weight: normal; min-width: 9em; }
.quiet { color: var(--quiet); }
"""


_OTHERS = """The last columns are the models that the book measures, each on a text of its own: an encoder
(all-MiniLM-L6-v2), four small decoders of characters, and a pretrained decoder (SmolLM2-135M-Instruct)."""


def compared() -> dict[str, Attention]:
    """The heads of the book's three kinds of models, each on its first text."""
    return {
        "encoder": attention_of(load_heads()),
        "small decoders": of_decoders(load_decoders()),
        "pretrained decoder": attention_of(load_pretrained()),
    }


def page(
    name: str,
    attention: Attention,
    tokens: Sequence[str],
    others: Mapping[str, Attention],
    report: Callable[[], Any] = lambda: None,
) -> tuple[str, dict[str, Float[Numpy, "layers heads"]]]:
    """Return the page of HTML and the numbers behind it, by the titles of `MEASURES`.

    name : of the model.  tokens : of its text.  others : models to compare with, by their names.
    report : called after each measure.
    """
    key = attention.sink()
    models = {"all": attention, "without": attention.without(key), **others}
    rows, sections, found = [], [], {}
    for measure in MEASURES:
        values = {model: measure.of(each) for model, each in models.items()}
        found[measure.title] = values["all"]
        rows.append([measure.label, *(_middle(each) for each in values.values())])
        sections.append(_section(measure, values["all"], values["without"]))
        report()
    sink, even = (float(np.mean(sink_weight(A, key, causal=attention.causal))) for A in (attention.A, _even(attention)))
    layers, heads, n, d_k = attention.Q.shape
    about = f"{layers} layers of {heads} heads of width {d_k}, on {n} tokens"
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Heads of {html.escape(name)}</title><style>{_STYLE}</style></head><body>
<h1>The heads of {html.escape(name)}</h1>
<p>{about}{", each of which sees those up to itself" if attention.causal else ""}. <code>python -m attnlab.report</code>
of the book <a href="{BOOK}">Attention, Checked</a> has measured each head; each section quotes the book and names the
chapter.</p>
<p>In the mean over the heads, the other queries put most weight on the token
<code>{html.escape(repr(tokens[key]))}</code>, at position {key} (the first is 0): {sink:.2g}, where equal weights would
put {even:.2g}. It is called the sink below, whether or not it stands out. Without the sink every query sees the other
keys alone, and the key that then has most weight is the sink. The heads of one model are not independent of one
another, and one text is one text.</p>
<h2>All numbers</h2>
<p>The median over the heads of a model. Most of these numbers depend on the number of positions, which stands in the
first line. {_OTHERS if others else ""}</p>
<div class="table" role="region" aria-label="All numbers" tabindex="0">
{_table([name, "without the sink", *others], [each.n for each in models.values()], rows)}</div>
{"".join(sections)}
</body></html>
"""
    return text, found


def _section(measure: Measure, values: Float[Numpy, "layers heads"], without: Float[Numpy, "layers heads"]) -> str:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    place = f'<a href="{CHAPTERS}{measure.chapter}.ipynb">{measure.chapter}</a>'
    return f"""<section><h2>{html.escape(measure.title)}</h2>
<p>{html.escape(measure.how[:1].upper() + measure.how[1:])}. Each dot is a head.</p>
<figure role="region" aria-label="Each dot is a head, by layer: {html.escape(measure.label)}" tabindex="0">
{_picture(measure, values, without)}</figure>
<p>Half of the heads lie between {low:.3g} and {high:.3g}, with the median {middle:.3g}; without the sink the median is
{_middle(without)}.</p>
<blockquote>{html.escape(measure.sentence)} <span class="quiet">({place})</span></blockquote>
</section>
"""


def _picture(measure: Measure, values: Float[Numpy, "layers heads"], without: Float[Numpy, "layers heads"]) -> str:
    with plt.style.context("attnmath.figures.book"):
        figure, panels = plt.subplots(1, 2, figsize=(9.2, 3.4), sharey=True)
        for ax, title, of in zip(panels, ("all keys", "without the sink"), (values, without), strict=True):
            figures.dots_by_layer(of, ylabel=fill(measure.label, 24) if ax is panels[0] else "", ax=ax)
            ax.set(xlabel="layer", title=title)
        if np.ptp((values, without)) == 0:
            panels[0].set_ylim(values.min() - 1, values.max() + 1)
        svg = figures.show(figure).svg
    return svg[svg.index("<svg") :]


def _even(attention: Attention) -> Float[Numpy, "n n"]:
    """Equal weights on what each token sees."""
    seen = np.tri(attention.n) if attention.causal else np.ones((attention.n, attention.n))
    return seen / seen.sum(axis=-1, keepdims=True)


def _table(names: Sequence[str], sizes: Sequence[int], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{html.escape(each)}</th>' for each in ("", *names))
    lines = [["positions", *(str(size) for size in sizes)], *rows]
    body = "".join(
        f'<tr><th scope="row">{html.escape(first)}</th>{"".join(f"<td>{each}</td>" for each in rest)}</tr>'
        for first, *rest in lines
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _middle(values: Float[Numpy, "layers heads"]) -> str:
    return f"{np.median(values):.3g}"
