"""What a signature says: ``Real[ArrayLike[Array], "... n d_k"]`` goes in, ``Float[Array, "... n m"]`` comes out.

The words are jaxtyping's. First comes the kind of numbers: `Real` for integers or floats, `Num` for these or complex
numbers, `Float`, `Int` or `Integer` (unsigned ones too), `Complex`, `Inexact` for floats or complex numbers, `Bool`,
`Shaped` for anything. Then comes what holds them: `ArrayLike`, `Array` or `Numpy`. The string names the axes, by the
symbols of the book; an axis of one name has one size throughout a signature.

`...` any axes in front, a batch; those of several arguments broadcast.
`*shape` any axes, the same wherever the name recurs; `*#shape` axes that broadcast to them.
`{n}` as many as the argument n says; `n*d` and `min(n,m)` are computed from the sizes of other axes.
`_` any size.

An `ArrayLike` may be nested lists, which become numpy arrays. The arguments that are an `ArrayLike[Array]` decide the
library of the result: for a type checker, too, `Array` is a tensor of torch if they are, and else an array of numpy.
So a `SizeLike[Size]` decides whether a `Size` is an integer, an array or a formula. Nothing reads the annotations while
the package runs; jaxtyping's own check, where a program switches it on, knows the shapes of arrays alone, and takes no
lists.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

#: An array whose library is known only when a function runs: what checks take and give, and what functions work with.
AnyArray: TypeAlias = Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import TypeVar

    Array = TypeVar("Array", bound=Any, default=NDArray[Any])  # the default: of numbers and lists comes no Array
    _Result = TypeVar("_Result", default=Any)
    _Result_co = TypeVar("_Result_co", covariant=True)

    class _Tensor(Protocol[_Result_co]):
        """What tensors of torch have, and arrays of numpy have not; types need no torch."""

        def detach(self) -> _Result_co: ...

    # No part of it may fit tensors but the last: mypy would take that, and learn nothing of the result.
    _Numbers: TypeAlias = complex | str | np.generic | np.ndarray | "Sequence[_Numbers]"
    ArrayLike: TypeAlias = _Numbers | _Tensor[_Result]
    Numpy: TypeAlias = np.ndarray

    Size = TypeVar("Size", bound=Any, default=int)

    class _Sizes(Protocol[_Result_co]):
        """What arrays and symbols have, and numbers have not: a copy; and a quotient, which is of their kind."""

        def copy(self) -> Any: ...

        def __truediv__(self, other: float, /) -> _Result_co: ...

    SizeLike: TypeAlias = int | np.integer | _Sizes[_Result]
else:
    from typing import TypeVar

    #: An array of the library that the arguments came in: a tensor of torch if they are, and else of numpy.
    Array = TypeVar("Array")
    #: What an argument may be: an array, or numbers in nested lists, which become arrays.
    ArrayLike = Array | bool | int | float | complex

    class Numpy(ABC):  # noqa: B024 (a name for the two classes)
        """An array of numpy, or one of its scalars where no axis is left."""

    Numpy.register(np.ndarray)
    Numpy.register(np.generic)

    #: A number that is made of sizes: an integer of Python if they all are integers, and else an array or a formula.
    Size = TypeVar("Size")
    #: A size: an integer, an array of sizes, or a symbol of sympy.
    SizeLike = int | Size
