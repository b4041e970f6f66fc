"""Dense and what moves elements: the layers without a window."""

from __future__ import annotations

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dtypes import DTypeLike
from msc.frontend.errors import ApiTypeError
from msc.frontend.initializers import Init
from msc.frontend.tensor import Tensor
from msc.nn.activation import Activation, activation_of
from msc.nn.cell import Cell
from msc.nn.parameters import parameter


class Dense(Cell):
    """A fully connected layer: x `[..., in]` -> `[..., out]`; weight `[out, in]`, bias `[out]` if `has_bias`.

    Weight and bias begin uniform within 1 / sqrt(in). `activation` is a name or a cell.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Init = None,
        bias_init: Init = None,
        has_bias: object = True,
        activation: Activation = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        if not isinstance(has_bias, bool):
            raise ApiTypeError(
                "MSC0824",
                f"Dense: has_bias is {has_bias!r}, not a boolean",
                help="the order is Dense(in_channels, out_channels, weight_init, bias_init, has_bias, activation)",
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.has_bias = has_bias
        self.weight = parameter(weight_init, (out_channels, in_channels), "weight", dtype, fan_in=in_channels)
        self.bias = parameter(bias_init, (out_channels,), "bias", dtype, fan_in=in_channels) if has_bias else None
        self.activation = activation_of(activation)
        self.activation_flag = self.activation is not None

    def construct(self, x: Tensor) -> Tensor:
        y = ops.dense(x, self.weight, self.bias)
        return y if self.activation is None else self.activation(y)

    def extend_repr(self) -> str:
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}, has_bias={self.has_bias}"
        return f"{text}, activation={self.activation}" if self.activation_flag else text


class Flatten(Cell):
    """The axes from `start_dim` to `end_dim` as one: `[n, ...]` -> `[n, m]`."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def construct(self, x: Tensor) -> Tensor:
        return ops.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)
