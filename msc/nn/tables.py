"""Layers that look up, take patches and multiply two inputs."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

from typing import Any

from msc import ops
from msc.frontend import dtypes
from msc.frontend.errors import ApiValueError
from msc.frontend.initializers import Uniform
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor
from msc.nn.arguments import positive
from msc.nn.cell import Cell
from msc.nn.parameters import parameter

__all__ = ["BiDense", "ChannelShuffle", "EmbeddingLookup", "Roll", "Unflatten", "Unfold"]


class Unfold(Cell):
    """Patches of images `[n, c, h, w]` as channels `[n, kh kw c, rows, columns]`; sizes are `[1, h, w, 1]`."""

    def __init__(self, ksizes: Any, strides: Any, rates: Any, padding: str = "valid") -> None:
        super().__init__()
        for name, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if len(value) != 4 or (value[0], value[3]) != (1, 1):
                raise ApiValueError("MSC0824", f"Unfold: {name} is {value}; it is [1, rows, columns, 1]")
        if padding.lower() not in ("same", "valid"):
            raise ApiValueError("MSC0824", f"Unfold: padding is {padding!r}, not 'same' or 'valid'")
        self.kernel, self.stride, self.rate = tuple(ksizes[1:3]), tuple(strides[1:3]), tuple(rates[1:3])
        self.padding = padding.lower()

    def construct(self, input_x: Tensor) -> Tensor:
        pads: list[tuple[int, int]] = []
        counts: list[int] = []
        for size, k, s, r in zip(input_x.shape[2:], self.kernel, self.stride, self.rate, strict=True):
            width = (k - 1) * r + 1
            count = -(-size // s) if self.padding == "same" else (size - width) // s + 1
            extra = max((count - 1) * s + width - size, 0) if self.padding == "same" else 0
            pads.append((extra // 2, extra - extra // 2))
            counts.append(count)
        (top, bottom), (left, right) = pads
        padded = ops.pad(input_x, (left, right, top, bottom))
        columns = ops.unfold(padded, self.kernel, self.rate, 0, self.stride)
        n, c = input_x.shape[:2]
        split = ops.reshape(columns, (n, c, self.kernel[0] * self.kernel[1], *counts))
        return ops.reshape(ops.swapaxes(split, 1, 2), (n, -1, *counts))


class EmbeddingLookup(Cell):
    """Rows of a table `[vocab_size, embedding_size]`; `embedding_table` is the parameter."""

    def __init__(
        self, vocab_size: int, embedding_size: int, param_init: Any = "normal", target: str = "CPU",
        slice_mode: str = "batch_slice", manual_shapes: Any = None, max_norm: Any = None, sparse: bool = True,
        dtype: Any = dtypes.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        positive("EmbeddingLookup", vocab_size=vocab_size, embedding_size=embedding_size)
        unused("EmbeddingLookup", primitive_target=target, in_strategy=manual_shapes)
        self.vocab_size, self.embedding_size, self.max_norm = vocab_size, embedding_size, max_norm
        self.slice_mode, self.sparse = slice_mode, sparse
        self.embedding_table = parameter(param_init, (vocab_size, embedding_size), "embedding_table", dtype)

    def construct(self, indices: Tensor) -> Tensor:
        rows = ops.gather(self.embedding_table, indices, 0)
        if self.max_norm is None:
            return rows
        norms = ops.sqrt(ops.sum(ops.square(rows), -1, True))
        return ops.where(norms > self.max_norm, rows * (self.max_norm / ops.maximum(norms, 1e-12)), rows)


class BiDense(Cell):
    """y_o = x1 W_o x2 + bias."""

    def __init__(
        self, in1_channels: int, in2_channels: int, out_channels: int, weight_init: Any = None, bias_init: Any = None,
        has_bias: bool = True, dtype: Any = dtypes.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        positive("BiDense", in1_channels=in1_channels, in2_channels=in2_channels, out_channels=out_channels)
        limit = Uniform(in1_channels**-0.5)
        shape = (out_channels, in1_channels, in2_channels)
        self.weight = parameter(limit if weight_init is None else weight_init, shape, "weight", dtype)
        self.bias = (
            parameter(limit if bias_init is None else bias_init, (out_channels,), "bias", dtype) if has_bias else None
        )

    def construct(self, input1: Tensor, input2: Tensor) -> Tensor:
        return ops.bidense(input1, input2, self.weight, self.bias)


class ChannelShuffle(Cell):
    """Channels of groups, taken in turn."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def construct(self, x: Tensor) -> Tensor:
        return ops.channel_shuffle(x, self.groups)


class Roll(Cell):
    """Axes turned by so many places."""

    def __init__(self, shift: Any, axis: Any) -> None:
        super().__init__()
        self.shift, self.axis = shift, axis

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.roll(input_x, self.shift, self.axis)


class Unflatten(Cell):
    """An axis as several."""

    def __init__(self, axis: int, unflattened_size: Any) -> None:
        super().__init__()
        self.axis, self.unflattened_size = axis, unflattened_size

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.unflatten(input_x, self.axis, self.unflattened_size)
