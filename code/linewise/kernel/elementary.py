"""Exponentials, logarithms, roots, sines and cosines of forms."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

import sympy as sp

from linewise.kernel.forms import Forms, TooMuchError, atom, show
from linewise.kernel.statement import OutsideError, Scope


class Elementary(Forms):
    """The part of the search that takes elementary functions apart."""

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
