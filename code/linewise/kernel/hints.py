"""How Coq may prove a step: a search for the proof, of which nothing has to be trusted.

Each sign of a line that is no sum, product or power of others is turned into a form of its own: sums are split and
constants taken out of them, indices get an order, exponentials and roots are taken apart, and premises are used from
left to right. Each such turn is an equation that the proof states and proves before it uses it; what then is left is
an identity of rational functions.
"""

from __future__ import annotations

import re
from typing import Any

import sympy as sp

from linewise.derive.expectation import E, RandomVariable, Var
from linewise.kernel.elementary import Elementary
from linewise.kernel.forms import TooMuchError, pattern_of, show
from linewise.kernel.means import Means
from linewise.kernel.statement import OUTCOME, OutsideError, Premise, Scope, depth


class Search(Means, Elementary):
    """The search for the proof of one statement."""

    def proof(self) -> str:
        """Return the tactic that proves the statement."""
        st = self.st
        self.setup = [st.intros, *(f"pose proof (expectation_linear _ _ {p.name}) as L{p.name}" for p in st.premises
                                  if p.text.startswith("Expectation"))]  # fmt: skip
        for premise in st.premises:
            if premise.kind == "equation":
                self._learn(premise)
        _, one = self.turn(st.before, {})
        _, two = self.turn(st.after, {})
        if st.gap is None:
            body = [*self.use([*one, *two]), "finish_by_premises" if self.loose else self.finish()]
        else:
            _, gap = self.turn(st.gap, {})
            lemma = "at_most_by_gap" if st.relation == "<=" else "at_least_by_gap"
            equation = "; ".join([*self.use([*one, *two, *gap]), self.finish()])
            body = [f"apply ({lemma} _ _ {st.real(st.gap, {})}); [{equation} | first [solve [sign] | nra]]"]
        return ";\n".join([*self.setup, *body])

    def _learn(self, premise: Premise) -> None:
        """Turn an equation into one that gives a value to one sign."""
        scope = {s: f"i90{k}" if s != OUTCOME else f"w90{k}" for k, s in enumerate(premise.every)}
        names = tuple(scope.values())
        try:
            left, turns = self.turn(premise.left, scope)
            value, more = self.turn(premise.right, scope)
        except OutsideError:
            return
        factor, one = sp.Integer(1), left
        if isinstance(left, sp.Mul) and left.args[0].is_Rational and len(left.args) == 2:
            factor, one = left.args
        if not one.is_Symbol or one in value.free_symbols:
            self.loose = True
            return
        value = self.expand(value / factor)
        here = f"{premise.name} {' '.join(names)}" if names else premise.name
        name = f"K{premise.name}"
        goal = f"{one.name} = {show(value)}"
        kinds = " ".join(f"({n} : {'Omega' if n[0] == 'w' else self._kind(s)})" for s, n in scope.items())
        tactics = [f"pose proof ({here}) as H"]
        if names:
            tactics = [f"intros {' '.join(names)}", *tactics, "cbv beta in H", "izr_in H"]
        uses = [re.sub(r"try rewrite (\w+)$", r"try rewrite \1 in H", u) for u in self.use([*turns, *more])]
        tactics += [*uses, "solve_for H"]
        self.setup.append(f"assert ({name} : {f'forall {kinds}, ' if names else ''}{goal}) by ({'; '.join(tactics)})")
        self.known.append((re.compile(pattern_of(one.name, names)), value, name, names))

    def _kind(self, symbol: Any) -> str:
        return "Z" if self.st._is_whole(symbol) else "R"

    def turn(self, e: Any, scope: Scope) -> tuple[Any, list[tuple[str, str, str]]]:
        """Return a term's form, and the equations that lead to it."""
        self.steps += 1
        if self.steps > 4000:
            raise TooMuchError("too many signs")
        if e.is_Rational:
            return e, []
        if isinstance(e, sp.Add | sp.Mul):
            parts = [self.turn(a, scope) for a in e.args]
            return e.func(*(v for v, _ in parts)), [t for _, turns in parts for t in turns]
        if isinstance(e, sp.Pow) and e.exp.is_Integer:
            value, turns = self.turn(e.base, scope)
            if value == 0 and e.exp < 0:
                raise OutsideError("a division by 0")
            value = self.expand(value)
            if e.exp < 0 and isinstance(value, sp.Add) and value.count_ops() < 150:
                value = sp.factor(value)  # equal divisors have equal factors
            return value**e.exp, turns
        if isinstance(e, Var):
            x = e.args[0]
            square, one = self.turn(E(x**2), scope)
            mean, two = self.turn(E(x), scope)
            return square - mean**2, [*one, *two]
        if isinstance(e, sp.UnevaluatedExpr):
            return self.turn(e.args[0], scope)
        if isinstance(e, sp.Subs):
            if isinstance(e.point[0], sp.Symbol) and e.point[0] not in scope:
                scope = scope | {e.variables[0]: self.st.real(e.point[0], scope)}
                return self.turn(e.expr, scope)
            raise OutsideError("a value at a place")
        text = self.st.real(e, scope)
        value, proof = self.single(e, scope, text)
        value = self.expand(value)
        return (value, [(text, show(value), proof)] if show(value) != text else [])

    def single(self, e: Any, scope: Scope, text: str) -> tuple[Any, str]:
        """Return the form of a term that is no sum, product or power, and the tactic that proves their equality."""
        if isinstance(e, sp.Determinant):
            parts = [self.turn(x, scope) for x in e.args[0]]
            m = sp.Matrix(*e.args[0].shape, [v for v, _ in parts])
            return self.expand(m.det(method="berkowitz")), self.by([t for _, ts in parts for t in ts])
        if isinstance(e, sp.Symbol) and self.st._is_whole(e) and (e in scope) and re.search(r"\W", scope[e]):
            return self.pushed(scope[e]), "izr; finish"
        if isinstance(e, sp.Pow) and e.exp.is_Rational:
            return self.root(e, scope)
        if isinstance(e, sp.Pow):
            return self.power(e, scope)
        if isinstance(e, sp.exp):
            value, turns = self.turn(e.args[0], scope)
            value = self.expand(value)
            result, proof = self.exponential(value)
            return result, "; ".join([*self.use(turns), proof])
        if isinstance(e, sp.log):
            value, turns = self.turn(e.args[0], scope)
            result, proof = self.logarithm(self.gathered(value))
            return result, "; ".join([*self.use(turns), proof])
        if isinstance(e, sp.sin | sp.cos):
            value, turns = self.turn(e.args[0], scope)
            result, proof = self.circular(e.func, self.expand(value))
            return result, "; ".join([*self.use(turns), proof])
        if isinstance(e, sp.Sum | sp.Product | sp.Integral | sp.Limit | E):
            head, symbol, body, letter = self.st.binder(e, scope)
            name = f"{letter}{depth(scope)}"
            value, turns = self.turn(body, scope | {symbol: name})
            ends = tuple(head.removeprefix("sum ").split(" ", 1)) if head.startswith("sum ") else ()
            ends = self._ends(head) if ends else ()
            return self.bind(head, name, self.expand(value), turns, ends)
        if isinstance(e, sp.Derivative):
            head, body = re.fullmatch(r"\((\w+ .*?) \(fun x\d+ => .*\)\)", text, re.S), None
            *inner, by = e.variables
            body = sp.Derivative(e.expr, *inner, evaluate=False) if inner else e.expr
            at = self.st.real(by, scope)
            name = f"x{depth(scope)}"
            value, turns = self.turn(body, scope | {by: name})
            found = text[1:].split(" ", 1)[0]
            return self.bind(f"{found} {at}", name, self.expand(value), turns, ())
        if isinstance(e, sp.KroneckerDelta):
            one, two = (self.st.whole(a, scope) for a in e.args)
            if one == two:
                return sp.Integer(1), "apply delta_same"
            left, right = sorted((one, two))
            text = f"(delta {left} {right})"
            value, turns = self.lookup(text)
            return value, "; ".join([f"try rewrite (delta_swap {one} {two})" if left != one else "idtac",
                                     *self.use(turns), "finish"])  # fmt: skip
        if isinstance(e, sp.Function) and not isinstance(e, RandomVariable):
            return self.applied(e, scope, text)
        value, turns = self.lookup(text)
        return value, turns[0][2] if turns else "reflexivity"

    def _ends(self, head: str) -> tuple[str, str]:
        """Return the two ends of a sum from its head."""
        rest, level = head.removeprefix("sum "), 0
        for k, c in enumerate(rest):
            level += (c == "(") - (c == ")")
            if c == " " and not level:
                return rest[:k], rest[k + 1 :]
        raise OutsideError(head)

    def applied(self, e: Any, scope: Scope, text: str) -> tuple[Any, str]:
        """Return the value of a function at the forms of its arguments."""
        head = text[1:].split(" ", 1)[0]
        shown, turns = [], []
        for a, t in zip(e.args, self.st.arguments(e, scope) if head[0] == "f" else [""], strict=True):
            if t.endswith("%Z") or (t and re.fullmatch(r"[ink]\d+", t)):
                shown.append(t)
                continue
            value, more = self.turn(a, scope)
            shown.append(show(self.expand(value)))
            given = self.st.real(a, scope)
            turns += [(given, shown[-1], self.by(more))] if given != shown[-1] else []
        new = f"({head} {' '.join(shown)})"
        value, more = self.lookup(new)
        return value, "; ".join([*self.use(turns), *self.use(more), self.finish()])
