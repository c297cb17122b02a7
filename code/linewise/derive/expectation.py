r"""Random quantities as symbols: what is random, and its expectation and variance before anything is computed.

`E(...)` and `Var(...)` stay as they are written. Only a named rule of `linewise.derive.rules`
(linearity, independence, a hypothesis) turns them into something else.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from linewise.derive.exact import exact


class RandomVector(sp.IndexedBase):
    """A random vector of symbolic length; its components are ``q[m]``.

    >>> q, m = RandomVector("q"), sp.Symbol("m", integer=True)
    >>> is_random(q[m]), is_random(m)
    (True, False)
    """


class RandomVariable(sp.Symbol):
    """A random number; assumptions such as ``nonnegative=True`` hold for every value it takes.

    >>> is_random(2 * RandomVariable("z"))
    True
    """


class E(sp.Function):
    """The expectation of its argument, unevaluated.

    >>> E(RandomVariable("z")) + E(3)
    E(z) + E(3)
    """

    nargs = 1

    def __new__(cls, argument: Any, **options: Any) -> Any:
        """Take an expression; a text is refused."""
        return super().__new__(cls, exact(argument, "argument"), **options)


class Var(sp.Function):
    """The variance of its argument, unevaluated: E[X^2] - E[X]^2 by `rules.definition_of_variance`.

    What is written without the imaginary unit stands for a real number. Of others the square would not be a distance.
    """

    nargs = 1

    def __new__(cls, argument: Any, **options: Any) -> Any:
        """Take an expression; a text is refused, and what is not real."""
        value = exact(argument, "argument")
        if value.has(sp.I) or value.is_extended_real is False:
            raise ValueError(f"argument: expected a real number, of which E[X^2] - E[X]^2 is the variance, got {value}")
        return super().__new__(cls, value, **options)


def random_atoms(expression: Any) -> set[sp.Basic]:
    """Return the random vectors and random numbers that occur in an expression.

    >>> sorted(map(str, random_atoms(RandomVector("q")[1] * RandomVariable("z"))))
    ['q', 'z']
    """
    expression = exact(expression)
    vectors = {a.base for a in expression.atoms(sp.Indexed) if isinstance(a.base, RandomVector)}
    return vectors | expression.atoms(RandomVariable)


def is_random(expression: Any) -> bool:
    """Return whether a random vector or a random number occurs in the expression."""
    return bool(random_atoms(expression))
