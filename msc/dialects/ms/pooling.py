"""Pooling: a window's largest element, sum or mean, in one, two and three spatial axes; and over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.accumulation import AccumulatingOp
from msc.dialects.ms.base import BasicOp, TensorOp
from msc.dialects.ms.properties import choice_property, flag_property, ints_property
from msc.dialects.ms.shapes import UNKNOWN, shape_text, tensor_type
from msc.dialects.ms.windows import Spatial1d, Spatial2d, Spatial3d, WindowOp
from msc.ir.errors import InvalidAttribute, ShapeConflict
from msc.poly.compute import Combine, Statement, affine_map, dims
from msc.poly.scalar import Read, Scalar


class PoolingOp(WindowOp):
    """Base: x `[n, c, spatial...]` -> `[n, c, spatial...]`, of the same element type.

    With `ceil_mode` a last window may stand out at the end, if it starts inside the input or its begin padding.
    """

    DTYPES: ClassVar[str] = "a number"

    x = operand_def(TensorType)
    pad_mode = choice_property("valid")
    ceil_mode = flag_property(False)

    def kernel(self) -> Sequence[int]:
        return self.ints("kernel_size")

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.result_type_for(self.expect_dtype(0, self.DTYPES))
        n, c, *_ = self.expect_rank(0, self.SPATIAL + 2)
        self.check_padding()
        self._check_padding_inside_window()
        return (tensor_type(dtype, (n, c, *self.output_spatial(self.flag("ceil_mode")))),)

    def result_type_for(self, dtype: str) -> str:
        """Element type of the result for an operand of element type `dtype`."""
        return dtype

    def _check_padding_inside_window(self) -> None:
        for (begin, end), window in zip(self.written_padding(), self.windows(), strict=True):
            if max(begin, end) >= window.span:
                raise InvalidAttribute(
                    f"{self.name}: pad [{', '.join(map(str, self.ints('pad')))}] must be smaller than the window, "
                    f"{shape_text([w.span for w in self.windows()])}, or windows would see nothing but padding"
                )

    def overhang(self) -> tuple[int, ...]:
        """How far the last window stands out at the end of each padded axis: only in `ceil_mode`; 0 where not known."""
        outputs = self.output_spatial(self.flag("ceil_mode"))
        if UNKNOWN in outputs or self.word("pad_mode") == "same":
            return (0,) * self.SPATIAL
        return tuple(
            max((o - 1) * w.stride + w.span - (n + b + e), 0)
            for o, w, n, (b, e) in zip(outputs, self.windows(), self.spatial(), self.padding(), strict=True)
        )


class BasicPoolingOp(PoolingOp, BasicOp):
    """Base of pooling by one combiner, `COMBINE`; basic only if no window reads anything but the input."""

    COMBINE: ClassVar[Combine]

    @property
    def is_basic(self) -> bool:
        return not self.is_padded and not any(self.overhang())

    def compute(self) -> Sequence[Statement]:
        extents = (*self.result_shape(), *self.kernel())
        d, rank = dims(len(extents)), self.SPATIAL + 2
        names = ("n", "c", *self.axis_names("o"), *self.axis_names("k"))
        index = (*d[:2], *self.taps(d[2:rank], d[rank:]))
        body = self.term(Read(0, affine_map(len(d), index), self.dtype(0)))
        return (Statement(extents, names, affine_map(len(d), d[:rank]), body, self.COMBINE),)

    def term(self, body: Scalar) -> Scalar:
        """What is combined."""
        return body


class MaxPoolOp(BasicPoolingOp):
    """Base: the largest element of each window, NaN if there is one; padding is never the largest."""

    COMBINE: ClassVar[Combine] = "max"


class SumPoolOp(AccumulatingOp, BasicPoolingOp):
    """Base: the sum of each window; padding counts as 0."""

    COMBINE: ClassVar[Combine] = "add"


class AvgPoolOp(PoolingOp):
    """Base: the mean of each window, of floats; composite.

    The sum is divided by the number of elements of the input in the window, or with `count_include_pad` by that of the
    elements of the padded input (what stands out in `ceil_mode` never counts).
    """

    DTYPES: ClassVar[str] = "a float"

    count_include_pad = flag_property(False)


class GlobalPoolOp(TensorOp):
    """Base: all spatial axes of x `[n, c, spatial...]` become one element: `[n, c, 1...]`; composite."""

    EXAMPLE: ClassVar[str] = "1x2x4x4xT"
    DTYPES: ClassVar[str] = "a number"

    x = operand_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shape = self.shape(0)
        if len(shape) < 3:
            raise ShapeConflict(f"{self.name}: operand 0 is {shape_text(shape)}, which has no spatial axes")
        if 0 in shape[2:]:
            raise ShapeConflict(f"{self.name}: operand 0 is {shape_text(shape)}, which has nothing to pool")
        return (tensor_type(self.expect_dtype(0, self.DTYPES), (*shape[:2], *(1 for _ in shape[2:]))),)


@irdl_op_definition
class GlobalAvgPoolOp(GlobalPoolOp):
    """Mean over all spatial axes, of floats. MindSpore ReduceMean, ONNX GlobalAveragePool."""

    name = "ms.global_avg_pool"
    DTYPES: ClassVar[str] = "a float"


@irdl_op_definition
class GlobalMaxPoolOp(GlobalPoolOp):
    """Largest element over all spatial axes. MindSpore ReduceMax, ONNX GlobalMaxPool."""

    name = "ms.global_max_pool"


@irdl_op_definition
class MaxPool1dOp(Spatial1d, MaxPoolOp):
    """Largest element of each window: x `[n, c, w]`, `kernel_size` of 1 entry.

    MindSpore MaxPool1d, ONNX MaxPool.
    """

    name = "ms.max_pool1d"
    EXAMPLE: ClassVar[str] = "1x2x8xT {kernel_size = 2, stride = 2}"
    kernel_size = ints_property(1)


@irdl_op_definition
class MaxPool2dOp(Spatial2d, MaxPoolOp):
    """Largest element of each window: x `[n, c, h, w]`, `kernel_size` of 2 entries.

    MindSpore MaxPool, ONNX MaxPool.
    """

    name = "ms.max_pool2d"
    EXAMPLE: ClassVar[str] = "1x2x8x8xT {kernel_size = 2, stride = 2}"
    kernel_size = ints_property(1, 1)


@irdl_op_definition
class MaxPool3dOp(Spatial3d, MaxPoolOp):
    """Largest element of each window: x `[n, c, d, h, w]`, `kernel_size` of 3 entries.

    MindSpore MaxPool3D, ONNX MaxPool.
    """

    name = "ms.max_pool3d"
    EXAMPLE: ClassVar[str] = "1x2x4x4x4xT {kernel_size = 2, stride = 2}"
    kernel_size = ints_property(1, 1, 1)


@irdl_op_definition
class AvgPool1dOp(Spatial1d, AvgPoolOp):
    """Mean of each window: x `[n, c, w]`, `kernel_size` of 1 entry.

    MindSpore AvgPool1d, ONNX AveragePool.
    """

    name = "ms.avg_pool1d"
    EXAMPLE: ClassVar[str] = "1x2x8xT {kernel_size = 2, stride = 2}"
    kernel_size = ints_property(1)


@irdl_op_definition
class AvgPool2dOp(Spatial2d, AvgPoolOp):
    """Mean of each window: x `[n, c, h, w]`, `kernel_size` of 2 entries.

    MindSpore AvgPool, ONNX AveragePool.
    """

    name = "ms.avg_pool2d"
    EXAMPLE: ClassVar[str] = "1x2x8x8xT {kernel_size = 2, stride = 2}"
    kernel_size = ints_property(1, 1)


@irdl_op_definition
class AvgPool3dOp(Spatial3d, AvgPoolOp):
    """Mean of each window: x `[n, c, d, h, w]`, `kernel_size` of 3 entries.

    MindSpore AvgPool3D, ONNX AveragePool.
    """

    name = "ms.avg_pool3d"
    EXAMPLE: ClassVar[str] = "1x2x4x4x4xT {kernel_size = 2, stride = 2}"
    kernel_size = ints_property(1, 1, 1)


@irdl_op_definition
class SumPool1dOp(Spatial1d, SumPoolOp):
    """Sum of each window: x `[n, c, w]`, `kernel_size` of 1 entry.

    What average pooling expands to.
    """

    name = "ms.sum_pool1d"
    EXAMPLE: ClassVar[str] = "1x2x8xT {kernel_size = 2, stride = 2}"
    kernel_size = ints_property(1)


@irdl_op_definition
class SumPool2dOp(Spatial2d, SumPoolOp):
    """Sum of each window: x `[n, c, h, w]`, `kernel_size` of 2 entries.

    What average pooling expands to.
    """

    name = "ms.sum_pool2d"
    EXAMPLE: ClassVar[str] = "1x2x8x8xT {kernel_size = 2, stride = 2}"
    kernel_size = ints_property(1, 1)


@irdl_op_definition
class SumPool3dOp(Spatial3d, SumPoolOp):
    """Sum of each window: x `[n, c, d, h, w]`, `kernel_size` of 3 entries.

    What average pooling expands to.
    """

    name = "ms.sum_pool3d"
    EXAMPLE: ClassVar[str] = "1x2x4x4x4xT {kernel_size = 2, stride = 2}"
    kernel_size = ints_property(1, 1, 1)
