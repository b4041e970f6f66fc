"""Convolution of one, two and three spatial axes, by one implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def

from msc.dialects.ms.accumulation import AccumulatingOp
from msc.dialects.ms.properties import choice_property, int_property
from msc.dialects.ms.shapes import UNKNOWN, same_size, shape_text, tensor_type
from msc.dialects.ms.windows import Spatial1d, Spatial2d, Spatial3d, WindowOp
from msc.ir.errors import InvalidAttribute, ShapeConflict
from msc.poly.compute import Statement, affine_map, dims
from msc.poly.scalar import Read, apply


class WeightedWindowOp(WindowOp):
    """Base of convolution and transposed convolution: x, weight, bias if any; all of one number type."""

    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    pad_mode = choice_property("valid")
    group = int_property(1)

    def kernel(self) -> Sequence[int]:
        return self.shape(1)[2:]

    def channels(self) -> tuple[int, int]:
        """Input and output channels. Raises ShapeConflict unless x, weight, bias and group agree."""
        raise TypeError(f"{self.name} does not say how many channels it has")

    def check_operands(self) -> str:
        """Check ranks, properties and bias; the common element type."""
        dtype = self.expect_one_dtype("a number")
        self.expect_rank(0, self.SPATIAL + 2)
        self.expect_rank(1, self.SPATIAL + 2)
        self.check_padding()
        if self.int_("group") < 1:
            raise InvalidAttribute(f"{self.name}: group is {self.int_('group')}; it must be 1 or more")
        if self.bias is not None:
            self._check_bias()
        return dtype

    def _check_bias(self) -> None:
        (size,) = self.expect_rank(2, 1)
        if not same_size(size, self.channels()[1]):
            raise ShapeConflict(
                f"{self.name}: the bias is {shape_text(self.shape(2))}, but a weight of {shape_text(self.shape(1))} in "
                f"{self.int_('group')} groups gives {self.channels()[1]} channels"
            )

    def channel_conflict(self, why: str) -> ShapeConflict:
        """The error of channels that do not fit."""
        return ShapeConflict(
            f"{self.name}: x of {shape_text(self.shape(0))} and a weight of {shape_text(self.shape(1))} in "
            f"{self.int_('group')} groups do not fit: {why}"
        )


class ConvolutionOp(AccumulatingOp, WeightedWindowOp):
    """Base: x `[n, ic, spatial...]`, weight `[oc, ic / group, kernel...]`, bias `[oc]` -> `[n, oc, spatial...]`.

    Basic only without padding and bias; an expander brings the other forms to that one.
    """

    WIDENS_INTEGERS: ClassVar[bool] = True

    @property
    def is_basic(self) -> bool:
        return self.bias is None and not self.is_padded

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.result_type_for(self.check_operands())
        return (tensor_type(dtype, (self.shape(0)[0], self.channels()[1], *self.output_spatial())),)

    def channels(self) -> tuple[int, int]:
        inputs, group = self.shape(0)[1], self.int_("group")
        outputs, per_group = self.shape(1)[:2]
        if UNKNOWN not in (inputs, per_group) and inputs != per_group * group:
            why = f"x has {inputs} channels, the weight takes {per_group} in each group"
            if self.shape(0)[-1] == per_group * group:
                why += f"; channels are dimension 1, and the last one is {per_group * group}"
            raise self.channel_conflict(why)
        if outputs != UNKNOWN and outputs % group:
            raise self.channel_conflict(f"{outputs} output channels do not divide into the groups")
        return inputs, outputs

    def compute(self) -> Sequence[Statement]:
        group, (outputs, inputs, *kernel) = self.int_("group"), self.shape(1)
        sizes = (outputs,) if group == 1 else (group, outputs // group)
        channel_names = ("oc",) if group == 1 else ("g", "oc")
        extents = (self.shape(0)[0], *sizes, *self.result_shape()[2:], inputs, *kernel)
        names = ("n", *channel_names, *self.axis_names("o"), "ic", *self.axis_names("k"))
        write, x_index, w_index = self._indices(dims(len(extents)), outputs // group, inputs)
        count = len(extents)
        body = apply(
            "mul",
            Read(0, affine_map(count, x_index), self.dtype(0)),
            Read(1, affine_map(count, w_index), self.dtype(1)),
        )
        return (Statement(extents, names, affine_map(count, write), self.term(body), "add"),)

    def _indices(
        self, d: tuple[AffineExpr, ...], outputs: int, inputs: int
    ) -> tuple[list[AffineExpr], list[AffineExpr], list[AffineExpr]]:
        """Index expressions of result, x and weight; `outputs` and `inputs` count the channels of one group."""
        n, *channel = d[: len(d) - 2 * self.SPATIAL - 1]
        out, ic, kernel = d[-2 * self.SPATIAL - 1 : -self.SPATIAL - 1], d[-self.SPATIAL - 1], d[-self.SPATIAL :]
        oc = channel[0] if len(channel) == 1 else channel[0] * outputs + channel[1]
        x_channel = ic if len(channel) == 1 else channel[0] * inputs + ic
        return [n, oc, *out], [n, x_channel, *self.taps(out, kernel)], [oc, ic, *kernel]


@irdl_op_definition
class Conv1dOp(Spatial1d, ConvolutionOp):
    """Convolution along one axis: x `[n, ic, w]`, weight `[oc, ic / group, kw]`. MindSpore Conv1d, ONNX Conv."""

    name = "ms.conv1d"
    EXAMPLE: ClassVar[str] = "1x3x16xT 6x3x3xT {stride = 2}"


@irdl_op_definition
class Conv2dOp(Spatial2d, ConvolutionOp):
    """Convolution of images: x `[n, ic, h, w]`, weight `[oc, ic / group, kh, kw]`. MindSpore Conv2D, ONNX Conv."""

    name = "ms.conv2d"
    EXAMPLE: ClassVar[str] = '1x3x8x8xT 6x3x3x3xT 6xT {pad_mode = "same", stride = 2}'


@irdl_op_definition
class Conv3dOp(Spatial3d, ConvolutionOp):
    """Convolution of volumes: x `[n, ic, d, h, w]`, weight `[oc, ic / group, kd, kh, kw]`.

    MindSpore Conv3D, ONNX Conv.
    """

    name = "ms.conv3d"
    EXAMPLE: ClassVar[str] = "1x2x5x6x6xT 4x2x3x3x3xT"
