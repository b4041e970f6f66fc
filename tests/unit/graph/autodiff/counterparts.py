"""What each differentiable operation of the ms dialect is in PyTorch: the table that gradients are compared by.

A counterpart takes the module `torch`, the operation and its operands. An operation without one has a reason here.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeArgument=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np

Counterpart: TypeAlias = Callable[..., Any]

WITHOUT: dict[str, str] = {
    "barrier": "it says when x is computed, not what",
    "compute": "its statements are any; those that gradients need are in the gradients of other operations",
}
"""Operations without a counterpart, with the reason."""

FLOATS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
"""Element types, by PyTorch's names."""

SAME_NAME = (
    "neg abs sign exp expm1 log log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh cosh tanh asinh "
    "acosh atanh erf sigmoid floor ceil round trunc relu add sub mul div pow maximum minimum atan2"
).split()
FUNCTIONS = "softplus relu6 mish softsign selu silu".split()
"""Of `torch.nn.functional`."""


def _named(name: str) -> Counterpart:
    return lambda torch, op, *operands: getattr(torch, name)(*operands)


def _function(name: str, *properties: str) -> Counterpart:
    """A function of `torch.nn.functional`, which takes properties of the operation after its operands."""
    return lambda torch, op, *operands: getattr(torch.nn.functional, name)(
        *operands, *(op.plain(key) for key in properties)
    )


def _reduction(name: str) -> Counterpart:
    def function(torch: Any, op: Any, x: Any) -> Any:
        axes = op.ints("axis") or tuple(range(x.dim()))
        return getattr(torch, name)(x, axes, keepdim=op.flag("keep_dims"))

    return function


def _product(torch: Any, op: Any, x: Any) -> Any:
    """PyTorch's takes one axis."""
    for axis in {k % x.dim() for k in op.ints("axis")} or range(x.dim()):
        x = x.prod(axis, keepdim=True)
    return x.reshape(op.result_shape())


def _cumulative_sum(torch: Any, op: Any, x: Any) -> Any:
    axis = op.int_("axis")
    y = x.flip(axis).cumsum(axis).flip(axis) if op.flag("reverse") else x.cumsum(axis)
    return y - x if op.flag("exclusive") else y


def _matrix_product(torch: Any, op: Any, a: Any, b: Any) -> Any:
    return torch.matmul(a.mT if op.flag("transpose_a") else a, b.mT if op.flag("transpose_b") else b)


def _around(torch: Any, x: Any, amounts: Iterable[tuple[int, int]], value: float = 0.0) -> Any:
    """Padding before and after the last axes; a negative one cuts off."""
    return torch.nn.functional.pad(x, [p for pair in reversed([*amounts]) for p in pair], value=value)


def _convolution(torch: Any, op: Any, x: Any, *weights: Any) -> Any:
    function = getattr(torch.nn.functional, f"conv{op.SPATIAL}d")
    options = {"stride": op.ints("stride"), "dilation": op.ints("dilation"), "groups": op.int_("group")}
    return function(_around(torch, x, op.padding()), *weights, **options)


def _transposed_convolution(torch: Any, op: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """The full one, cut and lengthened: PyTorch's own padding is the same at both ends."""
    function = getattr(torch.nn.functional, f"conv_transpose{op.SPATIAL}d")
    options = {"stride": op.ints("stride"), "dilation": op.ints("dilation"), "groups": op.int_("group")}
    ends = zip(op.padding(), op.added_at_end(), strict=True)
    y = _around(torch, function(x, weight, **options), [(-begin, more - end) for (begin, end), more in ends])
    return y if bias is None else y + bias.reshape(-1, *[1] * op.SPATIAL)


def _subpixel_convolution(torch: Any, op: Any, x: Any, weight: Any) -> Any:
    """A convolution for each place between elements, side by side."""
    axes, begin, finer = op.axes, op.ints("begin"), op.finer()
    positions = op.result_shape()[2::2]
    parts: list[Any] = []
    for place in product(*map(range, finer)):
        first = [(p + b) // f for p, b, f in zip(place, begin, finer, strict=True)]
        moved = _around(torch, x, [(-n, 0) for n in first])
        y = getattr(torch.nn.functional, f"conv{axes}d")(moved, weight[place], groups=op.int_("group"))
        parts.append(y[(..., *map(slice, positions))])
    y = torch.stack(parts).reshape(*finer, *parts[0].shape)
    return y.permute(axes, axes + 1, *(k for axis in range(axes) for k in (axes + 2 + axis, axis)))


def _window_ends(op: Any) -> list[tuple[int, int]]:
    return [(begin, end + more) for (begin, end), more in zip(op.padding(), op.overhang(), strict=True)]


def _max_pool(torch: Any, op: Any, x: Any) -> Any:
    function = getattr(torch.nn.functional, f"max_pool{op.SPATIAL}d")
    padded = _around(torch, x, _window_ends(op), -np.inf)
    return function(padded, op.ints("kernel_size"), op.ints("stride"), dilation=op.ints("dilation"))


def _window_sums(torch: Any, op: Any, x: Any) -> Any:
    """A convolution with ones: PyTorch's average pools have no dilation."""
    ones = torch.ones((1, 1, *op.ints("kernel_size")), dtype=x.dtype)
    function = getattr(torch.nn.functional, f"conv{op.SPATIAL}d")
    y = function(x.reshape(-1, 1, *x.shape[2:]), ones, stride=op.ints("stride"), dilation=op.ints("dilation"))
    return y.reshape(*x.shape[:2], *y.shape[2:])


def _sum_pool(torch: Any, op: Any, x: Any) -> Any:
    return _window_sums(torch, op, _around(torch, x, _window_ends(op)))


def _avg_pool(torch: Any, op: Any, x: Any) -> Any:
    counted = _around(torch, torch.ones_like(x), op.padding(), float(op.flag("count_include_pad")))
    counts = _window_sums(torch, op, _around(torch, counted, [(0, more) for more in op.overhang()]))
    return _sum_pool(torch, op, x) / counts


def _batch_norm(torch: Any, op: Any, x: Any, *channels: Any) -> Any:
    """Written out: PyTorch's has no gradient by mean and variance."""
    scale, offset, mean, variance = (c.reshape(-1, *[1] * (x.dim() - 2)) for c in channels)
    return (x - mean) / torch.sqrt(variance + op.real("epsilon")) * scale + offset


def _layer_norm(torch: Any, op: Any, x: Any, gamma: Any, beta: Any = None) -> Any:
    return torch.layer_norm(x, gamma.shape, gamma, beta, op.real("epsilon"))


def _dequantized(torch: Any, op: Any, x: Any, scale: Any, zero: Any = 0) -> Any:
    wide = torch.float64 if scale.dtype == torch.float64 else torch.float32
    return ((x - zero).to(wide) * scale.to(wide)).to(scale.dtype)


def _resized(torch: Any, op: Any, x: Any) -> Any:
    return torch.nn.functional.interpolate(x, op.ints("size"), mode="nearest")


def _taken(torch: Any, x: Any, places: Iterable[Sequence[int] | np.ndarray]) -> Any:
    """The elements at some places of each axis."""
    for axis, chosen in enumerate(places):
        x = x.index_select(axis, torch.tensor([*map(int, chosen)], dtype=torch.int64))
    return x


def _padded(torch: Any, op: Any, x: Any) -> Any:
    """PyTorch's other modes take the last axes only: their elements are taken by index."""
    amounts, mode = op.amounts(), op.word("mode")
    if mode == "constant":
        return _around(torch, x, amounts, op.real("value"))
    return _taken(torch, x, (np.pad(np.arange(n), a, mode) for n, a in zip(x.shape, amounts, strict=True)))


def _dilated(torch: Any, op: Any, x: Any) -> Any:
    y = torch.zeros(op.result_shape(), dtype=x.dtype)
    y[tuple(slice(None, None, k + 1) for k in op.ints("interior"))] = x
    return y


def _windows(torch: Any, op: Any, x: Any) -> Any:
    size, stride = op.ints("size"), op.ints("stride")
    axes = len(size)
    for axis in range(axes):
        x = x.unfold(2 + axis, size[axis], stride[axis])
    return x.permute(0, 1, *(k for axis in range(axes) for k in (2 + axis, 2 + axes + axis)))


def _axis_transformed(torch: Any, op: Any, x: Any) -> Any:
    axis = op.int_("axis") % x.dim()
    matrix = torch.tensor(op.plain("matrix"), dtype=x.dtype).reshape(-1, x.shape[axis])
    return torch.tensordot(matrix, x, ([1], [axis])).movedim(0, axis)


def _space_from_depth(torch: Any, op: Any, x: Any) -> Any:
    b = op.int_("block_size")
    if op.word("mode") == "DCR":
        x = x.unflatten(1, (b * b, -1)).transpose(1, 2).flatten(1, 2)
    return torch.pixel_shuffle(x, b)


def _depth_from_space(torch: Any, op: Any, x: Any) -> Any:
    b = op.int_("block_size")
    y = torch.pixel_unshuffle(x, b)
    return y.unflatten(1, (-1, b * b)).transpose(1, 2).flatten(1, 2) if op.word("mode") == "DCR" else y


def _view(torch: Any, op: Any, x: Any) -> Any:
    return x.reshape(op.result_shape())


def _gathered(torch: Any, op: Any, x: Any, indices: Any) -> Any:
    return x.index_select(op.int_("axis"), indices.flatten()).reshape(op.result_shape())


def _scattered(torch: Any, op: Any, x: Any, indices: Any, updates: Any) -> Any:
    return x.index_add(0, indices.flatten(), updates.reshape(-1, *x.shape[1:]))


def _spatial(x: Any) -> tuple[int, ...]:
    return tuple(range(2, x.dim()))


COUNTERPARTS: dict[str, Counterpart] = {
    **{name: _named(name) for name in SAME_NAME},
    **{name: _function(name) for name in FUNCTIONS},
    "mod": _named("remainder"),
    "mul_no_nan": _named("mul"),
    "xlogy": _named("xlogy"),
    "log_add_exp": _named("logaddexp"),
    "logit": _named("logit"),
    "binary_cross_entropy": lambda torch, op, x, y: -(y * x.log() + (1 - y) * (1 - x).log()),
    "rem": _named("fmod"),
    "floor_div": lambda torch, op, a, b: torch.div(a, b, rounding_mode="floor"),
    "identity": _named("clone"),
    "stop_gradient": _named("detach"),
    "cast": lambda torch, op, x: x.to(getattr(torch, FLOATS[op.result_dtype()])),
    "dequantize": _dequantized,
    "leaky_relu": _function("leaky_relu", "alpha"),
    "elu": _function("elu", "alpha"),
    "celu": _function("celu", "alpha"),
    "hard_swish": _function("hardswish"),
    "hard_sigmoid": lambda torch, op, x: (x * op.real("alpha") + op.real("beta")).clamp(0, 1),
    "gelu": lambda torch, op, x: torch.nn.functional.gelu(x, approximate=op.word("approximate")),
    "prelu": _function("prelu"),
    "clip": lambda torch, op, x: x.clamp(op.plain("min"), op.plain("max")),
    "softmax": _function("softmax", "axis"),
    "log_softmax": _function("log_softmax", "axis"),
    "select": _named("where"),
    **{f"reduce_{name}": _reduction(name) for name in ("sum", "mean")},
    **{f"reduce_{name}": _reduction(f"a{name}") for name in ("max", "min")},
    "reduce_prod": _product,
    "cumsum": _cumulative_sum,
    "matmul": _matrix_product,
    "batch_matmul": _matrix_product,
    "dense": _function("linear"),
    **{f"conv{n}d": _convolution for n in (1, 2, 3)},
    **{f"conv{n}d_transpose": _transposed_convolution for n in (1, 2, 3)},
    "subpixel_conv": _subpixel_convolution,
    **{f"max_pool{n}d": _max_pool for n in (1, 2, 3)},
    **{f"sum_pool{n}d": _sum_pool for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _avg_pool for n in (1, 2, 3)},
    "global_avg_pool": lambda torch, op, x: x.mean(_spatial(x), keepdim=True),
    "global_max_pool": lambda torch, op, x: x.amax(_spatial(x), keepdim=True),
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "rms_norm": lambda torch, op, x, gamma: torch.rms_norm(x, gamma.shape, gamma, op.real("epsilon")),
    "group_norm": lambda torch, op, x, g, b: torch.group_norm(x, op.int_("num_groups"), g, b, op.real("epsilon")),
    "instance_norm": lambda torch, op, x, g, b: torch.instance_norm(
        x, g, b, None, None, True, 0.0, op.real("epsilon"), False
    ),
    "l2_normalize": lambda torch, op, x: torch.nn.functional.normalize(
        x, dim=op.ints("axis"), eps=op.real("epsilon") ** 0.5
    ),
    **dict.fromkeys(("reshape", "flatten", "squeeze", "expand_dims"), _view),
    "transpose": lambda torch, op, x: x.permute(op.ints("perm") or (*reversed(range(x.dim())),)),
    "broadcast_to": lambda torch, op, x: x.broadcast_to(op.result_shape()),
    "concat": lambda torch, op, *inputs: torch.cat(inputs, op.int_("axis")),
    "stack": lambda torch, op, *inputs: torch.stack(inputs, op.int_("axis")),
    "split": lambda torch, op, x: x.split(op.ints("sizes"), op.int_("axis")),
    "slice": lambda torch, op, x: _taken(torch, x, op.ranges()),
    "tile": lambda torch, op, x: x.tile(op.ints("multiples")),
    "reverse": lambda torch, op, x: x.flip(op.ints("axis")),
    "pad": _padded,
    "dilate": _dilated,
    "windows": _windows,
    "transform_axis": _axis_transformed,
    "gather": _gathered,
    "gather_elements": lambda torch, op, x, indices: x.gather(op.int_("axis"), indices),
    "scatter_add": _scattered,
    "extract_slice": lambda torch, op, x, index: x[index],
    "insert_slice": lambda torch, op, x, index, value: torch.select_scatter(x, value, 0, int(index)),
    "tril": lambda torch, op, x: x.tril(op.int_("diagonal")),
    "triu": lambda torch, op, x: x.triu(op.int_("diagonal")),
    "resize_nearest": _resized,
    "depth_to_space": _space_from_depth,
    "space_to_depth": _depth_from_space,
}
"""By name of the operation, without `ms.`."""
