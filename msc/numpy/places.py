"""Grids, triangles and indices: places in arrays, with NumPy's arguments."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dtypes import as_dtype
from msc.frontend.tensor import Tensor
from msc.numpy.creation import Data, asarray
from msc.numpy.outside import by_numpy, narrow
from msc.ops.operands import cast

__all__ = [
    "apply_over_axes",
    "argwhere",
    "array_split",
    "atleast_3d",
    "choose",
    "diag_indices",
    "diagflat",
    "indices",
    "ix_",
    "mgrid",
    "ogrid",
    "ravel_multi_index",
    "rollaxis",
    "searchsorted",
    "tri",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]


diag_indices, ix_ = map(by_numpy, ("diag_indices", "ix_"))


tril_indices_from, triu_indices_from = map(by_numpy, ("tril_indices_from", "triu_indices_from"))


ravel_multi_index = by_numpy("ravel_multi_index")


def indices(dimensions: Any, dtype: Any = dtypes.int32, sparse: bool = False) -> tuple[Tensor, ...]:
    """The places of a grid, a tensor for each axis."""
    return tuple(Tensor(part, as_dtype(dtype)) for part in np.indices(dimensions, sparse=sparse))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """The places of a lower triangle."""
    rows, columns = np.tril_indices(n, k, m)
    return Tensor(rows.astype(np.int32)), Tensor(columns.astype(np.int32))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """The places of an upper triangle."""
    rows, columns = np.triu_indices(n, k, m)
    return Tensor(rows.astype(np.int32)), Tensor(columns.astype(np.int32))


class _Grid:
    """`mgrid[0:2, 0:3]`, or sparse as `ogrid`."""

    def __init__(self, grid: Any, is_sparse: bool) -> None:
        self._grid, self._is_sparse = grid, is_sparse

    def __getitem__(self, index: Any) -> Any:
        found = narrow(self._grid[index])
        return tuple(map(Tensor, found)) if isinstance(found, tuple) else Tensor(found)


mgrid, ogrid = _Grid(np.mgrid, False), _Grid(np.ogrid, True)


def apply_over_axes(func: Callable[..., Any], a: Data, axes: Any) -> Tensor:
    """A function of a tensor and an axis, for one axis after the other."""
    x = asarray(a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        found = func(x, axis)
        x = found if found.ndim == x.ndim else ops.expand_dims(found, axis)
    return x


def argwhere(a: Data) -> Tensor:
    """The places of the elements that are not 0, a row each."""
    found: Any = ops.argwhere(asarray(a))
    return found


def array_split(x: Data, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts along an axis, of sizes that differ by one at most."""
    return list(ops.tensor_split(asarray(x), indices_or_sections, axis))


def atleast_3d(*arys: Data) -> Any:
    """Tensors of three axes or more."""
    made = [ops.atleast_3d(asarray(a)) for a in arys]
    return made[0] if len(made) == 1 else made


def choose(a: Data, choices: Any, mode: str = "clip") -> Tensor:
    """For each element the number of the tensor from which the result is taken."""
    index = asarray(a)
    tensors = [asarray(c) for c in (list(choices) if not isinstance(choices, Tensor) else ops.unbind(choices, 0))]
    count = len(tensors)
    index = ops.floor_mod(index, count) if mode == "wrap" else ops.clamp(index, 0, count - 1)
    result = tensors[0]
    for number, tensor in enumerate(tensors[1:], start=1):
        result = ops.where(ops.equal(index, number), tensor, result)
    return result


def diagflat(v: Data, k: int = 0) -> Tensor:
    """All elements as the diagonal of a matrix."""
    return ops.diagflat(asarray(v), k)


def rollaxis(x: Data, axis: int, start: int = 0) -> Tensor:
    """An axis put in front of another."""
    value = asarray(x)
    a, s = axis % value.ndim, start + value.ndim if start < 0 else start
    return ops.movedim(value, a, s - 1 if a < s else s)


def searchsorted(a: Data, v: Data, side: str = "left", sorter: Data = None) -> Tensor:
    """Where elements belong in a vector in order (Int32)."""
    line = asarray(a) if sorter is None else ops.take(asarray(a), asarray(sorter))
    return cast(ops.searchsorted(line, asarray(v), right=side == "right"), dtypes.int32)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = dtypes.float32) -> Tensor:
    """Ones at and below a diagonal."""
    return Tensor(np.tri(N, M, k), as_dtype(dtype))


def unravel_index(indices: Data, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """The coordinates of flat places."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    rest, found = asarray(indices), list[Tensor]()
    for size in reversed(sizes) if order == "C" else sizes:
        found.append(ops.floor_mod(rest, size))
        rest = ops.floor_divide(rest, size)
    return tuple(reversed(found) if order == "C" else found)
