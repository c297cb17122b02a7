"""The changes that a test makes to the lines of a derivation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp

from linewise.derive import Derivation, rules
from linewise.derive.equality import equal


def changes(line: Any) -> Iterator[tuple[str, Any]]:
    """Yield changed versions of a line: a factor, a sign, an index, an exponent, one at a time.

    >>> x, y = sp.symbols("x y")
    >>> sorted({str(line) for kind, line in changes(x**2 + y) if kind == "sign"})
    ['-x**2 + y', 'x**2 - y']
    """
    if isinstance(line, sp.MatrixBase):
        places = [(i, j) for i in range(line.rows) for j in range(line.cols) if line[i, j] != 0] or [(0, 0)]
        for i, j in places[:2]:
            for kind, entry in changes(line[i, j]):
                changed = sp.Matrix(line)
                changed[i, j] = entry
                yield kind, sp.ImmutableMatrix(changed)
        return
    if line.is_number:
        yield "number", line + 1
        yield "factor", 2 * line
        yield "sign", -line
        return
    for kind, change in (("factor", lambda term: 2 * term), ("sign", lambda term: -term)):
        for place, term in enumerate(sp.Add.make_args(line)):
            others = [t for k, t in enumerate(sp.Add.make_args(line)) if k != place]
            yield kind, sp.Add(*others, change(term))
    # A power inside an exponential under an integral is left alone: sympy may look for its integral for minutes.
    inside = {p for i in line.atoms(sp.Integral) for e in i.atoms(sp.exp) for p in e.exp.atoms(sp.Pow)}
    for part in sorted(line.atoms(sp.Pow, sp.exp) - inside, key=str):
        base, exponent = part.as_base_exp()
        yield "exponent", line.xreplace({part: base ** (exponent + 1)})
    for part in sorted(line.atoms(sp.Indexed, sp.KroneckerDelta), key=str):
        where = part.indices if isinstance(part, sp.Indexed) else part.args[:2]
        moved = (where[0] + 1, *where[1:])
        other = part.base[moved] if isinstance(part, sp.Indexed) else sp.KroneckerDelta(*moved)
        yield "index", line.xreplace({part: other})
    for part in sorted(line.atoms(sp.Sum, sp.Integral), key=str):
        name, low, *high = part.limits[0]
        if high:
            yield "limit", line.xreplace({part: part.func(part.function, (name, low, high[0] - 1), *part.limits[1:])})
    yield "term", line + 1


def really_changed(chain: Derivation, line: Any, changed: Any) -> bool:
    """Return whether a changed line says something else, even with every rule of the derivation."""
    used = dict.fromkeys(rule for step in chain.lines for rule in step.rules if not rule.on_difference)
    return changed != line and not equal(line, changed, (*used, rules.linearity, rules.collapse))
