"""Transforms of any data: types, shapes, choices."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import copy
import enum
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from msc.dataset.pictures import Picture, Unplanned
from msc.dataset.runs import draws
from msc.dataset.transforms.arguments import array, integer, number, probability, refuse
from msc.dataset.values import Array, Ragged, Values, cast_as_c, room
from msc.frontend.boundary import Published
from msc.frontend.dtypes import as_dtype


class Transform(Published):
    """Base: an object that is called with a value and gives another one."""

    FOR_MSC = ("planned", "over_rows", "text", "words")

    def __init__(self) -> None:
        """A transform without arguments."""

    def __call__(self, *values: Any) -> Any:
        raise NotImplementedError

    TAKES_BLOCKS: ClassVar[bool] = False
    """Whether a call with the values of several rows in one array changes each of them."""

    RAGGED_RANKS: ClassVar[tuple[int, ...]] = ()
    """The ranks of values, texts or rows of any lengths, of which it takes those of many rows behind each other."""

    def over_rows(self, values: Ragged) -> Values:
        """What it makes of the values of many rows, if it changes each item by itself."""
        return values.with_items(self(values.array))

    DECODES: ClassVar[bool] = False
    """Whether it takes the bytes of image files."""

    def planned(self, picture: Picture) -> None:
        """Add to a plan for blocks of pictures what is done to each. Raises Unplanned."""
        raise Unplanned("it has no form over blocks")

    @property
    def _kind(self) -> str:
        return type(self).__name__


class Compose(Transform):
    """Several transforms, one after the other."""

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = _functions("Compose", transforms)

    def __call__(self, *values: Any) -> Any:
        found: Any = values
        for transform in self.transforms:
            found = transform(*found) if isinstance(found, tuple) else transform(found)
        return found


class RandomApply(Compose):
    """Several transforms, all of them with a probability, none otherwise."""

    def __init__(self, transforms: Sequence[Callable[..., Any]], prob: float = 0.5) -> None:
        self.transforms = _functions("RandomApply", transforms)
        self.prob = probability("RandomApply", prob)

    def __call__(self, *values: Any) -> Any:
        if draws().random() < self.prob:
            return super().__call__(*values)
        return values[0] if len(values) == 1 else values


class RandomChoice(Transform):
    """One of several transforms, drawn for each row."""

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = _functions("RandomChoice", transforms)

    def __call__(self, *values: Any) -> Any:
        return self.transforms[draws().integers(len(self.transforms))](*values)


class RandomOrder(Transform):
    """Several transforms, in an order drawn for each row."""

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = _functions("RandomOrder", transforms)

    def __call__(self, *values: Any) -> Any:
        order = draws().permutation(len(self.transforms))
        return Compose([self.transforms[k] for k in order])(*values)


def _functions(kind: str, transforms: Any) -> list[Callable[..., Any]]:
    found = list(cast("Sequence[Any]", transforms)) if isinstance(transforms, list | tuple) else []
    if not found or not all(callable(function) for function in found):
        refuse(kind, "transforms", transforms, "a list of functions and transforms", is_type=True)
    return found


class TypeCast(Transform):
    """The same values in another element type; what it has not, as -1 in UInt32, is converted as in C."""

    TAKES_BLOCKS = True
    RAGGED_RANKS = (0, 1)

    def __init__(self, data_type: Any) -> None:
        self._dtype = as_dtype(data_type).numpy

    def __call__(self, *values: Any) -> Array:
        return cast_as_c(array("TypeCast", values[0]), self._dtype)

    def planned(self, picture: Picture) -> None:
        picture.look_up(self)


class OneHot(Transform):
    """Classes as rows of zeros with a one, or with smoothing rate / classes and 1 - rate more at the class."""

    TAKES_BLOCKS = True

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        self._classes = integer("OneHot", "num_classes", num_classes)
        self._rate = number("OneHot", "smoothing_rate", smoothing_rate, 0, 1)

    def __call__(self, *values: Any) -> Array:
        classes = array("OneHot", values[0])
        if classes.dtype.kind not in "iu":
            refuse("OneHot", "the value", str(classes.dtype), "integers", is_type=True)
        if classes.size and not (classes.min() >= 0 and classes.max() < self._classes):
            refuse("OneHot", "a class", int(classes.max()), f"classes from 0 to {self._classes - 1}")
        made = np.eye(self._classes, dtype=np.int32)[classes]
        if self._rate == 0:
            return made
        return (made * (1 - self._rate) + self._rate / self._classes).astype(np.float32)


class Duplicate(Transform):
    """The value twice: two columns."""

    def __call__(self, *values: Any) -> tuple[Array, Array]:
        return values[0], np.array(values[0])


class Fill(Transform):
    """A value in place of all elements."""

    TAKES_BLOCKS = True

    def __init__(self, fill_value: Any) -> None:
        self._value = copy.deepcopy(fill_value)

    def __call__(self, *values: Any) -> Array:
        return np.full_like(array("Fill", values[0]), self._value)


class Concatenate(Transform):
    """Arrays one after the other, with one before and one after them."""

    def __init__(self, axis: int = 0, prepend: Any = None, append: Any = None) -> None:
        self._axis = axis
        self._ends = copy.deepcopy((prepend, append))

    def __call__(self, *values: Any) -> Array:
        before, after = self._ends
        parts = [*([] if before is None else [before]), *values, *([] if after is None else [after])]
        return np.concatenate([array("Concatenate", part) for part in parts], self._axis)


class PadEnd(Transform):
    """The value in a larger shape, with a fill behind it; what is longer is cut. None keeps a size."""

    def __init__(self, pad_shape: Sequence[int | None], pad_value: Any = None) -> None:
        self._shape, self._value = list(pad_shape), pad_value

    def __call__(self, *values: Any) -> Array:
        given = array("PadEnd", values[0])
        if given.ndim != len(self._shape):
            refuse("PadEnd", "the value's rank", given.ndim, f"rank {len(self._shape)}")
        sizes = [own if n is None else n for n, own in zip(self._shape, given.shape, strict=True)]
        made = room(sizes, self._value, given.dtype)
        inside = tuple(slice(min(n, m)) for n, m in zip(given.shape, sizes, strict=True))
        made[inside] = given[inside]
        return made

    RAGGED_RANKS = (1,)

    def over_rows(self, values: Ragged) -> Values:
        if len(self._shape) != 1:
            return super().over_rows(values)
        return values if self._shape[0] is None else values.padded(self._shape[0], self._value)


class Slice(Transform):
    """A part of the value, by integers, slices, lists or `...`, one for each axis."""

    def __init__(self, *slices: Any) -> None:
        self._slices = tuple(slice(None) if part is None else part for part in slices)

    def __call__(self, *values: Any) -> Array:
        kept = tuple([part] if isinstance(part, int) else part for part in self._slices)
        return array("Slice", values[0])[kept]


class Relational(enum.IntEnum):
    """Comparisons of Mask."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


class Mask(Transform):
    """Whether elements compare with a constant as they should, in an element type."""

    TAKES_BLOCKS = True

    def __init__(self, operator: Relational, constant: Any, dtype: Any = np.bool_) -> None:
        self._compare = getattr(np, ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")[operator])
        self._constant, self._dtype = copy.deepcopy(constant), as_dtype(dtype).numpy

    def __call__(self, *values: Any) -> Array:
        return self._compare(array("Mask", values[0]), self._constant).astype(self._dtype)


class Unique(Transform):
    """The values that there are in order, the place of each element among them, and how often each one is there."""

    def __call__(self, *values: Any) -> tuple[Array, Array, Array]:
        found, places, counts = np.unique(
            array("Unique", values[0]).reshape(-1), return_inverse=True, return_counts=True
        )
        return found, places.astype(np.int32), counts.astype(np.int32)
