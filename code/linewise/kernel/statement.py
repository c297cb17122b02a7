"""A step of a derivation as a statement of Coq: what this module writes is what a reader has to trust.

Symbols, components and unknown functions are variables, sums are sums (``Linewise.v``), an expectation is a linear
functional. The premises are the signs of the symbols, what the rules of the step assume or take from elsewhere, and
that what the lines divide by is not 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.matrices.expressions.matexpr import MatrixElement

from linewise.derive.assumptions import SIGNS, Assumption
from linewise.derive.expectation import E, RandomVariable, RandomVector, Var, random_atoms
from linewise.derive.matrices import Inner
from linewise.derive.rule import BINDERS, bound_symbols

#: Values of bound symbols: their names in Coq.
Scope = dict[Any, str]

_FUNCTIONS = {sp.exp: "exp", sp.log: "ln", sp.sin: "sin", sp.cos: "cos", sp.tan: "tan", sp.sinh: "sinh",
              sp.cosh: "cosh", sp.tanh: "tanh", sp.Abs: "Rabs"}  # fmt: skip
_SIGNS = {"positive": "0 < {}", "nonnegative": "0 <= {}", "negative": "{} < 0", "nonpositive": "{} <= 0",
          "nonzero": "{} <> 0"}  # fmt: skip
#: From the strongest: a weaker sign says nothing more.
_STRONGEST = ("positive", "negative", "nonnegative", "nonpositive", "nonzero")
#: The outcome of what is random outside of every expectation.
OUTCOME = "o0"


class OutsideError(Exception):
    """What the language of the kernel does not hold."""


@dataclass(frozen=True)
class Premise:
    """A premise: what it says in Coq, the equation and the symbols that stand for any, and what a page calls it.

    kind : "sign", "equation", "independence", "same law", "linear", or "side" (a line is defined only then).
    """

    name: str
    text: str
    kind: str
    left: Any = None
    right: Any = None
    every: tuple[Any, ...] = ()
    words: str = ""
    value: Any = None


@dataclass
class Statement:
    """A step between two lines, as a statement of Coq.

    sides : include what the lines need to be defined as premises.
    """

    before: Any
    after: Any
    relation: str
    rules: Sequence[Any] = ()
    gap: Any = None
    sides: bool = True
    premises: list[Premise] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._heads: dict[str, str] = {}
        assumptions = list(dict.fromkeys(a for rule in self.rules for a in rule.assumes))
        stated = [pair for rule in self.rules for pair in rule.states]
        lines = [self.before, self.after, *([] if self.gap is None else [self.gap])]
        sides = [s for a in assumptions for s in (a.left, a.right) if isinstance(s, sp.Basic)]
        all_ = [*lines, *sides, *(s for pair in stated for s in pair)]
        self._learn(all_)
        self.goal = f"{self.real(self.before, {})} {self.relation} {self.real(self.after, {})}"
        if self.gap is not None:
            self.real(self.gap, {})
        bound = set().union(*map(_bound, lines))
        for a in assumptions:
            self._assume(a, bound)
        for left, right in stated:
            self._equation(left, right, (), bound, "shown before")
        if self.sides:
            for needed in self._needed(lines):
                self._premise(needed[0], "side", words=needed[1], value=needed[2])
        signs = list(self._signs())
        self.premises[:0] = signs

    @property
    def text(self) -> str:
        """The whole statement."""
        names = " ".join(f"({name} : {kind})" for name, kind in self.variables.items())
        return "".join([f"forall {names},\n" if names else "", *(f"  {p.text} ->\n" for p in self.premises), self.goal])

    @property
    def intros(self) -> str:
        """The tactic that names the variables and premises."""
        names = [*self.variables, *(p.name for p in self.premises)]
        return f"intros {' '.join(names)}" if names else "idtac"

    # --- names

    def _learn(self, expressions: Sequence[Any]) -> None:
        """Find out which symbols are integers, and which arguments of unknown functions."""
        self._places: set[Any] = set()
        self._arguments: dict[Any, list[bool]] = {}
        signs = [sign for e in expressions for sign in sp.preorder_traversal(e)]
        for sign in signs:
            if isinstance(sign, sp.Sum | sp.Product):
                self._places |= {s for limit in sign.limits for part in limit for s in part.free_symbols}
            elif isinstance(sign, sp.Indexed):
                self._places |= {s for i in sign.indices for s in i.free_symbols}
            elif isinstance(sign, sp.KroneckerDelta):
                self._places |= sign.free_symbols
        for sign in signs:
            if isinstance(sign, AppliedUndef):
                whole = [bool(a.is_Integer or (a.free_symbols and self._is_whole(a))) for a in sign.args]
                known = self._arguments.setdefault(sign.func, whole)
                self._arguments[sign.func] = [a and b for a, b in zip(known, whole, strict=True)]

    def _is_whole(self, e: Any) -> bool:
        if isinstance(e, sp.Symbol):
            return not isinstance(e, RandomVariable) and bool(e.is_integer or e in self._places)
        if isinstance(e, sp.Pow):
            return bool(e.exp.is_Integer and e.exp > 0) and self._is_whole(e.base)
        return bool(e.is_Integer) or (isinstance(e, sp.Add | sp.Mul) and all(map(self._is_whole, e.args)))

    def _variable(self, key: Any, letter: str, kind: str) -> str:
        if key not in self._names:
            name = f"{letter}{sum(n[0] == letter for n in self._names.values())}"
            self._names[key] = name
            self.variables[name] = kind
        return self._names[key]

    def functional(self, key: Any, letter: str, kind: str, premise: str) -> str:
        """Return the name of a sign that a premise makes linear, or extensional."""
        new = key not in self._names
        name = self._variable(key, letter, kind)
        if new:
            self._premise(premise.format(name), "linear", value=name)
        return name

    def _premise(self, text: str, kind: str, **rest: Any) -> None:
        if all(p.text != text for p in self.premises):
            self.premises.append(Premise(f"P{len(self.premises)}", text, kind, **rest))

    # --- premises

    def _signs(self) -> Iterator[Premise]:
        for k, (key, name) in enumerate(self._names.items()):
            sign = next((s for s in _STRONGEST if getattr(key, f"is_{s}", None)), None)
            if isinstance(key, sp.Symbol) and sign:
                kind = self.variables[name]
                said = _SIGNS[sign].format(f"{name} w" if "Omega" in kind else name)
                text = f"(forall w, {said})" if "Omega" in kind else f"({said})%Z" if kind == "Z" else said
                yield Premise(f"S{k}", text, "sign")
            elif isinstance(key, tuple) and key[0] == "base":
                base, count = key[1], key[2]
                sign = next((s for s in _STRONGEST if getattr(base[(1,) * count], f"is_{s}", None)), None)
                if sign:
                    places = [f"j{n}" for n in range(count)] + (["w"] if "Omega" in self.variables[name] else [])
                    said = _SIGNS[sign].format(f"({name} {' '.join(places)})")
                    yield Premise(f"S{k}", f"(forall {' '.join(places)}, {said})", "sign")
            elif isinstance(key, tuple) and key[0] == "function" and getattr(key[1], "args", None) is not None:
                example = key[1](*(sp.Symbol(f"x{n}") for n in range(key[2])))
                sign = next((s for s in _STRONGEST if getattr(example, f"is_{s}", None)), None)
                if sign:
                    places = [f"j{n}" for n in range(key[2])]
                    said = _SIGNS[sign].format(f"({name} {' '.join(places)})")
                    yield Premise(f"S{k}", f"(forall {' '.join(places)}, {said})", "sign")

    def _assume(self, a: Assumption, bound: set[Any]) -> None:
        if a.kind in ("definition", "hypothesis", "moment"):
            self._equation(a.left, a.right, a.every, bound, a.kind)
        elif a.kind in SIGNS and a.kind != "integer":
            scope, names = self._any(sorted(set(a.every) | (a.left.free_symbols & bound), key=str))
            text = _SIGNS[a.kind].format(self.real(a.left, scope))
            self._premise(f"(forall {names}, {text})" if names else text, "side", words=str(a), value=a)
        elif a.kind == "independence":
            self._independent(a.left)
        elif a.kind == "same law":
            expectation = self.expectation()
            first, *others = (self.atom(x) for x in a.left)
            for x, other in zip(a.left[1:], others, strict=True):
                one, two = (f"{expectation} (fun w => F ({y} w))" for y in (other, first))
                self._premise(f"(forall F : R -> R, {one} = {two})", "same law", value=(self.atom(x), first))
        elif a.kind not in ("integer", "range"):
            raise OutsideError(a.kind)

    def _equation(self, left: Any, right: Any, every: Any, bound: set[Any], words: str) -> None:
        if isinstance(left, sp.MatrixExpr | sp.MatrixBase):
            raise OutsideError("matrices")
        own = sorted(set(every) | (left.free_symbols & bound), key=str)
        own = [s for s in own if not isinstance(s, sp.Indexed | sp.IndexedBase)]
        scope, names = self._any(own)
        is_random = any("Omega" in self.variables.get(n, "") for n in self._loose([left, right]))
        if is_random:
            names, scope = f"{names} (w : Omega)".strip(), scope | {OUTCOME: "w"}
        text = f"{self.real(left, scope)} = {self.real(right, scope)}"
        every_ = (*own, *([OUTCOME] if is_random else []))
        self._premise(f"(forall {names}, {text})" if names else text, "equation", left=left, right=right,
                      every=every_, words=words)  # fmt: skip

    def _loose(self, sides: Sequence[Any]) -> list[str]:
        outside = [s.replace(lambda e: isinstance(e, E | Var), lambda e: sp.Integer(0)) for s in sides]
        return [self.atom(x) for s in outside for x in sp.preorder_traversal(s)
                if isinstance(x, RandomVariable | RandomVector)]  # fmt: skip

    def _any(self, symbols: Sequence[Any]) -> tuple[Scope, str]:
        scope = {s: f"k{n}" for n, s in enumerate(symbols)}
        return scope, " ".join(f"({scope[s]} : {'Z' if self._is_whole(s) else 'R'})" for s in symbols)

    def _independent(self, groups: Any) -> None:
        expectation = self.expectation()
        groups = [sorted(group, key=str) for group in groups]
        names = [[self.atom(x) for x in group] for group in groups]
        kinds = [[self.variables[n].replace(" -> Omega", "").replace("Omega -> ", "") for n in g] for g in names]
        functions = " ".join(f"(F{k} : {' -> '.join(f'({t})' for t in kind)} -> R)" for k, kind in enumerate(kinds))
        parts = [f"F{k} {' '.join(map(self._at_outcome, group))}" for k, group in enumerate(names)]
        whole = f"{expectation} (fun w => {' * '.join(parts)})"
        split = " * ".join(f"{expectation} (fun w => {part})" for part in parts)
        self._premise(f"(forall {functions}, {whole} = {split})", "independence", value=names)

    def _at_outcome(self, name: str) -> str:
        places = self.variables[name].count("Z ->")
        js = " ".join(f"j{n}" for n in range(places))
        return f"(fun {js} => {name} {js} w)" if places else f"({name} w)"

    def _needed(self, lines: Sequence[Any]) -> Iterator[tuple[str, str, Any]]:
        """Yield what the lines need to be defined, as far as it holds no bound symbol: text, words and value."""
        bound = set().union(*map(bound_symbols, lines))
        for sign in (sign for line in lines for sign in sp.preorder_traversal(line)):
            value, kind = None, "nonzero"
            if isinstance(sign, sp.Pow) and sign.exp.is_negative is not False and not sign.exp.is_nonnegative:
                value = sign.base
            elif isinstance(sign, sp.log):
                value, kind = sign.args[0], "positive"
            elif isinstance(sign, sp.Pow) and sign.exp.is_Rational and not sign.exp.is_Integer:
                value, kind = sign.base, "nonnegative"
            if value is not None and not value.free_symbols & bound and not random_atoms(value):
                parts = sp.Mul.make_args(value) if kind == "nonzero" else (value,)
                for part in (p.base if isinstance(p, sp.Pow) and p.exp.is_positive else p for p in parts):
                    if not getattr(part, f"is_{kind}") and not isinstance(part, sp.exp):
                        needed = Assumption(kind, part)  # type: ignore[arg-type]
                        with suppress(OutsideError):
                            yield _SIGNS[kind].format(self.real(part, {})), "", needed
            if isinstance(sign, sp.Sum):
                yield from self._ranges(sign, bound)

    def _ranges(self, total: Any, bound: set[Any]) -> Iterator[tuple[str, str, Any]]:
        for name, *ends in total.limits:
            if len(ends) != 2 or any(end.is_infinite or end.free_symbols & bound for end in ends):
                continue
            low, high = ends
            try:
                if not (high - low + 1).is_nonnegative:
                    text = f"({self.whole(low, {})} <= {self.whole(high, {})} + 1)%Z"
                    yield text, "", Assumption("nonnegative", high - low + 1)
                for d in total.function.atoms(sp.KroneckerDelta):
                    for here, other in permutations(d.args[:2]):
                        never = (high - other).is_negative or (other - low).is_negative  # would prove anything
                        if here == name and not other.free_symbols & bound and not never:
                            at = self.whole(other, {})
                            yield (f"({self.whole(low, {})} <= {at} <= {self.whole(high, {})})%Z", "",
                                   Assumption("range", other, sp.Tuple(low, high)))  # fmt: skip
            except OutsideError:
                continue

    # --- terms

    def atom(self, e: Any) -> str:
        """Return the name of a symbol, of what components belong to, or of an unknown function."""
        if isinstance(e, RandomVariable):
            self.expectation()
            return self._variable(e, "X", "Omega -> R")
        if isinstance(e, RandomVector):
            self.expectation()
            count = next(k[2] for k in [*self._names, ("base", e, 1)] if isinstance(k, tuple) and k[:2] == ("base", e))
            return self._variable(("base", e, count), "X", "Z -> " * count + "Omega -> R")
        if self._is_whole(e):
            return self._variable(e, "n", "Z")
        return self._variable(e, "v", "R")

    def expectation(self) -> str:
        """Return the name of the expectation."""
        if "Omega" not in self.variables:
            self.variables |= {"Omega": "Type", OUTCOME: "Omega"}
        return self.functional("E", "E", "(Omega -> R) -> R", "Expectation {}")

    def whole(self, e: Any, scope: Scope) -> str:
        """Return an integer as Coq writes it."""
        if e.is_Integer:
            return f"({e})%Z" if e < 0 else f"{e}%Z"
        if isinstance(e, sp.Symbol) and self._is_whole(e):
            if e in scope:
                return scope[e]
            if e.is_Dummy:
                raise OutsideError("an index that nothing binds")
            return self.atom(e)
        if isinstance(e, sp.Add | sp.Mul):
            sign = " + " if isinstance(e, sp.Add) else " * "
            return f"({sign.join(self.whole(a, scope) for a in e.args)})%Z"
        if isinstance(e, sp.Pow) and e.exp.is_Integer and e.exp > 0:
            return f"({' * '.join([self.whole(e.base, scope)] * int(e.exp))})%Z"
        raise OutsideError("a place that is no integer")

    def real(self, e: Any, scope: Scope) -> str:
        """Return a number as Coq writes it."""
        if isinstance(e, sp.Integer):
            return f"({e})" if e < 0 else str(e)
        if isinstance(e, sp.Rational):
            return f"({e.p} / {e.q})" if e > 0 else f"(- ({-e.p} / {e.q}))"
        if isinstance(e, sp.Symbol):
            if self._is_whole(e):
                return f"(IZR {self.whole(e, scope)})"
            if isinstance(e, RandomVariable):
                return f"({self.atom(e)} {scope.get(OUTCOME, OUTCOME)})"
            return scope[e] if e in scope else self.atom(e)
        if isinstance(e, sp.Add | sp.Mul):
            return f"({(' + ' if isinstance(e, sp.Add) else ' * ').join(self.real(a, scope) for a in e.args)})"
        if isinstance(e, sp.Pow):
            return self._power(e, scope)
        if e == sp.pi:
            return "PI"
        if e == sp.E:
            return "(exp 1)"
        if type(e) in _FUNCTIONS:
            return f"({_FUNCTIONS[type(e)]} {self.real(e.args[0], scope)})"
        if isinstance(e, sp.UnevaluatedExpr):
            return self.real(e.args[0], scope)
        if isinstance(e, sp.Indexed | MatrixElement):
            return self._component(e, scope)
        if isinstance(e, sp.KroneckerDelta):
            return f"(delta {self.whole(e.args[0], scope)} {self.whole(e.args[1], scope)})"
        if isinstance(e, sp.Sum | sp.Product | sp.Integral | sp.Limit | E):
            head, symbol, body, letter = self.binder(e, scope)
            name = f"{letter}{depth(scope)}"
            return f"({head} (fun {name} => {self.real(body, scope | {symbol: name})}))"
        if isinstance(e, Var):
            x = e.args[0]
            return f"({self.real(E(x**2), scope)} + (-1) * {self.real(E(x), scope)} ^ 2)"
        if isinstance(e, sp.Derivative):
            return self._derivative(e, scope)
        if isinstance(e, sp.Determinant) and isinstance(e.args[0], sp.MatrixBase):
            return self._determinant(e.args[0], scope)
        if isinstance(e, sp.Subs) and len(e.variables) == 1 and not self._is_whole(e.variables[0]):
            return self.real(e.expr, scope | {e.variables[0]: self.real(e.point[0], scope)})
        if isinstance(e, sp.Function):
            return f"({self.function(e)} {' '.join(self.arguments(e, scope))})"
        raise OutsideError(f"the sign {type(e).__name__}")

    def function(self, e: Any) -> str:
        """Return the name of an unknown function, or of one that the kernel knows nothing of."""
        whole = self._arguments.get(e.func, [False] * len(e.args))
        kind = " -> ".join([*("Z" if w else "R" for w in whole), "R"])
        return self._variable(("function", e.func, len(e.args)), "f", kind)

    def arguments(self, e: Any, scope: Scope) -> list[str]:
        """Return the arguments of a function."""
        whole = self._arguments.get(e.func, [False] * len(e.args))
        return [self.whole(a, scope) if w else self.real(a, scope) for a, w in zip(e.args, whole, strict=True)]

    def _component(self, e: Any, scope: Scope) -> str:
        if isinstance(e, MatrixElement):
            base, places = sp.IndexedBase(str(e.parent)), (e.i, e.j)
        else:
            base, places = e.base, e.indices
        key, here = ("base", base, len(places)), " ".join(self.whole(i, scope) for i in places)
        if isinstance(base, RandomVector):
            self.expectation()
            name = self._variable(key, "X", "Z -> " * len(places) + "Omega -> R")
            return f"({name} {here} {scope.get(OUTCOME, OUTCOME)})"
        return f"({self._variable(key, 'a', 'Z -> ' * len(places) + 'R')} {here})"

    def _power(self, e: Any, scope: Scope) -> str:
        base, power = e.base, e.exp
        if power.is_Integer:
            shown = self.real(base, scope)
            shown = shown if abs(power) == 1 else f"({shown} ^ {abs(power)})"
            return shown if power > 0 else f"(/ {shown})"
        if power.is_Rational and power.q == 2:
            root = f"(sqrt {self.real(base, scope)})"
            root = root if abs(power.p) == 1 else f"({root} ^ {abs(power.p)})"
            return root if power > 0 else f"(/ {root})"
        if base.is_positive or isinstance(base, sp.exp):
            return f"(Rpower {self.real(base, scope)} {self.real(power, scope)})"
        raise OutsideError("a power of what may be negative")

    def binder(self, e: Any, scope: Scope) -> tuple[str, Any, Any, str]:
        """Return the sign that binds a symbol with its ends, the symbol, what stands under it, and a letter."""
        if isinstance(e, E):
            return self.expectation(), OUTCOME, e.args[0], "w"
        if isinstance(e, sp.Limit):
            whole = self._is_whole(e.args[1])
            kind = f"({'Z' if whole else 'R'} -> R) -> R"
            at = self.functional(("limit", str(e.args[2:]), whole), "L", kind, "Extensional {}")
            return at, e.args[1], e.args[0], "i" if whole else "x"
        name, *ends = e.limits[-1]
        body = e.func(e.function, *e.limits[:-1]) if len(e.limits) > 1 else e.function
        if len(ends) != 2:
            raise OutsideError("an integral without ends")
        low, high = ends
        if isinstance(e, sp.Integral):
            endless = {end: f"v_{'' if end > 0 else 'minus_'}infinity" for end in ends if end.is_infinite}
            at = [endless.get(end) or self.real(end, scope) for end in ends]
            self.variables |= dict.fromkeys(endless.values(), "R")
            head = self.functional("integral", "I", "R -> R -> (R -> R) -> R", "(forall a b, Linear ({} a b))")
            return f"{head} {' '.join(at)}", name, body, "x"
        if high.is_infinite or low.is_infinite:
            if isinstance(e, sp.Product) or low.is_infinite:
                raise OutsideError("an endless product")
            head = self.functional("series", "I", "Z -> (Z -> R) -> R", "(forall a, Linear ({} a))")
            return f"{head} {self.whole(low, scope)}", name, body, "i"
        at = [self.whole(low, scope), self.whole(high, scope)]
        if isinstance(e, sp.Product):
            head = self.functional("product", "I", "Z -> Z -> (Z -> R) -> R", "(forall a b, Extensional ({} a b))")
            return f"{head} {at[0]} {at[1]}", name, body, "i"
        return f"sum {at[0]} {at[1]}", name, body, "i"

    def _derivative(self, e: Any, scope: Scope) -> str:
        if any(not v.is_Symbol or self._is_whole(v) for v in e.variables):
            raise OutsideError("a derivative by a component")
        *inner, by = e.variables
        body = sp.Derivative(e.expr, *inner, evaluate=False) if inner else e.expr
        head = self.functional("derivative", "D", "R -> (R -> R) -> R", "(forall x, Linear ({} x))")
        name = f"x{depth(scope)}"
        return f"({head} {self.real(by, scope)} (fun {name} => {self.real(body, scope | {by: name})}))"

    def _determinant(self, m: Any, scope: Scope) -> str:
        terms = []
        for order in permutations(range(m.rows)):
            factors = [self.real(m[i, j], scope) for i, j in enumerate(order)]
            terms.append(" * ".join([f"({sp.combinatorics.Permutation(list(order)).signature()})", *factors]))
        return f"({' + '.join(terms)})"


def depth(scope: Scope) -> int:
    """Return how many signs stand around a place."""
    return sum(bool(re.fullmatch(r"[iwx]\d+", name)) for name in scope.values())


def _bound(line: Any) -> set[Any]:
    found: set[Any] = set()
    for sign in sp.sympify(line).atoms(*BINDERS):
        if isinstance(sign, sp.Sum | sp.Product | sp.Integral):
            found |= {limit[0] for limit in sign.limits}
    return found


def entries(before: Any, line: Any, mistaken: bool = False) -> list[tuple[Any, Any]]:
    """Return the pairs of expressions that a step relates: one, or one for each entry of a matrix."""
    after = line.mistake.line if mistaken and line.mistake else line.value
    if isinstance(before, sp.MatrixBase) or isinstance(after, sp.MatrixBase):
        if getattr(before, "shape", None) != getattr(after, "shape", None):
            raise OutsideError("matrices of two shapes")
        return list(zip(before, after, strict=True))
    if before.has(Inner) or after.has(Inner):
        raise OutsideError("matrices")
    return [(before, after)]
