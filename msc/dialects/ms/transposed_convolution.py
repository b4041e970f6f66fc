"""Transposed convolution: the gradient of a convolution to its input, of one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition

from msc.dialects.ms.convolution import WeightedWindowOp
from msc.dialects.ms.properties import ints_property
from msc.dialects.ms.shapes import UNKNOWN, Shape, known, shape_text, tensor_type
from msc.dialects.ms.windows import Padding, Spatial1d, Spatial2d, Spatial3d, Window
from msc.ir.errors import InvalidAttribute, ShapeConflict


class TransposedConvolutionOp(WeightedWindowOp):
    """Base: x `[n, ic, spatial...]`, weight `[ic, oc / group, kernel...]`, bias `[oc]` -> `[n, oc, spatial...]`.

    Composite.
    Each element of x adds the weight times itself to a window of the output, whose size is
    (size of x - 1) * stride + span of the kernel + `output_padding` - padding; with "same" it is size of x * stride.
    """

    @property
    def is_padded(self) -> bool:
        return self.word("pad_mode") != "valid" and any(map(any, self.padding()))

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.check_operands()
        self._check_output_padding()
        return (tensor_type(dtype, (self.shape(0)[0], self.channels()[1], *self.transposed_spatial())),)

    def channels(self) -> tuple[int, int]:
        inputs, group = self.shape(0)[1], self.int_("group")
        weight_inputs, per_group = self.shape(1)[:2]
        if UNKNOWN not in (inputs, weight_inputs) and inputs != weight_inputs:
            raise self.channel_conflict(f"x has {inputs} channels, the weight takes {weight_inputs}")
        if inputs != UNKNOWN and inputs % group:
            raise self.channel_conflict(f"{inputs} input channels do not divide into the groups")
        return inputs, UNKNOWN if per_group == UNKNOWN else per_group * group

    def padding(self) -> Padding:
        """What is cut off before and after each spatial axis of the output."""
        if self.word("pad_mode") != "same":
            return super().padding()
        totals = [max(w.span - w.stride, 0) for w in self.windows()]
        return tuple((total // 2, total - total // 2) for total in totals)

    def added_at_end(self) -> tuple[int, ...]:
        """What the output has beyond the reach of the windows in each axis: `output_padding`, or what "same" needs."""
        if self.word("pad_mode") != "same":
            return self.ints("output_padding")
        return tuple(max(w.stride - w.span, 0) for w in self.windows())

    def transposed_spatial(self) -> Shape:
        """The spatial sizes of the output. Raises ShapeConflict if the padding leaves none."""
        axes = zip(self.spatial(), self.windows(), self.padding(), self.added_at_end(), strict=True)
        sizes = tuple(self._size(*axis) for axis in axes)
        if 0 in self.spatial() or 0 in sizes:
            raise ShapeConflict(f"{self.name}: x of {shape_text(self.shape(0))} without the padding leaves no output")
        return sizes

    def _size(self, length: int, window: Window, padding: tuple[int, int], more: int) -> int:
        if not known((length, window.size)):
            return UNKNOWN
        return max((length - 1) * window.stride + window.span - sum(padding) + more, 0)

    def _check_output_padding(self) -> None:
        more = self.ints("output_padding")
        if len(more) != self.SPATIAL or any(m < 0 for m in more):
            text = ", ".join(map(str, more))
            raise InvalidAttribute(
                f"{self.name}: output_padding [{text}] must have {self.SPATIAL} entries of 0 or more"
            )
        if any(more) and self.word("pad_mode") == "same":
            raise InvalidAttribute(f"{self.name}: output_padding has no meaning with pad_mode = 'same'")


@irdl_op_definition
class Conv1dTransposeOp(Spatial1d, TransposedConvolutionOp):
    """Transposed convolution along one axis: x `[n, ic, w]`, weight `[ic, oc / group, kw]`.

    MindSpore Conv1dTranspose, ONNX ConvTranspose.
    """

    name = "ms.conv1d_transpose"
    EXAMPLE: ClassVar[str] = "1x3x5xT 3x2x3xT {stride = 2, output_padding = 1}"
    output_padding = ints_property(0)


@irdl_op_definition
class Conv2dTransposeOp(Spatial2d, TransposedConvolutionOp):
    """Transposed convolution of images: x `[n, ic, h, w]`, weight `[ic, oc / group, kh, kw]`.

    MindSpore Conv2DTranspose, ONNX ConvTranspose.
    """

    name = "ms.conv2d_transpose"
    EXAMPLE: ClassVar[str] = "1x4x3x4xT 4x2x2x2xT 2xT {stride = 2}"
    output_padding = ints_property(0, 0)


@irdl_op_definition
class Conv3dTransposeOp(Spatial3d, TransposedConvolutionOp):
    """Transposed convolution of volumes: x `[n, ic, d, h, w]`, weight `[ic, oc / group, kd, kh, kw]`.

    MindSpore Conv3DTranspose, ONNX ConvTranspose.
    """

    name = "ms.conv3d_transpose"
    EXAMPLE: ClassVar[str] = "1x2x2x2x2xT 2x1x2x2x2xT"
    output_padding = ints_property(0, 0, 0)
