"""Stacks, pads, slices, diagonals and blocks: elements in other places."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops import (
    compositions,
    creation,
    images,
    joining,
    matrices,
    methods,
    selection,
    shapes,
)
from msc.ops.operands import cast, only_tensor
from msc.ops.operators import shapes as operators

__all__ = [
    "adjoint",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "batch_to_space_nd",
    "diagflat",
    "diagonal_scatter",
    "dstack",
    "expand",
    "matrix_band_part",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_set_diag",
    "mirror_pad",
    "moveaxis",
    "padding",
    "row_stack",
    "select_scatter",
    "slice_scatter",
    "space_to_batch_nd",
    "swapdims",
    "tensor_range",
    "tensor_slice",
    "type_as",
    "view_as",
]


def _at_least(count: int) -> Any:
    def widened(x: Tensor) -> Tensor:
        x = only_tensor(x, f"atleast_{count}d")
        if count == 3 and x.ndim == 2:
            return shapes.expand_dims(x, -1)
        if count == 3 and x.ndim == 1:
            return shapes.reshape(x, (1, -1, 1))
        return shapes.reshape(x, ((1,) * (count - x.ndim)) + x.shape) if x.ndim < count else x

    def function(inputs: Any) -> Any:
        return tuple(map(widened, inputs)) if isinstance(inputs, tuple | list) else widened(inputs)

    function.__name__ = function.__qualname__ = f"atleast_{count}d"
    function.__doc__ = f"Tensors of {count} axes or more."
    return function


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along the third axis."""
    return joining.concat([atleast_3d(t) for t in tensors], 2)


def expand(input_x: Tensor, size: Any) -> Tensor:
    """The tensor broadcast to sizes."""
    return shapes.broadcast_to(input_x, shapes.sizes_of(size))


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
    return shapes.reshape(input, other.shape)


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the element type of another tensor."""
    return cast(input, other.dtype)


def adjoint(x: Tensor) -> Tensor:
    """The matrices in the last two axes, transposed."""
    return shapes.swapaxes(x, -1, -2)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """All elements as the diagonal of a matrix."""
    return matrices.diag(shapes.ravel(input), offset)


def mirror_pad(input_x: Tensor, paddings: Any, mode: str) -> Tensor:
    """Mirrored at the ends of each axis; "SYMMETRIC" repeats the edge."""
    pairs = paddings.tolist() if isinstance(paddings, Tensor) else paddings
    return images.padded(input_x, [(b, e) for b, e in pairs], mode.lower())


def padding(x: Tensor, pad_dim_size: int = 8) -> Tensor:
    """The last axis, of size 1, filled with zeros to a size."""
    return images.pad(x, (0, pad_dim_size - 1))


def tensor_slice(input: Tensor, begin: Sequence[int], size: Sequence[int]) -> Tensor:
    """`size` elements of each axis from `begin` on."""
    return operators.slice_(input, begin, size)


def _placed(x: Tensor, axis: int, places: Any, src: Tensor) -> Tensor:
    """X with slices along an axis replaced."""
    made = methods.copied(x)
    made[(slice(None),) * (axis % x.ndim) + (places,)] = src
    return made


def select_scatter(input: Tensor, src: Tensor, axis: int, index: int) -> Tensor:
    """X with an entry of an axis replaced."""
    return _placed(input, axis, index, src)


def slice_scatter(
    input: Tensor, src: Tensor, axis: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    """X with a slice of an axis replaced."""
    return _placed(input, axis, slice(start, end, step), src)


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """X with the diagonal of the matrices in two axes replaced."""
    x = shapes.movedim(input, (dim1, dim2), (-2, -1))
    whole = compositions.diag_embed(src, offset)
    rows, columns = x.shape[-2:]
    whole = (
        joining.narrow(joining.narrow(whole, -2, 0, rows), -1, 0, columns)
        if whole.shape[-2:] != x.shape[-2:]
        else whole
    )
    mask = Tensor.of(np.eye(rows, columns, offset, dtype=bool))
    return shapes.movedim(selection.where(mask, whole, x), (-2, -1), (dim1, dim2))


def matrix_diag(
    x: Tensor, k: Any = 0, num_rows: int = -1, num_cols: int = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """The last axis as the k-th diagonal of matrices, `padding_value` elsewhere."""
    unused("matrix_diag", align=align)
    offset = int(k)
    made = compositions.diag_embed(x, offset)
    size = made.shape[-1]
    rows, columns = (size if n == -1 else n for n in (num_rows, num_cols))
    mask = Tensor.of(np.eye(rows, columns, offset, dtype=bool))
    made = images.pad(made, (0, columns - size, 0, rows - size))
    return selection.where(mask, made, cast(only_tensor(padding_value, "matrix_diag"), x.dtype))


def matrix_diag_part(x: Tensor, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """The k-th diagonal of matrices."""
    unused("matrix_diag_part", align=align, padding_value=padding_value)
    return matrices.diagonal(x, int(k), -2, -1)


def matrix_set_diag(x: Tensor, diagonal: Tensor, k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with the k-th diagonal replaced."""
    unused("matrix_diag", align=align)
    return diagonal_scatter(x, diagonal, int(k), -2, -1)


def matrix_band_part(x: Tensor, lower: Any, upper: Any) -> Tensor:
    """The band of `lower` diagonals below and `upper` above the main one, 0 elsewhere; -1 is all."""
    low, high = int(lower), int(upper)
    made = x if low < 0 else creation.triu(x, -low)
    return made if high < 0 else creation.tril(made, high)


def _space_to_batch(x: Tensor, block: Sequence[int], paddings: Any) -> Tensor:
    spatial = len(block)
    lead = x.ndim - spatial
    pairs = [(0, 0)] * lead + [(int(b), int(e)) for b, e in paddings]
    padded = images.padded(x, pairs, "constant")
    sizes = padded.shape[lead:]
    split = shapes.reshape(
        padded, (*padded.shape[:lead], *(v for n, b in zip(sizes, block, strict=True) for v in (n // b, b)))
    )
    blocks = [lead + 1 + 2 * i for i in range(spatial)]
    rest = [lead + 2 * i for i in range(spatial)]
    moved = shapes.transpose(split, (*blocks, *range(lead), *rest))
    shape = (math.prod(block) * x.shape[0], *padded.shape[1:lead], *(n // b for n, b in zip(sizes, block, strict=True)))
    return shapes.reshape(moved, shape)


def _batch_to_space(x: Tensor, block: Sequence[int], crops: Any) -> Tensor:
    spatial = len(block)
    lead = x.ndim - spatial
    n = x.shape[0] // math.prod(block)
    split = shapes.reshape(x, (*block, n, *x.shape[1:]))
    order = [*range(spatial, spatial + lead)]
    for i in range(spatial):
        order += [spatial + lead + i, i]
    moved = shapes.transpose(split, tuple(order))
    whole = shapes.reshape(moved, (n, *x.shape[1:lead], *(s * b for s, b in zip(x.shape[lead:], block, strict=True))))
    for i, (b, e) in enumerate(crops):
        whole = joining.narrow(whole, lead + i, int(b), whole.shape[lead + i] - int(b) - int(e))
    return whole


def _blocks(block_size: Any, count: int) -> list[int]:
    return [block_size] * count if isinstance(block_size, int) else [int(b) for b in block_size]


def space_to_batch_nd(input_x: Tensor, block_size: Any, paddings: Any) -> Tensor:
    """Blocks of the last axes moved into the batch."""
    return _space_to_batch(input_x, _blocks(block_size, len(paddings)), paddings)


def batch_to_space_nd(input_x: Tensor, block_shape: Any, crops: Any) -> Tensor:
    """The batch moved into blocks of the last axes."""
    return _batch_to_space(input_x, _blocks(block_shape, len(crops)), crops)


moveaxis, swapdims, row_stack, tensor_range = shapes.movedim, shapes.swapaxes, joining.vstack, creation.range


for _function in (
    adjoint,
    diagflat,
    diagonal_scatter,
    select_scatter,
    slice_scatter,
    expand,
):
    tensor_method(_function.__name__)(_function)


tensor_method("moveaxis")(shapes.movedim)


tensor_method("swapdims")(shapes.swapaxes)
