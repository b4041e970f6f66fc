"""Dense, embedding, dropout and what moves elements: the layers without a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.errors import ApiValueError
from msc.frontend.expectations import expect_labels
from msc.frontend.initializers import Init
from msc.frontend.settings import unused
from msc.frontend.tensor import Number, Tensor
from msc.nn.activation import Activation, activation_of
from msc.nn.arguments import boolean, positive
from msc.nn.cell import Cell
from msc.nn.parameters import parameter
from msc.ops.windows import Sizes

__all__ = [
    "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Dense", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d",
    "Embedding", "Flatten", "Identity", "Linear", "Pad", "PixelShuffle", "PixelUnshuffle", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Upsample",
    "ZeroPad2d",
]  # fmt: skip


class Dense(Cell):
    """A fully connected layer: `[..., in]` -> `[..., out]`; weight `[out, in]`, bias `[out]` if `has_bias`.

    Weight and bias begin uniform within 1 / sqrt(in). `activation` is a name or a cell.
    """

    MEMBERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "bias_add": lambda _: ops.BiasAdd(),
        "matmul": lambda _: ops.MatMul(transpose_b=True),
        "reshape": lambda _: ops.Reshape(),
        "shape_op": lambda _: ops.Shape(),
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Init = None,
        bias_init: Init = None,
        has_bias: bool = True,
        activation: Activation = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        positive("Dense", in_channels=in_channels, out_channels=out_channels)
        order = "in_channels, out_channels, weight_init, bias_init, has_bias, activation"
        boolean("Dense", "has_bias", has_bias, order)
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


Linear = Dense


class Embedding(Cell):
    """Rows of a table `[vocab_size, embedding_size]`, one for each index; with `use_one_hot`, by a product."""

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: Init = "normal",
        dtype: DTypeLike = dtypes.float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        positive("Embedding", vocab_size=vocab_size, embedding_size=embedding_size)
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.use_one_hot = use_one_hot
        self.padding_idx = padding_idx
        self.embedding_table = parameter(embedding_table, (vocab_size, embedding_size), "embedding_table", dtype)
        if padding_idx is not None:
            if not 0 <= padding_idx < vocab_size:
                raise ApiValueError("MSC0824", f"Embedding: padding_idx {padding_idx} is not a row of {vocab_size}")
            self.embedding_table[padding_idx] = 0.0

    def construct(self, ids: Tensor) -> Tensor:
        if self.use_one_hot:
            expect_labels("Embedding", ids, self.vocab_size)
            return ops.matmul(ops.one_hot(ids, self.vocab_size, 1.0, 0.0), self.embedding_table)
        return ops.gather(self.embedding_table, ids, 0)

    def extend_repr(self) -> str:
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
            f"dtype={self.embedding_table.dtype}, padding_idx={self.padding_idx}"
        )


class Flatten(Cell):
    """The axes from `start_dim` to `end_dim` as one: `[n, ...]` -> `[n, m]`."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def construct(self, x: Tensor) -> Tensor:
        return ops.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Identity(Cell):
    """The input itself."""

    def construct(self, x: Tensor) -> Tensor:
        return x


class Dropout(Cell):
    """Elements set to 0 with probability p while the cell is trained, the others scaled by 1 / (1 - p).

    `keep_prob` is 1 - p as early releases have it; of both p counts.
    """

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__()
        unused("Dropout", dtype=None if as_dtype(dtype) is dtypes.float32 else dtype)
        drop = 1.0 - keep_prob if p is None else p
        if not 0 <= drop < 1:
            raise ApiValueError("MSC0824", f"Dropout: the probability p is {drop}; it must be in [0, 1)")
        self.p = drop
        self.keep_prob = 1.0 - drop
        self.written = f"p={p}" if p is not None else f"keep_prob={keep_prob}"

    def construct(self, x: Tensor) -> Tensor:
        return ops.dropout(x, self.p, self.training)

    def extend_repr(self) -> str:
        return self.written


class Dropout1d(Cell):
    """Whole channels of `[n, c, w]` set to 0 with probability p while the cell is trained."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def construct(self, x: Tensor) -> Tensor:
        return ops.dropout1d(x, self.p, self.training)

    def extend_repr(self) -> str:
        return f"p={self.p}"


class Dropout2d(Dropout1d):
    """Whole channels of images set to 0 with probability p while the cell is trained."""


class Dropout3d(Dropout1d):
    """Whole channels of volumes set to 0 with probability p while the cell is trained."""


class Pad(Cell):
    """Elements added: a pair of amounts for each axis; `mode` is "CONSTANT" (0), "REFLECT" or "SYMMETRIC"."""

    def __init__(self, paddings: Sequence[Sequence[int]], mode: str = "CONSTANT") -> None:
        super().__init__()
        if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
            raise ApiValueError("MSC0824", f"Pad: mode is {mode!r}, not 'CONSTANT', 'REFLECT' or 'SYMMETRIC'")
        self.paddings = tuple((int(begin), int(end)) for begin, end in paddings)
        self.mode = mode

    def construct(self, x: Tensor) -> Tensor:
        amounts = [amount for pair in reversed(self.paddings) for amount in pair]
        return ops.pad(x, amounts, self.mode.lower())


class _PadLast(Cell):
    """Base: elements added to the last `AXES` axes."""

    AXES = 1
    MODE = "constant"

    def __init__(self, padding: Sizes, value: Number = 0) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.AXES) if isinstance(padding, int) else tuple(padding)
        self.value = value

    def construct(self, x: Tensor) -> Tensor:
        return ops.pad(x, self.padding, self.MODE, self.value)


class ConstantPad1d(_PadLast):
    """A number added before and after the last axis."""


class ConstantPad2d(_PadLast):
    """A number added around images: left, right, top, bottom."""

    AXES = 2


class ConstantPad3d(_PadLast):
    """A number added around volumes."""

    AXES = 3


class ZeroPad2d(ConstantPad2d):
    """Zeros added around images: left, right, top, bottom."""

    def __init__(self, padding: Sizes) -> None:
        super().__init__(padding)


class ReflectionPad1d(_PadLast):
    """The last axis mirrored at its ends."""

    MODE = "reflect"


class ReflectionPad2d(ReflectionPad1d):
    """Images mirrored at their borders: left, right, top, bottom."""

    AXES = 2


class ReplicationPad1d(_PadLast):
    """The elements at the ends of the last axis repeated."""

    MODE = "replicate"


class ReplicationPad2d(ReplicationPad1d):
    """The elements at the borders of images repeated: left, right, top, bottom."""

    AXES = 2


class Upsample(Cell):
    """Spatial axes of `[n, c, ...]` resized to a size or by a factor."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def construct(self, x: Tensor) -> Tensor:
        return ops.interpolate(
            x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )


class PixelShuffle(Cell):
    """Channels `[n, c r r, h, w]` as pixels `[n, c, h r, w r]`."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def construct(self, x: Tensor) -> Tensor:
        return ops.pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Cell):
    """Pixels `[n, c, h r, w r]` as channels `[n, c r r, h, w]`."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def construct(self, x: Tensor) -> Tensor:
        return ops.pixel_unshuffle(x, self.downscale_factor)


class ReflectionPad3d(ReflectionPad1d):
    """Volumes mirrored at their borders."""

    AXES = 3


class ReplicationPad3d(ReplicationPad1d):
    """The elements at the borders of volumes repeated."""

    AXES = 3
