"""What a second kernel has proved belongs to the derivations as they are; where Coq is, it proves a sample again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sympy as sp

import kernel as command
import stamps
from chains import derivations
from linewise.derive import display, identity, rules
from linewise.kernel import coq
from linewise.kernel.record import Attempt, Kernel, attempts, digest, is_current, kernel_of, write
from linewise.ledger import card
from linewise.pages.displays import with_kernel
from linewise.pages.print_cards import derivation_tex

NOTEBOOKS = stamps.notebooks([stamps.ROOT / "chapters"])
x, y = sp.symbols("x y", real=True)
needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="coqc is not there (Debian's package coq)")


def recorded() -> Kernel:
    kernel = kernel_of(stamps.ROOT)
    assert kernel is not None
    return kernel


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_record_belongs_to_the_derivations(notebook: Path) -> None:
    entries = recorded().chapters.get(notebook.stem, {})
    assert is_current(entries, derivations(notebook)), "the record is stale: make kernel brings it up to date"


def test_a_changed_step_makes_its_entry_stale() -> None:
    chain, other = (identity((x + 1) ** 2, right, because="expand") for right in (x**2 + 2 * x + 1, 1 + x * (x + 2)))
    (attempt,) = attempts(chain, "c", search=False)
    entry = {"steps": [{"by": True, "statement": attempt.statement}]}
    assert is_current({digest(chain.record()): entry}, [chain])
    assert not is_current({digest(chain.record()): entry}, [other])
    assert not is_current({digest(chain.record()): entry}, [chain, other])
    assert not is_current({digest(chain.record()): {"steps": [{"by": True, "statement": "another"}]}}, [chain])


def test_the_record_knows_all_chapters_and_refuses_every_mistake() -> None:
    kernel = recorded()
    assert set(kernel.chapters) == {n.stem for n in NOTEBOOKS}
    counts = kernel.counts()
    assert counts["proved"] + sum(kernel.left().values()) == counts["steps"]
    assert 0 < counts["conditional"] < counts["proved"] <= counts["translated"] <= counts["steps"]
    assert 0 < counts["refused"] <= counts["mistakes"]


def test_a_page_says_which_steps_and_under_which_condition(tmp_path: Path) -> None:
    chain = identity((x**2 - 1) / (x - 1), x + 1, because="cancel")
    key, step = digest(chain.record()), {"by": True, "if": [r"x \ne 1"]}
    entry = {"mistakes": 0, "refused": 0, "name": "", "steps": [step]}
    one = Kernel("Coq 8.16", {"c": {key: entry}})
    record = chain.record() | {"assumed": []}
    assert one.sentence(record) == r"Also by Coq 8.16, if $x \ne 1$."
    assert one.sentence(record | {"name": "another"}) == ""
    assert one.sentence(record | {"assumed": [{"tex": r"x \ne 1"}]}) == "Also by Coq 8.16."
    write(one, tmp_path / "kernel.json")
    assert str(key) in (tmp_path / "kernel.json").read_text()


def test_a_derivation_and_a_card_show_the_line() -> None:
    chain = identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand")
    record = chain.record()
    known = Kernel("Coq 8.16", {"c": {digest(record): {"steps": [{"by": True}]}}})
    shown = with_kernel(display.MIME, record, known)
    assert "Also by Coq 8.16." in display.html(shown)
    assert "Also by Coq 8.16." in display.plain(shown)
    assert "Also by Coq 8.16." in derivation_tex(shown, str)
    assert with_kernel(card.MIME, {"derivations": [record]}, known) == {"derivations": [shown]}
    assert with_kernel(display.MIME, record, None) == record
    assert with_kernel(display.MIME, record, Kernel("Coq 8.16", {})) == record


def test_without_coq_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(coq.shutil, "which", lambda name: None)
    assert command.main([]) == 1
    assert capsys.readouterr().err == "kernel: coqc is not there: apt-get install --no-install-recommends coq\n"


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[Attempt]], set[str]]:
    folder = tmp_path_factory.mktemp("coq")
    coq.prelude(folder)

    def names(asked: list[Attempt]) -> set[str]:
        goals = [goal for attempt in asked for goal in attempt.goals]
        found = coq.proved(goals, folder, 60)
        coq.certify([goal for goal in goals if goal.name in found], folder)
        return found

    return names


@needs_coq
def test_coq_proves_a_sample_of_the_record_again(ask: Callable[[list[Attempt]], set[str]]) -> None:
    sample = []
    for notebook in NOTEBOOKS[:3]:
        entries = recorded().chapters[notebook.stem]
        for k, chain in enumerate(derivations(notebook)[:4]):
            known = entries[digest(chain.record())]["steps"]
            sample += [a for a in attempts(chain, f"{notebook.stem}_{k}") if "by" in known[a.number - 1]]
    assert len(sample) > 5
    assert ask(sample) == {goal.name for attempt in sample for goal in attempt.goals}


@needs_coq
def test_coq_refuses_what_is_false(ask: Callable[[list[Attempt]], set[str]]) -> None:
    n, m, q = sp.symbols("n m q", integer=True, positive=True)
    a, p = sp.IndexedBase("a"), sp.IndexedBase("p", positive=True)
    pairs = {
        "square": ((x + 1) ** 2, x**2 + 2 * x + 1, x**2 + 1),
        "sum": (sp.Sum(2 * a[m], (m, 1, n)), 2 * sp.Sum(a[m], (m, 1, n)), sp.Sum(a[m], (m, 1, n))),
        "exp": (sp.exp(x + y), sp.UnevaluatedExpr(sp.exp(x)) * sp.exp(y), sp.exp(x) + sp.exp(y)),
        "log": (sp.log(p[1] * p[2], evaluate=False), sp.log(p[1]) + sp.log(p[2]), sp.log(p[1]) * sp.log(p[2])),
    }
    asked = []
    for name, (left, right, wrong) in pairs.items():
        chain = identity(left, right, because="algebra", mistake=("another", wrong))
        asked += [*attempts(chain, name), *attempts(chain, name, mistaken=True)]
    given = identity(x + y, 1, rules.hypothesis(y, 1 - x, "the sum is 1"), mistake=("two", sp.Integer(2)))
    asked += [*attempts(given, "given"), *attempts(given, "given", mistaken=True)]
    beyond = sp.Sum(sp.KroneckerDelta(m, n + q) * a[m], (m, 1, n))  # no place of the sum, which would prove anything
    hidden = identity(beyond, 0, rules.collapse, mistake=("as if it were one", a[n + q]))
    asked += [*attempts(hidden, "hidden"), *attempts(hidden, "hidden", mistaken=True)]
    assert ask(asked) - {"hidden_1_0"} == {f"{name}_1_0" for name in (*pairs, "given")}


@needs_coq
def test_a_proof_that_rests_on_an_axiom_of_its_own_is_refused(tmp_path: Path) -> None:
    coq.prelude(tmp_path)
    goal = coq.Goal("wrong", "0 = 1", "exact given")
    with pytest.raises(coq.KernelError):
        coq.certify([goal], tmp_path)
    assert not coq.proved([goal, replace(goal, name="unreadable", tactic="exact (")], tmp_path, 5)
    assert not coq.without_admission([replace(goal, tactic="admit")])
    true_first = replace(
        goal, statement="0 = 0", tactic="reflexivity.\nQed.\nAxiom given : 0 = 1.\nGoal True.\nexact I"
    )
    with pytest.raises(coq.KernelError, match="rests on given"):
        coq.certify([true_first, replace(goal, name="more")], tmp_path)
