"""What the shapes in a signature mean: ``Real[ArrayLike, "... n d_k"]`` goes in, ``Float[Array, "... n m"]`` comes out.

The words are jaxtyping's. First comes the kind of numbers: `Real` for integers or floats, `Num` for these or complex
numbers, `Float`, `Int` or `Integer` (unsigned ones too), `Complex`, `Inexact` for floats or complex numbers, `Bool`,
`Shaped` for anything. Then comes what holds them: `ArrayLike`, `Array` or `Numpy`. The string names the axes, by the
symbols of the book; an axis of one name has one size throughout a signature.

`...` any axes in front, a batch; those of several arguments broadcast.
`*shape` any axes, the same wherever the name recurs; `*#shape` axes that broadcast to them.
`{n}` as many as the argument n says; `n*d` and `min(n,m)` are computed from the sizes of other axes.
`_` any size.

An `ArrayLike` may be nested lists, which become numpy arrays. Nothing reads the annotations while the package runs;
jaxtyping's own check, where a program switches it on, knows the shapes of arrays alone, and takes no lists.
"""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

#: An array of the library that the arguments came in: numpy, torch, ... It has no static type of its own: what
#: `array_namespace` returns is unknown to mypy, and numpy in, numpy out cannot be said of lists as well.
Array: TypeAlias = Any

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike

    Numpy: TypeAlias = np.ndarray
else:  # jaxtyping reads unions of classes, which numpy's `ArrayLike` is no longer from numpy 2.5 on

    class Readable(ABC):  # noqa: B024
        """An array of any library: what numpy can read as an array."""

        @classmethod
        def __subclasshook__(cls, other: type) -> bool:
            return hasattr(other, "__array__")

    #: What an argument may be: an array, or numbers in nested lists, which become arrays.
    ArrayLike = Readable | bool | int | float | complex

    class Numpy(ABC):  # noqa: B024 (a name for the two classes)
        """An array of numpy, or one of its scalars where no axis is left."""

    Numpy.register(np.ndarray)
    Numpy.register(np.generic)
