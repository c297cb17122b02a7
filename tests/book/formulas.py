r"""Read formulas as numbers: two formulas are the same if they have the same value where every symbol has a drawn one.

A formula in TeX is read into one number for each of its sides. A symbol, with its indices, stands for a number that is
drawn from its name. Sums, products, fractions, powers, roots, exponentials and logarithms are what they are. What else
acts on something (a sum over an index, an expectation, a norm) stands for a fixed function of it, and a row of entries
for a combination of them. Factors commute, so the order of capital letters, which may be matrices, is compared as well.
``p(1-p)`` is another formula.
"""

from __future__ import annotations

import cmath
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

#: Parts of TeX that say how a formula looks, and not what it says.
_LOOK = re.compile(r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|limits|q?quad)(?![A-Za-z])|(?<!\\)\\[,;:!> ]|~|&"
                   r"|\\(?:begin|end)\{aligned\}|\\tag\{[^}]*\}")  # fmt: skip
_CELLS = re.compile(r"\\begin\{(cases|[a-z]*matrix)\}.*?\\end\{\1\}", re.DOTALL)
_NAME = re.compile(r"\\(?:text|mathrm|operatorname)\{([^{}]*)\}")
_MARK = re.compile(r"\^\{(\\top|\\prime|\*)\}")
_BRACED = re.compile(r"\{(\\?[A-Za-z]+)\}_")
_TOKEN = re.compile(r"\\(?:begin|end)\{[a-z]+\*?\}|\\[A-Za-z]+|\\.|\d+(?:\{,\}\d{3})*(?:\.\d+)?|\S")
#: Relations, each in one form.
_RELATIONS = {"=": "=", "<": "<", ">": ">", ":": ":", r"\le": "<=", r"\leq": "<=", r"\ge": ">=", r"\geq": ">=",
              r"\ne": "!=", r"\neq": "!=", r"\approx": "~"}  # fmt: skip
_RELATIONS |= {name: name for name in re.findall(
    r"\S+", r"\to \sim \in \notin \ni \propto \ll \gg \iff \Rightarrow \mapsto \mid \subset \subseteq \lesssim "
    r"\gtrsim \equiv \longrightarrow \simeq \perp \leftarrow \bmod")}  # fmt: skip
_ENDS = _RELATIONS.keys() | {",", ";", r"\\", "."}
_GROUPS = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", r"\lVert": r"\rVert", r"\lvert": r"\rvert", "|": "|",
           r"\|": r"\|", r"\langle": r"\rangle", r"\lfloor": r"\rfloor", r"\lceil": r"\rceil"}  # fmt: skip
_HALF_OPEN = {")", "]"}  # an interval may close with the other one
_CLOSE = frozenset(_GROUPS.values()) - {"|", r"\|"}
#: Names of several letters, which a bracket makes functions, as it does an expectation; and other alphabets.
_NAMES = {r"\mathrm", r"\operatorname", r"\mathbb"}
_FONTS = _NAMES | set(re.findall(
    r"\S+", r"\mathbf \mathcal \mathsf \mathtt \boldsymbol \tilde \hat \bar \widetilde \widehat \overline "
    r"\dot \vec \text"
))  # fmt: skip
_FRACTIONS = {r"\frac", r"\tfrac", r"\dfrac"}
_PLUS = {"+": 1, "-": -1}
_TIMES = {r"\cdot", r"\times", "*"}
_BIG = {rf"\{name}" for name in ["sum", "prod", "int", "max", "min", "lim", "sup", "inf", "bigcup"]}
_FUNCTIONS = {rf"\{name}": getattr(cmath, name) for name in ["log", "sin", "cos", "tan", "sinh", "cosh", "tanh"]}
_CONSTANTS = {r"\pi": cmath.pi, "e": cmath.e}
#: In the place of a relation: a side that was read from a program, whose order of factors says nothing.
PROGRAM = "program"
_NUMBER = re.compile(r"[\d.]+(?:\{,\}\d{3})*")


@dataclass(frozen=True)
class Side:
    """One side of a formula: the relation before it, its value, its TeX, and how many symbols and rows it has."""

    relation: str
    value: complex
    tex: str
    symbols: int = 0
    rows: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Side) or not cmath.isclose(self.value, other.value, rel_tol=1e-11, abs_tol=1e-13):
            return False
        return PROGRAM in (self.relation, other.relation) or capitals(self.tex) == capitals(other.tex)

    __hash__ = None  # type: ignore[assignment]


@lru_cache(maxsize=100_000)
def capitals(tex: str) -> list[str]:
    r"""Return the capital letters of a side in their order, which is that of the factors where they are matrices.

    >>> capitals(r"\frac { Q K ^ \top } { \sqrt { d _ k } } V"), capitals(r"X W _ Q")
    (['Q', 'K ^ \\top', 'V'], ['X', 'W _ Q'])
    """
    bare = re.sub(
        r"\\(?:mathrm|mathbb|mathcal|operatorname) (?:\{[^{}]*\}|\S+)|\^ (?!\\top)(?:\{[^{}]*\}|\S+)", "", tex
    )
    return re.findall(r"(?<!_ )(?<!\S)[A-Z](?: _ \S+)?(?: \^ \\top)?", re.sub(r"_ \{[^{}]*\}", "", bare))


def drawn(name: str) -> float:
    """Return the number that a name stands for: at least a quarter, and small enough for an exponential of a square."""
    return 0.25 + zlib.crc32(name.encode()) / 2**33


@lru_cache(maxsize=100_000)
def sides(tex: str) -> tuple[Side, ...]:
    r"""Return the sides of a formula, and the items of a list.

    >>> one, other = sides(r"2p(1-p) = 2 p \left(1 - p\right)")
    >>> one == other, sides("p(1-p)")[0] == one
    (True, False)
    """
    reader = _Reader(tex)
    found = tuple(reader.sides(""))
    if reader.next():
        raise ValueError(f"{reader.next()!r} is not understood in {tex!r}")
    return found


class _Reader:
    """One pass over the tokens of a formula."""

    def __init__(self, tex: str) -> None:
        tex = _CELLS.sub(lambda cells: re.sub(r"(?<!\\)&", ",", cells[0]), tex)
        plain = _LOOK.sub(" ", _MARK.sub(r"^\1", _BRACED.sub(r"\1_", _NAME.sub(_joined, tex))))
        self.tokens: list[str] = _TOKEN.findall(plain)
        self.at = self.symbols = self.rows = 0

    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        if not self.next():
            raise ValueError("the formula ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def sides(self, until: str) -> Iterator[Side]:
        relation = ""
        while (token := self.next()) and token != until and token not in _CLOSE:
            if token in _ENDS:
                relation = _RELATIONS.get(self.take(), "" if token != r"\\" else relation)
            else:
                begin, symbols, rows = self.at, self.symbols, self.rows
                value = self.terms(until)
                words = " ".join(self.tokens[begin : self.at])
                yield Side(relation, value, words, self.symbols - symbols, self.rows - rows)
                relation = ""

    def terms(self, until: str) -> complex:
        total, sign = 0j, 1
        while True:
            while self.next() in _PLUS:
                sign *= _PLUS[self.take()]
            total, sign = total + sign * self.factors(until), 1
            if self.next() not in _PLUS:
                return total

    def factors(self, until: str) -> complex:
        product = self.power(until)
        while (token := self.next()) and token != until and token not in _ENDS | _CLOSE | _PLUS.keys():
            if token == "/":  # as the book writes: 1/2x is 1/(2x), and 1/2 \cdot x is not
                self.take()
                product /= self.run(until)
            else:
                if token in _TIMES:
                    self.take()
                product *= self.power(until)
        return product

    def run(self, until: str) -> complex:
        """Read factors that stand side by side."""
        product = self.power(until)
        while (token := self.next()) and token != until and token not in _ENDS | _CLOSE | _TIMES | _PLUS.keys() | {"/"}:
            product *= self.power(until)
        return product

    def power(self, until: str) -> complex:
        value = self.single(until)
        while (mark := self.next()) in {"^", "!", "'"}:
            self.take()
            if mark == "!" and not value.imag and value.real in range(100):
                value = complex(math.factorial(int(value.real)))
            elif self.tokens[self.at : self.at + 2] == ["{", "("] and self.tokens[self.at + 3 : self.at + 5] == [
                ")",
                "}",
            ]:
                value = self.of(self.written(), value)  # the first of several, and no power
            elif mark != "^" or self.next() in {r"\top", "*", r"\prime"}:
                value = self.of(mark if mark != "^" else self.take(), value)
            else:
                value **= self.argument()
        return value

    def single(self, until: str) -> complex:
        token = self.take()
        if token in _FRACTIONS:
            above = self.argument()
            return above / self.argument()
        if token == r"\sqrt":
            root = 2 + 0j
            if self.next() == "[":
                self.take()
                root = self.terms("]")
                self.take()
            return self.argument() ** (1 / root)
        if token == r"\binom":
            return self.of("over", self.argument()) + self.of("under", self.argument())
        if token == r"\exp" and self.next() not in _ENDS | {"^", ""}:
            return cmath.e ** self.power(until)
        if token in _FUNCTIONS and self.next() not in {"^", "_"}:
            value = self.power(until)  # near 0 a cosine is 1 of whatever it is, and of a sine no digit is left
            small = 0 < abs(value) < 1e-3
            return self.of(token, cmath.log(value)) if small else complex(_FUNCTIONS[token](value))
        if token in _BIG or token in _FUNCTIONS:
            name = token + self.indices()
            return self.symbol(name) * self.factors(until) if token == r"\sum" else self.of(name, self.factors(until))
        if token in {r"\underbrace", r"\overbrace"}:
            value = self.argument()
            self.indices()
            return value
        if token.startswith(r"\begin"):
            return self.group(token, token.replace("begin", "end"))
        if token in _GROUPS:
            value = self.group("(" if token == "{" else token, _GROUPS[token])
            return self.of(self.indices(), value) if self.next() == "_" else value
        if token in _CLOSE or token in _ENDS:
            raise ValueError(f"{token!r} where a formula is expected")
        function = token in _NAMES
        if token in _FONTS:
            token += self.written()
        if self.next() == "_":
            self.take()
            token += "_" + re.sub(r"[{}, ]|\\mathrm", "", self.written())
        return self.of(token, self.single(until)) if function and self.next() in {"(", "["} else self.symbol(token)

    def argument(self) -> complex:
        """Read the argument of a command: a group, a command, or one character."""
        token = self.next()
        if token.isdigit():
            self.tokens[self.at : self.at + 1] = [token[0], *([token[1:]] if token[1:] else [])]
        if token in _FONTS | _FRACTIONS | {r"\sqrt", "{"}:
            return self.single("")
        return self.symbol(self.take())

    def symbol(self, name: str) -> complex:
        if _NUMBER.fullmatch(name):
            return complex(float(name.replace("{,}", "")))
        if name in _CONSTANTS:
            return complex(_CONSTANTS[name])
        self.symbols += 1
        return complex(drawn(name))

    def of(self, name: str, value: complex) -> complex:
        """Return a fixed function of a number, known by its name alone."""
        self.symbols += 1
        return cmath.cos(drawn(name) * value) + drawn(f"{name}'") * value

    def group(self, opening: str, closing: str) -> complex:
        symbols = self.symbols
        items = list(self.sides(closing))
        if self.take() not in ({closing} if closing not in _HALF_OPEN else _HALF_OPEN):
            raise ValueError(f"no {closing}")
        if opening in {"(", "["} and len(items) == 1:
            return items[0].value
        whole = sum(drawn(f"{n}{item.relation}") * item.value for n, item in enumerate(items))
        whole += sum(drawn(f"{n}{item.relation}'") for n, item in enumerate(items) if item.relation)
        if opening in {"(", "["}:
            self.rows += 1
            return whole
        return abs(whole) if opening in {"|", r"\lvert"} and self.symbols == symbols else self.of(opening, whole)

    def written(self) -> str:
        """Return an argument as it is written, without spaces."""
        depth, words = 0, []
        while True:
            token = self.take()
            depth += {"{": 1, "}": -1}.get(token, 0)
            words.append(token)
            if not depth:
                return "".join(words[1:-1] if len(words) > 1 else words)

    def indices(self) -> str:
        words = ""
        while self.next() in {"_", "^"}:
            words += self.take() + self.written()
        return words


def _joined(match: re.Match[str]) -> str:
    return r"\mathrm{" + match[1].replace(" ", "") + "}"
