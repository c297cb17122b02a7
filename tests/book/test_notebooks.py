"""Every chapter keeps the rules of the project, and every rule rejects what it should."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import notebook_rules
import stamps
from fabricated import FIGURE, code, good_notebook, picture, printed, shown
from notebook_rules import RULES
from randomness import unseeded

NOTEBOOKS = stamps.notebooks()
CHAPTERS = stamps.notebooks([stamps.ROOT / "chapters"])
KEPT = [(n, rule) for n in NOTEBOOKS for rule in RULES if n in CHAPTERS or rule not in notebook_rules.OF_CHAPTERS]
SOURCES = [p for p in stamps.files([stamps.ROOT / "code" / "attnmath"]) if p.suffix == ".py"]


def name(path: Path) -> str:
    return path.relative_to(stamps.ROOT).as_posix()


@lru_cache(maxsize=4)  # all rules are asked of one notebook before the next; they change nothing
def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


# --- the chapters ------------------------------------------------------------------------------


def test_there_are_chapters() -> None:
    assert CHAPTERS


@pytest.mark.parametrize(("notebook", "rule"), KEPT, ids=lambda x: x if isinstance(x, str) else name(x))
def test_notebook_keeps_the_rule(notebook: Path, rule: str) -> None:
    assert RULES[rule](read(notebook)) == []


def test_notebooks_are_in_the_contents_and_chapters_have_claims() -> None:
    contents = yaml.safe_load((stamps.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert {name(n.with_suffix("")) for n in NOTEBOOKS} <= notebook_rules.pages(contents)
    assert [name(n) for n in CHAPTERS if not n.with_suffix(".claims.yml").is_file()] == []


def test_no_two_figures_share_a_name() -> None:
    counts = Counter(n for p in NOTEBOOKS for n in notebook_rules.figure_names(read(p)))
    assert [n for n, k in counts.items() if k > 1] == []


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_package_draws_nothing_unseeded(source: Path) -> None:
    assert unseeded(source.read_text(encoding="utf-8")) == []


# --- negative controls: each rule must reject the notebook that breaks it --------------------------


def spoilt(spoil: Callable[[list[Any]], object]) -> dict[str, Any]:
    """Return the good notebook after `spoil` has changed its cells: prose, imports, numbers, figure."""
    notebook = good_notebook()
    spoil(notebook["cells"])
    return notebook


def source(number: int, text: str) -> Callable[[list[Any]], object]:
    return lambda cells: cells[number].update(source=text)


def output(number: int, *outputs: dict[str, Any]) -> Callable[[list[Any]], object]:
    return lambda cells: cells[number].update(outputs=list(outputs))


PROSE = good_notebook()["cells"][0]["source"]
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": []}
BREACHES: list[tuple[str, str, Callable[[list[Any]], object]]] = [
    ("executed_in_order", "a cell never executed", lambda c: c[2].update(execution_count=None)),
    ("executed_in_order", "a count out of order", lambda c: c[2].update(execution_count=7)),
    ("executed_in_order", "no code at all", lambda c: c.__delitem__(slice(1, None))),
    ("no_errors", "a stored error", output(2, ERROR)),
    ("no_errors", "a stored warning", output(2, printed("UserWarning", "stderr"))),
    ("short_cells", "seventeen lines", source(2, "x = 1\n\n" * 17)),
    ("narrow_cells", "a line of 89 columns", source(2, "x = 1  # " + "x" * 80)),
    ("one_idea_a_line", "a walrus", source(2, "print(x := 1)")),
    ("one_idea_a_line", "packed assignments", source(2, "x, y = f(1), g(2)")),
    ("computed_counterexamples", "a literal", source(2, "counterexample(1 - 1, {}, '>=', 1, of='x')")),
    (
        "computed_counterexamples",
        "a number of sympy",
        source(2, "ledger.counterexample(sp.Rational(1, 2), {}, '>=', 1)"),
    ),
    (
        "computed_counterexamples",
        "a literal in a function",
        source(2, "counterexample(lambda x: 0.5, {'x': 1}, '>=', 1)"),
    ),
    ("computed_counterexamples", "the instance itself", source(2, "counterexample(lambda x: x, {'x': 1}, '>=', 2)")),
    ("computed_counterexamples", "nothing", source(2, "counterexample(relation='>=')")),
    ("no_semicolon", "a trailing semicolon", source(3, "plt.plot([0, 1]);\n")),
    ("nothing_skipped", "a tag for nbval", lambda c: c[2].update(metadata={"tags": ["nbval-ignore-output"]})),
    ("nothing_skipped", "a comment for nbval", source(2, "# NBVAL_SKIP\nprint(2)")),
    ("no_shell", "a magic", source(2, "%matplotlib inline")),
    ("no_shell", "a shell command", source(2, "!ls")),
    ("seeded_randomness", "a generator without a seed", source(2, "rng = np.random.default_rng()")),
    ("seeded_randomness", "the legacy interface", source(2, "np.random.seed(1)")),
    ("seeded_randomness", "a name in a string", source(2, "getattr(np.random, 'rand')(3)")),
    ("seeded_randomness", "the clock", source(2, "import time\nrng = np.random.default_rng(time.time_ns())")),
    ("described_figures", "no metadata", lambda c: c[3].update(metadata={})),
    ("described_figures", "a short alt text", lambda c: c[3]["metadata"]["mystnb"]["image"].update(alt="A line.")),
    ("described_figures", "a slug", lambda c: c[3]["metadata"]["mystnb"]["image"].update(alt="fig_line_" * 9)),
    ("described_figures", "no caption", lambda c: c[3]["metadata"]["mystnb"]["figure"].pop("caption")),
    ("described_figures", "no name", lambda c: c[3]["metadata"]["mystnb"]["figure"].update(name=" ")),
    ("shown_figures", "plt.show", source(3, FIGURE.replace("figures.show(figure)", "plt.show()"))),
    ("shown_figures", "a line behind show", source(3, FIGURE + "\nplt.close()")),
    ("shown_figures", "no SVG", output(3, picture(svg=""))),
    ("shown_figures", "a PNG beside it", lambda c: c[3]["outputs"][0]["data"].update({"image/png": "aGVsbG8="})),
    ("shown_figures", "two pictures", output(3, picture(), picture())),
    ("shown_figures", "no picture", output(3)),
    ("shown_figures", "an unnamed picture", lambda c: c[2].update(outputs=[shown("aGVsbG8=", "image/png")])),
    ("one_machine", "a tag without a reason", lambda c: c[3]["metadata"].update(tags=["this-machine"])),
    ("one_machine", "a tag on no figure", lambda c: c[2]["metadata"].update(tags=["this-machine"])),
    ("solved_exercises", "two exercises", source(0, PROSE.partition("{exercise}")[2])),
    ("solved_exercises", "an unsolved one", source(0, PROSE.replace("{solution} tiny-two", "{note} tiny-two"))),
    ("solved_exercises", "a solution in full view", source(0, PROSE.replace(":class: dropdown", ""))),
    ("portable_outputs", "a path", output(2, printed("/home/someone/book/x.py:3"))),
    ("portable_outputs", "a path in HTML", output(2, shown("<b>/tmp/kernel_1</b>", "text/html"))),
    ("portable_outputs", "an address", output(2, shown("<object at 0x7f3a2c1b9d30>"))),
    ("marked_once", "a quote escaped twice", source(0, PROSE + 'Call `f(\\"x\\")`.')),
    ("marked_once", "Markdown in HTML", output(2, shown("<p>the key of *watch*</p>", "text/html"))),
    (
        "marked_once",
        "a command escaped twice",
        lambda c: c[3]["metadata"]["mystnb"]["figure"].update(caption=r"$\\lVert x$"),
    ),
    ("folded_alike", "folded on the site alone", lambda c: c[2]["metadata"].update(tags=["hide-input"])),
    (
        "folded_alike",
        "folded in JupyterLab alone",
        lambda c: c[2]["metadata"].update(jupyter={"source_hidden": True}),
    ),
    ("loads_its_claims", "no claims", source(1, 'plt.style.use("attnmath.figures.book")')),
    ("loads_its_claims", "no style", source(1, 'claims = load_claims("tiny")')),
]


@pytest.mark.parametrize("rule", RULES)
def test_rule_accepts_a_good_notebook(rule: str) -> None:
    assert RULES[rule](good_notebook()) == []


@pytest.mark.parametrize(("rule", "breach", "spoil"), BREACHES, ids=lambda v: v if isinstance(v, str) else "")
def test_rule_rejects(rule: str, breach: str, spoil: Callable[[list[Any]], object]) -> None:
    assert RULES[rule](spoilt(spoil)) != [], breach


def test_every_rule_has_a_negative_control() -> None:
    assert {rule for rule, _, _ in BREACHES} == set(RULES)


def test_image_data_is_not_read_as_text() -> None:
    notebook = spoilt(output(3, shown("iVBOR/tmp/aa0x7f3a2c1b9d30", "image/png")))
    assert RULES["portable_outputs"](notebook) == []


def test_a_figure_of_one_machine_says_so_in_its_caption() -> None:
    notebook = spoilt(lambda cells: cells[3]["metadata"].update(tags=["this-machine"]))
    notebook["cells"][3]["metadata"]["mystnb"]["figure"]["caption"] = "Seconds, on one machine."
    assert RULES["one_machine"](notebook) == []


def test_two_figures_of_one_name_are_seen() -> None:
    notebook = spoilt(lambda cells: cells.append(cells[3]))
    assert notebook_rules.figure_names(notebook) == ["fig-line", "fig-line"]


def test_a_page_outside_the_contents_is_seen() -> None:
    contents = {"root": "intro", "parts": [{"chapters": [{"file": "a", "sections": [{"file": "b.ipynb"}]}]}]}
    assert notebook_rules.pages(contents) == {"intro", "a", "b"}


@pytest.mark.parametrize(
    "line",
    [
        "import numpy as np; np.random.default_rng()",
        "import numpy as np; np.random.default_rng(None)",
        "import numpy as np; np.random.default_rng(seed=None)",
        "import numpy; numpy.random.randn(3)",
        "from numpy.random import normal; normal()",
        "from numpy.random import default_rng as make; make()",
        "from numpy import random as r; r.rand()",
        "np.random.RandomState(0)",
        "np.random.Generator(np.random.PCG64())",
        "import random; random.random()",
        "from random import choice; choice([1])",
        "import random; random.Random()",
        "import torch; torch.randn(3)",
        "import torch; torch.rand_like(x)",
        "import torch; torch.empty(3).normal_()",
        "import torch; torch.nn.Linear(2, 2)",
        "from torch import nn; nn.Embedding(2, 2)",
        "from scipy import stats; stats.norm().rvs(3)",
        "getattr(np.random, 'rand')(3)",
        "draw = 'rand'; getattr(np.random, draw)(3)",
        "getattr(np, 'random').rand(3)",
        "r = np.random; r.rand(3)",
        "np.random.__dict__['rand'](3)",
        "vars(np.random)['rand'](3)",
        "from numpy.random import *; rand(3)",
        "import importlib; importlib.import_module('random').random()",
        "__import__('random').random()",
        "import time; np.random.default_rng(time.time_ns())",
        "from time import perf_counter_ns as now; seed = 3 + now(); other = seed % 7; np.random.default_rng(other)",
        "import datetime; np.random.default_rng(seed=datetime.datetime.now().microsecond)",
        "from datetime import date; score_variance(widths, seed=date.today().day)",
        "import os; np.random.default_rng(int.from_bytes(os.urandom(4)))",
        "import os; np.random.SeedSequence(os.getpid())",
        "import secrets; np.random.default_rng(secrets.randbits(32))",
        "import uuid; np.random.default_rng(uuid.uuid4().int)",
        "np.random.default_rng(id(x))",
        "np.random.Generator(np.random.PCG64(hash('attention') % 99))",
        "import torch, time; torch.manual_seed(int(time.time()))",
        "import torch; torch.Generator().manual_seed(id(object()))",
        "import time, random; random.Random(time.time())",
        "import time; stats.norm().rvs(3, random_state=int(time.time()))",
    ],
)
def test_unseeded_randomness_is_found(line: str) -> None:
    assert unseeded(line)


@pytest.mark.parametrize(
    "line",
    [
        "import numpy as np; np.random.default_rng(0).normal(size=3)",
        "import numpy as np; np.random.Generator(np.random.PCG64(3))",
        "import numpy as np\ndef f(rng: np.random.Generator): return rng.random()",
        "import random; random.Random(3).random()",
        "import torch; torch.randn(3, generator=torch.Generator().manual_seed(0))",
        "import torch; torch.manual_seed(0); torch.nn.Linear(2, 2)",
        "from scipy import stats; stats.norm().rvs(3, random_state=rng)",
        "x.normal(); law.sample(rng)",
        "import time; start = time.perf_counter(); x = np.random.default_rng(3); print(time.perf_counter() - start)",
        "import hashlib, uuid; hashlib.sha256(b'a'); uuid.uuid5(space, 'a'); order = {id(x): x}; hash(x)",
        "getattr(np.random, 'default_rng')(3); getattr(figures, name)(3); vars(options); random_state = 3",
        "seeds = iter(range(100, 128)); np.random.default_rng(next(seeds))",
    ],
)
def test_seeded_randomness_is_let_be(line: str) -> None:
    assert unseeded(line) == []


def test_cells_are_counted_as_code_cells() -> None:
    notebook = good_notebook()
    notebook["cells"].append(code("1", 9))
    assert notebook_rules.executed_in_order(notebook) == ["code cell 4 has execution count 9"]
