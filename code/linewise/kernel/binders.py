"""Finite sums and other signs that bind a symbol, over forms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from itertools import permutations
from typing import Any

import sympy as sp

from linewise.kernel.forms import PLACE, Forms, Sum, atom, deps, show, split
from linewise.kernel.statement import OutsideError

_MOST_INDICES = 4


class Binders(Forms):
    """The part of the search that splits sums, takes constants out of them, and puts their indices into an order."""

    def bind(
        self, head: str, name: str, value: Any, turns: list[tuple[str, str, str]], ends: tuple[str, ...]
    ) -> tuple[Any, str]:
        """Return the form of a sign over what stands under it, and the tactic."""
        value = self.expand(value)
        ext = self.ext(head, ends)
        linear = self.linear(head, ends)
        if linear is None:
            result, more = self.lookup(self.closed(head, name, value))
            under = f"({head} (fun {name} => {show(value)}))"
            return result, (f"transitivity {under}; [{ext}; intros {name}; cbv beta; {self.by(turns)} | "
                            f"{'; '.join([*self.use(more), 'finish'])}]")  # fmt: skip
        shares: dict[Any, Any] = {}
        for term in sp.Add.make_args(value):
            if term != 0:
                c, g = split(term, name)
                shares[g] = shares.get(g, 0) + c
        pairs = sorted(((g, c) for g, c in shares.items()), key=lambda p: show(p[0]))
        result, more = sp.Integer(0), []
        shown: list[tuple[str, str]] = []
        for g, c in pairs:
            v, t = self.part(head, name, g, ends)
            result += c * v
            more += t
            shown.append((show(c), show(g)))
        shown = shown or [("0", "1")]
        body = reduce(lambda a, b: f"({b} + {a})", [f"({c} * {g})" for c, g in reversed(shown)])
        apart = reduce(lambda a, b: f"({b} + {a})",
                       [f"({c} * ({head} (fun {name} => {g})))" for c, g in reversed(shown)])  # fmt: skip
        first = "; ".join([f"{ext}; intros {name}", f"intros H{name}" if ends else "idtac", "cbv beta", self.by(turns)])
        second = f"transitivity {apart}; [{linear} | {self.by(more)}]"
        return result, f"transitivity ({head} (fun {name} => {body})); [{first} | {second}]"

    def ext(self, head: str, ends: tuple[str, ...]) -> str:
        """Return the tactic for equal signs over equal terms."""
        if ends:
            return "apply sum_ext"
        lemma = self._lemma(head)
        return f"apply (linear_ext _ _ _ _ {lemma})" if lemma and self.linear(head, ends) else f"apply ({lemma})"

    def linear(self, head: str, ends: tuple[str, ...]) -> str | None:
        """Return the tactic that splits a linear sign, or None."""
        if ends:
            return "split_sum"
        lemma = self._lemma(head)
        premise = next(p for p in self.st.premises if p.kind == "linear" and p.value == head.split(" ")[0])
        return None if "Extensional" in premise.text else f"split_linear ({head}) ({lemma})"

    def _lemma(self, head: str) -> str:
        first, *ends = head.split(" ", 1)
        premise = next(p for p in self.st.premises if p.kind == "linear" and p.value == first)
        name = f"L{premise.name}" if premise.text.startswith("Expectation") else premise.name
        return f"({name} {ends[0]})" if ends else name

    def closed(self, head: str, name: str, value: Any) -> str:
        """Return a sign over a form, with a name for what it binds that depends on the form alone."""
        text = show(value)
        height = max([-1, *(int(n) for n in re.findall(r"\bb(\d+)\b", text))]) + 1
        new = {s: atom(re.sub(rf"\b{name}\b", f"b{height}", s.name)) for s in value.free_symbols}
        return f"({head} (fun b{height} => {show(value.xreplace(new))}))"

    def part(self, head: str, name: str, g: Any, ends: tuple[str, ...]) -> tuple[Any, list[tuple[str, str, str]]]:
        """Return a sign over one product."""
        shown = f"({head} (fun {name} => {show(g)}))"
        if ends:
            value, proof = self.total(name, g, *ends)
        elif head.startswith("E"):
            value, proof = self.mean(head, name, g)
        else:
            closed = self.closed(head, name, g)
            value, more = self.lookup(closed)
            proof = more[0][2] if more else "reflexivity"
        value = self.expand(value)
        return value, [(shown, show(value), proof)] if show(value) != shown else []

    def total(self, name: str, g: Any, low: str, high: str) -> tuple[Any, str]:
        """Return a finite sum of one product."""
        here = atom(f"(IZR {name})")
        if g.free_symbols <= {here} and g.is_polynomial(here):
            k = sp.Symbol("k")
            poly = sp.expand(sp.summation(g.subs(here, k), (k, 0, here - 1)))
            closed = self.expand(poly.subs(here, self.pushed(high) + 1) - poly.subs(here, self.pushed(low)))
            function = f"(fun ({name} : Z) => {show(poly)})" if poly != 0 else f"(fun ({name} : Z) => 0)"
            return closed, f"closed_form {low} {high} {function}"
        for f in sp.Mul.make_args(g):
            match = f.is_Symbol and re.fullmatch(rf"\(delta ({PLACE}) ({PLACE})\)", f.name)
            if match and name in match.groups() and match[1] != match[2]:
                other = match[2] if match[1] == name else match[1]
                if re.search(rf"\b{name}\b", other):
                    continue
                rest = g / f
                new = self.renamed(rest, {name: other})
                new, turns = self.again(self.expand(new))
                return new, "; ".join([f"collapse {low} {high} {other} (fun ({name} : Z) => {show(rest)})",
                                       *self.use(turns), "finish"])  # fmt: skip
        inner = [f for f in sp.Mul.make_args(g) for f in [f.as_base_exp()[0]] if f.is_Symbol and f.name in self.sums]
        if any(name in deps(f) for f in inner):
            return self.ordered(name, g, low, high)
        text = self.remember(name, g, low, high)
        value, turns = self.lookup(text)
        return value, turns[0][2] if turns else "reflexivity"

    def remember(self, name: str, g: Any, low: str, high: str) -> str:
        """Return a sum as a term, and remember what it adds."""
        text = self.closed(f"sum {low} {high}", name, g)
        self.sums[text] = Sum(low, high, name, g)
        return text

    def mean(self, head: str, name: str, g: Any) -> tuple[Any, str]:
        """Return the expectation of one product, and the tactic."""
        raise NotImplementedError

    # --- the order of indices

    def ordered(self, name: str, g: Any, low: str, high: str) -> tuple[Any, str]:
        """Return a sum over sums, in an order of the indices that depends on the terms alone."""
        binders, flat = self.flatten(name, g, low, high)
        free = all(not re.search(rf"\b{b[0]}\b", e) for b in binders for _, *ends in binders for e in ends)
        if len(binders) > _MOST_INDICES or not free:
            text = self.remember(name, g, low, high)
            value, turns = self.lookup(text)
            return value, turns[0][2] if turns else "reflexivity"
        orders = list(permutations(binders))
        nests = {order: self.nest(order, flat) for order in orders}
        best = min(orders, key=lambda o: show(nests[o]))
        value, turns = self.again(nests[best])
        tactics = [f"transitivity {self.flat_text(orders[0], flat)}; "
                   f"[symmetry; {self.unnest(orders[0], flat)} | idtac]"]  # fmt: skip
        now = list(orders[0])
        for place, binder in enumerate(best):
            at = now.index(binder)
            while at > place:
                now[at - 1], now[at] = now[at], now[at - 1]
                at -= 1
                go = "; ".join(f"apply sum_ext; intros {b[0]} H{b[0]}" for b in now[:at])
                tactics.append(
                    f"transitivity {self.flat_text(now, flat)}; [{go + '; ' if go else ''}apply sum_swap | idtac]"
                )
        tactics.append(f"transitivity {show(nests[best])}; [{self.unnest(best, flat)} | {self.by(turns)}]")
        return value, "; ".join(tactics)

    def flatten(self, name: str, g: Any, low: str, high: str) -> tuple[list[tuple[str, str, str]], Any]:
        """Return all sums of a nest, and what they add."""
        binders, flat = [(name, low, high)], sp.Integer(1)
        for f in sp.Mul.make_args(g):
            base, power = f.as_base_exp()
            if base.is_Symbol and base.name in self.sums and name in deps(base) and power.is_Integer and power > 0:
                total = self.sums[base.name]
                for _ in range(int(power)):
                    new = f"i{next(self.fresh) + 100}"
                    more, inside = self.flatten(
                        new, self.renamed(total.summand, {total.name: new}), total.low, total.high
                    )
                    binders += more
                    flat *= inside
            else:
                flat *= f
        return binders, flat

    def nest(self, order: Sequence[tuple[str, str, str]], flat: Any) -> Any:
        """Return the sums in an order, each factor as far out as it can stand."""
        value = flat
        for name, low, high in reversed(order):
            c, g = split(value, name)
            if g == 1:
                raise OutsideError("a sum of equal terms in a nest")
            value = c * atom(self.remember(name, g, low, high))
        return value

    def flat_text(self, order: Sequence[tuple[str, str, str]], flat: Any) -> str:
        """Return the sums in an order, with all factors under the last."""
        return reduce(lambda t, b: f"(sum {b[1]} {b[2]} (fun {b[0]} => {t}))", reversed(order), show(flat))

    def unnest(self, order: Sequence[tuple[str, str, str]], flat: Any) -> str:
        """Return the tactic for: the flat sums are the nest."""
        if not order:
            return "reflexivity"
        (name, low, high), *rest = order
        inner = self.nest(rest, flat)
        c, g = split(inner, name)
        shown = f"({show(c)} * ({show(g)}))"
        outside = f"({show(c)} * (sum {low} {high} (fun {name} => {show(g)})))"
        deeper = f"transitivity {show(inner)}; [{self.unnest(rest, flat)} | finish]" if rest else "finish"
        return (
            f"transitivity (sum {low} {high} (fun {name} => {shown})); "
            f"[apply sum_ext; intros {name} H{name}; {deeper} | transitivity {outside}; [apply sum_scale | finish]]"
        )
