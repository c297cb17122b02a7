"""How Coq may prove a step: a search for the proof, of which nothing has to be trusted.

Each sign of a line that is no sum, product or power of others is turned into a form of its own: sums are split and
constants taken out of them, indices get an order, exponentials and roots are taken apart, and premises are used from
left to right. Each such turn is an equation that the proof states and proves before it uses it; what then is left is
an identity of rational functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count, permutations
from typing import Any

import sympy as sp

from linewise.derive.expectation import E, RandomVariable, Var
from linewise.kernel.statement import OUTCOME, OutsideError, Premise, Scope, Statement, depth

#: An equation between two terms and the tactic that proves it.
Turn = tuple[str, str, str]
_BOUND = re.compile(r"\b[iwx]\d+\b")
_PLACE = r"\w+(?:%Z)?|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)(?:%Z)?"
_MOST_INDICES = 4


@dataclass(frozen=True)
class Sum:
    """A finite sum as it stands in an atom: its ends, its index and what is added."""

    low: str
    high: str
    name: str
    summand: Any


class TooMuchError(OutsideError):
    """A form that would take too long."""


def atom(text: str) -> sp.Symbol:
    """Return a term of Coq as a symbol."""
    return sp.Symbol(text)


def show(value: Any) -> str:
    """Return a value as Coq writes it, the same for equal values."""
    if value.is_Integer:
        return str(value) if value >= 0 else f"({value})"
    if value.is_Rational:
        return f"({value.p} / {value.q})" if value > 0 else f"(- ({-value.p} / {value.q}))"
    if value.is_Symbol:
        return str(value.name)
    if isinstance(value, sp.Add | sp.Mul):
        return f"({(' + ' if isinstance(value, sp.Add) else ' * ').join(sorted(map(show, value.args)))})"
    if isinstance(value, sp.Pow) and value.exp.is_Integer:
        power = f"({show(value.base)} ^ {abs(value.exp)})" if abs(value.exp) != 1 else show(value.base)
        return power if value.exp > 0 else f"(/ {power})"
    raise OutsideError(f"a form with {value}")


def deps(value: Any) -> set[str]:
    """Return the bound names that a value holds."""
    return set().union(*(_BOUND.findall(s.name) for s in value.free_symbols)) if value.free_symbols else set()


def split(term: Any, name: str) -> tuple[Any, Any]:
    """Return the factors of a term that do not hold a bound name, and those that do."""
    pairs = [(f, name in deps(f)) for f in sp.Mul.make_args(term)]
    return sp.Mul(*(f for f, in_ in pairs if not in_)), sp.Mul(*(f for f, in_ in pairs if in_))


class Search:
    """The search for the proof of one statement."""

    def __init__(self, statement: Statement) -> None:
        self.st = statement
        self.sums: dict[str, Sum] = {}
        self.squares: dict[Any, Any] = {}
        self.known: list[tuple[re.Pattern[str], Any, str, tuple[str, ...]]] = []
        self.fresh = count()
        self.setup: list[str] = []
        self.busy: set[str] = set()
        self.steps = 0
        self.values: dict[str, Any] = {}
        self.loose = False

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
            body = [f"apply ({lemma} _ _ {st.real(st.gap, {})}); [{equation} | solve [sign]]"]
        return ";\n".join([*self.setup, *body])

    def finish(self) -> str:
        """Return the last tactic: an identity of rational functions."""
        return "finish"

    def use(self, turns: Sequence[Turn]) -> Iterator[str]:
        """Yield the tactics that prove some equations and rewrite by them, the longest first."""
        seen: dict[str, Turn] = {}
        for turn in turns:
            seen.setdefault(turn[0], turn)
        for left, right, tactic in sorted(seen.values(), key=lambda t: -len(t[0])):
            name = f"T{next(self.fresh)}"
            yield f"assert ({name} : {left} = {right}) by ({tactic}); try rewrite {name}"

    # --- premises

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
        tactics = [f"intros {' '.join(names)}", f"pose proof ({here}) as H", "cbv beta in H", "izr_in H"] if names else [
            f"pose proof ({premise.name}) as H"]  # fmt: skip
        uses = [u.replace("try rewrite", "try rewrite") for u in self.use([*turns, *more])]
        uses = [re.sub(r"try rewrite (\w+)$", r"try rewrite \1 in H", u) for u in uses]
        tactics += [*uses, "solve_for H"]
        self.setup.append(f"assert ({name} : {f'forall {kinds}, ' if names else ''}{goal}) by ({'; '.join(tactics)})")
        pattern, met = "", set()
        for part in re.split(rf"\b({'|'.join(names)})\b", one.name) if names else [one.name]:
            pattern += (rf"(?P={part})" if part in met else rf"(?P<{part}>{_PLACE})") if part in names else re.escape(part)
            met |= {part} & set(names)
        self.known.append((re.compile(pattern), value, name, names))

    def _kind(self, symbol: Any) -> str:
        return "Z" if self.st._is_whole(symbol) else "R"

    def lookup(self, text: str) -> tuple[Any, list[Turn]]:
        """Return what a sign is by a premise, or the sign itself."""
        for pattern, value, name, names in self.known:
            found = pattern.fullmatch(text)
            if found and name not in self.busy:
                given = {n: found[n] for n in names}
                new = self.renamed(value, given)
                self.busy.add(name)
                try:
                    new, turns = self.again(new)
                finally:
                    self.busy.discard(name)
                with_ = f"({name} {' '.join(f'{given[n]}' for n in names)})" if names else name
                proof = "; ".join([f"rewrite {with_}", "izr", *self.use(turns), self.finish()])
                return new, [(text, show(new), proof)]
        return atom(text), []

    def renamed(self, value: Any, given: dict[str, str]) -> Any:
        """Return a value with other names for the free ones."""
        if not given:
            return value
        new: dict[Any, Any] = {}
        for s in value.free_symbols:
            text = s.name
            for n, v in given.items():
                text = re.sub(rf"\b{n}\b", v, text)
            if re.fullmatch(r"\(IZR \(.*\)%Z\)", text):
                new[s] = self.pushed(text[5:-1])
                continue
            new[s] = atom(text)
            if s.name in self.sums and text != s.name:
                total = self.sums[s.name]
                low, high = (reduce(lambda t, p: re.sub(rf"\b{p[0]}\b", p[1], t), given.items(), e)
                             for e in (total.low, total.high))  # fmt: skip
                self.sums[text] = Sum(low, high, total.name, self.renamed(total.summand, given))
        return value.xreplace(new)

    def pushed(self, text: str) -> Any:
        """Return an integer of Coq as a value."""
        plain = re.sub(r"%Z", "", text)
        names = {n: atom(f"(IZR {n})") for n in re.findall(r"[a-z]\d+", plain)}
        return sp.sympify(plain, locals={n: s for n, s in names.items()})

    def again(self, value: Any) -> tuple[Any, list[Turn]]:
        """Look up the signs of a value."""
        turns: list[Turn] = []
        new = {}
        for s in sorted(value.free_symbols, key=lambda s: s.name):
            new[s], more = self.lookup(s.name)
            turns += more
        return self.expand(value.xreplace(new)), turns

    # --- the form of a term

    def turn(self, e: Any, scope: Scope) -> tuple[Any, list[Turn]]:
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

    def by(self, turns: Sequence[Turn]) -> str:
        """Return the tactic that rewrites by some equations and finishes."""
        return "; ".join([*self.use(turns), self.finish()])

    def _ends(self, head: str) -> tuple[str, str]:
        """Return the two ends of a sum from its head."""
        rest, level = head.removeprefix("sum "), 0
        for k, c in enumerate(rest):
            level += (c == "(") - (c == ")")
            if c == " " and not level:
                return rest[:k], rest[k + 1 :]
        raise OutsideError(head)

    def applied(self, e: Any, scope: Scope, text: str) -> tuple[Any, str]:
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

    # --- exponentials, roots, logarithms

    def exponential(self, value: Any) -> tuple[Any, str]:
        """Return exp of an expanded value as a product, and the tactic."""
        result, parts = sp.Integer(1), []
        for term in sp.Add.make_args(value):
            c, rest = term.as_coeff_Mul()
            if rest == 1:
                rest, c = sp.Integer(1), c
                if c == 0:
                    continue
            whole = sp.floor(c)
            log = rest.is_Symbol and re.fullmatch(r"\(ln (.*)\)", rest.name)
            if log:
                base = atom(log[1]) if not re.fullmatch(r"\d+", log[1]) else sp.Integer(log[1])
            else:
                base = atom(f"(exp {show(rest)})")
                self.values[show(rest)] = rest
            result *= base**whole
            unit = show(rest)
            if abs(whole) > 40:
                raise TooMuchError("a large power")
            parts += [unit if whole > 0 else f"(- {unit})"] * abs(int(whole))
            if c != whole:
                left = (c - whole) * rest
                root = atom(f"(exp {show(left)})")
                self.values[show(left)] = left
                if c - whole == sp.Rational(1, 2):
                    self.squares[root] = base
                result *= root
                parts.append(show(left))
        total = " + ".join(parts) if parts else "0"
        total = reduce(lambda a, b: f"({b} + {a})", reversed(parts)) if parts else "0"
        return result, f"exp_as ({total})"

    def power(self, e: Any, scope: Scope) -> tuple[Any, str]:
        """Return a power with an exponent that is no number."""
        value, turns = self.turn(e.exp, scope)
        base, more = self.turn(e.base, scope)
        base = self.gathered(base)
        log, proof = self.logarithm(base)
        result, after = self.exponential(self.expand(value * log))
        shown = f"(ln {show(base)})"
        tactics = [*self.use([*turns, *more]), "rewrite power_exp"]
        tactics += [f"assert (HL : {shown} = {show(log)}) by ({proof}); try rewrite HL"] if shown != show(log) else []
        return result, "; ".join([*tactics, after])

    def gathered(self, value: Any) -> Any:
        """Return a value as a product where it is one."""
        value = self.expand(value)
        return sp.factor_terms(value) if isinstance(value, sp.Add) else value

    def logarithm(self, value: Any) -> tuple[Any, str]:
        """Return the logarithm of a product as a sum."""
        result, parts = sp.Integer(0), []
        factors: list[tuple[Any, int]] = []
        for f in sp.Mul.make_args(value):
            if f.is_Rational:
                if f <= 0:
                    raise OutsideError("the logarithm of what is not positive")
                factors += [(sp.Integer(p), k) for p, k in sp.factorint(f.p).items() if p != 1]
                factors += [(sp.Integer(p), -k) for p, k in sp.factorint(f.q).items() if p != 1]
            else:
                base, power = f.as_base_exp()
                factors.append((base, int(power)))
        for base, power in factors:
            inside = base.is_Symbol and re.fullmatch(r"\(exp (.*)\)", base.name)
            if base.is_Symbol and re.fullmatch(r"\(sqrt (.*)\)", base.name):
                raise OutsideError("the logarithm of a root")
            result += power * (self.parsed(inside[1]) if inside else atom(f"(ln {show(base)})"))
            if abs(power) > 12:
                raise TooMuchError("a large power")
            parts += [show(base) if power > 0 else f"(/ {show(base)})"] * abs(power)
        total = reduce(lambda a, b: f"({b} * {a})", reversed(parts)) if parts else "1"
        return result, f"ln_as ({total})"

    def parsed(self, text: str) -> Any:
        """Return the value that a text shows; all texts were shown by values."""
        return self.values.get(text, atom(text))

    def root(self, e: Any, scope: Scope) -> tuple[Any, str]:
        """Return a power with half an integer as its exponent."""
        value, turns = self.turn(e.base, scope)
        value = self.gathered(value)
        result = sp.Integer(1)
        for f in sp.Mul.make_args(value):
            base, power = f.as_base_exp() if not f.is_Rational else (f, 1)
            if f.is_Rational:
                for p, k in [*sp.factorint(f.p).items(), *((q, -m) for q, m in sp.factorint(f.q).items())]:
                    s = atom(f"(sqrt {p})")
                    if p != 1:
                        self.squares[s] = sp.Integer(p)
                        result *= s**k
                continue
            s = atom(f"(sqrt {show(base)})")
            self.squares[s] = base
            result *= s ** int(power)
        result = self.expand(result)
        shown = f"(sqrt {self.st.real(e.base, scope)})"
        inner = "; ".join([*self.use(turns), "root"])
        total = self.expand(result**e.exp.p)
        return total, f"assert (HR : {shown} = {show(result)}) by ({inner}); try rewrite HR; finish"

    def circular(self, kind: Any, value: Any) -> tuple[Any, str]:
        """Return the sine or cosine of a sum, by the addition theorems."""
        def of(terms: list[Any]) -> tuple[Any, Any]:
            if not terms:
                return sp.Integer(0), sp.Integer(1)
            first, *rest = terms
            c, r = first.as_coeff_Mul()
            sign = -1 if c < 0 else 1
            s, co = sign * atom(f"(sin {show(abs(c) * r)})"), atom(f"(cos {show(abs(c) * r)})")
            s2, c2 = of(rest)
            return s * c2 + co * s2, co * c2 - s * s2
        terms = [t for t in sp.Add.make_args(value) if t != 0]
        s, c = of(terms)
        shown = []
        for t in terms:
            k, r = t.as_coeff_Mul()
            shown.append(show(abs(k) * r) if k > 0 else f"(- {show(abs(k) * r)})")
        total = reduce(lambda a, b: f"({b} + {a})", reversed(shown)) if shown else "0"
        return self.expand(s if kind is sp.sin else c), f"circular_as ({total})"

    def expand(self, value: Any) -> Any:
        """Expand a value, and reduce squares of roots."""
        kept = {p: sp.Dummy() for p in value.atoms(sp.Pow) if p.exp.is_negative and isinstance(p.base, sp.Add)}
        outer = {p: d for p, d in kept.items() if not any(p != q and q.has(p) for q in kept)}
        value = sp.expand(value.xreplace(outer), power_base=False, power_exp=False, log=False)
        value = value.xreplace({d: p for p, d in outer.items()})
        if not any(s in self.squares or "delta " in s.name for s in value.free_symbols):
            return value
        for _ in range(6):
            new = value.replace(lambda p: isinstance(p, sp.Pow) and p.exp.is_Integer and p.base.is_Symbol and (
                (p.base in self.squares and p.exp not in (0, 1)) or (p.base.name.startswith("(delta ") and p.exp > 1)),
                lambda p: p.base if p.base.name.startswith("(delta ") else
                self.squares[p.base] ** (p.exp // 2) * p.base ** (p.exp % 2))  # fmt: skip
            new = sp.expand(new, power_base=False, power_exp=False, log=False)
            if new == value:
                break
            value = new
        return value

    # --- sums, expectations and other signs that bind

    def bind(self, head: str, name: str, value: Any, turns: list[Turn], ends: tuple[str, ...]) -> tuple[Any, str]:
        """Return the form of a sign over what stands under it, and the tactic."""
        value = self.expand(value)
        ext = self.ext(head, ends)
        linear = self.linear(head, ends)
        if linear is None:
            result, more = self.lookup(self.closed(head, name, value))
            shown = f"({head} (fun {name} => {show(value)}))"
            return result, (f"transitivity {shown}; [{ext}; intros {name}; cbv beta; {self.by(turns)} | "
                            f"{'; '.join([*self.use(more), 'finish'])}]")  # fmt: skip
        shares: dict[Any, Any] = {}
        for term in sp.Add.make_args(value):
            if term != 0:
                c, g = split(term, name)
                shares[g] = shares.get(g, 0) + c
        pairs = sorted(((g, c) for g, c in shares.items()), key=lambda p: show(p[0]))
        result, more, shown = sp.Integer(0), [], []
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

    def part(self, head: str, name: str, g: Any, ends: tuple[str, ...]) -> tuple[Any, list[Turn]]:
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
            match = f.is_Symbol and re.fullmatch(rf"\(delta ({_PLACE}) ({_PLACE})\)", f.name)
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
        text = self.closed(f"sum {low} {high}", name, g)
        self.sums[text] = Sum(low, high, name, g)
        return text

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
                tactics.append(f"transitivity {self.flat_text(now, flat)}; [{go + '; ' if go else ''}apply sum_swap | idtac]")
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
                    more, inside = self.flatten(new, self.renamed(total.summand, {total.name: new}), total.low, total.high)
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
        return (f"transitivity (sum {low} {high} (fun {name} => {shown})); "
                f"[apply sum_ext; intros {name} H{name}; {deeper} | transitivity {outside}; [apply sum_scale | finish]]")  # fmt: skip

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
                    f"[finish | rewrite <- sum_scale; apply sum_ext; intros; cbv beta; finish] | transitivity {exchanged}; [apply (linear_sum _ _ _ _ "
                    f"(fun {new} {name} => {show(summand)}) {lemma}) | {proof}]]"
                )
        for p in self.st.premises:
            if p.kind == "independence":
                found = self.apart(head, name, g, p)
                if found:
                    return found
            if p.kind == "same law":
                x, first = p.value
                factors = {n for n in re.findall(r"\bX\d+\b", show(g))}
                if factors == {x}:
                    function = re.sub(rf"\({x} {name}\)", "z", show(g))
                    new = g.xreplace({s: atom(s.name.replace(f"({x} {name})", f"({first} {name})")) for s in g.free_symbols})
                    value, turns = self.part(head, name, new, ())
                    return value, f"rewrite ({p.name} (fun z => {function})); cbv beta; {self.by(turns)}"
        text = self.closed(head, name, g)
        value, turns = self.lookup(text)
        if not turns:
            value, turns = self.moment(head, name, g)
        return value, turns[0][2] if turns else "reflexivity"

    def part_of_mean(self, head: str, name: str, g: Any) -> tuple[Any, list[Turn]]:
        c, inside = split(self.expand(g), name)
        if isinstance(self.expand(g), sp.Add):
            raise OutsideError("a sum under an expectation")
        value, proof = self.bind(head, name, g, [], ())
        shown = f"({head} (fun {name} => {show(g)}))"
        return value, [(shown, show(self.expand(value)), proof)]

    def moment(self, head: str, name: str, g: Any) -> tuple[Any, list[Turn]]:
        """Try the factors of an expectation in every order."""
        factors = [f.as_base_exp()[0] for f in sp.Mul.make_args(g)
                   for _ in range(int(f.as_base_exp()[1]) if f.as_base_exp()[1].is_Integer else 1)]  # fmt: skip
        if len(factors) > 4 or not all(f.is_Symbol for f in factors):
            return atom(self.closed(head, name, g)), []
        text = self.closed(head, name, g)
        for order in permutations(factors):
            product_ = " * ".join(f.name for f in order)
            tried = f"({head} (fun {name} => ({product_})))" if len(order) > 1 else f"({head} (fun {name} => {product_}))"
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
