"""The article's Gaussian integrals, by sympy, and its closed forms exactly as printed."""

from __future__ import annotations

from typing import Any

import sympy as sp

from linewise.derive.rules import Rule


def printed_identity(beta: Any, gamma: Any) -> sp.Expr:
    """Article equation (7), S for the identity, as it is printed.

    >>> printed_identity(0, 1)
    sqrt(2)/sqrt(pi)
    """
    top = sp.sqrt(2 / sp.pi) * gamma * sp.exp(-(beta**2) / (2 * gamma**2)) + beta * sp.erf(beta / (sp.sqrt(2) * gamma))
    return top / sp.sqrt(beta**2 + gamma**2)


def telescoping(term: Any, index: sp.Symbol) -> Rule:
    """The rule that sums of F(m) - F(m + 1) from m = low to high are F(low) - F(high + 1).

    term : F, an expression in `index`.

    >>> m, n = sp.symbols("m n", integer=True)
    >>> telescoping(m**2, m).rewrite(sp.Sum(m**2 - (m + 1) ** 2, (m, 1, n)))
    1 - (n + 1)**2
    """
    difference = term - term.subs(index, index + 1)

    def summed(total: sp.Sum) -> sp.Expr:
        if len(total.limits) != 1:
            return total
        name, low, high = total.limits[0]
        if sp.simplify(total.function - difference.subs(index, name)) != 0:
            return total
        return term.subs(index, low) - term.subs(index, high + 1)

    return Rule("the sum telescopes", lambda line: line.replace(lambda e: isinstance(e, sp.Sum), summed))
