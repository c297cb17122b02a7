"""The choice of a model: the same figure of trained heads, drawn by the same program with another model.

`figure_models.yml` says of each figure that shows trained heads with which other models it is drawn, or why with none.
Where there is a choice, the cells from which the figure's program is cut (`figure_scripts`) are changed so that one
line, ``MODEL = "encoder"``, decides. With the book's own model the program draws the notebook's picture, byte for byte.
The pictures of the other models are drawn when the site is built; none is in git.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import execute
import stamps

TABLE = Path(__file__).with_suffix(".yml")
#: The models by the names of `attnlab.heads.models.START`, in the order in which they are offered.
MODELS = ("encoder", "small decoder", "pretrained decoder")
#: What a changed program may use of `attnlab.heads.models`, and the calls of the chapters for which each stands.
USED = "from attnlab.heads.models import START, head_of, heads_of, mask_of, seeds_of"
CALLS = {
    "trained_head()": "head_of(MODEL)",
    'load_heads("sentence")': 'heads_of(MODEL, "sentence")',
    'load_heads("passage")': "heads_of(MODEL)",
    "load_heads()": "heads_of(MODEL)",
}
#: What every picture depends on beside its program: the package, the heads, and the libraries.
INPUTS = [stamps.ROOT / "code" / "attnmath", stamps.ROOT / "code" / "attnlab", stamps.ROOT / "constraints.txt"]
#: Loaded before the processes are forked, each of which draws one picture.
LOADED = ["matplotlib.pyplot", "scipy.optimize", "attnmath.figures", "attnlab.heads.models", "attnlab.heads.kinds"]


@dataclass(frozen=True)
class Choice:
    """The models of a figure; the attributes are explained in `figure_models.yml`."""

    shows: str
    heads: str
    edits: Sequence[tuple[str, str]]
    book: str = "encoder"
    without: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, str] = field(default_factory=dict)

    @property
    def models(self) -> list[str]:
        """The models that are offered, that of the book among them."""
        return [model for model in MODELS if model not in self.without]

    @property
    def others(self) -> list[str]:
        """The models that are offered beside that of the book."""
        return [model for model in self.models if model != self.book]


@cache
def choices() -> dict[str, Choice | str]:
    """Return the table: for each figure its choice, or the reason why it has none."""
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return {name: entry if isinstance(entry, str) else read(name, dict(entry)) for name, entry in table.items()}


def read(name: str, entry: dict[str, Any]) -> Choice:
    """Return the choice of an entry; raise ValueError for one that says what nobody understands."""
    without = entry.pop("not", {})
    edits = [(old, new) for old, new in entry.pop("edits")]
    choice = Choice(edits=edits, without=without, **entry)
    if choice.heads not in ("head", "sentence", "passage", "both"):
        raise ValueError(f"{name}: heads: expected head, sentence, passage or both, got {choice.heads!r}")
    if {choice.book, *without} - set(MODELS) or not choice.others or choice.book in without:
        raise ValueError(f"{name}: expected a model of the book and another one, among {', '.join(MODELS)}")
    if strange := [model for model in choice.seen if model not in choice.others]:
        raise ValueError(f"{name}: seen: expected models of which a picture is drawn, got {strange[0]!r}")
    return choice


def changed(name: str, sources: Sequence[str]) -> list[str]:
    """Return the code cells of a notebook in which MODEL decides what the named figure shows.

    Raise ValueError where a text that is to be changed is not there.
    """
    choice = choices()[name]
    assert isinstance(choice, Choice)
    found = list(sources)
    for old, new in choice.edits:
        if not any(old in source for source in found):
            raise ValueError(f"{name}: tools/figure_models.yml changes {old!r}, which is in no cell")
        found = [source.replace(old, new) for source in found]
    for old, new in CALLS.items():
        found = [re.sub(rf"(?<![\w.]){re.escape(old)}", new, source) for source in found]
    first = next(k for k, source in enumerate(found) if "plt.style.use(" in source)
    others = ", ".join(f'"{model}"' for model in choice.others)
    line = f'MODEL = "{choice.book}"  # or {others}'
    found[first] = re.sub(r"\n+(plt\.style\.use\(.*\))", rf"\n{USED}\n\n\1\n\n{line}", found[first], count=1)
    return found


def chosen(program: str, model: str) -> str:
    """Return a program with another model in its line.

    >>> chosen('MODEL = "encoder"  # or "small decoder"\\n', "small decoder")
    'MODEL = "small decoder"\\n'
    """
    return re.sub(r'^MODEL = ".*$', f'MODEL = "{model}"', program, count=1, flags=re.MULTILINE)


def slug(model: str) -> str:
    """Return a model's name as it stands in the names of files.

    >>> slug("small decoder")
    'small-decoder'
    """
    return model.replace(" ", "-")


# --- what is drawn, in words -------------------------------------------------------------------


#: The texts on which the heads of each model are shipped; a sentence is the beginning of a decoder's text.
TEXTS = {
    "encoder": "tokens of *Alice's Adventures in Wonderland*",
    "small decoder": "characters of Python's documentation",
    "pretrained decoder": "tokens of *Alice's Adventures in Wonderland*",
}


@cache
def counts(model: str) -> dict[str, int]:
    """Return what a caption counts of a model, from its arrays; its first head is counted from 1."""
    from attnlab.heads.models import START, heads_of

    heads, short, (layer, head) = heads_of(model), heads_of(model, "sentence"), START[model]
    return {
        "layers": heads.layers, "heads": heads.heads, "d_k": heads.d_k, "passage": heads.n, "sentence": short.n,
        "layer": layer + 1, "head": head + 1,
    }  # fmt: skip


def caption(choice: Choice, model: str, say: Callable[..., str] = str.format) -> str:
    """Return the caption of the picture of another model: what it shows, of which heads, and what it does not say.

    say : says a template, such as ``"{shows} {heads}, on {texts}. {found}"``, in the language of the page.
    """
    known = counts(model)
    n = str(known["sentence" if choice.heads in ("head", "sentence") else "passage"])
    told = choice.shows.strip() if say is str.format else say(choice.shows.strip())
    shows = re.sub(r"\{(d_k|n)\}", lambda found: n if found[1] == "n" else str(known["d_k"]), told)
    width = "width {d_k}" if model == "encoder" else "causal, width {d_k}"
    size = "{layers} layers of {heads} heads, width {d_k}"
    name = say(f"the {model} of seed 0" if model == "small decoder" else f"the {model}")
    if choice.heads == "head":
        who = "The head is head {head} of layer {layer} of {model} ({about})"
        about = say(width, **known)
    else:
        who = "The model is {model} ({about})"
        about = say(size if model == "encoder" else f"causal, {size}", **known)
    texts = say(
        "{n} and on {m} " if choice.heads == "both" else "{n} ",
        n=known["sentence"] if choice.heads == "both" else n,
        m=known["passage"],
    ) + say(TEXTS[model])
    return say(
        "{shows} {heads}, on {texts}. {found}",
        shows=shows,
        heads=say(who, head=known["head"], layer=known["layer"], model=name, about=about),
        texts=texts,
        found=say("What the book says of this figure was found with the {model}.", model=say(choice.book)),
    )


def alternative(choice: Choice, model: str, say: Callable[..., str] = str.format) -> str:
    """Return the alternative text of the picture of another model.

    >>> alternative(Choice("", "head", [], seen={"small decoder": "the bars are short."}), "small decoder")
    'With the small decoder: the bars are short.'
    >>> alternative(Choice("", "head", []), "small decoder")
    'The same figure with the small decoder; the caption says what is drawn.'
    """
    if model in choice.seen:
        seen = choice.seen[model].strip()
        return say("With the {model}: {seen}", model=say(model), seen=seen if say is str.format else say(seen))
    return say("The same figure with the {model}; the caption says what is drawn.", model=say(model))


# --- drawing -----------------------------------------------------------------------------------


def key_of(program: str) -> str:
    """Return a hash of a program and of all that it may reach."""
    return hashlib.sha256(f"{program}{_inputs()}".encode()).hexdigest()


@cache
def _inputs() -> str:
    return stamps.digest(INPUTS)


def svg_of(job: tuple[str, str]) -> tuple[str, str]:
    """Run a program under its name in an empty folder, in this process; return the name and the SVG that it saved."""
    name, program = job
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(program, f"{name}.py", "exec"), {"__name__": "__main__"})
        (drawn,) = Path(folder).glob("*.svg")
        found = drawn.read_text(encoding="utf-8")
        os.chdir(Path(folder).parent)
    return name, found


def draw(programs: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Draw what the folder lacks, ``NAME.svg`` for the program of each name; yield the names that were drawn."""
    due = []
    for name, program in programs.items():
        stamp, key = folder / f"{name}.stamp", key_of(program)
        if not ((folder / f"{name}.svg").is_file() and stamps.is_fresh(stamp, key)):
            due.append((name, program))
    if not due:
        return
    execute.fix_environment()
    os.environ |= {"MPLBACKEND": "agg", "PYTHONPATH": str(stamps.ROOT / "code")}
    ways = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")
    if "forkserver" in ways:
        context.set_forkserver_preload(LOADED)
    with context.Pool(min(os.cpu_count() or 1, 4), maxtasksperchild=1) as pool:
        for name, svg in pool.imap_unordered(svg_of, due):
            stamps.write_atomically(folder / f"{name}.svg", svg)
            stamps.write_atomically(folder / f"{name}.stamp", key_of(programs[name]))
            yield name


if __name__ == "__main__":
    sys.exit(__doc__)
