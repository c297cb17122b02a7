r"""How derivations look: mathematics in one notation, reasons in words with formulas between dollar signs."""

from __future__ import annotations

import html
import re
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE

from linewise.derive.exact import exact
from linewise.derive.expectation import E, Var

# Vectors of which a product names the components in this order, after those of all other vectors.
_LETTERS = "xqkv"


class _Printer(LatexPrinter):
    """Sums with one sign for each index, expectations as E[...], the letters of a product in their order."""

    def _as_ordered_terms(self, expression: sp.Expr, order: Any = None) -> list[sp.Expr]:
        """Begin a sum with a term without a minus sign, where it has one: E[X^2] - E[X]^2."""
        terms = list(super()._as_ordered_terms(expression, order))
        return sorted(terms, key=_is_negative) if _is_negative(terms[0]) else terms

    def _print_Mul(self, expression: sp.Mul) -> str:
        if expression.has(sp.Indexed) and all(_is_plain(f) for f in expression.args):
            *factors, last = sorted(expression.args, key=_reading_order)
            brackets = [self.parenthesize(f, PRECEDENCE["Mul"]) for f in factors]
            ends = self._print(last) if isinstance(last, sp.Sum) else self.parenthesize(last, PRECEDENCE["Mul"])
            return " ".join([*brackets, ends])
        return str(super()._print_Mul(expression))

    def _print_Function(self, expression: sp.Function, exp: Any = None) -> str:
        """Write the index of a family of unknown functions as one: M(k, t) as M_k(t)."""
        name, arguments = str(expression.func), expression.args
        family = isinstance(expression, AppliedUndef) and len(name) == 1 and len(arguments) == 2
        if not family or not arguments[0].is_integer:
            return str(super()._print_Function(expression, exp))
        body = rf"{name}_{{{self._print(arguments[0])}}}"
        return (body if exp is None else rf"{body}^{{{exp}}}") + rf"({self._print(arguments[1])})"

    def _print_E(self, expression: E, exp: Any = None) -> str:
        body = rf"\mathbb{{E}}\left[{self._print(expression.args[0])}\right]"
        return body if exp is None else rf"{body}^{{{exp}}}"

    def _print_Var(self, expression: Var, exp: Any = None) -> str:
        body = rf"\mathrm{{Var}}\left({self._print(expression.args[0])}\right)"
        return body if exp is None else rf"{body}^{{{exp}}}"

    def _print_Sum(self, expression: sp.Sum) -> str:
        signs = [
            rf"\sum_{{{self._print(i)}={self._print(low)}}}^{{{self._print(high)}}}"
            for i, low, high in reversed(expression.limits)
        ]
        summand = self._print(expression.function)
        if isinstance(expression.function, sp.Add):
            summand = rf"\left({summand}\right)"
        return "".join(signs) + " " + summand

    def _print_KroneckerDelta(self, expression: sp.KroneckerDelta, exp: Any = None) -> str:
        indices = expression.args[:2]
        comma = "" if all(index.is_Atom for index in indices) else ", "
        body = rf"\delta_{{{comma.join(map(self._print, indices))}}}"
        return body if exp is None else rf"{body}^{{{exp}}}"


def _is_negative(term: sp.Expr) -> bool:
    return bool(term.as_coeff_Mul()[0].is_negative)


def _is_plain(factor: sp.Expr) -> bool:
    """Return whether a factor is printed by itself: no number but a positive integer, no quotient."""
    exponent = factor.as_base_exp()[1]
    return (factor.is_Integer and factor > 0) or (not factor.is_number and bool(exponent.is_positive))


def _reading_order(factor: sp.Expr) -> tuple[int, int, str]:
    """Numbers and constants first, then E[...] and components in the order of their letters, deltas last."""
    letters = sorted(_LETTERS.find(str(a.base)[0]) for a in factor.atoms(sp.Indexed))
    kind = 0 if factor.is_number else 1 if not letters else 2
    if isinstance(factor, sp.KroneckerDelta):
        kind = 1
    if isinstance(factor, sp.Sum | sp.Integral):
        kind = 3
    return kind, letters[0] if letters else -1, str(factor)


_PRINTER = _Printer({"ln_notation": False, "mul_symbol": None, "fold_short_frac": False})


def latex(expression: Any) -> str:
    r"""Return an expression in the notation of derivations.

    >>> i = sp.Symbol("i", integer=True)
    >>> latex(sp.Sum(sp.Symbol("x") ** i, (i, 1, sp.Symbol("n"))))
    '\\sum_{i=1}^{n} x^{i}'
    >>> latex(3 - 2 * sp.Sum(sp.IndexedBase("x")[i], (i, 1, 2)))
    '3 - 2 \\sum_{i=1}^{2} {x}_{i}'
    >>> latex(sp.Function("M")(2, sp.Symbol("t")) ** 2)
    'M_{2}^{2}(t)'
    >>> latex(1 - sp.Symbol("x") ** 2)
    '1 - x^{2}'
    >>> latex(sp.KroneckerDelta(i, sp.Symbol("n"))), latex(sp.KroneckerDelta(i, sp.Symbol("n") + 1))
    ('\\delta_{in}', '\\delta_{i, n + 1}')
    """
    return str(_PRINTER.doprint(expression))


def html_words(words: str) -> str:
    r"""Escape words for HTML, and turn ``$...$`` into the delimiters that MathJax looks for.

    >>> html_words("a < b and $x^2$")
    'a &lt; b and \\(x^2\\)'
    """
    return re.sub(r"\$([^$]+)\$", r"\\(\1\\)", html.escape(words, quote=False))


def tex_words(words: str) -> str:
    r"""Return words for the inside of ``\text{...}``, where formulas keep their dollar signs."""
    return words.replace("%", r"\%").replace("&", r"\&")


def latex_words(words: str) -> str:
    r"""Return words as running text of LaTeX, where formulas keep their dollar signs.

    >>> print(latex_words("100 % of d_k, but $d_k$"))
    100 \% of d\_k, but $d_k$
    """
    parts = re.split(r"(\$[^$]+\$)", words)
    return "".join(part if k % 2 else part.translate(_SPECIAL) for k, part in enumerate(parts))


_SPECIAL = str.maketrans(
    {c: rf"\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def non_negative(expression: sp.Expr) -> bool:
    """Return whether an expression is visibly non-negative, from the assumptions on its symbols.

    >>> x = sp.Symbol("x", real=True)
    >>> non_negative(x**2 + 1), non_negative(x)
    (True, False)
    """
    expression = exact(expression)
    if isinstance(expression, sp.KroneckerDelta):
        return True
    if isinstance(expression, E):
        return non_negative(expression.args[0])
    if isinstance(expression, sp.Sum | sp.Integral):
        return runs_upwards(expression) and non_negative(over_its_range(expression))
    if isinstance(expression, sp.Add | sp.Mul) and all(non_negative(a) for a in expression.args):
        return True
    if isinstance(expression, sp.Pow) and expression.exp.is_real and non_negative(expression.base):
        return True
    if isinstance(expression, sp.Add) and len(expression.args) == 2 and sp.S.One in expression.args:
        other = (expression - 1) * -1  # 1 - e^{-a} with a >= 0
        if isinstance(other, sp.exp) and non_negative(-other.args[0]):
            return True
    return bool(expression.is_nonnegative)


def runs_upwards(expression: sp.Sum | sp.Integral) -> bool:
    """Return whether every range is certainly not run through backwards."""
    least = -1 if isinstance(expression, sp.Sum) else 0
    return all(len(limit) == 3 and (limit[2] - limit[1] - least).is_extended_nonnegative for limit in expression.limits)


def over_its_range(expression: sp.Sum | sp.Integral) -> sp.Expr:
    """Return the summand or integrand, with what is known of its variables from their ranges and from nothing else."""
    return expression.function.xreplace(known_by_range(expression))


def known_by_range(expression: sp.Sum | sp.Integral) -> dict[sp.Symbol, sp.Dummy]:
    """Return for each variable a symbol that has the sign which its range gives it."""
    whole = isinstance(expression, sp.Sum)
    return {
        name: sp.Dummy(name.name, integer=whole, real=True, nonnegative=bool(low.is_extended_nonnegative) or None)
        if not low.is_extended_positive
        else sp.Dummy(name.name, integer=whole, real=True, positive=True)
        for name, low, _ in expression.limits
    }
