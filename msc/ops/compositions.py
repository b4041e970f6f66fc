"""Functions that are made of a few others, and operators that change parameters by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiTypeError
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Number, Tensor, tensor_method
from msc.ops import (
    activation,
    arithmetic,
    comparison,
    creation,
    images,
    joining,
    linear,
    mapping,
    methods,
    ordering,
    random,
    reductions,
    scattering,
    selection,
    shapes,
    unary,
    windows,
)
from msc.ops.operands import as_float, pair
from msc.ops.operators import arithmetic as operators
from msc.ops.primitive import operator
from msc.ops.shapes import axis_of, sizes_of
from msc.support.argument_values import described

__all__ = [
    "AdaptiveAvgPool2D", "FloatStatus", "Gelu", "LpNorm", "Partial", "ScalarToTensor", "ScatterAdd",
    "ScatterNdAdd", "ScatterNdUpdate", "ScatterSub", "ScatterUpdate", "StopGradient", "UniformInt", "UniformReal",
    "addn", "aminmax", "block_diag", "column_stack", "diag_embed", "diff", "dist", "dsplit", "fmax", "fmin", "ger",
    "heaviside", "hsplit", "hypot", "inv", "logaddexp", "lp_norm", "make_range", "nan_to_num", "nansum", "pows",
    "repeat_elements", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_update", "scatter_update", "sequence_mask",
    "sinc", "top_k", "truncate_div", "truncate_mod", "tuple_len", "vsplit",
]  # fmt: skip

pows, addn, top_k, inv = arithmetic.pow, operators.add_n, ordering.topk, unary.reciprocal


def repeat_elements(x: Tensor, rep: int, axis: int = 0) -> Tensor:
    """Each entry of an axis `rep` times."""
    return joining.repeat_interleave(x, rep, axis)


def make_range(*bounds: int) -> tuple[int, ...]:
    """Integers as `range` gives them."""
    return tuple(range(*bounds))


def tuple_len(x: Sequence[Any]) -> int:
    """How many values are in a tuple."""
    return len(x)


def aminmax(input: Tensor, *, axis: int | None = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest elements along an axis, or of all."""
    return reductions.amin(input, axis, keepdims), reductions.amax(input, axis, keepdims)


def block_diag(*inputs: Tensor) -> Tensor:
    """Matrices along the diagonal of one that is 0 elsewhere; vectors are rows."""
    blocks = [shapes.reshape(x, (1, -1)) if x.ndim < 2 else x for x in inputs]
    width, left = sum(b.shape[1] for b in blocks), 0
    made: list[Tensor] = []
    for block in blocks:
        made.append(images.pad(block, (left, width - left - block.shape[1])))
        left += block.shape[1]
    return joining.concat(made, 0)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors as columns, and matrices, joined along the second axis."""
    return joining.concat([shapes.reshape(t, (-1, 1)) if t.ndim < 2 else t for t in tensors], 1)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last axis as diagonals of matrices, which are the axes `dim1` and `dim2`."""
    size = input.shape[-1] + abs(offset)
    rows = images.pad(input, (offset, 0) if offset >= 0 else (0, -offset))
    columns = shapes.expand_dims(rows, -2)
    made = arithmetic.mul(
        shapes.broadcast_to(columns, (*columns.shape[:-2], size, size)), _diagonal(size, offset, input.dtype)
    )
    return shapes.movedim(made, (-2, -1), (dim1, dim2)) if (dim1, dim2) != (-2, -1) else made


def _diagonal(size: int, offset: int, dtype: Any) -> Tensor:
    ones = creation.ones((size, size), dtype)
    return arithmetic.sub(creation.triu(ones, offset), creation.triu(ones, offset + 1))


def diff(x: Tensor, n: int = 1, axis: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The differences of neighbours along an axis, n times, with values joined in front and behind first."""
    parts = [part for part in (prepend, x, append) if part is not None]
    x = joining.concat(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        size = x.shape[axis_of(x, axis, "diff")]
        x = arithmetic.sub(joining.narrow(x, axis, 1, size - 1), joining.narrow(x, axis, 0, size - 1))
    return x


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference."""
    return reductions.norm(shapes.ravel(arithmetic.sub(input, other)), p)


def _parts(x: Tensor, indices_or_sections: int | Sequence[int], axis: int) -> tuple[Tensor, ...]:
    return tuple(joining.tensor_split(x, indices_or_sections, axis))


def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Parts along the second axis; of a vector, along its only one."""
    return _parts(input, indices_or_sections, min(1, input.ndim - 1))


def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Parts along the first axis."""
    return _parts(input, indices_or_sections, 0)


def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Parts along the third axis."""
    return _parts(input, indices_or_sections, 2)


def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger elements, and where one is NaN the other."""
    return selection.where(
        unary.isnan(input), other, selection.where(unary.isnan(other), input, arithmetic.maximum(input, other))
    )


def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller elements, and where one is NaN the other."""
    return selection.where(
        unary.isnan(input), other, selection.where(unary.isnan(other), input, arithmetic.minimum(input, other))
    )


def ger(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of an element of one vector with one of the other."""
    return linear.outer(input, vec2)


def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below 0, the value at 0, 1 above."""
    return selection.where(comparison.equal(input, 0), values, shapes.cast(comparison.greater(input, 0), input.dtype))


def hypot(input: Tensor, other: Tensor) -> Tensor:
    """The root of the sum of the squares, without overflow: sizes are divided by the larger one."""
    a, b = unary.abs(input), unary.abs(other)
    most, least = arithmetic.maximum(a, b), arithmetic.minimum(a, b)
    share = arithmetic.div(least, selection.where(comparison.equal(most, 0), 1.0, most))
    return selection.where(
        unary.isinf(most), most, arithmetic.mul(most, unary.sqrt(arithmetic.add(unary.square(share), 1.0)))
    )


def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """log(e^a + e^b), without overflow."""
    return apply("log_add_exp", *map(as_float, pair("logaddexp", input, other)))


def lp_norm(x: Tensor, *, axis: Any, p: int = 2, keep_dims: bool = False, epsilon: float = 1e-12) -> Tensor:
    """The p-norm along axes, of which sums are `epsilon` at least."""
    total = reductions.sum(arithmetic.pow(unary.abs(x), float(p)), sizes_of(axis), keep_dims)
    return arithmetic.pow(activation.clamp(total, epsilon), 1.0 / p)


def nan_to_num(input: Tensor, nan: float | None = None, posinf: Any = None, neginf: Any = None) -> Tensor:
    """Numbers in place of NaN (0) and of infinities (the largest and the smallest number of the type)."""
    finfo: Any = ml_dtypes.finfo
    largest = float(finfo(input.dtype.numpy).max)
    x = selection.where(unary.isnan(input), 0.0 if nan is None else nan, input)
    x = selection.where(comparison.equal(x, float("inf")), largest if posinf is None else posinf, x)
    return selection.where(comparison.equal(x, float("-inf")), -largest if neginf is None else neginf, x)


def nansum(input: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements that are no NaN."""
    return reductions.sum(selection.where(unary.isnan(input), 0.0, input), axis, keepdims)


def sequence_mask(lengths: Tensor, maxlen: int | None = None) -> Tensor:
    """Which places of sequences of up to `maxlen` elements are below their lengths, along a new last axis."""
    most = int(reductions.amax(lengths)) if maxlen is None else maxlen
    return comparison.less(creation.arange(most), shapes.expand_dims(lengths, -1))


def sinc(input: Tensor) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0."""
    x = arithmetic.mul(input, 3.141592653589793)
    safe = selection.where(comparison.equal(x, 0), 1.0, x)
    return selection.where(comparison.equal(x, 0), 1.0, arithmetic.div(unary.sin(safe), safe))


def truncate_div(x: Any, y: Any) -> Tensor:
    """The quotient, rounded towards 0 for integers."""
    return arithmetic.div(x, y, rounding_mode="trunc")


def truncate_mod(x: Any, y: Any) -> Tensor:
    """What the quotient that is rounded towards 0 leaves."""
    return arithmetic.fmod(x, y)


# Operators that change a Parameter.


def _changed(name: str, scatter: Any, one_index: bool) -> Any:
    def change(input_x: Parameter, indices: Tensor, updates: Tensor) -> Parameter:
        if not isinstance(input_x, Parameter):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ApiTypeError("MSC0807", f"{name} changes a Parameter, not {described(input_x)}")
        places = shapes.expand_dims(indices, -1) if one_index else indices
        return input_x.set_data(scatter(input_x, places, updates))

    change.__name__ = change.__qualname__ = name
    change.__doc__ = f"A Parameter, changed at indices as `{scatter.__name__}` changes a tensor."
    return change


scatter_nd_update = _changed("scatter_nd_update", scattering.tensor_scatter_update, False)
scatter_nd_add = _changed("scatter_nd_add", scattering.tensor_scatter_add, False)
scatter_nd_sub = _changed("scatter_nd_sub", scattering.tensor_scatter_sub, False)
scatter_update = _changed("scatter_update", scattering.tensor_scatter_update, True)


def _float_status(x: Tensor) -> Tensor:
    """1 if an element is infinite or no number, else 0, in Float32 of one element."""
    return shapes.reshape(shapes.cast(unary.logical_not(reductions.all(unary.isfinite(x))), dtypes.float32), (1,))


def _uniform_real(shape: Any, *, seed: int = 0, seed2: int = 0) -> Tensor:
    """Numbers uniform in [0, 1)."""
    return random.rand(sizes_of(shape), seed=(seed or seed2) or None)


def _uniform_int(shape: Any, minval: Any, maxval: Any, *, seed: int = 0, seed2: int = 0) -> Tensor:
    """Integers (Int32) uniform in [minval, maxval)."""
    low, high = (int(v) for v in (minval, maxval))
    return random.randint(low, high, sizes_of(shape), (seed or seed2) or None, dtype=dtypes.int32)


def _scalar_to_tensor(input_x: Number, dtype: Any = dtypes.float32) -> Tensor:
    """A number as a tensor."""
    return Tensor(input_x, dtype)


def _adaptive(x: Tensor, *, output_size: Any) -> Tensor:
    """The means of parts of images."""
    return windows.adaptive_avg_pool2d(x, output_size)


AdaptiveAvgPool2D = operator("AdaptiveAvgPool2D", _adaptive, "output_size")
FloatStatus = operator("FloatStatus", _float_status)
Gelu = operators.GeLU
LpNorm = operator("LpNorm", lp_norm, "axis p keep_dims epsilon")
Partial = operator("Partial", mapping.partial)
ScalarToTensor = operator("ScalarToTensor", _scalar_to_tensor)
ScatterAdd = operator("ScatterAdd", _changed("ScatterAdd", scattering.tensor_scatter_add, True))
ScatterNdAdd = operator("ScatterNdAdd", scatter_nd_add)
ScatterNdUpdate = operator("ScatterNdUpdate", scatter_nd_update)
ScatterSub = operator("ScatterSub", _changed("ScatterSub", scattering.tensor_scatter_sub, True))
ScatterUpdate = operator("ScatterUpdate", scatter_update)
StopGradient = operator("StopGradient", methods.stop_gradient)
UniformInt = operator("UniformInt", _uniform_int, "seed seed2")
UniformReal = operator("UniformReal", _uniform_real, "seed seed2")

for _function in (aminmax, diff, heaviside, hypot, hsplit, vsplit, nansum, nan_to_num, inv):
    tensor_method(_function.__name__)(_function)
