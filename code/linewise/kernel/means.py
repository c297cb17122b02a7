"""Expectations of products, over forms."""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any

import sympy as sp

from linewise.kernel.binders import Binders
from linewise.kernel.forms import atom, show
from linewise.kernel.statement import OutsideError, Premise


class Means(Binders):
    """The part of the search that takes sums out of expectations, splits them over groups, and knows moments."""

    def mean(self, head: str, name: str, g: Any) -> tuple[Any, str]:
        """Return the expectation of one product."""
        premise = next(p for p in self.st.premises if p.text == f"Expectation {head}")
        if g == 1:
            return sp.Integer(1), f"apply (proj1 (proj2 {premise.name}))"
        for f in sp.Mul.make_args(g):
            base, power = f.as_base_exp()
            if base.is_Symbol and base.name in self.sums and power.is_Integer and power > 0:
                total, rest = self.sums[base.name], g / base
                new = f"i{next(self.fresh) + 100}"
                added = self.renamed(total.summand, {total.name: new})
                summand = added * rest
                inner, turns = self.part_of_mean(head, name, summand)
                value, proof = self.bind(f"sum {total.low} {total.high}", new, inner, turns, (total.low, total.high))
                swapped = f"({head} (fun {name} => sum {total.low} {total.high} (fun {new} => {show(summand)})))"
                exchanged = f"(sum {total.low} {total.high} (fun {new} => {head} (fun {name} => {show(summand)})))"
                lemma = self._lemma(head)
                return value, (
                    f"transitivity {swapped}; [apply (linear_ext _ _ _ _ {lemma}); intros {name}; cbv beta; "
                    f"transitivity ({show(rest)} * sum {total.low} {total.high} (fun {new} => {show(added)})); "
                    f"[finish | rewrite <- sum_scale; apply sum_ext; intros; cbv beta; finish] | "
                    f"transitivity {exchanged}; [apply (linear_sum _ _ _ _ "
                    f"(fun {new} {name} => {show(summand)}) {lemma}) | {proof}]]"
                )
        for p in self.st.premises:
            if p.kind == "independence":
                found = self.apart(head, name, g, p)
                if found:
                    return found
            if p.kind == "same law":
                x, first = p.value
                factors = set(re.findall(r"\bX\d+\b", show(g)))
                if factors == {x}:
                    function = re.sub(rf"\({x} {name}\)", "z", show(g))
                    new = g.xreplace(
                        {s: atom(s.name.replace(f"({x} {name})", f"({first} {name})")) for s in g.free_symbols}
                    )
                    value, turns = self.part(head, name, new, ())
                    return value, f"rewrite ({p.name} (fun z => {function})); cbv beta; {self.by(turns)}"
        text = self.closed(head, name, g)
        value, turns = self.lookup(text)
        if not turns:
            value, turns = self.moment(head, name, g)
        return value, turns[0][2] if turns else "reflexivity"

    def part_of_mean(self, head: str, name: str, g: Any) -> tuple[Any, list[tuple[str, str, str]]]:
        """Return the expectation of what stands under a sum, with the equation that says so."""
        if isinstance(self.expand(g), sp.Add):
            raise OutsideError("a sum under an expectation")
        value, proof = self.bind(head, name, g, [], ())
        shown = f"({head} (fun {name} => {show(g)}))"
        return value, [(shown, show(self.expand(value)), proof)]

    def moment(self, head: str, name: str, g: Any) -> tuple[Any, list[tuple[str, str, str]]]:
        """Try the factors of an expectation in every order."""
        factors = [f.as_base_exp()[0] for f in sp.Mul.make_args(g)
                   for _ in range(int(f.as_base_exp()[1]) if f.as_base_exp()[1].is_Integer else 1)]  # fmt: skip
        if len(factors) > 4 or not all(f.is_Symbol for f in factors):
            return atom(self.closed(head, name, g)), []
        text = self.closed(head, name, g)
        for order in permutations(factors):
            product_ = " * ".join(f.name for f in order)
            tried = (
                f"({head} (fun {name} => ({product_})))" if len(order) > 1 else f"({head} (fun {name} => {product_}))"
            )
            tried = re.sub(rf"\b{name}\b", "b0", tried)
            found, turns = self.lookup(tried)
            if turns:
                lemma = self._lemma(head)
                proof = (f"transitivity {tried}; [apply (linear_ext _ _ _ _ {lemma}); intros {name}; cbv beta; "
                         f"finish | {turns[0][2]}]")  # fmt: skip
                return found, [(text, show(found), proof)]
        return atom(text), []

    def apart(self, head: str, name: str, g: Any, premise: Premise) -> tuple[Any, str] | None:
        """Split an expectation over independent groups."""
        groups: list[list[str]] = premise.value
        shares = [sp.Integer(1) for _ in groups]
        for f in sp.Mul.make_args(g):
            used = set(re.findall(r"\bX\d+\b", show(f)))
            at = [k for k, group in enumerate(groups) if used & set(group)]
            if len(at) != 1 or not used <= set(groups[at[0]]):
                return None
            shares[at[0]] *= f
        if sum(s != 1 for s in shares) < 2:
            return None
        functions = []
        for share, group in zip(shares, groups, strict=True):
            text = re.sub(rf"\b{name}\b", "", show(share))
            kinds = [self.st.variables[x].count("Z ->") for x in group]
            binders = " ".join(f"({x} : {'Z -> ' * k}R)" for x, k in zip(group, kinds, strict=True))
            functions.append(f"(fun {binders} => {text})")
        value, turns = sp.Integer(1), []
        parts = []
        for share in shares:
            v, t = self.part(head, name, share, ())
            value *= v
            turns += t
            parts.append(f"({head} (fun {name} => {show(share)}))")
        whole = " * ".join(f"({show(s)})" for s in shares)
        lemma = self._lemma(head)
        return value, (
            f"transitivity ({head} (fun {name} => {whole})); [apply (linear_ext _ _ _ _ {lemma}); intros {name}; "
            f"cbv beta; finish | transitivity ({' * '.join(parts)}); [exact ({premise.name} {' '.join(functions)}) | "
            f"{self.by(turns)}]]"
        )
